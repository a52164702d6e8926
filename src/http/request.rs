//! A request as handlers see it: version known, body whole, parameters readable one by one, unknown ones refused.
//!
//! Made by `server`. Body keys and query parameters are one name space for requests that take named arguments
//! ([`Request::arguments`]); documents (a new node, a patch) come in the body alone ([`Request::document`]).

use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::auth::Authenticator;
use super::crowd::Crowd;
use super::endpoints::endpoint::Body;
use super::endpoints::parameter::Holds;
use super::endpoints::{Endpoint, TooOld};
use super::error::Error;
use super::microversion::{Microversion, NO_SUFFIX_SINCE};
use super::settings::{HttpSettings, Metrics};
use crate::conductor::Conductor;
use crate::node::{Node, NodeId, Object, attributes};
use crate::store::Ident;

/// What all requests share.
pub struct Api {
    /// What the HTTP side was told.
    pub settings: HttpSettings,
    /// Where changes go.
    pub conductor: Conductor,
    /// Where numbers go.
    pub metrics: Metrics,
    /// Who may use the API.
    pub authenticator: Authenticator,
    /// How many are being answered.
    pub crowd: Crowd,
}

/// One request.
pub struct Request {
    /// What all requests share.
    pub api: Arc<Api>,
    /// The row of the endpoint it is for.
    pub endpoint: &'static Endpoint,
    /// The version to serve it with.
    pub microversion: Microversion,
    /// Scheme and host for links, without a slash at the end.
    pub base: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// True if the body claims to be a filled-in HTML form.
    pub is_form: bool,
}

/// How deep a document may be nested.
pub const DEPTH_MAX: usize = 25;

