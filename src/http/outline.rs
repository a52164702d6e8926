//! Nodes in lists as far as the store has them in memory: most lists show no more, and a thousand whole nodes take ten times as long
//! to read.
//!
//! Pure. Which fields there are, in which order and since when is said by [`NODE_FIELDS`] alone; here is only where each comes from.

use serde_json::{Value, json};

use super::reply::Document;
use super::view::{self, Frame, NODE_FIELDS, Selection, Shown};
use crate::node::Node;
use crate::store::NodeOutline;

/// Where the value of a field comes from.
type Column = fn(&NodeOutline, Frame<'_>) -> Value;

macro_rules! column {
    ($name:ident) => {
        (stringify!($name), |of: &NodeOutline, _| json!(of.$name))
    };
}

const COLUMNS: &[(&str, Column)] = &[
    ("uuid", |of, _| json!(of.id.to_string())),
    ("provision_state", |of, frame| {
        view::provision_state(of.provision_state, frame.microversion)
    }),
    ("power_state", |of, _| view::power(of.power_state)),
    ("links", |of, frame| {
        view::links(frame.base, &format!("nodes/{}", of.id))
    }),
    ("conductor", |_, frame| json!(frame.conductor)),
    column!(name),
    column!(instance_uuid),
    column!(instance_name),
    column!(driver),
    column!(maintenance),
    column!(fault),
    column!(resource_class),
    column!(conductor_group),
    column!(owner),
    column!(lessee),
    column!(retired),
    column!(shard),
    column!(parent_node),
];

/// The fields of a list, where the columns have them all.
pub struct Outlines(Vec<(&'static str, Column)>);

impl Outlines {
    /// None where something else is wanted, too.
    pub fn of(selection: &Selection, frame: Frame<'_>) -> Option<Outlines> {
        let column = |field: &Shown<Node>| {
            let known = COLUMNS.iter().find(|(name, _)| *name == field.name);
            known.copied()
        };
        view::wanted(NODE_FIELDS, selection, frame.microversion)
            .map(column)
            .collect::<Option<Vec<_>>>()
            .map(Outlines)
    }

    /// One node of the list.
    pub fn document(&self, of: &NodeOutline, frame: Frame<'_>) -> Document {
        Document(
            self.0
                .iter()
                .map(|(name, value)| (*name, value(of, frame)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::Microversion;

    #[test]
    fn every_column_is_a_field_of_nodes() {
        for (name, _) in COLUMNS {
            assert!(
                NODE_FIELDS.iter().any(|field| field.name == *name),
                "{name}"
            );
        }
    }

    #[test]
    fn lists_of_what_is_in_columns_are_recognised() {
        let frame = |minor| Frame {
            base: "http://h",
            microversion: Microversion(minor),
            conductor: "c-1",
        };
        let asked = |list: &str| {
            Outlines::of(
                &view::asked(NODE_FIELDS, list, Microversion(115)).unwrap(),
                frame(115),
            )
        };
        assert!(Outlines::of(&Selection::Short, frame(115)).is_some());
        assert!(Outlines::of(&Selection::Short, frame(1)).is_some());
        assert!(Outlines::of(&Selection::Full, frame(115)).is_none());
        assert!(asked("uuid,name,provision_state").is_some());
        assert!(asked("uuid,name,properties").is_none());
    }
}
