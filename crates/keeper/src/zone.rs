//! Evidence of the zone that the keeper runs in, bound to the keeper's channel and signing keys
//! (crate `evidence`).
//!
//! Evidence is verified by whoever requests it (crate `attest`, which the keeper does not link).
//!
//! Invariant: a document for a session is made for that session's handshake and no other.

use envelope::PublicKey;
use evidence::{Provider, Purpose, Subject};
use ledger::SigningKey;
use std::sync::OnceLock;
use values::Error;

/// The keeper's zone.
pub(crate) struct Zone {
    provider: Box<dyn Provider>,
    channel: [u8; evidence::KEY_BYTES],
    signing: [u8; evidence::KEY_BYTES],
    /// The document included in signed results; the same during the whole run.
    signed: OnceLock<Vec<u8>>,
}

impl Zone {
    /// The zone of a setting (`evidence`), bound to these keys. Must be called before the sandbox
    /// is set up.
    pub fn of(setting: &str, channel: &PublicKey, signing: &SigningKey) -> Result<Zone, String> {
        let provider = evidence::provider(setting).map_err(|e| e.to_string())?;
        let signing = signing.verifying_key().map_err(|e| e.to_string())?;
        Ok(Zone {
            provider,
            channel: *channel.as_bytes(),
            signing: signing.0,
            signed: OnceLock::new(),
        })
    }

    /// Logs a warning if the evidence proves nothing.
    pub fn warn(&self) {
        if self.provider.is_simulated() {
            tracing::warn!(
                "EVIDENCE IS SIMULATED: it proves nothing about where this keeper runs; see the \
                 setting evidence"
            );
        }
    }

    /// New evidence for a purpose and a nonce.
    pub fn document(&self, purpose: Purpose, nonce: &[u8]) -> Result<Vec<u8>, String> {
        let subject = Subject {
            purpose,
            channel: &self.channel,
            signing: &self.signing,
            nonce,
        };
        evidence::document(&*self.provider, &subject).map_err(|e| e.to_string())
    }

    /// New evidence for a client.
    pub fn show(&self, purpose: Purpose, nonce: &[u8]) -> Result<Vec<u8>, Error> {
        self.document(purpose, nonce).map_err(|what| {
            tracing::error!(error = what, "there is no evidence");
            Error::new(b"58000", "confide: the keeper has no evidence of its zone")
                .detail(what)
                .hint("See the keeper's setting evidence.")
        })
    }

    /// Evidence that accompanies signatures.
    pub fn signing(&self) -> Result<&[u8], Error> {
        if self.signed.get().is_none() {
            let document = self.show(Purpose::Signing, &[])?;
            let _ = self.signed.set(document);
        }
        Ok(self.signed.get().map_or(&[], Vec::as_slice))
    }
}
