//! Deploy templates: steps for every deploy of an instance that asks for the template's trait.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::steps::{TemplateStep, template_steps};
use super::{Columns, Kind};
use crate::node::fields::{Field, Holds, field, required};
use crate::node::traits::check_trait;
use crate::node::values::text_of;
use crate::node::{Object, Refused};

/// Steps that come with a trait: they apply when its name is among `instance_info.traits`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeployTemplate {
    /// The trait; unique.
    pub name: String,
    /// The steps.
    pub steps: Vec<TemplateStep>,
    /// Free for the operator.
    pub extra: Object,
}

fn name(field: &str, value: &Value) -> Result<Value, Refused> {
    check_trait(field, text_of(field, value, 255)?)?;
    Ok(value.clone())
}

impl Kind for DeployTemplate {
    const NAME: &'static str = "deploy_template";
    const TITLE: &'static str = "Deploy template";
    const FIELDS: &'static [Field] = &[
        required("name", 1, Holds::Checked(name)),
        required("steps", 1, Holds::Checked(template_steps)),
        field("extra", 1, Holds::Object),
    ];

    fn columns(&self) -> Columns {
        Columns {
            name: Some(self.name.clone()),
            ..Columns::default()
        }
    }
}
