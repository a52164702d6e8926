//! One node's world: a queue of things to happen, a clock that jumps from one to the next, and all that they meet.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::checks::Checks;
use super::crowd::Crowd;
use super::faults::Injector;
use super::machine::Machine;
use super::network::Blocked;
use super::operator::Operator;
use super::queue::{CallKind, Happening, Queue};
use super::random::Random;
use super::report::Tally;
use super::shell::Conductor;
use super::{Outcome, Setup};
use crate::node::{Attributes, Event, Node, NodeId, Step};
use crate::timestamp::Timestamp;

/// The wall clock at the beginning of every world.
pub(super) const BEGINNING_MS: i64 = 1_800_000_000_000;
/// How long a world is left alone at the end before everything must have come to rest.
const PEACE_MS: i64 = 30 * 3_600_000;
/// A world that makes so many events in its time runs in circles.
const EVENTS_MAX: u64 = 5_000_000;

/// What kind of machine and agent this node has.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) has_tls: bool,
    pub(super) is_old: bool,
    pub(super) boot_ms: i64,
    pub(super) write_ms: i64,
    pub(super) heartbeat_timeout_ms: i64,
    pub(super) block_max_ms: i64,
    pub(super) extra_steps: Value,
}

pub(super) struct World<'s> {
    pub(super) setup: &'s Setup,
    pub(super) number: u64,
    pub(super) now: i64,
    pub(super) queue: Queue,
    pub(super) random: Random,
    pub(super) injector: Injector,
    pub(super) kind: Kind,
    pub(super) conductor: Conductor,
    pub(super) machine: Machine,
    pub(super) blocked: Blocked,
    /// Requests nobody waits for any more, and since when.
    pub(super) closed: VecDeque<(u64, i64)>,
    pub(super) operator: Operator,
    pub(super) crowd: Crowd,
    pub(super) checks: Checks,
    pub(super) tally: Tally,
    pub(super) commits: u64,
    /// Strikes when the present deploy began.
    pub(super) deploy_hostile: u64,
    /// Something hostile before the deploy may still have its effects.
    pub(super) hostile_before_deploy: bool,
    watch_at: Option<i64>,
    digest: u64,
    lines: Option<Vec<String>>,
}

/// Lives through the world of node `number`.
pub(super) fn live(
    setup: &Setup,
    number: u64,
    keep: Option<BTreeSet<u64>>,
    is_traced: bool,
) -> Outcome {
    let mut world = World::new(setup, number, keep, is_traced);
    world.run();
    world.outcome()
}

