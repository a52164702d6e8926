//! What an action of a rule does.
//!
//! Attributes of nodes and ports change by the same rules as when an operator patches them: what a patch may not set, a rule may
//! not set either, and values have the same limits.

use serde_json::{Value, json};

use super::super::Inspected;
use super::super::properties::set_capability;
use super::form::{self, ACTIONS};
use super::items;
use super::text::{Context, VALUE_BYTES_MAX, written};
use crate::node::attributes::object_named;
use crate::node::effect::Severity;
use crate::node::event::{PatchOp, PatchOperation};
use crate::node::patch::check_depth;
use crate::node::ports::patch_port;
use crate::node::state::{Object, Port, PortId};
use crate::node::traits::{TraitChange, changed};
use crate::node::update;
use crate::node::values::mac_address;

/// Takes it, once for each item of its loop. Texts that name what is not there go to `unresolved`.
pub(super) fn take(
    inspected: &mut Inspected<'_>,
    is_sensitive: bool,
    action: &Object,
    unresolved: &mut Vec<String>,
) -> Result<(), String> {
    let items = items(action).map(|items| items.into_iter().map(Some).collect());
    for item in items.unwrap_or_else(|| vec![None]) {
        let context = Context::new(inspected, is_sensitive);
        let args = match &item {
            Some(item) => arguments(&context.for_item(item)?, action),
            None => arguments(&context, action),
        };
        unresolved.extend(context.unresolved());
        let op = action.get("op").and_then(Value::as_str);
        take_once(inspected, is_sensitive, op.unwrap_or_default(), &args?)?;
    }
    Ok(())
}

fn arguments(context: &Context<'_>, action: &Object) -> Result<Object, String> {
    let op = action.get("op").and_then(Value::as_str);
    let operation = ACTIONS.iter().find(|known| Some(known.name) == op);
    let operation = operation.ok_or("is not known")?;
    let given = action.get("args").unwrap_or(&Value::Null);
    let mut args = form::arguments(operation, given)?;
    for value in args.values_mut() {
        *value = context.filled(value)?;
        // Names that stand for much can be written again and again.
        if value.to_string().len() > VALUE_BYTES_MAX {
            return Err(format!("a value is longer than {VALUE_BYTES_MAX} bytes"));
        }
    }
    Ok(args)
}

fn take_once(
    inspected: &mut Inspected<'_>,
    is_sensitive: bool,
    op: &str,
    args: &Object,
) -> Result<(), String> {
    let arg = |name: &str| args.get(name).unwrap_or(&Value::Null);
    let text = |name: &str| match arg(name) {
        Value::String(text) => Ok(text.as_str()),
        _ => Err(format!("{name} must be a text")),
    };
    match op {
        "fail" => Err(written(arg("msg"))),
        "log" => {
            let level = args.get("level").map_or_else(|| "info".to_owned(), written);
            if !form::is_level(&level) {
                return Err(format!("level must be one of {}", form::LEVELS.join(", ")));
            }
            let severity = match level.to_ascii_lowercase().as_str() {
                "error" | "critical" => Severity::Error,
                _ => Severity::Info,
            };
            let text = if is_sensitive {
                "an inspection rule logs what is not shown, because the rule is sensitive"
                    .to_owned()
            } else {
                written(arg("msg"))
            };
            inspected.note(severity, text);
            Ok(())
        }
        "set-attribute" | "extend-attribute" | "del-attribute" => {
            let path = parts(text("path")?)?;
            let (root, below) = path.split_first().ok_or("path is empty")?;
            let whole = object_named(&inspected.node.attributes, root).cloned();
            let operation = operation(op, args, &path, root, below, whole)?;
            let patched = update::patch_by_rule(&inspected.node, &[operation]);
            let patched = patched.map_err(|why| why.to_string())?;
            let node = &mut inspected.node;
            node.attributes = patched.attributes.into();
            match patched.maintenance {
                Some(true) => drop(node.maintenance.get_or_insert_default()),
                Some(false) => node.maintenance = None,
                None => {}
            }
            Ok(())
        }
        "set-port-attribute" | "extend-port-attribute" | "del-port-attribute" => {
            let id = port_named(inspected, text("port_id")?)?;
            let path = parts(text("path")?)?;
            let (root, below) = path.split_first().ok_or("path is empty")?;
            let port = inspected.node.ports.iter().find(|port| port.id == id);
            let whole = port.and_then(|port| match root.as_str() {
                "extra" => Some(port.extra.clone()),
                "local_link_connection" => Some(port.local_link_connection.clone()),
                _ => None,
            });
            let operation = operation(op, args, &path, root, below, whole)?;
            let patched = patch_port(&inspected.node, id, &[operation]);
            let patched = patched.map_err(|why| why.to_string())?;
            let now = inspected.now;
            if let Some(port) = inspected.node.ports.iter_mut().find(|port| port.id == id) {
                *port = Port {
                    updated_at: Some(now),
                    ..patched
                };
            }
            Ok(())
        }
        "set-capability" | "unset-capability" => {
            let name = text("name")?;
            let value = args.get("value").map(written);
            let is_wrong = name.is_empty()
                || name.contains([',', ':'])
                || value.as_ref().is_some_and(|value| value.contains(','));
            if is_wrong {
                return Err(
                    "a capability has a name without commas and colons, and a value without commas"
                        .to_owned(),
                );
            }
            set_capability(&mut inspected.node, name, value.as_deref());
            Ok(())
        }
        "add-trait" | "remove-trait" => {
            let name = text("name")?.to_owned();
            let traits = &mut inspected.node.traits;
            let change = match op {
                "add-trait" => TraitChange::Add(name),
                _ if traits.contains(&name) => TraitChange::Remove(name),
                _ => return Ok(()),
            };
            *traits = changed("the node", traits, change)
                .map_err(|why| why.to_string())?
                .into();
            Ok(())
        }
        "set-plugin-data" | "extend-plugin-data" | "unset-plugin-data" => {
            let path = parts(text("path")?)?;
            let mut whole = Value::Object(std::mem::take(&mut inspected.plugin_data));
            let done = match op {
                "unset-plugin-data" => {
                    unset(&mut whole, &path);
                    Ok(())
                }
                _ => place(&mut whole, &path).and_then(|place| fill(op, args, place)),
            };
            let checked = check_depth(&whole, "plugin_data").map_err(|why| why.to_string());
            if let Value::Object(whole) = whole {
                inspected.plugin_data = whole;
            }
            done.and(checked)
        }
        _ => Err("is not known".to_owned()),
    }
}

