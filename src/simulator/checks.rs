//! What must hold, whatever happens: looked at after every event.
//!
//! Each is a sentence in `rules.rs`; a world that breaks one stops there. What the rules compare with is what really went on (which
//! process ran what, which answers got through, how long the conductor was away), never what the node believes.

use std::collections::BTreeSet;

use super::rules::{Rule, Violation};
use super::story::told;
use super::world::World;
use crate::command::{self, CommandId, Finish, Phase, PostAnswer, Refusal, Request};
use crate::node::queues::QueueKind;
use crate::node::transitions::is_edge;
use crate::node::work::{Work, WorkKind, WorkPhase};
use crate::node::{Effect, Event, Node, Outcome, ProvisionState, Reply, Step};
use crate::timestamp::Timestamp;

/// Slack of a row: a sign of life may be stored this much later, and some milliseconds for the commit.
const ROW_LAG_MS: i64 = 7_000;
/// How late a restart may make a deadline: the conductor notes that it lives every 5 s.
const RESTART_LAG_MS: i64 = 6_000;
/// So much more an agent gets after each restart of the conductor that has not called yet.
const CALLS_AGAIN_WITHIN_MS: i64 = 60_000;

#[derive(Debug)]
struct Begun {
    id: CommandId,
    attempt: u32,
    process: u32,
    is_idempotent: bool,
    is_write: bool,
    has_run: bool,
}

/// What really happened, and the first rule that was broken.
#[derive(Debug, Default)]
pub(super) struct Checks {
    begun: Vec<Begun>,
    /// The process that runs a write.
    writing: Option<u32>,
    living: BTreeSet<u32>,
    /// When an answer or a heartbeat of the session's agent last got through, plus the absences of the conductor since.
    last_sign: Option<i64>,
    /// When the node last began to wait for a sign, plus absences.
    armed_at: i64,
    /// When the open command was decided, without absences and with them.
    planned_at: i64,
    absent_since_planned: i64,
    restarts_since_sign: i64,
    excused_ms: i64,
    restarts_since_planned: i64,
    /// The conductor's absences since the deploy began.
    deploy_at: i64,
    /// Since when a deadline is due while the conductor is up and has nothing else on its hands.
    due_since: Option<i64>,
    pub(super) violation: Option<Violation>,
    pub(super) round_trips: u64,
}

impl Checks {
    /// An agent process begins with a command.
    pub(super) fn begun(
        &mut self,
        id: CommandId,
        attempt: u32,
        process: u32,
        request: &Request,
        is_write: bool,
        at: i64,
    ) {
        self.living.insert(process);
        let twice = self
            .begun
            .iter()
            .any(|earlier| (earlier.id, earlier.attempt) == (id, attempt));
        let wrote = self.begun.iter().find(|earlier| {
            earlier.is_write && earlier.has_run && self.living.contains(&earlier.process)
        });
        let ran = self
            .begun
            .iter()
            .find(|earlier| earlier.id == id && earlier.has_run && !earlier.is_idempotent);
        let broken = match (self.writing, wrote, ran) {
            _ if twice => Some((
                Rule::DispatchedOnce,
                format!("command {id} attempt {attempt} came twice"),
            )),
            (Some(process), _, _) if is_write => Some((
                Rule::OneWriteAtATime,
                format!("process {process} still writes"),
            )),
            (_, Some(first), _) if is_write => Some((
                Rule::NoWriteTwice,
                format!(
                    "process {} has written for command {} already",
                    first.process, first.id
                ),
            )),
            (_, _, Some(earlier)) => Some((
                Rule::CarriedOutOnce,
                format!(
                    "command {id} ran as attempt {} and again as attempt {attempt}",
                    earlier.attempt
                ),
            )),
            _ => None,
        };
        if let Some((rule, what)) = broken {
            self.breaks(rule, what, at);
        }
        if is_write {
            self.writing = Some(process);
        }
        self.begun.push(Begun {
            id,
            attempt,
            process,
            is_idempotent: request.is_synchronous(),
            is_write,
            has_run: true,
        });
    }

