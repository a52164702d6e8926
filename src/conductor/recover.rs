//! At start: every row that waits for something gets its actor back, which then asks anew for all that was in flight.

use std::sync::Arc;

use super::measure;
use super::node_actor::Start;
use super::shared::Shared;
use crate::store::ReadError;

/// Starts an actor for each waiting node; returns how many there were.
pub(super) async fn recover(shared: &Arc<Shared>, down_for_ms: i64) -> Result<usize, ReadError> {
    for (state, nodes) in shared.reader.count_by_state().await? {
        measure::in_state(
            &shared.metrics,
            state,
            i64::try_from(nodes).unwrap_or(i64::MAX),
        );
    }
    let waiting = shared.reader.waiting().await?;
    let recovered = waiting.len();
    for node in waiting {
        measure::recovered(&shared.metrics, &node);
        let start = Start {
            down_for_ms,
            quarantine: None,
        };
        shared.registry.start(shared, node.id, start);
    }
    Ok(recovered)
}
