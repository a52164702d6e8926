//! Puts a conductor together from its configuration: store, actors, agent client, HTTP; and takes it apart again.
//!
//! Called by the command line for `serve` and, with a hook for the power of its machines, by the demo. It never decides anything
//! about nodes.

mod open_files;

pub use open_files::allow_all as allow_open_files;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::dev::{Server, ServerHandle};
use futures_util::future::{join_all, try_join_all};
use tokio::task::JoinHandle;

use crate::agent::{self, AgentClient};
use crate::clock::Clock;
use crate::conductor::supervise::Intensity;
use crate::conductor::{Conductor, Connections, Settings, TokenKey};
use crate::config::{Auth, Config};
use crate::driver::{Drivers, PowerHook};
use crate::http::{self, HttpSettings};
use crate::node::masking::masked_text;
use crate::observe::metrics::{self, Metrics, RequestLabel, RouteLabel};
use crate::store::{self, CommitObserver, StoreSettings, WriterEnd, WriterHandle};

/// How often the conductor notes that it is alive, so that after a crash the time nobody could be heard is known.
const ALIVE_NOTED_EVERY: Duration = Duration::from_secs(5);
/// Where that is kept in the store.
const ALIVE_AT: &str = "conductor_alive_at";
/// Where the fingerprint of the token key is kept in the store.
const KEY_FINGERPRINT: &str = "token_key_fingerprint";
/// How long a stop waits for answers of agents that are on their way.
const DRAINED_WITHIN: Duration = Duration::from_secs(4);
/// How long it waits for requests that are being answered.
const REQUESTS_ENDED_WITHIN_S: u64 = 4;
/// How often the actor threads are asked how late they answer.
const LAG_ASKED_EVERY: Duration = Duration::from_secs(1);

/// A conductor at work.
pub struct Running {
    /// Where the API answers.
    pub address: SocketAddr,
    /// Where agents are answered, if that is somewhere else.
    pub agent_address: Option<SocketAddr>,
    conductor: Conductor,
    http: Vec<ServerHandle>,
    serving: JoinHandle<std::io::Result<()>>,
    writer: WriterHandle,
    helpers: Vec<JoinHandle<()>>,
}

/// Why a running conductor came to its end without being asked.
#[derive(Debug)]
pub enum Ended {
    /// The HTTP server ended.
    Http(String),
    /// The thread that writes to the database died: nothing could be stored any more.
    Writer,
}

/// What may be done beside what a conductor does.
#[derive(Default)]
pub struct Hooks {
    /// Is told of the power of `fake-hardware`.
    pub power: Option<PowerHook>,
    /// Is told of every commit, on the thread that writes.
    pub on_commit: Option<CommitObserver>,
}

/// As [`start_with`], with machines behind `fake-hardware`, if there are any.
///
/// # Errors
/// As [`start_with`].
pub async fn start(config: &Config, power: Option<PowerHook>) -> Result<Running, String> {
    let hooks = Hooks {
        power,
        ..Hooks::default()
    };
    start_with(config, hooks).await
}

/// Starts a conductor. Returns when the API answers and every waiting node has its actor back. Needs a running actix system.
///
/// # Errors
/// What is wrong and how to mend it, in words for an operator; nothing is left running then.
pub async fn start_with(config: &Config, hooks: Hooks) -> Result<Running, String> {
    let began = Instant::now();
    let key_path = config
        .token_key_path()
        .ok_or("agent.token_key_file must be set for this database")?;
    let metrics = Arc::new(Metrics::new());
    let clock = Clock::start();
    let host = config.host();

    let (observed, on_commit) = (metrics.clone(), hooks.on_commit);
    let settings = StoreSettings {
        url: config.database.url.clone(),
        readers: u32::try_from(config.database.readers).unwrap_or(u32::MAX),
        host: host.clone(),
        queue_max: config.database.queue_max,
    };
    let opening = move || {
        store::open_observed(
            &settings,
            Arc::new(move |commit| {
                observed.committed(commit.took, commit.saves);
                if let Some(also) = &on_commit {
                    also(commit);
                }
            }),
        )
    };
    let store = tokio::task::spawn_blocking(opening)
        .await
        .map_err(|_| "opening the database panicked; see the log".to_owned())?
        .map_err(|error| error.to_string())?;
    let writer = store.handle;

    let key = match prepare_key(&key_path, &store.writer).await {
        Ok(key) => key,
        Err(why) => {
            writer.close().await;
            return Err(why);
        }
    };
    let down_for_ms = match store.reader.meta(ALIVE_AT).await {
        // Negative when the clock was set back meanwhile: then the times in the rows move back too.
        Ok(Some(text)) => text.parse().map_or(0, |at: i64| {
            clock.now().ms_since(crate::timestamp::Timestamp(at))
        }),
        Ok(None) | Err(_) => 0,
    };
    let agents = AgentClient::new(config.agent_settings())?;
    let conductor = Conductor::start(
        conductor_settings(config, host),
        Connections {
            reader: store.reader.clone(),
            writer: store.writer.clone(),
            drivers: Drivers::new(hooks.power),
            agents,
            key,
            metrics: metrics.clone(),
            clock,
        },
    );
    let recovered = conductor.recover(down_for_ms).await;
    let started = recovered
        .map_err(|error| format!("the nodes can't be read: {error:?}"))
        .and_then(|recovered| {
            let listening =
                http::start(http_settings(config), conductor.clone(), reports(&metrics))
                    .map_err(|error| not_listening(&error))?;
            Ok((recovered, listening))
        });
    let (recovered, listening): (usize, http::Listening) = match started {
        Ok(started) => started,
        Err(why) => {
            conductor.stop();
            writer.close().await;
            return Err(why);
        }
    };
    let http::Listening {
        servers,
        address,
        agent_address,
    } = listening;
    let http = servers.iter().map(Server::handle).collect();
    // The end of one is the end of all.
    let serving = tokio::spawn(async move { try_join_all(servers).await.map(|_| ()) });
    if config.api.auth == Auth::None && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            %address,
            "whoever reaches this address controls every machine: auth is \"none\" (allowed by api.allow_unauthenticated)"
        );
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %address,
        agent_address = agent_address.map(tracing::field::display),
        database = masked_text(&config.database.url),
        recovered,
        down_for_ms,
        took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "ready"
    );
    let helpers = vec![
        tokio::spawn(note_alive(store.writer.clone(), clock, conductor.clone())),
        tokio::spawn(watch_arbiters(conductor.clone(), metrics)),
    ];
    Ok(Running {
        address,
        agent_address,
        conductor,
        http,
        serving,
        writer,
        helpers,
    })
}

