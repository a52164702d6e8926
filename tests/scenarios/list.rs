//! Reads `scenarios.md` and holds it against the tests in the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How many scenarios and how many reports from the field there are.
const FAMILIES: [(char, usize); 2] = [('S', 75), ('F', 112)];
const NOT_APPLICABLE: &str = "does not apply: ";
/// These are skipped where the real agent can't run, so they never stand alone.
const MAY_BE_SKIPPED: [&str; 2] = ["tests/real_agent", "tests/real_agent_faults"];

/// One line of the list.
struct Scenario {
    id: String,
    shown_by: String,
}

/// Test functions by where they stand: a file without its `.rs`, or a folder.
#[derive(Default)]
struct Tests {
    /// True: it is ignored.
    known: BTreeMap<(String, String), bool>,
}

impl Tests {
    /// Adds what stands in a file. `path`: as in `tests/deploys.rs`.
    fn read(&mut self, path: &str, source: &str) {
        let mut attributes = String::new();
        let mut open = 0_i64;
        for line in source.lines().map(str::trim) {
            if open > 0 || line.starts_with("#[") {
                let depth = |bracket| i64::try_from(line.matches(bracket).count()).unwrap();
                open += depth('[') - depth(']');
                attributes.push_str(line);
                continue;
            }
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let name = line.split_once("fn ").map(|(_, rest)| {
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect::<String>()
            });
            let is_test = ["#[test]", "::test]", "::test("]
                .iter()
                .any(|form| attributes.contains(form));
            if let (Some(name), true) = (name, is_test) {
                let ignored = attributes.contains("#[ignore");
                let mut place = path.trim_end_matches(".rs");
                loop {
                    self.known.insert((place.to_owned(), name.clone()), ignored);
                    match place.rsplit_once('/') {
                        Some((folder, _)) if folder.contains('/') => place = folder,
                        _ => break,
                    }
                }
            }
            attributes.clear();
        }
    }

    fn of_this_project() -> Tests {
        let mut tests = Tests::default();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("src"), root.join("tests")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let source = std::fs::read_to_string(&path).unwrap();
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    tests.read(name, &source);
                }
            }
        }
        tests
    }
}

/// The lines of all tables; the first cell is the number, the last what shows it.
fn scenarios(text: &str) -> Result<Vec<Scenario>, String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some(row) = line
            .strip_prefix("| ")
            .and_then(|row| row.strip_suffix(" |"))
        else {
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let (Some(id), Some(shown_by)) = (cells.first(), cells.last()) else {
            continue;
        };
        if *id == "id" {
            continue;
        }
        if cells.len() != 5 || cells.iter().any(|cell| cell.is_empty()) {
            return Err(format!("{id}: has not five filled cells: {line}"));
        }
        found.push(Scenario {
            id: (*id).to_owned(),
            shown_by: (*shown_by).to_owned(),
        });
    }
    Ok(found)
}

/// Everything that is wrong with the list.
fn faults(text: &str, tests: &Tests, families: &[(char, usize)]) -> Vec<String> {
    let scenarios = match scenarios(text) {
        Ok(scenarios) => scenarios,
        Err(why) => return vec![why],
    };
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for scenario in &scenarios {
        if !seen.insert(scenario.id.clone()) {
            faults.push(format!("{} is there twice", scenario.id));
        }
    }
    let wanted: BTreeSet<String> = families
        .iter()
        .flat_map(|(family, count)| (1..=*count).map(move |number| format!("{family}{number:02}")))
        .collect();
    faults.extend(
        wanted
            .difference(&seen)
            .map(|id| format!("{id} is missing")),
    );
    faults.extend(
        seen.difference(&wanted)
            .map(|id| format!("{id} is none of ours")),
    );
    for Scenario { id, shown_by } in &scenarios {
        if let Some(reason) = shown_by.strip_prefix(NOT_APPLICABLE) {
            if reason.len() < 20 {
                faults.push(format!("{id}: {reason:?} is no reason"));
            }
            continue;
        }
        let mut always_runs = false;
        for name in shown_by.split(", ") {
            let quoted = name
                .strip_prefix('`')
                .and_then(|name| name.strip_suffix('`'))
                .and_then(|name| name.rsplit_once("::"));
            let Some((place, test)) = quoted else {
                faults.push(format!("{id}: {name:?} is not `place::test`"));
                continue;
            };
            match tests.known.get(&(place.to_owned(), test.to_owned())) {
                Some(false) => always_runs |= !MAY_BE_SKIPPED.contains(&place),
                Some(true) => faults.push(format!("{id}: {place}::{test} is ignored")),
                None => faults.push(format!("{id}: there is no test {place}::{test}")),
            }
        }
        if !always_runs {
            faults.push(format!("{id}: no test that runs on every machine shows it"));
        }
    }
    faults
}

