//! What the parts of a heartbeat's way cost, one by one: the step of the pure core, an event to an actor and its answer, the
//! registry of actors, the commit, the body, the token. Claim: a heartbeat's step is a small part of a microsecond's work beside its
//! commit, so one core decides for 100,000 nodes with ease.
//!
//! `cargo bench --bench parts`, or `cargo bench --bench parts -- commit` for some of them

mod common;
#[expect(dead_code, reason = "tests use the rest of it")]
#[path = "../tests/support/conductor.rs"]
mod conductor;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use actix_web::rt::System;
use divan::Bencher;
use divan::counter::ItemsCount;
use futures_util::future::join_all;
use serde_json::Value;
use upbeat::clock::Clock;
use upbeat::conductor::TokenKey;
use upbeat::node::{Event, Limits, Node, NodeId, TokenMatch, step};
use upbeat::store::{self, Change, Columns, Save, Store, StoreSettings};
use upbeat::timestamp::Timestamp;

fn main() {
    common::print_machine();
    common::choose_tls();
    print_bytes();
    divan::main();
}

fn heartbeat(token: TokenMatch) -> Event {
    Event::Heartbeat(common::agent::heartbeat(token))
}

mod steps {
    use super::*;

    #[divan::bench]
    fn heartbeat_taken(bencher: Bencher<'_, '_>) {
        bench(bencher, common::agent::node, || {
            heartbeat(TokenMatch::Right)
        });
    }

    #[divan::bench]
    fn heartbeat_refused(bencher: Bencher<'_, '_>) {
        bench(bencher, common::agent::node, || {
            heartbeat(TokenMatch::Wrong)
        });
    }

    #[divan::bench]
    fn first_heartbeat(bencher: Bencher<'_, '_>) {
        bench(bencher, common::agent::looked_up, || {
            heartbeat(TokenMatch::Right)
        });
    }

    #[divan::bench]
    fn deadline_not_due(bencher: Bencher<'_, '_>) {
        bench(bencher, common::agent::node, || Event::DeadlineReached);
    }

    fn bench(
        bencher: Bencher<'_, '_>,
        node: fn(u64, Timestamp) -> Node,
        event: impl Fn() -> Event,
    ) {
        let limits = Limits::default();
        let node = node(1, Timestamp(0));
        let now = common::moment(Timestamp(1_000), &limits);
        bencher
            .with_inputs(event)
            .bench_local_values(|event| step(black_box(&node), event, now));
    }
}

/// An event that changes nothing goes to a node's actor on another thread, and its answer comes back.
#[divan::bench]
fn mailbox(bencher: Bencher<'_, '_>) {
    let system = System::new();
    let conductor = system.block_on(async {
        let conductor = conductor::start_test_conductor(|_| {}).await;
        let node = common::agent::node(1, Clock::start().now());
        conductor
            .conductor
            .create(node)
            .await
            .expect("a node is stored");
        conductor
    });
    let node = NodeId(common::id(1));
    bencher.bench_local(|| {
        let answer = conductor.conductor.deliver(node, Event::DeadlineReached);
        system.block_on(answer).expect("an answer")
    });
    conductor.conductor.stop();
}

/// Which actor carries which node, where 100,000 have one.
mod registry {
    use std::time::Duration;

    use upbeat::conductor::Conductor;

    use super::*;

    const NODES: u64 = 100_000;
    const AT_ONCE: u64 = 1_000;

    /// The actor of one of them is found.
    #[divan::bench]
    fn find(bencher: Bencher<'_, '_>) {
        let system = System::new();
        let conductor = system.block_on(crowded());
        let mut number = 0;
        bencher.bench_local(|| {
            number = (number + 7919) % NODES;
            assert!(conductor.has_actor(NodeId(common::id(number))));
        });
        conductor.stop();
    }

    /// A thousand more begin, and have done what they do first.
    #[divan::bench(sample_count = 30, sample_size = 1)]
    fn start(bencher: Bencher<'_, '_>) {
        let system = System::new();
        let conductor = system.block_on(crowded());
        let mut next = NODES;
        bencher
            .counter(ItemsCount::new(AT_ONCE))
            .with_inputs(|| {
                next += AT_ONCE;
                nodes(next - AT_ONCE, next)
            })
            .bench_local_values(|nodes| system.block_on(take_up(&conductor, nodes)));
        conductor.stop();
    }