/// Why the API can't be offered, and what to do.
fn not_listening(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let cure = match error.kind() {
        ErrorKind::AddrInUse => {
            "; another program listens there: end it, or name another port in api.listen or api.agent_listen"
        }
        ErrorKind::AddrNotAvailable => {
            "; name an address of this machine in api.listen or api.agent_listen"
        }
        ErrorKind::PermissionDenied => {
            "; ports below 1024 need a privilege (CAP_NET_BIND_SERVICE), or name another in api.listen"
        }
        _ => "",
    };
    format!("{error}{cure}")
}

impl Running {
    /// Returns when the conductor has come to its end without being asked.
    pub async fn ended(&mut self) -> Ended {
        tokio::select! {
            end = self.writer.ended() => match end {
                WriterEnd::Closed | WriterEnd::Died => Ended::Writer,
            },
            served = &mut self.serving => Ended::Http(match served {
                Ok(Ok(())) => "it ended".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            }),
        }
    }

    /// Stops: no new requests, those in flight get their time, everything decided is stored.
    pub async fn stop(self) {
        // From now on nobody can be heard, so this time is not lived through.
        for helper in &self.helpers {
            helper.abort();
        }
        self.conductor.hurry();
        join_all(self.http.iter().map(|server| server.stop(true))).await;
        self.conductor.drain(DRAINED_WITHIN).await;
        self.conductor.stop();
        self.writer.close().await;
        tracing::info!("stopped");
    }
}

/// Reads or makes the token key, and checks that it is the one this database was used with.
async fn prepare_key(path: &std::path::Path, writer: &store::Writer) -> Result<TokenKey, String> {
    let key = TokenKey::load_or_create(path)?;
    let fingerprint = key.fingerprint();
    let stored = writer
        .set_meta_if_absent(KEY_FINGERPRINT, &fingerprint)
        .await
        .map_err(|error| format!("the token key's fingerprint can't be stored: {error:?}"))?;
    if stored != fingerprint {
        tracing::warn!(
            path = %path.display(),
            "the token key is not the one this database was used with: agents at work now lose their tokens and their deploys will fail; restore the old key and start again if that is not wanted"
        );
        writer
            .set_meta(KEY_FINGERPRINT, &fingerprint)
            .await
            .map_err(|error| format!("the token key's fingerprint can't be stored: {error:?}"))?;
    }
    Ok(key)
}

/// What is noted is until when every row knows how long its node has waited. A start after a crash takes off what comes later.
async fn note_alive(writer: store::Writer, clock: Clock, conductor: Conductor) {
    let mut ticks = tokio::time::interval(ALIVE_NOTED_EVERY);
    let mut stopped_for = clock.stopped_for();
    loop {
        ticks.tick().await;
        let stopped_before = std::mem::replace(&mut stopped_for, clock.stopped_for());
        let stood_still = stopped_for.saturating_sub(stopped_before);
        if !stood_still.is_zero() {
            tracing::warn!(
                seconds = stood_still.as_secs_f64(),
                "this process stood still: it was stopped or got no processor; every deadline has as much left as before"
            );
        }
        // A process that is killed soon after its start must have noted that it was there: its nodes' deadlines have moved already.
        while !conductor.is_settled() {
            tokio::time::sleep(SETTLED_ASKED_EVERY).await;
        }
        let now = clock.now().0.to_string();
        if let Err(error) = writer.set_meta(ALIVE_AT, &now).await {
            tracing::warn!(?error, "the conductor's sign of life can't be stored");
        }
    }
}

