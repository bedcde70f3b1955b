//! The handshake between client and keeper: Noise XX. The keeper sends its static key and evidence
//! in message 2; the client sends its static key in message 3, after it has accepted the keeper.
//!
//! Messages are sent through SQL; this module does no I/O.
use snow::{Builder, HandshakeState};
use zeroize::Zeroize;

use crate::{Error, PublicKey, SecretKey, SessionKeys};

/// The Noise protocol.
pub const PATTERN: &str = "Noise_XX_25519_AESGCM_SHA256";
/// Both sides mix this in, so a handshake with another version fails.
pub const PROLOGUE: &[u8] = b"confide 1";
/// Maximum size of a message.
const MESSAGE_MAX: usize = 65_535;

/// What the keeper says about itself: the payload of message 2.
///
/// Bytes: version 1 `u8`, `1`, lease `u16` LE, contract version `u32` LE, session `u64` LE; then
/// the evidence document, if the client requested one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// [`contract::VERSION`] of the keeper.
    pub contract: u32,
    /// The keeper's number for the session.
    pub session: u64,
    /// Seconds until the session must be renewed; 0 means never.
    pub lease: u16,
    /// An evidence document (crate `evidence`), or empty. It is not verified here.
    pub document: Vec<u8>,
}

impl Evidence {
    /// Evidence for this session, with a document or none.
    pub fn new(session: u64, document: Vec<u8>) -> Evidence {
        Evidence {
            contract: contract::VERSION,
            session,
            lease: 0,
            document,
        }
    }

    /// Adds a lease of that many seconds.
    #[must_use]
    pub fn with_lease(self, lease: u16) -> Evidence {
        Evidence { lease, ..self }
    }

    /// Encodes the payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![1, 1];
        out.extend_from_slice(&self.lease.to_le_bytes());
        out.extend_from_slice(&self.contract.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.document);
        out
    }

    /// Decodes the payload.
    pub fn decode(bytes: &[u8]) -> Result<Evidence, Error> {
        let malformed = Error::Evidence("malformed");
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or(malformed.clone())?;
        let lease = match *head {
            [1, 1, low, high] => u16::from_le_bytes([low, high]),
            [1, ..] => return Err(malformed),
            _ => return Err(Error::Evidence("unknown version")),
        };
        let (contract, rest) = rest.split_first_chunk().ok_or(malformed.clone())?;
        let (session, document) = rest.split_first_chunk().ok_or(malformed)?;
        Ok(Evidence {
            contract: u32::from_le_bytes(*contract),
            session: u64::from_le_bytes(*session),
            lease,
            document: document.to_vec(),
        })
    }
}

/// Purpose of a handshake. Both sides mix it in, so messages of one purpose are useless for the
/// other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// A client's session with a keeper.
    Session,
    /// A broker that sends a keeper the key that wraps its root key.
    Broker,
}

impl Use {
    const fn prologue(self) -> &'static [u8] {
        match self {
            Use::Session => PROLOGUE,
            Use::Broker => b"confide broker 1",
        }
    }
}

/// Payload of a message 1 that requests a document.
const ASKS: &[u8] = &[1];

/// The client's side.
pub struct Initiator {
    state: HandshakeState,
    nonce: Vec<u8>,
}

/// What the client learns from message 2. It must be checked before message 3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeper {
    /// The keeper's static key, which the keeper has proved to have.
    pub key: PublicKey,
    /// What it says about itself.
    pub evidence: Evidence,
    /// Message 1, to which the document is bound; it is unique for each handshake.
    pub nonce: Vec<u8>,
}

impl Initiator {
    /// Starts a handshake; returns message 1.
    pub fn new(secret: &SecretKey) -> Result<(Initiator, Vec<u8>), Error> {
        Initiator::begin(secret, Use::Session, false)
    }

    /// Starts a handshake for this purpose, with or without requesting the keeper's evidence.
    pub fn begin(secret: &SecretKey, of: Use, asks: bool) -> Result<(Initiator, Vec<u8>), Error> {
        let mut state = builder(secret, of)?
            .build_initiator()
            .map_err(|_| Error::Handshake("cannot begin"))?;
        let nonce = write(&mut state, if asks { ASKS } else { &[] })?;
        let message = nonce.clone();
        Ok((Initiator { state, nonce }, message))
    }

