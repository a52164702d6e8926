//! TLS to agents that make their own certificates.

use std::io::Write as _;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};
use upbeat::agent::{AgentClient, Settings, Target, TlsMinVersion};
use upbeat::command::{PostAnswer, Unreadable};

use super::server::{Play, Server, answer};
use super::{TOKEN, client, command, is_never_sent, running, settings, target};

const P384_SHA512: &str = include_str!("../fixtures/tls/p384-sha512.pem");
const P384_KEY: &str = include_str!("../fixtures/tls/p384-sha512.key");
const P384_FINGERPRINT: &str = "54d7fcdd3320992a181d61a813b673f62cc21462bf3744ba7e307aace543693f";

/// A certificate and its key, in PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

fn p384() -> Identity {
    Identity {
        certificate: P384_SHA512.to_owned(),
        key: P384_KEY.to_owned(),
    }
}

pub fn p256() -> Identity {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    Identity {
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

/// Shows a certificate whatever key there is.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

pub fn config(
    certificate: &str,
    key: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shows(Arc::new(CertifiedKey::new(chain, key)))))
}

pub const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

fn secure_target(port: u16, certificate: Option<&str>) -> Target {
    Target {
        callback_url: format!("https://127.0.0.1:{port}"),
        certificate: certificate.map(str::to_owned),
        token: TOKEN.to_owned(),
    }
}

