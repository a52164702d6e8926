//! The simulated agents against a conductor that only answers: do they behave as real agents do?
//!
//! Each test starts a stub of the ramdisk API on loopback, a fleet of one machine, and plays the conductor itself with
//! an HTTP client. Waiting is done by the machine's journal, which is told after the fact.

mod commands;
mod faults;
mod inspection;
mod lab;
mod plugged;
mod rescue;
mod start;
mod steps;
#[path = "../support/stub_api.rs"]
mod stub_api;
mod through_the_client;
