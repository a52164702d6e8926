#![warn(missing_docs)]
//! Upbeat, a bare-metal conductor.

pub mod clock;
pub mod command;
pub mod conductor;
pub mod node;
pub mod observe;
pub mod store;
pub mod timestamp;
