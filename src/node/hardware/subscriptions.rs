//! Event subscriptions: whom a machine's BMC tells of what happens to it. The vendor methods for them have the names, arguments and
//! defaults of Ironic's `redfish` vendor interface, which Metal3 calls; `fake-hardware` remembers subscriptions and sends nothing.
//! Data and pure rules.

use serde_json::{Value, json};
use uuid::Uuid;

use super::recorded::Subscription;
use crate::node::boot_options::check_address;
use crate::node::refused::Refused;
use crate::node::state::{Node, Object};
use crate::node::values::{bad, text_of};

/// How many a machine keeps.
pub(super) const SUBSCRIPTIONS_MAX: usize = 20;

const TEXT_MAX: usize = 2048;

/// The kinds of events there are to subscribe to (Redfish's `EventTypes`).
const EVENT_TYPES: &[&str] = &[
    "StatusChange",
    "ResourceUpdated",
    "ResourceAdded",
    "ResourceRemoved",
    "Alert",
];

/// Reads the arguments of `create_subscription`.
///
/// `HttpHeaders` are what the BMC would send along, credentials most of the time: they are checked and not kept.
///
/// # Errors
/// [`Refused::BadValue`].
pub(super) fn read(arguments: &Object, id: Uuid) -> Result<Subscription, Refused> {
    let mut made = Subscription {
        id: id.to_string(),
        destination: String::new(),
        context: String::new(),
        protocol: "Redfish".to_owned(),
        event_types: vec!["Alert".to_owned()],
    };
    for (name, value) in arguments {
        match name.as_str() {
            "Destination" => made.destination = text_of(name, value, TEXT_MAX)?.to_owned(),
            "Context" => made.context = text_of(name, value, TEXT_MAX)?.to_owned(),
            "Protocol" => made.protocol = text_of(name, value, TEXT_MAX)?.to_owned(),
            "EventTypes" => made.event_types = event_types(value)?,
            "HttpHeaders" => check_headers(value)?,
            other => return Err(bad(other, "create_subscription has no such argument")),
        }
    }
    check_address(&made.destination, &["http", "https"])
        .map_err(|problem| bad("Destination", &problem))?;
    Ok(made)
}

fn event_types(value: &Value) -> Result<Vec<String>, Refused> {
    let known = |kind: &Value| {
        let kind = kind.as_str().filter(|kind| EVENT_TYPES.contains(kind));
        kind.map(str::to_owned)
    };
    value
        .as_array()
        .and_then(|kinds| kinds.iter().map(known).collect())
        .ok_or_else(|| {
            let problem = format!("must be a list with some of {}", EVENT_TYPES.join(", "));
            bad("EventTypes", &problem)
        })
}

fn check_headers(value: &Value) -> Result<(), Refused> {
    match value {
        Value::Null => Ok(()),
        Value::Array(headers) if headers.iter().all(Value::is_object) => Ok(()),
        _ => Err(bad("HttpHeaders", "must be a list of objects")),
    }
}

/// One subscription as Redfish tells of it.
pub(super) fn told(subscription: &Subscription) -> Value {
    json!({
        "Id": subscription.id,
        "Context": subscription.context,
        "Destination": subscription.destination,
        "EventTypes": subscription.event_types,
        "Protocol": subscription.protocol,
    })
}

/// All of a node, as the members of a Redfish collection.
pub(super) fn told_all(node: &Node) -> Value {
    let members: Vec<Value> = node
        .hardware
        .subscriptions
        .iter()
        .map(|known| json!({"@odata.id": format!("/redfish/v1/EventService/Subscriptions/{}", known.id)}))
        .collect();
    json!({"Members@odata.count": members.len(), "Members": members})
}

/// The one that the argument `id` names.
///
/// # Errors
/// [`Refused::BadValue`] if nothing is named; [`Refused::NotFound`].
pub(super) fn named<'a>(node: &'a Node, arguments: &Object) -> Result<&'a Subscription, Refused> {
    let id = match arguments.get("id") {
        Some(id) => text_of("id", id, TEXT_MAX)?,
        None => return Err(bad("id", "must be given: the Id of a subscription")),
    };
    if let Some(other) = arguments.keys().find(|key| *key != "id") {
        return Err(bad(other, "only id is an argument of this method"));
    }
    find(node, id)
}

/// The one with this id.
///
/// # Errors
/// [`Refused::NotFound`].
pub(super) fn find<'a>(node: &'a Node, id: &str) -> Result<&'a Subscription, Refused> {
    let mut all = node.hardware.subscriptions.iter();
    all.find(|known| known.id == id)
        .ok_or_else(|| Refused::NotFound {
            what: format!("The event subscription {id:?} of this node"),
        })
}
