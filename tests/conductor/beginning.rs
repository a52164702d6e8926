//! A conductor is ready when every node that waits has its actor back, and not while thousands of them still begin.

use upbeat::bench::site;
use upbeat::store::{Change, Save};

use crate::alone::start_test_conductor;

const WAITING: u64 = 2_000;

#[actix_web::test]
async fn when_a_conductor_is_ready_every_waiting_node_has_been_taken_up() {
    let test = start_test_conductor(|_| {}).await;
    let now = test.conductor.now();
    for number in 0..WAITING {
        let save = Save::of(site::heard(number, now).into(), Change::Insert);
        test.store.writer.save(save).await.unwrap();
    }
    let recovered = test.conductor.recover(0).await.unwrap();
    let told = test.metrics.encode();
    assert_eq!(recovered as u64, WAITING);
    let taken_up = format!("_count{{event=\"resumed\"}} {WAITING}\n");
    let steps: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("resumed"))
        .collect();
    assert!(told.contains(&taken_up), "{steps:?}");
}
