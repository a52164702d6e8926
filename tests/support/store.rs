//! Databases for one test each, and nodes to put into them.

use std::sync::{Arc, Condvar, Mutex};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel::{PgConnection, SqliteConnection};
use serde_json::json;
use tokio::task::JoinHandle;
use upbeat::node::{Attributes, HistoryLine, Node, NodeId, Port, PortId, ProvisionState, Severity};
use upbeat::store::{
    Change, Commit, OpenError, Page, Save, SaveError, Store, StoreSettings, open_observed,
};
use upbeat::timestamp::Timestamp;
use uuid::Uuid;

/// Names a PostgreSQL server for the tests, with the right to make databases there.
pub const POSTGRES_URL: &str = "UPBEAT_TEST_POSTGRES_URL";

/// How many saves may wait in these tests.
pub const QUEUE_MAX: usize = 300;

/// A database of one test's own; gone when dropped.
pub struct Database {
    pub url: String,
    pub directory: tempfile::TempDir,
    /// Where to drop it, and its name.
    server: Option<(String, String)>,
    pub commits: Arc<Mutex<Vec<Commit>>>,
    pub gate: Gate,
}

/// Stops the store's writer after a commit, before it answers and takes more.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum GateState {
    #[default]
    Open,
    /// The next commit stops here.
    Shut,
    /// One has stopped here.
    Occupied,
}

impl Gate {
    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        if *state == GateState::Shut {
            *state = GateState::Occupied;
            changed.notify_all();
        }
        drop(changed.wait_while(state, |state| *state == GateState::Occupied));
    }

    /// Gives the writer a save to stop at and returns once it has stopped; the save is answered after [`Gate::open`].
    pub async fn stop_at(&self, store: &Store, save: Save) -> JoinHandle<Result<(), SaveError>> {
        *self.0.0.lock().unwrap() = GateState::Shut;
        let writer = store.writer.clone();
        let answer = tokio::spawn(async move { writer.save(save).await });
        let gate = self.clone();
        tokio::task::spawn_blocking(move || {
            let (state, changed) = &*gate.0;
            drop(changed.wait_while(state.lock().unwrap(), |state| *state == GateState::Shut));
        })
        .await
        .unwrap();
        answer
    }

    /// Lets the writer go on.
    pub fn open(&self) {
        let (state, changed) = &*self.0;
        *state.lock().unwrap() = GateState::Open;
        changed.notify_all();
    }
}

impl Database {
    pub fn sqlite() -> Database {
        let directory = tempfile::tempdir().unwrap();
        Database {
            url: format!("sqlite://{}", directory.path().join("upbeat.db").display()),
            directory,
            server: None,
            commits: Arc::default(),
            gate: Gate::default(),
        }
    }

    /// None where no server is named.
    pub fn postgres() -> Option<Database> {
        let Ok(server) = std::env::var(POSTGRES_URL) else {
            println!("SKIPPED: PostgreSQL store cases (set {POSTGRES_URL})");
            return None;
        };
        let name = format!("upbeat_test_{}", Uuid::new_v4().simple());
        let mut conn = PgConnection::establish(&server).expect(POSTGRES_URL);
        conn.batch_execute(&format!("CREATE DATABASE {name}"))
            .unwrap();
        let mut url = url::Url::parse(&server).expect(POSTGRES_URL);
        url.set_path(&name);
        Some(Database {
            url: url.to_string(),
            directory: tempfile::tempdir().unwrap(),
            server: Some((server, name)),
            commits: Arc::default(),
            gate: Gate::default(),
        })
    }

    pub fn is_sqlite(&self) -> bool {
        self.server.is_none()
    }

    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            url: self.url.clone(),
            readers: 2,
            host: "conductor-1".to_owned(),
            queue_max: QUEUE_MAX,
        }
    }

    pub fn try_open_with(&self, settings: &StoreSettings) -> Result<Store, OpenError> {
        let (commits, gate) = (Arc::clone(&self.commits), self.gate.clone());
        open_observed(
            settings,
            Arc::new(move |commit| {
                commits.lock().unwrap().push(commit);
                gate.pass();
            }),
        )
    }

    pub fn try_open(&self) -> Result<Store, OpenError> {
        self.try_open_with(&self.settings())
    }

    pub fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    /// Why it can't be opened.
    pub fn refusal(&self) -> OpenError {
        match self.try_open() {
            Ok(_) => panic!("{} was opened", self.url),
            Err(error) => error,
        }
    }

    /// A connection past the store.
    pub fn raw(&self) -> Raw {
        match self.url.strip_prefix("sqlite://") {
            Some(path) => Raw::Sqlite(SqliteConnection::establish(path).unwrap()),
            None => Raw::Postgres(PgConnection::establish(&self.url).unwrap()),
        }
    }

    /// Keeps the store's writer from writing until the returned connection is dropped.
    pub fn hold_writes(&self) -> Raw {
        let mut raw = self.raw();
        match raw {
            Raw::Sqlite(_) => raw.run("BEGIN IMMEDIATE"),
            Raw::Postgres(_) => raw.run("BEGIN; LOCK TABLE nodes IN EXCLUSIVE MODE"),
        }
        raw
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.server {
            let mut conn = PgConnection::establish(server).unwrap();
            conn.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
                .unwrap();
        }
    }
}

