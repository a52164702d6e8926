//! How cost grows with the number of nodes: the same questions to sites of different sizes. What a site costs as a whole (its start,
//! its memory) is told as growth for each node since the size before; what one question costs is told as it is.

use std::sync::Arc;
use std::time::Duration;

use super::load::{Load, Until};
use super::process::Process;
use super::{Bench, load, requests, site};

const PART: &str = "curve";
const KIB: f64 = 1_024.0;
const SIZES: [u64; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
const HEARTBEATS_FOR: Duration = Duration::from_secs(5);
const PAGES: u64 = 100;
/// Linear is: a node costs no more in the last step than this many times what it costs all the way to there.
const AS_MUCH_AS: f64 = 1.5;

/// What a site of one size takes.
#[derive(Clone, Copy)]
struct Whole {
    nodes: u64,
    ready_ms: f64,
    kib: f64,
}

impl Whole {
    fn of(nodes: u64, conductor: &Process) -> Whole {
        Whole {
            nodes,
            ready_ms: conductor.ready_after.as_secs_f64() * 1_000.0,
            kib: conductor.resident() as f64 / KIB,
        }
    }

    /// Milliseconds for a thousand more nodes, and KiB for one, from the other size to this.
    fn growth_since(self, before: Whole) -> [f64; 2] {
        let more = (self.nodes - before.nodes) as f64;
        [
            (self.ready_ms - before.ready_ms) / more * 1_000.0,
            (self.kib - before.kib) / more,
        ]
    }
}

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let conductor = bench.conductor(&place).await?;
    let empty = Whole::of(0, &conductor);
    conductor.stop().await;
    let mut sizes = vec![empty];
    for nodes in SIZES {
        if nodes > bench.options.nodes {
            break;
        }
        let whole = measure_one(bench, nodes).await?;
        let [ms, kib] = whole.growth_since(*sizes.last().unwrap_or(&empty));
        let report = &mut bench.report;
        let what = |figure: &str| format!("{nodes} nodes: {figure}");
        report.add(PART, &what("ready after"), whole.ready_ms, "ms");
        report.add(PART, &what("... for 1,000 more"), ms, "ms");
        report.add(PART, &what("memory"), whole.kib / KIB, "MB");
        report.add(PART, &what("... for one more"), kib, "KiB");
        sizes.push(whole);
    }
    if let [.., before, last] = sizes[..]
        && before.nodes > 0
    {
        let steps = last.growth_since(before);
        let all_the_way = before.growth_since(empty);
        for (index, what) in ["start", "memory"].into_iter().enumerate() {
            bench
                .report
                .add(
                    PART,
                    &format!("{what}: one more in the last step, of what one costs before"),
                    steps[index] / all_the_way[index],
                    "",
                )
                .at_most(AS_MUCH_AS);
        }
    }
    Ok(PART)
}

/// A site of this size, and what single questions cost there.
async fn measure_one(bench: &mut Bench, nodes: u64) -> Result<Whole, String> {
    // One of ten waits, as everywhere in this bench.
    let waiting = nodes / 10;
    let place = bench.place()?;
    site::fill_some_waiting(&place.url, nodes, waiting, site::heard).await?;
    let conductor = bench.conductor(&place).await?;
    let list: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let marker = site::id(number * 7919 % (nodes - 999));
        let path = format!("/v1/nodes?limit=1000&fields=uuid,name,provision_state&marker={marker}");
        *out = requests::request("GET", &path, None);
    });
    let before = conductor.processor_time();
    let heartbeats = load::drive(Load {
        address: conductor.address,
        connections: 64,
        per_s: None,
        until: Until::Passed(HEARTBEATS_FOR),
        write: requests::heartbeats_of_all(&place.key, waiting),
    })
    .await?;
    let took = (conductor.processor_time() - before).as_secs_f64();
    let whole = Whole::of(nodes, &conductor);
    let pages = load::drive(Load {
        address: conductor.address,
        connections: 1,
        per_s: None,
        until: Until::Sent(PAGES),
        write: list,
    })
    .await?;
    let report = &mut bench.report;
    let what = |figure: &str| format!("{nodes} nodes: {figure}");
    report.add(PART, &what("heartbeats"), heartbeats.per_s(), "/s");
    report.add(
        PART,
        &what("processor time for one"),
        took * 1e6 / heartbeats.good() as f64,
        "us",
    );
    report.add(PART, &what("a page of 1,000: median"), pages.ms(500), "ms");
    report.expect_none(PART, what("failed"), heartbeats.bad() + pages.bad());
    conductor.stop().await;
    Ok(whole)
}
