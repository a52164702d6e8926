//! What a deploy does next.

use serde_json::Value;

use super::failure;
use super::image::{boot_mode, problems};
use super::state::{Deploy, DeployPhase};
use crate::command::{self, Finish, Phase, Request, Unreadable};
use crate::node::answers;
use crate::node::deadlines::Due;
use crate::node::effect::{Severity, Step};
use crate::node::event::ProvisionOptions;
use crate::node::hardware::{DriverAnswer, hardware_type};
use crate::node::limits::BootMode;
use crate::node::manage::no_way;
use crate::node::outcome::Outcome;
use crate::node::provision::Verb;
use crate::node::refused::Refused;
use crate::node::state::{DriverRequest, Provision};
use crate::node::step::rest;
use crate::node::steps::{
    BOOT_INSTANCE, PREPARE_INSTANCE_BOOT, TEAR_DOWN_AGENT, WRITE_IMAGE, agent_steps, merge,
};
use crate::node::turn::Turn;

/// How often a deploy is begun anew because its agent was lost, before it fails.
const RESTARTS_MAX: u32 = 2;

/// How long after its machine asked for a token again a look may show that the agent is gone: one that asks for itself, as agents
/// do when they begin to write, has shown by then that it lives.
const REPLACED_AFTER_MS: i64 = 15_000;

/// `active` or `rebuild`: begin, if nothing stands against it.
pub(in crate::node) fn start(mut turn: Turn<'_>, verb: Verb, options: ProvisionOptions) -> Step {
    let may = match &turn.node.provision {
        Provision::Available => verb == Verb::Active,
        Provision::Active | Provision::Error => verb == Verb::Rebuild,
        Provision::DeployFailed => true,
        Provision::Enroll
        | Provision::Verifying
        | Provision::Manageable
        | Provision::Deploying(_)
        | Provision::Deleting => false,
    };
    if !may {
        return no_way(turn, verb);
    }
    if turn.node.maintenance.is_some() {
        return turn.refuse(Refused::InMaintenance {
            what: "Deploying".to_owned(),
        });
    }
    if verb == Verb::Rebuild && turn.node.attributes.protected {
        return turn.refuse(Refused::Protected {
            what: "Rebuilding".to_owned(),
        });
    }
    if let Some(core) = options.deploy_steps.iter().find(|step| step.is_core()) {
        return turn.refuse(Refused::BadValue {
            field: "deploy_steps".to_owned(),
            problem: format!(
                "deploy.{} is a step the conductor always takes; leave it out",
                core.step
            ),
        });
    }
    if let Some(drive) = options.configdrive {
        turn.node
            .attributes
            .instance_info
            .insert("configdrive".to_owned(), Value::String(drive));
    }
    let problems = problems(&turn.node.attributes);
    if !problems.is_empty() {
        return turn.refuse(Refused::BadValue {
            field: "instance_info".to_owned(),
            problem: problems.join("; "),
        });
    }
    turn.node.last_error = None;
    turn.forget_agent();
    let mode = boot_mode(&turn.node.attributes, turn.now.limits.default_boot_mode);
    let deploy = Deploy::begun(turn.now.at, mode, options.deploy_steps);
    turn.move_to(Provision::Deploying(Box::new(deploy)));
    turn.call_driver(DriverRequest::RebootToRamdisk);
    turn.done(Outcome::DriverCalled)
}

/// `abort`: give up while the agent is awaited.
pub(in crate::node) fn abort(turn: Turn<'_>) -> Step {
    match &turn.node.provision {
        Provision::Deploying(deploy) if deploy.awaits_agent() => {
            let text = format!(
                "The deployment was aborted by request while {}.",
                deploy.phase.name()
            );
            fail(turn, text)
        }
        _ => no_way(turn, Verb::Abort),
    }
}

/// The first heartbeat of a session.
pub(in crate::node) fn agent_arrived(turn: Turn<'_>) -> Step {
    match deploy_of(&turn) {
        Some(deploy) if deploy.phase == DeployPhase::AwaitingAgent => {
            if deploy.steps.is_empty() {
                read_steps(turn)
            } else {
                run_current(turn)
            }
        }
        _ => turn.done(Outcome::AgentArrived),
    }
}

