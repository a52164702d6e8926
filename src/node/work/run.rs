//! The list of steps: how it is made, and what carrying out the current one means.

use std::collections::BTreeMap;

use serde_json::Value;

use super::end::{ended_well, fail};
use super::kind::WorkKind;
use super::state::{Work, WorkPhase};
use super::verbs::abort_now;
use super::{enter, work_of, work_of_mut};
use crate::command::{Request, StepsOf};
use crate::node::driver_call::DriverRequest;
use crate::node::effect::{Severity, Step};
use crate::node::hardware::raid;
use crate::node::hardware::steps::{HardwareStep, hardware_step, hardware_steps, prepare, record};
use crate::node::image::image_host;
use crate::node::limits::BootMode;
use crate::node::outcome::Outcome;
use crate::node::packed::Packed;
use crate::node::queues::QueueKind;
use crate::node::state::Node;
use crate::node::steps::{
    self, BOOT_INSTANCE, PAUSE_S_MAX, PREPARE_INSTANCE_BOOT, Reserved, TEAR_DOWN_AGENT,
    WRITE_IMAGE, WorkStep,
};
use crate::node::turn::Turn;

/// No more steps that are there twice are told of.
const STEPS_TWICE_MAX: usize = 10;

/// Asks the agent which steps it has.
pub(super) fn read_steps(mut turn: Turn<'_>, of: StepsOf) -> Step {
    enter(&mut turn, WorkPhase::ReadingSteps);
    let limit = turn.now.limits.command_limit_ms;
    turn.plan_command(Request::GetSteps { of }, limit);
    turn.done(Outcome::AgentArrived)
}

/// The agent has told its steps; null where there is no agent.
pub(super) fn steps_read(mut turn: Turn<'_>, result: &Value) -> Step {
    match set_list(&mut turn, result) {
        Ok(()) => run_current(turn),
        Err(text) => fail(turn, text),
    }
}

/// Makes the list from what the agent told.
fn set_list(turn: &mut Turn<'_>, result: &Value) -> Result<(), String> {
    let Some(work) = work_of(turn) else {
        return Ok(());
    };
    let kind = work.kind;
    let priorities = &turn.now.limits.clean_step_priorities;
    let agent = agent_steps(work, result)?;
    let list = list(&turn.node, work, priorities, &agent)?;
    for step in steps::told_twice(&agent).into_iter().take(STEPS_TWICE_MAX) {
        let line = format!(
            "more than one hardware manager of the agent has the step {step}; what the first of them says of it counts"
        );
        turn.note(Severity::Info, "provisioning", line);
    }
    if kind == WorkKind::Clean && list.is_empty() {
        let line = "nothing was cleaned, because no step of the agent or the driver has a priority";
        turn.note(Severity::Info, "provisioning", line.to_owned());
    }
    if let Some(work) = work_of_mut(turn) {
        work.steps = list.into();
        work.current = 0;
        let told = |name| result.get(name).map_or_else(Packed::default, Packed::from);
        work.agent_steps = told(kind.steps_name());
        work.hardware_manager_version = told("hardware_manager_version");
    }
    Ok(())
}

/// What the agent told; nothing where there is none.
fn agent_steps(work: &Work, result: &Value) -> Result<Vec<WorkStep>, String> {
    let words = work.kind.words();
    match work.kind.steps_of() {
        Some(of) if !work.is_without_ramdisk => {
            steps::agent_steps(of, result).map_err(|why| {
                format!(
                    "The {} failed: the agent's list of steps can't be read: {why}. Use a ramdisk whose hardware managers describe their steps as they should, then {}.",
                    words.noun, words.again
                )
            })
        }
        _ => Ok(Vec::new()),
    }
}

