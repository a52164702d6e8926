//! The demo as a user of the public API.
//!
//! Enrols nodes, asks for provision states and lists nodes, with the requests any client sends; the demo's `run` is
//! the only caller. It waits and repeats where the API says "busy" (409) or "later" (503), and within limits.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::setup::DemoError;

/// Recent enough for every field the demo uses, old enough for any server with this API.
pub(crate) const MICROVERSION: &str = "1.81";
const BUSY_PAUSE: Duration = Duration::from_millis(200);
const BUSY_ATTEMPTS_MAX: usize = 100;
const STATE_LIMIT: Duration = Duration::from_secs(60);
const STATE_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));
const PAGE_NODES: usize = 1000;
/// The image that the machines pretend to write. Nobody asks for it.
const IMAGE: &str = "http://images.invalid/demo.raw";

pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

/// A node as the list shows it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) provision_state: String,
    pub(crate) target_provision_state: Option<String>,
    pub(crate) last_error: Option<String>,
}

impl Seen {
    fn read(node: &Value) -> Self {
        let text = |field: &str| {
            node[field]
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        Self {
            provision_state: text("provision_state").unwrap_or_default(),
            target_provision_state: text("target_provision_state"),
            last_error: text("last_error"),
        }
    }

    /// Whether a deploy that was asked for is over.
    pub(crate) fn is_over(&self) -> bool {
        ["active", "deploy failed", "error"].contains(&self.provision_state.as_str())
    }

    /// Whether the way to `wished` has ended somewhere else.
    fn has_failed(&self, wished: &str) -> bool {
        let is_stuck = self.target_provision_state.is_none() && self.last_error.is_some();
        self.provision_state != wished && (is_stuck || self.provision_state.ends_with(" failed"))
    }
}

impl Client {
    pub(crate) fn new(url: &str) -> Result<Self, DemoError> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .no_proxy()
            .build()
            .map_err(|error| DemoError::Api(format!("setting up an HTTP client: {error}")))?;
        Ok(Self {
            http,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// Takes a new node with one port to `available`; returns its UUID.
    pub(crate) async fn enrol(&self, name: &str, mac: &str) -> Result<String, DemoError> {
        let node = json!({
            "name": name,
            "driver": "fake-hardware",
            "properties": {"cpu_arch": "x86_64", "capabilities": "boot_mode:bios"},
            "instance_info": {
                "image_source": IMAGE,
                "image_os_hash_algo": "sha256",
                "image_os_hash_value": hex(&Sha256::digest(IMAGE)),
                "image_disk_format": "raw",
            },
        });
        let node = self
            .send(Method::POST, "/v1/nodes", Some(&node), StatusCode::CREATED)
            .await?;
        let node: Value = node
            .json()
            .await
            .map_err(|error| DemoError::Api(format!("POST /v1/nodes: {error}")))?;
        let uuid = node["uuid"]
            .as_str()
            .ok_or_else(|| DemoError::Api("POST /v1/nodes: no uuid".to_owned()))?;
        let port = json!({"node_uuid": uuid, "address": mac});
        self.send(Method::POST, "/v1/ports", Some(&port), StatusCode::CREATED)
            .await?;
        self.provision(uuid, "manage").await?;
        self.wait_for_state(uuid, "manageable").await?;
        self.provision(uuid, "provide").await?;
        self.wait_for_state(uuid, "available").await?;
        Ok(uuid.to_owned())
    }

    /// Asks for `active`.
    pub(crate) async fn deploy(&self, uuid: &str) -> Result<(), DemoError> {
        self.provision(uuid, "active").await
    }

    async fn provision(&self, uuid: &str, target: &str) -> Result<(), DemoError> {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        self.send(
            Method::PUT,
            &path,
            Some(&json!({"target": target})),
            StatusCode::ACCEPTED,
        )
        .await?;
        Ok(())
    }

    async fn wait_for_state(&self, uuid: &str, wished: &str) -> Result<(), DemoError> {
        let deadline = Instant::now() + STATE_LIMIT;
        let path =
            format!("/v1/nodes/{uuid}?fields=provision_state,target_provision_state,last_error");
        let mut pause = STATE_PAUSES.0;
        loop {
            let node = self.send(Method::GET, &path, None, StatusCode::OK).await?;
            let node: Value = node
                .json()
                .await
                .map_err(|error| DemoError::Api(format!("GET {path}: {error}")))?;
            let seen = Seen::read(&node);
            if seen.provision_state == wished && seen.target_provision_state.is_none() {
                return Ok(());
            }
            if seen.has_failed(wished) || Instant::now() > deadline {
                let why = seen.last_error.as_deref().unwrap_or("no reason given");
                let state = seen.provision_state;
                return Err(DemoError::Api(format!(
                    "on the way to '{wished}' the node is in '{state}': {why}"
                )));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(STATE_PAUSES.1);
        }
    }

    /// All nodes by UUID.
    pub(crate) async fn list(&self) -> Result<HashMap<String, Seen>, DemoError> {
        let mut seen = HashMap::new();
        let mut marker = String::new();
        loop {
            let path = format!(
                "/v1/nodes?fields=uuid,name,provision_state,target_provision_state,last_error&limit={PAGE_NODES}{marker}"
            );
            let page = self.send(Method::GET, &path, None, StatusCode::OK).await?;
            let page: Value = page
                .json()
                .await
                .map_err(|error| DemoError::Api(format!("GET {path}: {error}")))?;
            let nodes = page["nodes"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            for node in nodes {
                seen.insert(
                    node["uuid"].as_str().unwrap_or_default().to_owned(),
                    Seen::read(node),
                );
            }
            match nodes.last().and_then(|last| last["uuid"].as_str()) {
                Some(last) if nodes.len() == PAGE_NODES => marker = format!("&marker={last}"),
                _ => return Ok(seen),
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        wanted: StatusCode,
    ) -> Result<Response, DemoError> {
        for _ in 0..BUSY_ATTEMPTS_MAX {
            let mut request = self
                .http
                .request(method.clone(), format!("{}{path}", self.url))
                .header("X-OpenStack-Ironic-API-Version", MICROVERSION);
            if let Some(body) = body {
                request = request.json(body);
            }
            let answer = request
                .send()
                .await
                .map_err(|error| DemoError::Api(format!("{method} {path}: {error}")))?;
            match answer.status() {
                status if status == wanted => return Ok(answer),
                StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => {
                    tokio::time::sleep(BUSY_PAUSE).await
                }
                status => {
                    let text = answer.text().await.unwrap_or_default();
                    return Err(DemoError::Api(format!(
                        "{method} {path}: {status}, {}",
                        fault_of(&text)
                    )));
                }
            }
        }
        Err(DemoError::Api(format!(
            "{method} {path}: still busy after {BUSY_ATTEMPTS_MAX} attempts"
        )))
    }
}

/// The human part of an error envelope, or the text itself.
fn fault_of(text: &str) -> String {
    let fault = || {
        let outer: Value = serde_json::from_str(text).ok()?;
        let inner: Value = serde_json::from_str(outer["error_message"].as_str()?).ok()?;
        inner["faultstring"]
            .as_str()
            .or(inner["description"].as_str())
            .map(str::to_owned)
    };
    fault().unwrap_or_else(|| text.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_is_read_from_its_envelope() {
        let envelope = r#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"no\", \"debuginfo\": null}"}"#;
        assert_eq!(fault_of(envelope), "no");
        assert_eq!(fault_of("<html>"), "<html>");
    }

    #[test]
    fn a_node_that_fell_back_to_enroll_with_an_error_has_failed() {
        let seen = |state: &str, target: Value, error: Value| {
            Seen::read(
                &json!({"provision_state": state, "target_provision_state": target, "last_error": error}),
            )
        };
        assert!(seen("enroll", Value::Null, json!("no power")).has_failed("manageable"));
        assert!(
            !seen("enroll", Value::Null, Value::Null).has_failed("manageable"),
            "not begun yet"
        );
        assert!(!seen("verifying", json!("manageable"), Value::Null).has_failed("manageable"));
        assert!(seen("clean failed", json!("available"), Value::Null).has_failed("available"));
    }
}
