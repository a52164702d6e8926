//! The server itself: takes bytes in, finds out what is asked and by whom, guards against panics, limits what one request may
//! cost, and writes one log line and one measurement per request.
//!
//! ```text
//! answer ─ catch_unwind ─▶ serve: route → authentication → version → body → handler
//!    └── request id, version headers, log line, metric
//! ```
//! Nothing of a request's query or body is ever logged: both may hold secrets.

use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::dev::Server;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use futures_util::{FutureExt, StreamExt};
use tracing::Level;
use uuid::Uuid;

use super::auth::Authenticator;
use super::error::Error;
use super::microversion::{self, HEADER, HEADER_OF_SERVICES, MAXIMUM, MINIMUM, Microversion};
use super::reply::Reply;
use super::request::{Api, Request};
use super::routes::{self, Method, Route};
use super::settings::{HttpSettings, Metrics};
use super::{
    commands, conductors, discovery, drivers, health, history, maintenance, management, nodes,
    ports, power, provision, ramdisk, validate,
};
use crate::conductor::Conductor;

/// Connections that wait to be taken.
const BACKLOG: u32 = 2048;

/// Starts to listen. The returned server has to be awaited or spawned; its handle stops it gracefully: no new connections, and
/// requests in flight get `stop_grace_s` to end.
///
/// # Errors
/// The address can't be listened on, or the password file can't be read; names which.
pub fn start(
    settings: HttpSettings,
    conductor: Conductor,
    metrics: Metrics,
) -> io::Result<(Server, SocketAddr)> {
    let authenticator = Authenticator::new(&settings.auth)?;
    let listen = settings.listen;
    let (workers, connections) = (settings.workers.max(1), settings.connections_per_worker_max);
    let request_timeout = Duration::from_millis(settings.request_timeout_ms);
    let stop_grace_s = settings.stop_grace_s;
    let api = Arc::new(Api {
        settings,
        conductor,
        metrics,
        authenticator,
    });
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::from(api.clone()))
            .default_service(web::to(answer))
    })
    .workers(workers)
    .max_connections(connections)
    .client_request_timeout(request_timeout)
    .shutdown_timeout(stop_grace_s)
    .backlog(BACKLOG)
    .disable_signals()
    .bind(listen)
    .map_err(|error| io::Error::new(error.kind(), format!("can't listen on {listen}: {error}")))?;
    let address = *server
        .addrs()
        .first()
        .ok_or_else(|| io::Error::other(format!("listening on {listen} gave no address")))?;
    Ok((server.run(), address))
}

/// What is known of a request once it is served.
struct Served {
    outcome: Result<Reply, Error>,
    route: Option<Route>,
    microversion: Option<Microversion>,
}

async fn answer(http: HttpRequest, payload: web::Payload, api: web::Data<Api>) -> HttpResponse {
    let began = Instant::now();
    let request_id = format!("req-{}", Uuid::new_v4());
    let api = api.into_inner();
    let served = AssertUnwindSafe(serve(&http, payload, api.clone()))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Served {
            outcome: Err(Error::Internal),
            route: routes::find(http.path()).ok(),
            microversion: None,
        });
    let headers = version_headers(&served);
    let cause = served.outcome.as_ref().err().and_then(Error::cause);
    let cause = cause.map(str::to_owned);
    let mut response = match served.outcome {
        Ok(reply) => reply.response(),
        Err(error) => error.response(),
    };
    let method = Method::parse(http.method().as_str()).map_or("other", Method::name);
    let route = served.route.as_ref().map_or("unknown", Route::pattern);
    let status = response.status().as_u16();
    for (name, value) in headers {
        put_header(response.headers_mut(), name, &value);
    }
    for name in ["x-openstack-request-id", "openstack-request-id"] {
        put_header(response.headers_mut(), name, &request_id);
    }
    let took = began.elapsed();
    (api.metrics.on_request)(method, route, status, took.as_secs_f64());
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match weight(served.route.as_ref(), method, status) {
        Level::WARN => {
            tracing::warn!(method, route, status, ms, request_id, cause, "request");
        }
        Level::INFO => tracing::info!(method, route, status, ms, request_id, "request"),
        _ => tracing::debug!(method, route, status, ms, request_id, "request"),
    }
    response
}

/// How much an operator wants to see a request's log line: our own failures at `warn`, what operators change and what was
/// refused at `info`; the rest, which on a busy site is nearly all, at `debug`: looking, heartbeats that were taken, probes, and
/// clients that find out by a 406 which version to speak.
fn weight(route: Option<&Route>, method: &str, status: u16) -> Level {
    let is_looking = matches!(method, "GET" | "OPTIONS");
    match status {
        500.. => Level::WARN,
        406 => Level::DEBUG,
        400.. => Level::INFO,
        _ if is_looking => Level::DEBUG,
        _ if route.is_some_and(|route| route.is_for_agents() || route.is_unversioned()) => {
            Level::DEBUG
        }
        _ => Level::INFO,
    }
}

