//! The conductor of one node: an imitation of `crate::conductor`, rule by rule, around the very same core.
//!
//! ```text
//! mailbox ─▶ step ─┬─ refused, or nothing changed ─▶ effects ─▶ answer
//!                  ├─ a sign of life ─▶ state in memory ─▶ effects ─▶ answer; handed to the store every 5 s at most
//!                  └─ anything else ─▶ commit (the mailbox is held) ─▶ effects ─▶ answer
//! ```
//! What the real shell lets wait for a busy node is here an operator who comes again: to the core both are the same event, later.
//! Where the real shell changes, this has to follow; the pages to read side by side are `conductor/node_actor.rs` and
//! `conductor/command_actor.rs`. Requests to the agent leave through `network.rs`, driver calls through `machine.rs`.

use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::json;
use uuid::Uuid;

use super::checks::is_sign;
use super::child::{Child, Pauses};
use super::faults::Fault;
use super::queue::{CallAnswer, CallKind, Happening, Refusal};
use super::world::World;
use crate::command::CommandId;
use crate::node::inspection::Findings;
use crate::node::{
    Effect, Event, Heartbeat, Node, Now, PortId, Refused, Reply, Step, TokenMatch,
    after_trouble_with_the_store, is_sign_of_life, is_sign_worth_storing,
};
use crate::timestamp::Timestamp;

/// How often a running conductor notes that it lives.
const ALIVE_NOTED_EVERY_MS: i64 = 5_000;

/// One change handed to the writer.
#[derive(Debug)]
pub(super) struct Save {
    pub(super) node: Rc<Node>,
    pub(super) from_version: u64,
    /// None: a sign of life, for which nobody waits.
    pub(super) hold: Option<u64>,
    /// The writer will answer so whatever it does.
    pub(super) answer: Option<Refusal>,
    /// The database refuses it.
    pub(super) fails: bool,
}

/// Who is told what became of an event.
#[derive(Debug, Clone)]
pub(super) enum Caller {
    Nobody,
    Agent { process: u32, call: u64 },
    Operator,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) event: Event,
    /// With a heartbeat: the token as it came.
    token: Option<Option<String>>,
    caller: Caller,
}

impl Message {
    fn from_nobody(event: Event) -> Message {
        Message {
            event,
            token: None,
            caller: Caller::Nobody,
        }
    }
}

#[derive(Debug)]
pub(super) enum Then {
    Take(Event),
    GoOn,
    Retry { version: u64, event: Option<Event> },
}

/// What keeps the mailbox shut.
#[derive(Debug)]
pub(super) enum Hold {
    Loading(Then),
    Committing {
        number: u64,
        before: Rc<Node>,
        is_sign: bool,
        node: Rc<Node>,
        effects: Vec<Effect>,
        reply: Reply,
        event: Event,
        caller: Caller,
    },
}

#[derive(Debug)]
pub(super) struct Actor {
    pub(super) node: Option<Rc<Node>>,
    pub(super) seen: Option<Rc<Node>>,
    pub(super) held_since: Option<i64>,
    /// The store can't be used; what to do once the row is read.
    pub(super) store_down: Option<(u64, Then)>,
    pub(super) held: Vec<Event>,
    pub(super) stored_version: u64,
    pub(super) liveness_stored: Option<(i64, Option<Timestamp>)>,
    pub(super) mailbox: VecDeque<Message>,
    pub(super) hold: Option<Hold>,
    pub(super) timer: Option<(Timestamp, u64)>,
    pub(super) child: Option<Child>,
    pub(super) pauses: Pauses,
}

