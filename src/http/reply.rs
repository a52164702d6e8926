//! Answers that went well: the only place that knows the status codes of success.

use actix_web::HttpResponse;
use actix_web::http::header;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A JSON object whose keys stay in the order they were put in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document(pub Vec<(&'static str, Value)>);

impl Document {
    /// Adds a key; each may be added once.
    pub fn put(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.push((key, value.into()));
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// What a handler returns when all went well.
#[derive(Debug)]
pub enum Reply {
    /// Here it is (200): JSON text.
    Body(String),
    /// It exists now (201): JSON text, and where it is.
    Created {
        /// JSON text.
        body: String,
        /// Its address.
        location: String,
    },
    /// It is under way (202, no body), and where to look.
    Accepted {
        /// An address.
        location: Option<String>,
    },
    /// It is taken, and here is what the caller needs (202): JSON text.
    AcceptedWith {
        /// JSON text.
        body: String,
    },
    /// It is done and there is nothing to say (204).
    Nothing,
    /// Plain text (200).
    Text {
        /// The text.
        text: String,
        /// Its content type.
        content_type: &'static str,
    },
    /// Which methods there are (200, no body).
    Options {
        /// The methods.
        allowed: &'static str,
    },
}

impl Reply {
    /// A body from anything that can be written as JSON.
    pub fn body(value: &impl Serialize) -> Reply {
        Reply::Body(json_text(value))
    }

    /// The answer.
    pub fn response(self) -> HttpResponse {
        match self {
            Reply::Body(text) => HttpResponse::Ok()
                .content_type("application/json")
                .body(text),
            Reply::Created { body, location } => HttpResponse::Created()
                .content_type("application/json")
                .insert_header((header::LOCATION, location))
                .body(body),
            Reply::Accepted { location } => {
                let mut builder = HttpResponse::Accepted();
                if let Some(location) = location {
                    builder.insert_header((header::LOCATION, location));
                }
                builder.finish()
            }
            Reply::AcceptedWith { body } => HttpResponse::Accepted()
                .content_type("application/json")
                .body(body),
            Reply::Nothing => HttpResponse::NoContent().finish(),
            Reply::Text { text, content_type } => {
                HttpResponse::Ok().content_type(content_type).body(text)
            }
            Reply::Options { allowed } => HttpResponse::Ok()
                .insert_header((header::ALLOW, allowed))
                .finish(),
        }
    }
}

/// JSON text of a value of ours.
pub fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our documents have text keys only, so they can be written")
}
