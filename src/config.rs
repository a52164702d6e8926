//! Every setting: its name, unit, default and meaning; where it comes from; what is wrong with it.
//!
//! [`load`] reads a TOML file, the environment (`UPBEAT_<SECTION>_<KEY>`) and single settings from the command line, the later
//! ones winning, and reports every fault at once. Called by `main` before anything else starts; all other parts are handed
//! finished values and never read a file or the environment for settings. `ops/upbeat.toml` is the commented form of
//! [`Config::default`]; a test keeps them equal.
//!
//! `read.rs` takes single values apart, `check.rs` compares settings with each other and with the machine, `print.rs` shows the
//! outcome without secrets.

mod check;
mod print;
mod read;
mod source;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

use crate::agent;
use crate::node::inspection::Settings as Inspector;
use crate::node::masking::masked_text;
use crate::node::{BootMode, Limits, QueueLimits};

pub use source::{Fault, Faults, Overrides};

/// The whole configuration; one field per section of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// The HTTP side.
    pub api: Api,
    /// The work on nodes.
    pub conductor: Conductor,
    /// What is made of the findings of inspections.
    pub inspector: Inspector,
    /// Where nodes are stored.
    pub database: Database,
    /// The ramdisk agents.
    pub agent: Agent,
    /// What is logged, and how.
    pub log: Log,
}

/// `[api]`
#[derive(Debug, Clone, PartialEq)]
pub struct Api {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Address and port for agents alone; none: they use `listen` as everybody does.
    pub agent_listen: Option<SocketAddr>,
    /// URL under which agents and clients reach this API, without a slash at the end; none: as each request says.
    pub public_endpoint: Option<String>,
    /// Believe the headers in which a proxy says how it was called.
    pub trust_proxy_headers: bool,
    /// How operators prove who they are.
    pub auth: Auth,
    /// File of users and bcrypt hashes for `http_basic`.
    pub htpasswd_file: Option<PathBuf>,
    /// Listening on other than loopback addresses without authentication is meant so.
    pub allow_unauthenticated: bool,
    /// Longest body of a request that is none of the following, in bytes.
    pub max_body_bytes: usize,
    /// Longest body of a request that may bring a config drive, in bytes.
    pub max_provision_body_bytes: usize,
    /// Longest findings of an inspection, which anybody can send while a node is inspected, in bytes.
    pub max_inspection_body_bytes: usize,
    /// Most entries in one page of a list, and the default page.
    pub max_limit: usize,
    /// Requests that are answered at the same time, of agents and of users each; more are told to come again.
    pub max_requests: usize,
    /// Seconds a request waits for a node that is busy before it is answered 409; 0: not at all.
    pub busy_wait: u64,
    /// HTTP threads; 0: as many as there are cores.
    pub workers: usize,
    /// Lookup and heartbeat are answered.
    pub enable_ramdisk_endpoints: bool,
}

/// How operators prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// User name and password with each request.
    HttpBasic,
}

/// `[conductor]`
#[derive(Debug, Clone, PartialEq)]
pub struct Conductor {
    /// The name this conductor goes by; none: the machine's. See [`Config::host`].
    pub host: Option<String>,
    /// Threads that carry node actors; 0: one for every two cores, at least one. Each core has its share of the HTTP threads already,
    /// and whoever must wake fewer threads gets more done.
    pub arbiters: usize,
    /// Most events that may wait for one node.
    pub mailbox_messages_max: usize,
    /// Seconds an agent may be silent during a deploy; 0: for ever.
    pub deploy_callback_timeout: u64,
    /// The same during a cleaning.
    pub clean_callback_timeout: u64,
    /// The same during a service.
    pub service_callback_timeout: u64,
    /// The same during a rescue.
    pub rescue_callback_timeout: u64,
    /// Seconds until an agent must have told what it finds in its machine, booting included; 0: for ever.
    pub inspect_wait_timeout: u64,
    /// Nodes are cleaned on their way to `available`, unless they say otherwise.
    pub automated_clean: bool,
    /// Priorities of clean steps in place of those the driver and the agent give them: `<interface>.<step>:<priority>`.
    pub clean_step_priority_override: Vec<StepPriority>,
    /// A machine is switched off when a step of its cleaning has failed.
    pub poweroff_in_cleanfail: bool,
    /// Seconds a driver may take for one call; 0: no limit.
    pub power_state_change_timeout: u64,
    /// Seconds a machine may take to go off by itself before it is switched off.
    pub soft_power_off_wait: u64,
    /// Seconds writing an image may take; 0: no limit.
    pub write_image_limit: u64,
    /// Seconds any other command of an agent may take; 0: no limit.
    pub command_limit: u64,
    /// Boot mode of nodes that don't say theirs.
    pub default_boot_mode: BootMode,
    /// Most nodes that are deployed at once; more wait for their turn. 0: no limit.
    pub max_concurrent_deploy: u32,
    /// Most nodes that are cleaned at once; more wait for their turn. 0: no limit.
    pub max_concurrent_clean: u32,
    /// Most machines that write an image from the same host at once; more wait for their turn. 0: no limit.
    pub max_concurrent_per_image_host: u32,
    /// Restarts of a failing actor within `actor_restarts_window` before its node is quarantined.
    pub actor_restarts_max: u32,
    /// Seconds over which restarts are counted.
    pub actor_restarts_window: u64,
    /// Seconds for which the actor of a node that rests is kept when nobody asks for it.
    pub idle_actor_kept_for: u64,
}

