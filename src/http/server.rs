//! One request: takes bytes in, finds out what is asked and by whom, guards against panics, limits what one request may
//! cost, and writes one log line and one measurement per request.
//!
//! ```text
//! answer ─ catch_unwind ─▶ serve: endpoint → authentication → version → body → handler
//!    └── request id, version headers, log line, metric
//! ```
//! Nothing of a request's query or body is ever logged: both may hold secrets.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::ConnectionType;
use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::{FutureExt, StreamExt};
use tracing::Level;
use uuid::Uuid;

use super::endpoints::{self, BodySize, Endpoint, Found, Method, Resource, TooOld, Versions};
use super::error::Error;
use super::listen::Side;
use super::microversion::{self, MAXIMUM, MINIMUM, Microversion};
use super::reply::Reply;
use super::request::{Api, Request};
use super::settings::HttpSettings;

/// Slower bodies than that are given up on, beyond the time every request has.
const BODY_BYTES_PER_S: usize = 16 << 10;

/// Header of requests and answers.
static VERSION: HeaderName = HeaderName::from_static("x-openstack-ironic-api-version");
/// Header of answers.
static VERSION_MINIMUM: HeaderName =
    HeaderName::from_static("x-openstack-ironic-api-minimum-version");
/// Header of answers.
static VERSION_MAXIMUM: HeaderName =
    HeaderName::from_static("x-openstack-ironic-api-maximum-version");
/// Header of requests that names the service too; it wins over [`VERSION`].
static VERSION_OF_SERVICES: HeaderName = HeaderName::from_static("openstack-api-version");
/// Headers of answers.
static REQUEST_ID: [HeaderName; 2] = [
    HeaderName::from_static("x-openstack-request-id"),
    HeaderName::from_static("openstack-request-id"),
];

/// What is known of a request once it is served.
struct Served {
    outcome: Result<Reply, Error>,
    resource: Option<&'static Resource>,
    endpoint: Option<&'static Endpoint>,
    microversion: Option<Microversion>,
    /// Whoever asked has said who they are, or need not.
    is_known: bool,
}

