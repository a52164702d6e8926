//! Carries events to nodes and their effects away.

use std::sync::Arc;

use crate::node::{Event, Heartbeat, Node, NodeId, Refused, Reply};
use crate::store::Reader;

/// The conductor as the HTTP side sees it. Cheap to clone.
#[derive(Clone)]
pub struct Conductor;

/// What became of an event: committed, with the node as it is now.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The node after the event.
    pub node: Arc<Node>,
    /// What the step replied; never `Refused`, which is an error below.
    pub reply: Reply,
}

/// Why an event had no effect.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliverError {
    /// No such node.
    NotFound,
    /// Not allowed now; nothing has changed.
    Refused(Refused),
    /// The node's queue, or the database's, is full: try again after so many seconds.
    Overloaded {
        /// Seconds.
        retry_after_s: u32,
    },
    /// A unique value is taken already.
    Duplicate {
        /// As in `store::SaveError::Duplicate`.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// The database or the node's actor can't be used at the moment; why, in words for an operator.
    Unavailable(String),
    /// The step itself failed by a fault of ours; the event was dropped, the node is as before.
    Panicked,
}

impl Conductor {
    /// Hands an event to a node; returns when its step is committed.
    pub async fn deliver(&self, _node: NodeId, _event: Event) -> Result<Answer, DeliverError> {
        unimplemented!()
    }
    /// A heartbeat with the token as it came (`heartbeat.token` is overwritten by the comparison).
    pub async fn heartbeat(
        &self,
        _node: NodeId,
        _heartbeat: Heartbeat,
        _token: Option<String>,
    ) -> Result<Answer, DeliverError> {
        unimplemented!()
    }
    /// A lookup; with the answer comes the token to send: 43 characters, or six stars.
    pub async fn lookup(&self, _node: NodeId) -> Result<(Answer, String), DeliverError> {
        unimplemented!()
    }
    /// Enrols a node.
    pub async fn create(&self, _node: Node) -> Result<Arc<Node>, DeliverError> {
        unimplemented!()
    }
    /// The store, for reading.
    pub fn reader(&self) -> &Reader {
        unimplemented!()
    }
    /// The name this conductor goes by (`host` in the configuration).
    pub fn host(&self) -> &str {
        unimplemented!()
    }
    /// The present time.
    pub fn now(&self) -> crate::timestamp::Timestamp {
        unimplemented!()
    }
    /// True once recovery is done and the database answers.
    pub fn is_ready(&self) -> bool {
        unimplemented!()
    }
}
