//! Who may know whom: the rules of the crate map, read off the `use` lines of the source.
//!
//! A rule that only stands in a document is broken by the next hurried commit; here it is red.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What each part of `src/` may use: other parts of the crate, and libraries. Parts that are not listed are the outermost ones
/// (`main`, `cli`, `serve`, `demo`, `bench`) and may use everything.
fn rules() -> BTreeMap<&'static str, (Vec<&'static str>, Vec<&'static str>)> {
    let data = ["serde", "serde_json", "serde_with", "thin_vec", "uuid"];
    let with = |more: &[&'static str]| {
        let mut all = data.to_vec();
        all.extend_from_slice(more);
        all
    };
    BTreeMap::from([
        // The core: data in, data out.
        ("timestamp", (vec![], data.to_vec())),
        ("command", (vec!["timestamp"], data.to_vec())),
        (
            "node",
            (vec!["timestamp", "command"], with(&["ipnet", "regex"])),
        ),
        // Objects beside nodes: data in, data out as well.
        ("catalog", (vec!["timestamp", "node"], data.to_vec())),
        // The core in a made-up world: no clock, no sockets, no files.
        (
            "simulator",
            (vec!["timestamp", "command", "node"], data.to_vec()),
        ),
        // The shells around it.
        ("clock", (vec!["timestamp"], vec![])),
        ("retry", (vec![], vec!["backoff"])),
        (
            "store",
            (
                vec!["timestamp", "command", "node", "catalog"],
                with(&[
                    "diesel",
                    "diesel_migrations",
                    "imbl",
                    "r2d2",
                    "tokio",
                    "tracing",
                    "url",
                ]),
            ),
        ),
        (
            "agent",
            (
                vec!["timestamp", "command", "node"],
                with(&[
                    "reqwest",
                    "rustls",
                    "sha2",
                    "url",
                    "ipnet",
                    "tokio",
                    "tracing",
                    "futures_util",
                ]),
            ),
        ),
        (
            "driver",
            (vec!["timestamp", "command", "node"], with(&["tracing"])),
        ),
        (
            "observe",
            (
                vec!["timestamp"],
                with(&["prometheus_client", "tracing", "tracing_subscriber"]),
            ),
        ),
        (
            "config",
            (
                // The types of the settings it maps onto; nothing that acts.
                vec!["timestamp", "node", "agent"],
                with(&["toml", "ipnet", "url"]),
            ),
        ),
        (
            "conductor",
            (
                vec![
                    "timestamp",
                    "command",
                    "node",
                    "catalog",
                    "clock",
                    "retry",
                    "store",
                    "agent",
                    "driver",
                    "observe",
                ],
                with(&[
                    "actix",
                    "actix_rt",
                    "futures_util",
                    "tokio",
                    "tracing",
                    "base64",
                    "getrandom",
                    "hmac",
                    "sha2",
                ]),
            ),
        ),
        (
            "http",
            (
                vec!["timestamp", "node", "catalog", "conductor", "store"],
                with(&[
                    "actix_web",
                    "actix_rt",
                    "tokio",
                    "tracing",
                    "futures_util",
                    "url",
                    "jiff",
                    "base64",
                    "bcrypt",
                    "flate2",
                    "getrandom",
                    "flate2",
                    "sha2",
                    "sha_crypt",
                    "ipnet",
                ]),
            ),
        ),
    ])
}

/// Parts no `use` line of which may appear in tests of another part is not our business: only code outside `#[cfg(test)]` counts.
fn production_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]" || !text.contains("mod tests {"))
}

#[test]
fn every_part_uses_only_what_it_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let libraries = libraries();
    let mut broken = BTreeSet::new();
    for (part, (parts, allowed)) in rules() {
        let files = files_of(&src, part);
        assert!(
            !files.is_empty(),
            "no file of {part} found: rules are stale"
        );
        for file in files {
            if is_of_tests(&src, &file) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for line in production_lines(&text) {
                let code = line.split("//").next().unwrap_or_default();
                for word in paths(code) {
                    let mut segments = word.split("::");
                    let first = segments.next().unwrap_or_default();
                    let second = segments.next().unwrap_or_default();
                    let name = file.strip_prefix(&src).unwrap().display().to_string();
                    if first == "crate"
                        && !second.is_empty()
                        && second != part
                        && second.starts_with(|c: char| c.is_ascii_lowercase())
                        && !parts.contains(&second)
                    {
                        broken.insert(format!("{name} uses crate::{second}"));
                    }
                    if libraries.contains(first) && !allowed.contains(&first) {
                        broken.insert(format!("{name} uses the library {first}"));
                    }
                }
            }
        }
    }
    assert!(
        broken.is_empty(),
        "against the rules in tests/architecture.rs:\n{}",
        broken.into_iter().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn nothing_but_the_clock_asks_for_the_wall_time() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut askers = BTreeSet::new();
    for file in all_files(&src) {
        let name = file.strip_prefix(&src).unwrap().display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        // Simulated machines have clocks of their own.
        if name == "clock.rs" || name.starts_with("demo/") {
            continue;
        }
        if production_lines(&text)
            .any(|line| line.contains("SystemTime::now") || line.contains("Timestamp::now()"))
        {
            askers.insert(name);
        }
    }
    assert_eq!(askers, BTreeSet::new(), "ask crate::clock instead");
}

#[test]
fn the_core_neither_panics_on_purpose_nor_waits() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for part in ["node", "command", "catalog"] {
        for file in files_of(&src, part) {
            if is_of_tests(&src, &file) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for line in production_lines(&text) {
                let code = line.split("//").next().unwrap_or_default();
                for word in [
                    "unwrap()",
                    "expect(\"",
                    "panic!(",
                    "unreachable!(",
                    "async ",
                    "std::time",
                ] {
                    if code.contains(word) {
                        found.insert(format!("{}: {}", file.display(), line.trim()));
                    }
                }
            }
        }
    }
    assert_eq!(found, BTreeSet::new());
}

/// Things that look like paths in a line of code: `a::b::c`.
fn paths(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| word.contains("::"))
}

/// The libraries of the manifest, as they are spelled in code.
fn libraries() -> BTreeSet<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest["dependencies"]
        .as_table()
        .unwrap()
        .keys()
        .map(|name| name.replace('-', "_"))
        .collect()
}

fn files_of(src: &Path, part: &str) -> Vec<PathBuf> {
    let file = src.join(format!("{part}.rs"));
    if file.exists() {
        vec![file]
    } else {
        all_files(&src.join(part))
    }
}

/// `tests.rs`, or a file in a folder `tests`.
fn is_of_tests(src: &Path, file: &Path) -> bool {
    let parts = file.strip_prefix(src).unwrap();
    parts
        .iter()
        .any(|part| part == "tests.rs" || part == "tests")
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
