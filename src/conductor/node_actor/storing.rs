//! The node and its row: reading it, and what to do when a change could not be stored.
//!
//! What failed to commit did not happen. Callers are told to come again; events nobody waits for are held until the store works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::fut::wrap_future;
use actix::{ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context};

use super::{Caller, NodeActor, Tell};
use crate::conductor::DeliverError;
use crate::node::queues::{Claims, claims};
use crate::node::{Event, Node, after_trouble_with_the_store, is_sign_worth_storing};
use crate::retry::Pauses;
use crate::store::{Ident, ReadError, SaveError};

/// A sign of life for which the store had no place is offered again after so long.
const LIVENESS_PUT_OFF_FOR: Duration = Duration::from_secs(1);

/// What to do once the row is read.
pub(super) enum Then {
    /// Take this event.
    Take(Event),
    /// Nothing: what waits goes on.
    GoOn,
    /// Take this event, if there is one, if the row still has that version; otherwise more was stored than was known.
    Retry { version: u64, event: Option<Event> },
}

/// What there is with the store.
pub(super) struct Trouble {
    pauses: Pauses,
    /// Since when nothing can be taken.
    since: Option<Instant>,
    /// Why the store can't be used, until it is tried again.
    down: Option<String>,
    /// Events that came meanwhile and must not be lost.
    pub(super) held: Vec<Event>,
    /// The node as it was before the row had to be read again.
    seen: Option<Arc<Node>>,
}

impl Default for Trouble {
    fn default() -> Trouble {
        Trouble {
            pauses: Pauses::new(Duration::from_millis(100), Duration::from_secs(5)),
            since: None,
            down: None,
            held: Vec::new(),
            seen: None,
        }
    }
}

impl Trouble {
    /// The actor begins anew, and asks anew for all that is in flight; only for how long nothing could be taken still counts.
    pub(super) fn forget(&mut self) {
        self.down = None;
        self.held.clear();
        self.seen = None;
    }
}

impl NodeActor {
    /// Why the store can't be used at the moment.
    pub(super) fn store_is_down(&self) -> Option<&str> {
        self.trouble.as_ref()?.down.as_deref()
    }

    /// True while events wait for the store.
    pub(super) fn holds_events(&self) -> bool {
        self.trouble
            .as_ref()
            .is_some_and(|trouble| !trouble.held.is_empty())
    }