/// `[database]`
#[derive(Clone, PartialEq)]
pub struct Database {
    /// `sqlite://path` or `postgres://user:password@host/name`.
    pub url: String,
    /// Connections for reading.
    pub readers: usize,
    /// Most changes that may wait to be written.
    pub queue_max: usize,
}

/// Without the password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("url", &masked_text(&self.url))
            .field("readers", &self.readers)
            .field("queue_max", &self.queue_max)
            .finish()
    }
}

/// `[agent]`
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Seconds an agent is told at lookup; it reports every 0.3 to 0.6 of it.
    pub heartbeat_timeout: u64,
    /// Agents must use TLS.
    pub require_tls: bool,
    /// Networks agents may be called in.
    pub callback_networks: Vec<IpNet>,
    /// Agents may give a host name as their address.
    pub allow_callback_host_names: bool,
    /// Seconds one request to an agent may take.
    pub command_timeout: u64,
    /// Seconds connecting to an agent may take, TLS handshake included.
    pub connect_timeout: u64,
    /// Most requests to agents at once; more wait for their turn.
    pub requests_max: usize,
    /// Longest pause between two looks at a running command, in seconds.
    pub poll_interval_max: u64,
    /// Longest answer of an agent that is read, in bytes.
    pub response_bytes_max: usize,
    /// File with the key from which agent tokens are computed. See [`Config::token_key_path`].
    pub token_key_file: Option<PathBuf>,
    /// Certificates in PEM to verify agents by that don't make their own.
    pub ca_file: Option<PathBuf>,
    /// Image formats agents may write.
    pub permitted_image_formats: Vec<String>,
    /// Oldest version of TLS, towards agents and of theirs towards image servers.
    pub tls_min_version: agent::TlsMinVersion,
    /// Agents accept md5 checksums.
    pub md5_checksums: bool,
    /// An agent that lost its token gets a new one where the driver can't switch power and the agent that had it is gone.
    pub reissue_lost_token: bool,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// A level, or a list of levels by module: `info`, `info,upbeat::agent=debug`.
    pub level: String,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Api {
    fn default() -> Api {
        Api {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6385),
            agent_listen: None,
            public_endpoint: None,
            trust_proxy_headers: false,
            auth: Auth::None,
            htpasswd_file: None,
            allow_unauthenticated: false,
            max_body_bytes: 1 << 20,
            max_provision_body_bytes: 64 << 20,
            max_inspection_body_bytes: 16 << 20,
            max_limit: 1000,
            max_requests: 2048,
            busy_wait: 2,
            workers: 0,
            enable_ramdisk_endpoints: true,
        }
    }
}

/// The priority an operator gives a clean step: its name, `<interface>.<step>`, and a number from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPriority(pub String, pub i64);

impl FromStr for StepPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<StepPriority, String> {
        let wrong = || {
            format!(
                "{text:?} must be <interface>.<step>:<priority>, for example deploy.erase_devices:0"
            )
        };
        let (step, priority) = text.rsplit_once(':').ok_or_else(wrong)?;
        let priority: u32 = priority.trim().parse().map_err(|_| wrong())?;
        let (interface, name) = step.trim().split_once('.').ok_or_else(wrong)?;
        if interface.is_empty() || name.is_empty() {
            return Err(wrong());
        }
        Ok(StepPriority(step.trim().to_owned(), i64::from(priority)))
    }
}

impl fmt::Display for StepPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

impl Default for Conductor {
    fn default() -> Conductor {
        Conductor {
            host: None,
            arbiters: 0,
            mailbox_messages_max: 64,
            deploy_callback_timeout: 1800,
            clean_callback_timeout: 1800,
            service_callback_timeout: 1800,
            rescue_callback_timeout: 1800,
            inspect_wait_timeout: 1800,
            automated_clean: true,
            clean_step_priority_override: Vec::new(),
            poweroff_in_cleanfail: false,
            power_state_change_timeout: 60,
            soft_power_off_wait: 35,
            write_image_limit: 21_600,
            command_limit: 3600,
            default_boot_mode: BootMode::Uefi,
            max_concurrent_deploy: 250,
            max_concurrent_clean: 50,
            max_concurrent_per_image_host: 100,
            actor_restarts_max: 5,
            actor_restarts_window: 60,
            idle_actor_kept_for: 10,
        }
    }
}

