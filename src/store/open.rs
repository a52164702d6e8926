//! Opens the database, or says why not: a conductor never starts half.
//!
//! Called once, at start. Creates a SQLite file that is missing, takes the lock that keeps a second conductor out, refuses a
//! database that a newer program has changed, and brings an older one up to date.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diesel::migration::{Migration, MigrationSource, MigrationVersion};
use diesel::prelude::*;
use diesel::result::ConnectionError;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use super::connection::{AnyConnection, Db, Place};
use super::fault::explain;
use super::lists::Published;
use super::queue::Writer;
use super::reader::Reader;
use super::writer::{self, CommitObserver, WriterHandle};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// SQLite files up to this size are checked whole at start; it takes about a second per gigabyte.
const CHECKED_BYTES_MAX: u64 = 256 << 20;

/// What the store needs to know.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// `sqlite:///absolute/path`, `sqlite://relative/path` or `postgres://user:password@host:5432/name`.
    pub url: String,
    /// How many connections read at the same time; at least 1.
    pub readers: u32,
    /// The name of this conductor, for the history.
    pub host: String,
    /// How many saves may wait to be written; more are answered `Overloaded`.
    pub queue_max: usize,
}

/// An open database.
pub struct Store {
    /// For looking.
    pub reader: Reader,
    /// For changing.
    pub writer: Writer,
    /// For watching and ending the writer's thread.
    pub handle: WriterHandle,
}

