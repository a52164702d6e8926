//! At start: every row that waits for something gets its actor back, which then asks anew for all that was in flight.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::measure::{self, ComingBack, Recovery};
use super::node_actor::Start;
use super::shared::{OneMore, Shared};
use crate::node::queues::claims;
use crate::node::{Node, QUARANTINE_FAULT};
use crate::store::{NodeFilter, Page, ReadError};

/// How many nodes are read at once.
const PAGE_NODES: usize = 100;

/// Starts an actor for each waiting node; returns how many there were.
pub(super) async fn recover(shared: &Arc<Shared>, down_for_ms: i64) -> Result<usize, ReadError> {
    for (state, nodes) in shared.reader.count_by_state().await? {
        measure::in_state(
            &shared.metrics,
            state,
            i64::try_from(nodes).unwrap_or(i64::MAX),
        );
    }
    count_quarantined(shared).await?;
    let waiting = shared.reader.waiting().await?;
    let recovery = Recovery::begin(&shared.metrics, shared.clock, waiting.len());
    // What all of them are would be half the memory of a start. Only its own actor changes a node, and nobody else can be heard yet:
    // those of later pages are as they were when the first began.
    for page in waiting.chunks(PAGE_NODES) {
        let nodes = shared.reader.these(page.to_vec()).await?;
        for node in nodes {
            shared.claims(node.id, claims(&node));
            let node = shared.to_keep(node);
            start(shared, node, down_for_ms, &recovery);
        }
    }
    shared.turns.open(&shared.registry, &shared.metrics);
    Ok(waiting.len())
}

fn start(shared: &Arc<Shared>, node: Arc<Node>, down_for_ms: i64, recovery: &Arc<Recovery>) {
    measure::recovered(&shared.metrics, &node);
    if measure::is_sent(&node) {
        shared.unanswered.fetch_add(1, Ordering::AcqRel);
    }
    let id = node.id;
    let start = Start {
        down_for_ms,
        unsettled: Some(OneMore::of(&shared.unsettled)),
        quarantine: None,
        // Nobody can have been heard yet, so it is as it was read.
        row: Some(node),
        _coming_back: Some(ComingBack(recovery.clone())),
    };
    shared.registry.start(shared, id, start);
}

/// Not all of them wait for something, so they are counted for themselves.
async fn count_quarantined(shared: &Arc<Shared>) -> Result<(), ReadError> {
    let mut marker = None;
    loop {
        let filter = NodeFilter {
            fault: Some(QUARANTINE_FAULT.to_owned()),
            include_children: true,
            ..NodeFilter::default()
        };
        let page = Page::by_age(PAGE_NODES, marker);
        let nodes = shared.reader.nodes(filter, page).await?;
        measure::quarantined(&shared.metrics, &nodes);
        match nodes.last() {
            Some(last) if nodes.len() == PAGE_NODES => marker = Some(last.id.0),
            _ => return Ok(()),
        }
    }
}
