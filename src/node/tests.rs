//! The flows of a node, line by line.

use serde_json::{Value, json};

use super::work::{Work, WorkPhase};
use super::*;
use crate::command::{
    Effect as AgentEffect, Entry, Event as AgentEvent, Finish, Instance, Pace, Phase, PostAnswer,
    Status, StepsOf, Unreadable,
};
use crate::timestamp::Timestamp;

mod attributes;
mod deploys;
mod edit;
mod failures;
mod hardware;
mod hardware_steps;
mod images;
mod inspection_findings;
mod inspection_rules;
mod inspections;
mod lookups;
mod names;
mod parts;
mod patches;
mod ports;
mod reports;
mod state_table;
mod states;
mod turns;
mod upkeep;
mod vendor;
mod works;

/// A node in a world whose time only this test moves.
struct World {
    node: Node,
    at: i64,
    limits: Limits,
    effects: Vec<Effect>,
    history: Vec<String>,
    boots: u32,
}

impl World {
    /// A node that was just enrolled, with a good whole-disk image.
    fn new() -> World {
        let info = json!({
            "image_source": "http://images.example/cloud.raw",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64),
            "deploy_boot_mode": "bios",
        });
        let attributes = Attributes {
            driver: "fake-hardware".to_owned(),
            instance_info: info.as_object().unwrap().clone(),
            ..Attributes::default()
        };
        World {
            node: Node::enrolled(NodeId::default(), attributes, Timestamp(0)),
            at: 1_000_000,
            limits: Limits {
                automated_clean: false,
                queues: QueueLimits::NONE,
                ..Limits::default()
            },
            effects: Vec::new(),
            history: Vec::new(),
            boots: 0,
        }
    }

    fn available() -> World {
        let mut world = World::new();
        world.asks(Verb::Manage);
        world.driver_says_yes();
        world.asks(Verb::Provide);
        assert_eq!(world.state(), "available");
        world
    }

    /// In `wait call-back`, with an agent that sent its first heartbeat.
    fn agent_arrived() -> World {
        let mut world = World::available();
        world.asks(Verb::Active);
        world.driver_says_yes();
        world.boots();
        world
    }

    /// The agent has the write_image command and works on it.
    fn writing() -> World {
        let mut world = World::agent_arrived();
        world.command_runs("get_deploy_steps", steps_result());
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        assert_eq!(world.state(), "wait call-back");
        world
    }

    /// The agent is about to be sent a step of its own, which comes before the image is written.
    fn agent_with_step(interface: &str, step: &str) -> World {
        let mut world = World::agent_arrived();
        let mut result = steps_result();
        result["deploy_steps"]["Generic"] =
            json!([{"interface": interface, "step": step, "priority": 90}]);
        world.command_runs("get_deploy_steps", result);
        world
    }

    fn active() -> World {
        let mut world = World::writing();
        world.polled(Status::Succeeded, json!({"deploy_result": {}}));
        world.finish_deploy();
        world
    }

    fn finish_deploy(&mut self) {
        self.command_runs("get_partition_uuids", json!({"root uuid": "0x1"}));
        self.driver_says_yes();
        self.survey(&[]);
        self.posted(Status::Running, Value::Null);
        self.agent_says(AgentEvent::PollFailed(gone()));
        self.driver_says_yes();
        self.driver_says_yes();
    }

    fn go(&mut self, event: Event) -> Step {
        let now = Now {
            at: Timestamp(self.at),
            limits: &self.limits,
        };
        let before = self.node.clone();
        let step = step(&self.node, event, now);
        assert_eq!(
            step.node.version,
            before.version + u64::from(step.node != before),
            "the version is raised exactly when something changed"
        );
        if matches!(step.reply, Reply::Refused(_)) {
            assert_eq!(step.node, before, "a refusal changes nothing");
            assert!(step.effects.is_empty() && step.history.is_empty());
        }
        self.node = step.node.clone();
        self.effects = step.effects.clone();
        self.history
            .extend(step.history.iter().map(|line| line.event.clone()));
        let is_held = self
            .node
            .work()
            .is_some_and(|work| work.phase == WorkPhase::Held);
        let has_not_begun = self.node.work().is_some_and(Work::has_not_begun);
        let waits = self.node.is_at_work() && !is_held && !has_not_begun;
        assert!(
            !waits || step.removed || self.node.next_deadline().is_some(),
            "every wait has a deadline: {:?}",
            self.node.provision
        );
        step
    }

    fn asks(&mut self, verb: Verb) -> Step {
        self.go(Event::Provision {
            verb,
            options: ProvisionOptions::default(),
        })
    }

    fn driver(&mut self, answer: Result<DriverAnswer, String>) -> Step {
        let call = self.node.driver_call.expect("the driver is at work").number;
        self.go(Event::Driver { call, answer })
    }

    fn driver_says_yes(&mut self) -> Step {
        self.driver(Ok(DriverAnswer { power: None }))
    }

    fn boots(&mut self) {
        self.boots += 1;
        let fresh_nonce = format!("nonce {}", self.boots);
        self.go(Event::Lookup { fresh_nonce });
        self.heartbeats(TokenMatch::Right);
    }

    fn heartbeats(&mut self, token: TokenMatch) -> Step {
        self.go(Event::Heartbeat(self.heartbeat(token)))
    }

    fn heartbeat(&self, token: TokenMatch) -> Heartbeat {
        Heartbeat {
            callback_url: "https://192.0.2.1:9999".to_owned(),
            agent_version: Some("13.0.0".to_owned()),
            certificate: Some(format!("certificate {}", self.boots)),
            token,
        }
    }

    fn agent_says(&mut self, event: AgentEvent) -> Step {
        let open = self.node.open_command().expect("a command is open");
        let (id, attempt) = (open.id, open.attempt);
        self.go(Event::Command { id, attempt, event })
    }

    fn survey(&mut self, entries: &[Entry]) -> Step {
        let instance = Instance {
            started_at: format!("boot {}", self.boots),
            callback_url: "https://192.0.2.1:9999".to_owned(),
            certificate_sha256: None,
        };
        self.agent_says(AgentEvent::Surveyed {
            instance,
            entries: entries.to_vec(),
        })
    }

    fn posted(&mut self, status: Status, result: Value) -> Step {
        let entry = self.entry(status, result);
        self.agent_says(AgentEvent::Posted(PostAnswer::Accepted(entry)))
    }

    fn polled(&mut self, status: Status, result: Value) -> Step {
        let entry = self.entry(status, result);
        self.agent_says(AgentEvent::Polled(entry))
    }

    /// The open command is sent and ends well at once.
    fn command_runs(&mut self, name: &str, result: Value) {
        let open = self.node.open_command().expect("a command is open");
        assert_eq!(open.request.short_name(), name);
        self.survey(&[]);
        assert!(self.posts(), "sent after the survey");
        self.posted(Status::Succeeded, result);
    }

    fn entry(&self, status: Status, result: Value) -> Entry {
        let open = self.node.open_command().expect("a command is open");
        Entry {
            id: format!("agent {}", open.id),
            command_name: open.request.short_name().to_owned(),
            status,
            error_kind: String::new(),
            error_message: String::new(),
            result,
            operation: None,
        }
    }

    fn posts(&self) -> bool {
        self.effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Command {
                    effect: AgentEffect::Post,
                    ..
                }
            )
        })
    }

    fn polls_now(&self) -> bool {
        self.effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Command {
                    effect: AgentEffect::Poll(Pace::Now),
                    ..
                }
            )
        })
    }

    fn state(&self) -> &'static str {
        self.node.provision_state().name()
    }

    fn last_error(&self) -> &str {
        self.node.last_error.as_deref().unwrap_or_default()
    }

    fn waits(&mut self, ms: i64) -> Step {
        self.at += ms;
        self.go(Event::DeadlineReached)
    }
}

