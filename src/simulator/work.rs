//! What an agent does when it is asked: lists and shows its commands, takes new ones or calls itself busy, and carries them out.

use serde_json::{Value, json};

use super::agent::{Asked, Exchange, Listed, Mood};
use super::faults::Fault;
use super::queue::{Call, CallKind, Happening};
use super::world::World;
use crate::command::{
    self, Entry, Instance, PostAnswer, Refusal, Request, Status, StepsOf, Unreadable,
};

impl World<'_> {
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
        let is_write = matches!(request, Request::ExecuteStep { step, interface, .. }
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
            let is_last = *request == Request::FinalizeRescue && fate.ends_well;
            let pending = PendingSync {
                process,
                listed: Some(listed),
                poisons: fate.poisons,
                is_last,
                exchange: exchange.clone(),
                event,
            };
            self.sync_ends(ends_at, pending);
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
                Request::ExecuteStep { .. } if is_write => self.random.around(self.kind.write_ms),
                Request::ExecuteStep { .. } => self.random.around(60_000),
                Request::InstallBootloader { .. } => self.random.around(5_000),
                Request::PowerOff => 500,
                Request::GetSteps { .. }
                | Request::GetPartitionUuids
                | Request::Sync
                | Request::FinalizeRescue => self.random.around(1_000),
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
    fn sync_ends(&mut self, ends_at: i64, pending: PendingSync) {
        let process = pending.process;
        self.machine.pending_sync = Some(pending);
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
            self.answer_request(&pending.exchange, pending.event);
            if pending.is_last {
                self.agent_ends();
            }
            return;
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
    /// The agent ends with it.
    is_last: bool,
    exchange: Exchange,
    event: command::Event,
}

fn refused(why: Refusal) -> command::Event {
    command::Event::Posted(PostAnswer::Refused(why))
}

pub(super) fn entry(id: String, name: &str) -> Entry {
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
        Request::GetSteps { of } => {
            let steps = match of {
                StepsOf::Deploy => extra_steps.clone(),
                StepsOf::Clean | StepsOf::Service => clean_steps(),
            };
            json!({
                format!("{}_steps", of.word()): {"GenericHardwareManager": steps},
                "hardware_manager_version": {"GenericHardwareManager": "1.1"},
            })
        }
        Request::GetPartitionUuids => json!({"root uuid": "0x5ca1ab1e"}),
        Request::ExecuteStep { of, .. } => {
            json!({format!("{}_result", of.word()): {"result": "done"}})
        }
        Request::InstallBootloader { .. }
        | Request::Sync
        | Request::PowerOff
        | Request::FinalizeRescue => Value::Null,
    }
}

/// What the generic hardware manager of real agents lists, and a step of a vendor's.
fn clean_steps() -> Value {
    json!([
        {"interface": "deploy", "step": "erase_devices", "priority": 10, "abortable": true},
        {"interface": "deploy", "step": "erase_devices_metadata", "priority": 99, "abortable": true},
        {"interface": "raid", "step": "create_configuration", "priority": 0, "reboot_requested": true},
        {"interface": "deploy", "step": "burn_in", "priority": 0, "abortable": false},
    ])
}
