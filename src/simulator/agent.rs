//! The agent: the ramdisk program on the machine, as it behaves towards a conductor.
//!
//! It tells what it found in its machine, looks up its node, heartbeats at a third to two thirds of the time it was told, runs one command at a time, calls itself busy
//! while the last entry of its list runs, keeps that list for life and forgets it with its process. Old ones answer no single
//! command; some break their list; a masked token without one of its own puts it to sleep for ever.

use serde_json::Value;

use super::faults::Fault;
use super::queue::{Call, CallAnswer, CallKind, Happening, Misfortune};
use super::work::entry;
use super::world::World;
use crate::command::{self, Entry, Request, Status};

/// So often an agent tries to tell what it found.
const TELLS_MAX: u32 = 5;

/// A request of the conductor on its way, with what the network has decided about it.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) life: u32,
    pub(super) ask: u64,
    pub(super) what: Asked,
    pub(super) url: String,
    pub(super) certificate: Option<String>,
    pub(super) token: String,
    pub(super) id: command::CommandId,
    pub(super) attempt: u32,
    /// How long the answer takes on its way back; none if it is lost.
    pub(super) back_ms: Option<i64>,
    /// The answer is made unreadable on its way.
    pub(super) is_garbled: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Asked {
    Survey,
    Poll(String),
    Post { request: Request, operation: String },
}

/// One command in the agent's list.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) entry: Entry,
    pub(super) ends_well: bool,
    pub(super) powers_off: bool,
    pub(super) is_write: bool,
    pub(super) result: Value,
    pub(super) operation: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// It tells what it found, so many times without an answer.
    Telling {
        tries: u32,
    },
    LookingUp {
        gives_up_at: i64,
    },
    Working,
    /// It got six stars and has no token.
    Asleep,
    /// It does nothing until then.
    Hung {
        until: i64,
    },
}

/// One process of the agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) process: u32,
    pub(super) boot: u32,
    pub(super) started_at: String,
    pub(super) certificate: Option<String>,
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) mood: Mood,
    /// What it did before it hung.
    pub(super) mood_before: Mood,
    pub(super) is_old: bool,
    pub(super) list: Vec<Listed>,
    pub(super) is_poisoned: bool,
    /// A synchronous command holds the lock until then.
    pub(super) locked_until: i64,
    pub(super) next_call_at: i64,
    pub(super) last_heartbeat_at: i64,
    pub(super) is_forced: bool,
    pub(super) open_call: Option<u64>,
    pub(super) calls: u64,
    pub(super) lookups: i64,
    pub(super) queued: Vec<Exchange>,
}

impl Agent {
    /// True when it still could carry a deploy on: it has a token, or is about to get one.
    pub(super) fn is_listening(&self) -> bool {
        !matches!(self.mood, Mood::Asleep)
    }
}

