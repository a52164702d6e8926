//! What happens when the database is not as it should be: a clear message and no start, or a pause and nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use upbeat::store::{Ident, NodeFilter, OpenError, SaveError, StoreSettings};

use super::run;
use super::support::{Database, Raw, a_node, a_port, enrol, first, insert};

fn file_of(database: &Database) -> PathBuf {
    PathBuf::from(database.url.strip_prefix("sqlite://").unwrap())
}

/// The message of an error of the expected kind, which also names the database.
macro_rules! refused {
    ($database:expr, $kind:ident) => {{
        let error = $database.refusal();
        let OpenError::$kind(why) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(error.to_string(), *why);
        why.clone()
    }};
}

#[test]
fn a_new_file_is_for_its_owner_only() {
    run(async {
        let database = Database::sqlite();
        let store = database.open();
        enrol(&store, &[a_node(1)]).await;
        for name in ["upbeat.db", "upbeat.db-wal", "upbeat.db.lock"] {
            let about = fs::metadata(database.directory.path().join(name)).unwrap();
            assert_eq!(about.permissions().mode() & 0o777, 0o600, "{name}");
        }
        store.handle.close().await;
    });
}

#[test]
fn a_directory_is_not_made() {
    let mut database = Database::sqlite();
    let missing = database.directory.path().join("missing");
    database.url = format!("sqlite://{}/upbeat.db", missing.display());
    let why = refused!(database, File);
    assert!(why.contains("missing does not exist"), "{why}");
    assert!(!missing.exists());
    // Nor is one taken for a database.
    database.url = format!("sqlite://{}", database.directory.path().display());
    let why = refused!(database, File);
    assert!(why.contains("not a file"), "{why}");
}

