//! The state machine of the Bare Metal API: every state a node can be in, and every edge between two of them, as one table.
//!
//! Pure data with a few questions to it. The verbs that a state allows, the picture in the documents and the test that no flow
//! ever takes another way all come from [`EDGES`]; `work` and `manage` say what happens on the way.

use super::provision::{ProvisionState, Verb};

/// What moves a node from one state to another: a verb that somebody sent, or what became of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// `manage` (from `cleaning`: a manual cleaning has ended).
    Manage,
    /// `provide`
    Provide,
    /// `inspect`
    Inspect,
    /// `clean` (from `deleting`: the instance is gone).
    Clean,
    /// `active`, alias `deploy`
    Deploy,
    /// `rebuild`
    Rebuild,
    /// `deleted`, alias `undeploy`
    Delete,
    /// `rescue`
    Rescue,
    /// `unrescue`
    Unrescue,
    /// `adopt`
    Adopt,
    /// `service`
    Service,
    /// `abort`
    Abort,
    /// `unhold`
    Unhold,
    /// The work has ended well.
    Done,
    /// The work has ended badly.
    Fail,
    /// The next move is the agent's.
    Wait,
    /// The next move is the conductor's again.
    Resume,
    /// A step asked for a pause that somebody has to end.
    Hold,
}

impl Cause {
    /// The word for texts and pictures.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Manage => "manage",
            Cause::Provide => "provide",
            Cause::Inspect => "inspect",
            Cause::Clean => "clean",
            Cause::Deploy => "deploy",
            Cause::Rebuild => "rebuild",
            Cause::Delete => "delete",
            Cause::Rescue => "rescue",
            Cause::Unrescue => "unrescue",
            Cause::Adopt => "adopt",
            Cause::Service => "service",
            Cause::Abort => "abort",
            Cause::Unhold => "unhold",
            Cause::Done => "done",
            Cause::Fail => "fail",
            Cause::Wait => "wait",
            Cause::Resume => "resume",
            Cause::Hold => "hold",
        }
    }
}

impl From<Verb> for Cause {
    fn from(verb: Verb) -> Cause {
        match verb {
            Verb::Manage => Cause::Manage,
            Verb::Provide => Cause::Provide,
            Verb::Inspect => Cause::Inspect,
            Verb::Clean => Cause::Clean,
            Verb::Active => Cause::Deploy,
            Verb::Rebuild => Cause::Rebuild,
            Verb::Deleted => Cause::Delete,
            Verb::Rescue => Cause::Rescue,
            Verb::Unrescue => Cause::Unrescue,
            Verb::Adopt => Cause::Adopt,
            Verb::Service => Cause::Service,
            Verb::Abort => Cause::Abort,
            Verb::Unhold => Cause::Unhold,
        }
    }
}

use Cause as C;
use ProvisionState as S;

