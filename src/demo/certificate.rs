//! The certificate an agent makes for itself at each start.
//!
//! As the real agent does it: self-signed, the host name as common name, one IP address as *critical* subject
//! alternative name, no basic constraints, valid from one hour ago for 30 days. Two differences: the real agent signs
//! P-384 keys with SHA-512, which ring cannot do, so here it is SHA-384; and P-256 is the default because a thousand
//! machines share two cores (agents before 11.6.0 used P-256 too).

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;

use super::fleet::Curve;

const SUBJECT_ALTERNATIVE_NAME: [u64; 4] = [2, 5, 29, 17];
const CLOCK_SKEW: Duration = Duration::from_secs(3600);
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// A certificate, ready to serve.
pub(crate) struct Certificate {
    /// As it is sent in heartbeats.
    pub(crate) pem: String,
    pub(crate) server: Arc<ServerConfig>,
}

/// Makes a key and a certificate for `address`.
///
/// # Errors
/// A text saying what could not be made.
pub(crate) fn make(
    host_name: &str,
    address: Ipv4Addr,
    curve: Curve,
    provider: &Arc<CryptoProvider>,
) -> Result<Certificate, String> {
    let algorithm = match curve {
        Curve::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        Curve::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
    };
    let key = KeyPair::generate_for(algorithm)
        .map_err(|error| format!("making an agent's key: {error}"))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, host_name);
    params.custom_extensions = vec![address_extension(address)];
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + LIFETIME;
    let certificate = params
        .self_signed(&key)
        .map_err(|error| format!("signing an agent's certificate: {error}"))?;

    let private_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], private_key)
        })
        .map_err(|error| format!("setting up an agent's TLS: {error}"))?;
    // Nobody resumes sessions with an agent, and a cache for each of a thousand machines adds up.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Ok(Certificate {
        pem: certificate.pem(),
        server: Arc::new(server),
    })
}

/// `SubjectAltName ::= SEQUENCE { [7] IMPLICIT OCTET STRING }`, marked critical, which rcgen only does for
/// certificates without a subject.
fn address_extension(address: Ipv4Addr) -> CustomExtension {
    let mut content = vec![0x30, 6, 0x87, 4];
    content.extend(address.octets());
    let mut extension = CustomExtension::from_oid_content(&SUBJECT_ALTERNATIVE_NAME, content);
    extension.set_criticality(true);
    extension
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_a_critical_alternative_name() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let made = make("machine-1", Ipv4Addr::LOCALHOST, Curve::P256, &provider).unwrap();
        let der = rustls::pki_types::pem::PemObject::from_pem_slice(made.pem.as_bytes()).unwrap();
        let der: rustls::pki_types::CertificateDer<'_> = der;
        // OID 2.5.29.17, TRUE, OCTET STRING { SEQUENCE { [7] 127.0.0.1 } }
        let expected = [
            6, 3, 0x55, 0x1d, 0x11, 1, 1, 0xff, 4, 8, 0x30, 6, 0x87, 4, 127, 0, 0, 1,
        ];
        assert!(der.windows(expected.len()).any(|window| window == expected));
    }
}