/// The driver has answered, or failed to.
pub(in crate::node) fn driver_answered(
    mut turn: Turn<'_>,
    request: DriverRequest,
    answer: Result<DriverAnswer, String>,
) -> Step {
    let Some(deploy) = deploy_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            let text = format!(
                "The deployment failed while {}: {why}. Mend the machine's power and boot control, then deploy again.",
                deploy.phase.name()
            );
            return fail(turn, text);
        }
    };
    match (deploy.phase, request) {
        (DeployPhase::Booting, _) => {
            // No agent is here before this: lookups are refused until now.
            turn.refresh_liveness();
            enter(&mut turn, DeployPhase::AwaitingAgent);
            turn.done(Outcome::DeployGoesOn)
        }
        (DeployPhase::SettingBootDevice, _) => next_step(turn),
        (DeployPhase::AwaitingOff { .. }, DriverRequest::ReadPower) => {
            if answer.power == Some(crate::node::PowerState::Off) {
                turn.forget_agent();
                return next_step(turn);
            }
            look_later(&mut turn);
            turn.done(Outcome::DeployGoesOn)
        }
        (DeployPhase::SwitchingOff, _) => {
            turn.forget_agent();
            next_step(turn)
        }
        (DeployPhase::SwitchingOn, _) => next_step(turn),
        (
            DeployPhase::AwaitingAgent
            | DeployPhase::ReadingSteps
            | DeployPhase::InBandStep
            | DeployPhase::ReadingUuids
            | DeployPhase::InstallingBootloader
            | DeployPhase::PoweringOffAgent
            | DeployPhase::AwaitingOff { .. },
            _,
        ) => turn.done(Outcome::DeployGoesOn),
    }
}

/// The open command goes on; the agent answered.
pub(in crate::node) fn command_goes_on(mut turn: Turn<'_>, otherwise: Outcome) -> Step {
    let accepted = matches!(
        turn.node.open_command().map(|command| &command.phase),
        Some(Phase::Accepted { .. })
    );
    match deploy_of(&turn) {
        Some(deploy) if deploy.phase == DeployPhase::PoweringOffAgent && accepted => {
            await_off(&mut turn);
            turn.done(Outcome::DeployGoesOn)
        }
        _ => turn.done(otherwise),
    }
}

/// The agent can't be read. That is trouble, except after it was told to power off: then it is what was asked for.
pub(in crate::node) fn agent_unreadable(mut turn: Turn<'_>, why: &Unreadable) -> Step {
    if is_replaced(&turn, why) {
        return instance_lost(turn);
    }
    let told = matches!(
        turn.node.open_command().map(|command| &command.phase),
        Some(Phase::Accepted { .. } | Phase::Unknown { .. })
    );
    let leaving = deploy_of(&turn).is_some_and(|deploy| {
        matches!(
            deploy.phase,
            DeployPhase::PoweringOffAgent | DeployPhase::AwaitingOff { .. }
        )
    });
    if !(told && leaving) {
        return turn.done(Outcome::AgentTrouble);
    }
    if let Some(session) = &mut turn.node.session {
        session.trouble = None;
    }
    if sees_power(&turn) {
        if deploy_of(&turn).is_some_and(|deploy| deploy.phase == DeployPhase::PoweringOffAgent) {
            await_off(&mut turn);
        }
        return turn.done(Outcome::DeployGoesOn);
    }
    switch_off(turn)
}

/// The open command has ended.
pub(in crate::node) fn command_finished(mut turn: Turn<'_>, finish: Finish) -> Step {
    let Some(deploy) = deploy_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let phase = deploy.phase;
    if matches!(
        phase,
        DeployPhase::PoweringOffAgent | DeployPhase::AwaitingOff { .. }
    ) {
        // However it ended: the machine goes off, by itself or by the driver.
        if sees_power(&turn) && matches!(finish, Finish::Succeeded { .. }) {
            await_off(&mut turn);
            return turn.done(Outcome::DeployGoesOn);
        }
        return switch_off(turn);
    }
    let result = match finish {
        Finish::Succeeded { result } => result,
        Finish::InstanceLost => return instance_lost(turn),
        Finish::Failed { .. }
        | Finish::VersionMismatch
        | Finish::Refused { .. }
        | Finish::Abandoned => {
            let text = failure::explain(&turn.node.attributes, deploy, &finish);
            return fail(turn, text);
        }
    };
    match phase {
        DeployPhase::ReadingSteps => steps_read(turn, &result),
        DeployPhase::InBandStep => step_done(turn),
        DeployPhase::ReadingUuids => uuids_read(turn, result),
        DeployPhase::InstallingBootloader => set_boot_device(turn),
        DeployPhase::Booting
        | DeployPhase::AwaitingAgent
        | DeployPhase::SettingBootDevice
        | DeployPhase::PoweringOffAgent
        | DeployPhase::AwaitingOff { .. }
        | DeployPhase::SwitchingOff
        | DeployPhase::SwitchingOn => turn.done(Outcome::AnswerIgnored),
    }
}

