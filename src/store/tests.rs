//! Faults that only the writer's own connection can show, and bodies that were stored long ago.

use std::sync::Arc;

use diesel::RunQueryDsl as _;
use diesel::connection::{Connection as _, SimpleConnection};
use serde_json::{Value, json};

use super::connection::AnyConnection;
use super::rows::{node_from, port_from};
use super::{Change, Ident, Save, SaveError, Store, StoreSettings, open};
use crate::node::{Attributes, Node, NodeId};
use crate::timestamp::Timestamp;

fn a_store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&StoreSettings {
        url: format!("sqlite://{}", directory.path().join("upbeat.db").display()),
        readers: 1,
        host: "conductor-1".to_owned(),
        queue_max: 16,
    })
    .unwrap();
    (directory, store)
}

fn a_save(number: u128, extra_bytes: usize) -> Save {
    let mut attributes = Attributes::default();
    attributes
        .extra
        .insert("filler".to_owned(), Value::from("x".repeat(extra_bytes)));
    let id = NodeId(uuid::Uuid::from_u128(number));
    let node = Arc::new(Node::enrolled(id, attributes, Timestamp(1)));
    Save::of(node, Change::Insert)
}

fn on_sqlite(conn: &mut AnyConnection, sql: &str) {
    match conn {
        AnyConnection::Sqlite(conn) => conn.batch_execute(sql).unwrap(),
        AnyConnection::Postgres(_) => unreachable!("these stores are SQLite files"),
    }
}

/// Makes saves fail by `cause`, then takes the cause away.
async fn survives(words: &str, cause: &'static str, cure: &'static str) {
    let (_directory, store) = a_store();
    store.writer.save(a_save(1, 10)).await.unwrap();
    store.writer.meddle(|conn| on_sqlite(conn, cause));
    for _ in 0..2 {
        let both = futures_util::future::join(
            store.writer.save(a_save(2, 1_000_000)),
            store.writer.save(a_save(3, 1_000_000)),
        );
        let (two, three) = both.await;
        for result in [two, three] {
            let Err(SaveError::Unavailable(why)) = result else {
                panic!("{words}: {result:?}");
            };
            assert!(why.contains(words) && why.contains("upbeat.db"), "{why}");
        }
    }
    store.writer.meddle(|conn| on_sqlite(conn, cure));
    for number in [2, 3] {
        let save = a_save(number, 1_000_000);
        let node = save.node.clone();
        store.writer.save(save).await.unwrap();
        let found = store.reader.node(Ident::Id(node.id)).await.unwrap();
        assert_eq!(found.as_ref(), Some(&*node));
    }
    store.handle.close().await;
}

#[tokio::test]
async fn a_full_disk_costs_no_more_than_the_saves_meanwhile() {
    survives(
        "free some space",
        "PRAGMA max_page_count = 1",
        "PRAGMA max_page_count = 1000000",
    )
    .await;
}

#[tokio::test]
async fn a_file_that_became_read_only_costs_no_more_than_the_saves_meanwhile() {
    survives(
        "make the file and its directory writable",
        "PRAGMA query_only = ON",
        "PRAGMA query_only = OFF",
    )
    .await;
}

#[tokio::test]
async fn a_writer_that_died_is_noticed() {
    let (_directory, mut store) = a_store();
    store.writer.dies();
    assert_eq!(store.handle.ended().await, super::WriterEnd::Died);
    assert_eq!(store.handle.ended().await, super::WriterEnd::Died);
    let save = store.writer.save(a_save(1, 1)).await;
    assert!(matches!(save, Err(SaveError::Unavailable(_))), "{save:?}");
    assert_eq!(store.handle.close().await, super::WriterEnd::Died);
}

/// A save that builds on another, made right after it, must not overtake it just because its caller is the first to look.
#[tokio::test]
async fn saves_are_stored_in_the_order_of_the_calls() {
    let (_directory, store) = a_store();
    store.writer.save(a_save(1, 1)).await.unwrap();
    let change = |from_version: u64| {
        let mut save = a_save(1, 1);
        Arc::get_mut(&mut save.node).unwrap().version = from_version + 1;
        save.change = Change::Update { from_version };
        save
    };
    let earlier = store.writer.save(change(1));
    let later = store.writer.save(change(2));
    assert_eq!(later.await, Ok(()));
    assert_eq!(earlier.await, Ok(()));
}

/// True for what a reader takes a missing field for.
fn goes_without_saying(key: &str, value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .all(|(key, value)| goes_without_saying(key, value)),
        Value::Bool(true) => ["pxe_enabled", "available_for_dynamic_portgroup"].contains(&key),
        value => [json!(null), json!(false), json!(0), json!(""), json!([])].contains(value),
    }
}

