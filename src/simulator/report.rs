//! What a run came to: the counts, and how they are printed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::faults::{Fault, Faults};
use crate::node::ProvisionState;

macro_rules! tally {
    ($($(#[$doc:meta])* $field:ident),+ $(,)?) => {
        /// What happened, counted.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[$doc])* pub $field: u64,)+
            /// How often each kind of fault struck, in the order of [`Fault::ALL`].
            pub faults: Vec<u64>,
            /// From which state to which any node has moved.
            pub moves: BTreeSet<(ProvisionState, ProvisionState)>,
        }

        impl Tally {
            /// Adds another's counts.
            pub fn add(&mut self, other: &Tally) {
                $(self.$field += other.$field;)+
                self.moves.extend(&other.moves);
                self.faults.resize(Fault::ALL.len(), 0);
                for (sum, more) in self.faults.iter_mut().zip(&other.faults) {
                    *sum += more;
                }
            }
        }
    };
}

tally! {
    /// Events handed to the core.
    events,
    /// Things that happened in the worlds.
    happenings,
    /// Deploys begun.
    deploys,
    /// Deploys that ended active.
    active,
    /// Deploys that failed.
    failed,
    /// Of these: failed by silence alone, without anything worse.
    silenced,
    /// Deploys an operator ended by undeploying.
    undeployed,
    /// Cleanings, inspections, services, rescues and the like begun.
    other_work,
    /// Of these: ended well.
    other_done,
    /// Of these: failed.
    other_failed,
    /// Absences of the conductor, as nodes saw them.
    restarts,
    /// Of these: at a chosen point of one node's commit or request.
    crash_points,
    /// Restarts of a node's actor alone.
    actor_restarts,
    /// Requests to agents.
    requests,
    /// Calls of agents.
    calls,
    /// Heartbeats that arrived.
    heartbeats,
    /// Commands that agents began.
    dispatches,
    /// Times an agent said it was busy.
    busy,
    /// Turns the node was given, where only so many may do the same at once.
    turns,
    /// Calls of drivers.
    driver_calls,
    /// Commits that failed, or seemed to.
    not_stored,
    /// Agents that got six stars and sleep for ever.
    asleep,
    /// Commands whose fate was unknown.
    unknown,
    /// Of these: found on the agent.
    unknown_found,
    /// Of these: provably never arrived.
    unknown_absent,
    /// Of these: the agent that was asked is gone.
    unknown_lost,
    /// Of these: given up with the deploy, or by its deadline.
    unknown_given_up,
    /// Rows written and read again for comparison.
    round_trips,
}

impl Tally {
    /// As a block of lines.
    pub fn text(&self, faults: Faults) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{what:<20}{value}");
        };
        let still = self
            .deploys
            .saturating_sub(self.active + self.failed + self.undeployed);
        line(
            "deploys",
            format!(
                "{} (active {}, failed {}, undeployed by an operator {}, without end {still})",
                self.deploys, self.active, self.failed, self.undeployed
            ),
        );
        line(
            "other work",
            format!(
                "{} cleanings, inspections, services, rescues (done {}, failed {}, ended by an operator {})",
                self.other_work,
                self.other_done,
                self.other_failed,
                self.other_work
                    .saturating_sub(self.other_done + self.other_failed)
            ),
        );
        line(
            "moves",
            format!(
                "{} of the pairs of states that the table connects",
                self.moves.len()
            ),
        );
        let struck: Vec<String> = faults
            .iter()
            .map(|fault| {
                let count = self.faults.get(fault as usize).copied().unwrap_or(0);
                format!("{} {count}", fault.name())
            })
            .collect();
        line(
            "faults",
            if struck.is_empty() {
                "none".to_owned()
            } else {
                struck.join(", ")
            },
        );
        line(
            "conductor restarts",
            format!(
                "{} as nodes saw them, {} of them at a boundary of a commit or a request; {} of single actors",
                self.restarts, self.crash_points, self.actor_restarts
            ),
        );
        line(
            "dispatches",
            format!(
                "{} begun by agents, {} times busy",
                self.dispatches, self.busy
            ),
        );
        line("turns", format!("{} given", self.turns));
        line(
            "unknown outcomes",
            format!(
                "{} (found {}, never arrived {}, agent gone {}, given up {})",
                self.unknown,
                self.unknown_found,
                self.unknown_absent,
                self.unknown_lost,
                self.unknown_given_up
            ),
        );
        line(
            "messages",
            format!(
                "{} requests to agents, {} calls of agents, {} driver calls, {} commits not stored",
                self.requests, self.calls, self.driver_calls, self.not_stored
            ),
        );
        text
    }
}
