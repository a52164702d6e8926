//! Nodes that rest need no actor: theirs ends when it has had nothing to do for a while, and with it goes the memory it takes. The
//! next event starts another one from the row.
//!
//! It ends only where it holds nothing that is not in the row, and only with an empty mailbox, which the registry makes sure of.

use actix::{ActorContext as _, AsyncContext as _, Context};

use super::NodeActor;

impl NodeActor {
    /// The node has no deadline: if that stays so, and nobody asks for it, its actor ends.
    pub(super) fn leave_when_idle(&mut self, context: &mut Context<Self>) {
        if self.rest.is_some() {
            return;
        }
        let taken = self.taken;
        // Whoever asks once often asks again.
        let kept_for = self.shared.settings.idle_actor_kept_for;
        self.rest = Some(context.run_later(kept_for, move |actor, context| {
            actor.rest = None;
            if actor.taken != taken && actor.is_idle() {
                return actor.leave_when_idle(context);
            }
            // Whatever it is busy with looks again when it has come to its end.
            if actor.is_idle() && actor.shared.registry.retire(actor.id, actor.taken) {
                context.stop();
            }
        }));
    }

    /// True when nothing is awaited, and all there is to know stands in the row.
    fn is_idle(&self) -> bool {
        let Some(node) = &self.node else {
            return false;
        };
        let rests = !node.is_at_work()
            && node.next_deadline().is_none()
            && node.open_command().is_none()
            && node.driver_call.is_none()
            && node.quarantine.is_none();
        let is_stored = node.version == self.stored_version
            && !self.is_liveness_put_off
            && self.untaken.is_settled();
        let is_free = !self.is_committing
            && self.child.is_none()
            && self.store_is_down().is_none()
            && !self.holds_events()
            && self.busy.is_empty();
        rests && is_stored && is_free
    }
}
