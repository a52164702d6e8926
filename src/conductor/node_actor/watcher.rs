//! What is told about the troubles of a node's actor, and what follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Start;
use crate::conductor::measure;
use crate::conductor::shared::Shared;
use crate::conductor::supervise::{Intensity, Watcher};
use crate::node::NodeId;
use crate::node::queues::Claims;

/// Puts the node into quarantine when its actor panicked too often.
pub(super) struct NodeWatcher {
    pub(super) shared: Arc<Shared>,
    pub(super) id: NodeId,
    /// The actor was only started to store the quarantine and has not stored anything yet; if it can't do that either, it is left
    /// until somebody asks for the node.
    pub(super) is_last_try: Arc<AtomicBool>,
}

impl Watcher for NodeWatcher {
    fn intensity(&self) -> Intensity {
        self.shared.settings.intensity
    }

    fn restarted(&self, cause: &str) {
        measure::restarted(&self.shared.metrics, "node");
        tracing::error!(node.id = %self.id, cause, "a node's actor panicked and is restarted");
    }

    fn gave_up(&self, cause: &str) {
        tracing::error!(node.id = %self.id, cause, "a node's actor panicked too often; the node is quarantined");
        if self.is_last_try.load(Ordering::Relaxed) {
            self.shared.registry.forget(self.id);
            return self.shared.claims(self.id, Claims::default());
        }
        let start = Start {
            quarantine: Some(cause.to_owned()),
            ..Start::fresh()
        };
        self.shared.registry.replace(&self.shared, self.id, start);
    }
}
