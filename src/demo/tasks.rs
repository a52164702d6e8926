//! Tasks that end together.
//!
//! A machine that loses power and an agent process that exits both take everything with them that they were doing.
//! Each owns one of these sets; killing it stops all its tasks at their next wait and closes their sockets.

use std::sync::Mutex;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// A set of tasks on one runtime.
pub(crate) struct Tasks {
    runtime: Handle,
    /// `None` once killed.
    set: Mutex<Option<JoinSet<()>>>,
}

impl Tasks {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            set: Mutex::new(Some(JoinSet::new())),
        }
    }

    /// Starts a task. Does nothing after [`Tasks::kill`].
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(set) = self
            .set
            .lock()
            .expect("no code panics while it holds this lock")
            .as_mut()
        {
            while set.try_join_next().is_some() {}
            set.spawn_on(task, &self.runtime);
        }
    }

    /// Stops every task. May be called by one of them, which then ends at its next wait.
    pub(crate) fn kill(&self) {
        drop(
            self.set
                .lock()
                .expect("no code panics while it holds this lock")
                .take(),
        );
    }
}

/// Uniformly distributed in `low..high`.
pub(crate) fn random_between(low: f64, high: f64) -> f64 {
    let random = getrandom::u64().expect("the system always has random bytes after boot");
    // The upper 53 bits are what a double can hold.
    low + (high - low) * ((random >> 11) as f64 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stay_inside_and_differ() {
        let numbers: Vec<f64> = (0..1000).map(|_| random_between(0.3, 0.6)).collect();
        assert!(numbers.iter().all(|number| (0.3..0.6).contains(number)));
        assert!(
            numbers.iter().any(|number| *number < 0.35)
                && numbers.iter().any(|number| *number > 0.55)
        );
    }
}
