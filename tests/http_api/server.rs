//! A server with a conductor behind it, and a client that shows every byte of an answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use actix_web::dev::ServerHandle;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use upbeat::agent::check_callback_url;
use upbeat::conductor::Settings;
use upbeat::http::{CallbackUrlCheck, HttpSettings, Metrics, start};

use crate::support::{TestConductor, start_test_conductor};

/// A callback URL that makes the check panic, as a fault of ours would.
pub const POISON: &str = "http://127.0.0.1:6666";

/// Method, route and code of an answer.
pub type Seen = (&'static str, &'static str, u16);

pub struct Server {
    pub address: SocketAddr,
    pub agent_address: Option<SocketAddr>,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub behind: TestConductor,
    handles: Vec<ServerHandle>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is still open is of no account: the test is over.
        for handle in &self.handles {
            drop(handle.stop(false));
        }
        self.behind.conductor.stop();
    }
}

pub async fn server() -> Server {
    server_with(|_| {}).await
}

pub async fn server_with(change: impl FnOnce(&mut HttpSettings)) -> Server {
    server_of(|_| {}, change).await
}

/// With another conductor than the usual one behind it.
pub async fn server_of(
    behind: impl FnOnce(&mut Settings),
    change: impl FnOnce(&mut HttpSettings),
) -> Server {
    let behind = start_test_conductor(behind).await;
    let rules = behind.rules.clone();
    let check: CallbackUrlCheck = Arc::new(move |url| {
        assert!(url != POISON, "a fault of ours");
        check_callback_url(url, &rules)
    });
    let mut settings = HttpSettings::new("127.0.0.1:0".parse().unwrap(), check);
    settings.workers = 1;
    change(&mut settings);
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let record = seen.clone();
    let metrics = Metrics {
        text: Arc::new(|| "# EOF\n".to_owned()),
        content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
        on_request: Arc::new(move |method, route, code, _| {
            record.lock().unwrap().push((method, route, code));
        }),
    };
    let listening = start(settings, behind.conductor.clone(), metrics).unwrap();
    let handles = listening
        .servers
        .iter()
        .map(|server| server.handle())
        .collect();
    for server in listening.servers {
        actix_web::rt::spawn(server);
    }
    Server {
        address: listening.address,
        agent_address: listening.agent_address,
        seen,
        behind,
        handles,
    }
}

/// An answer, as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// What stands inside the string of JSON.
    #[track_caller]
    pub fn fault(&self) -> Value {
        let text = self.json()["error_message"]
            .as_str()
            .unwrap_or_else(|| panic!("no error: {self:?}"))
            .to_owned();
        serde_json::from_str(&text).unwrap()
    }

    /// The text of a controller's failure, with everything about its envelope checked.
    #[track_caller]
    pub fn fault_string(&self) -> String {
        let fault = self.fault();
        let who = if self.status >= 500 {
            "Server"
        } else {
            "Client"
        };
        assert_eq!(fault["faultcode"], who, "{fault}");
        assert_eq!(fault["debuginfo"], Value::Null, "{fault}");
        assert_eq!(fault.as_object().unwrap().len(), 3, "{fault}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        fault["faultstring"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn is_routing_failure(&self) {
        let fault = self.fault();
        assert_eq!(fault["code"], self.status, "{fault}");
        assert!(
            fault["title"].is_string() && fault["description"].is_string(),
            "{fault}"
        );
    }

    #[track_caller]
    pub fn has_status(self, status: u16) -> Answer {
        assert_eq!(
            self.status,
            status,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self
    }
}

/// Header lines of a request, with the version in front.
pub fn at(version: &str) -> String {
    format!("X-OpenStack-Ironic-API-Version: {version}\r\n")
}

impl Server {
    /// The same server as agents reach it.
    pub fn for_agents(&self) -> AgentSide {
        AgentSide {
            address: self
                .agent_address
                .expect("agents have an address of their own"),
        }
    }

    /// Sends a request with the youngest version.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.raw(method, path, &at("1.115"), body.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    /// Sends exactly this.
    pub async fn raw(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("Content-Length: {}\r\n{headers}", body.len());
        self.chunked(method, path, &headers, body).await
    }

    /// Sends exactly this, without telling the length of the body.
    pub async fn chunked(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        exchange(self.address, method, path, headers, body).await
    }
    /// Enrols a node and returns its UUID.
    pub async fn node(&self, document: Value) -> String {
        let answer = self.send("POST", "/v1/nodes", Some(document)).await;
        let uuid = answer.has_status(201).json()["uuid"].clone();
        uuid.as_str().unwrap().to_owned()
    }

    /// Names of all nodes, to see that nothing was stored.
    pub async fn node_count(&self) -> usize {
        let list = self.get("/v1/nodes?include_children=true").await.json();
        list["nodes"].as_array().unwrap().len()
    }

    /// A node's document, until it satisfies a condition.
    pub async fn node_when(&self, uuid: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let node = self
                .get(&format!("/v1/nodes/{uuid}"))
                .await
                .has_status(200)
                .json();
            if is_so(&node) {
                return node;
            }
            assert!(std::time::Instant::now() < limit, "never so: {node}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

/// A server as agents reach it.
pub struct AgentSide {
    pub address: SocketAddr,
}

impl AgentSide {
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let headers = format!("Content-Length: {}\r\n{}", body.len(), at("1.115"));
        exchange(self.address, method, path, &headers, body.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }
}

async fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: upbeat.test:6385\r\nConnection: close\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that has refused by the header alone may have closed already.
    let _ = stream.write_all(body).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    Answer {
        status: status.parse().unwrap(),
        headers: lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_owned(), value.to_owned())
            })
            .collect(),
        body: bytes[end + 4..].to_vec(),
    }
}
