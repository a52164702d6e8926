//! What is handed to the store and what comes back: plain data, no SQL.

use std::sync::Arc;

use serde_json::Value;

use crate::node::{HistoryLine, Node, NodeId, Port, ProvisionState};
use crate::timestamp::Timestamp;

/// What one commit does to one node: the node, its ports, its command, its inventory and new lines of its history, all or nothing.
#[derive(Debug, Clone)]
pub struct Save {
    /// The node as it shall be.
    pub node: Arc<Node>,
    /// What kind of change.
    pub change: Change,
    /// The ports differ from those stored.
    pub ports_changed: bool,
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
            ports_changed: false,
            inventory: None,
            history: Vec::new(),
        }
    }
}

/// What kind of change a save is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The node is new.
    Insert,
    /// The node is there with this version, and becomes `node`.
    Update {
        /// The version that must be stored at the moment.
        from_version: u64,
    },
    /// The node is there with this version, and goes, with its ports, commands and history.
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
    /// Without this and without `parent_node`, nodes that have a parent are left out.
    pub include_children: bool,
}

/// Which ports a list is about; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct PortFilter {
    pub node: Option<NodeId>,
    pub address: Option<String>,
    pub shards: Option<Vec<String>>,
    pub description_contains: Option<String>,
}

/// Which part of a list, in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// Only what comes after the item with this UUID.
    pub marker: Option<uuid::Uuid>,
    /// Column to sort by, as spelled on the wire; none is the order of creation. Items that are equal in it stay in that order.
    pub sort_key: Option<String>,
    /// Backwards.
    pub descending: bool,
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

/// One stored line of a node's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its UUID.
    pub id: uuid::Uuid,
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
