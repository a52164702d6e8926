//! One connection to one of the two databases.
//!
//! The scheme of the URL alone decides which database it is: `AnyConnection::establish` would try each in turn, and a mistyped
//! PostgreSQL URL would silently become a new SQLite file. Called by `open`, the writer and the reader pool. Never creates a
//! file (see `open`), never runs a query of its own besides settings.
//!
//! Through [`AnyConnection`] diesel refuses anything with `ON CONFLICT` and several rows in one `INSERT`. The store needs neither:
//! there is one writer, so it looks and then inserts, and saves share a transaction rather than a statement.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::r2d2::R2D2Connection;
use diesel::result::{ConnectionError, ConnectionResult, QueryResult};
use diesel::{Connection, PgConnection, SqliteConnection};

/// A connection to SQLite or to PostgreSQL.
#[derive(diesel::MultiConnection)]
pub(super) enum AnyConnection {
    /// The embedded database.
    Sqlite(SqliteConnection),
    /// A database server.
    Postgres(PgConnection),
}

/// Runs an expression with the connection to whichever of the two it is. Where it matters: there diesel finds the statement it has
/// prepared by the type of the query, while through [`AnyConnection`] it writes the SQL anew to look for it.
macro_rules! directly {
    ($any:expr, |$conn:ident| $run:expr) => {
        match $any {
            $crate::store::connection::AnyConnection::Sqlite($conn) => $run,
            $crate::store::connection::AnyConnection::Postgres($conn) => $run,
        }
    };
}
pub(super) use directly;

/// The back end of [`AnyConnection`], as boxed queries name it.
pub(super) type Db = <AnyConnection as Connection>::Backend;

/// How long SQLite waits for another process that holds the write lock.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// How long PostgreSQL has to take a connection, unless the URL says otherwise.
const CONNECT_TIMEOUT_S: u32 = 5;
/// Key of the advisory lock that a conductor holds in its PostgreSQL database: the letters `UPBEAT`.
const ADVISORY_LOCK: i64 = 0x5550_4245_4154;
/// How long a conductor that has just ended may seem to be there.
const ADVISORY_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Which database, by the scheme of its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A file.
    Sqlite(PathBuf),
    /// A server; may hold a password.
    Postgres(String),
}

/// The forms a URL may have, for messages.
const FORMS: &str =
    "sqlite:///absolute/path, sqlite://relative/path, or postgres://user:password@host:5432/name";

impl Place {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it and what would be right; never a password.
    pub(super) fn parse(url: &str) -> Result<Place, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(format!(
                    "the database URL {url:?} names no file; use {FORMS}"
                ));
            }
            if path.contains(":memory:") {
                return Err(
                    "databases in memory are not supported, since nothing would survive a restart; \
                     name a file: sqlite:///absolute/path"
                        .to_owned(),
                );
            }
            if path.contains(['?', '#', '\0']) || path.starts_with("file:") {
                return Err(format!(
                    "the database URL {url:?} has parameters, which SQLite files don't take here; use {FORMS}"
                ));
            }
            return Ok(Place::Sqlite(PathBuf::from(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let mut parsed = url::Url::parse(url).map_err(|error| {
                format!(
                    "the PostgreSQL URL can't be read: {error}; use postgres://user:password@host:5432/name, \
                     with special characters in the password percent-encoded"
                )
            })?;
            if !parsed
                .query_pairs()
                .any(|(key, _)| key == "connect_timeout")
            {
                parsed
                    .query_pairs_mut()
                    .append_pair("connect_timeout", &CONNECT_TIMEOUT_S.to_string());
            }
            return Ok(Place::Postgres(parsed.to_string()));
        }
        // Only the scheme is repeated: what follows may hold a password.
        let scheme = url.split(':').next().unwrap_or_default();
        let scheme: String = scheme.chars().take(20).collect();
        Err(format!(
            "the database URL begins with {scheme:?}, which is no database known here; use {FORMS}"
        ))
    }

    /// Connects for reading.
    pub(super) fn connect_reader(&self) -> ConnectionResult<AnyConnection> {
        let mut conn = self.connect()?;
        match &mut conn {
            AnyConnection::Sqlite(conn) => conn.batch_execute("PRAGMA query_only = ON"),
            AnyConnection::Postgres(conn) => {
                conn.batch_execute("SET default_transaction_read_only = on")
            }
        }
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
        Ok(conn)
    }

    /// Connects for writing.
    pub(super) fn connect_writer(&self) -> ConnectionResult<AnyConnection> {
        self.connect()
    }

    fn connect(&self) -> ConnectionResult<AnyConnection> {
        match self {
            Place::Sqlite(path) => {
                let mut conn = SqliteConnection::establish(&sqlite_name(path)?)?;
                // WAL is a property of the file; the others are of the connection.
                conn.batch_execute(&format!(
                    "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}; PRAGMA foreign_keys = ON; \
                     PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                ))
                .map_err(ConnectionError::CouldntSetupConfiguration)?;
                Ok(AnyConnection::Sqlite(conn))
            }
            Place::Postgres(url) => {
                let mut conn = PgConnection::establish(url)?;
                conn.batch_execute("SET client_min_messages = warning")
                    .map_err(ConnectionError::CouldntSetupConfiguration)?;
                Ok(AnyConnection::Postgres(conn))
            }
        }
    }

    /// `text` without this URL's password, should it be in there.
    pub(super) fn mask(&self, text: &str) -> String {
        let Place::Postgres(url) = self else {
            return text.to_owned();
        };
        let password = url::Url::parse(url)
            .ok()
            .and_then(|url| url.password().map(str::to_owned))
            .filter(|password| !password.is_empty());
        match password {
            Some(password) => text.replace(&password, "***"),
            None => text.to_owned(),
        }
    }
}

impl fmt::Display for Place {
    /// For messages: without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Sqlite(path) => write!(f, "{}", path.display()),
            Place::Postgres(url) => match url::Url::parse(url) {
                Ok(url) => write!(
                    f,
                    "the PostgreSQL database {} on {}",
                    url.path().trim_start_matches('/'),
                    url.host_str()
                        .filter(|host| !host.is_empty())
                        .unwrap_or("the local socket"),
                ),
                Err(_) => f.write_str("the PostgreSQL database"),
            },
        }
    }
}

