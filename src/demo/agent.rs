//! One agent process: from its start to its end.
//!
//! The machine starts it after each boot, and again when it has exited. In order, as the real one: tell about the
//! machine if it shall be inspected, probe the API, look the node up, judge the token, make a certificate, serve, heartbeat. A process has no memory of the one before.
//! `serve` answers its HTTP requests, `commands` runs what it is told; this file never looks into commands.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::api::{Api, Heartbeat, NoAnswer};
use super::certificate;
use super::faults::Fault;
use super::fleet::Scheme;
use super::history::History;
use super::inspection;
use super::journal::{HeartbeatRecord, Journal};
use super::machine::Machine;
use super::serve;
use super::tasks::{Tasks, random_between};

/// Shorter tokens are ignored.
const TOKEN_LENGTH_MIN: usize = 32;
/// What the API says instead of a token it has given out before.
const TOKEN_MASK: &str = "******";
/// A forced heartbeat keeps this distance from the one before.
const FORCED_DISTANCE_S: f64 = 5.0;
/// The API's default, for a reply that names no heartbeat timeout.
const HEARTBEAT_TIMEOUT_S: f64 = 300.0;

/// How an agent process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It did not find its node or the API; it is started again.
    GaveUp,
    /// It crashed and is started again.
    Restarts,
    /// Its token had been given out before: it neither serves nor heartbeats, for ever.
    TokenRefused,
    /// `standby.power_off`.
    PowersOff,
    /// `standby.run_image`.
    RunsImage,
    /// `system.lockdown`.
    LockedDown,
    /// `rescue.finalize_rescue`: the machine stays on for its user.
    Rescued,
    /// The machine hangs as a whole.
    Dies,
}

/// What the look-up told the agent.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) node_uuid: String,
    pub(crate) token: Option<String>,
    pub(crate) heartbeat_timeout: Duration,
    pub(crate) is_md5_enabled: bool,
}

pub(crate) struct Process {
    pub(crate) machine: Arc<Machine>,
    /// Counted from 1 over the machine's life.
    pub(crate) number: usize,
    /// Seconds since 1970.
    pub(crate) started_at: f64,
    pub(crate) api: Api,
    pub(crate) history: History,
    pub(crate) tasks: Tasks,
    identity: Mutex<Option<Identity>>,
    end: watch::Sender<Option<End>>,
    heartbeat_is_forced: AtomicBool,
    heartbeat_wanted: Notify,
}

impl Process {
    pub(crate) fn new(machine: Arc<Machine>) -> Arc<Self> {
        let mut number = 0;
        machine.journal.send_modify(|journal| {
            journal.agent_starts += 1;
            number = journal.agent_starts;
        });
        let world = machine.world.clone();
        Arc::new(Self {
            machine,
            number,
            started_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
            api: Api::new(world.clone()),
            history: History::default(),
            tasks: Tasks::new(world.runtime.clone()),
            identity: Mutex::new(None),
            end: watch::Sender::new(None),
            heartbeat_is_forced: AtomicBool::new(false),
            heartbeat_wanted: Notify::new(),
        })
    }

    /// Runs until the process ends. `socket` is bound and does not listen yet.
    pub(crate) async fn run(self: &Arc<Self>, socket: TcpSocket) -> End {
        let inspected = if self.machine.world.options.inspects {
            let data = inspection::data(&self.machine);
            let sent = |status| self.note(|journal| journal.inspections.push(status));
            match self.api.continue_inspection(&data, sent).await {
                Ok(node_uuid) => node_uuid,
                Err(NoAnswer) => return End::GaveUp,
            }
        } else {
            None
        };
        if !self.api.is_reachable().await {
            return End::GaveUp;
        }
        let sent = || self.note(|journal| journal.lookups_sent += 1);
        let addresses = self.machine.addresses();
        let lookup = self.api.lookup(&addresses, inspected.as_deref(), sent);
        let Some(found) = lookup.await else {
            return End::GaveUp;
        };
        let identity = read_lookup(&found);
        if identity.token.as_deref() == Some(TOKEN_MASK) {
            self.note(|journal| journal.token_was_masked = true);
            return End::TokenRefused;
        }
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        match self.serve_and_heartbeat(socket).await {
            Ok(()) => self.ended().await,
            Err(error) => {
                tracing::warn!(mac = %self.machine.mac, %error, "an agent could not serve");
                End::GaveUp
            }
        }
    }

