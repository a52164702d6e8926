//! Everything that can happen to a node: one closed list.

use serde_json::Value;

use super::allocation::AllocationChange;
use super::hardware::{DriverAnswer, HardwareRequest};
use super::inspection::Findings;
use super::parts::PartChange;
use super::portgroups::Portgroup;
use super::provision::Verb;
use super::queues::QueueKind;
use super::state::{Port, PortId, PowerState};
use super::steps::WorkStep;
use super::traits::TraitChange;
use super::volume::{VolumeConnector, VolumeTarget};
use crate::command::{self, CommandId};
use crate::timestamp::Timestamp;

/// Something that happened to a node, or that somebody asks of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An agent asks who it is (`GET /v1/lookup`).
    Lookup {
        /// Random text from which a token can be computed, used if a new session begins.
        fresh_nonce: String,
    },
    /// An agent reports (`POST /v1/heartbeat/{node}`).
    Heartbeat(Heartbeat),
    /// An agent tells what it found in its machine (`POST /v1/continue_inspection`).
    Inspected(Box<Findings>),
    /// The classified answer to something the conductor asked of the agent.
    Command {
        /// Which command.
        id: CommandId,
        /// Which dispatch of it; answers to older ones are ignored.
        attempt: u32,
        /// What was learned.
        event: command::Event,
    },
    /// The driver has finished a call, well or badly.
    Driver {
        /// Which call; answers to older ones are ignored.
        call: u64,
        /// The answer, or what went wrong in words for an operator.
        answer: Result<DriverAnswer, String>,
    },
    /// The node's turn has come, for which it waited in this queue since then.
    TurnCame {
        /// Which kind of queue.
        kind: QueueKind,
        /// Since when it waited: a call to an earlier wait is of no account.
        since: Timestamp,
    },
    /// A time in the node's row may have come.
    DeadlineReached,
    /// The conductor has started and found this node in its store.
    Resumed {
        /// For how long nobody could be heard by the clock, in milliseconds; negative after the clock was set back.
        down_for_ms: i64,
    },
    /// The agent's deadline has come, and for so long agents were told to come again: the conductor had too much to do.
    AgentsTurnedAway {
        /// In milliseconds.
        for_ms: i64,
    },
    /// The actor that carries this node failed too often; only operators' events are accepted until one of them ends it.
    Quarantined {
        /// What failed.
        reason: String,
    },
    /// An operator asks for a provision verb.
    Provision {
        /// The verb.
        verb: Verb,
        /// What came with it.
        options: ProvisionOptions,
    },
    /// An operator asks for a power change.
    Power {
        /// Which.
        change: PowerRequest,
        /// How long it may take, in milliseconds, if that was said.
        limit_ms: Option<i64>,
    },
    /// An operator asks something else of the machine.
    Hardware(HardwareRequest),
    /// An operator puts the node into maintenance, or takes it out.
    Maintenance {
        /// True: in; false: out.
        on: bool,
        /// Why, in their words.
        reason: Option<String>,
    },
    /// An operator changes attributes by JSON patch.
    Patch {
        /// The operations, in order.
        operations: Vec<PatchOperation>,
        /// Interfaces that are not named go back to the driver's defaults.
        reset_interfaces: bool,
        /// The request's microversion, the minor number.
        microversion: u16,
    },
    /// An operator removes the node.
    Delete,
    /// An operator adds a port.
    PortCreate(Box<Port>),
    /// An operator changes a port by JSON patch.
    PortPatch {
        /// Which port.
        id: PortId,
        /// The operations, in order.
        operations: Vec<PatchOperation>,
    },
    /// An operator removes a port.
    PortDelete {
        /// Which port.
        id: PortId,
    },
    /// An operator adds, changes or removes a port group.
    Portgroup(PartChange<Portgroup>),
    /// An operator adds, changes or removes a volume connector.
    VolumeConnector(PartChange<VolumeConnector>),
    /// An operator adds, changes or removes a volume target.
    VolumeTarget(PartChange<VolumeTarget>),
    /// An operator changes what the node is said to be able to do.
    Traits(TraitChange),
    /// An allocation takes the node, or ends.
    Allocation(AllocationChange),
}

impl Event {
    /// A power change that may take as long as the configuration allows.
    pub fn power(change: PowerRequest) -> Event {
        Event::Power {
            change,
            limit_ms: None,
        }
    }

