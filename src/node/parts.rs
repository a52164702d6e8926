//! What belongs to a node besides its ports: port groups, volume connectors and volume targets. What all of them have in common.
//!
//! Pure. Each kind says in its own file which fields it has and what stands against a change; here is how one is read, changed and
//! taken away. They live and change with their node, in its step and its commit.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thin_vec::ThinVec;
use uuid::Uuid;

use super::effect::Step;
use super::event::{Event, PatchOp, PatchOperation};
use super::fields::{self, Field};
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{Node, Object};
use super::turn::Turn;
use super::values::{bad, is_name, optional_uuid, text_of};
use crate::timestamp::Timestamp;

/// A part of a node: its UUID, its times, and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part<T> {
    /// Its UUID.
    pub id: Uuid,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// What it is.
    pub is: T,
}

/// One kind of parts.
pub trait PartKind:
    Clone + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The word for rows, and for sentences with a capital letter.
    const NAME: &'static str;
    /// What can be set, apart from `uuid` and `node_uuid`.
    const FIELDS: &'static [Field];

    /// The node's parts of this kind.
    fn of(node: &Node) -> &ThinVec<Part<Self>>;

    /// The same, to be changed.
    fn of_mut(node: &mut Node) -> &mut ThinVec<Part<Self>>;

    /// The event that asks the node for a change.
    fn event(change: PartChange<Self>) -> Event;

    /// Its name, which no other part of any node has.
    fn name(&self) -> Option<&str> {
        None
    }

    /// What no other part of any node may have: the field's name, as clients know it, and the value.
    fn claim(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Whether the node may have `new`: in place of `old`, or as one more.
    ///
    /// # Errors
    /// What stands against it.
    fn may_become(node: &Node, old: Option<&Part<Self>>, new: &Part<Self>) -> Result<(), Refused>;

    /// Whether the node may lose it.
    ///
    /// # Errors
    /// What stands against it.
    fn may_go(node: &Node, part: &Part<Self>) -> Result<(), Refused>;
}

/// What is asked of a node's parts.
#[derive(Debug, Clone, PartialEq)]
pub enum PartChange<T> {
    /// One more.
    Create(Box<Part<T>>),
    /// One changes by JSON patch.
    Patch {
        /// Which one.
        id: Uuid,
        /// The operations, in order.
        operations: Vec<PatchOperation>,
    },
    /// One goes.
    Delete {
        /// Which one.
        id: Uuid,
    },
}

/// What a document says of a new part.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPart<T> {
    /// The UUID it asks for.
    pub id: Option<Uuid>,
    /// UUID or name of its node.
    pub node: String,
    /// What it is.
    pub is: T,
}

/// Reads the document of a new part.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn read_new<T: PartKind>(document: &Object) -> Result<NewPart<T>, Refused> {
    let mut rest = document.clone();
    let id = match rest.remove("uuid") {
        Some(value) => optional_uuid("uuid", &value)?,
        None => None,
    };
    let Some(node) = rest.remove("node_uuid") else {
        return Err(bad("node_uuid", "is missing; give the UUID of its node"));
    };
    let node = text_of("node_uuid", &node, 255)?.to_owned();
    if optional_uuid("node_uuid", &json!(node)).is_err() && !is_name(&node) {
        return Err(bad("node_uuid", "is neither a UUID nor a name"));
    }
    Ok(NewPart {
        id,
        node,
        is: fields::read_new(T::FIELDS, &rest)?,
    })
}

/// One part of a node.
pub fn find<T: PartKind>(node: &Node, id: Uuid) -> Option<&Part<T>> {
    T::of(node).iter().find(|part| part.id == id)
}

pub(super) fn change<T: PartKind>(turn: Turn<'_>, change: PartChange<T>) -> Step {
    match change {
        PartChange::Create(part) => create(turn, *part),
        PartChange::Patch { id, operations } => patch::<T>(turn, id, &operations),
        PartChange::Delete { id } => delete::<T>(turn, id),
    }
}

fn create<T: PartKind>(mut turn: Turn<'_>, part: Part<T>) -> Step {
    // Other nodes' parts are compared by the store.
    if find::<T>(&turn.node, part.id).is_some() {
        return turn.refuse(Refused::Conflict {
            text: format!(
                "{} uuid {} is already in use; it must be unique.",
                T::NAME,
                part.id
            ),
        });
    }
    if let Err(why) = T::may_become(&turn.node, None, &part) {
        return turn.refuse(why);
    }
    T::of_mut(&mut turn.node).push(part);
    turn.done(Outcome::Changed)
}

fn patch<T: PartKind>(mut turn: Turn<'_>, id: Uuid, operations: &[PatchOperation]) -> Step {
    let new = match patched(&turn.node, id, operations) {
        Ok(new) => new,
        Err(why) => return turn.refuse(why),
    };
    let now = turn.now.at;
    let place = T::of_mut(&mut turn.node)
        .iter_mut()
        .find(|part| part.id == id);
    match place {
        Some(part) if part.is == new => turn.unchanged(Outcome::Unchanged),
        Some(part) => {
            part.is = new;
            part.updated_at = Some(now);
            turn.done(Outcome::Changed)
        }
        None => turn.refuse(no_such::<T>(id)),
    }
}

fn patched<T: PartKind>(
    node: &Node,
    id: Uuid,
    operations: &[PatchOperation],
) -> Result<T, Refused> {
    let old = find::<T>(node, id).ok_or_else(|| no_such::<T>(id))?;
    let is_of_node = |operation: &&PatchOperation| operation.path == ["node_uuid"];
    for operation in operations.iter().filter(is_of_node) {
        if operation.op == PatchOp::Remove || operation.value != json!(node.id.to_string()) {
            return Err(bad(
                "node_uuid",
                "it can't be moved to another node; delete it and create it there",
            ));
        }
    }
    let others: Vec<PatchOperation> = operations
        .iter()
        .filter(|operation| !is_of_node(operation))
        .cloned()
        .collect();
    let new = Part {
        is: fields::patched(T::FIELDS, &old.is, &others)?,
        ..old.clone()
    };
    T::may_become(node, Some(old), &new)?;
    Ok(new.is)
}

fn delete<T: PartKind>(mut turn: Turn<'_>, id: Uuid) -> Step {
    let verdict = match find::<T>(&turn.node, id) {
        Some(part) => T::may_go(&turn.node, part),
        None => Err(no_such::<T>(id)),
    };
    if let Err(why) = verdict {
        return turn.refuse(why);
    }
    T::of_mut(&mut turn.node).retain(|part| part.id != id);
    turn.done(Outcome::Changed)
}

fn no_such<T: PartKind>(id: Uuid) -> Refused {
    Refused::NotFound {
        what: format!("{} {id}", T::NAME),
    }
}
