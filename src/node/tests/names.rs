//! The words by which logs, metrics and clients know things: each has one, and it is nobody else's.

use std::collections::BTreeSet;

use super::*;
use crate::command::{Command, CommandId, Finish, Phase, Refusal, Request};

/// Panics unless all are different words in lower case.
fn are_words(names: &[&str]) {
    let letters =
        |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    assert!(names.iter().all(letters), "{names:?}");
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
}

#[test]
fn outcomes() {
    let outcomes = [
        Outcome::Refused("busy"),
        Outcome::TokenIssued,
        Outcome::TokenMasked,
        Outcome::TokenLater,
        Outcome::Alive,
        Outcome::HeartbeatIgnored,
        Outcome::AgentArrived,
        Outcome::AnswerIgnored,
        Outcome::CommandGoesOn,
        Outcome::AgentTrouble,
        Outcome::CommandPlanned,
        Outcome::DriverCalled,
        Outcome::WorkGoesOn,
        Outcome::Deployed,
        Outcome::DeployFailed,
        Outcome::Failed,
        Outcome::DeadlineExpired,
        Outcome::DeadlineMoved,
        Outcome::Resumed,
        Outcome::Quarantined,
        Outcome::Changed,
        Outcome::Unchanged,
    ];
    are_words(&outcomes.map(Outcome::name));
    assert_eq!(outcomes[0].name(), "busy");
}

#[test]
fn events() {
    let id = PortId::default();
    let world = World::new();
    let events = [
        Event::Lookup {
            fresh_nonce: String::new(),
        },
        Event::Heartbeat(world.heartbeat(TokenMatch::Right)),
        Event::Command {
            id: CommandId(1),
            attempt: 1,
            event: AgentEvent::Hint,
        },
        Event::Driver {
            call: 1,
            answer: Err(String::new()),
        },
        Event::DeadlineReached,
        Event::Resumed { down_for_ms: 0 },
        Event::AgentsTurnedAway { for_ms: 1 },
        Event::Quarantined {
            reason: String::new(),
        },
        Event::Provision {
            verb: Verb::Manage,
            options: ProvisionOptions::default(),
        },
        Event::power(PowerRequest::Reboot),
        Event::Maintenance {
            on: true,
            reason: None,
        },
        Event::Patch {
            operations: Vec::new(),
            reset_interfaces: false,
            microversion: 1,
        },
        Event::Delete,
        Event::PortPatch {
            id,
            operations: Vec::new(),
        },
        Event::PortDelete { id },
    ];
    let names: Vec<&str> = events.iter().map(Event::name).collect();
    are_words(&names);
}

#[test]
fn refusals() {
    let text = String::new;
    let state = ProvisionState::Enroll;
    let refused = [
        Refused::BadValue {
            field: text(),
            problem: text(),
        },
        Refused::NoSuchTransition {
            verb: Verb::Manage,
            state,
        },
        Refused::Unsupported { what: text() },
        Refused::InMaintenance { what: text() },
        Refused::Protected { what: text() },
        Refused::Busy { state },
        Refused::Conflict { text: text() },
        Refused::NotFound { what: text() },
        Refused::LookupNotAllowed,
        Refused::TokenMissing,
        Refused::TokenWrong,
        Refused::CallbackUrlChanged,
        Refused::CertificateChanged,
        Refused::CallbackUrlNotAllowed { problem: text() },
        Refused::Quarantined,
    ];
    let names: Vec<&str> = refused.iter().map(Refused::name).collect();
    are_words(&names);
}

#[test]
fn a_refusal_tells_a_client_what_and_why() {
    for (refused, text) in [
        (
            Refused::BadValue {
                field: "name".to_owned(),
                problem: "is taken".to_owned(),
            },
            "name: is taken",
        ),
        (
            Refused::NoSuchTransition {
                verb: Verb::Rebuild,
                state: ProvisionState::CleanFailed,
            },
            "The requested action \"rebuild\" can not be performed on a node in state \"clean failed\".",
        ),
        (
            Refused::NotFound {
                what: "Node n".to_owned(),
            },
            "Node n could not be found.",
        ),
        // Agents read these two in their own log only, but operators read that.
        (
            Refused::TokenMissing,
            "Agent token is required for heartbeat processing.",
        ),
        (
            Refused::LookupNotAllowed,
            "The node is not in a state that allows a lookup.",
        ),
    ] {
        assert_eq!(refused.to_string(), text);
    }
}

