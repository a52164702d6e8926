//! What users of the API wait for, with 10,000 nodes stored: a page of 1,000 nodes, one node, a new node, a change that is stored.
//! Claims: 99 of 100 pages within 20 ms and single nodes within 5 ms; 500 nodes created a second; 99 of 100 changes stored within
//! 20 ms. The load generator runs in the same process and shares the cores.
//!
//! `cargo bench --bench api`

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Client, Method};
use serde_json::{Value, json};

const NODES: u64 = 10_000;
const PAGES: u64 = 500;
const WHOLE_PAGES: u64 = 50;
const SINGLE: u64 = 10_000;
const CREATED: u64 = 5_000;
const CHANGED: u64 = 5_000;
/// How many requests are under way at once, where it is not one.
const IN_FLIGHT: u64 = 16;

struct Caller {
    url: String,
    client: Client,
}

impl Caller {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>, status: u16) -> Duration {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .header("X-OpenStack-Ironic-API-Version", "1.115");
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let sent = Instant::now();
        let answer = request.send().await.expect("an answer");
        let seen = answer.status().as_u16();
        let text = answer.bytes().await.expect("a whole answer");
        let took = sent.elapsed();
        assert_eq!(seen, status, "{path}: {}", String::from_utf8_lossy(&text));
        took
    }

    /// `times` requests, each made by `ask` from its number, `in_flight` at a time.
    async fn many(
        &self,
        times: u64,
        in_flight: u64,
        ask: impl AsyncFn(&Caller, u64) -> Duration,
    ) -> (Duration, Vec<Duration>) {
        let (next, ask) = (AtomicU64::new(0), &ask);
        let began = Instant::now();
        let callers = (0..in_flight).map(|_| async {
            let mut each = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= times {
                    return each;
                }
                each.push(ask(self, number).await);
            }
        });
        let each = join_all(callers).await.concat();
        (began.elapsed(), each)
    }
}

fn main() {
    common::print_machine();
    common::choose_tls();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = common::config(folder.path());
    actix_web::rt::System::new().block_on(async {
        common::fill(&config.database.url, NODES, common::described).await;
        let running = upbeat::serve::start(&config, None)
            .await
            .expect("the conductor starts");
        let caller = Caller {
            url: format!("http://{}", running.address),
            client: common::client(),
        };
        println!("{NODES} nodes stored");
        pages(
            &caller,
            PAGES,
            "fields=uuid,name,provision_state",
            "claim: 99 % within 20 ms",
        )
        .await;
        pages(&caller, PAGES, "", "the short form that lists show").await;
        pages(
            &caller,
            WHOLE_PAGES,
            "detail=true",
            "all fields of all nodes",
        )
        .await;
        single(&caller).await;
        changes(&caller).await;
        creations(&caller).await;
        running.stop().await;
    });
}

/// Pages of 1,000 nodes, one after the other through the whole list.
async fn pages(caller: &Caller, pages: u64, query: &str, about: &str) {
    let (_, each) = caller
        .many(pages, 1, async |caller, number| {
            // Behind the last node of the page before; the first page has none.
            let place = number % (NODES / 1_000) * 1_000;
            let marker = match place {
                0 => String::new(),
                place => format!("&marker={}", common::id(place - 1)),
            };
            let path = format!("/v1/nodes?limit=1000&{query}{marker}");
            caller.ask(Method::GET, &path, None, 200).await
        })
        .await;
    println!(
        "a page of 1000 nodes, {query:?}: {} ({about})",
        common::spread(each)
    );
}

async fn single(caller: &Caller) {
    for in_flight in [1, IN_FLIGHT] {
        let (took, each) = caller
            .many(SINGLE, in_flight, async |caller, number| {
                let path = format!("/v1/nodes/{}", common::id(number * 7919 % NODES));
                caller.ask(Method::GET, &path, None, 200).await
            })
            .await;
        println!(
            "one node, {in_flight} at a time: {}, {:.0}/s (claim: 99 % within 5 ms)",
            common::spread(each),
            SINGLE as f64 / took.as_secs_f64()
        );
    }
}

async fn changes(caller: &Caller) {
    for in_flight in [1, IN_FLIGHT] {
        let (took, each) = caller
            .many(CHANGED, in_flight, async |caller, number| {
                let path = format!("/v1/nodes/{}", common::id(number * 7919 % NODES));
                let patch =
                    json!([{"op": "add", "path": "/extra/seen", "value": number * in_flight}]);
                caller.ask(Method::PATCH, &path, Some(patch), 200).await
            })
            .await;
        println!(
            "a change, stored, {in_flight} at a time: {}, {:.0}/s (claim: 99 % within 20 ms)",
            common::spread(each),
            CHANGED as f64 / took.as_secs_f64()
        );
    }
}

async fn creations(caller: &Caller) {
    let (took, each) = caller
        .many(CREATED, IN_FLIGHT, async |caller, number| {
            let node = json!({
                "driver": "fake-hardware", "name": format!("new-{number}"),
                "resource_class": "baremetal.large", "properties": {"cpu_arch": "x86_64"},
                "driver_info": {"address": "10.0.0.1", "password": "not-so-secret"},
            });
            caller.ask(Method::POST, "/v1/nodes", Some(node), 201).await
        })
        .await;
    println!(
        "a new node, stored, {IN_FLIGHT} at a time: {}, {:.0}/s (claim: 500/s)",
        common::spread(each),
        CREATED as f64 / took.as_secs_f64()
    );
}
