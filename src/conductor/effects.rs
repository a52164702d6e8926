//! Carries one effect away from a node's actor: one function per kind.

use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{ActorFutureExt as _, AsyncContext as _, Context};

use super::command_actor::Do;
use super::node_actor::{NodeActor, Tell};
use crate::command::{self, CommandId};
use crate::node::{DriverCall, Effect, Event, Node};

pub(super) fn run(
    actor: &mut NodeActor,
    node: &Arc<Node>,
    effect: Effect,
    context: &mut Context<NodeActor>,
) {
    match effect {
        Effect::Command {
            id,
            attempt,
            effect,
        } => ask_agent(actor, node, id, attempt, effect),
        Effect::Driver(call) => call_driver(actor, node, call, context),
    }
}

/// Passes a question to the command's child, if there is somebody to be asked.
fn ask_agent(
    actor: &mut NodeActor,
    node: &Arc<Node>,
    id: CommandId,
    attempt: u32,
    effect: command::Effect,
) {
    let is_open = node.open_command().is_some_and(|command| command.id == id);
    let is_there = node
        .session
        .as_ref()
        .is_some_and(|session| session.callback_url.is_some());
    if is_open && is_there {
        let node = node.clone();
        let job = Do {
            attempt,
            effect,
            node,
        };
        actor.child_for(id).do_send(job);
    }
}

fn call_driver(
    actor: &mut NodeActor,
    node: &Arc<Node>,
    call: DriverCall,
    context: &mut Context<NodeActor>,
) {
    let (shared, node) = (actor.shared().clone(), node.clone());
    // Called only after whoever asked was answered: what a driver does wrong does not undo what is stored.
    let answering = async move { shared.drivers.call(&node, call.request).await };
    let answering = wrap_future::<_, NodeActor>(answering).map(move |answer, _, context| {
        // Through the mailbox, so that it waits its turn behind a commit in progress.
        context.address().do_send(Tell(Event::Driver {
            call: call.number,
            answer,
        }));
    });
    context.spawn(answering);
}
