//! The API as clients and agents see it: status codes, both envelopes, versions, bad input; with a real conductor and a real
//! database behind it, over real connections on loopback.

#[path = "support/conductor.rs"]
mod support;

#[path = "http_api/agents.rs"]
mod agents;
#[path = "http_api/allocations.rs"]
mod allocations;
#[path = "http_api/bad_input.rs"]
mod bad_input;
#[path = "http_api/basics.rs"]
mod basics;
#[path = "http_api/busy.rs"]
mod busy;
#[path = "http_api/configdrives.rs"]
mod configdrives;
#[path = "http_api/devices.rs"]
mod devices;
#[path = "http_api/documents.rs"]
mod documents;
#[path = "http_api/hardware.rs"]
mod hardware;
#[path = "http_api/inspections.rs"]
mod inspections;
#[path = "http_api/inventory.rs"]
mod inventory;
#[path = "http_api/limits.rs"]
mod limits;
#[path = "http_api/listeners.rs"]
mod listeners;
#[path = "http_api/log.rs"]
mod log;
#[path = "http_api/nodes.rs"]
mod nodes;
#[path = "http_api/objects.rs"]
mod objects;
#[path = "http_api/parts.rs"]
mod parts;
#[path = "http_api/ports.rs"]
mod ports;
#[path = "http_api/reports.rs"]
mod reports;
#[path = "http_api/scenarios.rs"]
mod scenarios;
#[path = "http_api/secrets.rs"]
mod secrets;
#[path = "http_api/server.rs"]
mod server;
#[path = "http_api/strangers.rs"]
mod strangers;
#[path = "http_api/versions.rs"]
mod versions;
#[path = "http_api/written_steps.rs"]
mod written_steps;
