//! Where settings come from, and the list of what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use toml::Value;

/// Settings that win over the file. Can't be printed: the environment holds passwords.
#[derive(Clone, Default)]
pub struct Overrides {
    /// What a role of the program uses in place of the built-in defaults; everything else wins over it.
    pub presets: Vec<(&'static str, String)>,
    /// Variables of the environment; only those named `UPBEAT_<SECTION>_<KEY>` count.
    pub environment: Vec<(String, String)>,
    /// Single settings from the command line: `section.key` and the value. They win over the environment.
    pub settings: Vec<(String, String)>,
}

impl Overrides {
    /// The environment of this process.
    pub fn from_environment() -> Overrides {
        Overrides {
            presets: Vec::new(),
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            settings: Vec::new(),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where the value stands: a file, a variable, the command line, or the built-in defaults.
    pub place: String,
    /// `section.key`; empty when the fault is about the whole file.
    pub key: String,
    /// What is wrong and what to do.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.problem)
        } else {
            write!(f, "{}: {}: {}", self.place, self.key, self.problem)
        }
    }
}

/// Everything that is wrong; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => writeln!(f, "The configuration has a fault:")?,
            count => writeln!(f, "The configuration has {count} faults:")?,
        }
        for fault in &self.0 {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A value as it was found.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    /// In a file: has a type.
    Toml(Value),
    /// In the environment or on the command line: only text.
    Text(String),
}

/// `section.key`
type Key = (String, String);

/// Gives values to `read.rs` and gathers faults.
pub(super) struct Reader {
    given: BTreeMap<Key, (Raw, String)>,
    known: BTreeSet<Key>,
    faulty: BTreeSet<Key>,
    faults: Vec<Fault>,
}

/// The sections of the file.
pub(super) const SECTIONS: [&str; 6] =
    ["api", "conductor", "inspector", "database", "agent", "log"];

const BUILT_IN: &str = "built-in default";
const PRESET: &str = "default of this command";

impl Reader {
    pub(super) fn new(path: Option<&Path>, overrides: &Overrides) -> Reader {
        let mut reader = Reader {
            given: BTreeMap::new(),
            known: BTreeSet::new(),
            faulty: BTreeSet::new(),
            faults: Vec::new(),
        };
        for (name, value) in &overrides.presets {
            if let Some((section, key)) = name.split_once('.') {
                reader.give(section, key, Raw::Text(value.clone()), PRESET.to_owned());
            }
        }
        if let Some(path) = path {
            reader.add_file(path);
        }
        for (name, value) in &overrides.environment {
            let Some(rest) = name.strip_prefix("UPBEAT_") else {
                continue;
            };
            // Other variables of ours (tests, tools) have no section in their name.
            if let Some((section, key)) = rest.to_ascii_lowercase().split_once('_')
                && SECTIONS.contains(&section)
            {
                let place = format!("environment variable {name}");
                reader.give(section, key, Raw::Text(value.clone()), place);
            }
        }
        for (name, value) in &overrides.settings {
            let place = "command line".to_owned();
            match name.split_once('.') {
                Some((section, key)) => reader.give(section, key, Raw::Text(value.clone()), place),
                None => reader.faults.push(Fault {
                    place,
                    key: name.clone(),
                    problem: "must be written as section.key=value".to_owned(),
                }),
            }
        }
        reader
    }

    fn give(&mut self, section: &str, key: &str, raw: Raw, place: String) {
        self.given
            .insert((section.to_owned(), key.to_owned()), (raw, place));
    }