fn list(
    node: &Node,
    work: &Work,
    priorities: &BTreeMap<String, i64>,
    agent: &[WorkStep],
) -> Result<Vec<WorkStep>, String> {
    let driver = driver_steps(node, work.kind);
    let (name, noun) = (work.kind.steps_name(), work.kind.words().noun);
    let word = work.kind.steps_of().unwrap_or_default().word();
    let unknown = |unknown: String| {
        if work.is_without_ramdisk {
            return format!(
                "The {noun} failed: {unknown} is no {word} step of the conductor or the node's driver, and without the ramdisk there are no others. Leave it out of {name}, or leave out disable_ramdisk."
            );
        }
        format!(
            "The {noun} failed: neither the conductor nor this agent has a {word} step {unknown}. Leave it out of {name}, or use a ramdisk that has it."
        )
    };
    match work.kind {
        WorkKind::Deploy => {
            let interface = node.attributes.interfaces.get("deploy");
            let own = steps::core_steps_of(interface.map_or("direct", String::as_str));
            steps::by_wish_and_priority(own, &driver, agent, &work.wanted_steps).map_err(unknown)
        }
        WorkKind::Clean => Ok(steps::by_priority(&driver, agent, priorities)),
        WorkKind::ManualClean | WorkKind::Service => {
            let list = steps::in_order(&work.wanted_steps, &driver, agent).map_err(unknown)?;
            match list.iter().find(|step| !step.needs_no_ramdisk) {
                Some(step) if work.is_without_ramdisk => Err(format!(
                    "The {noun} failed: step {} needs the ramdisk. Leave out disable_ramdisk.",
                    step.full_name()
                )),
                _ => Ok(list),
            }
        }
        WorkKind::Rescue | WorkKind::Unrescue | WorkKind::Inspect => Ok(Vec::new()),
    }
}

/// What the driver of this node can do as a step.
fn driver_steps(node: &Node, kind: WorkKind) -> Vec<WorkStep> {
    let known = kind
        .steps_of()
        .map(|of| hardware_steps(&node.attributes, of));
    known
        .into_iter()
        .flatten()
        .map(|step| WorkStep {
            is_out_of_band: true,
            is_not_abortable: !step.abortable,
            needs_no_ramdisk: !step.requires_ramdisk,
            ..WorkStep::named(step.interface, step.step, HardwareStep::PRIORITY)
        })
        .collect()
}

/// Asks the driver for the current step.
fn run_out_of_band(mut turn: Turn<'_>, of: StepsOf, step: &WorkStep) -> Step {
    let asked = hardware_step(&turn.node.attributes, of, &step.interface, &step.step)
        .ok_or_else(|| "the node's interfaces have changed, and none has this step now".to_owned())
        .and_then(|known| prepare(&turn.node, known, &step.args));
    match asked {
        Ok(()) => {
            enter(&mut turn, WorkPhase::OutOfBandStep);
            turn.call_driver(DriverRequest::HardwareStep);
            turn.done(Outcome::DriverCalled)
        }
        Err(why) => fail_step(turn, step, &why),
    }
}

/// The current step can't be carried out.
fn fail_step(turn: Turn<'_>, step: &WorkStep, why: &str) -> Step {
    let noun = work_of(&turn).map_or("work", |work| work.kind.words().noun);
    let text = format!("The {noun} failed in step {}: {why}.", step.full_name());
    fail(turn, text)
}

/// The driver has carried out the current step.
pub(super) fn out_of_band_done(mut turn: Turn<'_>) -> Step {
    let now = turn.now.at;
    let current = work_of(&turn).and_then(|work| {
        let of = work.kind.steps_of()?;
        Some((of, work.current_step()?.clone()))
    });
    if let Some((of, step)) = current
        && let Some(known) = hardware_step(&turn.node.attributes, of, &step.interface, &step.step)
    {
        record(&mut turn.node, known, &step.args, now);
    }
    step_done(turn)
}

/// True if every step that is wanted is known to need no ramdisk.
pub(super) fn without_ramdisk(node: &Node, work: &Work) -> bool {
    let driver = driver_steps(node, work.kind);
    steps::in_order(&work.wanted_steps, &driver, &[])
        .is_ok_and(|list| list.iter().all(|step| step.needs_no_ramdisk))
}