#[test]
fn every_scenario_is_shown_by_a_test_that_exists_or_says_why_not() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios.md");
    let text = std::fs::read_to_string(path).unwrap();
    let faults = faults(&text, &Tests::of_this_project(), &FAMILIES);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A list of two lines, the second of them with this in its last cell.
fn list(shown_by: &str) -> String {
    format!(
        "# Title\n\n| id | seen as | happens | does | shown by |\n|---|---|---|---|---|\n\
         | S01 | - | it rains | opens an umbrella | `tests/rain::it_is_dry_below` |\n\
         | S02 | - | it snows | stays inside | {shown_by} |\n"
    )
}

fn faults_with(text: &str) -> Vec<String> {
    let mut tests = Tests::default();
    tests.read(
        "tests/rain.rs",
        "#[test]\nfn it_is_dry_below() {\n    let no_test = 1;\n}\n\nfn helper() {}\n\
         /// Not today.\n#[tokio::test]\n#[ignore]\nasync fn one_day() {}\n",
    );
    tests.read(
        "src/sky/tests/cold.rs",
        "    #[actix_web::test]\n    async fn snow_melts() {\n",
    );
    tests.read(
        "tests/real_agent.rs",
        "#[tokio::test]\nasync fn outside() {\n",
    );
    faults(text, &tests, &[('S', 2)])
}

#[test]
fn a_sound_list_has_no_faults() {
    for shown_by in [
        "`tests/rain::it_is_dry_below`, `src/sky/tests::snow_melts`",
        "`src/sky/tests/cold::snow_melts`",
        "`tests/real_agent::outside`, `src/sky::snow_melts`",
        "does not apply: there is no snow in this country",
    ] {
        assert_eq!(faults_with(&list(shown_by)), [""; 0], "{shown_by}");
    }
}

#[test]
fn every_kind_of_fault_is_seen() {
    for (shown_by, word) in [
        (
            "`tests/rain::it_is_wet`",
            "there is no test tests/rain::it_is_wet",
        ),
        (
            "`tests/snow::it_is_dry_below`",
            "there is no test tests/snow",
        ),
        ("`tests/rain::helper`", "there is no test"),
        ("`tests/rain::one_day`", "is ignored"),
        ("`tests/real_agent::outside`", "runs on every machine"),
        ("tests/rain::it_is_dry_below", "is not `place::test`"),
        ("-", "is not `place::test`"),
        ("does not apply: no", "is no reason"),
    ] {
        let faults = faults_with(&list(shown_by)).join("\n");
        assert!(faults.contains(word), "{shown_by}: {faults}");
    }
    let good = list("`src/sky/tests::snow_melts`");
    for (from, to, word) in [
        ("| S02 |", "| S03 |", "S02 is missing"),
        ("| S02 |", "| S03 |", "S03 is none of ours"),
        ("| S02 |", "| S01 |", "S01 is there twice"),
        ("| it snows |", "|", "five filled cells"),
    ] {
        let faults = faults_with(&good.replace(from, to)).join("\n");
        assert!(faults.contains(word), "{word}: {faults}");
    }
}
