//! What is counted when a change of the node is taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::NodeActor;
use crate::conductor::measure::{self, Notable};
use crate::node::Node;
use crate::timestamp::Timestamp;

impl NodeActor {
    /// What came of a notable event is taken.
    pub(super) fn noted(&self, notable: Option<Notable>, before: &Node, decided_at: Timestamp) {
        if let Some(notable) = notable {
            let (metrics, now) = (&self.shared.metrics, self.shared.clock.now());
            measure::noted(metrics, notable, before, decided_at, now);
        }
    }

    /// The change is taken: from here on it is the node.
    pub(super) fn became(&mut self, before: &Node, node: &Arc<Node>) {
        self.is_last_try.store(false, Ordering::Relaxed);
        self.start = None;
        if measure::ended(before, node).is_some() {
            self.command_ended = Some(Instant::now());
        }
        if !measure::is_sent(before)
            && measure::is_sent(node)
            && let Some(ended) = self.command_ended.take()
        {
            self.shared
                .metrics
                .command_gap_seconds
                .observe(ended.elapsed().as_secs_f64());
        }
        self.count(before, node);
        self.node = Some(node.clone());
    }

    /// Brings everything that counts nodes from `before`, which it knows, to `node`.
    pub(super) fn count(&mut self, before: &Node, node: &Arc<Node>) {
        measure::changed(&self.shared.metrics, before, node);
        let unanswered = &self.shared.unanswered;
        match (measure::is_sent(before), measure::is_sent(node)) {
            (false, true) => {
                unanswered.fetch_add(1, Ordering::AcqRel);
            }
            (true, false) => {
                // Never below zero, whatever a panic has kept from being counted.
                let _ = unanswered.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                    count.checked_sub(1)
                });
            }
            _ => {}
        }
        self.counted = Some(node.clone());
    }
}
