//! One machine: power, boot, and the agent that runs while it is on.
//!
//! ```text
//! off ──power on──▶ boot delay ──▶ agent process ──┬─ restarts itself, or gives up looking up ──▶ a new one
//!  ▲                   │                           ├─ dies silently, locked down, rescued, token refused ──▶ nothing more
//!  │                   └─ after a deploy: instance ├─ run_image ──▶ instance (no agent)
//!  └──────────────power off, any time──────────────┴─ power_off ──▶ off
//! ```
//!
//! The fleet owns it and presses its switch. It never decides anything about the protocol: that is the agent's part.
//! A machine remembers, from one power-on to the next, its port, its disk and whether it boots from it next time.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::sync::watch;

use crate::driver::Switch;

use super::agent::{End, Process};
use super::faults::{Armed, Faults};
use super::fleet::World;
use super::journal::Journal;
use super::tasks::Tasks;

/// How long a new agent waits between attempts to get the machine's port back.
const PORT_RETRY: Duration = Duration::from_millis(20);
/// After this many attempts it takes any port.
const PORT_RETRIES: usize = 25;

pub(crate) struct Machine {
    /// The address of its first interface, lower case, with colons.
    pub(crate) mac: String,
    /// Of its other interfaces.
    more_macs: Mutex<Vec<String>>,
    pub(crate) world: Arc<World>,
    pub(crate) faults: Armed,
    pub(crate) journal: watch::Sender<Journal>,
    /// The next power-on starts the instance instead of the ramdisk. Set when an agent hands the machine over after a
    /// write; it stands for the boot device that a conductor would set, and is good for one boot.
    boots_instance: AtomicBool,
    /// The disk holds a system that was handed over.
    holds_system: AtomicBool,
    /// The port of the last agent, 0 before the first; stands for the machine's IP address, which seldom changes.
    port: AtomicU16,
    session: Mutex<Option<Arc<Session>>>,
}

/// One power-on.
struct Session {
    tasks: Tasks,
}

impl Machine {
    pub(crate) fn new(mac: String, faults: Faults, world: Arc<World>) -> Self {
        Self {
            mac,
            more_macs: Mutex::default(),
            world,
            faults: Armed::new(faults),
            journal: watch::Sender::new(Journal::default()),
            boots_instance: AtomicBool::new(false),
            holds_system: AtomicBool::new(false),
            port: AtomicU16::new(0),
            session: Mutex::new(None),
        }
    }

    /// The addresses of all its interfaces.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let more = self
            .more_macs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::iter::once(&self.mac)
            .chain(more.iter())
            .cloned()
            .collect()
    }

    /// Plugs in one more interface, unless it is there already. Seen by agents that start afterwards.
    pub(crate) fn add_interface(&self, mac: &str) {
        let mut more = self
            .more_macs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.mac != mac && !more.iter().any(|other| other == mac) {
            more.push(mac.to_owned());
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.session
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Presses the switch; nothing happens if the machine is in that state already.
    pub(crate) fn power(self: &Arc<Self>, on: bool) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        match (on, session.take()) {
            (true, Some(running)) => *session = Some(running),
            (true, None) => {
                let started = Arc::new(Session {
                    tasks: Tasks::new(self.world.runtime.clone()),
                });
                *session = Some(started.clone());
                drop(session);
                self.journal.send_modify(|journal| journal.power_ons += 1);
                let machine = self.clone();
                let this = started.clone();
                started.tasks.spawn(async move { machine.run(this).await });
            }
            (false, Some(running)) => running.tasks.kill(),
            (false, None) => {}
        }
    }

    /// Says that the disk holds a system and the agent has finished its work.
    pub(crate) fn boot_instance_next(&self) {
        self.boots_instance.store(true, Ordering::Relaxed);
        self.holds_system.store(true, Ordering::Relaxed);
    }

    /// Says what the next power-on shall start, if it can.
    pub(crate) fn boot_next_from(&self, to: Switch) {
        let from_disk = to == Switch::On && self.holds_system.load(Ordering::Relaxed);
        self.boots_instance.store(from_disk, Ordering::Relaxed);
    }

    /// Says that the disk holds nothing any more.
    pub(crate) fn erase(&self) {
        self.holds_system.store(false, Ordering::Relaxed);
        self.boots_instance.store(false, Ordering::Relaxed);
    }

    async fn run(self: Arc<Self>, session: Arc<Session>) {
        if self.boots_instance.swap(false, Ordering::Relaxed) {
            self.journal
                .send_modify(|journal| journal.instance_boots += 1);
            return;
        }
        tokio::time::sleep(self.world.options.boot_delay).await;
        loop {
            let end = match self.bind().await {
                Ok(socket) => self.run_agent(socket).await,
                Err(error) => {
                    tracing::warn!(mac = %self.mac, %error, "an agent found no port to listen on");
                    End::GaveUp
                }
            };
            match end {
                // The ramdisk's service manager starts an agent again that has exited.
                End::GaveUp => tokio::time::sleep(self.world.options.paced(1.0)).await,
                End::Restarts => {}
                End::PowersOff => return self.switched_itself_off(&session),
                End::RunsImage => {
                    self.boots_instance.store(false, Ordering::Relaxed);
                    self.journal
                        .send_modify(|journal| journal.instance_boots += 1);
                    return;
                }
                End::TokenRefused | End::LockedDown | End::Rescued | End::Dies => return,
            }
        }
    }

    /// Runs one agent process to its end. Its tasks end with it, except those of one that died silently: they hold on
    /// to their sockets, unserved, until the power is switched off.
    async fn run_agent(self: &Arc<Self>, socket: TcpSocket) -> End {
        let process = KillOnDrop(Process::new(self.clone()));
        let end = process.0.run(socket).await;
        if end == End::Dies {
            std::future::pending::<()>().await;
        }
        end
    }

    /// Takes the machine's port, or any at the first start or when it is lost.
    async fn bind(&self) -> std::io::Result<TcpSocket> {
        for attempt in 0..=PORT_RETRIES {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            let port = if attempt < PORT_RETRIES {
                self.port.load(Ordering::Relaxed)
            } else {
                0
            };
            if socket.bind((Ipv4Addr::LOCALHOST, port).into()).is_ok() {
                self.port
                    .store(socket.local_addr()?.port(), Ordering::Relaxed);
                return Ok(socket);
            }
            tokio::time::sleep(PORT_RETRY).await;
        }
        Err(std::io::Error::other("no free port on 127.0.0.1"))
    }

    fn switched_itself_off(&self, ended: &Arc<Session>) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session
            .as_ref()
            .is_some_and(|running| Arc::ptr_eq(running, ended))
        {
            *session = None;
        }
        drop(session);
        // Wakes those who watch the journal to see the machine go off.
        self.journal.send_modify(|_| {});
    }
}

struct KillOnDrop(Arc<Process>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.tasks.kill();
    }
}