    /// True for what operators ask; the rest comes from agents, drivers and the conductor itself.
    pub fn is_from_an_operator(&self) -> bool {
        match self {
            Event::Provision { .. }
            | Event::Power { .. }
            | Event::Hardware(_)
            | Event::Maintenance { .. }
            | Event::Patch { .. }
            | Event::Delete
            | Event::PortCreate(_)
            | Event::PortPatch { .. }
            | Event::PortDelete { .. }
            | Event::Portgroup(_)
            | Event::VolumeConnector(_)
            | Event::VolumeTarget(_)
            | Event::Traits(_)
            | Event::Allocation(_) => true,
            Event::Lookup { .. }
            | Event::Heartbeat(_)
            | Event::Inspected(_)
            | Event::Command { .. }
            | Event::Driver { .. }
            | Event::TurnCame { .. }
            | Event::DeadlineReached
            | Event::Resumed { .. }
            | Event::AgentsTurnedAway { .. }
            | Event::Quarantined { .. } => false,
        }
    }

    /// The word for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Lookup { .. } => "lookup",
            Event::Heartbeat(_) => "heartbeat",
            Event::Inspected(_) => "inspected",
            Event::Command { .. } => "command",
            Event::Driver { .. } => "driver",
            Event::TurnCame { .. } => "turn",
            Event::DeadlineReached => "deadline",
            Event::Resumed { .. } => "resumed",
            Event::AgentsTurnedAway { .. } => "agents_turned_away",
            Event::Quarantined { .. } => "quarantined",
            Event::Provision { .. } => "provision",
            Event::Power { .. } => "power",
            Event::Hardware(_) => "hardware",
            Event::Maintenance { .. } => "maintenance",
            Event::Patch { .. } => "patch",
            Event::Delete => "delete",
            Event::PortCreate(_) => "port_create",
            Event::PortPatch { .. } => "port_patch",
            Event::PortDelete { .. } => "port_delete",
            Event::Portgroup(_) => "portgroup",
            Event::VolumeConnector(_) => "volume_connector",
            Event::VolumeTarget(_) => "volume_target",
            Event::Traits(_) => "traits",
            Event::Allocation(_) => "allocation",
        }
    }
}

/// What an agent sends with a heartbeat, its token already compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// Base URL of the agent's API, already checked against what the conductor is allowed to call.
    pub callback_url: String,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The certificate it made for itself, in PEM.
    pub certificate: Option<String>,
    /// How its token compares with the node's session.
    pub token: TokenMatch,
}

/// How a token compares with the one that belongs to the node's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenMatch {
    /// The same.
    Right,
    /// Another, or the node has no session.
    Wrong,
    /// None was sent.
    Missing,
}

/// What may come with a provision verb.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProvisionOptions {
    /// Config drive for `active` and `rebuild`: gzip and base64 text, or a URL.
    pub configdrive: Option<String>,
    /// Steps: for `active` and `rebuild` on top of the usual ones, for `clean` and `service` all there are.
    pub steps: Vec<WorkStep>,
    /// Steps of deploy templates, for `active` and `rebuild`; what `steps` says goes before them.
    pub template_steps: Vec<WorkStep>,
    /// Steps somebody wrote down before, for `clean` and `service` in place of `steps`.
    pub runbook: Option<RunbookSteps>,
    /// Don't boot the ramdisk for `clean` and `service`.
    pub disable_ramdisk: bool,
    /// For `rescue`: the salted hash of the password, as it stands in a password file.
    pub rescue_password_hash: Option<String>,
}

/// The steps of a runbook, and which nodes they are for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunbookSteps {
    /// Its name, for texts.
    pub name: String,
    /// A node must have one of these.
    pub traits: Vec<String>,
    /// In the order in which they are carried out.
    pub steps: Vec<WorkStep>,
    /// Without the ramdisk.
    pub disable_ramdisk: bool,
}

/// What an operator asks of a machine's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerRequest {
    /// `power on`, `power off`
    Set(PowerState),
    /// `rebooting`
    Reboot,
    /// `soft power off`
    SoftOff,
    /// `soft rebooting`
    SoftReboot,
}

/// One operation of a JSON patch.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchOperation {
    /// Add, remove or replace.
    pub op: PatchOp,
    /// The path, split at slashes, unescaped; never empty.
    pub path: Vec<String>,
    /// The value, for add and replace.
    pub value: Value,
}

/// The three operations the API knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOp {
    /// Set, whether it was there or not.
    Add,
    /// Take away.
    Remove,
    /// Set what was there.
    Replace,
}
