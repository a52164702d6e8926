//! Lists of steps as documents: those of deploy templates and of runbooks.
//!
//! Pure. Each list is checked as a whole and kept with the keys that clients know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::node::fields::number;
use crate::node::steps::{INTERFACES, WANTED_STEPS_MAX, WorkStep};
use crate::node::values::{bad, object_of, text_of};
use crate::node::{Object, Refused};

/// One step of a deploy template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemplateStep {
    /// Which hardware interface it belongs to.
    pub interface: String,
    /// Its name.
    pub step: String,
    /// Arguments for the agent.
    pub args: Object,
    /// Higher ones come first; 0 takes a step out.
    pub priority: i64,
}

impl From<&TemplateStep> for WorkStep {
    fn from(step: &TemplateStep) -> WorkStep {
        WorkStep {
            args: step.args.clone(),
            ..WorkStep::named(&step.interface, &step.step, step.priority)
        }
    }
}

/// One step of a runbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunbookStep {
    /// Which hardware interface it belongs to.
    pub interface: String,
    /// Its name.
    pub step: String,
    /// Arguments for the agent.
    pub args: Object,
    /// Lower ones come first.
    pub order: i64,
}

impl From<&RunbookStep> for WorkStep {
    fn from(step: &RunbookStep) -> WorkStep {
        WorkStep {
            args: step.args.clone(),
            ..WorkStep::named(&step.interface, &step.step, 0)
        }
    }
}

/// The steps of a deploy template: at least one, each once, with a priority.
///
/// # Errors
/// [`Refused::BadValue`] naming the step and its key.
pub fn template_steps(name: &str, value: &Value) -> Result<Value, Refused> {
    checked(name, value, "priority", true)
}

/// The steps of a runbook: at least one, with an order.
///
/// # Errors
/// [`Refused::BadValue`] naming the step and its key.
pub fn runbook_steps(name: &str, value: &Value) -> Result<Value, Refused> {
    checked(name, value, "order", false)
}

fn checked(name: &str, value: &Value, rank: &str, once: bool) -> Result<Value, Refused> {
    let Value::Array(items) = value else {
        return Err(bad(name, "must be a list of steps"));
    };
    if items.is_empty() {
        return Err(bad(name, "is empty; give at least one step"));
    }
    if items.len() > WANTED_STEPS_MAX {
        return Err(bad(
            name,
            &format!(
                "has {} steps; at most {WANTED_STEPS_MAX} are allowed",
                items.len()
            ),
        ));
    }
    let mut steps: Vec<Object> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{name}/{index}");
        let step = step(&at, item, rank)?;
        let is_same = |other: &Object| {
            other["interface"] == step["interface"] && other["step"] == step["step"]
        };
        if once && steps.iter().any(is_same) {
            return Err(bad(&at, "is there twice"));
        }
        steps.push(step);
    }
    Ok(Value::Array(steps.into_iter().map(Value::Object).collect()))
}

fn step(at: &str, item: &Value, rank: &str) -> Result<Object, Refused> {
    let item = object_of(at, item)?;
    let keys = ["interface", "step", "args", rank];
    if let Some(unknown) = item.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(bad(
            &format!("{at}/{unknown}"),
            &format!("is not known; use {}", keys.join(", ")),
        ));
    }
    let text = |key: &str| -> Result<Value, Refused> {
        let field = format!("{at}/{key}");
        match item.get(key) {
            Some(value) if !text_of(&field, value, 255)?.is_empty() => Ok(value.clone()),
            Some(_) | None => Err(bad(&field, "is missing or empty")),
        }
    };
    let interface = text("interface")?;
    if !INTERFACES.iter().any(|known| interface == *known) {
        return Err(bad(
            &format!("{at}/interface"),
            &format!("is not known; use one of {}", INTERFACES.join(", ")),
        ));
    }
    let field = format!("{at}/{rank}");
    let Some(place) = item.get(rank) else {
        return Err(bad(&field, "is missing"));
    };
    let place = number(&field, place, 0, i64::from(i32::MAX))?;
    let args = match item.get("args") {
        None | Some(Value::Null) => Object::new(),
        Some(args) => object_of(&format!("{at}/args"), args)?.clone(),
    };
    let mut read = Map::new();
    read.insert("interface".to_owned(), interface);
    read.insert("step".to_owned(), text("step")?);
    read.insert("args".to_owned(), Value::Object(args));
    read.insert(rank.to_owned(), Value::from(place));
    Ok(read)
}