impl Request {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`Error::Bad`] with line and column for what is no JSON, for forms, and for too deep nesting.
    pub fn document(&self) -> Result<Value, Error> {
        if self.is_form {
            return Err(Error::Bad(
                "Unexpected arguments: the body is marked as a form; send JSON with Content-Type: application/json.".to_owned(),
            ));
        }
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Err(Error::Bad(
                "The body is empty; a JSON document is expected.".to_owned(),
            ));
        }
        let opening = self.body.iter().filter(|byte| matches!(byte, b'[' | b'{'));
        if opening.count() > DEPTH_MAX && depth(&self.body) > DEPTH_MAX {
            return Err(Error::Bad(format!(
                "The body is nested deeper than {DEPTH_MAX} levels."
            )));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            // The parser's own words quote no values, only what it expected and where.
            Error::Bad(format!("The body is not valid JSON: {error}."))
        })
    }

    /// What is to be created, from a body that has all of it.
    ///
    /// # Errors
    /// As [`Request::document`]; [`Error::Bad`] for query parameters and for a body that is no object.
    pub fn description(&self) -> Result<Object, Error> {
        self.query_arguments()?.finish()?;
        match self.document()? {
            Value::Object(description) => Ok(description),
            _ => Err(Error::Bad(
                "What is to be created is described by a JSON object.".to_owned(),
            )),
        }
    }

    /// Body keys and query parameters together.
    ///
    /// # Errors
    /// As [`Request::body_arguments`]; [`Error::Bad`] for a parameter given twice.
    pub fn arguments(&self) -> Result<Arguments, Error> {
        let query = self.query_arguments()?;
        let mut arguments = self.body_arguments()?;
        for (key, value) in query.0 {
            if arguments.0.contains_key(&key) {
                return Err(Error::Bad(format!(
                    "{key} is given both in the query and in the body."
                )));
            }
            arguments.0.insert(key, value);
        }
        Ok(arguments)
    }

    /// Body keys alone; none if there is no body.
    ///
    /// # Errors
    /// As [`Request::document`]; [`Error::Bad`] for a body that is no object; those of [`Endpoint::check_parameter`].
    pub fn body_arguments(&self) -> Result<Arguments, Error> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Arguments::default());
        }
        let Value::Object(body) = self.document()? else {
            return Err(Error::Bad(
                "The body must be a JSON object with named arguments.".to_owned(),
            ));
        };
        let is_by_name = matches!(self.endpoint.body, Body::Arguments(_));
        if is_by_name && self.endpoint.too_old != TooOld::SaidByHandler {
            for name in body.keys() {
                self.endpoint.check_parameter(name, self.microversion)?;
            }
        }
        Ok(Arguments(body))
    }

    /// Query parameters alone. What holds several texts may also be given several times.
    ///
    /// # Errors
    /// [`Error::Bad`] for a parameter given twice.
    pub fn query_arguments(&self) -> Result<Arguments, Error> {
        let mut arguments = Map::new();
        for (key, value) in &self.query {
            let is_list = || {
                let mut parameters = self.endpoint.parameters();
                parameters.any(|known| known.name == key && known.holds == Holds::Texts)
            };
            match arguments.get_mut(key) {
                None => {
                    arguments.insert(key.clone(), Value::String(value.clone()));
                }
                Some(Value::String(list)) if is_list() => {
                    list.push(',');
                    list.push_str(value);
                }
                Some(_) => {
                    return Err(Error::Bad(format!(
                        "The parameter {key} is given more than once."
                    )));
                }
            }
        }
        Ok(Arguments(arguments))
    }

    /// Refuses parameters of the query that the endpoint does not have, or that are younger than the request.
    ///
    /// # Errors
    /// Those of [`Endpoint::check_parameter`].
    pub fn check_query(&self) -> Result<(), Error> {
        self.query
            .iter()
            .try_for_each(|(name, _)| self.endpoint.check_parameter(name, self.microversion))
    }

    /// Refuses a parameter, field or verb that is younger than the request's version.
    ///
    /// # Errors
    /// [`Error::TooNew`].
    pub fn need(&self, since: u16, what: &str) -> Result<(), Error> {
        if self.microversion.0 < since {
            return Err(Error::TooNew {
                what: what.to_owned(),
                since,
            });
        }
        Ok(())
    }

    /// How the path names a node.
    ///
    /// # Errors
    /// [`Error::BadIdentifier`] for what can be neither a UUID nor a name.
    pub fn node_ident(&self, text: &str) -> Result<Ident<NodeId>, Error> {
        if let Some(id) = parse_uuid(text) {
            return Ok(Ident::Id(NodeId(id)));
        }
        if !attributes::is_name(text) {
            return Err(Error::BadIdentifier(format!(
                "Expected a logical name or a UUID but received {text}."
            )));
        }
        Ok(Ident::Name(text.to_owned()))
    }

    /// The node a path names.
    ///
    /// # Errors
    /// [`Error::BadIdentifier`], [`Error::NotFound`], [`Error::NotRead`].
    pub async fn node(&self, text: &str) -> Result<Node, Error> {
        let reader = self.api.conductor.reader();
        if let Some(node) = reader.node(self.node_ident(text)?).await? {
            return Ok(node);
        }
        if self.microversion.0 < NO_SUFFIX_SINCE
            && let Some(stem) = text.strip_suffix(".json")
            && let Some(node) = reader.node(self.node_ident(stem)?).await?
        {
            return Ok(node);
        }
        Err(no_such_node(text))
    }

    /// The UUID of the node a path names; the node itself is not read when the path has its UUID.
    ///
    /// # Errors
    /// As [`Request::node`].
    pub async fn node_id(&self, text: &str) -> Result<NodeId, Error> {
        match parse_uuid(text) {
            Some(id) => Ok(NodeId(id)),
            None => Ok(self.node(text).await?.id),
        }
    }
}

/// Refuses a field that is younger than the request's version: its name, and since when it is there.
///
/// # Errors
/// [`Error::TooNew`].
pub fn refuse_young_field(found: Option<(&str, u16)>) -> Result<(), Error> {
    match found {
        None => Ok(()),
        Some((name, since)) => Err(Error::TooNew {
            what: format!("field {name}"),
            since,
        }),
    }
}

/// What a path names: a UUID, or what `is_name` takes for a name.
///
/// # Errors
/// [`Error::BadIdentifier`].
pub fn uuid_or_name(text: &str, is_name: fn(&str) -> bool) -> Result<Ident<Uuid>, Error> {
    match parse_uuid(text) {
        Some(id) => Ok(Ident::Id(id)),
        None if is_name(text) => Ok(Ident::Name(text.to_owned())),
        None => Err(Error::BadIdentifier(format!(
            "Expected a UUID or a name but received {text}."
        ))),
    }
}

/// The sentence clients know.
pub fn no_such_node(name: &str) -> Error {
    Error::NotFound(format!("Node {name} could not be found."))
}

/// A UUID in one of the two spellings with 36 or 32 characters.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    matches!(text.len(), 32 | 36)
        .then(|| Uuid::try_parse(text).ok())
        .flatten()
}

fn missing(name: &str) -> Error {
    Error::Bad(format!("Missing mandatory parameter: {name}"))
}

/// How deep brackets are nested outside of texts. For what is no JSON the number means nothing and does no harm.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Named arguments; each is taken once, and what is left over at the end is an error.
#[derive(Debug, Default)]
pub struct Arguments(Object);

