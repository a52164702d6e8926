//! What operators may set on a node: one table of fields, and the rules for each kind of value.
//!
//! Pure. `http::nodes` reads a new node's document with [`parse_new`]; `update` applies patches field by field with [`checked`].
//! Nothing here looks at a node's state; the rules about that stand in `update`.

use serde_json::{Map, Value};

use super::boot_options;
use super::hardware::{self, HardwareType};
use super::refused::Refused;
use super::state::{Attributes, NodeId, Object};

pub use super::values::{bad, boolean, is_name, mac_address, object_of, optional_uuid, text_of};

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Name of the node.
    Name,
    /// Name of a hardware type.
    Driver,
    /// A JSON object.
    Object,
    /// The object that says what the machine is; some of its numbers are checked.
    Properties,
    /// The object with links, networks and services.
    NetworkData,
    /// A UUID.
    Uuid,
    /// Text of at most so many characters.
    Text(usize),
    /// A text in lower case.
    Group,
    /// True or false, or one of the words clients use for them.
    Bool,
    /// `bios` or `uefi`.
    BootMode,
    /// The implementation of one kind of hardware interface.
    Interface,
}

/// One field of a node that operators can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// As spelled on the wire.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Can be given for a new node.
    pub creatable: bool,
    /// Can be changed by a patch.
    pub patchable: bool,
    /// The microversion it is there since, the minor number.
    pub since: u16,
    /// Can be null; where not, a removed value becomes the empty one of its kind.
    pub nullable: bool,
}

const CREATE: bool = true;
const PATCH: bool = true;
const NULL: bool = true;
const NOT: bool = false;

const fn field(
    name: &'static str,
    kind: Kind,
    creatable: bool,
    patchable: bool,
    since: u16,
    nullable: bool,
) -> Field {
    Field {
        name,
        kind,
        creatable,
        patchable,
        since,
        nullable,
    }
}

impl Field {
    /// What it holds where nothing was set; none for what is never empty.
    pub fn empty(&self) -> Option<Value> {
        match self.kind {
            _ if self.nullable => Some(Value::Null),
            Kind::Object | Kind::Properties | Kind::NetworkData => Some(Value::Object(Map::new())),
            Kind::Group => Some(Value::String(String::new())),
            Kind::Bool => Some(Value::Bool(false)),
            Kind::Name
            | Kind::Driver
            | Kind::Uuid
            | Kind::Text(_)
            | Kind::BootMode
            | Kind::Interface => None,
        }
    }
}

