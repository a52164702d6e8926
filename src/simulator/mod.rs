//! The same core in a world made of a seed: clock, network, agents, machines, store and the conductor's own deaths.
//!
//! `upbeat simulate` and `tests/simulate.rs` call [`run`]; it lets every node live through its own world and checks, after
//! everything that happens, the sentences in [`Rule`]. Nodes do not meet, so each has a world of its own, made from the seed and
//! its number; the conductor's absences are one plan for all. Nothing here asks the time, opens a file or a socket, or depends on
//! the order of a hash map: a seed means the same on every machine, every time.
//!
//! ```text
//! operator ─▶ ┌─ shell ────────────┐ ──▶ network ──▶ agent ┐
//!             │ mailbox, store,    │ ◀──    (faults)   ◀── ├ machine
//!   plan   ─▶ │ timer ─▶ node::step│ ──▶ driver calls ───▶ ┘
//!             └────────────────────┘        checks look at all of it
//! ```
//! The interesting part begins in `world.rs`; `shell.rs` imitates `crate::conductor` and has to follow it.

mod agent;
mod checks;
mod child;
mod crowd;
mod faults;
mod machine;
mod network;
mod operator;
mod plan;
mod queue;
mod random;
mod report;
mod rules;
mod shell;
mod shrink;
mod story;
mod work;
mod world;

use std::collections::BTreeSet;

pub use faults::{Fault, Faults};
pub use report::Tally;
pub use rules::{Rule, Violation};
pub use shrink::{Reproducer, shrink, told_briefly};

use crate::node::{BootMode, Event, Limits, Node, Now, QueueLimits, Step};

/// The core, or a broken variant of it.
pub type StepFn = fn(&Node, Event, Now<'_>) -> Step;

/// Deliberate faults of the imitated shell: each was one of the real shell once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A row that is read again loses the signs of life that were not stored yet.
    pub forgets_signs: bool,
    /// A sign of life that could not be stored is left at that.
    pub leaves_failed_signs: bool,
    /// A row that is read again comes without its ports.
    pub forgets_ports: bool,
    /// What the row holds and waits for is not told to the queues when the conductor is back.
    pub forgets_turns: bool,
    /// Nor when an actor has read its row.
    pub leaves_lost_turns: bool,
    /// Agents take a command while another runs; the real ones never do, and much rests on that.
    pub agents_are_never_busy: bool,
}

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many nodes.
    pub nodes: u64,
    /// Only this one of them.
    pub only_node: Option<u64>,
    /// For how long, in milliseconds of the world's time.
    pub span_ms: i64,
    /// What everything follows from.
    pub seed: u64,
    /// Which kinds of faults.
    pub faults: Faults,
    /// Only the faults with these numbers, as a reproducer names them.
    pub keep: Option<BTreeSet<u64>>,
    /// How many threads.
    pub threads: usize,
    /// The core to try.
    pub step: StepFn,
    /// Known weaknesses of the shell to try.
    pub quirks: Quirks,
}

impl Options {
    /// The real core for `nodes` nodes over `span_ms`, with every kind of fault, on one thread.
    pub fn new(seed: u64, nodes: u64, span_ms: i64) -> Options {
        Options {
            nodes,
            only_node: None,
            span_ms,
            seed,
            faults: Faults::all(),
            keep: None,
            threads: 1,
            step: crate::node::step,
            quirks: Quirks::default(),
        }
    }
}

/// What all worlds of a run share.
struct Setup {
    step: StepFn,
    quirks: Quirks,
    seed: u64,
    span_ms: i64,
    faults: Faults,
    plan: Vec<plan::Outage>,
    limits: Vec<Limits>,
    /// How long a node is used between deploys, about.
    use_ms: i64,
    /// How long others have their turns, about.
    turn_ms: i64,
    /// Every so many commits a row is read again; a restart always does.
    round_trip_every: u64,
    crash_point_per_mille: u64,
    block_per_mille: u64,
}

