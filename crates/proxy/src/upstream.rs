//! Connections to the servers: through TCP or a Unix socket, with TLS according to
//! `upstream_sslmode`.
//!
//! Which of the servers a client is connected to is in `dial`, authentication to them, except by
//! certificate, in `authentication`.
//!
//! Invariant: with `require` and `verify-full` nothing is sent to a server through TCP before TLS
//! is established; with `verify-full` it is established only with a server whose certificate is
//! signed by an authority in `upstream_ca` for the configured name.
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
};

use crate::config::{Config, SslMode, Upstream};
use crate::quiet::Quiet;
use crate::sockets::{Connection, Stream};
use crate::tls::{certificates, roots};

/// The request for TLS: its length and its code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// The servers, in the order of the configuration.
pub struct Servers {
    list: Vec<Server>,
    /// Position of the first to try for clients that the server itself authenticates.
    first: AtomicUsize,
}

impl Servers {
    /// Creates them from the configuration.
    pub fn of(config: &Config) -> std::result::Result<Servers, String> {
        let places = config.upstreams()?.into_iter();
        let list = places.map(|place| Server::at(config, place));
        Ok(Servers {
            list: list.collect::<std::result::Result<_, _>>()?,
            first: AtomicUsize::new(0),
        })
    }

    /// Whether one of them is reached over a network without TLS.
    pub fn exposed(&self) -> bool {
        self.list.iter().any(Server::exposed)
    }

    /// Whether there are several.
    pub fn several(&self) -> bool {
        self.list.len() > 1
    }

    /// Positions of the servers in the order in which they are tried. For a client that the server
    /// authenticates (`relayed`) the order begins after servers that were of the wrong kind.
    pub fn order(&self, relayed: bool) -> impl Iterator<Item = usize> + use<> {
        let count = self.list.len();
        let first = match relayed {
            true => self.first.load(Ordering::Relaxed),
            false => 0,
        };
        (0..count).map(move |n| (first + n) % count)
    }

    /// The server at this position is of the wrong kind: the next client tries the next one.
    pub fn skip(&self, place: usize) {
        let next = (place + 1) % self.list.len().max(1);
        self.first.store(next, Ordering::Relaxed);
    }

    /// Connects to the server at this position, and sends the first message.
    pub async fn connect(&self, place: usize, first: &[u8]) -> Result<Connection> {
        match self.list.get(place) {
            Some(server) => server.connect(first).await,
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

/// A server's address, and how to connect to it.
struct Server {
    address: Upstream,
    tls: Option<Tls>,
}

struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    required: bool,
}

impl Server {
    fn at(config: &Config, address: Upstream) -> std::result::Result<Server, String> {
        let tls = match (&address, config.upstream_sslmode) {
            (Upstream::Unix(_), SslMode::VerifyFull) => {
                return Err("upstream_sslmode: a Unix socket has no name to verify".into());
            }
            (Upstream::Unix(_), _) | (_, SslMode::Disable) => None,
            (Upstream::Tcp(place), mode) => Some(Tls::of(config, place, mode)?),
        };
        Ok(Server { address, tls })
    }

    /// Whether it is reached over a network without TLS.
    fn exposed(&self) -> bool {
        let Upstream::Tcp(place) = &self.address else {
            return false;
        };
        let host = host(place);
        let here = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        !here && !self.tls.as_ref().is_some_and(|tls| tls.required)
    }

    /// Connects, and sends the first message.
    async fn connect(&self, first: &[u8]) -> Result<Connection> {
        let mut connection = match &self.address {
            Upstream::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    Some(tls) => tls.begin(stream).await?,
                    None => plain(stream),
                }
            }
            Upstream::Unix(path) => plain(Quiet::new(UnixStream::connect(path).await?)?),
        };
        connection.stream.write_all(first).await?;
        connection.stream.flush().await?;
        Ok(connection)
    }
}

fn plain(stream: impl Stream + 'static) -> Connection {
    Connection {
        stream: Box::new(stream),
        encrypted: false,
    }
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(place: &str) -> &str {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    inner.unwrap_or(host)
}

impl Tls {
    fn of(config: &Config, place: &str, mode: SslMode) -> std::result::Result<Tls, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| format!("TLS: {e}"))?;
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            SslMode::VerifyFull => {
                let ca = &config.upstream_ca;
                let verifier = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots(ca)?),
                    provider.clone(),
                );
                let made = verifier.build();
                made.map_err(|e| format!("{}: {e}", ca.display()))?
            }
            _ => Arc::new(Anybody(provider)),
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let made = match config.upstream_cert.as_os_str().is_empty() {
            true => builder.with_no_client_auth(),
            false => {
                let key = private_key(&config.upstream_key)?;
                let chain = certificates(&config.upstream_cert)?;
                let made = builder.with_client_auth_cert(chain, key);
                made.map_err(|e| format!("{}: {e}", config.upstream_key.display()))?
            }
        };
        let name = ServerName::try_from(host(place).to_owned());
        Ok(Tls {
            connector: TlsConnector::from(Arc::new(made)),
            name: name.map_err(|_| "upstream: expected a host's name or address".to_owned())?,
            required: mode != SslMode::Prefer,
        })
    }

    /// Requests TLS, and starts it if the server agrees.
    async fn begin(&self, mut stream: TcpStream) -> Result<Connection> {
        stream.write_all(&SSL_REQUEST).await?;
        // Read exactly one byte: otherwise data received before TLS would count as received within
        // it.
        match stream.read_u8().await? {
            b'S' => {
                let name = self.name.clone();
                let stream = self.connector.connect(name, stream).await?;
                Ok(Connection {
                    stream: Box::new(stream),
                    encrypted: true,
                })
            }
            b'N' if !self.required => Ok(plain(stream)),
            b'N' => Err(Error::new(
                ErrorKind::ConnectionRefused,
                "the server does not speak TLS",
            )),
            _ => Err(Error::new(
                ErrorKind::InvalidData,
                "the server does not follow the protocol",
            )),
        }
    }
}

fn private_key(path: &Path) -> std::result::Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Accepts every certificate, for `prefer` and `require`: they protect against eavesdropping, but
/// not against a man in the middle.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