/// Every field operators can set. A new node's `uuid` and a port's fields are not in it.
pub const FIELDS: &[Field] = &[
    field("name", Kind::Name, CREATE, PATCH, 5, NULL),
    field("driver", Kind::Driver, CREATE, PATCH, 1, NOT),
    field("driver_info", Kind::Object, CREATE, PATCH, 1, NOT),
    field("properties", Kind::Properties, CREATE, PATCH, 1, NOT),
    field("extra", Kind::Object, CREATE, PATCH, 1, NOT),
    field("instance_info", Kind::Object, CREATE, PATCH, 1, NOT),
    field("instance_uuid", Kind::Uuid, CREATE, PATCH, 1, NULL),
    field("instance_name", Kind::Text(255), CREATE, PATCH, 104, NULL),
    field("chassis_uuid", Kind::Uuid, CREATE, PATCH, 1, NULL),
    field("resource_class", Kind::Text(80), CREATE, PATCH, 21, NULL),
    field("conductor_group", Kind::Group, CREATE, PATCH, 46, NOT),
    field("automated_clean", Kind::Bool, CREATE, PATCH, 47, NULL),
    field("owner", Kind::Text(255), CREATE, PATCH, 50, NULL),
    field("lessee", Kind::Text(255), CREATE, PATCH, 65, NULL),
    field("description", Kind::Text(4096), CREATE, PATCH, 51, NULL),
    field("maintenance", Kind::Bool, CREATE, PATCH, 1, NOT),
    field("network_data", Kind::NetworkData, CREATE, PATCH, 66, NOT),
    field("protected", Kind::Bool, NOT, PATCH, 48, NOT),
    field("protected_reason", Kind::Text(4096), NOT, PATCH, 48, NULL),
    field("retired", Kind::Bool, CREATE, PATCH, 61, NOT),
    field("retired_reason", Kind::Text(4096), CREATE, PATCH, 61, NULL),
    field("shard", Kind::Text(255), CREATE, PATCH, 82, NULL),
    field("parent_node", Kind::Uuid, CREATE, PATCH, 83, NULL),
    field("disable_power_off", Kind::Bool, CREATE, PATCH, 95, NOT),
    field("boot_mode", Kind::BootMode, CREATE, NOT, 75, NULL),
    field("secure_boot", Kind::Bool, CREATE, NOT, 75, NULL),
    field("console_enabled", Kind::Bool, CREATE, NOT, 1, NOT),
    field("bios_interface", Kind::Interface, CREATE, PATCH, 40, NOT),
    field("boot_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field("console_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field("deploy_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field(
        "firmware_interface",
        Kind::Interface,
        CREATE,
        PATCH,
        86,
        NOT,
    ),
    field("inspect_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field(
        "management_interface",
        Kind::Interface,
        CREATE,
        PATCH,
        31,
        NOT,
    ),
    field("network_interface", Kind::Interface, CREATE, PATCH, 20, NOT),
    field("power_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field("raid_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
    field("rescue_interface", Kind::Interface, CREATE, PATCH, 38, NOT),
    field("storage_interface", Kind::Interface, CREATE, PATCH, 33, NOT),
    field("vendor_interface", Kind::Interface, CREATE, PATCH, 31, NOT),
];

/// The field called `name`.
pub fn field_named(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// What a document says of a new node.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    /// The UUID it asks for.
    pub id: Option<NodeId>,
    /// What is set, with the driver's defaults for the interfaces.
    pub attributes: Attributes,
    /// Whether it begins in maintenance.
    pub maintenance: bool,
}

/// The first field of the document that is younger than `microversion`, and since when it is there.
pub fn too_new(document: &Object, microversion: u16) -> Option<(&'static str, u16)> {
    FIELDS
        .iter()
        .find(|field| document.contains_key(field.name) && field.since > microversion)
        .map(|field| (field.name, field.since))
}

/// Reads the document of a new node.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn parse_new(document: &Object, microversion: u16) -> Result<NewNode, Refused> {
    if let Some((name, since)) = too_new(document, microversion) {
        return Err(bad(name, &format!("needs version 1.{since} or newer")));
    }
    let mut id = None;
    let mut set = Map::new();
    for (key, value) in document {
        if key == "uuid" {
            id = optional_uuid(key, value)?.map(NodeId);
            continue;
        }
        match field_named(key) {
            Some(field) if field.creatable => {
                // Null for a new node says "not given", whatever the field.
                if !value.is_null() {
                    set.insert(key.clone(), checked(field, value)?);
                }
            }
            Some(_) => {
                return Err(bad(
                    key,
                    "can't be set while the node is created; patch it afterwards",
                ));
            }
            None => return Err(bad(key, "is not a field of a node that can be set")),
        }
    }
    if set.remove("console_enabled") == Some(Value::Bool(true)) {
        return Err(bad(
            "console_enabled",
            "is switched on after the node was created, with a PUT to its states/console; leave it out",
        ));
    }
    let maintenance = set.remove("maintenance") == Some(Value::Bool(true));
    if set.contains_key("retired_reason") && set.get("retired") != Some(&Value::Bool(true)) {
        return Err(bad(
            "retired_reason",
            "can be set only together with retired",
        ));
    }
    let Some(driver) = set.get("driver").and_then(Value::as_str) else {
        return Err(bad(
            "driver",
            &format!("is missing; name one of {}", driver_names()),
        ));
    };
    let hardware_type = known_driver(driver)?;
    let mut attributes = from_document(&Attributes::default(), set)?;
    fill_interfaces(&mut attributes, hardware_type)?;
    name_instance(&mut attributes);
    Ok(NewNode {
        id,
        attributes,
        maintenance,
    })
}

/// A value in the form it is stored in. Null stays null for fields that can be null, and becomes the empty value otherwise where
/// there is one.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn checked(field: &Field, value: &Value) -> Result<Value, Refused> {
    let name = field.name;
    if value.is_null() {
        return match field.empty() {
            Some(Value::Bool(_)) | None => Err(bad(name, "can't be null")),
            Some(empty) => Ok(empty),
        };
    }
    match field.kind {
        Kind::Name => {
            let text = text_of(name, value, 255)?;
            if !is_name(text) {
                return Err(bad(
                    name,
                    "a name is made of letters, digits and - . _ ~ only, is no UUID, and none of the words that paths use",
                ));
            }
        }
        Kind::Driver => {
            known_driver(text_of(name, value, 255)?)?;
        }
        Kind::Object => {
            boot_options::check(name, object_of(name, value)?)?;
        }
        Kind::Properties => {
            check_properties(object_of(name, value)?)?;
        }
        Kind::NetworkData => {
            check_network_data(object_of(name, value)?)?;
        }
        Kind::Uuid => {
            if let Some(id) = optional_uuid(name, value)? {
                return Ok(Value::String(id.to_string()));
            }
        }
        Kind::Text(characters_max) => {
            text_of(name, value, characters_max)?;
        }
        Kind::Group => {
            let text = text_of(name, value, 255)?.to_lowercase();
            if !text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            {
                return Err(bad(name, "is made of letters, digits and - . _ only"));
            }
            return Ok(Value::String(text));
        }
        Kind::Bool => {
            let Some(is_true) = boolean(value) else {
                return Err(bad(name, "must be true or false"));
            };
            return Ok(Value::Bool(is_true));
        }
        Kind::BootMode => {
            let text = text_of(name, value, 255)?;
            if text != "bios" && text != "uefi" {
                return Err(bad(name, "must be bios or uefi"));
            }
        }
        Kind::Interface => {
            text_of(name, value, 255)?;
        }
    }
    Ok(value.clone())
}

