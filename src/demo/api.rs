//! The agent's side of the ramdisk API: version, inspection, look-up, heartbeat.
//!
//! Used by one agent process. It knows how requests look, how answers are judged and how long to wait after a failure;
//! what the answers mean for the process is decided in `agent`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::fleet::World;
use super::tasks::random_between;

/// The version the agent reports.
pub(crate) const AGENT_VERSION: &str = "13.0.0";
/// What the agent assumes when `GET /` fails.
const VERSION_IF_UNKNOWN: u32 = 31;
const LOOKUP_VERSION_MAX: u32 = 62;
const HEARTBEAT_VERSION_MAX: u32 = 68;
const LOOKUP_LIMIT_S: f64 = 600.0;
/// Extra pauses after a look-up was answered 409; the last one repeats.
const CONFLICT_PAUSES_S: [f64; 3] = [5.0, 10.0, 30.0];

/// How often inspection data is sent.
const INSPECTION_ATTEMPTS: u32 = 5;

/// Inspection data could not be delivered: the agent ends.
#[derive(Debug)]
pub(crate) struct NoAnswer;

pub(crate) struct Api {
    world: Arc<World>,
    /// The minor number the server announced; 0 before the first answer.
    version: AtomicU32,
}

/// What an agent says in its heartbeat.
pub(crate) struct Heartbeat<'a> {
    pub(crate) node_uuid: &'a str,
    pub(crate) callback_url: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) certificate: Option<&'a str>,
}

impl Api {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self {
            world,
            version: AtomicU32::new(0),
        }
    }

    /// Whether the API answers at all; any status will do. The agent chooses its own address by this.
    pub(crate) async fn is_reachable(&self) -> bool {
        self.world
            .client
            .get(&self.world.api_url)
            .send()
            .await
            .is_ok()
    }

    /// The highest minor version of the server, or [`VERSION_IF_UNKNOWN`] this time if it cannot be learnt.
    pub(crate) async fn version(&self) -> u32 {
        let known = self.version.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        match self.ask_version().await {
            Some(version) => {
                self.version.store(version, Ordering::Relaxed);
                version
            }
            None => VERSION_IF_UNKNOWN,
        }
    }

    async fn ask_version(&self) -> Option<u32> {
        let url = format!("{}/", self.world.api_url);
        let answer = self
            .world
            .client
            .get(url)
            .header("Accept", "application/json")
            .send()
            .await
            .ok()?;
        let body: Value = answer.json().await.ok()?;
        body["default_version"]["version"]
            .as_str()?
            .strip_prefix("1.")?
            .parse()
            .ok()
    }

    /// Sends what the agent knows about its machine, and again after 409, 5xx or no answer. Returns the node it
    /// belongs to, or `None` if the API did not want it; `answered` is told of each status.
    ///
    /// # Errors
    /// After five attempts.
    pub(crate) async fn continue_inspection(
        &self,
        data: &Value,
        answered: impl Fn(Option<u16>),
    ) -> Result<Option<String>, NoAnswer> {
        let options = &self.world.options;
        for attempt in 1..=INSPECTION_ATTEMPTS {
            // Without a version header, as the real one.
            let answer = self
                .world
                .client
                .post(format!("{}/v1/continue_inspection", self.world.api_url))
                .header("Accept", "application/json")
                .json(data)
                .send()
                .await
                .ok();
            let status = answer.as_ref().map(|answer| answer.status().as_u16());
            answered(status);
            match (answer, status) {
                (Some(answer), Some(status)) if status < 500 && status != 409 => {
                    if status >= 400 {
                        tracing::info!(status, "the inspection data was not wanted");
                        return Ok(None);
                    }
                    let body: Value = answer.json().await.unwrap_or_default();
                    return Ok(body["uuid"].as_str().map(str::to_owned));
                }
                _ => {
                    let pause = 1.5 * f64::from(2u32.pow(attempt - 1));
                    tokio::time::sleep(options.paced(pause.clamp(5.0, 30.0))).await;
                }
            }
        }
        Err(NoAnswer)
    }

    /// Looks the node up until it is found. `None` when ten minutes (of the agent's time) have passed.
    pub(crate) async fn lookup(
        &self,
        addresses: &[String],
        node_uuid: Option<&str>,
        mut sent: impl FnMut(),
    ) -> Option<Value> {
        let options = &self.world.options;
        let addresses = addresses.join(",");
        let deadline = Instant::now() + options.paced(LOOKUP_LIMIT_S);
        let mut conflicts = 0;
        for attempt in 0.. {
            sent();
            match self.lookup_once(&addresses, node_uuid).await {
                Ok(found) => return Some(found),
                Err(Some(409)) => {
                    let pause = CONFLICT_PAUSES_S[conflicts.min(CONFLICT_PAUSES_S.len() - 1)];
                    conflicts += 1;
                    tokio::time::sleep(options.paced(pause)).await;
                }
                Err(_) => {}
            }
            let longest = f64::from(2u32.pow(attempt.min(6))).min(60.0);
            let pause = options.paced(random_between(1.0, longest.max(1.0)));
            if Instant::now() + pause > deadline {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        None
    }

    /// One look-up.
    ///
    /// # Errors
    /// The status, or `None` if there was no usable answer.
    async fn lookup_once(
        &self,
        addresses: &str,
        node_uuid: Option<&str>,
    ) -> Result<Value, Option<u16>> {
        let mut query = vec![("addresses", addresses)];
        query.extend(node_uuid.map(|uuid| ("node_uuid", uuid)));
        let version = self.version().await.min(LOOKUP_VERSION_MAX);
        let answer = self
            .world
            .client
            .get(format!("{}/v1/lookup", self.world.api_url))
            .query(&query)
            .header("X-OpenStack-Ironic-API-Version", format!("1.{version}"))
            .header("Content-Type", "application/json")
            .header("Accept", "application/json")
            .send()
            .await
            .map_err(|_| None)?;
        if answer.status() != 200 {
            return Err(Some(answer.status().as_u16()));
        }
        let found: Value = answer.json().await.map_err(|_| None)?;
        let is_complete = found["node"]["uuid"].is_string()
            && (found["config"].is_object() || found["heartbeat_timeout"].is_number());
        if is_complete { Ok(found) } else { Err(None) }
    }

    /// Sends one heartbeat and returns the status of the answer, `None` if there was none.
    pub(crate) async fn heartbeat(&self, heartbeat: &Heartbeat<'_>) -> Option<u16> {
        let version = self.version().await.min(HEARTBEAT_VERSION_MAX);
        let mut body = json!({ "callback_url": heartbeat.callback_url });
        if version >= 62 {
            body["agent_token"] = heartbeat.token.into();
        }
        if version >= 36 {
            body["agent_version"] = AGENT_VERSION.into();
        }
        if let (true, Some(certificate)) = (version >= 68, heartbeat.certificate) {
            body["agent_verify_ca"] = certificate.into();
        }
        let answer = self
            .world
            .client
            .post(format!(
                "{}/v1/heartbeat/{}",
                self.world.api_url, heartbeat.node_uuid
            ))
            .header("X-OpenStack-Ironic-API-Version", format!("1.{version}"))
            .header("Accept", "application/json")
            .json(&body)
            .send()
            .await
            .ok()?;
        Some(answer.status().as_u16())
    }
}