    /// The agent refused it after all.
    pub(super) fn never_ran(&mut self, id: CommandId, attempt: u32) {
        let found = self
            .begun
            .iter_mut()
            .rev()
            .find(|begun| (begun.id, begun.attempt) == (id, attempt));
        if let Some(begun) = found {
            begun.has_run = false;
            if begun.is_write {
                self.writing = None;
            }
        }
    }

    pub(super) fn write_ended(&mut self, process: u32) {
        if self.writing == Some(process) {
            self.writing = None;
        }
    }

    pub(super) fn process_ended(&mut self, process: u32) {
        self.living.remove(&process);
        self.write_ended(process);
    }

    /// The conductor was away for so long.
    pub(super) fn was_down(&mut self, really_ms: i64) {
        if let Some(last) = &mut self.last_sign {
            *last += really_ms;
        }
        self.armed_at += really_ms;
        self.absent_since_planned += really_ms;
        self.restarts_since_sign += 1;
        self.restarts_since_planned += 1;
    }

    /// Nothing could be taken for so long, because of trouble with the store.
    pub(super) fn was_held(&mut self, held_ms: i64) {
        // What became due meanwhile is learned of now.
        self.due_since = None;
        if held_ms < 1_000 {
            return;
        }
        if let Some(last) = &mut self.last_sign {
            *last += held_ms;
        }
        self.armed_at += held_ms;
        self.absent_since_planned += held_ms;
    }

    /// Signs of life of so long a time may be forgotten: the store was gone, and then the process.
    pub(super) fn excuse(&mut self, for_ms: i64) {
        self.excused_ms += for_ms;
    }

    pub(super) fn breaks(&mut self, rule: Rule, what: String, at: i64) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, what, at });
        }
    }
}

