//! What clients see of nodes, ports and the rest: one table of fields per resource, in the order of the API's documents.
//!
//! Pure. Each field knows since which microversion it is there; younger ones are left out. Secrets are masked here, and nowhere
//! after.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::error::Error;
use super::microversion::Microversion;
use super::reply::Document;
use crate::node::internal_info::{current_step, driver_internal_info};
use crate::node::masking::{masked, masked_instance_info};
use crate::node::steps::StepsOf;
use crate::node::{Node, NodeId, PowerState, ProvisionState};
use crate::store::PortOfNode;
use crate::timestamp::Timestamp;

/// What a view needs besides the thing itself.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// Scheme and host for links.
    pub base: &'a str,
    /// Which fields are old enough.
    pub microversion: Microversion,
    /// The conductor's name.
    pub conductor: &'a str,
}

/// One field of a resource.
pub struct Shown<T: 'static> {
    /// As spelled on the wire.
    pub name: &'static str,
    /// Since when it is there.
    pub since: u16,
    /// Part of the short form that lists show.
    pub is_short: bool,
    /// Can be asked for by `fields`.
    pub can_be_asked: bool,
    /// Its value.
    pub value: fn(&T, Frame<'_>) -> Value,
}

/// Which fields to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    Full,
    /// Those of lists.
    Short,
    /// Those that were asked for, and the links.
    Asked(BTreeSet<String>),
}

/// The fields of a resource as a document.
pub fn document<T>(
    fields: &[Shown<T>],
    item: &T,
    selection: &Selection,
    frame: Frame<'_>,
) -> Document {
    let mut document = Document::default();
    for field in wanted(fields, selection, frame.microversion) {
        document.put(field.name, (field.value)(item, frame));
    }
    document
}

/// The fields that are to be shown, in their order.
pub fn wanted<'a, T>(
    fields: &'a [Shown<T>],
    selection: &'a Selection,
    microversion: Microversion,
) -> impl Iterator<Item = &'a Shown<T>> {
    fields.iter().filter(move |field| {
        let is_wanted = match selection {
            Selection::Full => true,
            Selection::Short => field.is_short,
            Selection::Asked(names) => field.name == "links" || names.contains(field.name),
        };
        is_wanted && field.since <= microversion.0
    })
}

/// The fields a request asks for, as a comma-separated list.
///
/// # Errors
/// [`Error::Bad`] for unknown ones, [`Error::TooNew`] for those younger than the request.
pub fn asked<T>(
    fields: &[Shown<T>],
    list: &str,
    microversion: Microversion,
) -> Result<Selection, Error> {
    let mut names = BTreeSet::new();
    let mut unknown = Vec::new();
    for name in list
        .split(',')
        .map(|name| name.trim().to_lowercase())
        .filter(|name| !name.is_empty())
    {
        match fields
            .iter()
            .find(|field| field.name == name && field.can_be_asked)
        {
            Some(field) if field.since > microversion.0 => {
                return Err(Error::TooNew {
                    what: format!("field {name}"),
                    since: field.since,
                });
            }
            Some(_) => {
                names.insert(name);
            }
            None => unknown.push(name),
        }
    }
    if !unknown.is_empty() {
        return Err(Error::Bad(format!(
            "Field(s) \"{}\" are not valid",
            unknown.join(", ")
        )));
    }
    if names.is_empty() {
        return Err(Error::Bad("fields: name at least one field.".to_owned()));
    }
    Ok(Selection::Asked(names))
}

