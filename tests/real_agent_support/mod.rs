//! What the real-agent tests are made of: a conductor, an image server and a
//! machine, all processes or threads of this test on loopback.
//!
//! ```text
//!   test ──HTTP──▶ upbeat serve ◀──look-up, heartbeats── ironic-python-agent
//!                        └───────────commands──────────▶  (sandbox, disk = file)
//!                                                           │
//!   image server ◀──────────────────downloads───────────────┘
//! ```
//!
//! The conductor is the built binary, driven only through its API. The agent is
//! started by `tests/real_agent`. The driver is `fake-hardware`, so the test
//! plays the part of the power supply: it boots the agent when the node waits
//! for it and ends it when a deploy has failed.

pub mod conductor;
pub mod images;
pub mod lab;
pub mod machine;
pub mod proxy;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for anything in these tests; a deploy takes about ten seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE_BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Programs the agent runs on its disk, or the tests on their images, and the
/// Debian package of each.
const PROGRAMS: &[(&str, &str)] = &[
    ("bwrap", "bubblewrap"),
    ("qemu-img", "qemu-utils"),
    ("parted", "parted"),
    ("sgdisk", "gdisk"),
    ("hexdump", "bsdextrautils"),
];

/// Whether the real agent can run here.
///
/// If it cannot, says so on the terminal (`SKIPPED: ...`, past the capture of
/// the test runner) and answers `false`: the test has to return.
///
/// # Panics
/// If it cannot although `UPBEAT_REQUIRE_REAL_AGENT=1`.
#[must_use]
pub fn real_agent_is_here(test: &str) -> bool {
    let missing = missing();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join("; ");
    assert!(
        std::env::var("UPBEAT_REQUIRE_REAL_AGENT").as_deref() != Ok("1"),
        "UPBEAT_REQUIRE_REAL_AGENT=1, but the real agent cannot run: {missing}"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {missing}");
    false
}

fn missing() -> Vec<String> {
    let mut missing: Vec<String> = PROGRAMS
        .iter()
        .filter(|(program, _)| {
            !["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .iter()
                .any(|folder| PathBuf::from(folder).join(program).exists())
        })
        .map(|(program, package)| format!("no {program} (apt-get install {package})"))
        .collect();
    if missing.is_empty() {
        let sandbox = "--ro-bind / / --dev /dev --proc /proc --unshare-pid true";
        let made = Command::new("bwrap").args(sandbox.split(' ')).output();
        if !made.is_ok_and(|output| output.status.success()) {
            missing.push("bwrap cannot make a sandbox (needs root or user namespaces)".into());
        }
    }
    let check = Command::new(harness().join("setup"))
        .arg("--check")
        .output();
    match check {
        Ok(output) if output.status.success() => {}
        Ok(output) => missing.push(String::from_utf8_lossy(&output.stderr).trim().into()),
        Err(error) => missing.push(format!("tests/real_agent/setup cannot run: {error}")),
    }
    missing
}

/// The folder of the Python side.
pub fn harness() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/real_agent")
}

/// Looks until `look` finds something.
///
/// # Panics
/// After [`PATIENCE`], naming `what` was awaited.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "waited {} s in vain for {what}",
            PATIENCE.as_secs()
        );
        tokio::time::sleep(PAUSE_BETWEEN_LOOKS).await;
    }
}

/// A loopback port nobody listens on at this moment, and nobody is given by chance while its owner is away: it lies below those
/// that systems hand out.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(12_000 + number % 20_000).expect("below 65,536");
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The last lines of a log that `keep` wants, for the report of a failed test.
pub fn tail(path: &std::path::Path, keep: impl Fn(&str) -> bool) -> String {
    const LINES: usize = 40;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| keep(line)).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
