//! What agents call: `POST /v1/continue_inspection`, `GET /v1/lookup` and `POST /v1/heartbeat/{node}`.
//!
//! Checks are made in the order the protocol gives them, so that each mistake gets the answer agents and their operators know.
//! Whether a node may be looked up, and what a heartbeat means, is decided by the node. Tokens are compared by the conductor and
//! never logged. Every refusal of a lookup is one identical 404: who asks learns nothing about nodes that are not theirs.

use std::net::IpAddr;

use serde_json::{Value, json};
use uuid::Uuid;

use super::error::Error;
use super::reply::{Document, Reply, json_text};
use super::request::{Request, no_such_node};
use super::settings::AgentSettings;
use super::view;
use crate::catalog::{InspectionRule, Record};
use crate::conductor::DeliverError;
use crate::node::inspection::rules::Rule;
use crate::node::inspection::{self, Findings, bmc};
use crate::node::masking::STARS;
use crate::node::{
    Event, Heartbeat, NodeId, PortId, ProvisionState, Refused, TokenMatch, attributes,
};
use crate::store::{NodeFilter, Page, PortFilter, RecordFilter};

const SINCE: u16 = 22;
/// From here on the findings of an inspection are answered as a lookup is.
const CONTINUE_SINCE: u16 = 84;
const AGENT_VERSION_BYTES_MAX: usize = 255;
/// A certificate an agent makes for itself takes about 800.
const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// `GET /v1/lookup`
pub async fn lookup(request: &Request) -> Result<Reply, Error> {
    check_open(request)?;
    let mut arguments = request.query_arguments()?;
    let addresses = arguments.take_text("addresses")?;
    let node = arguments.take_uuid("node_uuid")?;
    arguments.finish()?;
    let addresses = mac_addresses(addresses.as_deref().unwrap_or_default());
    let id = match node {
        Some(id) => NodeId(id),
        None if addresses.is_empty() => {
            return Err(Error::Bad(
                "At least one of 'addresses' and 'node_uuid' parameters is required".to_owned(),
            ));
        }
        None => one_node_with(request, &addresses).await?,
    };
    let (answer, token) = match request.api.conductor.lookup(id).await {
        Err(DeliverError::NotFound) => return Err(Error::LookupFailed),
        other => other?,
    };
    let Some(token) = token else {
        return Err(Refused::Conflict {
            text: "Whether the agent that has this node's token is gone is being found out; look up again in some seconds."
                .to_owned(),
        }
        .into());
    };
    let mut document = Document::default();
    document.put("node", view::lookup_node(&answer.node, &request.base));
    document.put("config", configuration(&request.api.settings.agent, &token));
    Ok(Reply::body(&document))
}

/// `POST /v1/heartbeat/{node}`
pub async fn heartbeat(request: &Request, ident: &str) -> Result<Reply, Error> {
    check_open(request)?;
    let mut arguments = request.arguments()?;
    let callback_url = arguments.take_text("callback_url")?;
    let agent_version = arguments.take_text("agent_version")?;
    let token = arguments.take_text("agent_token")?;
    let certificate = arguments.take_text("agent_verify_ca")?;
    let status = arguments.take_text("agent_status")?;
    let status_message = arguments.take_text("agent_status_message")?;
    arguments.finish()?;
    // Kept with the node and written with every change of it.
    for (field, text, bytes_max) in [
        ("agent_version", &agent_version, AGENT_VERSION_BYTES_MAX),
        ("agent_verify_ca", &certificate, CERTIFICATE_BYTES_MAX),
    ] {
        if text.as_ref().is_some_and(|text| text.len() > bytes_max) {
            return Err(Error::Bad(format!(
                "{field}: is longer than {bytes_max} bytes"
            )));
        }
    }

    let Some(callback_url) = callback_url else {
        return Err(Error::Bad(
            "Missing mandatory parameter: callback_url".to_owned(),
        ));
    };
    let not_yet = |is_given: bool, since: u16, field: &str| {
        if is_given && request.microversion.0 < since {
            return Err(Error::Bad(format!(
                "Field \"{field}\" not recognised: it needs version 1.{since} or newer."
            )));
        }
        Ok(())
    };
    not_yet(agent_version.is_some(), 36, "agent_version")?;
    not_yet(certificate.is_some(), 68, "agent_verify_ca")?;
    not_yet(status.is_some(), 72, "agent_status")?;
    not_yet(status_message.is_some(), 72, "agent_status_message")?;

    let id = match request.node_id(ident).await {
        Err(Error::BadIdentifier(_)) => {
            return Err(Error::Bad(format!(
                "Expected UUID or name for node_ident: {ident}"
            )));
        }
        other => other?,
    };
    let callback_url = match (request.api.settings.agent.callback_url_check)(&callback_url) {
        Ok(url) => url,
        Err(problem) => {
            // An unknown node is told before anything that is wrong with the rest.
            request.node(ident).await?;
            tracing::warn!(node = ?ident, problem, "a heartbeat was refused for its callback_url");
            return Err(Refused::CallbackUrlNotAllowed { problem }.into());
        }
    };
    if token.is_none() {
        request.node(ident).await?;
        return Err(Refused::TokenMissing.into());
    }
    if let Some(status) = &status
        && !["start", "end", "error"].contains(&status.as_str())
    {
        request.node(ident).await?;
        return Err(Error::Bad(
            "Agent status is invalid. Valid states are start,end,error.".to_owned(),
        ));
    }
    if agent_version.is_none() && status.is_none() {
        request.node(ident).await?;
        return Err(Error::Bad(
            "Agent did not transmit a version, and a version is required. Please update the agent being used.".to_owned(),
        ));
    }
    let heartbeat = Heartbeat {
        callback_url,
        agent_version,
        certificate,
        token: TokenMatch::Missing,
    };
    match request.api.conductor.heartbeat(id, heartbeat, token).await {
        Err(DeliverError::NotFound) => Err(no_such_node(ident)),
        other => {
            other?;
            Ok(Reply::Accepted { location: None })
        }
    }
}

