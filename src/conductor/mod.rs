//! Carries events to nodes and their effects away: the only part that knows actors.
//!
//! ```text
//! Conductor ─ registry ─┬─ supervise(NodeActor) ── supervise(CommandActor)      one per node, one per open command
//!                       └─ ...
//!           ─ recover     at start: every waiting row gets its actor back
//!           ─ allocator   finds nodes for allocations
//!           ─ turns       whose turn it is, where only so many may do the same at once
//!           ─ records     objects that have no actor
//! ```
//! The HTTP side calls [`Conductor::deliver`] and its siblings; node actors call `crate::node::step`, the store, the drivers and
//! the agent client. Nothing here decides what becomes of a node.

mod allocator;
mod busy;
mod calls;
mod command_actor;
mod effects;
mod measure;
mod node_actor;
mod overload;
mod records;
mod recover;
mod registry;
mod shared;
pub mod supervise;
mod token;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use actix::{Addr, Arbiter};
use tokio::sync::{oneshot, watch};

pub use self::busy::Busy;
pub use self::shared::Settings;
pub use self::token::{MASKED, TokenKey};

use self::allocator::Allocator;
use self::calls::Calls;
use self::node_actor::{Deliver, Start};
use self::overload::Overload;
use self::registry::{Registry, Undelivered};
use self::shared::Shared;
use self::turns::Turns;
use crate::agent::AgentClient;
use crate::clock::Clock;
use crate::driver::Drivers;
use crate::node::{Event, Heartbeat, Node, NodeId, Refused, Reply, TokenMatch, Waiting};
use crate::observe::metrics::Metrics;
use crate::store::{Change, Ident, ReadError, Reader, Save, SaveError, Writer};
use crate::timestamp::Timestamp;

/// How often a conductor that stops looks whether all answers are there.
const DRAIN_LOOKED_AT_EVERY: Duration = Duration::from_millis(20);

/// The conductor as the HTTP side sees it. Cheap to clone.
#[derive(Clone)]
pub struct Conductor {
    shared: Arc<Shared>,
    ready: Arc<AtomicBool>,
    arbiters: Arc<Vec<Arbiter>>,
    /// Finds nodes for allocations, once recovery is done.
    allocator: Arc<OnceLock<Addr<Allocator>>>,
}

/// What a conductor is connected to.
pub struct Connections {
    /// Reads.
    pub reader: Reader,
    /// Writes.
    pub writer: Writer,
    /// Power and boot.
    pub drivers: Drivers,
    /// The way to the agents.
    pub agents: AgentClient,
    /// What agent tokens are computed from.
    pub key: TokenKey,
    /// Where things are counted.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
}

/// What became of an event: committed, with the node as it is now.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The node after the event.
    pub node: Arc<Node>,
    /// What the step replied; never `Refused`, which is an error below.
    pub reply: Reply,
}

/// Why an event had no effect.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliverError {
    /// No such node.
    NotFound,
    /// Not allowed now; nothing has changed.
    Refused(Refused),
    /// The node is at something else, and was for as long as this could wait; nothing has changed.
    Busy(Busy),
    /// The node's queue, or the database's, is full: try again after so many seconds.
    Overloaded {
        /// Seconds.
        retry_after_s: u32,
    },
    /// A unique value is taken already.
    Duplicate {
        /// As in [`SaveError::Duplicate`].
        field: &'static str,
        /// The value.
        value: String,
    },
    /// The database or the node's actor can't be used at the moment; why, in words for an operator.
    Unavailable(String),
    /// The step itself failed by a fault of ours; the event was dropped, the node is as before.
    Panicked,
}

impl From<SaveError> for DeliverError {
    fn from(error: SaveError) -> DeliverError {
        match error {
            SaveError::Duplicate { field, value } => DeliverError::Duplicate { field, value },
            SaveError::Gone { what, id } => DeliverError::Refused(Refused::NotFound {
                what: format!("{what} {id}"),
            }),
            SaveError::InUse { what, by } => DeliverError::Refused(Refused::InUse { what, by }),
            SaveError::Overloaded => DeliverError::Overloaded { retry_after_s: 1 },
            SaveError::VersionConflict => DeliverError::Unavailable(
                "it was changed by somebody else in the same moment; try again".to_owned(),
            ),
            SaveError::Unavailable(why) => DeliverError::Unavailable(why),
        }
    }
}