/// The attributes with some fields set to checked values.
///
/// # Errors
/// [`Refused::BadValue`] for a value that was not checked before.
pub fn from_document(base: &Attributes, set: Object) -> Result<Attributes, Refused> {
    let Ok(Value::Object(mut whole)) = serde_json::to_value(base) else {
        return Err(bad("node", "its attributes can't be written as JSON"));
    };
    let mut interfaces = base.interfaces.clone();
    for (name, value) in set {
        match (name.strip_suffix("_interface"), value) {
            (Some(kind), Value::String(implementation)) => {
                interfaces.insert(kind.to_owned(), implementation);
            }
            (Some(kind), _) => {
                interfaces.remove(kind);
            }
            // Null brings back the default of the field.
            (None, value) => {
                whole.insert(name, value);
            }
        }
    }
    let mut attributes: Attributes = serde_json::from_value(Value::Object(whole))
        .map_err(|_| bad("node", "has a value of the wrong type"))?;
    attributes.interfaces = interfaces;
    Ok(attributes)
}

/// The attribute called `name`, if it is an object.
pub fn object_named<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a Object> {
    match name {
        "driver_info" => Some(&attributes.driver_info),
        "properties" => Some(&attributes.properties),
        "extra" => Some(&attributes.extra),
        "instance_info" => Some(&attributes.instance_info),
        "network_data" => Some(&attributes.network_data),
        _ => None,
    }
}

