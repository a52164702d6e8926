//! Which resource a path is about: one closed list, with the methods each has and the version it is there since.
//!
//! Pure. Every path is known with and without `/v1` in front, and with and without a slash at its end.

use super::error::Error;

/// A resource, with the names its path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Root,
    /// `/v1`
    Version,
    /// `/v1/lookup`
    Lookup,
    /// `/v1/heartbeat/{node}`
    Heartbeat(String),
    /// `/v1/nodes`
    Nodes,
    /// `/v1/nodes/detail`
    NodesDetail,
    /// `/v1/nodes/{node}`
    Node(String),
    /// `/v1/nodes/{node}/states`
    States(String),
    /// `/v1/nodes/{node}/states/provision`
    Provision(String),
    /// `/v1/nodes/{node}/states/power`
    Power(String),
    /// `/v1/nodes/{node}/maintenance`
    Maintenance(String),
    /// `/v1/nodes/{node}/validate`
    Validate(String),
    /// `/v1/nodes/{node}/ports`
    NodePorts(String),
    /// `/v1/nodes/{node}/ports/detail`
    NodePortsDetail(String),
    /// `/v1/nodes/{node}/history`
    History(String),
    /// `/v1/nodes/{node}/history/{entry}`
    HistoryEntry(String, String),
    /// `/v1/nodes/{node}/commands`: Upbeat's own.
    Commands(String),
    /// `/v1/nodes/{node}/traits`
    Traits(String),
    /// `/v1/nodes/{node}/inventory`
    Inventory(String),
    /// `/v1/nodes/{node}/management/boot_device`
    BootDevice(String),
    /// `/v1/nodes/{node}/management/boot_device/supported`
    BootDevices(String),
    /// `/v1/ports`
    Ports,
    /// `/v1/ports/detail`
    PortsDetail,
    /// `/v1/ports/{port}`
    Port(String),
    /// `/v1/drivers`
    Drivers,
    /// `/v1/drivers/{driver}`
    Driver(String),
    /// `/v1/drivers/{driver}/properties`
    DriverProperties(String),
    /// `/v1/conductors`
    Conductors,
    /// `/v1/conductors/{host}`
    Conductor(String),
    /// `/metrics`
    Metrics,
    /// `/health/live`
    Alive,
    /// `/health/ready`
    Ready,
}

/// The methods that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::upper_case_acronyms, reason = "spelled as on the wire")]
pub enum Method {
    /// Also for HEAD.
    GET,
    /// Make.
    POST,
    /// Set.
    PUT,
    /// Change.
    PATCH,
    /// Remove.
    DELETE,
    /// Ask for the methods.
    OPTIONS,
}

impl Method {
    /// The method called `text`; HEAD is served as GET.
    pub fn parse(text: &str) -> Option<Method> {
        match text {
            "GET" | "HEAD" => Some(Method::GET),
            "POST" => Some(Method::POST),
            "PUT" => Some(Method::PUT),
            "PATCH" => Some(Method::PATCH),
            "DELETE" => Some(Method::DELETE),
            "OPTIONS" => Some(Method::OPTIONS),
            _ => None,
        }
    }

    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
        }
    }
}

