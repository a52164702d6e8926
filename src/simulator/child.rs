//! The effects of one node: the child that talks to its agent, one request at a time, at the pace the core names.
//!
//! Imitates `conductor/effects.rs` and `conductor/command_actor.rs`, and has to follow them.

use std::rc::Rc;

use super::faults::Fault;
use super::queue::{Happening, Waiting};
use super::random::Random;
use super::world::World;
use crate::command::{self, CommandId, Pace, Phase, Request};
use crate::node::{Effect, Event, Node};

/// As in the real actor.
const POLL_SHORTEST_MS: i64 = 250;
const POLL_LONGEST_MS: i64 = 10_000;
const POLL_AGE_DIVISOR: i64 = 8;

/// A request to the agent, ready to go.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) id: CommandId,
    pub(super) attempt: u32,
    pub(super) effect: command::Effect,
    pub(super) url: String,
    pub(super) certificate: Option<String>,
    pub(super) token: String,
    pub(super) agent_id: Option<String>,
    pub(super) request: Option<(Request, String)>,
}

/// The child that talks to the agent.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) id: CommandId,
    pub(super) since: i64,
    pub(super) failures: Pauses,
    pub(super) waiting: Option<Waiting>,
    pub(super) busy: Option<(u64, u32)>,
    /// To be done when the request under way is answered.
    pub(super) next: Option<Job>,
}

/// Pauses that double, each varied by a quarter.
#[derive(Debug)]
pub(super) struct Pauses {
    first: i64,
    longest: i64,
    next: i64,
}

impl Pauses {
    pub(super) fn new(first: i64, longest: i64) -> Pauses {
        Pauses {
            first,
            longest,
            next: first,
        }
    }

    pub(super) fn next_pause(&mut self, random: &mut Random) -> i64 {
        let pause = self.next;
        self.next = (self.next * 2).min(self.longest);
        random.between(pause * 3 / 4, pause * 5 / 4)
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

impl World<'_> {
    pub(super) fn run_effects(&mut self, node: &Rc<Node>, effects: Vec<Effect>) {
        for effect in effects {
            if self.conductor.actor.is_none() {
                return;
            }
            match effect {
                Effect::Command {
                    id,
                    attempt,
                    effect,
                } => self.ask_agent(node, id, attempt, effect),
                Effect::Driver(call) => self.call_driver(call),
            }
        }
        let open = node.open_command().map(|command| command.id);
        let Some(actor) = &mut self.conductor.actor else {
            return;
        };
        if actor
            .child
            .as_ref()
            .is_some_and(|child| Some(child.id) != open)
        {
            let child = actor.child.take();
            self.close_child(child);
        }
    }

    pub(super) fn close_child(&mut self, child: Option<Child>) {
        if let Some((ask, _)) = child.and_then(|child| child.busy) {
            self.ask_closed(ask);
        }
    }

    pub(super) fn ask_agent(
        &mut self,
        node: &Node,
        id: CommandId,
        attempt: u32,
        effect: command::Effect,
    ) {
        let (Some(command), Some(session)) = (node.open_command(), &node.session) else {
            return;
        };
        let Some(url) = session.callback_url.clone() else {
            return;
        };
        if command.id != id {
            return;
        }
        let agent_id = match &command.phase {
            Phase::Accepted { agent_id, .. } => Some(agent_id.clone()),
            _ => None,
        };
        let request = (effect == command::Effect::Post)
            .then(|| (command.request.clone(), node.operation_id(id)));
        let job = Job {
            id,
            attempt,
            effect,
            url,
            certificate: session.certificate.clone(),
            token: session.nonce.clone(),
            agent_id,
            request,
        };
        let now = self.now;
        let actor = self.actor();
        if actor.child.as_ref().is_none_or(|child| child.id != id) {
            let child = actor.child.take();
            self.close_child(child);
            self.actor().child = Some(Child {
                id,
                since: now,
                failures: Pauses::new(500, 15_000),
                waiting: None,
                busy: None,
                next: None,
            });
        }
        self.do_job(job);
    }

    /// The child's handler.
    pub(super) fn do_job(&mut self, job: Job) {
        let Some(child) = self.conductor.child() else {
            return;
        };
        if child.busy.is_some() {
            child.next = Some(job);
            return;
        }
        self.plan_job(job);
    }

    /// Begins with `job`, now or after the pause it asks for; what was planned before it is no longer wanted.
    pub(super) fn plan_job(&mut self, job: Job) {
        let now = self.now;
        let random = &mut self.random;
        let Some(child) = self.conductor.child() else {
            return;
        };
        child.waiting = None;
        let delay = match job.effect {
            command::Effect::Post => 0,
            command::Effect::Survey(pace) | command::Effect::Poll(pace) => match pace {
                Pace::Now => 0,
                Pace::Interval => {
                    child.failures.reset();
                    ((now - child.since) / POLL_AGE_DIVISOR)
                        .clamp(POLL_SHORTEST_MS, POLL_LONGEST_MS)
                }
                Pace::Backoff => child.failures.next_pause(random),
            },
        };
        if delay == 0 {
            return self.request(job);
        }
        let number = self.conductor.number();
        let life = self.conductor.life;
        let child = self.conductor.child();
        if let Some(child) = child {
            child.waiting = Some(Waiting { number, job });
        }
        let at = now + delay;
        self.queue
            .plan(at, Happening::PauseEnds { life, job: number });
    }

    pub(super) fn pause_ends(&mut self, life: u32, job: u64) {
        if life != self.conductor.life {
            return;
        }
        let Some(child) = self.conductor.child() else {
            return;
        };
        if child
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.number == job)
            && let Some(waiting) = child.waiting.take()
        {
            self.request(waiting.job);
        }
    }

    pub(super) fn request(&mut self, job: Job) {
        let ask = self.conductor.number();
        let is_post = job.effect == command::Effect::Post;
        if let Some(child) = self.conductor.child() {
            child.busy = Some((ask, job.attempt));
        }
        self.send_request(ask, job);
        if is_post
            && self
                .injector
                .strikes_at(Fault::Crash, self.setup.crash_point_per_mille)
        {
            self.crash_at_point("after a POST left");
        }
    }

    pub(super) fn answered(&mut self, life: u32, ask: u64, event: command::Event) {
        if life != self.conductor.life {
            return;
        }
        let Some(child) = self.conductor.child() else {
            return;
        };
        let Some((current, attempt)) = child.busy else {
            return;
        };
        if current != ask {
            return;
        }
        child.busy = None;
        let id = child.id;
        let next = child.next.take();
        self.ask_closed(ask);
        if let Some(next) = next {
            self.plan_job(next);
        }
        self.tell(Event::Command { id, attempt, event });
    }

    pub(super) fn crash_at_point(&mut self, what: &str) {
        if self.injector.between(Fault::Crash, 0, 3) == 0 {
            return self.actor_restarts(what);
        }
        let away = self.injector.between(Fault::Crash, 200, 20_000);
        self.tally.crash_points += 1;
        self.conductor_goes(self.now + away, what);
    }
}
