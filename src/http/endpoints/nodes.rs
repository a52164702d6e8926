//! Nodes and what is below a node.

use super::endpoint::{Endpoint, TooOld, delete, get, patch, post, put};
use super::parameter::{DETAIL, FIELDS, Holds, PAGE, Parameter, parameter};
use crate::http::{
    commands, history, maintenance, nodes, ports, power, provision, shards, traits, validate,
};

/// The filters of node lists.
pub const FILTERS: &[Parameter] = &[
    parameter(
        "instance_uuid",
        Holds::Uuid,
        1,
        "The node with this instance; the other list parameters don't count then.",
    ),
    parameter("chassis_uuid", Holds::Uuid, 1, "Nodes in this chassis."),
    parameter(
        "associated",
        Holds::Bool,
        1,
        "Nodes with or without an instance.",
    ),
    parameter(
        "maintenance",
        Holds::Bool,
        1,
        "Nodes in maintenance or not.",
    ),
    parameter("provision_state", Holds::Text, 9, "Nodes in this state."),
    parameter("driver", Holds::Text, 16, "Nodes of this hardware type."),
    parameter(
        "resource_class",
        Holds::Text,
        21,
        "Nodes of this resource class.",
    ),
    parameter(
        "fault",
        Holds::OneOf(&[
            "power failure",
            "clean failure",
            "rescue abort failure",
            "service failure",
        ]),
        42,
        "Nodes with this fault.",
    ),
    parameter(
        "conductor_group",
        Holds::Text,
        46,
        "Nodes of this group; empty for the default group.",
    ),
    parameter("conductor", Holds::Text, 49, "Nodes this conductor serves."),
    parameter("owner", Holds::Text, 50, "Nodes of this owner."),
    parameter(
        "description_contains",
        Holds::Text,
        51,
        "Nodes with this in their description, in any case.",
    ),
    parameter("retired", Holds::Bool, 61, "Retired nodes or the others."),
    parameter("lessee", Holds::Text, 65, "Nodes of this lessee."),
    parameter(
        "project",
        Holds::Text,
        65,
        "Nodes this project owns or leases.",
    ),
    parameter("shard", Holds::Texts, 82, "Nodes of these shards."),
    parameter("sharded", Holds::Bool, 82, "Nodes with or without a shard."),
    parameter("parent_node", Holds::Ident, 83, "Children of this node."),
    parameter(
        "include_children",
        Holds::Bool,
        83,
        "Show nodes that have a parent too.",
    ),
    parameter(
        "instance_name",
        Holds::Text,
        104,
        "Nodes with this name of an instance.",
    ),
];

const RESET_INTERFACES: &[Parameter] = &[parameter(
    "reset_interfaces",
    Holds::Bool,
    45,
    "With a new driver: interfaces that are not named get that driver's defaults.",
)];

const PROVISION: &[Parameter] = &[
    parameter(
        "target",
        Holds::OneOf(&provision::VERB_NAMES),
        1,
        "The verb.",
    )
    .required(),
    parameter(
        "configdrive",
        Holds::Any,
        1,
        "For active and rebuild: the config drive, its URL, or what it is to be made of (1.56).",
    ),
    parameter(
        "clean_steps",
        Holds::Any,
        15,
        "For clean: the steps, in order.",
    ),
    parameter(
        "rescue_password",
        Holds::Text,
        38,
        "For rescue: the password of the rescue system.",
    ),
    parameter(
        "deploy_steps",
        Holds::Any,
        69,
        "For active and rebuild: further steps.",
    ),
    parameter(
        "disable_ramdisk",
        Holds::Bool,
        70,
        "For clean, and for service (1.108): without booting an agent.",
    ),
    parameter(
        "service_steps",
        Holds::Any,
        87,
        "For service: the steps, in order.",
    ),
    parameter(
        "runbook",
        Holds::Ident,
        92,
        "For clean and service: the runbook with the steps.",
    ),
];

const POWER: &[Parameter] = &[
    parameter(
        "target",
        Holds::OneOf(&[
            "power on",
            "power off",
            "rebooting",
            "soft power off",
            "soft rebooting",
        ]),
        1,
        "The change; soft ones are there since 1.27.",
    )
    .required(),
    parameter("timeout", Holds::Count, 27, "How many seconds it may take."),
];

