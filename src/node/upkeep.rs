//! Maintenance, quarantine, and coming back after the conductor was away.

use super::answers;
use super::effect::{Severity, Step};
use super::outcome::Outcome;
use super::state::Maintenance;
use super::turn::Turn;
use crate::command;

/// The `fault` of a node in quarantine.
pub const QUARANTINE_FAULT: &str = "conductor failure";

/// The conductor has started: what only it knew of is asked for again, and its own absence is nobody's silence.
pub(super) fn resumed(mut turn: Turn<'_>, down_for_ms: i64) -> Step {
    let absence = down_for_ms.max(0);
    if let Some(liveness) = &mut turn.node.deadlines.liveness {
        *liveness = liveness.plus_ms(absence);
    }
    turn.repeat_driver_call();
    answers::tell_command(turn, command::Event::Recovered, Outcome::Resumed)
}

/// The actor that carries the node failed too often: a person has to look.
pub(super) fn quarantined(mut turn: Turn<'_>, reason: String) -> Step {
    let text = format!(
        "The conductor gave up on this node after repeated internal failures ({reason}). Look at the conductor's log, then take the node out of maintenance to go on."
    );
    turn.error("conductor", text.clone());
    turn.node.quarantine = Some(reason);
    turn.node.maintenance = Some(Maintenance {
        reason: Some(text),
        fault: Some(QUARANTINE_FAULT.to_owned()),
    });
    turn.done(Outcome::Quarantined)
}

/// An operator puts the node into maintenance or takes it out, which also ends a quarantine.
pub(super) fn maintenance(mut turn: Turn<'_>, on: bool, reason: Option<String>) -> Step {
    if on {
        let fault = turn
            .node
            .maintenance
            .take()
            .and_then(|maintenance| maintenance.fault);
        turn.node.maintenance = Some(Maintenance { reason, fault });
        turn.note(Severity::Info, "maintenance", "on".to_owned());
        return turn.done(Outcome::Changed);
    }
    if turn.node.maintenance.take().is_none() {
        return turn.unchanged(Outcome::Unchanged);
    }
    turn.note(Severity::Info, "maintenance", "off".to_owned());
    if turn.node.quarantine.take().is_some() {
        turn.repeat_driver_call();
        turn.sign_of_life();
        return answers::tell_command(turn, command::Event::Recovered, Outcome::Changed);
    }
    turn.done(Outcome::Changed)
}
