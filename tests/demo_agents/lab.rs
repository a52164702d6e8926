//! One machine, the API it calls, and a client in the conductor's place.

use std::time::Duration;

use serde_json::{Value, json};
use upbeat::demo::{Faults, Fleet, FleetOptions, Journal};

use crate::stub_api::{self, StubApi};

pub const MAC: &str = "52:54:00:aa:00:01";
pub const LIMIT: Duration = Duration::from_secs(10);
pub const TOKEN: &str = stub_api::TOKEN;

/// One machine, the API it calls, and a client in the conductor's place.
pub struct Lab {
    pub api: StubApi,
    pub fleet: Fleet,
    pub client: reqwest::Client,
}

impl Lab {
    pub async fn new(faults: Faults) -> Self {
        Self::with(faults, quick(), StubApi::start().await)
    }

    pub fn with(faults: Faults, options: FleetOptions, api: StubApi) -> Self {
        let fleet = Fleet::new(&api.url, options);
        fleet.add(MAC, faults);
        let client = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .tls_info(true)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .timeout(LIMIT)
            .build()
            .unwrap();
        Self { api, fleet, client }
    }

    /// Switches on and waits for the first heartbeat.
    pub async fn boot(&self) -> Journal {
        self.fleet.power(MAC, true);
        self.wait(|journal| journal.heartbeats_accepted() > 0).await
    }

    pub async fn wait(&self, wished: impl FnMut(&Journal) -> bool) -> Journal {
        self.fleet
            .wait_for(MAC, LIMIT, wished)
            .await
            .unwrap_or_else(|journal| panic!("not in time: {journal:#?}"))
    }

    pub fn url(&self, path: &str) -> String {
        format!(
            "{}{path}",
            self.fleet
                .journal(MAC)
                .callback_url
                .expect("the agent has announced itself")
        )
    }

    pub async fn get(&self, path: &str) -> Result<(u16, Value), reqwest::Error> {
        let answer = self
            .client
            .get(self.url(path))
            .query(&[("agent_token", TOKEN)])
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    pub async fn list(&self) -> Vec<Value> {
        let (status, body) = self.get("/v1/commands/").await.unwrap();
        assert_eq!(status, 200, "{body}");
        body["commands"].as_array().unwrap().clone()
    }

    pub async fn post(
        &self,
        name: &str,
        params: Value,
        wait: bool,
    ) -> Result<(u16, Value), reqwest::Error> {
        let query = [
            ("wait", wait.to_string()),
            ("agent_token", TOKEN.to_owned()),
        ];
        let body = json!({"name": name, "params": params});
        let answer = self
            .client
            .post(self.url("/v1/commands/"))
            .query(&query)
            .json(&body)
            .send()
            .await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    pub async fn write_image(&self, wait: bool) -> Result<(u16, Value), reqwest::Error> {
        self.post("deploy.execute_deploy_step", write_image(), wait)
            .await
    }
}

pub fn quick() -> FleetOptions {
    FleetOptions {
        boot_delay: Duration::from_millis(5),
        write_time: (Duration::from_millis(40), Duration::from_millis(60)),
        pace: 0.005,
        ..FleetOptions::default()
    }
}

pub fn slow() -> Faults {
    Faults::none().slow_write(Duration::from_secs(60))
}

pub fn node() -> Value {
    json!({"uuid": stub_api::NODE, "properties": {}, "instance_info": {}, "driver_internal_info": {}})
}

pub fn write_image() -> Value {
    json!({"step": step(), "node": node(), "ports": [], "deploy_version": null})
}

pub fn step() -> Value {
    json!({
        "interface": "deploy",
        "step": "write_image",
        "args": {
            "image_info": {
                "id": "small.raw", "urls": ["http://127.0.0.1:1/small.raw"], "disk_format": "raw",
                "stream_raw_images": true, "os_hash_algo": "sha256", "os_hash_value": "00ff", "node_uuid": stub_api::NODE,
            },
            "configdrive": null,
        },
        "x_operation_id": "op-7",
    })
}

pub fn fault(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer.1["faultstring"].as_str().unwrap_or_default(),
    )
}
