//! From the conductor to the agent: what becomes of a command when its request, its reply or the agent itself goes astray.

use serde_json::{Value, json};
use upbeat::command::{
    self, Command, CommandId, Effect as AgentEffect, Entry, Event as AgentEvent, Finish, Instance,
    Pace, Phase, PostAnswer, Refusal, Request, Status, StepsOf, Unreadable, Verdict,
};
use upbeat::node::steps::WorkStep;
use upbeat::node::work::WorkPhase;
use upbeat::node::{DriverRequest, Event, Refused, Reply, TokenMatch, waiting};
use upbeat::timestamp::Timestamp;

use super::world::{World, away, entry, steps_of};

fn busy(text: &str) -> AgentEvent {
    AgentEvent::Posted(PostAnswer::Refused(Refusal::Busy {
        text: text.to_owned(),
    }))
}

fn no_clear_answer() -> AgentEvent {
    AgentEvent::Posted(PostAnswer::Unknown {
        why: "the connection was reset".to_owned(),
    })
}

#[test]
fn a_command_that_never_left_is_planned_anew_and_the_node_waits() {
    let mut world = World::about_to_write();
    for attempt in 1..=5 {
        world.survey(&[]);
        assert!(world.posts());
        world.says(AgentEvent::Posted(PostAnswer::NeverSent {
            why: "connection refused".to_owned(),
        }));
        let open = world.node.open_command().unwrap();
        assert_eq!((&open.phase, open.attempt), (&Phase::Planned, attempt + 1));
        // Not at once: the pause grows with every failure.
        let later = AgentEffect::Survey(Pace::Backoff);
        assert_eq!(world.next_question(), Some(&later));
        assert_eq!(world.state(), "wait call-back");
        assert!(
            world
                .node
                .session
                .as_ref()
                .unwrap()
                .trouble
                .as_deref()
                .unwrap()
                .contains("connection refused")
        );
        world.at += 30_000;
    }
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.ends_active();

    // It is bounded all the same: the agent gives no sign of life either.
    let mut world = World::about_to_write();
    world.survey(&[]);
    world.says(AgentEvent::Posted(PostAnswer::NeverSent {
        why: "connection refused".to_owned(),
    }));
    let limit = world.limits.deploy_callback_timeout_ms;
    world.waits(limit);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("connection refused"));
}

#[test]
fn only_what_reads_is_carried_out_inside_its_request_and_a_late_trace_of_it_is_taken() {
    let boot_loader = Request::InstallBootloader {
        root_uuid: None,
        efi_system_part_uuid: None,
        prep_boot_part_uuid: None,
        target_boot_mode: "uefi".to_owned(),
    };
    let write = Request::ExecuteStep {
        of: StepsOf::Deploy,
        interface: "deploy".to_owned(),
        step: "write_image".to_owned(),
        args: Default::default(),
    };
    for (request, is_harmless) in [
        (
            Request::GetSteps {
                of: StepsOf::Deploy,
            },
            true,
        ),
        (Request::GetPartitionUuids, true),
        (Request::Sync, true),
        (write, false),
        (boot_loader, false),
        (Request::PowerOff, false),
    ] {
        assert_eq!(request.is_synchronous(), is_harmless, "{request:?}");
    }

    // The agent still works on it, and does not list it before it has ended. What is sent a second time waits behind it.
    let instance = Instance {
        started_at: "1".to_owned(),
        callback_url: "https://192.0.2.1:9999".to_owned(),
        certificate_sha256: None,
    };
    let go = |command: &Command, event, ms| {
        command::step(command, "node/1", Some(&instance), event, Timestamp(ms))
    };
    let listed = |entries: Vec<Entry>| AgentEvent::Surveyed {
        instance: instance.clone(),
        entries,
    };
    let planned = Command::planned(
        CommandId(1),
        Request::GetSteps {
            of: StepsOf::Deploy,
        },
        Timestamp(0),
    );
    let sent = go(&planned, listed(vec![]), 0).command;
    let unknown = go(&sent, no_clear_answer(), 60_000).command;
    let absent = go(&unknown, listed(vec![]), 60_000).command;
    let again = go(&absent, listed(vec![]), 65_000).command;
    assert_eq!((&again.phase, again.attempt), (&Phase::Planned, 2));
    let late = entry(
        "a",
        "get_deploy_steps",
        Status::Succeeded,
        json!({"deploy_steps": {}}),
    );
    let step = go(&again, listed(vec![late]), 66_000);
    assert_eq!(step.effect, None, "nothing is sent any more");
    assert!(matches!(
        step.verdict,
        Some(Verdict::Finished(Finish::Succeeded { .. }))
    ));
}