impl World<'_> {
    /// The core has decided; `wall` is the time it was told.
    pub(super) fn stepped(
        &mut self,
        name: &'static str,
        event: &Event,
        before: &Node,
        step: &Step,
        wall: Timestamp,
    ) {
        self.tally.events += 1;
        self.fold(name, step);
        self.trace(|| told(event, before, step));
        let at = self.now;
        let after = &step.node;
        let changed = after != before;
        if after.version != before.version + u64::from(changed) {
            let what = format!(
                "{name}: version {} became {}",
                before.version, after.version
            );
            self.checks.breaks(Rule::VersionsGrow, what, at);
        }
        if matches!(step.reply, Reply::Refused(_))
            && (changed || !step.effects.is_empty() || !step.history.is_empty() || step.removed)
        {
            let what = format!("{name} was refused as {:?}", step.outcome);
            self.checks.breaks(Rule::RefusalsChangeNothing, what, at);
        }
        if let Some(what) = off_the_edges(before, step, &mut self.tally.moves) {
            self.checks.breaks(Rule::MovesAreEdges, what, at);
        }
        if let Some(what) = self.missing_deadline(after) {
            self.checks.breaks(Rule::WaitsHaveDeadlines, what, at);
        }
        if after.is_queued()
            && step
                .effects
                .iter()
                .any(|effect| is_too_early(after, effect))
        {
            let what = format!("{name}: {:?}", step.effects);
            self.checks.breaks(Rule::WhoWaitsAsksNothing, what, at);
        }
        self.look_at_strangers(event, before, step);
        if is_expiry(event, before, step) {
            self.look_at_expiry(before, wall);
        }
    }

    fn count_unknown(&mut self, before: &Node, after: &Node) {
        let was = before
            .open_command()
            .filter(|command| matches!(command.phase, Phase::Unknown { .. }));
        let now = after.command_numbered(
            was.or(after.open_command())
                .map_or(CommandId(0), |command| command.id),
        );
        let Some(now) = now else {
            return;
        };
        match (was.is_some(), &now.phase) {
            (false, Phase::Unknown { .. }) => self.tally.unknown += 1,
            (true, Phase::Accepted { .. }) => self.tally.unknown_found += 1,
            (true, Phase::Planned) => self.tally.unknown_absent += 1,
            (true, Phase::Ended { finish }) => match finish {
                Finish::InstanceLost => self.tally.unknown_lost += 1,
                Finish::Abandoned => self.tally.unknown_given_up += 1,
                _ => self.tally.unknown_found += 1,
            },
            _ => {}
        }
    }

    /// A wait that nothing would ever end.
    fn missing_deadline(&self, node: &Node) -> Option<String> {
        let limits = self.setup.limits_of(self.number);
        let deadlines = &node.deadlines;
        if node.driver_call.is_some() && deadlines.driver.is_none() && limits.driver_limit_ms > 0 {
            return Some("a driver call without a deadline".to_owned());
        }
        let Some(work) = node.work() else {
            return (node.is_at_work() && node.driver_call.is_none())
                .then(|| format!("{} waits for nothing", node.provision_state()));
        };
        let awaits_agent = match work.phase {
            WorkPhase::AwaitingAgent
            | WorkPhase::ReadingSteps
            | WorkPhase::InBandStep
            | WorkPhase::ReadingUuids
            | WorkPhase::InstallingBootloader
            | WorkPhase::FinalizingRescue
            | WorkPhase::PoweringOffAgent => true,
            // A turn comes when others end; who waits for the image has an agent that is watched.
            WorkPhase::Queued { kind, .. } => kind == QueueKind::ImageHost,
            // A hold is a person's to end.
            WorkPhase::Held => return None,
            WorkPhase::Pausing { .. } => {
                return deadlines
                    .look
                    .is_none()
                    .then(|| "a pause that nothing ends".to_owned());
            }
            WorkPhase::AwaitingInventory => {
                return (deadlines.step.is_none() && limits.inspect_wait_timeout_ms > 0)
                    .then(|| "findings are awaited without a limit".to_owned());
            }
            WorkPhase::AwaitingOff { .. } => {
                return (deadlines.look.is_none() && node.driver_call.is_none())
                    .then(|| "nobody will look whether the machine went off".to_owned());
            }
            WorkPhase::Booting
            | WorkPhase::OutOfBandStep
            | WorkPhase::SettingBootDevice
            | WorkPhase::RebootingToInstance
            | WorkPhase::SwitchingOff
            | WorkPhase::SwitchingOn => {
                return node
                    .driver_call
                    .is_none()
                    .then(|| format!("{} without a driver call", work.phase.name()));
            }
        };
        let is_limited = work.kind.callback_timeout_ms(limits) > 0;
        if awaits_agent && deadlines.liveness.is_none() && is_limited {
            return Some(format!("{} without a liveness deadline", work.phase.name()));
        }
        if node.open_command().is_some() && deadlines.step.is_none() && limits.command_limit_ms > 0
        {
            return Some(format!(
                "{} without a limit for the step",
                work.phase.name()
            ));
        }
        None
    }

    /// The change is taken: from here on it is the node.
    pub(super) fn became(&mut self, before: &Node, after: &Node, is_sign: bool) {
        self.look_at_signs(before, after, is_sign);
        self.look_at_deploy(before, after);
        self.count_unknown(before, after);
    }

    /// What got through from the agent, and when the node began to wait.
    fn look_at_signs(&mut self, before: &Node, after: &Node, is_sign: bool) {
        if before.work().is_none() {
            return;
        }
        if is_sign {
            self.checks.last_sign = Some(self.now);
            self.checks.restarts_since_sign = 0;
        }
        let awaits_another = before.session.is_some() && after.session.is_none();
        // Each of these begins with a limit of its own, also where nobody was heard just then.
        let awaits_anew = |node: &Node| {
            node.work().is_some_and(|work| {
                matches!(
                    work.phase,
                    WorkPhase::AwaitingInventory
                        | WorkPhase::AwaitingAgent
                        | WorkPhase::Queued { .. }
                )
            })
        };
        let began = after.commands_planned != before.commands_planned
            || awaits_anew(after) && !awaits_anew(before)
            || after.deadlines.liveness.is_some()
                && (before.deadlines.liveness.is_none() || awaits_another);
        if began {
            self.checks.armed_at = self.now;
            self.checks.restarts_since_sign = 0;
        }
        if after.commands_planned != before.commands_planned {
            self.checks.planned_at = self.now;
            self.checks.absent_since_planned = 0;
            self.checks.restarts_since_planned = 0;
        }
    }

    fn look_at_strangers(&mut self, event: &Event, before: &Node, step: &Step) {
        let Event::Heartbeat(heartbeat) = event else {
            return;
        };
        let Some(session) = before.session.as_ref().filter(|session| session.confirmed) else {
            return;
        };
        let fits = heartbeat.token == crate::node::TokenMatch::Right
            && session.callback_url.as_ref() == Some(&heartbeat.callback_url)
            && session.certificate == heartbeat.certificate;
        if !fits && !matches!(step.reply, Reply::Refused(_)) {
            let what = format!("it was taken as {:?}", step.outcome);
            self.checks
                .breaks(Rule::StrangersChangeNothing, what, self.now);
        }
    }

    /// A deadline of the agent or of the step has ended a deploy.
    fn look_at_expiry(&mut self, before: &Node, wall: Timestamp) {
        let limits = self.setup.limits_of(self.number);
        let at = self.now;
        let is_due =
            |deadline: Option<Timestamp>| deadline.is_some_and(|deadline| wall >= deadline);
        if is_due(before.deadlines.driver) {
            return;
        }
        let awaits_findings = before
            .work()
            .is_some_and(|work| work.phase == WorkPhase::AwaitingInventory);
        if is_due(before.deadlines.step) && awaits_findings {
            let limit = limits.inspect_wait_timeout_ms;
            let passed = at - self.checks.armed_at;
            if passed + ROW_LAG_MS < limit {
                let what =
                    format!("findings were awaited for {passed} ms; the limit is {limit} ms");
                self.checks.breaks(Rule::StepsHaveTheirTime, what, at);
            }
            return;
        }
        if is_due(before.deadlines.step) {
            let limit = limit_of(before, limits);
            let passed = at - self.checks.planned_at;
            if passed + ROW_LAG_MS < limit {
                let what = format!("{passed} ms after it was decided; its limit is {limit} ms");
                self.checks.breaks(Rule::StepsHaveTheirTime, what, at);
            }
            return;
        }
        let limit = callback_timeout_ms(before, limits);
        let since = self.checks.last_sign.unwrap_or(0).max(self.checks.armed_at);
        let silent = at - since;
        if silent + ROW_LAG_MS + self.checks.excused_ms < limit {
            let what = format!("after {silent} ms of silence; the limit is {limit} ms");
            self.checks.breaks(Rule::LivingDontExpire, what, at);
        }
    }

    fn look_at_deploy(&mut self, before: &Node, after: &Node) {
        // Work follows work directly when a cleaning begins after a tear-down; otherwise a state of rest is between them.
        let started_at = |node: &Node| node.work().map(|work| (work.kind, work.started_at));
        if started_at(after) != started_at(before)
            && let Some(work) = after.work()
        {
            self.checks.deploy_at = self.now;
            self.checks.last_sign = None;
            self.checks.excused_ms = 0;
            self.deploy_hostile = self.injector.hostile;
            match work.kind {
                WorkKind::Deploy => self.tally.deploys += 1,
                WorkKind::Clean
                | WorkKind::ManualClean
                | WorkKind::Service
                | WorkKind::Rescue
                | WorkKind::Unrescue
                | WorkKind::Inspect => self.tally.other_work += 1,
            }
        }
        if let Some(work) = before.work()
            && after.work().is_none()
        {
            let took = self.now - self.checks.deploy_at;
            let is_harmless = self.injector.hostile == self.deploy_hostile;
            let is_deploy = work.kind == WorkKind::Deploy;
            match after.provision_state() {
                state if state == work.kind.states().done || ends_retired(work, state) => {
                    self.tally.active += u64::from(is_deploy);
                    self.tally.other_done += u64::from(!is_deploy);
                }
                state if state == work.kind.states().failed => {
                    self.tally.failed += u64::from(is_deploy);
                    self.tally.other_failed += u64::from(!is_deploy);
                    match &after.last_error {
                        Some(text) if !text.is_empty() => {}
                        _ => self.checks.breaks(
                            Rule::FailuresHaveReasons,
                            "no last_error".to_owned(),
                            self.now,
                        ),
                    }
                    self.look_at_harmless(is_harmless, before, after, took);
                }
                _ => self.tally.undeployed += 1,
            }
        }
    }

    fn look_at_harmless(&mut self, is_harmless: bool, before: &Node, after: &Node, took: i64) {
        if !is_harmless || self.hostile_before_deploy {
            return;
        }
        let limit = callback_timeout_ms(before, self.setup.limits_of(self.number));
        let since = self.checks.last_sign.unwrap_or(0).max(self.checks.armed_at);
        let is_silent =
            limit > 0 && self.now - since + ROW_LAG_MS + self.checks.excused_ms >= limit;
        if is_silent {
            self.tally.silenced += 1;
            return;
        }
        let what = format!(
            "after {took} ms while {:?}: {}",
            before.provision_state().name(),
            after.last_error.as_deref().unwrap_or_default()
        );
        self.checks
            .breaks(Rule::HarmlessFaultsDontFail, what, self.now);
    }

    /// Looked at after everything that happened, when the actor has nothing on its hands.
    pub(super) fn look_around(&mut self) {
        let at = self.now;
        let Some(node) = self.conductor.idle().cloned() else {
            return;
        };
        self.look_at_the_queue();
        let wall = self.conductor.wall(at);
        let is_due = node
            .next_deadline()
            .is_some_and(|deadline| deadline <= wall && node.quarantine.is_none());
        // Due since the conductor could know: after an absence it learns of it when it is back.
        let due_since = *self.checks.due_since.get_or_insert(at);
        if !is_due {
            self.checks.due_since = None;
        } else if at - due_since > 1_000 {
            let what = format!("{} ms late: {:?}", at - due_since, node.deadlines);
            self.checks.breaks(Rule::DeadlinesFire, what, at);
        }
        let Some(work) = node.work() else {
            return;
        };
        if let Some(command) = node.open_command()
            && node
                .session
                .as_ref()
                .is_some_and(|session| session.callback_url.is_some())
            && !self.conductor.is_asking(command.id)
        {
            let what = format!(
                "command {} is {} and nobody asks",
                command.id,
                command.phase.name()
            );
            self.checks.breaks(Rule::CommandsAreAsked, what, at);
        }
        let limits = self.setup.limits_of(self.number);
        let restarts = self.checks.restarts_since_sign;
        let is_confirmed = node
            .session
            .as_ref()
            .is_some_and(|session| session.confirmed);
        let lag = if is_confirmed {
            RESTART_LAG_MS
        } else {
            RESTART_LAG_MS + CALLS_AGAIN_WITHIN_MS
        };
        let slack = 1_000 + self.checks.excused_ms + lag * restarts;
        if node.deadlines.liveness.is_some() {
            let since = self.checks.last_sign.unwrap_or(0).max(self.checks.armed_at);
            let silent = at - since;
            let limit = callback_timeout_ms(&node, limits);
            if silent > limit + slack {
                let what = format!(
                    "silent for {silent} ms while {}; the limit is {limit} ms",
                    work.phase.name()
                );
                self.checks.breaks(Rule::DeadEnd, what, at);
            }
        }
        if node.deadlines.step.is_some() && node.open_command().is_some() {
            let limit = limit_of(&node, limits);
            let passed = at - self.checks.planned_at - self.checks.absent_since_planned;
            let slack = 1_000
                + self.checks.excused_ms
                + RESTART_LAG_MS * self.checks.restarts_since_planned;
            if passed > limit + slack {
                let what = format!(
                    "{passed} ms for {}; the limit is {limit} ms",
                    work.phase.name()
                );
                self.checks.breaks(Rule::DeadEnd, what, at);
            }
        }
    }

    /// A row is about to be replaced.
    pub(super) fn stored(&mut self, node: &Node, is_checked: bool) {
        let every = self.setup.round_trip_every;
        self.commits += 1;
        if !is_checked || every == 0 || !self.commits.is_multiple_of(every) {
            return;
        }
        self.reread(node);
    }

    /// The node as it comes back out of the store.
    pub(super) fn reread(&mut self, node: &Node) -> std::rc::Rc<Node> {
        self.checks.round_trips += 1;
        let read = serde_json::to_string(node)
            .and_then(|text| serde_json::from_str::<Node>(&text))
            .map_err(|error| error.to_string());
        // Ports have rows of their own.
        let forgets_ports = self.setup.quirks.forgets_ports;
        let read = read.map(|read| Node {
            ports: if forgets_ports {
                Vec::new().into()
            } else {
                node.ports.clone()
            },
            ..read
        });
        match read {
            Ok(read) if read == *node => std::rc::Rc::new(read),
            Ok(_) => {
                let what = format!("version {} came back as another", node.version);
                self.checks.breaks(Rule::RowsAreWhole, what, self.now);
                std::rc::Rc::new(node.clone())
            }
            Err(error) => {
                self.checks.breaks(Rule::RowsAreWhole, error, self.now);
                std::rc::Rc::new(node.clone())
            }
        }
    }

    /// The world has been at peace for long.
    pub(super) fn look_at_the_end(&mut self) {
        let node = self.conductor.latest().clone();
        let limits = self.setup.limits_of(self.number);
        let has_no_limits = limits.deploy_callback_timeout_ms == 0 || limits.command_limit_ms == 0;
        let is_held = node
            .work()
            .is_some_and(|work| work.phase == WorkPhase::Held);
        let waits = node.driver_call.is_some() || node.is_at_work() && !is_held;
        if waits && !has_no_limits {
            let what = format!("{} with {:?}", node.provision_state(), node.deadlines);
            self.checks.breaks(Rule::WaitsEnd, what, self.now);
        }
    }
}

