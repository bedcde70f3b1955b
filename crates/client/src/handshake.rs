//! The client's handshake with the keeper through SQL.
//!
//! The caller runs [`Handshake::first_sql`], hands the one text field of its
//! result to [`Handshake::offer`], decides whether it accepts the keeper's key,
//! runs [`Offer::sql`], and takes the keys from the offer. The texts depend on no
//! setting (`bytea_output`, `standard_conforming_strings`, `search_path`).
use envelope::handshake::{Initiator, Keeper, Use};
use envelope::{Opener, Sealer, SecretKey};
use std::time::Instant;

use crate::Failure;

/// A handshake that waits for the keeper's message.
#[derive(Debug)]
pub struct Handshake {
    initiator: Initiator,
    message: Vec<u8>,
}

impl Handshake {
    /// Begins.
    pub fn new(secret: &SecretKey) -> Result<Handshake, Failure> {
        Handshake::begin(secret, false)
    }

    /// Begins; asks for the keeper's evidence or not (crate `attest` checks it).
    pub fn begin(secret: &SecretKey, asks: bool) -> Result<Handshake, Failure> {
        let (initiator, message) = Initiator::begin(secret, Use::Session, asks)?;
        Ok(Handshake { initiator, message })
    }

    /// The SQL that carries message 1.
    pub fn first_sql(&self) -> String {
        sql(1, &self.message)
    }

    /// Takes the keeper's message 2: the one field of the first SQL's result.
    pub fn offer(mut self, field: &str) -> Result<Offer, Failure> {
        let message = from_hex(field).ok_or_else(|| Failure::protocol("handshake"))?;
        let since = Instant::now();
        let keeper = self.initiator.receive(&message)?;
        if keeper.evidence.contract != contract::VERSION {
            return Err(
                Failure::new("08004", "confide: the keeper has another version").detail(format!(
                    "The keeper speaks version {}, this client version {}.",
                    keeper.evidence.contract,
                    contract::VERSION
                )),
            );
        }
        let (message, keys) = self.initiator.finish()?;
        let (sealer, opener) = keys.into_client()?;
        Ok(Offer {
            keeper,
            message,
            since,
            sealer,
            opener,
        })
    }
}

/// A keeper that has shown its key. Whoever does not trust it drops the offer:
/// the client's identity has not left yet.
#[derive(Debug)]
pub struct Offer {
    /// The keeper's key and evidence.
    pub keeper: Keeper,
    message: Vec<u8>,
    /// When the keeper's message had come.
    pub(crate) since: Instant,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

impl Offer {
    /// The SQL that carries message 3. When it has succeeded, hand the offer to
    /// [`crate::Session::begin`].
    pub fn sql(&self) -> String {
        sql(3, &self.message)
    }
}

fn sql(step: u32, message: &[u8]) -> String {
    let hex: String = message.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "SELECT pg_catalog.encode(confide.handshake({step}, pg_catalog.decode('{hex}', 'hex')), 'hex')"
    )
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| {
            let text = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(text, 16).ok()
        })
        .collect()
}
