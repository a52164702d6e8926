//! One node's actor: its lock, its queue and its timer. It takes an event, lets [`step`] decide, stores the outcome, carries the
//! effects away and answers; it decides nothing itself.
//!
//! ```text
//! mailbox ─▶ step (guarded) ─┬─ refused, or nothing changed ─▶ answer
//!                            ├─ a sign of life ─▶ state in memory ─▶ effects ─▶ answer; stored a little later
//!                            └─ anything else ─▶ commit (nothing else is taken meanwhile) ─▶ effects ─▶ answer
//! ```
//! What failed to commit did not happen: a caller gets an error; an answer of the agent or the driver, for which nobody waits, is
//! taken again until it is stored. Until then callers are told to come again, and what else nobody waits for is held.

mod busy;
mod counting;
mod deadline;
mod log;
mod rest;
mod storing;
mod untaken;
mod watcher;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use actix::fut::wrap_future;
use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, ActorState, Addr, ArbiterHandle,
    AsyncContext as _, Context, Handler, Message, SpawnHandle, Supervised,
};

use self::busy::Asking;
use self::storing::{Then, Trouble};
use self::untaken::Untaken;
use self::watcher::NodeWatcher;
use super::calls::Counted;
use super::command_actor::{Child, CommandActor};
use super::measure::{self, ComingBack};
use super::registry::ReplyTo;
use super::shared::{OneMore, Shared};
use super::supervise::{self, message_of};
use super::{Answer, DeliverError};
use crate::agent::certificate_sha256;
use crate::command::CommandId;
use crate::node::queues::{self, Claims};
use crate::node::{Event, Node, NodeId, Now, Refused, Reply, TokenMatch, is_sign_of_life, step};
use crate::store::{AllocationLink, Change, Columns, Save};
use crate::timestamp::Timestamp;

/// An event, and who waits for what becomes of it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Deliver {
    pub(super) event: Event,
    /// With a heartbeat: the token as it came.
    pub(super) token: Option<Option<String>>,
    pub(super) reply_to: ReplyTo,
}

/// An event from the conductor itself, which nobody waits for and which must not be lost.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Tell(pub(super) Event);

/// How an actor begins.
pub(super) struct Start {
    /// For how long the conductor was away, in milliseconds; 0 if it was not.
    pub(super) down_for_ms: i64,
    /// Held until the row knows of that.
    pub(super) unsettled: Option<OneMore>,
    /// Given up on by the supervisor before: why.
    pub(super) quarantine: Option<String>,
    /// What is in the row, where that was just read and nobody can have changed it since.
    pub(super) row: Option<Arc<Node>>,
    /// It waited when the conductor started; let go of once it is back.
    pub(super) _coming_back: Option<ComingBack>,
}

impl Start {
    /// The usual beginning: on demand, with nothing to catch up.
    pub(super) fn fresh() -> Start {
        Start {
            down_for_ms: 0,
            unsettled: None,
            quarantine: None,
            row: None,
            _coming_back: None,
        }
    }
}

pub(super) struct NodeActor {
    shared: Arc<Shared>,
    id: NodeId,
    /// How it began, until the first event is taken.
    start: Option<Box<Start>>,
    /// None until the row was read.
    node: Option<Arc<Node>>,
    /// What there is or was with the store since the last commit.
    trouble: Option<Box<Trouble>>,
    /// What the row does not know yet of absences.
    untaken: Untaken,
    /// The node as the metrics know it.
    counted: Option<Arc<Node>>,
    /// What is in the store, once everything queued there is written.
    stored_version: u64,
    /// When a sign of life was last handed to the store, and when that agent had been heard.
    liveness_stored: Option<(Instant, Option<Timestamp>)>,
    /// The store had no place for one; it is tried again.
    is_liveness_put_off: bool,
    /// When the last command ended, until the next one is sent.
    command_ended: Option<Instant>,
    child: Option<Child>,
    timer: Option<(Timestamp, SpawnHandle)>,
    /// The deadline of the agent's next sign of life, and how long agents had been told to come again when it was set.
    awaited: Option<(Timestamp, i64)>,
    /// Requests that wait until the node is less busy.
    busy: busy::Queue,
    /// A change is on its way to the store, and nothing else is taken.
    is_committing: bool,
    /// How many messages were taken out of the mailbox that the registry put in.
    taken: u64,
    /// Looks from time to time whether there is nothing to do any more.
    rest: Option<SpawnHandle>,
    /// See [`NodeWatcher`].
    is_last_try: Arc<AtomicBool>,
    _counted: Counted,
}

