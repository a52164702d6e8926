//! An agent that is gone in the middle of its work: how that is known, and whether the work can be begun anew.

use super::end::fail;
use super::kind::WorkKind;
use super::run::read_steps;
use super::state::{Work, WorkPhase};
use super::{work_of, work_of_mut};
use crate::command::Unreadable;
use crate::node::driver_call::DriverRequest;
use crate::node::effect::{Severity, Step};
use crate::node::outcome::Outcome;
use crate::node::state::Provision;
use crate::node::steps::WorkStep;
use crate::node::turn::Turn;

/// How often work is begun anew because its agent was lost, before it fails.
const RESTARTS_MAX: u32 = 2;

/// How long after its machine asked for a token again a look may show that the agent is gone: one that asks for itself, as agents
/// do when they begin to write, has shown by then that it lives.
const REPLACED_AFTER_MS: i64 = 15_000;

/// True when the machine's agent asked for a token anew and the look proves that the one that has it is gone: nobody listens there, or
/// somebody else does. Silence proves nothing: a network fails for an agent that lives, too, and that one may be writing.
pub(super) fn is_replaced(turn: &Turn<'_>, why: &Unreadable) -> bool {
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

/// The agent that worked on the node is gone. Writing an image or erasing a disk can be begun anew; what any other step left behind
/// nobody knows.
pub(super) fn instance_lost(mut turn: Turn<'_>) -> Step {
    turn.lose_agent();
    let switches_power = turn.switches_power();
    let may_reissue_token = turn.may_reissue_token();
    let Some(work) = work_of_mut(&mut turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let (noun, again) = (work.kind.words().noun, work.kind.words().again);
    if !switches_power && !may_reissue_token {
        let text = format!(
            "The agent restarted while {} and lost its token; a new one is only given after a power cycle, which this hardware type leaves to a person. Power the machine off, then {again}. (With reissue_lost_token the agent would get one.)",
            work.phase.name()
        );
        return fail(turn, text);
    }
    if let Some(step) = irreversible(work) {
        let text = format!(
            "The agent restarted while {}; what became of step {} is not known, so it can't be repeated safely. Look at the machine, then {again}.",
            work.phase.name(),
            step.full_name()
        );
        return fail(turn, text);
    }
    if work.restarts >= RESTARTS_MAX {
        let text = format!(
            "The agent restarted {} times while {}; giving up. Look at the machine's console for the cause, then {again}.",
            work.restarts + 1,
            work.phase.name()
        );
        return fail(turn, text);
    }
    let mut anew = work.anew();
    turn.note(
        Severity::Error,
        "provisioning",
        format!("the agent restarted in the middle of the {noun}; it is begun anew"),
    );
    if switches_power {
        turn.move_to(Provision::Working(anew.into()));
        turn.call_driver(DriverRequest::RebootToRamdisk);
    } else {
        // The agent that has come asks for a token until it gets one.
        anew.phase = WorkPhase::AwaitingAgent;
        turn.move_to(Provision::Working(anew.into()));
        turn.refresh_liveness();
    }
    turn.done(Outcome::WorkGoesOn)
}

/// The agent of a cleaning is another than the one that told its steps: what it has to do may have changed, so the whole list is read
/// and carried out again.
pub(super) fn version_changed(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    if work.restarts >= RESTARTS_MAX {
        let text = format!(
            "The cleaning failed: the agent's hardware managers changed {} times since its steps were first read. Use one and the same ramdisk, then {}.",
            work.restarts + 1,
            work.kind.words().again
        );
        return fail(turn, text);
    }
    let anew = work.anew();
    let of = work.kind.steps_of().unwrap_or_default();
    turn.note(
        Severity::Error,
        "provisioning",
        "the agent's hardware managers changed; its steps are read again".to_owned(),
    );
    // The same agent goes on: only the list is new.
    turn.node.provision = Provision::Working(
        Work {
            phase: WorkPhase::InBandStep,
            ..anew
        }
        .into(),
    );
    read_steps(turn, of)
}

/// A step that the agent has begun and that must not be begun again.
fn irreversible(work: &Work) -> Option<&WorkStep> {
    if work.steps.is_empty() {
        return None;
    }
    work.begun_steps().iter().find(|step| {
        let is_core = work.kind == WorkKind::Deploy && step.is_core();
        !is_core && !step.is_repeatable() && !step.is_out_of_band && step.reserved().is_none()
    })
}
