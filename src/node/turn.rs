//! The working copy of one step: collects what changes, what is to be done and what is to be told.
//!
//! Flows change the copy; only [`Turn::done`], [`Turn::refuse`] and [`Turn::unchanged`] turn it into a [`Step`], and they see to
//! it that the version is raised exactly when something changed and that a refusal changes nothing.

use serde_json::Value;

use super::driver_call::{DriverCall, DriverRequest};
use super::effect::{Effect, HistoryLine, Reply, Severity, Step};
use super::hardware::hardware_type;
use super::limits::Now;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{Deadlines, Node, Provision};
use crate::command::{self, Command, CommandId, Pace, Phase, Request};

pub(super) struct Turn<'a> {
    before: &'a Node,
    pub(super) node: Node,
    pub(super) now: Now<'a>,
    effects: Vec<Effect>,
    history: Vec<HistoryLine>,
    /// What an inspection that ends in this step has found.
    pub(super) inventory: Option<Value>,
    removed: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(before: &'a Node, now: Now<'a>) -> Turn<'a> {
        Turn {
            before,
            node: before.clone(),
            now,
            effects: Vec::new(),
            inventory: None,
            history: Vec::new(),
            removed: false,
        }
    }

    pub(super) fn done(self, outcome: Outcome) -> Step {
        self.reply(Reply::Done, outcome)
    }

    pub(super) fn reply(mut self, reply: Reply, outcome: Outcome) -> Step {
        if self.node.allocation.is_some() && self.node.attributes.instance_uuid.is_none() {
            // It was there for the instance's sake, however that went.
            self.node.allocation = None;
        }
        self.note_commands();
        self.note_deadlines();
        if self.node != *self.before {
            self.node.version = self.before.version + 1;
            if !only_liveness_changed(self.before, &self.node) {
                self.node.updated_at = Some(self.now.at);
            }
        }
        Step {
            node: self.node,
            effects: self.effects,
            reply,
            outcome,
            inventory: self.inventory,
            history: self.history,
            removed: self.removed,
        }
    }

    /// The history tells each phase of each command, with its attempt; with the time of its line that is the whole ledger.
    fn note_commands(&mut self) {
        let mut lines = Vec::new();
        let (previous, last) = (&self.node.previous_command, &self.node.command);
        for command in [previous.as_deref(), last.as_ref()].into_iter().flatten() {
            let before = self.before.command_numbered(command.id);
            let is_as_before = before.is_some_and(|before| {
                before.attempt == command.attempt && before.phase.name() == command.phase.name()
            });
            if !is_as_before {
                lines.push(told(command));
            }
        }
        for line in lines {
            self.note(Severity::Info, "command", line);
        }
    }

    /// The history tells which deadlines were armed and what became of the one that signs of life move; one that has passed is told
    /// where that is noticed.
    fn note_deadlines(&mut self) {
        let (before, deadlines) = (&self.before.deadlines, &self.node.deadlines);
        let is_new_command = self.node.commands_planned != self.before.commands_planned;
        let is_new_call = self.node.driver_calls_made != self.before.driver_calls_made;
        let armed = [
            ("step", deadlines.step.filter(|_| is_new_command)),
            ("driver", deadlines.driver.filter(|_| is_new_call)),
            (
                "liveness",
                deadlines.liveness.filter(|_| before.liveness.is_none()),
            ),
        ];
        let mut lines: Vec<String> = armed
            .into_iter()
            .filter_map(|(name, at)| Some((name, self.now.at, at?)))
            .map(|(name, now, at)| {
                format!(
                    "{name} deadline armed: in {:.1} s",
                    seconds(at.ms_since(now))
                )
            })
            .collect();
        if deadlines.liveness.is_none() {
            if before.liveness.is_some() {
                let mut line = format!(
                    "liveness deadline dropped: signs of life had moved it {} times",
                    before.refreshed
                );
                if before.moved_ms != 0 {
                    line.push_str(&format!(
                        ", absences of the conductor by {:.1} s",
                        seconds(before.moved_ms)
                    ));
                }
                lines.push(line);
            }
            self.node.deadlines.refreshed = 0;
            self.node.deadlines.moved_ms = 0;
        }
        for line in lines {
            self.note(Severity::Info, "deadline", line);
        }
    }

    pub(super) fn refuse(self, why: Refused) -> Step {
        Step {
            node: self.before.clone(),
            effects: Vec::new(),
            outcome: Outcome::Refused(why.name()),
            reply: Reply::Refused(why),
            inventory: None,
            history: Vec::new(),
            removed: false,
        }
    }

    /// Nothing changes, whatever the flow has touched so far.
    pub(super) fn unchanged(self, outcome: Outcome) -> Step {
        Step {
            node: self.before.clone(),
            effects: Vec::new(),
            reply: Reply::Done,
            outcome,
            inventory: None,
            history: Vec::new(),
            removed: false,
        }
    }

    /// True where a token that was lost may be replaced without a power cycle: the driver can't order one, and the operator allows it.
    pub(super) fn may_reissue_token(&self) -> bool {
        self.now.limits.reissue_lost_token && !self.switches_power()
    }

    pub(super) fn switches_power(&self) -> bool {
        hardware_type(&self.node.attributes.driver).is_some_and(|known| known.switches_power)
    }

    pub(super) fn remove(&mut self) {
        self.removed = true;
    }

    /// Moves to another place in the node's life; its history tells when the name of the state changes.
    pub(super) fn move_to(&mut self, provision: Provision) {
        let from = self.node.provision_state();
        let to = provision.state();
        self.node.provision = provision;
        if from != to {
            let since = self
                .node
                .provision_updated_at
                .replace(self.now.at)
                .unwrap_or(self.node.created_at);
            self.note(Severity::Info, "provisioning", format!("{from} -> {to}"));
            if let Some(line) = self.history.last_mut() {
                line.lasted_ms = Some(self.now.at.ms_since(since));
            }
        }
    }

    pub(super) fn note(&mut self, severity: Severity, event_type: &str, event: String) {
        let state = self.node.provision_state();
        self.history.push(HistoryLine {
            severity,
            event_type: event_type.to_owned(),
            event,
            state: Some(state),
            target: state.target(),
            lasted_ms: None,
        });
    }

    /// Records a failure for the operator, in the node and in its history.
    pub(super) fn error(&mut self, event_type: &str, text: String) {
        self.note(Severity::Error, event_type, text.clone());
        self.node.last_error = Some(text);
    }

    pub(super) fn call_driver(&mut self, request: DriverRequest) {
        self.node.driver_calls_made += 1;
        let call = DriverCall {
            number: self.node.driver_calls_made,
            request,
        };
        self.node.driver_call = Some(call);
        self.node.deadlines.driver = self.now.deadline(self.now.limits.driver_limit_ms);
        self.node.power.target = request.ends_in();
        self.effects.push(Effect::Driver(call));
    }

    /// Decides on a command to the agent, which may take `limit_ms` (0: as long as it likes) while the agent lives.
    pub(super) fn plan_command(&mut self, request: Request, limit_ms: i64) {
        self.node.commands_planned += 1;
        let command = Command::planned(CommandId(self.node.commands_planned), request, self.now.at);
        self.effects.push(Effect::Command {
            id: command.id,
            attempt: command.attempt,
            effect: command::Effect::Survey(Pace::Now),
        });
        self.node.previous_command = self.node.command.replace(command).map(Box::new);
        self.node.deadlines.step = self.now.deadline(limit_ms);
        self.refresh_liveness();
    }

    pub(super) fn ask_agent(&mut self, command: &Command, effect: command::Effect) {
        self.effects.push(Effect::Command {
            id: command.id,
            attempt: command.attempt,
            effect,
        });
    }

    pub(super) fn repeat_driver_call(&mut self) {
        let Some(call) = self.node.driver_call else {
            return;
        };
        if !call.request.may_be_repeated() {
            self.node.driver_call = None;
            self.node.deadlines.driver = None;
            let text = format!(
                "Nobody knows whether \"{}\" was carried out: the conductor restarted before the driver had answered.",
                call.request.name()
            );
            return self.error("management", text);
        }
        // What may take longer than usual may go on to.
        let fresh = self.now.deadline(self.now.limits.driver_limit_ms);
        self.node.deadlines.driver = self.node.deadlines.driver.max(fresh);
        self.effects.push(Effect::Driver(call));
    }

    /// The agent, or its first sign, may take the whole callback timeout from now on.
    pub(super) fn refresh_liveness(&mut self) {
        let limits = self.now.limits;
        let limit = match self.node.work() {
            Some(work) => work.kind.callback_timeout_ms(limits),
            None => limits.deploy_callback_timeout_ms,
        };
        self.node.deadlines.liveness = self.now.deadline(limit);
    }

    /// The agent has been heard: what waits for a sign of it may wait anew.
    pub(super) fn sign_of_life(&mut self) {
        let now = self.now.at;
        if let Some(session) = &mut self.node.session {
            session.last_contact_at = Some(now);
            if session.asked_again_at.take().is_some() {
                session.proved_alive_at = Some(now);
            }
        }
        if self.node.deadlines.liveness.is_some() {
            self.refresh_liveness();
            self.node.deadlines.refreshed = self.node.deadlines.refreshed.saturating_add(1);
        }
    }

    /// The agent is gone: what became of its command nobody can say any more.
    pub(super) fn lose_agent(&mut self) {
        self.node.command = self.node.command.take().map(Command::lost);
        self.forget_agent();
    }

    /// Forgets the agent, its command and every deadline: whatever they still say is of no account.
    pub(super) fn forget_agent(&mut self) {
        self.node.session = None;
        self.node.command = self.node.command.take().map(Command::abandoned);
        let Deadlines {
            driver,
            refreshed,
            moved_ms,
            ..
        } = self.node.deadlines;
        self.node.deadlines = Deadlines {
            driver,
            refreshed,
            moved_ms,
            ..Deadlines::default()
        };
    }
}