    async fn serve_and_heartbeat(self: &Arc<Self>, socket: TcpSocket) -> Result<(), String> {
        let options = &self.machine.world.options;
        // As in the real agent: no certificate for an API that could not be told about it.
        let wants_certificate = options.scheme == Scheme::Https && self.api.version().await >= 68;
        let certificate = if wants_certificate {
            let host_name = format!("machine-{}", self.machine.mac.replace(':', ""));
            let provider = &self.machine.world.provider;
            Some(certificate::make(
                &host_name,
                Ipv4Addr::LOCALHOST,
                options.curve,
                provider,
            )?)
        } else {
            None
        };
        let port = socket
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        let scheme = if certificate.is_some() {
            "https"
        } else {
            "http"
        };
        let callback_url = format!("{scheme}://127.0.0.1:{port}");
        self.note(|journal| journal.callback_url = Some(callback_url.clone()));

        let tls = certificate
            .as_ref()
            .map(|certificate| certificate.server.clone());
        let refuses = |fault: &Fault| {
            if let Fault::RefusesConnections(time) = fault {
                Some(*time)
            } else {
                None
            }
        };
        match self.machine.faults.find(refuses) {
            // A socket that is bound and does not listen refuses connections and keeps its port.
            Some(time) => {
                let process = self.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(time).await;
                    if let Err(error) = serve::start(&process, socket, tls) {
                        tracing::warn!(mac = %process.machine.mac, %error, "an agent could not listen");
                    }
                });
            }
            None => serve::start(self, socket, tls).map_err(|error| error.to_string())?,
        }
        let process = self.clone();
        let pem = certificate.map(|certificate| certificate.pem);
        self.tasks.spawn(async move {
            tokio::select! {
                () = process.heartbeats(&callback_url, pem.as_deref()) => {}
                // Matters when the machine dies: its tasks are kept then.
                _ = process.ended() => {}
            }
        });
        Ok(())
    }

    /// Heartbeats as long as the process lives.
    async fn heartbeats(&self, callback_url: &str, certificate: Option<&str>) {
        let options = &self.machine.world.options;
        let Some(identity) = self.identity() else {
            return;
        };
        let mut due = Instant::now();
        let mut previous = None;
        loop {
            self.wait_for_heartbeat(due, previous).await;
            let sent_at = std::time::Instant::now();
            let is_forced = self.heartbeat_is_forced.load(Ordering::Relaxed);
            let heartbeat = Heartbeat {
                node_uuid: &identity.node_uuid,
                callback_url,
                token: identity.token.as_deref(),
                certificate,
            };
            let status = self.api.heartbeat(&heartbeat).await;
            self.note(|journal| {
                journal.heartbeats.push(HeartbeatRecord {
                    sent_at,
                    status,
                    forced: is_forced,
                });
            });
            let now = Instant::now();
            previous = Some(now);
            due = now
                + if status == Some(202) {
                    // Also forgets a command that finished while this heartbeat was on its way; so does the real one.
                    self.heartbeat_is_forced.store(false, Ordering::Relaxed);
                    identity.heartbeat_timeout.mul_f64(random_between(0.3, 0.6))
                } else {
                    options.paced(random_between(5.0, 10.0))
                };
        }
    }

    async fn wait_for_heartbeat(&self, due: Instant, previous: Option<Instant>) {
        let distance = self.machine.world.options.paced(FORCED_DISTANCE_S);
        loop {
            let wake_at = match previous {
                Some(previous) if self.heartbeat_is_forced.load(Ordering::Relaxed) => {
                    due.min(previous + distance)
                }
                _ => due,
            };
            tokio::select! {
                () = tokio::time::sleep_until(wake_at) => return,
                () = self.heartbeat_wanted.notified() => {}
            }
        }
    }

    /// Asks for a heartbeat because an asynchronous command has finished.
    pub(crate) fn force_heartbeat(&self) {
        let drops = |fault: &Fault| (*fault == Fault::DropsForcedHeartbeats).then_some(());
        if self.machine.faults.find(drops).is_none() {
            self.heartbeat_is_forced.store(true, Ordering::Relaxed);
            self.heartbeat_wanted.notify_one();
        }
    }

    /// What the look-up told; `None` before it was answered.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether a request with this token may command the agent.
    pub(crate) fn accepts_token(&self, token: Option<&str>) -> bool {
        let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let own = identity
            .as_ref()
            .and_then(|identity| identity.token.as_deref());
        own.is_some() && own == token
    }

    /// Ends the process; the first call counts.
    pub(crate) fn end(&self, end: End) {
        self.end.send_if_modified(|present| {
            let is_first = present.is_none();
            present.get_or_insert(end);
            is_first
        });
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> End {
        let mut end = self.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.unwrap_or(End::GaveUp),
            Err(_) => End::GaveUp,
        }
    }

    /// Writes the machine's journal.
    pub(crate) fn note(&self, write: impl FnOnce(&mut Journal)) {
        self.machine.journal.send_modify(write);
    }
}

/// Reads the reply to a look-up, the old form without `config` included.
fn read_lookup(found: &Value) -> Identity {
    let config = &found["config"];
    let timeout = config["heartbeat_timeout"]
        .as_f64()
        .or_else(|| found["heartbeat_timeout"].as_f64());
    let token = config["agent_token"].as_str();
    Identity {
        node_uuid: found["node"]["uuid"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        token: token
            .filter(|token| token.len() >= TOKEN_LENGTH_MIN || *token == TOKEN_MASK)
            .map(str::to_owned),
        heartbeat_timeout: Duration::from_secs_f64(timeout.unwrap_or(HEARTBEAT_TIMEOUT_S).max(0.1)),
        is_md5_enabled: config["agent_md5_checksum_enable"]
            .as_bool()
            .unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_tokens_are_ignored_and_the_mask_is_kept_to_be_judged() {
        let token = |token: Value| {
            read_lookup(&json!({"node": {"uuid": "u"}, "config": {"heartbeat_timeout": 3, "agent_token": token}})).token
        };
        assert_eq!(token(json!("x".repeat(32))), Some("x".repeat(32)));
        assert_eq!(token(json!("x".repeat(31))), None);
        assert_eq!(token(json!("******")), Some("******".to_owned()));
        assert_eq!(token(Value::Null), None);
    }

    #[test]
    fn a_reply_without_config_is_read_too() {
        let identity = read_lookup(&json!({"node": {"uuid": "u"}, "heartbeat_timeout": 20}));
        assert_eq!(identity.heartbeat_timeout, Duration::from_secs(20));
        assert_eq!(identity.token, None);
    }
}
