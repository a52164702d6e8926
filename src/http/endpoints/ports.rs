//! Ports.

use super::endpoint::{Endpoint, delete, get, patch, post};
use super::parameter::{DETAIL, FIELDS, Holds, PAGE, Parameter, parameter};
use crate::http::ports;

const FILTERS: &[Parameter] = &[
    parameter("address", Holds::Text, 1, "The port with this MAC address."),
    parameter("node", Holds::Ident, 1, "Ports of this node."),
    parameter("node_uuid", Holds::Uuid, 1, "Ports of this node."),
    parameter("portgroup", Holds::Ident, 24, "Ports of this port group."),
    parameter("shard", Holds::Texts, 82, "Ports of nodes of these shards."),
    parameter(
        "description_contains",
        Holds::Text,
        97,
        "Ports with this in their description, in any case.",
    ),
    parameter(
        "conductor_groups",
        Holds::Texts,
        99,
        "Ports of nodes of these conductor groups.",
    ),
];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/ports", "Lists ports.", |r, _| {
        Box::pin(ports::list(r, false))
    })
    .query(&[FILTERS, FIELDS, DETAIL, PAGE])
    .lists("ports", "Port"),
    post("/v1/ports", "Adds a port to a node.", |r, _| {
        Box::pin(ports::create(r))
    })
    .takes("NewPort")
    .shows("Port")
    .errors(&[409]),
    get(
        "/v1/ports/detail",
        "Lists ports with all their fields.",
        |r, _| Box::pin(ports::list(r, true)),
    )
    .query(&[FILTERS, PAGE])
    .lists("ports", "Port"),
    get("/v1/ports/{port}", "Shows a port.", |r, of| {
        Box::pin(ports::show(r, of.first()))
    })
    .query(&[FIELDS])
    .shows("Port"),
    patch("/v1/ports/{port}", "Changes a port.", |r, of| {
        Box::pin(ports::change(r, of.first()))
    })
    .shows("Port")
    .errors(&[409]),
    delete("/v1/ports/{port}", "Removes a port.", |r, of| {
        Box::pin(ports::delete(r, of.first()))
    })
    .errors(&[409]),
];
