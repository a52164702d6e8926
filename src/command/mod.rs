//! The life of one command to the agent: planned, sent, accepted, refused, unknown, finished.
//!
//! This is the ledger that makes a second dispatch impossible. [`step()`] is pure: the node's flow calls it with what was read
//! from the agent, gets back the new ledger entry, at most one thing to do next and, when there is something to tell the node,
//! a [`Verdict`]. It never does IO, never asks the time, never fails.
//!
//! ```text
//! Planned ──survey──▶ Sent (committed) ──POST──┬─ 2xx with an id ──▶ Accepted ──poll──▶ Finished
//!    ▲                                         ├─ definite refusal ─▶ Refused
//!    │                                         └─ no clear answer, or a crash ─▶ Unknown
//!    └────────── provably never arrived ◀──survey── Unknown ──survey──▶ Accepted | Finished | instance lost
//! ```
//! The interesting part begins in `step.rs`; how an unknown command is resolved stands in `reconcile.rs`.

mod event;
mod reconcile;
mod request;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Entry, Event, PostAnswer, Refusal, Status, Unreadable};
pub use request::{Request, StepsOf};
pub use state::{Baseline, Command, CommandId, Finish, Instance, Phase};
pub use step::{ABSENT_FOR_MS, Effect, Pace, Step, Verdict, step};
