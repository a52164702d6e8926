//! The life of a host as the baremetal-operator of Metal3 lives it, against the program as it is started by a user.
//!
//! What is sent, and what the operator and gophercloud insist on in the answers, is written down in
//! `tests/fixtures/metal3`; this file only sends and compares.

#[path = "support/lab.rs"]
mod lab;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lab::{Auth, Lab, PASSWORD, USER};
use serde::Deserialize;
use serde_json::Value;

const LIFE: &str = include_str!("fixtures/metal3/host.toml");
/// Longer than any work here takes.
const LIMIT: Duration = Duration::from_secs(60);
/// The operator comes back every few seconds; a test need not wait so long.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Life {
    request: Vec<Request>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    why: String,
    send: String,
    body: Option<String>,
    codes: Vec<u16>,
    answer: Option<String>,
    not: Option<String>,
    #[serde(default)]
    keep: HashMap<String, String>,
    until: Option<String>,
    #[serde(default)]
    passing: Vec<String>,
    #[serde(default)]
    anonymous: bool,
    /// Sent only to an endpoint that ends so; to all unless given.
    endpoint: Option<String>,
    /// Sent only with these minor versions; with all unless given.
    versions: Option<Vec<u32>>,
}

/// How the operator is set up.
struct Setting {
    auth: Auth,
    /// What the endpoint ends with.
    suffix: &'static str,
    version: u32,
}

impl Request {
    fn is_for(&self, setting: &Setting) -> bool {
        let endpoint = self.endpoint.as_deref();
        let versions = self.versions.as_deref();
        endpoint.is_none_or(|endpoint| endpoint == setting.suffix)
            && versions.is_none_or(|versions| versions.contains(&setting.version))
    }
}

struct Operator {
    setting: Setting,
    lab: Lab,
    client: reqwest::Client,
    kept: HashMap<String, String>,
}

impl Operator {
    async fn live(setting: Setting) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let life: Life = toml::from_str(LIFE).expect("the fixture can be read");
        let mut operator = Operator {
            lab: Lab::start(setting.auth),
            setting,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            kept: HashMap::new(),
        };
        for request in &life.request {
            if request.is_for(&operator.setting) {
                operator.make(request).await;
            }
        }
    }

    /// Makes one request and compares; repeats it if it waits for something.
    async fn make(&mut self, request: &Request) {
        let deadline = Instant::now() + LIMIT;
        let answer = loop {
            let answer = self.ask(request).await;
            let Some(until) = &request.until else {
                break answer;
            };
            if holds(&answer, &self.json(until)) {
                break answer;
            }
            let state = answer["provision_state"].as_str().unwrap_or_default();
            if !request.passing.is_empty() {
                assert!(
                    request.passing.iter().any(|passing| passing == state),
                    "{} passes through {state:?}: {answer:#}\n{}",
                    self.told(request),
                    self.lab.log()
                );
            }
            assert!(
                Instant::now() < deadline,
                "{} is not over: {answer:#}\n{}",
                self.told(request),
                self.lab.log()
            );
            tokio::time::sleep(PAUSE).await;
        };
        for (wanted, is_wanted) in [(&request.answer, true), (&request.not, false)] {
            if let Some(wanted) = wanted {
                assert_eq!(
                    holds(&answer, &self.json(wanted)),
                    is_wanted,
                    "{}: {wanted}\nin {answer:#}",
                    self.told(request)
                );
            }
        }
        for (name, pointer) in &request.keep {
            let value = answer.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("no {pointer} in {answer:#}"));
            self.kept.insert(name.clone(), value.to_owned());
        }
    }

    /// The body of the answer; `null` if it is empty.
    async fn ask(&self, request: &Request) -> Value {
        let send = self.filled(&request.send);
        let (method, path) = send.split_once(' ').expect("method and path");
        let url = format!("{}{}{path}", self.lab.url, self.setting.suffix);
        let mut builder = self
            .client
            .request(method.parse().unwrap(), url)
            .header("Accept", "application/json")
            .header("User-Agent", "gophercloud/v2.13.0");
        if !request.anonymous {
            let version = format!("1.{}", self.setting.version);
            builder = builder
                .header("OpenStack-API-Version", format!("baremetal {version}"))
                .header("X-OpenStack-Ironic-API-Version", version);
            if self.setting.auth == Auth::HttpBasic {
                builder = builder.basic_auth(USER, Some(PASSWORD));
            }
        }
        if let Some(body) = &request.body {
            builder = builder.json(&self.json(body));
        }
        let answer = builder.send().await.expect("the API answers");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("a whole answer");
        assert!(
            request.codes.contains(&status),
            "{}: {status}, not one of {:?}: {text}\n{}",
            self.told(request),
            request.codes,
            self.lab.log()
        );
        if status == 202 || status == 204 {
            assert_eq!(text, "", "{}: gophercloud discards it", self.told(request));
        }
        if text.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error} in {text}", self.told(request)))
    }

    fn told(&self, request: &Request) -> String {
        format!("{} ({})", self.filled(&request.send), request.why)
    }

    fn filled(&self, text: &str) -> String {
        self.kept
            .iter()
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
    }

    fn json(&self, text: &str) -> Value {
        serde_json::from_str(&self.filled(text))
            .unwrap_or_else(|error| panic!("the fixture: {error} in {text}"))
    }
}

/// Whether all that is wanted is there: objects may hold more, lists must hold a match for each wanted entry.
fn holds(seen: &Value, wanted: &Value) -> bool {
    match (seen, wanted) {
        (Value::Object(seen), Value::Object(wanted)) => {
            (wanted.is_empty() && seen.is_empty())
                || !wanted.is_empty()
                    && wanted
                        .iter()
                        .all(|(key, value)| seen.get(key).is_some_and(|seen| holds(seen, value)))
        }
        (Value::Array(seen), Value::Array(wanted)) => {
            (wanted.is_empty() && seen.is_empty())
                || !wanted.is_empty()
                    && wanted
                        .iter()
                        .all(|wanted| seen.iter().any(|seen| holds(seen, wanted)))
        }
        _ => seen == wanted,
    }
}

#[test]
fn what_holds_what() {
    use serde_json::json;
    let seen = json!({"a": 1, "list": [{"x": 1, "y": 2}, {"x": 3}], "empty": {}});
    for wanted in [
        json!({"a": 1}),
        json!({"list": [{"x": 3}, {"y": 2}]}),
        json!({"empty": {}}),
    ] {
        assert!(holds(&seen, &wanted), "{wanted}");
    }
    for wanted in [
        json!({"a": 2}),
        json!({"b": null}),
        json!({"list": []}),
        json!({"list": [{"x": 4}]}),
        json!({}),
    ] {
        assert!(!holds(&seen, &wanted), "{wanted}");
    }
}

#[tokio::test]
async fn a_host_lives_with_the_newest_version_the_operator_knows() {
    Operator::live(Setting {
        auth: Auth::None,
        suffix: "/v1",
        version: 110,
    })
    .await;
}

#[tokio::test]
async fn a_host_lives_with_a_password_and_paths_without_version() {
    Operator::live(Setting {
        auth: Auth::HttpBasic,
        suffix: "",
        version: 110,
    })
    .await;
}

#[tokio::test]
async fn a_host_lives_with_the_oldest_version_the_operator_takes() {
    Operator::live(Setting {
        auth: Auth::None,
        suffix: "/v1",
        version: 89,
    })
    .await;
}
