//! Chassis: a box that holds machines.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::node::Object;
use crate::node::fields::{Field, Holds, field};

/// A box that holds machines.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Chassis {
    /// Free text.
    pub description: Option<String>,
    /// Free for the operator.
    pub extra: Object,
}

impl Kind for Chassis {
    const NAME: &'static str = "chassis";
    const TITLE: &'static str = "Chassis";
    const FIELDS: &'static [Field] = &[
        field("description", 1, Holds::Text(255)),
        field("extra", 1, Holds::Object),
    ];
}
