//! Finds nodes for allocations: one actor for all of them, so that they don't take nodes from under each other.
//!
//! ```text
//! allocate ── row "allocating" ──▶ look ─▶ candidates (pure) ─▶ the node's own actor takes it, or not ─▶ row "active"
//!    start ───────────────────────▶           └─ none ─▶ row "error", with the reasons
//! ```
//! Nothing is kept in memory: rows in `allocating` are what is to be done, also after a start. A node and its allocation change in one
//! commit, so there is no half-taken node to clean up.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message,
    Supervised,
};
use futures_util::FutureExt as _;
use uuid::Uuid;

use super::supervise::{self, Intensity, Watcher, message_of};
use super::{Conductor, DeliverError};
use crate::catalog::allocation::{choose, demand};
use crate::catalog::{Allocation, AllocationState, Record};
use crate::node::allocation::AllocationChange;
use crate::node::{Event, Node, NodeId, ProvisionState, Refused};
use crate::retry::Pauses;
use crate::store::{Ident, NodeFilter, Page, ReadError, RecordFilter};

/// How many nodes are looked at in one go.
const PAGE_NODES: usize = 200;
/// How many nodes the reasons are looked for at.
const NODES_TOLD: usize = 1_000;
/// How many allocations are read in one go.
const PAGE_ALLOCATIONS: usize = 100;
/// How often all nodes may be taken by others between the look and the taking.
const ROUNDS: usize = 3;
/// Looks that wait; one is enough, since each looks for everything.
const LOOKS_MAX: usize = 1;

/// There may be something to do.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Look;

/// The actor.
pub(super) struct Allocator {
    conductor: Conductor,
    pauses: Pauses,
}

/// It can't be done now, by a fault that goes away: why.
struct Later(String);

impl From<ReadError> for Later {
    fn from(error: ReadError) -> Later {
        match error {
            ReadError::Unavailable(why) => Later(why),
            ReadError::UnknownMarker => Later("the list changed while it was read".to_owned()),
        }
    }
}

/// What came of asking nodes.
enum Asked {
    /// One was taken, or nobody wants one any more.
    Settled,
    /// All said no.
    NoneTaken,
}

impl Allocator {
    pub(super) fn start(conductor: Conductor) -> actix::Addr<Allocator> {
        let arbiter = conductor.arbiters[0].handle();
        let intensity = conductor.shared.settings.intensity;
        supervise::start(&arbiter, LOOKS_MAX, move |_| {
            let allocator = Allocator {
                conductor,
                pauses: Pauses::new(Duration::from_millis(100), Duration::from_secs(5)),
            };
            (allocator, Log(intensity))
        })
    }
}

/// Tells of its troubles, of which so many are too many.
struct Log(Intensity);

impl Watcher for Log {
    fn intensity(&self) -> Intensity {
        self.0
    }

    fn restarted(&self, cause: &str) {
        tracing::error!(cause, "the allocator panicked and is restarted");
    }

    fn gave_up(&self, cause: &str) {
        tracing::error!(
            cause,
            "the allocator panicked too often; allocations wait until the conductor is restarted"
        );
    }
}

impl Actor for Allocator {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        if context.state() == actix::ActorState::Running {
            context.notify(Look);
        }
    }
}

impl Supervised for Allocator {}

impl Handler<Look> for Allocator {
    type Result = ();

    fn handle(&mut self, _: Look, context: &mut Context<Self>) {
        let conductor = self.conductor.clone();
        let looking = async move { look(&conductor).await };
        let looking = wrap_future::<_, Self>(looking).map(|looked, actor, context| match looked {
            Ok(()) => actor.pauses.reset(),
            Err(Later(why)) => {
                tracing::warn!(why, "allocations wait; trying again");
                context.notify_later(Look, actor.pauses.next_pause());
            }
        });
        // Later looks come after this one.
        context.wait(looking);
    }
}

/// Settles every allocation that waits, the oldest first.
async fn look(conductor: &Conductor) -> Result<(), Later> {
    let mut put_off = None;
    let mut marker = None;
    loop {
        let filter = RecordFilter {
            state: Some(AllocationState::Allocating.name().to_owned()),
            ..RecordFilter::default()
        };
        let waiting: Vec<Record<Allocation>> = conductor
            .reader()
            .records(filter, Page::by_age(PAGE_ALLOCATIONS, marker))
            .await?;
        for allocation in &waiting {
            if let Err(later) = settle_guarded(conductor, allocation).await {
                put_off = Some(later);
            }
        }
        match waiting.last() {
            Some(last) if waiting.len() == PAGE_ALLOCATIONS => marker = Some(last.id),
            _ => return put_off.map_or(Ok(()), Err),
        }
    }
}

