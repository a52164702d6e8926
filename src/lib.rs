#![warn(missing_docs)]
//! Upbeat is a bare-metal conductor: one process that takes machines from a rack to a running system, by talking to the
//! ironic-python-agent ramdisk on each of them. It speaks Ironic's wire protocols in both directions.
//!
//! # The map
//! | where | what | kind |
//! |---|---|---|
//! | [`node`] | what a node is and how it changes: [`node::step()`] | pure core |
//! | [`catalog`] | objects that stand for themselves: chassis, templates, runbooks, rules, allocations | pure core |
//! | [`command`] | the ledger of one command to an agent: [`command::step()`] | pure core |
//! | [`timestamp`] | a point in time, as data | pure core |
//! | [`conductor`] | one supervised actor per node, one child per open command; carries events in and effects out | shell |
//! | [`store`] | SQLite or PostgreSQL: one writer thread, a few readers | shell |
//! | [`agent`] | one request to an agent, one classified answer; the protocol's documents | shell |
//! | [`driver`] | what is done to a machine from outside: power, boot, media, ... | shell |
//! | [`http`] | what agents and operators call | shell |
//! | [`observe`], [`config`], [`clock`], [`retry`] | metrics and logs, settings, the time, growing pauses | shell |
//! | [`simulator`] | the core in a world made of a seed, where everything goes wrong and the rules are checked | pure |
//! | [`serve`], [`cli`], [`demo`] | put it all together: the daemon; a fleet of simulated machines | outermost |
//! | [`mod@bench`] | what one box carries: load, figures, promises | outermost |
//!
//! `tests/architecture.rs` holds who may use whom; `ops/decisions/` says why things are as they are.
//!
//! # What always holds
//! 1. The core never fails, it refuses; a refusal changes nothing.
//! 2. No effect before its commit, no reply before its commit. The one exception is a mere sign of life, which is stored a
//!    few seconds later at most; it asks for nothing that could do harm.
//! 3. A command is dispatched at most once per attempt, and a new attempt begins only after the one before provably never
//!    arrived.
//! 4. Every wait has a deadline in the row, unless an operator switched that limit off. Only a hold has none, which is somebody's
//!    to end, and a place in a queue, which others' ends move up.
//! 5. Every queue has a limit, and a full one is an answer (503), not a pile.
//! 6. Nothing in memory is needed after a crash: rows hold states, open commands and absolute deadlines.
//!
//! # Three walks through the code
//! **A heartbeat.** `http::ramdisk` checks its form and hands it to [`conductor::Conductor::heartbeat`]; the registry puts it into
//! the node's mailbox; `conductor::node_actor` compares the token and calls [`node::step()`]; `node::heartbeat` records the sign of
//! life, or lets `node::work` begin with a new agent; the actor stores the outcome, carries away the effects and only then
//! answers 202.
//!
//! **A deadline.** [`node::Deadlines`] holds one absolute time per kind. The actor keeps one timer for the earliest; when it fires
//! and the time has really come, `node::deadlines` says which it is and `node::work` what that means.
//!
//! **A command.** `node::work` plans it; `command::step` first asks for a survey of the agent, then has the intent stored
//! ([`command::Phase::Sent`]), then asks for the POST. `conductor::command_actor` does these things one at a time through
//! [`agent::AgentClient`]. Without a clear answer it becomes [`command::Phase::Unknown`], and `command::reconcile` finds out by
//! reading the agent.

pub mod agent;
pub mod bench;
pub mod catalog;
pub mod cli;
pub mod clock;
pub mod command;
pub mod conductor;
pub mod config;
pub mod demo;
pub mod driver;
pub mod http;
pub mod node;
pub mod observe;
pub mod retry;
pub mod serve;
pub mod simulator;
pub mod store;
pub mod timestamp;