/// True for what must not be asked before the turn has come.
fn is_too_early(node: &Node, effect: &Effect) -> bool {
    match effect {
        Effect::Command { .. } => true,
        Effect::Driver(_) => node.work().is_some_and(Work::has_not_begun),
    }
}

fn limit_of(node: &Node, limits: &crate::node::Limits) -> i64 {
    let is_write = |request: &Request| matches!(request, Request::ExecuteStep { step, .. } if step == "write_image");
    match &node.command {
        Some(command) if is_write(&command.request) => limits.write_image_limit_ms,
        Some(command) if command.request == Request::PowerOff => limits.power_off_wait_ms,
        _ => limits.command_limit_ms,
    }
}

/// True when the agent itself was heard, and what it said was of account.
pub(super) fn is_sign(event: &Event, before: &Node, step: &Step) -> bool {
    if matches!(
        step.outcome,
        Outcome::AnswerIgnored | Outcome::HeartbeatIgnored
    ) || matches!(step.reply, Reply::Refused(_))
    {
        return false;
    }
    match event {
        Event::Heartbeat(_) => true,
        Event::Command { event, .. } => match event {
            // A look that was asked before the command was sent, and answered after it, says nothing of whom it was sent to.
            command::Event::Surveyed { .. } => !before
                .open_command()
                .is_some_and(|command| matches!(command.phase, Phase::Sent { .. })),
            command::Event::Polled(_) => true,
            command::Event::Posted(answer) => matches!(
                answer,
                PostAnswer::Accepted(_) | PostAnswer::Refused(Refusal::Busy { .. })
            ),
            _ => false,
        },
        _ => false,
    }
}

