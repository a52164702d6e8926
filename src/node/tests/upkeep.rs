//! What is kept about a node beside its flows: times, versions, the ledger in its history, what it says it waits for.

use serde_json::json;

use super::super::step::is_sign_of_life;
use super::*;

#[test]
fn a_sign_of_life_is_no_change_and_everything_else_is() {
    let mut world = World::writing();
    let changed_at = world.node.updated_at;
    world.at += 1_000;
    world.heartbeats(TokenMatch::Right);
    assert_eq!(world.node.updated_at, changed_at);
    world.go(Event::Maintenance {
        on: true,
        reason: Some("disk".to_owned()),
    });
    assert_eq!(world.node.updated_at, Some(Timestamp(world.at)));
    assert_eq!(
        world.node.maintenance.as_deref(),
        Some(&Maintenance {
            reason: Some("disk".to_owned()),
            fault: None,
        })
    );
}

#[test]
fn a_deadline_that_appears_or_goes_away_is_more_than_a_sign_of_life() {
    let node = World::writing().node;
    let with = |liveness| {
        let mut node = node.clone();
        node.deadlines.liveness = liveness;
        node
    };
    let later = with(Some(Timestamp(9_000_000)));
    assert!(is_sign_of_life(&node, &later));
    assert!(!is_sign_of_life(&node, &with(None)));
    assert!(!is_sign_of_life(&with(None), &node));
    assert!(is_sign_of_life(&with(None), &with(None)));
    let mut other = later;
    other.deadlines.step = None;
    assert!(!is_sign_of_life(&node, &other));
}

#[test]
fn the_time_of_the_provision_state_is_that_of_its_last_change_of_name() {
    let mut world = World::available();
    world.asks(Verb::Active);
    world.at += 1_000;
    world.driver_says_yes();
    let since = Some(Timestamp(world.at));
    assert_eq!(world.node.provision_updated_at, since);
    // Waiting goes on under the same name.
    world.at += 1_000;
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(world.node.provision_updated_at, since);
    let changes: Vec<&str> = world
        .history
        .iter()
        .filter(|line| line.contains(" -> "))
        .map(String::as_str)
        .collect();
    assert_eq!(
        changes,
        [
            "enroll -> verifying",
            "verifying -> manageable",
            "manageable -> cleaning",
            "cleaning -> available",
            "available -> deploying",
            "deploying -> wait call-back",
        ]
    );
}

#[test]
fn another_attempt_is_a_line_of_the_ledger() {
    let mut world = World::agent_arrived();
    world.survey(&[]);
    world.history.clear();
    world.agent_says(AgentEvent::Posted(PostAnswer::NeverSent {
        why: "refused".to_owned(),
    }));
    world.survey(&[]);
    // What changes nothing of it adds nothing.
    world.heartbeats(TokenMatch::Right);
    assert_eq!(
        world.history,
        [
            "command 1 deploy.get_deploy_steps: planned, attempt 2",
            "command 1 deploy.get_deploy_steps: sent, attempt 2",
        ]
    );
    assert_eq!(world.node.open_command().unwrap().attempt, 2);
}

#[test]
fn a_late_answer_of_the_driver_is_nobodys() {
    let mut world = World::available();
    world.asks(Verb::Active);
    let call = world.node.driver_call.unwrap();
    for number in [call.number - 1, call.number + 1] {
        let late = Event::Driver {
            call: number,
            answer: Err("late".to_owned()),
        };
        assert_eq!(world.go(late).outcome, Outcome::AnswerIgnored);
        assert_eq!(world.node.driver_call, Some(call));
    }
}

#[test]
fn what_the_driver_knows_of_power_is_kept() {
    let mut world = World::new();
    world.asks(Verb::Manage);
    world.driver(Ok(DriverAnswer {
        power: Some(PowerState::Off),
    }));
    assert_eq!(world.node.power.state, Some(PowerState::Off));
    world.asks(Verb::Provide);
    world.asks(Verb::Manage);
    assert_eq!(world.state(), "manageable");
    assert_eq!(world.node.power.state, Some(PowerState::Off));
    world.go(Event::power(PowerRequest::Reboot));
    assert_eq!(world.node.power.target, Some(PowerState::On));
    world.driver_says_yes();
    assert_eq!(world.node.power.state, Some(PowerState::On));
    world.go(Event::power(PowerRequest::Set(PowerState::Off)));
    assert_eq!(world.node.power.target, Some(PowerState::Off));
    world.driver_says_yes();
    assert_eq!(world.node.power.state, Some(PowerState::Off));
}

