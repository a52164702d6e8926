//! Every endpoint of the API, as data: one row each, in one file per kind of thing.
//!
//! ```text
//! rows (method, path, since, query, body, answer, errors, handler) ──▶ find (a path's resource, its methods)
//!                                                                  ──▶ Allow, version gates, names in metrics
//! ```
//! To add an endpoint: write its handler, and add a row that names it. Nothing else knows the list.

mod drivers;
pub mod endpoint;
mod find;
mod hardware;
mod nodes;
mod objects;
pub mod parameter;
mod parts;
mod ports;
mod server;
mod vendor;

pub use endpoint::{BodySize, Endpoint, Method, TooOld, Versions};
pub use find::{Found, Resource, find};

/// All rows.
const TABLES: &[&[Endpoint]] = &[
    server::ENDPOINTS,
    nodes::ENDPOINTS,
    hardware::ENDPOINTS,
    ports::ENDPOINTS,
    parts::ENDPOINTS,
    objects::ENDPOINTS,
    drivers::ENDPOINTS,
    vendor::ENDPOINTS,
];

/// Every endpoint there is.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    TABLES.iter().copied().flatten()
}
