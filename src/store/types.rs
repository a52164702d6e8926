//! What is handed to the store and what comes back: plain data, no SQL.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::catalog;
use crate::catalog::{Kind, Record};
use crate::node::parts::Part;
use crate::node::{HistoryLine, Node, NodeId, Port, PowerState, ProvisionState};
use crate::timestamp::Timestamp;

/// What one commit does to one node: the node, its ports, its command, its inventory and new lines of its history, all or nothing.
#[derive(Debug, Clone)]
pub struct Save {
    /// The node as it shall be.
    pub node: Arc<Node>,
    /// What kind of change.
    pub change: Change,
    /// Which columns of the node's row may differ from those stored.
    pub columns: Columns,
    /// The ports differ from those stored.
    pub ports_changed: bool,
    /// Its port groups, volume connectors or volume targets differ from those stored.
    pub parts_changed: bool,
    /// What the change means for an allocation.
    pub allocation: Option<AllocationLink>,
    /// What an inspection that has just ended has found.
    pub inventory: Option<Value>,
    /// Lines to add to its history, with the time they happened.
    pub history: Vec<(Timestamp, HistoryLine)>,
}

impl Save {
    /// The node alone, without anything that hangs on it.
    pub fn of(node: Arc<Node>, change: Change) -> Save {
        Save {
            node,
            change,
            columns: Columns::All,
            ports_changed: false,
            parts_changed: false,
            allocation: None,
            inventory: None,
            history: Vec::new(),
        }
    }
}

/// Which columns of a node's row a change may touch, besides its version and its body. Columns that are written again as they were
/// cost as much as new ones, with all their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// What it is at, and its next deadline.
    State,
    /// What operators set, too.
    All,
}

impl Columns {
    /// Those that a change from `before` to `after` may touch.
    pub fn between(before: &Node, after: &Node) -> Columns {
        if before.attributes != after.attributes {
            Columns::All
        } else {
            Columns::State
        }
    }
}

/// What a change of a node means for an allocation; stored in the same commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationLink {
    /// The node was taken for it: it becomes active. Where it is gone, the node is not stored either.
    Taken(Uuid),
    /// It goes.
    Ended(Uuid),
}

/// What one commit does to one object that stands for itself.
#[derive(Debug, Clone)]
pub struct RecordSave {
    pub(super) row: catalog::Row,
    /// What kind of change.
    pub change: Change,
}

impl RecordSave {
    /// A new object.
    pub fn insert<T: Kind>(record: &Record<T>) -> RecordSave {
        RecordSave {
            row: catalog::Row::new(record),
            change: Change::Insert,
        }
    }

    /// An object in place of its version `from_version`.
    pub fn update<T: Kind>(record: &Record<T>, from_version: u64) -> RecordSave {
        RecordSave {
            row: catalog::Row::new(record),
            change: Change::Update { from_version },
        }
    }

    /// This version of an object goes.
    pub fn remove<T: Kind>(record: &Record<T>) -> RecordSave {
        RecordSave {
            row: catalog::Row::new(record),
            change: Change::Remove {
                from_version: record.version,
            },
        }
    }
}

/// What kind of change a save is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Insert,
    /// It is there with this version, and becomes what is given.
    Update {
        /// The version that must be stored at the moment; its signs of life may make it newer than what else is stored.
        from_version: u64,
    },
    /// It is there with this version, and goes; a node with its ports, commands and history.
    Remove {
        /// The version that must be stored at the moment.
        from_version: u64,
    },
}

/// How a request names a node or a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ident<Id> {
    /// By UUID.
    Id(Id),
    /// By name.
    Name(String),
}

/// Which nodes a list is about; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct NodeFilter {
    pub provision_state: Option<ProvisionState>,
    pub maintenance: Option<bool>,
    pub associated: Option<bool>,
    pub instance_uuid: Option<String>,
    pub instance_name: Option<String>,
    pub driver: Option<String>,
    pub resource_class: Option<String>,
    pub conductor_group: Option<String>,
    pub owner: Option<String>,
    pub lessee: Option<String>,
    /// Owner or lessee.
    pub project: Option<String>,
    pub fault: Option<String>,
    pub retired: Option<bool>,
    pub description_contains: Option<String>,
    pub shards: Option<Vec<String>>,
    pub sharded: Option<bool>,
    pub parent_node: Option<String>,
    pub chassis_uuid: Option<String>,
    /// Without this and without `parent_node`, nodes that have a parent are left out.
    pub include_children: bool,
}

/// Which ports a list is about; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct PortFilter {
    pub node: Option<NodeId>,
    pub address: Option<String>,
    pub portgroup: Option<Uuid>,
    pub shards: Option<Vec<String>>,
    pub description_contains: Option<String>,
}

