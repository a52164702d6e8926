//! Changes of what operators set: attributes and ports. The rules stand in `update.rs`; this file applies their verdict.

use super::effect::{Reply, Step};
use super::event::PatchOperation;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{Port, PortId};
use super::turn::Turn;

pub(super) fn patch(
    turn: Turn<'_>,
    _operations: &[PatchOperation],
    _reset_interfaces: bool,
    _microversion: u16,
) -> Step {
    turn.refuse(Refused::Quarantined)
}

pub(super) fn delete(mut turn: Turn<'_>) -> Step {
    turn.forget_agent();
    turn.remove();
    turn.done(Outcome::Changed)
}

pub(super) fn port_create(mut turn: Turn<'_>, port: Port) -> Step {
    let id = port.id;
    turn.node.ports.push(port);
    turn.reply(Reply::PortCreated(id), Outcome::Changed)
}

pub(super) fn port_patch(turn: Turn<'_>, id: PortId, _operations: &[PatchOperation]) -> Step {
    turn.refuse(Refused::NotFound {
        what: format!("Port {id}"),
    })
}

pub(super) fn port_delete(mut turn: Turn<'_>, id: PortId) -> Step {
    let before = turn.node.ports.len();
    turn.node.ports.retain(|port| port.id != id);
    if turn.node.ports.len() == before {
        return turn.refuse(Refused::NotFound {
            what: format!("Port {id}"),
        });
    }
    turn.done(Outcome::Changed)
}
