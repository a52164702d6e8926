//! Whether a condition of a rule holds.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::form::{self, CONDITIONS};
use super::items;
use super::text::{Context, written};
use crate::node::state::Object;

/// Whether it holds, for as many items of its loop as it wants.
pub(super) fn holds(context: &Context<'_>, condition: &Object) -> Result<bool, String> {
    let Some(items) = items(condition) else {
        return holds_once(context, condition);
    };
    let multiple = condition.get("multiple").and_then(Value::as_str);
    let mut held = Vec::with_capacity(items.len());
    for item in &items {
        held.push(holds_once(&context.for_item(item)?, condition)?);
    }
    Ok(match multiple.unwrap_or("any") {
        "all" => held.iter().all(|one| *one),
        "last" => held.last() == Some(&true),
        // The first that holds decides, which is to say that one does.
        _ => held.contains(&true),
    })
}

fn holds_once(context: &Context<'_>, condition: &Object) -> Result<bool, String> {
    let op = condition.get("op").and_then(Value::as_str);
    let (op, is_inverted) = form::inverted(op.unwrap_or_default());
    let operation = CONDITIONS.iter().find(|known| known.name == op);
    let operation = operation.ok_or("is not known")?;
    let given = condition.get("args").unwrap_or(&Value::Null);
    let mut args = form::arguments(operation, given)?;
    for (name, value) in &mut args {
        // Braces mean something else there.
        if name != "regex" || context.is_in_loop() {
            *value = context.filled(value)?;
        }
    }
    let arg = |name: &str| args.get(name).unwrap_or(&Value::Null);
    let value = arg("value");
    let holds = match op {
        "eq" | "lt" | "gt" => {
            let is_text = arg("force_strings") == &Value::Bool(true);
            let wanted = match op {
                "eq" => Ordering::Equal,
                "lt" => Ordering::Less,
                _ => Ordering::Greater,
            };
            all_compare(arg("values"), wanted, is_text)?
        }
        "is-empty" => match value {
            Value::Null => true,
            Value::String(text) => ["", "None", "[]", "{}"].contains(&text.as_str()),
            Value::Array(items) => items.is_empty(),
            Value::Object(object) => object.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        },
        "in-net" => is_in_net(&written(arg("address")), &written(arg("subnet")))?,
        "matches" => {
            let regex = format!("^(?:{})$", written(arg("regex")));
            form::compiled(&regex)?.is_match(&written(value))
        }
        "contains" => form::compiled(&written(arg("regex")))?.is_match(&written(value)),
        "one-of" => match arg("values") {
            Value::Array(values) => values
                .iter()
                .any(|one| order(one, value) == Some(Ordering::Equal)),
            Value::String(text) => text.contains(&written(value)),
            _ => false,
        },
        "is-none" => written(value) == "None",
        "is-true" => match value {
            Value::String(text) => ["yes", "true"].contains(&text.to_lowercase().as_str()),
            Value::Number(number) => number.as_f64() != Some(0.0),
            other => other == &Value::Bool(true),
        },
        "is-false" => match value {
            Value::String(text) => ["no", "false"].contains(&text.to_lowercase().as_str()),
            Value::Number(number) => number.as_f64() == Some(0.0),
            other => other == &Value::Bool(false) || other.is_null(),
        },
        _ => return Err("is not known".to_owned()),
    };
    Ok(holds != is_inverted)
}

/// Whether each value and the one after it are in that order.
fn all_compare(values: &Value, wanted: Ordering, is_text: bool) -> Result<bool, String> {
    let Value::Array(values) = values else {
        return Err("values must be a list".to_owned());
    };
    for (a, b) in values.iter().zip(values.iter().skip(1)) {
        let order = if is_text {
            Some(written(a).cmp(&written(b)))
        } else {
            order(a, b)
        };
        match order {
            Some(order) if order == wanted => {}
            Some(_) => return Ok(false),
            None if wanted == Ordering::Equal => return Ok(a == b),
            None => {
                return Err(format!(
                    "{} and {} can't be compared; give numbers or texts",
                    kind(a),
                    kind(b)
                ));
            }
        }
    }
    Ok(true)
}

/// Numbers go by size, digits in a text included where the other one is a number; texts go by their letters.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(_) | Value::String(_), Value::Number(_) | Value::String(_)) => {
            if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
                return Some(a.cmp(&b));
            }
            number(a)?.partial_cmp(&number(b)?)
        }
        _ => (a == b).then_some(Ordering::Equal),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    }
}

/// What a value is, for sentences: not the value, which may be secret or large.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The agent tells some addresses with the length of their network, or with a zone.
fn is_in_net(address: &str, subnet: &str) -> Result<bool, String> {
    let plain = address.split(['/', '%']).next().unwrap_or_default();
    let plain: IpAddr = plain
        .trim()
        .parse()
        .map_err(|_| "address is no IP address".to_owned())?;
    let subnet = subnet.trim();
    let net = subnet
        .parse::<IpNet>()
        .or_else(|_| subnet.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "subnet is no network such as 192.0.2.0/24".to_owned())?;
    Ok(net.contains(&plain))
}
