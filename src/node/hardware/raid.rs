//! RAID as operators ask for it: the form of `target_raid_config`. Pure; the rules are those of the Bare Metal API.

use serde_json::{Map, Value, json};

use crate::node::internal_info::utc_text;
use crate::node::refused::Refused;
use crate::node::state::{Attributes, Node, Object};
use crate::node::values::bad;
use crate::timestamp::Timestamp;

/// The levels a logical disk can have.
const LEVELS: &[&str] = &["0", "1", "2", "5", "6", "1+0", "5+0", "6+0", "JBOD"];

/// What a property of a logical disk holds.
enum Kind {
    /// A size in GB, or `MAX`.
    Size,
    /// One of some words.
    Word(&'static [&'static str]),
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A number above 0.
    Number,
    /// The physical disks: their names, or what describes each.
    Disks,
}

struct Property {
    name: &'static str,
    kind: Kind,
    is_required: bool,
    what: &'static str,
}

const fn property(name: &'static str, kind: Kind, what: &'static str) -> Property {
    Property {
        name,
        kind,
        is_required: false,
        what,
    }
}

/// Everything that can be said of a logical disk.
const PROPERTIES: &[Property] = &[
    Property {
        is_required: true,
        ..property(
            "size_gb",
            Kind::Size,
            "Size of the logical disk in GiB, a whole number, or \"MAX\" for all that is left. Required.",
        )
    },
    Property {
        is_required: true,
        ..property(
            "raid_level",
            Kind::Word(LEVELS),
            "RAID level: 0, 1, 2, 5, 6, 1+0, 5+0, 6+0 or JBOD. Required.",
        )
    },
    property(
        "is_root_volume",
        Kind::Bool,
        "Whether the operating system goes onto this disk; true for one disk at most. Optional.",
    ),
    property(
        "share_physical_disks",
        Kind::Bool,
        "Whether its physical disks may hold other logical disks too. Optional, false unless said.",
    ),
    property(
        "volume_name",
        Kind::Text,
        "Name of the volume, unique within the node. Optional, chosen by the driver unless said.",
    ),
    property(
        "disk_type",
        Kind::Word(&["hdd", "ssd"]),
        "What its physical disks are: hdd or ssd. Optional.",
    ),
    property(
        "interface_type",
        Kind::Word(&["sata", "scsi", "sas"]),
        "How its physical disks are attached: sata, scsi or sas. Optional.",
    ),
    property(
        "number_of_physical_disks",
        Kind::Number,
        "How many physical disks it is made of. Optional, as many as the level needs unless said.",
    ),
    property(
        "controller",
        Kind::Text,
        "The RAID controller, as the driver or the ramdisk calls it; \"software\" for software RAID. Optional.",
    ),
    property(
        "physical_disks",
        Kind::Disks,
        "The physical disks it is made of: a list of their names, or of hints that describe each. Optional.",
    ),
];

/// What can be said of a logical disk, with a sentence each, as `.../raid/logical_disk_properties` tells it.
pub fn logical_disk_properties() -> Value {
    let told: Map<String, Value> = PROPERTIES
        .iter()
        .map(|property| (property.name.to_owned(), json!(property.what)))
        .collect();
    Value::Object(told)
}

/// Whether a node with these attributes can have a RAID.
///
/// # Errors
/// [`Refused::NotFound`], as the Bare Metal API has it for what a driver lacks of RAID.
pub fn check_interface(attributes: &Attributes) -> Result<(), Refused> {
    match attributes.interfaces.get("raid").map(String::as_str) {
        None | Some("no-raid") => Err(Refused::NotFound {
            what: "A RAID interface of the node (its raid_interface is no-raid)".to_owned(),
        }),
        Some(_) => Ok(()),
    }
}