impl Setup {
    fn new(options: &Options) -> Setup {
        let usual = Limits::default();
        let tight = Limits {
            deploy_callback_timeout_ms: 600_000,
            clean_callback_timeout_ms: 600_000,
            service_callback_timeout_ms: 600_000,
            rescue_callback_timeout_ms: 600_000,
            inspect_wait_timeout_ms: 900_000,
            command_limit_ms: 1_800_000,
            default_boot_mode: BootMode::Bios,
            ..usual.clone()
        };
        let none = Limits {
            deploy_callback_timeout_ms: 0,
            clean_callback_timeout_ms: 0,
            service_callback_timeout_ms: 0,
            rescue_callback_timeout_ms: 0,
            inspect_wait_timeout_ms: 0,
            automated_clean: false,
            write_image_limit_ms: 0,
            command_limit_ms: 0,
            queues: QueueLimits::NONE,
            ..usual.clone()
        };
        let reissues = Limits {
            reissue_lost_token: true,
            ..tight.clone()
        };
        // So few turns that others are in the way.
        let few = QueueLimits {
            deploy: 2,
            clean: 1,
            image_host: 1,
        };
        let crowded = |limits: &Limits| Limits {
            queues: few,
            ..limits.clone()
        };
        let is_small = options.nodes <= 8;
        Setup {
            step: options.step,
            quirks: options.quirks,
            seed: options.seed,
            span_ms: options.span_ms,
            faults: options.faults,
            plan: plan::outages(options.seed, options.span_ms, options.faults),
            limits: vec![
                crowded(&usual),
                crowded(&tight),
                usual,
                tight,
                reissues,
                none,
            ],
            turn_ms: if is_small { 120_000 } else { 1_800_000 },
            use_ms: if is_small { 600_000 } else { 18_000_000 },
            round_trip_every: if is_small { 1 } else { 16 },
            crash_point_per_mille: if is_small { 20 } else { 4 },
            block_per_mille: 3,
        }
    }

    /// The limits a node lives under.
    fn limits_of(&self, number: u64) -> &Limits {
        let mut random = random::Random::derived(self.seed, &[number, 3]);
        let places = i64::try_from(self.limits.len()).unwrap_or(1) - 1;
        let place = usize::try_from(random.between(0, places)).unwrap_or(0);
        &self.limits[place]
    }
}

/// What became of one world.
pub(crate) struct Outcome {
    violation: Option<Violation>,
    tally: Tally,
    digest: u64,
    strikes: Vec<u64>,
    lines: Vec<String>,
}

/// What became of all.
#[derive(Debug, Clone)]
pub struct Report {
    /// The counts.
    pub tally: Tally,
    /// The same for the same seed, nodes, time and faults.
    pub digest: u64,
    /// The first node that broke a rule, if one did.
    pub broken: Option<(u64, Violation)>,
    /// How many nodes broke a rule.
    pub violations: u64,
}

/// Lets all nodes live through their worlds.
pub fn run(options: &Options) -> Report {
    let setup = Setup::new(options);
    let numbers: Vec<u64> = match options.only_node {
        Some(number) => vec![number],
        None => (0..options.nodes).collect(),
    };
    let threads = options.threads.clamp(1, numbers.len().max(1));
    let live = |number: u64| world::live(&setup, number, options.keep.clone(), false);
    let mut outcomes: Vec<(u64, Outcome)> = if threads == 1 {
        numbers
            .iter()
            .map(|number| (*number, live(*number)))
            .collect()
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|worker| {
                    let (numbers, live) = (&numbers, &live);
                    scope.spawn(move || {
                        let own = numbers.iter().skip(worker).step_by(threads);
                        own.map(|number| (*number, live(*number)))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .flat_map(|worker| match worker.join() {
                    Ok(lived) => lived,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        })
    };
    outcomes.sort_by_key(|(number, _)| *number);
    let mut report = Report {
        tally: Tally::default(),
        digest: 0,
        broken: None,
        violations: 0,
    };
    for (number, outcome) in outcomes {
        report.tally.add(&outcome.tally);
        report.digest = report.digest.rotate_left(5).wrapping_mul(31) ^ outcome.digest;
        if let Some(violation) = outcome.violation {
            report.violations += 1;
            report.broken.get_or_insert((number, violation));
        }
    }
    report
}
