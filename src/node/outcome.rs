//! The closed list of what a step can come to: the word in the log line, the metric label, the answer to "why".

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Refused; the reply says why.
    Refused(&'static str),
    /// A token was handed out or confirmed as handed out.
    TokenIssued,
    /// The lookup was answered with a masked token.
    TokenMasked,
    /// A lookup has to come again: whether the agent that has the token is gone is being found out.
    TokenLater,
    /// A sign of life was recorded, and nothing else was to do.
    Alive,
    /// A heartbeat that means nothing in this state.
    HeartbeatIgnored,
    /// The first heartbeat of a session: the agent is there.
    AgentArrived,
    /// An answer to something that is no longer asked.
    AnswerIgnored,
    /// The command goes on.
    CommandGoesOn,
    /// The agent can't be reached or doesn't obey; the node waits on.
    AgentTrouble,
    /// A command was planned.
    CommandPlanned,
    /// The driver was called.
    DriverCalled,
    /// The work took the next step.
    WorkGoesOn,
    /// The work waits for its turn.
    Queued,
    /// The work waits for somebody's `unhold`.
    Held,
    /// The node became `active`.
    Deployed,
    /// The deploy failed; `last_error` says why.
    DeployFailed,
    /// Other work than a deploy has ended well.
    WorkDone,
    /// Other work than a deploy failed; `last_error` says why.
    WorkFailed,
    /// An operation other than work failed; `last_error` says why.
    Failed,
    /// A deadline had passed.
    DeadlineExpired,
    /// The deadline was not due, or no longer applied.
    DeadlineMoved,
    /// Found in the store at start.
    Resumed,
    /// Put into quarantine.
    Quarantined,
    /// Changed as asked.
    Changed,
    /// Asked for what already is.
    Unchanged,
}

impl Outcome {
    /// The word for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Refused(why) => why,
            Outcome::TokenIssued => "token_issued",
            Outcome::TokenMasked => "token_masked",
            Outcome::TokenLater => "token_later",
            Outcome::Alive => "alive",
            Outcome::HeartbeatIgnored => "heartbeat_ignored",
            Outcome::AgentArrived => "agent_arrived",
            Outcome::AnswerIgnored => "answer_ignored",
            Outcome::CommandGoesOn => "command_goes_on",
            Outcome::AgentTrouble => "agent_trouble",
            Outcome::CommandPlanned => "command_planned",
            Outcome::DriverCalled => "driver_called",
            Outcome::WorkGoesOn => "work_goes_on",
            Outcome::Queued => "queued",
            Outcome::Held => "held",
            Outcome::WorkDone => "work_done",
            Outcome::WorkFailed => "work_failed",
            Outcome::Deployed => "deployed",
            Outcome::DeployFailed => "deploy_failed",
            Outcome::Failed => "failed",
            Outcome::DeadlineExpired => "deadline_expired",
            Outcome::DeadlineMoved => "deadline_moved",
            Outcome::Resumed => "resumed",
            Outcome::Quarantined => "quarantined",
            Outcome::Changed => "changed",
            Outcome::Unchanged => "unchanged",
        }
    }
}
