//! Many machines with one owner.
//!
//! Used by the demo and by tests. The fleet finds machines by MAC address and runs them all on a small runtime of its
//! own, so that it can be used from any thread (an actor's included) without slowing that thread down, and is itself
//! not slowed down by it. It never talks to the conductor by itself: only its machines' agents do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use tokio::runtime::{Handle, Runtime};

use crate::driver::{PowerHook, Switch};

use super::faults::Faults;
use super::journal::Journal;
use super::machine::Machine;

/// Whether agents serve TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// With a certificate made at each start. Needs an API that announces 1.68 or later, as with the real agent; below
    /// that the agent falls back to plain HTTP.
    Https,
    /// Without TLS.
    Http,
}

/// The curve of the agents' keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// As agents before 11.6.0.
    P256,
    /// As agents since 11.6.0.
    P384,
}

/// What the machines of a fleet have in common.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Whether agents serve TLS.
    pub scheme: Scheme,
    /// The curve of their keys.
    pub curve: Curve,
    /// From power on to the start of the agent.
    pub boot_delay: Duration,
    /// Shortest and longest time to write an image.
    pub write_time: (Duration, Duration),
    /// How long `deploy.get_deploy_steps` takes.
    pub steps_time: Duration,
    /// Factor on all waits that are built into the agent (see [`FleetOptions::paced`]). 1 is the real agent. The
    /// heartbeat interval is not affected: the conductor chooses it.
    pub pace: f64,
    /// Whether the machines boot by UEFI unless the node says otherwise.
    pub is_uefi: bool,
    /// Whether agents tell about their machines when they start, as those do that were booted with an address to tell.
    pub inspects: bool,
    /// Threads that run the machines.
    pub threads: usize,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            scheme: Scheme::Https,
            curve: Curve::P256,
            boot_delay: Duration::from_millis(300),
            write_time: (Duration::from_secs(1), Duration::from_secs(3)),
            steps_time: Duration::ZERO,
            pace: 0.1,
            is_uefi: false,
            inspects: false,
            threads: 1,
        }
    }
}

impl FleetOptions {
    /// `seconds` of the real agent in this fleet's time: retries after 5 to 10 s, look-ups for 600 s, and so on.
    pub fn paced(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * self.pace)
    }
}

/// What every machine of a fleet knows.
pub(crate) struct World {
    pub(crate) api_url: String,
    pub(crate) options: FleetOptions,
    pub(crate) client: reqwest::Client,
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) runtime: Handle,
}

/// The machines, by MAC address. Dropping the fleet switches them off.
pub struct Fleet {
    world: Arc<World>,
    machines: RwLock<HashMap<String, Arc<Machine>>>,
    runtime: Mutex<Option<Runtime>>,
}

impl Fleet {
    /// An empty fleet whose agents call the API at `api_url` (`http://127.0.0.1:6385`, no `/v1`).
    ///
    /// # Panics
    /// If the system refuses a thread.
    pub fn new(api_url: &str, options: FleetOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("machines")
            .enable_all()
            .build()
            .expect("the system has a thread to spare");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // The client asks for the process-wide provider; whoever installed one first has the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(16)
            .no_proxy()
            .build()
            .expect("the client's settings are fixed and a TLS provider is installed");
        let world = Arc::new(World {
            api_url: api_url.trim_end_matches('/').to_owned(),
            options,
            client,
            provider,
            runtime: runtime.handle().clone(),
        });
        Self {
            world,
            machines: RwLock::default(),
            runtime: Mutex::new(Some(runtime)),
        }
    }

    /// Adds a machine, switched off. If there is one with this MAC, only its faults are replaced.
    pub fn add(&self, mac: impl Into<String>, faults: Faults) {
        let mac = mac.into().to_lowercase();
        let mut machines = self
            .machines
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match machines.get(&mac) {
            Some(machine) => machine.faults.replace(faults),
            None => {
                machines.insert(
                    mac.clone(),
                    Arc::new(Machine::new(mac, faults, self.world.clone())),
                );
            }
        }
    }

    /// Presses the power switch. Nothing happens if the machine is in that state already, or is not of this fleet.
    pub fn power(&self, mac: &str, on: bool) {
        if let Some(machine) = self.machine(mac) {
            machine.power(on);
        }
    }

