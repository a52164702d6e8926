//! From a broken rule to the shortest story that still breaks it: one node, fewer kinds of faults, fewer strikes, less time.

use std::collections::BTreeSet;

use super::faults::Faults;
use super::rules::{Rule, Violation};
use super::world::live;
use super::{Options, Outcome, Setup};

/// The smallest run found that breaks a rule, and what happens in it.
#[derive(Debug, Clone)]
pub struct Reproducer {
    /// What to run.
    pub options: Options,
    /// What is broken then.
    pub violation: Violation,
    /// Everything that happens, one line each.
    pub lines: Vec<String>,
}

impl Reproducer {
    /// The command that shows it again.
    pub fn command(&self) -> String {
        let options = &self.options;
        let mut command = format!(
            "upbeat simulate --seed {} --nodes {} --span-ms {} --faults {}",
            options.seed, options.nodes, options.span_ms, options.faults
        );
        if let Some(node) = options.only_node {
            command.push_str(&format!(" --node {node}"));
        }
        if let Some(keep) = &options.keep {
            let keep: Vec<String> = keep.iter().map(u64::to_string).collect();
            command.push_str(&format!(
                " --strikes {}",
                if keep.is_empty() {
                    "none".to_owned()
                } else {
                    keep.join(",")
                }
            ));
        }
        command
    }
}

/// The lines, with long runs of the same answer cut short.
pub fn told_briefly(lines: &[String]) -> Vec<String> {
    // What a line says, without its time.
    let said = |line: &str| line.get(14..).unwrap_or_default().to_owned();
    let mut brief: Vec<String> = Vec::new();
    let mut repeated = 0;
    for (place, line) in lines.iter().enumerate() {
        let is_same = place > 0 && said(line) == said(&lines[place - 1]);
        let goes_on = lines
            .get(place + 1)
            .is_some_and(|next| said(next) == said(line));
        if is_same && goes_on {
            repeated += 1;
            continue;
        }
        if repeated > 0 {
            brief.push(format!(
                "              (and {repeated} times more the same)"
            ));
            repeated = 0;
        }
        brief.push(line.clone());
    }
    brief
}

/// How many runs the shrinking may take.
const TRIES_MAX: u32 = 2_000;

/// Makes the run of `options` in which node `number` breaks a rule as small as it can.
pub fn shrink(options: &Options, number: u64) -> Option<Reproducer> {
    let mut smaller = Options {
        only_node: Some(number),
        ..options.clone()
    };
    let first = lived(&smaller, number, false);
    let rule = first.violation.as_ref()?.rule;
    let mut tries = Tries {
        rule,
        number,
        left: TRIES_MAX,
    };

    // Less time: nothing after the moment matters.
    if let Some(violation) = &first.violation {
        let mut short = smaller.clone();
        short.span_ms = violation.at.clamp(1, smaller.span_ms);
        if tries.breaks(&short).is_some() {
            smaller = short;
        }
    }
    // One kind or two that are enough, be it later, or fewer at least.
    let few = one_or_two(smaller.faults).find_map(|faults| {
        let candidate = Options {
            faults,
            span_ms: options.span_ms,
            ..smaller.clone()
        };
        tries.breaks(&candidate).map(|_| candidate)
    });
    smaller = few.unwrap_or(smaller);
    drop_kinds(&mut smaller, &mut tries);
    // Fewer strikes: halves first, then ever smaller pieces.
    let mut keep: Vec<u64> = tries.breaks(&smaller).map(|outcome| outcome.strikes)?;
    let mut piece = keep.len().div_ceil(2);
    while piece >= 1 && !keep.is_empty() {
        let mut start = 0;
        while start < keep.len() {
            let mut fewer = keep.clone();
            fewer.drain(start..(start + piece).min(keep.len()));
            let mut candidate = smaller.clone();
            candidate.keep = Some(fewer.iter().copied().collect::<BTreeSet<u64>>());
            match tries.breaks(&candidate) {
                Some(_) => {
                    keep = fewer;
                    smaller = candidate;
                }
                None => start += piece,
            }
        }
        if piece == 1 {
            break;
        }
        piece = piece.div_ceil(2);
    }
    // Kinds of which no strike is left.
    drop_kinds(&mut smaller, &mut tries);
    let last = lived(&smaller, number, true);
    let violation = last.violation?;
    if violation.at < smaller.span_ms {
        smaller.span_ms = violation.at.max(1);
        let again = lived(&smaller, number, true);
        if let Some(violation) = again.violation.filter(|violation| violation.rule == rule) {
            return Some(Reproducer {
                options: smaller,
                violation,
                lines: again.lines,
            });
        }
        return None;
    }
    Some(Reproducer {
        options: smaller,
        violation,
        lines: last.lines,
    })
}

/// Every set of one kind or of two of `faults`, the single ones first.
fn one_or_two(faults: Faults) -> impl Iterator<Item = Faults> {
    let single = move || faults.iter().map(|fault| Faults::NONE.with(fault));
    let pairs = faults.iter().flat_map(move |one| {
        let later = faults.iter().filter(move |other| *other > one);
        later.map(move |other| Faults::NONE.with(one).with(other))
    });
    single().chain(pairs)
}

/// Leaves out each kind of fault that is not needed.
fn drop_kinds(options: &mut Options, tries: &mut Tries) {
    for fault in options.faults.iter() {
        let without = Options {
            faults: options.faults.without(fault),
            ..options.clone()
        };
        if tries.breaks(&without).is_some() {
            *options = without;
        }
    }
}

struct Tries {
    rule: Rule,
    number: u64,
    left: u32,
}

impl Tries {
    /// The outcome, if it breaks the same rule.
    fn breaks(&mut self, options: &Options) -> Option<Outcome> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let outcome = lived(options, self.number, false);
        let is_same = outcome
            .violation
            .as_ref()
            .is_some_and(|violation| violation.rule == self.rule);
        is_same.then_some(outcome)
    }
}

fn lived(options: &Options, number: u64, is_traced: bool) -> Outcome {
    let setup = Setup::new(options);
    live(&setup, number, options.keep.clone(), is_traced)
}
