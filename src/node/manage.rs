//! The short ways: enroll to manageable, manageable to available and back, and from use back to available.

use super::effect::{Severity, Step};
use super::hardware::DriverAnswer;
use super::outcome::Outcome;
use super::provision::{ProvisionState, Verb};
use super::refused::Refused;
use super::state::{DriverRequest, Object, Provision};
use super::step::rest;
use super::turn::Turn;

/// `manage`: see whether the driver can reach the machine; from `available`, just take it out of use.
pub(super) fn manage(mut turn: Turn<'_>) -> Step {
    match &turn.node.provision {
        Provision::Enroll => {
            turn.node.last_error = None;
            turn.move_to(Provision::Verifying);
            turn.call_driver(DriverRequest::Verify);
            turn.done(Outcome::DriverCalled)
        }
        Provision::Available => {
            turn.node.last_error = None;
            rest(turn, Provision::Manageable, Outcome::Changed)
        }
        Provision::Verifying
        | Provision::Manageable
        | Provision::Deploying(_)
        | Provision::DeployFailed
        | Provision::Active
        | Provision::Deleting
        | Provision::Error => no_way(turn, Verb::Manage),
    }
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

/// `provide`: offer it for use. The API has every node pass through `cleaning`; nothing is cleaned yet, and the history says so.
pub(super) fn provide(mut turn: Turn<'_>) -> Step {
    if turn.node.provision != Provision::Manageable {
        return no_way(turn, Verb::Provide);
    }
    if turn.node.attributes.retired {
        return turn.refuse(Refused::BadValue {
            field: "target".to_owned(),
            problem: "a retired node can't be made available; set retired to false first"
                .to_owned(),
        });
    }
    turn.node.last_error = None;
    pass_through_cleaning(&mut turn);
    rest(turn, Provision::Available, Outcome::Changed)
}

/// `deleted`: stop whatever runs on the machine, forget the instance, make the node available again.
pub(super) fn undeploy(mut turn: Turn<'_>) -> Step {
    let may = match &turn.node.provision {
        Provision::Active | Provision::DeployFailed | Provision::Error => true,
        Provision::Deploying(_) => turn.node.provision_state() == ProvisionState::WaitCallBack,
        Provision::Enroll
        | Provision::Verifying
        | Provision::Manageable
        | Provision::Available
        | Provision::Deleting => false,
    };
    if !may {
        return no_way(turn, Verb::Deleted);
    }
    if turn.node.attributes.protected {
        return turn.refuse(Refused::Protected {
            what: "Undeploying".to_owned(),
        });
    }
    turn.node.last_error = None;
    turn.forget_agent();
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
    pass_through_cleaning(&mut turn);
    rest(turn, Provision::Available, Outcome::Changed)
}

fn pass_through_cleaning(turn: &mut Turn<'_>) {
    turn.note(
        Severity::Info,
        "provisioning",
        format!(
            "{} -> cleaning: nothing was cleaned, this version of Upbeat has no cleaning; the disks hold what they held",
            turn.node.provision_state()
        ),
    );
}

/// The verb leads nowhere from here: busy where waiting helps, refused where it doesn't.
pub(super) fn no_way(turn: Turn<'_>, verb: Verb) -> Step {
    let state = turn.node.provision_state();
    turn.refuse(if state.is_working() {
        Refused::Busy { state }
    } else {
        Refused::NoSuchTransition { verb, state }
    })
}