/// True when the machine's agent asked for a token anew and the look proves that the one that has it is gone: nobody listens there, or
/// somebody else does. Silence proves nothing: a network fails for an agent that lives, too, and that one may be writing.
fn is_replaced(turn: &Turn<'_>, why: &Unreadable) -> bool {
    match why {
        Unreadable::NobodyListens | Unreadable::Unauthorized | Unreadable::CertificateMismatch => {}
        Unreadable::Unreachable { .. }
        | Unreadable::NotFound
        | Unreadable::Poisoned
        | Unreadable::Garbage { .. } => return false,
    }
    let asked = turn
        .node
        .session
        .as_ref()
        .and_then(|session| session.asked_again_at);
    asked.is_some_and(|asked| turn.now.at.ms_since(asked) >= REPLACED_AFTER_MS)
}

/// Somebody has just asked for a token that is another agent's: a look at the right time finds out whether that one is gone, however
/// long the pauses between looks have become.
pub(in crate::node) fn look_when_proof_is_due(turn: &mut Turn<'_>) {
    let session = turn.node.session.as_ref();
    let asked = session.and_then(|session| session.asked_again_at);
    if let (Some(asked), Some(_), None) =
        (asked, turn.node.open_command(), turn.node.deadlines.look)
    {
        let due = asked.plus_ms(REPLACED_AFTER_MS);
        turn.node.deadlines.look = (due > turn.now.at).then_some(due);
    }
}

/// The agent that worked on the node is gone. Writing an image can be begun anew; what any other step left behind nobody knows.
fn instance_lost(mut turn: Turn<'_>) -> Step {
    turn.lose_agent();
    let switches_power = turn.switches_power();
    let may_reissue_token = turn.may_reissue_token();
    let Some(deploy) = deploy_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    if !switches_power && !may_reissue_token {
        let text = format!(
            "The agent restarted while {} and lost its token; a new one is only given after a power cycle, which this hardware type leaves to a person. Power the machine off, then deploy again. (With reissue_lost_token the agent would get one.)",
            deploy.phase.name()
        );
        return fail(turn, text);
    }
    let begun = deploy.steps.get(..=deploy.current).unwrap_or_default();
    let irreversible = begun.iter().find(|step| !step.is_core());
    if let Some(step) = irreversible {
        let text = format!(
            "The agent restarted while {}; what became of step {}.{} is not known, so it can't be repeated safely. Look at the machine, then deploy again.",
            deploy.phase.name(),
            step.interface,
            step.step
        );
        return fail(turn, text);
    }
    if deploy.restarts >= RESTARTS_MAX {
        let text = format!(
            "The agent restarted {} times while {}; giving up. Look at the machine's console for the cause, then deploy again.",
            deploy.restarts + 1,
            deploy.phase.name()
        );
        return fail(turn, text);
    }
    let mut anew = Deploy::begun(
        deploy.started_at,
        deploy.boot_mode,
        deploy.wanted_steps.clone(),
    );
    anew.restarts = deploy.restarts + 1;
    turn.note(
        Severity::Error,
        "provisioning",
        "the agent restarted in the middle of the deployment; it is begun anew".to_owned(),
    );
    if switches_power {
        turn.move_to(Provision::Deploying(Box::new(anew)));
        turn.call_driver(DriverRequest::RebootToRamdisk);
    } else {
        // The agent that has come asks for a token until it gets one.
        anew.phase = DeployPhase::AwaitingAgent;
        turn.move_to(Provision::Deploying(Box::new(anew)));
        turn.refresh_liveness();
    }
    turn.done(Outcome::DeployGoesOn)
}