/// Begins with the step that `current` names; past the last one the work has ended well.
pub(super) fn run_current(turn: Turn<'_>) -> Step {
    run_current_step(turn, false)
}

/// Its turn to read the image has come.
pub(super) fn run_in_turn(turn: Turn<'_>) -> Step {
    run_current_step(turn, true)
}

fn run_current_step(mut turn: Turn<'_>, has_turn: bool) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    if work.is_abort_wanted {
        return abort_now(turn);
    }
    let (kind, of) = (work.kind, work.kind.steps_of().unwrap_or_default());
    let Some(step) = work.current_step().cloned() else {
        return ended_well(turn);
    };
    if let Some(reserved) = step.reserved() {
        return run_reserved(turn, reserved, &step);
    }
    let is_core = kind == WorkKind::Deploy && step.is_core();
    match step.step.as_str() {
        PREPARE_INSTANCE_BOOT if is_core => {
            enter(&mut turn, WorkPhase::ReadingUuids);
            let limit = turn.now.limits.command_limit_ms;
            turn.plan_command(Request::GetPartitionUuids, limit);
            turn.done(Outcome::CommandPlanned)
        }
        TEAR_DOWN_AGENT if is_core => {
            enter(&mut turn, WorkPhase::PoweringOffAgent);
            let limit = turn.now.limits.power_off_wait_ms.max(1);
            turn.plan_command(Request::PowerOff, limit);
            turn.done(Outcome::CommandPlanned)
        }
        BOOT_INSTANCE if is_core => {
            enter(&mut turn, WorkPhase::SwitchingOn);
            turn.call_driver(DriverRequest::PowerOn);
            turn.done(Outcome::DriverCalled)
        }
        _ if step.is_out_of_band => run_out_of_band(turn, of, &step),
        _ if turn.node.session.is_none() => {
            // A step before it switched the machine off.
            enter(&mut turn, WorkPhase::Booting);
            turn.call_driver(DriverRequest::RebootToRamdisk);
            turn.done(Outcome::DriverCalled)
        }
        WRITE_IMAGE if is_core && !has_turn && is_queued_for_image(&turn) => {
            // Until then its agent has to do no more than to show that it lives.
            turn.refresh_liveness();
            let (kind, since) = (QueueKind::ImageHost, turn.now.at);
            enter(&mut turn, WorkPhase::Queued { kind, since });
            turn.done(Outcome::Queued)
        }
        name => {
            let limit = if name == WRITE_IMAGE && is_core {
                turn.now.limits.write_image_limit_ms
            } else {
                turn.now.limits.command_limit_ms
            };
            enter(&mut turn, WorkPhase::InBandStep);
            turn.plan_command(
                Request::ExecuteStep {
                    of,
                    interface: step.interface,
                    step: step.step,
                    args: step.args,
                },
                limit,
            );
            turn.done(Outcome::CommandPlanned)
        }
    }
}

/// True where only so many may read from the image's host at once.
fn is_queued_for_image(turn: &Turn<'_>) -> bool {
    turn.now.limits.queues.image_host > 0 && image_host(&turn.node.attributes).is_some()
}

