//! How nodes, ports and commands become rows and come back.
//!
//! Columns are copies for finding things; the truth is in `body`, JSON with the number of its form. A body once written stays
//! readable for ever: when the form changes, [`NODE_FORM`] goes up and [`node_from`] learns to read the older ones. Called by
//! `nodes`, `ports` and `commands`; runs no query.

use diesel::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::schema::{commands, nodes, ports};
use super::types::NodeOutline;
use crate::command::{Command, Finish, Phase};
use crate::node::queues::claims;
use crate::node::{Node, NodeId, Port, PowerState, ProvisionState};
use crate::timestamp::Timestamp;

/// The form in which nodes are written.
///
/// 1: deploys were the only work there was, and stood under `deploying`. 2: what is empty or as usual was written out. The node's own
/// type reads all.
pub(super) const NODE_FORM: u32 = 3;
/// The form in which ports are written. 1: what is empty or as usual was written out.
pub(super) const PORT_FORM: u32 = 2;

#[derive(Serialize)]
struct Written<'a, T> {
    form: u32,
    is: &'a T,
}

#[derive(Deserialize)]
struct Form {
    form: u32,
}

#[derive(Deserialize)]
struct Read<T> {
    is: T,
}

pub(super) fn write<T: Serialize>(form: u32, is: &T) -> String {
    serde_json::to_string(&Written { form, is })
        .expect("what is stored is plain data with text keys")
}

/// Reads a body of this form or an older one.
pub(super) fn read<T: DeserializeOwned>(
    newest: u32,
    kind: &str,
    id: &str,
    body: &str,
) -> Result<T, String> {
    let unreadable = |error| format!("the stored body of {kind} {id} can't be read: {error}");
    let Form { form } = serde_json::from_str(body).map_err(unreadable)?;
    if form > newest {
        return Err(format!(
            "the stored body of {kind} {id} has form {form}, but this program reads forms up to {newest}; run a newer one"
        ));
    }
    serde_json::from_str(body)
        .map(|Read { is }| is)
        .map_err(unreadable)
}

/// Numbers of ours in a column; none of them comes near the limit.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Text as a column takes it: PostgreSQL has no character 0. (In bodies JSON escapes it.)
pub(super) fn text(value: &str) -> String {
    value.replace('\0', "\u{fffd}")
}

fn optional<T: From<String>>(value: Option<&String>) -> Option<T> {
    value.map(|value| text(value).into())
}

/// There is an outline of every node in memory.
fn small(value: Option<String>) -> Option<Box<str>> {
    value.map(Box::from)
}

/// Texts as `description_contains` compares them: without case.
pub(super) fn folded(value: &str) -> String {
    text(value).to_lowercase()
}

/// A node's columns, without the order of creation, which never changes.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = nodes)]
#[diesel(treat_none_as_default_value = false)]
#[diesel(treat_none_as_null = true)]
pub(super) struct NodeRow {
    id: String,
    version: i64,
    name: Option<String>,
    instance_uuid: Option<String>,
    instance_name: Option<String>,
    driver: String,
    provision_state: String,
    power_state: Option<String>,
    maintenance: bool,
    fault: Option<String>,
    resource_class: Option<String>,
    conductor_group: String,
    owner: Option<String>,
    lessee: Option<String>,
    retired: bool,
    description: Option<String>,
    shard: Option<String>,
    parent_node: Option<String>,
    chassis_uuid: Option<String>,
    next_deadline: Option<i64>,
    waiting: bool,
    created_at: i64,
    updated_at: Option<i64>,
    body: String,
}

/// The columns that change with what a node is at; none of them is what operators set.
#[derive(AsChangeset)]
#[diesel(table_name = nodes)]
#[diesel(treat_none_as_null = true)]
pub(super) struct StateRow {
    version: i64,
    provision_state: String,
    power_state: Option<String>,
    maintenance: bool,
    fault: Option<String>,
    next_deadline: Option<i64>,
    waiting: bool,
    updated_at: Option<i64>,
    body: String,
}

