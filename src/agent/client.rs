//! One request to an agent, one classified answer.
//!
//! Used by the command actors. Nothing is repeated here and nothing is concluded; see `classify.rs` for what an answer proves.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::callback::check_callback_url;
use super::classify::{self, Reply};
use super::connection::{Clients, Connections, Settings};
use super::pin::Certificate;
use super::thread::CallingThread;
use crate::command::{Entry, Instance, PostAnswer, Unreadable};

/// Where an agent is, how it is recognised, and what it lets us in by.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The agent's base URL, as its heartbeat said.
    pub callback_url: String,
    /// The certificate it made for itself, in PEM.
    pub certificate: Option<String>,
    /// The agent token.
    pub token: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("callback_url", &self.callback_url)
            .field("has_certificate", &self.certificate.is_some())
            .finish_non_exhaustive()
    }
}

/// Calls agents, on a thread of its own. Cheap to clone; all clones share the thread and the connections.
#[derive(Clone)]
pub struct AgentClient {
    calls: Calls,
    thread: Arc<CallingThread>,
}

impl AgentClient {
    /// Makes a client.
    ///
    /// # Errors
    /// What is wrong with the CA file, in words for an operator; or that there is no thread to spare.
    pub fn new(settings: Settings) -> Result<AgentClient, String> {
        Ok(AgentClient {
            calls: Calls {
                connections: Arc::new(Connections::new(settings)?),
            },
            thread: Arc::new(CallingThread::start()?),
        })
    }

    /// Who answers there (`GET /v1/status`), and then all its commands, oldest first (`GET /v1/commands/`).
    ///
    /// # Errors
    /// Why either could not be read.
    pub async fn survey(&self, target: &Target) -> Result<(Instance, Vec<Entry>), Unreadable> {
        let (calls, target) = (self.calls.clone(), target.clone());
        let survey = async move { calls.survey(&target).await };
        self.thread.run(survey).await
    }

    /// One command by the agent's id of it (`GET /v1/commands/{id}`).
    ///
    /// # Errors
    /// Why it could not be read; `NotFound` if the agent does not know it.
    pub async fn poll(&self, target: &Target, id: &str) -> Result<Entry, Unreadable> {
        let (calls, target, id) = (self.calls.clone(), target.clone(), id.to_owned());
        let poll = async move { calls.poll(&target, &id).await };
        self.thread.run(poll).await
    }

    /// Sends a command, once, on a connection of its own (`POST /v1/commands/`). With `wait` the agent answers when the command
    /// has ended; synchronous commands are always answered so.
    pub async fn post(&self, target: &Target, wait: bool, body: &Value) -> PostAnswer {
        let (calls, target, body) = (self.calls.clone(), target.clone(), body.clone());
        let post = async move { calls.post(&target, wait, &body).await };
        self.thread.run(post).await
    }
}

/// What happens on that thread.
#[derive(Clone)]
struct Calls {
    connections: Arc<Connections>,
}

impl Calls {
    async fn survey(&self, target: &Target) -> Result<(Instance, Vec<Entry>), Unreadable> {
        let agent = self.reach(target).map_err(Unreach::for_reading)?;
        let status = agent.get("/v1/status", None);
        let started_at = classify::started_at(self.read(status).await)?;
        let commands = agent.get("/v1/commands/", Some(&target.token));
        let entries = classify::entries(self.read(commands).await)?;
        let instance = Instance {
            started_at,
            callback_url: agent.base_url,
            certificate_sha256: agent.certificate_sha256,
        };
        Ok((instance, entries))
    }

    async fn poll(&self, target: &Target, id: &str) -> Result<Entry, Unreadable> {
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(Unreadable::Garbage {
                why: "the agent gave the command an id that can't be asked for".to_owned(),
            });
        }
        let agent = self.reach(target).map_err(Unreach::for_reading)?;
        let command = agent.get(&format!("/v1/commands/{id}"), Some(&target.token));
        classify::entry(self.read(command).await)
    }

    async fn post(&self, target: &Target, wait: bool, body: &Value) -> PostAnswer {
        let agent = match self.reach(target) {
            Ok(agent) => agent,
            Err(why) => return why.for_posting(),
        };
        let request = agent
            .clients
            .commanding
            .post(format!("{}/v1/commands/", agent.base_url))
            .query(&[("wait", if wait { "true" } else { "false" })])
            .query(&[("agent_token", &target.token)])
            // The agent has only ten connections to keep.
            .header(reqwest::header::CONNECTION, "close")
            .json(body);
        classify::post_answer(self.read(request).await)
    }

    /// Checks the target against the rules and finds the clients for it.
    fn reach(&self, target: &Target) -> Result<Reached, Unreach> {
        let rules = &self.connections.settings().callback;
        let base_url = check_callback_url(&target.callback_url, rules)
            .map_err(|problem| Unreach(format!("its callback_url {problem}")))?;
        let is_tls = base_url.starts_with("https:");
        let certificate = match &target.certificate {
            Some(pem) if is_tls => Some(Certificate::from_pem(pem).map_err(Unreach)?),
            _ => None,
        };
        if is_tls && certificate.is_none() && !self.connections.has_roots() {
            return Err(Unreach(
                "it uses TLS but sent no certificate with its heartbeat, and no ca_file is set in [agent] to verify it by"
                    .to_owned(),
            ));
        }
        let certificate_sha256 = certificate.as_ref().map(|pinned| pinned.sha256.clone());
        let clients = self
            .connections
            .to(&base_url, certificate)
            .map_err(Unreach)?;
        Ok(Reached {
            base_url,
            certificate_sha256,
            clients,
        })
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Reply {
        let max = self.connections.settings().response_bytes_max;
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Reply::from_error(error),
        };
        let status = response.status().as_u16();
        if response
            .content_length()
            .is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > max))
        {
            return Reply::TooLarge { max };
        }
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > max => {
                    return Reply::TooLarge { max };
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Reply::Complete { status, body },
                Err(error) => return Reply::cut_off(error),
            }
        }
    }
}

/// An agent that may be called.
struct Reached {
    base_url: String,
    certificate_sha256: Option<String>,
    clients: Clients,
}

impl Reached {
    fn get(&self, path: &str, token: Option<&str>) -> reqwest::RequestBuilder {
        let request = self.clients.reading.get(format!("{}{path}", self.base_url));
        match token {
            Some(token) => request.query(&[("agent_token", token)]),
            None => request,
        }
    }
}

/// Why an agent may not, or cannot, be called at all.
struct Unreach(String);

impl Unreach {
    fn for_reading(self) -> Unreadable {
        Unreadable::Unreachable { why: self.0 }
    }

    fn for_posting(self) -> PostAnswer {
        PostAnswer::NeverSent { why: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_never_shows_its_token() {
        let target = Target {
            callback_url: "https://10.0.0.1:9999".to_owned(),
            certificate: None,
            token: "very-secret".to_owned(),
        };
        assert!(!format!("{target:?}").contains("very-secret"));
    }
}
