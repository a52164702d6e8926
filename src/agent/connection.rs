//! HTTP clients for single agents: TLS with the agent's own certificate, time-outs, and which addresses may be called.
//!
//! Each agent gets its own small client, kept for a while so that reads in quick succession share a connection. Building one
//! takes about 15 µs (2 cores, debug build), far less than the TLS handshake that follows, so 10,000 agents need no more than
//! the bounded cache: one that fell out of it is built anew.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::callback::{CallbackRules, GuardedResolver};
use super::pin::{Certificate, Pinned};
use crate::command::ABSENT_FOR_MS;

/// How agents are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Limit for connecting, TLS handshake included.
    pub connect_timeout: Duration,
    /// Limit for a whole request, from connecting to the last byte of the answer.
    pub command_timeout: Duration,
    /// Longest answer that is read, in bytes.
    pub response_bytes_max: usize,
    /// Certificates that agents without one of their own are verified against, in PEM; without it such agents can't use TLS.
    pub ca_file: Option<PathBuf>,
    /// Oldest TLS version spoken.
    pub tls_min_version: TlsMinVersion,
    /// Which addresses may be called.
    pub callback: CallbackRules,
}

/// The oldest TLS version that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMinVersion {
    /// 1.2
    V1_2,
    /// 1.3
    V1_3,
}

impl TlsMinVersion {
    /// As agents spell it.
    pub fn name(self) -> &'static str {
        match self {
            TlsMinVersion::V1_2 => "1.2",
            TlsMinVersion::V1_3 => "1.3",
        }
    }
}

/// How many agents' clients are kept. Each keeps at most one idle connection.
const KEPT_CLIENTS_MAX: usize = 512;

/// How long an idle connection may be used again; it is closed after at most twice as long. Agents close theirs after 10 s;
const IDLE_FOR: Duration = Duration::from_millis(3_500);

/// How long what was sent may stay without an acknowledgement of the other side's kernel before the connection is given up. A kernel
/// goes on sending for minutes otherwise, also for a process that has died, and a command could arrive after it was found absent.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(4);

const _: () = assert!(ACKNOWLEDGED_WITHIN.as_millis() < ABSENT_FOR_MS as u128);

/// The two ways to call one agent.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    /// For reading; may use a connection again.
    pub(super) reading: reqwest::Client,
    /// For commands; a connection of its own for each, so that a lost one never leaves doubt whose it was.
    pub(super) commanding: reqwest::Client,
}

/// Makes and keeps clients.
pub(super) struct Connections {
    settings: Settings,
    provider: Arc<CryptoProvider>,
    roots: Option<Arc<WebPkiServerVerifier>>,
    kept: Mutex<Kept>,
}

/// Callback URL and fingerprint of the certificate.
type Key = (String, Option<String>);

#[derive(Default)]
struct Kept {
    clients: HashMap<Key, (Clients, u64)>,
    uses: u64,
}

impl Connections {
    /// Reads the CA file, if there is one.
    pub(super) fn new(settings: Settings) -> Result<Connections, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = match &settings.ca_file {
            None => None,
            Some(path) => Some(read_roots(path, &provider)?),
        };
        Ok(Connections {
            settings,
            provider,
            roots,
            kept: Mutex::default(),
        })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True if TLS to agents without a certificate of their own is possible.
    pub(super) fn has_roots(&self) -> bool {
        self.roots.is_some()
    }