/// The patch an action comes to; `whole` is the attribute it is about, where that has parts.
fn operation(
    op: &str,
    args: &Object,
    path: &[String],
    root: &str,
    below: &[String],
    whole: Option<Object>,
) -> Result<PatchOperation, String> {
    if op.starts_with("del-") {
        return Ok(PatchOperation {
            op: PatchOp::Remove,
            path: path.to_vec(),
            value: Value::Null,
        });
    }
    let mut value = match whole {
        Some(whole) => Value::Object(whole),
        None if below.is_empty() => Value::Null,
        None => return Err(format!("{root}: has no parts that could be changed")),
    };
    fill(op, args, place(&mut value, below)?)?;
    check_depth(&value, root).map_err(|why| why.to_string())?;
    if value.to_string().len() > VALUE_BYTES_MAX {
        return Err(format!(
            "{root} would be longer than {VALUE_BYTES_MAX} bytes"
        ));
    }
    Ok(PatchOperation {
        op: PatchOp::Add,
        path: vec![root.to_owned()],
        value,
    })
}

/// Puts the value of an action into its place: instead of what is there, or behind it.
fn fill(op: &str, args: &Object, place: &mut Value) -> Result<(), String> {
    let value = args.get("value").cloned().unwrap_or_default();
    if !op.starts_with("extend-") {
        *place = value;
        return Ok(());
    }
    if place.is_null() {
        *place = json!([]);
    }
    let Value::Array(list) = place else {
        return Err("what is there is no list that could be extended".to_owned());
    };
    let is_unique = args.get("unique") == Some(&Value::Bool(true));
    if !(is_unique && list.contains(&value)) {
        list.push(value);
    }
    Ok(())
}

/// The place a path leads to; objects that are not there are made on the way.
fn place<'a>(whole: &'a mut Value, path: &[String]) -> Result<&'a mut Value, String> {
    let mut place = whole;
    for key in path {
        if place.is_null() {
            *place = Value::Object(Object::new());
        }
        place = match place {
            Value::Object(object) => object.entry(key.clone()).or_insert(Value::Null),
            Value::Array(items) => {
                let index = key.parse::<usize>().ok();
                let item = index.and_then(|index| items.get_mut(index));
                item.ok_or_else(|| format!("there is no item {key} in the list"))?
            }
            _ => return Err(format!("{key}: what is above it has no parts")),
        };
    }
    Ok(place)
}

/// Takes away what is at a path, if there is something.
fn unset(whole: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut place = Some(whole);
    for key in parents {
        place = place.and_then(|place| place.get_mut(key));
    }
    if let Some(Value::Object(object)) = place {
        object.remove(last);
    }
}

/// `/properties/cpu_arch` or `properties.cpu_arch`
fn parts(path: &str) -> Result<Vec<String>, String> {
    let parts: Vec<String> = if path.contains('/') {
        path.trim_matches('/')
            .split('/')
            .map(str::to_owned)
            .collect()
    } else {
        path.split('.').map(str::to_owned).collect()
    };
    if parts.iter().any(String::is_empty) {
        return Err("path must look like /properties/cpu_arch".to_owned());
    }
    Ok(parts)
}

/// The port with this UUID or MAC address.
fn port_named(inspected: &Inspected<'_>, name: &str) -> Result<PortId, String> {
    let address = mac_address(name);
    let mut ports = inspected.node.ports.iter();
    let port = ports.find(|port| {
        port.id.to_string() == name.to_ascii_lowercase() || Some(&port.address) == address.as_ref()
    });
    port.map(|port| port.id)
        .ok_or_else(|| "the node has no port with this port_id".to_owned())
}