/// The conductor process as one node sees it.
#[derive(Debug)]
pub(super) struct Conductor {
    pub(super) is_up: bool,
    /// Counts lives of the node's actor; what belongs to an older one is void.
    pub(super) life: u32,
    /// Wall clock minus true time.
    pub(super) offset_ms: i64,
    /// Not before this true time will it be up again.
    pub(super) down_until: i64,
    pub(super) went_down_at: i64,
    /// Since when it notes that it is alive: since the nodes that waited have taken its absence off, so that it is not forgotten.
    notes_since: Option<i64>,
    /// Time that was nobody's silence, and the version of the row that does not know of it yet.
    untaken: (i64, u64),
    /// What the store holds as the last note of life, in wall time.
    alive_at: Timestamp,
    pub(super) actor: Option<Actor>,
    counter: u64,
    /// The store is gone until then, in true time.
    store_out_since: i64,
    store_out_until: i64,
    writer_free_at: i64,
    /// The row.
    pub(super) row: Rc<Node>,
}

impl Conductor {
    pub(super) fn new(row: Node, offset_ms: i64) -> Conductor {
        Conductor {
            is_up: true,
            life: 1,
            offset_ms,
            down_until: 0,
            went_down_at: 0,
            notes_since: Some(0),
            untaken: (0, 0),
            alive_at: Timestamp(offset_ms),
            actor: None,
            counter: 0,
            store_out_since: 0,
            store_out_until: 0,
            writer_free_at: 0,
            row: Rc::new(row),
        }
    }

    pub(super) fn wall(&self, at: i64) -> Timestamp {
        Timestamp(at + self.offset_ms)
    }

    /// The node as the actor has it, if it has nothing on its hands.
    pub(super) fn idle(&self) -> Option<&Rc<Node>> {
        let actor = self.actor.as_ref().filter(|_| self.is_up)?;
        let is_idle =
            actor.hold.is_none() && actor.mailbox.is_empty() && actor.store_down.is_none();
        actor.node.as_ref().filter(|_| is_idle)
    }

    /// True when a request is under way or a pause before one, for this command.
    pub(super) fn is_asking(&self, id: CommandId) -> bool {
        self.actor
            .as_ref()
            .and_then(|actor| actor.child.as_ref())
            .is_some_and(|child| {
                child.id == id && (child.busy.is_some() || child.waiting.is_some())
            })
    }

    /// The last version of the node that anybody has seen: the actor's, or the row.
    pub(super) fn latest(&self) -> &Rc<Node> {
        self.actor
            .as_ref()
            .and_then(|actor| actor.node.as_ref())
            .unwrap_or(&self.row)
    }

    /// For how long the store was gone, if that was a moment ago: what was seen meanwhile is lost with the process.
    fn lately_out(&self, at: i64) -> i64 {
        if self.store_out_until > 0 && at < self.store_out_until + 2 * ALIVE_NOTED_EVERY_MS {
            self.store_out_until - self.store_out_since
        } else {
            0
        }
    }

    /// What must still be taken off that version of the row.
    fn untaken(&self, version: u64) -> i64 {
        let (ms, of_version) = self.untaken;
        if of_version == version { ms } else { 0 }
    }

    /// When it could last note that it lives, if it would have at `at`.
    fn noted_alive(&self, at: i64) -> Timestamp {
        let Some(since) = self.notes_since else {
            return self.alive_at;
        };
        let at = since + (at - since) / ALIVE_NOTED_EVERY_MS * ALIVE_NOTED_EVERY_MS;
        if at >= self.store_out_since && at < self.store_out_until {
            let first = self.store_out_since.max(since);
            // Nothing was noted since it came up: what was noted before it is still there.
            return if first == since {
                self.alive_at
            } else {
                self.wall(first)
            };
        }
        self.wall(at)
    }

    /// The child of the node's actor, if it has one.
    pub(super) fn child(&mut self) -> Option<&mut Child> {
        self.actor.as_mut()?.child.as_mut()
    }

    pub(super) fn has_actor(&self) -> bool {
        self.actor.is_some()
    }

    pub(super) fn number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

impl World<'_> {
    // ---- coming and going ----