#[test]
fn a_read_only_file_or_directory_is_told() {
    let database = Database::sqlite();
    let file = file_of(&database);
    fs::write(&file, b"").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    let why = refused!(database, File);
    assert!(why.contains("read-only") && why.contains("chmod"), "{why}");

    fs::remove_file(&file).unwrap();
    let directory = database.directory.path();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o500)).unwrap();
    let why = refused!(database, File);
    assert!(why.contains("read-only") && why.contains("chmod"), "{why}");
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn what_is_no_database_is_left_alone() {
    let database = Database::sqlite();
    let file = file_of(&database);
    let text = "not a database, but somebody's letters\n".repeat(100);
    fs::write(&file, &text).unwrap();
    let why = refused!(database, Corrupt);
    assert!(
        why.contains("restore") && why.contains("upbeat.db"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_damaged_database_is_told() {
    run(async {
        let database = Database::sqlite();
        let store = database.open();
        let mut nodes: Vec<_> = (1..=50).map(a_node).collect();
        for node in &mut nodes {
            node.last_error = Some("x".repeat(3_000));
        }
        enrol(&store, &nodes).await;
        store.handle.close().await;
        drop(store.reader);
        database.raw().run("PRAGMA wal_checkpoint(TRUNCATE)");
        let file = file_of(&database);
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2 / 4_096 * 4_096;
        bytes[middle..middle + 8_192].fill(0xA5);
        fs::write(&file, bytes).unwrap();
        let why = refused!(database, Corrupt);
        assert!(why.contains("restore it from a backup"), "{why}");
    });
}

#[test]
fn tables_of_another_program_are_left_alone() {
    let database = Database::sqlite();
    let mut raw = database.raw();
    raw.run("CREATE TABLE albums (title TEXT)");
    let why = refused!(database, Foreign);
    assert!(why.contains("another program"), "{why}");
    assert_eq!(
        raw.ask("SELECT name AS said FROM sqlite_schema"),
        ["albums"]
    );
}

fn a_newer_database_is_left_alone(database: &Database) {
    run(async {
        database.open().handle.close().await;
        let mut raw = database.raw();
        raw.run("INSERT INTO __diesel_schema_migrations (version) VALUES ('9999')");
        let why = refused!(database, Foreign);
        assert!(
            why.contains("newer version") && why.contains("9999"),
            "{why}"
        );
        raw.run("DELETE FROM __diesel_schema_migrations WHERE version = '9999'");
        database.open().handle.close().await;
    });
}

#[test]
fn a_newer_sqlite_database_is_left_alone() {
    a_newer_database_is_left_alone(&Database::sqlite());
}

#[test]
fn a_newer_postgres_database_is_left_alone() {
    if let Some(database) = Database::postgres() {
        a_newer_database_is_left_alone(&database);
    }
}

fn a_second_conductor_is_kept_out(database: &Database, words: &str) {
    run(async {
        let store = database.open();
        let why = refused!(database, InUse);
        assert!(why.contains(words), "{why}");
        // The first one goes on, and once it has ended another may come.
        enrol(&store, &[a_node(1)]).await;
        store.handle.close().await;
        let store = database.open();
        let found = store.reader.node(Ident::Id(a_node(1).id)).await;
        assert_eq!(found, Ok(Some(a_node(1))));
        store.handle.close().await;
    });
}

#[test]
fn a_second_conductor_is_kept_out_of_a_file() {
    a_second_conductor_is_kept_out(&Database::sqlite(), "upbeat.db.lock");
}

#[test]
fn a_second_conductor_is_kept_out_of_a_server() {
    if let Some(database) = Database::postgres() {
        a_second_conductor_is_kept_out(&database, "advisory lock");
    }
}

/// Another program may lock the file without asking for our lock; SQLite waits 5 s for it.
#[test]
fn a_locked_file_costs_no_more_than_the_saves_meanwhile() {
    run(async {
        let database = Database::sqlite();
        let store = database.open();
        let held = database.hold_writes();
        let save = store.writer.save(insert(&a_node(1))).await;
        let Err(SaveError::Unavailable(why)) = save else {
            panic!("{save:?}");
        };
        assert!(why.contains("another program holds"), "{why}");
        // Reading goes on.
        let listed = store.reader.nodes(NodeFilter::default(), first(1)).await;
        assert_eq!(listed, Ok(Vec::new()));
        drop(held);
        store.writer.save(insert(&a_node(1))).await.unwrap();
        store.handle.close().await;
    });
}

#[test]
fn a_lost_server_connection_is_made_again() {
    let Some(database) = Database::postgres() else {
        return;
    };
    run(async {
        let store = database.open();
        enrol(&store, &[a_node(1)]).await;
        let mut raw = database.raw();
        raw.run("UPDATE nodes SET name = 'renamed'");
        let cut = "SELECT CAST(pg_terminate_backend(pid, 5000) AS TEXT) AS said FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert!(!raw.ask(cut).is_empty());
        // Nobody notices: what had not begun to be committed is done again on the new connection.
        enrol(&store, &[a_node(2)]).await;
        let listed = store.reader.nodes(NodeFilter::default(), first(9)).await;
        assert_eq!(listed, Ok(vec![a_node(1), a_node(2)]));
        // Whoever connects anew can't know what became of the last commit, so lists are read anew.
        let listed = store.reader.node_outlines(NodeFilter::default(), first(1));
        let names: Vec<_> = listed
            .await
            .unwrap()
            .iter()
            .map(|of| of.name.clone())
            .collect();
        assert_eq!(names, [Some("renamed".into())]);

        // Cut in the middle of a transaction.
        let held = database.hold_writes();
        let saving = store.writer.save(insert(&a_node(3)));
        let cutting = async {
            // The writer is there once it waits for the lock.
            let waits = "SELECT CAST(pid AS TEXT) AS said FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                         AND datname = current_database()";
            while raw.ask(waits).is_empty() {
                tokio::task::yield_now().await;
            }
            raw.ask("SELECT CAST(pg_terminate_backend(pid, 5000) AS TEXT) AS said FROM pg_stat_activity \
                     WHERE wait_event_type = 'Lock' AND datname = current_database()");
            drop(held);
        };
        let (saved, ()) = tokio::join!(saving, cutting);
        assert_eq!(saved, Ok(()));
        let why = refused!(database, InUse);
        assert!(why.contains("advisory lock"), "{why}");
        store.handle.close().await;
    });
}

/// The server ends the connection while it commits: nobody can say what became of the save, and that is what the answer says.
#[test]
fn a_commit_whose_fate_is_unknown_is_told() {
    let Some(database) = Database::postgres() else {
        return;
    };
    run(async {
        let store = database.open();
        let mut raw = database.raw();
        raw.run(
            "CREATE SEQUENCE cuts; CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF nextval(''cuts'') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); END IF; \
              RETURN NULL; END'; \
             CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON nodes DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION cut()",
        );
        let save = store.writer.save(insert(&a_node(1))).await;
        let Err(SaveError::Unavailable(why)) = save else {
            panic!("{save:?}");
        };
        assert!(why.contains("is not known"), "{why}");
        // Here it was not stored, and it is for the caller to say it again.
        let found = store.reader.node(Ident::Id(a_node(1).id)).await;
        assert_eq!(found, Ok(None));
        enrol(&store, &[a_node(1)]).await;
        store.handle.close().await;
    });
}

#[test]
fn a_server_that_is_not_there_is_told_without_the_password() {
    let database = Database::sqlite();
    let settings = StoreSettings {
        url: "postgres://u:s3cret@127.0.0.1:1/d".to_owned(),
        ..database.settings()
    };
    let Err(error) = database.try_open_with(&settings) else {
        panic!("nothing listens on port 1");
    };
    let OpenError::Unreachable(why) = error else {
        panic!("{error:?}");
    };
    assert!(why.contains("database d on 127.0.0.1"), "{why}");
    assert!(why.contains("see that the server runs"), "{why}");
    assert!(!why.contains("s3cret"), "{why}");
}

#[test]
fn only_the_known_kinds_of_url_are_taken() {
    let mut database = Database::sqlite();
    for url in [
        "postgres:typo",
        "nodes_typo",
        "mysql://h/d",
        "sqlite::memory:",
    ] {
        database.url = url.to_owned();
        let why = refused!(database, Url);
        assert!(why.contains("sqlite:///absolute/path"), "{why}");
    }
    assert!(!PathBuf::from("nodes_typo").exists());
    assert!(!PathBuf::from("postgres:typo").exists());
}

/// What start-up is planned with. Alone on a machine of 2 cores, unoptimised: 0.4 s; the limit is for busy ones.
#[test]
fn ten_thousand_waiting_nodes_are_read_with_their_ports() {
    run(async {
        let database = Database::sqlite();
        let store = database.open();
        let mut node = a_node(0);
        node.ports = vec![a_port(1)].into();
        enrol(&store, std::slice::from_ref(&node)).await;
        let mut raw = database.raw();
        // Copies of a real row, made inside the database, with their own UUIDs.
        raw.run(
            "INSERT INTO nodes SELECT printf('00000000-0000-0000-0000-%012d', value), seq + value, version, NULL, NULL, \
             instance_name, driver, provision_state, power_state, maintenance, fault, resource_class, conductor_group, owner, \
             lessee, retired, description, shard, parent_node, value, 1, created_at, updated_at, \
             replace(body, (SELECT id FROM nodes), printf('00000000-0000-0000-0000-%012d', value)), NULL \
             FROM nodes, (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 10000) SELECT value FROM n)",
        );
        raw.run(
            "INSERT INTO ports SELECT id, seq + 1, id, 'mac of ' || id, NULL, NULL, 0, NULL, (SELECT body FROM ports), NULL FROM nodes WHERE waiting",
        );
        assert_eq!(raw.count("nodes"), "10001");
        let began = std::time::Instant::now();
        let ids = store.reader.waiting().await.unwrap();
        let waiting = store.reader.these(ids).await.unwrap();
        let took = began.elapsed();
        println!("10,000 waiting nodes read in {took:?}");
        assert_eq!(waiting.len(), 10_000);
        assert_eq!(waiting[0].attributes, node.attributes);
        assert!(waiting.iter().all(|found| found.ports == node.ports));
        assert!(took.as_secs_f64() < 10.0, "{took:?}");
        store.handle.close().await;
    });
}

/// `Raw` is for tests that look past the store; this one sees that it can.
#[test]
fn the_file_is_in_wal_mode() {
    run(async {
        let database = Database::sqlite();
        let store = database.open();
        let mut raw = database.raw();
        assert!(matches!(raw, Raw::Sqlite(_)));
        let mode = raw.ask("SELECT journal_mode AS said FROM pragma_journal_mode");
        assert_eq!(mode, ["wal"]);
        store.handle.close().await;
    });
}
