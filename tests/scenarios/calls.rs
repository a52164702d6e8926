//! From the agent to the conductor: heartbeats and lookups at every wrong moment, deadlines, and what operators do meanwhile.

use serde_json::{Value, json};
use upbeat::command::{
    Effect as AgentEffect, Event as AgentEvent, Pace, Phase, Status, Unreadable,
};
use upbeat::node::work::WorkPhase;
use upbeat::node::{
    Deadlines, DriverRequest, Effect, Event, Outcome, PowerRequest, PowerState, Provision, Refused,
    Reply, TokenMatch, Verb, waiting,
};
use upbeat::timestamp::Timestamp;

use super::world::{World, away, steps_of};

const DAY_MS: i64 = 24 * 3_600_000;

fn maintenance(on: bool) -> Event {
    Event::Maintenance { on, reason: None }
}

#[test]
fn what_agents_say_of_a_node_at_rest_changes_nothing() {
    let failed = || {
        let mut world = World::writing();
        world.asks(Verb::Abort);
        world.driver_says_yes();
        world
    };
    for make in [World::available, World::active, failed] {
        let mut world = make();
        let before = world.node.clone();
        for token in [TokenMatch::Right, TokenMatch::Wrong, TokenMatch::Missing] {
            let reply = world.heartbeats(token).reply;
            assert!(matches!(reply, Reply::Refused(_)), "{}", world.state());
        }
        let reply = world.lookup().reply;
        assert_eq!(reply, Reply::Refused(Refused::LookupNotAllowed));
        assert_eq!(world.node, before);
        assert_eq!(world.node.deadlines, Deadlines::default());
    }
}

#[test]
fn a_rebuild_boots_the_ramdisk_whatever_the_old_agent_still_says() {
    let mut world = World::active();
    world.heartbeats(TokenMatch::Right);
    world.asks(Verb::Rebuild);
    assert_eq!(
        world.driver_is_asked(),
        Some(DriverRequest::RebootToRamdisk)
    );
    assert!(
        matches!(&world.effects[..], [Effect::Driver(_)]),
        "the agent is asked nothing: {:?}",
        world.effects
    );
    let late = world.heartbeats(TokenMatch::Right).reply;
    assert_eq!(late, Reply::Refused(Refused::TokenWrong));
    world.driver_says_yes();
    world.agent_comes();
    assert_eq!(world.open_name(), Some("get_deploy_steps"));
}

#[test]
fn an_agent_that_calls_but_can_not_be_called_is_waited_for_and_that_is_said() {
    let mut world = World::writing();
    let limit = world.limits.deploy_callback_timeout_ms;
    let until = world.at + 3 * limit;
    while world.at < until {
        world.at += limit / 4;
        world.says(AgentEvent::PollFailed(away()));
        world.heartbeats(TokenMatch::Right);
        assert_eq!(
            world.go(Event::DeadlineReached).outcome,
            Outcome::DeadlineMoved
        );
    }
    assert_eq!(world.state(), "wait call-back");
    world.says(AgentEvent::PollFailed(away()));
    let said = waiting(&world.node).unwrap();
    assert!(said.trouble.unwrap().contains("no route to host"));
    world.ends_active();
}

#[test]
fn looks_alone_keep_a_deploy_alive() {
    let mut world = World::writing();
    let limit = world.limits.deploy_callback_timeout_ms;
    for _ in 0..8 {
        world.at += limit - 1;
        world.polled(Status::Running, Value::Null);
        assert_eq!(
            world.go(Event::DeadlineReached).outcome,
            Outcome::DeadlineMoved
        );
        // The next look needs nobody's call.
        let next = AgentEffect::Poll(Pace::Interval);
        world.polled(Status::Running, Value::Null);
        assert_eq!(world.next_question(), Some(&next));
    }
    world.ends_active();
}

#[test]
fn a_sign_of_life_before_its_deadline_wins_however_late_the_deadline_is_handled() {
    let limit = World::available().limits.deploy_callback_timeout_ms;
    type Sign = fn(&mut World);
    let signs: [Sign; 2] = [
        |world| {
            world.heartbeats(TokenMatch::Right);
        },
        |world| {
            world.polled(Status::Running, Value::Null);
        },
    ];
    for sign in signs {
        let mut world = World::writing();
        world.at += limit - 1;
        sign(&mut world);
        world.at += 60_000;
        let step = world.go(Event::DeadlineReached);
        assert_eq!(step.outcome, Outcome::DeadlineMoved);
        assert_eq!(world.state(), "wait call-back");
    }
}