    /// The conductor is gone, until then at least.
    pub(super) fn conductor_goes(&mut self, until: i64, why: &str) {
        let at = self.now;
        self.trace(|| format!("conductor: gone ({why}) for {} ms", until - at));
        let was_up = self.conductor.is_up;
        if was_up {
            self.conductor.is_up = false;
            self.conductor.went_down_at = at;
            self.checks.excuse(self.conductor.lately_out(at));
            self.conductor.alive_at = self.conductor.noted_alive(at);
            self.actor_ends();
            self.tally.restarts += 1;
        }
        self.conductor.down_until = self.conductor.down_until.max(until);
        let until = self.conductor.down_until;
        self.queue.plan(until, Happening::ConductorUp);
    }

    /// Whatever the actor had on its hands is gone.
    fn actor_ends(&mut self) {
        let child = self.conductor.actor.take().and_then(|actor| actor.child);
        self.close_child(child);
        self.conductor.life += 1;
    }

    pub(super) fn conductor_comes(&mut self) {
        if self.conductor.is_up || self.now < self.conductor.down_until {
            return;
        }
        let conductor = &mut self.conductor;
        conductor.is_up = true;
        conductor.writer_free_at = self.now;
        let down_for_ms = conductor.wall(self.now).ms_since(conductor.alive_at);
        let really = self.now - conductor.went_down_at;
        self.checks.was_down(really);
        self.trace(|| format!("conductor: back, takes its absence for {down_for_ms} ms"));
        self.conductor.untaken = (down_for_ms, self.conductor.row.version);
        self.conductor.notes_since = None;
        self.queues_begin();
        if is_waiting(&self.conductor.row) {
            self.start_actor();
        } else {
            self.conductor.notes_since = Some(self.now);
        }
        self.queues_open();
    }

    fn start_actor(&mut self) {
        self.conductor.actor = Some(Actor {
            node: None,
            seen: None,
            held_since: None,
            store_down: None,
            held: Vec::new(),
            stored_version: 0,
            liveness_stored: None,
            mailbox: VecDeque::new(),
            hold: None,
            timer: None,
            child: None,
            pauses: Pauses::new(100, 5_000),
        });
        self.load(Then::Take(Event::Resumed { down_for_ms: 0 }));
    }

    pub(super) fn actor(&mut self) -> &mut Actor {
        self.conductor.actor.as_mut().expect("there is an actor")
    }

    /// The actor panics and is begun anew with the row.
    pub(super) fn actor_restarts(&mut self, why: &str) {
        if self.conductor.actor.is_none() {
            return;
        }
        self.trace(|| format!("actor: restarted ({why})"));
        self.tally.actor_restarts += 1;
        let held_since = self.actor().held_since;
        self.actor_ends();
        self.start_actor();
        self.actor().held_since = held_since;
    }

    fn load(&mut self, then: Then) {
        let took = self.random.between(1, 5);
        let at = self.now + took;
        let is_read = at < self.conductor.store_out_since || at >= self.conductor.store_out_until;
        let life = self.conductor.life;
        let actor = self.actor();
        actor.seen = actor.node.take().or_else(|| actor.seen.take());
        actor.hold = Some(Hold::Loading(then));
        self.queue.plan(at, Happening::Loaded { life, is_read });
    }

    /// Reads the row after a pause; meanwhile callers are told that the store is down.
    fn load_later(&mut self, then: Then) {
        let now = self.now;
        let number = self.conductor.number();
        let life = self.conductor.life;
        let random = &mut self.random;
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        actor.held_since.get_or_insert(now);
        actor.store_down = Some((number, then));
        let pause = actor.pauses.next_pause(random);
        // What is held now must not be taken for time that was lived through.
        self.conductor.alive_at = self.conductor.noted_alive(now);
        self.conductor.notes_since = None;
        self.queue
            .plan(now + pause, Happening::LoadsAgain { life, number });
    }

    pub(super) fn loads_again(&mut self, life: u32, number: u64) {
        if life != self.conductor.life {
            return;
        }
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        // It stays down until the row is read.
        if let Some((planned, then)) = &mut actor.store_down
            && *planned == number
        {
            let then = std::mem::replace(then, Then::GoOn);
            self.load(then);
        }
    }

