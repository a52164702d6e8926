//! The end of a deploy's agent: it is asked to power its machine off, and if that doesn't happen the driver does it.

use super::state::WorkPhase;
use super::{enter, phase_of, sees_power};
use crate::node::driver_call::DriverRequest;
use crate::node::effect::Step;
use crate::node::outcome::Outcome;
use crate::node::turn::Turn;

/// True once the agent was asked to go off.
pub(super) fn is_leaving(phase: Option<WorkPhase>) -> bool {
    matches!(
        phase,
        Some(WorkPhase::PoweringOffAgent | WorkPhase::AwaitingOff { .. })
    )
}

/// The agent has taken the order to power off; now the machine may take a while.
pub(super) fn await_off(turn: &mut Turn<'_>) {
    let until = turn.now.at.plus_ms(turn.now.limits.power_off_wait_ms);
    turn.node.deadlines.step = None;
    turn.node.deadlines.liveness = None;
    enter(turn, WorkPhase::AwaitingOff { until });
    look_later(turn);
}

/// Looks again in a while whether the machine is off.
pub(super) fn look_later(turn: &mut Turn<'_>) {
    let until = match phase_of(turn) {
        Some(WorkPhase::AwaitingOff { until }) => until,
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

/// The driver switches it off.
pub(super) fn switch_off(mut turn: Turn<'_>) -> Step {
    turn.forget_agent();
    enter(&mut turn, WorkPhase::SwitchingOff);
    turn.call_driver(DriverRequest::PowerOff);
    turn.done(Outcome::DriverCalled)
}
