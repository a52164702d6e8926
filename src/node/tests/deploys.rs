//! The turns a deploy takes besides the straight way: steps of the agent, reboots, the machine that goes off or doesn't.

use serde_json::{Value, json};

use super::super::steps::WorkStep;
use super::*;

impl World {
    /// The image is written and its UUIDs are read: the agent is about to be asked to power off.
    fn about_to_power_off() -> World {
        let mut world = World::writing();
        world.polled(Status::Succeeded, json!({}));
        world.command_runs("get_partition_uuids", json!({}));
        world.driver_says_yes();
        assert_eq!(world.phase(), WorkPhase::PoweringOffAgent);
        world
    }

    /// The same, with a driver that sees whether the machine is off.
    fn seen_about_to_power_off() -> World {
        let mut world = World::about_to_power_off();
        world.node.attributes.driver = "sees-power".to_owned();
        world
    }

    fn deploy(&self) -> &super::super::work::Work {
        match &self.node.provision {
            Provision::Working(deploy) => deploy,
            other => panic!("not deploying: {other:?}"),
        }
    }

    fn phase(&self) -> WorkPhase {
        self.deploy().phase
    }

    fn asked_of_driver(&self) -> Option<DriverRequest> {
        self.node.driver_call.map(|call| call.request)
    }

    fn asked_of_agent(&self) -> &'static str {
        let open = self.node.open_command().expect("a command is open");
        open.request.short_name()
    }

    fn sees(&mut self, power: PowerState) -> Step {
        self.driver(Ok(DriverAnswer { power: Some(power) }))
    }
}

#[test]
fn a_deploy_can_be_aborted_only_while_its_agent_is_awaited() {
    let mut world = World::available();
    world.asks(Verb::Active);
    let busy = Reply::Refused(Refused::Busy {
        state: ProvisionState::Deploying,
    });
    assert_eq!(world.asks(Verb::Abort).reply, busy);
    world.driver_says_yes();
    assert_eq!(world.asks(Verb::Abort).reply, Reply::Done);
    assert_eq!(world.state(), "deploy failed");
}

#[test]
fn a_step_of_the_agent_is_carried_out_as_the_agent_tells_it() {
    let mut world = World::agent_with_step("raid", "build");
    assert_eq!(world.asked_of_agent(), "execute_deploy_step");
    assert_eq!(
        world.node.deadlines.step,
        Some(Timestamp(world.at + world.limits.command_limit_ms))
    );
    world.command_runs("execute_deploy_step", json!({}));
    // then the image
    assert_eq!(world.deploy().current_step().unwrap().step, "write_image");
    assert_eq!(
        world.node.deadlines.step,
        Some(Timestamp(world.at + world.limits.write_image_limit_ms))
    );
}

#[test]
fn a_step_that_only_sounds_like_the_conductors_is_the_agents() {
    for name in [
        "prepare_instance_boot",
        "tear_down_agent",
        "boot_instance",
        "write_image",
    ] {
        let world = World::agent_with_step("raid", name);
        assert_eq!(world.asked_of_agent(), "execute_deploy_step", "{name}");
        assert_eq!(world.asked_of_driver(), None, "{name}");
        assert_eq!(
            world.node.deadlines.step,
            Some(Timestamp(world.at + world.limits.command_limit_ms)),
            "{name}"
        );
    }
    // Nor does the name of the interface alone make it one.
    let world = World::agent_with_step("deploy", "burn_in");
    assert_eq!(world.asked_of_agent(), "execute_deploy_step");
}

#[test]
fn a_step_that_wants_a_reboot_gets_one_and_is_not_repeated() {
    let mut world = World::agent_arrived();
    let step =
        json!({"step": "flash", "interface": "bios", "priority": 90, "reboot_requested": true});
    world.command_runs("get_deploy_steps", json!({"deploy_steps": {"G": [step]}}));
    world.command_runs("execute_deploy_step", json!({}));
    assert_eq!(world.state(), "deploying");
    assert_eq!(
        world.asked_of_driver(),
        Some(DriverRequest::RebootToRamdisk)
    );
    assert_eq!(world.node.session, None);
    world.driver_says_yes();
    world.boots();
    assert_eq!(world.deploy().current_step().unwrap().step, "write_image");
    assert_eq!(world.asked_of_agent(), "execute_deploy_step");
}

