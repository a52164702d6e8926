//! Twice as many heartbeats as the conductor can take: how many it takes, what the others are told, what it costs, and how soon
//! all is as before.

use std::time::{Duration, Instant};

use super::load::{Load, Until};
use super::process::Process;
use super::{Bench, load, process, requests, site};
use crate::serve;

const PART: &str = "overload";
const MB: f64 = 1_048_576.0;
const TIMES: f64 = 2.0;
/// At this share of what it carries nothing queues up.
const CALM: f64 = 0.5;
const CONNECTIONS: usize = 4_096;
/// Nobody expects more than this afterwards.
const USUAL_PER_S: f64 = 500.0;
const USUAL_MS: f64 = 10.0;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    serve::allow_open_files();
    let waiting = bench.options.waiting;
    let place = bench.place()?;
    site::fill(&place.url, waiting, site::heard).await?;
    let conductor = bench.conductor(&place).await?;
    let write = requests::heartbeats_of_all(&place.key, waiting);
    let usual = Load {
        address: conductor.address,
        connections: 64,
        per_s: None,
        until: Until::Passed(Duration::from_secs(3)),
        write,
    };
    let capacity = load::drive(usual.clone()).await?.per_s();
    let before = conductor.resident() as f64;
    let flood = Load {
        connections: CONNECTIONS,
        per_s: Some(capacity * TIMES),
        until: Until::Passed(bench.load_time()),
        ..usual.clone()
    };
    let calm = Load {
        per_s: Some(capacity * CALM),
        until: Until::Passed(Duration::from_secs(3)),
        ..flood.clone()
    };
    load::drive(calm).await?;
    let connected = conductor.resident() as f64;
    let busy = Load {
        per_s: Some(capacity),
        ..flood.clone()
    };
    let carried = load::drive(busy).await?.per_s();
    let mine = || process::processor_time_of(std::process::id());
    let used = [conductor.processor_time(), mine()];
    let flooded = load::drive(flood.clone()).await?;
    let used = [conductor.processor_time() - used[0], mine() - used[1]];
    let after = conductor.resident() as f64;
    let began = Instant::now();
    let back = loop {
        let normal = load::drive(Load {
            per_s: Some(USUAL_PER_S),
            until: Until::Passed(Duration::from_secs(1)),
            ..usual.clone()
        })
        .await?;
        if normal.bad() == 0 && normal.ms(990) <= USUAL_MS
            || began.elapsed() > Duration::from_secs(60)
        {
            break began.elapsed().as_secs_f64() - 1.0;
        }
    };
    let roof = Process::roof().await?;
    let of_roof = load::drive(Load {
        address: roof.address,
        ..flood
    })
    .await?;
    roof.stop().await;
    let of = |status| flooded.statuses.get(&status).copied().unwrap_or(0);
    let told_to_wait = of(503);
    let unanswered = flooded.bad() - told_to_wait;
    let report = &mut bench.report;
    report.add(PART, "what it carries at 64 connections", capacity, "/s");
    report.add(
        PART,
        &format!("accepted when that comes by {CONNECTIONS} connections"),
        carried,
        "/s",
    );
    let accepted = report.add(PART, "accepted at twice that", flooded.per_s(), "/s");
    accepted.at_least(carried * 0.8);
    accepted.roof = Some(of_roof.per_s());
    report.add(
        PART,
        "told to come again (503)",
        told_to_wait as f64 / flooded.took.as_secs_f64(),
        "/s",
    );
    report.expect_none(PART, "503 without Retry-After", flooded.without_retry_after);
    report.expect_none(PART, "neither", unanswered);
    report.add(PART, "accepted: 99 %", flooded.ms(990), "ms");
    for (whose, used) in ["the conductor's", "the load generator's"]
        .into_iter()
        .zip(used)
    {
        report.add(
            PART,
            &format!("processor cores in use meanwhile, {whose}"),
            used.as_secs_f64() / flooded.took.as_secs_f64(),
            "",
        );
    }
    report.add(
        PART,
        &format!("more memory with {CONNECTIONS} connections, at half of what it carries"),
        (connected - before).max(0.0) / MB,
        "MB",
    );
    report
        .add(PART, "more memory", (after - before).max(0.0) / MB, "MB")
        .at_most(100.0);
    report
        .add(PART, "as before after", back.max(0.0), "s")
        .at_most(10.0);
    conductor.stop().await;
    Ok(PART)
}