impl Conductor {
    /// Starts the threads that carry node actors. Nothing is read from the store yet: see [`Conductor::recover`]. Needs a running
    /// actix system.
    pub fn start(settings: Settings, connections: Connections) -> Conductor {
        let arbiters: Vec<Arbiter> = (0..settings.arbiters.max(1))
            .map(|_| Arbiter::new())
            .collect();
        let registry = Registry::new(arbiters.iter().map(Arbiter::handle).collect());
        let turns = Turns::new(settings.limits.queues);
        let calls = Calls::new(settings.agent_requests_max, &connections.metrics);
        let shared = Shared {
            settings,
            clock: connections.clock,
            key: connections.key,
            reader: connections.reader,
            writer: connections.writer,
            drivers: connections.drivers,
            agents: connections.agents,
            calls,
            turns,
            metrics: connections.metrics,
            registry,
            overload: Overload::default(),
            hurry: watch::Sender::new(false),
            common: Mutex::default(),
            draining: AtomicBool::new(false),
            unanswered: AtomicUsize::new(0),
            unsettled: Arc::default(),
        };
        Conductor {
            shared: Arc::new(shared),
            ready: Arc::new(AtomicBool::new(false)),
            arbiters: Arc::new(arbiters),
            allocator: Arc::default(),
        }
    }

