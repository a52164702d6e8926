//! The conductor's side of the conversation with a ramdisk agent.
//!
//! [`AgentClient`] makes one request and classifies what came back; [`wire`] reads the agent's documents, [`body`] writes the
//! conductor's. The command actors call it. It decides nothing (that is `crate::command`), repeats nothing, stores nothing, and
//! never puts a token or a config drive into a text or a log line. All of it happens on a thread of its own, so that nobody else waits
//! for a handshake or a long answer.
//!
//! ```text
//! client ──▶ connection (TLS with one pinned certificate, allowed addresses only) ──▶ agent
//!    └────▶ classify (accepted / refused / never sent / unknown) ◀── wire
//! ```
//! The interesting part is `classify.rs`: which answers are proof, and of what.

pub mod body;
mod callback;
mod classify;
mod client;
mod connection;
mod pin;
mod thread;
pub mod wire;

pub use body::command_body;
pub use callback::{CallbackRules, check_callback_url};
pub use client::{AgentClient, Target};
pub use connection::{Settings, TlsMinVersion};
pub use pin::certificate_sha256;