/// Which part of a list, in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// Only what comes after the item with this UUID.
    pub marker: Option<Uuid>,
    /// Column to sort by, as spelled on the wire; none is the order of creation. Items that are equal in it stay in that order.
    pub sort_key: Option<String>,
    /// Backwards.
    pub descending: bool,
}

impl Page {
    /// In the order of creation: at most `limit` after the item with the marker's UUID, or from the beginning.
    pub fn by_age(limit: usize, marker: Option<Uuid>) -> Page {
        Page {
            limit,
            marker,
            sort_key: None,
            descending: false,
        }
    }
}

/// Text columns a list can be sorted by, besides the order of creation.
pub const NODE_SORT_KEYS: &[&str] = &[
    "uuid",
    "name",
    "provision_state",
    "power_state",
    "driver",
    "instance_uuid",
    "resource_class",
    "maintenance",
    "created_at",
    "updated_at",
];

/// See [`NODE_SORT_KEYS`].
pub const PORT_SORT_KEYS: &[&str] = &["uuid", "address", "name", "created_at", "updated_at"];

/// See [`NODE_SORT_KEYS`].
pub const PART_SORT_KEYS: &[&str] = &[
    "uuid",
    "name",
    "address",
    "connector_id",
    "created_at",
    "updated_at",
];

/// See [`NODE_SORT_KEYS`].
pub const RECORD_SORT_KEYS: &[&str] = &[
    "uuid",
    "name",
    "owner",
    "state",
    "resource_class",
    "created_at",
    "updated_at",
];

/// Which parts of nodes a list is about; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct PartFilter {
    pub node: Option<NodeId>,
    /// What no other part of its kind has: the address of a port group.
    pub claim: Option<String>,
    pub shards: Option<Vec<String>>,
}

/// Which objects a list is about; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct RecordFilter {
    /// Any of these.
    pub names: Option<Vec<String>>,
    pub owner: Option<String>,
    pub state: Option<String>,
    pub resource_class: Option<String>,
    pub node: Option<NodeId>,
}

/// A node as far as the columns of its row tell it: all that lists find and sort nodes by, and enough for most of them to show.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct NodeOutline {
    pub id: NodeId,
    pub name: Option<Box<str>>,
    pub instance_uuid: Option<Box<str>>,
    pub instance_name: Option<Box<str>>,
    pub driver: Box<str>,
    pub provision_state: ProvisionState,
    pub power_state: Option<PowerState>,
    pub maintenance: bool,
    pub fault: Option<Box<str>>,
    pub resource_class: Option<Box<str>>,
    pub conductor_group: Box<str>,
    pub owner: Option<Box<str>>,
    pub lessee: Option<Box<str>>,
    pub retired: bool,
    /// In lower case, for searching.
    pub description: Option<Box<str>>,
    pub shard: Option<Box<str>>,
    pub parent_node: Option<Box<str>>,
    pub chassis_uuid: Option<Box<str>>,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
}

/// One stored line of a node's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its UUID.
    pub id: Uuid,
    /// When it happened.
    pub at: Timestamp,
    /// The name of the conductor that wrote it.
    pub conductor: String,
    /// What happened.
    pub line: HistoryLine,
}

/// One command of a node's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Number within the node.
    pub number: u64,
    /// Full name of what was asked, for example `deploy.execute_deploy_step`.
    pub request: String,
    /// How many times it was dispatched, or is about to be.
    pub attempt: u64,
    /// `planned`, `sent`, `accepted`, `unknown`, `refused` or `finished`.
    pub phase: String,
    /// When it was decided.
    pub planned_at: Timestamp,
    /// When the phase was entered.
    pub changed_at: Timestamp,
    /// Why it did not succeed, once it has ended so.
    pub error: Option<String>,
}

/// A port and the node it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct PortOfNode {
    /// The node.
    pub node: NodeId,
    /// The port.
    pub port: Port,
}

/// Another part than a port, and the node it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct PartOfNode<T> {
    /// The node.
    pub node: NodeId,
    /// The part.
    pub part: Part<T>,
}

/// Why something could not be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveError {
    /// Another node or port has that value already.
    Duplicate {
        /// `uuid`, `name`, `instance_uuid`, `address` (of a port), `port uuid` or `port name`.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// Something that the change depends on is not there any more.
    Gone {
        /// What, at the beginning of a sentence.
        what: &'static str,
        /// Its UUID.
        id: Uuid,
    },
    /// It can't go as long as others name it.
    InUse {
        /// What.
        what: String,
        /// By whom.
        by: String,
    },
    /// The stored version is another one: somebody else owns the node now, or it is gone.
    VersionConflict,
    /// The queue to the database is full.
    Overloaded,
    /// The database can't be used at the moment: why, and what to do. Nothing was stored, except perhaps where the text says
    /// that the connection broke during the commit; so whoever gets this loads the node again before going on.
    Unavailable(String),
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The page's marker does not exist.
    UnknownMarker,
    /// The database can't be used at the moment: why, and what to do.
    Unavailable(String),
}