    pub(super) fn loaded(&mut self, life: u32, is_read: bool) {
        if life != self.conductor.life {
            return;
        }
        let Some(Hold::Loading(then)) = self.actor().hold.take() else {
            return;
        };
        if !is_read {
            self.load_later(then);
            return self.pump();
        }
        let row = self.conductor.row.clone();
        let row = self.reread(&row);
        let forgets = self.setup.quirks.forgets_signs;
        let untaken = self.conductor.untaken(row.version);
        let event = match then {
            Then::Take(Event::Resumed { .. }) => Some(Event::Resumed {
                down_for_ms: untaken,
            }),
            Then::Take(event) => Some(event),
            Then::GoOn => None,
            Then::Retry { version, event } if version == row.version => event,
            Then::Retry { .. } => Some(Event::Resumed { down_for_ms: 0 }),
        };
        let now = self.now;
        let actor = self.actor();
        actor.stored_version = row.version;
        actor.store_down = None;
        let seen = actor.seen.take();
        let held_for = actor.held_since.take().map_or(0, |since| now - since);
        self.conductor.untaken = (untaken + held_for, row.version);
        if let Some(seen) = &seen
            && seen.version < row.version
        {
            // More was stored than the actor was told.
            let is_sign = seen.deadlines.liveness.is_some()
                && seen.deadlines.liveness < row.deadlines.liveness
                && seen.heard_at() < row.heard_at();
            self.became(seen, &row, is_sign);
        }
        let actor = self.actor();
        if forgets {
            actor.node = Some(row);
        } else {
            let version = row.version;
            let node = after_trouble_with_the_store((*row).clone(), seen.as_deref(), held_for);
            let node = Rc::new(node);
            actor.node = Some(node.clone());
            self.checks.was_held(held_for);
            // With an absence to be taken off, both are stored together.
            let is_absence =
                matches!(event, Some(Event::Resumed { down_for_ms }) if down_for_ms != 0);
            if node.version == version {
                self.notes_again();
            } else if !is_absence {
                self.actor().stored_version = node.version;
                self.save(node, version, None);
            }
        }
        self.arm();
        if let Some(event) = event {
            self.take(event, Caller::Nobody);
        }
        if let Some(actor) = &mut self.conductor.actor {
            let held = std::mem::take(&mut actor.held);
            actor
                .mailbox
                .extend(held.into_iter().map(Message::from_nobody));
        }
        if !self.setup.quirks.leaves_lost_turns {
            self.tell_claims();
        }
        self.pump();
    }

    /// The row is as it should be, so what passes from now on is lived through; unless the absence is still to be taken off.
    fn notes_again(&mut self) {
        if self.conductor.untaken(self.conductor.row.version).abs() < 1_000 {
            self.conductor.notes_since.get_or_insert(self.now);
        }
    }

    // ---- events ----

    /// An event from outside the conductor. False when the conductor can't be reached.
    pub(super) fn deliver(
        &mut self,
        event: Event,
        token: Option<Option<String>>,
        caller: Caller,
    ) -> bool {
        if !self.conductor.is_up {
            return false;
        }
        if self.conductor.actor.is_none() {
            self.start_actor();
        }
        self.actor().mailbox.push_back(Message {
            event,
            token,
            caller,
        });
        self.pump();
        true
    }

    pub(super) fn tell(&mut self, event: Event) {
        if let Some(actor) = &mut self.conductor.actor {
            actor.mailbox.push_back(Message::from_nobody(event));
            self.pump();
        }
    }

    fn pump(&mut self) {
        while let Some(actor) = &mut self.conductor.actor
            && actor.hold.is_none()
            && let Some(mut message) = actor.mailbox.pop_front()
        {
            if let (Event::Heartbeat(heartbeat), Some(token), Some(node)) =
                (&mut message.event, &message.token, &actor.node)
            {
                heartbeat.token = compare(node, token.as_deref());
            }
            if actor.store_down.is_some() {
                let timed = message.event == Event::DeadlineReached;
                match message.caller {
                    Caller::Nobody if timed => actor.timer = None,
                    Caller::Nobody => actor.held.push(message.event),
                    caller => self.fail_caller(caller, Some(message.event)),
                }
                continue;
            }
            // The timer's word is only good if it still is time.
            if message.event == Event::DeadlineReached && matches!(message.caller, Caller::Nobody) {
                self.timer_looks();
                continue;
            }
            self.take(message.event, message.caller);
        }
    }

