//! How work ends, well or badly.

use super::kind::WorkKind;
use super::state::WorkPhase;
use super::{enter, work_of};
use crate::node::driver_call::DriverRequest;
use crate::node::effect::{Severity, Step};
use crate::node::outcome::Outcome;
use crate::node::state::Provision;
use crate::node::turn::Turn;

/// Every step is done: what is left to do depends on the kind.
pub(super) fn ended_well(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let (kind, is_without_ramdisk) = (work.kind, work.is_without_ramdisk);
    turn.forget_agent();
    match kind {
        WorkKind::Deploy | WorkKind::Rescue | WorkKind::Unrescue => rest(turn, kind),
        _ if is_without_ramdisk => rest(turn, kind),
        WorkKind::Service => {
            enter(&mut turn, WorkPhase::RebootingToInstance);
            turn.call_driver(DriverRequest::RebootToInstance);
            turn.done(Outcome::DriverCalled)
        }
        WorkKind::Clean | WorkKind::ManualClean | WorkKind::Inspect => {
            if turn.node.attributes.disable_power_off {
                note_not_powered_off(&mut turn);
                return rest(turn, kind);
            }
            enter(&mut turn, WorkPhase::SwitchingOff);
            turn.call_driver(DriverRequest::PowerOff);
            turn.done(Outcome::DriverCalled)
        }
    }
}

/// Work of this kind has come to its end.
pub(super) fn rest(mut turn: Turn<'_>, kind: WorkKind) -> Step {
    let outcome = match kind {
        WorkKind::Deploy => Outcome::Deployed,
        _ => Outcome::WorkDone,
    };
    if kind == WorkKind::Inspect {
        turn.node.inspection.finished_at = Some(turn.now.at);
    }
    let place = match kind {
        // What is retired is not offered for use again.
        WorkKind::Clean if turn.node.attributes.retired => Provision::Manageable,
        WorkKind::Clean => Provision::Available,
        WorkKind::ManualClean | WorkKind::Inspect => Provision::Manageable,
        WorkKind::Deploy | WorkKind::Service | WorkKind::Unrescue => Provision::Active,
        WorkKind::Rescue => Provision::Rescue,
    };
    if turn.node.provision_state().is_waiting() {
        // The end is reached from the states at work only.
        enter(&mut turn, WorkPhase::SwitchingOff);
    }
    turn.move_to(place);
    turn.done(outcome)
}

/// Work has failed. A node whose step went wrong in a cleaning or a service goes into maintenance: a person has to look.
pub(super) fn fail(turn: Turn<'_>, text: String) -> Step {
    end_badly(turn, text, false)
}

/// Somebody wanted the work to end, so nobody has to look.
pub(super) fn give_up(turn: Turn<'_>, text: String) -> Step {
    end_badly(turn, text, true)
}

/// Ends work: nothing more is asked of the agent. A machine whose step went wrong in a cleaning or a service is left as it is, for a
/// person to look at; any other is switched off, so that it does nothing more either.
fn end_badly(mut turn: Turn<'_>, text: String, is_wanted: bool) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let kind = work.kind;
    let is_in_step = !work.steps.is_empty();
    let has_not_begun = work.has_not_begun();
    let is_without_ramdisk = work.is_without_ramdisk;
    turn.forget_agent();
    turn.node.driver_call = None;
    turn.node.deadlines.driver = None;
    turn.error("provisioning", text.clone());
    turn.move_to(failed(kind));
    if let Some(fault) = kind.fault()
        && is_in_step
        && !is_wanted
    {
        let maintenance = turn.node.maintenance.get_or_insert_default();
        maintenance.reason.get_or_insert(text);
        maintenance.fault = Some(fault.to_owned());
    }
    let stays_on = match kind {
        WorkKind::Deploy | WorkKind::Rescue | WorkKind::Inspect => false,
        WorkKind::Clean | WorkKind::ManualClean => {
            is_without_ramdisk || is_in_step && !turn.now.limits.poweroff_in_cleanfail
        }
        WorkKind::Service | WorkKind::Unrescue => true,
    };
    if has_not_begun {
        let line = "the machine is left as it was: its turn had not come".to_owned();
        turn.note(Severity::Info, "power", line);
    } else if stays_on {
        let line = "not powered off, so that somebody can look at the machine".to_owned();
        turn.note(Severity::Info, "power", line);
    } else if turn.node.attributes.disable_power_off {
        note_not_powered_off(&mut turn);
    } else {
        turn.call_driver(DriverRequest::PowerOff);
    }
    turn.done(match kind {
        WorkKind::Deploy => Outcome::DeployFailed,
        _ => Outcome::WorkFailed,
    })
}

fn failed(kind: WorkKind) -> Provision {
    match kind {
        WorkKind::Deploy => Provision::DeployFailed,
        WorkKind::Clean => Provision::CleanFailed { is_manual: false },
        WorkKind::ManualClean => Provision::CleanFailed { is_manual: true },
        WorkKind::Service => Provision::ServiceFailed,
        WorkKind::Rescue => Provision::RescueFailed,
        WorkKind::Unrescue => Provision::UnrescueFailed,
        WorkKind::Inspect => Provision::InspectFailed,
    }
}

fn note_not_powered_off(turn: &mut Turn<'_>) {
    turn.note(
        Severity::Info,
        "power",
        "not powered off, because disable_power_off is set".to_owned(),
    );
}
