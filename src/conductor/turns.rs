//! The queues of a conductor: which nodes may be deployed, be cleaned or read from an image host now, and who comes next.
//!
//! Node actors tell what their node has and waits for after each commit that changes it, and whenever they have read its row; whose
//! turn has come is told by [`Event::TurnCame`]. A turn that is lost on its way, because an actor panicked or the store failed, is given
//! again when that actor has read the row. At start all rows are told first and nobody is called until [`Turns::open`], so that those
//! who wait come in their order, before anybody new. Who comes next is decided in `crate::node::queues`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::registry::Registry;
use crate::node::queues::{Call, Claims, Place, QueueKind, Queues};
use crate::node::{Event, NodeId, QueueLimits};
use crate::observe::metrics::{Metrics, QueueLabel};

/// All queues, for all threads.
pub(super) struct Turns(Mutex<Queues>);

impl Turns {
    pub(super) fn new(limits: QueueLimits) -> Turns {
        Turns(Mutex::new(Queues::new(limits)))
    }

    /// What a node has and waits for now.
    pub(super) fn tell(
        &self,
        node: NodeId,
        claims: Claims,
        registry: &Registry,
        metrics: &Metrics,
    ) {
        self.change(registry, metrics, |queues| queues.tell(node, claims));
    }

    /// Everybody who was there before is back in place: turns are given from now on.
    pub(super) fn open(&self, registry: &Registry, metrics: &Metrics) {
        self.change(registry, metrics, Queues::open);
    }

    /// Where a node stands, if it waits.
    pub(super) fn place(&self, node: NodeId) -> Option<Place> {
        self.lock().place(node)
    }

    fn change(
        &self,
        registry: &Registry,
        metrics: &Metrics,
        change: impl FnOnce(&mut Queues) -> Vec<Call>,
    ) {
        let mut queues = self.lock();
        let calls = change(&mut queues);
        for kind in QueueKind::ALL {
            let (count, label) = (queues.count(kind), QueueLabel { queue: kind.name() });
            let gauge = |nodes| i64::try_from(nodes).unwrap_or(i64::MAX);
            metrics.turns.get_or_create(&label).set(gauge(count.hold));
            metrics
                .turns_waiting
                .get_or_create(&label)
                .set(gauge(count.wait));
        }
        drop(queues);
        for Call { node, kind, since } in calls {
            registry.tell(node, Event::TurnCame { kind, since });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Should a change have panicked midway, the claims that follow put right what it left.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
