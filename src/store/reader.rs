//! Reads from the database: a small pool of connections, used on tokio's blocking threads.
//!
//! Everything that only looks goes through here and never waits behind a commit. A read that finds no free connection within
//! [`WAIT_MS`] is answered `Unavailable`. Never writes: the connections themselves are set to refuse it.

use std::sync::Arc;
use std::time::Duration;

use diesel::r2d2::R2D2Connection;
use serde_json::Value;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::connection::{AnyConnection, Place};
use super::fault::ReadFault;
use super::lists::Published;
use super::types::{
    HistoryEntry, Ident, LedgerEntry, NodeFilter, NodeOutline, Page, PartFilter, PartOfNode,
    PortFilter, PortOfNode, ReadError, RecordFilter,
};
use super::{catalog, commands, history, inventories, meta, nodes, parts, ports};
use crate::catalog::{Kind, Record};
use crate::node::parts::PartKind;
use crate::node::{Node, NodeId, PortId, ProvisionState};

/// How long a read waits for a connection.
const WAIT_MS: u64 = 2_000;

/// Reads from the database, on blocking threads. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    lists: Arc<Published>,
    pool: r2d2::Pool<Manager>,
    /// As many permits as connections: reads wait here, without a thread each.
    free: Arc<Semaphore>,
}

impl Reader {
    pub(super) fn new(place: Place, lists: Arc<Published>, connections: u32) -> Reader {
        let connections = connections.max(1);
        let pool = r2d2::Pool::builder()
            .max_size(connections)
            .min_idle(Some(1))
            .connection_timeout(Duration::from_millis(WAIT_MS))
            // Errors are told to whoever waits for the connection.
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(Manager {
                place: place.clone(),
            });
        Reader {
            shared: Arc::new(Shared {
                place,
                lists,
                pool,
                free: Arc::new(Semaphore::new(connections as usize)),
            }),
        }
    }

