//! What one step of the pure core costs. Claim: a heartbeat's step is a small part of a microsecond's work beside its commit, so
//! one core decides for 100,000 nodes with ease.
//!
//! `cargo bench --bench step`

mod common;

use std::hint::black_box;
use std::time::Instant;

use upbeat::node::{Event, Heartbeat, Limits, TokenMatch, step};
use upbeat::timestamp::Timestamp;

const STEPS: u32 = 200_000;

fn main() {
    common::print_machine();
    let limits = Limits::default();
    let heartbeat = || {
        Event::Heartbeat(Heartbeat {
            callback_url: common::CALLBACK_URL.to_owned(),
            agent_version: Some("13.0.0".to_owned()),
            certificate: None,
            token: TokenMatch::Right,
        })
    };
    let mut node = common::heard(1, "nonce", Timestamp(0));
    measure("heartbeat", |at| {
        let next = step(&node, heartbeat(), common::moment(at, &limits));
        node = next.node;
    });
    let node = common::heard(1, "nonce", Timestamp(0));
    measure("deadline that is not due", |at| {
        black_box(step(
            &node,
            Event::DeadlineReached,
            common::moment(at, &limits),
        ));
    });
    measure("refused heartbeat", |at| {
        let mut event = heartbeat();
        if let Event::Heartbeat(heartbeat) = &mut event {
            heartbeat.token = TokenMatch::Wrong;
        }
        black_box(step(&node, event, common::moment(at, &limits)));
    });
}

fn measure(what: &str, mut once: impl FnMut(Timestamp)) {
    let began = Instant::now();
    for number in 0..STEPS {
        once(Timestamp(1_000 + i64::from(number)));
    }
    let each = began.elapsed() / STEPS;
    println!("{what}: {each:?} a step");
}