#[tokio::test]
async fn certificates_of_old_and_new_agents_are_accepted_in_both_versions_of_tls() {
    for version in BOTH {
        for identity in [p384(), p256()] {
            let server = Server::tls(
                config(&identity.certificate, &identity.key, &[version]),
                &[Play::Answer(answer(200, &running()))],
            )
            .await;
            let target = secure_target(server.port, Some(&identity.certificate));
            let got = client().post(&target, false, &command()).await;
            assert!(
                matches!(got, PostAnswer::Accepted(_)),
                "{version:?} {got:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_fingerprint_is_part_of_the_instance() {
    let server = Server::tls(
        config(P384_SHA512, P384_KEY, BOTH),
        &[
            Play::Answer(answer(200, r#"{"started_at": 1}"#)),
            Play::Answer(answer(200, r#"{"commands": []}"#)),
        ],
    )
    .await;
    let target = secure_target(server.port, Some(P384_SHA512));
    let (instance, _) = client().survey(&target).await.unwrap();
    assert_eq!(
        instance.certificate_sha256.as_deref(),
        Some(P384_FINGERPRINT)
    );
    assert_eq!(server.seen.connections(), 1);
}

#[tokio::test]
async fn another_certificate_is_named_and_nothing_is_sent() {
    for version in BOTH {
        let server = Server::tls(
            config(&p256().certificate, P384_KEY, &[version]),
            &[Play::Answer(answer(200, &running()))],
        )
        .await;
        let target = secure_target(server.port, Some(P384_SHA512));
        let got = client().post(&target, false, &command()).await;
        assert!(is_never_sent(&got), "{got:?}");
        assert!(
            format!("{got:?}").contains("another certificate"),
            "{got:?}"
        );
        assert_eq!(
            client().poll(&target, "a-1").await.unwrap_err(),
            Unreadable::CertificateMismatch
        );
        assert_eq!(server.seen.requests().len(), 0);
    }
}

/// Everybody on the way has seen the certificate; only the agent has its key.
#[tokio::test]
async fn the_right_certificate_without_its_key_is_not_believed() {
    for version in BOTH {
        let server = Server::tls(
            config(P384_SHA512, &p256().key, &[version]),
            &[Play::Answer(answer(200, &running()))],
        )
        .await;
        let target = secure_target(server.port, Some(P384_SHA512));
        let got = client().post(&target, false, &command()).await;
        assert!(is_never_sent(&got), "{got:?}");
        assert_eq!(server.seen.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_handshake_that_never_ends_means_never_sent() {
    let server = Server::mute().await;
    let target = secure_target(server.port, Some(P384_SHA512));
    let got = client().post(&target, false, &command()).await;
    assert!(is_never_sent(&got), "{got:?}");
    assert_eq!(server.seen.connections(), 1);
    let why = client().survey(&target).await.unwrap_err();
    assert!(matches!(why, Unreadable::Unreachable { .. }), "{why:?}");
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_means_never_sent() {
    let server = Server::plain(&[Play::AnswerAndClose(answer(400, "{}"))]).await;
    let target = secure_target(server.port, Some(P384_SHA512));
    let got = client().post(&target, false, &command()).await;
    assert!(is_never_sent(&got), "{got:?}");
}

#[tokio::test]
async fn silence_after_the_handshake_is_no_proof() {
    let server = Server::tls(config(P384_SHA512, P384_KEY, BOTH), &[Play::Silence]).await;
    let target = secure_target(server.port, Some(P384_SHA512));
    let got = client().post(&target, false, &command()).await;
    assert!(matches!(got, PostAnswer::Unknown { .. }), "{got:?}");
}

#[tokio::test]
async fn a_reset_after_the_handshake_is_no_proof() {
    let server = Server::tls(
        config(P384_SHA512, P384_KEY, BOTH),
        &[Play::AnswerAndReset(Vec::new())],
    )
    .await;
    let target = secure_target(server.port, Some(P384_SHA512));
    let got = client().post(&target, false, &command()).await;
    assert!(matches!(got, PostAnswer::Unknown { .. }), "{got:?}");
}

#[tokio::test]
async fn old_tls_can_be_forbidden() {
    let server = Server::tls(
        config(P384_SHA512, P384_KEY, &[&rustls::version::TLS12]),
        &[Play::Answer(answer(200, &running()))],
    )
    .await;
    let strict = Settings {
        tls_min_version: TlsMinVersion::V1_3,
        ..settings()
    };
    let target = secure_target(server.port, Some(P384_SHA512));
    let got = AgentClient::new(strict)
        .unwrap()
        .post(&target, false, &command())
        .await;
    assert!(is_never_sent(&got), "{got:?}");
}

#[tokio::test]
async fn without_a_certificate_only_a_ca_file_helps() {
    let identity = p256();
    let server = Server::tls(
        config(&identity.certificate, &identity.key, BOTH),
        &[Play::Answer(answer(200, &running()))],
    )
    .await;
    let target = secure_target(server.port, None);
    let got = client().post(&target, false, &command()).await;
    assert!(is_never_sent(&got), "{got:?}");
    assert!(format!("{got:?}").contains("ca_file"), "{got:?}");
    assert_eq!(server.seen.connections(), 0);

    for (ca, is_accepted) in [(&identity.certificate, true), (&p256().certificate, false)] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(ca.as_bytes()).unwrap();
        let with_ca = Settings {
            ca_file: Some(file.path().to_owned()),
            ..settings()
        };
        let got = AgentClient::new(with_ca)
            .unwrap()
            .post(&target, false, &command())
            .await;
        assert_eq!(
            matches!(got, PostAnswer::Accepted(_)),
            is_accepted,
            "{got:?}"
        );
        assert_eq!(is_never_sent(&got), !is_accepted, "{got:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_none_is_refused_before_calling() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    let got = client()
        .post(
            &secure_target(server.port, Some("-----BEGIN")),
            false,
            &command(),
        )
        .await;
    assert!(is_never_sent(&got), "{got:?}");
    assert_eq!(server.seen.connections(), 0);
    // Without TLS there is nothing to verify.
    let with_certificate = Target {
        certificate: Some("-----BEGIN".to_owned()),
        ..target(server.port)
    };
    let got = client().post(&with_certificate, false, &command()).await;
    assert!(matches!(got, PostAnswer::Accepted(_)), "{got:?}");
}
