//! What the answers of the agent and of the driver mean.

use super::driver_call::DriverRequest;
use super::effect::Step;
use super::hardware::{self, DriverAnswer};
use super::manage;
use super::masking::masked_foreign_text;
use super::outcome::Outcome;
use super::power;
use super::state::Provision;
use super::turn::Turn;
use super::work::{self, WorkPhase};
use crate::command::{self, CommandId, Phase, Verdict};

/// A classified answer of the agent. Answers for another command, or for an older dispatch, change nothing.
pub(super) fn command(turn: Turn<'_>, id: CommandId, attempt: u32, event: command::Event) -> Step {
    let fits = turn
        .node
        .open_command()
        .is_some_and(|command| command.id == id && command.attempt == attempt);
    if !fits {
        return turn.unchanged(Outcome::AnswerIgnored);
    }
    // What an agent was told it may tell again, into errors, history and log.
    let event = event.with_texts(&|text| without_secrets(&turn, text));
    tell_command(turn, event, Outcome::CommandGoesOn)
}

fn without_secrets(turn: &Turn<'_>, text: String) -> String {
    if text.is_empty() {
        return text;
    }
    let of = &turn.node.attributes;
    let mut knows = vec![&of.driver_info, &of.instance_info];
    if let Some(work) = turn.node.work() {
        knows.extend(work.steps.iter().map(|step| &step.args));
    }
    masked_foreign_text(&text, &knows)
}

/// Passes `event` to the open command, if there is one, and draws the conclusions. `otherwise` is the outcome when the command
/// just goes on.
pub(super) fn tell_command(mut turn: Turn<'_>, event: command::Event, otherwise: Outcome) -> Step {
    let Some(open) = turn.node.open_command() else {
        return turn.done(otherwise);
    };
    let unreadable = match &event {
        command::Event::SurveyFailed(why) | command::Event::PollFailed(why) => Some(why.clone()),
        _ => None,
    };
    let operation = turn.node.operation_id(open.id);
    let expected = turn
        .node
        .session
        .as_ref()
        .and_then(|session| session.instance.as_ref());
    let step = command::step(open, &operation, expected, event, turn.now.at);

    if let Some(effect) = step.effect {
        turn.ask_agent(&step.command, effect);
    }
    if let (Phase::Sent { .. }, Some(baseline), Some(session)) = (
        &step.command.phase,
        &step.command.baseline,
        &mut turn.node.session,
    ) {
        session.instance = Some(baseline.instance.clone());
    }
    turn.node.command = Some(step.command);

    match step.verdict {
        None => turn.done(otherwise),
        Some(Verdict::Alive) => agent_answered(turn, None, otherwise),
        Some(Verdict::Occupied(text)) => agent_answered(turn, Some(text), otherwise),
        Some(Verdict::Trouble(text)) => {
            if let Some(session) = &mut turn.node.session {
                session.trouble = Some(text);
                session.proved_alive_at = None;
            }
            if let Some(why) = unreadable {
                return work::agent_unreadable(turn, &why);
            }
            work::command_goes_on(turn, Outcome::AgentTrouble)
        }
        Some(Verdict::Finished(finish)) => {
            turn.node.deadlines.step = None;
            if let Some(session) = &mut turn.node.session {
                session.trouble = None;
            }
            work::command_finished(turn, finish)
        }
    }
}

/// The agent was reached and the command goes on; `trouble` is what it waits for, if something stands in its way.
fn agent_answered(mut turn: Turn<'_>, trouble: Option<String>, otherwise: Outcome) -> Step {
    turn.sign_of_life();
    if let Some(session) = &mut turn.node.session {
        session.trouble = trouble;
    }
    work::command_goes_on(turn, otherwise)
}

/// The driver has answered. Answers to older calls change nothing.
pub(super) fn driver(
    mut turn: Turn<'_>,
    number: u64,
    answer: Result<DriverAnswer, String>,
) -> Step {
    let call = match turn.node.driver_call {
        Some(call) if call.number == number => call,
        _ => return turn.unchanged(Outcome::AnswerIgnored),
    };
    turn.node.driver_call = None;
    turn.node.deadlines.driver = None;
    turn.node.power.target = None;
    if let Ok(answer) = &answer {
        let ends_in = call.request.ends_in();
        turn.node.power.state = ends_in.or(answer.power).or(turn.node.power.state);
        hardware::flow::carried_out(&mut turn.node, call.request);
    }
    driver_answered(turn, call.request, answer)
}

/// Whose business the driver's answer is: a matter of what the node is at.
pub(super) fn driver_answered(
    turn: Turn<'_>,
    request: DriverRequest,
    answer: Result<DriverAnswer, String>,
) -> Step {
    if request.is_management() {
        return hardware::flow::answered(turn, request, answer.map(|_| ()));
    }
    match &turn.node.provision {
        Provision::Verifying => manage::verified(turn, answer),
        Provision::Adopting => manage::adopted(turn, answer),
        // What is asked of the machine while work is held, an operator asks.
        Provision::Working(work) if work.phase == WorkPhase::Held => {
            power::answered(turn, request, answer)
        }
        Provision::Working(_) => work::driver_answered(turn, request, answer),
        Provision::Deleting => manage::switched_off(turn, answer),
        Provision::Enroll
        | Provision::Manageable
        | Provision::InspectFailed
        | Provision::CleanFailed { .. }
        | Provision::Available
        | Provision::DeployFailed
        | Provision::Active
        | Provision::ServiceFailed
        | Provision::Rescue
        | Provision::RescueFailed
        | Provision::UnrescueFailed
        | Provision::AdoptFailed
        | Provision::Error => power::answered(turn, request, answer),
    }
}
