//! What the vendor interface of `fake-hardware` offers beyond the API: methods that do nothing but compare their argument, for
//! trying out the ways to call them. Data and pure rules.

use serde_json::{Map, Value, json};

use super::uses;
use crate::node::refused::Refused;
use crate::node::state::{Attributes, Object};
use crate::node::values::bad;

/// One method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorMethod {
    /// Its name.
    pub name: &'static str,
    /// The value of its argument `bar` for which it answers true.
    expected: &'static str,
    /// Its answer is not waited for.
    pub is_async: bool,
    /// Not while something else is done to the node.
    pub needs_lock: bool,
}

/// The HTTP method of all of them.
const HTTP_METHOD: &str = "POST";

const METHODS: &[VendorMethod] = &[
    VendorMethod {
        name: "first_method",
        expected: "baz",
        is_async: true,
        needs_lock: true,
    },
    VendorMethod {
        name: "second_method",
        expected: "kazoo",
        is_async: true,
        needs_lock: true,
    },
    VendorMethod {
        name: "third_method_sync",
        expected: "meow",
        is_async: false,
        needs_lock: true,
    },
    VendorMethod {
        name: "fourth_method_shared_lock",
        expected: "woof",
        is_async: true,
        needs_lock: false,
    },
];

/// The methods of a node with these attributes, as the API lists them.
///
/// # Errors
/// [`Refused::Unsupported`] where there is no vendor interface.
pub fn vendor_methods(attributes: &Attributes) -> Result<Value, Refused> {
    check_interface(attributes)?;
    let told: Map<String, Value> = METHODS
        .iter()
        .map(|method| {
            let told = json!({
                "http_methods": [HTTP_METHOD],
                "async": method.is_async,
                "attach": false,
                "description": format!("Answers whether its argument bar is {}.", method.expected),
                "require_exclusive_lock": method.needs_lock,
            });
            (method.name.to_owned(), told)
        })
        .collect();
    Ok(Value::Object(told))
}

/// Calls a method: which it was, and its answer.
///
/// # Errors
/// [`Refused::Unsupported`] where there is no vendor interface; [`Refused::BadValue`] for what it doesn't have or understand.
pub fn call_vendor_method(
    attributes: &Attributes,
    name: &str,
    http_method: &str,
    arguments: &Object,
) -> Result<(&'static VendorMethod, Value), Refused> {
    check_interface(attributes)?;
    let method = METHODS
        .iter()
        .find(|method| method.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
            bad(
                "method",
                &format!(
                    "no vendor method {name:?}; this node has {}",
                    known.join(", ")
                ),
            )
        })?;
    if http_method != HTTP_METHOD {
        return Err(bad(
            "method",
            &format!("{name} can be called with {HTTP_METHOD} only, not with {http_method}"),
        ));
    }
    if let Some(other) = arguments.keys().find(|key| *key != "bar") {
        return Err(bad(other, &format!("{name} has no such argument")));
    }
    let bar = arguments
        .get("bar")
        .and_then(Value::as_str)
        .ok_or_else(|| bad("bar", &format!("{name} needs it, and it must be a string")))?;
    Ok((method, json!(bar == method.expected)))
}

fn check_interface(attributes: &Attributes) -> Result<(), Refused> {
    if uses(attributes, "vendor", "fake") {
        return Ok(());
    }
    Err(Refused::Unsupported {
        what: "The node has no vendor interface (its vendor_interface is no-vendor), so it has no vendor methods.".to_owned(),
    })
}
