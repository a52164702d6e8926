//! Which resource a path is about. Pure.
//!
//! The rows are made into a tree of path segments once, at the first request; finding a path then takes one look per segment,
//! however many endpoints there are. Every path of the Bare Metal API is known with and without `/v1` in front, and every path
//! with and without a slash at its end.

use std::sync::LazyLock;

use super::endpoint::{Access, Endpoint, Method, Names, Versions};
use crate::http::error::Error;

/// What all endpoints of one path have in common.
pub struct Resource {
    /// The pattern of its path, for logs and metrics.
    pub pattern: &'static str,
    /// The methods it has, as the `Allow` header lists them.
    pub allowed: String,
    endpoints: Vec<&'static Endpoint>,
}

/// A resource, and the names its path holds.
#[derive(Clone)]
pub struct Found {
    /// What the path is about.
    pub resource: &'static Resource,
    /// The names in it.
    pub names: Names,
}

impl Resource {
    /// The endpoint with this method.
    pub fn endpoint(&self, method: Method) -> Option<&'static Endpoint> {
        let has_method = |endpoint: &&&Endpoint| endpoint.method == method;
        self.endpoints.iter().find(has_method).copied()
    }

    /// True where nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        self.access() != Access::Users
    }

    /// True for what agents call.
    pub fn is_for_agents(&self) -> bool {
        self.access() == Access::Agents
    }

    /// What microversions mean to it.
    pub fn versions(&self) -> Versions {
        self.endpoints
            .first()
            .map_or(Versions::Spoken, |endpoint| endpoint.versions)
    }

    fn access(&self) -> Access {
        self.endpoints
            .first()
            .map_or(Access::Users, |endpoint| endpoint.access)
    }
}

/// The resource a raw (still percent-encoded) path is about.
///
/// # Errors
/// [`Error::UnknownPath`]; [`Error::BadIdentifier`] for names that are no UTF-8 once decoded.
pub fn find(path: &str) -> Result<Found, Error> {
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    let has_version = trimmed == "v1" || trimmed.starts_with("v1/");
    let mut names = Names::default();
    let mut place = &*TREE;
    for (index, part) in trimmed.split('/').enumerate() {
        if trimmed.is_empty() || (index == 0 && has_version) {
            continue;
        }
        let part = decoded(part)?;
        if part.is_empty() {
            return Err(Error::UnknownPath);
        }
        place = match place.words.iter().find(|(word, _)| *word == part) {
            Some((_, below)) => below,
            None => {
                names.0.push(part);
                place.name.as_deref().ok_or(Error::UnknownPath)?
            }
        };
    }
    let resource = if has_version {
        place.versioned.as_ref()
    } else {
        place.plain.as_ref().or_else(|| {
            let is_root = trimmed.is_empty();
            place.versioned.as_ref().filter(|_| !is_root)
        })
    };
    Ok(Found {
        resource: resource.ok_or(Error::UnknownPath)?,
        names,
    })
}

