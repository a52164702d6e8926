//! What conditions and actions there are, what they take, and the check of a rule that is being written.

use regex::Regex;
use serde_json::Value;

use crate::node::refused::Refused;
use crate::node::state::Object;
use crate::node::values::{bad, text_of};

/// What a condition or an action is called and takes.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its name in rules.
    pub name: &'static str,
    /// Arguments it needs, in the order of a list.
    pub needs: &'static [&'static str],
    /// Arguments it may have, behind the others.
    pub may_have: &'static [&'static str],
}

const fn operation(
    name: &'static str,
    needs: &'static [&'static str],
    may_have: &'static [&'static str],
) -> Operation {
    Operation {
        name,
        needs,
        may_have,
    }
}

/// What conditions can ask; each also with `!` in front, which turns it round.
pub const CONDITIONS: [Operation; 11] = [
    operation("eq", &["values"], &["force_strings"]),
    operation("lt", &["values"], &["force_strings"]),
    operation("gt", &["values"], &["force_strings"]),
    operation("is-empty", &["value"], &[]),
    operation("in-net", &["address", "subnet"], &[]),
    operation("matches", &["value", "regex"], &[]),
    operation("contains", &["value", "regex"], &[]),
    operation("one-of", &["value"], &["values"]),
    operation("is-none", &["value"], &[]),
    operation("is-true", &["value"], &[]),
    operation("is-false", &["value"], &[]),
];

/// What actions can do.
pub const ACTIONS: [Operation; 15] = [
    operation("fail", &["msg"], &[]),
    operation("log", &["msg"], &["level"]),
    operation("set-attribute", &["path", "value"], &[]),
    operation("extend-attribute", &["path", "value"], &["unique"]),
    operation("del-attribute", &["path"], &[]),
    operation("set-port-attribute", &["port_id", "path", "value"], &[]),
    operation(
        "extend-port-attribute",
        &["port_id", "path", "value"],
        &["unique"],
    ),
    operation("del-port-attribute", &["port_id", "path"], &[]),
    operation("set-capability", &["name", "value"], &[]),
    operation("unset-capability", &["name"], &[]),
    operation("add-trait", &["name"], &[]),
    operation("remove-trait", &["name"], &[]),
    operation("set-plugin-data", &["path", "value"], &[]),
    operation("extend-plugin-data", &["path", "value"], &["unique"]),
    operation("unset-plugin-data", &["path"], &[]),
];

/// How many of a loop's items a condition must hold for.
pub(super) const MULTIPLE: [&str; 4] = ["any", "all", "first", "last"];

/// How serious a line of the action `log` may be.
pub(super) const LEVELS: [&str; 5] = ["debug", "info", "warning", "error", "critical"];

/// More would take too long for each inspection.
const LOOP_ITEMS_MAX: usize = 1000;

/// A regular expression larger than this, once read, is a mistake or worse.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The name of a condition without the `!` in front, and whether that was there.
pub(super) fn inverted(op: &str) -> (&str, bool) {
    let op = op.trim();
    match op.strip_prefix('!') {
        Some(name) => (name.trim_start(), true),
        None => (op, false),
    }
}

/// Checks one condition of a rule; `field` is where it stands.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn check_condition(field: &str, condition: &Object) -> Result<(), Refused> {
    let op = checked_op(field, condition)?;
    let (name, _) = inverted(op);
    let found = CONDITIONS.iter().find(|known| known.name == name);
    let Some(operation) = found else {
        return Err(unknown(field, op, &CONDITIONS));
    };
    check(field, condition, operation, &["multiple"])
}

/// Checks one action of a rule; `field` is where it stands.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn check_action(field: &str, action: &Object) -> Result<(), Refused> {
    let op = checked_op(field, action)?;
    let Some(operation) = ACTIONS.iter().find(|known| known.name == op) else {
        return Err(unknown(field, op, &ACTIONS));
    };
    check(field, action, operation, &[])
}