fn steps_result() -> Value {
    json!({
        "deploy_steps": {"Generic": [{"step": "write_image", "interface": "deploy", "priority": 0}]},
        "hardware_manager_version": {"Generic": "1"},
    })
}

fn gone() -> Unreadable {
    Unreadable::Unreachable {
        why: "connection refused".to_owned(),
    }
}

#[test]
fn a_node_goes_from_enroll_to_active_and_back_to_available() {
    let mut world = World::active();
    assert_eq!(world.state(), "active");
    assert_eq!(world.node.power.state, Some(PowerState::On));
    assert_eq!(world.node.session, None);
    assert_eq!(world.node.deadlines, Deadlines::default());
    assert_eq!(world.node.last_error, None);

    world.asks(Verb::Deleted);
    assert_eq!(world.state(), "deleting");
    world.driver_says_yes();
    assert_eq!(world.state(), "available");
    assert!(world.node.attributes.instance_info.is_empty());
    assert!(
        world
            .history
            .iter()
            .any(|line| line.contains("nothing was cleaned"))
    );
}

#[test]
fn uefi_installs_the_boot_loader() {
    let mut world = World::available();
    world
        .node
        .attributes
        .instance_info
        .insert("deploy_boot_mode".into(), json!("uefi"));
    world.asks(Verb::Active);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    world.command_runs("execute_deploy_step", json!({}));
    world.command_runs("get_partition_uuids", json!({"root uuid": "0x1ab0fee1"}));
    let open = world.node.open_command().unwrap().request.clone();
    assert_eq!(
        open,
        crate::command::Request::InstallBootloader {
            root_uuid: Some("0x1ab0fee1".to_owned()),
            efi_system_part_uuid: None,
            prep_boot_part_uuid: None,
            target_boot_mode: "uefi".to_owned(),
        }
    );
    world.command_runs("install_bootloader", Value::Null);
    assert_eq!(world.state(), "deploying");
}

fn failed() -> World {
    let mut world = World::agent_arrived();
    world.asks(Verb::Abort);
    world.driver_says_yes();
    world
}

