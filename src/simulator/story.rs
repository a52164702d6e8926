//! One event of a node, told in one line.

use crate::command::Phase;
use crate::node::{Event, Node, Step};

/// One line of a trace.
pub(super) fn told(event: &Event, before: &Node, step: &Step) -> String {
    let after = &step.node;
    let phase = |node: &Node| match node.work() {
        Some(work) => format!("{} ({:?})", node.provision_state(), work.phase),
        None => node.provision_state().to_string(),
    };
    let command = |node: &Node| {
        node.command.as_ref().map_or_else(String::new, |command| {
            let detail = match &command.phase {
                Phase::Ended { finish } => format!("{finish:?}"),
                _ => String::new(),
            };
            format!(
                ", command {}/{} {}{}",
                command.id,
                command.attempt,
                command.phase.name(),
                detail
            )
        })
    };
    let what = match event {
        Event::Command { id, attempt, event } => {
            let mut text = format!("{event:?}");
            if text.len() > 160 {
                text.truncate(
                    (0..=160)
                        .rev()
                        .find(|end| text.is_char_boundary(*end))
                        .unwrap_or(0),
                );
                text.push_str("...");
            }
            format!("answer for {id}/{attempt}: {text}")
        }
        Event::Heartbeat(heartbeat) => format!("heartbeat, token {:?}", heartbeat.token),
        Event::Driver { call, answer } => format!("driver answers call {call}: {answer:?}"),
        Event::Resumed { down_for_ms } => format!("resumed after {down_for_ms} ms"),
        Event::Provision { verb, .. } => format!("operator asks for {verb}"),
        Event::Power { change, .. } => format!("operator asks for power {change:?}"),
        Event::Hardware(request) => format!("operator asks of the machine: {request:?}"),
        other => other.name().to_owned(),
    };
    format!(
        "{what} -> {}: {}{}{}",
        step.outcome.name(),
        if phase(before) == phase(after) {
            phase(after)
        } else {
            format!("{} => {}", phase(before), phase(after))
        },
        command(after),
        after
            .last_error
            .as_ref()
            .filter(|_| before.last_error != after.last_error)
            .map_or_else(String::new, |text| format!(", last_error: {text}")),
    )
}
