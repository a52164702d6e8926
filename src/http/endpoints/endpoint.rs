//! One endpoint of the API as data, and the words its row in a table is written with.
//!
//! Pure but for the handler, which is only named here. A row begins with its method ([`get`], [`post`], [`put`], [`patch`],
//! [`delete`]), which sets what is usual for it; what differs follows in words that can be read aloud.

use futures_util::future::LocalBoxFuture;

use super::parameter::Parameter;
use crate::http::error::Error;
use crate::http::microversion::Microversion;
use crate::http::reply::Reply;
use crate::http::request::{Request, parse_uuid};

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

/// The names a path holds, in order, percent-decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl Names {
    /// The first name of the path; empty where the pattern has none.
    pub fn first(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The second name of the path; empty where the pattern has none.
    pub fn second(&self) -> &str {
        self.0.get(1).map_or("", String::as_str)
    }

    /// Drops a `.json` behind UUIDs, which old clients write. Behind names it is dropped by whoever knows that there is no such
    /// name.
    pub fn drop_suffix_of_uuids(&mut self) {
        for name in &mut self.0 {
            let stem = name.strip_suffix(".json");
            if let Some(stem) = stem.filter(|stem| parse_uuid(stem).is_some()) {
                *name = stem.to_owned();
            }
        }
    }
}

/// What carries a request out.
pub type Handler = for<'a> fn(&'a Request, &'a Names) -> LocalBoxFuture<'a, Result<Reply, Error>>;

/// What a request gets whose version is older than the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooOld {
    /// 404, as if nothing were there: the usual.
    NotFound,
    /// 405, as if only this method were missing.
    MethodNotAllowed,
    /// 406, with a sentence that begins with this word.
    NotAcceptable(&'static str),
    /// The handler says it itself, because something else is checked before.
    SaidByHandler,
}

impl TooOld {
    /// The status older requests get.
    pub fn status(self) -> u16 {
        match self {
            TooOld::NotFound | TooOld::SaidByHandler => 404,
            TooOld::MethodNotAllowed => 405,
            TooOld::NotAcceptable(_) => 406,
        }
    }
}

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Users of the API, who have to say who they are.
    Users,
    /// Everybody.
    Everybody,
    /// Agents, who have no user name and may send small bodies only, what they find in their machines aside.
    Agents,
}

/// What microversions mean to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// It is part of the Bare Metal API.
    Spoken,
    /// It tells the versions, so it must not depend on a readable one.
    Told,
    /// It is no part of the Bare Metal API and has none.
    None,
}

/// What the body of a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// A document of this schema.
    Document(&'static str),
    /// A document of this schema, or nothing.
    Optional(&'static str),
    /// An object with these arguments, in groups; each may stand in the query as well.
    Arguments(&'static [&'static [Parameter]]),
}

/// What an answer that went well holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No body.
    Empty,
    /// One document, described by the schema of this name.
    One(&'static str),
    /// A page of documents.
    List {
        /// The key the list stands under.
        plural: &'static str,
        /// The schema of each item.
        item: &'static str,
    },
    /// Text of this content type.
    Text(&'static str),
}

/// One endpoint: a method of a path.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// Its method.
    pub method: Method,
    /// Its path with names in braces. What begins with `/v1` is served without that prefix as well.
    pub path: &'static str,
    /// What carries it out.
    pub handler: Handler,
    /// The microversion it is there since.
    pub since: u16,
    /// What older requests get.
    pub too_old: TooOld,
    /// The parameters its query may have, in groups.
    pub query: &'static [&'static [Parameter]],
    /// What its body may hold.
    pub body: Body,
    /// The status when all went well.
    pub status: u16,
    /// All may go well with 202 and no body as well.
    pub may_be_accepted: bool,
    /// What comes back then.
    pub answer: Answer,
    /// Statuses of failures beyond those that every endpoint may answer.
    pub errors: &'static [u16],
    /// What it does, in a line.
    pub about: &'static str,
    /// Who may call.
    pub access: Access,
    /// What microversions mean to it.
    pub versions: Versions,
}

const fn endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    handler: Handler,
    status: u16,
) -> Endpoint {
    Endpoint {
        method,
        path,
        handler,
        since: 1,
        too_old: TooOld::NotFound,
        query: &[],
        body: Body::None,
        status,
        may_be_accepted: false,
        answer: Answer::Empty,
        errors: &[],
        about,
        access: Access::Users,
        versions: Versions::Spoken,
    }
}

/// `GET`, answered 200.
pub const fn get(path: &'static str, about: &'static str, handler: Handler) -> Endpoint {
    endpoint(Method::GET, path, about, handler, 200)
}

/// `POST`, answered 201.
pub const fn post(path: &'static str, about: &'static str, handler: Handler) -> Endpoint {
    endpoint(Method::POST, path, about, handler, 201)
}

