//! The agent: the ramdisk program on the machine, as it behaves towards a conductor.
//!
//! It looks up its node, heartbeats at a third to two thirds of the time it was told, runs one command at a time, calls itself busy
//! while the last entry of its list runs, keeps that list for life and forgets it with its process. Old ones answer no single
//! command; some break their list; a masked token without one of its own puts it to sleep for ever.

use serde_json::{Value, json};

use super::faults::Fault;
use super::queue::{Call, CallAnswer, CallKind, Happening, Misfortune};
use super::world::World;
use crate::command::{self, Entry, Instance, PostAnswer, Refusal, Request, Status, Unreadable};

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
struct Listed {
    entry: Entry,
    ends_well: bool,
    powers_off: bool,
    is_write: bool,
    result: Value,
    operation: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
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
    started_at: String,
    pub(super) certificate: Option<String>,
    pub(super) url: String,
    token: Option<String>,
    mood: Mood,
    /// What it did before it hung.
    mood_before: Mood,
    is_old: bool,
    list: Vec<Listed>,
    is_poisoned: bool,
    /// A synchronous command holds the lock until then.
    locked_until: i64,
    next_call_at: i64,
    last_heartbeat_at: i64,
    is_forced: bool,
    open_call: Option<u64>,
    calls: u64,
    lookups: i64,
    queued: Vec<Exchange>,
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
            mood: Mood::LookingUp {
                gives_up_at: now + 600_000,
            },
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
            (Mood::LookingUp { .. }, CallAnswer::Taken | CallAnswer::Failed) => {
                agent.lookups += 1;
                agent.next_call_at = now + wait.min(1_000 << agent.lookups.min(6)).max(1_000);
            }
            (Mood::Working, CallAnswer::Taken | CallAnswer::Token(_)) => {
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

    // ---- what it is asked ----

    /// A request has reached the process.
    pub(super) fn handle(&mut self, exchange: Exchange) {
        let now = self.now;
        let Some(agent) = &mut self.machine.agent else {
            return;
        };
        if matches!(agent.mood, Mood::Hung { .. }) {
            agent.queued.push(exchange);
            return;
        }
        if agent.token.as_ref() != Some(&exchange.token) {
            let event = match &exchange.what {
                Asked::Survey => command::Event::SurveyFailed(Unreadable::Unauthorized),
                Asked::Poll(_) => command::Event::PollFailed(Unreadable::Unauthorized),
                Asked::Post { .. } => refused(Refusal::Unauthorized),
            };
            return self.answer_request(&exchange, event);
        }
        match &exchange.what {
            Asked::Survey if agent.is_poisoned => {
                let event = command::Event::SurveyFailed(Unreadable::Poisoned);
                self.answer_request(&exchange, event);
            }
            Asked::Survey => {
                let event = command::Event::Surveyed {
                    instance: Instance {
                        started_at: agent.started_at.clone(),
                        callback_url: agent.url.clone(),
                        certificate_sha256: agent.certificate.clone(),
                    },
                    entries: agent
                        .list
                        .iter()
                        .map(|listed| listed.entry.clone())
                        .collect(),
                };
                self.answer_request(&exchange, event);
            }
            Asked::Poll(id) => {
                let found = agent.list.iter().find(|listed| listed.entry.id == *id);
                let event = match found {
                    Some(listed) if !agent.is_old => command::Event::Polled(listed.entry.clone()),
                    _ => command::Event::PollFailed(Unreadable::NotFound),
                };
                self.answer_request(&exchange, event);
            }
            Asked::Post { .. } => {
                let process = agent.process;
                let at = agent.locked_until;
                if at > now {
                    let exchange = Box::new(exchange);
                    self.queue
                        .plan(at, Happening::CommandRuns { process, exchange });
                } else {
                    self.run_command(exchange);
                }
            }
        }
    }

    /// A command has the agent's lock.
    pub(super) fn run_command(&mut self, exchange: Exchange) {
        let Asked::Post { request, operation } = &exchange.what else {
            return;
        };
        let now = self.now;
        let boot = self.machine.boot;
        let Some(agent) = &mut self.machine.agent else {
            return;
        };
        if agent.locked_until > now {
            // Another one was quicker.
            let (at, process) = (agent.locked_until, agent.process);
            let exchange = Box::new(exchange);
            self.queue
                .plan(at, Happening::CommandRuns { process, exchange });
            return;
        }
        if let Some(last) = agent.list.last()
            && last.entry.status == Status::Running
            && !self.setup.quirks.agents_are_never_busy
        {
            let text = if agent.is_old {
                "Command execution failed: agent is busy".to_owned()
            } else {
                format!(
                    "Agent is busy: executing command {}",
                    last.entry.command_name
                )
            };
            self.tally.busy += 1;
            return self.answer_request(&exchange, refused(Refusal::Busy { text }));
        }
        let process = agent.process;
        let index = agent.list.len();
        let is_write = matches!(request, Request::ExecuteDeployStep { step, interface, .. }
            if step == "write_image" && interface == "deploy");
        let fate = self.fate_of(request, is_write);
        let mut entry = entry(format!("command-{process}-{index}"), request.short_name());
        self.trace(|| {
            format!(
                "agent: begins {} for command {} attempt {}, takes {} ms",
                request.full_name(),
                exchange.id,
                exchange.attempt,
                fate.takes_ms
            )
        });
        self.tally.dispatches += 1;
        self.checks.begun(
            exchange.id,
            exchange.attempt,
            process,
            request,
            is_write,
            now,
        );
        if fate.is_refused {
            let why = Refusal::Invalid {
                status: 400,
                text: "Invalid command parameters: image_info".to_owned(),
            };
            self.checks.never_ran(exchange.id, exchange.attempt);
            return self.answer_request(&exchange, refused(why));
        }
        let is_synchronous = request.is_synchronous();
        let result = result_of(request, &self.kind.extra_steps);
        let powers_off = *request == Request::PowerOff;
        let operation = is_write.then(|| operation.clone());
        let agent = self.machine.agent.as_mut().expect("it is there");
        if is_synchronous {
            // It runs inside the request and is listed when it has ended.
            let ends_at = now + fate.takes_ms;
            agent.locked_until = ends_at;
            if fate.poisons {
                entry.status = Status::Failed;
            } else if fate.ends_well {
                entry.status = Status::Succeeded;
                entry.result = result;
            } else {
                entry.status = Status::Failed;
                entry.command_name = request.full_name().to_owned();
                entry.error_kind = "CommandExecutionError".to_owned();
                entry.error_message = "it went wrong".to_owned();
            }
            let event = if fate.poisons {
                command::Event::Posted(PostAnswer::Unknown {
                    why:
                        "the agent answered 500: Object of type TypeError is not JSON serializable"
                            .to_owned(),
                })
            } else {
                command::Event::Posted(PostAnswer::Accepted(entry.clone()))
            };
            let listed = Listed {
                entry,
                ends_well: fate.ends_well,
                powers_off,
                is_write,
                result: Value::Null,
                operation: None,
            };
            self.sync_ends(process, ends_at, listed, fate.poisons, exchange, event);
            return;
        }
        agent.list.push(Listed {
            entry: entry.clone(),
            ends_well: fate.ends_well,
            powers_off,
            is_write,
            result,
            operation,
        });
        self.queue.plan(
            now + fate.takes_ms,
            Happening::CommandEnds { process, index },
        );
        if is_write && !self.kind.is_old {
            // It looks its node up once more; what comes of that is of no account to it.
            let at = now + self.random.between(100, 3_000);
            let what = CallKind::Lookup;
            let call = Box::new(Call {
                process,
                call: 0,
                what,
            });
            self.queue.plan(at, Happening::CallArrives(call));
        }
        if powers_off {
            let after = self.random.between(1_000, 20_000);
            self.queue.plan(now + after, Happening::GoesOff { boot });
        }
        self.answer_request(
            &exchange,
            command::Event::Posted(PostAnswer::Accepted(entry)),
        );
    }
}

struct Fate {
    takes_ms: i64,
    ends_well: bool,
    poisons: bool,
    is_refused: bool,
}

impl World<'_> {
    fn fate_of(&mut self, request: &Request, is_write: bool) -> Fate {
        let mut fate = Fate {
            takes_ms: match request {
                Request::ExecuteDeployStep { .. } if is_write => {
                    self.random.around(self.kind.write_ms)
                }
                Request::ExecuteDeployStep { .. } => self.random.around(60_000),
                Request::InstallBootloader { .. } => self.random.around(5_000),
                Request::PowerOff => 500,
                Request::GetDeploySteps | Request::GetPartitionUuids | Request::Sync => {
                    self.random.around(1_000)
                }
            },
            ends_well: true,
            poisons: false,
            is_refused: false,
        };
        if self.injector.strikes(Fault::Command) {
            match self.injector.between(Fault::Command, 0, 3) {
                0 => fate.ends_well = false,
                1 => fate.takes_ms += self.injector.between(Fault::Command, 10_000, 200_000),
                2 if !request.is_synchronous() => {
                    fate.takes_ms += self.injector.between(Fault::Command, 1_000_000, 40_000_000);
                }
                _ => fate.is_refused = true,
            }
        }
        if request.is_synchronous() && self.injector.strikes(Fault::Poison) {
            fate.poisons = true;
        }
        fate
    }

