//! What lies between the conductor and a machine: decides what becomes of each message, and names it as the real client would.
//!
//! Only a connection that never came about proves that a POST was not carried out; all else that is no whole, readable answer is
//! "nobody knows" (see `crate::agent`'s classification). A request still on its way when its connection ends arrives within
//! [`LATE_MS`] or never.

use super::agent::{Asked, Exchange};
use super::child::Job;
use super::faults::Fault;
use super::queue::{Call, CallAnswer, Happening};
use super::world::World;
use crate::command::{self, PostAnswer, Unreadable};

/// How long a request may still arrive after its connection was closed.
pub(super) const LATE_MS: i64 = 4_500;
/// As in the client's settings.
const CONNECT_TIMEOUT_MS: i64 = 10_000;
const COMMAND_TIMEOUT_MS: i64 = 60_000;
/// How long an agent waits for an answer.
const AGENT_TIMEOUT_MS: i64 = 30_000;

/// Which way is blocked, and until when.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    to_conductor_until: i64,
    to_agent_until: i64,
}

impl World<'_> {
    fn latency(&mut self) -> i64 {
        self.random.between(1, 40)
    }

    /// Now and then a direction is blocked for some minutes; looked at with each message.
    fn maybe_block(&mut self) {
        if self
            .injector
            .strikes_at(Fault::Block, self.setup.block_per_mille)
        {
            let length = self
                .injector
                .between(Fault::Block, 5_000, self.kind.block_max_ms);
            let which = self.injector.between(Fault::Block, 0, 2);
            let until = self.now + length;
            if which != 0 {
                self.blocked.to_agent_until = until;
            }
            if which != 1 {
                self.blocked.to_conductor_until = until;
            }
            self.trace(|| {
                let way = ["from the agent", "to the agent", "both ways"];
                format!(
                    "network: blocked {} for {length} ms",
                    way[usize::try_from(which).unwrap_or(0)]
                )
            });
        }
    }

    // ---- from the conductor to the agent ----

    pub(super) fn send_request(&mut self, ask: u64, job: Job) {
        self.tally.requests += 1;
        self.maybe_block();
        let life = self.conductor.life;
        let now = self.now;
        let what = match (job.effect, job.agent_id, job.request) {
            (command::Effect::Survey(_), _, _) => Asked::Survey,
            (command::Effect::Poll(_), Some(id), _) => Asked::Poll(id),
            (command::Effect::Post, _, Some((request, operation))) => {
                Asked::Post { request, operation }
            }
            (command::Effect::Poll(_), None, _) | (command::Effect::Post, _, None) => {
                let event = Box::new(command::Event::PollFailed(Unreadable::NotFound));
                return self
                    .queue
                    .plan(now, Happening::Answered { life, ask, event });
            }
        };
        if now < self.blocked.to_agent_until || self.injector.strikes_at(Fault::Loss, 15) {
            let event = not_connected(&what, "no connection in time");
            let event = Box::new(event);
            let at = now + CONNECT_TIMEOUT_MS;
            return self
                .queue
                .plan(at, Happening::Answered { life, ask, event });
        }
        let event = Box::new(broken(&what, "no answer in time"));
        self.queue.plan(
            now + COMMAND_TIMEOUT_MS,
            Happening::Answered { life, ask, event },
        );
        let mut arrives_ms = Some(self.latency());
        let mut exchange = Exchange {
            life,
            ask,
            what,
            url: job.url,
            certificate: job.certificate,
            token: job.token,
            id: job.id,
            attempt: job.attempt,
            back_ms: Some(self.latency()),
            is_garbled: false,
        };
        if self.injector.strikes(Fault::Loss) {
            if self.injector.between(Fault::Loss, 0, 1) == 0 {
                arrives_ms = None;
            } else {
                exchange.back_ms = None;
            }
        }
        if self.injector.strikes(Fault::Delay) {
            let long = self
                .injector
                .between(Fault::Delay, 500, COMMAND_TIMEOUT_MS + LATE_MS);
            if self.injector.between(Fault::Delay, 0, 1) == 0 {
                arrives_ms = arrives_ms.map(|_| long);
            } else {
                exchange.back_ms = exchange.back_ms.map(|_| long);
            }
        }
        if self.injector.strikes(Fault::Garbage) {
            if self.injector.between(Fault::Garbage, 0, 2) == 0 {
                // A proxy answers in the agent's place.
                arrives_ms = None;
                let event = Box::new(broken(&exchange.what, "the answer 502 is not JSON"));
                let at = now + self.latency();
                self.queue
                    .plan(at, Happening::Answered { life, ask, event });
            } else {
                exchange.is_garbled = true;
            }
        }
        if let Some(arrives) = arrives_ms {
            let at = now + arrives;
            self.queue
                .plan(at, Happening::RequestArrives(Box::new(exchange)));
        }
    }

    /// The conductor no longer waits for this answer.
    pub(super) fn ask_closed(&mut self, ask: u64) {
        // Nothing is under way for longer than this.
        let longest = 2 * (COMMAND_TIMEOUT_MS + LATE_MS);
        while self
            .closed
            .front()
            .is_some_and(|(_, at)| self.now - at > longest)
        {
            self.closed.pop_front();
        }
        self.closed.push_back((ask, self.now));
    }

    pub(super) fn request_arrives(&mut self, exchange: Exchange) {
        let is_too_late = self
            .closed
            .iter()
            .any(|(ask, at)| *ask == exchange.ask && self.now - at > LATE_MS);
        if is_too_late {
            return;
        }
        let there = self.machine.agent.as_ref();
        let Some(agent) = there.filter(|agent| agent.is_listening() && agent.url == exchange.url)
        else {
            // Nobody listens: refused at once while the machine is up, a black hole otherwise.
            let wait = if self.machine.is_up {
                1
            } else {
                CONNECT_TIMEOUT_MS
            };
            let event = match &exchange.what {
                Asked::Survey if self.machine.is_up => {
                    command::Event::SurveyFailed(Unreadable::NobodyListens)
                }
                Asked::Poll(_) if self.machine.is_up => {
                    command::Event::PollFailed(Unreadable::NobodyListens)
                }
                what => not_connected(what, "no connection in time"),
            };
            return self.answer_after(&exchange, event, wait);
        };
        if exchange.certificate.is_some() && exchange.certificate != agent.certificate {
            let event = match &exchange.what {
                Asked::Survey => command::Event::SurveyFailed(Unreadable::CertificateMismatch),
                Asked::Poll(_) => command::Event::PollFailed(Unreadable::CertificateMismatch),
                Asked::Post { .. } => not_connected(&exchange.what, "another certificate"),
            };
            return self.answer_after(&exchange, event, 5);
        }
        self.handle(exchange);
    }

    /// The agent has answered.
    pub(super) fn answer_request(&mut self, exchange: &Exchange, event: command::Event) {
        let Some(back) = exchange.back_ms else {
            return;
        };
        let event = if exchange.is_garbled {
            broken(&exchange.what, "the answer broke off")
        } else {
            event
        };
        self.answer_after(exchange, event, back);
    }

    fn answer_after(&mut self, exchange: &Exchange, event: command::Event, wait: i64) {
        let (life, ask) = (exchange.life, exchange.ask);
        let event = Box::new(event);
        self.queue
            .plan(self.now + wait, Happening::Answered { life, ask, event });
    }

    // ---- from the agent to the conductor ----

    pub(super) fn send_call(&mut self, call: Call) {
        self.tally.calls += 1;
        self.maybe_block();
        let now = self.now;
        let (process, number) = (call.process, call.call);
        self.queue.plan(
            now + AGENT_TIMEOUT_MS,
            Happening::CallAnswered {
                process,
                call: number,
                answer: CallAnswer::Failed,
            },
        );
        if now < self.blocked.to_conductor_until || self.injector.strikes(Fault::Loss) {
            return;
        }
        let mut takes = self.latency();
        if self.injector.strikes(Fault::Delay) {
            takes = self.injector.between(Fault::Delay, 500, 45_000);
        }
        if self.injector.strikes(Fault::Duplication) {
            let later = self.injector.between(Fault::Duplication, 0, 20_000);
            let again = Box::new(call.clone());
            self.queue
                .plan(now + takes + later, Happening::CallArrives(again));
        }
        self.queue
            .plan(now + takes, Happening::CallArrives(Box::new(call)));
    }

    pub(super) fn answer_call(&mut self, process: u32, call: u64, answer: CallAnswer) {
        let mut takes = self.latency();
        let mut answer = answer;
        if self.injector.strikes(Fault::Loss) {
            return;
        }
        if self.injector.strikes(Fault::Delay) {
            takes = self.injector.between(Fault::Delay, 500, 40_000);
        }
        if self.injector.strikes(Fault::Garbage) {
            answer = CallAnswer::Failed;
        }
        let at = self.now + takes;
        self.queue.plan(
            at,
            Happening::CallAnswered {
                process,
                call,
                answer,
            },
        );
    }
}

fn not_connected(what: &Asked, why: &str) -> command::Event {
    let why = why.to_owned();
    match what {
        Asked::Survey => command::Event::SurveyFailed(Unreadable::Unreachable { why }),
        Asked::Poll(_) => command::Event::PollFailed(Unreadable::Unreachable { why }),
        Asked::Post { .. } => command::Event::Posted(PostAnswer::NeverSent { why }),
    }
}

fn broken(what: &Asked, why: &str) -> command::Event {
    let why = why.to_owned();
    match what {
        Asked::Survey => command::Event::SurveyFailed(Unreadable::Garbage { why }),
        Asked::Poll(_) => command::Event::PollFailed(Unreadable::Garbage { why }),
        Asked::Post { .. } => command::Event::Posted(PostAnswer::Unknown { why }),
    }
}
