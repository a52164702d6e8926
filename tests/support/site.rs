//! A conductor as `upbeat serve` starts it, in this process, with simulated machines behind its fake driver.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use diesel::connection::{Connection as _, SimpleConnection as _};
use diesel::sqlite::SqliteConnection;
use serde_json::Value;
use tempfile::TempDir;
use upbeat::config::Config;
use upbeat::demo::{Faults, Fleet, FleetOptions, Journal, Scheme};
use upbeat::driver::PowerHook;
use upbeat::node::BootMode;
use upbeat::serve::{self, Running};

use super::api::{Api, LIMIT, eventually};

pub const MAC: &str = "52:54:00:aa:00:01";

/// Limits that suit tests: an agent may be silent for 3 s. Nodes are not cleaned unless they say so.
pub fn quick_config(folder: &TempDir) -> Config {
    let mut config = Config::default();
    config.database.url = format!("sqlite://{}", folder.path().join("upbeat.db").display());
    config.api.listen = "127.0.0.1:0".parse().unwrap();
    config.api.workers = 1;
    config.conductor.host = Some("conductor-1".to_owned());
    config.conductor.automated_clean = false;
    for timeout in [
        &mut config.conductor.deploy_callback_timeout,
        &mut config.conductor.clean_callback_timeout,
        &mut config.conductor.service_callback_timeout,
        &mut config.conductor.rescue_callback_timeout,
    ] {
        *timeout = 3;
    }
    config.conductor.soft_power_off_wait = 5;
    config.conductor.default_boot_mode = BootMode::Bios;
    config.agent.heartbeat_timeout = 2;
    config.agent.poll_interval_max = 1;
    config.agent.connect_timeout = 2;
    config.agent.command_timeout = 5;
    config.agent.callback_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config
}

/// Machines that boot at once and write for a quarter of a second.
pub fn quick_machines() -> FleetOptions {
    FleetOptions {
        boot_delay: Duration::from_millis(20),
        write_time: (Duration::from_millis(200), Duration::from_millis(300)),
        pace: 0.02,
        ..FleetOptions::default()
    }
}

/// The conductor and its machines.
pub struct Site {
    pub api: Api,
    pub fleet: Arc<Fleet>,
    pub folder: TempDir,
    running: Running,
}

impl Site {
    /// One machine with these faults, at [`MAC`].
    pub async fn with(faults: Faults) -> Site {
        let site = Site::start(|_| {}, quick_machines()).await;
        site.fleet.add(MAC, faults);
        site
    }

    /// Without machines.
    pub async fn start(change: impl FnOnce(&mut Config), machines: FleetOptions) -> Site {
        Site::start_in(tempfile::tempdir().unwrap(), change, machines).await
    }

    /// On the database that a site before left in `folder`.
    pub async fn start_in(
        folder: TempDir,
        change: impl FnOnce(&mut Config),
        machines: FleetOptions,
    ) -> Site {
        Site::start_with(folder, change, machines, |_| {}).await
    }

    /// `on_power` is called at each power change, before the machine is switched; it may panic.
    pub async fn start_with(
        folder: TempDir,
        change: impl FnOnce(&mut Config),
        machines: FleetOptions,
        on_power: impl Fn(&[String]) + Send + Sync + 'static,
    ) -> Site {
        let mut config = quick_config(&folder);
        config.agent.require_tls = machines.scheme == Scheme::Https;
        change(&mut config);
        let known = Arc::new(OnceLock::<Arc<Fleet>>::new());
        let to_be = known.clone();
        // The fleet needs the API's address, so it comes after the hook.
        let hook: PowerHook = Arc::new(move |_, macs, to| {
            on_power(macs);
            if let Some(fleet) = to_be.get() {
                macs.iter().for_each(|mac| fleet.power(mac, to.is_on()));
            }
        });
        let running = serve::start(&config, Some(hook)).await.unwrap();
        let api = Api::new(&format!("http://{}", running.address));
        let fleet = Arc::new(Fleet::new(&api.url, machines));
        let _ = known.set(fleet.clone());
        Site {
            api,
            fleet,
            folder,
            running,
        }
    }

    /// A node for the machine at [`MAC`], in `available`.
    pub async fn node(&self, changes: Value) -> String {
        self.api.available_node(MAC, changes).await
    }

    /// The same, and its deploy has been asked for.
    pub async fn deploying(&self) -> String {
        let uuid = self.node(Value::Null).await;
        self.api.ask(&uuid, "active").await;
        uuid
    }

    pub fn journal(&self) -> Journal {
        self.fleet.journal(MAC)
    }

    /// Waits until the machine's journal is as wished.
    pub async fn sees(&self, what: &str, wished: impl FnMut(&Journal) -> bool) -> Journal {
        match self.fleet.wait_for(MAC, LIMIT, wished).await {
            Ok(journal) => journal,
            Err(journal) => panic!("the machine never saw {what}: {journal:#?}"),
        }
    }

    pub async fn writing(&self) -> Journal {
        self.sees("a write begin", |journal| {
            !journal.writes_started.is_empty()
        })
        .await
    }

    pub async fn goes_off(&self) {
        eventually("the machine off", async || {
            (!self.fleet.is_on(MAC)).then_some(())
        })
        .await;
    }

    /// A connection to the database beside the conductor's own.
    pub fn database(&self) -> SqliteConnection {
        database(&self.folder)
    }

    /// Ends the conductor and its machines; answers where the database is.
    pub async fn stop(self) -> TempDir {
        self.fleet.stop().await;
        self.running.stop().await;
        self.folder
    }
}

/// A connection to the database in `folder`.
pub fn database(folder: &TempDir) -> SqliteConnection {
    let path = folder.path().join("upbeat.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection
        .batch_execute("PRAGMA busy_timeout = 5000")
        .unwrap();
    connection
}

/// The image was written by one command, once.
#[track_caller]
pub fn wrote_once(journal: &Journal) {
    wrote(journal, 1);
}

/// So many writes over all sessions; each session's only one, none begun before the one before had ended with its session.
#[track_caller]
pub fn wrote(journal: &Journal, times: usize) {
    assert_eq!(journal.writes_started.len(), times, "{journal:#?}");
    let mut starts: Vec<usize> = journal
        .commands_named("deploy.execute_deploy_step")
        .map(|command| command.agent_start)
        .collect();
    assert_eq!(starts.len(), times, "{journal:#?}");
    starts.dedup();
    assert_eq!(starts.len(), times, "two in one session: {journal:#?}");
    for write in &journal.writes_started {
        assert!(
            write.marks.values().any(|mark| mark
                .as_str()
                .is_some_and(|mark| mark.starts_with(&write.node_uuid))),
            "the step carries its operation id: {write:?}"
        );
    }
}
