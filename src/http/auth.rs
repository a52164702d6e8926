//! Who may use the API: everybody, or those in a bcrypt password file.
//!
//! Checking a password takes tens of milliseconds by design, so it is done on blocking threads, few at a time, and what was
//! right is remembered for some minutes under a salted digest. An unknown user costs as much as a known one. Whoever is wrong more
//! than a few times has to wait (see `guessing`). The file is read again when it changes, which forgets everything
//! remembered.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use actix_web::web;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::error::Error;
use super::guessing::{Guessing, Turn};
use super::settings::Auth;

/// How long a right password is remembered.
const REMEMBER: Duration = Duration::from_secs(300);
/// How many right passwords are remembered at most.
const REMEMBERED_MAX: usize = 1024;
/// How many passwords are checked at the same time at most.
const CHECKS_MAX: usize = 2;
/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longer user names and passwords are refused unread.
const CREDENTIALS_BYTES_MAX: usize = 1024;

/// Checks the `Authorization` header of requests.
pub struct Authenticator {
    users: Option<Arc<Users>>,
    checks: Semaphore,
}

struct Users {
    path: PathBuf,
    salt: [u8; 32],
    state: Mutex<State>,
}

struct State {
    file: PasswordFile,
    looked_at: Instant,
    remembered: HashMap<[u8; 32], Instant>,
    guessing: Guessing,
}

/// What was read from the file, and which version of it.
#[derive(Clone)]
struct PasswordFile {
    modified: Option<SystemTime>,
    length: u64,
    hashes: Arc<BTreeMap<String, String>>,
}

impl Authenticator {
    /// Reads the password file, if there is one.
    ///
    /// # Errors
    /// The file can't be read, or has a line that is no `user:bcrypt hash`; names the file and the line.
    pub fn new(auth: &Auth) -> io::Result<Authenticator> {
        let users = match auth {
            Auth::None => None,
            Auth::Basic { htpasswd } => {
                let mut salt = [0; 32];
                getrandom::fill(&mut salt).map_err(|error| io::Error::other(error.to_string()))?;
                Some(Arc::new(Users {
                    path: htpasswd.clone(),
                    salt,
                    state: Mutex::new(State {
                        file: read(htpasswd)?,
                        looked_at: Instant::now(),
                        remembered: HashMap::new(),
                        guessing: Guessing::default(),
                    }),
                }))
            }
        };
        Ok(Authenticator {
            users,
            checks: Semaphore::new(CHECKS_MAX),
        })
    }

    /// Whether users have to say who they are.
    pub fn asks(&self) -> bool {
        self.users.is_some()
    }

    /// Checks the value of an `Authorization` header that came from `address`.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`], [`Error::BadAuthorization`], [`Error::GuessingTooMuch`].
    pub async fn check(&self, header: Option<&[u8]>, address: Option<IpAddr>) -> Result<(), Error> {
        let Some(users) = &self.users else {
            return Ok(());
        };
        let (user, password) = credentials(header)?;
        let digest = users.digest(&user, &password);
        users.look_at_file().await;
        if users.remembers(&digest) {
            return Ok(());
        }
        let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let name = users.digest(&user, "");
        let turn = users.state().guessing.turn(address, name, Instant::now());
        match turn {
            Turn::In(wait) if wait.is_zero() => {}
            Turn::In(wait) => tokio::time::sleep(wait).await,
            Turn::TooFar => return Err(Error::GuessingTooMuch),
        }
        let _permit = self.checks.acquire().await.map_err(|_| Error::Internal)?;
        // Somebody else may have checked the same while this one waited.
        if users.remembers(&digest) {
            return Ok(());
        }
        let hashes = users.state().file.hashes.clone();
        let checked_with = hashes.clone();
        let is_right = web::block(move || is_right(&checked_with, &user, &password, &name))
            .await
            .map_err(|_| Error::Internal)?;
        if !is_right {
            let mut state = users.state();
            state.guessing.failed(address, name, Instant::now());
            drop(state);
            // Without the name: people type passwords there.
            tracing::info!(%address, "a wrong user name or password");
            return Err(Error::Unauthenticated);
        }
        users.state().guessing.succeeded(name);
        users.remember(digest, &hashes);
        Ok(())
    }
}

