//! Provision verbs: whether the table of states allows one now, and the short ways: enroll to manageable, manageable to available
//! and back, adoption, and from use back to available. What takes an agent is in `work`.

use super::driver_call::DriverRequest;
use super::effect::{Severity, Step};
use super::event::ProvisionOptions;
use super::hardware::DriverAnswer;
use super::outcome::Outcome;
use super::provision::Verb;
use super::refused::Refused;
use super::state::{Node, Object, Provision};
use super::step::rest;
use super::transitions;
use super::turn::Turn;
use super::work::{self, Work, WorkKind};

/// A provision verb. The table says whether it leads anywhere from here; what it does is said below and in `work`.
pub(super) fn verb(turn: Turn<'_>, verb: Verb, options: ProvisionOptions) -> Step {
    let state = turn.node.provision_state();
    if !allows(&turn.node, verb) {
        return turn.refuse(if state.is_working() {
            Refused::Busy { state }
        } else {
            Refused::NoSuchTransition { verb, state }
        });
    }
    if turn.node.driver_call.is_some() && !turn.node.is_at_work() {
        // The machine is still being switched by what came before.
        return turn.refuse(Refused::Busy { state });
    }
    match verb {
        Verb::Manage => manage(turn),
        Verb::Provide => provide(turn),
        Verb::Inspect => work::inspect(turn),
        Verb::Clean => work::clean(turn, options),
        Verb::Active | Verb::Rebuild => work::deploy(turn, verb, options),
        Verb::Deleted => undeploy(turn),
        Verb::Rescue => work::rescue(turn, options),
        Verb::Unrescue => work::unrescue(turn),
        Verb::Adopt => adopt(turn),
        Verb::Service => work::service(turn, options),
        Verb::Abort => work::abort(turn),
        Verb::Unhold => work::unhold(turn),
    }
}

/// True if somebody may send `verb` to this node. Besides what the table allows for its state, whatever waits for its turn can be
/// ended: it is in a state at work, but nobody is at work yet.
pub fn allows(node: &Node, verb: Verb) -> bool {
    let waits_to = node.work().filter(|work| work.has_not_begun());
    let ends_queueing = waits_to.is_some_and(|work| match verb {
        Verb::Abort => true,
        Verb::Deleted => work.kind == WorkKind::Deploy,
        _ => false,
    });
    ends_queueing || transitions::allows(node.provision_state(), verb)
}

/// `manage`: see whether the driver can reach the machine; where that is known, just come to rest.
fn manage(mut turn: Turn<'_>) -> Step {
    if turn.node.provision == Provision::Enroll {
        turn.node.last_error = None;
        turn.move_to(Provision::Verifying);
        turn.call_driver(DriverRequest::Verify);
        return turn.done(Outcome::DriverCalled);
    }
    rest(turn, Provision::Manageable, Outcome::Changed)
}

/// The driver has answered to `manage`.
pub(super) fn verified(mut turn: Turn<'_>, answer: Result<DriverAnswer, String>) -> Step {
    match answer {
        Ok(_) => rest(turn, Provision::Manageable, Outcome::Changed),
        Err(why) => {
            turn.error(
                "provisioning",
                format!("The machine can't be managed: {why}"),
            );
            rest(turn, Provision::Enroll, Outcome::Failed)
        }
    }
}

/// `provide`: clean it, then offer it for use.
fn provide(mut turn: Turn<'_>) -> Step {
    if turn.node.attributes.retired {
        return turn.refuse(Refused::BadValue {
            field: "target".to_owned(),
            problem: "a retired node can't be made available; set retired to false first"
                .to_owned(),
        });
    }
    turn.node.last_error = None;
    work::clean_automatically(turn)
}

/// `adopt`: take over a machine that is in use already, without touching what is on it.
fn adopt(mut turn: Turn<'_>) -> Step {
    turn.node.last_error = None;
    turn.move_to(Provision::Adopting);
    turn.call_driver(DriverRequest::Verify);
    turn.done(Outcome::DriverCalled)
}

/// The driver has answered to `adopt`.
pub(super) fn adopted(mut turn: Turn<'_>, answer: Result<DriverAnswer, String>) -> Step {
    match answer {
        Ok(_) => rest(turn, Provision::Active, Outcome::Changed),
        Err(why) => {
            turn.error(
                "provisioning",
                format!(
                    "The machine can't be adopted: {why}. Mend its driver_info, then adopt it again."
                ),
            );
            rest(turn, Provision::AdoptFailed, Outcome::Failed)
        }
    }
}

/// `deleted`: stop whatever runs on the machine, forget the instance, make the node available again.
fn undeploy(mut turn: Turn<'_>) -> Step {
    if turn.node.attributes.protected {
        return turn.refuse(Refused::Protected {
            what: "Undeploying".to_owned(),
        });
    }
    turn.node.last_error = None;
    turn.forget_agent();
    if turn.node.work().is_some_and(Work::has_not_begun) {
        turn.move_to(Provision::DeployFailed);
    }
    turn.move_to(Provision::Deleting);
    if turn.node.attributes.disable_power_off {
        turn.note(
            Severity::Info,
            "power",
            "not powered off, because disable_power_off is set".to_owned(),
        );
        return forget_instance(turn);
    }
    turn.call_driver(DriverRequest::PowerOff);
    turn.done(Outcome::DriverCalled)
}

/// The machine is off, or can't be switched off, on the way back to `available`.
pub(super) fn switched_off(mut turn: Turn<'_>, answer: Result<DriverAnswer, String>) -> Step {
    match answer {
        Ok(_) => forget_instance(turn),
        Err(why) => {
            turn.error(
                "provisioning",
                format!(
                    "Undeploying failed: the machine can't be powered off: {why}. Mend its power control, then undeploy it again."
                ),
            );
            rest(turn, Provision::Error, Outcome::Failed)
        }
    }
}

fn forget_instance(mut turn: Turn<'_>) -> Step {
    turn.node.attributes.instance_info = Object::new();
    turn.node.attributes.instance_uuid = None;
    turn.node.attributes.instance_name = None;
    turn.node.hardware.vifs.clear();
    work::clean_automatically(turn)
}