#[test]
fn a_step_of_the_user_that_nobody_has_fails_by_name() {
    let mut world = World::available();
    let step = WorkStep::named("bios", "reset", 90);
    let options = |deploy_steps| ProvisionOptions {
        steps: deploy_steps,
        ..ProvisionOptions::default()
    };
    let core = WorkStep {
        interface: "deploy".to_owned(),
        step: "write_image".to_owned(),
        ..step.clone()
    };
    let refused = world.go(Event::Provision {
        verb: Verb::Active,
        options: options(vec![core]),
    });
    assert!(matches!(
        refused.reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    world.go(Event::Provision {
        verb: Verb::Active,
        options: options(vec![step]),
    });
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("has a deploy step bios.reset"));
}

#[test]
fn an_agent_that_shows_up_late_is_given_nothing_to_do() {
    let mut world = World::about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.agent_says(AgentEvent::PollFailed(gone()));
    world.driver_says_yes();
    assert_eq!(world.phase(), WorkPhase::SwitchingOn);
    // Somebody booted the ramdisk once more.
    let planned = world.node.commands_planned;
    world.go(Event::Lookup {
        fresh_nonce: "late".to_owned(),
    });
    let step = world.heartbeats(TokenMatch::Right);
    assert_eq!(step.outcome, Outcome::AgentArrived);
    assert_eq!(world.node.commands_planned, planned);
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
}

#[test]
fn trouble_before_the_order_to_power_off_is_only_trouble() {
    let mut world = World::about_to_power_off();
    let step = world.agent_says(AgentEvent::SurveyFailed(gone()));
    assert_eq!(step.outcome, Outcome::AgentTrouble);
    assert_eq!(world.asked_of_driver(), None);
    assert_eq!(world.phase(), WorkPhase::PoweringOffAgent);
}

#[test]
fn a_machine_nobody_sees_is_switched_off_as_soon_as_its_agent_has_obeyed() {
    for status in [Status::Succeeded, Status::Failed] {
        let mut world = World::about_to_power_off();
        world.survey(&[]);
        world.posted(status, Value::Null);
        assert_eq!(world.phase(), WorkPhase::SwitchingOff);
        assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOff));
        world.driver_says_yes();
        assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOn));
        assert_eq!(world.node.session, None);
    }
}

#[test]
fn an_agent_that_does_not_take_the_order_to_power_off_is_switched_off_in_time() {
    let mut world = World::about_to_power_off();
    let step = world.waits(world.limits.power_off_wait_ms);
    assert_eq!(step.outcome, Outcome::DriverCalled);
    assert_eq!(world.phase(), WorkPhase::SwitchingOff);
    assert_eq!(world.last_error(), "");
}

#[test]
fn a_driver_that_sees_power_looks_until_the_machine_is_off() {
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Succeeded, Value::Null);
    let until = Timestamp(world.at + world.limits.power_off_wait_ms);
    let every_ms = world.limits.power_off_look_every_ms;
    for _ in 0..3 {
        assert_eq!(world.phase(), WorkPhase::AwaitingOff { until });
        assert_eq!(
            world.node.deadlines.look,
            Some(Timestamp(world.at + every_ms))
        );
        let step = world.waits(every_ms);
        assert_eq!(step.outcome, Outcome::DriverCalled);
        assert_eq!(world.asked_of_driver(), Some(DriverRequest::ReadPower));
        let step = world.sees(PowerState::On);
        assert_eq!(step.outcome, Outcome::WorkGoesOn);
    }
    world.waits(every_ms);
    world.sees(PowerState::Off);
    assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOn));
    assert_eq!(world.node.session, None);
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
}

