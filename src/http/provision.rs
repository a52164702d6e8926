//! `PUT /v1/nodes/{node}/states/provision`: provision verbs.
//!
//! Reads and checks what comes with a verb; whether the verb leads anywhere from the node's state is decided by the node.

use serde_json::Value;

use super::configdrive;
use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use super::view::states_address;
use crate::node::steps::DeployStep;
use crate::node::{Event, Object, ProvisionOptions, Verb};

/// The verbs as clients spell them, with the version each is there since.
pub const VERBS: &[(&str, u16, Verb)] = &[
    ("manage", 4, Verb::Manage),
    ("provide", 4, Verb::Provide),
    ("inspect", 6, Verb::Inspect),
    ("clean", 15, Verb::Clean),
    ("active", 1, Verb::Active),
    ("deploy", 73, Verb::Active),
    ("rebuild", 1, Verb::Rebuild),
    ("deleted", 1, Verb::Deleted),
    ("undeploy", 73, Verb::Deleted),
    ("rescue", 38, Verb::Rescue),
    ("unrescue", 38, Verb::Unrescue),
    ("adopt", 17, Verb::Adopt),
    ("service", 87, Verb::Service),
    ("abort", 13, Verb::Abort),
    ("unhold", 85, Verb::Unhold),
];

/// What may come with some verb.
const OPTIONS: &[&str] = &[
    "configdrive",
    "deploy_steps",
    "clean_steps",
    "service_steps",
    "rescue_password",
    "disable_ramdisk",
    "runbook",
];

const STEP_INTERFACES: [&str; 7] = [
    "vendor",
    "power",
    "management",
    "firmware",
    "deploy",
    "bios",
    "raid",
];

/// More steps than any deploy has.
const STEPS_MAX: usize = 100;

/// `PUT /v1/nodes/{node}/states/provision`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let Some(target) = arguments.take_text("target")? else {
        return Err(Error::Bad("Missing mandatory parameter: target".to_owned()));
    };
    let verb = known_verb(request, &target)?;
    let mut options = ProvisionOptions::default();
    for name in OPTIONS.iter().copied() {
        let Some(value) = arguments.take(name) else {
            continue;
        };
        match (name, verb) {
            ("configdrive", Verb::Active | Verb::Rebuild) if target != "deploy" => {
                if verb == Verb::Rebuild {
                    request.need(35, "configdrive with rebuild")?;
                }
                options.configdrive = configdrive::read(request, ident, value).await?;
            }
            ("deploy_steps", Verb::Active | Verb::Rebuild) => {
                options.deploy_steps = deploy_steps(&value).map_err(Error::Bad)?;
            }
            _ => {
                return Err(Error::Bad(format!(
                    "{name} can't be given with the target \"{target}\"."
                )));
            }
        }
    }
    arguments.finish()?;
    let node = deliver(request, ident, Event::Provision { verb, options }).await?;
    Ok(Reply::Accepted {
        location: Some(states_address(&request.base, node.id)),
    })
}

fn known_verb(request: &Request, target: &str) -> Result<Verb, Error> {
    let Some((_, since, verb)) = VERBS.iter().find(|(name, _, _)| *name == target) else {
        return Err(Error::Bad(format!(
            "The requested action \"{target}\" is not a provision verb; use manage, provide, active, rebuild, deleted or abort."
        )));
    };
    request.need(*since, &format!("target \"{target}\""))?;
    match verb {
        Verb::Manage
        | Verb::Provide
        | Verb::Active
        | Verb::Rebuild
        | Verb::Deleted
        | Verb::Abort => Ok(*verb),
        Verb::Inspect
        | Verb::Clean
        | Verb::Rescue
        | Verb::Unrescue
        | Verb::Adopt
        | Verb::Service
        | Verb::Unhold => Err(Error::Bad(format!(
            "The requested action \"{target}\" is not supported by this version of the server."
        ))),
    }
}

/// Reads the steps a user adds to a deploy.
///
/// # Errors
/// A sentence that names the step by its number, beginning with 1, and what is wrong with it.
fn deploy_steps(value: &Value) -> Result<Vec<DeployStep>, String> {
    let Value::Array(items) = value else {
        return Err("deploy_steps: must be a list of steps.".to_owned());
    };
    if items.len() > STEPS_MAX {
        return Err(format!(
            "deploy_steps: has {} steps; at most {STEPS_MAX} are allowed.",
            items.len()
        ));
    }
    let mut steps: Vec<DeployStep> = Vec::new();
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

fn deploy_step(item: &Value) -> Result<DeployStep, String> {
    let Value::Object(item) = item else {
        return Err("must be an object.".to_owned());
    };
    const KEYS: [&str; 4] = ["interface", "step", "args", "priority"];
    if let Some(unknown) = item.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!(
            "the key {unknown:?} is not known; use {}.",
            KEYS.join(", ")
        ));
    }
    let interface = text(item, "interface")?;
    if !STEP_INTERFACES.contains(&interface.as_str()) {
        return Err(format!(
            "the interface {interface:?} is not known; use one of {}.",
            STEP_INTERFACES.join(", ")
        ));
    }
    let priority = match item.get("priority") {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(digits)) => digits.parse().ok(),
        _ => None,
    };
    let step = DeployStep {
        interface,
        step: text(item, "step")?,
        priority: priority
            .filter(|number| *number >= 0)
            .ok_or("priority is missing or not a whole number from 0 on.")?,
        args: match item.get("args") {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(args)) => args.clone(),
            Some(_) => return Err("args must be an object.".to_owned()),
        },
        reboot_requested: false,
    };
    if step.is_core() {
        return Err(format!(
            "{}.{} is one of the steps every deploy takes anyway; it can't be given.",
            step.interface, step.step
        ));
    }
    Ok(step)
}

fn text(item: &Object, key: &str) -> Result<String, String> {
    match item.get(key) {
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
    fn every_verb_has_a_spelling() {
        for verb in Verb::ALL {
            assert!(
                VERBS
                    .iter()
                    .any(|(name, _, known)| known == verb && *name == verb.name())
            );
        }
    }
}