    fn take(&mut self, event: Event, caller: Caller) {
        let Some(before) = self.actor().node.clone() else {
            return;
        };
        let name = event.name();
        let at = self.conductor.wall(self.now);
        let limits = self.setup.limits_of(self.number);
        let now = Now { at, limits };
        let step = (self.setup.step)(&before, event.clone(), now);
        self.stepped(name, &event, &before, &step, at);
        if matches!(step.reply, Reply::Refused(_)) {
            return self.answer(caller, &step.reply, &before);
        }
        let is_sign = is_sign(&event, &before, &step);
        if step.node == *before && !step.removed && step.history.is_empty() {
            self.became(&before, &before, is_sign);
            self.run_effects(&before, step.effects);
            return self.answer(caller, &step.reply, &before);
        }
        let Step {
            node,
            effects,
            reply,
            history,
            removed,
            ..
        } = step;
        let node = Rc::new(node);
        let from_version = self.actor().stored_version;
        if !removed && history.is_empty() && is_sign_of_life(&before, &node) {
            self.actor().node = Some(node.clone());
            self.became(&before, &node, is_sign);
            self.store_liveness(&node, from_version);
            self.arm();
            self.run_effects(&node, effects);
            return self.answer(caller, &reply, &node);
        }
        if self
            .injector
            .strikes_at(Fault::Crash, self.setup.crash_point_per_mille)
        {
            // What is asked for is lost with the process, before anything was stored.
            return self.crash_at_point("before a commit");
        }
        let number = self.conductor.number();
        self.actor().hold = Some(Hold::Committing {
            number,
            before,
            is_sign,
            node: node.clone(),
            effects,
            reply,
            event,
            caller,
        });
        self.save(node, from_version, Some(number));
    }

    fn save(&mut self, node: Rc<Node>, from_version: u64, hold: Option<u64>) {
        let mut save = Save {
            node,
            from_version,
            hold,
            answer: None,
            fails: false,
        };
        if self.injector.strikes(Fault::Store) {
            match self.injector.between(Fault::Store, 0, 9) {
                0..=2 => save.fails = true,
                3..=5 => save.answer = Some(Refusal::Unavailable),
                6..=7 => {
                    save.answer = Some(Refusal::Overloaded);
                    save.fails = true;
                }
                _ => {
                    let out = self.injector.between(Fault::Store, 1_000, 900_000);
                    self.conductor.store_out_since = self.now;
                    self.conductor.store_out_until = self.now + out;
                    self.trace(|| format!("store: gone for {out} ms"));
                }
            }
        }
        let latency = self.random.between(1, 12);
        let at = self.conductor.writer_free_at.max(self.now + latency);
        self.conductor.writer_free_at = at;
        let life = self.conductor.life;
        let save = Box::new(save);
        self.queue.plan(at, Happening::Applied { life, save });
    }

    pub(super) fn applied(&mut self, life: u32, save: Save) {
        // A killed process carries nothing out any more; an actor that was begun anew has not taken its saves back.
        if life != self.conductor.life && !self.conductor.is_up {
            return;
        }
        let is_out = self.now < self.conductor.store_out_until;
        let refused = if save.fails || is_out {
            Some(Refusal::Unavailable)
        } else if self.conductor.row.version != save.from_version {
            Some(Refusal::Conflict)
        } else {
            let is_checked = save.hold.is_some();
            self.stored(&save.node, is_checked);
            self.conductor.row = save.node;
            self.look_at_turns();
            let actor = self.conductor.actor.as_ref();
            if actor.is_none_or(|actor| actor.held_since.is_none()) {
                self.conductor.notes_since.get_or_insert(self.now);
            }
            None
        };
        let refused = save.answer.or(refused);
        let at = self.now + self.random.between(0, 2);
        if let Some(hold) = save.hold {
            self.queue.plan(
                at,
                Happening::Committed {
                    life,
                    hold,
                    refused,
                },
            );
        } else if refused.is_some() && !self.setup.quirks.leaves_failed_signs {
            self.queue.plan(at, Happening::SignNotStored { life });
        }
    }