/// A field that is there since 1.`since`.
pub const fn shown<T>(
    name: &'static str,
    since: u16,
    value: fn(&T, Frame<'_>) -> Value,
) -> Shown<T> {
    Shown {
        name,
        since,
        is_short: false,
        can_be_asked: true,
        value,
    }
}

/// As part of the short form too.
pub const fn short<T>(mut field: Shown<T>) -> Shown<T> {
    field.is_short = true;
    field
}

/// A field that can't be asked for by itself.
pub const fn unasked<T>(mut field: Shown<T>) -> Shown<T> {
    field.can_be_asked = false;
    field
}

macro_rules! attribute {
    ($name:ident, $since:literal) => {
        shown(stringify!($name), $since, |node: &Node, _| {
            json!(node.attributes.$name)
        })
    };
}

macro_rules! interface {
    ($name:literal, $kind:literal, $since:literal) => {
        shown($name, $since, |node: &Node, _| {
            json!(node.attributes.interfaces.get($kind))
        })
    };
}

macro_rules! nothing {
    ($name:literal, $since:literal, $value:expr) => {
        shown($name, $since, |_: &Node, _| $value)
    };
}

/// The fields of a node.
pub const NODE_FIELDS: &[Shown<Node>] = &[
    short(shown("uuid", 1, |node: &Node, _| {
        json!(node.id.to_string())
    })),
    unasked(shown("created_at", 1, |node: &Node, _| {
        time(Some(node.created_at))
    })),
    unasked(shown("updated_at", 1, |node: &Node, _| {
        time(node.updated_at)
    })),
    attribute!(automated_clean, 47),
    interface!("bios_interface", "bios", 40),
    interface!("boot_interface", "boot", 31),
    attribute!(boot_mode, 75),
    shown("clean_step", 7, |node: &Node, _| {
        current_step(node, StepsOf::Clean)
    }),
    attribute!(conductor_group, 46),
    interface!("console_interface", "console", 31),
    shown("console_enabled", 1, |node: &Node, _| {
        json!(node.hardware.console_enabled)
    }),
    interface!("deploy_interface", "deploy", 31),
    attribute!(disable_power_off, 95),
    shown("deploy_step", 44, |node: &Node, _| {
        current_step(node, StepsOf::Deploy)
    }),
    attribute!(description, 51),
    attribute!(driver, 1),
    shown("driver_info", 1, |node: &Node, _| {
        Value::Object(masked(&node.attributes.driver_info))
    }),
    shown("driver_internal_info", 3, |node: &Node, _| {
        Value::Object(driver_internal_info(node))
    }),
    attribute!(extra, 1),
    shown("fault", 42, |node: &Node, _| {
        json!(node.maintenance.as_ref().and_then(|set| set.fault.as_ref()))
    }),
    interface!("firmware_interface", "firmware", 86),
    nothing!("health", 109, Value::Null),
    interface!("inspect_interface", "inspect", 31),
    shown("inspection_finished_at", 6, |node: &Node, _| {
        time(node.inspection.finished_at)
    }),
    shown("inspection_started_at", 6, |node: &Node, _| {
        time(node.inspection.started_at)
    }),
    shown("instance_info", 1, |node: &Node, _| {
        Value::Object(masked_instance_info(&node.attributes.instance_info))
    }),
    attribute!(instance_name, 104),
    short(attribute!(instance_uuid, 1)),
    shown("last_error", 1, |node: &Node, _| json!(node.last_error)),
    attribute!(lessee, 65),
    short(shown("maintenance", 1, |node: &Node, _| {
        json!(node.maintenance.is_some())
    })),
    shown("maintenance_reason", 1, |node: &Node, _| {
        json!(
            node.maintenance
                .as_ref()
                .and_then(|set| set.reason.as_ref())
        )
    }),
    interface!("management_interface", "management", 31),
    short(attribute!(name, 5)),
    attribute!(network_data, 66),
    interface!("network_interface", "network", 20),
    attribute!(owner, 50),
    attribute!(parent_node, 83),
    interface!("power_interface", "power", 31),
    short(shown("power_state", 1, |node: &Node, _| {
        power(node.power.state)
    })),
    attribute!(properties, 1),
    attribute!(protected, 48),
    attribute!(protected_reason, 48),
    short(shown("provision_state", 1, |node: &Node, frame| {
        provision_state(node.provision_state(), frame.microversion)
    })),
    shown("provision_updated_at", 1, |node: &Node, _| {
        time(node.provision_updated_at)
    }),
    shown("raid_config", 12, |node: &Node, _| {
        json!(node.hardware.raid_config)
    }),
    interface!("raid_interface", "raid", 31),
    interface!("rescue_interface", "rescue", 38),
    shown("reservation", 1, |node: &Node, frame| {
        if node.provision_state().is_working() || node.driver_call.is_some() {
            json!(frame.conductor)
        } else {
            Value::Null
        }
    }),
    attribute!(resource_class, 21),
    attribute!(retired, 61),
    attribute!(retired_reason, 61),
    attribute!(secure_boot, 75),
    shown("service_step", 87, |node: &Node, _| {
        current_step(node, StepsOf::Service)
    }),
    attribute!(shard, 82),
    interface!("storage_interface", "storage", 33),
    shown("target_power_state", 1, |node: &Node, _| {
        power(node.power.target)
    }),
    shown("target_provision_state", 1, |node: &Node, _| {
        json!(node.target_provision_state().map(ProvisionState::name))
    }),
    shown("target_raid_config", 12, |node: &Node, _| {
        json!(node.hardware.target_raid_config)
    }),
    shown("traits", 37, |node: &Node, _| json!(node.traits)),
    interface!("vendor_interface", "vendor", 31),
    short(shown("links", 1, |node: &Node, frame| {
        links(frame.base, &format!("nodes/{}", node.id))
    })),
    shown("conductor", 49, |_: &Node, frame| json!(frame.conductor)),
    shown("allocation_uuid", 52, |node: &Node, _| {
        json!(node.allocation.map(|id| id.to_string()))
    }),
    attribute!(chassis_uuid, 1),
    unasked(shown("ports", 1, |node: &Node, frame| {
        links(frame.base, &format!("nodes/{}/ports", node.id))
    })),
    unasked(shown("states", 14, |node: &Node, frame| {
        links(frame.base, &format!("nodes/{}/states", node.id))
    })),
    unasked(shown("portgroups", 24, |node: &Node, frame| {
        links(frame.base, &format!("nodes/{}/portgroups", node.id))
    })),
    unasked(shown("volume", 32, |node: &Node, frame| {
        links(frame.base, &format!("nodes/{}/volume", node.id))
    })),
];

/// The fields of a port.
pub const PORT_FIELDS: &[Shown<PortOfNode>] = &[
    short(shown("uuid", 1, |of: &PortOfNode, _| {
        json!(of.port.id.to_string())
    })),
    unasked(shown("created_at", 1, |of: &PortOfNode, _| {
        time(Some(of.port.created_at))
    })),
    unasked(shown("updated_at", 1, |of: &PortOfNode, _| {
        time(of.port.updated_at)
    })),
    short(shown("address", 1, |of: &PortOfNode, _| {
        json!(of.port.address)
    })),
    shown("extra", 1, |of: &PortOfNode, _| json!(of.port.extra)),
    shown("internal_info", 18, |_: &PortOfNode, _| json!({})),
    shown("is_smartnic", 53, |of: &PortOfNode, _| {
        json!(of.port.is_smartnic)
    }),
    shown("local_link_connection", 19, |of: &PortOfNode, _| {
        json!(of.port.local_link_connection)
    }),
    shown("physical_network", 34, |of: &PortOfNode, _| {
        json!(of.port.physical_network)
    }),
    shown("pxe_enabled", 19, |of: &PortOfNode, _| {
        json!(of.port.pxe_enabled)
    }),
    shown("node_uuid", 1, |of: &PortOfNode, _| {
        json!(of.node.to_string())
    }),
    shown("name", 88, |of: &PortOfNode, _| json!(of.port.name)),
    shown("description", 97, |of: &PortOfNode, _| {
        json!(of.port.description)
    }),
    shown("vendor", 100, |of: &PortOfNode, _| json!(of.port.vendor)),
    shown("category", 101, |of: &PortOfNode, _| {
        json!(of.port.category)
    }),
    short(shown("links", 1, |of: &PortOfNode, frame| {
        links(frame.base, &format!("ports/{}", of.port.id))
    })),
    shown("portgroup_uuid", 24, |of: &PortOfNode, _| {
        json!(of.port.portgroup_uuid.map(|id| id.to_string()))
    }),
    shown(
        "available_for_dynamic_portgroup",
        111,
        |of: &PortOfNode, _| json!(of.port.available_for_dynamic_portgroup),
    ),
];

/// The part of a node an agent gets with its lookup.
pub fn lookup_node(node: &Node, base: &str) -> Value {
    json!({
        "uuid": node.id.to_string(),
        "properties": node.attributes.properties,
        "instance_info": masked_instance_info(&node.attributes.instance_info),
        "driver_internal_info": driver_internal_info(node),
        "links": links(base, &format!("nodes/{}", node.id)),
    })
}

/// The fields of a node's states, in order.
pub const STATES: [&str; 11] = [
    "console_enabled",
    "last_error",
    "power_state",
    "target_power_state",
    "provision_state",
    "target_provision_state",
    "provision_updated_at",
    "raid_config",
    "target_raid_config",
    "boot_mode",
    "secure_boot",
];

/// The states of a node.
pub fn states(node: &Node, frame: Frame<'_>) -> Document {
    let mut document = Document::default();
    for name in STATES {
        for field in NODE_FIELDS.iter().filter(|field| field.name == name) {
            if field.since <= frame.microversion.0 {
                document.put(field.name, (field.value)(node, frame));
            }
        }
    }
    document
}

/// Both links of a resource.
pub fn links(base: &str, path: &str) -> Value {
    json!([
        {"href": format!("{base}/v1/{path}"), "rel": "self"},
        {"href": format!("{base}/{path}"), "rel": "bookmark"},
    ])
}

/// A time as clients read it.
pub fn time(at: Option<Timestamp>) -> Value {
    let Some(at) = at else {
        return Value::Null;
    };
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(at) => Value::String(at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()),
        Err(_) => Value::Null,
    }
}