#[test]
fn refused_heartbeats_move_no_deadline() {
    let mut world = World::writing();
    let ends = world.node.deadlines.liveness;
    let limit = world.limits.deploy_callback_timeout_ms;
    let boot = world.boot;
    for round in 0..10 {
        world.at += limit / 10;
        let reply = match round % 3 {
            0 => world.heartbeats(TokenMatch::Wrong).reply,
            1 => world.heartbeats(TokenMatch::Missing).reply,
            // Right token, another address and another certificate.
            _ => {
                world.boot += 1;
                let reply = world.heartbeats(TokenMatch::Right).reply;
                world.boot = boot;
                reply
            }
        };
        assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
        assert_eq!(world.node.deadlines.liveness, ends);
    }
    world.go(Event::DeadlineReached);
    assert_eq!(world.state(), "deploy failed");
}

#[test]
fn deadlines_begin_with_the_operation_however_old_the_node_is() {
    let mut world = World::available();
    world.at += 400 * DAY_MS;
    assert_eq!(
        world.go(Event::DeadlineReached).outcome,
        Outcome::DeadlineMoved
    );
    world.asks(Verb::Active);
    let driver = world.limits.driver_limit_ms;
    assert_eq!(
        world.node.deadlines.driver,
        Some(Timestamp(world.at + driver))
    );
    world.driver_says_yes();
    let silence = world.limits.deploy_callback_timeout_ms;
    let due = Some(Timestamp(world.at + silence));
    assert_eq!(world.node.deadlines.liveness, due);
    world.waits(silence - 1);
    assert_eq!(world.state(), "wait call-back");
    world.waits(1);
    assert_eq!(world.state(), "deploy failed");
}

#[test]
fn every_wait_of_a_deploy_has_its_deadlines() {
    let mut world = World::available();
    let mut seen = Vec::new();
    let mut note = |world: &World| {
        let deadlines = &world.node.deadlines;
        let armed: Vec<&str> = [
            ("driver", deadlines.driver),
            ("liveness", deadlines.liveness),
            ("step", deadlines.step),
            ("look", deadlines.look),
        ]
        .into_iter()
        .filter_map(|(name, at)| at.map(|_| name))
        .collect();
        let phase = match world.phase() {
            WorkPhase::AwaitingOff { .. } => "AwaitingOff".to_owned(),
            phase => format!("{phase:?}"),
        };
        seen.push((phase, armed.join(" ")));
    };
    world.node.attributes.instance_info["deploy_boot_mode"] = json!("uefi");
    world.asks(Verb::Active);
    note(&world);
    world.driver_says_yes();
    note(&world);
    world.agent_comes();
    note(&world);
    world.command_runs("get_deploy_steps", steps_of(&[]));
    note(&world);
    world.command_runs("execute_deploy_step", json!({}));
    note(&world);
    world.command_runs("get_partition_uuids", json!({}));
    note(&world);
    world.command_runs("install_bootloader", Value::Null);
    note(&world);
    world.driver_says_yes();
    note(&world);
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    note(&world);
    world.says(AgentEvent::PollFailed(away()));
    note(&world);
    world.driver_says_yes();
    note(&world);
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
    let expected = [
        ("Booting", "driver"),
        ("AwaitingAgent", "liveness"),
        ("ReadingSteps", "liveness step"),
        ("InBandStep", "liveness step"),
        ("ReadingUuids", "liveness step"),
        ("InstallingBootloader", "liveness step"),
        ("SettingBootDevice", "driver liveness"),
        ("PoweringOffAgent", "liveness step"),
        ("AwaitingOff", "look"),
        ("SwitchingOff", "driver"),
        ("SwitchingOn", "driver"),
    ];
    let seen: Vec<(&str, &str)> = seen
        .iter()
        .map(|(phase, armed)| (phase.as_str(), armed.as_str()))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn maintenance_stops_neither_a_deploy_nor_its_deadlines() {
    let mut world = World::writing();
    world.go(maintenance(true));
    let limit = world.limits.deploy_callback_timeout_ms;
    for _ in 0..9 {
        world.at += limit / 3;
        world.heartbeats(TokenMatch::Right);
        let heard = world.node.session.as_ref().unwrap().last_heartbeat_at;
        assert_eq!(heard, Some(Timestamp(world.at)));
        assert_eq!(
            world.go(Event::DeadlineReached).outcome,
            Outcome::DeadlineMoved
        );
    }
    world.go(maintenance(false));
    assert_eq!(
        world.go(Event::DeadlineReached).outcome,
        Outcome::DeadlineMoved
    );
    world.ends_active();

    // An agent that falls silent meanwhile is given up on as always.
    let mut world = World::writing();
    world.go(maintenance(true));
    world.waits(limit);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.node.maintenance.is_some());
    assert!(world.last_error().contains("went silent"));
}

