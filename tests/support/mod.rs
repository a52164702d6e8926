//! What the tests of the whole conductor have in common.

pub mod api;
pub mod site;
