//! Counts what happens to nodes: one function per thing worth counting, called by the actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::clock::Clock;
use crate::command::{self, Command, CommandId, Finish, Phase, PostAnswer, Refusal};
use crate::node::{Deadlines, Event, Node, ProvisionState};
use crate::observe::metrics::{
    CommandLabel, CommandNameLabel, DeadlineLabel, EventLabel, Metrics, OutcomeLabel,
    ProvisionStateLabel, ResolutionLabel, RestartLabel,
};
use crate::timestamp::Timestamp;

/// What is worth counting of an event and can't be seen in what it makes of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notable {
    /// The agent was busy when this dispatch came.
    Busy(CommandId, u32),
    /// A deadline fired.
    Deadline,
}

/// What is notable of `event`, if anything.
pub(super) fn notable(event: &Event) -> Option<Notable> {
    match event {
        Event::Command {
            id,
            attempt,
            event: command::Event::Posted(PostAnswer::Refused(Refusal::Busy { .. })),
        } => Some(Notable::Busy(*id, *attempt)),
        Event::DeadlineReached => Some(Notable::Deadline),
        _ => None,
    }
}

/// What a notable event made of a node is stored; it was decided at `decided_at`, and now it is `now`.
pub(super) fn noted(
    metrics: &Metrics,
    notable: Notable,
    before: &Node,
    decided_at: Timestamp,
    now: Timestamp,
) {
    match notable {
        Notable::Busy(id, attempt) => {
            let is_awaited =
                sent(before).is_some_and(|command| command.id == id && command.attempt == attempt);
            if is_awaited {
                metrics.busy_answers.inc();
            }
        }
        Notable::Deadline => {
            if let Some((deadline, at)) = due(&before.deadlines, decided_at) {
                // Milliseconds of at most some days.
                let late = now.ms_since(at).max(0) as f64 / 1_000.0;
                metrics
                    .deadline_lateness_seconds
                    .get_or_create(&DeadlineLabel { deadline })
                    .observe(late);
            }
        }
    }
}

/// The deadline that had come at `now`; of several, the one the core acts on.
fn due(deadlines: &Deadlines, now: Timestamp) -> Option<(&'static str, Timestamp)> {
    [
        ("driver", deadlines.driver),
        ("step", deadlines.step),
        ("liveness", deadlines.liveness),
        ("look", deadlines.look),
    ]
    .into_iter()
    .find_map(|(name, at)| Some((name, at.filter(|at| *at <= now)?)))
}

/// A step was decided.
pub(super) fn decided(metrics: &Metrics, event: &'static str, began: Instant) {
    metrics
        .steps_seconds
        .get_or_create(&EventLabel { event })
        .observe(began.elapsed().as_secs_f64());
}

/// A step came to its outcome; nothing is stored yet.
pub(super) fn outcome(metrics: &Metrics, event: &'static str, outcome: &'static str) {
    if event == "heartbeat" {
        metrics
            .heartbeats
            .get_or_create(&OutcomeLabel { outcome })
            .inc();
    }
}

/// An actor panicked and is restarted.
pub(super) fn restarted(metrics: &Metrics, actor: &'static str) {
    let cause = "panic";
    metrics
        .actor_restarts
        .get_or_create(&RestartLabel { actor, cause })
        .inc();
}

/// A node came into being.
pub(super) fn enrolled(metrics: &Metrics, node: &Node) {
    in_state(metrics, node.provision_state(), 1);
}

/// A node is gone.
pub(super) fn removed(metrics: &Metrics, node: &Node) {
    in_state(metrics, node.provision_state(), -1);
    if node.quarantine.is_some() {
        metrics.quarantined_nodes.dec();
    }
    if let Some(lost) = unknown(node) {
        metrics.commands_unknown.dec();
        let label = ResolutionLabel {
            command: lost.request.full_name(),
            resolution: "given_up",
        };
        metrics.unknown_resolutions.get_or_create(&label).inc();
    }
}

/// A node changed, and the change is taken.
pub(super) fn changed(metrics: &Metrics, before: &Node, after: &Node) {
    if before.provision_state() != after.provision_state() {
        in_state(metrics, before.provision_state(), -1);
        in_state(metrics, after.provision_state(), 1);
    }
    match (before.quarantine.is_some(), after.quarantine.is_some()) {
        (false, true) => {
            metrics.quarantined_nodes.inc();
        }
        (true, false) => {
            metrics.quarantined_nodes.dec();
        }
        _ => {}
    }
    match (is_unknown(before), is_unknown(after)) {
        (false, true) => {
            metrics.commands_unknown.inc();
        }
        (true, false) => {
            metrics.commands_unknown.dec();
        }
        _ => {}
    }
    if let Some(ended) = ended(before, after) {
        metrics.commands.get_or_create(&ended).inc();
    }
    if let Some(dispatched) = sent(after).filter(|command| !is_dispatch_of(sent(before), command)) {
        metrics.dispatches.get_or_create(&name(dispatched)).inc();
    }
    if let Some(lost) = unknown(after).filter(|command| !is_dispatch_of(unknown(before), command)) {
        metrics.unknown_outcomes.get_or_create(&name(lost)).inc();
    }
    if let Some(resolved) = resolved(before, after) {
        metrics.unknown_resolutions.get_or_create(&resolved).inc();
    }
}