/// A deadline other than the driver's has passed.
pub(in crate::node) fn deadline(mut turn: Turn<'_>, due: Due) -> Step {
    let Some(deploy) = deploy_of(&turn) else {
        return turn.done(Outcome::DeadlineMoved);
    };
    let phase = deploy.phase;
    match due {
        Due::Driver => turn.done(Outcome::DeadlineMoved),
        Due::Look => {
            turn.node.deadlines.look = None;
            match phase {
                DeployPhase::AwaitingOff { until } if turn.now.at >= until => switch_off(turn),
                DeployPhase::AwaitingOff { .. } if turn.node.driver_call.is_none() => {
                    turn.call_driver(DriverRequest::ReadPower);
                    turn.done(Outcome::DriverCalled)
                }
                DeployPhase::AwaitingOff { .. } => turn.done(Outcome::DeadlineMoved),
                _ => {
                    // This may be the time of a question that was answered long ago, and another was asked since.
                    look_when_proof_is_due(&mut turn);
                    answers::tell_command(turn, command::Event::Hint, Outcome::DeadlineMoved)
                }
            }
        }
        Due::Step | Due::Liveness
            if matches!(
                phase,
                DeployPhase::PoweringOffAgent | DeployPhase::AwaitingOff { .. }
            ) =>
        {
            // It was asked to go off and says nothing more.
            switch_off(turn)
        }
        Due::Step => {
            let text = failure::step_too_long(&turn.node, deploy, turn.now);
            fail(turn, text)
        }
        Due::Liveness => {
            let text = failure::silent(&turn.node, deploy, turn.now);
            fail(turn, text)
        }
    }
}

fn read_steps(mut turn: Turn<'_>) -> Step {
    enter(&mut turn, DeployPhase::ReadingSteps);
    let limit = turn.now.limits.command_limit_ms;
    turn.plan_command(Request::GetDeploySteps, limit);
    turn.done(Outcome::AgentArrived)
}

fn steps_read(mut turn: Turn<'_>, result: &Value) -> Step {
    let Some(deploy) = deploy_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    match merge(&agent_steps(result), &deploy.wanted_steps) {
        Err(unknown) => {
            let text = format!(
                "The deployment failed: neither the conductor nor this agent has a deploy step {unknown}. Leave it out of deploy_steps, or use a ramdisk that has it."
            );
            fail(turn, text)
        }
        Ok(steps) => {
            deploy.steps = steps;
            deploy.current = 0;
            deploy.agent_steps = result.get("deploy_steps").cloned().unwrap_or_default();
            deploy.hardware_manager_version = result
                .get("hardware_manager_version")
                .cloned()
                .unwrap_or_default();
            run_current(turn)
        }
    }
}

