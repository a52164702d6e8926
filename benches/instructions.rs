//! How many instructions a heartbeat takes, all in all and in the core. Counted by valgrind, so it does not matter how fast or how
//! busy the machine is. Fails when something takes more than it may.
//!
//! `cargo bench --bench instructions` (Debian package `valgrind`); `-- profile` shows where the instructions of a thousand heartbeats
//! go, function by function, each with what it calls
//!
//! Each case is run in a process of its own, under callgrind, which counts all threads from the moment [`counted`] is entered until
//! it is left. What the machine is does not matter much either: valgrind shows the same processor on every machine with AVX2, without
//! the instructions for SHA, so the same code is chosen. What does matter are the compiler and, for copying memory and allocating it,
//! the C library; they are what the margins are for.

mod common;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use upbeat::conductor::TokenKey;
use upbeat::node::{Event, Limits, Node, NodeId, TokenMatch, step};
use upbeat::timestamp::Timestamp;

struct Case {
    name: &'static str,
    /// Instructions for one, as counted when this was last written down. What takes less for a reason is written down anew, and so
    /// is, in the commit that says why, what has to take more.
    expected: u64,
    /// It may take so much more, in per cent.
    margin: u64,
    run: fn(),
}

const CASES: [Case; 5] = [
    Case {
        name: "heartbeat from request to answer",
        expected: 110_000,
        margin: 10,
        run: heartbeat_path,
    },
    Case {
        name: "step: heartbeat",
        expected: 6_350,
        margin: 5,
        run: || steps(common::agent::node, || heartbeat(TokenMatch::Right)),
    },
    Case {
        name: "step: heartbeat refused",
        expected: 4_450,
        margin: 5,
        run: || steps(common::agent::node, || heartbeat(TokenMatch::Wrong)),
    },
    Case {
        name: "step: deadline that is not due",
        expected: 3_790,
        margin: 5,
        run: || steps(common::agent::node, || Event::DeadlineReached),
    },
    Case {
        name: "step: first heartbeat, the deploy goes on",
        expected: 10_420,
        margin: 5,
        run: || steps(common::agent::looked_up, || heartbeat(TokenMatch::Right)),
    },
];

/// Threads that wake each other on a busy machine have more to do: what is too much is counted again, and the least counts.
const COUNTED_AT_MOST: usize = 3;

/// How often each is done, after as many times that are not counted.
const TIMES: usize = 1_000;

fn main() -> ExitCode {
    // `cargo bench` adds a flag of its own.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => check(),
        (Some("profile"), None) => profile(),
        (Some("run"), Some(name)) => {
            let case = CASES.iter().find(|case| case.name == name);
            (case.expect("a case of that name").run)();
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("cargo bench --bench instructions [-- profile]");
            ExitCode::FAILURE
        }
    }
}

/// Counts all, and says what takes more than it may.
fn check() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for case in &CASES {
        let Case {
            name,
            expected,
            margin,
            ..
        } = case;
        let most = expected + expected * margin / 100;
        let mut each = u64::MAX;
        for _ in 0..COUNTED_AT_MOST {
            let folder = tempfile::tempdir().expect("a temporary folder");
            each = each.min(total(&count(case, folder.path())) / TIMES as u64);
            if each <= most {
                break;
            }
        }
        let change = (each as f64 / *expected as f64 - 1.0) * 100.0;
        let verdict = if each > most {
            code = ExitCode::FAILURE;
            "TOO MANY"
        } else if change < -(*margin as f64) {
            "ok; write the new number down in benches/instructions.rs"
        } else {
            "ok"
        };
        println!(
            "{name:42} {each:7} instructions, {expected:7} expected, {change:+5.1} % of {margin} allowed: {verdict}"
        );
    }
    code
}

/// Shows where the instructions of heartbeats go.
fn profile() -> ExitCode {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let counts = count(&CASES[0], folder.path());
    let annotate = Command::new("callgrind_annotate")
        .args(["--inclusive=yes", "--threshold=100", "--auto=no"])
        .arg(counts)
        .status();
    match annotate {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs a case under callgrind; returns the file with what was counted.
fn count(case: &Case, folder: &Path) -> PathBuf {
    let out = folder.join("counts");
    let this = std::env::current_exe().expect("a path");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .args([
            "--dump-before=instructions::counted",
            "--dump-after=instructions::counted",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(this)
        .args(["run", case.name])
        .stdin(Stdio::null())
        .output()
        .expect("valgrind can be run (apt-get install valgrind)");
    assert!(
        run.status.success(),
        "{}: {}\n{}",
        case.name,
        run.status,
        String::from_utf8_lossy(&run.stderr)
    );
    // The first file has what came before, the one without a number what comes after.
    out.with_extension("2")
}

/// All instructions in a file of callgrind's.
fn total(counts: &Path) -> u64 {
    let text = std::fs::read_to_string(counts).expect("callgrind has written its counts");
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total
        .and_then(|total| total.trim().parse().ok())
        .expect("a total")
}

/// What is done in here is counted.
#[inline(never)]
fn counted(mut once: impl FnMut()) {
    for _ in 0..TIMES {
        once();
    }
}

fn heartbeat(token: TokenMatch) -> Event {
    Event::Heartbeat(common::agent::heartbeat(token))
}

/// The same step from the same state, again and again, with all that it leaves to be dropped.
fn steps(node: impl Fn(u64, Timestamp) -> Node, event: impl Fn() -> Event) {
    let limits = Limits::default();
    let node = node(1, Timestamp(0));
    let now = common::moment(Timestamp(1_000), &limits);
    let mut events: Vec<Event> = (0..=TIMES).map(|_| event()).collect();
    let mut once = || {
        let event = events.pop().expect("one for each");
        black_box(step(black_box(&node), event, now));
    };
    once();
    counted(once);
}

/// Heartbeats to a whole conductor, as bytes on a connection that is kept, one at a time.
fn heartbeat_path() {
    common::log_to_nowhere();
    common::choose_tls();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = common::config(folder.path());
    config.api.workers = 1;
    config.conductor.arbiters = 1;
    let key_path = config.token_key_path().expect("beside the database");
    let key = TokenKey::load_or_create(&key_path).expect("a token key");
    actix_web::rt::System::new().block_on(async {
        common::fill(&config.database.url, 1, common::agent::node).await;
        let running = upbeat::serve::start(&config, None)
            .await
            .expect("the conductor starts");
        let node = NodeId(common::id(0));
        let request = common::agent::request(node, &key.token(node, common::agent::NONCE));
        let mut line = common::agent::Line::to(running.address);
        let calling = tokio::task::spawn_blocking(move || {
            let mut once = || line.accepted(&request);
            for _ in 0..TIMES {
                once();
            }
            counted(once);
        });
        calling.await.expect("all are answered");
        running.stop().await;
    });
}