/// Gives every interface that is not set the driver's default, and checks those that are.
///
/// # Errors
/// [`Refused::BadValue`] for an interface the driver doesn't have.
pub fn fill_interfaces(
    attributes: &mut Attributes,
    hardware_type: &HardwareType,
) -> Result<(), Refused> {
    for interface in hardware_type.interfaces {
        let chosen = attributes
            .interfaces
            .entry(interface.kind.to_owned())
            .or_insert_with(|| interface.default.to_owned());
        if !interface.enabled.contains(&chosen.as_str()) {
            return Err(bad(
                &format!("{}_interface", interface.kind),
                &format!(
                    "{chosen:?} is not supported by the driver {}; use one of {}",
                    hardware_type.name,
                    interface.enabled.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

/// An instance without a name takes the one its image settings show.
pub fn name_instance(attributes: &mut Attributes) {
    if attributes.instance_name.is_none()
        && let Some(Value::String(name)) = attributes.instance_info.get("display_name")
        && name.chars().count() <= 255
    {
        attributes.instance_name = Some(name.clone());
    }
}

/// As [`name_instance`], for a patch: a name that was there before and is gone now was removed on purpose.
pub fn name_instance_unless_removed(attributes: &mut Attributes, before: &Attributes) {
    let shown = |of: &Attributes| of.instance_info.get("display_name").cloned();
    if before.instance_name.is_none() && shown(attributes) != shown(before) {
        name_instance(attributes);
    }
}

/// The hardware type called `name`.
///
/// # Errors
/// [`Refused::BadValue`] naming those there are.
pub fn known_driver(name: &str) -> Result<&'static HardwareType, Refused> {
    hardware::hardware_type(name).ok_or_else(|| {
        bad(
            "driver",
            &format!(
                "no valid host was found: no conductor serves the driver {name:?}; use one of {}",
                driver_names()
            ),
        )
    })
}

fn check_properties(properties: &Object) -> Result<(), Refused> {
    for name in ["cpus", "local_gb", "memory_mb"] {
        let is_right = match properties.get(name) {
            None | Some(Value::Null) => true,
            Some(Value::Number(number)) => number.as_u64().is_some(),
            Some(Value::String(text)) => text.is_empty() || text.parse::<u64>().is_ok(),
            Some(_) => false,
        };
        if !is_right {
            return Err(bad(
                &format!("properties/{name}"),
                "must be a whole number that is not negative",
            ));
        }
    }
    Ok(())
}

fn check_network_data(data: &Object) -> Result<(), Refused> {
    for (key, value) in data {
        let field = format!("network_data/{key}");
        if !["links", "networks", "services"].contains(&key.as_str()) {
            return Err(bad(&field, "only links, networks and services are known"));
        }
        let is_right = value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_object));
        if !is_right {
            return Err(bad(&field, "must be a list of objects"));
        }
    }
    Ok(())
}

fn driver_names() -> String {
    let names: Vec<&str> = hardware::HARDWARE_TYPES
        .iter()
        .map(|known| known.name)
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(document: Value) -> Result<NewNode, Refused> {
        parse_new(document.as_object().unwrap(), 110)
    }

    fn field_refused(document: Value) -> String {
        match parse(document.clone()) {
            Err(Refused::BadValue { field, .. }) => field,
            other => panic!("{document}: {other:?}"),
        }
    }

    #[test]
    fn a_small_node_gets_its_drivers_defaults() {
        let new = parse(json!({"driver": "fake-hardware"})).unwrap();
        assert_eq!(new.attributes.interfaces.len(), 13);
        assert_eq!(new.attributes.interfaces["deploy"], "direct");
        assert_eq!(new.id, None);
        assert!(!new.maintenance);
    }

    #[test]
    fn values_are_stored_in_one_spelling() {
        let new = parse(json!({
            "driver": "manual-management", "name": "ns~a.b-c_1", "conductor_group": "RACK-1",
            "automated_clean": "False", "disable_power_off": "YES", "maintenance": "true",
            "uuid": "6523B921-218D-4849-A3BB-3AB765C2FCDC",
            "instance_uuid": "6523B921218D4849A3BB3AB765C2FCDD",
            "properties": {"cpus": "4", "memory_mb": 1024}, "driver_info": null,
            "instance_info": {"display_name": "web"}, "boot_interface": "pxe",
        }))
        .unwrap();
        let attributes = new.attributes;
        assert_eq!(
            new.id.unwrap().to_string(),
            "6523b921-218d-4849-a3bb-3ab765c2fcdc"
        );
        assert_eq!(
            attributes.instance_uuid.as_deref(),
            Some("6523b921-218d-4849-a3bb-3ab765c2fcdd")
        );
        assert_eq!(attributes.conductor_group, "rack-1");
        assert_eq!(attributes.automated_clean, Some(false));
        assert_eq!(attributes.instance_name.as_deref(), Some("web"));
        assert!(attributes.disable_power_off && new.maintenance);
    }

    #[test]
    fn every_bad_value_is_named() {
        let cases = [
            (json!({}), "driver"),
            (json!({"driver": null}), "driver"),
            (json!({"driver": "ipmi"}), "driver"),
            (json!({"driver": 5}), "driver"),
            (json!({"driver": "fake-hardware", "colour": 1}), "colour"),
            (
                json!({"driver": "fake-hardware", "provision_state": "active"}),
                "provision_state",
            ),
            (
                json!({"driver": "fake-hardware", "protected": true}),
                "protected",
            ),
            (json!({"driver": "fake-hardware", "name": "a b"}), "name"),
            (json!({"driver": "fake-hardware", "name": "states"}), "name"),
            (
                json!({"driver": "fake-hardware", "name": "6523b921-218d-4849-a3bb-3ab765c2fcdc"}),
                "name",
            ),
            (json!({"driver": "fake-hardware", "name": ""}), "name"),
            (json!({"driver": "fake-hardware", "uuid": "x"}), "uuid"),
            (json!({"driver": "fake-hardware", "uuid": 7}), "uuid"),
            (
                json!({"driver": "fake-hardware", "instance_uuid": "x"}),
                "instance_uuid",
            ),
            (json!({"driver": "fake-hardware", "extra": []}), "extra"),
            (
                json!({"driver": "fake-hardware", "properties": {"cpus": -1}}),
                "properties/cpus",
            ),
            (
                json!({"driver": "fake-hardware", "properties": {"local_gb": "x"}}),
                "properties/local_gb",
            ),
            (
                json!({"driver": "fake-hardware", "network_data": {"links": {}}}),
                "network_data/links",
            ),
            (
                json!({"driver": "fake-hardware", "description": "x".repeat(4097)}),
                "description",
            ),
            (
                json!({"driver": "fake-hardware", "resource_class": "x".repeat(81)}),
                "resource_class",
            ),
            (
                json!({"driver": "fake-hardware", "automated_clean": "maybe"}),
                "automated_clean",
            ),
            (
                json!({"driver": "fake-hardware", "boot_interface": "ilo-ipxe"}),
                "boot_interface",
            ),
            (
                json!({"driver": "fake-hardware", "boot_mode": "floppy"}),
                "boot_mode",
            ),
            (
                json!({"driver": "fake-hardware", "chassis_uuid": "a box"}),
                "chassis_uuid",
            ),
            (
                json!({"driver": "fake-hardware", "console_enabled": true}),
                "console_enabled",
            ),
            (
                json!({"driver": "fake-hardware", "retired_reason": "old"}),
                "retired_reason",
            ),
        ];
        for (document, field) in cases {
            assert_eq!(field_refused(document), field);
        }
    }

    #[test]
    fn a_field_younger_than_the_request_is_found() {
        let document = json!({"driver": "fake-hardware", "owner": "me"});
        let document = document.as_object().unwrap();
        assert_eq!(too_new(document, 49), Some(("owner", 50)));
        assert_eq!(too_new(document, 50), None);
        assert!(parse_new(document, 49).is_err());
    }
}