#[test]
fn a_working_node_is_busy_and_a_resting_one_can_not() {
    let mut world = World::available();
    world.asks(Verb::Active);
    assert_eq!(
        world.asks(Verb::Deleted).reply,
        Reply::Refused(Refused::Busy {
            state: ProvisionState::Deploying
        })
    );
    assert_eq!(
        World::available().asks(Verb::Deleted).reply,
        Reply::Refused(Refused::NoSuchTransition {
            verb: Verb::Deleted,
            state: ProvisionState::Available
        })
    );
}

#[test]
fn what_stands_against_a_deploy_is_said_at_once_and_in_full() {
    let mut world = World::available();
    world.node.attributes.instance_info = json!({"image_source": "ftp://x"})
        .as_object()
        .unwrap()
        .clone();
    let step = world.asks(Verb::Active);
    let Reply::Refused(Refused::BadValue { field, problem }) = step.reply else {
        panic!("{:?}", step.reply);
    };
    assert_eq!(field, "instance_info");
    assert!(problem.contains("ftp://x") && problem.contains("checksum"));

    let mut world = World::available();
    world.go(Event::Maintenance {
        on: true,
        reason: None,
    });
    assert!(matches!(
        world.asks(Verb::Active).reply,
        Reply::Refused(Refused::InMaintenance { .. })
    ));
}

#[test]
fn the_token_stays_the_same_until_the_first_heartbeat_and_is_masked_then() {
    let mut world = World::available();
    let lookup = |nonce: &str| Event::Lookup {
        fresh_nonce: nonce.to_owned(),
    };
    assert_eq!(
        world.go(lookup("a")).reply,
        Reply::Refused(Refused::LookupNotAllowed)
    );
    world.asks(Verb::Active);
    world.driver_says_yes();
    for nonce in ["a", "b"] {
        let step = world.go(lookup(nonce));
        assert_eq!(step.reply, Reply::Token { masked: false });
        assert_eq!(world.node.session.as_ref().unwrap().nonce, "a");
    }
    world.heartbeats(TokenMatch::Right);
    assert_eq!(world.go(lookup("c")).reply, Reply::Token { masked: true });
    assert_eq!(world.node.session.as_ref().unwrap().nonce, "a");
}

#[test]
fn a_refused_heartbeat_says_why() {
    let mut world = World::writing();
    type Change = fn(&mut Heartbeat);
    let cases: [(Change, Refused); 4] = [
        (|h| h.token = TokenMatch::Wrong, Refused::TokenWrong),
        (|h| h.token = TokenMatch::Missing, Refused::TokenMissing),
        (
            |h| h.callback_url = "https://192.0.2.2:9999".to_owned(),
            Refused::CallbackUrlChanged,
        ),
        (|h| h.certificate = None, Refused::CertificateChanged),
    ];
    for (change, why) in cases {
        let mut heartbeat = world.heartbeat(TokenMatch::Right);
        change(&mut heartbeat);
        let step = world.go(Event::Heartbeat(heartbeat));
        assert_eq!(step.reply, Reply::Refused(why));
    }
}

#[test]
fn a_heartbeat_never_sends_a_command_again() {
    let mut world = World::writing();
    for _ in 0..5 {
        world.at += 90_000;
        world.heartbeats(TokenMatch::Right);
        assert!(!world.posts());
        assert_eq!(world.node.open_command().unwrap().attempt, 1);
    }
    // The same while nobody knows whether the command arrived.
    let mut world = World::agent_arrived();
    world.command_runs("get_deploy_steps", steps_result());
    world.survey(&[]);
    world.agent_says(AgentEvent::Posted(PostAnswer::Unknown {
        why: "reset".to_owned(),
    }));
    for _ in 0..5 {
        world.at += 90_000;
        world.heartbeats(TokenMatch::Right);
        assert!(!world.posts());
    }
    let running = world.entry(Status::Running, Value::Null);
    world.survey(&[running]);
    assert!(!world.posts());
    world.polled(Status::Succeeded, json!({}));
    world.finish_deploy();
    assert_eq!(world.state(), "active");
}

#[test]
fn a_live_agent_never_expires_and_a_silent_one_does() {
    let mut world = World::writing();
    let limit = world.limits.deploy_callback_timeout_ms;
    for _ in 0..5 {
        // alternately a heartbeat and a poll, each just in time
        world.at += limit - 1;
        world.heartbeats(TokenMatch::Right);
        world.at += limit - 1;
        world.polled(Status::Running, Value::Null);
    }
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(world.waits(limit - 1).outcome, Outcome::DeadlineMoved);
    world.waits(1);
    assert_eq!(world.state(), "deploy failed");
    assert!(
        world.last_error().contains("went silent"),
        "{}",
        world.last_error()
    );
    assert!(
        world.last_error().contains("write_image"),
        "{}",
        world.last_error()
    );
    assert_eq!(world.node.power.target, Some(PowerState::Off));
}

#[test]
fn a_step_that_hangs_on_a_live_agent_ends_at_its_limit() {
    let mut world = World::writing();
    let end = world.at + world.limits.write_image_limit_ms;
    while world.at + 90_000 < end {
        world.at += 90_000;
        world.heartbeats(TokenMatch::Right);
        assert_eq!(
            world.go(Event::DeadlineReached).outcome,
            Outcome::DeadlineMoved
        );
    }
    world.at = end;
    world.go(Event::DeadlineReached);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("although the agent lives"));
}