/// The file's name as SQLite takes it literally: a relative name must not look like a URI.
fn sqlite_name(path: &Path) -> ConnectionResult<String> {
    let name = path.to_str().ok_or_else(|| {
        ConnectionError::BadConnection("the file's name is not valid UTF-8".to_owned())
    })?;
    Ok(if path.is_absolute() {
        name.to_owned()
    } else {
        format!("./{name}")
    })
}

impl AnyConnection {
    /// Begins a transaction that will write. SQLite takes the write lock at once, so that waiting for it happens here and only
    /// here.
    pub(super) fn begin_write(&mut self) -> QueryResult<()> {
        match self {
            AnyConnection::Sqlite(conn) => {
                AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN IMMEDIATE")
            }
            AnyConnection::Postgres(conn) => {
                AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN")
            }
        }
    }

    /// Commits what [`AnyConnection::begin_write`] began.
    pub(super) fn commit(&mut self) -> QueryResult<()> {
        <Self as Connection>::TransactionManager::commit_transaction(self)
    }

    /// Undoes what [`AnyConnection::begin_write`] began.
    pub(super) fn rollback(&mut self) -> QueryResult<()> {
        <Self as Connection>::TransactionManager::rollback_transaction(self)
    }

    /// Runs several reads on one unchanging picture of the database.
    pub(super) fn snapshot<T, E>(
        &mut self,
        read: impl FnOnce(&mut AnyConnection) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<diesel::result::Error>,
    {
        match self {
            AnyConnection::Sqlite(conn) => {
                AnsiTransactionManager::begin_transaction_sql(conn, "BEGIN")
            }
            AnyConnection::Postgres(conn) => AnsiTransactionManager::begin_transaction_sql(
                conn,
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            ),
        }?;
        match read(self) {
            Ok(value) => {
                self.commit()?;
                Ok(value)
            }
            Err(error) => {
                // The reading error says more than one of undoing nothing; a broken connection is thrown away by the pool.
                let _ = self.rollback();
                Err(error)
            }
        }
    }

    /// True when nothing more can be done with this connection.
    pub(super) fn is_lost(&mut self) -> bool {
        self.is_broken()
    }

    /// Makes sure that no other conductor writes to this PostgreSQL database while this connection lives; false if one does. SQLite
    /// files are locked by `open`.
    ///
    /// A server takes a moment to notice that the conductor before this one is gone, so the lock is asked for again for a while.
    pub(super) fn take_advisory_lock(&mut self) -> QueryResult<bool> {
        use diesel::prelude::*;
        diesel::define_sql_function! { fn pg_try_advisory_lock(key: diesel::sql_types::BigInt) -> Bool; }
        let AnyConnection::Postgres(conn) = self else {
            return Ok(true);
        };
        let give_up_at = Instant::now() + ADVISORY_LOCK_WAIT;
        loop {
            if diesel::select(pg_try_advisory_lock(ADVISORY_LOCK)).get_result(conn)? {
                return Ok(true);
            }
            if Instant::now() >= give_up_at {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_alone_decides_which_database_it_is() {
        let sqlite = |path: &str| Ok(Place::Sqlite(PathBuf::from(path)));
        assert_eq!(
            Place::parse("sqlite:///var/lib/u.db"),
            sqlite("/var/lib/u.db")
        );
        assert_eq!(
            Place::parse("sqlite:/var/lib/u.db"),
            sqlite("/var/lib/u.db")
        );
        assert_eq!(Place::parse("sqlite://u.db"), sqlite("u.db"));
        for url in [
            "postgres://u@h/d",
            "postgresql://u@h:5433/d?sslmode=disable",
            "postgres:///d?host=/var/run/postgresql",
            "postgres://u@%2Fvar%2Frun%2Fpostgresql/d",
        ] {
            assert!(matches!(Place::parse(url), Ok(Place::Postgres(_))), "{url}");
        }
        for url in [
            "",
            "u.db",
            "postgres:typo",
            "nodes_typo",
            "mysql://h/d",
            "sqlite:",
            "sqlite::memory:",
            "sqlite://u.db?mode=memory",
        ] {
            let error = Place::parse(url).unwrap_err();
            assert!(error.contains("sqlite:///absolute/path"), "{url}: {error}");
        }
    }

    #[test]
    fn no_message_holds_the_password() {
        let place = Place::parse("postgres://u:s3cret@h/d").unwrap();
        assert_eq!(place.to_string(), "the PostgreSQL database d on h");
        assert_eq!(place.mask("no s3cret here"), "no *** here");
        let error = Place::parse("mysql://u:s3cret@h/d").unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
