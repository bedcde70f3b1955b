//! The handshake between client and keeper: Noise XX. The keeper shows its
//! static key and evidence in message 2; the client shows its static key in
//! message 3, after it has accepted the keeper.
//!
//! Messages travel through SQL; this module does no I/O.
use snow::{Builder, HandshakeState};
use zeroize::Zeroize;

use crate::{Error, PublicKey, SecretKey, SessionKeys};

/// The Noise protocol.
pub const PATTERN: &str = "Noise_XX_25519_AESGCM_SHA256";
/// Both sides mix this in: a peer of another version fails.
pub const PROLOGUE: &[u8] = b"confide 1";
/// No message is longer.
const MESSAGE_MAX: usize = 65_535;

/// What kind of zone the keeper says it runs in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvidenceKind {
    /// An ordinary process: nothing is proved.
    Simulated,
}

impl EvidenceKind {
    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            EvidenceKind::Simulated => "simulated",
        }
    }
}

/// The keeper's evidence, the payload of message 2.
///
/// Bytes: version 1 `u8`, kind `u8` (1: simulated), zeros 2..4, contract
/// version `u32` LE, session `u64` LE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// Kind of the keeper's zone.
    pub kind: EvidenceKind,
    /// [`contract::VERSION`] of the keeper.
    pub contract: u32,
    /// Number of the session in the keeper.
    pub session: u64,
}

impl Evidence {
    /// Evidence of a keeper that is an ordinary process.
    pub fn simulated(session: u64) -> Evidence {
        Evidence {
            kind: EvidenceKind::Simulated,
            contract: contract::VERSION,
            session,
        }
    }

    /// Bytes of the payload.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; 16];
        out[0] = 1;
        out[1] = match self.kind {
            EvidenceKind::Simulated => 1,
        };
        out[4..8].copy_from_slice(&self.contract.to_le_bytes());
        out[8..].copy_from_slice(&self.session.to_le_bytes());
        out
    }

    /// The evidence in a payload.
    pub fn decode(bytes: &[u8]) -> Result<Evidence, Error> {
        match bytes {
            [
                1,
                kind,
                0,
                0,
                c0,
                c1,
                c2,
                c3,
                s0,
                s1,
                s2,
                s3,
                s4,
                s5,
                s6,
                s7,
            ] => Ok(Evidence {
                kind: match kind {
                    1 => EvidenceKind::Simulated,
                    _ => return Err(Error::Evidence("unknown kind")),
                },
                contract: u32::from_le_bytes([*c0, *c1, *c2, *c3]),
                session: u64::from_le_bytes([*s0, *s1, *s2, *s3, *s4, *s5, *s6, *s7]),
            }),
            [1, ..] => Err(Error::Evidence("malformed")),
            _ => Err(Error::Evidence("unknown version")),
        }
    }
}

/// The client's side.
pub struct Initiator {
    state: HandshakeState,
}

/// What the client learns from message 2. To be checked before message 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeper {
    /// The keeper's static key, which it has proved to hold.
    pub key: PublicKey,
    /// What it says about itself.
    pub evidence: Evidence,
}

impl Initiator {
    /// Begins; gives message 1.
    pub fn new(secret: &SecretKey) -> Result<(Initiator, Vec<u8>), Error> {
        let mut state = builder(secret)?
            .build_initiator()
            .map_err(|_| Error::Handshake("cannot begin"))?;
        let message = write(&mut state, &[])?;
        Ok((Initiator { state }, message))
    }

    /// Takes message 2.
    pub fn receive(&mut self, message: &[u8]) -> Result<Keeper, Error> {
        let payload = read(&mut self.state, message)?;
        Ok(Keeper {
            key: remote(&self.state)?,
            evidence: Evidence::decode(&payload)?,
        })
    }

    /// Accepts the keeper; gives message 3 and the keys.
    pub fn finish(mut self) -> Result<(Vec<u8>, SessionKeys), Error> {
        let message = write(&mut self.state, &[])?;
        Ok((message, split(&mut self.state)?))
    }
}

/// The keeper's side.
pub struct Responder {
    state: HandshakeState,
}

impl Responder {
    /// Waits for message 1.
    pub fn new(secret: &SecretKey) -> Result<Responder, Error> {
        let state = builder(secret)?
            .build_responder()
            .map_err(|_| Error::Handshake("cannot begin"))?;
        Ok(Responder { state })
    }

    /// Takes message 1; gives message 2.
    pub fn respond(&mut self, message: &[u8], evidence: &Evidence) -> Result<Vec<u8>, Error> {
        read(&mut self.state, message)?;
        write(&mut self.state, &evidence.encode())
    }

    /// Takes message 3; gives the client's key, which it has proved to hold, and
    /// the session's keys.
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

fn builder(secret: &SecretKey) -> Result<Builder<'_>, Error> {
    let unsupported = Error::Handshake("protocol not supported");
    let params = PATTERN.parse().map_err(|_| unsupported.clone())?;
    Builder::new(params)
        .local_private_key(secret.expose())
        .and_then(|b| b.prologue(PROLOGUE))
        .map_err(|_| unsupported)
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, Error> {
    // Two keys with tags are less than 128 bytes; payloads are short.
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
