//! Inspection rules: what is to be made of what an inspection found.
//!
//! Pure. Here a rule is a document whose form is checked; it is carried out elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Kind;
use crate::node::fields::{Field, Holds, field, required};
use crate::node::values::{bad, object_of, text_of};
use crate::node::{Object, Refused};

/// A rule: where all conditions hold, all actions are taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InspectionRule {
    /// Free text.
    pub description: Option<String>,
    /// Higher ones come first.
    pub priority: i64,
    /// When it is applied; there is only `main`.
    pub phase: Option<String>,
    /// Its conditions and actions are shown to nobody.
    pub sensitive: bool,
    /// Each with `op`, `args` and perhaps `loop`.
    pub conditions: Vec<Object>,
    /// Each with `op`, `args` and perhaps `loop`; at least one.
    pub actions: Vec<Object>,
}

/// What conditions can ask; each also with `!` in front, which turns it round.
pub const CONDITIONS: [&str; 11] = [
    "eq", "lt", "gt", "is-empty", "in-net", "matches", "contains", "one-of", "is-none", "is-true",
    "is-false",
];

/// What actions can do.
pub const ACTIONS: [&str; 14] = [
    "fail",
    "set-attribute",
    "extend-attribute",
    "del-attribute",
    "set-port-attribute",
    "extend-port-attribute",
    "del-port-attribute",
    "add-trait",
    "remove-trait",
    "set-plugin-data",
    "extend-plugin-data",
    "unset-plugin-data",
    "set-capability",
    "log",
];

/// The highest priority that can be given.
pub const PRIORITY_MAX: i64 = 9_999;

/// More than any rule has.
const ITEMS_MAX: usize = 100;

fn phase(name: &str, value: &Value) -> Result<Value, Refused> {
    if text_of(name, value, 255)? != "main" {
        return Err(bad(name, "must be \"main\""));
    }
    Ok(value.clone())
}

fn conditions(name: &str, value: &Value) -> Result<Value, Refused> {
    checked(name, value, |op| {
        CONDITIONS.contains(&op.trim_start_matches('!').trim_start())
    })
}

fn actions(name: &str, value: &Value) -> Result<Value, Refused> {
    let checked = checked(name, value, |op| ACTIONS.contains(&op))?;
    if checked == Value::Array(Vec::new()) {
        return Err(bad(name, "is empty; give at least one action"));
    }
    Ok(checked)
}

fn checked(name: &str, value: &Value, is_known: impl Fn(&str) -> bool) -> Result<Value, Refused> {
    let Value::Array(items) = value else {
        return Err(bad(name, "must be a list of objects with op and args"));
    };
    if items.len() > ITEMS_MAX {
        return Err(bad(
            name,
            &format!("has {} items; at most {ITEMS_MAX} are allowed", items.len()),
        ));
    }
    let mut read = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("{name}/{index}");
        let item = object_of(&at, item)?;
        let mut kept = Map::new();
        for (key, value) in item {
            let field = format!("{at}/{key}");
            match key.as_str() {
                "op" => {
                    let op = text_of(&field, value, 255)?;
                    if !is_known(op) {
                        return Err(bad(&field, &format!("{op:?} is not known")));
                    }
                }
                "args" => {
                    if !value.is_object() && !value.is_array() {
                        return Err(bad(&field, "must be an object or a list"));
                    }
                }
                "loop" => {
                    if !value.is_object() && !value.is_array() && !value.is_null() {
                        return Err(bad(&field, "must be a list or an object"));
                    }
                }
                _ => return Err(bad(&field, "is not known; use op, args and loop")),
            }
            kept.insert(key.clone(), value.clone());
        }
        if !kept.contains_key("op") {
            return Err(bad(&format!("{at}/op"), "is missing"));
        }
        if !kept.contains_key("args") {
            return Err(bad(&format!("{at}/args"), "is missing"));
        }
        read.push(Value::Object(kept));
    }
    Ok(Value::Array(read))
}

impl Kind for InspectionRule {
    const NAME: &'static str = "inspection_rule";
    const TITLE: &'static str = "Inspection rule";
    const FIELDS: &'static [Field] = &[
        field("description", 1, Holds::Text(255)),
        field("priority", 1, Holds::Number(0, PRIORITY_MAX)),
        field("phase", 1, Holds::Checked(phase)),
        field("sensitive", 1, Holds::Bool),
        field("conditions", 1, Holds::Checked(conditions)),
        required("actions", 1, Holds::Checked(actions)),
    ];

    fn check(&self, old: Option<&InspectionRule>, _: u16) -> Result<(), Refused> {
        if old.is_some_and(|old| old.sensitive) && !self.sensitive {
            return Err(bad(
                "sensitive",
                "a rule that was sensitive stays so; delete it and create another one",
            ));
        }
        Ok(())
    }
}