/// What was found in the store at start.
pub(super) fn recovered(metrics: &Metrics, node: &Node) {
    if let Some(lost) = unknown(node) {
        metrics.commands_unknown.inc();
        metrics.unknown_outcomes.get_or_create(&name(lost)).inc();
    }
}

/// The nodes that waited when the conductor started, until all are back.
pub(super) struct Recovery {
    metrics: Arc<Metrics>,
    clock: Clock,
    left: AtomicUsize,
}

impl Recovery {
    /// So many nodes waited.
    pub(super) fn begin(metrics: &Arc<Metrics>, clock: Clock, nodes: usize) -> Arc<Recovery> {
        let count = i64::try_from(nodes).unwrap_or(i64::MAX);
        metrics.recovery_nodes.set(count);
        metrics.recovery_nodes_left.set(count);
        if nodes == 0 {
            metrics
                .recovery_seconds
                .set(clock.running_for().as_secs_f64());
        }
        Arc::new(Recovery {
            metrics: metrics.clone(),
            clock,
            left: AtomicUsize::new(nodes),
        })
    }
}

/// Held by the actor of one of those nodes until the node is back, or is given up on.
pub(super) struct ComingBack(pub(super) Arc<Recovery>);

impl Drop for ComingBack {
    fn drop(&mut self) {
        let recovery = &self.0;
        recovery.metrics.recovery_nodes_left.dec();
        if recovery.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let took = recovery.clock.running_for();
            recovery.metrics.recovery_seconds.set(took.as_secs_f64());
            tracing::info!(
                took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "all nodes that waited are back"
            );
        }
    }
}

/// Quarantined nodes were found in the store at start.
pub(super) fn quarantined(metrics: &Metrics, nodes: &[Node]) {
    for _ in nodes.iter().filter(|node| node.quarantine.is_some()) {
        metrics.quarantined_nodes.inc();
    }
}

/// The command that ended between the two, if one did.
pub(super) fn ended(before: &Node, after: &Node) -> Option<CommandLabel> {
    let open = before.open_command()?;
    let now = after.command_numbered(open.id)?;
    let Phase::Ended { finish } = &now.phase else {
        return None;
    };
    Some(CommandLabel {
        command: now.request.full_name(),
        outcome: finish.name(),
    })
}

/// The command of which it was not known whether it arrived, and what became of that between the two.
fn resolved(before: &Node, after: &Node) -> Option<ResolutionLabel> {
    let lost = unknown(before)?;
    let resolution = match after.command_numbered(lost.id) {
        Some(now) if now.attempt > lost.attempt => "never_arrived",
        Some(now) => match &now.phase {
            Phase::Unknown { .. } => return None,
            Phase::Planned | Phase::Sent { .. } => "never_arrived",
            Phase::Accepted { .. } => "found",
            Phase::Ended { finish } => match finish {
                Finish::Succeeded { .. } | Finish::Failed { .. } | Finish::VersionMismatch => {
                    "found"
                }
                Finish::Refused { .. } => "refused",
                Finish::InstanceLost => "instance_lost",
                Finish::Abandoned => "given_up",
            },
        },
        None => "given_up",
    };
    let command = lost.request.full_name();
    Some(ResolutionLabel {
        command,
        resolution,
    })
}

/// True while a command was sent and its answer is not stored.
pub(super) fn is_sent(node: &Node) -> bool {
    sent(node).is_some()
}

fn is_unknown(node: &Node) -> bool {
    unknown(node).is_some()
}

fn sent(node: &Node) -> Option<&Command> {
    node.open_command()
        .filter(|command| matches!(command.phase, Phase::Sent { .. }))
}

fn unknown(node: &Node) -> Option<&Command> {
    node.open_command()
        .filter(|command| matches!(command.phase, Phase::Unknown { .. }))
}

fn is_dispatch_of(found: Option<&Command>, command: &Command) -> bool {
    found.is_some_and(|found| found.id == command.id && found.attempt == command.attempt)
}

fn name(command: &Command) -> CommandNameLabel {
    let command = command.request.full_name();
    CommandNameLabel { command }
}