/// `POST /v1/continue_inspection`
pub async fn continue_inspection(request: &Request) -> Result<Reply, Error> {
    if !request.api.settings.agent.endpoints_enabled {
        return Err(Error::AgentEndpointsDisabled);
    }
    if (2..CONTINUE_SINCE).contains(&request.microversion.0) {
        return Err(Error::LookupFailed);
    }
    let mut arguments = request.query_arguments()?;
    let named = arguments.take_uuid("node_uuid")?;
    arguments.finish()?;
    let Value::Object(data) = request.document()? else {
        return Err(Error::Bad(
            "The findings of an inspection are a JSON object.".to_owned(),
        ));
    };
    inspection::check(&data).map_err(Error::Bad)?;
    let addresses = inspection::addresses_in(&data);
    let id = match named {
        Some(id) => NodeId(id),
        None => match one_node_at(request, &bmc::addresses_in(&data), &addresses).await? {
            Some(id) => id,
            None => one_node_with(request, &addresses).await?,
        },
    };
    let fresh_ids = (0..inspection::interfaces_in(&data))
        .map(|_| PortId(Uuid::new_v4()))
        .collect();
    let findings = Box::new(Findings {
        data,
        fresh_ids,
        taken: taken_by_others(request, id, addresses).await?,
        rules: rules(request).await?,
    });
    let event = Event::Inspected(findings);
    let answer = match request.api.conductor.deliver(id, event).await {
        Err(DeliverError::NotFound) => return Err(Error::LookupFailed),
        other => other?,
    };
    let mut document = Document::default();
    if request.microversion.0 < CONTINUE_SINCE {
        document.put("uuid", json!(id));
    } else {
        // The machine is switched off now, so nobody needs a token.
        document.put("node", view::lookup_node(&answer.node, &request.base));
        document.put("config", configuration(&request.api.settings.agent, STARS));
    }
    Ok(Reply::AcceptedWith {
        body: json_text(&document),
    })
}

/// The node whose BMC has one of these addresses, if nobody entered ports for its machine: the only one that waits for findings.
async fn one_node_at(
    request: &Request,
    bmc: &[IpAddr],
    addresses: &[String],
) -> Result<Option<NodeId>, Error> {
    const WAITING_MAX: usize = 1000;
    let reader = request.api.conductor.reader();
    if bmc.is_empty()
        || !reader
            .nodes_by_addresses(addresses.to_vec())
            .await?
            .is_empty()
    {
        return Ok(None);
    }
    let filter = NodeFilter {
        provision_state: Some(ProvisionState::InspectWait),
        include_children: true,
        ..NodeFilter::default()
    };
    let waiting = reader
        .nodes(filter, Page::by_age(WAITING_MAX, None))
        .await?;
    let mut there = waiting.iter().filter(|node| bmc::is_at(node, bmc));
    Ok(match (there.next(), there.next()) {
        (Some(one), None) => Some(one.id),
        _ => None,
    })
}

