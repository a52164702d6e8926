//! What can go wrong in the simulated world, how often, and the record of what did.
//!
//! Every decision of the world to hurt goes through [`Injector::strikes`]: it draws from a stream of the fault's own, so leaving a
//! kind out does not reshuffle the others, and it numbers what struck, so that the shrinking can keep some and drop the rest.

use std::collections::BTreeSet;

use super::random::Random;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $per_mille:literal, $hostile:literal);+ $(;)?) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $variant),+ }

        impl Fault {
            /// Every kind.
            pub const ALL: &[Fault] = &[$(Fault::$variant),+];

            /// The word for the command line and the report.
            pub fn name(self) -> &'static str {
                match self { $(Fault::$variant => $name),+ }
            }

            /// In how many of a thousand opportunities it strikes.
            fn per_mille(self) -> u64 {
                match self { $(Fault::$variant => $per_mille),+ }
            }

            /// True when a deploy may rightly fail because of it; all others must never fail one.
            pub fn is_hostile(self) -> bool {
                match self { $(Fault::$variant => $hostile),+ }
            }
        }
    };
}

faults! {
    /// A request or an answer is lost, in either direction.
    Loss = "loss", 40, false;
    /// A request of an agent arrives twice.
    Duplication = "duplication", 30, false;
    /// A message takes seconds, or longer than the caller waits; later ones overtake it.
    Delay = "delay", 40, false;
    /// An answer is cut off, or comes from some proxy, or makes no sense.
    Garbage = "garbage", 30, false;
    /// One direction, or both, is blocked for minutes.
    Block = "block", 80, false;
    /// The store refuses a commit, carries it out and says it didn't, or is gone for a while.
    Store = "store", 15, false;
    /// The conductor dies, or is stopped, and comes back; at any time, and at each boundary of a commit or a request.
    Crash = "crash", 12, false;
    /// The conductor's wall clock is set while it is down.
    Clock = "clock", 300, false;
    /// The agent's process ends and another takes its place.
    AgentRestart = "agent-restart", 80, true;
    /// The agent's process stops doing anything for a while, or for ever.
    AgentHang = "agent-hang", 80, true;
    /// The machine reboots by itself.
    MachineReboot = "machine-reboot", 60, true;
    /// The machine dies, or never comes up.
    MachineDeath = "machine-death", 50, true;
    /// A driver call fails, does what was asked and fails, is slow, or never answers.
    Driver = "driver", 30, true;
    /// A synchronous command breaks the agent's list of commands for good.
    Poison = "poison", 30, true;
    /// A command of the agent fails, or takes far too long.
    Command = "command", 50, true;
    /// Somebody else makes the agent do something.
    Foreign = "foreign", 60, true;
    /// Strangers call with wrong tokens, addresses and certificates.
    Stray = "stray", 200, false;
    /// Operators abort, delete, switch power and set maintenance at bad moments.
    Operator = "operator", 120, true;
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults(u32);

impl Faults {
    /// None at all.
    pub const NONE: Faults = Faults(0);

    /// Every kind.
    pub fn all() -> Faults {
        Fault::ALL
            .iter()
            .fold(Faults::NONE, |set, fault| set.with(*fault))
    }

    /// Only those that must never fail a deploy.
    pub fn harmless() -> Faults {
        Fault::ALL
            .iter()
            .filter(|fault| !fault.is_hostile())
            .fold(Faults::NONE, |set, fault| set.with(*fault))
    }

    /// With one more.
    #[must_use]
    pub fn with(self, fault: Fault) -> Faults {
        Faults(self.0 | bit(fault))
    }

    /// With one less.
    #[must_use]
    pub fn without(self, fault: Fault) -> Faults {
        Faults(self.0 & !bit(fault))
    }

    /// True when `fault` is in the set.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & bit(fault) != 0
    }

    /// Those in the set, in the order of [`Fault::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL
            .iter()
            .copied()
            .filter(move |fault| self.has(*fault))
    }

    /// Reads `all`, `none`, `harmless`, or names separated by commas.
    ///
    /// # Errors
    /// Which word is not known, and which are.
    pub fn parse(text: &str) -> Result<Faults, String> {
        match text {
            "all" => return Ok(Faults::all()),
            "none" => return Ok(Faults::NONE),
            "harmless" => return Ok(Faults::harmless()),
            _ => {}
        }
        text.split(',').try_fold(Faults::NONE, |set, word| {
            let word = word.trim();
            Fault::ALL
                .iter()
                .find(|fault| fault.name() == word)
                .map(|fault| set.with(*fault))
                .ok_or_else(|| {
                    let known: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
                    format!(
                        "{word:?} is no kind of fault; write all, none, harmless, or some of {}",
                        known.join(",")
                    )
                })
        })
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Faults::all() {
            return f.write_str("all");
        }
        if *self == Faults::NONE {
            return f.write_str("none");
        }
        let names: Vec<&str> = self.iter().map(Fault::name).collect();
        f.write_str(&names.join(","))
    }
}

