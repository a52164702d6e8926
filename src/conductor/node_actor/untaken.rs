//! Time that was nobody's silence and that the node's row does not know of yet: the conductor was away, or could not store anything.
//!
//! The row's deadlines are moved by it with the next commit. Until then neither a panic nor a crash may forget it: the actor keeps
//! it here, and the conductor does not note that it is alive, so that a next start counts from before.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::conductor::shared::OneMore;

/// Shorter times are not worth a change, in milliseconds.
const WORTH_A_CHANGE_MS: i64 = 1_000;

/// What a row does not know yet.
#[derive(Default)]
pub(super) struct Untaken {
    ms: i64,
    /// The version of the row that does not know it; later ones do.
    of_version: u64,
    /// Counted among the nodes whose rows don't know something, as long as it is so.
    unsettled: Option<OneMore>,
}

impl Untaken {
    pub(super) fn new(ms: i64, of_version: u64, unsettled: Option<OneMore>) -> Untaken {
        Untaken {
            ms,
            of_version,
            unsettled,
        }
    }

    /// What the row with this version does not know, in milliseconds.
    pub(super) fn of(&self, version: u64) -> i64 {
        if version == self.of_version {
            self.ms
        } else {
            0
        }
    }

    /// From now on nothing can be stored, for a while at least.
    pub(super) fn begins(&mut self, count: &Arc<AtomicUsize>) {
        self.unsettled.get_or_insert_with(|| OneMore::of(count));
    }

    /// The row with this version was read, and nothing could be taken for so long.
    pub(super) fn add(&mut self, version: u64, held_for_ms: i64) {
        self.ms = self.of(version).saturating_add(held_for_ms);
        self.of_version = version;
        if self.ms.abs() < WORTH_A_CHANGE_MS {
            self.unsettled = None;
        }
    }

    /// A row with this version is stored.
    pub(super) fn stored(&mut self, version: u64) {
        if version > self.of_version {
            self.unsettled = None;
        }
    }

    /// The row knows everything.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled.is_none()
    }

    /// There was nothing to take it off.
    pub(super) fn needless(&mut self) {
        self.unsettled = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_a_row_does_not_know_is_kept_until_a_later_one_is_stored() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = || count.load(Ordering::Acquire);
        let mut untaken = Untaken::new(5_000, 7, Some(OneMore::of(&count)));
        assert_eq!((untaken.of(7), untaken.of(8)), (5_000, 0));
        untaken.begins(&count);
        untaken.add(7, 2_000);
        assert_eq!((untaken.of(7), counted()), (7_000, 1));
        untaken.stored(7);
        assert_eq!(counted(), 1, "that one was there before");
        untaken.stored(8);
        assert_eq!((untaken.of(8), counted()), (0, 0));
        untaken.begins(&count);
        untaken.add(8, 999);
        assert_eq!(counted(), 0, "not worth a change");
        untaken.begins(&count);
        untaken.add(9, -3_000);
        assert_eq!((untaken.of(9), counted()), (-3_000, 1));
        drop(untaken);
        assert_eq!(counted(), 0);
    }
}
