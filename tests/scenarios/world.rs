//! A node whose world is played by the test, through the public face of the core.

use serde_json::{Value, json};
use upbeat::command::{
    Effect as AgentEffect, Entry, Event as AgentEvent, Instance, Phase, PostAnswer, Status,
    Unreadable,
};
use upbeat::node::steps::WorkStep;
use upbeat::node::work::{Work, WorkPhase};
use upbeat::node::{
    Attributes, DriverAnswer, DriverRequest, Effect, Event, Heartbeat, Limits, Node, NodeId, Now,
    Provision, ProvisionOptions, QueueLimits, Reply, Step, TokenMatch, Verb, step,
};
use upbeat::timestamp::Timestamp;

/// One node, the time, and which boot of its machine this is.
pub struct World {
    pub node: Node,
    pub at: i64,
    pub limits: Limits,
    /// Counts boots; agent, certificate and address follow from it.
    pub boot: u32,
    /// Effects of the last event.
    pub effects: Vec<Effect>,
    /// Every command that was sent, by its short name.
    pub posted: Vec<&'static str>,
}

impl World {
    pub fn available() -> World {
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
        let mut world = World {
            node: Node::enrolled(NodeId::default(), attributes, Timestamp(0)),
            at: 1_000_000,
            limits: Limits {
                automated_clean: false,
                queues: QueueLimits::NONE,
                ..Limits::default()
            },
            boot: 0,
            effects: Vec::new(),
            posted: Vec::new(),
        };
        world.asks(Verb::Manage);
        world.driver_says_yes();
        world.asks(Verb::Provide);
        world
    }

    /// Its machine is on, its agent has not called yet.
    pub fn awaiting_agent() -> World {
        let mut world = World::available();
        world.asks(Verb::Active);
        world.driver_says_yes();
        world
    }

    /// Its agent has called; the conductor wants to know its steps.
    pub fn agent_arrived() -> World {
        let mut world = World::awaiting_agent();
        world.agent_comes();
        world
    }

    /// The write is decided, and nothing of it has left yet.
    pub fn about_to_write() -> World {
        let mut world = World::agent_arrived();
        world.command_runs("get_deploy_steps", steps_of(&[]));
        world
    }

    /// The agent works on the write.
    pub fn writing() -> World {
        let mut world = World::about_to_write();
        world.survey(&[]);
        world.posted(Status::Running, Value::Null);
        world
    }

    pub fn active() -> World {
        let mut world = World::writing();
        world.ends_active();
        world
    }

    /// From the running write to the end.
    pub fn ends_active(&mut self) {
        self.polled(Status::Succeeded, json!({}));
        self.command_runs("get_partition_uuids", json!({}));
        self.driver_says_yes();
        self.survey(&[]);
        self.posted(Status::Running, Value::Null);
        self.says(AgentEvent::PollFailed(away()));
        self.driver_says_yes();
        self.driver_says_yes();
        assert_eq!(self.state(), "active", "{:?}", self.node.last_error);
    }

    pub fn go(&mut self, event: Event) -> Step {
        let now = Now {
            at: Timestamp(self.at),
            limits: &self.limits,
        };
        let step = step(&self.node, event, now);
        if matches!(step.reply, Reply::Refused(_)) {
            assert_eq!(step.node, self.node, "a refusal changes nothing");
            assert!(step.effects.is_empty() && step.history.is_empty());
        }
        self.node = step.node.clone();
        self.effects = step.effects.clone();
        if self.posts() {
            let open = self.node.open_command().expect("what is sent is open");
            self.posted.push(open.request.short_name());
        }
        step
    }

    pub fn asks(&mut self, verb: Verb) -> Step {
        self.go(Event::Provision {
            verb,
            options: ProvisionOptions::default(),
        })
    }

    /// `active`, with a step of the user's own.
    pub fn asks_active_with(&mut self, step: WorkStep) {
        self.go(Event::Provision {
            verb: Verb::Active,
            options: ProvisionOptions {
                steps: vec![step],
                ..Default::default()
            },
        });
    }

    pub fn driver_says(&mut self, answer: Result<DriverAnswer, String>) -> Step {
        let call = self.node.driver_call.expect("the driver is at work").number;
        self.go(Event::Driver { call, answer })
    }

    pub fn driver_says_yes(&mut self) -> Step {
        self.driver_says(Ok(DriverAnswer { power: None }))
    }

    pub fn driver_is_asked(&self) -> Option<DriverRequest> {
        self.node.driver_call.map(|call| call.request)
    }

