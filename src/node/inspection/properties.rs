//! Hooks that set properties: `architecture`, `memory`, `root-device`, and capabilities: `boot-mode`, `cpu-capabilities`.

use serde_json::{Value, json};

use super::Inspected;
use crate::node::limits::BootMode;
use crate::node::state::{Node, Object};

const GIB: u64 = 1 << 30;

/// Longer names are none.
const NAME_BYTES_MAX: usize = 255;

/// What a flag of a processor says it can do.
const CPU_CAPABILITIES: [(&str, &str); 6] = [
    ("vmx", "cpu_vt"),
    ("svm", "cpu_vt"),
    ("aes", "cpu_aes"),
    ("pse", "cpu_hugepages"),
    ("pdpe1gb", "cpu_hugepages_1g"),
    ("smx", "cpu_txt"),
];

pub(super) fn architecture(inspected: &mut Inspected<'_>) {
    let architecture = inspected.inventory["cpu"]["architecture"].as_str();
    let is_name = |text: &&str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
    if let Some(architecture) = architecture.filter(is_name) {
        let architecture = json!(architecture);
        set(&mut inspected.node, "cpu_arch", architecture);
    }
}

pub(super) fn memory(inspected: &mut Inspected<'_>) {
    let memory = inspected.inventory["memory"]["physical_mb"].as_u64();
    if let Some(megabytes) = memory.filter(|megabytes| *megabytes > 0) {
        set(&mut inspected.node, "memory_mb", json!(megabytes));
    }
}

/// The size of the disk the agent would choose, less one gigabyte for partition tables. A node with root device hints keeps what it
/// says: the agent did not know them when it chose.
pub(super) fn root_device(inspected: &mut Inspected<'_>) {
    let properties = &inspected.node.attributes.properties;
    if properties.contains_key("root_device") {
        return;
    }
    let size = inspected.plugin_data.get("root_disk");
    let size = size.and_then(|disk| disk["size"].as_u64());
    if let Some(gigabytes) = size.map(|bytes| bytes / GIB).filter(|count| *count > 1) {
        set(&mut inspected.node, "local_gb", json!(gigabytes - 1));
    }
}

pub(super) fn boot_mode(inspected: &mut Inspected<'_>) {
    let mode = inspected.inventory["boot"]["current_boot_mode"].as_str();
    if let Some(mode) = mode.and_then(BootMode::parse) {
        set_capability(&mut inspected.node, "boot_mode", Some(mode.name()));
    }
}

pub(super) fn cpu_capabilities(inspected: &mut Inspected<'_>) {
    let flags = inspected.inventory["cpu"]["flags"].as_array();
    let flags: Vec<&str> = flags
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (flag, capability) in CPU_CAPABILITIES {
        if flags.contains(&flag) {
            set_capability(&mut inspected.node, capability, Some("true"));
        }
    }
}

fn set(node: &mut Node, property: &str, value: Value) {
    let properties = &mut node.attributes.properties;
    properties.insert(property.to_owned(), value);
}

/// Sets a capability, or takes it away. They are kept in one text, `name:value,name:value`, or in an object where an operator
/// wrote one.
pub(super) fn set_capability(node: &mut Node, name: &str, value: Option<&str>) {
    let properties = &mut node.attributes.properties;
    match properties.get_mut("capabilities") {
        Some(Value::Object(capabilities)) => set_in_object(capabilities, name, value),
        other => {
            let text = other.as_deref().and_then(Value::as_str).unwrap_or_default();
            let mut pairs: Vec<String> = text
                .split(',')
                .map(str::trim)
                .filter(|pair| !pair.is_empty() && pair.split(':').next() != Some(name))
                .map(str::to_owned)
                .collect();
            pairs.extend(value.map(|value| format!("{name}:{value}")));
            let text = json!(pairs.join(","));
            properties.insert("capabilities".to_owned(), text);
        }
    }
}

fn set_in_object(capabilities: &mut Object, name: &str, value: Option<&str>) {
    match value {
        Some(value) => {
            capabilities.insert(name.to_owned(), json!(value));
        }
        None => {
            capabilities.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;

    #[test]
    fn capabilities_are_set_in_the_form_they_have() {
        let mut node = Node::enrolled(Default::default(), Default::default(), Timestamp(0));
        let shown = |node: &Node| node.attributes.properties["capabilities"].clone();
        set_capability(&mut node, "boot_mode", Some("bios"));
        assert_eq!(shown(&node), "boot_mode:bios");
        set_capability(&mut node, "cpu_vt", Some("true"));
        set_capability(&mut node, "boot_mode", Some("uefi"));
        assert_eq!(shown(&node), "cpu_vt:true,boot_mode:uefi");
        set_capability(&mut node, "cpu_vt", None);
        assert_eq!(shown(&node), "boot_mode:uefi");
        set(&mut node, "capabilities", json!({"a": "b"}));
        set_capability(&mut node, "c", Some("d"));
        set_capability(&mut node, "a", None);
        assert_eq!(shown(&node), json!({"c": "d"}));
    }
}
