//! Everything that can go wrong with a request, and the only place that knows which status code and which of the two envelopes
//! each failure gets.
//!
//! Both envelopes are an object with one key whose value is a *string of JSON*; existing clients decode it twice. Failures of
//! the addressing itself (unknown path, wrong method, versions) use the routing envelope, all others the controller's.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};
use serde_json::{Value, json};

use super::busy;
use super::microversion::{MAXIMUM, MINIMUM};
use crate::conductor::DeliverError;
use crate::node::Refused;
use crate::store::ReadError;

/// Why a request was not served.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// No resource has this path.
    UnknownPath,
    /// The resource is younger than the request's version.
    ResourceTooNew,
    /// The resource is there, but not with this method.
    MethodNotAllowed {
        /// The methods it has.
        allowed: &'static str,
    },
    /// The path names something by what can't be a name.
    BadIdentifier(String),
    /// The version header can't be read.
    VersionMalformed(String),
    /// The version is none that is spoken here.
    VersionOutOfRange(String),
    /// A field, filter, verb or parameter is younger than the request's version.
    TooNew {
        /// What.
        what: String,
        /// Since when it exists.
        since: u16,
    },
    /// The request can't be understood or contains something impossible; says what, where and how to mend it.
    Bad(String),
    /// The body is larger than the limit.
    BodyTooBig {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The body did not arrive in time.
    BodyTooSlow,
    /// What was named is not there: a sentence.
    NotFound(String),
    /// The one answer to everything that an agent is not to learn more about.
    LookupFailed,
    /// The endpoints for agents are switched off.
    AgentEndpointsDisabled,
    /// As many are being answered as may be at once.
    TooManyAtOnce,
    /// No valid user and password came along.
    Unauthenticated,
    /// Too many wrong passwords came from there.
    GuessingTooMuch,
    /// The `Authorization` header can't be used; says why.
    BadAuthorization(String),
    /// The conductor did not carry it out.
    NotDelivered(DeliverError),
    /// The store could not be read.
    NotRead(ReadError),
    /// The server is not ready: why.
    NotReady(String),
    /// A fault of ours.
    Internal,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        Error::NotDelivered(DeliverError::Refused(refused))
    }
}

impl From<DeliverError> for Error {
    fn from(error: DeliverError) -> Error {
        Error::NotDelivered(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        Error::NotRead(error)
    }
}

/// How a failure is told.
struct Told {
    status: StatusCode,
    text: String,
    envelope: Envelope,
    retry_after_s: Option<u32>,
}

enum Envelope {
    Controller,
    Routing,
    Authentication,
}

const GENERIC_NOT_FOUND: &str = "Resource could not be found.";
const RETRY_AFTER_S: u32 = 2;
const GUESSED_RETRY_AFTER_S: u32 = 10;
const CROWDED_RETRY_AFTER_S: u32 = 2;
/// Callers, agents among them, are not told about files and hosts of the conductor; its log is.
const STORE_TROUBLE: &str = "The server can't store or read this at the moment; its log says why under the request id. Try again.";

impl Error {
    /// The status code, for logs and metrics too.
    pub fn status(&self) -> u16 {
        self.told().status.as_u16()
    }

