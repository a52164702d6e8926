//! What the agent, the driver and the clock say while work is in progress.

use super::end::{ended_well, fail, rest};
use super::kind::WorkKind;
use super::leave::{await_off, is_leaving, look_later, switch_off};
use super::lost::{instance_lost, is_replaced, look_when_proof_is_due, version_changed};
use super::run::{
    in_band_done, next_step, out_of_band_done, read_steps, run_current, run_in_turn,
    set_boot_device, steps_read, uuids_read,
};
use super::state::WorkPhase;
use super::verbs::start;
use super::{enter, failure, phase_of, sees_power, work_of};
use crate::command::{self, Finish, Phase, Request, Unreadable};
use crate::node::answers;
use crate::node::deadlines::Due;
use crate::node::driver_call::DriverRequest;
use crate::node::effect::Step;
use crate::node::hardware::DriverAnswer;
use crate::node::image::is_ramdisk;
use crate::node::outcome::Outcome;
use crate::node::queues::{QueueKind, claims};
use crate::node::state::PowerState;
use crate::node::turn::Turn;
use crate::timestamp::Timestamp;

/// The first heartbeat of a session, or one while it is waited for.
pub(in crate::node) fn agent_arrived(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AgentArrived);
    };
    if work.phase != WorkPhase::AwaitingAgent {
        return turn.done(Outcome::AgentArrived);
    }
    match (work.kind, work.kind.steps_of()) {
        (_, Some(of)) if work.steps.is_empty() => read_steps(turn, of),
        (_, Some(_)) => run_current(turn),
        (WorkKind::Rescue, None) => {
            enter(&mut turn, WorkPhase::FinalizingRescue);
            let limit = turn.now.limits.command_limit_ms;
            turn.plan_command(Request::FinalizeRescue, limit);
            turn.done(Outcome::AgentArrived)
        }
        (_, None) => turn.done(Outcome::AgentArrived),
    }
}

/// Its turn has come, which it has waited for since then. It may have left the queue meanwhile.
pub(in crate::node) fn turn_came(turn: Turn<'_>, kind: QueueKind, since: Timestamp) -> Step {
    match claims(&turn.node).waits {
        Some((queue, waits_since)) if (queue.kind(), waits_since) == (kind, since) => {}
        _ => return turn.unchanged(Outcome::AnswerIgnored),
    }
    match kind {
        QueueKind::Deploy | QueueKind::Clean => start(turn),
        QueueKind::ImageHost => run_in_turn(turn),
    }
}

/// The driver has answered, or failed to.
pub(in crate::node) fn driver_answered(
    mut turn: Turn<'_>,
    request: DriverRequest,
    answer: Result<DriverAnswer, String>,
) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let (kind, phase) = (work.kind, work.phase);
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            let text = failure::driver_failed(work, &why);
            return fail(turn, text);
        }
    };
    match (phase, request) {
        (WorkPhase::Booting, _) if kind == WorkKind::Inspect => {
            turn.node.deadlines.step = turn.now.deadline(turn.now.limits.inspect_wait_timeout_ms);
            enter(&mut turn, WorkPhase::AwaitingInventory);
            turn.done(Outcome::WorkGoesOn)
        }
        // What was booted is what the machine is used with.
        (WorkPhase::Booting, _)
            if kind == WorkKind::Deploy && is_ramdisk(&turn.node.attributes) =>
        {
            rest(turn, kind)
        }
        (WorkPhase::Booting, _) => {
            // No agent is here before this: lookups are refused until now.
            turn.refresh_liveness();
            enter(&mut turn, WorkPhase::AwaitingAgent);
            turn.done(Outcome::WorkGoesOn)
        }
        (WorkPhase::OutOfBandStep, _) => out_of_band_done(turn),
        (WorkPhase::SettingBootDevice, _) => next_step(turn),
        (WorkPhase::AwaitingOff { .. }, DriverRequest::ReadPower) => {
            if answer.power == Some(PowerState::Off) {
                turn.forget_agent();
                return next_step(turn);
            }
            look_later(&mut turn);
            turn.done(Outcome::WorkGoesOn)
        }
        (WorkPhase::SwitchingOff, _) => {
            turn.forget_agent();
            match kind {
                WorkKind::Deploy => next_step(turn),
                _ => rest(turn, kind),
            }
        }
        (WorkPhase::SwitchingOn, _) => next_step(turn),
        (WorkPhase::RebootingToInstance, _) => rest(turn, kind),
        (
            WorkPhase::Queued { .. }
            | WorkPhase::AwaitingAgent
            | WorkPhase::ReadingSteps
            | WorkPhase::InBandStep
            | WorkPhase::Pausing { .. }
            | WorkPhase::Held
            | WorkPhase::ReadingUuids
            | WorkPhase::InstallingBootloader
            | WorkPhase::PoweringOffAgent
            | WorkPhase::FinalizingRescue
            | WorkPhase::AwaitingInventory
            | WorkPhase::AwaitingOff { .. },
            _,
        ) => turn.done(Outcome::WorkGoesOn),
    }
}

