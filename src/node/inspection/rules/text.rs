//! Values of rules that name parts of the node and of what was found: `{inventory[cpu][count]}`, `{node.properties[cpu_arch]}`,
//! `{plugin_data[root_disk][size]}`, and `{item}` inside a loop.
//!
//! Braces that shall stay are doubled. A text that is nothing but one such name takes the value as it is, number or list; in the
//! middle of a text it is written out, null as `None` and truth as `True` and `False`, as rules written for Ironic expect. A text
//! that names something that is not there stays as it is, and the node's history tells.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use super::Inspected;
use crate::node::attributes::FIELDS;
use crate::node::masking::{STARS, looks_secret, masked_value};
use crate::node::state::{Node, Object};

/// Longer values have no place in a node.
pub(super) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// What the values of one rule can name.
pub(super) struct Context<'a> {
    node: Rc<Value>,
    inventory: &'a Value,
    plugin_data: &'a Object,
    item: Option<Value>,
    shows_secrets: bool,
    /// The texts that named what is not there.
    unresolved: Rc<RefCell<Vec<String>>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(inspected: &'a Inspected<'_>, shows_secrets: bool) -> Context<'a> {
        Context {
            node: Rc::new(described(&inspected.node)),
            inventory: &inspected.inventory,
            plugin_data: &inspected.plugin_data,
            item: None,
            shows_secrets,
            unresolved: Rc::default(),
        }
    }

    /// The same inside a loop. What an item names itself is put in.
    pub(super) fn for_item(&self, item: &Value) -> Result<Context<'a>, String> {
        let item = self.filled(item)?;
        Ok(Context {
            node: Rc::clone(&self.node),
            item: Some(item),
            unresolved: Rc::clone(&self.unresolved),
            ..*self
        })
    }

    pub(super) fn is_in_loop(&self) -> bool {
        self.item.is_some()
    }

    /// The texts that named what is not there.
    pub(super) fn unresolved(&self) -> Vec<String> {
        self.unresolved.take()
    }

    /// The value with all names in it replaced by what they stand for.
    pub(super) fn filled(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.filled_text(text),
            Value::Array(items) => {
                let filled: Result<Vec<Value>, String> =
                    items.iter().map(|item| self.filled(item)).collect();
                Ok(Value::Array(filled?))
            }
            Value::Object(object) => {
                let mut filled = Object::new();
                for (key, value) in object {
                    filled.insert(written(&self.filled_text(key)?), self.filled(value)?);
                }
                Ok(Value::Object(filled))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn filled_text(&self, text: &str) -> Result<Value, String> {
        if !text.contains(['{', '}']) {
            return Ok(json!(text));
        }
        let Some(filled) = self.replaced(text)? else {
            let mut unresolved = self.unresolved.borrow_mut();
            if !unresolved.iter().any(|other| other == text) {
                unresolved.push(text.to_owned());
            }
            return Ok(json!(text));
        };
        Ok(filled)
    }

    /// None where something is named that is not there, or braces don't fit.
    fn replaced(&self, text: &str) -> Result<Option<Value>, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                filled.push('{');
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                filled.push('}');
                rest = after;
            } else {
                let name = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((name, after)) = name else {
                    return Ok(None);
                };
                let Some(value) = self.named(name) else {
                    return Ok(None);
                };
                if name.len() + 2 == text.len() {
                    return Ok(Some(value));
                }
                filled.push_str(&written(&value));
                rest = after;
            }
            if filled.len() > VALUE_BYTES_MAX {
                return Err(format!("a value is longer than {VALUE_BYTES_MAX} bytes"));
            }
        }
        filled.push_str(rest);
        Ok(Some(json!(filled)))
    }

    /// What a name stands for: its root, and then keys in brackets or after dots.
    fn named(&self, name: &str) -> Option<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (root, path) = name.split_at(end);
        let mut keys = keys(path)?.into_iter();
        let mut place = match root {
            "node" => &*self.node,
            "inventory" => self.inventory,
            "item" => self.item.as_ref()?,
            "plugin_data" => match keys.next() {
                Some(key) if self.hides(key) => return Some(json!(STARS)),
                Some(key) => self.plugin_data.get(key)?,
                None => return Some(self.shown(&Value::Object(self.plugin_data.clone()))),
            },
            _ => return None,
        };
        for key in keys {
            if self.hides(key) && root != "item" {
                return Some(json!(STARS));
            }
            place = match place {
                Value::Object(object) => object.get(key)?,
                Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(if root == "item" {
            place.clone()
        } else {
            self.shown(place)
        })
    }

    fn hides(&self, key: &str) -> bool {
        !self.shows_secrets && looks_secret(key)
    }

    fn shown(&self, value: &Value) -> Value {
        if self.shows_secrets {
            value.clone()
        } else {
            masked_value(value)
        }
    }
}

/// `[a][b].c`
fn keys(path: &str) -> Option<Vec<&str>> {
    let mut keys = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (key, after) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']')?,
            None => {
                let name = rest.strip_prefix('.')?;
                name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
            }
        };
        if key.is_empty() {
            return None;
        }
        keys.push(key);
        rest = after;
    }
    Some(keys)
}

/// A value in the middle of a text.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// The node as rules see it: its fields by the names they have on the wire.
fn described(node: &Node) -> Value {
    let mut fields = json!(node.attributes);
    if let Value::Object(fields) = &mut fields {
        fields.remove("interfaces");
        for (kind, implementation) in &node.attributes.interfaces {
            fields.insert(format!("{kind}_interface"), json!(implementation));
        }
        for (name, value) in [
            ("uuid", json!(node.id)),
            ("provision_state", json!(node.provision_state().name())),
            (
                "power_state",
                json!(node.power.state.map(|state| state.name())),
            ),
            ("traits", json!(node.traits)),
            ("maintenance", json!(node.maintenance.is_some())),
            ("console_enabled", json!(node.hardware.console_enabled)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        for field in FIELDS {
            if let Some(empty) = field.empty() {
                fields.entry(field.name).or_insert(empty);
            }
        }
    }
    fields
}
