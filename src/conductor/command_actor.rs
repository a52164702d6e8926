//! The child of a node's actor that talks to the agent for one open command: one request at a time, at the pace the core names.
//!
//! It decides nothing and remembers nothing that matters: the ledger entry in the node's row is the memory. Every answer goes to
//! the node's actor, marked with the command and the dispatch it belongs to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, ArbiterHandle, AsyncContext as _, Context,
    Handler, Message, SpawnHandle, Supervised, WrapFuture as _,
};

use super::calls::{Kind, Turn};
use super::measure;
use super::shared::{OneMore, Shared};
use super::supervise::{self, Intensity, Watcher};
use crate::agent::{Target, command_body};
use crate::command::{self, CommandId, Effect, Pace, Phase, PostAnswer, Refusal, Unreadable};
use crate::node::{Event, Node, NodeId};
use crate::retry::Pauses;

/// The shortest pause between two looks at a running command; it grows with the command's age.
const POLL_SHORTEST: Duration = Duration::from_millis(250);
/// A command that has run for eight seconds is looked at every second, one of eighty every ten.
const POLL_AGE_DIVISOR: u32 = 8;

/// Something to do for the command, once.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Do {
    pub(super) attempt: u32,
    pub(super) effect: Effect,
    /// The node as it was when this was decided: where its agent is, and what is asked, are read off it when the time has come.
    pub(super) node: Arc<Node>,
}

/// The node lets go of this actor: it ends, with whatever is under way.
#[derive(Message)]
#[rtype(result = "()")]
struct LetGo;

pub(super) struct CommandActor {
    shared: Arc<Shared>,
    node: NodeId,
    command: CommandId,
    since: Instant,
    failures: Pauses,
    /// A request that has not begun yet.
    waiting: Option<SpawnHandle>,
    /// A request that waits for its turn.
    queued: Option<Queued>,
    /// A request is under way.
    busy: bool,
    /// Asked for meanwhile; begun when that request has ended. The newest counts.
    next: Option<Do>,
    _in_progress: OneMore,
}

/// What is to be done when the turn comes. A newer wish takes the place in the queue over.
struct Queued {
    kind: Kind,
    handle: SpawnHandle,
    job: Do,
}

/// A node's hold on the actor of its open command. Dropping it ends the actor and closes the connection of a request that is
/// under way, so that nothing arrives at the agent any more once the node has begun to find out what did.
pub(super) struct Child {
    pub(super) command: CommandId,
    pub(super) address: Addr<CommandActor>,
}

impl Drop for Child {
    fn drop(&mut self) {
        self.address.do_send(LetGo);
    }
}

impl CommandActor {
    pub(super) fn start(
        shared: Arc<Shared>,
        arbiter: &ArbiterHandle,
        node: NodeId,
        command: CommandId,
    ) -> Child {
        let watcher = CommandWatcher {
            shared: shared.clone(),
            node,
            command,
        };
        let address = supervise::start(arbiter, 8, move |_| {
            let actor = CommandActor {
                _in_progress: shared.calls.begin(),
                shared,
                node,
                command,
                since: Instant::now(),
                failures: Pauses::new(Duration::from_millis(500), Duration::from_secs(15)),
                waiting: None,
                queued: None,
                busy: false,
                next: None,
            };
            (actor, watcher)
        });
        Child { command, address }
    }

    /// Does what was asked for, at its pace, in place of what was to be done before.
    fn begin(&mut self, job: Do, context: &mut Context<Self>) {
        if let Some(waiting) = self.waiting.take() {
            context.cancel_future(waiting);
        }
        let delay = match job.effect {
            Effect::Survey(_) | Effect::Poll(_) if self.shared.draining.load(Ordering::Acquire) => {
                return;
            }
            Effect::Survey(pace) | Effect::Poll(pace) => self.delay(pace),
            Effect::Post => Duration::ZERO,
        };
        if delay.is_zero() {
            return self.request(job, context);
        }
        self.leave_queue(context);
        self.waiting =
            Some(context.run_later(delay, move |actor, context| actor.request(job, context)));
    }

    fn delay(&mut self, pace: Pace) -> Duration {
        match pace {
            Pace::Now => Duration::ZERO,
            Pace::Interval => {
                self.failures.reset();
                let longest = Duration::from_millis(self.shared.settings.poll_interval_max_ms);
                (self.since.elapsed() / POLL_AGE_DIVISOR)
                    .max(POLL_SHORTEST)
                    .max(self.shared.calls.pause_between_looks())
                    .min(longest.max(POLL_SHORTEST))
            }
            Pace::Backoff => self.failures.next_pause(),
        }
    }

    /// Does it as soon as there is a turn.
    fn request(&mut self, job: Do, context: &mut Context<Self>) {
        self.waiting = None;
        let kind = Kind::of(&job.effect);
        if let Some(queued) = &mut self.queued
            && queued.kind == kind
        {
            queued.job = job;
            return;
        }
        self.leave_queue(context);
        if let Some(turn) = self.shared.calls.try_turn(kind) {
            return self.ask(job, turn, context);
        }
        let shared = self.shared.clone();
        let waiting = async move { shared.calls.turn(kind).await }.into_actor(self);
        let handle = context.spawn(waiting.map(|turn, actor, context| {
            let Some(queued) = actor.queued.take() else {
                return;
            };
            let is_look = !matches!(queued.job.effect, Effect::Post);
            if is_look && actor.shared.draining.load(Ordering::Acquire) {
                return;
            }
            actor.ask(queued.job, turn, context);
        }));
        self.queued = Some(Queued { kind, handle, job });
    }

