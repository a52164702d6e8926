//! The other nodes of the conductor, as far as this one meets them: in the queues. They ask for a turn, wait, have it for a while, give
//! it back, and come again. The queues are the very ones of `crate::node::queues`; when the conductor was away they are made anew from
//! what the rows say.

use uuid::Uuid;

use super::queue::Happening;
use super::random::Random;
use super::rules::Rule;
use super::world::{BEGINNING_MS, World};
use crate::node::queues::{Call, Claims, QueueKind, QueueName, Queues, claims};
use crate::node::{Event, NodeId, QueueLimits};
use crate::timestamp::Timestamp;

/// How many others there are for each kind of turn, where turns are few: so many more than turns that there always is a queue at times.
const OTHERS: [(QueueKind, usize); 3] = [
    (QueueKind::Deploy, 3),
    (QueueKind::Clean, 2),
    (QueueKind::ImageHost, 2),
];
/// The host of the image in `operator.rs`.
const IMAGE_HOST: &str = "images.example:80";
/// Calls and commits may cross by so much.
const CROSSING_MS: i64 = 1_000;

/// What one of the others is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Away,
    Waits { since: Timestamp, asked_at: i64 },
    Holds,
}

#[derive(Debug)]
pub(super) struct Crowd {
    queues: Queues,
    others: Vec<(QueueName, Is)>,
    random: Random,
    /// How long one has its turn, about.
    turn_ms: i64,
    /// When the node itself began to wait.
    waits_from: Option<i64>,
    /// It was called, and has not taken its turn yet.
    is_called: bool,
}

fn queue(kind: QueueKind) -> QueueName {
    match kind {
        QueueKind::Deploy => QueueName::Deploy,
        QueueKind::Clean => QueueName::Clean,
        QueueKind::ImageHost => QueueName::ImageHost(IMAGE_HOST.to_owned()),
    }
}

fn id(other: usize) -> NodeId {
    NodeId(Uuid::from_u128(u128::MAX - other as u128))
}

impl Crowd {
    /// Others only where there are so few turns that they can be in the way.
    pub(super) fn new(limits: QueueLimits, turn_ms: i64, random: Random) -> Crowd {
        let mut queues = Queues::new(limits);
        queues.open();
        let others = OTHERS
            .into_iter()
            .filter(|(kind, _)| (1..10).contains(&limits.of(*kind)))
            .flat_map(|(kind, others)| std::iter::repeat_n((queue(kind), Is::Away), others))
            .collect();
        Crowd {
            queues,
            others,
            random,
            turn_ms,
            waits_from: None,
            is_called: false,
        }
    }

    /// When the first of them come.
    pub(super) fn first_come(&mut self) -> Vec<(i64, Happening)> {
        (0..self.others.len())
            .map(|other| {
                (
                    self.random.between(0, self.turn_ms),
                    Happening::Other(other),
                )
            })
            .collect()
    }

    fn claims(&self, other: usize) -> Claims {
        let (queue, is) = &self.others[other];
        match is {
            Is::Away => Claims::default(),
            Is::Waits { since, .. } => Claims {
                waits: Some((queue.clone(), *since)),
                ..Claims::default()
            },
            Is::Holds => Claims {
                holds: [Some(queue.clone()), None],
                waits: None,
            },
        }
    }
}

