//! The only place that asks the machine for the time.
//!
//! Wall time is read once, at start; afterwards the monotonic clock is added to it. So a step of the wall clock, in either
//! direction, neither expires nor immortalises a node while the process lives. The store's rows carry these times across
//! restarts.
//!
//! The clock also stands still while the whole process does: a virtual machine that was paused, a process that was stopped or got no
//! processor. Nobody could be heard in that time, so it is nobody's silence. A thread ticks four times a second; when the time is
//! asked for and there was no tick for two seconds, those seconds have not passed. The times shown then lag behind the wall by as much,
//! until the next start, which finds the difference by the note of life in the store.

use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::timestamp::Timestamp;

/// How often the process notes for itself that it runs.
const TICKS_EVERY: Duration = Duration::from_millis(250);
/// A longer pause than any computer under load makes between two of them.
const STOPPED_AFTER: Duration = Duration::from_secs(2);

/// The time in which this process ran.
static AWAKE: Mutex<Option<Awake>> = Mutex::new(None);

/// A clock that never steps. Cheap to copy; every copy shows the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall_at_start: Timestamp,
    awake_at_start: Duration,
}

impl Clock {
    /// Reads the wall clock, once.
    pub fn start() -> Clock {
        static TICKING: Once = Once::new();
        TICKING.call_once(|| {
            // Without it only questions for the time would tick, and a quiet minute would not have passed.
            std::thread::Builder::new()
                .name("clock".to_owned())
                .spawn(|| {
                    loop {
                        awake();
                        std::thread::sleep(TICKS_EVERY);
                    }
                })
                .expect("the operating system has a thread to spare at start");
        });
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map(|since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            .unwrap_or(0);
        Clock {
            wall_at_start: Timestamp(wall),
            awake_at_start: awake().0,
        }
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.running_for().as_millis()).unwrap_or(i64::MAX);
        self.wall_at_start.plus_ms(passed)
    }

    /// For how long it has run.
    pub fn running_for(&self) -> Duration {
        awake().0.saturating_sub(self.awake_at_start)
    }

    /// For how long this process has stood still so far, in all: by so much every deadline has moved.
    pub fn stopped_for(&self) -> Duration {
        awake().1
    }
}

/// For how long this process has run, and for how long it has not. The time is read under the lock: read before it and used after, it
/// could be from the other side of a pause.
fn awake() -> (Duration, Duration) {
    let mut awake = AWAKE.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let awake = awake.get_or_insert(Awake {
        since: now,
        last_tick: now,
        stopped: Duration::ZERO,
    });
    (awake.tick(now), awake.stopped)
}

#[derive(Debug)]
struct Awake {
    since: Instant,
    last_tick: Instant,
    /// How much of the time since then did not count.
    stopped: Duration,
}

impl Awake {
    /// It is `now`, and the process runs; answers for how long it has run.
    fn tick(&mut self, now: Instant) -> Duration {
        let pause = now.saturating_duration_since(self.last_tick);
        if pause > STOPPED_AFTER {
            self.stopped += pause;
        }
        self.last_tick = now.max(self.last_tick);
        self.last_tick
            .saturating_duration_since(self.since)
            .saturating_sub(self.stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let clock = Clock::start();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn time_in_which_the_process_was_stopped_does_not_pass() {
        let since = Instant::now();
        let mut awake = Awake {
            since,
            last_tick: since,
            stopped: Duration::ZERO,
        };
        let mut now = since;
        let mut after = |ms: u64| {
            now += Duration::from_millis(ms);
            awake.tick(now).as_millis()
        };
        // As long as it ticks, time passes, also when ticks come late.
        assert_eq!(after(250), 250);
        assert_eq!(after(2_000), 2_250);
        // An hour in which nothing ran did not pass, whoever asks first; then it goes on.
        assert_eq!(after(3_600_000), 2_250);
        assert_eq!(after(250), 2_500);
        assert_eq!(after(0), 2_500);
        assert_eq!(after(60_000), 2_500);
        assert_eq!(after(1_000), 3_500);
    }
}