/// Every edge: from, by what, to. In the order of a node's life.
pub const EDGES: &[(ProvisionState, Cause, ProvisionState)] = &[
    (S::Enroll, C::Manage, S::Verifying),
    (S::Verifying, C::Done, S::Manageable),
    (S::Verifying, C::Fail, S::Enroll),
    (S::Manageable, C::Provide, S::Cleaning),
    (S::Manageable, C::Clean, S::Cleaning),
    (S::Manageable, C::Inspect, S::Inspecting),
    (S::Manageable, C::Adopt, S::Adopting),
    (S::Inspecting, C::Done, S::Manageable),
    (S::Inspecting, C::Fail, S::InspectFailed),
    (S::Inspecting, C::Wait, S::InspectWait),
    (S::InspectWait, C::Done, S::Manageable),
    (S::InspectWait, C::Fail, S::InspectFailed),
    (S::InspectWait, C::Abort, S::InspectFailed),
    (S::InspectWait, C::Resume, S::Inspecting),
    (S::InspectFailed, C::Manage, S::Manageable),
    (S::InspectFailed, C::Inspect, S::Inspecting),
    (S::Cleaning, C::Done, S::Available),
    (S::Cleaning, C::Fail, S::CleanFailed),
    (S::Cleaning, C::Wait, S::CleanWait),
    (S::Cleaning, C::Hold, S::CleanHold),
    (S::Cleaning, C::Manage, S::Manageable),
    (S::CleanWait, C::Fail, S::CleanFailed),
    (S::CleanWait, C::Abort, S::CleanFailed),
    (S::CleanWait, C::Hold, S::CleanHold),
    (S::CleanWait, C::Resume, S::Cleaning),
    (S::CleanHold, C::Abort, S::CleanFailed),
    (S::CleanHold, C::Unhold, S::CleanWait),
    (S::CleanFailed, C::Manage, S::Manageable),
    (S::Available, C::Deploy, S::Deploying),
    (S::Available, C::Manage, S::Manageable),
    (S::Deploying, C::Fail, S::DeployFailed),
    (S::Deploying, C::Wait, S::WaitCallBack),
    (S::Deploying, C::Hold, S::DeployHold),
    (S::Deploying, C::Done, S::Active),
    (S::WaitCallBack, C::Hold, S::DeployHold),
    (S::WaitCallBack, C::Resume, S::Deploying),
    (S::WaitCallBack, C::Fail, S::DeployFailed),
    (S::WaitCallBack, C::Abort, S::DeployFailed),
    (S::WaitCallBack, C::Delete, S::Deleting),
    (S::DeployHold, C::Unhold, S::WaitCallBack),
    (S::DeployHold, C::Abort, S::DeployFailed),
    (S::DeployFailed, C::Rebuild, S::Deploying),
    (S::DeployFailed, C::Deploy, S::Deploying),
    (S::DeployFailed, C::Delete, S::Deleting),
    (S::Active, C::Rebuild, S::Deploying),
    (S::Active, C::Delete, S::Deleting),
    (S::Active, C::Rescue, S::Rescuing),
    (S::Active, C::Service, S::Servicing),
    (S::Servicing, C::Done, S::Active),
    (S::Servicing, C::Fail, S::ServiceFailed),
    (S::Servicing, C::Wait, S::ServiceWait),
    (S::Servicing, C::Hold, S::ServiceHold),
    (S::ServiceWait, C::Hold, S::ServiceHold),
    (S::ServiceWait, C::Resume, S::Servicing),
    (S::ServiceWait, C::Fail, S::ServiceFailed),
    (S::ServiceWait, C::Abort, S::ServiceFailed),
    (S::ServiceWait, C::Delete, S::Deleting),
    (S::ServiceHold, C::Service, S::Servicing),
    (S::ServiceHold, C::Unhold, S::ServiceWait),
    (S::ServiceHold, C::Fail, S::ServiceFailed),
    (S::ServiceHold, C::Abort, S::ServiceFailed),
    (S::ServiceFailed, C::Service, S::Servicing),
    (S::ServiceFailed, C::Rescue, S::Rescuing),
    (S::ServiceFailed, C::Wait, S::ServiceWait),
    (S::ServiceFailed, C::Hold, S::ServiceHold),
    (S::ServiceFailed, C::Delete, S::Deleting),
    (S::ServiceFailed, C::Abort, S::Active),
    (S::Rescuing, C::Done, S::Rescue),
    (S::Rescuing, C::Wait, S::RescueWait),
    (S::Rescuing, C::Fail, S::RescueFailed),
    (S::RescueWait, C::Resume, S::Rescuing),
    (S::RescueWait, C::Fail, S::RescueFailed),
    (S::RescueWait, C::Abort, S::RescueFailed),
    (S::RescueWait, C::Delete, S::Deleting),
    (S::RescueFailed, C::Rescue, S::Rescuing),
    (S::RescueFailed, C::Unrescue, S::Unrescuing),
    (S::RescueFailed, C::Delete, S::Deleting),
    (S::Rescue, C::Rescue, S::Rescuing),
    (S::Rescue, C::Delete, S::Deleting),
    (S::Rescue, C::Unrescue, S::Unrescuing),
    (S::Unrescuing, C::Done, S::Active),
    (S::Unrescuing, C::Fail, S::UnrescueFailed),
    (S::UnrescueFailed, C::Rescue, S::Rescuing),
    (S::UnrescueFailed, C::Unrescue, S::Unrescuing),
    (S::UnrescueFailed, C::Delete, S::Deleting),
    (S::Deleting, C::Fail, S::Error),
    (S::Deleting, C::Clean, S::Cleaning),
    (S::Error, C::Rebuild, S::Deploying),
    (S::Error, C::Delete, S::Deleting),
    (S::Adopting, C::Done, S::Active),
    (S::Adopting, C::Fail, S::AdoptFailed),
    (S::AdoptFailed, C::Adopt, S::Adopting),
    (S::AdoptFailed, C::Manage, S::Manageable),
];