    /// What the operator should know and the caller need not: why the store could not be used.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Error::NotRead(ReadError::Unavailable(why))
            | Error::NotDelivered(DeliverError::Unavailable(why)) => Some(why),
            _ => None,
        }
    }

    /// True for failures that are answered before the version is known: they carry no version headers.
    pub fn is_before_versions(&self) -> bool {
        matches!(
            self,
            Error::UnknownPath
                | Error::MethodNotAllowed { .. }
                | Error::BadIdentifier(_)
                | Error::VersionMalformed(_)
                | Error::Unauthenticated
                | Error::GuessingTooMuch
                | Error::BadAuthorization(_)
        )
    }

    /// True where the answer says which versions there are, but none was used.
    pub fn is_version_out_of_range(&self) -> bool {
        matches!(self, Error::VersionOutOfRange(_))
    }

    /// The answer.
    pub fn response(&self) -> HttpResponse {
        let told = self.told();
        let mut builder = HttpResponseBuilder::new(told.status);
        if let Some(seconds) = told.retry_after_s {
            builder.insert_header((header::RETRY_AFTER, seconds.to_string()));
        }
        match self {
            Error::MethodNotAllowed { allowed } => {
                builder.insert_header((header::ALLOW, *allowed));
            }
            Error::Unauthenticated => {
                builder.insert_header((
                    HeaderName::from_static("www-authenticate"),
                    HeaderValue::from_static("Basic realm=\"Baremetal API\""),
                ));
            }
            Error::BodyTooBig { .. } | Error::BodyTooSlow => {
                // What is left of the body is not read.
                builder.force_close();
            }
            _ => {}
        }
        builder.json(document(&told))
    }

    fn told(&self) -> Told {
        let controller = |status, text: String| Told {
            status,
            text,
            envelope: Envelope::Controller,
            retry_after_s: None,
        };
        let routing = |status, text: &str| Told {
            status,
            text: text.to_owned(),
            envelope: Envelope::Routing,
            retry_after_s: None,
        };
        match self {
            Error::UnknownPath | Error::ResourceTooNew => routing(StatusCode::NOT_FOUND, ""),
            Error::MethodNotAllowed { .. } => routing(StatusCode::METHOD_NOT_ALLOWED, ""),
            Error::BadIdentifier(text) => routing(StatusCode::BAD_REQUEST, text),
            Error::VersionMalformed(text) => routing(
                StatusCode::NOT_ACCEPTABLE,
                &format!(
                    "The version {text:?} can't be read. Send 1.N with a whole number N, or \"latest\"."
                ),
            ),
            Error::VersionOutOfRange(text) => routing(
                StatusCode::NOT_ACCEPTABLE,
                &format!(
                    "Version {text} was requested but is not supported by this service. The supported version range is: [{MINIMUM}, {MAXIMUM}]."
                ),
            ),
            Error::TooNew { what, since } => controller(
                StatusCode::NOT_ACCEPTABLE,
                format!(
                    "Request not acceptable: {what} needs version 1.{since} or newer; send it in the header X-OpenStack-Ironic-API-Version."
                ),
            ),
            Error::Bad(text) => controller(StatusCode::BAD_REQUEST, text.clone()),
            Error::BodyTooBig { bytes_max } => controller(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("The body is larger than the limit of {bytes_max} bytes."),
            ),
            Error::BodyTooSlow => controller(
                StatusCode::REQUEST_TIMEOUT,
                "The body did not arrive completely.".to_owned(),
            ),
            Error::NotFound(text) => controller(StatusCode::NOT_FOUND, text.clone()),
            Error::LookupFailed => controller(StatusCode::NOT_FOUND, GENERIC_NOT_FOUND.to_owned()),
            Error::AgentEndpointsDisabled => controller(
                StatusCode::FORBIDDEN,
                "Lookups and heartbeats are switched off on this server.".to_owned(),
            ),
            Error::Unauthenticated => Told {
                envelope: Envelope::Authentication,
                ..controller(
                    StatusCode::UNAUTHORIZED,
                    "A valid user name and password are required (HTTP basic).".to_owned(),
                )
            },
            Error::TooManyAtOnce => unavailable(
                "More is asked at the moment than this server can answer; try again in some seconds.",
                CROWDED_RETRY_AFTER_S,
            ),
            Error::GuessingTooMuch => unavailable(
                "Too many wrong user names and passwords came from this address; try again later.",
                GUESSED_RETRY_AFTER_S,
            ),
            Error::BadAuthorization(text) => Told {
                envelope: Envelope::Authentication,
                ..controller(StatusCode::BAD_REQUEST, text.clone())
            },
            Error::NotDelivered(error) => not_delivered(error),
            Error::NotRead(ReadError::UnknownMarker) => controller(
                StatusCode::NOT_FOUND,
                "marker: no item has this UUID; the list has changed, start from its beginning."
                    .to_owned(),
            ),
            Error::NotRead(ReadError::Unavailable(_)) => unavailable(STORE_TROUBLE, RETRY_AFTER_S),
            Error::NotReady(why) => unavailable(why, RETRY_AFTER_S),
            Error::Internal => controller(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The server failed by a fault of its own; its log says more under the request id."
                    .to_owned(),
            ),
        }
    }
}

