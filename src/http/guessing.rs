//! Slows down whoever guesses passwords: after a few wrong ones from an address, or for a user, each further one has to wait for
//! its turn, longer with every failure. A right one is let in after its turn, so nobody is locked out; what was right a short while
//! ago is not asked here at all.
//!
//! Pure: the time comes with each question. Memory is bounded: the key that failed longest ago is forgotten first.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// So many failures cost nothing: people mistype.
const FREE: u32 = 5;
/// The first turn takes so long; each failure doubles it.
const FIRST_TURN: Duration = Duration::from_millis(100);
/// Turns never take longer.
const LONGEST_TURN: Duration = Duration::from_secs(5);
/// Whose turn is further away is sent away.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Failures are forgotten after so long without another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// So many addresses and so many users are remembered at most.
const REMEMBERED_MAX: usize = 4096;

/// Who has guessed wrongly.
#[derive(Default)]
pub struct Guessing {
    addresses: Failures<IpAddr>,
    users: Failures<[u8; 32]>,
}

/// How an attempt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// After so long.
    In(Duration),
    /// Too many wait before it.
    TooFar,
}

impl Guessing {
    /// When an attempt may be checked that comes from `address` for the user with this digest.
    pub fn turn(&mut self, address: IpAddr, user: [u8; 32], now: Instant) -> Turn {
        let by_address = self.addresses.turn(&network(address), now);
        if by_address > LONGEST_WAIT {
            return Turn::TooFar;
        }
        // Whoever guesses from many addresses can make a user wait, but not keep them out.
        let by_user = self.users.turn(&user, now).min(LONGEST_WAIT);
        Turn::In(by_address.max(by_user))
    }

    /// It was wrong.
    pub fn failed(&mut self, address: IpAddr, user: [u8; 32], now: Instant) {
        self.addresses.add(network(address), now);
        self.users.add(user, now);
    }

    /// It was right. What its address has failed at is not forgotten: it may have guessed at others.
    pub fn succeeded(&mut self, user: [u8; 32]) {
        self.users.0.remove(&user);
    }
}

/// Whoever has one IPv6 address has a whole network of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

struct Failures<K>(HashMap<K, Failed>);

impl<K> Default for Failures<K> {
    fn default() -> Failures<K> {
        Failures(HashMap::new())
    }
}

struct Failed {
    times: u32,
    last: Instant,
    /// When the turns that were given out are over.
    busy_until: Instant,
}

impl Failed {
    fn takes(&self) -> Duration {
        match self.times.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(more) => FIRST_TURN
                .saturating_mul(2_u32.saturating_pow(more))
                .min(LONGEST_TURN),
        }
    }
}

impl<K: Eq + Hash + Copy> Failures<K> {
    /// How long until the next turn, which is given out unless it is too far away.
    fn turn(&mut self, key: &K, now: Instant) -> Duration {
        let Some(failed) = self.0.get_mut(key) else {
            return Duration::ZERO;
        };
        if now.saturating_duration_since(failed.last) > FORGOTTEN_AFTER {
            self.0.remove(key);
            return Duration::ZERO;
        }
        let turn = failed.busy_until.max(now) + failed.takes();
        let wait = turn.saturating_duration_since(now);
        if wait <= LONGEST_WAIT {
            failed.busy_until = turn;
        }
        wait
    }

    fn add(&mut self, key: K, now: Instant) {
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let failed = self.0.entry(key).or_insert(Failed {
            times: 0,
            last: now,
            busy_until: now,
        });
        failed.times = failed.times.saturating_add(1);
        failed.last = now;
    }

