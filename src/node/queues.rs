//! What only so many nodes may do at once, and who comes next: first come, first served, by the time that stands in the row.
//!
//! A node waits in [`WorkPhase::Queued`]; what it has and what it waits for [`claims`] reads off the node, so that nothing else must be
//! remembered. [`Queues`] is told the claims of each node whenever they change, and says whose turn has come; that node then gets
//! [`super::Event::TurnCame`]. A turn that was given to a node counts as taken from then on; it comes back when the node's claims no
//! longer name it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::image::image_host;
use super::limits::QueueLimits;
use super::state::{Node, NodeId};
use super::steps::WRITE_IMAGE;
use super::work::{Work, WorkKind, WorkPhase};
use crate::timestamp::Timestamp;

/// What a node may have to wait for its turn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// To be deployed.
    Deploy,
    /// To be cleaned.
    Clean,
    /// To read its image from the host that has it.
    ImageHost,
}

impl QueueKind {
    /// All of them.
    pub const ALL: [QueueKind; 3] = [QueueKind::Deploy, QueueKind::Clean, QueueKind::ImageHost];

    /// The word for metrics.
    pub fn name(self) -> &'static str {
        match self {
            QueueKind::Deploy => "deploy",
            QueueKind::Clean => "clean",
            QueueKind::ImageHost => "image_host",
        }
    }
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueName {
    /// For deploys.
    Deploy,
    /// For cleanings.
    Clean,
    /// For writing images that this host, with its port, gives out.
    ImageHost(String),
}

impl QueueName {
    /// Which kind of queue it is.
    pub fn kind(&self) -> QueueKind {
        match self {
            QueueName::Deploy => QueueKind::Deploy,
            QueueName::Clean => QueueKind::Clean,
            QueueName::ImageHost(_) => QueueKind::ImageHost,
        }
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueName::Deploy => f.write_str("a turn to deploy"),
            QueueName::Clean => f.write_str("a turn to clean"),
            QueueName::ImageHost(host) => write!(f, "a turn to read the image from {host}"),
        }
    }
}

/// What one node has of what only so many may have at once, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// What its turn has come for.
    pub holds: [Option<QueueName>; 2],
    /// What it waits for, and since when.
    pub waits: Option<(QueueName, Timestamp)>,
}

impl Claims {
    /// True for a node that neither has nor waits for anything.
    pub fn is_empty(&self) -> bool {
        *self == Claims::default()
    }

    fn holds(&self) -> impl Iterator<Item = &QueueName> {
        self.holds.iter().flatten()
    }
}

/// What `node` has and what it waits for.
///
/// A node in quarantine has nothing: nobody carries its work on. One that waits to begin has given its place up while it is in
/// maintenance, since somebody is at its machine; at the end of that it comes before whoever asked later than it had.
pub fn claims(node: &Node) -> Claims {
    let Some(work) = node.work().filter(|_| node.quarantine.is_none()) else {
        return Claims::default();
    };
    let queue = |kind| match kind {
        QueueKind::Deploy => Some(QueueName::Deploy),
        QueueKind::Clean => Some(QueueName::Clean),
        QueueKind::ImageHost => image_host(&node.attributes).map(QueueName::ImageHost),
    };
    let whole = work.kind.queue();
    match work.phase {
        WorkPhase::Queued { kind, since } => Claims {
            holds: [whole.filter(|whole| *whole != kind).and_then(queue), None],
            waits: queue(kind)
                .map(|queue| (queue, since))
                .filter(|_| node.maintenance.is_none() || !work.has_not_begun()),
        },
        _ => Claims {
            holds: [
                whole.and_then(queue),
                is_writing(work)
                    .then_some(QueueKind::ImageHost)
                    .and_then(queue),
            ],
            waits: None,
        },
    }
}

/// The agent is to write the image, or does.
fn is_writing(work: &Work) -> bool {
    work.kind == WorkKind::Deploy
        && work.phase == WorkPhase::InBandStep
        && work
            .current_step()
            .is_some_and(|step| step.is_core() && step.step == WRITE_IMAGE)
}

/// A node whose turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub node: NodeId,
    /// For what.
    pub kind: QueueKind,
    /// Since when it had waited, which tells this turn from another.
    pub since: Timestamp,
}

