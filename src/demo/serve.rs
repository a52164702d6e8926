//! The agent's HTTP server: routes, token, envelopes, and the faults that hit answers.
//!
//! Started by the agent process on the machine's own port; every connection is a task of that process. Routes, status
//! codes and texts are those of ironic-python-agent 13.0.0. It never runs a command itself: `commands` does.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, SERVER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::agent::{End, Process};
use super::api::AGENT_VERSION;
use super::commands;
use super::faults::{Answer, BadAnswer, Fault, WriteWhenLost};
use super::history::Refusal;
use super::journal::RefusalRecord;

const BACKLOG: u32 = 128;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// A configdrive may be large; anything larger than this is a mistake.
const BODY_BYTES_MAX: usize = 128 << 20;
const EXECUTE_STEP: &str = "deploy.execute_deploy_step";
const DOCUMENTATION: &str = "https://docs.openstack.org/ironic-python-agent/";
/// How long the first half of a truncated answer is given to arrive before the connection breaks.
const TRUNCATED_AFTER: Duration = Duration::from_millis(50);

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The connection closes without an answer.
#[derive(Debug)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the answer was dropped on purpose")
    }
}

impl std::error::Error for Dropped {}

/// Listens and answers as long as the process lives.
///
/// # Errors
/// If the socket cannot listen.
pub(crate) fn start(
    process: &Arc<Process>,
    socket: TcpSocket,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<()> {
    let listener = {
        let _runtime = process.machine.world.runtime.enter();
        socket.listen(BACKLOG)?
    };
    let acceptor = tls.map(TlsAcceptor::from);
    let this = process.clone();
    process.tasks.spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                end = this.ended() => return hold_if_dead(end, listener).await,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = connection(this.clone(), stream, acceptor.clone());
                    this.tasks.spawn(connection);
                }
                // Out of open files; other connections will end.
                Err(error) => {
                    tracing::warn!(mac = %this.machine.mac, %error, "an agent could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    Ok(())
}

/// A machine that died keeps its sockets and does nothing with them.
async fn hold_if_dead<T>(end: End, _held: T) {
    if end == End::Dies {
        std::future::pending::<()>().await;
    }
}

async fn connection(process: Arc<Process>, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    let Some(acceptor) = acceptor else {
        return answer_all(process, stream, "http").await;
    };
    let handshake = tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream));
    tokio::pin!(handshake);
    tokio::select! {
        done = &mut handshake => {
            if let Ok(Ok(stream)) = done {
                answer_all(process, stream, "https").await;
            }
        }
        end = process.ended() => hold_if_dead(end, handshake).await,
    }
}