fn not_delivered(error: &DeliverError) -> Told {
    let controller = |status, text: String| Told {
        status,
        text,
        envelope: Envelope::Controller,
        retry_after_s: None,
    };
    match error {
        DeliverError::NotFound => controller(
            StatusCode::NOT_FOUND,
            "The node could not be found.".to_owned(),
        ),
        DeliverError::Refused(refused) => refusal(refused),
        DeliverError::Busy(busy) => controller(StatusCode::CONFLICT, busy::what_runs(busy)),
        DeliverError::Overloaded { retry_after_s } => unavailable(
            "The server has more to do than it can take in; try again.",
            *retry_after_s,
        ),
        DeliverError::Duplicate { field, value } => controller(
            StatusCode::CONFLICT,
            format!("{field} {value} is already in use; it must be unique."),
        ),
        DeliverError::Unavailable(_) => unavailable(STORE_TROUBLE, RETRY_AFTER_S),
        DeliverError::Panicked => controller(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server failed by a fault of its own; the node is as it was before.".to_owned(),
        ),
    }
}

fn refusal(refused: &Refused) -> Told {
    let status = match refused {
        Refused::BadValue { .. }
        | Refused::NoSuchTransition { .. }
        | Refused::Unsupported { .. }
        | Refused::InMaintenance { .. }
        | Refused::InUse { .. }
        | Refused::TokenMissing
        | Refused::TokenWrong
        | Refused::CallbackUrlChanged
        | Refused::CertificateChanged
        | Refused::CallbackUrlNotAllowed { .. } => StatusCode::BAD_REQUEST,
        Refused::Protected { .. } => StatusCode::FORBIDDEN,
        Refused::NotFound { .. } | Refused::NotInspecting => StatusCode::NOT_FOUND,
        Refused::LookupNotAllowed => return Error::LookupFailed.told(),
        Refused::Busy { .. } | Refused::Conflict { .. } | Refused::Quarantined => {
            StatusCode::CONFLICT
        }
    };
    Told {
        status,
        text: refused.to_string(),
        envelope: Envelope::Controller,
        retry_after_s: None,
    }
}

fn unavailable(why: &str, retry_after_s: u32) -> Told {
    Told {
        status: StatusCode::SERVICE_UNAVAILABLE,
        text: why.to_owned(),
        envelope: Envelope::Controller,
        retry_after_s: Some(retry_after_s),
    }
}

fn document(told: &Told) -> Value {
    let text = shortened(&told.text);
    let inner = match told.envelope {
        Envelope::Controller => json!({
            "faultcode": if told.status.is_server_error() { "Server" } else { "Client" },
            "faultstring": text,
            "debuginfo": null,
        }),
        Envelope::Routing => json!({
            "code": told.status.as_u16(),
            "title": told.status.canonical_reason().unwrap_or_default(),
            "description": text,
        }),
        Envelope::Authentication => {
            return json!({"error": {"message": text, "code": told.status.as_u16()}});
        }
    };
    json!({"error_message": inner.to_string()})
}

