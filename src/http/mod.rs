//! The HTTP side: reads requests, hands them to the conductor or the store's reader, and puts the answers into the shapes that
//! clients of the Bare Metal API know.
//!
//! ```text
//! server ── bytes ──▶ endpoints (which row?) ──▶ auth, microversion ──▶ the row's handler ──▶ reply | error ──▶ bytes
//!                                                                            │
//!                                       conductor.deliver(event), reader.node(..)
//! ```
//! `main` starts it with [`start`]. Nothing here decides what may happen to a node (that is `crate::node`) and nothing here
//! writes to the store. [`error`] is the only file that knows the status codes of failures, [`reply`] those of success.

pub mod auth;
mod bios;
mod busy;
mod commands;
mod conductors;
mod configdrive;
mod crowd;
mod discovery;
mod drivers;
mod endpoints;
pub mod error;
mod guessing;
mod health;
mod history;
mod listen;
mod lists;
mod machine_states;
mod maintenance;
mod management;
mod media;
pub mod microversion;
mod nodes;
mod objects;
mod openapi;
mod outline;
mod parts;
mod patch;
mod ports;
mod power;
mod provision;
mod ramdisk;
pub mod reply;
mod request;
mod server;
mod settings;
mod shards;
mod steps;
mod traits;
mod validate;
mod vendor;
mod versions;
mod view;
mod vifs;
mod written_steps;

pub use listen::{Listening, start};
pub use settings::{AgentSettings, Auth, CallbackUrlCheck, HttpSettings, Metrics};
