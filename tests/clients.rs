//! The clients operators have, unmodified, against the program as operators start it: `baremetal` (python-ironicclient)
//! and openstacksdk, without authentication and with HTTP basic.
//!
//! What they do is written in `tests/clients/lives`, one script per story; run one by hand against any conductor with
//! `OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:6385 target/clients/venv/bin/python tests/clients/lives/NAME.py`
//! (it expects to be alone there). Each prints what was done, what came back and what was expected.
//!
//! `tests/clients/setup` comes first; without it each test here prints `SKIPPED` and why, or fails if
//! `UPBEAT_REQUIRE_CLIENTS=1` (`ops/check` sets it).

#[path = "support/lab.rs"]
mod lab;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::{Auth, Lab, PASSWORD, USER};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// The Python with the clients in it; `None` if it may be missing and is.
fn python(life: &str) -> Option<PathBuf> {
    let check = Command::new(here().join("setup"))
        .arg("--check")
        .output()
        .expect("tests/clients/setup can be run");
    if check.status.success() {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("target"),
            PathBuf::from,
        );
        return Some(target.join("clients/venv/bin/python"));
    }
    let missing = String::from_utf8_lossy(&check.stderr).trim().to_owned();
    assert!(
        std::env::var("UPBEAT_REQUIRE_CLIENTS").as_deref() != Ok("1"),
        "UPBEAT_REQUIRE_CLIENTS=1, but the clients cannot run: {missing}"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: {life}: {missing}");
    None
}

fn live(life: &str, auth: Auth) {
    let Some(python) = python(life) else {
        return;
    };
    let lab = Lab::start(auth);
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command
        .arg(here().join("lives").join(life))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // Clients keep caches and read configurations there.
        .env("HOME", home.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OS_ENDPOINT", &lab.url);
    match auth {
        Auth::None => command.env("OS_AUTH_TYPE", "none"),
        Auth::HttpBasic => command
            .env("OS_AUTH_TYPE", "http_basic")
            .env("OS_USERNAME", USER)
            .env("OS_PASSWORD", PASSWORD),
    };
    let told = command.output().expect("Python runs");
    assert!(
        told.status.success(),
        "{}\n{}\nThe end of the conductor's log:\n{}",
        String::from_utf8_lossy(&told.stdout),
        String::from_utf8_lossy(&told.stderr),
        lab.log()
    );
}

#[test]
fn clients_are_set_up_in_every_way() {
    live("setups.py", Auth::None);
}

#[test]
fn clients_are_set_up_in_every_way_with_a_password() {
    live("setups.py", Auth::HttpBasic);
}

#[test]
fn baremetal_lives_the_whole_life() {
    live("baremetal_life.py", Auth::None);
}

#[test]
fn baremetal_lives_the_whole_life_with_a_password() {
    live("baremetal_life.py", Auth::HttpBasic);
}

#[test]
fn baremetal_makes_and_changes_everything_around_a_node() {
    live("baremetal_objects.py", Auth::None);
}

#[test]
fn baremetal_makes_and_changes_everything_around_a_node_with_a_password() {
    live("baremetal_objects.py", Auth::HttpBasic);
}

#[test]
fn baremetal_reads_everything() {
    live("baremetal_reads.py", Auth::None);
}

#[test]
fn baremetal_reads_everything_with_a_password() {
    live("baremetal_reads.py", Auth::HttpBasic);
}

#[test]
fn openstacksdk_lives_the_whole_life() {
    live("sdk_life.py", Auth::None);
}

#[test]
fn openstacksdk_lives_the_whole_life_with_a_password() {
    live("sdk_life.py", Auth::HttpBasic);
}

#[test]
fn openstacksdk_makes_and_changes_everything_around_a_node() {
    live("sdk_objects.py", Auth::None);
}

#[test]
fn openstacksdk_makes_and_changes_everything_around_a_node_with_a_password() {
    live("sdk_objects.py", Auth::HttpBasic);
}