    pub fn lookup(&mut self) -> Step {
        let fresh_nonce = format!("nonce of boot {} at {}", self.boot, self.at);
        self.go(Event::Lookup { fresh_nonce })
    }

    /// A new boot looks itself up and sends its first heartbeat.
    pub fn agent_comes(&mut self) {
        self.boot += 1;
        self.lookup();
        let step = self.heartbeats(TokenMatch::Right);
        assert_eq!(step.reply, Reply::Done);
    }

    pub fn heartbeats(&mut self, token: TokenMatch) -> Step {
        let heartbeat = Heartbeat {
            callback_url: self.url(),
            agent_version: Some("13.0.0".to_owned()),
            certificate: Some(format!("certificate of boot {}", self.boot)),
            token,
        };
        self.go(Event::Heartbeat(heartbeat))
    }

    pub fn url(&self) -> String {
        format!("https://192.0.2.{}:9999", self.boot)
    }

    /// The agent's answer to whatever is open.
    pub fn says(&mut self, event: AgentEvent) -> Step {
        let open = self.node.open_command().expect("a command is open");
        let (id, attempt) = (open.id, open.attempt);
        self.go(Event::Command { id, attempt, event })
    }

    pub fn survey(&mut self, entries: &[Entry]) -> Step {
        let instance = Instance {
            started_at: format!("boot {}", self.boot),
            callback_url: self.url(),
            certificate_sha256: None,
        };
        self.says(AgentEvent::Surveyed {
            instance,
            entries: entries.to_vec(),
        })
    }

    pub fn posted(&mut self, status: Status, result: Value) -> Step {
        let entry = self.entry(status, result);
        self.says(AgentEvent::Posted(PostAnswer::Accepted(entry)))
    }

    pub fn polled(&mut self, status: Status, result: Value) -> Step {
        let entry = self.entry(status, result);
        self.says(AgentEvent::Polled(entry))
    }

    /// The open command is sent and ends well at once.
    pub fn command_runs(&mut self, name: &str, result: Value) {
        assert_eq!(self.open_name(), Some(name));
        self.survey(&[]);
        assert!(self.posts(), "sent after the survey");
        self.posted(Status::Succeeded, result);
    }

    /// The open command, as the agent lists it.
    pub fn entry(&self, status: Status, result: Value) -> Entry {
        let open = self.node.open_command().expect("a command is open");
        entry(
            &format!("agent {}", open.id),
            open.request.short_name(),
            status,
            result,
        )
    }

    pub fn open_name(&self) -> Option<&'static str> {
        Some(self.node.open_command()?.request.short_name())
    }

    pub fn open_phase(&self) -> &Phase {
        &self.node.open_command().expect("a command is open").phase
    }

    /// What the agent is to be asked next.
    pub fn next_question(&self) -> Option<&AgentEffect> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Command { effect, .. } => Some(effect),
            Effect::Driver(_) => None,
        })
    }

    pub fn posts(&self) -> bool {
        self.next_question() == Some(&AgentEffect::Post)
    }

    pub fn deploy(&self) -> &Work {
        match &self.node.provision {
            Provision::Working(deploy) => deploy,
            other => panic!("not deploying: {other:?}"),
        }
    }

    pub fn phase(&self) -> WorkPhase {
        self.deploy().phase
    }

    pub fn state(&self) -> &'static str {
        self.node.provision_state().name()
    }

    pub fn last_error(&self) -> &str {
        self.node.last_error.as_deref().unwrap_or_default()
    }

    /// Time passes, and the timer looks.
    pub fn waits(&mut self, ms: i64) -> Step {
        self.at += ms;
        self.go(Event::DeadlineReached)
    }
}

pub fn entry(id: &str, name: &str, status: Status, result: Value) -> Entry {
    Entry {
        id: id.to_owned(),
        command_name: name.to_owned(),
        status,
        error_kind: String::new(),
        error_message: String::new(),
        result,
        operation: None,
    }
}

/// What `get_deploy_steps` answers on an agent with these steps besides its own `write_image`.
pub fn steps_of(more: &[Value]) -> Value {
    let mut steps = vec![json!({"step": "write_image", "interface": "deploy", "priority": 0})];
    steps.extend_from_slice(more);
    json!({"deploy_steps": {"Generic": steps}, "hardware_manager_version": {"Generic": "1"}})
}

pub fn away() -> Unreadable {
    Unreadable::Unreachable {
        why: "no route to host".to_owned(),
    }
}
