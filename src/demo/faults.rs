//! What can go wrong with a simulated machine.
//!
//! A closed list of faults and a builder for a machine's set of them. Tests and the demo choose the faults; the
//! machine and its agent ask for them at the moment where each one strikes. Faults that strike once are used up by
//! striking, so that a later deploy of the same machine works; the others last as long as the machine.

use std::sync::Mutex;
use std::time::Duration;

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Every image takes this long to write.
    SlowWrite(Duration),
    /// The first `execute_deploy_step` is accepted and runs, but its reply never arrives. Strikes once.
    LosesFirstReply(WriteWhenLost),
    /// The first `execute_deploy_step` is lost on its way: the connection closes and nothing runs. Strikes once.
    NeverReceivesFirstPost,
    /// The machine falls silent in the middle of a write: no answers, no heartbeats, open connections stay open, until
    /// its power is switched off. Strikes once.
    DiesDuringWrite,
    /// The write never ends, though the agent heartbeats and answers. Strikes once.
    HangsDuringWrite,
    /// The agent process restarts in the middle of a write: new start time, new certificate, no token, no list of
    /// commands; then it looks its node up again. Strikes once.
    RestartsDuringWrite,
    /// The agent's port refuses connections for this long after each start of the agent, while heartbeats flow.
    RefusesConnections(Duration),
    /// One answer comes back damaged, though the request was carried out. Strikes once.
    BadAnswerOnce(Answer, BadAnswer),
    /// Writing the image fails.
    WriteFails(WriteError, Times),
    /// The heartbeat that a finished command should cause is never sent; the regular ones are.
    DropsForcedHeartbeats,
}

/// Where the command stands when its reply is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteWhenLost {
    /// The connection closes at once; the command is still running.
    StillRunning,
    /// The connection closes when the command has finished.
    AlreadyFinished,
}

/// Which answer is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The answer to the first `execute_deploy_step`.
    ToExecuteStep,
    /// The first answer to `GET /v1/commands/` given while a command is running.
    ToCommandList,
}

/// How an answer is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadAnswer {
    /// Status 200 and bytes that are no JSON.
    Garbage,
    /// The right status and headers, half of the body, then the connection closes.
    TruncatedBody,
    /// Status 502 and an HTML page, as a proxy sends it.
    BadGateway,
}

/// Why a write fails. Types, codes and texts are those of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// `ImageDownloadError`: the connection to the image server broke.
    Download,
    /// `ImageDownloadFatalError`: the image server said 404.
    NotFound,
    /// `ImageChecksumError`: the image is not what the checksum says.
    Checksum,
    /// `ImageWriteError`: the image does not fit on the disk.
    DiskFull,
    /// `DeviceNotFound`, code 404: no disk matches the root device hints.
    NoDevice,
}

/// How often a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// The first time only.
    Once,
    /// Each time.
    Always,
}

/// The faults of one machine.
///
/// ```
/// use std::time::Duration;
/// use upbeat::demo::{Faults, WriteWhenLost};
/// let faults = Faults::none().slow_write(Duration::from_secs(7)).loses_first_reply(WriteWhenLost::StillRunning);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    list: Vec<Fault>,
}

impl Faults {
    /// A machine that does everything right.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.list.push(fault);
        self
    }

    /// See [`Fault::SlowWrite`].
    #[must_use]
    pub fn slow_write(self, takes: Duration) -> Self {
        self.with(Fault::SlowWrite(takes))
    }

    /// See [`Fault::LosesFirstReply`].
    #[must_use]
    pub fn loses_first_reply(self, write: WriteWhenLost) -> Self {
        self.with(Fault::LosesFirstReply(write))
    }

    /// See [`Fault::NeverReceivesFirstPost`].
    #[must_use]
    pub fn never_receives_first_post(self) -> Self {
        self.with(Fault::NeverReceivesFirstPost)
    }

    /// See [`Fault::DiesDuringWrite`].
    #[must_use]
    pub fn dies_during_write(self) -> Self {
        self.with(Fault::DiesDuringWrite)
    }

    /// See [`Fault::HangsDuringWrite`].
    #[must_use]
    pub fn hangs_during_write(self) -> Self {
        self.with(Fault::HangsDuringWrite)
    }

    /// See [`Fault::RestartsDuringWrite`].
    #[must_use]
    pub fn restarts_during_write(self) -> Self {
        self.with(Fault::RestartsDuringWrite)
    }

    /// See [`Fault::RefusesConnections`].
    #[must_use]
    pub fn refuses_connections(self, how_long: Duration) -> Self {
        self.with(Fault::RefusesConnections(how_long))
    }

    /// See [`Fault::BadAnswerOnce`].
    #[must_use]
    pub fn bad_answer_once(self, which: Answer, how: BadAnswer) -> Self {
        self.with(Fault::BadAnswerOnce(which, how))
    }

    /// See [`Fault::WriteFails`].
    #[must_use]
    pub fn write_fails(self, error: WriteError, times: Times) -> Self {
        self.with(Fault::WriteFails(error, times))
    }

    /// See [`Fault::DropsForcedHeartbeats`].
    #[must_use]
    pub fn drops_forced_heartbeats(self) -> Self {
        self.with(Fault::DropsForcedHeartbeats)
    }
}

/// The faults of a machine that have not been used up.
#[derive(Debug)]
pub(crate) struct Armed(Mutex<Vec<Fault>>);

impl Armed {
    pub(crate) fn new(faults: Faults) -> Self {
        Self(Mutex::new(faults.list))
    }

    pub(crate) fn replace(&self, faults: Faults) {
        *self
            .0
            .lock()
            .expect("no code panics while it holds this lock") = faults.list;
    }

    /// Looks for a fault that lasts.
    pub(crate) fn find<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.0
            .lock()
            .expect("no code panics while it holds this lock")
            .iter()
            .find_map(pick)
    }

    /// Looks for a fault that strikes once, and uses it up.
    pub(crate) fn take<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let mut faults = self
            .0
            .lock()
            .expect("no code panics while it holds this lock");
        let (at, found) = faults
            .iter()
            .enumerate()
            .find_map(|(at, fault)| pick(fault).map(|found| (at, found)))?;
        faults.remove(at);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_strikes_once_is_used_up_and_the_others_stay() {
        let armed = Armed::new(
            Faults::none()
                .dies_during_write()
                .slow_write(Duration::from_secs(7)),
        );
        let dies = |fault: &Fault| (*fault == Fault::DiesDuringWrite).then_some(());
        assert_eq!(armed.take(dies), Some(()));
        assert_eq!(armed.take(dies), None);
        let slow = |fault: &Fault| {
            if let Fault::SlowWrite(takes) = fault {
                Some(*takes)
            } else {
                None
            }
        };
        assert_eq!(armed.find(slow), Some(Duration::from_secs(7)));
        assert_eq!(armed.find(slow), Some(Duration::from_secs(7)));
    }
}