    /// Presses the power switch of the machine behind a node. When it is switched on for the first time a machine is
    /// plugged in: one interface for each of these addresses and another one that nobody told of. A node without ports
    /// gets a machine, too; its addresses are made up. Unlike [`Fleet::power`] this knows what the machine shall boot.
    pub fn power_node(&self, node_uuid: &str, addresses: &[String], to: Switch) {
        let mut addresses: Vec<String> = addresses.iter().map(|mac| mac.to_lowercase()).collect();
        let without_ports = made_up_address(node_uuid, 0x52);
        if addresses.is_empty() {
            addresses.push(without_ports);
        } else {
            self.power(&without_ports, false);
        }
        if to.is_on() {
            let machine = self.plug_in(&addresses);
            machine.boot_next_from(to);
            machine.power(true);
        } else if let Some(machine) = addresses.iter().find_map(|mac| self.machine(mac)) {
            machine.power(false);
        }
    }

    /// The machine with one of these addresses; from now on it has them all.
    fn plug_in(&self, addresses: &[String]) -> Arc<Machine> {
        let mut machines = self
            .machines
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let plugged = addresses.iter().find_map(|mac| machines.get(mac).cloned());
        let machine = plugged.unwrap_or_else(|| {
            let first = addresses.first().cloned().unwrap_or_default();
            let spare = made_up_address(&first, 0x56);
            let machine = Machine::new(first, Faults::none(), self.world.clone());
            machine.add_interface(&spare);
            let machine = Arc::new(machine);
            machines.insert(spare, machine.clone());
            machine
        });
        for mac in addresses {
            if !machines.contains_key(mac) {
                machine.add_interface(mac);
                machines.insert(mac.clone(), machine.clone());
            }
        }
        machine
    }

    /// Whether the machine is on. A machine that its agent switched off is off.
    pub fn is_on(&self, mac: &str) -> bool {
        self.machine(mac).is_some_and(|machine| machine.is_on())
    }

    /// A hook for a driver that presses this fleet's switches. It does not keep the fleet alive.
    pub fn power_hook(self: &Arc<Self>) -> PowerHook {
        let fleet = Arc::downgrade(self);
        Arc::new(move |_node_uuid, macs, to| {
            if let Some(fleet) = fleet.upgrade() {
                for mac in macs {
                    fleet.power(mac, to.is_on());
                }
            }
        })
    }

    /// A copy of what happened on the machine so far; empty for a machine that is not of this fleet.
    pub fn journal(&self, mac: &str) -> Journal {
        self.machine(mac)
            .map(|machine| machine.journal.borrow().clone())
            .unwrap_or_default()
    }

    /// Waits until the machine's journal is as wished, and returns it.
    ///
    /// # Errors
    /// The journal as it is when `limit` has passed, or at once if the machine is not of this fleet.
    pub async fn wait_for(
        &self,
        mac: &str,
        limit: Duration,
        wished: impl FnMut(&Journal) -> bool,
    ) -> Result<Journal, Journal> {
        let Some(machine) = self.machine(mac) else {
            return Err(Journal::default());
        };
        let mut journal = machine.journal.subscribe();
        let seen = tokio::time::timeout(limit, journal.wait_for(wished)).await;
        match seen {
            Ok(Ok(journal)) => Ok(journal.clone()),
            Ok(Err(_)) | Err(_) => Err(machine.journal.borrow().clone()),
        }
    }

    /// Switches everything off and ends the fleet's threads. The journals stay readable.
    pub async fn stop(&self) {
        for machine in self
            .machines
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            machine.power(false);
        }
        let runtime = self
            .runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(runtime) = runtime {
            let ended = tokio::task::spawn_blocking(move || {
                runtime.shutdown_timeout(Duration::from_secs(2))
            })
            .await;
            if let Err(error) = ended {
                tracing::warn!(%error, "the machines' threads did not end cleanly");
            }
        }
    }

    fn machine(&self, mac: &str) -> Option<Arc<Machine>> {
        let machines = self.machines.read().unwrap_or_else(PoisonError::into_inner);
        machines
            .get(mac)
            .or_else(|| machines.get(&mac.to_lowercase()))
            .cloned()
    }
}

/// An address that follows from a text: the same for the same text, and locally administered when `first` says so.
fn made_up_address(text: &str, first: u8) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let bytes = hash.to_be_bytes();
    let rest: Vec<String> = bytes[..5]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{first:02x}:{}", rest.join(":"))
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A runtime that is dropped where async code runs would panic.
        if let Some(runtime) = self
            .runtime
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            runtime.shutdown_background();
        }
    }
}
