//! What an answer proves: the rules by which an agent's answer, or its absence, becomes a word of `crate::command`.
//!
//! Pure. For a command only two things are proof that it was not carried out: no connection ever came about, or a complete,
//! readable answer in the agent's own error format says no. Everything else (a cut-off body, a page of some proxy, a 500, silence)
//! means that nobody knows. Reading is easier: a read that fails may simply be repeated.

use std::error::Error as _;

use serde_json::Value;

use super::{pin, wire};
use crate::command::{Entry, PostAnswer, Refusal, Unreadable};

/// What came of one request.
#[derive(Debug)]
pub(super) enum Reply {
    /// A whole answer.
    Complete {
        /// HTTP status.
        status: u16,
        /// The body, all of it.
        body: Vec<u8>,
    },
    /// No connection came about, so nothing was sent.
    NotConnected {
        /// For people.
        why: String,
        /// The machine itself said that nothing listens there.
        is_refused: bool,
    },
    /// Another certificate was shown than the pinned one, so nothing was sent.
    CertificateMismatch,
    /// The request may have left; no whole answer came.
    Broken {
        /// For people.
        why: String,
    },
    /// The answer is longer than what is accepted.
    TooLarge {
        /// What is accepted, in bytes.
        max: usize,
    },
}

impl Reply {
    /// Sorts an error of the HTTP library. Its text never contains the URL, since that holds the token.
    pub(super) fn from_error(error: reqwest::Error) -> Reply {
        if is_certificate_mismatch(&error) {
            return Reply::CertificateMismatch;
        }
        let connecting = error.is_connect();
        let is_refused = connecting && is_refused(&error);
        let why = describe(error);
        if connecting {
            Reply::NotConnected { why, is_refused }
        } else {
            Reply::Broken { why }
        }
    }

    /// Sorts an error that came after the head of the answer.
    pub(super) fn cut_off(error: reqwest::Error) -> Reply {
        let why = format!("the answer broke off: {}", describe(error));
        Reply::Broken { why }
    }
}

/// What the answer to a command proves.
pub(super) fn post_answer(reply: Reply) -> PostAnswer {
    let (status, body) = match reply {
        Reply::NotConnected { why, .. } => return PostAnswer::NeverSent { why },
        Reply::CertificateMismatch => {
            return PostAnswer::NeverSent {
                why: Unreadable::CertificateMismatch.to_string(),
            };
        }
        Reply::Broken { why } => return PostAnswer::Unknown { why },
        Reply::TooLarge { max } => {
            return PostAnswer::Unknown {
                why: too_large(max),
            };
        }
        Reply::Complete { status, body } => (status, body),
    };
    let document: Value = match serde_json::from_slice(&body) {
        Ok(document) => document,
        Err(_) => {
            return PostAnswer::Unknown {
                why: format!("the answer {status} is not JSON"),
            };
        }
    };
    if (200..300).contains(&status) {
        return match wire::entry(&document) {
            Ok(entry) => PostAnswer::Accepted(entry),
            Err(problem) => PostAnswer::Unknown {
                why: format!("the answer {status} is {problem}"),
            },
        };
    }
    let Some(fault) = wire::fault(&document) else {
        return PostAnswer::Unknown {
            why: format!("the answer {status} is not in the agent's error format"),
        };
    };
    let text = shortened(fault);
    // Agents before 6.4.0 say so with a 500.
    if status == 409 || fault.to_ascii_lowercase().contains("agent is busy") {
        return PostAnswer::Refused(Refusal::Busy { text });
    }
    match status {
        401 => PostAnswer::Refused(Refusal::Unauthorized),
        400..500 => PostAnswer::Refused(Refusal::Invalid { status, text }),
        // Also "not JSON serializable": then the command has run, its entry stays, and reading the list tells the rest.
        _ => PostAnswer::Unknown {
            why: format!("the agent answered {status}: {text}"),
        },
    }
}

/// The document of a read that went well.
pub(super) fn document(reply: Reply) -> Result<Value, Unreadable> {
    let (status, body) = match reply {
        Reply::NotConnected {
            is_refused: true, ..
        } => return Err(Unreadable::NobodyListens),
        Reply::NotConnected { why, .. } | Reply::Broken { why } => {
            return Err(Unreadable::Unreachable { why });
        }
        Reply::CertificateMismatch => return Err(Unreadable::CertificateMismatch),
        Reply::TooLarge { max } => {
            return Err(Unreadable::Garbage {
                why: too_large(max),
            });
        }
        Reply::Complete { status, body } => (status, body),
    };
    let document = serde_json::from_slice::<Value>(&body);
    if status == 401 {
        return Err(Unreadable::Unauthorized);
    }
    if (200..300).contains(&status) {
        return document.map_err(|_| Unreadable::Garbage {
            why: format!("the answer {status} is not JSON"),
        });
    }
    let fault = document.as_ref().ok().and_then(wire::fault);
    if status == 500 && fault.is_some_and(|text| text.contains("not JSON serializable")) {
        return Err(Unreadable::Poisoned);
    }
    if status == 404 && fault.is_some() {
        return Err(Unreadable::NotFound);
    }
    Err(Unreadable::Garbage {
        why: match fault {
            Some(text) => format!("it answered {status}: {}", shortened(text)),
            None => format!("it answered {status}, not in the agent's error format"),
        },
    })
}

/// Reads one command.
pub(super) fn entry(reply: Reply) -> Result<Entry, Unreadable> {
    wire::entry(&document(reply)?).map_err(|why| Unreadable::Garbage { why })
}

/// Reads the list of commands.
pub(super) fn entries(reply: Reply) -> Result<Vec<Entry>, Unreadable> {
    let document = document(reply).map_err(not_about_one_command)?;
    wire::entries(&document).map_err(|why| Unreadable::Garbage { why })
}

/// Reads the status: when the agent started.
pub(super) fn started_at(reply: Reply) -> Result<String, Unreadable> {
    let document = document(reply).map_err(not_about_one_command)?;
    wire::started_at(&document).map_err(|why| Unreadable::Garbage { why })
}

fn not_about_one_command(why: Unreadable) -> Unreadable {
    match why {
        Unreadable::NotFound => Unreadable::Garbage {
            why: "it answered 404; this is not an agent, or one too old".to_owned(),
        },
        other => other,
    }
}

fn too_large(max: usize) -> String {
    format!("the answer is larger than {max} bytes (response_bytes_max in [agent])")
}

/// The first thousand characters: enough for people, and no log is flooded.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 1000;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}

/// The causes of an error, outermost first, without the layers of the library and without the URL.
fn describe(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return if error.is_connect() {
            "no connection in time".to_owned()
        } else {
            "no answer in time".to_owned()
        };
    }
    let error = error.without_url();
    let mut texts: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        let is_layer =
            text.starts_with("client error (") || text == "request or response body error";
        if !is_layer && texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    if texts.is_empty() {
        texts.push(error.to_string());
    }
    texts.join(": ")
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_certificate_mismatch(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error
            .downcast_ref::<rustls::Error>()
            .is_some_and(pin::is_mismatch)
        {
            return true;
        }
        // An IO error gives the cause of what it wraps as its source, so the wrapped error itself has to be asked for.
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}
