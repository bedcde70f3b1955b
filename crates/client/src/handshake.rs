//! The client's handshake with the keeper through SQL.
//!
//! The caller executes [`Handshake::first_sql`], passes the single text field of its result to
//! [`Handshake::offer`], decides whether to accept the keeper's key, executes [`Offer::sql`], and
//! takes the keys from the offer. The texts do not depend on any setting (`bytea_output`,
//! `standard_conforming_strings`, `search_path`).
use envelope::handshake::{Initiator, Keeper, Use};
use envelope::{Opener, Sealer, SecretKey};
use std::time::Instant;

use crate::Failure;

/// A handshake waiting for the keeper's message.
#[derive(Debug)]
pub struct Handshake {
    initiator: Initiator,
    message: Vec<u8>,
}

impl Handshake {
    /// Starts a handshake.
    pub fn new(secret: &SecretKey) -> Result<Handshake, Failure> {
        Handshake::begin(secret, false)
    }

    /// Starts a handshake; `asks` says whether to request the keeper's evidence (which crate
    /// `attest` checks).
    pub fn begin(secret: &SecretKey, asks: bool) -> Result<Handshake, Failure> {
        let (initiator, message) = Initiator::begin(secret, Use::Session, asks)?;
        Ok(Handshake { initiator, message })
    }

    /// The SQL that contains message 1.
    pub fn first_sql(&self) -> String {
        sql(1, &self.message)
    }

    /// Processes the keeper's message 2: the single field of the first SQL's result.
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
        let storing = keys.storing()?;
        let storing = (Sealer::storing(&storing)?, Opener::storing(&storing)?);
        let (sealer, opener) = keys.into_client()?;
        Ok(Offer {
            keeper,
            message,
            since,
            sealer,
            opener,
            storing,
        })
    }
}

/// A keeper that has shown its key. If the caller does not trust it, it drops the offer: the
/// client's identity has not been sent yet.
#[derive(Debug)]
pub struct Offer {
    /// The keeper's key and evidence.
    pub keeper: Keeper,
    message: Vec<u8>,
    /// The time when the keeper's message was received.
    pub(crate) since: Instant,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    /// For values that fit a column.
    pub(crate) storing: (Sealer, Opener),
}

impl Offer {
    /// The SQL that contains message 3. After it has succeeded, pass the offer to
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