/// So many more nodes are in a state.
pub(super) fn in_state(metrics: &Metrics, state: ProvisionState, more: i64) {
    let provision_state = state.name();
    metrics
        .nodes
        .get_or_create(&ProvisionStateLabel { provision_state })
        .inc_by(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Request;
    use crate::node::{Attributes, NodeId};

    /// A node whose open command is in this phase, at this attempt.
    fn node(attempt: u32, phase: Phase) -> Node {
        let now = Timestamp(0);
        let mut node = Node::enrolled(NodeId::default(), Attributes::default(), now);
        let mut command = Command::planned(CommandId(1), Request::Sync, now);
        command.attempt = attempt;
        command.phase = phase;
        node.command = Some(command);
        node
    }

    fn sent() -> Phase {
        Phase::Sent { at: Timestamp(0) }
    }

    fn unknown() -> Phase {
        Phase::Unknown {
            since: Timestamp(0),
            absent_since: None,
        }
    }

    fn accepted() -> Phase {
        Phase::Accepted {
            agent_id: "a".to_owned(),
            at: Timestamp(0),
            by_list: false,
        }
    }

    fn ended(finish: Finish) -> Phase {
        Phase::Ended { finish }
    }

    /// What is counted of these changes, one after the other: the lines of counters that are not zero.
    fn counted(changes: &[(u32, Phase)]) -> Vec<String> {
        let metrics = Metrics::new();
        for pair in changes.windows(2) {
            let [(one, before), (other, after)] = pair else {
                unreachable!("windows of two");
            };
            changed(
                &metrics,
                &node(*one, before.clone()),
                &node(*other, after.clone()),
            );
        }
        let text = metrics.encode();
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| {
                ["upbeat_dispatches", "upbeat_unknown"]
                    .iter()
                    .any(|name| line.starts_with(name))
            })
            .map(|line| line.replace("command=\"standby.sync\"", ""))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn every_attempt_is_a_dispatch_and_each_unknown_one_is_resolved_once() {
        let changes = [
            (1, Phase::Planned),
            (1, sent()),
            (1, unknown()),
            (1, unknown()),
            (2, Phase::Planned),
            (2, sent()),
            (2, unknown()),
            (2, accepted()),
            (2, ended(Finish::Abandoned)),
        ];
        assert_eq!(
            counted(&changes),
            [
                "upbeat_dispatches_total{} 2",
                "upbeat_unknown_outcomes_total{} 2",
                "upbeat_unknown_resolutions_total{,resolution=\"found\"} 1",
                "upbeat_unknown_resolutions_total{,resolution=\"never_arrived\"} 1",
            ]
        );
    }

    #[test]
    fn how_an_unknown_command_ended_is_told() {
        for (finish, resolution) in [
            (
                Finish::Succeeded {
                    result: serde_json::Value::Null,
                },
                "found",
            ),
            (Finish::VersionMismatch, "found"),
            (
                Finish::Refused {
                    why: Refusal::ListPoisoned,
                },
                "refused",
            ),
            (Finish::InstanceLost, "instance_lost"),
            (Finish::Abandoned, "given_up"),
        ] {
            let lines = counted(&[(1, unknown()), (1, ended(finish))]);
            let expected =
                format!("upbeat_unknown_resolutions_total{{,resolution=\"{resolution}\"}} 1");
            assert_eq!(lines, [expected]);
        }
    }

    #[test]
    fn a_busy_answer_counts_for_the_dispatch_it_belongs_to() {
        let metrics = Metrics::new();
        let busy = |attempt| {
            let event = command::Event::Posted(PostAnswer::Refused(Refusal::Busy {
                text: String::new(),
            }));
            let id = CommandId(1);
            notable(&Event::Command { id, attempt, event }).unwrap()
        };
        for attempt in [1, 2] {
            let before = node(2, sent());
            noted(&metrics, busy(attempt), &before, Timestamp(0), Timestamp(0));
        }
        noted(
            &metrics,
            busy(2),
            &node(2, accepted()),
            Timestamp(0),
            Timestamp(0),
        );
        assert_eq!(metrics.busy_answers.get(), 1);
    }

    #[test]
    fn a_deadline_is_late_by_the_time_from_its_own_to_its_commit() {
        let metrics = Metrics::new();
        let mut before = node(1, Phase::Planned);
        before.deadlines.step = Some(Timestamp(5_000));
        before.deadlines.liveness = Some(Timestamp(1_000));
        noted(
            &metrics,
            Notable::Deadline,
            &before,
            Timestamp(1_200),
            Timestamp(1_500),
        );
        // Nothing was due: it had moved.
        noted(
            &metrics,
            Notable::Deadline,
            &before,
            Timestamp(900),
            Timestamp(1_500),
        );
        let text = metrics.encode();
        for line in [
            "upbeat_deadline_lateness_seconds_count{deadline=\"liveness\"} 1",
            "upbeat_deadline_lateness_seconds_sum{deadline=\"liveness\"} 0.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("deadline=\"step\""), "{text}");
    }

    #[test]
    fn recovery_is_over_when_the_last_node_is_back() {
        let metrics = Arc::new(Metrics::new());
        let recovery = Recovery::begin(&metrics, Clock::start(), 2);
        let (one, other) = (ComingBack(recovery.clone()), ComingBack(recovery));
        drop(one);
        assert_eq!(metrics.recovery_nodes_left.get(), 1);
        assert!(metrics.recovery_seconds.get() == 0.0);
        drop(other);
        assert_eq!(metrics.recovery_nodes_left.get(), 0);
        assert_eq!(metrics.recovery_nodes.get(), 2);
        assert!(metrics.recovery_seconds.get() > 0.0);
    }
}