/// `PUT`, answered 202.
pub const fn put(path: &'static str, about: &'static str, handler: Handler) -> Endpoint {
    endpoint(Method::PUT, path, about, handler, 202)
}

/// `PATCH`, answered 200; takes a JSON patch.
pub const fn patch(path: &'static str, about: &'static str, handler: Handler) -> Endpoint {
    endpoint(Method::PATCH, path, about, handler, 200).takes("Patch")
}

/// `DELETE`, answered 204.
pub const fn delete(path: &'static str, about: &'static str, handler: Handler) -> Endpoint {
    endpoint(Method::DELETE, path, about, handler, 204)
}

impl Endpoint {
    /// True where the body is what an agent found in its machine, logs included: that is large.
    pub fn takes_findings(&self) -> bool {
        self.body == Body::Document("Findings")
    }

    /// It is there since 1.`minor`; older requests get 404.
    pub const fn since(mut self, minor: u16) -> Endpoint {
        self.since = minor;
        self
    }

    /// Requests older than it get this instead of 404.
    pub const fn too_old(mut self, answer: TooOld) -> Endpoint {
        self.too_old = answer;
        self
    }

    /// Its query may have these parameters.
    pub const fn query(mut self, groups: &'static [&'static [Parameter]]) -> Endpoint {
        self.query = groups;
        self
    }

    /// It takes a body of this schema.
    pub const fn takes(mut self, schema: &'static str) -> Endpoint {
        self.body = Body::Document(schema);
        self
    }

    /// It takes a body of this schema, or none.
    pub const fn may_take(mut self, schema: &'static str) -> Endpoint {
        self.body = Body::Optional(schema);
        self
    }

    /// It takes these arguments, in its body or in its query.
    pub const fn arguments(mut self, groups: &'static [&'static [Parameter]]) -> Endpoint {
        self.body = Body::Arguments(groups);
        self
    }

    /// When all went well it answers this status.
    pub const fn status(mut self, status: u16) -> Endpoint {
        self.status = status;
        self
    }

    /// It may also answer 202 without a body, because the work goes on.
    pub const fn or_accepted(mut self) -> Endpoint {
        self.may_be_accepted = true;
        self
    }

    /// It answers with one document of this schema.
    pub const fn shows(mut self, schema: &'static str) -> Endpoint {
        self.answer = Answer::One(schema);
        self
    }

    /// It answers with a page of documents of the schema `item`, under the key `plural`.
    pub const fn lists(mut self, plural: &'static str, item: &'static str) -> Endpoint {
        self.answer = Answer::List { plural, item };
        self
    }

    /// It answers with text of this content type.
    pub const fn tells(mut self, content_type: &'static str) -> Endpoint {
        self.answer = Answer::Text(content_type);
        self
    }

    /// It may fail with these statuses besides those that every endpoint may answer.
    pub const fn errors(mut self, statuses: &'static [u16]) -> Endpoint {
        self.errors = statuses;
        self
    }

    /// Everybody may call it.
    pub const fn for_everybody(mut self) -> Endpoint {
        self.access = Access::Everybody;
        self
    }

    /// Agents call it.
    pub const fn for_agents(mut self) -> Endpoint {
        self.access = Access::Agents;
        self
    }

    /// It tells the versions.
    pub const fn tells_versions(mut self) -> Endpoint {
        self.versions = Versions::Told;
        self
    }

    /// It is no part of the Bare Metal API.
    pub const fn without_versions(mut self) -> Endpoint {
        self.versions = Versions::None;
        self
    }

    /// Its parameters: those of its query, and the arguments that may stand there as well.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        let arguments = match self.body {
            Body::Arguments(groups) => groups,
            Body::None | Body::Document(_) | Body::Optional(_) => &[],
        };
        self.query
            .iter()
            .chain(arguments)
            .copied()
            .flat_map(|group| group.iter())
    }

    /// Refuses a parameter it does not have, or that is younger than the request.
    ///
    /// # Errors
    /// [`Error::Bad`], [`Error::TooNew`].
    pub fn check_parameter(&self, name: &str, microversion: Microversion) -> Result<(), Error> {
        match self.parameters().find(|known| known.name == name) {
            None => Err(Error::Bad(format!("Unexpected arguments: {name}"))),
            Some(known) => known.check_age(microversion),
        }
    }

    /// Every status it may answer, in order.
    pub fn statuses(&self) -> Vec<u16> {
        let mut statuses = vec![self.status, 400, 408, 413, 500, 503];
        statuses.extend(self.errors);
        if self.may_be_accepted {
            statuses.push(202);
        }
        if self.access == Access::Users {
            statuses.push(401);
        }
        if self.versions == Versions::Spoken {
            statuses.extend([404, 406]);
        }
        if self.too_old == TooOld::MethodNotAllowed {
            statuses.push(405);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }
}