#[test]
fn busy_with_our_own_step_is_followed_and_not_carried_out_again() {
    for text in [
        "Agent is busy: executing command execute_deploy_step",
        "Command execution failed: agent is busy",
    ] {
        let mut world = World::about_to_write();
        world.survey(&[]);
        world.says(busy(text));
        assert_eq!(world.state(), "wait call-back");
        let ours = world.entry(Status::Running, Value::Null);
        world.survey(&[ours]);
        assert!(matches!(world.open_phase(), Phase::Accepted { .. }));
        world.ends_active();
        let writes = |name: &&&str| **name == "execute_deploy_step";
        assert_eq!(world.posted.iter().filter(writes).count(), 1);
    }
}

#[test]
fn a_foreign_command_is_waited_for_and_then_ours_is_sent() {
    let mut world = World::about_to_write();
    let foreign = |status| entry("foreign", "collect_system_logs", status, Value::Null);
    for _ in 0..20 {
        world.at += 60_000;
        world.heartbeats(TokenMatch::Right);
        world.survey(&[foreign(Status::Running)]);
        assert!(!world.posts());
        assert_eq!(world.state(), "wait call-back");
    }
    let told = waiting(&world.node).unwrap().trouble.unwrap();
    assert!(told.contains("collect_system_logs"), "{told}");
    world.survey(&[foreign(Status::Succeeded)]);
    assert!(world.posts());
    world.posted(Status::Running, Value::Null);
    world.ends_active();
}

#[test]
fn busy_while_steps_are_read_never_means_that_there_are_none() {
    let mut world = World::agent_arrived();
    for _ in 0..5 {
        world.survey(&[]);
        world.says(busy("Agent is busy: executing command get_deploy_steps"));
        assert_eq!(world.phase(), WorkPhase::ReadingSteps);
        assert!(world.deploy().steps.is_empty());
        world.at += 10_000;
        world.heartbeats(TokenMatch::Right);
    }
    world.survey(&[]);
    let burn_in = json!({"step": "burn_in", "interface": "deploy", "priority": 95});
    world.posted(Status::Succeeded, steps_of(&[burn_in]));
    assert_eq!(world.deploy().current_step().unwrap().step, "burn_in");
}

