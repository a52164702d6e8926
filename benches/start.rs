//! From the start of the conductor to the first answered request, with 10,000 nodes in the database, 1,000 of them waiting for
//! their agents. Claim: at most 2 s.
//!
//! `cargo bench --bench start`

mod common;

use std::time::Instant;

const NODES: u64 = 10_000;
const WAITING: u64 = 1_000;
const ROUNDS: usize = 5;

fn main() {
    common::print_machine();
    common::choose_tls();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = common::config(folder.path());
    actix_web::rt::System::new().block_on(async {
        let node = |number, now| {
            if number < WAITING {
                common::waiting(number, now)
            } else {
                common::available(number, now)
            }
        };
        common::fill(&config.database.url, NODES, node).await;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let running = upbeat::serve::start(&config, None)
                .await
                .expect("the conductor starts");
            let url = format!("http://{}/health/ready", running.address);
            let answer = reqwest::get(&url).await.expect("an answer");
            assert_eq!(answer.status(), 200, "{url}");
            times.push(began.elapsed());
            running.stop().await;
        }
        times.sort();
        println!(
            "start to ready with {NODES} nodes, {WAITING} of them waiting: median {:.0?}, slowest of {ROUNDS} {:.0?} (claim: 2 s)",
            times[ROUNDS / 2],
            times[ROUNDS - 1]
        );
    });
}
