//! What an agent's own calls mean: lookup and heartbeat.

use super::answers;
use super::effect::{Reply, Step};
use super::event::{Heartbeat, TokenMatch};
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::Session;
use super::turn::Turn;
use super::work::{self, Work, WorkKind, WorkPhase};
use crate::command::Event as CommandEvent;
use crate::timestamp::Timestamp;

/// For how long a sign of life after a lookup answers the lookups that follow. An agent that is told to ask again does so within
/// 60 s. In milliseconds.
const PROOF_LASTS_MS: i64 = 60_000;

/// An agent that was heard so shortly before a lookup has not ended and been started again since; a start takes longer. In
/// milliseconds.
const JUST_HEARD_MS: i64 = 1_000;

/// An agent asks who it is.
///
/// The token is the same for every lookup until the first authenticated heartbeat, so a lost answer costs nothing; afterwards
/// it is masked, so nobody learns it by asking.
pub(super) fn lookup(mut turn: Turn<'_>, fresh_nonce: String) -> Step {
    match turn.node.work() {
        // Whoever asks while the machine is booted may be about to be switched off, and the one that comes after it would get no
        // token any more. It asks again until the driver has answered.
        Some(work) if expects_agent(work) => {}
        _ => return turn.refuse(Refused::LookupNotAllowed),
    }
    match &mut turn.node.session {
        Some(session) if session.confirmed => {
            // Either the agent itself looks something up again, or a new one has come that has no token. Looking at the old one
            // tells which.
            session.asked_again_at.get_or_insert(turn.now.at);
            work::look_when_proof_is_due(&mut turn);
            let (reply, outcome) = if must_ask_again(&turn) {
                (Reply::TokenLater, Outcome::TokenLater)
            } else {
                (Reply::Token { masked: true }, Outcome::TokenMasked)
            };
            let mut step = answers::tell_command(turn, CommandEvent::Hint, outcome);
            step.reply = reply;
            step
        }
        Some(_) => turn.reply(Reply::Token { masked: false }, Outcome::TokenIssued),
        None => {
            turn.node.session = Some(Session::opened(fresh_nonce, turn.now.at));
            turn.reply(Reply::Token { masked: false }, Outcome::TokenIssued)
        }
    }
}

/// True where an agent may be on the machine that has to do with the work.
fn expects_agent(work: &Work) -> bool {
    let is_booted = match work.phase {
        WorkPhase::Booting | WorkPhase::Held | WorkPhase::RebootingToInstance => false,
        WorkPhase::Queued { .. } => !work.has_not_begun(),
        WorkPhase::AwaitingAgent
        | WorkPhase::ReadingSteps
        | WorkPhase::InBandStep
        | WorkPhase::OutOfBandStep
        | WorkPhase::Pausing { .. }
        | WorkPhase::ReadingUuids
        | WorkPhase::InstallingBootloader
        | WorkPhase::SettingBootDevice
        | WorkPhase::PoweringOffAgent
        | WorkPhase::AwaitingOff { .. }
        | WorkPhase::SwitchingOff
        | WorkPhase::SwitchingOn
        | WorkPhase::FinalizingRescue
        | WorkPhase::AwaitingInventory => true,
    };
    is_booted && work.kind != WorkKind::Unrescue && !work.is_without_ramdisk
}

/// True when an agent without a token could get one, so that it must not be told that there is none: six stars put it to sleep for
/// ever. The agent that has the token asks again too, when it begins to write; it is known by its signs of life.
fn must_ask_again(turn: &Turn<'_>) -> bool {
    let Some(session) = &turn.node.session else {
        return false;
    };
    let is_within = |at: Option<Timestamp>, ms| at.is_some_and(|at| turn.now.at.ms_since(at) <= ms);
    let lives = is_within(session.proved_alive_at, PROOF_LASTS_MS)
        || session.trouble.is_none() && is_within(session.last_contact_at, JUST_HEARD_MS);
    turn.may_reissue_token() && turn.node.open_command().is_some() && !lives
}

/// An agent reports. The checks come in the order of the protocol; a refused heartbeat changes nothing.
pub(super) fn heartbeat(mut turn: Turn<'_>, heartbeat: Heartbeat) -> Step {
    let known_url = turn
        .node
        .session
        .as_ref()
        .and_then(|session| session.callback_url.clone());
    if known_url.is_some_and(|known| known != heartbeat.callback_url) {
        return turn.refuse(Refused::CallbackUrlChanged);
    }
    let now = turn.now.at;
    let phase = turn.node.work().map(|work| work.phase);
    let session = match (heartbeat.token, &mut turn.node.session) {
        (TokenMatch::Missing, _) => return turn.refuse(Refused::TokenMissing),
        (TokenMatch::Wrong, _) | (TokenMatch::Right, None) => {
            return turn.refuse(Refused::TokenWrong);
        }
        (TokenMatch::Right, Some(session)) => session,
    };
    let arrived = !session.confirmed;
    if !arrived && session.certificate != heartbeat.certificate {
        return turn.refuse(Refused::CertificateChanged);
    }
    let Some(phase) = phase else {
        return turn.unchanged(Outcome::HeartbeatIgnored);
    };
    if arrived {
        session.callback_url = Some(heartbeat.callback_url);
        session.certificate = heartbeat.certificate;
        session.confirmed = true;
    }
    session.agent_version = heartbeat.agent_version;
    session.last_heartbeat_at = Some(now);
    session.last_contact_at = Some(now);
    turn.sign_of_life();
    if arrived || phase == WorkPhase::AwaitingAgent {
        return work::agent_arrived(turn);
    }
    answers::tell_command(turn, CommandEvent::Hint, Outcome::Alive)
}