    fn add_file(&mut self, path: &Path) {
        let place = path.display().to_string();
        let whole_file = |problem: String| Fault {
            place: place.clone(),
            key: String::new(),
            problem,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.faults.push(whole_file(format!(
                    "can't be read ({error}); check the path and its permissions"
                )));
                return;
            }
        };
        let document: toml::Table = match text.parse() {
            Ok(document) => document,
            Err(error) => {
                self.faults.push(whole_file(syntax_problem(&text, &error)));
                return;
            }
        };
        for (section, content) in document {
            match content {
                Value::Table(keys) if SECTIONS.contains(&section.as_str()) => {
                    for (key, value) in keys {
                        self.give(&section, &key, Raw::Toml(value), place.clone());
                    }
                }
                Value::Table(_) => {
                    let problem = match closest(&section, SECTIONS.iter().copied()) {
                        Some(meant) => {
                            format!("there is no section [{section}]; did you mean [{meant}]?")
                        }
                        None => format!(
                            "there is no section [{section}]; the sections are {}",
                            SECTIONS.join(", ")
                        ),
                    };
                    self.faults.push(whole_file(problem));
                }
                _ => self.faults.push(whole_file(format!(
                    "{section} stands before the first section; put it below one of {}",
                    SECTIONS.map(|name| format!("[{name}]")).join(", ")
                ))),
            }
        }
    }

    /// The value given for a key, if one is. Makes the key a known one.
    pub(super) fn value(&mut self, section: &str, key: &str) -> Option<Raw> {
        let key = (section.to_owned(), key.to_owned());
        let given = self.given.get(&key).map(|(raw, _)| raw.clone());
        self.known.insert(key);
        given
    }

    /// Records what is wrong with a key.
    pub(super) fn fault(&mut self, section: &str, key: &str, problem: String) {
        let id = (section.to_owned(), key.to_owned());
        let place = self
            .given
            .get(&id)
            .map_or(BUILT_IN, |(_, place)| place.as_str());
        self.faults.push(Fault {
            place: place.to_owned(),
            key: format!("{section}.{key}"),
            problem,
        });
        self.faulty.insert(id);
    }

    /// True if all these keys could be read, so that comparing them makes sense.
    pub(super) fn are_sound(&self, keys: &[(&str, &str)]) -> bool {
        keys.iter().all(|(section, key)| {
            !self
                .faulty
                .contains(&((*section).to_owned(), (*key).to_owned()))
        })
    }

    /// All faults, unknown keys among them.
    pub(super) fn finish(mut self) -> Result<(), Faults> {
        // Without `read` no key is known, and none was given.
        for ((section, key), (_, place)) in &self.given {
            if self.known.contains(&(section.clone(), key.clone())) {
                continue;
            }
            let in_section = self
                .known
                .iter()
                .filter(|(other, _)| other == section)
                .map(|(_, key)| key.as_str());
            let elsewhere = self.known.iter().find(|(_, other)| other == key);
            let problem = if let Some((other, _)) = elsewhere {
                format!("is not a setting of [{section}]; it belongs into [{other}]")
            } else if let Some(meant) = closest(key, in_section) {
                format!("is not a setting; did you mean {meant}?")
            } else {
                "is not a setting; remove it (ops/upbeat.toml lists them all)".to_owned()
            };
            self.faults.push(Fault {
                place: place.clone(),
                key: format!("{section}.{key}"),
                problem,
            });
        }
        if self.faults.is_empty() {
            Ok(())
        } else {
            Err(Faults(self.faults))
        }
    }
}

fn syntax_problem(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .and_then(|span| text.get(..span.start))
        .map_or(1, |before| before.matches('\n').count() + 1);
    format!(
        "is not valid TOML in line {line}: {}; mend that line first, the others are not checked before",
        error.message()
    )
}

/// The candidate that differs from `word` by a slip of the keyboard or two.
pub(super) fn closest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, taken away or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(line + 1);
        for ((above, above_right), (left_index, other)) in row
            .iter()
            .zip(row.iter().skip(1))
            .zip(to.iter().enumerate())
        {
            let left = next.get(left_index).copied().unwrap_or(usize::MAX - 1);
            let changed = above + usize::from(letter != *other);
            next.push(changed.min(above_right + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        let known = ["listen", "workers", "deploy_callback_timeout"];
        let find = |word| closest(word, known.iter().copied());
        assert_eq!(find("lisen"), Some("listen"));
        assert_eq!(find("worker"), Some("workers"));
        assert_eq!(
            find("deploy-callback-timeout"),
            Some("deploy_callback_timeout")
        );
        assert_eq!(find("banana"), None);
    }
}
