//! Reads the steps a user sends with a provision verb. Pure; whether anybody knows such a step is found out later.

use serde_json::Value;

use crate::node::Object;
use crate::node::steps::{
    INTERFACES, NAME_BYTES_MAX, PAUSE_S_MAX, Reserved, WANTED_STEPS_MAX, WorkStep,
};

/// Reads the steps a user adds to a deploy.
///
/// # Errors
/// A sentence that names the step by its number, beginning with 1, and what is wrong with it.
pub fn deploy_steps(value: &Value) -> Result<Vec<WorkStep>, String> {
    let items = list("deploy_steps", value)?;
    let mut steps: Vec<WorkStep> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let step = deploy_step(item)
            .map_err(|problem| format!("deploy_steps, step {}: {problem}", index + 1))?;
        if steps
            .iter()
            .any(|other| other.interface == step.interface && other.step == step.step)
        {
            return Err(format!(
                "deploy_steps, step {}: {}.{} is there twice.",
                index + 1,
                step.interface,
                step.step
            ));
        }
        steps.push(step);
    }
    Ok(steps)
}

fn list<'a>(name: &str, value: &'a Value) -> Result<&'a [Value], String> {
    let Value::Array(items) = value else {
        return Err(format!("{name}: must be a list of steps."));
    };
    if items.len() > WANTED_STEPS_MAX {
        return Err(format!(
            "{name}: has {} steps; at most {WANTED_STEPS_MAX} are allowed.",
            items.len()
        ));
    }
    Ok(items)
}

fn deploy_step(item: &Value) -> Result<WorkStep, String> {
    let item = known_keys(item, &["interface", "step", "args", "priority"])?;
    let mut step = step(item)?;
    step.priority = whole_number(item.get("priority"))
        .ok_or("priority is missing or not a whole number from 0 on.")?;
    if step.is_core() {
        return Err(format!(
            "{} is one of the steps every deploy takes anyway; it can't be given.",
            step.full_name()
        ));
    }
    Ok(step)
}

/// Reads the steps of a manual cleaning or a service, and puts them into the order they say, or leaves them in the order they have.
/// `name`: the argument's.
///
/// # Errors
/// As [`deploy_steps`].
pub fn ordered_steps(name: &str, value: &Value) -> Result<Vec<WorkStep>, String> {
    const KEYS: &[&str] = &[
        "interface",
        "step",
        "args",
        "order",
        "execute_on_child_nodes",
        "limit_child_node_execution",
    ];
    let items = list(name, value)?;
    if items.is_empty() {
        return Err(format!("{name}: at least one step is needed."));
    }
    let mut steps: Vec<(Option<i64>, WorkStep)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let of = |problem: String| format!("{name}, step {}: {problem}", index + 1);
        let item = known_keys(item, KEYS).map_err(of)?;
        if item
            .get("execute_on_child_nodes")
            .is_some_and(|on| *on != Value::Bool(false))
        {
            return Err(of(
                "execute_on_child_nodes is not supported; send the step to the child nodes."
                    .to_owned(),
            ));
        }
        let order = match item.get("order") {
            None | Some(Value::Null) => None,
            some => Some(
                whole_number(some)
                    .ok_or_else(|| of("order must be a whole number from 0 on.".to_owned()))?,
            ),
        };
        steps.push((order, step(item).map_err(of)?));
    }
    // A stable sort: steps without an order, and those of the same, stay as they were sent.
    steps.sort_by_key(|(order, _)| *order);
    Ok(steps.into_iter().map(|(_, step)| step).collect())
}

fn known_keys<'a>(item: &'a Value, keys: &[&str]) -> Result<&'a Object, String> {
    let Value::Object(item) = item else {
        return Err("must be an object.".to_owned());
    };
    match item.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(unknown) => Err(format!(
            "the key {unknown:?} is not known; use {}.",
            keys.join(", ")
        )),
        None => Ok(item),
    }
}

