//! The firmware components of the machines of `fake-hardware`. Pure.

use serde_json::Value;

use super::recorded::FirmwareChange;
use crate::node::boot_options;
use crate::node::state::{Node, Object};

/// One component with firmware of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// `bios`, `bmc`, `nic:...`
    pub name: &'static str,
    /// The version a machine comes with.
    pub initial_version: &'static str,
}

/// Every component of a fake machine, by name.
pub const COMPONENTS: &[Component] = &[
    Component {
        name: "bios",
        initial_version: "1.0.0",
    },
    Component {
        name: "bmc",
        initial_version: "1.0.0",
    },
    Component {
        name: "nic:1",
        initial_version: "1.0.0",
    },
];

/// A component with the firmware it has on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComponentOfNode<'a> {
    /// The component.
    pub component: &'static Component,
    /// What was flashed last, if anything was.
    pub change: Option<&'a FirmwareChange>,
}

/// The components of a node, by name. Empty while its machine was never reached, and for machines whose firmware can't be read.
pub fn components(node: &Node) -> Vec<ComponentOfNode<'_>> {
    if !super::uses(&node.attributes, "firmware", "fake") || node.power.state.is_none() {
        return Vec::new();
    }
    COMPONENTS
        .iter()
        .map(|component| ComponentOfNode {
            component,
            change: node.hardware.firmware_changes.get(component.name),
        })
        .collect()
}

/// The components and versions that the arguments of `firmware.update` ask for: `[{"component": ..., "url": ...}]`. The version is
/// what the file is called.
///
/// # Errors
/// What is wrong with them, in words for an operator.
pub fn wanted(args: &Object) -> Result<Vec<(&'static Component, String)>, String> {
    let mut wanted = Vec::new();
    for item in super::steps::list_argument(args, "settings")? {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let (Some(name), Some(url)) = (text("component"), text("url")) else {
            return Err("each of the settings needs a \"component\" and a \"url\", for example {\"component\": \"bmc\", \"url\": \"https://firmware.example/bmc-2.1.bin\"}".to_owned());
        };
        let component = COMPONENTS
            .iter()
            .find(|component| component.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = COMPONENTS.iter().map(|component| component.name).collect();
                format!(
                    "the machine has no firmware component {name:?}; it has {}",
                    known.join(", ")
                )
            })?;
        boot_options::check_url(url, &["http", "https"])
            .map_err(|problem| format!("the url for {name} {problem}"))?;
        wanted.push((component, file_name(url)));
    }
    Ok(wanted)
}

/// The last part of an address, without the ending of the file.
fn file_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let last = path.rsplit('/').next().unwrap_or(path);
    match last.rsplit_once('.') {
        Some((stem, ending))
            if !stem.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphabetic()) =>
        {
            stem.to_owned()
        }
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted_by(settings: Value) -> Result<Vec<(&'static Component, String)>, String> {
        wanted(json!({"settings": settings}).as_object().unwrap())
    }

    #[test]
    fn the_version_is_what_the_file_is_called() {
        for (url, version) in [
            ("https://f.example/a/bmc-2.1.bin?x=/y.z", "bmc-2.1"),
            ("http://f.example/2.1", "2.1"),
            ("http://f.example/image", "image"),
        ] {
            let taken = wanted_by(json!([{"component": "bmc", "url": url}])).unwrap();
            assert_eq!((taken[0].0.name, taken[0].1.as_str()), ("bmc", version));
        }
    }

    #[test]
    fn what_a_machine_would_not_take_is_named() {
        for (settings, word) in [
            (json!(null), "settings"),
            (json!([]), "empty"),
            (json!([{"component": "bmc"}]), "url"),
            (json!([{"url": "http://f.example/x"}]), "component"),
            (
                json!([{"component": "gpu", "url": "http://f.example/x"}]),
                "nic:1",
            ),
            (
                json!([{"component": "bmc", "url": "file:///etc/shadow"}]),
                "https",
            ),
        ] {
            let told = wanted_by(settings.clone()).unwrap_err();
            assert!(told.contains(word), "{settings}: {told}");
        }
    }
}
