//! When the conductor is away: one plan for all nodes of a run, made from the seed before anything else.

use super::faults::{Fault, Faults};
use super::random::Random;

/// One absence of the conductor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outage {
    /// When it goes, in milliseconds since the beginning.
    pub(super) at: i64,
    /// When it is back.
    pub(super) until: i64,
    /// Asked to stop, so that everything decided is stored; otherwise killed.
    pub(super) is_graceful: bool,
    /// By how much the wall clock is set meanwhile, in milliseconds.
    pub(super) clock_step_ms: i64,
}

/// All absences until `end`.
pub(super) fn outages(seed: u64, end: i64, faults: Faults) -> Vec<Outage> {
    let mut plan = Vec::new();
    if !faults.has(Fault::Crash) {
        return plan;
    }
    let mut random = Random::derived(seed, &[1]);
    let mut clock = Random::derived(seed, &[2]);
    let mut at = 0;
    loop {
        at += random.between(60_000, 6 * 3_600_000);
        // Several restarts in a row, now and then.
        let in_a_row = if random.chance(250) {
            random.between(2, 5)
        } else {
            1
        };
        for _ in 0..in_a_row {
            let away = match random.between(0, 9) {
                0..=5 => random.between(300, 8_000),
                6..=8 => random.between(8_000, 180_000),
                _ => random.between(180_000, 1_200_000),
            };
            let sets_clock = clock.chance(300) && faults.has(Fault::Clock);
            let clock_step_ms = match clock.between(0, 3) {
                _ if !sets_clock => 0,
                0 => clock.between(-5_000, 5_000),
                1 => clock.between(-3_600_000, 3_600_000),
                2 => clock.between(-2 * 86_400_000, -3_600_000),
                _ => clock.between(3_600_000, 2 * 86_400_000),
            };
            let outage = Outage {
                at,
                until: at + away,
                is_graceful: random.chance(300),
                clock_step_ms,
            };
            if at >= end {
                return plan;
            }
            plan.push(outage);
            at = outage.until + random.between(100, 4_000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_come_one_after_the_other() {
        let plan = outages(5, 10 * 86_400_000, Faults::all());
        assert!(plan.len() > 30);
        assert!(plan.windows(2).all(|pair| pair[0].until < pair[1].at));
        assert!(plan.iter().any(|outage| outage.clock_step_ms < 0));
        assert!(outages(5, 86_400_000, Faults::NONE).is_empty());
    }
}