/// What all steps have.
fn step(item: &Object) -> Result<WorkStep, String> {
    let interface = text(item, "interface")?;
    if !INTERFACES.contains(&interface.as_str()) {
        return Err(format!(
            "the interface {interface:?} is not known; use one of {}.",
            INTERFACES.join(", ")
        ));
    }
    let name = text(item, "step")?;
    let args = match item.get("args") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return Err("args must be an object.".to_owned()),
    };
    if Reserved::named(&name) == Some(Reserved::Wait)
        && args.get("seconds").is_some_and(|seconds| {
            whole_number(Some(seconds)).is_none_or(|seconds| seconds > PAUSE_S_MAX)
        })
    {
        return Err(format!(
            "seconds must be a whole number from 0 to {PAUSE_S_MAX}."
        ));
    }
    Ok(WorkStep {
        args,
        ..WorkStep::named(&interface, &name, 0)
    })
}

fn whole_number(value: Option<&Value>) -> Option<i64> {
    let number = match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    };
    number.filter(|number| *number >= 0)
}

fn text(item: &Object, key: &str) -> Result<String, String> {
    match item.get(key) {
        Some(Value::String(text)) if text.len() > NAME_BYTES_MAX => {
            Err(format!("{key} is longer than {NAME_BYTES_MAX} bytes."))
        }
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(format!("{key} is missing or not a string.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_read() {
        let steps = deploy_steps(&json!([
            {"interface": "raid", "step": "apply_configuration", "args": {"a": 1}, "priority": 85},
            {"interface": "deploy", "step": "burn_in", "priority": "10"},
        ]))
        .unwrap();
        assert_eq!(steps[0].args["a"], 1);
        assert_eq!(steps[1].priority, 10);
    }

    #[test]
    fn bad_steps_are_named() {
        for (item, word) in [
            (json!(7), "object"),
            (
                json!({"interface": "network", "step": "x", "priority": 1}),
                "network",
            ),
            (json!({"interface": "deploy", "step": "x"}), "priority"),
            (
                json!({"interface": "deploy", "step": "x", "priority": -1}),
                "priority",
            ),
            (
                json!({"interface": "deploy", "step": "", "priority": 1}),
                "step",
            ),
            (
                json!({"interface": "deploy", "step": "x", "priority": 1, "args": []}),
                "args",
            ),
            (
                json!({"interface": "deploy", "step": "x", "priority": 1, "order": 1}),
                "order",
            ),
            (
                json!({"interface": "deploy", "step": "write_image", "priority": 1}),
                "write_image",
            ),
            (
                json!({"interface": "raid", "step": "a", "priority": 1}),
                "twice",
            ),
        ] {
            let first = json!({"interface": "raid", "step": "a", "priority": 5});
            let problem = deploy_steps(&json!([first, item])).unwrap_err();
            assert!(
                problem.contains(word) && problem.contains("step 2"),
                "{problem}"
            );
        }
        assert!(deploy_steps(&json!({})).is_err());
    }

    #[test]
    fn a_cleaning_goes_in_the_order_its_steps_say() {
        let steps = ordered_steps(
            "clean_steps",
            &json!([
                {"interface": "deploy", "step": "c", "order": 3},
                {"interface": "deploy", "step": "a", "order": 1},
                {"interface": "power", "step": "hold", "order": 2},
            ]),
        )
        .unwrap();
        let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(names, ["a", "hold", "c"]);
        for (steps, word) in [
            (json!([]), "at least one"),
            (
                json!([{"interface": "deploy", "step": "a", "priority": 1}]),
                "priority",
            ),
            (
                json!([{"interface": "deploy", "step": "a", "order": -1}]),
                "order",
            ),
            (
                json!([{"interface": "power", "step": "wait", "args": {"seconds": 604_801}}]),
                "seconds",
            ),
            (
                json!([{"interface": "deploy", "step": "a", "execute_on_child_nodes": true}]),
                "child",
            ),
        ] {
            let problem = ordered_steps("clean_steps", &steps).unwrap_err();
            assert!(problem.contains(word), "{problem}");
        }
    }
}
