//! Every state against every verb: what the table allows leads where the table says, and nothing else leads anywhere.

use super::*;
use crate::node::event::ProvisionOptions;
use crate::node::provision::ProvisionState as S;
use crate::node::steps::WorkStep;
use crate::node::transitions::{EDGES, allows, leads};
use crate::node::work::{Work, WorkKind};

/// Work of this kind that waits for this.
fn work(kind: WorkKind, phase: WorkPhase) -> Provision {
    let mut work = Work::begun(kind, Timestamp(0), BootMode::Bios, Vec::new());
    work.phase = phase;
    work.steps = vec![WorkStep::named("deploy", "erase_devices", 1)].into();
    Provision::Working(work.into())
}

/// A node in this state, as it may have come to it.
fn node_in(state: S) -> World {
    use WorkKind as K;
    use WorkPhase as P;
    let mut world = World::new();
    world.node.provision = match state {
        S::Enroll => Provision::Enroll,
        S::Verifying => Provision::Verifying,
        S::Manageable => Provision::Manageable,
        S::Inspecting => work(K::Inspect, P::Booting),
        S::InspectWait => work(K::Inspect, P::AwaitingInventory),
        S::InspectFailed => Provision::InspectFailed,
        S::Cleaning => work(K::Clean, P::Booting),
        S::CleanWait => work(K::Clean, P::AwaitingAgent),
        S::CleanHold => work(K::ManualClean, P::Held),
        S::CleanFailed => Provision::CleanFailed { is_manual: false },
        S::Available => Provision::Available,
        S::Deploying => work(K::Deploy, P::Booting),
        S::WaitCallBack => work(K::Deploy, P::AwaitingAgent),
        S::DeployHold => work(K::Deploy, P::Held),
        S::DeployFailed => Provision::DeployFailed,
        S::Active => Provision::Active,
        S::Servicing => work(K::Service, P::Booting),
        S::ServiceWait => work(K::Service, P::AwaitingAgent),
        S::ServiceHold => work(K::Service, P::Held),
        S::ServiceFailed => Provision::ServiceFailed,
        S::Rescuing => work(K::Rescue, P::Booting),
        S::RescueWait => work(K::Rescue, P::AwaitingAgent),
        S::RescueFailed => Provision::RescueFailed,
        S::Rescue => Provision::Rescue,
        S::Unrescuing => work(K::Unrescue, P::RebootingToInstance),
        S::UnrescueFailed => Provision::UnrescueFailed,
        S::Deleting => Provision::Deleting,
        S::Error => Provision::Error,
        S::Adopting => Provision::Adopting,
        S::AdoptFailed => Provision::AdoptFailed,
    };
    assert_eq!(world.node.provision_state(), state);
    let soon = Some(Timestamp(world.at + 60_000));
    if state.is_working() {
        world.node.driver_call = Some(DriverCall {
            number: 1,
            request: DriverRequest::RebootToRamdisk,
        });
        world.node.driver_calls_made = 1;
        world.node.deadlines.driver = soon;
    } else if state.is_waiting() {
        world.node.deadlines.liveness = soon;
    }
    world
}

/// What each verb needs.
fn options(verb: Verb) -> ProvisionOptions {
    let steps = match verb {
        Verb::Clean | Verb::Service => {
            vec![WorkStep::named("deploy", "erase_devices_metadata", 0)]
        }
        _ => Vec::new(),
    };
    ProvisionOptions {
        steps,
        rescue_password_hash: (verb == Verb::Rescue).then(|| "$6$salt$hash".to_owned()),
        ..ProvisionOptions::default()
    }
}

