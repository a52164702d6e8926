//! What users of the API wait for: a page of 1,000 nodes under every kind of filter, one node, a new node, a change that is stored,
//! and whether the next reader sees it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::load::{Load, Until};
use super::process::Process;
use super::report::Target;
use super::{Bench, load, requests, site};

const PART: &str = "api";
const SHORT: &str = "fields=uuid,name,provision_state";
const PAGES: u64 = 200;
const SINGLE: u64 = 10_000;
const CHANGED: u64 = 5_000;
const IN_FLIGHT: usize = 16;
const CHANGES_LOOKED_AT: u64 = 500;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let nodes = bench.options.nodes;
    let waiting = bench.options.waiting;
    site::fill_some_waiting(&place.url, nodes, waiting, site::heard).await?;
    let conductor = bench.conductor(&place).await?;
    let usual = Load {
        address: conductor.address,
        connections: 1,
        per_s: None,
        until: Until::Sent(PAGES),
        write: Arc::new(|_, _| {}),
    };
    for (what, query) in [
        ("a page of 1,000 through the whole list", String::new()),
        (
            "... that wait",
            "provision_state=wait call-back".replace(' ', "%20"),
        ),
        (
            "... by resource class",
            "resource_class=baremetal.large".to_owned(),
        ),
        (
            "... of a driver, sorted by name",
            "driver=fake-hardware&sort_key=name".to_owned(),
        ),
        (
            "... not in maintenance, newest first",
            "maintenance=false&sort_key=created_at&sort_dir=desc".to_owned(),
        ),
        ("... without an instance", "associated=false".to_owned()),
        (
            "... whose description tells something (none)",
            "description_contains=nothing".to_owned(),
        ),
        ("... of an owner (none)", "owner=nobody".to_owned()),
    ] {
        // Behind some node or other; the first page has none.
        let is_walk = query.is_empty();
        let write: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
            let place = number * 1_000 % nodes.max(1);
            let marker = match place {
                1.. if is_walk => format!("&marker={}", site::id(place - 1)),
                _ => String::new(),
            };
            let path = format!("/v1/nodes?limit=1000&{SHORT}&{query}{marker}");
            *out = requests::request("GET", &path, None);
        });
        let measured = load::drive(Load {
            write,
            ..usual.clone()
        })
        .await?;
        bench
            .report
            .add(PART, &format!("{what}: median"), measured.ms(500), "ms");
        bench
            .report
            .add(PART, &format!("{what}: 99 %"), measured.ms(990), "ms")
            .at_most(20.0);
        bench
            .report
            .expect_none(PART, format!("{what}: failed"), measured.bad());
    }
    let any_node = move |number: u64| format!("/v1/nodes/{}", site::id(number * 7919 % nodes));
    let one: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        *out = requests::request("GET", &any_node(number), None);
    });
    let change: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let patch = json!([{"op": "add", "path": "/extra/seen", "value": number}]);
        // Those that rest: the others are busy.
        let node = site::id(waiting + number % (nodes - waiting).max(1));
        *out = requests::request("PATCH", &format!("/v1/nodes/{node}"), Some(&patch));
    });
    let new: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let node = json!({
            "driver": "fake-hardware", "name": format!("new-{number}"), "resource_class": "baremetal.large",
            "properties": {"cpu_arch": "x86_64"}, "driver_info": {"address": "10.0.0.1", "password": "not-so-secret"},
        });
        *out = requests::request("POST", "/v1/nodes", Some(&node));
    });
    for (what, write, times, least, most_ms) in [
        ("one node", one, SINGLE, None, Some(5.0)),
        ("a change, stored", change, CHANGED, None, Some(20.0)),
        ("a new node, stored", new, CHANGED, Some(500.0), None),
    ] {
        let load = Load {
            connections: IN_FLIGHT,
            until: Until::Sent(times),
            write,
            ..usual.clone()
        };
        let measured = load::drive(load).await?;
        let figures =
            bench
                .report
                .add_load(PART, &format!("{what}, {IN_FLIGHT} at a time"), &measured);
        figures.rate.target = least.map(Target::AtLeast);
        figures.slow.target = most_ms.map(Target::AtMost);
    }
    let unseen = changes_not_seen_at_once(&conductor, waiting).await?;
    bench.report.expect_none(
        PART,
        format!("changes the next reader did not see, of {CHANGES_LOOKED_AT}"),
        unseen,
    );
    conductor.stop().await;
    Ok(PART)
}

/// Changes a node, then reads it, alone and in a list.
async fn changes_not_seen_at_once(conductor: &Process, first: u64) -> Result<u64, String> {
    let client = reqwest::Client::new();
    let mut unseen = 0;
    for number in first..first + CHANGES_LOOKED_AT {
        let id = site::id(number);
        let url = format!("http://{}/v1/nodes/{id}", conductor.address);
        let name = format!("renamed-{number}");
        let patch = json!([{"op": "replace", "path": "/name", "value": name}]);
        let ask = |request: reqwest::RequestBuilder| {
            request
                .header("X-OpenStack-Ironic-API-Version", "1.110")
                .send()
        };
        let changed = ask(client.patch(&url).json(&patch))
            .await
            .map_err(|error| error.to_string())?;
        if !changed.status().is_success() {
            return Err(format!("a change was answered {}", changed.status()));
        }
        let mut names = Vec::new();
        let marker = match number {
            0 => String::new(),
            number => format!("&marker={}", site::id(number - 1)),
        };
        let list = format!(
            "http://{}/v1/nodes?limit=1&fields=name{marker}",
            conductor.address
        );
        for (url, pointer) in [(url.clone(), "/name"), (list, "/nodes/0/name")] {
            let shown = ask(client.get(&url))
                .await
                .map_err(|error| error.to_string())?;
            let shown: Value = shown.json().await.map_err(|error| error.to_string())?;
            names.push(shown.pointer(pointer).cloned());
        }
        if names.iter().any(|shown| *shown != Some(json!(name))) {
            unseen += 1;
        }
    }
    Ok(unseen)
}
