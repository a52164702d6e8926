//! Counts what happens to nodes: one function per thing worth counting, called by the actors.

use std::time::Instant;

use crate::command::Phase;
use crate::node::{Node, ProvisionState};
use crate::observe::metrics::{
    CommandLabel, EventLabel, Metrics, OutcomeLabel, ProvisionStateLabel, RestartLabel,
};

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
    if is_unknown(node) {
        metrics.commands_unknown.dec();
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
}

/// What was found in the store at start.
pub(super) fn recovered(metrics: &Metrics, node: &Node) {
    if is_unknown(node) {
        metrics.commands_unknown.inc();
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

/// True while a command was sent and its answer is not stored.
pub(super) fn is_sent(node: &Node) -> bool {
    node.open_command()
        .is_some_and(|command| matches!(command.phase, Phase::Sent { .. }))
}

fn is_unknown(node: &Node) -> bool {
    node.open_command()
        .is_some_and(|command| matches!(command.phase, Phase::Unknown { .. }))
}

/// So many more nodes are in a state.
pub(super) fn in_state(metrics: &Metrics, state: ProvisionState, more: i64) {
    let provision_state = state.name();
    metrics
        .nodes
        .get_or_create(&ProvisionStateLabel { provision_state })
        .inc_by(more);
}
