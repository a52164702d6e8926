//! Resolves an unknown command by reading the agent; never by sending again, never by the command's name alone.

use super::event::{Entry, Status};
use super::request::Request;
use super::state::{Baseline, Instance};

/// What a survey says about a command that may have been sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reconciled<'a> {
    /// This listed command is ours.
    Ours(&'a Entry),
    /// Same instance, and no new command that could be ours.
    Absent,
    /// Another instance answers; it cannot know.
    AnotherInstance,
}

/// Compares what the agent lists now with what it listed before the POST.
///
/// A command is ours when its id is new since `baseline`, it is listed under the name of `request`, and it doesn't echo another
/// operation id than `operation`. Only this conductor posts to this agent, so a new id of that name can only come from the
/// POST in question; an echoed operation id settles it whatever else is new.
pub(super) fn reconcile<'a>(
    request: &Request,
    operation: &str,
    baseline: &Baseline,
    instance: &Instance,
    entries: &'a [Entry],
) -> Reconciled<'a> {
    if *instance != baseline.instance {
        return Reconciled::AnotherInstance;
    }
    let mut fitting = entries.iter().filter(|entry| {
        !baseline.knows(&entry.id)
            && request.is_listed_as(&entry.command_name)
            && entry
                .operation
                .as_deref()
                .is_none_or(|echoed| echoed == operation)
    });
    let echoed = entries
        .iter()
        .find(|entry| !baseline.knows(&entry.id) && entry.operation.as_deref() == Some(operation));
    match echoed.or_else(|| fitting.next()) {
        Some(entry) => Reconciled::Ours(entry),
        None => Reconciled::Absent,
    }
}

/// The command that keeps the agent busy, if there is one: only the newest entry counts for the agent.
pub(super) fn running(entries: &[Entry]) -> Option<&Entry> {
    entries
        .last()
        .filter(|entry| entry.status == Status::Running)
}