#[test]
fn a_machine_that_is_seen_to_stay_on_is_switched_off() {
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let wait_ms = world.limits.power_off_wait_ms;
    // The last look is not later than the end of the wait.
    world.at += wait_ms - 100;
    world.waits(0);
    world.sees(PowerState::On);
    assert_eq!(world.node.deadlines.look, Some(Timestamp(world.at + 100)));
    // What the agent says meanwhile moves nothing.
    world.polled(Status::Running, Value::Null);
    assert_eq!(world.node.deadlines.look, Some(Timestamp(world.at + 100)));
    world.waits(100);
    assert_eq!(world.phase(), WorkPhase::SwitchingOff);
    assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOff));
}

#[test]
fn an_agent_that_vanishes_after_the_order_is_what_was_asked_for_where_power_is_seen() {
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let phase = world.phase();
    let look = world.node.deadlines.look;
    world.at += 10;
    let step = world.agent_says(AgentEvent::PollFailed(gone()));
    assert_eq!(step.outcome, Outcome::WorkGoesOn);
    assert_eq!(world.asked_of_driver(), None);
    assert_eq!((world.phase(), world.node.deadlines.look), (phase, look));
    assert_eq!(world.node.session.as_ref().unwrap().trouble, None);

    // The same when it is not even known whether it took the order.
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.agent_says(AgentEvent::Posted(PostAnswer::Unknown {
        why: "reset".to_owned(),
    }));
    world.agent_says(AgentEvent::SurveyFailed(gone()));
    assert!(matches!(world.phase(), WorkPhase::AwaitingOff { .. }));
    assert!(world.node.deadlines.look.is_some());
    // And when it says that it failed, nothing is waited for.
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Failed, Value::Null);
    assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOff));
}

#[test]
fn one_look_at_a_time() {
    let mut world = World::seen_about_to_power_off();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let every_ms = world.limits.power_off_look_every_ms;
    world.waits(every_ms);
    let call = world.node.driver_call;
    assert!(call.is_some());
    world.node.deadlines.look = Some(Timestamp(world.at));
    let step = world.waits(0);
    assert_eq!(step.outcome, Outcome::DeadlineMoved);
    assert_eq!(world.node.driver_call, call);
    assert_eq!(world.effects, [], "nor is the agent asked");
}

#[test]
fn nothing_begins_while_the_machine_is_still_being_switched_off() {
    let mut world = World::writing();
    world.asks(Verb::Abort);
    assert_eq!(world.asked_of_driver(), Some(DriverRequest::PowerOff));
    for verb in [Verb::Active, Verb::Rebuild, Verb::Deleted] {
        let state = ProvisionState::DeployFailed;
        let busy = Reply::Refused(Refused::Busy { state });
        assert_eq!(world.asks(verb).reply, busy, "{verb}");
    }
    let limit_ms = world.limits.driver_limit_ms;
    world.waits(limit_ms);
    assert_eq!(world.asked_of_driver(), None);
    assert_eq!(world.asks(Verb::Deleted).reply, Reply::Done);
}

#[test]
fn a_machine_that_must_not_be_powered_off_is_left_on_when_its_deploy_fails() {
    let mut world = World::writing();
    world.node.attributes.disable_power_off = true;
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "deploy failed");
    assert_eq!(world.asked_of_driver(), None);
    assert!(
        world
            .history
            .iter()
            .any(|line| line.contains("not powered off"))
    );
    let step = world.go(Event::power(PowerRequest::Set(PowerState::Off)));
    assert!(matches!(
        step.reply,
        Reply::Refused(Refused::BadValue { .. })
    ));
    let step = world.go(Event::power(PowerRequest::Set(PowerState::On)));
    assert_eq!(step.reply, Reply::Done);
}

#[test]
fn no_step_of_the_agent_is_repeated_when_the_agent_is_lost() {
    for (interface, name) in [("raid", "write_image"), ("deploy", "burn_in")] {
        let mut world = World::agent_with_step(interface, name);
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        world.boots += 1;
        world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
        world.survey(&[]);
        assert_eq!(world.state(), "deploy failed");
        let said = format!("what became of step {interface}.{name} is not known");
        assert!(world.last_error().contains(&said), "{}", world.last_error());
    }
}
