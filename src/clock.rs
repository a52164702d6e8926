//! The only place that asks the machine for the time.
//!
//! Wall time is read once, at start; afterwards the monotonic clock is added to it. So a step of the wall clock, in either
//! direction, neither expires nor immortalises a node while the process lives. The store's rows carry these times across
//! restarts.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::timestamp::Timestamp;

/// A clock that never steps. Cheap to copy; every copy shows the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall_at_start: Timestamp,
    started: Instant,
}

impl Clock {
    /// Reads the wall clock, once.
    pub fn start() -> Clock {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map(|since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            .unwrap_or(0);
        Clock {
            wall_at_start: Timestamp(wall),
            started: Instant::now(),
        }
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.wall_at_start.plus_ms(passed)
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
}
