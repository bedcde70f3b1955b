//! TLS to clients: the proxy's certificate, verification of clients' certificates, and the
//! information about both in a connection.
//!
//! Invariant: if a client presents a certificate, it must be signed for clients by an authority in
//! `tls_ca`, or the client is not served; without `tls_ca` no certificate is requested.
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{self, Algorithm};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::Config;

/// The TLS configuration.
pub struct Tls {
    /// Starts TLS with a client.
    pub acceptor: TlsAcceptor,
    /// The data for SCRAM channel binding, if the certificate's signature algorithm has a hash for
    /// that.
    pub end_point: Option<Vec<u8>>,
}

impl Tls {
    /// Creates it from the configuration; `None` without a certificate.
    pub fn of(config: &Config) -> Result<Option<Tls>, String> {
        if config.tls_cert.as_os_str().is_empty() {
            return Ok(None);
        }
        let chain = certificates(&config.tls_cert)?;
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", config.tls_key.display());
        let key = PrivateKeyDer::from_pem_file(&config.tls_key).map_err(|e| at(&e))?;
        let end_point = chain.first().and_then(end_point);
        let builder = ServerConfig::builder();
        let builder = if config.tls_ca.as_os_str().is_empty() {
            builder.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots(&config.tls_ca)?));
            let verifier = verifier.allow_unauthenticated().build();
            let verifier = verifier.map_err(|e| format!("{}: {e}", config.tls_ca.display()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let made = builder.with_single_cert(chain, key).map_err(|e| at(&e))?;
        let acceptor = TlsAcceptor::from(Arc::new(made));
        Ok(Some(Tls {
            acceptor,
            end_point,
        }))
    }
}

/// Reads the certificate authorities in a file.
pub fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(path)? {
        let added = roots.add(authority);
        added.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(roots)
}

/// Reads the certificates in a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|e| at(&e))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|e| at(&e))?;
    if found.is_empty() {
        return Err(at(&"no certificate in it"));
    }
    Ok(found)
}

/// Returns the name in the certificate presented by a client.
pub fn client_name(connection: &ServerConnection) -> Option<String> {
    common_name(connection.peer_certificates()?.first()?)
}

/// The common name, if there is exactly one.
fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let mut names = parsed.subject().iter_common_name();
    let (Some(name), None) = (names.next(), names.next()) else {
        return None;
    };
    let name = name.as_str().ok()?;
    (!name.is_empty() && !name.contains('\0')).then(|| name.to_owned())
}

/// RFC 5929, section 4.1: the hash of the signature algorithm, except that weak ones are replaced
/// by SHA-256.
fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let hash: &Algorithm = match parsed.signature_algorithm.algorithm.to_id_string().as_str() {
        // With RSA: MD5, SHA-1, SHA-256; with ECDSA: SHA-1, SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => &digest::SHA256,
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => &digest::SHA384,
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => &digest::SHA512,
        _ => return None,
    };
    Some(digest::digest(hash, certificate).as_ref().to_vec())
}