/// Where a node stands in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In which queue.
    pub queue: QueueName,
    /// The first that will come is 1.
    pub place: usize,
    /// How many wait.
    pub of: usize,
    /// So many may have a turn at once.
    pub at_most: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, of, most) = (self.place, self.of, self.at_most);
        write!(f, "place {place} of {of}; at most ")?;
        match &self.queue {
            QueueName::Deploy => write!(
                f,
                "{most} nodes are deployed at once (conductor.max_concurrent_deploy)"
            ),
            QueueName::Clean => write!(
                f,
                "{most} nodes are cleaned at once (conductor.max_concurrent_clean)"
            ),
            QueueName::ImageHost(_) => write!(
                f,
                "{most} machines read from one host at once (conductor.max_concurrent_per_image_host)"
            ),
        }
    }
}

/// How many have a turn, and how many wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Their turn has come.
    pub hold: usize,
    /// They wait.
    pub wait: usize,
}

/// Those that wait for the same, and those whose turn has come.
#[derive(Debug, Default)]
struct Queue {
    holding: BTreeSet<NodeId>,
    /// They were told that their turn has come, and have not taken it yet.
    called: BTreeSet<NodeId>,
    waiting: BTreeSet<(Timestamp, NodeId)>,
}

impl Queue {
    fn count(&self) -> Count {
        Count {
            hold: self.holding.len() + self.called.len(),
            wait: self.waiting.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.holding.is_empty() && self.called.is_empty() && self.waiting.is_empty()
    }
}

/// All queues of a conductor.
#[derive(Debug)]
pub struct Queues {
    limits: QueueLimits,
    is_open: bool,
    claims: BTreeMap<NodeId, Claims>,
    queues: BTreeMap<QueueName, Queue>,
    counts: BTreeMap<QueueKind, Count>,
}

impl Queues {
    /// Queues in which nobody is, and from which nobody is called before they are [`Queues::open`].
    pub fn new(limits: QueueLimits) -> Queues {
        Queues {
            limits,
            is_open: false,
            claims: BTreeMap::new(),
            queues: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Everybody that was there before has said what it has and what it waits for: from now on turns are given. Returns whose have
    /// come.
    pub fn open(&mut self) -> Vec<Call> {
        self.is_open = true;
        let names: Vec<QueueName> = self.queues.keys().cloned().collect();
        names.iter().flat_map(|name| self.call(name)).collect()
    }

    /// What `node` has and waits for now. May be told any number of times. Returns whose turn has come by it; the node itself again,
    /// if it still waits for what it was called for.
    pub fn tell(&mut self, node: NodeId, claims: Claims) -> Vec<Call> {
        let before = if claims.is_empty() {
            self.claims.remove(&node)
        } else {
            self.claims.insert(node, claims.clone())
        };
        let before = before.unwrap_or_default();
        let mut calls = Vec::new();
        let mut touched = BTreeSet::new();
        for name in before
            .holds()
            .filter(|name| !claims.holds.contains(&Some((*name).clone())))
        {
            self.change(name, |queue| {
                queue.holding.remove(&node);
            });
            touched.insert(name.clone());
        }
        if let Some((name, since)) = &before.waits
            && claims.waits != before.waits
        {
            self.change(name, |queue| {
                queue.called.remove(&node);
                queue.waiting.remove(&(*since, node));
            });
            touched.insert(name.clone());
        }
        for name in claims.holds() {
            self.change(name, |queue| {
                queue.holding.insert(node);
            });
        }
        if let Some((name, since)) = &claims.waits {
            let mut is_called = false;
            self.change(name, |queue| {
                is_called = queue.called.contains(&node);
                if !is_called {
                    queue.waiting.insert((*since, node));
                }
            });
            if is_called {
                let (kind, since) = (name.kind(), *since);
                calls.push(Call { node, kind, since });
            }
            touched.insert(name.clone());
        }
        calls.extend(touched.iter().flat_map(|name| self.call(name)));
        calls
    }

    /// Where `node` stands, if it waits.
    pub fn place(&self, node: NodeId) -> Option<Place> {
        let (name, since) = self.claims.get(&node)?.waits.as_ref()?;
        let waiting = &self.queues.get(name)?.waiting;
        let own = (*since, node);
        waiting.contains(&own).then(|| Place {
            queue: name.clone(),
            place: waiting.range(..=own).count(),
            of: waiting.len(),
            at_most: self.limits.of(name.kind()),
        })
    }

    /// How many are in all queues of this kind together.
    pub fn count(&self, kind: QueueKind) -> Count {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    /// Gives the turns that are free.
    fn call(&mut self, name: &QueueName) -> Vec<Call> {
        let (is_open, kind) = (self.is_open, name.kind());
        let limit = match self.limits.of(kind) {
            0 => usize::MAX,
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let mut calls = Vec::new();
        self.change(name, |queue| {
            while is_open
                && queue.count().hold < limit
                && let Some((since, node)) = queue.waiting.pop_first()
            {
                queue.called.insert(node);
                calls.push(Call { node, kind, since });
            }
        });
        calls
    }

    /// Changes one queue, keeps the counts, and forgets it when nobody is in it.
    fn change(&mut self, name: &QueueName, change: impl FnOnce(&mut Queue)) {
        let queue = self.queues.entry(name.clone()).or_default();
        let before = queue.count();
        change(queue);
        let after = queue.count();
        if queue.is_empty() {
            self.queues.remove(name);
        }
        let count = self.counts.entry(name.kind()).or_default();
        count.hold = count.hold + after.hold - before.hold;
        count.wait = count.wait + after.wait - before.wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(number: u128) -> NodeId {
        NodeId(Uuid::from_u128(number))
    }

    fn waits(queue: QueueName, since: i64) -> Claims {
        Claims {
            waits: Some((queue, Timestamp(since))),
            ..Claims::default()
        }
    }

    fn holds(queue: QueueName) -> Claims {
        Claims {
            holds: [Some(queue), None],
            waits: None,
        }
    }

    fn deploys(limit: u32) -> Queues {
        Queues::new(QueueLimits {
            deploy: limit,
            ..QueueLimits::NONE
        })
    }

    fn called(calls: &[Call]) -> Vec<u128> {
        calls.iter().map(|call| call.node.0.as_u128()).collect()
    }

    fn place(queues: &Queues, number: u128) -> Option<(usize, usize)> {
        queues
            .place(id(number))
            .map(|place| (place.place, place.of))
    }

    #[test]
    fn turns_come_in_the_order_of_asking_as_others_give_theirs_back() {
        let mut queues = deploys(2);
        queues.open();
        assert_eq!(
            called(&queues.tell(id(1), waits(QueueName::Deploy, 10))),
            [1]
        );
        assert_eq!(
            called(&queues.tell(id(2), waits(QueueName::Deploy, 20))),
            [2]
        );
        // Called and not begun counts as begun.
        for (number, since) in [(5, 50), (4, 40), (3, 30)] {
            let calls = queues.tell(id(number), waits(QueueName::Deploy, since));
            assert_eq!(called(&calls), []);
        }
        assert_eq!(place(&queues, 1), None);
        assert_eq!(place(&queues, 3), Some((1, 3)));
        assert_eq!(place(&queues, 5), Some((3, 3)));
        queues.tell(id(1), holds(QueueName::Deploy));
        queues.tell(id(2), holds(QueueName::Deploy));
        assert_eq!(queues.count(QueueKind::Deploy), Count { hold: 2, wait: 3 });
        assert_eq!(called(&queues.tell(id(2), Claims::default())), [3]);
        assert_eq!(place(&queues, 5), Some((2, 2)));
        // Out of the middle of the queue.
        queues.tell(id(4), Claims::default());
        assert_eq!(place(&queues, 5), Some((1, 1)));
        // Called, and ended before it began.
        assert_eq!(called(&queues.tell(id(3), Claims::default())), [5]);
        for number in [1, 5] {
            queues.tell(id(number), Claims::default());
        }
        assert_eq!(queues.count(QueueKind::Deploy), Count::default());
        assert!(queues.queues.is_empty() && queues.claims.is_empty());
    }

    #[test]
    fn a_call_that_was_lost_is_repeated_to_the_same_node_and_to_no_other() {
        let mut queues = deploys(1);
        queues.open();
        let first = waits(QueueName::Deploy, 10);
        assert_eq!(called(&queues.tell(id(1), first.clone())), [1]);
        queues.tell(id(2), waits(QueueName::Deploy, 20));
        assert_eq!(called(&queues.tell(id(1), first)), [1]);
        // It left and asked again: that is another wait, behind the other.
        let calls = queues.tell(id(1), waits(QueueName::Deploy, 30));
        assert_eq!(called(&calls), [2]);
        assert_eq!(place(&queues, 1), Some((1, 1)));
    }

    #[test]
    fn at_a_start_nobody_is_called_before_all_have_said_what_they_have() {
        let mut queues = deploys(2);
        // A new one, and those that were there before, in any order.
        for (number, since) in [(9, 90), (3, 30), (2, 20)] {
            let calls = queues.tell(id(number), waits(QueueName::Deploy, since));
            assert_eq!(called(&calls), []);
        }
        queues.tell(id(1), holds(QueueName::Deploy));
        assert_eq!(called(&queues.open()), [2]);
        // More hold than may, because the limit was lowered: nobody comes until they are fewer.
        let mut queues = deploys(1);
        for number in [1, 2] {
            queues.tell(id(number), holds(QueueName::Deploy));
        }
        queues.tell(id(3), waits(QueueName::Deploy, 30));
        assert_eq!(called(&queues.open()), []);
        assert_eq!(called(&queues.tell(id(1), Claims::default())), []);
        assert_eq!(called(&queues.tell(id(2), Claims::default())), [3]);
    }

    #[test]
    fn each_image_host_has_a_queue_of_its_own_and_says_which_setting_it_is() {
        let mut queues = Queues::new(QueueLimits {
            image_host: 1,
            ..QueueLimits::NONE
        });
        queues.open();
        let host = |name: &str| QueueName::ImageHost(name.to_owned());
        queues.tell(id(1), holds(host("a:80")));
        assert_eq!(called(&queues.tell(id(2), waits(host("a:80"), 1))), []);
        assert_eq!(called(&queues.tell(id(3), waits(host("b:80"), 1))), [3]);
        assert_eq!(
            queues.place(id(2)).unwrap().to_string(),
            "place 1 of 1; at most 1 machines read from one host at once (conductor.max_concurrent_per_image_host)"
        );
    }

    proptest! {
        /// Whatever nodes say in whatever order: never more have a turn than may, and no turn is left while somebody waits.
        #[test]
        fn turns_are_neither_too_many_nor_lost(
            limit in 1_u32..4,
            doings in prop::collection::vec((0_u128..8, 0_u8..3), 1..200),
        ) {
            let mut queues = deploys(limit);
            queues.open();
            let mut nodes: BTreeMap<NodeId, Claims> = BTreeMap::new();
            for (at, (number, doing)) in doings.into_iter().enumerate() {
                let node = id(number);
                let since = i64::try_from(at).unwrap();
                let claims = match (doing, nodes.get(&node)) {
                    (0, None) => waits(QueueName::Deploy, since),
                    (1, Some(claims)) => claims.clone(),
                    _ => Claims::default(),
                };
                nodes.remove(&node);
                if !claims.is_empty() {
                    nodes.insert(node, claims.clone());
                }
                for call in queues.tell(node, claims) {
                    let waiting = nodes.get(&call.node).and_then(|claims| claims.waits.clone());
                    prop_assert_eq!(waiting, Some((QueueName::Deploy, call.since)));
                    // Every other call is lost on its way.
                    if at % 2 == 0 {
                        nodes.insert(call.node, holds(QueueName::Deploy));
                        queues.tell(call.node, holds(QueueName::Deploy));
                    }
                }
                let count = queues.count(QueueKind::Deploy);
                let most = usize::try_from(limit).unwrap();
                prop_assert!(count.hold <= most);
                prop_assert!(count.wait == 0 || count.hold == most);
                let holding = nodes.values().filter(|claims| claims.waits.is_none()).count();
                prop_assert!(holding <= count.hold);
                prop_assert_eq!(count.hold + count.wait, nodes.len());
            }
        }
    }
}
