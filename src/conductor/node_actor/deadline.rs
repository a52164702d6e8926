//! One timer per node, armed for its earliest deadline.
//!
//! A deadline takes its place in the mailbox like everything else, so whatever came before its timer fired is taken before it,
//! however late: a heartbeat that was there in time wins.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{AsyncContext as _, Context};

use super::{NodeActor, Tell};
use crate::node::Event;

impl NodeActor {
    /// Keeps one timer armed for the node's next deadline. A deadline that moved later leaves the timer alone: it looks again
    /// when it fires.
    pub(super) fn arm(&mut self, context: &mut Context<Self>) {
        let quarantined = self
            .node
            .as_ref()
            .is_some_and(|node| node.quarantine.is_some());
        let next = self
            .node
            .as_ref()
            .and_then(|node| node.next_deadline())
            .filter(|_| !quarantined);
        let Some(next) = next else {
            if let Some((_, timer)) = self.timer.take() {
                context.cancel_future(timer);
            }
            return self.leave_when_idle(context);
        };
        self.note_what_is_awaited();
        if let Some((armed_for, timer)) = self.timer {
            if armed_for <= next {
                return;
            }
            context.cancel_future(timer);
        }
        let wait = next.ms_since(self.shared.clock.now()).max(0);
        let wait = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        let timer = context.run_later(wait, |actor, context| {
            actor.timer = None;
            if actor.store_is_down().is_some() {
                // It is armed again once the row is read.
                return;
            }
            if actor.shared.draining.load(Ordering::Acquire) {
                // Nobody can be heard any more; the next start takes that off.
                return;
            }
            let due = actor
                .node
                .as_ref()
                .and_then(|node| node.next_deadline())
                .is_some_and(|deadline| deadline <= actor.shared.clock.now());
            if due {
                context.address().do_send(Tell(actor.what_is_due()));
            } else {
                actor.arm(context);
            }
        });
        self.timer = Some((next, timer));
    }

    /// A deadline for the agent that was not there before: from now on it counts how long agents are turned away.
    fn note_what_is_awaited(&mut self) {
        let liveness = self.node.as_ref().and_then(|node| node.deadlines.liveness);
        if self.awaited.map(|(deadline, _)| deadline) != liveness {
            let total_ms = self.shared.overload.total_ms();
            self.awaited = liveness.map(|deadline| (deadline, total_ms));
        }
    }

    /// The deadline that has come; or, if that is the agent's, and agents were told to come again since it was set, that it is put off.
    fn what_is_due(&mut self) -> Event {
        let now = self.shared.clock.now();
        let total_ms = self.shared.overload.total_ms();
        match &mut self.awaited {
            Some((deadline, before)) if *deadline <= now && *before < total_ms => {
                let by_ms = total_ms - std::mem::replace(before, total_ms);
                Event::AgentsTurnedAway { for_ms: by_ms }
            }
            _ => Event::DeadlineReached,
        }
    }
}
