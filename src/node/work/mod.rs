//! Work that takes its time: deploys, cleanings, inspections, rescues, services, most of it by way of the agent.
//!
//! ```text
//! Queued (a deploy or a cleaning whose turn has not come) ─▶
//! Booting ─▶ AwaitingAgent ─▶ ReadingSteps ─▶ the list of steps, one entry at a time ─▶ the end of its kind
//!                ▲                               │  InBandStep   (the agent: write_image, erase_devices, ...)
//!                └── a step asked for a reboot ──┤  OutOfBandStep (the driver)      Held, Pausing (hold, wait)
//!                                                │  a deploy's own: ReadingUuids ─▶ InstallingBootloader ─▶ SettingBootDevice
//!                                                │                  PoweringOffAgent ─▶ AwaitingOff ─▶ SwitchingOff
//!                                                └                  SwitchingOn
//! ends:  Deploy ─▶ active    Clean, Inspect ─▶ SwitchingOff ─▶ available, manageable
//!        Service, Unrescue ─▶ RebootingToInstance ─▶ active      Rescue ─▶ FinalizingRescue ─▶ rescue
//! ```
//! `kind.rs` holds what differs between the kinds, `state.rs` what is stored. `verbs.rs` begins, `flow.rs` takes what the agent, the
//! driver and the clock say, `run.rs` goes through the steps, `leave.rs` lets the machine go off, `lost.rs` deals with an agent that
//! was lost, `inspect.rs` with what one found, `end.rs` ends; `failure.rs` puts failures into words.

mod end;
mod failure;
mod flow;
mod inspect;
mod kind;
mod leave;
mod lost;
mod run;
mod state;
mod verbs;

pub use failure::explain;
pub(super) use flow::{
    agent_arrived, agent_unreadable, command_finished, command_goes_on, deadline, driver_answered,
    turn_came,
};
pub(super) use inspect::inspected;
pub use kind::{States, WorkKind};
pub(super) use lost::look_when_proof_is_due;
pub(super) use run::boot_ramdisk;
pub use state::{Work, WorkPhase};
pub(super) use verbs::{
    abort, clean, clean_automatically, deploy, inspect, rescue, service, unhold, unrescue,
};

use super::hardware::hardware_type;
use super::state::Provision;
use super::turn::Turn;

fn enter(turn: &mut Turn<'_>, phase: WorkPhase) {
    if let Provision::Working(work) = &turn.node.provision {
        let mut work = work.clone();
        work.phase = phase;
        turn.move_to(Provision::Working(work));
    }
}

fn work_of<'t>(turn: &'t Turn<'_>) -> Option<&'t Work> {
    turn.node.work()
}

fn work_of_mut<'t>(turn: &'t mut Turn<'_>) -> Option<&'t mut Work> {
    match &mut turn.node.provision {
        Provision::Working(work) => Some(work),
        _ => None,
    }
}

fn phase_of(turn: &Turn<'_>) -> Option<WorkPhase> {
    work_of(turn).map(|work| work.phase)
}

fn sees_power(turn: &Turn<'_>) -> bool {
    hardware_type(&turn.node.attributes.driver).is_some_and(|known| known.sees_power)
}