#[test]
fn a_limit_of_zero_is_no_limit() {
    let mut world = World::new();
    world.limits.deploy_callback_timeout_ms = 0;
    world.limits.write_image_limit_ms = 0;
    let limits = world.limits.clone();
    let mut world = World::writing();
    world.limits = limits;
    world.heartbeats(TokenMatch::Right);
    assert_eq!(world.node.deadlines.liveness, None);
}

#[test]
fn an_agent_that_never_comes_is_told_apart_from_one_that_went_silent() {
    let mut world = World::available();
    world.asks(Verb::Active);
    world.driver_says_yes();
    let limit = world.limits.deploy_callback_timeout_ms;
    world.waits(limit);
    assert_eq!(world.state(), "deploy failed");
    assert!(
        world.last_error().contains("No agent called"),
        "{}",
        world.last_error()
    );
}

#[test]
fn whoever_asks_while_the_machine_is_being_rebooted_gets_no_token_yet() {
    let mut world = World::available();
    world.asks(Verb::Active);
    let lookup = world.go(Event::Lookup {
        fresh_nonce: "too early".to_owned(),
    });
    assert_eq!(lookup.reply, Reply::Refused(Refused::LookupNotAllowed));
    world.driver_says_yes();
    world.boots();
    assert_eq!(
        world.node.open_command().unwrap().request,
        crate::command::Request::GetSteps {
            of: StepsOf::Deploy
        }
    );
}

#[test]
fn a_failed_write_names_the_image_the_cause_and_the_cure() {
    let mut world = World::writing();
    let failed = Entry {
        error_kind: "ImageChecksumError".to_owned(),
        error_message: "Error verifying image checksum: a is not b".to_owned(),
        ..world.entry(Status::Failed, Value::Null)
    };
    world.agent_says(AgentEvent::Polled(failed));
    assert_eq!(world.state(), "deploy failed");
    for part in [
        "http://images.example/cloud.raw",
        "a is not b",
        "ImageChecksumError",
        "Check that image_os_hash_value",
    ] {
        assert!(
            world.last_error().contains(part),
            "{part}: {}",
            world.last_error()
        );
    }
    // and the next try starts clean
    world.driver_says_yes();
    world.asks(Verb::Active);
    assert_eq!(world.node.last_error, None);
    assert_eq!(world.state(), "deploying");
}

#[test]
fn a_restarted_agent_has_the_write_begun_anew_under_a_new_session() {
    let mut world = World::writing();
    let first = world.node.open_command().unwrap().id;
    world.boots += 1;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
    world.survey(&[]);
    assert_eq!(world.state(), "deploying");
    assert_eq!(world.node.session, None);
    world.driver_says_yes();
    world.boots();
    world.command_runs("get_deploy_steps", steps_result());
    let open = world.node.open_command().unwrap();
    assert_eq!(open.request.short_name(), "execute_deploy_step");
    assert!(open.id > first);
}

#[test]
fn an_agent_that_came_back_without_its_token_is_not_left_asleep() {
    let lookup = || Event::Lookup {
        fresh_nonce: "another".to_owned(),
    };
    let mut world = World::writing();
    assert_eq!(world.go(lookup()).reply, Reply::Token { masked: true });
    let look = AgentEffect::Poll(Pace::Now);
    assert!(
        matches!(&world.effects[..], [Effect::Command { effect, .. }] if *effect == look),
        "the old one is probed: {:?}",
        world.effects
    );
    for _ in 0..15 {
        assert_eq!(world.state(), "wait call-back");
        world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
        world.at += 1_000;
        // It asks again and again; the first time counts.
        world.go(lookup());
    }
    // However long the pauses between looks are by now: there is one when it counts.
    let asked = world.node.session.as_ref().unwrap().asked_again_at.unwrap();
    assert_eq!(world.node.deadlines.look, Some(asked.plus_ms(15_000)));
    world.at = asked.0 + 15_000;
    world.waits(0);
    assert!(world.polls_now());
    assert_eq!(world.node.deadlines.look, None);
    // A network that fails proves nothing, however long.
    for _ in 0..10 {
        world.at += 60_000;
        world.agent_says(AgentEvent::PollFailed(gone()));
        assert_eq!(world.state(), "wait call-back");
    }
    world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
    assert_eq!(world.state(), "deploying");
    assert_eq!(world.node.session, None);
    assert_eq!(
        world.node.driver_call.unwrap().request,
        DriverRequest::RebootToRamdisk
    );
}

#[test]
fn each_question_for_a_token_is_looked_into_when_its_time_has_come() {
    let mut world = World::writing();
    let lookup = || Event::Lookup {
        fresh_nonce: "new".to_owned(),
    };
    world.go(lookup());
    world.polled(Status::Running, Value::Null);
    world.at += 8_000;
    world.go(lookup());
    let asked = world.at;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
    world.waits(7_000);
    assert_eq!(
        world.node.deadlines.look,
        Some(Timestamp(asked + 15_000)),
        "the first question's time says nothing of the second"
    );
    world.waits(8_000);
    world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
    assert_eq!(world.state(), "deploying");
}