/// Where `cause` leads from `from`, if anywhere.
pub fn leads(from: ProvisionState, cause: Cause) -> Option<ProvisionState> {
    EDGES
        .iter()
        .find(|(start, by, _)| *start == from && *by == cause)
        .map(|(_, _, to)| *to)
}

/// True where some edge leads directly from one to the other.
pub fn is_edge(from: ProvisionState, to: ProvisionState) -> bool {
    EDGES
        .iter()
        .any(|(start, _, end)| *start == from && *end == to)
}

/// True if somebody may send `verb` to a node in this state. Two edges have a verb's name and are the conductor's own: a manual
/// cleaning that ends, and the cleaning after a tear-down.
pub fn allows(state: ProvisionState, verb: Verb) -> bool {
    let is_internal = matches!(
        (state, verb),
        (S::Cleaning, Verb::Manage) | (S::Deleting, Verb::Clean)
    );
    !is_internal && leads(state, verb.into()).is_some()
}

/// The verbs a state allows, in the order of the API.
pub fn verbs(state: ProvisionState) -> Vec<Verb> {
    Verb::ALL
        .iter()
        .copied()
        .filter(|verb| allows(state, *verb))
        .collect()
}

/// The picture of the whole machine, in the language of Mermaid; the documents hold a copy.
pub fn diagram() -> String {
    let id = |state: ProvisionState| state.name().replace([' ', '-'], "_");
    let mut text = String::from("stateDiagram-v2\n");
    for state in ProvisionState::ALL {
        text.push_str(&format!("    {}: {}\n", id(*state), state.name()));
    }
    text.push_str("    [*] --> enroll\n");
    for (from, cause, to) in EDGES {
        text.push_str(&format!(
            "    {} --> {}: {}\n",
            id(*from),
            id(*to),
            cause.name()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_93_edges_and_no_cause_leads_two_ways() {
        assert_eq!(EDGES.len(), 93);
        for (place, (from, cause, _)) in EDGES.iter().enumerate() {
            let again = EDGES
                .iter()
                .skip(place + 1)
                .any(|(start, by, _)| start == from && by == cause);
            assert!(!again, "{from} has two edges by {}", cause.name());
        }
    }

    #[test]
    fn every_state_is_reached_and_left() {
        for state in ProvisionState::ALL {
            let is_reached = EDGES.iter().any(|(_, _, to)| to == state);
            assert!(
                is_reached || *state == S::Enroll,
                "{state} is never reached"
            );
            assert!(
                EDGES.iter().any(|(from, _, _)| from == state),
                "{state} is never left"
            );
        }
    }

    #[test]
    fn every_state_at_work_has_an_end_good_or_bad_and_every_waiting_one_a_way_out_for_people() {
        for state in ProvisionState::ALL
            .iter()
            .filter(|state| state.is_working())
        {
            assert!(leads(*state, C::Fail).is_some(), "{state}");
            let done = [C::Done, C::Clean].map(|cause| leads(*state, cause));
            assert!(done.iter().any(Option::is_some), "{state}");
        }
        for state in ProvisionState::ALL
            .iter()
            .filter(|state| state.is_waiting())
        {
            assert!(leads(*state, C::Abort).is_some(), "{state}");
        }
    }

    #[test]
    fn the_conductors_own_edges_are_no_verbs() {
        assert!(!allows(S::Cleaning, Verb::Manage));
        assert!(!allows(S::Deleting, Verb::Clean));
        assert_eq!(
            verbs(S::Manageable),
            [Verb::Provide, Verb::Inspect, Verb::Clean, Verb::Adopt]
        );
        assert_eq!(verbs(S::Deploying), []);
    }
}