impl World<'_> {
    /// A process of the agent begins on the booted ramdisk.
    pub(super) fn process_starts(&mut self, boot: u32) {
        if self.machine.boot != boot || !self.machine.is_on || self.machine.agent.is_some() {
            return;
        }
        self.machine.processes += 1;
        let process = self.machine.processes;
        let now = self.now;
        let kind = &self.kind;
        let agent = Agent {
            process,
            boot,
            started_at: format!("{}.{process}", (now + self.conductor.offset_ms) / 1_000),
            certificate: kind
                .has_tls
                .then(|| format!("certificate of process {process}")),
            token: None,
            mood: Mood::Telling { tries: 0 },
            mood_before: Mood::Working,
            is_old: kind.is_old,
            list: Vec::new(),
            is_poisoned: false,
            locked_until: 0,
            next_call_at: now,
            last_heartbeat_at: 0,
            is_forced: false,
            open_call: None,
            calls: 0,
            lookups: 0,
            url: format!(
                "https://10.0.{}.{}:9999",
                self.number % 250,
                self.machine.address
            ),
            queued: Vec::new(),
        };
        self.machine.agent = Some(agent);
        self.trace(|| format!("agent: process {process} starts"));
        self.draw_misfortunes(process);
        self.agent_wakes(process);
    }

    /// What will go wrong with this process, if anything does.
    fn draw_misfortunes(&mut self, process: u32) {
        for (fault, what) in [
            (Fault::AgentRestart, Misfortune::ProcessEnds),
            (Fault::AgentHang, Misfortune::Hangs),
            (Fault::MachineReboot, Misfortune::Reboots),
            (Fault::MachineDeath, Misfortune::Dies),
            (Fault::Foreign, Misfortune::ForeignCommand),
            (Fault::Stray, Misfortune::Stranger),
        ] {
            if self.injector.strikes(fault) {
                let after = self.injector.between(fault, 1_000, 1_200_000);
                self.queue
                    .plan(self.now + after, Happening::Misfortune { process, what });
            }
        }
    }

    pub(super) fn misfortune(&mut self, process: u32, what: Misfortune) {
        if self.agent(process).is_none() {
            return;
        }
        self.trace(|| format!("misfortune: {what:?}"));
        match what {
            Misfortune::ProcessEnds => {
                let after = self.injector.between(Fault::AgentRestart, 2_000, 60_000);
                let boot = self.machine.boot;
                self.agent_ends();
                self.queue
                    .plan(self.now + after, Happening::ProcessStarts { boot });
            }
            Misfortune::Hangs => {
                let length = match self.injector.between(Fault::AgentHang, 0, 3) {
                    0 => i64::MAX / 4,
                    1 => self.injector.between(Fault::AgentHang, 60_000, 4_000_000),
                    _ => self.injector.between(Fault::AgentHang, 1_000, 120_000),
                };
                let until = self.now.saturating_add(length);
                if let Some(agent) = self.agent(process) {
                    agent.mood_before = agent.mood;
                    agent.mood = Mood::Hung { until };
                }
                if length < i64::MAX / 8 {
                    self.queue.plan(until, Happening::Unhangs { process });
                }
            }
            Misfortune::Reboots => self.machine_reboots(),
            Misfortune::Dies => self.machine_dies(),
            Misfortune::ForeignCommand => {
                let length = self.injector.between(Fault::Foreign, 1_000, 3_000_000);
                let at = self.now;
                if let Some(agent) = self.agent(process)
                    && agent
                        .list
                        .last()
                        .is_none_or(|last| last.entry.status != Status::Running)
                {
                    let index = agent.list.len();
                    agent.list.push(Listed {
                        entry: entry(format!("foreign-{process}-{index}"), "collect_system_logs"),
                        ends_well: true,
                        powers_off: false,
                        is_write: false,
                        result: Value::Null,
                        operation: None,
                    });
                    self.queue
                        .plan(at + length, Happening::CommandEnds { process, index });
                }
            }
            Misfortune::Stranger => self.stranger_calls(process),
        }
    }

    /// Somebody else heartbeats for this node, or an earlier boot does; nothing may change by that.
    fn stranger_calls(&mut self, process: u32) {
        let kind = self.injector.between(Fault::Stray, 0, 3);
        let Some(agent) = self.agent(process) else {
            return;
        };
        let mut url = agent.url.clone();
        let mut certificate = agent.certificate.clone();
        let mut token = agent.token.clone();
        match kind {
            0 => token = Some("of-another-node".to_owned()),
            1 => token = None,
            2 => url = "https://10.9.9.9:9999".to_owned(),
            _ => certificate = Some("of somebody else".to_owned()),
        }
        let what = CallKind::Heartbeat {
            url,
            certificate,
            token,
        };
        self.queue.plan(
            self.now,
            Happening::CallArrives(Box::new(Call {
                process,
                call: 0,
                what,
            })),
        );
    }

    pub(super) fn unhangs(&mut self, process: u32) {
        let now = self.now;
        let Some(agent) = self.agent(process) else {
            return;
        };
        if !matches!(agent.mood, Mood::Hung { until } if until <= now) {
            return;
        }
        agent.mood = agent.mood_before;
        agent.open_call = None;
        agent.next_call_at = now;
        let queued = std::mem::take(&mut agent.queued);
        self.trace(|| "agent: goes on".to_owned());
        for exchange in queued {
            self.handle(exchange);
        }
        self.agent_wakes(process);
    }

    /// The process is gone, and with it whatever it did.
    pub(super) fn agent_ends(&mut self) {
        if let Some(agent) = self.machine.agent.take() {
            self.checks.process_ended(agent.process);
            self.trace(|| format!("agent: process {} is gone", agent.process));
        }
    }

    pub(super) fn agent(&mut self, process: u32) -> Option<&mut Agent> {
        self.machine
            .agent
            .as_mut()
            .filter(|agent| agent.process == process)
    }

    // ---- its own calls ----

    pub(super) fn agent_wakes(&mut self, process: u32) {
        let now = self.now;
        let Some(agent) = self.agent(process) else {
            return;
        };
        if agent.open_call.is_some() {
            return;
        }
        let what = match agent.mood {
            Mood::Asleep | Mood::Hung { .. } => return,
            Mood::Telling { tries } => {
                if now < agent.next_call_at {
                    return;
                }
                if tries >= TELLS_MAX {
                    // The program ends; the ramdisk starts it again.
                    let boot = agent.boot;
                    self.agent_ends();
                    self.queue
                        .plan(now + 10_000, Happening::ProcessStarts { boot });
                    return;
                }
                CallKind::Findings
            }
            Mood::LookingUp { gives_up_at } => {
                if now < agent.next_call_at {
                    return;
                }
                if now >= gives_up_at {
                    // The program ends; the ramdisk starts it again.
                    let boot = agent.boot;
                    self.agent_ends();
                    self.queue
                        .plan(now + 10_000, Happening::ProcessStarts { boot });
                    return;
                }
                CallKind::Lookup
            }
            Mood::Working => {
                let is_due = now >= agent.next_call_at
                    || agent.is_forced && now - agent.last_heartbeat_at > 5_000;
                if !is_due {
                    return;
                }
                agent.last_heartbeat_at = now;
                CallKind::Heartbeat {
                    url: agent.url.clone(),
                    certificate: agent.certificate.clone(),
                    token: agent.token.clone(),
                }
            }
        };
        agent.calls += 1;
        let call = agent.calls;
        agent.open_call = Some(call);
        self.send_call(Call {
            process,
            call,
            what,
        });
    }

    pub(super) fn call_answered(&mut self, process: u32, call: u64, answer: CallAnswer) {
        let now = self.now;
        let heartbeat_ms = self.kind.heartbeat_timeout_ms;
        let (short, regular, wait) = (
            self.random.between(5_000, 10_000),
            heartbeat_ms * self.random.between(300, 600) / 1_000,
            self.random.between(1_000, 60_000),
        );
        let Some(agent) = self.agent(process) else {
            return;
        };
        if agent.open_call != Some(call) {
            return;
        }
        agent.open_call = None;
        match (agent.mood, answer) {
            (Mood::Hung { .. } | Mood::Asleep, _) => return,
            (Mood::Telling { tries }, CallAnswer::Failed) => {
                agent.mood = Mood::Telling { tries: tries + 1 };
                agent.next_call_at = now + wait.clamp(5_000, 30_000);
            }
            (Mood::Telling { .. }, _) => {
                agent.mood = Mood::LookingUp {
                    gives_up_at: now + 600_000,
                };
                agent.next_call_at = now;
            }
            (Mood::LookingUp { .. }, CallAnswer::Token(Some(token))) => {
                agent.token = Some(token);
                agent.mood = Mood::Working;
                agent.next_call_at = now;
            }
            (Mood::LookingUp { .. }, CallAnswer::Token(None)) => {
                agent.mood = Mood::Asleep;
                self.tally.asleep += 1;
                self.trace(|| "agent: got six stars and sleeps for ever".to_owned());
                return;
            }
            (
                Mood::LookingUp { .. },
                CallAnswer::Taken | CallAnswer::NotWanted | CallAnswer::Failed,
            ) => {
                agent.lookups += 1;
                agent.next_call_at = now + wait.min(1_000 << agent.lookups.min(6)).max(1_000);
            }
            (Mood::Working, CallAnswer::Taken | CallAnswer::NotWanted | CallAnswer::Token(_)) => {
                // Also a completion that came while this heartbeat was under way: it is forgotten here.
                agent.is_forced = false;
                agent.next_call_at = now + regular;
            }
            (Mood::Working, CallAnswer::Failed) => {
                agent.next_call_at = now + if agent.is_old { regular } else { short };
            }
        }
        let at = agent.next_call_at;
        self.queue.plan(at, Happening::AgentWakes { process });
    }
}