#[test]
fn every_verb_in_every_state_does_what_the_table_says() {
    let mut edges = 0;
    for state in S::ALL {
        for verb in Verb::ALL {
            let mut world = node_in(*state);
            let options = options(*verb);
            let step = world.go(Event::Provision {
                verb: *verb,
                options,
            });
            if !allows(*state, *verb) {
                let why = if state.is_working() {
                    Refused::Busy { state: *state }
                } else {
                    Refused::NoSuchTransition {
                        verb: *verb,
                        state: *state,
                    }
                };
                assert_eq!(step.reply, Reply::Refused(why), "{verb} in {state}");
                continue;
            }
            assert_eq!(step.reply, Reply::Done, "{verb} in {state}");
            edges += 1;
            let first = step.history.iter().find_map(|line| {
                let (from, to) = line.event.split_once(" -> ")?;
                Some((S::parse(from)?, S::parse(to)?))
            });
            let to = leads(*state, (*verb).into()).unwrap();
            assert_eq!(first, Some((*state, to)), "{verb} in {state}");
            assert!(
                !world.node.is_at_work() || world.node.next_deadline().is_some(),
                "{verb} in {state} leads to a wait without a deadline: {:?}",
                world.node.provision
            );
        }
    }
    // The others are the conductor's own.
    let of_verbs = EDGES
        .iter()
        .filter(|(from, cause, _)| {
            Verb::ALL
                .iter()
                .any(|verb| allows(*from, *verb) && *cause == (*verb).into())
        })
        .count();
    assert_eq!(edges, of_verbs);
}

#[test]
fn what_fails_keeps_its_target_until_somebody_manages_it() {
    for (state, target) in [
        (S::InspectFailed, S::Manageable),
        (S::CleanFailed, S::Available),
        (S::AdoptFailed, S::Active),
    ] {
        let mut world = node_in(state);
        assert_eq!(world.node.target_provision_state(), Some(target));
        world.asks(Verb::Manage);
        assert_eq!(world.state(), "manageable");
        assert_eq!(world.node.target_provision_state(), None);
    }
    let mut world = node_in(S::CleanFailed);
    world.node.provision = Provision::CleanFailed { is_manual: true };
    let target = world.node.target_provision_state();
    assert_eq!(target, Some(S::Manageable));
}

#[test]
fn whatever_the_driver_says_to_work_that_begins_leads_along_an_edge() {
    for state in S::ALL.iter().filter(|state| state.is_working()) {
        for answer in [Ok(DriverAnswer { power: None }), Err("no".to_owned())] {
            let mut world = node_in(*state);
            let is_well = answer.is_ok();
            let step = world.driver(answer);
            let after = step.node.provision_state();
            assert_ne!(after, *state, "{state}");
            let failed = leads(*state, crate::node::transitions::Cause::Fail);
            assert_eq!(failed == Some(after), !is_well, "{state} -> {after}");
        }
    }
}

#[test]
fn a_place_to_stay_is_no_way_to_another() {
    for state in [
        S::Enroll,
        S::Manageable,
        S::Available,
        S::Active,
        S::Rescue,
        S::Error,
    ] {
        assert_eq!(
            node_in(state).node.target_provision_state(),
            None,
            "{state}"
        );
    }
    let mut world = World::new();
    let stays = |world: &World, state: &str| {
        assert_eq!(world.state(), state);
        assert_eq!(world.node.target_provision_state(), None, "{state}");
    };
    stays(&world, "enroll");
    world.asks(Verb::Manage);
    world.driver_says_yes();
    stays(&world, "manageable");
    stays(&World::available(), "available");
    stays(&World::active(), "active");
}

/// Whoever sees a failed state sees why in the same look, and later, too.
#[test]
fn a_failed_state_is_never_seen_without_its_reason() {
    let mut seen = 0;
    for state in S::ALL {
        let mut world = node_in(*state);
        if state.is_working() {
            world.driver(Err("no such BMC".to_owned()));
            assert!(world.last_error().contains("no such BMC"), "{state}");
        } else if state.is_waiting() {
            world.waits(60_000);
            assert!(world.last_error().contains("agent"), "{state}");
        } else {
            continue;
        }
        seen += 1;
        assert!(!world.node.is_at_work(), "{state}");
        let said = world.last_error().to_owned();
        if world.node.driver_call.is_some() {
            // The machine is still being switched off.
            world.driver(Err("nor this".to_owned()));
        }
        assert!(
            world.last_error().starts_with(&said),
            "{state}: {}",
            world.last_error()
        );
    }
    assert!(seen > 12, "{seen}");
}