/// Every leaf of `old` is in `new`, unless it goes without saying.
fn assert_kept(old: &Value, new: &Value, path: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(there) => assert_kept(value, there, &format!("{path}.{key}")),
                    None => assert!(goes_without_saying(key, value), "{path}.{key} is lost"),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                assert_kept(old, new, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(old, new, "{path}"),
    }
}

/// Bodies as the first version stored them are read for ever, with everything they say. When this fails, don't change the
/// fixture: give the new form a new number and read both.
#[test]
fn bodies_of_form_1_are_read() {
    let nodes = include_str!("../../tests/fixtures/store/nodes_form_1.jsonl");
    let mut states = Vec::new();
    for line in nodes.lines() {
        let node = node_from("n", line).unwrap();
        // What has another name since.
        let renamed = line
            .replace(r#""state":"deploying""#, r#""state":"working""#)
            .replace(r#""name":"get_deploy_steps""#, r#""name":"get_steps""#)
            .replace(
                r#""name":"execute_deploy_step""#,
                r#""name":"execute_step""#,
            );
        let stored: Value = serde_json::from_str(&renamed).unwrap();
        assert_eq!(stored["form"], 1);
        let again = serde_json::to_value(&node).unwrap();
        assert_kept(&stored["is"], &again, "node");
        states.push(node.provision_state().name());
    }
    assert_eq!(
        states,
        [
            "enroll",
            "verifying",
            "manageable",
            "available",
            "deploying",
            "wait call-back",
            "deploying",
            "deploy failed",
            "active",
            "deleting",
            "error"
        ]
    );
    let port = include_str!("../../tests/fixtures/store/port_form_1.json");
    let stored: Value = serde_json::from_str(port).unwrap();
    let again = serde_json::to_value(port_from("p", port).unwrap()).unwrap();
    assert_kept(&stored["is"], &again, "port");
}

#[test]
fn bodies_of_form_2_are_read_and_what_goes_without_saying_is_not_written_again() {
    let line = include_str!("../../tests/fixtures/store/node_form_2.json");
    let stored: Value = serde_json::from_str(line).unwrap();
    assert_eq!(stored["form"], 2);
    let node = node_from("n", line).unwrap();
    let again = serde_json::to_value(&node).unwrap();
    assert_kept(&stored["is"], &again, "node");
    let attributes = again["attributes"].as_object().unwrap();
    let names: Vec<&str> = attributes.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "driver",
            "driver_info",
            "extra",
            "instance_info",
            "name",
            "properties",
            "resource_class"
        ]
    );
    let read: Node = serde_json::from_value(again).unwrap();
    assert_eq!(read, node);
}

#[test]
fn a_body_of_a_newer_form_is_told_apart_from_a_damaged_one() {
    let newer = node_from("n", r#"{"form": 4, "is": {}}"#).unwrap_err();
    assert!(newer.contains("run a newer one"), "{newer}");
    let damaged = node_from("n", "{").unwrap_err();
    assert!(damaged.contains("node n can't be read"), "{damaged}");
}

#[tokio::test]
async fn nothing_is_written_to_a_file_that_was_removed_or_replaced() {
    let (directory, store) = a_store();
    store.writer.save(a_save(1, 10)).await.unwrap();
    let file = directory.path().join("upbeat.db");
    let aside = directory.path().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    let refused = async |number| match store.writer.save(a_save(number, 10)).await {
        Err(SaveError::Unavailable(why)) => assert!(why.contains("put the file back"), "{why}"),
        other => panic!("{other:?}"),
    };
    refused(2).await;
    std::fs::copy(&aside, &file).unwrap();
    refused(3).await;
    std::fs::rename(&aside, &file).unwrap();
    store.writer.save(a_save(4, 10)).await.unwrap();
}

#[derive(diesel::QueryableByName)]
struct Plan {
    #[diesel(sql_type = diesel::sql_types::Text)]
    detail: String,
}

#[tokio::test]
async fn a_lookup_by_address_does_not_go_through_all_nodes() {
    let (directory, store) = a_store();
    let addresses = vec!["52:54:00:00:00:01".to_owned(); 2];
    let query = super::nodes::owners(addresses);
    let query = diesel::debug_query::<diesel::sqlite::Sqlite, _>(&query).to_string();
    let (sql, _) = query.split_once(" -- binds").unwrap();
    let file = directory.path().join("upbeat.db");
    let mut conn = diesel::SqliteConnection::establish(file.to_str().unwrap()).unwrap();
    let plan: Vec<Plan> = diesel::sql_query(format!("EXPLAIN QUERY PLAN {sql}"))
        .load(&mut conn)
        .unwrap();
    let plan: Vec<String> = plan.into_iter().map(|line| line.detail).collect();
    assert!(plan.len() > 1, "{plan:?}");
    assert!(!plan.iter().any(|line| line.contains("SCAN")), "{plan:?}");
    store.handle.close().await;
}