/// Who is told what became of an event.
enum Caller {
    /// Somebody waits.
    Waiting(Asking),
    /// Nobody does, so it is taken again until it is stored.
    Nobody(Event),
}

impl Caller {
    fn nobody(event: &Event) -> Caller {
        Caller::Nobody(event.clone())
    }
}

impl NodeActor {
    pub(super) fn start(
        shared: Arc<Shared>,
        arbiter: &ArbiterHandle,
        id: NodeId,
        start: Start,
    ) -> Addr<NodeActor> {
        let capacity = shared.settings.mailbox_messages_max;
        supervise::start(arbiter, capacity, move |_| {
            let mut start = Box::new(start);
            let version = start.row.as_ref().map_or(0, |row| row.version);
            let untaken = Untaken::new(start.down_for_ms, version, start.unsettled.take());
            let is_last_try = Arc::new(AtomicBool::new(start.quarantine.is_some()));
            let watcher = NodeWatcher {
                shared: shared.clone(),
                id,
                is_last_try: is_last_try.clone(),
            };
            let actor = NodeActor {
                _counted: Counted::new(&shared.metrics.node_actors),
                shared,
                id,
                start: Some(start),
                node: None,
                trouble: None,
                untaken,
                counted: None,
                stored_version: 0,
                liveness_stored: None,
                is_liveness_put_off: false,
                command_ended: None,
                child: None,
                timer: None,
                awaited: None,
                busy: busy::Queue::default(),
                is_committing: false,
                taken: 0,
                rest: None,
                is_last_try,
            };
            (actor, watcher)
        })
    }

