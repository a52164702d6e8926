//! What is going to happen in one world, in the order of time, then of being planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::agent::Exchange;
use super::child::Job;
use super::shell::Save;
use crate::command;
use crate::node::{DriverAnswer, DriverRequest, Event};

/// Something that happens at its time. Numbers say to which life, process or boot it belongs: what is gone by then gets nothing.
#[derive(Debug)]
pub(super) enum Happening {
    /// The conductor dies, or is stopped, as planned for all nodes.
    ConductorDown(usize),
    /// It comes back, unless it has been kept down.
    ConductorUp,
    /// The row was read, or could not be.
    Loaded { life: u32, is_read: bool },
    /// The row is read once more.
    LoadsAgain { life: u32, number: u64 },
    /// The writer carries out a commit.
    Applied { life: u32, save: Box<Save> },
    /// The writer's answer is there.
    Committed {
        life: u32,
        hold: u64,
        refused: Option<Refusal>,
    },
    /// A sign of life was not stored.
    SignNotStored { life: u32 },
    /// The one timer.
    TimerFires { life: u32, armed: u64 },
    /// A pause before a request is over.
    PauseEnds { life: u32, job: u64 },
    /// An answer of the agent, classified.
    Answered {
        life: u32,
        ask: u64,
        event: Box<command::Event>,
    },
    /// A driver call does its work.
    DriverActs(DriverRequest),
    /// A driver call answers.
    DriverAnswers {
        life: u32,
        call: u64,
        answer: Result<DriverAnswer, String>,
    },
    /// A request reaches the machine.
    RequestArrives(Box<Exchange>),
    /// A command that waited for the agent's lock gets it.
    CommandRuns {
        process: u32,
        exchange: Box<Exchange>,
    },
    /// A command of the agent ends.
    CommandEnds { process: u32, index: usize },
    /// The agent looks whether it has to call.
    AgentWakes { process: u32 },
    /// A call of an agent reaches the conductor.
    CallArrives(Box<Call>),
    /// The answer, or its absence, reaches the agent.
    CallAnswered {
        process: u32,
        call: u64,
        answer: CallAnswer,
    },
    /// A trouble of the agent or the machine that was in the stars when it booted.
    Misfortune { process: u32, what: Misfortune },
    /// The agent goes on after it hung.
    Unhangs { process: u32 },
    /// The machine has booted.
    Boots { boot: u32 },
    /// An agent process starts on a machine that is up.
    ProcessStarts { boot: u32 },
    /// The machine goes off by itself.
    GoesOff { boot: u32 },
    /// Another node asks for a turn, or gives it back.
    Other(usize),
    /// An operator comes by.
    Operator,
    /// An operator tries again what the conductor could not take.
    OperatorAgain(Box<Event>),
    /// Time to see that nothing is overdue.
    Watch,
}

/// Why a commit was answered badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Conflict,
    Unavailable,
    Overloaded,
}

/// What happens to a ramdisk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfortune {
    ProcessEnds,
    Hangs,
    Reboots,
    Dies,
    ForeignCommand,
    Stranger,
}

/// A call from an agent, or from somebody who plays one.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) process: u32,
    pub(super) call: u64,
    pub(super) what: CallKind,
}

#[derive(Debug, Clone)]
pub(super) enum CallKind {
    /// What the agent found in its machine; before it looks itself up.
    Findings,
    Lookup,
    Heartbeat {
        url: String,
        certificate: Option<String>,
        token: Option<String>,
    },
}

/// What a caller from the ramdisk learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallAnswer {
    /// 200 with a token, or with six stars.
    Token(Option<String>),
    /// 202.
    Taken,
    /// 404: nobody inspects this machine.
    NotWanted,
    /// 4xx, 5xx, no connection, no answer, garbage: all the same to an agent.
    Failed,
}

#[derive(Debug)]
struct Entry {
    at: i64,
    number: u64,
    what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    planned: u64,
}

impl Queue {
    pub(super) fn plan(&mut self, at: i64, what: Happening) {
        self.planned += 1;
        self.heap.push(Reverse(Entry {
            at,
            number: self.planned,
            what,
        }));
    }

    pub(super) fn next(&mut self) -> Option<(i64, Happening)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

/// A job waits for its pause to end.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) job: Job,
}
