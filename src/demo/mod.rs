//! A fleet of simulated machines, and the demonstration that deploys them.
//!
//! Each machine has a power button, a boot delay, a disk and, while it is on, a ramdisk agent of its own. The agents
//! speak the wire protocol of ironic-python-agent 13.0.0: real HTTP over loopback, real tokens, certificates they
//! make themselves, real heartbeats. Only the disk is imaginary: nothing is downloaded and nothing is written.
//!
//! ```text
//!  conductor ──power hook──▶ Fleet ──▶ Machine ── boot ──▶ agent Process ──GET /, lookup, heartbeat──▶ API
//!      │                                                        ▲
//!      └──────────────── POST and GET /v1/commands/ ────────────┘        (each machine has its own port)
//! ```
//!
//! `upbeat demo` calls [`run`], `upbeat lab` uses [`Lab`]; the integration tests use [`Fleet`] as their agents. Nothing here knows how the
//! conductor works: machines and demo use its public HTTP API and the power hook, never its other types. A fleet listens on
//! 127.0.0.1 only. Start reading at [`fleet`], then `machine` (one power-on), then `agent` (one agent process).

mod agent;
mod api;
mod certificate;
mod client;
mod commands;
pub mod faults;
pub mod fleet;
mod history;
mod inspection;
pub mod journal;
mod lab;
mod logs;
mod machine;
mod report;
mod run;
mod serve;
mod setup;
mod steps;
mod tasks;
mod write;

pub use faults::{Answer, BadAnswer, Fault, Faults, Times, WriteError, WriteWhenLost};
pub use fleet::{Fleet, FleetOptions, Scheme};
pub use journal::{CommandRecord, HeartbeatRecord, Journal, RefusalRecord, WriteRecord};
pub use lab::Lab;
pub use run::run;
pub use setup::{
    ConductorSettings, DemoEnd, DemoError, DemoOptions, RunningConductor, StartConductor,
};
pub use steps::deploy_steps_offered;
