//! What an agent found in its machine: taken over into the node, and kept as a whole.

use super::end::{ended_well, fail};
use super::state::WorkPhase;
use super::{enter, phase_of};
use crate::node::effect::Step;
use crate::node::inspection::{self, Findings};
use crate::node::refused::Refused;
use crate::node::turn::Turn;

/// The agent has posted its findings. What is wrong with them ends the inspection; what could not be taken over stands in
/// `last_error`.
pub(in crate::node) fn inspected(mut turn: Turn<'_>, findings: Findings) -> Step {
    if phase_of(&turn) != Some(WorkPhase::AwaitingInventory) {
        return turn.refuse(Refused::NotInspecting);
    }
    turn.node.deadlines.step = None;
    // Back to `inspecting`, whatever comes of it.
    enter(&mut turn, WorkPhase::SwitchingOff);
    match inspection::take_over(&mut turn, findings) {
        Ok(()) => ended_well(turn),
        Err(why) => fail(turn, format!("The inspection failed: {why}")),
    }
}