#[test]
fn an_agent_that_answers_keeps_its_session_whoever_asks() {
    let mut world = World::writing();
    for _ in 0..10 {
        world.go(Event::Lookup {
            fresh_nonce: "thief".to_owned(),
        });
        world.at += 10_000;
        world.agent_says(AgentEvent::PollFailed(gone()));
        world.at += 1_000;
        world.polled(Status::Running, Value::Null);
    }
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(world.node.session.as_ref().unwrap().nonce, "nonce 1");
}

#[test]
fn a_machine_only_a_person_can_switch_fails_at_once_when_its_agent_is_lost() {
    let mut world = World::writing();
    world.node.attributes.driver = "manual-management".to_owned();
    world.boots += 1;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
    world.survey(&[]);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("lost its token"));
}

#[test]
fn a_lost_token_is_issued_anew_where_that_is_allowed_and_the_old_agent_is_gone() {
    let mut world = World::writing();
    world.node.attributes.driver = "manual-management".to_owned();
    world.limits.reissue_lost_token = true;
    let lookup = |nonce: &str| Event::Lookup {
        fresh_nonce: nonce.to_owned(),
    };
    world.at += 1_001;
    for _ in 0..4 {
        assert_eq!(world.go(lookup("new")).reply, Reply::TokenLater);
        assert!(world.polls_now(), "the old agent is looked at");
        world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
        world.at += 5_000;
    }
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(world.node.session, None);
    assert_eq!(world.node.driver_call, None, "no power cycle");
    let step = world.go(lookup("new"));
    assert_eq!(step.reply, Reply::Token { masked: false });
    world.boots += 1;
    world.heartbeats(TokenMatch::Right);
    world.command_runs("get_deploy_steps", steps_result());
    world.survey(&[]);
    assert!(world.posts(), "the image is written from the start");
    assert_eq!(world.node.session.as_ref().unwrap().nonce, "new");
}

#[test]
fn an_agent_that_lives_gets_its_masked_token_after_asking_again() {
    let mut world = World::writing();
    world.node.attributes.driver = "manual-management".to_owned();
    world.limits.reissue_lost_token = true;
    let lookup = || Event::Lookup {
        fresh_nonce: "thief".to_owned(),
    };
    // Just heard: it is the one that asks.
    world.at += 1_000;
    assert_eq!(world.go(lookup()).reply, Reply::Token { masked: true });
    world.at += 1;
    assert_eq!(world.go(lookup()).reply, Reply::TokenLater);
    world.polled(Status::Running, Value::Null);
    world.at += 5_000;
    for _ in 0..3 {
        assert_eq!(world.go(lookup()).reply, Reply::Token { masked: true });
        world.polled(Status::Running, Value::Null);
    }
    // What it proved a while ago says nothing about an agent that asks now.
    world.at += 61_000;
    assert_eq!(world.go(lookup()).reply, Reply::TokenLater);
    assert_eq!(world.node.session.as_ref().unwrap().nonce, "nonce 1");
}

#[test]
fn a_driver_that_can_switch_power_does_so_rather_than_issue_a_token_anew() {
    let mut world = World::writing();
    world.limits.reissue_lost_token = true;
    let step = world.go(Event::Lookup {
        fresh_nonce: "new".to_owned(),
    });
    assert_eq!(step.reply, Reply::Token { masked: true });
}

#[test]
fn an_agent_busy_with_something_else_is_alive_and_waited_for() {
    let mut world = World::agent_arrived();
    let foreign = Entry {
        command_name: "sync".to_owned(),
        ..world.entry(Status::Running, Value::Null)
    };
    let limit = world.limits.deploy_callback_timeout_ms;
    for _ in 0..2 {
        world.at += limit - 1;
        world.survey(std::slice::from_ref(&foreign));
        assert!(!world.posts());
        let liveness = world.node.deadlines.liveness.unwrap();
        assert_eq!(liveness, Timestamp(world.at + limit));
    }
    let waiting = waiting(&world.node).unwrap();
    assert!(waiting.trouble.unwrap().contains("finish sync"));
    // Not for ever.
    let step = world.node.deadlines.step.unwrap();
    let ms = step.0 - world.at;
    world.waits(ms);
    assert_eq!(world.state(), "deploy failed");
}

#[test]
fn what_became_of_a_command_is_lost_with_its_agent() {
    let mut world = World::writing();
    world.boots += 1;
    let id = world.node.open_command().unwrap().id;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
    world.survey(&[]);
    let ended = world.node.command_numbered(id).unwrap();
    assert_eq!(
        ended.phase,
        Phase::Ended {
            finish: Finish::InstanceLost
        }
    );
}

#[test]
fn an_agent_that_keeps_restarting_fails_the_deploy() {
    let mut world = World::writing();
    for round in 0..3 {
        world.boots += 1;
        world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
        world.survey(&[]);
        if round < 2 {
            world.driver_says_yes();
            world.boots();
            world.command_runs("get_deploy_steps", steps_result());
            world.survey(&[]);
            world.posted(Status::Running, Value::Null);
        }
    }
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("restarted 3 times"));
}

