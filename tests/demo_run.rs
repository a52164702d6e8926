//! The demo with a conductor that is just good enough, with one that is not, and with the real one.
//!
//! `UPBEAT_DEMO_NODES=1000 cargo test --release --test demo_run -- --nocapture as_expected` shows what the machines
//! alone cost in memory and time.

#[path = "support/tiny_conductor.rs"]
mod tiny_conductor;

use std::time::Duration;

use tiny_conductor::{Flaw, TinyConductor};
use upbeat::demo::{DemoEnd, DemoOptions, run};

const LIMIT: Duration = Duration::from_secs(300);

async fn demo(nodes: usize, flaw: Flaw) -> DemoEnd {
    let options = DemoOptions {
        nodes,
        once: true,
        listen: None,
    };
    tokio::time::timeout(LIMIT, run(options, &TinyConductor(flaw)))
        .await
        .expect("it ends")
        .expect("it is held")
}

#[tokio::test]
async fn all_nodes_end_as_expected() {
    let nodes = std::env::var("UPBEAT_DEMO_NODES")
        .map_or(10, |nodes| nodes.parse().expect("a number of nodes"));
    assert_eq!(demo(nodes, Flaw::None).await, DemoEnd::AsExpected);
}

#[tokio::test]
async fn a_second_write_is_not_as_expected() {
    assert_eq!(demo(3, Flaw::SendsTwice).await, DemoEnd::Unexpected);
}

#[tokio::test]
async fn a_conductor_that_cannot_start_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = Some(taken.local_addr().unwrap());
    let error = run(
        DemoOptions {
            nodes: 1,
            once: true,
            listen,
        },
        &TinyConductor(Flaw::None),
    )
    .await
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the conductor did not start: "),
        "{error}"
    );
}

#[test]
fn a_reader_that_goes_away_leaves_no_machine_and_no_file_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = std::process::Command::new(env!("CARGO_BIN_EXE_upbeat"))
        .args(["demo", "--once", "--nodes", "1"])
        .env("TMPDIR", directory.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(demo.stdout.take());
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}
