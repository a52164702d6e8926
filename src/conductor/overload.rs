//! For how long agents were told to come again because this conductor had too much to do: time that was nobody's silence.
//!
//! Node actors compare it with what it was when their agent was last heard, before they take a deadline for its end.

use std::sync::{Mutex, PoisonError};

use crate::timestamp::Timestamp;

/// An agent that was told to come again does so within this time, in milliseconds.
const COMES_AGAIN_WITHIN_MS: i64 = 15_000;

/// The sum of such times.
#[derive(Default)]
pub(super) struct Overload(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    total_ms: i64,
    /// Agents that were turned away until now have come again by then.
    over_at: Option<Timestamp>,
}

impl Overload {
    /// An agent was turned away.
    pub(super) fn turned_away(&self, now: Timestamp) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over_at = now.plus_ms(COMES_AGAIN_WITHIN_MS);
        // What this one adds to what those before it did.
        let since = inner.over_at.map_or(now, |before| before.max(now));
        inner.total_ms += over_at.ms_since(since).max(0);
        inner.over_at = Some(over_at);
    }

    /// All of it so far, in milliseconds.
    pub(super) fn total_ms(&self) -> i64 {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.total_ms
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
