//! How many requests to agents are under way at once. The others wait for their turn, first come, first served, so that ten thousand
//! agents that call within a second are asked back at the pace this machine can keep up with.
//!
//! Looks at commands in progress are spread over time besides: the more there are, the longer the pause between two of the same.
//!
//! Agents that did not answer last time have turns of their own, a quarter of all: however many they are, and however long it takes
//! until each is given up, those that answer don't wait behind them. Called by the command actors; decides nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared::OneMore;
use crate::command::{Effect, Pace};
use crate::observe::metrics::{Count, Metrics};

/// So many looks a second at all commands in progress together; an agent whose command ends calls by itself, so more would find
/// little, and take the time others need.
const LOOKS_PER_S: u32 = 1_000;

/// Whose turns are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It answered last time, has called since, or was not asked yet.
    Usual,
    /// Last time it did not answer as it should.
    Doubtful,
}

impl Kind {
    /// Which turn a request takes.
    pub(super) fn of(effect: &Effect) -> Kind {
        match effect {
            Effect::Survey(Pace::Backoff) | Effect::Poll(Pace::Backoff) => Kind::Doubtful,
            Effect::Survey(Pace::Now | Pace::Interval)
            | Effect::Poll(Pace::Now | Pace::Interval)
            | Effect::Post => Kind::Usual,
        }
    }
}

/// The turns there are.
pub(super) struct Calls {
    usual: Arc<Semaphore>,
    doubtful: Arc<Semaphore>,
    in_progress: Arc<AtomicUsize>,
    under_way: Count,
    waiting: Count,
}

/// A turn: one request may be under way until this is dropped.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

/// One more in a gauge, until dropped.
pub(super) struct Counted(Count);

impl Counted {
    pub(super) fn new(gauge: &Count) -> Counted {
        gauge.inc();
        Counted(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Calls {
    /// At most `most` requests at once, and at least one of each kind.
    pub(super) fn new(most: usize, metrics: &Metrics) -> Calls {
        let doubtful = (most / 4).max(1);
        Calls {
            usual: Arc::new(Semaphore::new(most.saturating_sub(doubtful).max(1))),
            doubtful: Arc::new(Semaphore::new(doubtful)),
            in_progress: Arc::default(),
            under_way: metrics.agent_requests.clone(),
            waiting: metrics.agent_requests_waiting.clone(),
        }
    }

    /// A turn, if one is free.
    pub(super) fn try_turn(&self, kind: Kind) -> Option<Turn> {
        let permit = self.of(kind).clone().try_acquire_owned().ok()?;
        Some(self.turn_with(permit))
    }

    /// Waits for a turn. Dropping the future gives the place in the queue up.
    pub(super) async fn turn(&self, kind: Kind) -> Turn {
        let waiting = Counted::new(&self.waiting);
        let permit = self.of(kind).clone().acquire_owned().await;
        drop(waiting);
        self.turn_with(permit.expect("nobody closes it"))
    }

    /// One more command is in progress.
    pub(super) fn begin(&self) -> OneMore {
        OneMore::of(&self.in_progress)
    }

    /// The shortest pause between two looks at the same command that leaves time for all.
    pub(super) fn pause_between_looks(&self) -> Duration {
        let commands = self.in_progress.load(Ordering::Relaxed);
        Duration::from_secs(1) * u32::try_from(commands).unwrap_or(u32::MAX) / LOOKS_PER_S
    }

    fn turn_with(&self, permit: OwnedSemaphorePermit) -> Turn {
        Turn {
            _permit: permit,
            _counted: Counted::new(&self.under_way),
        }
    }

    fn of(&self, kind: Kind) -> &Arc<Semaphore> {
        match kind {
            Kind::Usual => &self.usual,
            Kind::Doubtful => &self.doubtful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn agents_that_do_not_answer_take_no_turns_from_those_that_do() {
        let metrics = Metrics::new();
        let calls = Calls::new(4, &metrics);
        let lost = calls.try_turn(Kind::Doubtful);
        assert!(lost.is_some());
        assert!(calls.try_turn(Kind::Doubtful).is_none());
        let usual: Vec<Turn> = (0..3)
            .map(|_| calls.try_turn(Kind::Usual).unwrap())
            .collect();
        assert!(calls.try_turn(Kind::Usual).is_none());
        assert_eq!(metrics.agent_requests.get(), 4);

        // Who has given up its place is not waited for.
        let mut gives_up = Box::pin(calls.turn(Kind::Usual));
        let mut waits = Box::pin(calls.turn(Kind::Usual));
        assert!(poll(gives_up.as_mut()).is_pending());
        assert!(poll(waits.as_mut()).is_pending());
        assert_eq!(metrics.agent_requests_waiting.get(), 2);
        drop(gives_up);
        assert_eq!(metrics.agent_requests_waiting.get(), 1);
        drop(lost);
        assert!(poll(waits.as_mut()).is_pending());
        drop(usual);
        assert!(poll(waits.as_mut()).is_ready());
        assert_eq!(metrics.agent_requests_waiting.get(), 0);
    }

    #[test]
    fn the_more_commands_are_in_progress_the_rarer_each_is_looked_at() {
        let calls = Calls::new(4, &Metrics::new());
        let mut commands: Vec<OneMore> = (0..5_000).map(|_| calls.begin()).collect();
        assert_eq!(calls.pause_between_looks(), Duration::from_secs(5));
        commands.truncate(10);
        assert_eq!(calls.pause_between_looks(), Duration::from_millis(10));
    }
}
