//! Agents that write an image for ever, or never answer at all: what conductors ask them, and how often.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Addresses of loopback they share.
const ADDRESSES: u8 = 100;
/// How long they take for an answer.
const ANSWERED_AFTER: Duration = Duration::from_millis(5);

/// What conductors asked.
#[derive(Default)]
pub struct Asked {
    all: AtomicU64,
    posts: AtomicU64,
    at_once: AtomicUsize,
    at_once_most: AtomicUsize,
}

impl Asked {
    /// Requests so far.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Commands so far.
    pub fn posts(&self) -> u64 {
        self.posts.load(Ordering::Relaxed)
    }

    /// The most requests at once since this was last asked.
    pub fn take_most_at_once(&self) -> usize {
        let now = self.at_once.load(Ordering::Relaxed);
        self.at_once_most.swap(now, Ordering::Relaxed)
    }
}

/// Agents, listening until dropped.
pub struct Agents {
    urls: Vec<String>,
    /// What they were asked.
    pub asked: Arc<Asked>,
    _listening: JoinSet<()>,
}

impl Agents {
    /// Agents that say of every command that it is running.
    ///
    /// # Errors
    /// There is no port.
    pub async fn writing() -> std::io::Result<Agents> {
        Agents::listen(true).await
    }

    /// Agents that accept connections and say nothing.
    ///
    /// # Errors
    /// There is no port.
    pub async fn hanging() -> std::io::Result<Agents> {
        Agents::listen(false).await
    }

    async fn listen(answering: bool) -> std::io::Result<Agents> {
        let asked = Arc::new(Asked::default());
        let mut listening = JoinSet::new();
        let mut urls = Vec::new();
        for last in 1..=ADDRESSES {
            let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 1, last), 0)).await?;
            urls.push(format!("http://{}", listener.local_addr()?));
            listening.spawn(accept(listener, asked.clone(), answering));
        }
        Ok(Agents {
            urls,
            asked,
            _listening: listening,
        })
    }

    /// The callback URL of node number `number`.
    pub fn url(&self, number: u64) -> &str {
        let index = usize::try_from(number).unwrap_or(0) % self.urls.len();
        &self.urls[index]
    }

    /// Requests in the fullest of the seconds that are to come, `seconds` of them; and the most at once.
    pub async fn watch(&self, seconds: u64) -> (u64, usize) {
        self.asked.take_most_at_once();
        let mut most = 0;
        let mut before = self.asked.all();
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.asked.all();
            most = most.max(now - before);
            before = now;
        }
        (most, self.asked.take_most_at_once())
    }
}

async fn accept(listener: TcpListener, asked: Arc<Asked>, answering: bool) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let asked = asked.clone();
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, asked.clone(), answering));
            // Connections end as the other side likes.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Asked>,
    answering: bool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    asked.all.fetch_add(1, Ordering::Relaxed);
    let now = asked.at_once.fetch_add(1, Ordering::Relaxed) + 1;
    asked.at_once_most.fetch_max(now, Ordering::Relaxed);
    if request.method() == hyper::Method::POST {
        asked.posts.fetch_add(1, Ordering::Relaxed);
    }
    if !answering {
        std::future::pending::<()>().await;
    }
    let path = request.uri().path();
    let body = match path.strip_prefix("/v1/commands/") {
        Some(id) if !id.is_empty() => running(id),
        Some(_) => json!({"commands": []}),
        None => json!({"started_at": super::site::STARTED_AT, "version": "13.0.0"}),
    };
    // An agent needs a moment, too.
    tokio::time::sleep(ANSWERED_AFTER).await;
    asked.at_once.fetch_sub(1, Ordering::Relaxed);
    Ok(Response::builder()
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(body.to_string()))
        .unwrap_or_default())
}

fn running(id: &str) -> serde_json::Value {
    json!({
        "id": id, "command_name": "execute_deploy_step", "command_status": "RUNNING",
        "command_error": null, "command_result": null,
        "command_params": {"step": {"interface": "deploy", "step": "write_image"}},
    })
}