impl Users {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn digest(&self, user: &str, password: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.salt);
        // The length keeps `ab` + `c` apart from `a` + `bc`.
        hasher.update((user.len() as u64).to_le_bytes());
        hasher.update(user);
        hasher.update(password);
        hasher.finalize().into()
    }

    fn remembers(&self, digest: &[u8; 32]) -> bool {
        let state = self.state();
        state
            .remembered
            .get(digest)
            .is_some_and(|since| since.elapsed() < REMEMBER)
    }

    /// Remembers what was right, unless the file has changed meanwhile.
    fn remember(&self, digest: [u8; 32], checked_with: &Arc<BTreeMap<String, String>>) {
        let mut state = self.state();
        if !Arc::ptr_eq(&state.file.hashes, checked_with) {
            return;
        }
        if state.remembered.len() >= REMEMBERED_MAX {
            state
                .remembered
                .retain(|_, since| since.elapsed() < REMEMBER);
        }
        if state.remembered.len() >= REMEMBERED_MAX {
            state.remembered.clear();
        }
        state.remembered.insert(digest, Instant::now());
    }

    /// Reads the file again if it has changed. A file that can't be read leaves what was read before.
    async fn look_at_file(self: &Arc<Users>) {
        {
            let mut state = self.state();
            if state.looked_at.elapsed() < LOOK_EVERY {
                return;
            }
            state.looked_at = Instant::now();
        }
        let users = self.clone();
        // Only a panic in `reload` ends in an error here; then the old file stays in use.
        let _ = web::block(move || users.reload()).await;
    }

    fn reload(&self) {
        let (modified, length) = match std::fs::metadata(&self.path) {
            Ok(about) => (about.modified().ok(), about.len()),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the password file can't be looked at; the passwords read before stay valid");
                return;
            }
        };
        {
            let state = self.state();
            if state.file.modified == modified && state.file.length == length {
                return;
            }
        }
        match read(&self.path) {
            Ok(file) => {
                let mut state = self.state();
                state.file = file;
                state.remembered.clear();
                tracing::info!(path = %self.path.display(), "the password file was read again");
            }
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the password file has changed but can't be read; the passwords read before stay valid");
            }
        }
    }
}

fn read(path: &Path) -> io::Result<PasswordFile> {
    let explain = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("password file {}: {error}", path.display()),
        )
    };
    let about = std::fs::metadata(path).map_err(explain)?;
    let text = std::fs::read_to_string(path).map_err(explain)?;
    let hashes = parse(&text).map_err(|problem| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("password file {}: {problem}", path.display()),
        )
    })?;
    Ok(PasswordFile {
        modified: about.modified().ok(),
        length: about.len(),
        hashes: Arc::new(hashes),
    })
}

/// Reads `user:hash` lines. Problems name the line, never its content.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut hashes = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let Some((user, hash)) = line.split_once(':') else {
            return Err(format!("line {number} is not of the form user:hash"));
        };
        let is_bcrypt = ["$2y$", "$2b$", "$2a$"]
            .iter()
            .any(|start| hash.starts_with(start));
        if !is_bcrypt || hash.len() != 60 {
            return Err(format!(
                "line {number} has no bcrypt hash; write it with htpasswd -B"
            ));
        }
        hashes.insert(user.to_owned(), hash.to_owned());
    }
    if hashes.is_empty() {
        return Err("has no users; add one with htpasswd -B".to_owned());
    }
    Ok(hashes)
}

/// Takes as long for an unknown user as for a known one: hashes may cost differently, so an unknown name is compared with one of
/// them, always the same, as if it were that user.
fn is_right(
    hashes: &BTreeMap<String, String>,
    user: &str,
    password: &str,
    name: &[u8; 32],
) -> bool {
    match hashes.get(user) {
        Some(hash) => bcrypt::verify(password, hash).unwrap_or(false),
        None => {
            let choice = usize::from(u16::from_le_bytes([name[0], name[1]]));
            if let Some(some) = hashes.values().nth(choice % hashes.len().max(1)) {
                let _ = bcrypt::verify(password, some);
            }
            false
        }
    }
}

