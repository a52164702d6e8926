//! What the log and the metrics tell of a step.

use super::NodeActor;
use crate::conductor::measure;
use crate::node::{Node, Outcome, Reply, Step};

impl NodeActor {
    pub(super) fn log(&self, event: &'static str, before: &Node, step: &Step) {
        let outcome = step.outcome.name();
        let trouble = |node: &Node| node.session.as_ref()?.trouble.clone();
        match (trouble(before), trouble(&step.node)) {
            (None, Some(trouble)) => {
                tracing::warn!(node.id = %self.id, node.name = step.node.attributes.name, trouble, "the agent doesn't answer as it should; trying on");
            }
            (Some(_), None) if step.node.session.is_some() => {
                tracing::info!(node.id = %self.id, node.name = step.node.attributes.name, "the agent answers again");
            }
            _ => {}
        }
        measure::outcome(&self.shared.metrics, event, outcome);
        let state = step.node.provision_state();
        let refused = matches!(step.reply, Reply::Refused(_));
        let failed = matches!(
            step.outcome,
            Outcome::DeployFailed | Outcome::WorkFailed | Outcome::Failed | Outcome::Quarantined
        );
        if failed {
            tracing::warn!(node.id = %self.id, node.name = step.node.attributes.name, node.provision_state = %state, event, outcome, last_error = step.node.last_error, "step");
        } else if refused || step.node.provision_state() != before.provision_state() {
            tracing::info!(node.id = %self.id, node.name = step.node.attributes.name, node.provision_state = %state, event, outcome, last_error = step.node.last_error, "step");
        } else {
            tracing::debug!(node.id = %self.id, node.provision_state = %state, event, outcome, "step");
        }
    }
}