    /// One node, with its ports.
    ///
    /// # Errors
    /// `Unavailable`, as all reads.
    pub async fn node(&self, ident: Ident<NodeId>) -> Result<Option<Node>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| nodes::find(conn, &ident)))
            .await
    }

    /// Whether there is such a node. Is known without the database.
    pub fn has_node(&self, id: NodeId) -> bool {
        self.shared.lists.has(id)
    }

    /// Nodes by filter and page, with their ports. An unknown sort key is answered `Unavailable`: check it before, against
    /// [`NODE_SORT_KEYS`](super::NODE_SORT_KEYS).
    ///
    /// # Errors
    /// `UnknownMarker` if no node has the marker's UUID.
    pub async fn nodes(&self, filter: NodeFilter, page: Page) -> Result<Vec<Node>, ReadError> {
        let published = Arc::clone(&self.shared.lists);
        self.read(move |conn| {
            // Before the picture of the database, so that it is not newer than that.
            let lists = published.now();
            conn.snapshot(|conn| nodes::list(conn, &lists, &filter, page))
        })
        .await
    }

    /// Nodes by filter and page, as far as lists know them: far quicker than [`Reader::nodes`], and without the database.
    ///
    /// # Errors
    /// As [`Reader::nodes`].
    pub async fn node_outlines(
        &self,
        filter: NodeFilter,
        page: Page,
    ) -> Result<Vec<Arc<NodeOutline>>, ReadError> {
        self.look(move |shared| {
            let found = shared.lists.now().page(&filter, &page);
            found.map_err(|fault| fault.explained(&shared.place))
        })
        .await
    }

    /// The nodes that own any port with one of these MAC addresses, each once.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn nodes_by_addresses(
        &self,
        addresses: Vec<String>,
    ) -> Result<Vec<NodeId>, ReadError> {
        self.read(move |conn| nodes::by_addresses(conn, &addresses))
            .await
    }

    /// One port.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn port(&self, ident: Ident<PortId>) -> Result<Option<PortOfNode>, ReadError> {
        self.read(move |conn| ports::find(conn, &ident)).await
    }

    /// Ports by filter and page; sort keys as with [`Reader::nodes`].
    ///
    /// # Errors
    /// `UnknownMarker` if no port has the marker's UUID.
    pub async fn ports(
        &self,
        filter: PortFilter,
        page: Page,
    ) -> Result<Vec<PortOfNode>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| ports::list(conn, filter, &page)))
            .await
    }

    /// One part of a node that is no port.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn part<T: PartKind>(
        &self,
        ident: Ident<Uuid>,
    ) -> Result<Option<PartOfNode<T>>, ReadError> {
        self.read(move |conn| parts::find(conn, &ident)).await
    }

    /// Parts of one kind by filter and page; sort keys as with [`Reader::nodes`].
    ///
    /// # Errors
    /// `UnknownMarker` if no part has the marker's UUID.
    pub async fn parts<T: PartKind>(
        &self,
        filter: PartFilter,
        page: Page,
    ) -> Result<Vec<PartOfNode<T>>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| parts::list(conn, filter, &page)))
            .await
    }

    /// One object that stands for itself.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn record<T: Kind>(
        &self,
        ident: Ident<Uuid>,
    ) -> Result<Option<Record<T>>, ReadError> {
        self.read(move |conn| catalog::find(conn, &ident)).await
    }

    /// Objects of one kind by filter and page; sort keys as with [`Reader::nodes`].
    ///
    /// # Errors
    /// `UnknownMarker` if no object has the marker's UUID.
    pub async fn records<T: Kind>(
        &self,
        filter: RecordFilter,
        page: Page,
    ) -> Result<Vec<Record<T>>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| catalog::list(conn, filter, &page)))
            .await
    }

    /// How many nodes are in each shard; those in none come first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn count_by_shard(&self) -> Result<Vec<(Option<String>, u64)>, ReadError> {
        self.look(|shared| Ok(shared.lists.now().count_by_shard()))
            .await
    }

    /// A node's history, oldest first unless the page goes backwards; the marker is the UUID of a line. There is no other order.
    ///
    /// # Errors
    /// `UnknownMarker` if this node has no such line.
    pub async fn history(&self, node: NodeId, page: Page) -> Result<Vec<HistoryEntry>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| history::list(conn, node, &page)))
            .await
    }

    /// What the last inspection of a node found; none if it was never inspected.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn inventory(&self, node: NodeId) -> Result<Option<Value>, ReadError> {
        self.read(move |conn| inventories::get(conn, node)).await
    }

    /// A node's ledger: its latest commands, oldest first.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn commands(&self, node: NodeId) -> Result<Vec<LedgerEntry>, ReadError> {
        self.read(move |conn| Ok(commands::list(conn, node)?)).await
    }

    /// How many nodes are in each provision state that any node is in.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn count_by_state(&self) -> Result<Vec<(ProvisionState, u64)>, ReadError> {
        self.look(|shared| Ok(shared.lists.now().count_by_state()))
            .await
    }

    /// Every node that waits for something: a deadline, an open command or a driver call; the earliest deadline first. Used at
    /// start.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn waiting(&self) -> Result<Vec<NodeId>, ReadError> {
        self.read(nodes::waiting).await
    }

    /// These nodes in this order, without those that are not there.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn these(&self, ids: Vec<NodeId>) -> Result<Vec<Node>, ReadError> {
        self.read(move |conn| conn.snapshot(|conn| nodes::these(conn, &ids)))
            .await
    }

    /// A fact about the whole database.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn meta(&self, key: &str) -> Result<Option<String>, ReadError> {
        let key = key.to_owned();
        self.read(move |conn| Ok(meta::get(conn, &key)?)).await
    }

    /// Answers if the database can be read.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn ping(&self) -> Result<(), ReadError> {
        self.read(|conn| {
            nodes::last_seq(conn)?;
            Ok(())
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut AnyConnection) -> Result<T, ReadFault> + Send + 'static,
    ) -> Result<T, ReadError> {
        self.look(move |shared| {
            let mut conn = shared.pool.get().map_err(|error| {
                ReadError::Unavailable(format!(
                    "{} can't be reached: {}",
                    shared.place,
                    shared.place.mask(error.to_string().trim())
                ))
            })?;
            query(&mut conn).map_err(|fault| fault.explained(&shared.place))
        })
        .await
    }

    /// Runs what takes its time on a thread for that.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let shared = Arc::clone(&self.shared);
        let free = Arc::clone(&shared.free);
        let wait = Duration::from_millis(WAIT_MS);
        let Ok(Ok(permit)) = tokio::time::timeout(wait, free.acquire_owned()).await else {
            return Err(ReadError::Unavailable(format!(
                "no connection for reading became free within {WAIT_MS} ms; try again, or raise the number of readers"
            )));
        };
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&shared)
        });
        done.await.unwrap_or_else(|error| {
            Err(ReadError::Unavailable(format!(
                "reading failed by a fault of this program: {error}"
            )))
        })
    }
}

