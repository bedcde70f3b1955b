//! Evidence of the keeper: checked at each handshake, before the client's identity is sent, against
//! the policy that was read when the proxy started.
//!
//! The checks themselves are in crate `attest`.
//!
//! Invariant: unless `attest` is off, no session begins without evidence created for its own
//! handshake. Previously accepted evidence does not count.
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use attest::{Accepted, Expected, Policy, Reason, Refused, verify};
use client::Failure;
use envelope::handshake::Keeper;
use evidence::Purpose;

use crate::config::Attest;

/// The configuration, and the results so far.
pub struct Attestation {
    mode: Attest,
    policy: Policy,
    seen: Mutex<Seen>,
}

/// Results shown in the admin console.
#[derive(Default)]
struct Seen {
    accepted: u64,
    refused: u64,
    /// The last accepted evidence, and its time.
    last: Option<(Accepted, u64)>,
    last_refusal: Option<String>,
}

impl Attestation {
    /// Creates it from the configuration; reads the policy.
    pub fn new(mode: Attest, policy: &Path) -> Result<Attestation, String> {
        let policy = match (mode, policy.as_os_str().is_empty()) {
            (Attest::Off, _) => Policy::default(),
            (_, true) => Policy::any_simulated(),
            (_, false) => Policy::read(policy)?,
        };
        if mode == Attest::Simulated {
            tracing::warn!("SIMULATED EVIDENCE IS TAKEN: it proves nothing about the keeper");
        }
        Ok(Attestation {
            mode,
            policy,
            seen: Mutex::default(),
        })
    }

    /// Whether handshakes request evidence.
    pub fn asks(&self) -> bool {
        self.mode != Attest::Off
    }

    /// Fails unless a session may begin with this keeper.
    pub fn check(&self, keeper: &Keeper) -> Result<(), Failure> {
        if !self.asks() {
            return Ok(());
        }
        let now = now();
        let checked = self.verify(keeper, now);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match checked {
            Ok(accepted) => {
                tracing::debug!(measurement = %accepted.measurement, "evidence accepted");
                seen.accepted += 1;
                seen.last = Some((accepted, now));
                Ok(())
            }
            Err(refused) => {
                tracing::error!(keeper = %keeper.key, %refused, "evidence refused");
                seen.refused += 1;
                seen.last_refusal = Some(refused.to_string());
                Err(failure(&refused))
            }
        }
    }

    fn verify(&self, keeper: &Keeper, now: u64) -> Result<Accepted, Refused> {
        if keeper.evidence.document.is_empty() {
            return Err(Refused::new(Reason::Malformed, "the keeper shows none"));
        }
        let expected = Expected {
            purpose: Purpose::Session,
            channel: Some(keeper.key.as_bytes()),
            signing: None,
            nonce: &keeper.nonce,
        };
        let simulated = self.mode == Attest::Simulated;
        let document = &keeper.evidence.document;
        verify(document, &expected, &self.policy, simulated, now)
    }

    /// Names and values, for display.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = vec![
            ("attest", self.mode.name().to_owned()),
            ("accepted", seen.accepted.to_string()),
            ("refused", seen.refused.to_string()),
        ];
        if let Some((last, at)) = &seen.last {
            rows.push(("kind", last.kind.name().to_owned()));
            rows.push(("measurement", last.measurement.clone()));
            rows.push(("versions", last.versions.clone()));
            rows.push(("seconds_ago", now().saturating_sub(*at).to_string()));
        }
        if let Some(refusal) = &seen.last_refusal {
            rows.push(("last_refusal", refusal.clone()));
        }
        rows.into_iter()
            .map(|(name, value)| vec![name.to_owned(), value])
            .collect()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn failure(refused: &Refused) -> Failure {
    Failure::new("28000", "confide: the keeper's evidence is refused")
        .detail(refused.to_string())
        .hint(
            "The keeper does not run where the proxy's attest_policy says; SHOW ATTESTATION on the \
             admin console has more.",
        )
}