/// Why the database could not be opened: what, where and how to mend it, in words for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// The URL is none that is understood.
    Url(String),
    /// The file, its directory or their permissions are not as needed.
    File(String),
    /// Another conductor has it open.
    InUse(String),
    /// What is there is damaged or is no database.
    Corrupt(String),
    /// It belongs to another program, or to a newer version of this one.
    Foreign(String),
    /// It can't be reached, or it fails.
    Unreachable(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Url(why)
            | OpenError::File(why)
            | OpenError::InUse(why)
            | OpenError::Corrupt(why)
            | OpenError::Foreign(why)
            | OpenError::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

/// Opens the database and brings its tables up to date.
///
/// # Errors
/// See [`OpenError`]. Nothing is left behind then, except a file that was missing.
pub fn open(settings: &StoreSettings) -> Result<Store, OpenError> {
    open_observed(settings, Arc::new(|_| {}))
}

/// As [`open`]; `observe` is told of every commit.
///
/// # Errors
/// As [`open`].
pub fn open_observed(
    settings: &StoreSettings,
    observe: CommitObserver,
) -> Result<Store, OpenError> {
    let place = Place::parse(&settings.url).map_err(OpenError::Url)?;
    let lock = match &place {
        Place::Sqlite(path) => Some(prepare_file(path)?),
        Place::Postgres(_) => None,
    };
    let mut conn = place.connect_writer().map_err(|error| {
        let why = unreachable(&place, &error);
        if is_corrupt(&why) {
            OpenError::Corrupt(why)
        } else {
            OpenError::Unreachable(why)
        }
    })?;
    let locked = conn
        .take_advisory_lock()
        .map_err(|error| failed(&place, &error))?;
    if !locked {
        return Err(OpenError::InUse(in_use(&place)));
    }
    check_health(&mut conn, &place)?;
    migrate(&mut conn, &place)?;
    let lists = Arc::<Published>::default();
    let (writer, handle) = writer::start(writer::Start {
        place: place.clone(),
        conn,
        lock,
        host: settings.host.clone(),
        queue_max: settings.queue_max,
        lists: Arc::clone(&lists),
        observe,
    })
    .map_err(OpenError::Unreachable)?;
    Ok(Store {
        reader: Reader::new(place, lists, settings.readers),
        writer,
        handle,
    })
}

/// Why no connection was made, and what to do.
pub(super) fn unreachable(place: &Place, error: &ConnectionError) -> String {
    if let ConnectionError::CouldntSetupConfiguration(error) = error {
        return explain(place, error);
    }
    let said = place.mask(error.to_string().trim());
    let cure = match place {
        Place::Sqlite(_) => "see that the file and its directory are in order",
        Place::Postgres(_) => {
            "see that the server runs and that the URL's host, port, user, password and name are right"
        }
    };
    format!("{place} can't be opened: {said}; {cure}")
}

/// What to say when another conductor is there.
pub(super) fn in_use(place: &Place) -> String {
    match place {
        Place::Sqlite(path) => format!(
            "the database {} is in use by another conductor, which holds the lock {}; stop that one, or give this one a database of its own",
            path.display(),
            lock_path(path).display()
        ),
        Place::Postgres(_) => format!(
            "{place} is in use by another conductor, which holds an advisory lock there; stop that one, or give this one a database of its own"
        ),
    }
}

fn failed(place: &Place, error: &diesel::result::Error) -> OpenError {
    let why = explain(place, error);
    if is_corrupt(&why) {
        OpenError::Corrupt(why)
    } else {
        OpenError::Unreachable(why)
    }
}

fn is_corrupt(why: &str) -> bool {
    why.contains("not a database") || why.contains("malformed")
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Takes the lock beside the file and creates the file if it is missing.
fn prepare_file(path: &Path) -> Result<File, OpenError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file_error =
        |why: String| OpenError::File(format!("the database {}: {why}", path.display()));
    match directory.metadata() {
        Ok(about) if !about.is_dir() => {
            return Err(file_error(format!(
                "{} is not a directory",
                directory.display()
            )));
        }
        Ok(about) if about.permissions().readonly() => {
            return Err(file_error(format!(
                "its directory {} is read-only, but files are made there; run `chmod u+w` on it",
                directory.display()
            )));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(file_error(format!(
                "its directory {} does not exist; make it, or name another place",
                directory.display()
            )));
        }
        Err(error) => {
            return Err(file_error(format!(
                "its directory {}: {error}",
                directory.display()
            )));
        }
    }
    match path.metadata() {
        Ok(about) if !about.is_file() => {
            return Err(file_error(
                "there is something that is not a file; name another place".to_owned(),
            ));
        }
        Ok(about) if about.permissions().readonly() => {
            return Err(file_error(
                "it is read-only; run `chmod u+w` on it".to_owned(),
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(file_error(error.to_string())),
    }
    let lock_path = lock_path(path);
    let lock = open_private(&lock_path).map_err(|error| {
        file_error(format!(
            "its lock {}: {}",
            lock_path.display(),
            cured(&error)
        ))
    })?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::InUse(in_use(&Place::Sqlite(path.to_owned()))));
        }
        Err(TryLockError::Error(error)) => {
            return Err(file_error(format!(
                "its lock {} can't be taken: {error}; use a local disk",
                lock_path.display()
            )));
        }
    }
    open_private(path).map_err(|error| file_error(cured(&error)))?;
    Ok(lock)
}

/// Opens for writing; a file that is missing is made so that nobody else can read it: nodes hold their BMCs' passwords.
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn cured(error: &io::Error) -> String {
    let cure = match error.kind() {
        ErrorKind::PermissionDenied => {
            "make it and its directory writable for the user this runs as"
        }
        ErrorKind::ReadOnlyFilesystem => "remount the disk for writing, or name another place",
        ErrorKind::StorageFull => "free some space",
        _ => "name another place",
    };
    format!("{error}; {cure}")
}

/// Sees that a SQLite file is a sound one, on a disk that can do what is asked of it.
fn check_health(conn: &mut AnyConnection, place: &Place) -> Result<(), OpenError> {
    #[derive(QueryableByName)]
    struct Said {
        #[diesel(sql_type = diesel::sql_types::Text)]
        said: String,
    }
    let (AnyConnection::Sqlite(conn), Place::Sqlite(path)) = (conn, place) else {
        return Ok(());
    };
    let mut ask = |question: &str| -> Result<String, OpenError> {
        let Said { said } = diesel::sql_query(question)
            .get_result(conn)
            .map_err(|error| failed(place, &error))?;
        Ok(said)
    };
    let mode = ask("SELECT journal_mode AS said FROM pragma_journal_mode")?;
    if mode != "wal" {
        return Err(OpenError::File(format!(
            "the database {place} can't use a write-ahead log (its journal mode stays {mode:?}); put it on a local disk"
        )));
    }
    let bytes = path.metadata().map_or(0, |about| about.len());
    if bytes <= CHECKED_BYTES_MAX {
        let health = ask("SELECT quick_check AS said FROM pragma_quick_check LIMIT 1")?;
        if health != "ok" {
            return Err(OpenError::Corrupt(format!(
                "the database {place} is damaged ({health}); restore it from a backup, or move it away to begin with an empty one"
            )));
        }
    }
    let strangers = ask(
        "SELECT CAST(count(*) AS TEXT) AS said FROM sqlite_schema WHERE NOT EXISTS \
         (SELECT 1 FROM sqlite_schema WHERE name = '__diesel_schema_migrations')",
    )?;
    if strangers != "0" {
        return Err(OpenError::Foreign(format!(
            "the database {place} holds tables of another program; name another file"
        )));
    }
    Ok(())
}

/// Brings the tables up to date, unless a newer program has been there.
fn migrate(conn: &mut AnyConnection, place: &Place) -> Result<(), OpenError> {
    let wrong = |error: Box<dyn std::error::Error + Send + Sync>| {
        let why = place.mask(&error.to_string());
        OpenError::Unreachable(format!(
            "the tables of {place} can't be brought up to date: {why}; nothing was started"
        ))
    };
    let known: Vec<MigrationVersion<'static>> = MigrationSource::<Db>::migrations(&MIGRATIONS)
        .map_err(wrong)?
        .iter()
        .map(|migration| migration.name().version().as_owned())
        .collect();
    let applied = conn.applied_migrations().map_err(wrong)?;
    if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
        return Err(OpenError::Foreign(format!(
            "{place} was last used by a newer version of this program (its tables have change {newer}, which is not known here); \
             run that version, or restore a backup from before it"
        )));
    }
    conn.run_pending_migrations(MIGRATIONS).map_err(wrong)?;
    Ok(())
}