/// Makes connections for the pool. (diesel's own manager would go through `AnyConnection::establish`.)
struct Manager {
    place: Place,
}

impl r2d2::ManageConnection for Manager {
    type Connection = AnyConnection;
    type Error = diesel::r2d2::Error;

    fn connect(&self) -> Result<AnyConnection, diesel::r2d2::Error> {
        self.place
            .connect_reader()
            .map_err(diesel::r2d2::Error::ConnectionError)
    }

    fn is_valid(&self, conn: &mut AnyConnection) -> Result<(), diesel::r2d2::Error> {
        match conn {
            // A file doesn't go away by itself.
            AnyConnection::Sqlite(_) => Ok(()),
            AnyConnection::Postgres(conn) => conn.ping().map_err(diesel::r2d2::Error::QueryError),
        }
    }

    fn has_broken(&self, conn: &mut AnyConnection) -> bool {
        conn.is_lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Attributes;
    use crate::store::{Change, Save};
    use crate::timestamp::Timestamp;

    #[tokio::test]
    async fn a_read_that_finds_no_free_connection_is_told_so() {
        let reader = Reader::new(
            Place::Sqlite("/nonexistent/upbeat.db".into()),
            Arc::default(),
            1,
        );
        let taken = Arc::clone(&reader.shared.free).acquire_owned().await;
        let Err(ReadError::Unavailable(why)) = reader.ping().await else {
            panic!("the only connection is taken");
        };
        assert!(
            why.contains("no connection for reading became free"),
            "{why}"
        );
        drop(taken);
        // Now it is free, but can't be made.
        let Err(ReadError::Unavailable(why)) = reader.ping().await else {
            panic!("there is no such file");
        };
        assert!(
            why.contains("/nonexistent/upbeat.db can't be reached"),
            "{why}"
        );
    }

    #[tokio::test]
    async fn nodes_that_changed_since_a_list_was_made_leave_their_places_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let store = crate::store::open(&crate::store::StoreSettings {
            url: format!("sqlite://{}", directory.path().join("upbeat.db").display()),
            readers: 1,
            host: "conductor-1".to_owned(),
            queue_max: 16,
        })
        .unwrap();
        let node = |number| {
            let id = NodeId(Uuid::from_u128(number));
            Node::enrolled(id, Attributes::default(), Timestamp(1))
        };
        let save = |node: Node, change| store.writer.save(Save::of(node.into(), change));
        for number in 1..=9 {
            save(node(number), Change::Insert).await.unwrap();
        }
        let earlier = store.reader.shared.lists.now();
        let from_version = node(1).version;
        for number in [1, 3, 4, 5] {
            let gone = Change::Remove { from_version };
            save(node(number), gone).await.unwrap();
        }
        let mut retired = node(6);
        retired.attributes.retired = true;
        save(retired, Change::Update { from_version })
            .await
            .unwrap();
        let filter = NodeFilter {
            retired: Some(false),
            ..NodeFilter::default()
        };
        let page = Page::by_age(3, None);
        let found = store
            .reader
            .read(move |conn| conn.snapshot(|conn| nodes::list(conn, &earlier, &filter, page)))
            .await;
        assert_eq!(found, Ok([2, 7, 8].map(node).to_vec()));
    }
}
