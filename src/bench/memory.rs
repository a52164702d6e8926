//! What a node costs in memory: at rest, at rest with an actor that was used, and with a command its agent carries out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::agents::Agents;
use super::load::{Load, Until};
use super::process::Process;
use super::{Bench, load, requests, site};

const PART: &str = "memory";
const MB: f64 = 1_048_576.0;
const KIB: f64 = 1_024.0;
/// For so long conductors do what they do before their memory is looked at.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let nodes = bench.options.nodes;
    let waiting = bench.options.waiting;

    let place = bench.place()?;
    let conductor = bench.conductor(&place).await?;
    tokio::time::sleep(SETTLED_AFTER).await;
    let empty = conductor.resident() as f64;
    conductor.stop().await;
    bench
        .report
        .add(PART, "the empty process", empty / MB, "MB")
        .at_most(40.0);

    let place = bench.place()?;
    site::fill(&place.url, nodes, site::idle).await?;
    let conductor = bench.conductor(&place).await?;
    tokio::time::sleep(SETTLED_AFTER).await;
    let above = |conductor: &Process| (conductor.resident() as f64 - empty).max(0.0);
    bench
        .report
        .add(
            PART,
            "a node at rest",
            above(&conductor) / nodes as f64 / KIB,
            "KiB",
        )
        .at_most(4.0);
    // Each is changed once, so each has had an actor.
    let write: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let patch = json!([{"op": "add", "path": "/extra/seen", "value": number}]);
        *out = requests::request(
            "PATCH",
            &format!("/v1/nodes/{}", site::id(number)),
            Some(&patch),
        );
    });
    let load = Load {
        address: conductor.address,
        connections: 64,
        per_s: None,
        until: Until::Sent(nodes),
        write,
    };
    let changed = load::drive(load).await?;
    bench
        .report
        .expect_none(PART, "changes that failed", changed.bad());
    tokio::time::sleep(SETTLED_AFTER).await;
    bench
        .report
        .add(
            PART,
            "a node at rest, after it was changed",
            above(&conductor) / nodes as f64 / KIB,
            "KiB",
        )
        .at_most(4.0);
    conductor.stop().await;

    let agents = Agents::writing().await.map_err(|error| error.to_string())?;
    let place = bench.place()?;
    site::fill(&place.url, waiting, |number, now| {
        site::writing(number, agents.url(number), now)
    })
    .await?;
    let conductor = bench.conductor(&place).await?;
    let all_back = conductor.until(
        "upbeat_recovery_nodes_left",
        Duration::from_secs(120),
        |left| left == 0.0,
    );
    all_back.await?;
    tokio::time::sleep(SETTLED_AFTER).await;
    let each = above(&conductor) / waiting as f64 / KIB;
    bench
        .report
        .add(PART, "a node with an open command", each, "KiB")
        .at_most(8.0);
    conductor.stop().await;
    Ok(PART)
}
