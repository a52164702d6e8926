//! The conductor against the real ironic-python-agent while something goes wrong: lost requests and replies, outages in either
//! direction, bad answers, killed agents and killed conductors.
//!
//! Two proxies stand in the conversation, one for each direction; see `real_agent_support/proxy.rs`. What an agent was asked to
//! do is counted twice and independently: by the proxy, and by the image server, which sees a download for each write.
//! The image server gives out half of the image until the test opens it, so that a write lasts exactly as long as a test needs.
//!
//! Same rules as in `real_agent.rs` for a machine that can't run the agent.

#[expect(
    dead_code,
    reason = "shared with another test, which needs other parts"
)]
mod real_agent_support;

use real_agent_support::conductor::{Conductor, Settings};
use real_agent_support::images::{Image, ImageServer};
use real_agent_support::machine::{Agent, Machine};
use real_agent_support::proxy::{Absence, Fault, Point, Proxy, Request};
use real_agent_support::{eventually, real_agent_is_here};
use serde_json::{Value, json};

const WRITE: &str = "write_image";

/// A conductor, a machine, and everything between and around them.
struct Lab {
    conductor: Conductor,
    /// On the agent's way to the conductor.
    to_conductor: Proxy,
    /// On the conductor's way to the agent.
    to_agent: Proxy,
    images: ImageServer,
    image: Image,
    machine: Machine,
    node: String,
    agent: Option<Agent>,
}

impl Lab {
    /// A node that is available.
    async fn start(settings: Settings) -> Lab {
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
    async fn deploy(&mut self) {
        let verb = json!({"target": "active"});
        self.conductor.ask(&self.node, verb).await;
        self.conductor
            .reaches(&self.node, &["wait call-back"])
            .await;
        self.boot();
    }

    /// Switches the machine on, off before if it was on.
    fn boot(&mut self) {
        self.agent = None;
        let port = format!("advertise_port={}", self.to_agent.port);
        let agent = self
            .machine
            .boot_with(&self.to_conductor.url, &["--set", &port]);
        self.to_agent.lead_to(agent.port);
        self.agent = Some(agent);
    }

    /// Waits until the agent is in the middle of its `number`th write.
    async fn writing(&self, number: usize) {
        eventually("the agent to write", async || {
            (self.images.downloads() == number).then_some(())
        })
        .await;
    }

    /// The deploy ends well, after as many writes: that many came to the agent, as many downloads there were, and the disk holds
    /// the image.
    async fn ends_active(mut self, writes: usize) {
        self.images.open();
        let node = self
            .conductor
            .reaches(&self.node, &["active", "deploy failed"])
            .await;
        assert_eq!(node["provision_state"], "active", "{}", node["last_error"]);
        assert_eq!(node["last_error"], Value::Null);
        let mut agent = self.agent.take().expect("only an agent can write an image");
        agent.was_powered_off().await;
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

fn is_write(request: &Request) -> bool {
    request.is_dispatch_of(WRITE)
}

#[tokio::test]
async fn reply_to_write_image_lost_while_it_runs() {
    if !real_agent_is_here("reply_to_write_image_lost_while_it_runs") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    lab.to_agent.harm(1, Fault::LoseReply, is_write);
    lab.deploy().await;
    lab.writing(1).await;
    lab.to_agent.faults_happened().await;
    // It knows the command again, and polls it.
    lab.to_agent
        .passes("a poll of the command", Request::is_poll_of_one)
        .await;
    lab.ends_active(1).await;
}
