//! Which flow an event belongs to; nothing else.

use super::effect::Step;
use super::event::Event;
use super::limits::Now;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::{Node, Provision};
use super::turn::Turn;
use super::{
    allocation, answers, deadlines, edit, hardware, heartbeat, manage, parts, power, traits,
    upkeep, work,
};

/// What `event` makes of `node` at the moment `now`. Never fails: what is not allowed is refused and changes nothing.
///
/// ```
/// use upbeat::node::{Attributes, Event, Limits, Node, NodeId, Now, Reply, Verb, step};
/// use upbeat::timestamp::Timestamp;
///
/// let limits = Limits::default();
/// let now = Now { at: Timestamp(1_000), limits: &limits };
/// let attributes = Attributes { driver: "fake-hardware".into(), ..Attributes::default() };
/// let node = Node::enrolled(NodeId::default(), attributes, now.at);
///
/// let step = step(&node, Event::Provision { verb: Verb::Manage, options: Default::default() }, now);
///
/// assert_eq!(step.reply, Reply::Done);
/// assert_eq!(step.node.provision_state().name(), "verifying");
/// ```
pub fn step(node: &Node, event: Event, now: Now<'_>) -> Step {
    let turn = Turn::new(node, now);
    if node.quarantine.is_some() && !event.is_from_an_operator() {
        return turn.refuse(Refused::Quarantined);
    }
    match event {
        Event::Lookup { fresh_nonce } => heartbeat::lookup(turn, fresh_nonce),
        Event::Heartbeat(heartbeat) => heartbeat::heartbeat(turn, heartbeat),
        Event::Command { id, attempt, event } => answers::command(turn, id, attempt, event),
        Event::Driver { call, answer } => answers::driver(turn, call, answer),
        Event::TurnCame { kind, since } => work::turn_came(turn, kind, since),
        Event::DeadlineReached => deadlines::reached(turn),
        Event::Resumed { down_for_ms } => upkeep::resumed(turn, down_for_ms),
        Event::AgentsTurnedAway { for_ms } => upkeep::agents_turned_away(turn, for_ms),
        Event::Quarantined { reason } => upkeep::quarantined(turn, reason),
        Event::Provision { verb, options } => manage::verb(turn, verb, options),
        Event::Inspected(findings) => work::inspected(turn, *findings),
        Event::Power { change, limit_ms } => power::change(turn, change, limit_ms),
        Event::Hardware(request) => hardware::flow::requested(turn, request),
        Event::Maintenance { on, reason } => upkeep::maintenance(turn, on, reason),
        Event::Patch {
            operations,
            reset_interfaces,
            microversion,
        } => edit::patch(turn, &operations, reset_interfaces, microversion),
        Event::Delete => edit::delete(turn),
        Event::PortCreate(port) => edit::port_create(turn, *port),
        Event::PortPatch { id, operations } => edit::port_patch(turn, id, &operations),
        Event::PortDelete { id } => edit::port_delete(turn, id),
        Event::Portgroup(change) => parts::change(turn, change),
        Event::VolumeConnector(change) => parts::change(turn, change),
        Event::VolumeTarget(change) => parts::change(turn, change),
        Event::Traits(change) => traits::change(turn, change),
        Event::Allocation(change) => allocation::change(turn, change),
    }
}

/// True when the change from `before` to `after` is no more than a sign of life, which may be stored a little later.
pub fn is_sign_of_life(before: &Node, after: &Node) -> bool {
    super::turn::only_liveness_changed(before, after)
}

/// Used by flows that end in a state of rest.
pub(super) fn rest(mut turn: Turn<'_>, provision: Provision, outcome: Outcome) -> Step {
    turn.move_to(provision);
    turn.done(outcome)
}