fn bit(fault: Fault) -> u32 {
    1 << (fault as u32)
}

/// Decides when faults strike one node, and counts them.
#[derive(Debug)]
pub(super) struct Injector {
    enabled: Faults,
    streams: Vec<Random>,
    /// How often each kind struck.
    pub(super) struck: Vec<u64>,
    /// Numbers of the strikes that are let through; all when none.
    keep: Option<BTreeSet<u64>>,
    strikes: u64,
    /// Strikes that were let through, in order: the first thing the shrinking wants to know.
    pub(super) let_through: Vec<u64>,
    /// No more faults: the world is left alone to come to rest.
    pub(super) is_over: bool,
    /// Strikes of hostile kinds so far.
    pub(super) hostile: u64,
}

impl Injector {
    pub(super) fn new(
        enabled: Faults,
        seed: u64,
        node: u64,
        keep: Option<BTreeSet<u64>>,
    ) -> Injector {
        let streams = Fault::ALL
            .iter()
            .map(|fault| Random::derived(seed, &[node, 100 + *fault as u64]))
            .collect();
        Injector {
            enabled,
            streams,
            struck: vec![0; Fault::ALL.len()],
            keep,
            strikes: 0,
            let_through: Vec::new(),
            is_over: false,
            hostile: 0,
        }
    }

    /// Whether `fault` strikes at this opportunity.
    pub(super) fn strikes(&mut self, fault: Fault) -> bool {
        self.strikes_at(fault, fault.per_mille())
    }

    /// Whether `fault` strikes, at a rate other than its usual one.
    pub(super) fn strikes_at(&mut self, fault: Fault, per_mille: u64) -> bool {
        if self.is_over || !self.enabled.has(fault) {
            return false;
        }
        let place = fault as usize;
        if !self.streams[place].chance(per_mille) {
            return false;
        }
        self.strikes += 1;
        if self
            .keep
            .as_ref()
            .is_some_and(|keep| !keep.contains(&self.strikes))
        {
            return false;
        }
        self.let_through.push(self.strikes);
        self.note(fault);
        true
    }

    /// Something of this kind happened by another way than a strike.
    pub(super) fn note(&mut self, fault: Fault) {
        self.struck[fault as usize] += 1;
        if fault.is_hostile() {
            self.hostile += 1;
        }
    }

    /// A number for the details of a strike.
    pub(super) fn between(&mut self, fault: Fault, low: i64, high: i64) -> i64 {
        self.streams[fault as usize].between(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_back_as_they_are_written() {
        for set in [
            Faults::all(),
            Faults::NONE,
            Faults::NONE.with(Fault::Loss).with(Fault::Crash),
        ] {
            assert_eq!(Faults::parse(&set.to_string()), Ok(set));
        }
        assert!(!Faults::harmless().has(Fault::Driver));
        assert!(Faults::parse("loss,flood").unwrap_err().contains("flood"));
    }

    #[test]
    fn a_kind_left_out_leaves_the_others_as_they_were() {
        let draw = |set: Faults| {
            let mut injector = Injector::new(set, 3, 0, None);
            (0..500)
                .map(|_| {
                    injector.strikes(Fault::Delay);
                    injector.strikes(Fault::Loss)
                })
                .collect::<Vec<bool>>()
        };
        let both = draw(Faults::NONE.with(Fault::Loss).with(Fault::Delay));
        assert_eq!(both, draw(Faults::NONE.with(Fault::Loss)));
        assert!(both.contains(&true));
    }
}