/// For texts.
#[expect(
    clippy::cast_precision_loss,
    reason = "a time that is told with one decimal"
)]
pub(super) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

/// One line of the ledger.
fn told(command: &Command) -> String {
    let mut line = format!(
        "command {} {}: {}",
        command.id,
        command.request.full_name(),
        command.phase.name()
    );
    if command.attempt > 1 {
        line.push_str(&format!(", attempt {}", command.attempt));
    }
    match &command.phase {
        Phase::Accepted { agent_id, .. } => line.push_str(&format!(" as {agent_id}")),
        Phase::Ended { finish } => line.push_str(&format!(", {}", finish.name())),
        Phase::Planned | Phase::Sent { .. } | Phase::Unknown { .. } => {}
    }
    line
}

/// True when the two differ in nothing but signs of life: such a change need not be stored before it is answered.
pub(super) fn only_liveness_changed(before: &Node, after: &Node) -> bool {
    let mut masked = after.clone();
    masked.version = before.version;
    masked.updated_at = before.updated_at;
    masked.deadlines.liveness = before.deadlines.liveness;
    masked.deadlines.refreshed = before.deadlines.refreshed;
    if let (Some(masked), Some(before)) = (&mut masked.session, &before.session) {
        masked.last_heartbeat_at = before.last_heartbeat_at;
        masked.last_contact_at = before.last_contact_at;
        masked.trouble = before.trouble.clone();
        masked.asked_again_at = before.asked_again_at;
        masked.proved_alive_at = before.proved_alive_at;
    }
    // A deadline that appears or goes away is more than a sign of life.
    before.deadlines.liveness.is_some() == after.deadlines.liveness.is_some() && masked == *before
}