/// A panic costs this allocation, not all of them.
async fn settle_guarded(
    conductor: &Conductor,
    allocation: &Record<Allocation>,
) -> Result<(), Later> {
    let settling = AssertUnwindSafe(settle(conductor, allocation)).catch_unwind();
    match settling.await {
        Ok(settled) => settled,
        Err(panic) => {
            let cause = message_of(&*panic);
            tracing::error!(allocation.id = %allocation.id, cause, "finding a node failed by a fault of ours");
            fail(
                conductor,
                allocation.id,
                "The server failed by a fault of its own; its log says more.".to_owned(),
            )
            .await
        }
    }
}

async fn settle(conductor: &Conductor, allocation: &Record<Allocation>) -> Result<(), Later> {
    for _ in 0..ROUNDS {
        if let Asked::Settled = ask_all(conductor, allocation).await? {
            return Ok(());
        }
        let looked_at = nodes_of_class(conductor, allocation).await?;
        // Where one fits now, it was not there before, or was taken and freed in the same moment.
        if let Err(why) = choose(allocation, &looked_at) {
            return fail(conductor, allocation.id, why).await;
        }
    }
    let class = allocation.is.resource_class.clone().unwrap_or_default();
    let why = format!(
        "No available node matches resource class {class}: others took each that did in the same moment."
    );
    fail(conductor, allocation.id, why).await
}

/// Asks every node that may fit: those that are named, or first the namesake and then all that are available.
async fn ask_all(conductor: &Conductor, allocation: &Record<Allocation>) -> Result<Asked, Later> {
    if let Some(named) = named(conductor, allocation).await? {
        return ask(conductor, allocation, &named).await;
    }
    if let Some(name) = &allocation.is.name
        && let Some(namesake) = conductor.reader().node(Ident::Name(name.clone())).await?
        && let Asked::Settled = ask(conductor, allocation, &[namesake]).await?
    {
        return Ok(Asked::Settled);
    }
    let mut marker = None;
    loop {
        let filter = NodeFilter {
            provision_state: Some(ProvisionState::Available),
            associated: Some(false),
            maintenance: Some(false),
            resource_class: allocation.is.resource_class.clone(),
            project: allocation.is.owner.clone(),
            include_children: true,
            ..NodeFilter::default()
        };
        let nodes = conductor
            .reader()
            .nodes(filter, Page::by_age(PAGE_NODES, marker))
            .await?;
        if let Asked::Settled = ask(conductor, allocation, &nodes).await? {
            return Ok(Asked::Settled);
        }
        match nodes.last() {
            Some(last) if nodes.len() == PAGE_NODES => marker = Some(last.id.0),
            _ => return Ok(Asked::NoneTaken),
        }
    }
}

async fn ask(
    conductor: &Conductor,
    allocation: &Record<Allocation>,
    nodes: &[Node],
) -> Result<Asked, Later> {
    let Ok(candidates) = choose(allocation, nodes) else {
        return Ok(Asked::NoneTaken);
    };
    for node in candidates {
        let event = Event::Allocation(AllocationChange::Take(demand(allocation)));
        match conductor.deliver(node, event).await {
            Ok(_) => {
                tracing::info!(allocation.id = %allocation.id, node.id = %node, "allocated");
                return Ok(Asked::Settled);
            }
            // The allocation itself is gone.
            Err(DeliverError::Refused(Refused::NotFound { .. })) => return Ok(Asked::Settled),
            Err(
                DeliverError::NotFound
                | DeliverError::Refused(_)
                | DeliverError::Busy(_)
                | DeliverError::Duplicate { .. }
                | DeliverError::Panicked,
            ) => {}
            Err(DeliverError::Overloaded { .. }) => {
                return Err(Later(
                    "the server has more to do than it can take in".to_owned(),
                ));
            }
            Err(DeliverError::Unavailable(why)) => return Err(Later(why)),
        }
    }
    Ok(Asked::NoneTaken)
}

/// The nodes that alone come into question, where there are such.
async fn named(
    conductor: &Conductor,
    allocation: &Record<Allocation>,
) -> Result<Option<Vec<Node>>, Later> {
    let is = &allocation.is;
    let ids: Vec<NodeId> = match is.backfill {
        Some(node) => vec![node],
        None => is
            .candidate_nodes
            .iter()
            .filter_map(|id| id.parse().ok())
            .collect(),
    };
    if ids.is_empty() {
        return Ok(None);
    }
    let mut nodes = Vec::with_capacity(ids.len());
    for id in ids {
        nodes.extend(conductor.reader().node(Ident::Id(id)).await?);
    }
    Ok(Some(nodes))
}

