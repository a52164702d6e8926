//! Machines for whatever nodes a client enrols.
//!
//! `upbeat lab` starts a conductor with [`Lab::power_hook`] and tells the lab where its API answers. From then on every
//! `fake-hardware` node whose power comes on finds a machine behind its ports; there is nothing else to prepare.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::driver::PowerHook;

use super::fleet::{Fleet, FleetOptions};

/// A fleet that grows with the nodes.
#[derive(Clone, Default)]
pub struct Lab {
    /// Comes after the hook, because it must know the API's address; no node exists until both do.
    fleet: Arc<OnceLock<Fleet>>,
}

impl Lab {
    /// To be called at each power change of a `fake-hardware` node.
    pub fn power_hook(&self) -> PowerHook {
        let fleet = self.fleet.clone();
        Arc::new(move |node_uuid, addresses, to| {
            if let Some(fleet) = fleet.get() {
                fleet.power_node(node_uuid, addresses, to);
            }
        })
    }

    /// From now on machines can be switched on; their agents call the API at `api_url` (without `/v1`).
    pub fn open(&self, api_url: &str) {
        self.fleet.get_or_init(|| Fleet::new(api_url, options()));
    }

    /// Switches all machines off.
    pub async fn close(&self) {
        if let Some(fleet) = self.fleet.get() {
            fleet.stop().await;
        }
    }
}

fn options() -> FleetOptions {
    FleetOptions {
        inspects: true,
        is_uefi: true,
        write_time: (Duration::from_millis(500), Duration::from_millis(1500)),
        ..FleetOptions::default()
    }
}