/// Checks a RAID that is asked for; the empty one, which asks for none, is fine.
///
/// # Errors
/// [`Refused::BadValue`] naming the place.
pub fn check_target(target: &Object) -> Result<(), Refused> {
    if target.is_empty() {
        return Ok(());
    }
    if let Some(other) = target.keys().find(|key| *key != "logical_disks") {
        return Err(bad(
            other,
            "is not known; a RAID is described by logical_disks alone",
        ));
    }
    let disks = target
        .get("logical_disks")
        .and_then(Value::as_array)
        .filter(|disks| !disks.is_empty())
        .ok_or_else(|| {
            bad(
                "logical_disks",
                "must be a list of at least one logical disk",
            )
        })?;
    for (at, disk) in disks.iter().enumerate() {
        let place = format!("logical_disks/{at}");
        let disk = disk
            .as_object()
            .ok_or_else(|| bad(&place, "must be an object"))?;
        check_disk(&place, disk)?;
    }
    let is_root = |disk: &&Value| disk.get("is_root_volume") == Some(&Value::Bool(true));
    if disks.iter().filter(is_root).count() > 1 {
        return Err(bad(
            "logical_disks",
            "more than one logical disk has is_root_volume set; only one can have it",
        ));
    }
    Ok(())
}

/// Records what the agent says of a step of the `raid` interface that it has carried out: the RAID it made, or that there is none.
pub fn record_in_band(node: &mut Node, step: &str, result: &Value, now: Timestamp) {
    let made = ["clean_result", "deploy_result", "service_result"]
        .iter()
        .find_map(|key| result.get(key))
        .and_then(Value::as_object)
        .filter(|made| made.get("logical_disks").is_some_and(Value::is_array));
    node.hardware.raid_config = match (step, made) {
        ("create_configuration" | "apply_configuration", Some(made)) => {
            let mut config = made.clone();
            config.insert("last_updated".to_owned(), json!(utc_text(now)));
            config
        }
        ("delete_configuration", _) => Object::new(),
        _ => return,
    };
}

fn check_disk(place: &str, disk: &Object) -> Result<(), Refused> {
    for property in PROPERTIES.iter().filter(|property| property.is_required) {
        if !disk.contains_key(property.name) {
            return Err(bad(place, &format!("{} is missing", property.name)));
        }
    }
    for (key, value) in disk {
        let field = format!("{place}/{key}");
        let property = PROPERTIES
            .iter()
            .find(|property| property.name == key)
            .ok_or_else(|| bad(&field, "is not a property of a logical disk"))?;
        let problem = match property.kind {
            Kind::Size if value == "MAX" || is_positive(value) => continue,
            Kind::Size => "must be a whole number above 0, or \"MAX\"".to_owned(),
            Kind::Word(words) if words.iter().any(|word| value == word) => continue,
            Kind::Word(words) => format!("must be one of {}", words.join(", ")),
            Kind::Bool if value.is_boolean() => continue,
            Kind::Bool => "must be true or false".to_owned(),
            Kind::Text if value.is_string() => continue,
            Kind::Text => "must be a string".to_owned(),
            Kind::Number if is_positive(value) => continue,
            Kind::Number => "must be a whole number above 0".to_owned(),
            Kind::Disks if are_disks(value) => continue,
            Kind::Disks => "must be a list of names, or of objects".to_owned(),
        };
        return Err(bad(&field, &problem));
    }
    Ok(())
}

fn is_positive(value: &Value) -> bool {
    value.as_u64().is_some_and(|number| number > 0)
}