/// Begins with the step that `current` names; past the last one the node is active.
fn run_current(mut turn: Turn<'_>) -> Step {
    let Some(deploy) = deploy_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let Some(step) = deploy.current_step().cloned() else {
        turn.forget_agent();
        return rest(turn, Provision::Active, Outcome::Deployed);
    };
    let step_is_core = step.is_core();
    match step.step.as_str() {
        PREPARE_INSTANCE_BOOT if step_is_core => {
            enter(&mut turn, DeployPhase::ReadingUuids);
            let limit = turn.now.limits.command_limit_ms;
            turn.plan_command(Request::GetPartitionUuids, limit);
            turn.done(Outcome::CommandPlanned)
        }
        TEAR_DOWN_AGENT if step_is_core => {
            enter(&mut turn, DeployPhase::PoweringOffAgent);
            let limit = turn.now.limits.power_off_wait_ms.max(1);
            turn.plan_command(Request::PowerOff, limit);
            turn.done(Outcome::CommandPlanned)
        }
        BOOT_INSTANCE if step_is_core => {
            enter(&mut turn, DeployPhase::SwitchingOn);
            turn.call_driver(DriverRequest::PowerOn);
            turn.done(Outcome::DriverCalled)
        }
        name => {
            let limit = if name == WRITE_IMAGE && step_is_core {
                turn.now.limits.write_image_limit_ms
            } else {
                turn.now.limits.command_limit_ms
            };
            enter(&mut turn, DeployPhase::InBandStep);
            turn.plan_command(
                Request::ExecuteDeployStep {
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

fn next_step(mut turn: Turn<'_>) -> Step {
    if let Some(deploy) = deploy_of_mut(&mut turn) {
        deploy.current += 1;
    }
    run_current(turn)
}

fn step_done(mut turn: Turn<'_>) -> Step {
    let Some(deploy) = deploy_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let reboot = deploy
        .current_step()
        .is_some_and(|step| step.reboot_requested);
    if !reboot {
        return next_step(turn);
    }
    deploy.current += 1;
    turn.forget_agent();
    enter(&mut turn, DeployPhase::Booting);
    turn.call_driver(DriverRequest::RebootToRamdisk);
    turn.done(Outcome::DriverCalled)
}

fn uuids_read(mut turn: Turn<'_>, result: Value) -> Step {
    let Some(deploy) = deploy_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let uuid = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let root = uuid("root uuid");
    let prep = uuid("PReP Boot partition uuid");
    let mode = deploy.boot_mode;
    deploy.partition_uuids = result;
    match mode {
        // The boot record of a whole-disk image boots as it is.
        BootMode::Bios => set_boot_device(turn),
        BootMode::Uefi => {
            enter(&mut turn, DeployPhase::InstallingBootloader);
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

fn set_boot_device(mut turn: Turn<'_>) -> Step {
    enter(&mut turn, DeployPhase::SettingBootDevice);
    turn.call_driver(DriverRequest::BootFromDisk);
    turn.done(Outcome::DriverCalled)
}

/// The agent has taken the order to power off; now the machine may take a while.
fn await_off(turn: &mut Turn<'_>) {
    let until = turn.now.at.plus_ms(turn.now.limits.power_off_wait_ms);
    turn.node.deadlines.step = None;
    turn.node.deadlines.liveness = None;
    enter(turn, DeployPhase::AwaitingOff { until });
    look_later(turn);
}

fn look_later(turn: &mut Turn<'_>) {
    let until = match deploy_of(turn).map(|deploy| deploy.phase) {
        Some(DeployPhase::AwaitingOff { until }) => until,
        _ => return,
    };
    let soon = turn
        .now
        .at
        .plus_ms(turn.now.limits.power_off_look_every_ms.max(1));
    turn.node.deadlines.look = Some(if sees_power(turn) {
        soon.min(until)
    } else {
        until
    });
}

fn switch_off(mut turn: Turn<'_>) -> Step {
    turn.forget_agent();
    enter(&mut turn, DeployPhase::SwitchingOff);
    turn.call_driver(DriverRequest::PowerOff);
    turn.done(Outcome::DriverCalled)
}

/// Ends the deploy badly: nothing more is asked of the agent, and the machine is switched off so that it does nothing more
/// either.
fn fail(mut turn: Turn<'_>, text: String) -> Step {
    turn.forget_agent();
    turn.node.driver_call = None;
    turn.node.deadlines.driver = None;
    turn.error("provisioning", text);
    turn.move_to(Provision::DeployFailed);
    if turn.node.attributes.disable_power_off {
        turn.note(
            Severity::Info,
            "power",
            "not powered off, because disable_power_off is set".to_owned(),
        );
    } else {
        turn.call_driver(DriverRequest::PowerOff);
    }
    turn.done(Outcome::DeployFailed)
}

fn enter(turn: &mut Turn<'_>, phase: DeployPhase) {
    if let Provision::Deploying(deploy) = &turn.node.provision {
        let mut deploy = deploy.clone();
        deploy.phase = phase;
        turn.move_to(Provision::Deploying(deploy));
    }
}

fn deploy_of<'t>(turn: &'t Turn<'_>) -> Option<&'t Deploy> {
    match &turn.node.provision {
        Provision::Deploying(deploy) => Some(deploy),
        _ => None,
    }
}

fn deploy_of_mut<'t>(turn: &'t mut Turn<'_>) -> Option<&'t mut Deploy> {
    match &mut turn.node.provision {
        Provision::Deploying(deploy) => Some(deploy),
        _ => None,
    }
}

fn sees_power(turn: &Turn<'_>) -> bool {
    hardware_type(&turn.node.attributes.driver).is_some_and(|known| known.sees_power)
}
