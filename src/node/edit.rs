//! Changes of what operators set: attributes and ports. The rules stand in `update.rs` and `ports.rs`; this file applies their
//! verdict.

use serde_json::Value;

use super::effect::{Reply, Step};
use super::event::PatchOperation;
use super::hardware::recorded::Vif;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{Node, Port, PortId};
use super::turn::Turn;
use super::{portgroups, ports, update, upkeep};

pub(super) fn patch(
    mut turn: Turn<'_>,
    operations: &[PatchOperation],
    reset_interfaces: bool,
    microversion: u16,
) -> Step {
    let patched = match update::patch(&turn.node, operations, reset_interfaces, microversion) {
        Ok(patched) => patched,
        Err(why) => return turn.refuse(why),
    };
    let has_new_attributes = patched.attributes != *turn.node.attributes;
    turn.node.attributes = patched.attributes.into();
    match patched.maintenance {
        Some(on) => upkeep::maintenance(turn, on, None),
        None if has_new_attributes => turn.done(Outcome::Changed),
        None => turn.unchanged(Outcome::Unchanged),
    }
}

pub(super) fn delete(mut turn: Turn<'_>) -> Step {
    if let Err(why) = update::may_delete(&turn.node) {
        return turn.refuse(why);
    }
    turn.forget_agent();
    turn.remove();
    turn.done(Outcome::Changed)
}

pub(super) fn port_create(mut turn: Turn<'_>, port: Port) -> Step {
    let id = port.id;
    // Other nodes' ports are compared by the store.
    if turn.node.ports.iter().any(|other| other.id == id) {
        return turn.refuse(Refused::Conflict {
            text: format!("port uuid {id} is already in use; it must be unique."),
        });
    }
    if let Err(why) = portgroups::check_port_in_group(&turn.node, &port) {
        return turn.refuse(why);
    }
    turn.node.ports.push(port);
    turn.reply(Reply::PortCreated(id), Outcome::Changed)
}

pub(super) fn port_patch(mut turn: Turn<'_>, id: PortId, operations: &[PatchOperation]) -> Step {
    let patched = match ports::patch_port(&turn.node, id, operations) {
        Ok(patched) => patched,
        Err(why) => return turn.refuse(why),
    };
    let now = turn.now.at;
    match turn.node.ports.iter_mut().find(|port| port.id == id) {
        Some(port) if *port == patched => turn.unchanged(Outcome::Unchanged),
        Some(port) => {
            *port = Port {
                updated_at: Some(now),
                ..patched
            };
            turn.done(Outcome::Changed)
        }
        None => turn.refuse(no_such_port(id)),
    }
}

pub(super) fn port_delete(mut turn: Turn<'_>, id: PortId) -> Step {
    if let Some(vif) = vif_on(&turn.node, id) {
        let text = format!(
            "Port {id} can't be deleted while the VIF {vif} is attached to it; detach that first, or put the node into maintenance."
        );
        return turn.refuse(Refused::Conflict { text });
    }
    let before = turn.node.ports.len();
    turn.node.ports.retain(|port| port.id != id);
    if turn.node.ports.len() == before {
        return turn.refuse(no_such_port(id));
    }
    turn.done(Outcome::Changed)
}

/// The virtual interface that relies on this port; in maintenance none does.
fn vif_on(node: &Node, id: PortId) -> Option<&str> {
    let id = id.to_string();
    let is_on = |vif: &&Vif| vif.info.get("port_uuid").and_then(Value::as_str) == Some(&id);
    let vif = node.hardware.vifs.iter().find(is_on)?;
    node.maintenance.is_none().then_some(vif.id.as_str())
}

fn no_such_port(id: PortId) -> Refused {
    Refused::NotFound {
        what: format!("Port {id}"),
    }
}
