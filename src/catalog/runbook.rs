//! Runbooks: steps that somebody has put together for cleaning and service, for nodes with certain traits.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::steps::{RunbookStep, runbook_steps};
use super::{Columns, Kind};
use crate::node::fields::{Field, Holds, field, required};
use crate::node::steps::WorkStep;
use crate::node::traits::is_trait;
use crate::node::values::{bad, text_of};
use crate::node::{Object, Refused};

/// Since when the name is free and the traits are a list of their own.
const FREE_NAMES_SINCE: u16 = 112;

/// Steps for cleaning and service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Runbook {
    /// Unique name.
    pub name: String,
    /// The steps.
    pub steps: Vec<RunbookStep>,
    /// Free for the operator.
    pub extra: Object,
    /// Whether every project may use it.
    pub public: bool,
    /// The project that may change it.
    pub owner: Option<String>,
    /// The steps need no ramdisk.
    pub disable_ramdisk: bool,
    /// Free text.
    pub description: Option<String>,
    /// It is for nodes that have one of these.
    pub traits: Vec<String>,
}

impl Runbook {
    /// The traits one of which a node must have: those of the list, and the name, which was the only one before there was a list.
    pub fn traits_of_nodes(&self) -> Vec<String> {
        let mut traits = self.traits.clone();
        if is_trait(&self.name) && !traits.contains(&self.name) {
            traits.push(self.name.clone());
        }
        traits
    }

    /// The steps as work takes them, in their order.
    pub fn work_steps(&self) -> Vec<WorkStep> {
        let mut steps: Vec<&RunbookStep> = self.steps.iter().collect();
        steps.sort_by_key(|step| step.order);
        steps.into_iter().map(WorkStep::from).collect()
    }
}

fn name(field: &str, value: &Value) -> Result<Value, Refused> {
    let text = text_of(field, value, 255)?;
    if text.is_empty() || Uuid::try_parse(text).is_ok() {
        return Err(bad(field, "must not be empty and must not be a UUID"));
    }
    Ok(value.clone())
}

impl Kind for Runbook {
    const NAME: &'static str = "runbook";
    const TITLE: &'static str = "Runbook";
    const FIELDS: &'static [Field] = &[
        required("name", 1, Holds::Checked(name)),
        required("steps", 1, Holds::Checked(runbook_steps)),
        field("extra", 1, Holds::Object),
        field("public", 1, Holds::Bool),
        field("owner", 1, Holds::Text(255)),
        field("disable_ramdisk", 1, Holds::Bool),
        field("description", FREE_NAMES_SINCE, Holds::Text(255)),
    ];

    fn columns(&self) -> Columns {
        Columns {
            name: Some(self.name.clone()),
            owner: self.owner.clone(),
            ..Columns::default()
        }
    }

    fn check(&self, old: Option<&Runbook>, microversion: u16) -> Result<(), Refused> {
        let is_same_name = old.is_some_and(|old| old.name == self.name);
        if microversion < FREE_NAMES_SINCE && !is_same_name && !is_trait(&self.name) {
            return Err(bad(
                "name",
                "must be a trait, such as CUSTOM_ and then capital letters, below version 1.112",
            ));
        }
        if self.public && self.owner.is_some() {
            return Err(bad(
                "public",
                "a public runbook has no owner; remove the owner, or leave it private",
            ));
        }
        Ok(())
    }
}