impl Default for Database {
    fn default() -> Database {
        Database {
            url: "sqlite://upbeat.db".to_owned(),
            readers: 4,
            queue_max: 4096,
        }
    }
}

impl Default for Agent {
    fn default() -> Agent {
        let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
        Agent {
            heartbeat_timeout: 300,
            require_tls: true,
            callback_networks: private
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            allow_callback_host_names: false,
            command_timeout: 60,
            connect_timeout: 10,
            requests_max: 1000,
            poll_interval_max: 10,
            response_bytes_max: 64 << 20,
            token_key_file: None,
            ca_file: None,
            permitted_image_formats: ["raw", "gpt", "qcow2"].map(str::to_owned).to_vec(),
            tls_min_version: agent::TlsMinVersion::V1_2,
            md5_checksums: false,
            reissue_lost_token: false,
        }
    }
}

impl Default for Log {
    fn default() -> Log {
        Log {
            format: LogFormat::Text,
            level: "info".to_owned(),
        }
    }
}

/// Reads the configuration: defaults, then the file, then the environment, then single settings.
///
/// # Errors
/// Every fault there is: unreadable file, unknown sections and keys, wrong types, bad values, settings that don't go together.
pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Config, Faults> {
    let mut reader = source::Reader::new(path, overrides);
    let config = read::read(&mut reader);
    check::check(&config, &mut reader);
    reader.finish().map(|()| config)
}

impl Config {
    /// Checks settings that were not read by [`load`] but put together by a program.
    ///
    /// # Errors
    /// Every fault there is, as in [`load`].
    pub fn validate(&self) -> Result<(), Faults> {
        let mut reader = source::Reader::new(None, &Overrides::default());
        check::check(self, &mut reader);
        reader.finish()
    }

    /// The configuration as a TOML document, with passwords replaced by stars.
    pub fn print_effective(&self) -> String {
        print::print(self)
    }

    /// The name this conductor goes by: the setting, or the machine's host name.
    pub fn host(&self) -> String {
        if let Some(host) = &self.conductor.host {
            return host.clone();
        }
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map(|name| name.trim().to_owned())
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "localhost".to_owned())
    }

    /// The part the core reads.
    pub fn limits(&self) -> Limits {
        let ms = |seconds: u64| i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        Limits {
            deploy_callback_timeout_ms: ms(self.conductor.deploy_callback_timeout),
            clean_callback_timeout_ms: ms(self.conductor.clean_callback_timeout),
            service_callback_timeout_ms: ms(self.conductor.service_callback_timeout),
            rescue_callback_timeout_ms: ms(self.conductor.rescue_callback_timeout),
            inspect_wait_timeout_ms: ms(self.conductor.inspect_wait_timeout),
            automated_clean: self.conductor.automated_clean,
            clean_step_priorities: self
                .conductor
                .clean_step_priority_override
                .iter()
                .map(|StepPriority(step, priority)| (step.clone(), *priority))
                .collect(),
            poweroff_in_cleanfail: self.conductor.poweroff_in_cleanfail,
            inspection: self.inspector.clone(),
            write_image_limit_ms: ms(self.conductor.write_image_limit),
            command_limit_ms: ms(self.conductor.command_limit),
            driver_limit_ms: ms(self.conductor.power_state_change_timeout),
            power_off_wait_ms: ms(self.conductor.soft_power_off_wait),
            default_boot_mode: self.conductor.default_boot_mode,
            reissue_lost_token: self.agent.reissue_lost_token,
            queues: QueueLimits {
                deploy: self.conductor.max_concurrent_deploy,
                clean: self.conductor.max_concurrent_clean,
                image_host: self.conductor.max_concurrent_per_image_host,
            },
            ..Limits::default()
        }
    }

    /// What callback URLs may be.
    pub fn callback_rules(&self) -> agent::CallbackRules {
        agent::CallbackRules {
            networks: self.agent.callback_networks.clone(),
            require_tls: self.agent.require_tls,
            allow_host_names: self.agent.allow_callback_host_names,
        }
    }

    /// The part the agent client reads.
    pub fn agent_settings(&self) -> agent::Settings {
        agent::Settings {
            connect_timeout: Duration::from_secs(self.agent.connect_timeout),
            command_timeout: Duration::from_secs(self.agent.command_timeout),
            response_bytes_max: self.agent.response_bytes_max,
            ca_file: self.agent.ca_file.clone(),
            tls_min_version: self.agent.tls_min_version,
            callback: self.callback_rules(),
        }
    }

    /// Where the key for agent tokens is kept: `token_key_file`, or beside the SQLite file under its name with `.token-key` added;
    /// none only for a configuration that does not pass [`Config::validate`].
    pub fn token_key_path(&self) -> Option<PathBuf> {
        if let Some(path) = &self.agent.token_key_file {
            return Some(path.clone());
        }
        let database = self.database.url.strip_prefix("sqlite://")?;
        Some(PathBuf::from(format!("{database}.token-key")))
    }
}

#[cfg(test)]
mod tests;
