//! Growing pauses between attempts: the one place that knows the `backoff` crate.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff;

/// Pauses that double from `first` up to `longest`, each varied by up to a quarter so that many waiters don't move in step.
#[derive(Debug)]
pub struct Pauses(ExponentialBackoff);

impl Pauses {
    /// Pauses that begin at `first` and end at `longest`.
    pub fn new(first: Duration, longest: Duration) -> Pauses {
        let mut inner = ExponentialBackoff {
            initial_interval: first,
            current_interval: first,
            max_interval: longest,
            multiplier: 2.0,
            randomization_factor: 0.25,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        };
        inner.reset();
        Pauses(inner)
    }

    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        // None only ever comes with `max_elapsed_time`.
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }

    /// Begins again with the shortest pause.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_start_again_after_a_reset() {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(1));
        assert!(pauses.next_pause() <= Duration::from_millis(125));
        let later: Vec<Duration> = (0..10).map(|_| pauses.next_pause()).collect();
        assert!(
            later
                .iter()
                .all(|pause| *pause <= Duration::from_millis(1_250))
        );
        assert!(later[9] >= Duration::from_millis(750));
        pauses.reset();
        assert!(pauses.next_pause() <= Duration::from_millis(125));
    }
}