    /// A sign of life could not be stored: the row is older than was counted on.
    pub(super) fn sign_not_stored(&mut self, life: u32) {
        if life != self.conductor.life {
            return;
        }
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        if actor.hold.is_some() {
            // Looked at when the commit is over, as all of the actor's own futures.
            let at = self.now + 1;
            return self.queue.plan(at, Happening::SignNotStored { life });
        }
        if actor.store_down.is_none() {
            self.load(Then::GoOn);
        }
    }

    pub(super) fn committed(&mut self, life: u32, hold: u64, refused: Option<Refusal>) {
        if life != self.conductor.life {
            return;
        }
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        let is_it = matches!(&actor.hold, Some(Hold::Committing { number, .. }) if *number == hold);
        if !is_it {
            return;
        }
        let Some(Hold::Committing {
            before,
            is_sign,
            node,
            effects,
            reply,
            event,
            caller,
            ..
        }) = actor.hold.take()
        else {
            return;
        };
        if let Some(refusal) = refused {
            self.not_stored(refusal, event, caller);
            return self.pump();
        }
        actor.pauses.reset();
        actor.stored_version = node.version;
        actor.node = Some(node.clone());
        self.became(&before, &node, is_sign);
        if self
            .injector
            .strikes_at(Fault::Crash, self.setup.crash_point_per_mille)
        {
            return self.crash_at_point("after a commit, before its effects");
        }
        self.arm();
        self.run_effects(&node, effects);
        self.answer(caller, &reply, &node);
        self.tell_claims();
        self.pump();
    }

    fn not_stored(&mut self, refusal: Refusal, event: Event, caller: Caller) {
        self.trace(|| format!("store: {} was not stored ({refusal:?})", event.name()));
        self.tally.not_stored += 1;
        let version = self.actor().stored_version;
        match caller {
            Caller::Nobody => {
                let event = Some(event);
                self.load_later(Then::Retry { version, event });
            }
            caller => {
                self.fail_caller(caller, Some(event));
                if refusal != Refusal::Overloaded {
                    let event = None;
                    self.load(Then::Retry { version, event });
                }
            }
        }
    }

    fn store_liveness(&mut self, node: &Rc<Node>, from_version: u64) {
        let now = self.now;
        let actor = self.actor();
        let heard_at = node.heard_at();
        let is_recent = actor
            .liveness_stored
            .is_some_and(|(at, heard)| !is_sign_worth_storing(node, heard, now - at));
        if is_recent {
            return;
        }
        actor.liveness_stored = Some((now, heard_at));
        actor.stored_version = node.version;
        self.save(node.clone(), from_version, None);
    }

    fn answer(&mut self, caller: Caller, reply: &Reply, node: &Node) {
        let Caller::Agent { process, call } = caller else {
            return;
        };
        let answer = match (reply, &node.session) {
            (Reply::Refused(Refused::NotInspecting), _) => CallAnswer::NotWanted,
            (Reply::Refused(_) | Reply::TokenLater, _) => CallAnswer::Failed,
            (Reply::Token { masked: false }, Some(session)) => {
                CallAnswer::Token(Some(session.nonce.clone()))
            }
            (Reply::Token { .. }, _) => CallAnswer::Token(None),
            (Reply::Done | Reply::PortCreated(_), _) => CallAnswer::Taken,
        };
        self.answer_call(process, call, answer);
    }

    /// The caller gets a 503.
    pub(super) fn fail_caller(&mut self, caller: Caller, event: Option<Event>) {
        match (caller, event) {
            (Caller::Agent { process, call }, _) => {
                self.answer_call(process, call, CallAnswer::Failed);
            }
            (Caller::Operator, Some(event)) => {
                let at = self.now + self.random.between(5_000, 60_000);
                self.queue
                    .plan(at, Happening::OperatorAgain(Box::new(event)));
            }
            (Caller::Operator | Caller::Nobody, _) => {}
        }
    }