    /// Gives every waiting node its actor back, then calls the conductor ready. `down_for_ms`: for how long nobody could be heard.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn recover(&self, down_for_ms: i64) -> Result<usize, ReadError> {
        let recovered = recover::recover(&self.shared, down_for_ms).await?;
        // Behind each actor's beginning, and behind what it does first: nobody is heard while thousands of others still begin.
        for _ in 0..2 {
            self.arbiter_lag().await;
        }
        self.start_allocating();
        self.ready.store(true, Ordering::Release);
        Ok(recovered)
    }

    /// Hands an event to a node; returns when its step is committed.
    ///
    /// # Errors
    /// See [`DeliverError`]; nothing has changed then.
    pub async fn deliver(&self, node: NodeId, event: Event) -> Result<Answer, DeliverError> {
        self.send(node, event, None).await
    }

    /// A heartbeat with the token as it came (`heartbeat.token` is overwritten by the comparison).
    ///
    /// # Errors
    /// See [`DeliverError`]; nothing has changed then.
    pub async fn heartbeat(
        &self,
        node: NodeId,
        mut heartbeat: Heartbeat,
        token: Option<String>,
    ) -> Result<Answer, DeliverError> {
        heartbeat.token = TokenMatch::Wrong;
        self.send(node, Event::Heartbeat(heartbeat), Some(token))
            .await
    }

    /// A lookup; with the answer comes the token to send: 43 characters, or six stars; none if the agent is to ask again.
    ///
    /// # Errors
    /// See [`DeliverError`]; nothing has changed then.
    pub async fn lookup(&self, node: NodeId) -> Result<(Answer, Option<String>), DeliverError> {
        let fresh_nonce = token::fresh_nonce();
        let answer = self.send(node, Event::Lookup { fresh_nonce }, None).await?;
        let token = match (&answer.reply, &answer.node.session) {
            (Reply::Token { masked: false }, Some(session)) => {
                Some(self.shared.key.token(node, &session.nonce))
            }
            (Reply::TokenLater, _) => None,
            _ => Some(MASKED.to_owned()),
        };
        Ok((answer, token))
    }

    /// Enrols a node.
    ///
    /// # Errors
    /// `Duplicate`, `Overloaded` or `Unavailable`; nothing was stored then.
    pub async fn create(&self, node: Node) -> Result<Arc<Node>, DeliverError> {
        let node = Arc::new(node);
        let save = Save::of(node.clone(), Change::Insert);
        match self.shared.writer.save(save).await {
            Ok(()) => {
                measure::enrolled(&self.shared.metrics, &node);
                Ok(node)
            }
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(test)]
    pub(crate) fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    /// False while rows don't know yet of an absence of the conductor or of the store.
    pub fn is_settled(&self) -> bool {
        self.shared.unsettled.load(Ordering::Acquire) == 0
    }

    /// The store, for reading.
    pub fn reader(&self) -> &Reader {
        &self.shared.reader
    }

    /// The name this conductor goes by (`host` in the configuration).
    pub fn host(&self) -> &str {
        &self.shared.settings.host
    }

    /// What `node` waits for, with its place in the queue if that is a turn; none when it rests.
    pub fn waiting(&self, node: &Node) -> Option<Waiting> {
        self.shared.waiting(node)
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// An agent was told to come again, because too much is asked at the same time.
    pub fn turned_an_agent_away(&self) {
        self.shared.overload.turned_away(self.now());
    }

    /// How many nodes have an actor at the moment.
    pub fn actors(&self) -> usize {
        self.shared.registry.len()
    }

    /// Whether a node has an actor at the moment.
    #[doc(hidden)]
    pub fn has_actor(&self, node: NodeId) -> bool {
        self.shared.registry.has(node)
    }

    /// Starts the actor of a node whose row is known to be this, as recovery does.
    #[doc(hidden)]
    pub fn take_up(&self, row: Node) {
        let id = row.id;
        let start = Start {
            row: Some(self.shared.to_keep(row)),
            ..Start::fresh()
        };
        self.shared.registry.start(&self.shared, id, start);
    }

    /// True once recovery is done and every actor thread lives.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
            && self.arbiters.iter().all(|arbiter| arbiter.handle().alive())
    }

    /// How late the slowest of the threads that carry actors answers.
    pub async fn arbiter_lag(&self) -> Duration {
        let asked = Instant::now();
        let answers: Vec<oneshot::Receiver<()>> = self
            .arbiters
            .iter()
            .map(|arbiter| {
                let (answer, answered) = oneshot::channel();
                arbiter.spawn_fn(move || {
                    let _ = answer.send(());
                });
                answered
            })
            .collect();
        for answered in answers {
            // A thread that has ended never answers; that shows in readiness.
            let _ = answered.await;
        }
        asked.elapsed()
    }

    /// The conductor is about to stop: whoever waits for a busy node is answered now, and nobody waits any more.
    pub fn hurry(&self) {
        self.shared.hurry.send_replace(true);
    }

    /// Asks agents nothing new and waits until every command that was sent has its answer stored, at most for `longest`: what is
    /// answered needs no finding out after the next start.
    pub async fn drain(&self, longest: Duration) {
        self.shared.draining.store(true, Ordering::Release);
        let until = Instant::now() + longest;
        while self.shared.unanswered.load(Ordering::Acquire) > 0 && Instant::now() < until {
            tokio::time::sleep(DRAIN_LOOKED_AT_EVERY).await;
        }
    }

    /// Ends all actors. What is in flight is in the rows and is found again at the next start.
    pub fn stop(&self) {
        self.ready.store(false, Ordering::Release);
        self.shared.registry.clear();
        for arbiter in self.arbiters.iter() {
            arbiter.stop();
        }
    }

    async fn send(
        &self,
        id: NodeId,
        event: Event,
        token: Option<Option<String>>,
    ) -> Result<Answer, DeliverError> {
        let is_from_agent = matches!(event, Event::Lookup { .. } | Event::Heartbeat(_));
        let (reply_to, reply) = oneshot::channel();
        let mut deliver = Deliver {
            event,
            token,
            reply_to,
        };
        loop {
            match self.shared.registry.try_send(id, deliver) {
                Ok(()) => break,
                // It has none as long as nobody has asked for it, or has had nothing to do for a while.
                Err(Undelivered::NoActor(back)) => {
                    deliver = *back;
                    // Whoever asks for what is not there gets no actor for it.
                    if !self.shared.reader.has_node(id) {
                        return Err(DeliverError::NotFound);
                    }
                    self.shared.registry.start(&self.shared, id, Start::fresh());
                }
                Err(Undelivered::Error(error)) => {
                    match &error {
                        DeliverError::Overloaded { .. } => {
                            self.shared.metrics.mailbox_refused.inc();
                        }
                        DeliverError::Unavailable(_) => {
                            self.shared.registry.start(&self.shared, id, Start::fresh());
                        }
                        DeliverError::NotFound
                        | DeliverError::Refused(_)
                        | DeliverError::Busy(_)
                        | DeliverError::Duplicate { .. }
                        | DeliverError::Panicked => {}
                    }
                    return Err(error);
                }
            }
        }
        if let Ok(answer) = reply.await {
            // What is in the mailbox comes before the node's deadline; what the store has no place for does not.
            if is_from_agent && matches!(answer, Err(DeliverError::Overloaded { .. })) {
                self.turned_an_agent_away();
            }
            return answer;
        }
        // Closed without an answer: the actor panicked over this message, or has ended with the node. The row tells; the registry
        // may already hold an actor that somebody started who had read the row just before it went.
        match self.shared.reader.node(Ident::Id(id)).await {
            Ok(None) => Err(DeliverError::NotFound),
            Ok(Some(_)) | Err(_) => Err(DeliverError::Panicked),
        }
    }
}
