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
use serde_json::Value;
use tokio::sync::watch;

use super::calls::{Kind, Turn};
use super::measure;
use super::node_actor::{NodeActor, Tell};
use super::shared::{OneMore, Shared};
use super::supervise::{self, Watcher};
use crate::agent::Target;
use crate::command::{self, CommandId, Effect, Pace, Refusal, Unreadable};
use crate::node::{Event, NodeId};
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
    pub(super) target: Target,
    /// Id to poll, for [`Effect::Poll`].
    pub(super) agent_id: Option<String>,
    /// Body and whether the agent answers only when it has ended, for [`Effect::Post`].
    pub(super) body: Option<(Result<Value, String>, bool)>,
}

pub(super) struct CommandActor {
    shared: Arc<Shared>,
    node: NodeId,
    command: CommandId,
    parent: Addr<NodeActor>,
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
    /// Closed when the node lets go of this actor.
    leash: watch::Receiver<()>,
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
    _leash: watch::Sender<()>,
}

impl CommandActor {
    pub(super) fn start(
        shared: Arc<Shared>,
        arbiter: &ArbiterHandle,
        node: NodeId,
        command: CommandId,
        parent: Addr<NodeActor>,
    ) -> Child {
        let watcher = CommandWatcher {
            shared: shared.clone(),
            node,
            command,
            parent: parent.clone(),
        };
        let intensity = shared.settings.intensity;
        let (hold, leash) = watch::channel(());
        let address = supervise::start(arbiter, 8, intensity, move |_| {
            let actor = CommandActor {
                _in_progress: shared.calls.begin(),
                shared,
                node,
                command,
                parent,
                since: Instant::now(),
                failures: Pauses::new(Duration::from_millis(500), Duration::from_secs(15)),
                waiting: None,
                queued: None,
                busy: false,
                next: None,
                leash,
            };
            (actor, watcher)
        });
        Child {
            command,
            address,
            _leash: hold,
        }
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
        let agents = self.shared.agents.clone();
        let attempt = job.attempt;
        let (node, id) = (self.node, self.command);
        let asking = async move {
            let event = ask(&agents, job).await;
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
            // The parent's mailbox lives as long as the node; this address has a place of its own in it.
            actor.parent.do_send(Tell(event));
            if let Some(next) = actor.next.take() {
                actor.begin(next, context);
            }
        });
        context.spawn(asking);
    }
}

async fn ask(agents: &crate::agent::AgentClient, job: Do) -> command::Event {
    match job.effect {
        Effect::Survey(_) => match agents.survey(&job.target).await {
            Ok((instance, entries)) => command::Event::Surveyed { instance, entries },
            Err(why) => command::Event::SurveyFailed(why),
        },
        Effect::Poll(_) => {
            let Some(agent_id) = job.agent_id else {
                return command::Event::PollFailed(Unreadable::NotFound);
            };
            match agents.poll(&job.target, &agent_id).await {
                Ok(entry) => command::Event::Polled(entry),
                Err(why) => command::Event::PollFailed(why),
            }
        }
        Effect::Post => {
            let (body, wait) = match job.body {
                Some((Ok(body), wait)) => (body, wait),
                Some((Err(text), _)) => {
                    let refusal = Refusal::Invalid { status: 0, text };
                    return command::Event::Posted(command::PostAnswer::Refused(refusal));
                }
                None => {
                    return command::Event::Posted(command::PostAnswer::NeverSent {
                        why: "the command had no body".to_owned(),
                    });
                }
            };
            command::Event::Posted(agents.post(&job.target, wait, &body).await)
        }
    }
}

/// What an answer was, without its contents: those may hold secrets.
fn brief(event: &command::Event) -> String {
    match event {
        command::Event::Surveyed { entries, .. } => format!("{} commands listed", entries.len()),
        command::Event::SurveyFailed(why) | command::Event::PollFailed(why) => why.to_string(),
        command::Event::Posted(command::PostAnswer::Accepted(entry)) => {
            format!("accepted as {}", entry.id)
        }
        command::Event::Posted(command::PostAnswer::Refused(why)) => why.to_string(),
        command::Event::Posted(command::PostAnswer::NeverSent { why }) => {
            format!("never sent: {why}")
        }
        command::Event::Posted(command::PostAnswer::Unknown { why }) => {
            format!("no clear answer: {why}")
        }
        command::Event::Polled(entry) => format!("{} is {:?}", entry.id, entry.status),
        command::Event::Hint => "hint".to_owned(),
        command::Event::Recovered => "recovered".to_owned(),
    }
}

impl Actor for CommandActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        let mut leash = self.leash.clone();
        // Nothing is ever sent: it returns when the node has let go.
        let let_go = async move { leash.changed().await.is_err() }.into_actor(self);
        context.spawn(let_go.map(|_, _, context| context.stop()));
    }
}

impl Supervised for CommandActor {
    fn restarting(&mut self, _: &mut Context<Self>) {
        // Whatever was under way is gone with the old context; the node finds out by reading the agent.
        self.waiting = None;
        self.queued = None;
        self.busy = false;
        self.next = None;
        self.parent.do_send(Tell(Event::Resumed { down_for_ms: 0 }));
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

/// Tells the node when its child gave up.
struct CommandWatcher {
    shared: Arc<Shared>,
    node: NodeId,
    command: CommandId,
    parent: Addr<NodeActor>,
}

impl Watcher for CommandWatcher {
    fn restarted(&self, cause: &str) {
        measure::restarted(&self.shared.metrics, "command");
        tracing::error!(node.id = %self.node, command.id = %self.command, cause, "a command's actor panicked and is restarted");
    }

    fn gave_up(&self, cause: &str) {
        tracing::error!(node.id = %self.node, command.id = %self.command, cause, "a command's actor panicked too often; the node is quarantined");
        self.parent.do_send(Tell(Event::Quarantined {
            reason: format!("talking to the agent: {cause}"),
        }));
    }
}