    /// Processes message 2.
    pub fn receive(&mut self, message: &[u8]) -> Result<Keeper, Error> {
        let payload = read(&mut self.state, message)?;
        Ok(Keeper {
            key: remote(&self.state)?,
            evidence: Evidence::decode(&payload)?,
            nonce: self.nonce.clone(),
        })
    }

    /// Accepts the keeper; returns message 3 and the keys.
    pub fn finish(mut self) -> Result<(Vec<u8>, SessionKeys), Error> {
        let message = write(&mut self.state, &[])?;
        Ok((message, split(&mut self.state)?))
    }
}

/// The keeper's side.
pub struct Responder {
    /// On the heap, where the keeper's allocator decides in which memory: the secrets of a handshake are in it.
    state: Box<HandshakeState>,
}

impl Responder {
    /// Waits for message 1.
    pub fn new(secret: &SecretKey) -> Result<Responder, Error> {
        Responder::begin(secret, Use::Session)
    }

    /// Waits for message 1 of a handshake for this purpose.
    pub fn begin(secret: &SecretKey, of: Use) -> Result<Responder, Error> {
        let state = builder(secret, of)?
            .build_responder()
            .map_err(|_| Error::Handshake("cannot begin"))?;
        Ok(Responder {
            state: Box::new(state),
        })
    }

    /// Processes message 1. Returns whether it requests a document, which must be bound to this
    /// message.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, Error> {
        match read(&mut self.state, message)?.as_slice() {
            [] => Ok(false),
            ASKS => Ok(true),
            _ => Err(Error::Handshake("unknown question")),
        }
    }

    /// Returns message 2.
    pub fn respond(&mut self, evidence: &Evidence) -> Result<Vec<u8>, Error> {
        write(&mut self.state, &evidence.encode())
    }

    /// Processes message 3. Returns the session's keys, and the client's key, which the client has
    /// proved to have.
    pub fn finish(mut self, message: &[u8]) -> Result<(PublicKey, SessionKeys), Error> {
        read(&mut self.state, message)?;
        Ok((remote(&self.state)?, split(&mut self.state)?))
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator(..)")
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Responder(..)")
    }
}

fn builder(secret: &SecretKey, of: Use) -> Result<Builder<'_>, Error> {
    let unsupported = Error::Handshake("protocol not supported");
    let params = PATTERN.parse().map_err(|_| unsupported.clone())?;
    Builder::new(params)
        .local_private_key(secret.expose())
        .and_then(|b| b.prologue(of.prologue()))
        .map_err(|_| unsupported)
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, Error> {
    // Two keys and their tags are shorter than 128 bytes.
    let mut out = vec![0; payload.len() + 256];
    let length = state
        .write_message(payload, &mut out)
        .map_err(|_| Error::Handshake("message out of order"))?;
    out.truncate(length);
    Ok(out)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, Error> {
    if message.len() > MESSAGE_MAX {
        return Err(Error::Handshake("message too long"));
    }
    let mut out = vec![0; message.len()];
    let length = state.read_message(message, &mut out).map_err(|e| match e {
        snow::Error::State(_) => Error::Handshake("message out of order"),
        _ => Error::Handshake("message malformed or altered"),
    })?;
    out.truncate(length);
    Ok(out)
}

fn remote(state: &HandshakeState) -> Result<PublicKey, Error> {
    state
        .get_remote_static()
        .ok_or(Error::Handshake("message out of order"))
        .and_then(PublicKey::from_slice)
}

fn split(state: &mut HandshakeState) -> Result<SessionKeys, Error> {
    if !state.is_handshake_finished() {
        return Err(Error::Handshake("message out of order"));
    }
    let (mut out, mut back) = state.dangerously_get_raw_split();
    let keys = SessionKeys::new(out, back);
    out.zeroize();
    back.zeroize();
    Ok(keys)
}