    /// One event, from the decision to the answer.
    fn take(
        &mut self,
        event: Event,
        caller: impl FnOnce(&Event) -> Caller,
        context: &mut Context<Self>,
    ) {
        let name = event.name();
        let is_return = matches!(event, Event::Resumed { .. });
        let notable = measure::notable(&event);
        let caller = caller(&event);
        let Some(before) = self.node.clone() else {
            // The mailbox is held while the row is read, and answered without this once that has failed.
            return self.answer(
                caller,
                Err(DeliverError::Unavailable(
                    "the node is being read".to_owned(),
                )),
                context,
            );
        };
        let began = Instant::now();
        let now = Now {
            at: self.shared.clock.now(),
            limits: &self.shared.settings.limits,
        };
        let decided_at = now.at;
        let stepped = catch_unwind(AssertUnwindSafe(|| step(&before, event, now)));
        measure::decided(&self.shared.metrics, name, began);
        let step = match stepped {
            Ok(step) => step,
            Err(panic) => {
                self.shared.metrics.step_panics.inc();
                tracing::error!(node.id = %self.id, event = name, cause = message_of(&*panic), version = before.version,
                    "a step panicked; the event is dropped and the node is as before");
                match caller {
                    Caller::Waiting(asking) => {
                        return asking.tell(Err(DeliverError::Panicked));
                    }
                    // Without this event the node would wait for something that never comes, or meet it again at once. The
                    // restarted actor asks anew for all that is in flight; a node that can't be helped so is quarantined.
                    Caller::Nobody(_) => resume_unwind(panic),
                }
            }
        };
        self.log(name, &before, &step);
        if let Reply::Refused(why) = step.reply {
            self.start = None;
            return self.answer(caller, Err(DeliverError::Refused(why)), context);
        }
        if step.node == *before
            && !step.removed
            && step.history.is_empty()
            && step.inventory.is_none()
        {
            self.start = None;
            if is_return {
                self.untaken.needless();
            }
            self.run_effects(&before, step.effects, context);
            return self.answer(
                caller,
                Ok(Answer {
                    node: before,
                    reply: step.reply,
                }),
                context,
            );
        }
        let node = self.shared.to_keep(step.node);
        let from_version = self.stored_version;
        let change = if step.removed {
            Change::Remove { from_version }
        } else {
            Change::Update { from_version }
        };
        let save = Save {
            columns: Columns::between(&before, &node),
            ports_changed: node.ports != before.ports,
            parts_changed: node.portgroups != before.portgroups
                || node.volume_connectors != before.volume_connectors
                || node.volume_targets != before.volume_targets,
            allocation: allocation_link(&before, &node, step.removed),
            inventory: step.inventory,
            history: step
                .history
                .into_iter()
                .map(|line| (decided_at, line))
                .collect(),
            ..Save::of(node.clone(), change)
        };
        let is_node_alone = save.history.is_empty() && save.inventory.is_none();
        if !step.removed && is_node_alone && is_sign_of_life(&before, &node) {
            self.became(&before, &node);
            self.noted(notable, &before, decided_at);
            self.store_liveness(context);
            self.arm(context);
            self.run_effects(&node, step.effects, context);
            self.answer(
                caller,
                Ok(Answer {
                    node,
                    reply: step.reply,
                }),
                context,
            );
            return self.take_what_waits(context);
        }
        let writer = self.shared.writer.clone();
        // Whom nobody can tell to come again waits for a place, however many nodes have something to store at once.
        let waits = matches!(caller, Caller::Nobody(_));
        let committing = async move {
            if waits {
                writer.save_in_turn(save).await
            } else {
                writer.save(save).await
            }
        };
        let (effects, reply, removed) = (step.effects, step.reply, step.removed);
        self.is_committing = true;
        let committing = wrap_future::<_, Self>(committing).map(move |saved, actor, context| {
            actor.is_committing = false;
            match saved {
                Ok(()) => {
                    actor.trouble = None;
                    actor.stored_version = node.version;
                    actor.row_knows(node.version);
                    actor.became(&before, &node);
                    actor.noted(notable, &before, decided_at);
                    if removed {
                        actor.shared.claims(actor.id, Claims::default());
                        measure::removed(&actor.shared.metrics, &node);
                        actor.shared.registry.forget(actor.id);
                        actor.busy.node_is_gone();
                        context.stop();
                    } else {
                        actor.claims_changed(&before, &node);
                        actor.arm(context);
                        actor.run_effects(&node, effects, context);
                    }
                    actor.answer(caller, Ok(Answer { node, reply }), context);
                }
                Err(error) => actor.not_stored(caller, error, context),
            }
            actor.take_what_waits(context);
        });
        context.wait(committing);
    }

    /// Whoever keeps the queues learns what the node has and waits for now.
    fn claims_changed(&self, before: &Node, node: &Node) {
        let claims = queues::claims(node);
        if claims != queues::claims(before) {
            self.shared.claims(self.id, claims);
        }
    }

    fn answer(
        &mut self,
        caller: Caller,
        answer: Result<Answer, DeliverError>,
        context: &mut Context<Self>,
    ) {
        match (caller, answer) {
            (Caller::Waiting(asking), Err(DeliverError::Refused(Refused::Busy { state }))) => {
                self.is_busy(asking, state, context)
            }
            (Caller::Waiting(asking), answer) => asking.tell(answer),
            (Caller::Nobody(event), Err(DeliverError::Unavailable(_))) => {
                self.load_later(
                    Then::Take(event),
                    "the node is being read".to_owned(),
                    context,
                );
            }
            (Caller::Nobody(_), _) => {}
        }
    }

    fn run_effects(
        &mut self,
        node: &Arc<Node>,
        effects: Vec<crate::node::Effect>,
        context: &mut Context<Self>,
    ) {
        for effect in effects {
            super::effects::run(self, node, effect, context);
        }
        let open = node.open_command().map(|command| command.id);
        self.child = self
            .child
            .take()
            .filter(|child| Some(child.command) == open);
    }

