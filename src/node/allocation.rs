//! Allocations as nodes know them: taking a node for one, and letting it go.
//!
//! Pure. Which nodes are asked, and in which order, is `crate::catalog::allocation`'s business; whether a node can be taken is decided
//! here, once when candidates are chosen and again, for good, in the node's own step. An allocation ends with the instance: a node
//! without `instance_uuid` has none (see `Turn`).

use serde_json::json;
use uuid::Uuid;

use super::effect::Step;
use super::outcome::Outcome;
use super::provision::ProvisionState as S;
use super::refused::Refused;
use super::state::Node;
use super::turn::Turn;

/// What an allocation asks of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demand {
    /// The allocation, which is the instance's UUID too.
    pub id: Uuid,
    /// The class the node must be of.
    pub resource_class: String,
    /// Traits it must have.
    pub traits: Vec<String>,
    /// The project that must own it or use it, if there is a condition.
    pub owner: Option<String>,
    /// The node is in use already, and only the record of it is missing.
    pub is_backfill: bool,
}

/// What happens between a node and an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationChange {
    /// It takes the node, if it still can.
    Take(Demand),
    /// An operator ends it.
    Release(Uuid),
}

/// What keeps the node from meeting the demand; none if nothing does.
pub fn why_not(node: &Node, demand: &Demand) -> Option<String> {
    let attributes = &node.attributes;
    if attributes.resource_class.as_ref() != Some(&demand.resource_class) {
        return Some(match &attributes.resource_class {
            Some(class) => format!("its resource class is {class}"),
            None => "it has no resource class".to_owned(),
        });
    }
    let own = demand.id.to_string();
    match &attributes.instance_uuid {
        Some(instance) if !(demand.is_backfill && *instance == own) => {
            return Some(format!("it is associated with instance {instance}"));
        }
        Some(_) | None => {}
    }
    if node.allocation.is_some_and(|other| other != demand.id) {
        return Some("it belongs to another allocation".to_owned());
    }
    let missing: Vec<&str> = demand
        .traits
        .iter()
        .filter(|name| !node.traits.contains(name))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        return Some(format!("it lacks the traits {}", missing.join(", ")));
    }
    if let Some(owner) = &demand.owner
        && attributes.owner.as_ref() != Some(owner)
        && attributes.lessee.as_ref() != Some(owner)
    {
        return Some(format!("it is not for project {owner}"));
    }
    if demand.is_backfill {
        return None;
    }
    if node.provision_state() != S::Available {
        return Some(format!("its state is \"{}\"", node.provision_state()));
    }
    if node.maintenance.is_some() {
        return Some("it is in maintenance".to_owned());
    }
    if node.power.state.is_none() {
        return Some("its power state is not known".to_owned());
    }
    None
}

/// Whether an operator may end the node's allocation.
///
/// # Errors
/// [`Refused::Conflict`], [`Refused::Busy`].
pub fn may_release(node: &Node) -> Result<(), Refused> {
    let state = node.provision_state();
    if node.maintenance.is_some() {
        return Ok(());
    }
    if state == S::Active {
        return Err(Refused::Conflict {
            text: "The allocation's node is active; undeploy it, which ends the allocation, or put it into maintenance first.".to_owned(),
        });
    }
    if state.is_working() {
        return Err(Refused::Busy { state });
    }
    Ok(())
}

pub(super) fn change(turn: Turn<'_>, change: AllocationChange) -> Step {
    match change {
        AllocationChange::Take(demand) => take(turn, demand),
        AllocationChange::Release(id) => release(turn, id),
    }
}

fn take(mut turn: Turn<'_>, demand: Demand) -> Step {
    if turn.node.allocation == Some(demand.id) {
        return turn.unchanged(Outcome::Unchanged);
    }
    if let Some(why) = why_not(&turn.node, &demand) {
        let node = turn.node.id;
        return turn.refuse(Refused::Conflict {
            text: format!("Node {node} can't be allocated: {why}."),
        });
    }
    let attributes = &mut turn.node.attributes;
    attributes.instance_uuid = Some(demand.id.to_string());
    if !(demand.is_backfill && demand.traits.is_empty()) {
        attributes
            .instance_info
            .insert("traits".to_owned(), json!(demand.traits));
    }
    turn.node.allocation = Some(demand.id);
    turn.done(Outcome::Changed)
}

fn release(mut turn: Turn<'_>, id: Uuid) -> Step {
    if turn.node.allocation != Some(id) {
        return turn.refuse(Refused::NotFound {
            what: format!("Allocation {id}"),
        });
    }
    if let Err(why) = may_release(&turn.node) {
        return turn.refuse(why);
    }
    let attributes = &mut turn.node.attributes;
    attributes.instance_uuid = None;
    attributes.instance_info.remove("traits");
    turn.node.allocation = None;
    turn.done(Outcome::Changed)
}
