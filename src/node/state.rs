//! What a node is: everything that is stored of it, as plain data.
//!
//! One node with its ports, its agent session and its open command is one unit: it changes in one step and is stored in one
//! commit.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use thin_vec::ThinVec;
use uuid::Uuid;

use super::common::Common;
use super::copied::CopyOnChange;
use super::driver_call::DriverCall;
use super::hardware::recorded::Hardware;
use super::kept::Kept;
use super::omitted::is_default;
use super::parts::Part;
use super::portgroups::Portgroup;
use super::provision::ProvisionState;
use super::volume::{VolumeConnector, VolumeTarget};
use super::work::{Work, WorkKind, WorkPhase};
use crate::command::{Command, CommandId, Instance};
use crate::timestamp::Timestamp;

/// The UUID of a node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct NodeId(pub Uuid);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<NodeId, uuid::Error> {
        Uuid::parse_str(text).map(NodeId)
    }
}

/// The UUID of a port.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PortId(pub Uuid);

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON object.
pub type Object = Map<String, Value>;

/// A node with all that belongs to it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its UUID.
    pub id: NodeId,
    /// Raised by one with every step that changes anything; the store refuses to go backwards.
    pub version: u64,
    /// When it was enrolled.
    pub created_at: Timestamp,
    /// When it last changed by something other than a sign of life.
    pub updated_at: Option<Timestamp>,
    /// What operators set.
    pub attributes: Kept<Attributes>,
    /// Its network ports; kept in rows of their own.
    #[serde(skip)]
    pub ports: Kept<Vec<Port>>,
    /// Its port groups; kept in rows of their own, as the two after them.
    #[serde(skip)]
    pub portgroups: ThinVec<Part<Portgroup>>,
    /// What it is known by to storage systems.
    #[serde(skip)]
    pub volume_connectors: ThinVec<Part<VolumeConnector>>,
    /// Volumes for it.
    #[serde(skip)]
    pub volume_targets: ThinVec<Part<VolumeTarget>>,
    /// What it can do, in alphabetical order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub traits: ThinVec<String>,
    /// The allocation that has taken it.
    #[serde(default)]
    pub allocation: Option<Uuid>,
    /// Set when a person works on the machine.
    pub maintenance: Option<Box<Maintenance>>,
    /// Why the last operation failed, in words for an operator; none while new work runs.
    pub last_error: Option<String>,
    /// What is known and wanted of its power.
    pub power: Power,
    /// What else is recorded of its machine.
    #[serde(default, skip_serializing_if = "Kept::is_default")]
    pub hardware: Kept<Hardware>,
    /// Where it stands in its life.
    pub provision: Provision,
    /// When `provision` last changed its name.
    pub provision_updated_at: Option<Timestamp>,
    /// The agent that was given a token, if one was.
    pub session: Option<Session>,
    /// The command that was last decided; open or ended.
    pub command: Option<Command>,
    /// The one before it, which has ended: often in the same step in which the next one was decided.
    #[serde(default)]
    pub previous_command: Option<Box<Command>>,
    /// How many commands were ever decided.
    pub commands_planned: u64,
    /// The driver's work in progress, if any.
    pub driver_call: Option<DriverCall>,
    /// How many driver calls were ever made.
    pub driver_calls_made: u64,
    /// When waiting ends.
    pub deadlines: Deadlines,
    /// When it was last inspected.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inspection: Inspection,
    /// Why the conductor gave up on carrying this node's events, if it did.
    pub quarantine: Option<String>,
}

impl Node {
    /// A node that has just been enrolled, with nothing known of its machine.
    pub fn enrolled(id: NodeId, attributes: Attributes, now: Timestamp) -> Node {
        Node {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            attributes: attributes.into(),
            ports: Kept::default(),
            traits: ThinVec::new(),
            portgroups: ThinVec::new(),
            volume_connectors: ThinVec::new(),
            volume_targets: ThinVec::new(),
            allocation: None,
            maintenance: None,
            last_error: None,
            power: Power::default(),
            hardware: Kept::default(),
            provision: Provision::Enroll,
            provision_updated_at: None,
            session: None,
            command: None,
            previous_command: None,
            commands_planned: 0,
            driver_call: None,
            driver_calls_made: 0,
            deadlines: Deadlines::default(),
            inspection: Inspection::default(),
            quarantine: None,
        }
    }

