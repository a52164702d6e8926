//! Whether heartbeats wait for what is none of their business: every tenth agent hangs, and each commit takes 50 ms longer.

use std::sync::Arc;

use serde_json::json;

use super::agents::Agents;
use super::load::{Load, Until};
use super::{Bench, load, requests, site};

const PART: &str = "neighbours";
/// One agent of so many hangs.
const HANGING_ONE_OF: u64 = 10;
const HEARTBEATS_PER_S: f64 = 2_000.0;
const CHANGES_PER_S: f64 = 100.0;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let (nodes, waiting) = (bench.options.nodes, bench.options.waiting);
    let agents = Agents::hanging().await.map_err(|error| error.to_string())?;
    let place = bench.place()?;
    let node = |number: u64, now| match number {
        number if number >= waiting => site::idle(number, now),
        number if number.is_multiple_of(HANGING_ONE_OF) => {
            site::writing(number, agents.url(number), now)
        }
        number => site::heard(number, now),
    };
    site::fill(&place.url, nodes, node).await?;
    let conductor = bench.slow_conductor(&place).await?;
    let key = place.key.clone();
    let heartbeat: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let number = number * 7919 % waiting;
        let url = match number.is_multiple_of(HANGING_ONE_OF) {
            true => agents.url(number),
            false => site::NOBODY,
        };
        *out = requests::heartbeat(&key, number, url);
    });
    let change: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let node = site::id(waiting + number * 7919 % (nodes - waiting).max(1));
        let patch = json!([{"op": "add", "path": "/extra/seen", "value": number}]);
        *out = requests::request("PATCH", &format!("/v1/nodes/{node}"), Some(&patch));
    });
    let paced = |per_s, write| {
        load::drive(Load {
            address: conductor.address,
            connections: 64,
            per_s: Some(per_s),
            until: Until::Passed(bench.load_time()),
            write,
        })
    };
    let (heartbeats, changes) = tokio::join!(
        paced(HEARTBEATS_PER_S, heartbeat),
        paced(CHANGES_PER_S, change)
    );
    let (heartbeats, changes) = (heartbeats?, changes?);
    conductor.stop().await;
    let report = &mut bench.report;
    report.add(PART, "heartbeats: median", heartbeats.ms(500), "ms");
    report
        .add(PART, "heartbeats: 99 %", heartbeats.ms(990), "ms")
        .at_most(20.0);
    report.add(PART, "heartbeats: 99.9 %", heartbeats.ms(999), "ms");
    report.add(PART, "heartbeats: slowest", heartbeats.ms(1_000), "ms");
    report.expect_none(PART, "heartbeats: not accepted", heartbeats.bad());
    report.add(
        PART,
        "changes, which wait for the slow store: median",
        changes.ms(500),
        "ms",
    );
    report.expect_none(PART, "changes: failed", changes.bad());
    Ok(PART)
}
