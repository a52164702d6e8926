//! Parameters of queries and arguments of bodies as data. Pure.

use crate::http::error::Error;
use crate::http::microversion::Microversion;

/// What a parameter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Any text.
    Text,
    /// True or false, or one of the words clients use for them.
    Bool,
    /// A whole number from 1 on.
    Count,
    /// A UUID.
    Uuid,
    /// A UUID or a name.
    Ident,
    /// Several texts with commas between them.
    Texts,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any JSON; arguments of bodies only.
    Any,
}

/// A parameter a query may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// As spelled on the wire.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The microversion it is there since.
    pub since: u16,
    /// What it does, in a line.
    pub about: &'static str,
    /// It must be there.
    pub is_required: bool,
    /// Older requests with it are bad (400), not unacceptable (406).
    is_bad_when_young: bool,
}

impl Parameter {
    /// It must be there.
    pub const fn required(mut self) -> Parameter {
        self.is_required = true;
        self
    }

    /// Older requests with it get 400 instead of 406.
    pub const fn bad_when_young(mut self) -> Parameter {
        self.is_bad_when_young = true;
        self
    }

    /// Refuses it in a request that is older.
    ///
    /// # Errors
    /// [`Error::TooNew`]; [`Error::Bad`] where clients know that answer.
    pub fn check_age(&self, microversion: Microversion) -> Result<(), Error> {
        if self.since <= microversion.0 {
            Ok(())
        } else if self.is_bad_when_young {
            Err(Error::Bad(format!(
                "{}: this parameter needs version 1.{} or newer.",
                self.name, self.since
            )))
        } else {
            Err(Error::TooNew {
                what: self.name.to_owned(),
                since: self.since,
            })
        }
    }
}

/// A parameter that is there since 1.`since`.
pub const fn parameter(
    name: &'static str,
    holds: Holds,
    since: u16,
    about: &'static str,
) -> Parameter {
    Parameter {
        name,
        holds,
        since,
        about,
        is_required: false,
        is_bad_when_young: false,
    }
}

/// The choice of fields.
pub const FIELDS: &[Parameter] = &[parameter(
    "fields",
    Holds::Texts,
    8,
    "Only these fields; the links are always there.",
)];

/// The page of a list and its order.
pub const PAGE: &[Parameter] = &[
    parameter("limit", Holds::Count, 1, "At most so many items."),
    parameter(
        "marker",
        Holds::Text,
        1,
        "The last item already seen; the page begins after it.",
    ),
    parameter(
        "sort_key",
        Holds::Text,
        1,
        "The field to sort by; without it, the order of creation.",
    ),
    parameter(
        "sort_dir",
        Holds::OneOf(&["asc", "desc"]),
        1,
        "Upwards or downwards.",
    ),
];

/// Full objects instead of the short ones of lists.
pub const DETAIL: &[Parameter] = &[parameter(
    "detail",
    Holds::Bool,
    43,
    "Show full objects; not together with fields.",
)
.bad_when_young()];
