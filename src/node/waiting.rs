//! What a node waits for, in words for an operator: every waiting node can say so.

use super::queues::{Place, claims};
use super::state::{Node, Provision};
use super::work::{Work, WorkPhase};
use crate::timestamp::Timestamp;

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What for, for example `carrying out a step on the agent: deploy.execute_deploy_step, accepted`.
    pub what: String,
    /// Since when; none where that is not kept.
    pub since: Option<Timestamp>,
    /// The deadlines that are armed, by name, the earliest first.
    pub deadlines: Vec<(&'static str, Timestamp)>,
    /// When the agent was last heard, where there is one.
    pub heard_at: Option<Timestamp>,
    /// What is wrong with reaching the agent at the moment.
    pub trouble: Option<String>,
    /// Where it stands in the queue, if it waits for a turn and somebody who knows the queues has said so.
    pub place: Option<Place>,
}

impl Waiting {
    /// The same with the place in the queue.
    pub fn at_place(self, place: Option<Place>) -> Waiting {
        let what = match &place {
            Some(place) => format!("{}: {place}", self.what),
            None => self.what.clone(),
        };
        Waiting {
            what,
            place,
            ..self
        }
    }
}

/// What `node` waits for; none when it rests.
pub fn waiting(node: &Node) -> Option<Waiting> {
    let mut what = match &node.provision {
        Provision::Working(work) if node.is_queued() => turn_of(node, work),
        Provision::Working(work) => match work.current_step() {
            Some(step) if node.open_command().is_some() || is_step_of_driver(work) => {
                format!("{} ({})", work.phase.name(), step.full_name())
            }
            _ => work.phase.name().to_owned(),
        },
        Provision::Verifying => "seeing whether the machine can be managed".to_owned(),
        Provision::Adopting => "seeing whether the machine can be adopted".to_owned(),
        Provision::Deleting => "switching the machine off".to_owned(),
        Provision::Enroll
        | Provision::Manageable
        | Provision::InspectFailed
        | Provision::CleanFailed { .. }
        | Provision::Available
        | Provision::DeployFailed
        | Provision::Active
        | Provision::ServiceFailed
        | Provision::Rescue
        | Provision::RescueFailed
        | Provision::UnrescueFailed
        | Provision::AdoptFailed
        | Provision::Error => match node.driver_call {
            Some(call) => call.request.name().to_owned(),
            None => return None,
        },
    };
    let mut since = match node.work().map(|work| work.phase) {
        Some(WorkPhase::Queued { since, .. }) => Some(since),
        _ => node.provision_updated_at,
    };
    if let Some(command) = node.open_command() {
        what = format!(
            "{what}: command {} {}, {}",
            command.id,
            command.request.full_name(),
            command.phase.name()
        );
        since = Some(command.planned_at);
    } else if let Some(call) = node.driver_call {
        what = format!("{what}: the driver's answer to \"{}\"", call.request.name());
    }
    let mut deadlines: Vec<(&'static str, Timestamp)> = [
        ("liveness", node.deadlines.liveness),
        ("step", node.deadlines.step),
        ("driver", node.deadlines.driver),
        ("look", node.deadlines.look),
    ]
    .into_iter()
    .filter_map(|(name, at)| Some((name, at?)))
    .collect();
    deadlines.sort_by_key(|(_, at)| *at);
    let session = node.session.as_ref();
    Some(Waiting {
        what,
        since,
        deadlines,
        heard_at: node.heard_at(),
        trouble: session.and_then(|session| session.trouble.clone()),
        place: None,
    })
}

/// What a queued node waits for.
fn turn_of(node: &Node, work: &Work) -> String {
    match claims(node).waits {
        Some((queue, _)) => queue.to_string(),
        None => format!(
            "the end of the maintenance; then it takes its place in the queue again ({})",
            work.phase.name()
        ),
    }
}

fn is_step_of_driver(work: &Work) -> bool {
    work.phase == WorkPhase::OutOfBandStep
}
