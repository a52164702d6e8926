//! What a node is and how it changes: pure, synchronous, total.
//!
//! `step` takes a node, an event and the present moment, and returns the node as it shall be, what is to be done, and what the
//! caller is told. It knows no clock, no network, no store and no randomness; the actors, the simulator and the tests all call
//! the same function.

pub mod allocation;
mod answers;
pub mod attributes;
pub mod boot_options;
mod common;
mod copied;
mod deadlines;
mod driver_call;
mod edit;
mod effect;
mod event;
pub mod fields;
pub mod hardware;
mod heartbeat;
pub mod image;
pub mod inspection;
pub mod internal_info;
mod kept;
mod limits;
mod manage;
pub mod masking;
mod omitted;
mod outcome;
mod packed;
pub mod parts;
mod patch;
pub mod portgroups;
pub mod ports;
mod power;
mod provision;
pub mod queues;
mod refused;
mod signs;
mod state;
mod step;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod traits;
pub mod transitions;
mod turn;
pub mod update;
mod upkeep;
pub mod values;
pub mod volume;
mod waiting;
pub mod work;

pub use common::Common;
pub use copied::CopyOnChange;
pub use driver_call::{DriverCall, DriverRequest};
pub use effect::{Effect, HistoryLine, Reply, Severity, Step};
pub use event::{
    Event, Heartbeat, PatchOp, PatchOperation, PowerRequest, ProvisionOptions, RunbookSteps,
    TokenMatch,
};
pub use hardware::{DriverAnswer, HardwareRequest};
pub use kept::Kept;
pub use limits::{BootMode, Limits, Now, QueueLimits};
pub use manage::allows;
pub use outcome::Outcome;
pub use packed::Packed;
pub use provision::{ProvisionState, Verb};
pub use refused::Refused;
pub use signs::Signs;
pub use state::{
    Attributes, Deadlines, Inspection, Maintenance, Node, NodeId, Object, Port, PortId, Power,
    PowerState, Provision, Session,
};
pub use step::{is_sign_of_life, step};
pub use upkeep::{QUARANTINE_FAULT, after_trouble_with_the_store, is_sign_worth_storing};
pub use waiting::{Waiting, waiting};