impl<'s> World<'s> {
    fn new(
        setup: &'s Setup,
        number: u64,
        keep: Option<BTreeSet<u64>>,
        is_traced: bool,
    ) -> World<'s> {
        let mut random = Random::derived(setup.seed, &[number, 0]);
        let limits = setup.limits_of(number);
        let callback = limits.deploy_callback_timeout_ms;
        let extra_steps = match random.between(0, 5) {
            0 => {
                json!([{"interface": "raid", "step": "apply_configuration", "priority": 90, "reboot_requested": true}])
            }
            1 => {
                json!([{"interface": "deploy", "step": "inject_files", "priority": 70, "reboot_requested": false}])
            }
            _ => {
                json!([{"interface": "deploy", "step": "erase_devices_metadata", "priority": 0, "reboot_requested": false}])
            }
        };
        let kind = Kind {
            has_tls: random.chance(800),
            is_old: random.chance(200),
            boot_ms: random.between(40_000, 240_000),
            write_ms: random.between(20_000, 2_400_000),
            heartbeat_timeout_ms: 300_000,
            block_max_ms: if callback == 0 {
                1_200_000
            } else {
                callback * 2 / 3
            },
            extra_steps,
        };
        let wall = Timestamp(BEGINNING_MS);
        let attributes = Attributes {
            driver: if random.chance(500) {
                "fake-hardware"
            } else {
                "manual-management"
            }
            .to_owned(),
            instance_info: super::operator::instance_info(),
            interfaces: [("management".to_owned(), "fake".to_owned())].into(),
            ..Attributes::default()
        };
        let id = NodeId(Uuid::from_u128(u128::from(number) + 1));
        let node = Node::enrolled(id, attributes, wall);
        let first = random.between(0, 60_000);
        let mut queue = Queue::default();
        for (place, outage) in setup.plan.iter().enumerate() {
            queue.plan(outage.at, Happening::ConductorDown(place));
        }
        queue.plan(first, Happening::Operator);
        let others = Random::derived(setup.seed, &[number, 4]);
        let mut crowd = Crowd::new(limits.queues, setup.turn_ms, others);
        for (at, comes) in crowd.first_come() {
            queue.plan(at, comes);
        }
        World {
            setup,
            number,
            now: 0,
            queue,
            injector: Injector::new(setup.faults, setup.seed, number, keep),
            random,
            kind,
            conductor: Conductor::new(node, BEGINNING_MS),
            machine: Machine::default(),
            blocked: Blocked::default(),
            closed: VecDeque::new(),
            operator: Operator::default(),
            crowd,
            checks: Checks::default(),
            tally: Tally::default(),
            commits: 0,
            deploy_hostile: 0,
            hostile_before_deploy: false,
            watch_at: None,
            digest: 0xcbf2_9ce4_8422_2325,
            lines: is_traced.then(Vec::new),
        }
    }

    fn run(&mut self) {
        let end = self.setup.span_ms;
        while let Some((at, what)) = self.queue.next() {
            if at > end + PEACE_MS || self.checks.violation.is_some() {
                break;
            }
            if at > end {
                self.injector.is_over = true;
            }
            self.now = at;
            self.happens(what);
            self.look_around();
            self.tally.happenings += 1;
            if self.tally.events > EVENTS_MAX {
                let what = format!("{EVENTS_MAX} events and no end");
                self.checks.breaks(super::Rule::WaitsEnd, what, at);
            }
        }
        if self.checks.violation.is_none() {
            self.look_at_the_end();
        }
    }

    fn happens(&mut self, what: Happening) {
        match what {
            Happening::ConductorDown(place) => self.planned_outage(place),
            Happening::ConductorUp => self.conductor_comes(),
            Happening::Loaded { life, is_read } => self.loaded(life, is_read),
            Happening::LoadsAgain { life, number } => self.loads_again(life, number),
            Happening::Applied { life, save } => self.applied(life, *save),
            Happening::Committed {
                life,
                hold,
                refused,
            } => self.committed(life, hold, refused),
            Happening::SignNotStored { life } => self.sign_not_stored(life),
            Happening::TimerFires { life, armed } => self.timer_fires(life, armed),
            Happening::PauseEnds { life, job } => self.pause_ends(life, job),
            Happening::Answered { life, ask, event } => self.answered(life, ask, *event),
            Happening::DriverActs(request) => self.driver_acts(request),
            Happening::DriverAnswers { life, call, answer } => {
                if life == self.conductor.life {
                    let answer = self.with_power(answer);
                    self.deliver(
                        Event::Driver { call, answer },
                        None,
                        super::shell::Caller::Nobody,
                    );
                }
            }
            Happening::RequestArrives(exchange) => self.request_arrives(*exchange),
            Happening::CommandRuns { process, exchange } => {
                if self.agent(process).is_some() {
                    self.handle(*exchange);
                }
            }
            Happening::CommandEnds { process, index } => self.command_ends(process, index),
            Happening::AgentWakes { process } => self.agent_wakes(process),
            Happening::CallArrives(call) => {
                let is_heartbeat = matches!(call.what, CallKind::Heartbeat { .. });
                self.tally.heartbeats += u64::from(is_heartbeat);
                self.call_taken(call.process, call.call, call.what);
            }
            Happening::CallAnswered {
                process,
                call,
                answer,
            } => self.call_answered(process, call, answer),
            Happening::Misfortune { process, what } => self.misfortune(process, what),
            Happening::Unhangs { process } => self.unhangs(process),
            Happening::Boots { boot } => self.boots(boot),
            Happening::ProcessStarts { boot } => self.process_starts(boot),
            Happening::GoesOff { boot } => self.goes_off(boot),
            Happening::Other(other) => self.other_acts(other),
            Happening::Operator => self.operator_comes(),
            Happening::OperatorAgain(event) => self.operator_asks_again(*event),
            Happening::Watch => self.watch(),
        }
    }

    fn planned_outage(&mut self, place: usize) {
        let Some(outage) = self.setup.plan.get(place).copied() else {
            return;
        };
        if self.injector.is_over {
            return;
        }
        self.injector.note(super::Fault::Crash);
        self.conductor_goes(
            outage.until,
            if outage.is_graceful {
                "stopped"
            } else {
                "killed"
            },
        );
        if outage.clock_step_ms != 0 {
            self.injector.note(super::Fault::Clock);
            self.conductor.offset_ms += outage.clock_step_ms;
            self.trace(|| format!("conductor: its clock is set by {} ms", outage.clock_step_ms));
        }
    }

    /// Something should have happened by `at`: look a little later whether it has.
    pub(super) fn watch_from(&mut self, at: i64) {
        let at = at + 1_100;
        if self.watch_at.is_none_or(|planned| planned > at) {
            self.watch_at = Some(at);
            self.queue.plan(at, Happening::Watch);
        }
    }

    fn watch(&mut self) {
        if self.watch_at.is_some_and(|at| at <= self.now) {
            self.watch_at = None;
        }
        let Some(node) = self.conductor.idle() else {
            if !self.conductor.is_up || self.conductor.has_actor() {
                let at = self.now + 30_000;
                self.watch_from(at);
            }
            return;
        };
        if let Some(deadline) = node.next_deadline() {
            let wait = deadline.ms_since(self.conductor.wall(self.now)).max(1);
            let at = self.now.saturating_add(wait.min(6 * 3_600_000));
            self.watch_from(at);
        }
    }

    /// Folds what happened into the digest.
    pub(super) fn fold(&mut self, name: &str, step: &Step) {
        let mut digest = self.digest;
        let mut eat = |byte: u8| {
            digest ^= u64::from(byte);
            digest = digest.wrapping_mul(0x0000_0100_0000_01b3);
        };
        self.now.to_le_bytes().into_iter().for_each(&mut eat);
        step.node
            .version
            .to_le_bytes()
            .into_iter()
            .for_each(&mut eat);
        name.bytes().for_each(&mut eat);
        step.outcome.name().bytes().for_each(&mut eat);
        self.digest = digest;
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        let at = self.now;
        if let Some(lines) = &mut self.lines {
            let (h, m, s, ms) = (
                at / 3_600_000,
                at / 60_000 % 60,
                at / 1_000 % 60,
                at % 1_000,
            );
            lines.push(format!("{h:02}:{m:02}:{s:02}.{ms:03}  {}", line()));
        }
    }

    fn outcome(self) -> Outcome {
        let mut tally = self.tally;
        tally.round_trips = self.checks.round_trips;
        tally.faults = self.injector.struck;
        Outcome {
            violation: self.checks.violation,
            tally,
            digest: self.digest,
            strikes: self.injector.let_through,
            lines: self.lines.unwrap_or_default(),
        }
    }

    pub(super) fn node(&self) -> Rc<Node> {
        self.conductor.latest().clone()
    }
}
