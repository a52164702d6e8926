//! A conductor of one test's own, on a database of its own.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use upbeat::agent::{AgentClient, CallbackRules, Settings as AgentSettings, TlsMinVersion};
use upbeat::clock::Clock;
use upbeat::conductor::supervise::Intensity;
use upbeat::conductor::{Conductor, Connections, Settings, TokenKey};
use upbeat::driver::Drivers;
use upbeat::node::Limits;
use upbeat::observe::metrics::Metrics;
use upbeat::store::{Store, StoreSettings, open};

/// A running conductor; its database is gone when this is dropped.
pub struct TestConductor {
    pub conductor: Conductor,
    pub rules: CallbackRules,
    pub store: Store,
    pub metrics: Arc<Metrics>,
    _directory: TempDir,
}

/// Starts one. Needs a running actix system.
pub async fn start_test_conductor(change: impl FnOnce(&mut Settings)) -> TestConductor {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&StoreSettings {
        url: format!("sqlite://{}", directory.path().join("upbeat.db").display()),
        readers: 2,
        host: "conductor-1".to_owned(),
        queue_max: 1_000,
    })
    .unwrap();
    let rules = CallbackRules {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        require_tls: false,
        allow_host_names: false,
    };
    let agents = AgentClient::new(AgentSettings {
        connect_timeout: Duration::from_secs(1),
        command_timeout: Duration::from_secs(1),
        response_bytes_max: 1 << 20,
        ca_file: None,
        tls_min_version: TlsMinVersion::V1_2,
        callback: rules.clone(),
    })
    .unwrap();
    let metrics = Arc::new(Metrics::new());
    let mut settings = Settings {
        host: "conductor-1".to_owned(),
        arbiters: 1,
        busy_wait: Duration::ZERO,
        mailbox_messages_max: 16,
        intensity: Intensity {
            restarts_max: 3,
            window: Duration::from_secs(60),
        },
        // There are no agents that could clean.
        idle_actor_kept_for: Duration::from_secs(10),
        limits: Limits {
            automated_clean: false,
            ..Limits::default()
        },
        agent_requests_max: 100,
        poll_interval_max_ms: 1_000,
    };
    change(&mut settings);
    let conductor = Conductor::start(
        settings,
        Connections {
            reader: store.reader.clone(),
            writer: store.writer.clone(),
            drivers: Drivers::new(None),
            agents,
            key: TokenKey::random(),
            metrics: metrics.clone(),
            clock: Clock::start(),
        },
    );
    conductor.recover(0).await.unwrap();
    TestConductor {
        conductor,
        rules,
        store,
        metrics,
        _directory: directory,
    }
}