/// Those of the addresses that ports of other nodes have.
async fn taken_by_others(
    request: &Request,
    id: NodeId,
    addresses: Vec<String>,
) -> Result<Vec<String>, Error> {
    let reader = request.api.conductor.reader();
    let owners = reader.nodes_by_addresses(addresses.clone()).await?;
    if owners.iter().all(|owner| *owner == id) {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    for address in addresses {
        let filter = PortFilter {
            address: Some(address.clone()),
            ..PortFilter::default()
        };
        let ports = reader.ports(filter, Page::by_age(1, None)).await?;
        if ports.iter().any(|port| port.node != id) {
            taken.push(address);
        }
    }
    Ok(taken)
}

/// The inspection rules there are.
async fn rules(request: &Request) -> Result<Vec<Rule>, Error> {
    const RULES_MAX: usize = 10_000;
    let reader = request.api.conductor.reader();
    let every = RecordFilter::default();
    let records = reader.records::<InspectionRule>(every, Page::by_age(RULES_MAX, None));
    Ok(records.await?.into_iter().map(Record::rule).collect())
}

/// The node that has a port with one of these addresses. An agent is told no more than that there is none.
async fn one_node_with(request: &Request, addresses: &[String]) -> Result<NodeId, Error> {
    let reader = request.api.conductor.reader();
    let owners = reader.nodes_by_addresses(addresses.to_vec()).await?;
    match owners.as_slice() {
        [one] => Ok(*one),
        // The agent is told nothing; the operator needs to know what to enter where.
        [] => {
            let addresses = first_of(addresses);
            tracing::info!(
                addresses,
                "an agent called, but no node has ports with its addresses"
            );
            Err(Error::LookupFailed)
        }
        several => {
            let addresses = first_of(addresses);
            let nodes = first_of(several);
            tracing::warn!(
                addresses,
                nodes,
                "an agent called, and more than one node has ports with its addresses: see which port has an address that is not its machine's"
            );
            Err(Error::LookupFailed)
        }
    }
}

fn check_open(request: &Request) -> Result<(), Error> {
    if !request.api.settings.agent.endpoints_enabled {
        return Err(Error::AgentEndpointsDisabled);
    }
    if request.microversion.0 < SINCE {
        return Err(Error::LookupFailed);
    }
    Ok(())
}

/// The addresses that are MAC addresses, in one spelling, each once. Others are left out: agents send what their hardware says.
fn mac_addresses(list: &str) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for part in list
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        match attributes::mac_address(part) {
            Some(address) if !addresses.contains(&address) => addresses.push(address),
            Some(_) => {}
            None => tracing::debug!(
                address = part,
                "a lookup names something that is no MAC address"
            ),
        }
    }
    addresses
}

/// Enough of them to recognise a machine in the log.
fn first_of(names: &[impl ToString]) -> String {
    const SHOWN_MAX: usize = 8;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN_MAX)
        .map(ToString::to_string)
        .collect();
    shown.join(",")
}

/// The settings an agent gets with its node.
fn configuration(settings: &AgentSettings, token: &str) -> Value {
    json!({
        "metrics": {
            "backend": "noop",
            "prepend_host": false,
            "prepend_uuid": false,
            "prepend_host_reverse": true,
            "global_prefix": null,
        },
        "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
        "heartbeat_timeout": settings.heartbeat_timeout_s,
        "agent_token": token,
        "agent_token_required": true,
        "agent_md5_checksum_enable": settings.md5_checksum_enabled,
        "disable_deep_image_inspection": settings.deep_image_inspection_disabled,
        "permitted_image_formats": settings.permitted_image_formats,
        "agent_skip_bmc_detect": false,
        "enable_bios_bootloader_install": false,
        "tls_min_version": settings.tls_min_version,
        "tls_cipher_suites": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_trimmed_lowered_and_told_once() {
        assert_eq!(
            mac_addresses(" 52:54:00:AA:00:03,nonsense,, 52:54:00:aa:00:03,52:54:00:aa:00:04"),
            ["52:54:00:aa:00:03", "52:54:00:aa:00:04"]
        );
        assert!(mac_addresses("nonsense").is_empty());
    }
}