/// Sentences quote what the client sent; nobody needs a megabyte of it back.
fn shortened(text: &str) -> Cow<'_, str> {
    const CHARACTERS_MAX: usize = 1000;
    match text.char_indices().nth(CHARACTERS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{ProvisionState, Verb};

    fn inner(error: &Error) -> (u16, Value) {
        let outer = document(&error.told());
        let text = outer["error_message"].as_str().expect("a string of JSON");
        (error.status(), serde_json::from_str(text).unwrap())
    }

    #[test]
    fn controller_failures_have_a_fault_string() {
        let (status, body) = inner(&Error::NotFound("Node x could not be found.".into()));
        assert_eq!(status, 404);
        assert_eq!(
            body,
            json!({"faultcode": "Client", "faultstring": "Node x could not be found.", "debuginfo": null})
        );
        let (status, body) = inner(&Error::Internal);
        assert_eq!((status, &body["faultcode"]), (500, &json!("Server")));
    }

    #[test]
    fn routing_failures_have_a_code_title_and_description() {
        let (status, body) = inner(&Error::UnknownPath);
        assert_eq!(status, 404);
        assert_eq!(
            body,
            json!({"code": 404, "title": "Not Found", "description": ""})
        );
        let (status, body) = inner(&Error::VersionOutOfRange("9.99".into()));
        assert_eq!((status, &body["title"]), (406, &json!("Not Acceptable")));
    }

    #[test]
    fn every_refusal_of_a_lookup_looks_the_same() {
        let refused = Error::from(Refused::LookupNotAllowed);
        assert_eq!(
            document(&refused.told()),
            document(&Error::LookupFailed.told())
        );
        assert_eq!(refused.status(), 404);
    }

    #[test]
    fn the_table_of_codes() {
        let cases: Vec<(Error, u16)> = vec![
            (
                Refused::BadValue {
                    field: "a".into(),
                    problem: "b".into(),
                }
                .into(),
                400,
            ),
            (
                Refused::NoSuchTransition {
                    verb: Verb::Active,
                    state: ProvisionState::Enroll,
                }
                .into(),
                400,
            ),
            (Refused::InMaintenance { what: "x".into() }.into(), 400),
            (Refused::Unsupported { what: "x".into() }.into(), 400),
            (Refused::Protected { what: "x".into() }.into(), 403),
            (Refused::NotFound { what: "x".into() }.into(), 404),
            (
                Refused::Busy {
                    state: ProvisionState::Deploying,
                }
                .into(),
                409,
            ),
            (Refused::Conflict { text: "x".into() }.into(), 409),
            (Refused::TokenMissing.into(), 400),
            (Refused::TokenWrong.into(), 400),
            (Refused::CallbackUrlChanged.into(), 400),
            (Refused::CertificateChanged.into(), 400),
            (DeliverError::NotFound.into(), 404),
            (
                DeliverError::Duplicate {
                    field: "name",
                    value: "x".into(),
                }
                .into(),
                409,
            ),
            (DeliverError::Overloaded { retry_after_s: 7 }.into(), 503),
            (DeliverError::Unavailable("x".into()).into(), 503),
            (DeliverError::Panicked.into(), 500),
            (ReadError::UnknownMarker.into(), 404),
            (ReadError::Unavailable("x".into()).into(), 503),
            (
                Error::TooNew {
                    what: "field x".into(),
                    since: 50,
                },
                406,
            ),
            (Error::BodyTooBig { bytes_max: 1 }, 413),
            (Error::MethodNotAllowed { allowed: "GET" }, 405),
        ];
        for (error, status) in cases {
            assert_eq!(error.status(), status, "{error:?}");
        }
    }

    #[test]
    fn every_503_says_when_to_come_back() {
        for error in [
            Error::from(DeliverError::Overloaded { retry_after_s: 7 }),
            Error::from(DeliverError::Unavailable("x".into())),
            Error::from(ReadError::Unavailable("x".into())),
            Error::NotReady("x".into()),
        ] {
            let response = error.response();
            assert_eq!(response.status().as_u16(), 503);
            assert!(response.headers().contains_key("retry-after"), "{error:?}");
        }
    }

    #[test]
    fn a_failed_authentication_asks_for_basic_and_has_its_own_envelope() {
        let response = Error::Unauthenticated.response();
        assert_eq!(response.status().as_u16(), 401);
        assert_eq!(
            response.headers().get("www-authenticate").unwrap(),
            "Basic realm=\"Baremetal API\""
        );
        assert_eq!(
            document(&Error::Unauthenticated.told())["error"]["code"],
            401
        );
    }
}
