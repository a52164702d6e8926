//! Allocations: the wish for a node of a class, and what became of it.
//!
//! Pure. [`choose`] says which nodes are to be asked, in which order, or why none can be. Whether a node is taken in the end is
//! decided in its own step (`crate::node::allocation`); the store writes both in one commit.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Columns, Kind, Record};
use crate::node::allocation::{Demand, why_not};
use crate::node::fields::{Field, Holds, field, fixed};
use crate::node::traits::checked_list;
use crate::node::values::{bad, is_name, text_of};
use crate::node::{Node, NodeId, Object, Refused};

/// The wish for a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocation {
    /// Unique name.
    pub name: Option<String>,
    /// How far it has come.
    pub state: AllocationState,
    /// The node that was found.
    pub node_uuid: Option<NodeId>,
    /// The class the node must be of.
    pub resource_class: Option<String>,
    /// UUIDs of the only nodes that come into question; none: all.
    pub candidate_nodes: Vec<String>,
    /// What the node must be able to do.
    pub traits: Vec<String>,
    /// Free for the operator.
    pub extra: Object,
    /// Why no node was found.
    pub last_error: Option<String>,
    /// The project it belongs to; the node must be for that project.
    pub owner: Option<String>,
    /// The node that is in use already and whose allocation this is to become.
    pub backfill: Option<NodeId>,
}

/// How far an allocation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocationState {
    /// A node is being looked for.
    #[default]
    Allocating,
    /// It has a node.
    Active,
    /// There was none.
    Error,
}

impl AllocationState {
    /// As clients see it.
    pub fn name(self) -> &'static str {
        match self {
            AllocationState::Allocating => "allocating",
            AllocationState::Active => "active",
            AllocationState::Error => "error",
        }
    }
}

/// More than anybody names.
const CANDIDATES_MAX: usize = 1_000;

/// Sentences name so many nodes and no more.
const REASONS_TOLD: usize = 10;

fn texts(name: &str, value: &Value) -> Result<Vec<String>, Refused> {
    let Value::Array(items) = value else {
        return Err(bad(name, "must be a list of texts"));
    };
    let read = |item| text_of(name, item, 255).map(str::to_owned);
    items.iter().map(read).collect()
}

fn traits(name: &str, value: &Value) -> Result<Value, Refused> {
    checked_list(name, texts(name, value)?).map(Value::from)
}

fn candidates(name: &str, value: &Value) -> Result<Value, Refused> {
    let list = texts(name, value)?;
    if list.len() > CANDIDATES_MAX {
        return Err(bad(
            name,
            &format!(
                "has {} nodes; at most {CANDIDATES_MAX} are allowed",
                list.len()
            ),
        ));
    }
    if let Some(wrong) = list
        .iter()
        .find(|text| !is_name(text) && Uuid::try_parse(text).is_err())
    {
        return Err(bad(
            name,
            &format!("{wrong:?} is neither a UUID nor a name"),
        ));
    }
    Ok(Value::from(list))
}

fn resource_class(name: &str, value: &Value) -> Result<Value, Refused> {
    if text_of(name, value, 80)?.is_empty() {
        return Err(bad(name, "must not be empty"));
    }
    Ok(value.clone())
}

impl Kind for Allocation {
    const NAME: &'static str = "allocation";
    const TITLE: &'static str = "Allocation";
    /// Apart from `node`, which names the node of a backfill and is looked up before.
    const FIELDS: &'static [Field] = &[
        field("name", 1, Holds::Name),
        fixed(field("resource_class", 1, Holds::Checked(resource_class))),
        fixed(field("candidate_nodes", 1, Holds::Checked(candidates))),
        fixed(field("traits", 1, Holds::Checked(traits))),
        field("extra", 1, Holds::Object),
        fixed(field("owner", 60, Holds::Text(255))),
    ];

    fn columns(&self) -> Columns {
        Columns {
            name: self.name.clone(),
            owner: self.owner.clone(),
            state: Some(self.state.name().to_owned()),
            resource_class: self.resource_class.clone(),
            node: self.node_uuid,
        }
    }
}

impl Allocation {
    /// The same, with the node it has taken.
    pub fn taken(&self, node: NodeId) -> Allocation {
        Allocation {
            state: AllocationState::Active,
            node_uuid: Some(node),
            last_error: None,
            ..self.clone()
        }
    }

    /// The same, given up.
    pub fn failed(&self, why: String) -> Allocation {
        Allocation {
            state: AllocationState::Error,
            last_error: Some(why),
            ..self.clone()
        }
    }
}

/// What an allocation asks of a node.
pub fn demand(allocation: &Record<Allocation>) -> Demand {
    let is = &allocation.is;
    Demand {
        id: allocation.id,
        resource_class: is.resource_class.clone().unwrap_or_default(),
        traits: is.traits.clone(),
        owner: is.owner.clone(),
        is_backfill: is.backfill.is_some(),
    }
}

/// The nodes to ask, best first.
///
/// The node that has the allocation's name comes first; the others follow in an order that is another one for every allocation, so
/// that many at once don't all ask the same.
///
/// # Errors
/// Why none of `nodes` can be taken, in words for whoever made the allocation.
pub fn choose(allocation: &Record<Allocation>, nodes: &[Node]) -> Result<Vec<NodeId>, String> {
    let demand = demand(allocation);
    let mut fitting = Vec::new();
    let mut reasons = Vec::new();
    for node in nodes {
        match why_not(node, &demand) {
            None => fitting.push(node),
            Some(why) => reasons.push(format!("{}: {why}", called(node))),
        }
    }
    if fitting.is_empty() {
        return Err(none_fits(&demand, &reasons));
    }
    let name = allocation.is.name.as_ref();
    fitting.sort_by_key(|node| {
        let is_namesake = name.is_some() && node.attributes.name.as_ref() == name;
        (!is_namesake, node.id.0.as_u128() ^ allocation.id.as_u128())
    });
    Ok(fitting.into_iter().map(|node| node.id).collect())
}

/// The sentence for an allocation that found no node; `reasons` has one entry per node that was looked at.
pub fn none_fits(demand: &Demand, reasons: &[String]) -> String {
    let wish = if demand.traits.is_empty() {
        format!("resource class {}", demand.resource_class)
    } else {
        format!(
            "resource class {} and traits {}",
            demand.resource_class,
            demand.traits.join(", ")
        )
    };
    if reasons.is_empty() {
        return format!("No available node matches {wish}; there is no node to choose from.");
    }
    let more = reasons.len().saturating_sub(REASONS_TOLD);
    let mut told = reasons
        .iter()
        .take(REASONS_TOLD)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if more > 0 {
        told.push_str(&format!("; and {more} more"));
    }
    format!("No available node matches {wish}. {told}.")
}

fn called(node: &Node) -> String {
    match &node.attributes.name {
        Some(name) => format!("{name} ({})", node.id),
        None => node.id.to_string(),
    }
}
