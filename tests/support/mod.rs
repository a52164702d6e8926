//! What the tests of the whole conductor have in common.

#![allow(dead_code, reason = "each test file uses another part of it")]

pub mod api;
pub mod puppet;
pub mod site;