/// A connection past the store.
pub enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

#[derive(QueryableByName)]
struct Said {
    #[diesel(sql_type = Text)]
    said: String,
}

impl Raw {
    pub fn run(&mut self, sql: &str) {
        match self {
            Raw::Sqlite(conn) => conn.batch_execute(sql),
            Raw::Postgres(conn) => conn.batch_execute(sql),
        }
        .unwrap();
    }

    /// The rows of a query whose only column is a text called `said`.
    pub fn ask(&mut self, sql: &str) -> Vec<String> {
        let rows: Vec<Said> = match self {
            Raw::Sqlite(conn) => diesel::sql_query(sql).load(conn),
            Raw::Postgres(conn) => diesel::sql_query(sql).load(conn),
        }
        .unwrap();
        rows.into_iter().map(|row| row.said).collect()
    }

    pub fn count(&mut self, table: &str) -> String {
        self.ask(&format!(
            "SELECT CAST(count(*) AS TEXT) AS said FROM {table}"
        ))
        .remove(0)
    }
}

/// A node whose UUID, name and times follow from a number.
pub fn a_node(number: u32) -> Node {
    let id = NodeId(Uuid::from_u128(0xA000_0000 + u128::from(number)));
    let attributes = Attributes {
        name: Some(format!("node-{number}")),
        driver: "fake-hardware".to_owned(),
        ..Attributes::default()
    };
    Node::enrolled(id, attributes, Timestamp(1_000 + i64::from(number)))
}

/// A port whose UUID and address follow from a number.
pub fn a_port(number: u32) -> Port {
    let [_, a, b, c] = number.to_be_bytes();
    Port {
        id: PortId(Uuid::from_u128(0xB000_0000 + u128::from(number))),
        created_at: Timestamp(2_000 + i64::from(number)),
        updated_at: None,
        address: format!("52:54:00:{a:02x}:{b:02x}:{c:02x}"),
        name: None,
        pxe_enabled: true,
        extra: json!({"rack": number}).as_object().unwrap().clone(),
        local_link_connection: json!({}).as_object().unwrap().clone(),
        physical_network: None,
        is_smartnic: false,
        description: None,
        vendor: None,
        category: None,
        portgroup_uuid: None,
        available_for_dynamic_portgroup: true,
    }
}

/// `node` for the first time.
pub fn insert(node: &Node) -> Save {
    Save {
        ports_changed: true,
        ..Save::of(Arc::new(node.clone()), Change::Insert)
    }
}

/// Raises the version and returns the save of it.
pub fn update(node: &mut Node, change: impl FnOnce(&mut Node)) -> Save {
    let from_version = node.version;
    let ports = node.ports.clone();
    change(node);
    node.version = from_version + 1;
    Save {
        ports_changed: node.ports != ports,
        ..Save::of(Arc::new(node.clone()), Change::Update { from_version })
    }
}

/// `node` for the last time.
pub fn remove(node: &Node) -> Save {
    let from_version = node.version;
    Save::of(Arc::new(node.clone()), Change::Remove { from_version })
}

/// A line that happened at the given time.
pub fn a_line(at: i64, event: &str) -> (Timestamp, HistoryLine) {
    (
        Timestamp(at),
        HistoryLine {
            severity: Severity::Info,
            event_type: "provisioning".to_owned(),
            event: event.to_owned(),
            state: Some(ProvisionState::Available),
            target: None,
            lasted_ms: Some(at),
        },
    )
}

/// The first so many, in the order of creation.
pub fn first(limit: usize) -> Page {
    Page {
        limit,
        marker: None,
        sort_key: None,
        descending: false,
    }
}

/// Stores new nodes, one after the other.
pub async fn enrol(store: &Store, nodes: &[Node]) {
    for node in nodes {
        store.writer.save(insert(node)).await.unwrap();
    }
}