fn credentials(header: Option<&[u8]>) -> Result<(String, String), Error> {
    let Some(header) = header else {
        return Err(Error::Unauthenticated);
    };
    let bad = |text: &str| Error::BadAuthorization(text.to_owned());
    if header.len() > 2 * CREDENTIALS_BYTES_MAX {
        return Err(bad("The Authorization header is too long."));
    }
    let text = std::str::from_utf8(header)
        .map_err(|_| bad("The Authorization header is no plain text."))?;
    let packed = match text.split_once(' ') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("basic") => rest.trim(),
        _ => return Err(bad("Only the authorization scheme Basic is supported.")),
    };
    let unpacked = STANDARD
        .decode(packed)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| bad("The Authorization header does not hold base64 of user:password."))?;
    match unpacked.split_once(':') {
        Some((user, password)) => Ok((user.to_owned(), password.to_owned())),
        None => Err(bad(
            "The Authorization header does not hold base64 of user:password.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));

    fn line(user: &str, password: &str) -> String {
        format!("{user}:{}\n", bcrypt::hash(password, 4).unwrap())
    }

    fn header(user: &str, password: &str) -> Vec<u8> {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).into_bytes()
    }

    fn authenticator(folder: &tempfile::TempDir, content: &str) -> Authenticator {
        let htpasswd = folder.path().join("htpasswd");
        std::fs::write(&htpasswd, content).unwrap();
        Authenticator::new(&Auth::Basic { htpasswd }).unwrap()
    }

    #[actix_web::test]
    async fn the_right_password_is_let_in_and_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let of = authenticator(&folder, &line("ada", "lovelace"));
        for _ in 0..2 {
            assert_eq!(
                of.check(Some(&header("ada", "lovelace")), HERE).await,
                Ok(())
            );
        }
        assert_eq!(of.users.as_ref().unwrap().state().remembered.len(), 1);
        for (user, password) in [("ada", "wrong"), ("bob", "lovelace"), ("", "")] {
            let checked = of.check(Some(&header(user, password)), HERE).await;
            assert_eq!(checked, Err(Error::Unauthenticated), "{user}");
        }
        assert_eq!(of.users.as_ref().unwrap().state().remembered.len(), 1);
    }

    #[actix_web::test]
    async fn hashes_of_htpasswd_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let content = line("ada", "lovelace").replace("$2b$", "$2y$");
        let of = authenticator(&folder, &content);
        assert_eq!(
            of.check(Some(&header("ada", "lovelace")), HERE).await,
            Ok(())
        );
    }

    #[actix_web::test]
    async fn a_changed_file_is_read_again_and_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let of = authenticator(&folder, &line("ada", "lovelace"));
        assert_eq!(
            of.check(Some(&header("ada", "lovelace")), HERE).await,
            Ok(())
        );
        let users = of.users.as_ref().unwrap();
        std::fs::write(&users.path, format!("# new\n{}", line("ada", "changed"))).unwrap();
        users.state().looked_at -= LOOK_EVERY;
        assert_eq!(
            of.check(Some(&header("ada", "lovelace")), HERE).await,
            Err(Error::Unauthenticated)
        );
        assert_eq!(
            of.check(Some(&header("ada", "changed")), HERE).await,
            Ok(())
        );
    }

    #[test]
    fn what_is_no_basic_header_is_told_apart_from_a_wrong_password() {
        assert_eq!(credentials(None), Err(Error::Unauthenticated));
        for wrong in ["Bearer x", "Basic", "Basic !!", "Basic aGVsbG8="] {
            assert!(
                matches!(
                    credentials(Some(wrong.as_bytes())),
                    Err(Error::BadAuthorization(_))
                ),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_bad_file_is_named_by_line_without_its_content() {
        for (text, word) in [
            ("ada", "line 1"),
            ("# x\nada:{SHA}abc", "line 2"),
            ("", "no users"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(
                problem.contains(word) && !problem.contains("abc"),
                "{problem}"
            );
        }
    }
}