/// The resource a raw (still percent-encoded) path is about.
///
/// # Errors
/// [`Error::UnknownPath`]; [`Error::BadIdentifier`] for names that are no UTF-8 once decoded.
pub fn find(path: &str) -> Result<Route, Error> {
    let mut parts = Vec::new();
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    if !trimmed.is_empty() {
        for part in trimmed.split('/') {
            parts.push(decoded(part)?);
        }
    }
    let has_version = parts.first().is_some_and(|first| first == "v1");
    if has_version {
        parts.remove(0);
    }
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let own = |name: &str| name.to_owned();
    let route = match words.as_slice() {
        [] if has_version => Route::Version,
        [] => Route::Root,
        ["lookup"] => Route::Lookup,
        ["heartbeat", node] => Route::Heartbeat(own(node)),
        ["nodes"] => Route::Nodes,
        ["nodes", "detail"] => Route::NodesDetail,
        ["nodes", node] => Route::Node(own(node)),
        ["nodes", node, "states"] => Route::States(own(node)),
        ["nodes", node, "states", "provision"] => Route::Provision(own(node)),
        ["nodes", node, "states", "power"] => Route::Power(own(node)),
        ["nodes", node, "maintenance"] => Route::Maintenance(own(node)),
        ["nodes", node, "validate"] => Route::Validate(own(node)),
        ["nodes", node, "ports"] => Route::NodePorts(own(node)),
        ["nodes", node, "ports", "detail"] => Route::NodePortsDetail(own(node)),
        ["nodes", node, "commands"] => Route::Commands(own(node)),
        ["nodes", node, "history"] => Route::History(own(node)),
        ["nodes", node, "history", entry] => Route::HistoryEntry(own(node), own(entry)),
        ["nodes", node, "traits"] => Route::Traits(own(node)),
        ["nodes", node, "inventory"] => Route::Inventory(own(node)),
        ["nodes", node, "management", "boot_device"] => Route::BootDevice(own(node)),
        ["nodes", node, "management", "boot_device", "supported"] => Route::BootDevices(own(node)),
        ["ports"] => Route::Ports,
        ["ports", "detail"] => Route::PortsDetail,
        ["ports", port] => Route::Port(own(port)),
        ["drivers"] => Route::Drivers,
        ["drivers", driver] => Route::Driver(own(driver)),
        ["drivers", driver, "properties"] => Route::DriverProperties(own(driver)),
        ["conductors"] => Route::Conductors,
        ["conductors", host] => Route::Conductor(own(host)),
        ["metrics"] if !has_version => Route::Metrics,
        ["health", "live"] if !has_version => Route::Alive,
        ["health", "ready"] if !has_version => Route::Ready,
        _ => return Err(Error::UnknownPath),
    };
    Ok(route)
}

impl Route {
    /// The pattern of its path, for logs and metrics.
    pub fn pattern(&self) -> &'static str {
        match self {
            Route::Root => "/",
            Route::Version => "/v1",
            Route::Lookup => "/v1/lookup",
            Route::Heartbeat(_) => "/v1/heartbeat/{node}",
            Route::Nodes => "/v1/nodes",
            Route::NodesDetail => "/v1/nodes/detail",
            Route::Node(_) => "/v1/nodes/{node}",
            Route::States(_) => "/v1/nodes/{node}/states",
            Route::Provision(_) => "/v1/nodes/{node}/states/provision",
            Route::Power(_) => "/v1/nodes/{node}/states/power",
            Route::Maintenance(_) => "/v1/nodes/{node}/maintenance",
            Route::Validate(_) => "/v1/nodes/{node}/validate",
            Route::NodePorts(_) => "/v1/nodes/{node}/ports",
            Route::NodePortsDetail(_) => "/v1/nodes/{node}/ports/detail",
            Route::Commands(_) => "/v1/nodes/{node}/commands",
            Route::History(_) => "/v1/nodes/{node}/history",
            Route::HistoryEntry(..) => "/v1/nodes/{node}/history/{entry}",
            Route::Traits(_) => "/v1/nodes/{node}/traits",
            Route::Inventory(_) => "/v1/nodes/{node}/inventory",
            Route::BootDevice(_) => "/v1/nodes/{node}/management/boot_device",
            Route::BootDevices(_) => "/v1/nodes/{node}/management/boot_device/supported",
            Route::Ports => "/v1/ports",
            Route::PortsDetail => "/v1/ports/detail",
            Route::Port(_) => "/v1/ports/{port}",
            Route::Drivers => "/v1/drivers",
            Route::Driver(_) => "/v1/drivers/{driver}",
            Route::DriverProperties(_) => "/v1/drivers/{driver}/properties",
            Route::Conductors => "/v1/conductors",
            Route::Conductor(_) => "/v1/conductors/{host}",
            Route::Metrics => "/metrics",
            Route::Alive => "/health/live",
            Route::Ready => "/health/ready",
        }
    }

    /// The methods it has, as the `Allow` header lists them.
    pub fn allowed(&self) -> &'static str {
        match self {
            Route::Heartbeat(_) => "POST",
            Route::Nodes | Route::Ports => "GET, HEAD, POST",
            Route::Node(_) | Route::Port(_) => "GET, HEAD, PATCH, DELETE",
            Route::Provision(_) | Route::Power(_) => "PUT",
            Route::Maintenance(_) => "PUT, DELETE",
            Route::BootDevice(_) => "GET, HEAD, PUT",
            Route::Root
            | Route::Version
            | Route::Lookup
            | Route::NodesDetail
            | Route::States(_)
            | Route::Validate(_)
            | Route::NodePorts(_)
            | Route::NodePortsDetail(_)
            | Route::Commands(_)
            | Route::History(_)
            | Route::HistoryEntry(..)
            | Route::Traits(_)
            | Route::Inventory(_)
            | Route::BootDevices(_)
            | Route::PortsDetail
            | Route::Drivers
            | Route::Driver(_)
            | Route::DriverProperties(_)
            | Route::Conductors
            | Route::Conductor(_)
            | Route::Metrics
            | Route::Alive
            | Route::Ready => "GET, HEAD",
        }
    }

    /// True if it has this method.
    pub fn allows(&self, method: Method) -> bool {
        method == Method::OPTIONS
            || self
                .allowed()
                .split(", ")
                .any(|known| known == method.name())
    }

    /// The version it is there since.
    pub fn since(&self) -> u16 {
        match self {
            Route::Traits(_) => 37,
            Route::Conductors | Route::Conductor(_) => 49,
            Route::History(_) | Route::HistoryEntry(..) => 78,
            Route::Inventory(_) => 81,
            // Lookups and heartbeats are gated by their handlers, after the switch that turns them off.
            _ => 1,
        }
    }

    /// True where nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Route::Root
                | Route::Version
                | Route::Lookup
                | Route::Heartbeat(_)
                | Route::Alive
                | Route::Ready
        )
    }

    /// True for what agents call.
    pub fn is_for_agents(&self) -> bool {
        matches!(self, Route::Lookup | Route::Heartbeat(_))
    }

    /// True for what is no part of the Bare Metal API: it has no versions.
    pub fn is_unversioned(&self) -> bool {
        matches!(self, Route::Metrics | Route::Alive | Route::Ready)
    }
}

