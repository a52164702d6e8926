//! Saves: what is stored, what is refused, what is kept.

use futures_util::future::join_all;
use serde_json::json;
use upbeat::command::{Command, CommandId, Finish, Phase, Request, StepsOf};
use upbeat::node::{
    DriverCall, DriverRequest, Maintenance, Node, NodeId, Power, PowerState, Provision, Session,
    Severity,
};
use upbeat::store::{
    COMMANDS_KEPT_PER_NODE, HISTORY_KEPT_PER_NODE, Ident, NodeFilter, Page, PortFilter, ReadError,
    SAVES_PER_COMMIT, SaveError, Store,
};
use upbeat::timestamp::Timestamp;
use uuid::Uuid;

use super::support::{
    Database, QUEUE_MAX, a_line, a_node, a_port, enrol, first, insert, remove, update,
};

async fn stored(store: &Store, id: NodeId) -> Option<Node> {
    store.reader.node(Ident::Id(id)).await.unwrap()
}

fn duplicate(field: &'static str, value: &str) -> Result<(), SaveError> {
    Err(SaveError::Duplicate {
        field,
        value: value.to_owned(),
    })
}

pub async fn a_node_comes_back_as_it_was(_: &Database, store: &Store) {
    let mut node = a_node(1);
    node.ports = vec![a_port(1), a_port(2)].into();
    node.attributes.driver_info = json!({"address": "http://bmc", "password": "p"})
        .as_object()
        .unwrap()
        .clone();
    node.attributes.extra = json!({"a": [1, -2.5, null, true, "ü\u{0}\n"], "b": {"c": {}}})
        .as_object()
        .unwrap()
        .clone();
    store.writer.save(insert(&node)).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    let by_name = store.reader.node(Ident::Name("node-1".to_owned())).await;
    assert_eq!(by_name.unwrap().as_ref(), Some(&node));

    let save = update(&mut node, |node| {
        node.updated_at = Some(Timestamp(9));
        node.attributes.name = None;
        node.maintenance = Some(
            Maintenance {
                reason: Some("fan".to_owned()),
                fault: Some("power failure".to_owned()),
            }
            .into(),
        );
        node.power = Power {
            state: Some(PowerState::On),
            target: Some(PowerState::Off),
        };
        node.session = Some(Session {
            nonce: "n".to_owned(),
            confirmed: true,
            callback_url: Some("http://192.0.2.1:9999".to_owned()),
            agent_version: None,
            certificate: None,
            instance: None,
            last_heartbeat_at: Some(Timestamp(3)),
            last_contact_at: None,
            trouble: None,
            asked_again_at: None,
            proved_alive_at: None,
        });
        node.command = Some(Command::planned(
            CommandId(1),
            Request::GetSteps {
                of: StepsOf::Deploy,
            },
            Timestamp(5),
        ));
        node.provision = Provision::Manageable;
        node.deadlines.look = Some(Timestamp(77));
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    // The old name is gone, and free.
    let by_name = store.reader.node(Ident::Name("node-1".to_owned())).await;
    assert_eq!(by_name, Ok(None));
    assert_eq!(stored(store, a_node(2).id).await, None);
    store.reader.ping().await.unwrap();
}

pub async fn what_an_inspection_found_is_kept_with_its_node(_: &Database, store: &Store) {
    let mut node = a_node(1);
    enrol(store, std::slice::from_ref(&node)).await;
    assert_eq!(store.reader.inventory(node.id).await, Ok(None));
    let first =
        json!({"inventory": {"memory": {"physical_mb": 4096}}, "plugin_data": {"a": "ü\u{0}"}});
    let second = json!({"inventory": {}, "plugin_data": {}});
    for document in [&first, &second] {
        let mut save = update(&mut node, |node| node.last_error = None);
        save.inventory = Some(document.clone());
        store.writer.save(save).await.unwrap();
        let found = store.reader.inventory(node.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(document));
    }
    // A save that doesn't speak of it leaves it.
    let save = update(&mut node, |node| node.last_error = Some("e".to_owned()));
    store.writer.save(save).await.unwrap();
    let found = store.reader.inventory(node.id).await.unwrap();
    assert_eq!(found, Some(second));
    store.writer.save(remove(&node)).await.unwrap();
    assert_eq!(store.reader.inventory(node.id).await, Ok(None));
}

pub async fn ports_stay_in_the_order_of_their_creation(_: &Database, store: &Store) {
    let mut node = a_node(1);
    node.ports = vec![a_port(9), a_port(5)].into();
    store.writer.save(insert(&node)).await.unwrap();
    let save = update(&mut node, |node| {
        node.ports[0].extra.clear();
        node.ports[0].updated_at = Some(Timestamp(1));
        node.ports.push(a_port(7));
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    let save = update(&mut node, |node| {
        node.ports.remove(0);
        node.ports.push(a_port(9));
    });
    store.writer.save(save).await.unwrap();
    // The last one is the first one again: it kept its UUID, hence its place.
    node.ports.rotate_right(1);
    assert_eq!(stored(store, node.id).await.as_ref(), Some(&node));
    // A save that doesn't speak of ports leaves them.
    let mut save = update(&mut node, |node| node.last_error = Some("e".to_owned()));
    save.ports_changed = false;
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await, Some(node));
}

pub async fn a_save_over_another_version_changes_nothing(_: &Database, store: &Store) {
    let node = a_node(1);
    enrol(store, std::slice::from_ref(&node)).await;
    let mut theirs = node.clone();
    store
        .writer
        .save(update(&mut theirs, |node| {
            node.last_error = Some("theirs".to_owned());
        }))
        .await
        .unwrap();

    let mut ours = node.clone();
    let mut save = update(&mut ours, |node| node.ports.push(a_port(1)));
    save.history.push(a_line(1, "never"));
    assert_eq!(
        store.writer.save(save).await,
        Err(SaveError::VersionConflict)
    );
    assert_eq!(
        store.writer.save(remove(&node)).await,
        Err(SaveError::VersionConflict)
    );
    assert_eq!(stored(store, node.id).await, Some(theirs));
    let history = store.reader.history(node.id, first(10)).await.unwrap();
    assert_eq!(history, []);

    let mut unknown = a_node(2);
    let save = update(&mut unknown, |_| {});
    assert_eq!(
        store.writer.save(save).await,
        Err(SaveError::VersionConflict)
    );
    assert_eq!(stored(store, unknown.id).await, None);
}

pub async fn every_unique_value_is_guarded(_: &Database, store: &Store) {
    let mut one = a_node(1);
    one.attributes.instance_uuid = Some("i-1".to_owned());
    one.ports = vec![a_port(1)].into();
    one.ports[0].name = Some("eth0".to_owned());
    let two = a_node(2);
    enrol(store, &[one.clone(), two.clone()]).await;
    let writer = &store.writer;

    let same_id = insert(&Node {
        attributes: a_node(3).attributes,
        ..one.clone()
    });
    assert_eq!(
        writer.save(same_id).await,
        duplicate("uuid", &one.id.to_string())
    );
    let mut other = a_node(3);
    other.attributes.name = Some("node-1".to_owned());
    assert_eq!(
        writer.save(insert(&other)).await,
        duplicate("name", "node-1")
    );
    let save = update(&mut two.clone(), |node| {
        node.attributes.name = Some("node-1".to_owned());
    });
    assert_eq!(writer.save(save).await, duplicate("name", "node-1"));
    let save = update(&mut two.clone(), |node| {
        node.attributes.instance_uuid = Some("i-1".to_owned());
    });
    assert_eq!(writer.save(save).await, duplicate("instance_uuid", "i-1"));

    let with_port = |change: fn(&mut upbeat::node::Port)| {
        update(&mut two.clone(), |node| {
            // The first one is fine and must not stay either.
            node.ports = vec![a_port(8), a_port(9)].into();
            change(&mut node.ports[1]);
        })
    };
    let save = with_port(|port| port.address = a_port(1).address);
    assert_eq!(
        writer.save(save).await,
        duplicate("address", &a_port(1).address)
    );
    let save = with_port(|port| port.id = a_port(1).id);
    assert_eq!(
        writer.save(save).await,
        duplicate("port uuid", &a_port(1).id.to_string())
    );
    let save = with_port(|port| port.name = Some("eth0".to_owned()));
    assert_eq!(writer.save(save).await, duplicate("port name", "eth0"));

    assert_eq!(stored(store, one.id).await, Some(one));
    assert_eq!(stored(store, two.id).await, Some(two));
}

pub async fn two_ports_of_a_node_can_swap_their_addresses(_: &Database, store: &Store) {
    let mut node = a_node(1);
    node.ports = vec![a_port(1), a_port(2)].into();
    enrol(store, std::slice::from_ref(&node)).await;
    let save = update(&mut node, |node| {
        node.ports[0].address = a_port(2).address;
        node.ports[1].address = a_port(1).address;
    });
    store.writer.save(save).await.unwrap();
    assert_eq!(stored(store, node.id).await, Some(node));
}

pub async fn with_a_node_goes_all_that_hangs_on_it(database: &Database, store: &Store) {
    let mut node = a_node(1);
    node.ports = vec![a_port(1)].into();
    node.command = Some(Command::planned(CommandId(1), Request::Sync, Timestamp(1)));
    let mut save = insert(&node);
    save.history.push(a_line(1, "enrolled"));
    store.writer.save(save).await.unwrap();
    let tables = ["nodes", "ports", "commands", "history"];
    let mut raw = database.raw();
    for table in tables {
        assert_eq!(raw.count(table), "1", "{table}");
    }
    let mut save = remove(&node);
    save.history.push(a_line(2, "removed"));
    store.writer.save(save).await.unwrap();
    for table in tables {
        assert_eq!(raw.count(table), "0", "{table}");
    }
    assert_eq!(stored(store, node.id).await, None);
    store.writer.save(insert(&node)).await.unwrap();
}

pub async fn history_is_kept_in_order_and_trimmed(_: &Database, store: &Store) {
    let mut node = a_node(1);
    enrol(store, &[node.clone(), a_node(2)]).await;
    let mut save = update(&mut node, |_| {});
    // Out of order in time: the order of writing counts.
    save.history = vec![a_line(30, "one"), a_line(10, "two")];
    save.history[1].1.severity = Severity::Error;
    store.writer.save(save).await.unwrap();
    let mut save = update(&mut node, |_| {});
    save.history = vec![a_line(20, "three")];
    store.writer.save(save).await.unwrap();

    let all = store.reader.history(node.id, first(10)).await.unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|entry| (entry.at.0, entry.line.event.as_str()))
        .collect();
    assert_eq!(told, [(30, "one"), (10, "two"), (20, "three")]);
    assert!(all.iter().all(|entry| entry.conductor == "conductor-1"));
    assert_eq!(all[1].line.severity, Severity::Error);
    assert_eq!(all[1].line.event_type, "provisioning");

    let after = |marker: Uuid, descending| Page {
        marker: Some(marker),
        descending,
        ..first(1)
    };
    let read = store.reader.history(node.id, after(all[0].id, false)).await;
    assert_eq!(read.as_deref(), Ok(&all[1..2]));
    let read = store.reader.history(node.id, after(all[2].id, true)).await;
    assert_eq!(read.as_deref(), Ok(&all[1..2]));
    let read = store
        .reader
        .history(a_node(2).id, after(all[0].id, false))
        .await;
    assert_eq!(read, Err(ReadError::UnknownMarker));

    let kept = usize::try_from(HISTORY_KEPT_PER_NODE).unwrap();
    let mut save = update(&mut node, |_| {});
    save.history = (0..HISTORY_KEPT_PER_NODE - 1)
        .map(|number| a_line(100 + number, "more"))
        .collect();
    store.writer.save(save).await.unwrap();
    let all = store.reader.history(node.id, first(5_000)).await.unwrap();
    assert_eq!(all.len(), kept);
    assert_eq!(all[0].line.event, "three");
    assert_eq!(all[kept - 1].at, Timestamp(100 + HISTORY_KEPT_PER_NODE - 2));
}

pub async fn commands_are_kept_as_a_ledger(database: &Database, store: &Store) {
    let mut node = a_node(1);
    enrol(store, std::slice::from_ref(&node)).await;
    let mut raw = database.raw();
    let mut ledger = move || {
        raw.ask(
            "SELECT CAST(number AS TEXT) || ' ' || request || ' ' || CAST(attempt AS TEXT) || ' ' || phase || ' ' || \
             CAST(planned_at AS TEXT) || ' ' || CAST(changed_at AS TEXT) || ' ' || coalesce(error, '-') AS said \
             FROM commands ORDER BY number",
        )
    };
    let mut command = Command::planned(CommandId(1), Request::Sync, Timestamp(10));
    let finish = Finish::Failed {
        kind: "E".to_owned(),
        message: "bad\u{0}".to_owned(),
    };
    let phases = [
        (1, Phase::Planned, "1 standby.sync 1 planned 10 10 -"),
        // The same again, with other things changed: its time stays.
        (1, Phase::Planned, "1 standby.sync 1 planned 10 10 -"),
        (
            1,
            Phase::Sent { at: Timestamp(12) },
            "1 standby.sync 1 sent 10 12 -",
        ),
        (
            2,
            Phase::Sent { at: Timestamp(13) },
            "1 standby.sync 2 sent 10 13 -",
        ),
        (
            2,
            Phase::Ended { finish },
            "1 standby.sync 2 finished 10 14 E: bad\u{fffd}",
        ),
    ];
    for (at, (attempt, phase, row)) in (10..).zip(phases) {
        command.attempt = attempt;
        command.phase = phase;
        let save = update(&mut node, |node| {
            node.command = Some(command.clone());
            node.updated_at = Some(Timestamp(at));
        });
        store.writer.save(save).await.unwrap();
        assert_eq!(ledger(), [row]);
    }
    for number in 2..=u64::try_from(COMMANDS_KEPT_PER_NODE).unwrap() + 3 {
        let save = update(&mut node, |node| {
            node.command = Some(Command::planned(
                CommandId(number),
                Request::PowerOff,
                Timestamp(50),
            ));
        });
        store.writer.save(save).await.unwrap();
    }
    let rows = ledger();
    assert_eq!(rows.len(), 100);
    assert!(
        rows[0].starts_with("4 standby.power_off 1 planned"),
        "{}",
        rows[0]
    );
}

pub async fn what_waits_is_found_at_start(_: &Database, store: &Store) {
    let mut nodes: Vec<Node> = (1..=6).map(a_node).collect();
    nodes[1].deadlines.step = Some(Timestamp(500));
    nodes[1].deadlines.liveness = Some(Timestamp(900));
    nodes[2].deadlines.look = Some(Timestamp(400));
    nodes[2].ports = vec![a_port(1), a_port(2)].into();
    nodes[3].command = Some(Command::planned(CommandId(1), Request::Sync, Timestamp(1)));
    nodes[4].driver_call = Some(DriverCall {
        number: 1,
        request: DriverRequest::Verify,
    });
    let mut ended = Command::planned(CommandId(1), Request::Sync, Timestamp(1));
    ended.phase = Phase::Ended {
        finish: Finish::InstanceLost,
    };
    nodes[5].command = Some(ended);
    enrol(store, &nodes).await;
    let expected = [&nodes[2], &nodes[1], &nodes[3], &nodes[4]];
    let ids = store.reader.waiting().await.unwrap();
    let waiting = store.reader.these(ids.clone()).await.unwrap();
    assert_eq!(waiting.iter().collect::<Vec<_>>(), expected);
    let other_order = [ids[2], a_node(99).id, ids[0]];
    let some = store.reader.these(other_order.to_vec()).await.unwrap();
    assert_eq!(some, [expected[2].clone(), expected[0].clone()]);
    let save = update(&mut nodes[2], |node| node.deadlines.look = None);
    store.writer.save(save).await.unwrap();
    assert_eq!(store.reader.waiting().await.unwrap().len(), 3);
}

pub async fn many_saves_share_a_commit(database: &Database, store: &Store) {
    let nodes: Vec<Node> = (0..=QUEUE_MAX)
        .map(|n| a_node(u32::try_from(n).unwrap()))
        .collect();
    let first_one = database.gate.stop_at(store, insert(&nodes[0])).await;
    let saves = join_all(
        nodes[1..]
            .iter()
            .map(|node| store.writer.save(insert(node))),
    );
    let (results, ()) = tokio::join!(saves, async { database.gate.open() });
    assert_eq!(first_one.await.unwrap(), Ok(()));
    assert!(results.iter().all(Result::is_ok));
    let listed = store
        .reader
        .nodes(NodeFilter::default(), first(1_000))
        .await;
    assert_eq!(listed.unwrap(), nodes);
    let commits = database.commits.lock().unwrap();
    let saves: Vec<usize> = commits.iter().map(|commit| commit.saves).collect();
    let full = nodes[1..].chunks(SAVES_PER_COMMIT).map(<[Node]>::len);
    let expected: Vec<usize> = std::iter::once(1).chain(full).collect();
    assert_eq!(saves, expected);
}

pub async fn a_bad_save_fails_alone(database: &Database, store: &Store) {
    let one = a_node(1);
    enrol(store, std::slice::from_ref(&one)).await;
    let mut stale = one.clone();
    stale.version = 0;
    // Fails at its second port, when the node and the first port are already written.
    let mut half = a_node(6);
    half.ports = vec![a_port(1), a_port(2), a_port(3)].into();
    half.ports[1].address = a_port(1).address;
    let mut renamed = a_node(4);
    renamed.attributes.name = Some("node-1".to_owned());
    let saves = vec![
        insert(&a_node(2)),
        update(&mut stale, |_| {}),
        insert(&a_node(3)),
        insert(&renamed),
        insert(&half),
        insert(&a_node(5)),
        // Good only if the one before it was stored in the same commit.
        update(&mut a_node(5), |node| {
            node.last_error = Some("e".to_owned())
        }),
    ];
    // All of them in one batch.
    database.gate.stop_at(store, insert(&a_node(9))).await;
    let all = join_all(saves.into_iter().map(|save| store.writer.save(save)));
    let (results, ()) = tokio::join!(all, async { database.gate.open() });
    assert_eq!(
        results,
        [
            Ok(()),
            Err(SaveError::VersionConflict),
            Ok(()),
            duplicate("name", "node-1"),
            duplicate("address", &a_port(1).address),
            Ok(()),
            Ok(()),
        ]
    );
    let listed = store.reader.nodes(NodeFilter::default(), first(10)).await;
    let names: Vec<_> = listed
        .unwrap()
        .into_iter()
        .map(|node| node.attributes.name.clone().unwrap())
        .collect();
    assert_eq!(names, ["node-1", "node-9", "node-2", "node-3", "node-5"]);
    let ports = store.reader.ports(PortFilter::default(), first(10)).await;
    assert_eq!(ports, Ok(Vec::new()));
    // Only what was stored is counted.
    let commits = database.commits.lock().unwrap();
    let saves: Vec<usize> = commits.iter().map(|commit| commit.saves).collect();
    assert_eq!(saves, [1, 1, 4]);
}

pub async fn a_full_queue_is_told_at_once(database: &Database, store: &Store) {
    let nodes: Vec<Node> = (0..=QUEUE_MAX + 1)
        .map(|n| a_node(u32::try_from(n).unwrap()))
        .collect();
    let in_hand = database.gate.stop_at(store, insert(&nodes[0])).await;
    let saves = join_all(
        nodes[1..]
            .iter()
            .map(|node| store.writer.save(insert(node))),
    );
    let (mut results, ()) = tokio::join!(saves, async { database.gate.open() });
    assert_eq!(in_hand.await.unwrap(), Ok(()));
    assert_eq!(results.pop(), Some(Err(SaveError::Overloaded)));
    assert!(results.iter().all(Result::is_ok));
    let last = nodes.last().unwrap();
    assert_eq!(stored(store, last.id).await, None);
    store.writer.save(insert(last)).await.unwrap();
}

pub async fn whoever_waits_for_a_place_gets_one_and_takes_none_from_others(
    database: &Database,
    store: &Store,
) {
    // More than are let into the queue at once.
    let many = 1_500;
    let nodes: Vec<Node> = (0..=many).map(a_node).collect();
    let in_hand = database.gate.stop_at(store, insert(&nodes[0])).await;
    let in_turn: Vec<_> = nodes[1..]
        .iter()
        .map(|node| tokio::spawn(store.writer.save_in_turn(insert(node))))
        .collect();
    tokio::task::yield_now().await;
    // All of them have taken what places they can; those of others are still free.
    let first = u32::try_from(QUEUE_MAX).unwrap();
    let others: Vec<_> = (0..first)
        .map(|number| store.writer.try_save(insert(&a_node(many + 1 + number))))
        .collect();
    assert!(others.iter().all(Result::is_ok));
    let one_more = insert(&a_node(many + 1 + first));
    assert!(matches!(
        store.writer.try_save(one_more).map(|_| ()),
        Err(SaveError::Overloaded)
    ));
    database.gate.open();
    assert_eq!(in_hand.await.unwrap(), Ok(()));
    for saved in in_turn {
        assert_eq!(saved.await.unwrap(), Ok(()));
    }
    for saved in others {
        assert_eq!(saved.unwrap().await, Ok(()));
    }
}

pub async fn facts_are_set_once(_: &Database, store: &Store) {
    assert_eq!(store.reader.meta("key").await, Ok(None));
    let set = store.writer.set_meta_if_absent("key", "one").await;
    assert_eq!(set, Ok("one".to_owned()));
    let set = store.writer.set_meta_if_absent("key", "two").await;
    assert_eq!(set, Ok("one".to_owned()));
    assert_eq!(store.reader.meta("key").await, Ok(Some("one".to_owned())));
}

pub async fn odd_texts_are_stored(_: &Database, store: &Store) {
    let mut node = a_node(1);
    node.attributes.name = Some("nul\u{0}'\"%_\\🦀".to_owned());
    node.attributes.description = Some("x".repeat(4_096));
    node.ports = vec![a_port(1)].into();
    let mut save = insert(&node);
    save.history.push(a_line(1, "nul\u{0}"));
    store.writer.save(save).await.unwrap();
    let found = store
        .reader
        .node(Ident::Name(node.attributes.name.clone().unwrap()))
        .await;
    assert_eq!(found, Ok(Some(node.clone())));
    let history = store.reader.history(node.id, first(1)).await.unwrap();
    assert_eq!(history[0].line.event, "nul\u{fffd}");
}

pub async fn closing_stores_what_is_queued(database: &Database, _: &Store) {
    let other = if database.is_sqlite() {
        Database::sqlite()
    } else {
        Database::postgres().unwrap()
    };
    let store = other.open();
    let writer = store.writer.clone();
    let nodes: Vec<Node> = (1..=50).map(a_node).collect();
    let saves = join_all(nodes.iter().map(|node| writer.save(insert(node))));
    let (results, end) = tokio::join!(saves, store.handle.close());
    assert_eq!(end, upbeat::store::WriterEnd::Closed);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let late = writer.save(insert(&a_node(99))).await;
    assert!(matches!(late, Err(SaveError::Unavailable(_))), "{late:?}");
    // The lock is free, everything is there, and new nodes come after the old ones.
    let store = other.open();
    enrol(&store, &[a_node(0)]).await;
    let listed = store.reader.nodes(NodeFilter::default(), first(100)).await;
    let listed = listed.unwrap();
    assert_eq!(listed[..50], nodes);
    assert_eq!(listed[50], a_node(0));
    store.handle.close().await;
}
