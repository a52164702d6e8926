//! The conductor's API as an operator uses it, for tests that drive whole deploys.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Anything a test waits for comes within this time, however busy the computer is.
pub const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(15);
const IMAGE: &str = "http://images.invalid/small.raw";

/// Asks until there is an answer.
///
/// # Panics
/// When there is none within [`LIMIT`]; `what` says what was awaited.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < limit, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A client of one conductor.
#[derive(Clone)]
pub struct Api {
    pub url: String,
    client: reqwest::Client,
}

impl Api {
    pub fn new(url: &str) -> Api {
        // Already there if another test of this process was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(LIMIT)
            .no_proxy()
            .build()
            .unwrap();
        Api {
            url: url.to_owned(),
            client,
        }
    }

    /// One request; none if the conductor could not be reached.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let mut request = self
            .client
            .request(method.parse().unwrap(), format!("{}{path}", self.url))
            .header("X-OpenStack-Ironic-API-Version", "1.115");
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let text = answer.text().await.ok()?;
        Some((
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        ))
    }

    pub async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = Some(&body).filter(|body| !body.is_null());
        self.try_send(method, path, body)
            .await
            .unwrap_or_else(|| panic!("{method} {path}: no answer"))
    }

    /// One request that is answered as wished, "busy" and "later" aside, which are asked again.
    pub async fn expect(&self, wanted: u16, method: &str, path: &str, body: Value) -> Value {
        eventually(&format!("{method} {path} {wanted}"), async || {
            let (status, answer) = self.send(method, path, body.clone()).await;
            if status == 503 || (status == 409 && wanted != 409) {
                return None;
            }
            assert_eq!(status, wanted, "{method} {path}: {answer}");
            Some(answer)
        })
        .await
    }

    /// Enrols a node with one port and takes it to `available`; answers its UUID. `changes` go over the usual document.
    pub async fn available_node(&self, mac: &str, changes: Value) -> String {
        let mut document = json!({
            "driver": "fake-hardware",
            "properties": {"cpu_arch": "x86_64"},
            "instance_info": {
                "image_source": IMAGE,
                "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
                "image_disk_format": "raw",
            },
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            document[key] = value.clone();
        }
        let node = self.expect(201, "POST", "/v1/nodes", document).await;
        let uuid = node["uuid"].as_str().unwrap().to_owned();
        let port = json!({"node_uuid": uuid, "address": mac});
        self.expect(201, "POST", "/v1/ports", port).await;
        self.ask(&uuid, "manage").await;
        self.reaches(&uuid, "manageable").await;
        self.ask(&uuid, "provide").await;
        self.reaches(&uuid, "available").await;
        uuid
    }

    /// Asks for a provision verb.
    pub async fn ask(&self, uuid: &str, verb: &str) {
        self.ask_with(uuid, json!({"target": verb})).await;
    }

    pub async fn ask_with(&self, uuid: &str, body: Value) {
        let path = format!("/v1/nodes/{uuid}/states/provision");
        self.expect(202, "PUT", &path, body).await;
    }

    pub async fn node(&self, uuid: &str) -> Value {
        let path = format!("/v1/nodes/{uuid}");
        self.expect(200, "GET", &path, Value::Null).await
    }

    /// Waits until the node's document is as wished. A conductor that is away meanwhile is waited for.
    pub async fn node_when(&self, uuid: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/nodes/{uuid}");
        let mut last = Value::Null;
        let limit = Instant::now() + LIMIT;
        loop {
            if let Some((200, node)) = self.try_send("GET", &path, None).await {
                if is_so(&node) {
                    return node;
                }
                last = node;
            }
            assert!(
                Instant::now() < limit,
                "node never {what}, but {} ({})",
                last["provision_state"],
                last["last_error"]
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub async fn reaches(&self, uuid: &str, state: &str) -> Value {
        self.node_when(uuid, state, |node| node["provision_state"] == state)
            .await
    }

    /// Waits for the end of a deploy, good or bad.
    pub async fn ends(&self, uuid: &str) -> Value {
        self.node_when(uuid, "at the end of its deploy", |node| {
            ["active", "deploy failed"].contains(&node["provision_state"].as_str().unwrap())
        })
        .await
    }

    /// The end is `active`, without an error left over.
    pub async fn ends_active(&self, uuid: &str) -> Value {
        let node = self.ends(uuid).await;
        assert_eq!(node["provision_state"], "active", "{}", node["last_error"]);
        assert_eq!(node["last_error"], Value::Null);
        node
    }

    /// The end is `deploy failed`; answers why.
    pub async fn ends_failed(&self, uuid: &str) -> String {
        let node = self.ends(uuid).await;
        assert_eq!(node["provision_state"], "deploy failed");
        node["last_error"].as_str().unwrap().to_owned()
    }

    /// The node's history as one text, a line per entry.
    pub async fn history(&self, uuid: &str) -> String {
        let path = format!("/v1/nodes/{uuid}/history?detail=true");
        let history = self.expect(200, "GET", &path, Value::Null).await;
        let lines = history["history"].as_array().unwrap();
        lines
            .iter()
            .map(|line| format!("{}\n", line["event"].as_str().unwrap()))
            .collect()
    }

    /// The value of a metric without labels, or with exactly these (`name{label="value"}`); 0 if there is none.
    pub async fn metric(&self, name: &str) -> f64 {
        let (status, text) = self.send("GET", "/metrics", Value::Null).await;
        assert_eq!(status, 200);
        let text = text.as_str().unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .map_or(0.0, |value| value.parse().unwrap())
    }
}