const MAINTENANCE: &[Parameter] = &[parameter("reason", Holds::Text, 1, "Why.")];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/nodes", "Lists nodes.", |r, _| {
        Box::pin(nodes::list(r, false))
    })
    .query(&[FILTERS, FIELDS, DETAIL, PAGE])
    .lists("nodes", "Node"),
    post("/v1/nodes", "Enrols a node.", |r, _| {
        Box::pin(nodes::create(r))
    })
    .takes("NewNode")
    .shows("Node")
    .errors(&[409]),
    get(
        "/v1/nodes/detail",
        "Lists nodes with all their fields.",
        |r, _| Box::pin(nodes::list(r, true)),
    )
    .query(&[FILTERS, PAGE])
    .lists("nodes", "Node"),
    get("/v1/nodes/{node}", "Shows a node.", |r, of| {
        Box::pin(nodes::show(r, of.first()))
    })
    .query(&[FIELDS])
    .shows("Node"),
    patch("/v1/nodes/{node}", "Changes a node.", |r, of| {
        Box::pin(nodes::change(r, of.first()))
    })
    .query(&[RESET_INTERFACES])
    .shows("Node")
    .errors(&[403, 409]),
    delete("/v1/nodes/{node}", "Removes a node.", |r, of| {
        Box::pin(nodes::delete(r, of.first()))
    })
    .errors(&[403, 409]),
    get(
        "/v1/nodes/{node}/states",
        "Shows the states of a node.",
        |r, of| Box::pin(nodes::states(r, of.first())),
    )
    .shows("States"),
    put(
        "/v1/nodes/{node}/states/provision",
        "Starts a provision verb.",
        |r, of| Box::pin(provision::change(r, of.first())),
    )
    .arguments(&[PROVISION])
    .errors(&[403, 409]),
    put(
        "/v1/nodes/{node}/states/power",
        "Changes the power state.",
        |r, of| Box::pin(power::change(r, of.first())),
    )
    .arguments(&[POWER])
    .errors(&[409]),
    put(
        "/v1/nodes/{node}/maintenance",
        "Puts a node into maintenance.",
        |r, of| Box::pin(maintenance::set(r, of.first())),
    )
    .arguments(&[MAINTENANCE])
    .errors(&[409]),
    delete(
        "/v1/nodes/{node}/maintenance",
        "Takes a node out of maintenance.",
        |r, of| Box::pin(maintenance::clear(r, of.first())),
    )
    .status(202)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/validate",
        "What stands against using each interface.",
        |r, of| Box::pin(validate::show(r, of.first())),
    )
    .shows("Validation"),
    get(
        "/v1/nodes/{node}/ports",
        "Lists the ports of a node.",
        |r, of| Box::pin(ports::list_of_node(r, of.first(), false)),
    )
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("ports", "Port"),
    get(
        "/v1/nodes/{node}/ports/detail",
        "Lists the ports of a node with all their fields.",
        |r, of| Box::pin(ports::list_of_node(r, of.first(), true)),
    )
    .query(&[PAGE])
    .lists("ports", "Port"),
    get(
        "/v1/nodes/{node}/history",
        "What happened to a node, oldest first.",
        |r, of| Box::pin(history::list(r, of.first())),
    )
    .since(78)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("history", "HistoryEntry"),
    get(
        "/v1/nodes/{node}/history/{entry}",
        "Shows one entry of the history.",
        |r, of| Box::pin(history::show(r, of.first(), of.second())),
    )
    .since(78)
    .shows("HistoryEntry"),
    get(
        "/v1/nodes/{node}/commands",
        "What a node waits for and the ledger of its agent commands; Upbeat's own.",
        |r, of| Box::pin(commands::list(r, of.first())),
    )
    .shows("Commands"),
    get(
        "/v1/nodes/{node}/traits",
        "Lists the traits of a node.",
        |r, of| Box::pin(traits::list(r, of.first())),
    )
    .since(37)
    .too_old(TooOld::NotAcceptable("traits"))
    .shows("Traits"),
    put(
        "/v1/nodes/{node}/traits",
        "Sets the traits of a node.",
        |r, of| Box::pin(traits::replace(r, of.first())),
    )
    .since(37)
    .too_old(TooOld::NotAcceptable("traits"))
    .takes("Traits")
    .status(204)
    .errors(&[409]),
    delete(
        "/v1/nodes/{node}/traits",
        "Takes all traits off a node.",
        |r, of| Box::pin(traits::remove(r, of.first(), None)),
    )
    .since(37)
    .too_old(TooOld::NotAcceptable("traits"))
    .errors(&[409]),
    put(
        "/v1/nodes/{node}/traits/{trait}",
        "Gives a node one more trait.",
        |r, of| Box::pin(traits::add(r, of.first(), of.second())),
    )
    .since(37)
    .too_old(TooOld::NotAcceptable("traits"))
    .status(204)
    .errors(&[409]),
    delete(
        "/v1/nodes/{node}/traits/{trait}",
        "Takes one trait off a node.",
        |r, of| Box::pin(traits::remove(r, of.first(), Some(of.second()))),
    )
    .since(37)
    .too_old(TooOld::NotAcceptable("traits"))
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/children",
        "Lists the nodes that are parts of a node.",
        |r, of| Box::pin(nodes::children(r, of.first())),
    )
    .since(83)
    .shows("Children"),
    get("/v1/shards", "How many nodes each shard has.", |r, _| {
        Box::pin(shards::list(r))
    })
    .since(82)
    .shows("Shards"),
    get(
        "/v1/nodes/{node}/inventory",
        "What the last inspection found.",
        |r, of| Box::pin(nodes::inventory(r, of.first())),
    )
    .since(81)
    .shows("Inventory"),
];