/// A place in the tree of paths.
#[derive(Default)]
struct Place {
    /// What is below it under a fixed word.
    words: Vec<(&'static str, Place)>,
    /// What is below it under any name.
    name: Option<Box<Place>>,
    /// The resource of the Bare Metal API that is here.
    versioned: Option<Resource>,
    /// The resource outside of it that is here.
    plain: Option<Resource>,
}

static TREE: LazyLock<Place> = LazyLock::new(|| {
    let mut tree = Place::default();
    for endpoint in super::all() {
        let trimmed = endpoint.path.trim_start_matches('/');
        let (is_versioned, rest) = match trimmed.strip_prefix("v1") {
            Some(rest) => (true, rest.trim_start_matches('/')),
            None => (false, trimmed),
        };
        let mut place = &mut tree;
        for part in rest.split('/').filter(|part| !part.is_empty()) {
            place = if part.starts_with('{') {
                place.name.get_or_insert_default()
            } else {
                place.below(part)
            };
        }
        let resource = if is_versioned {
            &mut place.versioned
        } else {
            &mut place.plain
        };
        resource
            .get_or_insert_with(|| Resource {
                pattern: endpoint.path,
                allowed: String::new(),
                endpoints: Vec::new(),
            })
            .add(endpoint);
    }
    tree
});

impl Place {
    fn below(&mut self, part: &'static str) -> &mut Place {
        let index = match self.words.iter().position(|(word, _)| *word == part) {
            Some(index) => index,
            None => {
                self.words.push((part, Place::default()));
                self.words.len() - 1
            }
        };
        &mut self.words[index].1
    }
}

impl Resource {
    fn add(&mut self, endpoint: &'static Endpoint) {
        self.endpoints.push(endpoint);
        self.endpoints.sort_by_key(|endpoint| endpoint.method as u8);
        let mut names = Vec::new();
        for endpoint in &self.endpoints {
            names.push(endpoint.method.name());
            if endpoint.method == Method::GET {
                names.push("HEAD");
            }
        }
        self.allowed = names.join(", ");
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

    fn found(path: &str) -> Result<(&'static str, Vec<String>), Error> {
        find(path).map(|found| (found.resource.pattern, found.names.0))
    }

    fn is(pattern: &'static str, names: &[&str]) -> Result<(&'static str, Vec<String>), Error> {
        Ok((pattern, names.iter().copied().map(str::to_owned).collect()))
    }

    #[test]
    fn every_row_is_found_by_its_own_path() {
        for endpoint in super::super::all() {
            let path = endpoint.path.replace(['{', '}'], "");
            let found = find(&path).unwrap_or_else(|_| panic!("{path}"));
            assert_eq!(found.resource.pattern, endpoint.path);
            let row = found.resource.endpoint(endpoint.method).unwrap();
            assert!(
                std::ptr::fn_addr_eq(row.handler, endpoint.handler),
                "{path} is there twice"
            );
            assert_eq!(found.names.0.len(), endpoint.path.matches('{').count());
            assert_eq!(found.resource.access(), endpoint.access, "{path}");
            assert_eq!(found.resource.versions(), endpoint.versions, "{path}");
        }
    }

    #[test]
    fn paths_are_known_with_and_without_prefix_and_slash() {
        for path in [
            "/v1/nodes/n-1",
            "/nodes/n-1",
            "/v1/nodes/n-1/",
            "/nodes/n-1/",
        ] {
            assert_eq!(found(path), is("/v1/nodes/{node}", &["n-1"]), "{path}");
        }
        for path in ["/v1", "/v1/"] {
            assert_eq!(found(path), is("/v1", &[]), "{path}");
        }
        for path in ["/", ""] {
            assert_eq!(found(path), is("/", &[]), "{path}");
        }
        assert_eq!(
            found("/nodes/ns%7Ename"),
            is("/v1/nodes/{node}", &["ns~name"])
        );
        assert_eq!(
            found("/nodes/ns~name/states"),
            is("/v1/nodes/{node}/states", &["ns~name"])
        );
        assert_eq!(
            found("/v1/nodes/a/history/b"),
            is("/v1/nodes/{node}/history/{entry}", &["a", "b"])
        );
    }

    #[test]
    fn what_is_not_there_is_unknown() {
        for path in [
            "/v2",
            "/v1/nothing",
            "/v1/nodes/n/states/nothing",
            "/v1/v1/nodes",
            "/v1/metrics",
            "/v1//nodes",
            "/v1/nodes//",
        ] {
            assert_eq!(found(path), Err(Error::UnknownPath), "{path}");
        }
        assert!(matches!(
            find("/v1/nodes/%ff"),
            Err(Error::BadIdentifier(_))
        ));
    }

    #[test]
    fn methods_are_those_listed() {
        let allowed = |path| find(path).unwrap().resource.allowed.as_str();
        assert_eq!(allowed("/v1/nodes"), "GET, HEAD, POST");
        assert_eq!(allowed("/v1/nodes/n"), "GET, HEAD, PATCH, DELETE");
        assert_eq!(allowed("/v1/heartbeat/n"), "POST");
        assert_eq!(allowed("/v1/nodes/n/maintenance"), "PUT, DELETE");
    }
}
