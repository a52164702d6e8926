//! What belongs to nodes besides ports: port groups, volume connectors and targets.

use super::endpoint::{Endpoint, delete, get, patch, post};
use super::parameter::{DETAIL, FIELDS, Holds, PAGE, Parameter, parameter};
use crate::http::parts::{self, portgroups, volume};
use crate::node::portgroups::Portgroup;
use crate::node::volume::{VolumeConnector, VolumeTarget};

const GROUP_FILTERS: &[Parameter] = &[
    parameter(
        "address",
        Holds::Text,
        23,
        "The port group with this MAC address.",
    ),
    parameter("node", Holds::Ident, 23, "Port groups of this node."),
    parameter(
        "shard",
        Holds::Texts,
        106,
        "Port groups of nodes of these shards.",
    ),
    parameter(
        "conductor_groups",
        Holds::Texts,
        99,
        "Port groups of nodes of these conductor groups.",
    ),
];

const VOLUME_FILTERS: &[Parameter] = &[parameter("node", Holds::Ident, 32, "Those of this node.")];

/// Volumes had this from their beginning, and openstacksdk asks for it with 1.32.
const VOLUME_DETAIL: &[Parameter] = &[parameter(
    "detail",
    Holds::Bool,
    32,
    "Show full objects; not together with fields.",
)];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/portgroups", "Lists port groups.", |r, _| {
        Box::pin(parts::list::<Portgroup>(r, false))
    })
    .since(23)
    .query(&[GROUP_FILTERS, FIELDS, DETAIL, PAGE])
    .lists("portgroups", "Portgroup"),
    post("/v1/portgroups", "Adds a port group to a node.", |r, _| {
        Box::pin(parts::create::<Portgroup>(r))
    })
    .since(23)
    .takes("NewPortgroup")
    .shows("Portgroup")
    .errors(&[409]),
    get(
        "/v1/portgroups/detail",
        "Lists port groups with all their fields.",
        |r, _| Box::pin(parts::list::<Portgroup>(r, true)),
    )
    .since(23)
    .query(&[GROUP_FILTERS, PAGE])
    .lists("portgroups", "Portgroup"),
    get(
        "/v1/portgroups/{portgroup}",
        "Shows a port group.",
        |r, of| Box::pin(parts::show::<Portgroup>(r, of.first())),
    )
    .since(23)
    .query(&[FIELDS])
    .shows("Portgroup"),
    patch(
        "/v1/portgroups/{portgroup}",
        "Changes a port group.",
        |r, of| Box::pin(parts::change::<Portgroup>(r, of.first())),
    )
    .since(23)
    .shows("Portgroup")
    .errors(&[409]),
    delete(
        "/v1/portgroups/{portgroup}",
        "Removes a port group without ports.",
        |r, of| Box::pin(parts::delete::<Portgroup>(r, of.first())),
    )
    .since(23)
    .errors(&[409]),
    get(
        "/v1/portgroups/{portgroup}/ports",
        "Lists the ports of a port group.",
        |r, of| Box::pin(portgroups::list_ports(r, of.first(), false)),
    )
    .since(24)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("ports", "Port"),
    get(
        "/v1/portgroups/{portgroup}/ports/detail",
        "Lists the ports of a port group with all their fields.",
        |r, of| Box::pin(portgroups::list_ports(r, of.first(), true)),
    )
    .since(24)
    .query(&[PAGE])
    .lists("ports", "Port"),
    get(
        "/v1/nodes/{node}/portgroups",
        "Lists the port groups of a node.",
        |r, of| Box::pin(parts::list_of_node::<Portgroup>(r, of.first(), false)),
    )
    .since(24)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("portgroups", "Portgroup"),
    get(
        "/v1/nodes/{node}/portgroups/detail",
        "Lists the port groups of a node with all their fields.",
        |r, of| Box::pin(parts::list_of_node::<Portgroup>(r, of.first(), true)),
    )
    .since(24)
    .query(&[PAGE])
    .lists("portgroups", "Portgroup"),
    get("/v1/volume", "Where connectors and targets are.", |r, _| {
        Box::pin(volume::index(r))
    })
    .since(32)
    .shows("Volume"),
    get(
        "/v1/nodes/{node}/volume",
        "Where the connectors and targets of a node are.",
        |r, of| Box::pin(volume::index_of_node(r, of.first())),
    )
    .since(32)
    .shows("Volume"),
    get(
        "/v1/volume/connectors",
        "Lists volume connectors.",
        |r, _| Box::pin(parts::list::<VolumeConnector>(r, false)),
    )
    .since(32)
    .query(&[VOLUME_FILTERS, FIELDS, VOLUME_DETAIL, PAGE])
    .lists("connectors", "VolumeConnector"),
    post(
        "/v1/volume/connectors",
        "Adds a volume connector to a node.",
        |r, _| Box::pin(parts::create::<VolumeConnector>(r)),
    )
    .since(32)
    .takes("NewVolumeConnector")
    .shows("VolumeConnector")
    .errors(&[409]),
    get(
        "/v1/volume/connectors/{connector}",
        "Shows a volume connector.",
        |r, of| Box::pin(parts::show::<VolumeConnector>(r, of.first())),
    )
    .since(32)
    .query(&[FIELDS])
    .shows("VolumeConnector"),
    patch(
        "/v1/volume/connectors/{connector}",
        "Changes a volume connector.",
        |r, of| Box::pin(parts::change::<VolumeConnector>(r, of.first())),
    )
    .since(32)
    .shows("VolumeConnector")
    .errors(&[409]),
    delete(
        "/v1/volume/connectors/{connector}",
        "Removes a volume connector.",
        |r, of| Box::pin(parts::delete::<VolumeConnector>(r, of.first())),
    )
    .since(32)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/volume/connectors",
        "Lists the volume connectors of a node.",
        |r, of| Box::pin(parts::list_of_node::<VolumeConnector>(r, of.first(), false)),
    )
    .since(32)
    .query(&[FIELDS, VOLUME_DETAIL, PAGE])
    .lists("connectors", "VolumeConnector"),
    get("/v1/volume/targets", "Lists volume targets.", |r, _| {
        Box::pin(parts::list::<VolumeTarget>(r, false))
    })
    .since(32)
    .query(&[VOLUME_FILTERS, FIELDS, VOLUME_DETAIL, PAGE])
    .lists("targets", "VolumeTarget"),
    post(
        "/v1/volume/targets",
        "Adds a volume target to a node.",
        |r, _| Box::pin(parts::create::<VolumeTarget>(r)),
    )
    .since(32)
    .takes("NewVolumeTarget")
    .shows("VolumeTarget")
    .errors(&[409]),
    get(
        "/v1/volume/targets/{target}",
        "Shows a volume target.",
        |r, of| Box::pin(parts::show::<VolumeTarget>(r, of.first())),
    )
    .since(32)
    .query(&[FIELDS])
    .shows("VolumeTarget"),
    patch(
        "/v1/volume/targets/{target}",
        "Changes a volume target.",
        |r, of| Box::pin(parts::change::<VolumeTarget>(r, of.first())),
    )
    .since(32)
    .shows("VolumeTarget")
    .errors(&[409]),
    delete(
        "/v1/volume/targets/{target}",
        "Removes a volume target.",
        |r, of| Box::pin(parts::delete::<VolumeTarget>(r, of.first())),
    )
    .since(32)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/volume/targets",
        "Lists the volume targets of a node.",
        |r, of| Box::pin(parts::list_of_node::<VolumeTarget>(r, of.first(), false)),
    )
    .since(32)
    .query(&[FIELDS, VOLUME_DETAIL, PAGE])
    .lists("targets", "VolumeTarget"),
];