    async fn crowded() -> Conductor {
        let started = conductor::start_test_conductor(|settings| {
            settings.idle_actor_kept_for = Duration::from_secs(3_600);
        });
        let conductor = started.await.conductor;
        take_up(&conductor, nodes(0, NODES)).await;
        conductor
    }

    fn nodes(from: u64, to: u64) -> Vec<Node> {
        let now = Clock::start().now();
        (from..to)
            .map(|number| common::available(number, now))
            .collect()
    }

    async fn take_up(conductor: &Conductor, nodes: Vec<Node>) {
        for node in nodes {
            conductor.take_up(node);
        }
        // Behind their beginning, and behind what they do first.
        for _ in 0..2 {
            conductor.arbiter_lag().await;
        }
    }
}

/// Changes of as many nodes, given to the writer together; SQLite with `synchronous=FULL`.
#[divan::bench(args = [1, 64])]
fn commit(bencher: Bencher<'_, '_>, saves: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let system = System::new();
    let mut stored = Stored::new(folder.path(), saves, &system);
    bencher
        .counter(ItemsCount::new(saves))
        .bench_local(|| stored.change(&system));
    system.block_on(stored.store.handle.close());
}

/// A heartbeat's body becomes a document.
#[divan::bench]
fn body(bencher: Bencher<'_, '_>) {
    let body = common::agent::body(&"t".repeat(43));
    bencher.bench(|| serde_json::from_slice::<Value>(black_box(body.as_bytes())));
}

/// A token is compared with the one of the node's session.
#[divan::bench]
fn token(bencher: Bencher<'_, '_>) {
    let key = TokenKey::random();
    let node = common::agent::node(1, Timestamp(0));
    let token = key.token(node.id, common::agent::NONCE);
    bencher.bench(|| key.compare(black_box(&node), Some(&token)));
}

/// Nodes in a database, in the versions that are stored.
struct Stored {
    store: Store,
    nodes: Vec<Node>,
}

impl Stored {
    fn new(folder: &Path, count: u64, system: &actix_web::rt::SystemRunner) -> Stored {
        let store = store::open(&StoreSettings {
            url: format!("sqlite://{}", folder.join("upbeat.db").display()),
            readers: 1,
            host: "bench".to_owned(),
            queue_max: 1_000,
        })
        .expect("a database");
        let now = Clock::start().now();
        let nodes = (0..count).map(|number| common::agent::node(number, now));
        let stored = Stored {
            store,
            nodes: nodes.collect(),
        };
        let saves = stored.nodes.iter().map(|node| {
            let save = Save::of(Arc::new(node.clone()), Change::Insert);
            stored.store.writer.save(save)
        });
        for saved in system.block_on(join_all(saves)) {
            saved.expect("a node is stored");
        }
        stored
    }

    /// Each becomes another version of itself; returns when all are stored.
    fn change(&mut self, system: &actix_web::rt::SystemRunner) {
        let writer = &self.store.writer;
        let saves = self.nodes.iter_mut().map(|node| {
            let from_version = node.version;
            node.version += 1;
            node.commands_planned += 1;
            let node = Arc::new(node.clone());
            writer.save(Save {
                columns: Columns::State,
                ..Save::of(node, Change::Update { from_version })
            })
        });
        for saved in system.block_on(join_all(saves)) {
            saved.expect("a node is stored");
        }
    }

    /// The same, but only their signs of life.
    fn sign(&mut self, system: &actix_web::rt::SystemRunner) {
        let writer = &self.store.writer;
        let saves = self.nodes.iter_mut().map(|node| {
            node.version += 1;
            let saving = writer.try_save_signs(Arc::new(node.clone()));
            saving.expect("the queue has a place")
        });
        for saved in system.block_on(join_all(saves)) {
            saved.expect("signs are stored");
        }
    }
}

/// What is written for a change and for a sign of life, alone in its commit and with 63 others.
fn print_bytes() {
    const COMMITS: u64 = 500;
    let system = System::new();
    for saves in [1, 64] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut stored = Stored::new(folder.path(), saves, &system);
        let mut measured = |what: &str, once: fn(&mut Stored, &actix_web::rt::SystemRunner)| {
            let before = written();
            for _ in 0..COMMITS {
                once(&mut stored, &system);
            }
            let each = (written() - before) / (COMMITS * saves);
            println!("{what}, {saves} given together: {each} bytes written for each");
        };
        measured("a change", Stored::change);
        measured("a sign of life", Stored::sign);
        system.block_on(stored.store.handle.close());
    }
}

/// Bytes this process has given to files so far; there are no sockets.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