/// Percent-decoding of one part of a path.
fn decoded(part: &str) -> Result<String, Error> {
    if !part.contains('%') {
        return Ok(part.to_owned());
    }
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| {
        Error::BadIdentifier(format!("{part:?} is not UTF-8 text in percent-encoding."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_with_and_without_prefix_and_slash() {
        for path in [
            "/v1/nodes/n-1",
            "/nodes/n-1",
            "/v1/nodes/n-1/",
            "/nodes/n-1/",
        ] {
            assert_eq!(find(path), Ok(Route::Node("n-1".to_owned())), "{path}");
        }
        for path in ["/v1", "/v1/"] {
            assert_eq!(find(path), Ok(Route::Version), "{path}");
        }
        for path in ["/", ""] {
            assert_eq!(find(path), Ok(Route::Root), "{path}");
        }
        assert_eq!(
            find("/nodes/ns%7Ename"),
            Ok(Route::Node("ns~name".to_owned()))
        );
        assert_eq!(
            find("/nodes/ns~name/states"),
            Ok(Route::States("ns~name".to_owned()))
        );
    }

    #[test]
    fn what_is_not_there_is_unknown() {
        for path in [
            "/v2",
            "/v1/nothing",
            "/v1/nodes/n/states/raid",
            "/v1/v1/nodes",
            "/v1/metrics",
        ] {
            assert_eq!(find(path), Err(Error::UnknownPath), "{path}");
        }
        assert!(matches!(
            find("/v1/nodes/%ff"),
            Err(Error::BadIdentifier(_))
        ));
    }

    #[test]
    fn methods_are_those_listed() {
        assert!(Route::Nodes.allows(Method::POST));
        assert!(!Route::Nodes.allows(Method::PUT));
        assert!(Route::Root.allows(Method::OPTIONS));
        assert!(!Route::Heartbeat(String::new()).allows(Method::GET));
    }
}