/// The three headers about versions, as far as this answer has them.
fn version_headers(served: &Served) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    let is_before_versions = match &served.outcome {
        Ok(_) => served.route.as_ref().is_some_and(Route::is_unversioned),
        Err(error) => {
            error.is_before_versions() || served.route.as_ref().is_none_or(Route::is_unversioned)
        }
    };
    if is_before_versions {
        return headers;
    }
    headers.push((microversion::HEADER_MINIMUM, MINIMUM.to_string()));
    headers.push((microversion::HEADER_MAXIMUM, MAXIMUM.to_string()));
    if let Some(version) = served.microversion {
        headers.push((HEADER, version.to_string()));
    }
    headers
}

fn put_header(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::from_str(value),
    ) {
        headers.insert(name, value);
    }
}

async fn serve(http: &HttpRequest, payload: web::Payload, api: Arc<Api>) -> Served {
    let mut served = Served {
        outcome: Err(Error::UnknownPath),
        route: None,
        microversion: None,
    };
    let found = routes::find(http.path());
    let is_open = found.as_ref().is_ok_and(Route::is_open);
    served.route = found.as_ref().ok().cloned();
    if !is_open {
        let authorization = http.headers().get(header::AUTHORIZATION);
        let checked = api
            .authenticator
            .check(authorization.map(HeaderValue::as_bytes))
            .await;
        if let Err(error) = checked {
            served.outcome = Err(error);
            return served;
        }
    }
    let known = found.and_then(|route| match Method::parse(http.method().as_str()) {
        Some(method) if route.allows(method) => Ok((route, method)),
        _ => Err(Error::MethodNotAllowed {
            allowed: route.allowed(),
        }),
    });
    let (route, method) = match known {
        Ok(known) => known,
        Err(error) => {
            served.outcome = Err(error);
            return served;
        }
    };
    let microversion = match negotiated(http.headers()) {
        Ok(version) => version,
        // The document that says which versions there are must not depend on knowing them.
        Err(_) if matches!(route, Route::Root) || route.is_unversioned() => MAXIMUM,
        Err(error) => {
            served.outcome = Err(error);
            return served;
        }
    };
    served.microversion = Some(microversion);
    served.outcome = handle(http, payload, api, &route, method, microversion).await;
    served
}

async fn handle(
    http: &HttpRequest,
    payload: web::Payload,
    api: Arc<Api>,
    route: &Route,
    method: Method,
    microversion: Microversion,
) -> Result<Reply, Error> {
    if method == Method::OPTIONS {
        return Ok(Reply::Options {
            allowed: route.allowed(),
        });
    }
    if route.since() > microversion.0 {
        return Err(match route {
            Route::Traits(_) => Error::TooNew {
                what: "traits".to_owned(),
                since: route.since(),
            },
            _ => Error::ResourceTooNew,
        });
    }
    let bytes_max = if route.is_for_agents() {
        api.settings.agent_body_bytes_max
    } else {
        api.settings.body_bytes_max
    };
    let body = read_body(http, payload, bytes_max, api.settings.request_timeout_ms).await?;
    let query = url::form_urlencoded::parse(http.query_string().as_bytes())
        .into_owned()
        .collect();
    let is_form = http
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| {
            kind.as_bytes()
                .starts_with(b"application/x-www-form-urlencoded")
        });
    let base = base(http, &api.settings);
    let request = Request {
        api,
        microversion,
        base,
        query,
        body,
        is_form,
    };
    dispatch(&request, route, method).await
}

