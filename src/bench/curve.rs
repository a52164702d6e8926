//! How cost grows with the number of nodes: the same questions to sites of different sizes.

use std::sync::Arc;
use std::time::Duration;

use super::load::{Load, Until};
use super::{Bench, load, requests, site};

const PART: &str = "curve";
const KIB: f64 = 1_024.0;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let conductor = bench.conductor(&place).await?;
    let empty = conductor.resident() as f64;
    conductor.stop().await;
    let most = bench.options.nodes;
    for nodes in [1_000, 3_000, 10_000, 30_000, 100_000] {
        if nodes > most {
            break;
        }
        // One of ten waits, as everywhere in this bench.
        let waiting = nodes / 10;
        let place = bench.place()?;
        site::fill_some_waiting(&place.url, nodes, waiting, site::heard).await?;
        let conductor = bench.conductor(&place).await?;
        let ready = conductor.ready_after.as_secs_f64() * 1_000.0;
        bench
            .report
            .add(PART, &format!("{nodes} nodes: ready after"), ready, "ms");
        let heartbeat = requests::heartbeats_of_all(&place.key, waiting);
        let list: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
            let marker = site::id(number * 7919 % (nodes - 999));
            let path =
                format!("/v1/nodes?limit=1000&fields=uuid,name,provision_state&marker={marker}");
            *out = requests::request("GET", &path, None);
        });
        for (what, write, connections, until) in [
            (
                "heartbeats",
                heartbeat,
                64,
                Until::Passed(Duration::from_secs(3)),
            ),
            ("pages of 1,000", list, 1, Until::Sent(100)),
        ] {
            let load = Load {
                address: conductor.address,
                connections,
                per_s: None,
                until,
                write,
            };
            let measured = load::drive(load).await?;
            bench.report.add(
                PART,
                &format!("{nodes} nodes: {what}"),
                measured.per_s(),
                "/s",
            );
            bench.report.expect_none(
                PART,
                format!("{nodes} nodes: {what} that failed"),
                measured.bad(),
            );
        }
        let each = (conductor.resident() as f64 - empty) / nodes as f64 / KIB;
        bench.report.add(
            PART,
            &format!("{nodes} nodes: memory for each, a tenth of them waiting"),
            each,
            "KiB",
        );
        conductor.stop().await;
    }
    Ok(PART)
}