    fn make_room(&mut self, now: Instant) {
        self.0
            .retain(|_, failed| now.saturating_duration_since(failed.last) <= FORGOTTEN_AFTER);
        while self.0.len() >= REMEMBERED_MAX {
            let oldest = self.0.iter().min_by_key(|(_, failed)| failed.last);
            match oldest.map(|(key, _)| *key) {
                Some(key) => self.0.remove(&key),
                None => return,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn user(number: u64) -> [u8; 32] {
        let mut user = [0; 32];
        user[..8].copy_from_slice(&number.to_le_bytes());
        user
    }

    fn ms(of: Turn) -> u128 {
        match of {
            Turn::In(wait) => wait.as_millis(),
            Turn::TooFar => panic!("too far"),
        }
    }

    #[test]
    fn a_few_mistakes_cost_nothing_and_more_cost_ever_more() {
        let mut guessing = Guessing::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for number in 0..13 {
            let wait = guessing.turn(HERE, user(number), now);
            waits.push(ms(wait));
            now += Duration::from_secs(10);
            guessing.failed(HERE, user(number), now);
        }
        assert_eq!(
            waits,
            [0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]
        );
        // Others are not slowed down, and after a while it is forgotten.
        let other = "10.0.0.2".parse().unwrap();
        assert_eq!(ms(guessing.turn(other, user(99), now)), 0);
        now += FORGOTTEN_AFTER + Duration::from_secs(1);
        assert_eq!(ms(guessing.turn(HERE, user(0), now)), 0);
    }

    #[test]
    fn attempts_at_the_same_time_wait_behind_each_other_and_too_many_are_sent_away() {
        let mut guessing = Guessing::default();
        let now = Instant::now();
        for _ in 0..9 {
            guessing.failed(HERE, user(1), now);
        }
        let other = |number: u64| user(100 + number);
        let waits: Vec<u128> = (0..6)
            .map(|number| ms(guessing.turn(HERE, other(number), now)))
            .collect();
        assert_eq!(waits, [1600, 3200, 4800, 6400, 8000, 9600]);
        for number in 0..100 {
            assert_eq!(guessing.turn(HERE, other(number), now), Turn::TooFar);
        }
        // Those who were sent away did not lengthen the queue.
        let later = now + Duration::from_millis(1_600);
        assert_eq!(ms(guessing.turn(HERE, other(0), later)), 9600);
    }

    #[test]
    fn a_user_that_is_guessed_at_from_everywhere_waits_but_is_not_kept_out() {
        let mut guessing = Guessing::default();
        let now = Instant::now();
        let from = |number: u32| IpAddr::V4(number.into());
        for number in 0..50 {
            guessing.failed(from(number), user(1), now);
        }
        for number in 100..200 {
            let wait = ms(guessing.turn(from(number), user(1), now));
            assert!((5_000..=10_000).contains(&wait), "{wait}");
        }
        guessing.succeeded(user(1));
        assert_eq!(ms(guessing.turn(from(100), user(1), now)), 0);
    }

    #[test]
    fn all_addresses_of_a_network_of_ipv6_are_one() {
        let mut guessing = Guessing::default();
        let now = Instant::now();
        for number in 0..8 {
            let address = format!("2001:db8::{number}").parse().unwrap();
            guessing.failed(address, user(number), now);
        }
        let waits = |text: &str, guessing: &mut Guessing| {
            ms(guessing.turn(text.parse().unwrap(), user(99), now))
        };
        assert_eq!(waits("2001:db8::ffff", &mut guessing), 800);
        assert_eq!(waits("2001:db8:0:1::1", &mut guessing), 0);
        guessing.failed(HERE, user(1), now);
        assert_eq!(guessing.addresses.0.len(), 2);
        guessing.failed("::ffff:10.0.0.1".parse().unwrap(), user(1), now);
        assert_eq!(guessing.addresses.0.len(), 2, "the same in other words");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let mut guessing = Guessing::default();
        let mut now = Instant::now();
        for _ in 0..10 {
            guessing.failed(HERE, user(0), now);
        }
        for number in 0..REMEMBERED_MAX + 50 {
            now += Duration::from_millis(1);
            let number = u32::try_from(number).unwrap();
            let address = IpAddr::V4((0x0b00_0000 | number).into());
            guessing.failed(address, user(u64::from(number) + 1), now);
        }
        assert_eq!(guessing.addresses.0.len(), REMEMBERED_MAX);
        assert_eq!(guessing.users.0.len(), REMEMBERED_MAX);
        assert!(!guessing.addresses.0.contains_key(&HERE));
    }
}
