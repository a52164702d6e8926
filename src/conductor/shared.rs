//! What every actor of a conductor works with. No decisions here.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::calls::Calls;
use super::overload::Overload;
use super::registry::Registry;
use super::supervise::Intensity;
use super::token::TokenKey;
use super::turns::Turns;
use crate::agent::AgentClient;
use crate::clock::Clock;
use crate::driver::Drivers;
use crate::node::queues::Claims;
use crate::node::{Common, Limits, Node, NodeId, Waiting, waiting};
use crate::observe::metrics::Metrics;
use crate::store::{Reader, Writer};

/// One more in a count, until dropped.
pub(super) struct OneMore(Arc<AtomicUsize>);

impl OneMore {
    pub(super) fn of(count: &Arc<AtomicUsize>) -> OneMore {
        count.fetch_add(1, Ordering::AcqRel);
        OneMore(count.clone())
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How a conductor runs, apart from what it is connected to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name it goes by.
    pub host: String,
    /// How many threads carry node actors.
    pub arbiters: usize,
    /// How many messages may wait for one node.
    pub mailbox_messages_max: usize,
    /// How often a node's actor may panic before the node is quarantined.
    pub intensity: Intensity,
    /// For how long the actor of a node that rests is kept when nobody asks for it.
    pub idle_actor_kept_for: Duration,
    /// How long things may take.
    pub limits: Limits,
    /// For how long a request waits for a busy node before it is refused; zero: not at all.
    pub busy_wait: Duration,
    /// How many requests to agents may be under way at once.
    pub agent_requests_max: usize,
    /// The longest pause between two looks at a running command, in milliseconds.
    pub poll_interval_max_ms: u64,
}

/// Shared by all actors of one conductor.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) key: TokenKey,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) drivers: Drivers,
    pub(super) agents: AgentClient,
    pub(super) calls: Calls,
    pub(super) turns: Turns,
    pub(super) metrics: Arc<Metrics>,
    pub(super) registry: Registry,
    /// Time in which agents were told to come again.
    pub(super) overload: Overload,
    /// True when the conductor is about to stop: nobody waits for busy nodes any more.
    pub(super) hurry: watch::Sender<bool>,
    /// What many nodes have alike.
    pub(super) common: Mutex<Common>,
    /// Set when the conductor is about to stop: agents are not asked anything new.
    pub(super) draining: AtomicBool,
    /// Commands that were sent and whose answer is not stored yet.
    pub(super) unanswered: AtomicUsize,
    /// Nodes whose rows don't know yet of an absence of the conductor or of the store.
    pub(super) unsettled: Arc<AtomicUsize>,
}

impl Shared {
    /// What a node waits for, with its place in the queue if that is a turn.
    pub(super) fn waiting(&self, node: &Node) -> Option<Waiting> {
        let waiting = waiting(node)?;
        let place = node.is_queued().then(|| self.turns.place(node.id));
        Some(waiting.at_place(place.flatten()))
    }

    /// The node as an actor keeps it: nothing of it is other than it was, and it takes as little memory as can be.
    pub(super) fn to_keep(&self, mut node: Node) -> Arc<Node> {
        node.fold();
        if !node.has_shared() {
            // Whatever a panic leaves there is as good as any.
            let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
            node.share(&mut common);
        }
        Arc::new(node)
    }

    /// What a node has and waits for now, of what only so many may have at once.
    pub(super) fn claims(&self, node: NodeId, claims: Claims) {
        self.turns.tell(node, claims, &self.registry, &self.metrics);
    }
}
