//! What people see of a running conductor: log lines and metrics.
//!
//! `main` sets up [`trace`] once and makes one [`metrics::Metrics`]; everybody else records. Nothing here decides anything, knows
//! a node or sends anything anywhere: logs go to standard error, metrics wait to be fetched. Names and labels are closed lists,
//! so that a node's UUID or a secret can't become one.

pub mod metrics;
pub mod trace;
