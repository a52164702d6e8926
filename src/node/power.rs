//! Power changes that an operator asks for.

use super::effect::{Severity, Step};
use super::hardware::DriverAnswer;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{DriverRequest, PowerState};
use super::turn::Turn;

pub(super) fn set(turn: Turn<'_>, state: PowerState) -> Step {
    if state == PowerState::Off && turn.node.attributes.disable_power_off {
        return turn.refuse(Refused::BadValue {
            field: "target".to_owned(),
            problem: "the node has disable_power_off set, so it must not be powered off".to_owned(),
        });
    }
    request(
        turn,
        match state {
            PowerState::On => DriverRequest::PowerOn,
            PowerState::Off => DriverRequest::PowerOff,
        },
    )
}

pub(super) fn reboot(turn: Turn<'_>) -> Step {
    request(turn, DriverRequest::Reboot)
}

fn request(mut turn: Turn<'_>, request: DriverRequest) -> Step {
    let state = turn.node.provision_state();
    if turn.node.is_at_work() || turn.node.driver_call.is_some() {
        return turn.refuse(Refused::Busy { state });
    }
    turn.node.last_error = None;
    // Whatever agent runs on the machine won't survive this.
    turn.forget_agent();
    turn.note(
        Severity::Info,
        "power",
        format!("{} asked for", request.name()),
    );
    turn.call_driver(request);
    turn.done(Outcome::DriverCalled)
}

/// The driver has answered while the node rests.
pub(super) fn answered(
    mut turn: Turn<'_>,
    request: DriverRequest,
    answer: Result<DriverAnswer, String>,
) -> Step {
    match answer {
        Ok(_) => turn.done(Outcome::Changed),
        Err(why) => {
            let text = format!("{} failed: {why}", request.name());
            // A failed deploy keeps its own reason; this is only what came after it.
            if turn.node.last_error.is_some() {
                turn.note(Severity::Error, "power", text);
            } else {
                turn.error("power", text);
            }
            turn.done(Outcome::Failed)
        }
    }
}
