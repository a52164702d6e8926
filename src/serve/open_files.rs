//! How many files this process may have open, and how many of them the callers of its API get.
//!
//! Every connection is an open file, and so is the database: a conductor that takes in more connections than it has files for can't
//! open anything else either. Called once at start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the database, the log, the runtime, and whatever comes.
const FOR_THE_REST: u64 = 256;
/// Idle connections to agents that are kept, beside those under way.
const IDLE_TO_AGENTS: u64 = 512;
/// Below this an API is of no use.
const LEAST_PER_WORKER: u64 = 64;
/// More don't help one thread.
const MOST_PER_WORKER: u64 = 16_384;

/// Raises the limit of open files as far as this process may, and answers what it is then.
pub fn allow_all() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(_) => current.unwrap_or(u64::MAX),
    }
}

/// How many connections each of `workers` threads of the API may have open when `agent_requests` may be under way to agents.
pub(super) fn connections_per_worker(
    open_files: u64,
    agent_requests: usize,
    workers: usize,
) -> usize {
    let taken = FOR_THE_REST + IDLE_TO_AGENTS + agent_requests as u64;
    let share = open_files.saturating_sub(taken) / workers.max(1) as u64;
    if share < LEAST_PER_WORKER {
        tracing::warn!(
            open_files,
            agent_requests,
            "too few open files are allowed for many agents at once; raise the limit (LimitNOFILE, ulimit -n) or lower agent.requests_max"
        );
    }
    let share = share.clamp(LEAST_PER_WORKER, MOST_PER_WORKER);
    usize::try_from(share).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_and_the_database_need_is_left_over() {
        assert_eq!(connections_per_worker(1 << 20, 1_000, 2), 16_384);
        assert_eq!(connections_per_worker(4_096, 1_000, 2), 1_164);
        assert_eq!(connections_per_worker(1_024, 1_000, 2), 64);
        assert_eq!(connections_per_worker(u64::MAX, 1_000, 8), 16_384);
    }
}
