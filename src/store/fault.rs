//! What went wrong in the database, sorted by what can be done about it, in words for an operator.

use diesel::result::{DatabaseErrorKind, Error};

use super::connection::Place;
use super::types::{ReadError, SaveError};

/// Why a save was not carried out.
#[derive(Debug)]
pub(super) enum Fault {
    /// This save alone is at fault; the database is as it was before it.
    Save(SaveError),
    /// The database said no.
    Database(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Database(error)
    }
}

/// Why something was not read.
#[derive(Debug)]
pub(super) enum ReadFault {
    /// The answer is known: it can't be read.
    Read(ReadError),
    /// The database said no.
    Database(Error),
}

impl From<Error> for ReadFault {
    fn from(error: Error) -> ReadFault {
        ReadFault::Database(error)
    }
}

impl ReadFault {
    /// A row that makes no sense to this program.
    pub(super) fn unreadable(what: String) -> ReadFault {
        ReadFault::Read(ReadError::Unavailable(what))
    }

    /// As the caller gets it.
    pub(super) fn explained(self, place: &Place) -> ReadError {
        match self {
            ReadFault::Read(error) => error,
            ReadFault::Database(error) => ReadError::Unavailable(explain(place, &error)),
        }
    }
}

/// True when the next save would fail in the same way, so that trying it is a waste of time.
pub(super) fn is_outage(error: &Error) -> bool {
    match error {
        Error::BrokenTransactionManager
        | Error::RollbackErrorOnCommit { .. }
        | Error::DatabaseError(
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::ReadOnlyTransaction,
            _,
        ) => true,
        Error::DatabaseError(_, about) => cure(about.message()).is_some(),
        _ => false,
    }
}

/// What happened and what to do.
pub(super) fn explain(place: &Place, error: &Error) -> String {
    let said = match error {
        Error::DatabaseError(_, about) => about.message().trim().to_owned(),
        Error::RollbackErrorOnCommit { commit_error, .. } => commit_error.to_string(),
        Error::BrokenTransactionManager => "the connection is broken".to_owned(),
        other => other.to_string(),
    };
    let said = place.mask(&said);
    match cure(&said) {
        Some(cure) => format!("{place}: {said}; {cure}"),
        None => format!("{place}: {said}"),
    }
}

/// What mends the faults that are not of any single save, by the words SQLite and PostgreSQL use.
fn cure(said: &str) -> Option<&'static str> {
    const CURES: &[(&str, &str)] = &[
        (
            "disk is full",
            "free some space on its disk; nothing else is needed",
        ),
        (
            "No space left on device",
            "free some space on the server's disk; nothing else is needed",
        ),
        (
            "database is locked",
            "another program holds its write lock; end that program's transaction",
        ),
        (
            "readonly database",
            "make the file and its directory writable, or remount the disk",
        ),
        (
            "disk I/O error",
            "look at the kernel's log for the disk under it",
        ),
        ("malformed", "stop, and restore the file from a backup"),
        (
            "file is not a database",
            "stop, and restore the file from a backup",
        ),
        (
            "unable to open database file",
            "see that the file, its directory and the limit of open files are in order",
        ),
        (
            "server closed the connection",
            "see that the server runs; it is connected again by itself",
        ),
        (
            "terminating connection",
            "see that the server runs; it is connected again by itself",
        ),
        (
            "no connection to the server",
            "see that the server runs; it is connected again by itself",
        ),
        (
            "could not receive data from server",
            "see that the server runs; it is connected again by itself",
        ),
        (
            "could not send data to server",
            "see that the server runs; it is connected again by itself",
        ),
        ("the connection is broken", "it is opened again by itself"),
        (
            "read-only transaction",
            "the server takes no writes; point the URL at the primary server",
        ),
    ];
    CURES
        .iter()
        .find(|(words, _)| said.contains(words))
        .map(|(_, cure)| *cure)
}

/// Which unique index a violation is about, as `table.column`.
pub(super) fn violated(error: &Error) -> Option<&'static str> {
    const UNIQUE: &[(&str, &str)] = &[
        // what is said of it, in SQLite's message or as PostgreSQL's constraint
        ("nodes.id", "nodes_pkey"),
        ("nodes.name", "nodes_name"),
        ("nodes.instance_uuid", "nodes_instance_uuid"),
        ("ports.id", "ports_pkey"),
        ("ports.address", "ports_address"),
        ("ports.name", "ports_name"),
        ("parts.id", "parts_pkey"),
        ("parts.name", "parts_name"),
        ("parts.claim", "parts_claim"),
        ("catalog.id", "catalog_pkey"),
        ("catalog.name", "catalog_name"),
    ];
    let Error::DatabaseError(DatabaseErrorKind::UniqueViolation, about) = error else {
        return None;
    };
    let (constraint, message) = (about.constraint_name(), about.message());
    UNIQUE
        .iter()
        .find(|(column, index)| {
            constraint == Some(*index)
                || message
                    .strip_prefix("UNIQUE constraint failed: ")
                    // The last of several columns is the one that tells.
                    .and_then(|columns| columns.rsplit(", ").next())
                    == Some(*column)
        })
        .map(|(column, _)| *column)
}