    /// The state's name as clients see it.
    pub fn provision_state(&self) -> ProvisionState {
        self.provision.state()
    }

    /// The state it is on the way to, or was when it failed; none for states that rest.
    pub fn target_provision_state(&self) -> Option<ProvisionState> {
        match &self.provision {
            Provision::Working(work) if work.kind == WorkKind::ManualClean => {
                Some(ProvisionState::Manageable)
            }
            Provision::CleanFailed { is_manual: true } => Some(ProvisionState::Manageable),
            provision => provision.state().target(),
        }
    }

    /// The work in progress, if any.
    pub fn work(&self) -> Option<&Work> {
        match &self.provision {
            Provision::Working(work) => Some(work),
            _ => None,
        }
    }

    /// True while something is being done that will end by itself, well or badly.
    pub fn is_at_work(&self) -> bool {
        match &self.provision {
            Provision::Verifying
            | Provision::Adopting
            | Provision::Deleting
            | Provision::Working(_) => true,
            Provision::Enroll
            | Provision::Manageable
            | Provision::InspectFailed
            | Provision::CleanFailed { .. }
            | Provision::Available
            | Provision::DeployFailed
            | Provision::Active
            | Provision::ServiceFailed
            | Provision::Rescue
            | Provision::RescueFailed
            | Provision::UnrescueFailed
            | Provision::AdoptFailed
            | Provision::Error => false,
        }
    }

    /// True while it waits for a turn, with no deadline of its own: see [`super::queues`].
    pub fn is_queued(&self) -> bool {
        self.work()
            .is_some_and(|work| matches!(work.phase, WorkPhase::Queued { .. }))
    }

    /// The command with this number, if it is one of the last two.
    pub fn command_numbered(&self, id: CommandId) -> Option<&Command> {
        [self.command.as_ref(), self.previous_command.as_deref()]
            .into_iter()
            .flatten()
            .find(|command| command.id == id)
    }

    /// The command that has not ended yet, if there is one.
    pub fn open_command(&self) -> Option<&Command> {
        self.command.as_ref().filter(|command| command.is_open())
    }

    /// The text by which a command of this node is recognised inside an agent's echo.
    pub fn operation_id(&self, command: CommandId) -> String {
        format!("{}/{command}", self.id)
    }

    /// When its agent was last heard.
    pub fn heard_at(&self) -> Option<Timestamp> {
        self.session.as_ref()?.last_contact_at
    }

    /// Folds what most steps don't look into: see [`Kept`]. Nothing of the node changes.
    pub fn fold(&mut self) {
        self.attributes.fold();
        self.ports.fold();
        self.hardware.fold();
    }

    /// Has in common with other nodes what is the same. Nothing of the node changes.
    pub fn share(&mut self, common: &mut Common) {
        if let Provision::Working(work) = &mut self.provision {
            common.share(work);
        }
    }

    /// True where [`Node::share`] has been, or would find nothing.
    pub fn has_shared(&self) -> bool {
        self.work().is_none_or(Work::has_shared)
    }

    /// The earliest moment at which something must happen although nobody calls; none when nothing is awaited.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }
}

/// What operators set on a node. Field names are those of the wire.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Attributes {
    /// Unique name.
    pub name: Option<String>,
    /// Hardware type, for example `fake-hardware`.
    pub driver: String,
    /// How the driver reaches the machine; holds credentials.
    #[serde(skip_serializing_if = "is_default")]
    pub driver_info: Object,
    /// What the machine is: `cpu_arch`, `capabilities`, `root_device`, ...
    #[serde(skip_serializing_if = "is_default")]
    pub properties: Object,
    /// Free for the operator.
    #[serde(skip_serializing_if = "is_default")]
    pub extra: Object,
    /// What to deploy: `image_source`, checksum, `configdrive`, ...
    #[serde(skip_serializing_if = "is_default")]
    pub instance_info: Object,
    /// UUID of the instance on it; unique.
    pub instance_uuid: Option<String>,
    /// Name of the instance on it.
    pub instance_name: Option<String>,
    /// UUID of the chassis it is in.
    pub chassis_uuid: Option<String>,
    /// Class for scheduling.
    pub resource_class: Option<String>,
    /// Which group of conductors may own it.
    #[serde(skip_serializing_if = "is_default")]
    pub conductor_group: String,
    /// Overrides the global setting.
    pub automated_clean: Option<bool>,
    /// Project that owns it.
    pub owner: Option<String>,
    /// Project that uses it.
    pub lessee: Option<String>,
    /// Free text, at most 4096 characters.
    pub description: Option<String>,
    /// Static network configuration for the ramdisk.
    #[serde(skip_serializing_if = "is_default")]
    pub network_data: Object,
    /// Not to be undeployed or deleted.
    #[serde(skip_serializing_if = "is_default")]
    pub protected: bool,
    /// Why it is protected.
    pub protected_reason: Option<String>,
    /// Not to be used again.
    #[serde(skip_serializing_if = "is_default")]
    pub retired: bool,
    /// Why it is retired.
    pub retired_reason: Option<String>,
    /// Which group of API users handles it.
    pub shard: Option<String>,
    /// The node it is a part of.
    pub parent_node: Option<String>,
    /// The machine must never be powered off.
    #[serde(skip_serializing_if = "is_default")]
    pub disable_power_off: bool,
    /// `bios` or `uefi`, as last known.
    pub boot_mode: Option<String>,
    /// Whether secure boot is on, as last known.
    pub secure_boot: Option<bool>,
    /// Interface implementation by kind (`boot`, `deploy`, ...).
    #[serde(skip_serializing_if = "is_default")]
    pub interfaces: BTreeMap<String, String>,
}

