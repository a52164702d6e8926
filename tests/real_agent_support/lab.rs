//! One deploy to which things happen: a conductor, a machine with a real agent, and a proxy in each direction between them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::conductor::{Conductor, Settings};
use super::eventually;
use super::images::{Image, ImageServer};
use super::machine::{Agent, Machine};
use super::proxy::Proxy;

/// The step that writes the image.
pub const WRITE: &str = "write_image";

/// A `deploy_callback_timeout`, in seconds, that a write may well exceed.
pub const SHORT_LIMIT: u32 = 8;

/// A conductor, a machine, and everything between and around them.
pub struct Lab {
    pub conductor: Conductor,
    /// On the agent's way to the conductor.
    pub to_conductor: Proxy,
    /// On the conductor's way to the agent.
    pub to_agent: Proxy,
    pub images: ImageServer,
    pub image: Image,
    pub machine: Machine,
    pub node: String,
    pub agent: Option<Agent>,
}

impl Lab {
    /// A node that is available.
    pub async fn start(settings: Settings) -> Lab {
        let image = Image::raw("system.raw", 8);
        let (images, machine) = (ImageServer::start_closed(), Machine::new());
        let (to_conductor, to_agent) = (Proxy::start(), Proxy::start());
        let conductor = Conductor::start_with(settings).await;
        to_conductor.lead_to(conductor.port);
        let node = conductor.node_for(&machine, images.offer(&image)).await;
        Lab {
            conductor,
            to_conductor,
            to_agent,
            images,
            image,
            machine,
            node,
            agent: None,
        }
    }

    /// Orders the deploy and switches the machine on when it is waited for.
    pub async fn deploy(&mut self) {
        let verb = json!({"target": "active"});
        self.conductor.ask(&self.node, verb).await;
        self.conductor
            .reaches(&self.node, &["wait call-back"])
            .await;
        self.boot();
    }

    /// Switches the machine on, off before if it was on.
    pub fn boot(&mut self) {
        self.agent = None;
        let port = format!("advertise_port={}", self.to_agent.port);
        let agent = self
            .machine
            .boot_with(&self.to_conductor.url, &["--set", &port]);
        self.to_agent.lead_to(agent.port);
        self.agent = Some(agent);
    }

    /// Waits until the agent is in the middle of its `number`th write.
    pub async fn writing(&self, number: usize) {
        eventually("the agent to write", async || {
            (self.images.downloads() == number).then_some(())
        })
        .await;
    }

    /// Waits until the agent says that the write has ended well.
    pub async fn write_finished(&self) {
        eventually("the write to finish", async || {
            let status = self.to_agent.agent_says(WRITE);
            (status.as_deref() == Some("SUCCEEDED")).then_some(())
        })
        .await;
    }

    /// Waits until the machine was power-cycled for a new beginning as often as that.
    pub async fn power_cycled(&self, times: usize) {
        eventually("the machine to be power-cycled", async || {
            let history = self.conductor.history(&self.node).await;
            let cycles = history.iter().filter(|event| event.contains("begun anew"));
            (cycles.count() == times).then_some(())
        })
        .await;
        self.conductor
            .reaches(&self.node, &["wait call-back"])
            .await;
    }

    /// The write goes on for that many times the short limit.
    pub async fn goes_on_for(&self, limits: f64) {
        let time = Duration::from_secs_f64(limits * f64::from(SHORT_LIMIT));
        let start = Instant::now();
        while start.elapsed() < time {
            let node = self.conductor.node(&self.node).await;
            let after = start.elapsed().as_secs();
            let state = &node["provision_state"];
            assert_eq!(
                state, "wait call-back",
                "after {after} s: {}",
                node["last_error"]
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// The log, which tells of every fault, shows nothing an agent could be commanded with.
    pub fn keeps_the_token_secret(&self) {
        let token = self.to_agent.token().expect("a command was sent");
        assert!(token.len() >= 32, "a token of {} characters", token.len());
        let shown = self.conductor.log().contains(&token);
        assert!(!shown, "the log shows the agent token");
    }

    /// The deploy ends well, after as many writes: that many came to the agent, as many downloads there were, and the disk holds
    /// the image.
    pub async fn ends_active(mut self, writes: usize) {
        self.images.open();
        let node = self
            .conductor
            .reaches(&self.node, &["active", "deploy failed"])
            .await;
        assert_eq!(node["provision_state"], "active", "{}", node["last_error"]);
        assert_eq!(node["last_error"], Value::Null);
        let mut agent = self.agent.take().expect("only an agent can write an image");
        agent.was_powered_off().await;
        self.keeps_the_token_secret();
        let (_, arrived) = self.to_agent.dispatches(WRITE);
        assert_eq!(arrived, writes, "dispatches of write_image to the agent");
        assert_eq!(self.images.downloads(), writes, "downloads of the image");
        let disk = self.machine.disk(0, self.image.content.len());
        let wrong = disk
            .iter()
            .zip(&self.image.content)
            .position(|(a, b)| a != b);
        assert_eq!(wrong, None, "the first byte that differs on the disk");
    }
}
