//! Which actor carries which node: started on demand, one stored address each.
//!
//! Only the one stored address is ever used to send, because every clone of an actix address brings a free place in the mailbox
//! with it, and the mailbox's limit is what turns an overload into an answer instead of a pile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::{Addr, ArbiterHandle};
use tokio::sync::oneshot;

use super::node_actor::{Deliver, NodeActor, Start, Tell};
use super::shared::Shared;
use super::{Answer, DeliverError};
use crate::node::{Event, NodeId};

/// All node actors of a conductor.
pub(super) struct Registry {
    arbiters: Vec<ArbiterHandle>,
    actors: Mutex<HashMap<NodeId, Entry>>,
}

/// A node's actor.
struct Entry {
    address: Addr<NodeActor>,
    /// How many messages were put into its mailbox from here.
    sent: u64,
}

/// Why a message is not in the mailbox.
pub(super) enum Undelivered {
    /// The node has no actor at the moment: start it, and try again with this.
    NoActor(Box<Deliver>),
    /// It can't be had.
    Error(DeliverError),
}

/// What a caller waits on.
pub(super) type ReplyTo = oneshot::Sender<Result<Answer, DeliverError>>;

impl Registry {
    pub(super) fn new(arbiters: Vec<ArbiterHandle>) -> Registry {
        Registry {
            arbiters,
            actors: Mutex::new(HashMap::new()),
        }
    }

    /// How many nodes have an actor.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the node has an actor that lives.
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.lock()
            .get(&id)
            .is_some_and(|entry| entry.address.connected())
    }

    /// Starts the node's actor, unless it has one.
    pub(super) fn start(&self, shared: &Arc<Shared>, id: NodeId, start: Start) {
        let mut actors = self.lock();
        if actors
            .get(&id)
            .is_some_and(|entry| entry.address.connected())
        {
            return;
        }
        let address = NodeActor::start(shared.clone(), self.arbiter(id), id, start);
        actors.insert(id, Entry { address, sent: 0 });
    }

    /// Starts an actor in place of the one the node has.
    pub(super) fn replace(&self, shared: &Arc<Shared>, id: NodeId, start: Start) {
        let address = NodeActor::start(shared.clone(), self.arbiter(id), id, start);
        self.lock().insert(id, Entry { address, sent: 0 });
    }

    /// Puts a message into the mailbox of the node's actor without waiting.
    pub(super) fn try_send(&self, id: NodeId, deliver: Deliver) -> Result<(), Undelivered> {
        let mut actors = self.lock();
        let Some(entry) = actors.get_mut(&id) else {
            return Err(Undelivered::NoActor(Box::new(deliver)));
        };
        entry.address.try_send(deliver).map_err(|refused| {
            Undelivered::Error(match refused {
                actix::prelude::SendError::Full(_) => DeliverError::Overloaded { retry_after_s: 1 },
                actix::prelude::SendError::Closed(_) => DeliverError::Unavailable(
                    "the node's actor has ended and is being started again".to_owned(),
                ),
            })
        })?;
        entry.sent += 1;
        Ok(())
    }

    /// Forgets the node's actor, which has nothing to do, unless something is in its mailbox: true if it was forgotten. `taken`: how
    /// many messages it has taken out.
    pub(super) fn retire(&self, id: NodeId, taken: u64) -> bool {
        let mut actors = self.lock();
        let is_empty = actors.get(&id).is_some_and(|entry| entry.sent == taken);
        if is_empty {
            actors.remove(&id);
        }
        is_empty
    }

    /// Tells the node's actor something that must not be lost, however full its queue is. Nothing, if it has none.
    pub(super) fn tell(&self, id: NodeId, event: Event) {
        if let Some(entry) = self.lock().get(&id) {
            entry.address.do_send(Tell(event));
        }
    }

    /// Forgets the node's actor, because the node is gone or the actor is.
    pub(super) fn forget(&self, id: NodeId) {
        self.lock().remove(&id);
    }

    /// Forgets all actors; those that have nothing in flight end.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// The thread of the node's actor and its child.
    pub(super) fn arbiter(&self, id: NodeId) -> &ArbiterHandle {
        let spread = usize::try_from(id.0.as_u128() % self.arbiters.len() as u128).unwrap_or(0);
        &self.arbiters[spread]
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, Entry>> {
        // The map is whole after every statement above, so a panic elsewhere doesn't spoil it.
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
