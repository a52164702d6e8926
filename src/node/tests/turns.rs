//! Turns: who waits for one, who has one, and that every way out gives it back.

use super::*;
use crate::node::queues::{Claims, QueueKind, QueueName, claims};

const HOST: &str = "images.example:80";

impl World {
    /// Its turn for what it waits for has come.
    fn turn_comes(&mut self) -> Step {
        let (queue, since) = claims(&self.node).waits.expect("it waits for a turn");
        let kind = queue.kind();
        self.go(Event::TurnCame { kind, since })
    }

    /// Available, in a place where only so many are deployed, cleaned and read from one host at once.
    fn available_among_many() -> World {
        let mut world = World::available();
        world.limits.queues = QueueLimits::default();
        world
    }

    fn waits_to_deploy() -> World {
        let mut world = World::available_among_many();
        assert_eq!(world.asks(Verb::Active).outcome, Outcome::Queued);
        world
    }

    fn waits_to_clean() -> World {
        let mut world = World::manageable();
        world.limits.queues = QueueLimits::default();
        assert_eq!(world.asks(Verb::Provide).outcome, Outcome::Queued);
        world
    }

    /// Its agent has told its steps.
    fn waits_for_the_image() -> World {
        let mut world = World::waits_to_deploy();
        world.turn_comes();
        world.driver_says_yes();
        world.boots();
        world.command_runs("get_deploy_steps", steps_result());
        world
    }

    fn holds(&self) -> Vec<QueueName> {
        claims(&self.node).holds.into_iter().flatten().collect()
    }

    fn waits_for(&self) -> Option<QueueName> {
        claims(&self.node).waits.map(|(queue, _)| queue)
    }

    fn claims_nothing(&self) -> bool {
        claims(&self.node) == Claims::default()
    }
}

fn image_host() -> QueueName {
    QueueName::ImageHost(HOST.to_owned())
}

#[test]
fn a_deploy_waits_without_a_limit_and_begins_when_its_turn_comes() {
    let mut world = World::waits_to_deploy();
    assert_eq!(world.state(), "deploying");
    assert_eq!(world.effects, []);
    assert_eq!(world.node.deadlines, Deadlines::default());
    assert_eq!(world.waits_for(), Some(QueueName::Deploy));
    assert_eq!(world.holds(), []);
    let said = waiting(&world.node).unwrap();
    assert_eq!(said.what, "a turn to deploy");
    assert_eq!(said.since, Some(Timestamp(world.at)));

    // Days later: whoever calls meanwhile is not this work's agent.
    let step = world.waits(7 * 86_400_000);
    assert_eq!(step.outcome, Outcome::DeadlineMoved);
    let step = world.go(Event::Lookup {
        fresh_nonce: "n".to_owned(),
    });
    assert_eq!(step.reply, Reply::Refused(Refused::LookupNotAllowed));

    // A call that belongs to another wait changes nothing.
    for (kind, since) in [
        (QueueKind::Deploy, Timestamp(1)),
        (QueueKind::Clean, said.since.unwrap()),
        (QueueKind::ImageHost, said.since.unwrap()),
    ] {
        let step = world.go(Event::TurnCame { kind, since });
        assert_eq!(step.outcome, Outcome::AnswerIgnored, "{kind:?}");
        assert_eq!(world.waits_for(), Some(QueueName::Deploy));
    }

    world.turn_comes();
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    assert_eq!(world.holds(), [QueueName::Deploy]);
    assert_eq!(world.waits_for(), None);
    // The same call once more comes too late to do anything.
    let since = said.since.unwrap();
    let kind = QueueKind::Deploy;
    let step = world.go(Event::TurnCame { kind, since });
    assert_eq!(step.outcome, Outcome::AnswerIgnored);
}

#[test]
fn a_turn_to_deploy_is_held_from_the_beginning_to_the_end_and_one_to_read_while_it_writes() {
    let mut world = World::waits_for_the_image();
    assert_eq!(world.holds(), [QueueName::Deploy]);
    assert_eq!(world.waits_for(), Some(image_host()));
    world.turn_comes();
    assert_eq!(world.holds(), [QueueName::Deploy, image_host()]);
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    assert_eq!(world.holds(), [QueueName::Deploy, image_host()]);
    world.polled(Status::Succeeded, json!({}));
    assert_eq!(world.holds(), [QueueName::Deploy]);
    world.command_runs("get_partition_uuids", json!({}));
    world.driver_says_yes();
    assert_eq!(world.holds(), [QueueName::Deploy]);
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.agent_says(AgentEvent::PollFailed(gone()));
    world.driver_says_yes();
    assert_eq!(world.holds(), [QueueName::Deploy]);
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
    assert!(world.claims_nothing());
}