#[test]
fn a_retired_node_is_not_offered() {
    let mut world = World::new();
    world.asks(Verb::Manage);
    world.driver_says_yes();
    world.node.attributes.retired = true;
    assert!(matches!(
        world.asks(Verb::Provide).reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    world.node.attributes.retired = false;
    assert_eq!(world.asks(Verb::Provide).reply, Reply::Done);
}

#[test]
fn undeploying_a_machine_that_must_stay_on_only_forgets_the_instance() {
    let mut world = World::active();
    world.node.attributes.disable_power_off = true;
    world.asks(Verb::Deleted);
    assert_eq!(world.state(), "available");
    assert_eq!(world.node.driver_call, None);
    assert!(world.node.attributes.instance_info.is_empty());
}

#[test]
fn what_waits_for_the_driver_says_so_without_a_command() {
    let mut world = World::writing();
    world.polled(Status::Succeeded, json!({}));
    world.command_runs("get_partition_uuids", json!({}));
    let said = waiting(&world.node).unwrap();
    assert_eq!(
        said.what,
        "setting the boot device: the driver's answer to \"boot from disk\""
    );
    assert_eq!(said.since, world.node.provision_updated_at);
    let first = said.deadlines.first().map(|(name, _)| *name);
    assert_eq!(first, Some("driver"));
    assert_eq!(
        said.deadlines.first().map(|(_, at)| *at),
        world.node.next_deadline()
    );
    // At rest it is the driver alone.
    let mut world = World::available();
    world.go(Event::power(PowerRequest::Reboot));
    let said = waiting(&world.node).unwrap();
    assert_eq!(said.what, "reboot: the driver's answer to \"reboot\"");
}

#[test]
fn only_the_last_two_commands_are_known_by_number() {
    let world = World::writing();
    let names = |id| {
        world
            .node
            .command_numbered(crate::command::CommandId(id))
            .map(|command| command.request.short_name())
    };
    assert_eq!(names(1), Some("get_deploy_steps"));
    assert_eq!(names(2), Some("execute_deploy_step"));
    assert_eq!(names(3), None);
}

#[test]
fn a_deadline_at_rest_is_cleared_and_changes_nothing_else() {
    // As a row of an older version might have it.
    let mut world = World::active();
    world.node.deadlines.liveness = Some(Timestamp(world.at));
    let step = world.waits(0);
    assert_eq!(step.outcome, Outcome::DeadlineMoved);
    assert_eq!(world.state(), "active");
    assert_eq!(world.node.deadlines, Deadlines::default());
}

#[test]
fn time_in_which_agents_were_turned_away_is_put_on_top_once() {
    let mut world = World::writing();
    let (liveness, step) = (world.node.deadlines.liveness, world.node.deadlines.step);
    let limit = world.limits.deploy_callback_timeout_ms;
    world.at += limit;
    let moved = world.go(Event::AgentsTurnedAway { for_ms: 15_000 });
    assert_eq!(moved.outcome, Outcome::DeadlineMoved);
    assert!(moved.effects.is_empty());
    let later = liveness.map(|at| at.plus_ms(15_000));
    assert_eq!(world.node.deadlines.liveness, later);
    assert_eq!(world.node.deadlines.step, step);
    assert!(
        moved.history[0].event.contains("moved by 15.0 s"),
        "{moved:?}"
    );
    world.waits(14_999);
    assert_eq!(world.state(), "wait call-back");
    // Whoever is gone is gone.
    world.waits(1);
    assert_eq!(world.state(), "deploy failed");

    let mut world = World::active();
    let nothing = world.go(Event::AgentsTurnedAway { for_ms: 15_000 });
    assert_eq!(nothing.node, world.node);
    assert!(nothing.history.is_empty());
}

#[test]
fn a_booting_agent_may_call_again_after_the_conductor_was_away() {
    let mut world = World::available();
    world.asks(Verb::Active);
    world.driver_says_yes();
    let liveness = world.node.deadlines.liveness.unwrap();
    // Five seconds were left when the conductor went.
    world.at = liveness.0 - 5_000 + 30_000;
    let mut other = World {
        node: world.node.clone(),
        at: world.at,
        ..World::new()
    };
    world.go(Event::Resumed {
        down_for_ms: 30_000,
    });
    assert_eq!(
        world.node.deadlines.liveness,
        Some(Timestamp(world.at + 60_000))
    );
    // A moment is nothing an agent could have missed.
    other.go(Event::Resumed { down_for_ms: 999 });
    assert_eq!(other.node.deadlines.liveness, Some(liveness.plus_ms(999)));

    // One at work is asked at once.
    let mut world = World::writing();
    let liveness = world.node.deadlines.liveness.unwrap();
    world.at = liveness.0 - 5_000 + 30_000;
    world.go(Event::Resumed {
        down_for_ms: 30_000,
    });
    assert_eq!(
        world.node.deadlines.liveness,
        Some(liveness.plus_ms(30_000))
    );
}
