//! Inspection rules: what is to be made of what an inspection found.
//!
//! Pure. Here a rule is a document; what it may hold and how it is carried out stands in `node::inspection::rules`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Kind, Record};
use crate::node::fields::{Field, Holds, field, required};
use crate::node::inspection::rules::{Rule, check_action, check_condition};
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
    checked(name, value, check_condition)
}

fn actions(name: &str, value: &Value) -> Result<Value, Refused> {
    let checked = checked(name, value, check_action)?;
    if checked == Value::Array(Vec::new()) {
        return Err(bad(name, "is empty; give at least one action"));
    }
    Ok(checked)
}

fn checked(
    name: &str,
    value: &Value,
    check: impl Fn(&str, &Object) -> Result<(), Refused>,
) -> Result<Value, Refused> {
    let Value::Array(items) = value else {
        return Err(bad(name, "must be a list of objects with op and args"));
    };
    if items.len() > ITEMS_MAX {
        return Err(bad(
            name,
            &format!("has {} items; at most {ITEMS_MAX} are allowed", items.len()),
        ));
    }
    for (index, item) in items.iter().enumerate() {
        let at = format!("{name}/{index}");
        check(&at, object_of(&at, item)?)?;
    }
    Ok(value.clone())
}

impl Record<InspectionRule> {
    /// The rule as inspections carry it out.
    pub fn rule(self) -> Rule {
        let InspectionRule {
            priority,
            sensitive,
            conditions,
            actions,
            ..
        } = self.is;
        Rule {
            id: self.id,
            priority,
            sensitive,
            conditions,
            actions,
        }
    }
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
