//! The conductor when things go wrong inside it: panics, full queues, a database that says no, events that cross each other.
//!
//! Nothing is injected by test code in the conductor: the fake driver's hook panics, stored rows are spoiled, the database is
//! locked or made to fail by a trigger from outside.

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "others use the rest of it")]
#[path = "../support/conductor.rs"]
mod alone;

mod allocations;
mod beginning;
mod burst;
mod counted;
mod crossing;
mod deadlines;
mod idle;
mod meanwhile;
mod outage;
mod overload;
mod quarantine;
mod reboots;
mod turns;