/// The open command goes on; the agent answered.
pub(in crate::node) fn command_goes_on(mut turn: Turn<'_>, otherwise: Outcome) -> Step {
    let accepted = matches!(
        turn.node.open_command().map(|command| &command.phase),
        Some(Phase::Accepted { .. })
    );
    if accepted && phase_of(&turn) == Some(WorkPhase::PoweringOffAgent) {
        await_off(&mut turn);
        return turn.done(Outcome::WorkGoesOn);
    }
    turn.done(otherwise)
}

/// The agent can't be read. That is trouble, except after it was told to leave: then it is what was asked for.
pub(in crate::node) fn agent_unreadable(mut turn: Turn<'_>, why: &Unreadable) -> Step {
    let told = matches!(
        turn.node.open_command().map(|command| &command.phase),
        Some(Phase::Accepted { .. } | Phase::Unknown { .. })
    );
    let phase = phase_of(&turn);
    // With the password set the agent ends and its machine stays: nobody listens there any more. Where somebody asked for a token
    // since, another agent may have come before it was set; the rescue is begun anew then, if that can be done.
    let may_be_rescued =
        told && phase == Some(WorkPhase::FinalizingRescue) && *why == Unreadable::NobodyListens;
    let can_begin_anew = turn.switches_power() || turn.may_reissue_token();
    if is_replaced(&turn, why) && (can_begin_anew || !may_be_rescued) {
        return instance_lost(turn);
    }
    if may_be_rescued {
        return ended_well(turn);
    }
    if !(told && is_leaving(phase)) {
        return turn.done(Outcome::AgentTrouble);
    }
    if let Some(session) = &mut turn.node.session {
        session.trouble = None;
    }
    if sees_power(&turn) {
        if phase == Some(WorkPhase::PoweringOffAgent) {
            await_off(&mut turn);
        }
        return turn.done(Outcome::WorkGoesOn);
    }
    switch_off(turn)
}

/// The open command has ended.
pub(in crate::node) fn command_finished(mut turn: Turn<'_>, finish: Finish) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let phase = work.phase;
    if is_leaving(Some(phase)) {
        // However it ended: the machine goes off, by itself or by the driver.
        if sees_power(&turn) && matches!(finish, Finish::Succeeded { .. }) {
            await_off(&mut turn);
            return turn.done(Outcome::WorkGoesOn);
        }
        return switch_off(turn);
    }
    let result = match finish {
        Finish::Succeeded { result } => result,
        Finish::InstanceLost => return instance_lost(turn),
        Finish::VersionMismatch if work.kind == WorkKind::Clean => return version_changed(turn),
        Finish::Failed { .. }
        | Finish::VersionMismatch
        | Finish::Refused { .. }
        | Finish::Abandoned => {
            let text = failure::explain(&turn.node.attributes, work, &finish);
            return fail(turn, text);
        }
    };
    match phase {
        WorkPhase::ReadingSteps => steps_read(turn, &result),
        WorkPhase::InBandStep => in_band_done(turn, &result),
        WorkPhase::ReadingUuids => uuids_read(turn, result),
        WorkPhase::InstallingBootloader => set_boot_device(turn),
        WorkPhase::FinalizingRescue => ended_well(turn),
        WorkPhase::Queued { .. }
        | WorkPhase::Booting
        | WorkPhase::AwaitingAgent
        | WorkPhase::OutOfBandStep
        | WorkPhase::Pausing { .. }
        | WorkPhase::Held
        | WorkPhase::SettingBootDevice
        | WorkPhase::PoweringOffAgent
        | WorkPhase::AwaitingOff { .. }
        | WorkPhase::SwitchingOff
        | WorkPhase::SwitchingOn
        | WorkPhase::AwaitingInventory
        | WorkPhase::RebootingToInstance => turn.done(Outcome::AnswerIgnored),
    }
}

/// A deadline other than the driver's has passed.
pub(in crate::node) fn deadline(mut turn: Turn<'_>, due: Due) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::DeadlineMoved);
    };
    let phase = work.phase;
    match due {
        Due::Driver => turn.done(Outcome::DeadlineMoved),
        Due::Look => {
            turn.node.deadlines.look = None;
            match phase {
                WorkPhase::Pausing { until } if turn.now.at >= until => next_step(turn),
                WorkPhase::AwaitingOff { until } if turn.now.at >= until => switch_off(turn),
                WorkPhase::AwaitingOff { .. } if turn.node.driver_call.is_none() => {
                    turn.call_driver(DriverRequest::ReadPower);
                    turn.done(Outcome::DriverCalled)
                }
                WorkPhase::AwaitingOff { .. } => turn.done(Outcome::DeadlineMoved),
                _ => {
                    // This may be the time of a question that was answered long ago, and another was asked since.
                    look_when_proof_is_due(&mut turn);
                    answers::tell_command(turn, command::Event::Hint, Outcome::DeadlineMoved)
                }
            }
        }
        // It was asked to go off and says nothing more.
        Due::Step | Due::Liveness if is_leaving(Some(phase)) => switch_off(turn),
        Due::Step if phase == WorkPhase::AwaitingInventory => {
            let text = failure::no_inventory(&turn.node, turn.now);
            fail(turn, text)
        }
        Due::Step => {
            let text = failure::step_too_long(&turn.node, work, turn.now);
            fail(turn, text)
        }
        Due::Liveness => {
            let text = failure::silent(&turn.node, work, turn.now);
            fail(turn, text)
        }
    }
}
