//! What can be learned about a command: the classified answers of the agent.
//!
//! The client in `crate::agent` builds these; it decides nothing, it only says exactly what was and was not seen.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::Instance;

/// `command_status` of a listed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// `RUNNING`
    Running,
    /// `SUCCEEDED`
    Succeeded,
    /// `FAILED`
    Failed,
    /// `CLEAN_VERSION_MISMATCH`, or without the prefix.
    VersionMismatch,
    /// Any other word, kept as it came.
    Other(String),
}

/// One command as the agent lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The agent's id of the command.
    pub id: String,
    /// Usually the short name, for example `execute_deploy_step`.
    pub command_name: String,
    /// Where it stands.
    pub status: Status,
    /// Class name of `command_error`; empty when there is none.
    pub error_kind: String,
    /// `details` of `command_error`, or its `message`; empty when there is none.
    pub error_message: String,
    /// `command_result`, `Null` while it runs.
    pub result: Value,
    /// The operation id echoed inside the step of a successful result, if there is one: the node's UUID and the command's number.
    pub operation: Option<String>,
}

/// Why the agent definitely did not carry a command out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
pub enum Refusal {
    /// Another command is running: 409, or 500 with "agent is busy" before agent 6.4.0.
    Busy {
        /// The agent's text, which names the running command.
        text: String,
    },
    /// 401: the token is not this agent's.
    Unauthorized,
    /// Any other 4xx: the agent does not know the command or rejects its parameters.
    Invalid {
        /// HTTP status.
        status: u16,
        /// The agent's text.
        text: String,
    },
    /// The agent's command list is broken for the rest of its life (a 500 naming JSON serialisation); nothing can be dispatched
    /// safely any more.
    ListPoisoned,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Busy { text } => write!(f, "the agent is busy ({text})"),
            Refusal::Unauthorized => write!(f, "the agent does not accept the agent token"),
            Refusal::Invalid { status, text } => {
                write!(f, "the agent answered {status}: {text}")
            }
            Refusal::ListPoisoned => write!(
                f,
                "the agent's command list is broken and stays so until the agent restarts"
            ),
        }
    }
}

/// The classified answer to one POST.
#[derive(Debug, Clone, PartialEq)]
pub enum PostAnswer {
    /// A readable 2xx with a command object.
    Accepted(Entry),
    /// A readable answer that says no.
    Refused(Refusal),
    /// The connection or the TLS handshake never came about: the agent cannot have seen it.
    NeverSent {
        /// What went wrong, for people.
        why: String,
    },
    /// Anything else: it may have been carried out.
    Unknown {
        /// What was seen, for people.
        why: String,
    },
}

/// Why the agent could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// No connection, a broken one, or no answer in time.
    Unreachable {
        /// What went wrong, for people.
        why: String,
    },
    /// The machine answers, but no program listens at the agent's port: no agent runs there, or it has given up serving.
    NobodyListens,
    /// 401.
    Unauthorized,
    /// The certificate is not the one that was pinned: somebody else, or another boot, answers there.
    CertificateMismatch,
    /// 404 for a single command id.
    NotFound,
    /// 500 "not JSON serializable" on the list.
    Poisoned,
    /// An answer that makes no sense, or one that is too large.
    Garbage {
        /// What was seen, for people.
        why: String,
    },
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Unreachable { why } => write!(f, "the agent can't be reached: {why}"),
            Unreadable::NobodyListens => write!(f, "no agent listens at its address"),
            Unreadable::Unauthorized => write!(f, "the agent does not accept the agent token"),
            Unreadable::CertificateMismatch => write!(
                f,
                "the agent's address answers with another certificate than the one it sent"
            ),
            Unreadable::NotFound => write!(f, "the agent doesn't know the command"),
            Unreadable::Poisoned => write!(f, "the agent can't list its commands any more"),
            Unreadable::Garbage { why } => write!(f, "the agent's answer makes no sense: {why}"),
        }
    }
}

/// Everything that can happen to an open command.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `/v1/status` and the list of commands were read, in this order.
    Surveyed {
        /// Who answered.
        instance: Instance,
        /// All commands, oldest first.
        entries: Vec<Entry>,
    },
    /// The survey failed.
    SurveyFailed(Unreadable),
    /// The POST was answered, or not.
    Posted(PostAnswer),
    /// One command was read by its id.
    Polled(Entry),
    /// That read failed.
    PollFailed(Unreadable),
    /// The agent has just shown a sign of life; now is a good time to look.
    Hint,
    /// The conductor, or the actor that held the connection, has started anew.
    Recovered,
}

impl Event {
    /// The same with every text the agent wrote for people replaced by what `shown` makes of it.
    pub fn with_texts(self, shown: &impl Fn(String) -> String) -> Event {
        let entry = |entry: Entry| Entry {
            error_message: shown(entry.error_message),
            ..entry
        };
        let unreadable = |why: Unreadable| match why {
            Unreadable::Unreachable { why } => Unreadable::Unreachable { why: shown(why) },
            Unreadable::Garbage { why } => Unreadable::Garbage { why: shown(why) },
            Unreadable::NobodyListens
            | Unreadable::Unauthorized
            | Unreadable::CertificateMismatch
            | Unreadable::NotFound
            | Unreadable::Poisoned => why,
        };
        match self {
            Event::Surveyed { instance, entries } => Event::Surveyed {
                instance,
                entries: entries.into_iter().map(entry).collect(),
            },
            Event::Polled(polled) => Event::Polled(entry(polled)),
            Event::SurveyFailed(why) => Event::SurveyFailed(unreadable(why)),
            Event::PollFailed(why) => Event::PollFailed(unreadable(why)),
            Event::Posted(answer) => Event::Posted(match answer {
                PostAnswer::Accepted(accepted) => PostAnswer::Accepted(entry(accepted)),
                PostAnswer::Refused(Refusal::Busy { text }) => {
                    PostAnswer::Refused(Refusal::Busy { text: shown(text) })
                }
                PostAnswer::Refused(Refusal::Invalid { status, text }) => {
                    let text = shown(text);
                    PostAnswer::Refused(Refusal::Invalid { status, text })
                }
                PostAnswer::Refused(why) => PostAnswer::Refused(why),
                PostAnswer::NeverSent { why } => PostAnswer::NeverSent { why: shown(why) },
                PostAnswer::Unknown { why } => PostAnswer::Unknown { why: shown(why) },
            }),
            Event::Hint => Event::Hint,
            Event::Recovered => Event::Recovered,
        }
    }
}
