//! The ledger entry of one command, as it is stored.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::event::{Entry, Refusal};
use super::request::Request;
use crate::timestamp::Timestamp;

/// Number of a command within its node, counted from 1 over the node's whole life. With the node's UUID it is the operation id
/// that travels inside a step, where the agent ignores and echoes it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CommandId(pub u64);

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One boot of one agent. Two that differ in any part are not the same instance, and the second knows nothing of what the
/// first was asked to do.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// `started_at` of the agent's `/v1/status`, in the agent's own text (seconds since 1970 by the agent's clock).
    pub started_at: String,
    /// Where the agent said it can be reached.
    pub callback_url: String,
    /// SHA-256 of the certificate the agent sent, in hex; none without TLS.
    pub certificate_sha256: Option<String>,
}

/// What the agent was and what it listed just before a POST: the evidence an unknown command is judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The instance that was asked.
    pub instance: Instance,
    /// Ids the agent already listed, in alphabetical order.
    pub known_ids: Vec<String>,
}

impl Baseline {
    /// What `instance` shows.
    pub fn taken(instance: Instance, entries: &[Entry]) -> Baseline {
        let mut known_ids: Vec<String> = entries.iter().map(|entry| entry.id.clone()).collect();
        known_ids.sort_unstable();
        Baseline {
            instance,
            known_ids,
        }
    }

    /// True if the agent already listed this id.
    pub fn knows(&self, id: &str) -> bool {
        self.known_ids
            .binary_search_by(|known| known.as_str().cmp(id))
            .is_ok()
    }
}

/// Where a command stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// Decided and stored; nothing has left the conductor. The agent is surveyed first.
    Planned,
    /// Stored just before the POST leaves: from here on it may have arrived.
    Sent {
        /// When the POST was about to leave.
        at: Timestamp,
    },
    /// The agent has it, under this id.
    Accepted {
        /// The agent's own id of the command.
        agent_id: String,
        /// When that became known.
        at: Timestamp,
        /// Look for the id in the whole list, because this agent does not answer for single ids.
        by_list: bool,
    },
    /// It may or may not have been carried out; only reading the agent tells.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// Since when every survey showed the same instance without a trace of it.
        absent_since: Option<Timestamp>,
    },
    /// It has ended, one way or the other.
    Ended {
        /// How.
        finish: Finish,
    },
}

impl Phase {
    /// The word for logs, metrics and the ledger's column.
    pub fn name(&self) -> &'static str {
        match self {
            Phase::Planned => "planned",
            Phase::Sent { .. } => "sent",
            Phase::Accepted { .. } => "accepted",
            Phase::Unknown { .. } => "unknown",
            Phase::Ended {
                finish: Finish::Refused { .. },
            } => "refused",
            Phase::Ended { .. } => "finished",
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Finish {
    /// The agent reports success.
    Succeeded {
        /// `command_result`, as the agent sent it.
        result: Value,
    },
    /// The agent reports failure.
    Failed {
        /// Class name of the agent's error, for example `ImageDownloadError`; empty when it gave none.
        kind: String,
        /// The agent's explanation.
        message: String,
    },
    /// The agent's hardware managers changed since the steps were read.
    VersionMismatch,
    /// The agent definitely refused it, so it was not carried out.
    Refused {
        /// Why.
        why: Refusal,
    },
    /// The instance that was asked is gone; nobody can say what became of the command.
    InstanceLost,
    /// The conductor gave it up; whatever the agent makes of it is ignored.
    Abandoned,
}

impl Finish {
    /// The word for logs, metrics and the ledger.
    pub fn name(&self) -> &'static str {
        match self {
            Finish::Succeeded { .. } => "succeeded",
            Finish::Failed { .. } => "failed",
            Finish::VersionMismatch => "version_mismatch",
            Finish::Refused { .. } => "refused",
            Finish::InstanceLost => "instance_lost",
            Finish::Abandoned => "abandoned",
        }
    }

    /// What is worth keeping of it: a result is used at once and told nowhere else.
    fn kept(&self) -> Finish {
        match self {
            Finish::Succeeded { .. } => Finish::Succeeded {
                result: Value::Null,
            },
            Finish::Failed { .. }
            | Finish::VersionMismatch
            | Finish::Refused { .. }
            | Finish::InstanceLost
            | Finish::Abandoned => self.clone(),
        }
    }
}

/// One command and everything known of it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Number within the node.
    pub id: CommandId,
    /// What is asked.
    pub request: Request,
    /// Counts dispatches, from 1. Raised only after the one before provably never arrived; answers that carry an older number
    /// are ignored.
    pub attempt: u32,
    /// Where it stands.
    #[serde(flatten)]
    pub phase: Phase,
    /// The evidence taken before the last dispatch.
    pub baseline: Option<Box<Baseline>>,
    /// When it was decided.
    pub planned_at: Timestamp,
}

impl Command {
    /// A command that has just been decided.
    pub fn planned(id: CommandId, request: Request, now: Timestamp) -> Command {
        Command {
            id,
            request,
            attempt: 1,
            phase: Phase::Planned,
            baseline: None,
            planned_at: now,
        }
    }

    /// The command, ended as `finish`.
    pub fn ended(mut self, finish: &Finish) -> Command {
        self.phase = Phase::Ended {
            finish: finish.kept(),
        };
        self
    }

    /// The command, given up if it had not ended.
    pub fn abandoned(self) -> Command {
        self.ended_if_open(&Finish::Abandoned)
    }

    /// The command, lost with the agent that was asked if it had not ended.
    pub fn lost(self) -> Command {
        self.ended_if_open(&Finish::InstanceLost)
    }

    fn ended_if_open(self, finish: &Finish) -> Command {
        if self.is_open() {
            self.ended(finish)
        } else {
            self
        }
    }

    /// True until it has ended.
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Ended { .. })
    }
}