    pub(super) fn trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_default()
    }

    /// Reads the row and holds the mailbox meanwhile; then goes on with what `then` says. Signs of life that were seen and are not
    /// stored yet are kept.
    pub(super) fn load(&mut self, then: Then, context: &mut Context<Self>) {
        if let Some(seen) = self.node.take() {
            self.trouble().seen = Some(seen);
        }
        let reader = self.shared.reader.clone();
        let id = self.id;
        let reading = async move { reader.node(Ident::Id(id)).await };
        let reading = wrap_future::<_, Self>(reading).map(move |read, actor, context| match read {
            Ok(Some(node)) => {
                let node = actor.shared.to_keep(node);
                actor.found(node, then, context);
            }
            Ok(None) => {
                // Removed, or never there: whoever waits in the mailbox is told so by its end.
                actor.shared.registry.forget(actor.id);
                actor.shared.claims(actor.id, Claims::default());
                actor.busy.node_is_gone();
                context.stop();
            }
            Err(error) => {
                tracing::warn!(node.id = %actor.id, error = ?error, "the node can't be read; trying again");
                let why = match error {
                    ReadError::Unavailable(why) => why,
                    ReadError::UnknownMarker => "the node can't be read".to_owned(),
                };
                actor.load_later(then, why, context);
            }
        });
        context.wait(reading);
    }

    /// Goes on with what is in the row.
    pub(super) fn found(&mut self, row: Arc<Node>, then: Then, context: &mut Context<Self>) {
        let version = row.version;
        let down_for_ms = self.untaken.of(version);
        let event = match then {
            Then::Take(Event::Resumed { .. }) => Some(Event::Resumed { down_for_ms }),
            Then::Take(event) => Some(event),
            Then::GoOn => None,
            Then::Retry { version, event } if version == row.version => event,
            // What was thought lost is stored, or somebody else was here: ask anew for all that is in flight.
            Then::Retry { .. } => Some(Event::Resumed { down_for_ms: 0 }),
        };
        self.stored_version = version;
        let (since, seen, held) = match &mut self.trouble {
            None => (None, None, Vec::new()),
            Some(trouble) => {
                trouble.down = None;
                (
                    trouble.since.take(),
                    trouble.seen.take(),
                    std::mem::take(&mut trouble.held),
                )
            }
        };
        let held_for = since.map_or(0, |since| {
            i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)
        });
        self.untaken.add(version, held_for);
        let node = match seen {
            None if held_for == 0 => row,
            seen => {
                let row = Arc::unwrap_or_clone(row);
                let node = after_trouble_with_the_store(row, seen.as_deref(), held_for);
                self.shared.to_keep(node)
            }
        };
        // What was read may be more than this actor knew to be stored.
        let counted = self.counted.take().unwrap_or_else(|| node.clone());
        self.count(&counted, &node);
        // Also what was said before and may have been lost.
        self.shared.claims(self.id, claims(&node));
        let has_moved = node.version != version;
        self.node = Some(node);
        // With an absence that is to be taken off, both are stored together.
        let is_return = matches!(event, Some(Event::Resumed { down_for_ms }) if down_for_ms != 0);
        if has_moved && !is_return {
            self.liveness_stored = None;
            self.store_liveness(context);
        }
        // The event may change nothing, and the row's deadlines count all the same.
        self.arm(context);
        if let Some(event) = event {
            self.take(event, Caller::nobody, context);
        }
        // These come before any deadline that has passed meanwhile.
        for event in held {
            context.address().do_send(Tell(event));
        }
        self.take_what_waits(context);
    }

    /// Reads the row after a pause that grows with every failure in a row. Meanwhile callers are told `why`.
    pub(super) fn load_later(&mut self, then: Then, why: String, context: &mut Context<Self>) {
        let trouble = self.trouble();
        trouble.down = Some(why);
        trouble.since.get_or_insert_with(Instant::now);
        let pause = trouble.pauses.next_pause();
        self.untaken.begins(&self.shared.unsettled);
        context.run_later(pause, move |actor, context| actor.load(then, context));
    }

    /// A commit failed, so nothing has happened. What is in the store is read again where it may be something else than thought.
    pub(super) fn not_stored(
        &mut self,
        caller: Caller,
        error: SaveError,
        context: &mut Context<Self>,
    ) {
        tracing::warn!(node.id = %self.id, error = ?error, "a change could not be stored");
        let told = DeliverError::from(error.clone());
        let version = self.stored_version;
        match caller {
            Caller::Waiting(asking) => {
                asking.tell(Err(told));
                match error {
                    SaveError::VersionConflict | SaveError::Unavailable(_) => {
                        let event = None;
                        self.load(Then::Retry { version, event }, context);
                    }
                    SaveError::Duplicate { .. }
                    | SaveError::Gone { .. }
                    | SaveError::InUse { .. }
                    | SaveError::Overloaded => {}
                }
            }
            Caller::Nobody(event) => {
                let why = match told {
                    DeliverError::Unavailable(why) => why,
                    _ => "the database has more to store than it can take in".to_owned(),
                };
                let event = Some(event);
                self.load_later(Then::Retry { version, event }, why, context);
            }
        }
    }

    /// Hands the node, which has shown a sign of life and not changed otherwise, to the store.
    pub(super) fn store_liveness(&mut self, context: &mut Context<Self>) {
        let Some(node) = self.node.clone() else {
            return;
        };
        let heard_at = node.heard_at();
        let is_recent = self.liveness_stored.is_some_and(|(at, heard)| {
            let ms_ago = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
            !is_sign_worth_storing(&node, heard, ms_ago)
        });
        if is_recent {
            return;
        }
        let version = node.version;
        let saving = match self.shared.writer.try_save_signs(node) {
            Ok(saving) => saving,
            Err(_) => return self.put_liveness_off(context),
        };
        self.liveness_stored = Some((Instant::now(), heard_at));
        // The queue to the store is first in, first out: the next save may count on this one.
        self.stored_version = version;
        let saving = wrap_future::<_, Self>(saving).map(move |saved, actor, context| match saved {
            Ok(()) => actor.row_knows(version),
            Err(error) => {
                tracing::warn!(node.id = %actor.id, error = ?error, "a sign of life could not be stored");
                // The row is older than was counted on: unless it is read, no later sign of life could be stored either.
                if actor.store_is_down().is_none() {
                    actor.load(Then::GoOn, context);
                }
            }
        });
        context.spawn(saving);
    }

    /// The row with this version is stored, and what it had to know of absences is in it, unless there is trouble again.
    pub(super) fn row_knows(&mut self, version: u64) {
        let is_well = self
            .trouble
            .as_ref()
            .is_none_or(|trouble| trouble.since.is_none());
        if is_well {
            self.untaken.stored(version);
        }
    }

    /// The store has no place at the moment; what it knows is older, and nothing else is wrong.
    fn put_liveness_off(&mut self, context: &mut Context<Self>) {
        if std::mem::replace(&mut self.is_liveness_put_off, true) {
            return;
        }
        context.run_later(LIVENESS_PUT_OFF_FOR, |actor, context| {
            actor.is_liveness_put_off = false;
            if context.waiting() {
                // A commit that counts on the version in the store has just begun.
                return actor.put_liveness_off(context);
            }
            let is_stored = actor
                .node
                .as_ref()
                .is_none_or(|node| node.version == actor.stored_version);
            if !is_stored && actor.store_is_down().is_none() {
                actor.store_liveness(context);
            }
        });
    }
}