fn run_reserved(mut turn: Turn<'_>, reserved: Reserved, step: &WorkStep) -> Step {
    let request = match reserved {
        Reserved::Hold => {
            // A hold has no limit: it is a person's to end.
            turn.node.deadlines.liveness = None;
            enter(&mut turn, WorkPhase::Held);
            return turn.done(Outcome::Held);
        }
        Reserved::Wait => {
            let seconds = step.args.get("seconds").and_then(Value::as_i64);
            let is_without_ramdisk = work_of(&turn).is_some_and(|work| work.is_without_ramdisk);
            let seconds = seconds.or(is_without_ramdisk.then_some(0));
            let Some(seconds) = seconds.map(|seconds| seconds.clamp(0, PAUSE_S_MAX)) else {
                // Until the agent calls again.
                enter(&mut turn, WorkPhase::AwaitingAgent);
                turn.refresh_liveness();
                advance(&mut turn);
                return turn.done(Outcome::WorkGoesOn);
            };
            let until = turn.now.at.plus_ms(seconds * 1_000);
            turn.node.deadlines.look = Some(until);
            enter(&mut turn, WorkPhase::Pausing { until });
            return turn.done(Outcome::WorkGoesOn);
        }
        Reserved::PowerOn => DriverRequest::PowerOn,
        Reserved::PowerOff if turn.node.attributes.disable_power_off => {
            return fail_step(
                turn,
                step,
                "the node has disable_power_off set, so it must not be powered off",
            );
        }
        Reserved::PowerOff => {
            turn.forget_agent();
            DriverRequest::PowerOff
        }
        Reserved::Reboot if work_of(&turn).is_some_and(|work| work.is_without_ramdisk) => {
            DriverRequest::Reboot
        }
        Reserved::Reboot => return reboot_to_ramdisk(turn),
    };
    enter(&mut turn, WorkPhase::OutOfBandStep);
    turn.call_driver(request);
    turn.done(Outcome::DriverCalled)
}

/// The current step is over.
fn advance(turn: &mut Turn<'_>) {
    if let Some(work) = work_of_mut(turn) {
        work.current += 1;
    }
}

/// The current step has ended well, and the machine is to boot the ramdisk anew before the next.
fn reboot_to_ramdisk(mut turn: Turn<'_>) -> Step {
    advance(&mut turn);
    boot_ramdisk(turn)
}

/// The machine boots the ramdisk anew; the agent that then comes goes on where the work is.
pub(in crate::node) fn boot_ramdisk(mut turn: Turn<'_>) -> Step {
    turn.forget_agent();
    enter(&mut turn, WorkPhase::Booting);
    turn.call_driver(DriverRequest::RebootToRamdisk);
    turn.done(Outcome::DriverCalled)
}

/// Goes on with the step after the current one.
pub(super) fn next_step(mut turn: Turn<'_>) -> Step {
    advance(&mut turn);
    run_current(turn)
}

/// The agent has carried out the current step.
pub(super) fn in_band_done(mut turn: Turn<'_>, result: &Value) -> Step {
    let now = turn.now.at;
    let current = work_of(&turn).and_then(|work| work.current_step().cloned());
    if let Some(step) = current.filter(|step| step.interface == "raid") {
        raid::record_in_band(&mut turn.node, &step.step, result, now);
    }
    step_done(turn)
}

/// The current step has ended well.
fn step_done(turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let needs_reboot = work
        .current_step()
        .is_some_and(|step| step.reboot_requested);
    if !needs_reboot || work.is_abort_wanted || work.is_without_ramdisk {
        return next_step(turn);
    }
    reboot_to_ramdisk(turn)
}

/// The agent has told what it wrote.
pub(super) fn uuids_read(mut turn: Turn<'_>, result: Value) -> Step {
    let Some(work) = work_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let uuid = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let root = uuid("root uuid");
    let prep = uuid("PReP Boot partition uuid");
    let mode = work.boot_mode;
    work.partition_uuids = (&result).into();
    match mode {
        // The boot record of a whole-disk image boots as it is.
        BootMode::Bios => set_boot_device(turn),
        BootMode::Uefi => {
            enter(&mut turn, WorkPhase::InstallingBootloader);
            let limit = turn.now.limits.command_limit_ms;
            turn.plan_command(
                Request::InstallBootloader {
                    root_uuid: root,
                    // The agent finds the partition itself in a whole-disk image.
                    efi_system_part_uuid: None,
                    prep_boot_part_uuid: prep,
                    target_boot_mode: mode.name().to_owned(),
                },
                limit,
            );
            turn.done(Outcome::CommandPlanned)
        }
    }
}

/// The disk is bootable: from now on the machine boots from it.
pub(super) fn set_boot_device(mut turn: Turn<'_>) -> Step {
    enter(&mut turn, WorkPhase::SettingBootDevice);
    turn.call_driver(DriverRequest::BootFromDisk);
    turn.done(Outcome::DriverCalled)
}
