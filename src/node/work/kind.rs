//! The kinds of work, and what is different between them: states, words, time-outs. Data only; `run.rs` says what they do.

use serde::{Deserialize, Serialize};

use crate::command::StepsOf;
use crate::node::limits::Limits;
use crate::node::provision::ProvisionState as S;
use crate::node::queues::QueueKind;

/// What work is to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// A machine in use, with an image on its disk.
    #[default]
    Deploy,
    /// A machine without what its last user left on it; on the way to `available`.
    Clean,
    /// The steps somebody asked for, carried out; back to `manageable`.
    ManualClean,
    /// The steps somebody asked for, carried out on a machine in use.
    Service,
    /// A ramdisk its user can log into.
    Rescue,
    /// The machine back in use after that.
    Unrescue,
    /// Knowledge of what is in the machine.
    Inspect,
}

/// The states of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct States {
    /// While the next move is the conductor's.
    pub working: S,
    /// While it is the agent's.
    pub waiting: Option<S>,
    /// While it is held.
    pub held: Option<S>,
    /// After it failed.
    pub failed: S,
    /// After it ended well.
    pub done: S,
}

/// The words of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) struct Words {
    /// Begins sentences.
    pub(in crate::node) noun: &'static str,
    /// What to ask for to begin once more.
    pub(in crate::node) again: &'static str,
    /// The setting that limits the agent's silence.
    pub(in crate::node) timeout: &'static str,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: [WorkKind; 7] = [
        WorkKind::Deploy,
        WorkKind::Clean,
        WorkKind::ManualClean,
        WorkKind::Service,
        WorkKind::Rescue,
        WorkKind::Unrescue,
        WorkKind::Inspect,
    ];

    /// Its states, as the table of transitions connects them.
    pub fn states(self) -> States {
        let states = |working, waiting, held, failed, done| States {
            working,
            waiting,
            held,
            failed,
            done,
        };
        match self {
            WorkKind::Deploy => states(
                S::Deploying,
                Some(S::WaitCallBack),
                Some(S::DeployHold),
                S::DeployFailed,
                S::Active,
            ),
            WorkKind::Clean => states(
                S::Cleaning,
                Some(S::CleanWait),
                Some(S::CleanHold),
                S::CleanFailed,
                S::Available,
            ),
            WorkKind::ManualClean => states(
                S::Cleaning,
                Some(S::CleanWait),
                Some(S::CleanHold),
                S::CleanFailed,
                S::Manageable,
            ),
            WorkKind::Service => states(
                S::Servicing,
                Some(S::ServiceWait),
                Some(S::ServiceHold),
                S::ServiceFailed,
                S::Active,
            ),
            WorkKind::Rescue => states(
                S::Rescuing,
                Some(S::RescueWait),
                None,
                S::RescueFailed,
                S::Rescue,
            ),
            WorkKind::Unrescue => states(S::Unrescuing, None, None, S::UnrescueFailed, S::Active),
            WorkKind::Inspect => states(
                S::Inspecting,
                Some(S::InspectWait),
                None,
                S::InspectFailed,
                S::Manageable,
            ),
        }
    }

    /// Which of the agent's lists of steps it takes its steps from; none for work without steps.
    pub fn steps_of(self) -> Option<StepsOf> {
        match self {
            WorkKind::Deploy => Some(StepsOf::Deploy),
            WorkKind::Clean | WorkKind::ManualClean => Some(StepsOf::Clean),
            WorkKind::Service => Some(StepsOf::Service),
            WorkKind::Rescue | WorkKind::Unrescue | WorkKind::Inspect => None,
        }
    }

    /// The queue in which it waits before it begins, and of which it keeps its turn to its end.
    pub fn queue(self) -> Option<QueueKind> {
        match self {
            WorkKind::Deploy => Some(QueueKind::Deploy),
            WorkKind::Clean | WorkKind::ManualClean => Some(QueueKind::Clean),
            WorkKind::Service | WorkKind::Rescue | WorkKind::Unrescue | WorkKind::Inspect => None,
        }
    }

    /// The name of the argument that brings its steps.
    pub fn steps_name(self) -> &'static str {
        match self {
            WorkKind::Deploy => "deploy_steps",
            WorkKind::Clean | WorkKind::ManualClean => "clean_steps",
            WorkKind::Service => "service_steps",
            WorkKind::Rescue | WorkKind::Unrescue | WorkKind::Inspect => "steps",
        }
    }

    pub(in crate::node) fn words(self) -> Words {
        let words = |noun, again, timeout| Words {
            noun,
            again,
            timeout,
        };
        match self {
            WorkKind::Deploy => words("deployment", "deploy again", "deploy_callback_timeout"),
            WorkKind::Clean => words(
                "cleaning",
                "take the node out of maintenance if it is in it, manage and provide it again",
                "clean_callback_timeout",
            ),
            WorkKind::ManualClean => words(
                "cleaning",
                "take the node out of maintenance if it is in it, manage and clean it again",
                "clean_callback_timeout",
            ),
            WorkKind::Service => words(
                "service",
                "take the node out of maintenance if it is in it, then service it again or abort",
                "service_callback_timeout",
            ),
            WorkKind::Rescue => words("rescue", "rescue again", "rescue_callback_timeout"),
            WorkKind::Unrescue => words("unrescue", "unrescue again", "rescue_callback_timeout"),
            WorkKind::Inspect => words("inspection", "inspect again", "inspect_wait_timeout"),
        }
    }

    /// For how long its agent may be silent, in milliseconds; 0: for ever.
    pub fn callback_timeout_ms(self, limits: &Limits) -> i64 {
        match self {
            WorkKind::Deploy => limits.deploy_callback_timeout_ms,
            WorkKind::Clean | WorkKind::ManualClean => limits.clean_callback_timeout_ms,
            WorkKind::Service => limits.service_callback_timeout_ms,
            WorkKind::Rescue | WorkKind::Unrescue => limits.rescue_callback_timeout_ms,
            WorkKind::Inspect => limits.inspect_wait_timeout_ms,
        }
    }

    /// The `fault` of a node whose work failed in the middle of a step: a person has to look.
    pub fn fault(self) -> Option<&'static str> {
        match self {
            WorkKind::Clean | WorkKind::ManualClean => Some("clean failure"),
            WorkKind::Service => Some("service failure"),
            WorkKind::Deploy | WorkKind::Rescue | WorkKind::Unrescue | WorkKind::Inspect => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::transitions::{Cause, is_edge, leads};

    #[test]
    fn the_states_of_each_kind_are_connected_in_the_table() {
        for kind in WorkKind::ALL {
            let of = kind.states();
            assert!(is_edge(of.working, of.done), "{kind:?}");
            assert_eq!(leads(of.working, Cause::Fail), Some(of.failed), "{kind:?}");
            if let Some(waiting) = of.waiting {
                assert_eq!(leads(of.working, Cause::Wait), Some(waiting), "{kind:?}");
                assert_eq!(leads(waiting, Cause::Resume), Some(of.working), "{kind:?}");
                assert_eq!(leads(waiting, Cause::Fail), Some(of.failed), "{kind:?}");
                assert_eq!(leads(waiting, Cause::Abort), Some(of.failed), "{kind:?}");
            }
            if let Some(held) = of.held {
                assert_eq!(leads(of.working, Cause::Hold), Some(held), "{kind:?}");
                assert_eq!(leads(held, Cause::Unhold), of.waiting, "{kind:?}");
            }
        }
    }
}