    /// The clients for an agent, kept or new.
    pub(super) fn to(
        &self,
        callback_url: &str,
        certificate: Option<Certificate>,
    ) -> Result<Clients, String> {
        let key = (
            callback_url.to_owned(),
            certificate.as_ref().map(|pinned| pinned.sha256.clone()),
        );
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.uses += 1;
            let uses = kept.uses;
            if let Some((clients, used)) = kept.clients.get_mut(&key) {
                *used = uses;
                return Ok(clients.clone());
            }
        }
        let clients = self.build(certificate)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.clients.len() >= KEPT_CLIENTS_MAX {
            kept.forget_older_half();
        }
        let uses = kept.uses;
        kept.clients.insert(key, (clients.clone(), uses));
        Ok(clients)
    }

    fn build(&self, certificate: Option<Certificate>) -> Result<Clients, String> {
        let tls = self.tls(certificate)?;
        let client = |idle_connections: usize| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .dns_resolver(GuardedResolver {
                    rules: self.settings.callback.clone(),
                })
                // A proxy, a redirect or a repetition would each take the request somewhere nobody decided on.
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .http1_only()
                .referer(false)
                .connect_timeout(self.settings.connect_timeout)
                .timeout(self.settings.command_timeout)
                .pool_max_idle_per_host(idle_connections)
                .pool_idle_timeout(IDLE_FOR)
                .tcp_user_timeout(ACKNOWLEDGED_WITHIN)
                .user_agent(concat!("upbeat/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| format!("no HTTP client could be made: {error}"))
        };
        Ok(Clients {
            reading: client(1)?,
            commanding: client(0)?,
        })
    }

    fn tls(&self, certificate: Option<Certificate>) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions(self.settings.tls_min_version))
            .map_err(|error| format!("TLS can't be set up: {error}"))?;
        let mut tls = match (certificate, &self.roots) {
            (None, Some(roots)) => {
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::<WebPkiServerVerifier>::clone(roots))
            }
            (certificate, _) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Pinned::new(
                    certificate,
                    Arc::clone(&self.provider),
                ))),
        }
        .with_no_client_auth();
        // Sessions of connections that are kept open anyway; not worth 256 slots of memory for each agent.
        tls.resumption = Resumption::disabled();
        Ok(tls)
    }
}

impl Kept {
    fn forget_older_half(&mut self) {
        let mut used: Vec<u64> = self.clients.values().map(|(_, used)| *used).collect();
        used.sort_unstable();
        let middle = used.get(used.len() / 2).copied().unwrap_or_default();
        self.clients.retain(|_, (_, used)| *used > middle);
    }
}

fn versions(min: TlsMinVersion) -> &'static [&'static SupportedProtocolVersion] {
    static FROM_1_2: &[&SupportedProtocolVersion] =
        &[&rustls::version::TLS13, &rustls::version::TLS12];
    static FROM_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
    match min {
        TlsMinVersion::V1_2 => FROM_1_2,
        TlsMinVersion::V1_3 => FROM_1_3,
    }
}

fn read_roots(
    path: &std::path::Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let unreadable = |problem: String| {
        format!(
            "the file {} named by ca_file in [agent] can't be used: {problem}",
            path.display()
        )
    };
    let pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("it holds no certificate in PEM".to_owned()));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            connect_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(1),
            response_bytes_max: 1,
            ca_file: None,
            tls_min_version: TlsMinVersion::V1_2,
            callback: CallbackRules {
                networks: Vec::new(),
                require_tls: false,
                allow_host_names: false,
            },
        }
    }

    #[test]
    fn the_number_of_kept_clients_is_bounded_and_the_latest_stay() {
        let connections = Connections::new(settings()).unwrap();
        let started = std::time::Instant::now();
        for number in 0..=KEPT_CLIENTS_MAX {
            connections
                .to(&format!("http://10.0.0.1:{number}"), None)
                .unwrap();
        }
        println!(
            "{:?} for a new client of an agent",
            started.elapsed() / u32::try_from(KEPT_CLIENTS_MAX + 1).unwrap()
        );
        let kept = connections.kept.lock().unwrap();
        assert!(kept.clients.len() <= KEPT_CLIENTS_MAX);
        let latest = (format!("http://10.0.0.1:{KEPT_CLIENTS_MAX}"), None);
        assert!(kept.clients.contains_key(&latest));
        assert!(
            !kept
                .clients
                .contains_key(&("http://10.0.0.1:0".to_owned(), None))
        );
    }

    #[test]
    fn a_ca_file_that_cannot_be_used_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path().to_owned(), "/nonexistent/ca.pem".into()] {
            let with_file = Settings {
                ca_file: Some(path.clone()),
                ..settings()
            };
            let problem = Connections::new(with_file).err().unwrap();
            assert!(problem.contains(path.to_str().unwrap()), "{problem}");
        }
    }
}
