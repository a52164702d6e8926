//! Growing pauses between attempts: the one place that knows the `backoff` crate.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff;

/// Pauses that double from `first` up to `longest`, each varied by up to a quarter so that many waiters don't move in step. Small as
/// long as there was none.
#[derive(Debug)]
pub struct Pauses {
    first_ms: u32,
    longest_ms: u32,
    grown: Option<Box<ExponentialBackoff>>,
}

impl Pauses {
    /// Pauses that begin at `first` and end at `longest`.
    pub fn new(first: Duration, longest: Duration) -> Pauses {
        let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        Pauses {
            first_ms: ms(first),
            longest_ms: ms(longest),
            grown: None,
        }
    }

    /// The next pause.
    pub fn next_pause(&mut self) -> Duration {
        let first = Duration::from_millis(self.first_ms.into());
        let longest = Duration::from_millis(self.longest_ms.into());
        let grown = self.grown.get_or_insert_with(|| {
            Box::new(ExponentialBackoff {
                initial_interval: first,
                current_interval: first,
                max_interval: longest,
                multiplier: 2.0,
                randomization_factor: 0.25,
                max_elapsed_time: None,
                ..ExponentialBackoff::default()
            })
        });
        // None only ever comes with `max_elapsed_time`.
        grown.next_backoff().unwrap_or(longest)
    }

    /// Begins again with the shortest pause.
    pub fn reset(&mut self) {
        self.grown = None;
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
