//! Inspection rules.

use serde_json::{Value, json};

use super::{Served, fields_of};
use crate::catalog::{InspectionRule, Record};
use crate::http::view::{Shown, short, shown};
use crate::node::Object;

impl Served for InspectionRule {
    const PLURAL: &'static str = "inspection_rules";
    const SHOWN: &'static [Shown<Record<InspectionRule>>] = fields_of!(
        InspectionRule,
        "inspection_rules",
        short(shown("description", 1, |of: &Record<InspectionRule>, _| {
            json!(of.is.description)
        })),
        short(shown("phase", 1, |of: &Record<InspectionRule>, _| {
            json!(of.is.phase.as_deref().unwrap_or("main"))
        })),
        short(shown("priority", 1, |of: &Record<InspectionRule>, _| {
            json!(of.is.priority)
        })),
        short(shown("sensitive", 1, |of: &Record<InspectionRule>, _| {
            json!(of.is.sensitive)
        })),
        shown("conditions", 1, |of: &Record<InspectionRule>, _| {
            unless_sensitive(&of.is, &of.is.conditions)
        }),
        shown("actions", 1, |of: &Record<InspectionRule>, _| {
            unless_sensitive(&of.is, &of.is.actions)
        }),
    );
}

fn unless_sensitive(rule: &InspectionRule, list: &[Object]) -> Value {
    if rule.sensitive {
        Value::Null
    } else {
        json!(list)
    }
}