    fn leave_queue(&mut self, context: &mut Context<Self>) {
        if let Some(queued) = self.queued.take() {
            context.cancel_future(queued.handle);
        }
    }

    fn ask(&mut self, job: Do, turn: Turn, context: &mut Context<Self>) {
        self.busy = true;
        let shared = self.shared.clone();
        let attempt = job.attempt;
        let (node, id) = (self.node, self.command);
        let asking = async move {
            let event = ask(&shared, job).await;
            drop(turn);
            tracing::debug!(node.id = %node, command.id = %id, attempt, answer = ?brief(&event), "asked the agent");
            event
        };
        let asking = asking.into_actor(self).map(move |event, actor, context| {
            actor.busy = false;
            let event = Event::Command {
                id: actor.command,
                attempt,
                event,
            };
            actor.shared.registry.tell(actor.node, event);
            if let Some(next) = actor.next.take() {
                actor.begin(next, context);
            }
        });
        context.spawn(asking);
    }
}

async fn ask(shared: &Shared, job: Do) -> command::Event {
    let node = &*job.node;
    let agent = node.session.as_ref().and_then(|session| {
        Some(Target {
            callback_url: session.callback_url.clone()?,
            certificate: session.certificate.clone(),
            token: shared.key.token(node.id, &session.nonce),
        })
    });
    let (Some(target), Some(command)) = (agent, node.open_command()) else {
        return nobody_to_ask(&job.effect);
    };
    match job.effect {
        Effect::Survey(_) => match shared.agents.survey(&target).await {
            Ok((instance, entries)) => command::Event::Surveyed { instance, entries },
            Err(why) => command::Event::SurveyFailed(why),
        },
        Effect::Poll(_) => {
            let Phase::Accepted { agent_id, .. } = &command.phase else {
                return command::Event::PollFailed(Unreadable::NotFound);
            };
            match shared.agents.poll(&target, agent_id).await {
                Ok(entry) => command::Event::Polled(entry),
                Err(why) => command::Event::PollFailed(why),
            }
        }
        Effect::Post => {
            let answer = match command_body(node, command) {
                Ok(body) => {
                    let wait = command.request.is_synchronous();
                    shared.agents.post(&target, wait, &body).await
                }
                Err(text) => PostAnswer::Refused(Refusal::Invalid { status: 0, text }),
            };
            command::Event::Posted(answer)
        }
    }
}

/// What comes of asking where there is no agent, or nothing to ask for.
fn nobody_to_ask(effect: &Effect) -> command::Event {
    let why = "the node has no agent, or no open command".to_owned();
    match effect {
        Effect::Survey(_) => command::Event::SurveyFailed(Unreadable::Unreachable { why }),
        Effect::Poll(_) => command::Event::PollFailed(Unreadable::Unreachable { why }),
        Effect::Post => command::Event::Posted(PostAnswer::NeverSent { why }),
    }
}

/// What an answer was, without its contents: those may hold secrets.
fn brief(event: &command::Event) -> String {
    match event {
        command::Event::Surveyed { entries, .. } => format!("{} commands listed", entries.len()),
        command::Event::SurveyFailed(why) | command::Event::PollFailed(why) => why.to_string(),
        command::Event::Posted(PostAnswer::Accepted(entry)) => {
            format!("accepted as {}", entry.id)
        }
        command::Event::Posted(PostAnswer::Refused(why)) => why.to_string(),
        command::Event::Posted(PostAnswer::NeverSent { why }) => {
            format!("never sent: {why}")
        }
        command::Event::Posted(PostAnswer::Unknown { why }) => {
            format!("no clear answer: {why}")
        }
        command::Event::Polled(entry) => format!("{} is {:?}", entry.id, entry.status),
        command::Event::Hint => "hint".to_owned(),
        command::Event::Recovered => "recovered".to_owned(),
    }
}

impl Actor for CommandActor {
    type Context = Context<Self>;
}

impl Supervised for CommandActor {
    fn restarting(&mut self, _: &mut Context<Self>) {
        // Whatever was under way is gone with the old context; the node finds out by reading the agent.
        self.waiting = None;
        self.queued = None;
        self.busy = false;
        self.next = None;
        let event = Event::Resumed { down_for_ms: 0 };
        self.shared.registry.tell(self.node, event);
    }
}

impl Handler<Do> for CommandActor {
    type Result = ();

    fn handle(&mut self, job: Do, context: &mut Context<Self>) {
        if self.busy {
            // Not dropped: the answer to the request under way may be of no use to what the command has become since.
            self.next = Some(job);
            return;
        }
        self.begin(job, context);
    }
}

impl Handler<LetGo> for CommandActor {
    type Result = ();

    fn handle(&mut self, _: LetGo, context: &mut Context<Self>) {
        context.stop();
    }
}

/// Tells the node when its child gave up.
struct CommandWatcher {
    shared: Arc<Shared>,
    node: NodeId,
    command: CommandId,
}

impl Watcher for CommandWatcher {
    fn intensity(&self) -> Intensity {
        self.shared.settings.intensity
    }

    fn restarted(&self, cause: &str) {
        measure::restarted(&self.shared.metrics, "command");
        tracing::error!(node.id = %self.node, command.id = %self.command, cause, "a command's actor panicked and is restarted");
    }

    fn gave_up(&self, cause: &str) {
        tracing::error!(node.id = %self.node, command.id = %self.command, cause, "a command's actor panicked too often; the node is quarantined");
        let reason = format!("talking to the agent: {cause}");
        let event = Event::Quarantined { reason };
        self.shared.registry.tell(self.node, event);
    }
}
