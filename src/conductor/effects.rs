//! Carries one effect away from a node's actor: one function per kind.

use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{ActorFutureExt as _, AsyncContext as _, Context};

use super::command_actor::Do;
use super::node_actor::{NodeActor, Tell};
use crate::agent::{Target, command_body};
use crate::command::{self, CommandId, Phase};
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
        } => ask_agent(actor, node, id, attempt, effect, context),
        Effect::Driver(call) => call_driver(actor, node, call, context),
    }
}

/// Passes a question to the command's child, with all it needs to ask it.
fn ask_agent(
    actor: &mut NodeActor,
    node: &Node,
    id: CommandId,
    attempt: u32,
    effect: command::Effect,
    context: &mut Context<NodeActor>,
) {
    let (Some(command), Some(session)) = (node.open_command(), &node.session) else {
        return;
    };
    let Some(callback_url) = session.callback_url.clone() else {
        return;
    };
    if command.id != id {
        return;
    }
    let agent_id = match &command.phase {
        Phase::Accepted { agent_id, .. } => Some(agent_id.clone()),
        Phase::Planned | Phase::Sent { .. } | Phase::Unknown { .. } | Phase::Ended { .. } => None,
    };
    let body = match effect {
        command::Effect::Post => Some((
            command_body(node, command),
            command.request.is_synchronous(),
        )),
        command::Effect::Survey(_) | command::Effect::Poll(_) => None,
    };
    let target = Target {
        callback_url,
        certificate: session.certificate.clone(),
        token: actor.shared().key.token(node.id, &session.nonce),
    };
    let job = Do {
        attempt,
        effect,
        target,
        agent_id,
        body,
    };
    actor.child_for(id, context).do_send(job);
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
