//! Agent tokens: computed from a key that never is in the database, so that a restart keeps them and a reader of the database
//! does not learn them.
//!
//! A node's session stores a random nonce; the token is an HMAC of it and the node's UUID. 32 bytes in URL-safe base64 make the 43
//! characters that agents expect.

use std::io::{Read as _, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::node::{Node, NodeId, TokenMatch};

/// What the lookup answers instead of a token that was handed out before.
pub const MASKED: &str = "******";

const KEY_BYTES: usize = 32;

/// The key all tokens of a conductor are computed from.
#[derive(Clone)]
pub struct TokenKey {
    bytes: [u8; KEY_BYTES],
    /// The beginning that all tokens have in common.
    begun: Hmac<Sha256>,
}

impl From<[u8; KEY_BYTES]> for TokenKey {
    fn from(bytes: [u8; KEY_BYTES]) -> TokenKey {
        let begun = Hmac::new_from_slice(&bytes).expect("HMAC takes keys of any length");
        TokenKey { bytes, begun }
    }
}

impl TokenKey {
    /// Reads the key from `path`, or makes one there, readable by its owner only.
    ///
    /// # Errors
    /// What is wrong with the file, in words for an operator.
    pub fn load_or_create(path: &Path) -> Result<TokenKey, String> {
        let what = |problem: String| format!("the token key file {}: {problem}", path.display());
        match std::fs::File::open(path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(1024)
                    .read_to_end(&mut bytes)
                    .map_err(|error| what(format!("can't be read: {error}")))?;
                let key: [u8; KEY_BYTES] = bytes.try_into().map_err(|bytes: Vec<u8>| {
                    what(format!(
                        "has {} bytes instead of {KEY_BYTES}; restore it from a backup, or remove it to have a new one made (agents that are at work then lose their tokens)",
                        bytes.len()
                    ))
                })?;
                Ok(key.into())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = TokenKey::random();
                let mut options = std::fs::OpenOptions::new();
                options.write(true).create_new(true);
                #[cfg(unix)]
                {
                    use std::os::unix::fs::OpenOptionsExt as _;
                    options.mode(0o600);
                }
                let mut file = options
                    .open(path)
                    .map_err(|error| what(format!("can't be made: {error}")))?;
                file.write_all(&key.bytes)
                    .and_then(|()| file.sync_all())
                    .map_err(|error| what(format!("can't be written: {error}")))?;
                Ok(key)
            }
            Err(error) => Err(what(format!("can't be opened: {error}"))),
        }
    }

    /// A key that lives only as long as this process.
    pub fn random() -> TokenKey {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).expect("the operating system has random numbers");
        key.into()
    }

    /// What identifies the key without revealing it; kept in the database so that a lost key is noticed at start.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"upbeat token key fingerprint");
        hash.update(self.bytes);
        URL_SAFE_NO_PAD.encode(hash.finalize())
    }

    /// The token of a session.
    pub fn token(&self, node: NodeId, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(node, nonce).finalize().into_bytes())
    }

    /// How `token`, as it came, compares with the one of the node's session; takes the same time wherever the difference is.
    pub fn compare(&self, node: &Node, token: Option<&str>) -> TokenMatch {
        let Some(token) = token else {
            return TokenMatch::Missing;
        };
        let (Some(session), Ok(bytes)) = (&node.session, URL_SAFE_NO_PAD.decode(token)) else {
            return TokenMatch::Wrong;
        };
        match self.mac(node.id, &session.nonce).verify_slice(&bytes) {
            Ok(()) => TokenMatch::Right,
            Err(_) => TokenMatch::Wrong,
        }
    }

    fn mac(&self, node: NodeId, nonce: &str) -> Hmac<Sha256> {
        let mut mac = self.begun.clone();
        mac.update(node.0.as_bytes());
        mac.update(nonce.as_bytes());
        mac
    }
}

/// Random text for a new session.
pub fn fresh_nonce() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Attributes, Session};
    use crate::timestamp::Timestamp;

    fn node_with_session(nonce: &str) -> Node {
        let mut node = Node::enrolled(NodeId::default(), Attributes::default(), Timestamp(0));
        node.session = Some(Session {
            nonce: nonce.to_owned(),
            confirmed: false,
            callback_url: None,
            agent_version: None,
            certificate: None,
            instance: None,
            last_heartbeat_at: None,
            last_contact_at: None,
            trouble: None,
            asked_again_at: None,
            proved_alive_at: None,
        });
        node
    }

    #[test]
    fn a_token_fits_its_own_session_only() {
        let key = TokenKey::random();
        let node = node_with_session("one");
        let token = key.token(node.id, "one");
        assert_eq!(token.len(), 43);
        assert_eq!(key.compare(&node, Some(&token)), TokenMatch::Right);
        assert_eq!(
            key.compare(&node_with_session("two"), Some(&token)),
            TokenMatch::Wrong
        );
        assert_eq!(
            TokenKey::random().compare(&node, Some(&token)),
            TokenMatch::Wrong
        );
        for wrong in ["", "******", &token[..42], &format!("{token}A")] {
            assert_eq!(
                key.compare(&node, Some(wrong)),
                TokenMatch::Wrong,
                "{wrong}"
            );
        }
        assert_eq!(key.compare(&node, None), TokenMatch::Missing);
        let mut without = node;
        without.session = None;
        assert_eq!(key.compare(&without, Some(&token)), TokenMatch::Wrong);
    }

    #[test]
    fn the_key_is_made_once_kept_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token.key");
        let made = TokenKey::load_or_create(&path).unwrap();
        assert_eq!(
            TokenKey::load_or_create(&path).unwrap().fingerprint(),
            made.fingerprint()
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(&path, b"short").unwrap();
        let error = TokenKey::load_or_create(&path).err().unwrap();
        assert!(error.contains("5 bytes"), "{error}");
    }
}
