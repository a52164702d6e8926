//! The BIOS settings of the machines of `fake-hardware`: a small registry as a BMC would tell it, and what a node's values are.
//! Pure.

use serde_json::Value;

use super::recorded::BiosChange;
use crate::node::state::{Node, Object};

/// What a setting can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// One of some words.
    Enumeration(&'static [&'static str]),
    /// A whole number from a lowest to a highest.
    Integer(i64, i64),
    /// Text of a least and a greatest length.
    Text(usize, usize),
}

/// One setting of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The value a machine comes with.
    pub factory_value: &'static str,
    /// What it can hold.
    pub kind: SettingKind,
    /// Can't be changed.
    pub read_only: bool,
    /// Takes effect at the next boot only.
    pub reset_required: bool,
    /// Differs from machine to machine.
    pub unique: bool,
}

const SWITCH: SettingKind = SettingKind::Enumeration(&["Enabled", "Disabled"]);

const fn setting(name: &'static str, factory_value: &'static str, kind: SettingKind) -> Setting {
    Setting {
        name,
        factory_value,
        kind,
        read_only: false,
        reset_required: true,
        unique: false,
    }
}

/// Every setting of a fake machine, by name.
pub const REGISTRY: &[Setting] = &[
    Setting {
        unique: true,
        reset_required: false,
        ..setting("AssetTag", "", SettingKind::Text(0, 63))
    },
    setting("BootRetryDelay", "30", SettingKind::Integer(0, 600)),
    setting("LogicalProc", "Enabled", SWITCH),
    setting("NumLock", "On", SettingKind::Enumeration(&["On", "Off"])),
    setting("ProcTurboMode", "Enabled", SWITCH),
    setting("ProcVirtualization", "Enabled", SWITCH),
    setting("SriovGlobalEnable", "Disabled", SWITCH),
    setting(
        "SysProfile",
        "Balanced",
        SettingKind::Enumeration(&["Balanced", "Performance", "PowerSaving"]),
    ),
    Setting {
        read_only: true,
        ..setting("SystemModelName", "Fake", SettingKind::Text(0, 32))
    },
];

impl SettingKind {
    /// The name the API has for it.
    pub fn name(self) -> &'static str {
        match self {
            SettingKind::Enumeration(_) => "Enumeration",
            SettingKind::Integer(..) => "Integer",
            SettingKind::Text(..) => "String",
        }
    }
}

/// A setting with the value it has on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingOfNode<'a> {
    /// The setting.
    pub setting: &'static Setting,
    /// What was changed, if anything was.
    pub change: Option<&'a BiosChange>,
}

/// The settings of a node, by name. Empty while its machine was never reached, and for machines whose BIOS can't be read.
pub fn settings(node: &Node) -> Vec<SettingOfNode<'_>> {
    if !super::uses(&node.attributes, "bios", "fake") || node.power.state.is_none() {
        return Vec::new();
    }
    REGISTRY
        .iter()
        .map(|setting| SettingOfNode {
            setting,
            change: node.hardware.bios_changes.get(setting.name),
        })
        .collect()
}

/// The settings that the arguments of `bios.apply_configuration` ask for: `[{"name": ..., "value": ...}]`.
///
/// # Errors
/// What is wrong with them, in words for an operator.
pub fn wanted(args: &Object) -> Result<Vec<(&'static Setting, String)>, String> {
    let list = super::steps::list_argument(args, "settings")?;
    let mut wanted = Vec::new();
    for item in list {
        let name = item.get("name").and_then(Value::as_str).ok_or(
            "each of the settings needs a \"name\" and a \"value\", for example {\"name\": \"NumLock\", \"value\": \"On\"}",
        )?;
        let value = match item.get("value") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(is_true)) => is_true.to_string(),
            _ => {
                return Err(format!(
                    "the setting {name} needs a value of text, number or true/false"
                ));
            }
        };
        let setting = REGISTRY
            .iter()
            .find(|setting| setting.name == name)
            .ok_or_else(|| format!("the machine has no BIOS setting {name:?}"))?;
        check(setting, &value)?;
        wanted.push((setting, value));
    }
    Ok(wanted)
}

fn check(setting: &Setting, value: &str) -> Result<(), String> {
    let name = setting.name;
    if setting.read_only {
        return Err(format!("the BIOS setting {name} can't be changed"));
    }
    match setting.kind {
        SettingKind::Enumeration(words) if !words.contains(&value) => Err(format!(
            "the BIOS setting {name} can't be {value:?}; it is one of {}",
            words.join(", ")
        )),
        SettingKind::Integer(lowest, highest)
            if !value
                .parse()
                .is_ok_and(|number: i64| (lowest..=highest).contains(&number)) =>
        {
            Err(format!(
                "the BIOS setting {name} can't be {value:?}; it is a number from {lowest} to {highest}"
            ))
        }
        SettingKind::Text(shortest, longest)
            if !(shortest..=longest).contains(&value.chars().count()) =>
        {
            Err(format!(
                "the BIOS setting {name} has {shortest} to {longest} characters"
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted_by(settings: Value) -> Result<Vec<(&'static Setting, String)>, String> {
        wanted(json!({"settings": settings}).as_object().unwrap())
    }

    #[test]
    fn the_registry_is_in_order_and_its_factory_values_fit() {
        assert!(REGISTRY.is_sorted_by_key(|setting| setting.name));
        for setting in REGISTRY.iter().filter(|setting| !setting.read_only) {
            assert_eq!(check(setting, setting.factory_value), Ok(()), "{setting:?}");
        }
    }

    #[test]
    fn values_are_taken_as_text() {
        let taken = wanted_by(json!([
            {"name": "NumLock", "value": "Off"}, {"name": "BootRetryDelay", "value": 5}
        ]))
        .unwrap();
        let values: Vec<&str> = taken.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["Off", "5"]);
    }

    #[test]
    fn what_a_machine_would_not_take_is_named() {
        for (settings, word) in [
            (json!("x"), "list"),
            (json!([]), "empty"),
            (json!([{"value": "On"}]), "name"),
            (json!([{"name": "NumLock"}]), "NumLock"),
            (json!([{"name": "NumLock", "value": null}]), "NumLock"),
            (json!([{"name": "NumLock", "value": "Maybe"}]), "On, Off"),
            (json!([{"name": "Turbo", "value": "On"}]), "Turbo"),
            (json!([{"name": "BootRetryDelay", "value": "601"}]), "600"),
            (json!([{"name": "BootRetryDelay", "value": "soon"}]), "600"),
            (json!([{"name": "AssetTag", "value": "x".repeat(64)}]), "63"),
            (
                json!([{"name": "SystemModelName", "value": "x"}]),
                "can't be changed",
            ),
        ] {
            let told = wanted_by(settings.clone()).unwrap_err();
            assert!(told.contains(word), "{settings}: {told}");
        }
    }
}