fn checked_op<'a>(field: &str, item: &'a Object) -> Result<&'a str, Refused> {
    let at = format!("{field}/op");
    let op = item.get("op").ok_or_else(|| bad(&at, "is missing"))?;
    text_of(&at, op, 255)
}

fn unknown(field: &str, op: &str, known: &[Operation]) -> Refused {
    let names: Vec<&str> = known.iter().map(|operation| operation.name).collect();
    let names = names.join(", ");
    bad(
        &format!("{field}/op"),
        &format!("{op:?} is not known; use one of {names}"),
    )
}

fn check(field: &str, item: &Object, operation: &Operation, more: &[&str]) -> Result<(), Refused> {
    for (key, value) in item {
        let at = format!("{field}/{key}");
        match key.as_str() {
            "op" | "args" => {}
            "loop" => check_loop(&at, value)?,
            "multiple" if more.contains(&"multiple") => {
                if !value.as_str().is_some_and(|text| MULTIPLE.contains(&text)) {
                    return Err(bad(&at, "must be one of any, all, first and last"));
                }
            }
            _ => return Err(bad(&at, "is not known; use op, args and loop")),
        }
    }
    let at = format!("{field}/args");
    let args = item.get("args").ok_or_else(|| bad(&at, "is missing"))?;
    let args = arguments(operation, args).map_err(|problem| bad(&at, &problem))?;
    if let Some(level) = args.get("level")
        && !level.as_str().is_some_and(is_level)
    {
        let problem = format!("must be one of {}", LEVELS.join(", "));
        return Err(bad(&format!("{at}/level"), &problem));
    }
    // With a loop it may be put together from the item.
    if let Some(regex) = args.get("regex")
        && super::items(item).is_none()
    {
        let at = format!("{at}/regex");
        compiled(text_of(&at, regex, 4096)?).map_err(|problem| bad(&at, &problem))?;
    }
    Ok(())
}

fn check_loop(at: &str, value: &Value) -> Result<(), Refused> {
    match value {
        Value::Null | Value::Object(_) => Ok(()),
        Value::Array(items) if items.len() <= LOOP_ITEMS_MAX => Ok(()),
        Value::Array(items) => Err(bad(
            at,
            &format!(
                "has {} items; at most {LOOP_ITEMS_MAX} are allowed",
                items.len()
            ),
        )),
        _ => Err(bad(at, "must be a list or an object")),
    }
}

pub(super) fn is_level(text: &str) -> bool {
    LEVELS.contains(&text.to_ascii_lowercase().as_str())
}

/// The arguments by name.
pub(super) fn arguments(operation: &Operation, args: &Value) -> Result<Object, String> {
    let names = || operation.needs.iter().chain(operation.may_have).copied();
    let named: Object = match args {
        Value::Object(named) => named.clone(),
        // The values to compare, written without a list around them.
        Value::Array(list)
            if operation.needs == ["values"] && !list.first().is_some_and(Value::is_array) =>
        {
            Object::from_iter([("values".to_owned(), args.clone())])
        }
        Value::Array(list) => {
            if list.len() > names().count() {
                return Err(format!(
                    "{} takes at most {} arguments",
                    operation.name,
                    names().count()
                ));
            }
            let pairs = names().zip(list);
            pairs
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect()
        }
        _ => return Err("must be an object or a list".to_owned()),
    };
    if let Some(name) = operation
        .needs
        .iter()
        .find(|name| !named.contains_key(**name))
    {
        return Err(format!("{} needs {name}", operation.name));
    }
    if let Some(name) = named.keys().find(|key| !names().any(|name| name == *key)) {
        return Err(format!("{} takes no {name}", operation.name));
    }
    Ok(named)
}

/// A regular expression. Matching takes time in proportion to the text, whatever the expression.
pub(super) fn compiled(regex: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(regex)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| format!("is not a regular expression that can be used: {error}"))
}
