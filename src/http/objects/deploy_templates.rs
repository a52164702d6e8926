//! Deploy templates.

use serde_json::{Value, json};

use super::{Served, fields_of};
use crate::catalog::{DeployTemplate, Record};
use crate::http::view::{Shown, short, shown};
use crate::node::masking::masked;
use crate::node::values::is_name;

impl Served for DeployTemplate {
    const PLURAL: &'static str = "deploy_templates";
    const SHOWN: &'static [Shown<Record<DeployTemplate>>] = fields_of!(
        DeployTemplate,
        "deploy_templates",
        short(shown("name", 1, |of: &Record<DeployTemplate>, _| {
            json!(of.is.name)
        })),
        shown("steps", 1, |of: &Record<DeployTemplate>, _| steps(&of.is)),
        shown("extra", 1, |of: &Record<DeployTemplate>, _| {
            json!(of.is.extra)
        }),
    );

    fn is_name(text: &str) -> bool {
        is_name(text)
    }
}

fn steps(template: &DeployTemplate) -> Value {
    let shown = template.steps.iter().map(|step| {
        json!({
            "interface": step.interface,
            "step": step.step,
            "args": masked(&step.args),
            "priority": step.priority,
        })
    });
    Value::Array(shown.collect())
}