impl Arguments {
    /// The argument, if it was given. JSON null counts as not given.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// A text.
    ///
    /// # Errors
    /// [`Error::Bad`] for any other type, and for the character NUL, which PostgreSQL can't keep.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => Err(Error::Bad(format!(
                "{name}: must not contain the character NUL"
            ))),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Error::Bad(format!(
                "Expected string for {name}: {}",
                kind_of(&other)
            ))),
        }
    }

    /// A text that must be given.
    ///
    /// # Errors
    /// As [`Arguments::take_text`]; [`Error::Bad`] if it is not there.
    pub fn need_text(&mut self, name: &str) -> Result<String, Error> {
        self.take_text(name)?.ok_or_else(|| missing(name))
    }

    /// True or false, which must be given.
    ///
    /// # Errors
    /// As [`Arguments::take_bool`]; [`Error::Bad`] if it is not there.
    pub fn need_bool(&mut self, name: &str) -> Result<bool, Error> {
        self.take_bool(name)?.ok_or_else(|| missing(name))
    }

    /// All that is left.
    pub fn into_object(self) -> Object {
        self.0
    }

    /// True or false, or one of the words clients use for them.
    ///
    /// # Errors
    /// [`Error::Bad`] for anything else.
    pub fn take_bool(&mut self, name: &str) -> Result<Option<bool>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => attributes::boolean(&value).map(Some).ok_or_else(|| {
                Error::Bad(format!(
                    "Expected true or false for {name}, but it is {}.",
                    kind_of(&value)
                ))
            }),
        }
    }

    /// A whole number, also as digits in a text.
    ///
    /// # Errors
    /// [`Error::Bad`] for anything else.
    pub fn take_integer(&mut self, name: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            other => other.as_i64(),
        };
        number.map(Some).ok_or_else(|| {
            Error::Bad(format!(
                "Expected a whole number for {name}, but it is {}.",
                kind_of(&value)
            ))
        })
    }

    /// A UUID.
    ///
    /// # Errors
    /// [`Error::Bad`] for anything else.
    pub fn take_uuid(&mut self, name: &str) -> Result<Option<Uuid>, Error> {
        match self.take_text(name)? {
            None => Ok(None),
            Some(text) => parse_uuid(&text)
                .map(Some)
                .ok_or_else(|| Error::Bad(format!("Expected UUID for {name}: {text}"))),
        }
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// [`Error::Bad`] naming what is.
    pub fn finish(self) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        Err(Error::Bad(format!(
            "Unexpected arguments: {}",
            names.join(", ")
        )))
    }
}

/// What a value is, in words, without telling a value that may be secret.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "another text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> Arguments {
        Arguments(value.as_object().unwrap().clone())
    }

    #[test]
    fn nesting_is_counted_outside_of_texts() {
        assert_eq!(depth(b"{\"a\": [1, {\"b\": 2}]}"), 3);
        assert_eq!(depth(b"\"[[[[\\\"[[[\""), 0);
        assert_eq!(depth(b"]]]["), 1);
    }

    #[test]
    fn wrong_types_name_the_argument() {
        let mut given =
            arguments(json!({"target": 5, "limit": "x", "detail": "maybe", "node_uuid": "z"}));
        for message in [
            given.take_text("target").unwrap_err(),
            given.take_integer("limit").unwrap_err(),
            given.take_bool("detail").unwrap_err(),
            given.take_uuid("node_uuid").unwrap_err(),
        ] {
            let Error::Bad(text) = message else {
                panic!("{message:?}")
            };
            assert!(
                ["target", "limit", "detail", "node_uuid"]
                    .iter()
                    .any(|name| text.contains(name)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_left_over_is_named() {
        let mut given = arguments(json!({"target": "manage", "colour": 1}));
        assert_eq!(
            given.take_text("target").unwrap().as_deref(),
            Some("manage")
        );
        assert_eq!(
            given.finish(),
            Err(Error::Bad("Unexpected arguments: colour".to_owned()))
        );
    }

    #[test]
    fn only_two_spellings_of_a_uuid_are_read() {
        assert!(parse_uuid("6523b921-218d-4849-a3bb-3ab765c2fcdc").is_some());
        assert!(parse_uuid("6523b921218d4849a3bb3ab765c2fcdc").is_some());
        assert!(parse_uuid("{6523b921-218d-4849-a3bb-3ab765c2fcdc}").is_none());
        assert!(parse_uuid("6523b921").is_none());
    }
}
