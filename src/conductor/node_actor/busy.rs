//! Requests of operators that come while the node is busy: they wait here for a short while and are taken again whenever the node
//! changes, so that whoever asks a moment too early need not come again.
//!
//! They are taken in the order they came, and before anything that comes after the change. What the node can do at once does not
//! wait behind them: the verb that ends the work must get through. How long one waits is a setting; when that time is over, the node
//! is gone or the conductor stops, it gets its answer.

use actix::fut::wrap_future;
use actix::{ActorFutureExt as _, AsyncContext as _, Context};
use thin_vec::ThinVec;

use super::{Caller, NodeActor};
use crate::conductor::busy::Busy;
use crate::conductor::calls::Counted;
use crate::conductor::registry::ReplyTo;
use crate::conductor::{Answer, DeliverError};
use crate::node::{Event, ProvisionState, Refused};

/// So many wait for one node; whoever comes after them is answered at once.
const WAITING_MAX: usize = 16;

/// Somebody who waits for what becomes of an event.
pub(super) struct Asking {
    reply_to: ReplyTo,
    /// What to take again should the node be busy; none of what agents send.
    wish: Option<Event>,
    /// Which one this is, once it had to wait.
    number: Option<u64>,
}

impl Asking {
    pub(super) fn new(event: &Event, reply_to: ReplyTo) -> Asking {
        Asking {
            reply_to,
            wish: event.is_from_an_operator().then(|| event.clone()),
            number: None,
        }
    }

    pub(super) fn tell(self, answer: Result<Answer, DeliverError>) {
        // Whoever asked may have gone; what happened has happened.
        let _ = self.reply_to.send(answer);
    }
}

/// Those that wait for the node, in the order they came.
#[derive(Default)]
pub(super) struct Queue {
    waiting: ThinVec<Waiting>,
    numbers: u64,
}

struct Waiting {
    number: u64,
    wish: Event,
    reply_to: ReplyTo,
    /// What it is told if nothing comes of it.
    busy: Busy,
    /// The version of the node that was busy.
    version: u64,
    _counted: Counted,
}

impl Waiting {
    fn give_up(self) {
        let _ = self.reply_to.send(Err(DeliverError::Busy(self.busy)));
    }
}

impl Queue {
    /// Nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Everybody is told that nothing comes of it.
    pub(super) fn give_up(&mut self) {
        self.waiting.drain(..).for_each(Waiting::give_up);
    }

    /// Everybody is told that the node is gone.
    pub(super) fn node_is_gone(&mut self) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.reply_to.send(Err(DeliverError::NotFound));
        }
    }

    /// The first whose node was another version than this. Whoever has gone is forgotten.
    fn next(&mut self, version: u64) -> Option<Waiting> {
        self.waiting.retain(|waiting| !waiting.reply_to.is_closed());
        let first = self
            .waiting
            .iter()
            .position(|waiting| waiting.version != version)?;
        Some(self.waiting.remove(first))
    }

    fn put(&mut self, waiting: Waiting) {
        let place = self
            .waiting
            .iter()
            .position(|other| other.number > waiting.number)
            .unwrap_or(self.waiting.len());
        self.waiting.insert(place, waiting);
    }

    fn give_up_on(&mut self, number: u64) {
        let place = self
            .waiting
            .iter()
            .position(|waiting| waiting.number == number);
        if let Some(place) = place {
            self.waiting.remove(place).give_up();
        }
    }
}

impl NodeActor {
    /// The node was too busy for an event: it waits, or whoever asked is told what runs.
    pub(super) fn is_busy(
        &mut self,
        asking: Asking,
        state: ProvisionState,
        context: &mut Context<Self>,
    ) {
        let Some(node) = &self.node else {
            return asking.tell(Err(DeliverError::Refused(Refused::Busy { state })));
        };
        let busy = Busy::of(node, self.shared.waiting(node));
        let version = node.version;
        let longest = self.shared.settings.busy_wait;
        let is_full = asking.number.is_none() && self.busy.waiting.len() >= WAITING_MAX;
        let is_over = longest.is_zero() || is_full || *self.shared.hurry.borrow();
        let Some(wish) = asking.wish.filter(|_| !is_over) else {
            let _ = asking.reply_to.send(Err(DeliverError::Busy(busy)));
            return;
        };
        let number = asking.number.unwrap_or_else(|| {
            self.busy.numbers += 1;
            let number = self.busy.numbers;
            let mut hurry = self.shared.hurry.subscribe();
            let time = async move {
                tokio::select! {
                    () = tokio::time::sleep(longest) => {}
                    _ = hurry.wait_for(|hurry| *hurry) => {}
                }
            };
            let time =
                wrap_future::<_, Self>(time).map(move |(), actor, _| actor.busy.give_up_on(number));
            context.spawn(time);
            number
        });
        self.busy.put(Waiting {
            number,
            wish,
            reply_to: asking.reply_to,
            busy,
            version,
            _counted: Counted::new(&self.shared.metrics.requests_waiting),
        });
    }

    /// Takes again what waits, if the node is another by now and free to take anything.
    pub(super) fn take_what_waits(&mut self, context: &mut Context<Self>) {
        while !self.is_committing
            && self.store_is_down().is_none()
            && let Some(version) = self.node.as_ref().map(|node| node.version)
            && let Some(waiting) = self.busy.next(version)
        {
            let asking = Asking {
                reply_to: waiting.reply_to,
                wish: Some(waiting.wish.clone()),
                number: Some(waiting.number),
            };
            self.take(waiting.wish, |_| Caller::Waiting(asking), context);
        }
    }
}