impl World<'_> {
    /// One of the others asks for a turn, or gives it back.
    pub(super) fn other_acts(&mut self, other: usize) {
        let (now, wall) = (self.now, self.conductor.wall(self.now));
        if !self.conductor.is_up {
            let at = self.conductor.down_until.max(now) + 1_000;
            return self.queue.plan(at, Happening::Other(other));
        }
        let crowd = &mut self.crowd;
        crowd.others[other].1 = match crowd.others[other].1 {
            Is::Away => Is::Waits {
                since: wall,
                asked_at: now,
            },
            Is::Waits { .. } => return,
            Is::Holds => {
                let pause = crowd.random.around(crowd.turn_ms);
                self.queue.plan(now + pause, Happening::Other(other));
                Is::Away
            }
        };
        let claims = crowd.claims(other);
        let calls = crowd.queues.tell(id(other), claims);
        self.give_turns(calls);
    }

    /// The conductor is back and knows no more than what the rows say; nobody is called before all of them are told.
    pub(super) fn queues_begin(&mut self) {
        let limits = self.setup.limits_of(self.number).queues;
        let crowd = &mut self.crowd;
        crowd.queues = Queues::new(limits);
        crowd.is_called = false;
        for other in 0..crowd.others.len() {
            let claims = crowd.claims(other);
            crowd.queues.tell(id(other), claims);
        }
        if !self.setup.quirks.forgets_turns {
            let row = &self.conductor.row;
            crowd.queues.tell(row.id, claims(row));
        }
    }

    pub(super) fn queues_open(&mut self) {
        let calls = self.crowd.queues.open();
        self.give_turns(calls);
    }

    /// What the node itself has and waits for, as its actor knows it.
    pub(super) fn tell_claims(&mut self) {
        let actor = self.conductor.actor.as_ref();
        let Some(node) = actor.and_then(|actor| actor.node.clone()) else {
            return;
        };
        self.crowd.waits_from = match self.crowd.waits_from {
            _ if !node.is_queued() => None,
            Some(from) => Some(from),
            None => Some(self.now),
        };
        self.crowd.is_called &= node.is_queued();
        let calls = self.crowd.queues.tell(node.id, claims(&node));
        self.give_turns(calls);
    }

    fn give_turns(&mut self, calls: Vec<Call>) {
        for Call { node, kind, since } in calls {
            let other = (0..self.crowd.others.len()).find(|other| id(*other) == node);
            let Some(other) = other else {
                self.tally.turns += 1;
                self.crowd.is_called = true;
                self.tell(Event::TurnCame { kind, since });
                continue;
            };
            self.look_at_order(other);
            let crowd = &mut self.crowd;
            crowd.others[other].1 = Is::Holds;
            let has_it_for = crowd.random.around(crowd.turn_ms);
            self.queue
                .plan(self.now + has_it_for, Happening::Other(other));
            let claims = crowd.claims(other);
            crowd.queues.tell(node, claims);
        }
        self.look_at_turns();
    }

    /// Whoever asked after the node must not come before it.
    fn look_at_order(&mut self, other: usize) {
        let (queue, is) = &self.crowd.others[other];
        let node = self.conductor.latest();
        let (Is::Waits { asked_at, .. }, Some(from), Some((own, _))) =
            (is, self.crowd.waits_from, claims(node).waits)
        else {
            return;
        };
        // The rows say when by the conductor's clock, which may have been set.
        let was_set = self.conductor.wall(0) != Timestamp(BEGINNING_MS);
        let is_next = self.crowd.is_called;
        if own == *queue && *asked_at > from + CROSSING_MS && !was_set && !is_next {
            let what = format!("{} ms later", asked_at - from);
            self.checks.breaks(Rule::TurnsComeInOrder, what, self.now);
        }
    }

    /// Those whose turn has really come, by the rows.
    pub(super) fn look_at_turns(&mut self) {
        let limits = self.setup.limits_of(self.number).queues;
        let own = claims(&self.conductor.row);
        for (kind, _) in OTHERS {
            let limit = usize::try_from(limits.of(kind)).unwrap_or(usize::MAX);
            let queue = queue(kind);
            let others = self.crowd.others.iter();
            let others = others.filter(|(name, is)| *name == queue && *is == Is::Holds);
            let holding = others.count()
                + own
                    .holds
                    .iter()
                    .flatten()
                    .filter(|name| **name == queue)
                    .count();
            if limit > 0 && holding > limit {
                let what = format!("{holding} have {queue}; at most {limit} may");
                self.checks.breaks(Rule::TurnsAreLimited, what, self.now);
            }
        }
    }

    /// The node waits for a turn and its actor has nothing on its hands: it must stand in the queue, behind others.
    pub(super) fn look_at_the_queue(&mut self) {
        let Some(node) = self.conductor.idle().filter(|node| node.is_queued()) else {
            return;
        };
        let Some((queue, _)) = claims(node).waits else {
            return;
        };
        let has_place = self.crowd.queues.place(node.id).is_some();
        if !has_place {
            let what = format!("{queue} has come and nobody takes it");
            self.checks.breaks(Rule::TurnsAreTaken, what, self.now);
        }
    }
}
