//! Why evidence was not accepted.

use std::fmt;

/// Reason of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is not evidence.
    Malformed,
    /// It is simulated.
    Simulated,
    /// The policy does not accept its kind.
    Kind,
    /// A signature of the report or of a certificate is wrong.
    Altered,
    /// It is for keys other than the keeper's.
    Keys,
    /// The report is not bound to the keys, the purpose or the nonce.
    Binding,
    /// The zone can be debugged.
    Debug,
    /// The measurement is of another program or guest.
    Measurement,
    /// Firmware or program is too old.
    Version,
    /// Certificates or collateral have expired or are not valid yet.
    Expired,
    /// The machine's key was revoked.
    Revoked,
    /// Data needed for the verification is missing or does not match.
    Collateral,
}

impl Reason {
    /// Its short name.
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
    /// The reason.
    pub reason: Reason,
    /// Details for people.
    pub detail: String,
}

impl Refused {
    /// Makes a refusal.
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