    /// What a synchronous command leaves when its time has come. The process may be gone by then; nothing is listed before.
    fn sync_ends(
        &mut self,
        process: u32,
        ends_at: i64,
        listed: Listed,
        poisons: bool,
        exchange: Exchange,
        event: command::Event,
    ) {
        self.machine.pending_sync = Some(PendingSync {
            process,
            listed: Some(listed),
            poisons,
            exchange,
            event,
        });
        self.queue.plan(
            ends_at,
            Happening::CommandEnds {
                process,
                index: usize::MAX,
            },
        );
    }

    /// A command of the list has ended.
    pub(super) fn command_ends(&mut self, process: u32, index: usize) {
        if index == usize::MAX {
            let Some(mut pending) = self.machine.pending_sync.take() else {
                return;
            };
            if pending.process != process {
                self.machine.pending_sync = Some(pending);
                return;
            }
            let Some(agent) = self.agent(process) else {
                return;
            };
            if let Some(listed) = pending.listed.take() {
                agent.list.push(listed);
            }
            agent.is_poisoned |= pending.poisons;
            return self.answer_request(&pending.exchange, pending.event);
        }
        let now = self.now;
        let late = self.random.between(0, 5_000);
        let Some(agent) = self.agent(process) else {
            return;
        };
        let Some(listed) = agent.list.get_mut(index) else {
            return;
        };
        if listed.ends_well {
            listed.entry.status = Status::Succeeded;
            listed.entry.result = std::mem::take(&mut listed.result);
            listed.entry.operation = listed.operation.take();
        } else {
            listed.entry.status = Status::Failed;
            listed.entry.error_kind = "ImageWriteError".to_owned();
            listed.entry.error_message = "the disk said no".to_owned();
        }
        let is_write = listed.is_write;
        if listed.powers_off {
            return;
        }
        agent.is_forced = true;
        let at = (agent.last_heartbeat_at + 5_001).max(now) + late;
        self.queue.plan(at, Happening::AgentWakes { process });
        if is_write {
            self.checks.write_ended(process);
        }
        self.trace(|| format!("agent: command-{process}-{index} has ended"));
    }
}

/// A synchronous command that runs.
#[derive(Debug)]
pub(super) struct PendingSync {
    process: u32,
    listed: Option<Listed>,
    poisons: bool,
    exchange: Exchange,
    event: command::Event,
}

fn refused(why: Refusal) -> command::Event {
    command::Event::Posted(PostAnswer::Refused(why))
}

fn entry(id: String, name: &str) -> Entry {
    Entry {
        id,
        command_name: name.to_owned(),
        status: Status::Running,
        error_kind: String::new(),
        error_message: String::new(),
        result: Value::Null,
        operation: None,
    }
}

fn result_of(request: &Request, extra_steps: &Value) -> Value {
    match request {
        Request::GetDeploySteps => json!({
            "deploy_steps": {"GenericHardwareManager": extra_steps},
            "hardware_manager_version": {"GenericHardwareManager": "1.1"},
        }),
        Request::GetPartitionUuids => json!({"root uuid": "0x5ca1ab1e"}),
        Request::ExecuteDeployStep { .. } => json!({"deploy_result": {"result": "written"}}),
        Request::InstallBootloader { .. } | Request::Sync | Request::PowerOff => Value::Null,
    }
}
