//! Deadlines with 100,000 waiting nodes loaded. First 1,000 of them come due one after the other within five seconds, then nine
//! tenths of all in the same millisecond, as if every agent of a site had gone silent at once. All the time 500 heartbeats and 10
//! changes a second go on for the other nodes, sent by this same process, on the same cores.
//!
//! Claims: a deadline is handled at most 1 s late; those that come due together are handled one after the other without a pause,
//! and whoever calls meanwhile is answered.
//!
//! The rows are made as a conductor leaves them that was killed, so the start is measured too: every row's times move by the time
//! the conductor was away, and every row is stored again.
//!
//! `cargo bench --bench deadline`, or `cargo bench --bench deadline -- 10000` for another number of nodes

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::RunQueryDsl as _;
use diesel::connection::Connection as _;
use diesel::sqlite::SqliteConnection;
use serde_json::json;
use tokio::task::JoinSet;
use upbeat::clock::Clock;
use upbeat::conductor::TokenKey;
use upbeat::node::NodeId;

/// So many come due one after the other ...
const SPREAD: u64 = 1_000;
/// ... one every so many milliseconds ...
const SPREAD_EVERY_MS: i64 = 5;
/// ... the first so many milliseconds after the start.
const SPREAD_FROM_MS: i64 = 60_000;
/// When all the others that are silent come due.
const TOGETHER_AT_MS: i64 = 75_000;
/// Those whose agents go on sending signs of life, of all nodes: one of so many.
const ALIVE_ONE_OF: u64 = 10;

const HEARTBEATS_PER_S: u32 = 500;
const CHANGES_PER_S: u32 = 10;

fn main() {
    common::print_machine();
    common::choose_tls();
    common::log_to_nowhere();
    let nodes = common::number_argument().unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = common::config(folder.path());
    let key_path = config.token_key_path().expect("beside the database");
    let key = TokenKey::load_or_create(&key_path).expect("a token key");
    actix_web::rt::System::new().block_on(async {
        let killed_at = Clock::start().now();
        let node = |number, _| {
            let mut node = common::heard(number, "nonce", killed_at);
            let due_ms = match number {
                _ if number < SPREAD => SPREAD_FROM_MS + SPREAD_EVERY_MS * number as i64,
                _ if is_alive(number) => 3_600_000,
                _ => TOGETHER_AT_MS,
            };
            node.deadlines.liveness = Some(killed_at.plus_ms(due_ms));
            node
        };
        common::fill(&config.database.url, nodes, node).await;
        common::note_alive_at(&config.database.url, killed_at).await;

        let began = Instant::now();
        let running = upbeat::serve::start(&config, None)
            .await
            .expect("the conductor starts");
        let ready = began.elapsed();
        let api = common::Api::new(&running);
        api.until("upbeat_recovery_nodes_left", |left| left == 0.0).await;
        println!(
            "start with {nodes} nodes, all of them waiting: ready after {ready:.1?}, all back after {:.1} s, {} MB resident",
            api.metric("upbeat_recovery_seconds").await,
            common::resident_mb().0,
        );
        assert!(
            began.elapsed() < Duration::from_millis(SPREAD_FROM_MS as u64),
            "the first deadlines came due before all nodes were back"
        );

        let load = Load::begin(&api, &key, nodes);
        wait_until(began, SPREAD_FROM_MS).await;
        load.forget();
        api.until(FAILED, |failed| failed >= SPREAD as f64).await;
        println!("{SPREAD} deadlines within {} s, among {nodes} nodes:", SPREAD as i64 * SPREAD_EVERY_MS / 1_000);
        report_lateness(&config.database.url, &api, SPREAD).await;
        load.report();

        let silent = (SPREAD..nodes).filter(|number| !is_alive(*number)).count() as u64;
        wait_until(began, TOGETHER_AT_MS).await;
        load.forget();
        let due = Instant::now();
        api.until(FAILED, |failed| failed >= (SPREAD + silent) as f64).await;
        println!("{silent} deadlines at once:");
        println!("  all handled and stored after {:.1?}", due.elapsed());
        report_lateness(&config.database.url, &api, silent).await;
        load.report();
        let (now, most) = common::resident_mb();
        println!("  {now} MB resident, {most} MB at most, load generator included");
        load.end().await;
        running.stop().await;
    });
}

const FAILED: &str = "upbeat_nodes{provision_state=\"deploy failed\"}";

fn is_alive(number: u64) -> bool {
    number >= SPREAD && number.is_multiple_of(ALIVE_ONE_OF)
}

