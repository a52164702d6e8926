//! The server itself: takes bytes in, finds out what is asked and by whom, guards against panics, limits what one request may
//! cost, and writes one log line and one measurement per request.
//!
//! ```text
//! answer ─ catch_unwind ─▶ serve: endpoint → authentication → version → body → handler
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
use super::endpoints::{self, Endpoint, Found, Method, Resource, TooOld, Versions};
use super::error::Error;
use super::microversion::{self, HEADER, HEADER_OF_SERVICES, MAXIMUM, MINIMUM, Microversion};
use super::reply::Reply;
use super::request::{Api, Request};
use super::settings::{HttpSettings, Metrics};
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
    resource: Option<&'static Resource>,
    endpoint: Option<&'static Endpoint>,
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
            resource: endpoints::find(http.path())
                .ok()
                .map(|found| found.resource),
            endpoint: None,
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
    let route = served
        .resource
        .map_or("unknown", |resource| resource.pattern);
    let status = response.status().as_u16();
    debug_assert!(
        served
            .endpoint
            .is_none_or(|endpoint| endpoint.statuses().contains(&status)),
        "{method} {route} answered {status}, which its row does not list: add it to the row's errors"
    );
    for (name, value) in headers {
        put_header(response.headers_mut(), name, &value);
    }
    for name in ["x-openstack-request-id", "openstack-request-id"] {
        put_header(response.headers_mut(), name, &request_id);
    }
    let took = began.elapsed();
    (api.metrics.on_request)(method, route, status, took.as_secs_f64());
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match weight(served.resource, method, status) {
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
fn weight(resource: Option<&Resource>, method: &str, status: u16) -> Level {
    let is_looking = matches!(method, "GET" | "OPTIONS");
    match status {
        500.. => Level::WARN,
        406 => Level::DEBUG,
        400.. => Level::INFO,
        _ if is_looking => Level::DEBUG,
        _ if resource.is_some_and(|resource| {
            resource.is_for_agents() || resource.versions() == Versions::None
        }) =>
        {
            Level::DEBUG
        }
        _ => Level::INFO,
    }
}

/// The three headers about versions, as far as this answer has them.
fn version_headers(served: &Served) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    let has_versions = served
        .resource
        .is_some_and(|resource| resource.versions() != Versions::None);
    let is_before_versions = matches!(&served.outcome, Err(error) if error.is_before_versions());
    if is_before_versions || !has_versions {
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
        resource: None,
        endpoint: None,
        microversion: None,
    };
    let found = endpoints::find(http.path());
    served.resource = found.as_ref().ok().map(|found| found.resource);
    if !served.resource.is_some_and(Resource::is_open) {
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
    let asked = match found.and_then(|found| asked(http, found)) {
        Ok(asked) => asked,
        Err(error) => {
            served.outcome = Err(error);
            return served;
        }
    };
    let microversion = match negotiated(http.headers()) {
        Ok(version) => version,
        // The document that says which versions there are must not depend on knowing them.
        Err(_) if asked.found.resource.versions() != Versions::Spoken => MAXIMUM,
        Err(error) => {
            served.outcome = Err(error);
            return served;
        }
    };
    served.endpoint = asked.endpoint;
    served.microversion = Some(microversion);
    served.outcome = handle(http, payload, api, asked, microversion).await;
    served
}

/// What is asked of which resource.
struct Asked {
    found: Found,
    /// None asks for the methods only.
    endpoint: Option<&'static Endpoint>,
}

fn asked(http: &HttpRequest, found: Found) -> Result<Asked, Error> {
    let method = Method::parse(http.method().as_str());
    let endpoint = method.and_then(|method| found.resource.endpoint(method));
    if endpoint.is_none() && method != Some(Method::OPTIONS) {
        return Err(Error::MethodNotAllowed {
            allowed: &found.resource.allowed,
        });
    }
    Ok(Asked { found, endpoint })
}

async fn handle(
    http: &HttpRequest,
    payload: web::Payload,
    api: Arc<Api>,
    asked: Asked,
    microversion: Microversion,
) -> Result<Reply, Error> {
    let resource = asked.found.resource;
    let Some(endpoint) = asked.endpoint else {
        return Ok(Reply::Options {
            allowed: &resource.allowed,
        });
    };
    if endpoint.since > microversion.0 {
        check_age(endpoint, resource)?;
    }
    let bytes_max = match resource.is_for_agents() {
        true if endpoint.takes_findings() => api.settings.inspection_body_bytes_max,
        true => api.settings.agent_body_bytes_max,
        false => api.settings.body_bytes_max,
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
        endpoint,
        microversion,
        base,
        query,
        body,
        is_form,
    };
    if endpoint.too_old != TooOld::SaidByHandler {
        request.check_query()?;
    }
    let mut names = asked.found.names;
    if microversion.0 < microversion::NO_SUFFIX_SINCE {
        names.drop_suffix_of_uuids();
    }
    (endpoint.handler)(&request, &names).await
}

/// The answer of an endpoint to requests older than it.
fn check_age(endpoint: &Endpoint, resource: &'static Resource) -> Result<(), Error> {
    match endpoint.too_old {
        TooOld::NotFound => Err(Error::ResourceTooNew),
        TooOld::MethodNotAllowed => Err(Error::MethodNotAllowed {
            allowed: &resource.allowed,
        }),
        TooOld::NotAcceptable(what) => Err(Error::TooNew {
            what: what.to_owned(),
            since: endpoint.since,
        }),
        TooOld::SaidByHandler => Ok(()),
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
        for (path, method, status, level) in [
            ("/v1/nodes", "GET", 200, Level::DEBUG),
            ("/v1/nodes", "GET", 406, Level::DEBUG),
            ("/v1/nodes", "POST", 201, Level::INFO),
            ("/v1/nodes", "POST", 400, Level::INFO),
            ("/v1/nodes", "GET", 503, Level::WARN),
            ("/v1/lookup", "GET", 404, Level::INFO),
            ("/v1/heartbeat/n", "POST", 202, Level::DEBUG),
            ("/v1/heartbeat/n", "POST", 400, Level::INFO),
            ("/metrics", "GET", 200, Level::DEBUG),
            ("/health/ready", "GET", 503, Level::WARN),
        ] {
            let resource = endpoints::find(path).unwrap().resource;
            assert_eq!(
                weight(Some(resource), method, status),
                level,
                "{method} {path} {status}"
            );
        }
        assert_eq!(weight(None, "GET", 404), Level::INFO);
    }
}