/// A network port of a node.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Its UUID.
    pub id: PortId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// MAC address, lower case with colons; unique.
    pub address: String,
    /// Unique name.
    pub name: Option<String>,
    /// Whether it may boot from the network.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub pxe_enabled: bool,
    /// Free for the operator.
    #[serde(default, skip_serializing_if = "is_default")]
    pub extra: Object,
    /// Which switch port it is plugged into.
    #[serde(default, skip_serializing_if = "is_default")]
    pub local_link_connection: Object,
    /// Name of the physical network.
    pub physical_network: Option<String>,
    /// Whether it is a Smart NIC.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_smartnic: bool,
    /// Free text.
    pub description: Option<String>,
    /// Vendor of the NIC.
    pub vendor: Option<String>,
    /// Free category.
    pub category: Option<String>,
    /// The port group it is in.
    pub portgroup_uuid: Option<Uuid>,
    /// Whether it may be put into groups that are made for it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub available_for_dynamic_portgroup: bool,
}

/// What a field is that is left out.
fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

impl Port {
    /// A port with this address, as it is unless more is said of it.
    pub fn new(id: PortId, address: String, now: Timestamp) -> Port {
        Port {
            id,
            created_at: now,
            updated_at: None,
            address,
            name: None,
            pxe_enabled: true,
            extra: Object::new(),
            local_link_connection: Object::new(),
            physical_network: None,
            is_smartnic: false,
            description: None,
            vendor: None,
            category: None,
            portgroup_uuid: None,
            available_for_dynamic_portgroup: true,
        }
    }
}

/// That and why a person works on the machine.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Maintenance {
    /// In the words of whoever set it.
    pub reason: Option<String>,
    /// Set by the conductor with a failure, for example `clean failure`.
    pub fault: Option<String>,
}

/// `power on` or `power off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerState {
    /// `power on`
    On,
    /// `power off`
    Off,
}

impl PowerState {
    /// As clients see it.
    pub fn name(self) -> &'static str {
        match self {
            PowerState::On => "power on",
            PowerState::Off => "power off",
        }
    }

    /// The state called `name`.
    pub fn parse(name: &str) -> Option<PowerState> {
        [PowerState::On, PowerState::Off]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// What is known and wanted of a machine's power.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Power {
    /// As last seen or set; none before it was first verified.
    pub state: Option<PowerState>,
    /// What a change in progress will end in.
    pub target: Option<PowerState>,
}

/// Where a node stands in its life, with what belongs to that place only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Provision {
    /// Known by name only.
    Enroll,
    /// The driver tries whether it can reach the machine.
    Verifying,
    /// Can be managed; not offered for use.
    Manageable,
    /// Ready for use.
    Available,
    /// Work is in progress: which state that is, the work says.
    #[serde(alias = "deploying")]
    Working(CopyOnChange<Work>),
    /// An inspection ended badly.
    InspectFailed,
    /// A cleaning ended badly.
    CleanFailed {
        /// It was one that somebody asked for.
        is_manual: bool,
    },
    /// The way to `active` ended badly.
    DeployFailed,
    /// In use.
    Active,
    /// A service ended badly.
    ServiceFailed,
    /// In use, with a ramdisk for rescuing it.
    Rescue,
    /// A rescue ended badly.
    RescueFailed,
    /// The way back from a rescue ended badly.
    UnrescueFailed,
    /// A machine that is in use already is taken over: the driver tries whether it can reach it.
    Adopting,
    /// It can't.
    AdoptFailed,
    /// On its way back to `available`.
    Deleting,
    /// The way back ended badly.
    Error,
}

