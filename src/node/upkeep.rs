//! Maintenance, quarantine, and coming back after the conductor was away.

use super::answers;
use super::effect::{Severity, Step};
use super::outcome::Outcome;
use super::state::{Maintenance, Node, Provision};
use super::turn::{Turn, seconds};
use super::work::WorkPhase;
use crate::command;
use crate::timestamp::Timestamp;

/// Shorter absences are not worth a change, in milliseconds.
const WORTH_A_CHANGE_MS: i64 = 1_000;

/// The longest pause of an agent between two tries to look itself up, in milliseconds.
const CALLS_AGAIN_WITHIN_MS: i64 = 60_000;

/// The `fault` of a node in quarantine.
pub const QUARANTINE_FAULT: &str = "conductor failure";

/// The conductor has started: what only it knew of is asked for again, and its own absence is nobody's silence.
///
/// `down_for_ms` is what the clock shows since the last note of life; less than nothing after the clock was set back. Every time in
/// the row moves by it: what was awaited until now is awaited for as long as was left, whatever was done to the clock meanwhile.
/// A step gets the absence on top of its limit, since an absence can't be told from a clock that was set forward.
///
/// A booting agent whose first call found nobody comes again within [`CALLS_AGAIN_WITHIN_MS`], so it is given that much at least. An
/// agent at work is asked at once and needs no more time.
pub(super) fn resumed(mut turn: Turn<'_>, down_for_ms: i64) -> Step {
    move_times(&mut turn.node, down_for_ms);
    // Where only an agent is waited for, the line of its deadline's end tells it: a site full of such nodes starts faster so.
    let is_in_flight = turn.node.open_command().is_some() || turn.node.driver_call.is_some();
    if down_for_ms != 0 && is_in_flight {
        let line = format!(
            "all deadlines moved by {:.1} s, for which the conductor was away",
            seconds(down_for_ms)
        );
        turn.note(Severity::Info, "deadline", line);
    }
    if down_for_ms.abs() >= WORTH_A_CHANGE_MS {
        await_another_call(&mut turn);
    }
    turn.repeat_driver_call();
    answers::tell_command(turn, command::Event::Recovered, Outcome::Resumed)
}

fn await_another_call(turn: &mut Turn<'_>) {
    let is_confirmed = turn
        .node
        .session
        .as_ref()
        .is_some_and(|session| session.confirmed);
    let limits = turn.now.limits;
    let timeout = match turn.node.work() {
        Some(work) => work.kind.callback_timeout_ms(limits),
        None => limits.deploy_callback_timeout_ms,
    };
    let least = timeout.min(CALLS_AGAIN_WITHIN_MS);
    let least = turn.now.at.plus_ms(least);
    if let Some(liveness) = &mut turn.node.deadlines.liveness
        && !is_confirmed
    {
        *liveness = least.max(*liveness);
    }
}

/// Agents were told to come again for so long: what is awaited of this one is awaited so much longer. One that is gone is gone then,
/// too.
pub(super) fn agents_turned_away(mut turn: Turn<'_>, for_ms: i64) -> Step {
    let deadlines = &mut turn.node.deadlines;
    let Some(liveness) = &mut deadlines.liveness else {
        return turn.unchanged(Outcome::DeadlineMoved);
    };
    *liveness = liveness.plus_ms(for_ms);
    deadlines.moved_ms = deadlines.moved_ms.saturating_add(for_ms);
    let line = format!(
        "the agent's deadline moved by {:.1} s: the conductor had too much to do, and told agents to come again",
        seconds(for_ms)
    );
    turn.note(Severity::Info, "deadline", line);
    turn.done(Outcome::DeadlineMoved)
}

/// The actor that carries the node failed too often: a person has to look.
pub(super) fn quarantined(mut turn: Turn<'_>, reason: String) -> Step {
    let text = format!(
        "The conductor gave up on this node after repeated internal failures ({reason}). Look at the conductor's log, then take the node out of maintenance to go on."
    );
    turn.error("conductor", text.clone());
    turn.node.quarantine = Some(reason);
    turn.node.maintenance = Some(
        Maintenance {
            reason: Some(text),
            fault: Some(QUARANTINE_FAULT.to_owned()),
        }
        .into(),
    );
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
        turn.node.maintenance = Some(Maintenance { reason, fault }.into());
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

/// A crash forgets no more of the signs of life than this, in milliseconds.
const SIGNS_STORED_EVERY_MS: i64 = 5_000;

/// True when what was stored last, `ms_ago`, is too old for another sign of life to be kept in memory only. Counted from the sign
/// that was stored too, not only from when: it may have been older.
pub fn is_sign_worth_storing(node: &Node, stored_heard_at: Option<Timestamp>, ms_ago: i64) -> bool {
    let newer_by = match (node.heard_at(), stored_heard_at) {
        (Some(now), Some(then)) => now.ms_since(then),
        (Some(_), None) => i64::MAX,
        (None, _) => 0,
    };
    ms_ago.max(newer_by) >= SIGNS_STORED_EVERY_MS
}

/// The node as it was read from its row, because something could not be stored: with the signs of life that were `seen` since the
/// row was stored, and without counting the time for which nothing could be taken as anybody's silence.
pub fn after_trouble_with_the_store(row: Node, seen: Option<&Node>, held_for_ms: i64) -> Node {
    let mut node = row.clone();
    let wait = |node: &Node| {
        let nonce = node.session.as_ref().map(|session| session.nonce.clone());
        (node.commands_planned, node.driver_calls_made, nonce)
    };
    // A row that is newer than what was seen was made from it, so it has all of it, with times that may have moved since. Otherwise
    // what was seen is that row, with signs of life and times that were moved.
    if let Some(seen) = seen
        && seen.version >= row.version
        && wait(seen) == wait(&node)
    {
        node = seen.clone();
        node.version = row.version;
    }
    if held_for_ms >= WORTH_A_CHANGE_MS {
        move_times(&mut node, held_for_ms);
    }
    if node != row {
        node.version += 1;
    }
    node
}

/// Moves every time that is awaited, or counted from.
fn move_times(node: &mut Node, by_ms: i64) {
    let deadlines = &mut node.deadlines;
    if deadlines.liveness.is_some() {
        deadlines.moved_ms = deadlines.moved_ms.saturating_add(by_ms);
    }
    let asked_again = node
        .session
        .as_mut()
        .and_then(|session| session.asked_again_at.as_mut());
    let in_phase = match &mut node.provision {
        Provision::Working(work) => match &mut work.phase {
            WorkPhase::AwaitingOff { until } | WorkPhase::Pausing { until } => Some(until),
            _ => None,
        },
        _ => None,
    };
    let times = [
        deadlines.liveness.as_mut(),
        deadlines.step.as_mut(),
        deadlines.driver.as_mut(),
        deadlines.look.as_mut(),
        asked_again,
        in_phase,
    ];
    for time in times.into_iter().flatten() {
        *time = time.plus_ms(by_ms);
    }
}