impl From<&Node> for StateRow {
    fn from(node: &Node) -> StateRow {
        let next_deadline = node.next_deadline().map(|at| at.0);
        StateRow {
            version: number(node.version),
            provision_state: node.provision_state().name().to_owned(),
            power_state: node.power.state.map(|state| state.name().to_owned()),
            maintenance: node.maintenance.is_some(),
            fault: optional(node.maintenance.as_ref().and_then(|on| on.fault.as_ref())),
            next_deadline,
            waiting: next_deadline.is_some()
                || node.open_command().is_some()
                || node.driver_call.is_some()
                || !claims(node).is_empty(),
            updated_at: node.updated_at.map(|at| at.0),
            body: write(NODE_FORM, node),
        }
    }
}

impl From<&Node> for NodeRow {
    fn from(node: &Node) -> NodeRow {
        let state = StateRow::from(node);
        let outline = NodeOutline::from(node);
        NodeRow {
            id: node.id.to_string(),
            version: state.version,
            name: outline.name.map(String::from),
            instance_uuid: outline.instance_uuid.map(String::from),
            instance_name: outline.instance_name.map(String::from),
            driver: outline.driver.into(),
            provision_state: state.provision_state,
            power_state: state.power_state,
            maintenance: state.maintenance,
            fault: state.fault,
            resource_class: outline.resource_class.map(String::from),
            conductor_group: outline.conductor_group.into(),
            owner: outline.owner.map(String::from),
            lessee: outline.lessee.map(String::from),
            retired: outline.retired,
            description: outline.description.map(String::from),
            shard: outline.shard.map(String::from),
            parent_node: outline.parent_node.map(String::from),
            chassis_uuid: outline.chassis_uuid.map(String::from),
            next_deadline: state.next_deadline,
            waiting: state.waiting,
            created_at: node.created_at.0,
            updated_at: state.updated_at,
            body: state.body,
        }
    }
}

impl From<&Node> for NodeOutline {
    fn from(node: &Node) -> NodeOutline {
        // What is opened in a copy does not stay open in the node.
        let attributes = &node.attributes.clone();
        NodeOutline {
            id: node.id,
            name: optional(attributes.name.as_ref()),
            instance_uuid: optional(attributes.instance_uuid.as_ref()),
            instance_name: optional(attributes.instance_name.as_ref()),
            driver: text(&attributes.driver).into(),
            provision_state: node.provision_state(),
            power_state: node.power.state,
            maintenance: node.maintenance.is_some(),
            fault: optional(node.maintenance.as_ref().and_then(|on| on.fault.as_ref())),
            resource_class: optional(attributes.resource_class.as_ref()),
            conductor_group: text(&attributes.conductor_group).into(),
            owner: optional(attributes.owner.as_ref()),
            lessee: optional(attributes.lessee.as_ref()),
            retired: attributes.retired,
            description: small(attributes.description.as_deref().map(folded)),
            shard: optional(attributes.shard.as_ref()),
            parent_node: optional(attributes.parent_node.as_ref()),
            chassis_uuid: optional(attributes.chassis_uuid.as_ref()),
            created_at: node.created_at,
            updated_at: node.updated_at,
        }
    }
}

/// Reads a node's body; its ports are added by the caller.
pub(super) fn node_from(id: &str, body: &str) -> Result<Node, String> {
    read(NODE_FORM, "node", id, body)
}

/// The columns of a node that lists need.
#[derive(Queryable, Selectable)]
#[diesel(table_name = nodes)]
pub(super) struct OutlineRow {
    id: String,
    name: Option<String>,
    instance_uuid: Option<String>,
    instance_name: Option<String>,
    driver: String,
    provision_state: String,
    power_state: Option<String>,
    maintenance: bool,
    fault: Option<String>,
    resource_class: Option<String>,
    conductor_group: String,
    owner: Option<String>,
    lessee: Option<String>,
    retired: bool,
    description: Option<String>,
    shard: Option<String>,
    parent_node: Option<String>,
    chassis_uuid: Option<String>,
    created_at: i64,
    updated_at: Option<i64>,
}

