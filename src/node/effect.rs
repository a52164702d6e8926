//! Everything a node can ask for, and what one step makes of a node.

use serde_json::Value;

use super::driver_call::DriverCall;
use super::outcome::Outcome;
use super::provision::ProvisionState;
use super::refused::Refused;
use super::state::{Node, PortId};
use crate::command::{self, CommandId};

/// Something to be done after the new state is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the agent something for a command; the answer comes back as [`super::Event::Command`].
    Command {
        /// For which command.
        id: CommandId,
        /// For which dispatch of it.
        attempt: u32,
        /// What to do.
        effect: command::Effect,
    },
    /// Call the driver; the answer comes back as [`super::Event::Driver`].
    Driver(DriverCall),
}

/// What the caller is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It is done, or well under way and stored.
    Done,
    /// The agent may have the token of the node's session, in full or masked.
    Token {
        /// True: only six stars; the token was handed out and used before.
        masked: bool,
    },
    /// Whether the agent may have a token is being found out; it is to ask again in some seconds.
    TokenLater,
    /// The port exists now.
    PortCreated(PortId),
    /// It was not done, and nothing has changed.
    Refused(Refused),
}

/// How serious an entry of a node's history is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The usual course of things.
    Info,
    /// Something failed.
    Error,
}

/// One line of a node's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    /// How serious.
    pub severity: Severity,
    /// What kind: `provisioning`, `power`, `maintenance`, ...
    pub event_type: String,
    /// What happened, in words for an operator.
    pub event: String,
    /// The state the node was in then, or came into.
    pub state: Option<ProvisionState>,
    /// Where that was to lead.
    pub target: Option<ProvisionState>,
    /// For a change of state: how long the one before it had lasted, in milliseconds.
    pub lasted_ms: Option<i64>,
}

/// What one event made of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The new state; equal to the old one if nothing changed.
    pub node: Node,
    /// What to do once it is stored, in order.
    pub effects: Vec<Effect>,
    /// What to tell the caller once it is stored.
    pub reply: Reply,
    /// Why, for logs and metrics.
    pub outcome: Outcome,
    /// What an inspection found, to be stored in the same commit in place of what an earlier one did; none leaves that.
    pub inventory: Option<Value>,
    /// What to add to the node's history in the same commit.
    pub history: Vec<HistoryLine>,
    /// True: the node is to be removed from the store.
    pub removed: bool,
}