#[test]
fn phases_and_ends_of_commands() {
    let ends = [
        Finish::Succeeded {
            result: Value::Null,
        },
        Finish::Failed {
            kind: String::new(),
            message: String::new(),
        },
        Finish::VersionMismatch,
        Finish::Refused {
            why: Refusal::Unauthorized,
        },
        Finish::InstanceLost,
        Finish::Abandoned,
    ];
    let names: Vec<&str> = ends.iter().map(Finish::name).collect();
    are_words(&names);
    let at = Timestamp(0);
    let phases = [
        Phase::Planned,
        Phase::Sent { at },
        Phase::Accepted {
            agent_id: String::new(),
            at,
            by_list: false,
        },
        Phase::Unknown {
            since: at,
            absent_since: None,
        },
        Phase::Ended {
            finish: ends[3].clone(),
        },
        Phase::Ended {
            finish: ends[0].clone(),
        },
    ];
    let names: Vec<&str> = phases.iter().map(Phase::name).collect();
    are_words(&names);
}

#[test]
fn the_agents_names_of_commands() {
    let command = Command::planned(CommandId(7), Request::Sync, Timestamp(3));
    assert_eq!(command.id.to_string(), "7");
    assert_eq!(command.attempt, 1);
    for (request, name) in [
        (
            Request::GetSteps {
                of: crate::command::StepsOf::Deploy,
            },
            "deploy.get_deploy_steps",
        ),
        (Request::GetPartitionUuids, "standby.get_partition_uuids"),
        (Request::Sync, "standby.sync"),
        (Request::PowerOff, "standby.power_off"),
    ] {
        assert_eq!(request.full_name(), name);
        assert!(name.ends_with(&format!(".{}", request.short_name())));
    }
}

#[test]
fn power_and_the_drivers_work() {
    assert_eq!(PowerState::On.name(), "power on");
    assert_eq!(PowerState::Off.name(), "power off");
    let requests = [
        DriverRequest::Verify,
        DriverRequest::RebootToRamdisk,
        DriverRequest::BootFromDisk,
        DriverRequest::ReadPower,
        DriverRequest::PowerOn,
        DriverRequest::PowerOff,
        DriverRequest::Reboot,
    ];
    let names = requests.map(|request| request.name().replace(' ', "_"));
    are_words(&names.each_ref().map(String::as_str));
    for mode in [BootMode::Bios, BootMode::Uefi] {
        assert_eq!(BootMode::parse(mode.name()), Some(mode));
    }
    assert_eq!(BootMode::Bios.name(), "bios");
    assert_eq!(BootMode::parse("BIOS"), None);
}

#[test]
fn ids_are_uuids_in_small_letters() {
    let text = "6523b921-218d-4849-a3bb-3ab765c2fcdc";
    let id: NodeId = text.to_uppercase().parse().unwrap();
    assert_eq!(id.to_string(), text);
    assert_eq!(PortId(id.0).to_string(), text);
    assert!("n".parse::<NodeId>().is_err());
    let node = Node::enrolled(id, Attributes::default(), Timestamp(0));
    assert_eq!(node.operation_id(CommandId(3)), format!("{text}/3"));
}

#[test]
fn provision_states_lead_to_where_clients_expect() {
    use ProvisionState as S;
    for (state, target) in [
        (S::Enroll, None),
        (S::Verifying, Some(S::Manageable)),
        (S::Deploying, Some(S::Active)),
        (S::WaitCallBack, Some(S::Active)),
        (S::DeployFailed, Some(S::Active)),
        (S::Deleting, Some(S::Available)),
        (S::CleanWait, Some(S::Available)),
        (S::RescueWait, Some(S::Rescue)),
        (S::Active, None),
        (S::Error, None),
    ] {
        assert_eq!(state.target(), target, "{state}");
    }
}
