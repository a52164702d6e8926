//! Inspection rules: where all conditions of a rule hold, all its actions are taken, after the hooks.
//!
//! Pure. What conditions and actions there are, what they take and how values name parts of the findings is Ironic's:
//!
//! | condition | holds if |
//! |---|---|
//! | `eq`, `lt`, `gt` `{values}` | it is so for each of the values and the one after it |
//! | `is-empty`, `is-none`, `is-true`, `is-false` `{value}` | the value is that |
//! | `in-net` `{address, subnet}` | the address is in the network |
//! | `matches`, `contains` `{value, regex}` | all of the text, or a part of it, matches |
//! | `one-of` `{value, values}` | the value is among them |
//!
//! `!` in front turns a condition round. Arguments come by name, or as a list in the order of [`CONDITIONS`] and [`ACTIONS`]. With
//! `loop` a condition or action is gone through for each item; `multiple` says how many must hold: `any`, `all`, `first`, `last`.
//! Texts may name parts of the node and of what was found, see `text.rs`. Rules go by priority, higher ones first, then by age.

mod action;
mod condition;
mod form;
mod text;

use serde_json::Value;
use uuid::Uuid;

use self::text::Context;
use super::Inspected;
use crate::node::effect::Severity;
use crate::node::state::Object;

pub use self::form::{ACTIONS, CONDITIONS, Operation, check_action, check_condition};

/// A rule as it is carried out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rule {
    /// Its UUID, by which it is named.
    pub id: Uuid,
    /// Higher ones come first.
    pub priority: i64,
    /// What it says is shown to nobody, and it sees secrets as they are.
    pub sensitive: bool,
    /// Each with `op`, `args` and perhaps `loop` and `multiple`.
    pub conditions: Vec<Object>,
    /// Each with `op`, `args` and perhaps `loop`.
    pub actions: Vec<Object>,
}

/// Applies the rules.
///
/// # Errors
/// Which rule failed, where, and why, in words for an operator. Of a sensitive rule no more than where.
pub(super) fn apply(inspected: &mut Inspected<'_>, mut rules: Vec<Rule>) -> Result<(), String> {
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    for rule in &rules {
        let applied = apply_one(inspected, rule);
        applied.map_err(|failure| failure.told(rule))?;
    }
    Ok(())
}

/// Where a rule failed, and why.
struct Failure {
    place: String,
    why: String,
}

impl Failure {
    fn told(self, rule: &Rule) -> String {
        let Failure { place, why } = self;
        let id = rule.id;
        if rule.sensitive {
            return format!(
                "inspection rule {id} failed at its {place}; why is not shown, because the rule is sensitive"
            );
        }
        format!("inspection rule {id}, {place}: {why}")
    }
}

fn apply_one(inspected: &mut Inspected<'_>, rule: &Rule) -> Result<(), Failure> {
    let mut unresolved = Vec::new();
    for (number, condition) in (1..).zip(&rule.conditions) {
        let context = Context::new(inspected, rule.sensitive);
        let holds = condition::holds(&context, condition);
        unresolved.extend(context.unresolved());
        let holds = holds.map_err(|why| failure("condition", number, condition, why))?;
        if !holds {
            return Ok(());
        }
    }
    for (number, action) in (1..).zip(&rule.actions) {
        let taken = action::take(inspected, rule.sensitive, action, &mut unresolved);
        taken.map_err(|why| failure("action", number, action, why))?;
    }
    if !unresolved.is_empty() && !rule.sensitive {
        unresolved.dedup();
        let list = unresolved.join(", ");
        let line = format!(
            "inspection rule {}: nothing is there that {list} could stand for; left as it is",
            rule.id
        );
        inspected.note(Severity::Info, line);
    }
    Ok(())
}

fn failure(kind: &str, number: usize, operation: &Object, why: String) -> Failure {
    let op = operation.get("op").and_then(Value::as_str);
    let place = format!("{kind} {number} ({})", op.unwrap_or_default());
    Failure { place, why }
}

/// The items an operation is gone through for, one after the other.
fn items(operation: &Object) -> Option<Vec<Value>> {
    match operation.get("loop") {
        Some(Value::Array(items)) if !items.is_empty() => Some(items.clone()),
        Some(Value::Object(item)) if !item.is_empty() => Some(vec![Value::Object(item.clone())]),
        _ => None,
    }
}
