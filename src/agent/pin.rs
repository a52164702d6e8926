//! Trusts exactly one certificate: the one the agent sent with its authenticated heartbeat.
//!
//! Agents sign their certificate themselves, with P-384 and SHA-512 since agent 11.6.0, with whatever clock the machine has; so
//! neither chain, names, dates nor its own signature are looked at, only its bytes. That the peer holds the private key is
//! checked as usual, by the signature over the handshake.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest, Sha256};

/// A certificate as it came with a heartbeat.
#[derive(Debug, Clone)]
pub(super) struct Certificate {
    der: CertificateDer<'static>,
    /// SHA-256 of its bytes, in lower-case hex.
    pub(super) sha256: String,
}

impl Certificate {
    /// Reads the first certificate of a PEM text.
    pub(super) fn from_pem(pem: &str) -> Result<Certificate, String> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| {
            format!("the agent's certificate is not a readable PEM text ({error})")
        })?;
        let sha256 = format!("{:x}", Sha256::digest(&der));
        Ok(Certificate { der, sha256 })
    }
}

/// Checks the certificate that came with a heartbeat (`agent_verify_ca`) and returns its fingerprint: SHA-256 in lower-case hex.
///
/// # Errors
/// Why it can't be read, in words for an operator.
pub fn certificate_sha256(pem: &str) -> Result<String, String> {
    Certificate::from_pem(pem).map(|certificate| certificate.sha256)
}

/// Accepts one certificate, or none at all.
#[derive(Debug)]
pub(super) struct Pinned {
    certificate: Option<Certificate>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// Accepts only `certificate`; with none, no TLS connection can be made.
    pub(super) fn new(certificate: Option<Certificate>, provider: Arc<CryptoProvider>) -> Pinned {
        Pinned {
            certificate,
            provider,
        }
    }
}

/// True for the error by which [`Pinned`] says that another certificate was shown.
pub(super) fn is_mismatch(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)
    )
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.certificate {
            Some(pinned) if pinned.der == *end_entity => Ok(ServerCertVerified::assertion()),
            _ => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_certificate_has_a_fingerprint() {
        let pem = include_str!("../../tests/fixtures/tls/p384-sha512.pem");
        assert_eq!(certificate_sha256(pem).unwrap().len(), 64);
        for text in [
            "",
            "no PEM",
            "-----BEGIN CERTIFICATE-----\nAAAA",
            include_str!("../../tests/fixtures/tls/p384-sha512.key"),
        ] {
            assert!(certificate_sha256(text).is_err());
        }
    }
}
