//! Signs of life, which have rows of their own.

use std::sync::Arc;

use upbeat::node::{Node, Session};
use upbeat::store::{Ident, NodeFilter, SaveError, Store};
use upbeat::timestamp::Timestamp;

use super::support::{Database, a_node, enrol, first, remove, update};

/// A node whose agent was heard at 1 and must be heard again until 100.
fn heard() -> Node {
    let mut node = a_node(1);
    node.session = Some(Session::opened("n".to_owned(), Timestamp(1)));
    node.deadlines.liveness = Some(Timestamp(100));
    node
}

/// The same agent, heard later.
fn heard_again(node: &Node, at: i64) -> Node {
    let mut node = node.clone();
    node.version += 1;
    let session = node.session.as_mut().unwrap();
    session.last_heartbeat_at = Some(Timestamp(at));
    session.last_contact_at = Some(Timestamp(at));
    session.trouble = Some("slow".to_owned());
    session.asked_again_at = Some(Timestamp(at - 1));
    session.proved_alive_at = Some(Timestamp(at));
    node.deadlines.liveness = Some(Timestamp(100 + at));
    node.deadlines.refreshed += 1;
    node
}

async fn sign(store: &Store, node: &Node) -> Result<(), SaveError> {
    store.writer.try_save_signs(Arc::new(node.clone()))?.await
}

/// The node as each way of reading shows it.
async fn read(store: &Store, node: &Node) -> [Node; 3] {
    let reader = &store.reader;
    let one = reader.node(Ident::Id(node.id)).await.unwrap().unwrap();
    let mut listed = reader
        .nodes(NodeFilter::default(), first(10))
        .await
        .unwrap();
    let ids = reader.waiting().await.unwrap();
    let mut waiting = reader.these(ids).await.unwrap();
    [one, listed.remove(0), waiting.remove(0)]
}

pub async fn signs_of_life_are_read_with_their_node(_: &Database, store: &Store) {
    let node = heard();
    enrol(store, std::slice::from_ref(&node)).await;
    let mut last = node;
    for at in [7, 8] {
        last = heard_again(&last, at);
        sign(store, &last).await.unwrap();
        assert_eq!(
            read(store, &last).await,
            [last.clone(), last.clone(), last.clone()]
        );
    }
    // A change counts on them, and is newer than they are.
    let save = update(&mut last, |node| {
        node.last_error = Some("e".to_owned());
        node.session.as_mut().unwrap().last_contact_at = Some(Timestamp(9));
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(
        read(store, &last).await,
        [last.clone(), last.clone(), last.clone()]
    );
}

pub async fn signs_of_an_older_node_do_not_count(_: &Database, store: &Store) {
    let mut node = heard();
    enrol(store, std::slice::from_ref(&node)).await;
    let late = heard_again(&node, 7);
    let save = update(&mut node, |node| {
        node.session = Some(Session::opened("another".to_owned(), Timestamp(8)));
        node.deadlines.liveness = Some(Timestamp(200));
    });
    store.writer.save(save).await.unwrap();
    sign(store, &late).await.unwrap();
    assert_eq!(
        read(store, &node).await,
        [node.clone(), node.clone(), node.clone()]
    );
}

pub async fn signs_go_with_their_node(_: &Database, store: &Store) {
    let node = heard();
    let again = heard_again(&node, 7);
    assert_eq!(sign(store, &again).await, Err(SaveError::VersionConflict));
    enrol(store, std::slice::from_ref(&node)).await;
    sign(store, &again).await.unwrap();
    store.writer.save(remove(&again)).await.unwrap();
    assert_eq!(sign(store, &again).await, Err(SaveError::VersionConflict));
    enrol(store, std::slice::from_ref(&node)).await;
    assert_eq!(
        read(store, &node).await,
        [node.clone(), node.clone(), node.clone()]
    );
}