#[test]
fn a_step_that_can_not_be_repeated_fails_when_the_agent_restarts() {
    let mut world = World::available();
    let step = steps::WorkStep::named("raid", "apply_configuration", 90);
    world.go(Event::Provision {
        verb: Verb::Active,
        options: ProvisionOptions {
            steps: vec![step],
            ..Default::default()
        },
    });
    world.driver_says_yes();
    world.boots();
    let offered = json!({"deploy_steps": {"G": [{"step": "apply_configuration", "interface": "raid", "priority": 0}]}});
    world.command_runs("get_deploy_steps", offered);
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.boots += 1;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NotFound));
    world.survey(&[]);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("raid.apply_configuration"));
}

#[test]
fn a_lost_answer_to_power_off_does_no_harm() {
    let mut world = World::writing();
    world.polled(Status::Succeeded, json!({}));
    world.command_runs("get_partition_uuids", json!({}));
    world.driver_says_yes();
    world.survey(&[]);
    world.agent_says(AgentEvent::Posted(PostAnswer::Unknown {
        why: "reset".to_owned(),
    }));
    world.agent_says(AgentEvent::SurveyFailed(gone()));
    assert_eq!(
        world.node.driver_call.unwrap().request,
        DriverRequest::PowerOff
    );
    world.driver_says_yes();
    world.driver_says_yes();
    assert_eq!(world.state(), "active");
}

#[test]
fn an_agent_that_will_not_power_off_is_switched_off() {
    let mut world = World::writing();
    world.polled(Status::Succeeded, json!({}));
    world.command_runs("get_partition_uuids", json!({}));
    world.driver_says_yes();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    for _ in 0..3 {
        world.at += 1_000;
        world.polled(Status::Running, Value::Null);
    }
    assert_eq!(world.node.driver_call, None);
    let wait = world.limits.power_off_wait_ms;
    world.waits(wait);
    assert_eq!(
        world.node.driver_call.unwrap().request,
        DriverRequest::PowerOff
    );
}

#[test]
fn a_restart_asks_again_for_what_was_in_flight_and_takes_the_downtime_off() {
    let mut world = World::writing();
    let deadline = world.node.deadlines.liveness.unwrap();
    world.at += 5_000_000;
    world.go(Event::Resumed {
        down_for_ms: 5_000_000,
    });
    assert_eq!(
        world.node.deadlines.liveness,
        Some(deadline.plus_ms(5_000_000))
    );
    let poll = AgentEffect::Poll(Pace::Now);
    assert!(matches!(&world.effects[..], [Effect::Command { effect, .. }] if *effect == poll));
    assert_eq!(
        world.go(Event::DeadlineReached).outcome,
        Outcome::DeadlineMoved
    );

    let mut world = World::available();
    world.asks(Verb::Active);
    let call = world.node.driver_call.unwrap();
    world.go(Event::Resumed { down_for_ms: 10 });
    assert_eq!(world.effects, [Effect::Driver(call)]);
}

#[test]
fn a_reboot_that_is_ordered_again_ends_the_agent_of_the_boot_before() {
    let mut world = World::available();
    world.asks(Verb::Active);
    let lookup = |world: &mut World| {
        world
            .go(Event::Lookup {
                fresh_nonce: "another".to_owned(),
            })
            .reply
    };
    let refused = Reply::Refused(Refused::LookupNotAllowed);
    assert_eq!(lookup(&mut world), refused);
    // The conductor was away before it had the driver's answer.
    world.go(Event::Resumed { down_for_ms: 10 });
    assert!(matches!(world.effects[..], [Effect::Driver(_)]));
    assert_eq!(world.node.session, None);
    assert_eq!(lookup(&mut world), refused);
    world.driver_says_yes();
    assert_eq!(world.state(), "wait call-back");
    assert_eq!(lookup(&mut world), Reply::Token { masked: false });
}

#[test]
fn what_was_seen_is_added_to_an_older_row_and_never_taken_from_a_newer_one() {
    let mut world = World::writing();
    let row = world.node.clone();
    world.at += 5_000;
    world.heartbeats(TokenMatch::Right);
    let seen = world.node.clone();
    let read = after_trouble_with_the_store(row, Some(&seen), 0);
    assert_eq!(read.deadlines, seen.deadlines, "a sign of life is kept");

    world.go(Event::Resumed {
        down_for_ms: 600_000,
    });
    let newer = world.node.clone();
    let read = after_trouble_with_the_store(newer.clone(), Some(&seen), 0);
    assert_eq!(read, newer, "the downtime stays taken off");
}

#[test]
fn answers_to_older_questions_are_ignored() {
    let mut world = World::writing();
    let open = world.node.open_command().unwrap();
    let (id, attempt) = (open.id, open.attempt);
    let answer = || AgentEvent::PollFailed(gone());
    for (id, attempt) in [
        (crate::command::CommandId(id.0 - 1), attempt),
        (id, attempt - 1),
        (id, attempt + 1),
    ] {
        let event = Event::Command {
            id,
            attempt,
            event: answer(),
        };
        assert_eq!(world.go(event).outcome, Outcome::AnswerIgnored);
    }
    let event = Event::Driver {
        call: 1,
        answer: Err("late".to_owned()),
    };
    assert_eq!(world.go(event).outcome, Outcome::AnswerIgnored);
}

