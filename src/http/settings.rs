//! What the HTTP side has to be told: plain values, mapped from the configuration by whoever starts it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Checks a callback URL and returns it in its normal form, or says what is wrong with it.
pub type CallbackUrlCheck = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// Everything the HTTP side has to be told.
#[derive(Clone)]
pub struct HttpSettings {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where to listen for agents, if they are not to reach the rest of the API.
    pub agent_listen: Option<SocketAddr>,
    /// The address put into links, for example `https://upbeat.example`; none uses the `Host` each request came with.
    pub public_endpoint: Option<String>,
    /// Believe `X-Forwarded-Proto` and `X-Forwarded-Host`; only behind a proxy that sets them.
    pub trust_proxy_headers: bool,
    /// Threads that answer requests.
    pub workers: usize,
    /// Connections each of those threads keeps open at most.
    pub connections_per_worker_max: usize,
    /// Requests that are answered at the same time: so many of agents, and as many of users.
    pub requests_max: usize,
    /// How long a client may take to send its headers, in milliseconds.
    pub request_timeout_ms: u64,
    /// How long requests in flight may take when the server stops, in seconds.
    pub stop_grace_s: u64,
    /// Largest body of a request that is none of the following, in bytes.
    pub body_bytes_max: usize,
    /// Largest body of a request that may bring a config drive, in bytes.
    pub configdrive_body_bytes_max: usize,
    /// Largest findings of an inspection, in bytes.
    pub findings_bytes_max: usize,
    /// Largest page of a list, and the page a client gets that does not ask (`max_limit`).
    pub page_items_max: usize,
    /// Who may use the API.
    pub auth: Auth,
    /// The group this conductor serves.
    pub conductor_group: String,
    /// What agents are told, and whether they may ask at all.
    pub agent: AgentSettings,
}

/// Who may use the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Everybody who can reach it.
    None,
    /// HTTP basic, against a file of `user:bcrypt hash` lines (`htpasswd -B`).
    Basic {
        /// The file; read again when it changes.
        htpasswd: PathBuf,
    },
}

/// The part of the settings about agents.
#[derive(Clone)]
pub struct AgentSettings {
    /// False: lookups and heartbeats are answered 403.
    pub endpoints_enabled: bool,
    /// Longest time between two heartbeats of an agent, in seconds (`ramdisk_heartbeat_timeout`).
    pub heartbeat_timeout_s: u32,
    /// Whether agents may verify images by MD5.
    pub md5_checksum_enabled: bool,
    /// True: agents don't look into images before they write them.
    pub deep_image_inspection_disabled: bool,
    /// Formats agents may write.
    pub permitted_image_formats: Vec<String>,
    /// Oldest TLS version for an agent's own server and its downloads, `1.2` or `1.3`; none leaves it to the agent.
    pub tls_min_version: Option<String>,
    /// Checks where an agent says it can be reached.
    pub callback_url_check: CallbackUrlCheck,
}

/// Where the HTTP side reports what it does, and gets the text of `GET /metrics` from.
#[derive(Clone)]
pub struct Metrics {
    /// All metrics as text.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
    /// The content type of that text.
    pub content_type: &'static str,
    /// Called once per request: method, pattern of the route, status code, seconds.
    pub on_request: Arc<dyn Fn(&'static str, &'static str, u16, f64) + Send + Sync>,
}

impl HttpSettings {
    /// Usual values: no authentication, no public endpoint.
    pub fn new(listen: SocketAddr, callback_url_check: CallbackUrlCheck) -> HttpSettings {
        HttpSettings {
            listen,
            agent_listen: None,
            public_endpoint: None,
            trust_proxy_headers: false,
            workers: 2,
            connections_per_worker_max: 4096,
            requests_max: 2048,
            request_timeout_ms: 10_000,
            stop_grace_s: 10,
            body_bytes_max: 1 << 20,
            configdrive_body_bytes_max: 64 << 20,
            findings_bytes_max: 16 << 20,
            page_items_max: 1000,
            auth: Auth::None,
            conductor_group: String::new(),
            agent: AgentSettings {
                endpoints_enabled: true,
                heartbeat_timeout_s: 300,
                md5_checksum_enabled: false,
                deep_image_inspection_disabled: false,
                permitted_image_formats: ["raw", "gpt", "qcow2", "iso"].map(str::to_owned).to_vec(),
                tls_min_version: Some("1.2".to_owned()),
                callback_url_check,
            },
        }
    }
}
