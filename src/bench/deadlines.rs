//! Every node has a deadline armed, and those of the waiting ones come within one second; meanwhile the others' agents are heard.

use std::sync::Arc;
use std::time::Duration;

use super::load::{Load, Until};
use super::{Bench, load, requests, site};
use crate::clock::Clock;

const PART: &str = "deadlines";
const HEARTBEATS_PER_S: f64 = 1_000.0;
/// Heartbeats are sent from so long before the deadlines come.
const HEARD_BEFORE_MS: i64 = 2_000;
const FAILED: &str = "upbeat_nodes{provision_state=\"deploy failed\"}";

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let (nodes, due) = (bench.options.nodes, bench.options.waiting);
    let place = bench.place()?;
    let clock = Clock::start();
    // Until then all are stored, read again and have their actors.
    let from = clock
        .now()
        .plus_ms(40_000 + i64::try_from(nodes / 2).unwrap_or(0));
    let node = |number, now| {
        let mut node = site::heard(number, now);
        if number < due {
            let spread = i64::try_from(number * 1_000 / due).unwrap_or(0);
            node.deadlines.liveness = Some(from.plus_ms(spread));
        }
        node
    };
    site::fill(&place.url, nodes, node).await?;
    let conductor = bench.conductor(&place).await?;
    let ready = conductor.ready_after;
    bench.report.add(
        PART,
        "ready with a deadline on every node after",
        ready.as_secs_f64(),
        "s",
    );
    let wait = from.plus_ms(-HEARD_BEFORE_MS).ms_since(clock.now());
    let wait = u64::try_from(wait).map_err(|_| "this machine was not ready in time")?;
    tokio::time::sleep(Duration::from_millis(wait)).await;

    let key = place.key.clone();
    let write: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let alive = due + number * 7919 % (nodes - due).max(1);
        *out = requests::heartbeat(&key, alive, site::NOBODY);
    });
    let heartbeats = load::drive(Load {
        address: conductor.address,
        connections: 64,
        per_s: Some(HEARTBEATS_PER_S),
        until: Until::Passed(Duration::from_secs(6)),
        write,
    });
    let fired = async {
        let all = conductor.until(FAILED, Duration::from_secs(60), |failed| {
            failed >= due as f64
        });
        all.await?;
        Ok::<_, String>(clock.now().ms_since(from.plus_ms(1_000)))
    };
    let (fired, heartbeats) = tokio::join!(fired, heartbeats);
    let late_ms = fired?;
    let heartbeats = heartbeats?;
    let report = &mut bench.report;
    report
        .add(
            PART,
            "the last of all stored after the last was due",
            late_ms as f64 / 1_000.0,
            "s",
        )
        .at_most(1.0);
    report.add(
        PART,
        "heartbeats meanwhile: median",
        heartbeats.ms(500),
        "ms",
    );
    report
        .add(PART, "heartbeats meanwhile: 99 %", heartbeats.ms(990), "ms")
        .at_most(20.0);
    report.expect_none(PART, "heartbeats meanwhile: not accepted", heartbeats.bad());
    conductor.stop().await;
    Ok(PART)
}