#[test]
fn an_abort_says_so_and_ends_everything() {
    let mut world = World::writing();
    world.asks(Verb::Abort);
    assert_eq!(world.state(), "deploy failed");
    assert!(world.last_error().contains("aborted"));
    assert_eq!(world.node.open_command(), None);
    assert_eq!(world.node.session, None);
}

#[test]
fn power_is_changed_at_rest_and_refused_at_work() {
    let mut world = World::available();
    world.go(Event::power(PowerRequest::Set(PowerState::On)));
    assert_eq!(world.node.power.target, Some(PowerState::On));
    world.driver_says_yes();
    assert_eq!(
        world.node.power,
        Power {
            state: Some(PowerState::On),
            target: None
        }
    );
    world.go(Event::power(PowerRequest::Reboot));
    world.driver(Err("no answer".to_owned()));
    assert!(world.last_error().contains("reboot failed: no answer"));

    let mut world = World::writing();
    let step = world.go(Event::power(PowerRequest::Set(PowerState::Off)));
    assert!(matches!(step.reply, Reply::Refused(Refused::Busy { .. })));
}

#[test]
fn a_driver_that_never_answers_is_not_waited_for_for_ever() {
    for (make, state) in [
        (
            (|| {
                let mut world = World::new();
                world.asks(Verb::Manage);
                world
            }) as fn() -> World,
            "enroll",
        ),
        (
            || {
                let mut world = World::available();
                world.asks(Verb::Active);
                world
            },
            "deploy failed",
        ),
        (
            || {
                let mut world = World::active();
                world.asks(Verb::Deleted);
                world
            },
            "error",
        ),
    ] {
        let mut world = make();
        let limit = world.limits.driver_limit_ms;
        world.waits(limit);
        assert_eq!(world.state(), state);
        assert!(
            world.last_error().contains("did not answer"),
            "{}",
            world.last_error()
        );
    }
}

#[test]
fn a_quarantined_node_hears_operators_only_and_goes_on_when_released() {
    let mut world = World::writing();
    world.go(Event::Quarantined {
        reason: "index out of bounds".to_owned(),
    });
    assert!(world.last_error().contains("index out of bounds"));
    assert_eq!(
        world.heartbeats(TokenMatch::Right).reply,
        Reply::Refused(Refused::Quarantined)
    );
    world.go(Event::Maintenance {
        on: false,
        reason: None,
    });
    assert_eq!(world.node.quarantine, None);
    assert!(!world.effects.is_empty());
    assert_eq!(world.heartbeats(TokenMatch::Right).reply, Reply::Done);
}

#[test]
fn a_heartbeat_alone_is_no_more_than_a_sign_of_life() {
    let mut world = World::writing();
    let before = world.node.clone();
    world.at += 1_000;
    world.heartbeats(TokenMatch::Right);
    assert!(is_sign_of_life(&before, &world.node));
    world.asks(Verb::Abort);
    assert!(!is_sign_of_life(&before, &world.node));
}

#[test]
fn protected_nodes_stay_as_they_are() {
    for verb in [Verb::Rebuild, Verb::Deleted] {
        let mut world = World::active();
        world.node.attributes.protected = true;
        assert!(matches!(
            world.asks(verb).reply,
            Reply::Refused(Refused::Protected { .. })
        ));
    }
}

#[test]
fn every_waiting_node_says_what_it_waits_for() {
    assert_eq!(waiting(&World::available().node), None);
    assert_eq!(waiting(&World::active().node), None);
    let world = World::writing();
    let said = waiting(&world.node).unwrap();
    assert_eq!(
        said.what,
        "carrying out a step on the agent (deploy.write_image): command 2 deploy.execute_deploy_step, accepted"
    );
    let names: Vec<&str> = said.deadlines.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["liveness", "step"]);
    assert_eq!(said.heard_at, Some(Timestamp(world.at)));

    let mut world = World::available();
    world.asks(Verb::Active);
    let said = waiting(&world.node).unwrap();
    assert!(said.what.contains("reboot to ramdisk"), "{}", said.what);
    world.driver_says_yes();
    let said = waiting(&world.node).unwrap();
    assert_eq!(said.what, "waiting for the agent's first heartbeat");
}

#[test]
fn the_history_tells_every_phase_of_every_command_and_every_passed_deadline() {
    let world = World::writing();
    let told: Vec<&str> = world
        .history
        .iter()
        .filter_map(|line| line.strip_prefix("command "))
        .collect();
    assert_eq!(
        told,
        [
            "1 deploy.get_deploy_steps: planned",
            "1 deploy.get_deploy_steps: sent",
            "1 deploy.get_deploy_steps: finished, succeeded",
            "2 deploy.execute_deploy_step: planned",
            "2 deploy.execute_deploy_step: sent",
            "2 deploy.execute_deploy_step: accepted as agent 2",
        ]
    );
}