fn is_expiry(event: &Event, before: &Node, step: &Step) -> bool {
    *event == Event::DeadlineReached
        && before
            .work()
            .is_some_and(|work| step.node.provision_state() == work.kind.states().failed)
}

/// A move that the table does not know. One step may make several; its history tells each.
fn off_the_edges(
    before: &Node,
    step: &Step,
    moves: &mut BTreeSet<(ProvisionState, ProvisionState)>,
) -> Option<String> {
    let mut at = before.provision_state();
    for line in step
        .history
        .iter()
        .filter(|line| line.event_type == "provisioning")
    {
        let Some((from, to)) = line.event.split_once(" -> ") else {
            continue;
        };
        let (from, to) = (ProvisionState::parse(from)?, ProvisionState::parse(to)?);
        if from != at || !is_edge(from, to) {
            return Some(format!("{from} -> {to}, while {at}"));
        }
        moves.insert((from, to));
        at = to;
    }
    let now = step.node.provision_state();
    (now != at).then(|| format!("{at} became {now}, and the history says nothing of it"))
}

/// What is retired comes out of its cleaning as `manageable`.
fn ends_retired(work: &Work, state: ProvisionState) -> bool {
    work.kind == WorkKind::Clean && state == ProvisionState::Manageable
}

/// For how long the agent of the work may be silent.
fn callback_timeout_ms(node: &Node, limits: &crate::node::Limits) -> i64 {
    node.work()
        .map_or(0, |work| work.kind.callback_timeout_ms(limits))
}