#[test]
fn whoever_waits_to_read_the_image_asks_its_agent_for_nothing_and_watches_it() {
    let mut world = World::waits_for_the_image();
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(world.effects, []);
    assert_eq!(world.node.open_command(), None);
    assert_eq!(world.node.deadlines.step, None);
    assert_eq!(
        waiting(&world.node).unwrap().what,
        format!("a turn to read the image from {HOST}")
    );
    // Its agent lives for hours.
    let mut liveness = world.node.deadlines.liveness;
    for _ in 0..20 {
        world.at += 600_000;
        let step = world.heartbeats(TokenMatch::Right);
        assert_eq!((step.outcome, step.effects), (Outcome::Alive, vec![]));
        assert!(world.node.deadlines.liveness > liveness);
        liveness = world.node.deadlines.liveness;
    }
    let planned = world.node.commands_planned;
    world.turn_comes();
    assert_eq!(world.node.commands_planned, planned + 1);
    let limit = world.limits.write_image_limit_ms;
    let until = Timestamp(world.at + limit);
    assert_eq!(world.node.deadlines.step, Some(until), "from now on");
    world.survey(&[]);
    assert!(world.posts());

    let mut world = World::waits_for_the_image();
    world.waits(world.limits.deploy_callback_timeout_ms);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("went silent"));
    assert!(world.claims_nothing());
}

#[test]
fn an_agent_that_is_lost_gives_its_turn_to_read_back_and_waits_for_it_anew() {
    let mut world = World::waits_for_the_image();
    world.turn_comes();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.boots += 1;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
    world.survey(&[]);
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    assert_eq!(world.holds(), [QueueName::Deploy]);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    assert_eq!(world.waits_for(), Some(image_host()));
}

#[test]
fn a_deploy_that_waits_can_be_ended_and_its_machine_is_left_alone() {
    let mut world = World::waits_to_deploy();
    assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
    assert_eq!(world.state(), "deploy failed");
    assert!(
        world.last_error().contains("waiting for a turn to deploy"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.asked(), None);
    assert!(world.claims_nothing());

    let mut world = World::waits_to_deploy();
    assert_eq!(world.asks(Verb::Deleted).reply, Reply::Done);
    assert_eq!(world.state(), "deleting");
    assert!(world.claims_nothing());
    let moves = ["deploying -> deploy failed", "deploy failed -> deleting"];
    assert!(
        moves
            .iter()
            .all(|wanted| world.history.iter().any(|line| line == wanted)),
        "{:?}",
        world.history
    );
    world.driver_says_yes();
    assert_eq!(world.state(), "available");

    // Once it has begun it is as busy as ever.
    let mut world = World::waits_to_deploy();
    world.turn_comes();
    let busy = Reply::Refused(Refused::Busy {
        state: ProvisionState::Deploying,
    });
    assert_eq!(world.asks(Verb::Abort).reply, busy);
    assert_eq!(world.asks(Verb::Deleted).reply, busy);
}

#[test]
fn whoever_waits_to_read_the_image_can_be_ended_as_whoever_writes() {
    for (verb, state) in [(Verb::Abort, "deploy failed"), (Verb::Deleted, "deleting")] {
        let mut world = World::waits_for_the_image();
        assert_eq!(world.asks(verb).reply, Reply::Done);
        assert_eq!(world.state(), state);
        assert_eq!(world.asked(), Some(DriverRequest::PowerOff));
        assert!(world.claims_nothing());

        let mut world = World::waits_for_the_image();
        world.turn_comes();
        assert_eq!(world.asks(verb).reply, Reply::Done);
        assert!(world.claims_nothing());
    }
}

#[test]
fn a_cleaning_waits_and_holds_in_the_same_way() {
    let mut world = World::waits_to_clean();
    assert_eq!(world.state(), "cleaning");
    assert_eq!(world.waits_for(), Some(QueueName::Clean));
    let deleted = world.asks(Verb::Deleted);
    assert_eq!(deleted.outcome, Outcome::Refused("busy"));
    world.turn_comes();
    world.ramdisk_comes("clean");
    assert_eq!(world.holds(), [QueueName::Clean]);
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "clean failed");
    assert!(world.claims_nothing());

    let mut world = World::waits_to_clean();
    assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
    assert_eq!(world.state(), "clean failed");
    assert_eq!(world.node.maintenance, None);
    assert_eq!(world.asked(), None);
    assert!(world.claims_nothing());

    // Nothing is done where nothing is cleaned, so there is nothing to wait for.
    let mut world = World::waits_to_clean();
    world.asks(Verb::Abort);
    world.asks(Verb::Manage);
    world.limits.automated_clean = false;
    world.asks(Verb::Provide);
    assert_eq!(world.state(), "available");
}

