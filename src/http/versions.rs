//! What each microversion brought: the one list of them, from which the documents are made and against which every number in the
//! tables of fields, parameters, verbs and endpoints is checked.
//!
//! Pure. Things are spelled as follows; what is in no row is there since 1.1.
//!
//! | spelling | thing |
//! |---|---|
//! | `node.owner` | a field, of answers and of requests |
//! | `nodes?owner` | a parameter of lists (`*`: of all lists) |
//! | `verb rescue` | a provision verb |
//! | `/v1/conductors` | a path and all below it |
//! | `PATCH /v1/allocations/{}` | one method of a path |

/// What one version brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// The minor number.
    pub minor: u16,
    /// In words.
    pub about: &'static str,
    /// The things it brought.
    pub things: &'static [&'static str],
}

const fn at(minor: u16, about: &'static str, things: &'static [&'static str]) -> Addition {
    Addition {
        minor,
        about,
        things,
    }
}

/// What each version brought, beginning with 1.2.
pub const ADDITIONS: &[Addition] = &[
    at(2, "The state available has its name instead of null.", &[]),
    at(
        3,
        "driver_internal_info of nodes.",
        &["node.driver_internal_info"],
    ),
    at(
        4,
        "The verbs manage and provide.",
        &["verb manage", "verb provide"],
    ),
    at(5, "Names of nodes.", &["node.name"]),
    at(
        6,
        "Inspection.",
        &[
            "verb inspect",
            "node.inspection_finished_at",
            "node.inspection_started_at",
        ],
    ),
    at(7, "The running clean step.", &["node.clean_step"]),
    at(
        8,
        "Lists and single things with chosen fields.",
        &["*?fields"],
    ),
    at(9, "Nodes by provision state.", &["nodes?provision_state"]),
    at(10, "Names of nodes may be any host name.", &[]),
    at(11, "New nodes begin in enroll.", &[]),
    at(
        12,
        "RAID.",
        &[
            "node.raid_config",
            "node.target_raid_config",
            "/v1/nodes/{}/states/raid",
            "/v1/drivers/{}/raid/logical_disk_properties",
        ],
    ),
    at(13, "The verb abort, for clean wait.", &["verb abort"]),
    at(
        14,
        "Links to states and to properties of drivers.",
        &["node.states", "driver.properties"],
    ),
    at(
        15,
        "Manual cleaning.",
        &["verb clean", "provision?clean_steps"],
    ),
    at(16, "Nodes by driver.", &["nodes?driver"]),
    at(17, "Adoption.", &["verb adopt"]),
    at(18, "internal_info of ports.", &["port.internal_info"]),
    at(
        19,
        "Local link connections and PXE of ports.",
        &["port.local_link_connection", "port.pxe_enabled"],
    ),
    at(20, "Network interfaces.", &["node.network_interface"]),
    at(
        21,
        "Resource classes.",
        &["node.resource_class", "nodes?resource_class"],
    ),
    at(
        22,
        "Lookup and heartbeat of agents.",
        &["/v1/lookup", "/v1/heartbeat"],
    ),
    at(23, "Port groups.", &["/v1/portgroups"]),
    at(
        24,
        "Port groups of nodes and ports of port groups.",
        &[
            "/v1/portgroups/{}/ports",
            "/v1/nodes/{}/portgroups",
            "node.portgroups",
            "port.portgroup_uuid",
            "ports?portgroup",
        ],
    ),
    at(25, "The chassis of a node can be removed.", &[]),
    at(
        26,
        "Mode and properties of port groups.",
        &["portgroup.mode", "portgroup.properties"],
    ),
    at(
        27,
        "Soft power changes, and how long a power change may take.",
        &["power?timeout"],
    ),
    at(28, "Virtual interfaces.", &["/v1/nodes/{}/vifs"]),
    at(
        29,
        "Non-maskable interrupts.",
        &["/v1/nodes/{}/management/inject_nmi"],
    ),
    at(
        30,
        "Kinds of drivers and their interfaces.",
        &["drivers?type", "drivers?detail", "driver.type"],
    ),
    at(
        31,
        "Interfaces of nodes.",
        &[
            "node.boot_interface",
            "node.console_interface",
            "node.deploy_interface",
            "node.inspect_interface",
            "node.management_interface",
            "node.power_interface",
            "node.raid_interface",
            "node.vendor_interface",
        ],
    ),
    at(
        32,
        "Volumes.",
        &[
            "/v1/volume",
            "/v1/nodes/{}/volume",
            "node.volume",
            "connectors?detail",
            "targets?detail",
        ],
    ),
    at(33, "Storage interfaces.", &["node.storage_interface"]),
    at(
        34,
        "Physical networks of ports.",
        &["port.physical_network"],
    ),
    at(35, "Config drives for rebuilds.", &[]),
    at(
        36,
        "Heartbeats tell the agent's version.",
        &["heartbeat?agent_version"],
    ),
    at(37, "Traits.", &["node.traits", "/v1/nodes/{}/traits"]),
    at(
        38,
        "Rescue.",
        &[
            "verb rescue",
            "verb unrescue",
            "node.rescue_interface",
            "provision?rescue_password",
        ],
    ),
    at(
        39,
        "The state inspect wait has its name, and nodes in inspecting can't be changed.",
        &[],
    ),
    at(
        40,
        "BIOS settings.",
        &["node.bios_interface", "/v1/nodes/{}/bios"],
    ),
    at(41, "The verb abort, for inspect wait.", &[]),
    at(42, "Faults.", &["node.fault", "nodes?fault"]),
    at(43, "Lists with all fields, by a parameter.", &["*?detail"]),
    at(44, "The running deploy step.", &["node.deploy_step"]),
    at(
        45,
        "A new driver's default interfaces.",
        &["nodes?reset_interfaces"],
    ),
    at(
        46,
        "Groups of conductors.",
        &["node.conductor_group", "nodes?conductor_group"],
    ),
    at(
        47,
        "Automated cleaning per node.",
        &["node.automated_clean"],
    ),
    at(
        48,
        "Protected nodes.",
        &["node.protected", "node.protected_reason"],
    ),
    at(
        49,
        "Conductors.",
        &["/v1/conductors", "node.conductor", "nodes?conductor"],
    ),
    at(50, "Owners of nodes.", &["node.owner", "nodes?owner"]),
    at(
        51,
        "Descriptions of nodes.",
        &["node.description", "nodes?description_contains"],
    ),
    at(
        52,
        "Allocations.",
        &[
            "/v1/allocations",
            "/v1/nodes/{}/allocation",
            "node.allocation_uuid",
        ],
    ),
    at(53, "Smart NICs.", &["port.is_smartnic"]),
    at(54, "Events of other services.", &["/v1/events"]),
    at(55, "Deploy templates.", &["/v1/deploy_templates"]),
    at(56, "Config drives that the server makes.", &[]),
    at(
        57,
        "Allocations can be changed.",
        &["PATCH /v1/allocations/{}"],
    ),
    at(
        58,
        "Allocations for nodes that are in use already.",
        &["allocation.node"],
    ),
    at(59, "Vendor data in config drives.", &[]),
    at(
        60,
        "Owners of allocations.",
        &["allocation.owner", "allocations?owner"],
    ),
    at(
        61,
        "Retired nodes.",
        &["node.retired", "node.retired_reason", "nodes?retired"],
    ),
    at(62, "Tokens of agents.", &["heartbeat?agent_token"]),
    at(63, "Indicators.", &["/v1/nodes/{}/management/indicators"]),
    at(64, "The kind of network in local link connections.", &[]),
    at(
        65,
        "Lessees of nodes.",
        &["node.lessee", "nodes?lessee", "nodes?project"],
    ),
    at(66, "Static network data.", &["node.network_data"]),
    at(
        67,
        "Virtual interfaces for a given port or port group.",
        &["vifs?port_uuid", "vifs?portgroup_uuid"],
    ),
    at(
        68,
        "Certificates of agents.",
        &["heartbeat?agent_verify_ca"],
    ),
    at(
        69,
        "Deploy steps with a request.",
        &["provision?deploy_steps"],
    ),
    at(
        70,
        "Cleaning without an agent.",
        &["provision?disable_ramdisk"],
    ),
    at(71, "Nothing that is seen.", &[]),
    at(
        72,
        "Heartbeats tell what an agent has come to.",
        &["heartbeat?agent_status", "heartbeat?agent_status_message"],
    ),
    at(
        73,
        "deploy and undeploy as spellings of active and deleted.",
        &["verb deploy", "verb undeploy"],
    ),
    at(
        74,
        "What is known of BIOS settings.",
        &[
            "bios?detail",
            "bios?fields",
            "bios.attribute_type",
            "bios.allowable_values",
            "bios.lower_bound",
            "bios.upper_bound",
            "bios.min_length",
            "bios.max_length",
            "bios.read_only",
            "bios.reset_required",
            "bios.unique",
        ],
    ),
    at(
        75,
        "Boot mode and secure boot are shown.",
        &["node.boot_mode", "node.secure_boot"],
    ),
    at(
        76,
        "They can be set.",
        &[
            "/v1/nodes/{}/states/boot_mode",
            "/v1/nodes/{}/states/secure_boot",
        ],
    ),
    at(77, "Drivers with chosen fields.", &["drivers?fields"]),
    at(78, "History.", &["/v1/nodes/{}/history"]),
    at(79, "Allocations prefer the node of their name.", &[]),
    at(80, "Nothing that is seen.", &[]),
    at(81, "Inventories.", &["/v1/nodes/{}/inventory"]),
    at(
        82,
        "Shards.",
        &[
            "/v1/shards",
            "node.shard",
            "nodes?shard",
            "nodes?sharded",
            "ports?shard",
        ],
    ),
    at(
        83,
        "Parents and children.",
        &[
            "/v1/nodes/{}/children",
            "node.parent_node",
            "nodes?parent_node",
            "nodes?include_children",
        ],
    ),
    at(
        84,
        "What agents found comes at continue_inspection; agents of 1.1 may use it as well.",
        &["/v1/continue_inspection"],
    ),
    at(85, "The verb unhold.", &["verb unhold"]),
    at(
        86,
        "Firmware.",
        &["node.firmware_interface", "/v1/nodes/{}/firmware"],
    ),
    at(
        87,
        "Service of nodes in use.",
        &[
            "verb service",
            "node.service_step",
            "provision?service_steps",
        ],
    ),
    at(88, "Names of ports.", &["port.name"]),
    at(89, "Virtual media.", &["/v1/nodes/{}/vmedia"]),
    at(
        90,
        "Another form of local link connections, withdrawn in 1.105.",
        &[],
    ),
    at(
        91,
        ".json behind a name in a path is a part of the name.",
        &[],
    ),
    at(92, "Runbooks.", &["/v1/runbooks", "provision?runbook"]),
    at(
        93,
        "What virtual media are in.",
        &["GET /v1/nodes/{}/vmedia"],
    ),
    at(94, "Ports of a node given by name.", &["port.node_ident"]),
    at(
        95,
        "Nodes that must not be switched off.",
        &["node.disable_power_off"],
    ),
    at(96, "Inspection rules.", &["/v1/inspection_rules"]),
    at(
        97,
        "Descriptions of ports.",
        &["port.description", "ports?description_contains"],
    ),
    at(98, "~0 and ~1 in patches stand for ~ and /.", &[]),
    at(
        99,
        "Ports and port groups by conductor group.",
        &["ports?conductor_groups", "portgroups?conductor_groups"],
    ),
    at(100, "Vendors of ports.", &["port.vendor"]),
    at(101, "Categories of ports.", &["port.category"]),
    at(
        102,
        "Physical networks of port groups.",
        &["portgroup.physical_network"],
    ),
    at(103, "Categories of port groups.", &["portgroup.category"]),
    at(
        104,
        "Names of instances.",
        &["node.instance_name", "nodes?instance_name"],
    ),
    at(105, "Takes 1.90 back.", &[]),
    at(106, "Port groups by shard.", &["portgroups?shard"]),
    at(107, "The id of a request has its usual header.", &[]),
    at(108, "Service without an agent.", &[]),
    at(109, "Health.", &["node.health"]),
    at(110, "The verb abort, for wait call-back.", &[]),
    at(
        111,
        "Port groups that are made as needed.",
        &[
            "port.available_for_dynamic_portgroup",
            "portgroup.dynamic_portgroup",
        ],
    ),
    at(
        112,
        "Traits and descriptions of runbooks.",
        &[
            "runbook.description",
            "runbook.traits",
            "/v1/runbooks/{}/traits",
        ],
    ),
    at(113, "The project in the history.", &["history.project"]),
    at(
        114,
        "Vendor, model and serial number of firmware.",
        &[
            "firmware.vendor",
            "firmware.model",
            "firmware.serial_number",
        ],
    ),
    at(
        115,
        "State, target and duration in the history.",
        &[
            "history.state",
            "history.target_provision_state",
            "history.duration_seconds",
        ],
    ),
];

/// The version a thing is there since; 1 for what is in no row.
#[cfg(test)]
pub fn since(thing: &str) -> u16 {
    ADDITIONS
        .iter()
        .find(|addition| addition.things.contains(&thing))
        .map_or(1, |addition| addition.minor)
}

#[cfg(test)]
mod tests;