/// Answers one request that came to this side.
pub async fn answer(
    http: HttpRequest,
    payload: web::Payload,
    api: Arc<Api>,
    side: Side,
) -> HttpResponse {
    let began = Instant::now();
    let request_id = format!("req-{}", Uuid::new_v4());
    let served = AssertUnwindSafe(serve(&http, payload, api.clone(), side))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Served {
            outcome: Err(Error::Internal),
            resource: endpoints::find(http.path())
                .ok()
                .map(|found| found.resource),
            endpoint: None,
            microversion: None,
            is_known: false,
        });
    let versions = versions(&served);
    // The crowd itself tells of those.
    let is_crowded = matches!(served.outcome, Err(Error::TooManyAtOnce));
    let is_known = served.is_known;
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
    for (name, version) in versions {
        if let Some(version) = version {
            put_header(response.headers_mut(), name, &version.to_string());
        }
    }
    for name in &REQUEST_ID {
        put_header(response.headers_mut(), name, &request_id);
    }
    if !is_known {
        // The time a request may take to come is only kept for the first of a connection; nobody unknown gets a second.
        let head = response.head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
    let took = began.elapsed();
    (api.metrics.on_request)(method, route, status, took.as_secs_f64());
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match weight(served.resource, method, status) {
        _ if is_crowded => tracing::debug!(method, route, status, ms, request_id, "request"),
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
fn versions(served: &Served) -> [(&'static HeaderName, Option<Microversion>); 3] {
    let has_versions = served
        .resource
        .is_some_and(|resource| resource.versions() != Versions::None);
    let is_before_versions = matches!(&served.outcome, Err(error) if error.is_before_versions());
    [
        (&VERSION_MINIMUM, Some(MINIMUM)),
        (&VERSION_MAXIMUM, Some(MAXIMUM)),
        (&VERSION, served.microversion),
    ]
    .map(|(name, version)| {
        (
            name,
            version.filter(|_| has_versions && !is_before_versions),
        )
    })
}

fn put_header(headers: &mut HeaderMap, name: &HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name.clone(), value);
    }
}

async fn serve(http: &HttpRequest, payload: web::Payload, api: Arc<Api>, side: Side) -> Served {
    let mut served = Served {
        outcome: Err(Error::UnknownPath),
        resource: None,
        endpoint: None,
        microversion: None,
        is_known: !api.authenticator.asks(),
    };
    let found = endpoints::find(http.path());
    let resource = found.as_ref().ok().map(|found| found.resource);
    if !side.has(resource) {
        // As if there were nothing, whoever asks.
        return served;
    }
    served.resource = resource;
    if !served.resource.is_some_and(Resource::is_open) {
        let authorization = http.headers().get(header::AUTHORIZATION);
        let checked = api
            .authenticator
            .check(
                authorization.map(HeaderValue::as_bytes),
                caller(http, &api.settings),
            )
            .await;
        if let Err(error) = checked {
            served.outcome = Err(error);
            return served;
        }
        served.is_known = true;
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
    served.outcome = handle(http, payload, api, asked, microversion, side).await;
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
    side: Side,
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
    let bytes_max = match endpoint.body_size {
        BodySize::Usual => api.settings.body_bytes_max,
        BodySize::Findings => api.settings.findings_bytes_max,
        BodySize::Configdrive => api.settings.configdrive_body_bytes_max,
    };
    let body = read_body(http, payload, bytes_max, api.settings.request_timeout_ms).await?;
    let is_agent = resource.is_for_agents();
    // Those that look after the server itself must get through; they are few.
    let _place = match resource.is_open() && !is_agent {
        true => None,
        false => match api.crowd.enter(is_agent) {
            Some(place) => Some(place),
            None => {
                if is_agent {
                    api.conductor.turned_an_agent_away();
                }
                return Err(Error::TooManyAtOnce);
            }
        },
    };
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
    let base = base(http, &api.settings, side);
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
    let texts = |name| -> Result<Vec<&str>, Error> {
        let malformed = |_| Error::VersionMalformed("not plain text".to_owned());
        let values = headers.get_all(name);
        values
            .map(|value| value.to_str().map_err(malformed))
            .collect()
    };
    microversion::negotiate(texts(&VERSION)?, texts(&VERSION_OF_SERVICES)?)
}

/// Where a request comes from: what the proxy that is trusted says last, or the other end of the connection.
fn caller(http: &HttpRequest, settings: &HttpSettings) -> Option<IpAddr> {
    let told = http
        .headers()
        .get_all("x-forwarded-for")
        .last()
        .filter(|_| settings.trust_proxy_headers)
        .and_then(|list| list.to_str().ok())
        .and_then(|list| list.rsplit(',').next())
        .and_then(|address| address.trim().parse().ok());
    told.or_else(|| Some(http.peer_addr()?.ip()))
}

/// Reads the whole body, as long as it stays small enough and keeps coming: after `wait_ms` at [`BODY_BYTES_PER_S`] at least, all in
/// all, so that nobody holds a connection for ever with a byte now and then.
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
    let began = Instant::now();
    loop {
        let allowed = Duration::from_millis(wait_ms) + time_for(body.len());
        let left = allowed.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, payload.next()).await {
            Ok(None) => return Ok(body),
            Ok(Some(Ok(chunk))) if body.len() + chunk.len() > bytes_max => {
                return Err(Error::BodyTooBig { bytes_max });
            }
            Ok(Some(Ok(chunk))) => body.extend_from_slice(&chunk),
            Ok(Some(Err(_))) | Err(_) => return Err(Error::BodyTooSlow),
        }
    }
}

fn time_for(bytes: usize) -> Duration {
    let ms = bytes.saturating_mul(1_000) / BODY_BYTES_PER_S;
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

/// Scheme and host for links. Agents with an address of their own don't reach the public one.
fn base(http: &HttpRequest, settings: &HttpSettings, side: Side) -> String {
    if let Some(endpoint) = &settings.public_endpoint
        && side != Side::Agents
    {
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
