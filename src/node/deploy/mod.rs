//! From `available` to `active`: the deploy of a whole-disk image by way of the agent.
//!
//! ```text
//! Booting ─▶ AwaitingAgent ─▶ ReadingSteps ─▶ the step list, one entry at a time ─▶ active
//!                ▲                               │  InBandStep (write_image and the agent's own)
//!                └── a step asked for a reboot ──┤  ReadingUuids ─▶ InstallingBootloader ─▶ SettingBootDevice
//!                                                │  PoweringOffAgent ─▶ AwaitingOff ─▶ SwitchingOff
//!                                                └  SwitchingOn
//! ```
//! `state.rs` holds what is stored of it, `flow.rs` decides, `image.rs` reads what is to be written, `failure.rs` puts failures
//! into words.

mod failure;
mod flow;
mod image;
mod state;

pub use failure::explain;
pub(super) use flow::{
    abort, agent_arrived, agent_unreadable, command_finished, command_goes_on, deadline,
    driver_answered, look_when_proof_is_due, start,
};
pub use image::{Image, boot_mode, image_of, problems};
pub use state::{Deploy, DeployPhase};
