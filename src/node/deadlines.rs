//! What a passed deadline means.

use super::answers;
use super::effect::{Severity, Step};
use super::outcome::Outcome;
use super::turn::Turn;
use super::work;

/// Which deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The driver did not answer.
    Driver,
    /// The step in progress took too long.
    Step,
    /// The agent was silent for too long.
    Liveness,
    /// Time to look again.
    Look,
}

/// A time in the row may have come. If several have, the one that explains most is taken; the others follow from it.
pub(super) fn reached(mut turn: Turn<'_>) -> Step {
    let now = turn.now.at;
    let deadlines = &turn.node.deadlines;
    let is_due = |deadline: Option<_>| deadline.is_some_and(|deadline| now >= deadline);
    let due = if is_due(deadlines.driver) {
        Due::Driver
    } else if is_due(deadlines.step) {
        Due::Step
    } else if is_due(deadlines.liveness) {
        Due::Liveness
    } else if is_due(deadlines.look) {
        Due::Look
    } else {
        return turn.unchanged(Outcome::DeadlineMoved);
    };
    if due != Due::Look {
        let (name, at) = match due {
            Due::Driver => ("driver", deadlines.driver),
            Due::Step => ("step", deadlines.step),
            Due::Liveness | Due::Look => ("liveness", deadlines.liveness),
        };
        let late_ms = at.map_or(0, |at| now.ms_since(at));
        let line = format!("{name} deadline reached, handled {late_ms} ms after it");
        turn.note(Severity::Info, "deadline", line);
    }
    if due == Due::Driver {
        return driver(turn);
    }
    if turn.node.work().is_some() {
        return work::deadline(turn, due);
    }
    // Nothing else waits for an agent.
    turn.node.deadlines.step = None;
    turn.node.deadlines.liveness = None;
    turn.node.deadlines.look = None;
    turn.done(Outcome::DeadlineMoved)
}

fn driver(mut turn: Turn<'_>) -> Step {
    let request = turn.node.driver_call.take().map(|call| call.request);
    turn.node.deadlines.driver = None;
    turn.node.power.target = None;
    let Some(request) = request else {
        return turn.done(Outcome::DeadlineMoved);
    };
    let why = format!(
        "the driver did not answer to \"{}\" in time",
        request.name()
    );
    answers::driver_answered(turn, request, Err(why))
}
