//! Whether heartbeats wait for what is none of their business: every tenth agent hangs, and each commit takes 50 ms longer.
//!
//! Here the conductor runs in this process, since only so its store can be slowed down.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;

use super::agents::Agents;
use super::load::{Load, Until};
use super::{Bench, load, requests, site};
use crate::config::Config;
use crate::serve::{self, Hooks};

const PART: &str = "neighbours";
const SLOWED_BY: Duration = Duration::from_millis(50);
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
    let mut config = Config::default();
    config.database.url.clone_from(&place.url);
    config.agent.token_key_file = Some(place.folder().join("token.key"));
    config.agent.require_tls = false;
    config.agent.callback_networks =
        vec!["127.0.0.0/8".parse().map_err(|error| format!("{error}"))?];
    config.api.listen = ([127, 0, 0, 1], 0).into();

    let (tell_ready, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let conductor = std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async {
            let hooks = Hooks {
                on_commit: Some(Arc::new(|_| std::thread::sleep(SLOWED_BY))),
                ..Hooks::default()
            };
            match serve::start_with(&config, hooks).await {
                Ok(running) => {
                    let _ = tell_ready.send(Ok(running.address));
                    let _ = stopped.await;
                    running.stop().await;
                }
                Err(why) => drop(tell_ready.send(Err(why))),
            }
        });
    });
    let address = ready.await.map_err(|_| "the conductor panicked")??;
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
            address,
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
    let _ = stop.send(());
    conductor.join().map_err(|_| "the conductor panicked")?;
    let report = &mut bench.report;
    report.add(PART, "heartbeats: median", heartbeats.ms(500), "ms");
    report
        .add(PART, "heartbeats: 99 %", heartbeats.ms(990), "ms")
        .at_most(20.0);
    report.add(PART, "heartbeats: 99.9 %", heartbeats.ms(999), "ms");
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
