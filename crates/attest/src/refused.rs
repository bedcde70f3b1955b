//! Why evidence was not accepted.

use std::fmt;

/// What is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is no evidence at all.
    Malformed,
    /// It is simulated.
    Simulated,
    /// The policy does not speak of its kind.
    Kind,
    /// The report or a certificate is not as it was signed.
    Altered,
    /// It is about other keys than the keeper has shown.
    Keys,
    /// The report is not bound to the keys, the purpose or the nonce.
    Binding,
    /// The zone can be debugged.
    Debug,
    /// Another program, or another guest.
    Measurement,
    /// Firmware or program are too old.
    Version,
    /// Certificates or collateral have expired, or are not valid yet.
    Expired,
    /// The machine's key was revoked.
    Revoked,
    /// What the check needs is missing or does not fit.
    Collateral,
}

impl Reason {
    /// A word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::Simulated => "simulated",
            Reason::Kind => "kind",
            Reason::Altered => "altered",
            Reason::Keys => "keys",
            Reason::Binding => "binding",
            Reason::Debug => "debug",
            Reason::Measurement => "measurement",
            Reason::Version => "version",
            Reason::Expired => "expired",
            Reason::Revoked => "revoked",
            Reason::Collateral => "collateral",
        }
    }
}

/// The refusal of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// What is wrong.
    pub reason: Reason,
    /// More about it, for people.
    pub detail: String,
}

impl Refused {
    /// A refusal.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Refused {
        Refused {
            reason,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "evidence refused ({}): {}",
            self.reason.word(),
            self.detail
        )
    }
}

impl std::error::Error for Refused {}
