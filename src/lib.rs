#![warn(missing_docs)]
//! Upbeat, a bare-metal conductor.

pub mod agent;
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
pub mod store;
pub mod timestamp;
