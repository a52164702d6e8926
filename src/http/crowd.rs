//! How many requests are being answered at once. Those beyond a limit are told to come again at once: so a machine that is asked for
//! more than it can do goes on doing as much as it can, and each answer it gives is one somebody still waits for.
//!
//! Agents and users have places of their own, so that neither keeps the other out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often the log tells of those who were turned away.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// The places there are.
pub struct Crowd {
    agents: Arc<AtomicUsize>,
    users: Arc<AtomicUsize>,
    most: usize,
    since: Instant,
    turned_away: AtomicU64,
    /// Milliseconds after `since` at which the log was last told.
    told_at_ms: AtomicU64,
}

/// A place, until dropped.
pub struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Crowd {
    /// So many places for agents, and as many for users.
    pub fn new(most: usize) -> Crowd {
        Crowd {
            agents: Arc::default(),
            users: Arc::default(),
            most,
            since: Instant::now(),
            turned_away: AtomicU64::new(0),
            told_at_ms: AtomicU64::new(0),
        }
    }

    /// A place, if one is free.
    pub fn enter(&self, is_agent: bool) -> Option<Place> {
        let taken = if is_agent { &self.agents } else { &self.users };
        let place = Place(taken.clone());
        if taken.fetch_add(1, Ordering::AcqRel) < self.most {
            return Some(place);
        }
        drop(place);
        self.tell();
        None
    }

    /// One line for all who were turned away since the last one.
    fn tell(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let told = self.told_at_ms.load(Ordering::Relaxed);
        let is_due = told == 0 || now.saturating_sub(told) >= TOLD_EVERY.as_millis() as u64;
        if !is_due {
            return;
        }
        let (usual, now) = (Ordering::Relaxed, now.max(1));
        // Of several at the same time one tells.
        if self
            .told_at_ms
            .compare_exchange(told, now, usual, usual)
            .is_ok()
        {
            let requests = self.turned_away.swap(0, Ordering::Relaxed);
            tracing::warn!(
                requests,
                at_once = self.most,
                "more requests at once than api.max_requests: these were told to come again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_and_agents_take_none_from_users() {
        let crowd = Crowd::new(2);
        let first = crowd.enter(true);
        let second = crowd.enter(true);
        assert!(first.is_some() && second.is_some());
        assert!(crowd.enter(true).is_none());
        assert!(
            crowd.enter(true).is_none(),
            "a refusal takes no place and gives none back"
        );
        let user = crowd.enter(false);
        assert!(user.is_some());
        drop(first);
        assert!(crowd.enter(true).is_some());
    }
}
