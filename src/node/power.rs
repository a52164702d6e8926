//! Power changes that an operator asks for.

use super::driver_call::DriverRequest;
use super::effect::{Severity, Step};
use super::event::PowerRequest;
use super::hardware::{DriverAnswer, hardware_type};
use super::outcome::Outcome;
use super::provision::ProvisionState;
use super::refused::Refused;
use super::state::{Node, PowerState};
use super::turn::Turn;
use super::values::bad;
use super::work::{self, WorkPhase};

/// How long an operating system may take to go off by itself, unless the operator says.
const SOFT_LIMIT_MS: i64 = 600_000;

/// Changes the power, if that is possible now. `limit_ms`: how long it may take, if the operator says.
pub(super) fn change(mut turn: Turn<'_>, change: PowerRequest, limit_ms: Option<i64>) -> Step {
    let request = match change {
        PowerRequest::Set(PowerState::On) => DriverRequest::PowerOn,
        PowerRequest::Set(PowerState::Off) => DriverRequest::PowerOff,
        PowerRequest::Reboot => DriverRequest::Reboot,
        PowerRequest::SoftOff => DriverRequest::SoftPowerOff,
        PowerRequest::SoftReboot => DriverRequest::SoftReboot,
    };
    if let Err(why) = check(&turn.node, change, request) {
        return turn.refuse(why);
    }
    turn.node.last_error = None;
    if awaits_agent(&turn.node) {
        let line = format!("{} asked for: the ramdisk is booted anew", request.name());
        turn.note(Severity::Info, "power", line);
        return work::boot_ramdisk(turn);
    }
    // Whatever agent runs on the machine won't survive this.
    turn.forget_agent();
    turn.note(
        Severity::Info,
        "power",
        format!("{} asked for", request.name()),
    );
    turn.call_driver(request);
    let is_soft = matches!(change, PowerRequest::SoftOff | PowerRequest::SoftReboot);
    if let Some(limit_ms) = limit_ms.or(is_soft.then_some(SOFT_LIMIT_MS)) {
        turn.node.deadlines.driver = turn.now.deadline(limit_ms);
    }
    turn.done(Outcome::DriverCalled)
}

fn check(node: &Node, change: PowerRequest, request: DriverRequest) -> Result<(), Refused> {
    let is_soft = matches!(change, PowerRequest::SoftOff | PowerRequest::SoftReboot);
    let has_soft_power =
        hardware_type(&node.attributes.driver).is_some_and(|known| known.has_soft_power);
    if is_soft && !has_soft_power {
        // Said at once, since clients fall back to the hard way only then.
        return Err(Refused::Unsupported {
            what: format!(
                "The driver {} can't ask an operating system to go off; use \"power off\" or \"rebooting\".",
                node.attributes.driver
            ),
        });
    }
    if request.ends_in() == Some(PowerState::Off) && node.attributes.disable_power_off {
        return Err(bad(
            "target",
            "the node has disable_power_off set, so it must not be powered off",
        ));
    }
    let state = node.provision_state();
    if matches!(state, ProvisionState::Cleaning | ProvisionState::CleanWait) {
        return Err(bad(
            "target",
            &format!(
                "the power can't be changed in state \"{state}\"; wait for the end of the cleaning, or abort it first"
            ),
        ));
    }
    let is_free = match node.work().map(|work| work.phase) {
        None => !node.is_at_work(),
        // Whoever holds the work wants to do something to the machine.
        Some(WorkPhase::Held) => true,
        // An agent that does not come may come after another boot. One that is at work would not survive it.
        Some(_) => awaits_agent(node) && request.ends_in() == Some(PowerState::On),
    };
    if !is_free || node.driver_call.is_some() {
        return Err(Refused::Busy { state });
    }
    Ok(())
}

fn awaits_agent(node: &Node) -> bool {
    node.work()
        .is_some_and(|work| work.phase == WorkPhase::AwaitingAgent)
}

/// The driver has answered while the node rests, or its work is held.
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