#[test]
fn an_agent_that_rejects_the_token_gets_nothing_to_do_and_is_given_up_on_in_time() {
    let mut world = World::about_to_write();
    let began = world.at;
    let limit = world.limits.deploy_callback_timeout_ms;
    while world.at + 60_000 < began + limit {
        world.at += 60_000;
        world.says(AgentEvent::SurveyFailed(Unreadable::Unauthorized));
        assert!(!world.posts());
        assert_eq!(world.state(), "wait call-back");
        assert_eq!(world.go(Event::DeadlineReached).effects, []);
    }
    assert!(
        waiting(&world.node)
            .unwrap()
            .trouble
            .unwrap()
            .contains("token")
    );
    world.at = began + limit;
    world.go(Event::DeadlineReached);
    assert_eq!(world.state(), "deploy failed");
    assert!(
        world
            .last_error()
            .contains("does not accept the agent token"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.posted, ["get_deploy_steps"]);

    // The same after the command was sent: nobody else's answer ends it.
    let mut world = World::writing();
    world.says(AgentEvent::PollFailed(Unreadable::Unauthorized));
    assert!(matches!(world.open_phase(), Phase::Accepted { .. }));
}

#[test]
fn a_definite_no_fails_the_deploy_in_the_agents_own_words() {
    for (status, text) in [
        (404, "Not found: Extension with id deploy not found."),
        (400, "Invalid command: Unknown command: get_deploy_steps"),
        (400, "Invalid command parameters: image_info is wrong"),
    ] {
        let mut world = World::agent_arrived();
        world.survey(&[]);
        world.says(AgentEvent::Posted(PostAnswer::Refused(Refusal::Invalid {
            status,
            text: text.to_owned(),
        })));
        assert_eq!(world.state(), "deploy failed");
        let why = world.last_error();
        assert!(
            why.contains(text) && why.contains(&status.to_string()),
            "{why}"
        );
        assert_eq!(
            world.posted,
            ["get_deploy_steps"],
            "nothing else is tried instead"
        );
    }
}

#[test]
fn a_broken_list_stops_what_is_not_sent_and_not_what_has_an_id() {
    let mut world = World::about_to_write();
    world.says(AgentEvent::SurveyFailed(Unreadable::Poisoned));
    assert_eq!(world.state(), "deploy failed");
    let why = world.last_error();
    assert!(
        why.contains("list is broken") && why.contains("boots the ramdisk anew"),
        "{why}"
    );
    assert_eq!(world.driver_is_asked(), Some(DriverRequest::PowerOff));

    // Whether it was sent can't be found out by such a list either: that ends, at the latest with its time, and says so.
    let mut world = World::agent_arrived();
    world.survey(&[]);
    world.says(no_clear_answer());
    let until = world.at + world.limits.command_limit_ms;
    while world.at < until && world.node.open_command().is_some() {
        world.at += 60_000;
        world.heartbeats(TokenMatch::Right);
        world.says(AgentEvent::SurveyFailed(Unreadable::Poisoned));
        world.go(Event::DeadlineReached);
    }
    assert_eq!(world.state(), "deploy failed");
    let why = world.last_error();
    assert!(
        why.contains("list") && !why.contains("in progress has"),
        "{why}"
    );
    assert_eq!(world.posted, ["get_deploy_steps"]);

    // A command whose id is known is read by that id alone, whatever became of the list.
    let mut world = World::writing();
    for event in [AgentEvent::Hint, AgentEvent::Recovered] {
        world.says(event);
        assert_eq!(world.next_question(), Some(&AgentEffect::Poll(Pace::Now)));
    }
    world.polled(Status::Running, Value::Null);
    let by_id = AgentEffect::Poll(Pace::Interval);
    assert_eq!(world.next_question(), Some(&by_id));
    world.polled(Status::Succeeded, json!({}));
    assert_eq!(world.open_name(), Some("get_partition_uuids"));
}

#[test]
fn no_answer_that_can_not_be_read_ends_or_repeats_a_command() {
    let troubles = [
        away(),
        Unreadable::NobodyListens,
        Unreadable::Unauthorized,
        Unreadable::CertificateMismatch,
        Unreadable::Garbage {
            why: "the answer is larger than 1048576 bytes".to_owned(),
        },
        Unreadable::Garbage {
            why: "the answer 502 is not JSON".to_owned(),
        },
    ];
    for why in troubles {
        let mut world = World::about_to_write();
        for _ in 0..3 {
            world.says(AgentEvent::SurveyFailed(why.clone()));
            assert_eq!(*world.open_phase(), Phase::Planned, "{why}");
        }
        world.survey(&[]);
        world.says(no_clear_answer());
        for _ in 0..3 {
            world.at += 10_000;
            world.says(AgentEvent::SurveyFailed(why.clone()));
            assert!(
                matches!(world.open_phase(), Phase::Unknown { .. }),
                "too much to read is not nothing to read: {why}"
            );
            assert!(!world.posts());
        }
        let ours = world.entry(Status::Running, Value::Null);
        world.survey(&[ours]);
        for _ in 0..3 {
            world.says(AgentEvent::PollFailed(why.clone()));
            assert!(
                matches!(world.open_phase(), Phase::Accepted { .. }),
                "{why}"
            );
            assert!(!world.posts());
        }
        world.ends_active();
        let writes = |name: &&&str| **name == "execute_deploy_step";
        assert_eq!(world.posted.iter().filter(writes).count(), 1, "{why}");
    }
}

/// A step of the agent that ends with a reboot, then the write.
fn rebooting_step() -> (WorkStep, Value) {
    let wanted = WorkStep::named("bios", "apply", 95);
    let offered =
        json!({"step": "apply", "interface": "bios", "priority": 0, "reboot_requested": true});
    (wanted, steps_of(&[offered]))
}

#[test]
fn a_step_that_asks_for_a_reboot_is_followed_by_the_next_one_in_a_new_session() {
    let (wanted, offered) = rebooting_step();
    let mut world = World::available();
    world.asks_active_with(wanted);
    world.driver_says_yes();
    world.agent_comes();
    world.command_runs("get_deploy_steps", offered);
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let first_url = world.url();
    world.polled(Status::Succeeded, json!({}));

    // What was known of the agent is forgotten before the power is touched.
    assert_eq!(world.node.session, None);
    assert_eq!(
        world.driver_is_asked(),
        Some(DriverRequest::RebootToRamdisk)
    );
    assert_eq!(world.node.open_command(), None);
    // The old boot still speaks: it is not listened to, with whatever token.
    for token in [TokenMatch::Right, TokenMatch::Wrong] {
        let late = world.heartbeats(token).reply;
        assert_eq!(late, Reply::Refused(Refused::TokenWrong));
    }
    let early = world.lookup().reply;
    assert_eq!(early, Reply::Refused(Refused::LookupNotAllowed));
    world.driver_says_yes();
    assert_eq!(world.state(), "wait call-back");

    // The new one has another address and another certificate, and gets the step after the finished one.
    world.agent_comes();
    assert_ne!(world.url(), first_url);
    let open = world.node.open_command().unwrap();
    assert!(
        matches!(&open.request, Request::ExecuteStep { of: StepsOf::Deploy, step, .. } if step == "write_image"),
        "{open:?}"
    );
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.ends_active();
    assert_eq!(
        world.posted,
        [
            "get_deploy_steps",
            "execute_deploy_step",
            "execute_deploy_step",
            "get_partition_uuids",
            "power_off"
        ]
    );
}

#[test]
fn hardware_managers_that_changed_fail_the_deploy_and_say_so() {
    let mut world = World::writing();
    let mismatch = world.entry(Status::VersionMismatch, Value::Null);
    world.says(AgentEvent::Polled(mismatch));
    assert_eq!(world.state(), "deploy failed");
    assert!(
        world.last_error().contains("hardware managers changed"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.driver_is_asked(), Some(DriverRequest::PowerOff));
    // Nothing of another operation, such as cleaning, is begun instead.
    assert_eq!(world.posted, ["get_deploy_steps", "execute_deploy_step"]);
}

#[test]
fn a_lost_answer_to_the_first_question_costs_nothing_but_time() {
    let mut world = World::agent_arrived();
    world.survey(&[]);
    world.says(no_clear_answer());
    for _ in 0..3 {
        world.at += 2_000;
        world.heartbeats(TokenMatch::Right);
        assert_eq!(world.node.last_error, None);
        assert_eq!(world.state(), "wait call-back");
        world.survey(&[]);
    }
    // By now it has provably never arrived, on the same agent.
    world.at += 2_000;
    world.survey(&[]);
    assert_eq!(world.node.open_command().unwrap().attempt, 2);
    world.command_runs("get_deploy_steps", steps_of(&[]));
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.ends_active();
}

#[test]
fn every_error_of_an_agent_is_told_with_its_kind_and_its_text() {
    for kind in [
        "ImageDownloadError",
        "ImageDownloadTimeoutError",
        "ImageDownloadOutofSpaceError",
        "ImageDownloadFatalError",
        "ImageChecksumError",
        "ImageWriteError",
        "InvalidImage",
        "DeviceNotFound",
        "BlockDeviceEraseError",
        "SoftwareRAIDError",
        "ProtectedDeviceError",
        "DeploymentError",
        "SystemRebootError",
        "ClockSyncError",
        "HardwareManagerMethodNotFound",
        "CommandExecutionError",
        "AnErrorOfTomorrow",
    ] {
        let mut world = World::writing();
        let failed = Entry {
            error_kind: kind.to_owned(),
            error_message: "the disk said no".to_owned(),
            ..world.entry(Status::Failed, Value::Null)
        };
        world.says(AgentEvent::Polled(failed));
        assert_eq!(world.state(), "deploy failed");
        let why = world.last_error();
        for part in [kind, "the disk said no", "deploy again"] {
            assert!(why.contains(part), "{kind}: no {part:?} in {why}");
        }
    }
}