/// The address of a node's states, where requests that go on in the background send their clients.
pub fn states_address(base: &str, id: NodeId) -> String {
    format!("{base}/v1/nodes/{id}/states")
}

/// A provision state as this version spells it.
pub fn provision_state(state: ProvisionState, microversion: Microversion) -> Value {
    match state {
        ProvisionState::Available if microversion.0 < 2 => Value::Null,
        ProvisionState::InspectWait if microversion.0 < 39 => json!("inspecting"),
        state => json!(state.name()),
    }
}

/// A power state.
pub fn power(state: Option<PowerState>) -> Value {
    json!(state.map(PowerState::name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Maintenance;
    use crate::node::Provision;
    use crate::node::attributes::parse_new;
    use crate::node::masking::STARS;

    fn frame(minor: u16) -> Frame<'static> {
        Frame {
            base: "http://h",
            microversion: Microversion(minor),
            conductor: "c-1",
        }
    }

    fn node() -> Node {
        let document = json!({
            "driver": "fake-hardware", "name": "n", "driver_info": {"bmc": {"ipmi_password": "p", "user": "u"}},
            "instance_info": {"image_source": "http://i", "configdrive": "secret bytes", "image_url": "http://signed"},
        });
        let new = parse_new(document.as_object().unwrap(), 110).unwrap();
        Node::enrolled(
            NodeId::default(),
            new.attributes,
            Timestamp(1_796_062_069_851),
        )
    }

    fn seen(minor: u16, node: &Node) -> Value {
        serde_json::to_value(document(NODE_FIELDS, node, &Selection::Full, frame(minor))).unwrap()
    }

    #[test]
    fn fields_appear_with_their_version() {
        for (name, since) in [
            ("driver_internal_info", 3),
            ("name", 5),
            ("resource_class", 21),
            ("deploy_interface", 31),
            ("fault", 42),
            ("conductor", 49),
            ("owner", 50),
            ("retired", 61),
            ("boot_mode", 75),
            ("parent_node", 83),
            ("health", 109),
        ] {
            assert!(
                seen(since, &node()).get(name).is_some(),
                "{name} at 1.{since}"
            );
            assert!(
                seen(since - 1, &node()).get(name).is_none(),
                "{name} below 1.{since}"
            );
        }
    }

    #[test]
    fn secrets_are_stars_and_the_rest_is_as_sent() {
        let shown = seen(110, &node());
        assert_eq!(shown["driver_info"]["bmc"]["ipmi_password"], STARS);
        assert_eq!(shown["driver_info"]["bmc"]["user"], "u");
        assert_eq!(shown["instance_info"]["configdrive"], STARS);
        assert_eq!(shown["instance_info"]["image_url"], STARS);
        assert_eq!(shown["instance_info"]["image_source"], "http://i");
        let for_agent = lookup_node(&node(), "http://h").to_string();
        assert!(!for_agent.contains("secret bytes") && !for_agent.contains("signed"));
    }

    #[test]
    fn old_versions_know_available_by_another_name() {
        let mut of = node();
        of.provision = Provision::Available;
        assert_eq!(seen(1, &of)["provision_state"], Value::Null);
        assert_eq!(seen(2, &of)["provision_state"], "available");
    }

    #[test]
    fn a_time_has_microseconds_and_an_offset() {
        assert_eq!(
            time(Some(Timestamp(1_796_062_069_851))),
            "2026-11-30T18:07:49.851000+00:00"
        );
        assert_eq!(time(None), Value::Null);
    }

    #[test]
    fn only_known_fields_can_be_asked_for() {
        let of = |list: &str, minor| asked(NODE_FIELDS, list, Microversion(minor));
        assert!(matches!(of("uuid,NAME", 110), Ok(Selection::Asked(names)) if names.len() == 2));
        assert!(matches!(of("colour", 110), Err(Error::Bad(_))));
        assert!(matches!(
            of("uuid,owner", 49),
            Err(Error::TooNew { since: 50, .. })
        ));
        assert!(matches!(of(" , ", 110), Err(Error::Bad(_))));
    }

    #[test]
    fn unset_values_are_null_and_the_reservation_names_the_conductor() {
        let mut of = node();
        let shown = seen(110, &of);
        for name in [
            "reservation",
            "target_power_state",
            "target_provision_state",
            "last_error",
            "power_state",
            "instance_uuid",
        ] {
            assert_eq!(shown[name], Value::Null, "{name}");
        }
        of.provision = Provision::Verifying;
        of.maintenance = Some(
            Maintenance {
                reason: Some("r".into()),
                fault: None,
            }
            .into(),
        );
        let shown = seen(110, &of);
        assert_eq!(shown["reservation"], "c-1");
        assert_eq!(shown["target_provision_state"], "manageable");
        assert_eq!(shown["maintenance_reason"], "r");
    }

    #[test]
    fn the_short_form_is_the_one_of_lists() {
        let short = document(NODE_FIELDS, &node(), &Selection::Short, frame(110));
        let mut names: Vec<&str> = short.0.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "instance_uuid",
                "links",
                "maintenance",
                "name",
                "power_state",
                "provision_state",
                "uuid"
            ]
        );
    }
}