#[test]
fn steps_without_the_ramdisk_wait_for_their_turn_too() {
    let mut world = World::manageable();
    world.limits.queues = QueueLimits::default();
    world.asks_steps(Verb::Clean, &["power.reserved"]);
    assert_eq!(world.waits_for(), Some(QueueName::Clean));
    world.turn_comes();
    assert_eq!(world.waits_for(), None);
}

#[test]
fn only_deploys_and_cleanings_wait() {
    for (verb, state) in [(Verb::Inspect, "inspecting"), (Verb::Adopt, "adopting")] {
        let mut world = World::manageable();
        world.limits.queues = QueueLimits::default();
        world.asks(verb);
        assert_eq!(world.state(), state);
        assert!(world.claims_nothing());
    }
    let mut world = World::active();
    world.limits.queues = QueueLimits::default();
    world.asks_steps(Verb::Service, &["raid.scrub"]);
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    assert!(world.claims_nothing());
}

#[test]
fn in_maintenance_a_place_is_given_up_until_its_end_and_a_turn_is_kept() {
    let mut world = World::waits_to_deploy();
    let before = claims(&world.node);
    world.go(Event::Maintenance {
        on: true,
        reason: None,
    });
    assert!(world.claims_nothing());
    let said = waiting(&world.node).unwrap().what;
    assert!(said.starts_with("the end of the maintenance"), "{said}");
    // A call that crossed it on its way.
    let (kind, since) = (QueueKind::Deploy, before.waits.clone().unwrap().1);
    let step = world.go(Event::TurnCame { kind, since });
    assert_eq!(step.outcome, Outcome::AnswerIgnored);
    world.at += 1_000;
    world.go(Event::Maintenance {
        on: false,
        reason: None,
    });
    assert_eq!(claims(&world.node), before, "as early as it asked");

    // What has begun goes on.
    world.turn_comes();
    world.go(Event::Maintenance {
        on: true,
        reason: None,
    });
    assert_eq!(world.holds(), [QueueName::Deploy]);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    assert_eq!(world.waits_for(), Some(image_host()));
    let step = world.turn_comes();
    assert_eq!(step.outcome, Outcome::CommandPlanned);
}

#[test]
fn in_quarantine_a_node_neither_waits_nor_holds() {
    for mut world in [World::waits_to_deploy(), World::waits_for_the_image()] {
        let before = claims(&world.node);
        world.go(Event::Quarantined {
            reason: "of ours".to_owned(),
        });
        assert!(world.claims_nothing());
        world.go(Event::Maintenance {
            on: false,
            reason: None,
        });
        assert_eq!(claims(&world.node), before);
    }
}

#[test]
fn after_a_restart_the_row_tells_who_waits_and_who_holds() {
    for mut world in [
        World::waits_to_deploy(),
        World::waits_to_clean(),
        World::waits_for_the_image(),
    ] {
        let before = claims(&world.node);
        assert!(before.waits.is_some());
        let row = serde_json::to_string(&world.node).unwrap();
        world.node = serde_json::from_str(&row).unwrap();
        world.at += 5_000_000;
        let down_for_ms = 4_000_000;
        let step = world.go(Event::Resumed { down_for_ms });
        assert_eq!(step.effects, [], "nothing is asked before its turn comes");
        assert_eq!(claims(&world.node), before);
        world.turn_comes();
        let held = before.waits.unwrap().0;
        assert!(world.holds().contains(&held));
        let row = serde_json::to_string(&world.node).unwrap();
        world.node = serde_json::from_str(&row).unwrap();
        assert!(world.holds().contains(&held));
    }
}

#[test]
fn with_no_limit_nobody_waits() {
    let mut world = World::available();
    assert_eq!(world.limits.queues, QueueLimits::NONE);
    world.asks(Verb::Active);
    assert_eq!(world.asked(), Some(DriverRequest::RebootToRamdisk));
    // Held all the same, so that it counts where a limit is set with the next start.
    assert_eq!(world.holds(), [QueueName::Deploy]);
}