    // ---- the timer ----

    fn arm(&mut self) {
        let now = self.now;
        let wall = self.conductor.wall(now);
        let number = self.conductor.number();
        let life = self.conductor.life;
        let actor = self.actor();
        let next = actor
            .node
            .as_ref()
            .filter(|node| node.quarantine.is_none())
            .and_then(|node| node.next_deadline());
        let Some(next) = next else {
            actor.timer = None;
            return;
        };
        if actor.timer.is_some_and(|(armed_for, _)| armed_for <= next) {
            return;
        }
        actor.timer = Some((next, number));
        let wait = next.ms_since(wall).max(0);
        // Timers are up to a few milliseconds late.
        let at = now + wait + self.random.between(0, 3);
        self.queue.plan(
            at,
            Happening::TimerFires {
                life,
                armed: number,
            },
        );
        self.watch_from(at);
    }

    pub(super) fn timer_fires(&mut self, life: u32, armed: u64) {
        if life != self.conductor.life {
            return;
        }
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        if actor.timer.is_none_or(|(_, number)| number != armed) {
            return;
        }
        // While a commit is awaited, timers wait too, behind the mailbox.
        self.tell(Event::DeadlineReached);
    }

    fn timer_looks(&mut self) {
        let wall = self.conductor.wall(self.now);
        let actor = self.actor();
        actor.timer = None;
        let is_due = actor
            .node
            .as_ref()
            .and_then(|node| node.next_deadline())
            .is_some_and(|deadline| deadline <= wall);
        if is_due {
            self.take(Event::DeadlineReached, Caller::Nobody);
        }
        if self.conductor.actor.is_some() {
            self.arm();
        }
    }

    // ---- calls from the ramdisk ----

    pub(super) fn call_taken(&mut self, process: u32, call: u64, what: CallKind) {
        let caller = Caller::Agent { process, call };
        let (event, token) = match what {
            CallKind::Findings => (Event::Inspected(Box::new(self.findings())), None),
            CallKind::Lookup => {
                let fresh_nonce = format!("nonce-{}", self.conductor.number());
                (Event::Lookup { fresh_nonce }, None)
            }
            CallKind::Heartbeat {
                url,
                certificate,
                token,
            } => {
                let heartbeat = Heartbeat {
                    callback_url: url,
                    agent_version: Some("13.0.0".to_owned()),
                    certificate,
                    token: TokenMatch::Wrong,
                };
                (Event::Heartbeat(heartbeat), Some(token))
            }
        };
        if !self.deliver(event, token, caller.clone()) {
            self.fail_caller(caller, None);
        }
    }
}

impl World<'_> {
    /// What the agent of this machine tells.
    fn findings(&mut self) -> Findings {
        let address = format!("52:54:00:00:{:02x}:01", self.number % 250);
        let data = json!({
            "inventory": {
                "interfaces": [{"name": "eth0", "mac_address": address}],
                "cpu": {"architecture": "x86_64"},
            },
            "error": null,
        });
        let number = self.conductor.number();
        Findings {
            data: data.as_object().cloned().unwrap_or_default(),
            fresh_ids: vec![PortId(Uuid::from_u128(u128::from(number) << 64))],
            ..Findings::default()
        }
    }
}

fn compare(node: &Node, token: Option<&str>) -> TokenMatch {
    match (token, &node.session) {
        (None, _) => TokenMatch::Missing,
        (Some(token), Some(session)) if session.nonce == token => TokenMatch::Right,
        (Some(_), _) => TokenMatch::Wrong,
    }
}

/// True for rows that get their actor back at start.
fn is_waiting(node: &Node) -> bool {
    node.next_deadline().is_some()
        || node.open_command().is_some()
        || node.driver_call.is_some()
        || node.is_at_work()
}
