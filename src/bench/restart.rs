//! Killed with SIGKILL while every waiting node has a command open, and started again: when it is ready, when every command is
//! known to be running still, and how hard the agents are asked meanwhile.

use std::time::{Duration, Instant};

use super::agents::Agents;
use super::{Bench, site};

const PART: &str = "restart";
/// What `agent.requests_max` allows unless it is set.
const AT_ONCE_MAX: f64 = 1_000.0;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let (nodes, waiting) = (bench.options.nodes, bench.options.waiting);
    let agents = Agents::writing().await.map_err(|error| error.to_string())?;
    let place = bench.place()?;
    let writing = |number, now| site::writing(number, agents.url(number), now);
    site::fill_some_waiting(&place.url, nodes, waiting, writing).await?;
    let conductor = bench.conductor(&place).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    conductor.kill();

    let posts_before = agents.asked.posts();
    let began = Instant::now();
    let again = async {
        let conductor = bench.conductor(&place).await?;
        let ready = conductor.ready_after;
        let back = conductor.until(
            "upbeat_recovery_nodes_left",
            Duration::from_secs(120),
            |left| left == 0.0,
        );
        back.await?;
        Ok::<_, String>((conductor, ready, began.elapsed()))
    };
    let (again, (per_s, at_once)) = tokio::join!(again, agents.watch(30));
    let (conductor, ready, back) = again?;
    let report = &mut bench.report;
    report
        .add(PART, "ready after", ready.as_secs_f64(), "s")
        .at_most(3.0);
    report
        .add(
            PART,
            "every open command found again after",
            back.as_secs_f64(),
            "s",
        )
        .at_most(60.0);
    report.add(
        PART,
        "requests to agents in the fullest second of 30",
        per_s as f64,
        "",
    );
    report
        .add(
            PART,
            "requests to agents at once, at most",
            at_once as f64,
            "",
        )
        .at_most(AT_ONCE_MAX);
    report.expect_none(
        PART,
        "commands that were sent again",
        agents.asked.posts() - posts_before,
    );
    conductor.stop().await;
    Ok(PART)
}
