//! Evidence: what a keeper shows of the zone that it runs in, bound to its keys.
//!
//! A [`Document`] carries a hardware's report, whose 64 bytes of report data are a hash over what
//! the document is for, the keeper's channel and signing keys, and a nonce ([`report_data`]). A
//! [`Provider`] gets reports: from the kernel (Intel TDX, AMD SEV-SNP), or simulated ones.
//!
//! Not here: whether a report is genuine and good enough (crate `attest`, which only clients and
//! the broker link).
//!
//! Invariant: evidence for one purpose, keeper or nonce is never evidence for another.
#![forbid(unsafe_code)]

mod document;
mod provider;
mod setting;
mod simulated;
mod tsm;

pub use document::{DOCUMENT_MAX, Document};
pub use provider::{Error, Provider, Quote};
pub use setting::{directory, provider};
pub use simulated::{Claims as SimulatedClaims, Simulated, measure};
pub use tsm::Tsm;

use aws_lc_rs::digest::{Context, SHA512};

/// Size of a public key in bytes.
pub const KEY_BYTES: usize = 32;
/// Size of the report data in bytes.
pub const DATA_BYTES: usize = 64;
/// Size of a measurement in bytes (SHA-384).
pub const MEASUREMENT_BYTES: usize = 48;

/// What kind of zone a report is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An ordinary process: nothing is proved.
    Simulated = 1,
    /// A guest under Intel TDX.
    Tdx = 2,
    /// A guest under AMD SEV-SNP.
    Snp = 3,
}

impl Kind {
    /// Name for people, settings and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Simulated => "simulated",
            Kind::Tdx => "tdx",
            Kind::Snp => "snp",
        }
    }

    /// The kind with this code.
    pub const fn from_code(code: u8) -> Option<Kind> {
        match code {
            1 => Some(Kind::Simulated),
            2 => Some(Kind::Tdx),
            3 => Some(Kind::Snp),
            _ => None,
        }
    }
}

/// What a document is for. A document for one purpose is none for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A client's session: the nonce is the client's first message of the handshake.
    Session,
    /// Signatures: goes into signed results, without a nonce.
    Signing,
    /// The broker of root keys: the nonce is the broker's first message.
    Broker,
}

impl Purpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Purpose::Session => b"confide evidence session 1",
            Purpose::Signing => b"confide evidence signing 1",
            Purpose::Broker => b"confide evidence broker 1",
        }
    }
}

/// What a report is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What the document is for.
    pub purpose: Purpose,
    /// The keeper's static public key.
    pub channel: &'a [u8; KEY_BYTES],
    /// The key that verifies the keeper's signatures.
    pub signing: &'a [u8; KEY_BYTES],
    /// What makes the report a new one.
    pub nonce: &'a [u8],
}

/// The report data of a subject: SHA-512 over its parts, each with its length.
pub fn report_data(subject: &Subject<'_>) -> [u8; DATA_BYTES] {
    let mut hash = Context::new(&SHA512);
    let parts = [
        subject.purpose.label(),
        subject.channel,
        subject.signing,
        subject.nonce,
    ];
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut data = [0; DATA_BYTES];
    data.copy_from_slice(hash.finish().as_ref());
    data
}

/// Makes the document of a subject.
///
/// # Errors
/// What the provider says, or that its report is too long.
pub fn document(provider: &dyn Provider, subject: &Subject<'_>) -> Result<Vec<u8>, Error> {
    let quote = provider.quote(&report_data(subject))?;
    let document = Document {
        kind: quote.kind,
        channel: *subject.channel,
        signing: *subject.signing,
        report: quote.report,
        certificates: quote.certificates,
    };
    document.encode()
}
