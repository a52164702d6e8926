//! The sockets: where users of the API are listened to, and where agents are, if that is not the same.
//!
//! With an address of their own for agents there are two servers in the process, each with its own threads and its own share of
//! connections: whoever floods the network of the machines does not keep users out. What is served where is said by [`Side`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::KeepAlive;
use actix_web::{App, HttpRequest, HttpServer, web};

use super::auth::Authenticator;
use super::crowd::Crowd;
use super::endpoints::{Resource, Versions};
use super::request::Api;
use super::server::answer;
use super::settings::{HttpSettings, Metrics};
use crate::conductor::Conductor;

/// How long a connection waits for another request.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Connections that wait to be taken.
const BACKLOG: u32 = 2048;

/// What listens.
pub struct Listening {
    /// The servers. Each has to be awaited or spawned; its handle stops it gracefully: no new connections, and requests in flight
    /// get `stop_grace_s` to end.
    pub servers: Vec<Server>,
    /// Where the API answers.
    pub address: SocketAddr,
    /// Where agents are answered, if that is somewhere else.
    pub agent_address: Option<SocketAddr>,
}

/// Which part of the API a socket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// All there is.
    Whole,
    /// All but what agents call.
    Users,
    /// What agents call, and what tells them how to call it.
    Agents,
}

impl Side {
    /// Whether the resource is served here; what is not there at all is `None`.
    pub fn has(self, resource: Option<&Resource>) -> bool {
        let is_for_agents = resource.is_some_and(Resource::is_for_agents);
        match self {
            Side::Whole => true,
            Side::Users => !is_for_agents,
            Side::Agents => is_for_agents || resource.is_some_and(tells_versions),
        }
    }
}

/// Agents find out by these which version to speak.
fn tells_versions(resource: &Resource) -> bool {
    resource.versions() == Versions::Told || resource.pattern == "/v1"
}

/// Starts to listen.
///
/// # Errors
/// An address can't be listened on, or the password file can't be read; names which.
pub fn start(
    settings: HttpSettings,
    conductor: Conductor,
    metrics: Metrics,
) -> io::Result<Listening> {
    let authenticator = Authenticator::new(&settings.auth)?;
    let crowd = Crowd::new(settings.requests_max);
    let api = Arc::new(Api {
        crowd,
        settings,
        conductor,
        metrics,
        authenticator,
    });
    let main_side = match api.settings.agent_listen {
        None => Side::Whole,
        Some(_) => Side::Users,
    };
    // Both are bound before either serves.
    let (main, address) = bound(&api, api.settings.listen, main_side)?;
    let agents = api
        .settings
        .agent_listen
        .map(|listen| bound(&api, listen, Side::Agents))
        .transpose()?;
    let mut servers = vec![main()];
    let mut agent_address = None;
    if let Some((agents, address)) = agents {
        servers.push(agents());
        agent_address = Some(address);
    }
    Ok(Listening {
        servers,
        address,
        agent_address,
    })
}

/// A server that is bound to its address and not run yet.
fn bound(
    api: &Arc<Api>,
    listen: SocketAddr,
    side: Side,
) -> io::Result<(impl FnOnce() -> Server + use<>, SocketAddr)> {
    let shared = api.clone();
    let settings = &api.settings;
    let server = HttpServer::new(move || {
        let answer = move |http: HttpRequest, payload: web::Payload, api: web::Data<Api>| {
            answer(http, payload, api.into_inner(), side)
        };
        App::new()
            .app_data(web::Data::from(shared.clone()))
            .default_service(web::to(answer))
    })
    .workers(settings.workers.max(1))
    .max_connections(settings.connections_per_worker_max)
    .keep_alive(match side {
        Side::Whole | Side::Users => KeepAlive::Timeout(KEEP_ALIVE),
        // They call once in a while. And whoever is on their network can't hold a connection open for a second request that
        // never comes.
        Side::Agents => KeepAlive::Disabled,
    })
    .client_request_timeout(Duration::from_millis(settings.request_timeout_ms))
    .shutdown_timeout(settings.stop_grace_s)
    .backlog(BACKLOG)
    .disable_signals()
    .bind(listen)
    .map_err(|error| io::Error::new(error.kind(), format!("can't listen on {listen}: {error}")))?;
    let address = *server
        .addrs()
        .first()
        .ok_or_else(|| io::Error::other(format!("listening on {listen} gave no address")))?;
    Ok((move || server.run(), address))
}