/// Reads a node's columns.
pub(super) fn outline_from(row: OutlineRow) -> Result<NodeOutline, String> {
    let id = row.id;
    let unreadable = |column: &str, value: &str| {
        format!("{value:?} in nodes.{column} of node {id} can't be read")
    };
    let state = ProvisionState::parse(&row.provision_state)
        .ok_or_else(|| unreadable("provision_state", &row.provision_state))?;
    let power_state = match &row.power_state {
        None => None,
        Some(name) => Some(PowerState::parse(name).ok_or_else(|| unreadable("power_state", name))?),
    };
    Ok(NodeOutline {
        id: id.parse().map_err(|_| unreadable("id", &id))?,
        name: small(row.name),
        instance_uuid: small(row.instance_uuid),
        instance_name: small(row.instance_name),
        driver: row.driver.into(),
        provision_state: state,
        power_state,
        maintenance: row.maintenance,
        fault: small(row.fault),
        resource_class: small(row.resource_class),
        conductor_group: row.conductor_group.into(),
        owner: small(row.owner),
        lessee: small(row.lessee),
        retired: row.retired,
        description: small(row.description),
        shard: small(row.shard),
        parent_node: small(row.parent_node),
        chassis_uuid: small(row.chassis_uuid),
        created_at: Timestamp(row.created_at),
        updated_at: row.updated_at.map(Timestamp),
    })
}

/// A port's columns.
#[derive(Insertable)]
#[diesel(table_name = ports)]
#[diesel(treat_none_as_default_value = false)]
pub(super) struct PortRow {
    id: String,
    seq: i64,
    node_id: String,
    address: String,
    name: Option<String>,
    description: Option<String>,
    portgroup_uuid: Option<String>,
    created_at: i64,
    updated_at: Option<i64>,
    body: String,
}

impl PortRow {
    pub(super) fn new(node: NodeId, seq: i64, port: &Port) -> PortRow {
        PortRow {
            id: port.id.to_string(),
            seq,
            node_id: node.to_string(),
            address: text(&port.address),
            name: optional(port.name.as_ref()),
            description: port.description.as_deref().map(folded),
            portgroup_uuid: port.portgroup_uuid.map(|group| group.to_string()),
            created_at: port.created_at.0,
            updated_at: port.updated_at.map(|at| at.0),
            body: write(PORT_FORM, port),
        }
    }
}

/// Reads a port's body.
pub(super) fn port_from(id: &str, body: &str) -> Result<Port, String> {
    read(PORT_FORM, "port", id, body)
}

/// A command's columns.
#[derive(Insertable)]
#[diesel(table_name = commands)]
#[diesel(treat_none_as_default_value = false)]
pub(super) struct CommandRow {
    pub(super) node_id: String,
    pub(super) number: i64,
    request: String,
    pub(super) attempt: i64,
    pub(super) phase: String,
    planned_at: i64,
    pub(super) changed_at: i64,
    pub(super) error: Option<String>,
}

impl CommandRow {
    pub(super) fn new(node: &Node, command: &Command) -> CommandRow {
        CommandRow {
            node_id: node.id.to_string(),
            number: number(command.id.0),
            request: command.request.full_name().to_owned(),
            attempt: i64::from(command.attempt),
            phase: command.phase.name().to_owned(),
            planned_at: command.planned_at.0,
            changed_at: changed_at(node, command).0,
            error: error_of(&command.phase).map(|error| text(&error)),
        }
    }
}

/// The phase's own time where it has one; else that of the node's change, which is the same commit.
fn changed_at(node: &Node, command: &Command) -> Timestamp {
    match &command.phase {
        Phase::Sent { at } | Phase::Accepted { at, .. } => *at,
        Phase::Unknown {
            since,
            absent_since,
        } => absent_since.unwrap_or(*since),
        Phase::Planned => command.planned_at,
        Phase::Ended { .. } => node.updated_at.unwrap_or(command.planned_at),
    }
}

fn error_of(phase: &Phase) -> Option<String> {
    let Phase::Ended { finish } = phase else {
        return None;
    };
    match finish {
        Finish::Succeeded { .. } => None,
        Finish::Failed { kind, message } if kind.is_empty() => Some(message.clone()),
        Finish::Failed { kind, message } => Some(format!("{kind}: {message}")),
        Finish::VersionMismatch => {
            Some("the agent's hardware managers changed since its steps were read".to_owned())
        }
        Finish::Refused { why } => Some(why.to_string()),
        Finish::Abandoned => Some("given up by the conductor".to_owned()),
        Finish::InstanceLost => Some("the agent that was asked is gone".to_owned()),
    }
}

/// A page's limit as SQL takes it.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