async fn wait_until(began: Instant, ms: i64) {
    let at = began + Duration::from_millis(ms as u64);
    tokio::time::sleep_until(at.into()).await;
}

#[derive(diesel::QueryableByName)]
struct Line {
    #[diesel(sql_type = diesel::sql_types::Text)]
    event: String,
}

/// How late the last `count` deadlines were decided, from the history, and how late they were stored, from the metric.
async fn report_lateness(url: &str, api: &common::Api, count: u64) {
    let path = Path::new(url.trim_start_matches("sqlite://"));
    let mut database = SqliteConnection::establish(path.to_str().expect("a plain path"))
        .expect("the database can be read");
    let lines: Vec<Line> = diesel::sql_query(format!(
        "SELECT event FROM history WHERE event LIKE '%deadline reached%' ORDER BY happened_at DESC LIMIT {count}"
    ))
    .load(&mut database)
    .expect("the history");
    assert_eq!(lines.len() as u64, count, "each fired once");
    let late = lines.iter().map(|line| {
        let words: Vec<&str> = line.event.split(' ').collect();
        let ms = words.iter().position(|word| *word == "ms").expect("ms");
        Duration::from_millis(words[ms - 1].parse().expect("a number"))
    });
    println!("  decided late by {}", common::spread(late.collect()));
    println!(
        "  stored late, so far: {}",
        api.buckets("upbeat_deadline_lateness_seconds").await
    );
}

/// What other nodes' agents and operators do meanwhile.
struct Load {
    ended: Arc<AtomicBool>,
    heartbeats: Arc<common::Answers>,
    changes: Arc<common::Answers>,
    tasks: JoinSet<()>,
}

impl Load {
    fn begin(api: &common::Api, key: &TokenKey, nodes: u64) -> Load {
        let alive: Vec<u64> = (0..nodes).filter(|number| is_alive(*number)).collect();
        let ended = Arc::new(AtomicBool::new(false));
        let (heartbeats, changes) = (Arc::default(), Arc::default());
        let mut tasks = JoinSet::new();
        let beats: Vec<(String, String)> = alive
            .iter()
            .map(|number| {
                let node = NodeId(common::id(*number));
                let body = json!({
                    "callback_url": common::CALLBACK_URL,
                    "agent_version": "13.0.0",
                    "agent_token": key.token(node, "nonce"),
                });
                (format!("{}/v1/heartbeat/{node}", api.url), body.to_string())
            })
            .collect();
        tasks.spawn(paced(
            ended.clone(),
            HEARTBEATS_PER_S,
            beats,
            reqwest::Method::POST,
            "1.68",
            Arc::clone(&heartbeats),
        ));
        let maintenance = alive
            .iter()
            .map(|number| {
                let node = NodeId(common::id(*number));
                (
                    format!("{}/v1/nodes/{node}/maintenance", api.url),
                    "{}".to_owned(),
                )
            })
            .collect();
        tasks.spawn(paced(
            ended.clone(),
            CHANGES_PER_S,
            maintenance,
            reqwest::Method::PUT,
            "1.81",
            Arc::clone(&changes),
        ));
        Load {
            ended,
            heartbeats,
            changes,
            tasks,
        }
    }

    fn forget(&self) {
        self.heartbeats.take();
        self.changes.take();
    }

    fn report(&self) {
        println!("  heartbeats meanwhile: {}", self.heartbeats.summary());
        println!("  changes meanwhile: {}", self.changes.summary());
    }

    async fn end(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Sends the requests one after the other, round and round, so many a second, whether answers come or not.
async fn paced(
    ended: Arc<AtomicBool>,
    per_s: u32,
    requests: Vec<(String, String)>,
    method: reqwest::Method,
    version: &'static str,
    answers: Arc<common::Answers>,
) {
    let client = common::client();
    let pause = Duration::from_secs(1) / per_s;
    let mut due = Instant::now();
    let mut under_way = JoinSet::new();
    for (url, body) in requests.iter().cycle() {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep_until(due.into()).await;
        let request = client
            .request(method.clone(), url)
            .header("X-OpenStack-Ironic-API-Version", version)
            .header("Content-Type", "application/json")
            .body(body.clone());
        let answers = answers.clone();
        let from = due;
        under_way.spawn(async move {
            let status = request
                .send()
                .await
                .map_or(0, |answer| answer.status().as_u16());
            answers.add(status, from.elapsed());
        });
        while under_way.try_join_next().is_some() {}
        due += pause;
    }
    while under_way.join_next().await.is_some() {}
}
