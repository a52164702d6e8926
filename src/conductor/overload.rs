//! For how long agents were told to come again because this conductor had too much to do: time that was nobody's silence.
//!
//! Node actors compare it with what it was when their agent was last heard, before they take a deadline for its end.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::timestamp::Timestamp;

/// An agent that was told to come again does so within this time, in milliseconds.
const COMES_AGAIN_WITHIN_MS: i64 = 15_000;

/// The sum of such times.
#[derive(Default)]
pub(super) struct Overload {
    total_ms: AtomicI64,
    /// Agents that were turned away until now have come again by then; a timestamp.
    over_at: AtomicI64,
}

impl Overload {
    /// An agent was turned away.
    pub(super) fn turned_away(&self, now: Timestamp) {
        let over_at = now.plus_ms(COMES_AGAIN_WITHIN_MS).0;
        let before = self.over_at.fetch_max(over_at, Ordering::Relaxed);
        // What this one adds to what those before it did.
        let more = over_at - before.max(now.0);
        if more > 0 {
            self.total_ms.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// All of it so far, in milliseconds.
    pub(super) fn total_ms(&self) -> i64 {
        self.total_ms.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once_however_many_are_turned_away() {
        let overload = Overload::default();
        overload.turned_away(Timestamp(1_000));
        assert_eq!(overload.total_ms(), COMES_AGAIN_WITHIN_MS);
        for at in [1_000, 1_500, 3_000, 3_000] {
            overload.turned_away(Timestamp(at));
        }
        assert_eq!(overload.total_ms(), 2_000 + COMES_AGAIN_WITHIN_MS);
        overload.turned_away(Timestamp(100_000));
        assert_eq!(overload.total_ms(), 2_000 + 2 * COMES_AGAIN_WITHIN_MS);
    }
}