fn are_disks(value: &Value) -> bool {
    value.as_array().is_some_and(|disks| {
        !disks.is_empty()
            && (disks.iter().all(Value::is_string) || disks.iter().all(Value::is_object))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: Value) -> Result<(), Refused> {
        check_target(target.as_object().unwrap())
    }

    #[test]
    fn what_operators_ask_for_is_understood() {
        for target in [
            json!({}),
            json!({"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]}),
            json!({"logical_disks": [
                {"size_gb": 100, "raid_level": "1+0", "is_root_volume": true, "disk_type": "ssd",
                 "interface_type": "sas", "volume_name": "root", "number_of_physical_disks": 4,
                 "share_physical_disks": false},
                {"size_gb": "MAX", "raid_level": "0", "controller": "software", "is_root_volume": false,
                 "physical_disks": [{"size": "> 100"}, {"size": "> 100"}]},
                {"size_gb": 1, "raid_level": "JBOD", "physical_disks": ["1I:1:1"]},
            ]}),
        ] {
            assert_eq!(check(target.clone()), Ok(()), "{target}");
        }
    }

    #[test]
    fn every_fault_is_named() {
        let with = |key: &str, value: Value| {
            let mut disk = json!({"size_gb": 10, "raid_level": "1"});
            disk[key] = value;
            json!({"logical_disks": [disk]})
        };
        for (target, field) in [
            (json!({"disks": []}), "disks"),
            (json!({"logical_disks": []}), "logical_disks"),
            (json!({"logical_disks": {}}), "logical_disks"),
            (json!({"logical_disks": [1]}), "logical_disks/0"),
            (
                json!({"logical_disks": [{"size_gb": 10}]}),
                "logical_disks/0",
            ),
            (
                json!({"logical_disks": [{"raid_level": "1"}]}),
                "logical_disks/0",
            ),
            (with("size_gb", json!(0)), "logical_disks/0/size_gb"),
            (with("size_gb", json!(-1)), "logical_disks/0/size_gb"),
            (with("size_gb", json!("big")), "logical_disks/0/size_gb"),
            (with("raid_level", json!("7")), "logical_disks/0/raid_level"),
            (with("raid_level", json!(1)), "logical_disks/0/raid_level"),
            (
                with("is_root_volume", json!("yes")),
                "logical_disks/0/is_root_volume",
            ),
            (
                with("disk_type", json!("tape")),
                "logical_disks/0/disk_type",
            ),
            (with("volume_name", json!(7)), "logical_disks/0/volume_name"),
            (
                with("number_of_physical_disks", json!(0)),
                "logical_disks/0/number_of_physical_disks",
            ),
            (
                with("physical_disks", json!([])),
                "logical_disks/0/physical_disks",
            ),
            (
                with("physical_disks", json!(["a", {}])),
                "logical_disks/0/physical_disks",
            ),
            (with("colour", json!("red")), "logical_disks/0/colour"),
            (
                json!({"logical_disks": [
                    {"size_gb": 1, "raid_level": "1", "is_root_volume": true},
                    {"size_gb": 1, "raid_level": "1", "is_root_volume": true},
                ]}),
                "logical_disks",
            ),
        ] {
            match check(target.clone()) {
                Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field, "{target}"),
                other => panic!("{target}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_the_agent_made_is_recorded() {
        let mut node = Node::enrolled(
            crate::node::NodeId::default(),
            Attributes::default(),
            Timestamp(0),
        );
        let result = json!({"clean_result": {"logical_disks": [{"raid_level": "1"}]}});
        let now = Timestamp(1_000);
        record_in_band(&mut node, "create_configuration", &result, now);
        let made = node.hardware.raid_config.clone();
        assert_eq!(made["logical_disks"], json!([{"raid_level": "1"}]));
        assert_eq!(made["last_updated"], "1970-01-01T00:00:01.000000");
        for (step, result) in [
            ("create_configuration", json!({"clean_result": null})),
            (
                "create_configuration",
                json!({"clean_result": {"logical_disks": 7}}),
            ),
            ("validate", result),
        ] {
            record_in_band(&mut node, step, &result, now);
            assert_eq!(node.hardware.raid_config, made, "{step} {result}");
        }
        record_in_band(&mut node, "delete_configuration", &Value::Null, now);
        assert!(node.hardware.is_default());
    }

    #[test]
    fn every_property_is_told() {
        let told = logical_disk_properties();
        assert_eq!(told.as_object().unwrap().len(), PROPERTIES.len());
        assert!(told["size_gb"].as_str().unwrap().contains("MAX"));
    }
}
