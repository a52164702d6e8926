//! Heartbeats: authenticated, taken by the node's actor, the sign of life stored. Conductor and bare handler take turns, several
//! times, so that a busy moment of the machine hits both.

use super::Bench;
use super::load::{self, Load, Measured, Until};
use super::process::Process;
use super::report::Target;
use super::{requests, site};

const PART: &str = "heartbeats";
const CONNECTIONS: [usize; 3] = [1, 64, 512];
/// How often the two take turns.
const TURNS: u32 = 3;
/// Promised at this many connections.
const PROMISED_AT: usize = 64;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let waiting = bench.options.waiting;
    site::fill_some_waiting(&place.url, bench.options.nodes, waiting, site::heard).await?;
    let conductor = bench.conductor(&place).await?;
    let roof = Process::roof().await?;
    let write = requests::heartbeats_of_all(&place.key, waiting);
    for connections in CONNECTIONS {
        let mut of_conductor = Measured::default();
        let mut of_roof = Measured::default();
        for _ in 0..TURNS {
            for (process, measured) in [(&conductor, &mut of_conductor), (&roof, &mut of_roof)] {
                let load = Load {
                    address: process.address,
                    connections,
                    per_s: None,
                    until: Until::Passed(bench.load_time() / TURNS),
                    write: write.clone(),
                };
                let turn = load::drive(load).await?;
                measured.follow(turn);
            }
        }
        tell(bench, connections, &of_conductor, &of_roof);
    }
    let stored = conductor.metric("upbeat_commit_rows_sum").await?;
    let cpu = conductor.processor_time().as_secs_f64();
    let heard = conductor
        .metric("upbeat_heartbeats_total{outcome=\"alive\"}")
        .await?;
    bench
        .report
        .add(PART, "signs of life stored meanwhile", stored, "");
    bench.report.add(
        PART,
        "the conductor's processor time for one, its start included",
        cpu * 1e6 / heard,
        "us",
    );
    conductor.stop().await;
    Ok(PART)
}

fn tell(bench: &mut Bench, connections: usize, conductor: &Measured, roof: &Measured) {
    let is_promised = connections == PROMISED_AT;
    let least = if bench.options.database.is_some() {
        20_000.0
    } else {
        30_000.0
    };
    let report = &mut bench.report;
    let what = |figure: &str| format!("{connections} connections: {figure}");
    let rate = report.add(PART, &what("accepted"), conductor.per_s(), "/s");
    rate.roof = Some(roof.per_s());
    rate.target = is_promised.then_some(Target::AtLeast(least));
    for (name, of_1000, most) in [
        ("median", 500, None),
        ("99 %", 990, Some(10.0)),
        ("99.9 %", 999, None),
    ] {
        let figure = report.add(PART, &what(name), conductor.ms(of_1000), "ms");
        figure.roof = Some(roof.ms(of_1000));
        figure.target = most.filter(|_| is_promised).map(Target::AtMost);
    }
    if is_promised {
        let share = conductor.per_s() / roof.per_s();
        report
            .add(PART, &what("share of the bare handler's"), share, "")
            .at_least(0.6);
    }
    report.expect_none(PART, what("not accepted"), conductor.bad());
}