async fn dispatch(request: &Request, route: &Route, method: Method) -> Result<Reply, Error> {
    use Method as M;
    match (route, method) {
        (Route::Root, _) => discovery::root(request),
        (Route::Version, _) => discovery::version(request),
        (Route::Lookup, _) => ramdisk::lookup(request).await,
        (Route::Heartbeat(node), _) => ramdisk::heartbeat(request, node).await,
        (Route::Nodes, M::POST) => nodes::create(request).await,
        (Route::Nodes, _) => nodes::list(request, false).await,
        (Route::NodesDetail, _) => nodes::list(request, true).await,
        (Route::Node(node), M::PATCH) => nodes::change(request, node).await,
        (Route::Node(node), M::DELETE) => nodes::delete(request, node).await,
        (Route::Node(node), _) => nodes::show(request, node).await,
        (Route::States(node), _) => nodes::states(request, node).await,
        (Route::Provision(node), _) => provision::change(request, node).await,
        (Route::Power(node), _) => power::change(request, node).await,
        (Route::Maintenance(node), M::DELETE) => maintenance::clear(request, node).await,
        (Route::Maintenance(node), _) => maintenance::set(request, node).await,
        (Route::Validate(node), _) => validate::show(request, node).await,
        (Route::NodePorts(node), _) => ports::list_of_node(request, node, false).await,
        (Route::NodePortsDetail(node), _) => ports::list_of_node(request, node, true).await,
        (Route::Commands(node), _) => commands::list(request, node).await,
        (Route::History(node), _) => history::list(request, node).await,
        (Route::HistoryEntry(node, entry), _) => history::show(request, node, entry).await,
        (Route::Traits(node), _) => nodes::traits(request, node).await,
        (Route::Inventory(node), _) => nodes::inventory(request, node).await,
        (Route::BootDevice(node) | Route::BootDevices(node), _) => {
            management::boot_device(request, node).await
        }
        (Route::Ports, M::POST) => ports::create(request).await,
        (Route::Ports, _) => ports::list(request, false).await,
        (Route::PortsDetail, _) => ports::list(request, true).await,
        (Route::Port(port), M::PATCH) => ports::change(request, port).await,
        (Route::Port(port), M::DELETE) => ports::delete(request, port).await,
        (Route::Port(port), _) => ports::show(request, port).await,
        (Route::Drivers, _) => drivers::list(request).await,
        (Route::Driver(name), _) => drivers::show(request, name).await,
        (Route::DriverProperties(name), _) => drivers::properties(request, name).await,
        (Route::Conductors, _) => conductors::list(request).await,
        (Route::Conductor(host), _) => conductors::show(request, host).await,
        (Route::Metrics, _) => Ok(Reply::Text {
            text: (request.api.metrics.text)(),
            content_type: request.api.metrics.content_type,
        }),
        (Route::Alive, _) => health::alive(),
        (Route::Ready, _) => health::ready(request).await,
    }
}

fn negotiated(headers: &HeaderMap) -> Result<Microversion, Error> {
    let texts = |name: &str| -> Result<Vec<String>, Error> {
        headers
            .get_all(name)
            .map(|value| match value.to_str() {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(Error::VersionMalformed("not plain text".to_owned())),
            })
            .collect()
    };
    let (own, of_services) = (texts(HEADER)?, texts(HEADER_OF_SERVICES)?);
    microversion::negotiate(
        own.iter().map(String::as_str),
        of_services.iter().map(String::as_str),
    )
}

/// Reads the whole body, as long as it stays small enough and keeps coming.
async fn read_body(
    http: &HttpRequest,
    mut payload: web::Payload,
    bytes_max: usize,
    wait_ms: u64,
) -> Result<Vec<u8>, Error> {
    let announced = http
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<usize>().ok());
    if announced.is_some_and(|length| length > bytes_max) {
        return Err(Error::BodyTooBig { bytes_max });
    }
    let mut body = Vec::new();
    let wait = Duration::from_millis(wait_ms);
    loop {
        match tokio::time::timeout(wait, payload.next()).await {
            Ok(None) => return Ok(body),
            Ok(Some(Ok(chunk))) if body.len() + chunk.len() > bytes_max => {
                return Err(Error::BodyTooBig { bytes_max });
            }
            Ok(Some(Ok(chunk))) => body.extend_from_slice(&chunk),
            Ok(Some(Err(_))) | Err(_) => return Err(Error::BodyTooSlow),
        }
    }
}

/// Scheme and host for links.
fn base(http: &HttpRequest, settings: &HttpSettings) -> String {
    if let Some(endpoint) = &settings.public_endpoint {
        return endpoint.trim_end_matches('/').to_owned();
    }
    if settings.trust_proxy_headers {
        let seen = http.connection_info();
        return format!("{}://{}", seen.scheme(), seen.host());
    }
    let host = http
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    match host {
        Some(host) if !host.is_empty() => format!("http://{host}"),
        _ => format!("http://{}", http.app_config().local_addr()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_sites_log_shows_changes_and_failures_only() {
        let heartbeat = Route::Heartbeat("n".to_owned());
        for (route, method, status, level) in [
            (&Route::Nodes, "GET", 200, Level::DEBUG),
            (&Route::Nodes, "GET", 406, Level::DEBUG),
            (&Route::Nodes, "POST", 201, Level::INFO),
            (&Route::Nodes, "POST", 400, Level::INFO),
            (&Route::Nodes, "GET", 503, Level::WARN),
            (&Route::Lookup, "GET", 404, Level::INFO),
            (&heartbeat, "POST", 202, Level::DEBUG),
            (&heartbeat, "POST", 400, Level::INFO),
            (&Route::Metrics, "GET", 200, Level::DEBUG),
            (&Route::Ready, "GET", 503, Level::WARN),
        ] {
            assert_eq!(
                weight(Some(route), method, status),
                level,
                "{method} {} {status}",
                route.pattern()
            );
        }
        assert_eq!(weight(None, "GET", 404), Level::INFO);
    }
}
