//! A database to fill, with a folder for what belongs to it; gone when dropped.

use std::path::Path;

use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::sql_types::Text;
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, SqliteConnection};
use tempfile::TempDir;

use crate::conductor::TokenKey;

/// Databases on servers are only emptied if their name begins with this.
const NAME_PREFIX: &str = "upbeat_bench";

/// An empty database.
pub struct Place {
    folder: TempDir,
    /// As `database.url` takes it.
    pub url: String,
    /// What tokens are computed from.
    pub key: TokenKey,
}

impl Place {
    /// A file in a new temporary folder; or the database at this address, emptied.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(server: Option<&str>) -> Result<Place, String> {
        let folder = tempfile::Builder::new()
            .prefix("upbeat-bench-")
            .tempdir()
            .map_err(|error| {
                format!("no temporary folder: {error}; set TMPDIR to a writable one")
            })?;
        let url = match server {
            Some(url) => {
                empty(url)?;
                url.to_owned()
            }
            None => format!("sqlite://{}", folder.path().join("upbeat.db").display()),
        };
        let key = TokenKey::load_or_create(&folder.path().join("token.key"))?;
        Ok(Place { folder, url, key })
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn empty(url: &str) -> Result<(), String> {
    let name = url.rsplit('/').next().unwrap_or_default();
    if !name.starts_with(NAME_PREFIX) {
        return Err(format!(
            "the database {name:?} is not emptied: name one that begins with {NAME_PREFIX}"
        ));
    }
    let mut conn = PgConnection::establish(url).map_err(|error| error.to_string())?;
    conn.batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        .map_err(|error| error.to_string())
}

/// The version of SQLite in this program.
///
/// # Errors
/// It can't be asked.
pub fn sqlite_version() -> Result<String, String> {
    let mut conn = SqliteConnection::establish(":memory:").map_err(|error| error.to_string())?;
    diesel::select(sql::<Text>("sqlite_version()"))
        .get_result(&mut conn)
        .map_err(|error| error.to_string())
}

/// The version of a PostgreSQL server.
///
/// # Errors
/// It can't be reached or asked.
pub fn server_version(url: &str) -> Result<String, String> {
    let mut conn = PgConnection::establish(url).map_err(|error| error.to_string())?;
    diesel::select(sql::<Text>("current_setting('server_version')"))
        .get_result(&mut conn)
        .map_err(|error| error.to_string())
}