    /// The child for a command, started if it is not there.
    pub(super) fn child_for(&mut self, command: CommandId) -> &Addr<CommandActor> {
        let fits = self
            .child
            .as_ref()
            .is_some_and(|child| child.command == command && child.address.connected());
        if !fits {
            self.child = None;
        }
        &self
            .child
            .get_or_insert_with(|| {
                let arbiter = self.shared.registry.arbiter(self.id);
                CommandActor::start(self.shared.clone(), arbiter, self.id, command)
            })
            .address
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// What a change of the node means for an allocation.
fn allocation_link(before: &Node, after: &Node, removed: bool) -> Option<AllocationLink> {
    match (before.allocation, after.allocation) {
        (Some(ended), now) if removed || now.is_none() => Some(AllocationLink::Ended(ended)),
        (None, Some(taken)) => Some(AllocationLink::Taken(taken)),
        _ => None,
    }
}

impl Actor for NodeActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        if context.state() != ActorState::Running {
            // Its thread has ended before it could begin, and this is how actix drops it: there are no timers any more.
            return;
        }
        self.child = None;
        self.timer = None;
        self.rest = None;
        // All that is in flight is asked for anew.
        self.node = None;
        if let Some(trouble) = &mut self.trouble {
            trouble.forget();
        }
        self.is_liveness_put_off = false;
        self.is_committing = false;
        // Their time went with what came before.
        self.busy.give_up();
        let (quarantine, row) = self.start.as_mut().map_or((None, None), |start| {
            (start.quarantine.take(), start.row.take())
        });
        let first = match quarantine {
            Some(reason) => Event::Quarantined { reason },
            // For how long is known when the row is there.
            None => Event::Resumed { down_for_ms: 0 },
        };
        match row {
            Some(row) => self.found(row, Then::Take(first), context),
            None => self.load(Then::Take(first), context),
        }
    }
}

impl Supervised for NodeActor {}

impl Handler<Deliver> for NodeActor {
    type Result = ();

    fn handle(&mut self, deliver: Deliver, context: &mut Context<Self>) {
        self.taken += 1;
        if let Some(why) = self.store_is_down() {
            let told = Err(DeliverError::Unavailable(why.to_owned()));
            // Whoever asked may have gone.
            let _ = deliver.reply_to.send(told);
            return;
        }
        let mut event = deliver.event;
        if let (Event::Heartbeat(heartbeat), Some(token), Some(node)) =
            (&mut event, &deliver.token, &self.node)
        {
            heartbeat.token = self.shared.key.compare(node, token.as_deref());
            // The first certificate that comes is the only one from then on, so it must not be one that can never be used.
            let known = node.session.as_ref().map(|session| &session.certificate);
            if heartbeat.token == TokenMatch::Right
                && known != Some(&heartbeat.certificate)
                && let Some(pem) = &heartbeat.certificate
                && let Err(problem) = certificate_sha256(pem)
            {
                let field = "agent_verify_ca".to_owned();
                let refused = Refused::BadValue { field, problem };
                let _ = deliver.reply_to.send(Err(DeliverError::Refused(refused)));
                return;
            }
        }
        let reply_to = deliver.reply_to;
        let caller = |event: &Event| Caller::Waiting(Asking::new(event, reply_to));
        self.take(event, caller, context);
    }
}

impl Handler<Tell> for NodeActor {
    type Result = ();

    fn handle(&mut self, told: Tell, context: &mut Context<Self>) {
        if self.store_is_down().is_some() {
            self.trouble().held.push(told.0);
            return;
        }
        let is_deadline = matches!(told.0, Event::DeadlineReached);
        self.take(told.0, Caller::nobody, context);
        // Whatever is waited for now arms the timer when it is stored.
        if is_deadline && !context.waiting() {
            self.arm(context);
        }
    }
}
