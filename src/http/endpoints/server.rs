//! What the server tells of itself, what agents call, and what there is for whoever watches the process.

use super::endpoint::{Endpoint, TooOld, get, post};
use super::parameter::{Holds, Parameter, parameter};
use crate::http::{discovery, health, openapi, ramdisk};

const LOOKUP: &[Parameter] = &[
    parameter(
        "addresses",
        Holds::Texts,
        22,
        "MAC addresses of the machine.",
    ),
    parameter("node_uuid", Holds::Uuid, 22, "The node, if it is known."),
];

const CONTINUE: &[Parameter] = &[parameter(
    "node_uuid",
    Holds::Uuid,
    1,
    "The node, if it is known.",
)];
const HEARTBEAT: &[Parameter] = &[
    parameter(
        "callback_url",
        Holds::Text,
        22,
        "Where the agent can be reached.",
    )
    .required(),
    parameter("agent_token", Holds::Text, 62, "The token the lookup gave."),
    parameter("agent_version", Holds::Text, 36, "The agent's version.").bad_when_young(),
    parameter(
        "agent_verify_ca",
        Holds::Text,
        68,
        "The certificate the agent's server shows, as PEM.",
    )
    .bad_when_young(),
    parameter(
        "agent_status",
        Holds::OneOf(&["start", "end", "error"]),
        72,
        "What an agent that works by itself has come to.",
    )
    .bad_when_young(),
    parameter(
        "agent_status_message",
        Holds::Text,
        72,
        "The same in words.",
    )
    .bad_when_young(),
];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/", "The versions of the API.", |r, _| {
        Box::pin(discovery::root(r))
    })
    .shows("Versions")
    .for_everybody()
    .tells_versions(),
    get("/v1", "What version 1 of the API has.", |r, _| {
        Box::pin(discovery::version(r))
    })
    .shows("Version")
    .for_everybody(),
    get(
        "/v1/lookup",
        "Tells an agent which node it runs on, and its settings.",
        |r, _| Box::pin(ramdisk::lookup(r)),
    )
    .since(22)
    .too_old(TooOld::SaidByHandler)
    .query(&[LOOKUP])
    .shows("Lookup")
    .errors(&[403, 409])
    .for_agents(),
    post(
        "/v1/heartbeat/{node}",
        "An agent says that it lives, and where it is.",
        |r, of| Box::pin(ramdisk::heartbeat(r, of.first())),
    )
    .since(22)
    .too_old(TooOld::SaidByHandler)
    .arguments(&[HEARTBEAT])
    .status(202)
    .errors(&[403, 409])
    .for_agents(),
    post(
        "/v1/continue_inspection",
        "An agent tells what it found in its machine; also with 1.1.",
        |r, _| Box::pin(ramdisk::continue_inspection(r)),
    )
    .since(84)
    .too_old(TooOld::SaidByHandler)
    .query(&[CONTINUE])
    .takes("Findings")
    .status(202)
    .shows("Continued")
    .errors(&[403, 404, 409])
    .for_agents(),
    get("/metrics", "Measurements, for Prometheus.", |r, _| {
        Box::pin(health::metrics(r))
    })
    .tells("application/openmetrics-text")
    .without_versions(),
    get("/health/live", "The process answers.", |r, _| {
        Box::pin(health::alive(r))
    })
    .shows("Alive")
    .for_everybody()
    .without_versions(),
    get(
        "/health/ready",
        "All nodes are recovered and the database answers.",
        |r, _| Box::pin(health::ready(r)),
    )
    .shows("Ready")
    .for_everybody()
    .without_versions(),
    get(
        "/openapi.json",
        "This API as an OpenAPI document.",
        |r, _| Box::pin(openapi::show(r)),
    )
    .shows("OpenApi")
    .for_everybody()
    .without_versions(),
    get("/docs", "A page to read that document.", |r, _| {
        Box::pin(openapi::page(r))
    })
    .tells("text/html")
    .for_everybody()
    .without_versions(),
];