async fn answer_all(
    process: Arc<Process>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    scheme: &'static str,
) {
    let this = process.clone();
    let service = service_fn(move |request| {
        let process = this.clone();
        async move { answer(&process, request, scheme).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(KEEP_ALIVE)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How it ended concerns the caller alone: a dropped answer ends it with an error, too.
        _ = &mut connection => {}
        end = process.ended() => hold_if_dead(end, connection).await,
    }
}

async fn answer(
    process: &Arc<Process>,
    request: Request<Incoming>,
    scheme: &'static str,
) -> Result<Response<Body>, Dropped> {
    let (head, body) = request.into_parts();
    let host = head
        .headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("127.0.0.1");
    let base = format!("{scheme}://{host}");
    let path = head.uri.path();
    let query = Query::read(head.uri.query().unwrap_or_default());
    let unversioned = path
        .strip_prefix("/v1")
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let route = unversioned.unwrap_or(path);
    let is_get = head.method == Method::GET || head.method == Method::HEAD;

    match route {
        "" | "/commands" => Ok(redirect(&base, &head.uri)),
        "/" | "/status" if !is_get => Ok(refuse(&not_allowed())),
        "/" if unversioned.is_some() => Ok(json_answer(200, &version_one(&base))),
        "/" => Ok(json_answer(200, &versions(&base))),
        "/status" => Ok(json_answer(
            200,
            &json!({"started_at": process.started_at, "version": AGENT_VERSION}),
        )),
        "/commands/" if is_get => list(process, &query),
        "/commands/" if head.method == Method::POST => run(process, &query, body).await,
        "/commands/" => Ok(refuse(&not_allowed())),
        _ => match route
            .strip_prefix("/commands/")
            .filter(|id| !id.contains('/'))
        {
            Some(id) if is_get => Ok(show(process, &query, id).await),
            Some(_) => Ok(refuse(&not_allowed())),
            None => Ok(refuse(&not_found())),
        },
    }
}

fn list(process: &Process, query: &Query) -> Result<Response<Body>, Dropped> {
    if !process.accepts_token(query.token.as_deref()) {
        return Ok(refuse(&wrong_token()));
    }
    let answer = shown(process.history.show_all());
    if process.history.is_busy() {
        return Ok(damage(process, Answer::ToCommandList, answer));
    }
    Ok(answer.into_response())
}

async fn show(process: &Process, query: &Query, id: &str) -> Response<Body> {
    if !process.accepts_token(query.token.as_deref()) {
        return refuse(&wrong_token());
    }
    if query.wait {
        process.history.finished(id).await;
    }
    shown(process.history.show(id)).into_response()
}

/// `POST /v1/commands/`.
async fn run(
    process: &Arc<Process>,
    query: &Query,
    body: Incoming,
) -> Result<Response<Body>, Dropped> {
    let body = Limited::new(body, BODY_BYTES_MAX)
        .collect()
        .await
        .map_err(|_| Dropped)?
        .to_bytes();
    let body: Result<Value, _> = serde_json::from_slice(&body);
    let name = body
        .as_ref()
        .ok()
        .and_then(|body| body["name"].as_str())
        .unwrap_or_default()
        .to_owned();
    let refused = |refusal: Refusal| {
        let record = RefusalRecord {
            name: name.clone(),
            status: refusal.status,
        };
        process.note(|journal| journal.refusals.push(record));
        Ok(refuse(&refusal))
    };
    if !process.accepts_token(query.token.as_deref()) {
        return refused(wrong_token());
    }
    let mut body = match body {
        Ok(body) => body,
        Err(error) => {
            return refused(Refusal::new(
                400,
                format!("400 Bad Request: Failed to decode JSON object: {error}"),
            ));
        }
    };
    let params = match body.get_mut("params").map(Value::take) {
        Some(Value::Object(params)) if !name.is_empty() => params,
        _ => {
            return refused(Refusal::new(
                400,
                "400 Bad Request: Missing or invalid name or params",
            ));
        }
    };

    let faults = &process.machine.faults;
    let is_step = name == EXECUTE_STEP;
    let is_lost = |fault: &Fault| (*fault == Fault::NeverReceivesFirstPost).then_some(());
    if is_step && faults.take(is_lost).is_some() {
        return Err(Dropped);
    }
    let id = match commands::execute(process, &name, params, query.wait).await {
        Ok(id) => id,
        Err(refusal) => return refused(refusal),
    };
    let loses = |fault: &Fault| {
        if let Fault::LosesFirstReply(write) = fault {
            Some(*write)
        } else {
            None
        }
    };
    if is_step && let Some(write) = faults.take(loses) {
        if write == WriteWhenLost::AlreadyFinished {
            process.history.finished(&id).await;
        }
        return Err(Dropped);
    }
    let answer = shown(process.history.show(&id));
    Ok(if is_step {
        damage(process, Answer::ToExecuteStep, answer)
    } else {
        answer.into_response()
    })
}

/// What would be answered.
struct Planned {
    status: u16,
    text: String,
}

impl Planned {
    fn into_response(self) -> Response<Body> {
        respond(self.status, "application/json", self.text)
    }
}

fn shown(result: Result<Value, Refusal>) -> Planned {
    match result {
        Ok(value) => Planned {
            status: 200,
            text: value.to_string(),
        },
        Err(refusal) => Planned {
            status: refusal.status,
            text: envelope(&refusal).to_string(),
        },
    }
}

/// Answers as planned, unless a fault is waiting for this kind of answer.
fn damage(process: &Process, which: Answer, planned: Planned) -> Response<Body> {
    let fault = process.machine.faults.take(|fault| match fault {
        Fault::BadAnswerOnce(wanted, how) if *wanted == which => Some(*how),
        _ => None,
    });
    match fault {
        None => planned.into_response(),
        Some(BadAnswer::Garbage) => respond(200, "application/json", "\u{0}\u{1}{\"id\": not json".to_owned()),
        Some(BadAnswer::BadGateway) => respond(
            502,
            "text/html",
            "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>".to_owned(),
        ),
        Some(BadAnswer::TruncatedBody) => {
            let length = planned.text.len();
            let half = Bytes::from(planned.text).slice(..length / 2);
            let frames = stream::iter([Ok(Frame::data(half))]).chain(stream::once(async {
                tokio::time::sleep(TRUNCATED_AFTER).await;
                Err(io::Error::other("the answer was cut on purpose"))
            }));
            let mut response = respond(planned.status, "application/json", String::new());
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
            *response.body_mut() = StreamBody::new(frames).boxed_unsync();
            response
        }
    }
}

/// The query parameters the agent knows.
struct Query {
    token: Option<String>,
    wait: bool,
}

impl Query {
    fn read(query: &str) -> Self {
        let mut read = Self {
            token: None,
            wait: false,
        };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match key.as_ref() {
                "agent_token" => read.token = Some(value.into_owned()),
                "wait" => read.wait = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        read
    }
}

fn wrong_token() -> Refusal {
    Refusal::new(401, "401 Unauthorized: Token invalid.")
}

fn not_allowed() -> Refusal {
    Refusal::new(
        405,
        "405 Method Not Allowed: The method is not allowed for the requested URL.",
    )
}

fn not_found() -> Refusal {
    Refusal::new(
        404,
        "404 Not Found: The requested URL was not found on the server. If you entered the URL manually please check \
         your spelling and try again.",
    )
}

fn envelope(refusal: &Refusal) -> Value {
    let faultcode = if refusal.status < 500 {
        "Client"
    } else {
        "Server"
    };
    json!({"faultcode": faultcode, "faultstring": refusal.text})
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    json_answer(refusal.status, &envelope(refusal))
}

fn json_answer(status: u16, body: &Value) -> Response<Body> {
    respond(status, "application/json", body.to_string())
}

fn respond(status: u16, content_type: &str, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text))
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, content_type)
        .header(SERVER, "ironic-python-agent")
        .body(body)
        .expect("status and headers are constants")
}