impl Provision {
    /// The state's name as clients see it.
    pub fn state(&self) -> ProvisionState {
        match self {
            Provision::Enroll => ProvisionState::Enroll,
            Provision::Verifying => ProvisionState::Verifying,
            Provision::Manageable => ProvisionState::Manageable,
            Provision::Available => ProvisionState::Available,
            Provision::Working(work) => work.state(),
            Provision::InspectFailed => ProvisionState::InspectFailed,
            Provision::CleanFailed { .. } => ProvisionState::CleanFailed,
            Provision::DeployFailed => ProvisionState::DeployFailed,
            Provision::Active => ProvisionState::Active,
            Provision::ServiceFailed => ProvisionState::ServiceFailed,
            Provision::Rescue => ProvisionState::Rescue,
            Provision::RescueFailed => ProvisionState::RescueFailed,
            Provision::UnrescueFailed => ProvisionState::UnrescueFailed,
            Provision::Adopting => ProvisionState::Adopting,
            Provision::AdoptFailed => ProvisionState::AdoptFailed,
            Provision::Deleting => ProvisionState::Deleting,
            Provision::Error => ProvisionState::Error,
        }
    }
}

/// When a node was last inspected.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Inspection {
    /// When it was asked for.
    pub started_at: Option<Timestamp>,
    /// When it ended well.
    pub finished_at: Option<Timestamp>,
}

/// The agent that was given a token: from its first lookup to the next power cycle the conductor orders.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// From this and the conductor's key the token is computed; the token itself is never stored.
    pub nonce: String,
    /// Set by the first heartbeat with the right token; from then on lookups are answered with a masked token.
    pub confirmed: bool,
    /// Where the agent can be reached, as its first heartbeat said.
    pub callback_url: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The certificate it made for itself, in PEM.
    pub certificate: Option<String>,
    /// Which instance of the agent the conductor works with; known from the first survey on.
    pub instance: Option<Instance>,
    /// When the last heartbeat came.
    pub last_heartbeat_at: Option<Timestamp>,
    /// When the agent last answered or called.
    pub last_contact_at: Option<Timestamp>,
    /// What is wrong with reaching it at the moment, in words for an operator.
    pub trouble: Option<String>,
    /// Since when somebody with this machine's addresses has asked for a token although this agent has one, without a sign of life
    /// of this agent after it.
    #[serde(default)]
    pub asked_again_at: Option<Timestamp>,
    /// When this agent showed a sign of life after that; none once it could not be read again.
    #[serde(default)]
    pub proved_alive_at: Option<Timestamp>,
}

impl Session {
    /// A session that begins with a lookup at `now`.
    pub fn opened(nonce: String, now: Timestamp) -> Session {
        Session {
            nonce,
            confirmed: false,
            callback_url: None,
            agent_version: None,
            certificate: None,
            instance: None,
            last_heartbeat_at: None,
            last_contact_at: Some(now),
            trouble: None,
            asked_again_at: None,
            proved_alive_at: None,
        }
    }
}

/// When waiting ends: one absolute time per kind of waiting.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deadlines {
    /// The agent must have shown a sign of life by then (the first one, or the next one).
    pub liveness: Option<Timestamp>,
    /// The step in progress must have ended by then, however alive the agent is.
    pub step: Option<Timestamp>,
    /// The driver must have answered by then.
    pub driver: Option<Timestamp>,
    /// Time to look again at something that makes no noise, such as a machine going off.
    pub look: Option<Timestamp>,
    /// How often signs of life have moved `liveness` since it was armed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refreshed: u32,
    /// By how many milliseconds all of them were moved, while `liveness` is armed, because the conductor was away or could not store
    /// anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub moved_ms: i64,
}

impl Deadlines {
    /// The earliest of all.
    pub fn next(&self) -> Option<Timestamp> {
        [self.liveness, self.step, self.driver, self.look]
            .into_iter()
            .flatten()
            .min()
    }
}
