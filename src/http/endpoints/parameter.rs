//! Parameters of queries as data. Pure.

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
)];
