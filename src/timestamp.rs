//! A point in time as the whole project stores and compares it: milliseconds since 1970, UTC.
//!
//! Pure data; only [`crate::clock`] ever asks the machine for the time. Lengths of time are plain `i64` milliseconds with a name
//! that ends in `_ms`.

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z. Never goes back while a process lives (see [`crate::clock`]).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time `length_ms` milliseconds later; saturates instead of wrapping.
    pub fn plus_ms(self, length_ms: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(length_ms))
    }

    /// How many milliseconds have passed since `earlier`; negative when `earlier` is later.
    pub fn ms_since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}