#[test]
fn a_node_in_maintenance_is_resumed_like_any_other() {
    let mut plain = World::writing();
    let mut held = World::writing();
    held.go(maintenance(true));
    for world in [&mut plain, &mut held] {
        world.at += 500_000;
        world.go(Event::Resumed {
            down_for_ms: 500_000,
        });
    }
    assert_eq!(held.effects, plain.effects);
    assert_eq!(held.node.deadlines, plain.node.deadlines);
    assert_eq!(held.go(maintenance(false)).reply, Reply::Done);
    held.ends_active();
}

#[test]
fn after_a_failure_the_next_deploy_starts_from_nothing() {
    let burn_in = json!({"step": "burn_in", "interface": "deploy", "priority": 95});
    let in_the_second_step = || {
        let mut world = World::agent_arrived();
        world.command_runs("get_deploy_steps", steps_of(std::slice::from_ref(&burn_in)));
        world.command_runs("execute_deploy_step", json!({}));
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        assert_eq!(world.deploy().current, 1);
        world
    };
    type End = fn(&mut World);
    let ends: [End; 2] = [
        |world| {
            let limit = world.limits.deploy_callback_timeout_ms;
            world.waits(limit);
        },
        |world| {
            world.asks(Verb::Abort);
        },
    ];
    for end in ends {
        let mut world = in_the_second_step();
        let old = world.node.open_command().unwrap().clone();
        let old_nonce = world.node.session.as_ref().unwrap().nonce.clone();
        end(&mut world);
        assert_eq!(world.state(), "deploy failed");
        assert_eq!(world.node.session, None);
        assert_eq!(world.node.open_command(), None);
        world.driver_says_yes();

        world.asks(Verb::Active);
        assert_eq!(world.node.last_error, None);
        assert!(world.deploy().steps.is_empty());
        assert_eq!((world.deploy().current, world.deploy().restarts), (0, 0));
        world.driver_says_yes();
        world.agent_comes();
        assert_ne!(world.node.session.as_ref().unwrap().nonce, old_nonce);
        // The old operation has nothing to say any more, whatever waits for an answer now.
        let late = world.go(Event::Command {
            id: old.id,
            attempt: old.attempt,
            event: AgentEvent::PollFailed(Unreadable::NotFound),
        });
        assert_eq!(late.outcome, Outcome::AnswerIgnored);
        // It is read again what the agent can do, and all of it is done again.
        world.command_runs("get_deploy_steps", steps_of(std::slice::from_ref(&burn_in)));
        assert_eq!(world.deploy().current, 0);
        assert!(world.node.open_command().unwrap().id > old.id);
    }
}

#[test]
fn every_power_request_ends_the_session_whatever_the_power_was() {
    let left_over = World::writing().node.session;
    assert!(left_over.is_some());
    for request in [
        PowerRequest::Set(PowerState::Off),
        PowerRequest::Set(PowerState::On),
        PowerRequest::Reboot,
    ] {
        for power in [None, Some(PowerState::Off), Some(PowerState::On)] {
            let mut world = World::available();
            world.node.power.state = power;
            world.node.session = left_over.clone();
            world.go(Event::power(request));
            assert_eq!(world.node.session, None, "{request:?} at {power:?}");
            assert!(
                world.driver_is_asked().is_some(),
                "no request is taken for done"
            );
        }
    }
}

#[test]
fn a_machine_whose_driver_is_silent_can_be_put_aside_and_removed() {
    let verifying = || {
        let mut world = World::available();
        world.node.provision = Provision::Enroll;
        world.asks(Verb::Manage);
        assert_eq!(world.state(), "verifying");
        world
    };
    let mut world = verifying();
    assert_eq!(world.go(maintenance(true)).reply, Reply::Done);
    assert!(world.go(Event::Delete).removed);

    // Or it is waited for, no longer than the driver may take.
    let mut world = verifying();
    let limit = world.limits.driver_limit_ms;
    world.waits(limit);
    assert_eq!(world.state(), "enroll");
    assert!(world.go(Event::Delete).removed);
}

#[test]
fn a_refreshing_lookup_in_the_middle_changes_nothing_for_the_agent() {
    let mut world = World::writing();
    let nonce = world.node.session.as_ref().unwrap().nonce.clone();
    let phase = world.open_phase().clone();
    let deadlines = world.node.deadlines.clone();
    let step = world.lookup();
    assert_eq!(step.reply, Reply::Token { masked: true });
    assert_eq!(world.node.session.as_ref().unwrap().nonce, nonce);
    // A look may be due to see whether it is the agent that asks; nothing that ends a wait moves.
    let after = &world.node.deadlines;
    assert_eq!(
        (after.liveness, after.step),
        (deadlines.liveness, deadlines.step)
    );
    assert!(matches!(phase, Phase::Accepted { .. }) && *world.open_phase() == phase);
    assert_eq!(world.heartbeats(TokenMatch::Right).reply, Reply::Done);
    world.ends_active();
}
