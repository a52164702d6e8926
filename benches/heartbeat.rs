//! Heartbeats over HTTP against a running conductor: how many a second, and how long each takes. The load generator runs in the
//! same process and shares the cores, so the conductor alone could take more.
//!
//! `cargo bench --bench heartbeat`

mod common;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use upbeat::conductor::TokenKey;

const NODES: u64 = 2_000;
const ROUNDS: u64 = 5;
const IN_FLIGHT: [usize; 3] = [1, 32, 256];

fn main() {
    common::print_machine();
    common::choose_tls();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = common::config(folder.path());
    let key_path = config.token_key_path().expect("beside the database");
    let key = TokenKey::load_or_create(&key_path).expect("a token key");
    actix_web::rt::System::new().block_on(async {
        let node = |number, now| common::heard(number, "nonce", now);
        common::fill(&config.database.url, NODES, node).await;
        let running = upbeat::serve::start(&config, None)
            .await
            .expect("the conductor starts");
        let url = format!("http://{}/v1/heartbeat/", running.address);
        let bodies: Vec<(String, String)> = (0..NODES)
            .map(|number| {
                let node = upbeat::node::NodeId(common::id(number));
                let body = json!({
                    "callback_url": common::CALLBACK_URL,
                    "agent_version": "13.0.0",
                    "agent_token": key.token(node, "nonce"),
                });
                (format!("{url}{node}"), body.to_string())
            })
            .collect();
        for in_flight in IN_FLIGHT {
            let (took, each) = beat(&bodies, in_flight).await;
            let (median, slow) = common::percentiles(each);
            println!(
                "{in_flight} in flight: {:.0} heartbeats/s, median {median:.1?}, 99 % within {slow:.1?}",
                (NODES * ROUNDS) as f64 / took.as_secs_f64(),
            );
        }
        running.stop().await;
    });
}

/// Sends every body `ROUNDS` times, `in_flight` at a time.
async fn beat(bodies: &[(String, String)], in_flight: usize) -> (Duration, Vec<Duration>) {
    let client = reqwest::Client::builder().build().expect("an HTTP client");
    let began = Instant::now();
    let senders = (0..in_flight).map(|sender| {
        let client = client.clone();
        async move {
            let mut each = Vec::new();
            for _ in 0..ROUNDS {
                for (url, body) in bodies.iter().skip(sender).step_by(in_flight) {
                    let sent = Instant::now();
                    let answer = client
                        .post(url)
                        .header("X-OpenStack-Ironic-API-Version", "1.68")
                        .body(body.clone())
                        .send()
                        .await
                        .expect("an answer");
                    assert_eq!(answer.status(), 202, "{url}");
                    each.push(sent.elapsed());
                }
            }
            each
        }
    });
    let each = join_all(senders).await.into_iter().flatten().collect();
    (began.elapsed(), each)
}