/// The nodes that the reasons are told of.
async fn nodes_of_class(
    conductor: &Conductor,
    allocation: &Record<Allocation>,
) -> Result<Vec<Node>, Later> {
    if let Some(named) = named(conductor, allocation).await? {
        return Ok(named);
    }
    let filter = NodeFilter {
        resource_class: allocation.is.resource_class.clone(),
        include_children: true,
        ..NodeFilter::default()
    };
    Ok(conductor
        .reader()
        .nodes(filter, Page::by_age(NODES_TOLD, None))
        .await?)
}

async fn fail(conductor: &Conductor, id: Uuid, why: String) -> Result<(), Later> {
    tracing::info!(allocation.id = %id, why, "no node for an allocation");
    let failing = conductor.change_record(id, |old: &Allocation| {
        Ok(match old.state {
            AllocationState::Allocating => old.failed(why.clone()),
            AllocationState::Active | AllocationState::Error => old.clone(),
        })
    });
    match failing.await {
        // Gone is settled, too.
        Ok(_) | Err(DeliverError::NotFound) => Ok(()),
        Err(DeliverError::Unavailable(why)) => Err(Later(why)),
        Err(error) => Err(Later(format!("{error:?}"))),
    }
}

impl Conductor {
    /// Asks for a node. The answer is the wish as it is stored; whether there is a node for it shows later, except where it names
    /// the node it is of already.
    ///
    /// # Errors
    /// As [`Conductor::create_record`]; for a named node whatever that answers.
    pub async fn allocate(
        &self,
        id: Uuid,
        wish: Allocation,
    ) -> Result<Record<Allocation>, DeliverError> {
        let backfill = wish.backfill;
        let record = self.create_record(id, wish).await?;
        let Some(node) = backfill else {
            self.look_for_nodes();
            return Ok(record);
        };
        let event = Event::Allocation(AllocationChange::Take(demand(&record)));
        match self.deliver(node, event).await {
            Ok(_) => self.record(id).await,
            Err(error) => {
                match self.remove_record::<Allocation>(id, |_| Ok(())).await {
                    Ok(()) | Err(DeliverError::NotFound) => {}
                    Err(trouble) => {
                        tracing::warn!(allocation.id = %id, ?trouble, "a refused allocation can't be removed");
                    }
                }
                Err(error)
            }
        }
    }

    /// Ends an allocation and frees its node.
    ///
    /// # Errors
    /// `NotFound`; what its node refuses.
    pub async fn end_allocation(&self, id: Uuid) -> Result<(), DeliverError> {
        let mut last = DeliverError::NotFound;
        for _ in 0..ROUNDS {
            let record = self.record::<Allocation>(id).await?;
            let ended = match record.is.node_uuid {
                Some(node) => self.release(node, id).await,
                None => {
                    self.remove_record(id, |allocation: &Allocation| match allocation.node_uuid {
                        None => Ok(()),
                        Some(node) => Err(Refused::Conflict {
                            text: format!("The allocation has just been given node {node}."),
                        }),
                    })
                    .await
                }
            };
            match ended {
                // It got its node in this moment.
                Err(error @ DeliverError::Refused(Refused::Conflict { .. }))
                    if record.is.node_uuid.is_none() =>
                {
                    last = error;
                }
                ended => return ended,
            }
        }
        Err(last)
    }

    async fn release(&self, node: NodeId, id: Uuid) -> Result<(), DeliverError> {
        let event = Event::Allocation(AllocationChange::Release(id));
        match self.deliver(node, event).await {
            Ok(_) => Ok(()),
            // The node is gone, or has nothing to do with it any more.
            Err(DeliverError::NotFound | DeliverError::Refused(Refused::NotFound { .. })) => {
                self.remove_record::<Allocation>(id, |_| Ok(())).await
            }
            Err(error) => Err(error),
        }
    }

    fn look_for_nodes(&self) {
        if let Some(allocator) = self.allocator.get() {
            // Where it is full, a look is still to come.
            let _ = allocator.try_send(Look);
        }
    }

    /// Takes up what waits; from now on allocations find nodes.
    pub(super) fn start_allocating(&self) {
        let conductor = self.clone();
        self.allocator.get_or_init(|| Allocator::start(conductor));
    }
}