/// How often a start is asked whether every row knows of the absence.
const SETTLED_ASKED_EVERY: Duration = Duration::from_millis(20);

/// Asks every actor thread once a second and reports how late the slowest answered.
async fn watch_arbiters(conductor: Conductor, metrics: Arc<Metrics>) {
    let mut ticks = tokio::time::interval(LAG_ASKED_EVERY);
    loop {
        ticks.tick().await;
        let lag = conductor.arbiter_lag().await;
        metrics.arbiter_lag_seconds.set(lag.as_secs_f64());
    }
}

/// How many processor cores this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn conductor_settings(config: &Config, host: String) -> Settings {
    Settings {
        host,
        arbiters: match config.conductor.arbiters {
            0 => cores() / 2,
            asked => asked,
        },
        busy_wait: Duration::from_secs(config.api.busy_wait),
        mailbox_messages_max: config.conductor.mailbox_messages_max,
        intensity: Intensity {
            restarts_max: config.conductor.actor_restarts_max as usize,
            window: Duration::from_secs(config.conductor.actor_restarts_window),
        },
        idle_actor_kept_for: Duration::from_secs(config.conductor.idle_actor_kept_for),
        limits: config.limits(),
        agent_requests_max: config.agent.requests_max,
        poll_interval_max_ms: config.agent.poll_interval_max.saturating_mul(1_000),
    }
}

fn http_settings(config: &Config) -> HttpSettings {
    let rules = config.callback_rules();
    let check = Arc::new(move |url: &str| agent::check_callback_url(url, &rules));
    let mut settings = HttpSettings::new(config.api.listen, check);
    settings.agent_listen = config.api.agent_listen;
    let open_files = open_files::allow_all();
    settings.public_endpoint = config.api.public_endpoint.clone();
    settings.trust_proxy_headers = config.api.trust_proxy_headers;
    settings.workers = match config.api.workers {
        0 => cores(),
        asked => asked,
    };
    let listeners = 1 + usize::from(settings.agent_listen.is_some());
    settings.connections_per_worker_max = open_files::connections_per_worker(
        open_files,
        config.agent.requests_max,
        settings.workers * listeners,
    );
    settings.body_bytes_max = config.api.max_body_bytes;
    settings.configdrive_body_bytes_max = config.api.max_provision_body_bytes;
    settings.findings_bytes_max = config.api.max_inspection_body_bytes;
    settings.page_items_max = config.api.max_limit;
    settings.requests_max = config.api.max_requests;
    settings.auth = match (&config.api.auth, &config.api.htpasswd_file) {
        (Auth::HttpBasic, Some(file)) => http::Auth::Basic {
            htpasswd: file.clone(),
        },
        (Auth::HttpBasic | Auth::None, _) => http::Auth::None,
    };
    settings.stop_grace_s = REQUESTS_ENDED_WITHIN_S;
    settings.agent.endpoints_enabled = config.api.enable_ramdisk_endpoints;
    settings.agent.heartbeat_timeout_s =
        u32::try_from(config.agent.heartbeat_timeout).unwrap_or(u32::MAX);
    settings.agent.md5_checksum_enabled = config.agent.md5_checksums;
    settings.agent.permitted_image_formats = config.agent.permitted_image_formats.clone();
    settings.agent.tls_min_version = Some(config.agent.tls_min_version.name().to_owned());
    settings
}

fn reports(metrics: &Arc<Metrics>) -> http::Metrics {
    let (encoded, counted) = (metrics.clone(), metrics.clone());
    http::Metrics {
        text: Arc::new(move || encoded.encode()),
        content_type: metrics::CONTENT_TYPE,
        on_request: Arc::new(move |method, route, code, seconds| {
            let request = RequestLabel {
                method,
                route,
                code,
            };
            counted.http_requests.get_or_create(&request).inc();
            counted
                .http_request_seconds
                .get_or_create(&RouteLabel { route })
                .observe(seconds);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn a_writer_that_dies_ends_the_conductor_and_meanwhile_everybody_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.api.listen = "127.0.0.1:0".parse().unwrap();
        config.database.url = format!("sqlite://{}", directory.path().join("upbeat.db").display());
        let mut running = start(&config, None).await.unwrap();
        running.conductor.writer().dies();
        assert!(matches!(running.ended().await, Ended::Writer));

        let api = format!("http://{}/v1/nodes", running.address);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let asked = |request: reqwest::RequestBuilder| {
            request
                .header("X-OpenStack-Ironic-API-Version", "1.81")
                .send()
        };
        let node = serde_json::json!({"driver": "fake-hardware"});
        let told = asked(client.post(&api).json(&node)).await.unwrap();
        assert_eq!(told.status(), 503);
        assert!(told.headers().contains_key("retry-after"));
        // What is stored can be read on.
        assert_eq!(asked(client.get(&api)).await.unwrap().status(), 200);
        running.stop().await;
    }
}