#[test]
fn the_history_tells_what_became_of_every_deadline() {
    let mut world = World::writing();
    world.history.clear();
    world.heartbeats(TokenMatch::Right);
    world.polled(Status::Running, Value::Null);
    world.go(Event::Resumed { down_for_ms: 2_500 });
    let limit = world.limits.deploy_callback_timeout_ms;
    world.waits(limit + 2_507);
    let told: Vec<&str> = world
        .history
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains("deadline"))
        .collect();
    assert_eq!(
        told,
        [
            "all deadlines moved by 2.5 s, for which the conductor was away",
            "liveness deadline reached, handled 7 ms after it",
            "driver deadline armed: in 60.0 s",
            "liveness deadline dropped: signs of life had moved it 6 times, absences of the conductor by 2.5 s",
        ]
    );
    assert_eq!(
        (
            world.node.deadlines.refreshed,
            world.node.deadlines.moved_ms
        ),
        (0, 0)
    );

    let mut world = World::available();
    world.history.clear();
    world.asks(Verb::Active);
    world.driver_says_yes();
    world.boots();
    let told: Vec<&str> = world
        .history
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains("deadline"))
        .collect();
    assert_eq!(
        told,
        [
            "driver deadline armed: in 60.0 s",
            "liveness deadline armed: in 1800.0 s",
            "step deadline armed: in 3600.0 s",
        ]
    );
    let mut world = World::active();
    world.history.clear();
    world.at += 1;
    world.go(Event::Resumed { down_for_ms: 2_500 });
    assert!(world.history.is_empty(), "{:?}", world.history);
}

#[test]
fn a_node_is_read_back_from_its_stored_form_as_it_was() {
    for world in [World::new(), World::writing(), World::active(), failed()] {
        let stored = serde_json::to_string(&world.node).unwrap();
        let mut read: Node = serde_json::from_str(&stored).unwrap();
        read.ports = world.node.ports.clone();
        assert_eq!(read, world.node);
    }
}

#[test]
fn the_clock_may_be_set_either_way_while_the_conductor_is_away() {
    for moved in [-172_800_000, -5_000, 172_800_000] {
        let mut world = World::writing();
        let before = world.node.deadlines.clone();
        world.at += moved;
        world.go(Event::Resumed { down_for_ms: moved });
        let after = &world.node.deadlines;
        for (before, after) in [(before.liveness, after.liveness), (before.step, after.step)] {
            assert_eq!(after, before.map(|deadline| deadline.plus_ms(moved)));
        }
    }
    // The same while the machine is awaited to go off.
    let mut world = World::writing();
    world.polled(Status::Succeeded, json!({"deploy_result": {}}));
    world.command_runs("get_partition_uuids", json!({"root uuid": "0x1"}));
    world.driver_says_yes();
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let look = world.node.deadlines.look.unwrap();
    world.go(Event::Resumed {
        down_for_ms: -90_000,
    });
    assert_eq!(world.node.deadlines.look, Some(look.plus_ms(-90_000)));
    let Provision::Working(deploy) = &world.node.provision else {
        panic!("{:?}", world.node.provision);
    };
    assert_eq!(
        deploy.phase,
        WorkPhase::AwaitingOff {
            until: look.plus_ms(-90_000),
        }
    );
}

#[test]
fn what_was_heard_outlives_trouble_with_the_store() {
    let mut world = World::writing();
    let row = world.node.clone();
    world.at += 500_000;
    world.heartbeats(TokenMatch::Right);
    let seen = world.node.clone();
    assert!(seen.deadlines.liveness > row.deadlines.liveness);

    let read = after_trouble_with_the_store(row.clone(), Some(&seen), 0);
    assert_eq!(read.deadlines.liveness, seen.deadlines.liveness);
    assert_eq!(read.version, row.version + 1);
    assert_eq!(
        read.session.unwrap().last_heartbeat_at,
        Some(Timestamp(world.at))
    );
    // While nothing could be taken nobody was silent, and no step or driver was slow.
    let read = after_trouble_with_the_store(row.clone(), Some(&seen), 60_000);
    let later = |deadline: Option<Timestamp>| deadline.map(|at| at.plus_ms(60_000));
    assert_eq!(read.deadlines.liveness, later(seen.deadlines.liveness));
    assert_eq!(read.deadlines.step, later(row.deadlines.step));
    // A change that was stored although it seemed not to be knows better than what was seen before it.
    let mut newer = seen.clone();
    newer.version += 1;
    newer.deadlines.liveness = later(seen.deadlines.liveness);
    assert_eq!(
        after_trouble_with_the_store(newer.clone(), Some(&seen), 0),
        newer
    );
    // Another session's signs are nobody's.
    let mut other = seen.clone();
    other.session.as_mut().unwrap().nonce = "other".to_owned();
    assert_eq!(
        after_trouble_with_the_store(row.clone(), Some(&other), 0),
        row
    );
    assert_eq!(after_trouble_with_the_store(row.clone(), None, 999), row);
}