/// 308 to the same address with a slash.
fn redirect(base: &str, uri: &hyper::Uri) -> Response<Body> {
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let target = format!("{base}{}/{query}", uri.path());
    let text = format!(
        "<!doctype html>\n<title>Redirecting...</title>\n<p>See <a href=\"{target}\">{target}</a>.\n"
    );
    let mut response = respond(308, "text/html; charset=utf-8", text);
    if let Ok(target) = target.parse() {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

fn version_links(base: &str) -> Value {
    json!([
        {"href": format!("{base}/v1"), "rel": "self"},
        {"href": DOCUMENTATION, "rel": "describedby", "type": "text/html"},
    ])
}

fn versions(base: &str) -> Value {
    let version = json!({"id": "v1", "links": version_links(base)});
    json!({
        "name": "OpenStack Ironic Python Agent API",
        "description": "A simulated agent",
        "versions": [version],
        "default_version": version,
    })
}

fn version_one(base: &str) -> Value {
    let links = |name: &str| {
        json!([
            {"href": format!("{base}/v1/{name}"), "rel": "self"},
            {"href": format!("{base}/{name}"), "rel": "bookmark"},
        ])
    };
    json!({
        "commands": links("commands"),
        "status": links("status"),
        "media_types": [
            {"base": "application/json", "type": "application/vnd.openstack.ironic-python-agent.v1+json"},
        ],
        "id": "v1",
        "links": version_links(base),
    })
}
