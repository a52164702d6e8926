//! Why something asked of a node was not done: an answer, not an error.

use std::fmt;

use super::provision::{ProvisionState, Verb};

/// The world asked for something that is not allowed now; nothing has changed. Only `crate::http::error` knows which status
/// code each becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A value that can't be accepted.
    BadValue {
        /// Which field, as spelled on the wire, with sub-keys separated by slashes.
        field: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// The verb leads nowhere from this state.
    NoSuchTransition {
        /// The verb.
        verb: Verb,
        /// The state the node is in.
        state: ProvisionState,
    },
    /// Understood, but this version can't do it.
    Unsupported {
        /// What, in full words.
        what: String,
    },
    /// Not while the node is in maintenance.
    InMaintenance {
        /// What was asked.
        what: String,
    },
    /// The node is protected.
    Protected {
        /// What was asked.
        what: String,
    },
    /// The node is at work; later it may be possible.
    Busy {
        /// What it does now.
        state: ProvisionState,
    },
    /// Against the present state of things, and waiting won't help.
    Conflict {
        /// What stands against it.
        text: String,
    },
    /// A part of the node that does not exist.
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// It can't go as long as others name it.
    InUse {
        /// What.
        what: String,
        /// By whom.
        by: String,
    },
    /// No lookup in this state; agents are told no more than that.
    LookupNotAllowed,
    /// Findings for a node that nobody inspects; agents are told no more than that.
    NotInspecting,
    /// A heartbeat without a token.
    TokenMissing,
    /// A heartbeat with another token than the session's.
    TokenWrong,
    /// A heartbeat that announces another address than the session's.
    CallbackUrlChanged,
    /// A heartbeat that brings another certificate than the session's.
    CertificateChanged,
    /// A callback URL the conductor must not call.
    CallbackUrlNotAllowed {
        /// Why.
        problem: String,
    },
    /// The node's actor failed too often; see its `last_error`.
    Quarantined,
}

impl Refused {
    /// The word for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Refused::BadValue { .. } => "bad_value",
            Refused::NoSuchTransition { .. } => "no_such_transition",
            Refused::Unsupported { .. } => "unsupported",
            Refused::InMaintenance { .. } => "in_maintenance",
            Refused::Protected { .. } => "protected",
            Refused::Busy { .. } => "busy",
            Refused::Conflict { .. } => "conflict",
            Refused::NotFound { .. } => "not_found",
            Refused::InUse { .. } => "in_use",
            Refused::LookupNotAllowed => "lookup_not_allowed",
            Refused::NotInspecting => "not_inspecting",
            Refused::TokenMissing => "token_missing",
            Refused::TokenWrong => "token_wrong",
            Refused::CallbackUrlChanged => "callback_url_changed",
            Refused::CertificateChanged => "certificate_changed",
            Refused::CallbackUrlNotAllowed { .. } => "callback_url_not_allowed",
            Refused::Quarantined => "quarantined",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::BadValue { field, problem } => write!(f, "{field}: {problem}"),
            Refused::NoSuchTransition { verb, state } => write!(
                f,
                "The requested action \"{verb}\" can not be performed on a node in state \"{state}\"."
            ),
            Refused::Unsupported { what } => write!(f, "{what}"),
            Refused::InMaintenance { what } => write!(
                f,
                "{what} is not possible while the node is in maintenance; take it out of maintenance first."
            ),
            Refused::Protected { what } => write!(
                f,
                "{what} is not possible because the node is protected; set protected to false first."
            ),
            Refused::Busy { state } => write!(
                f,
                "The node is in state \"{state}\" and at work; try again when it has finished."
            ),
            Refused::Conflict { text } => f.write_str(text),
            Refused::NotFound { what } => write!(f, "{what} could not be found."),
            Refused::InUse { what, by } => {
                write!(f, "{what} can't be removed: it is in use by {by}.")
            }
            Refused::LookupNotAllowed => {
                write!(f, "The node is not in a state that allows a lookup.")
            }
            Refused::NotInspecting => {
                write!(
                    f,
                    "The node is not in a state that awaits the findings of an inspection."
                )
            }
            Refused::TokenMissing => write!(f, "Agent token is required for heartbeat processing."),
            Refused::TokenWrong => write!(
                f,
                "Invalid or missing agent token received; the heartbeat was ignored."
            ),
            Refused::CallbackUrlChanged => write!(
                f,
                "Detected change in ramdisk provided \"callback_url\"; the heartbeat was ignored."
            ),
            Refused::CertificateChanged => write!(
                f,
                "Detected change in ramdisk provided \"agent_verify_ca\"; the heartbeat was ignored."
            ),
            Refused::CallbackUrlNotAllowed { problem } => write!(f, "callback_url: {problem}"),
            Refused::Quarantined => write!(
                f,
                "The conductor gave up on this node after repeated internal failures; see last_error, then clear maintenance to go on."
            ),
        }
    }
}
