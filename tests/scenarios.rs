//! The list of scenarios in `scenarios.md`, checked: every one is there, and every test it names is there and runs.
//!
//! The other modules hold the scenarios that can be told by the core alone; the rest stand where their kind of test stands.

#[path = "scenarios/calls.rs"]
mod calls;
#[path = "scenarios/commands.rs"]
mod commands;
#[path = "scenarios/list.rs"]
mod list;
#[path = "scenarios/world.rs"]
mod world;
