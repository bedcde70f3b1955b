//! Verifies evidence: whether it is genuine, and whether it satisfies a [`Policy`] in a file.
//! Clients and the broker do this, offline.
//!
//! How a keeper obtains evidence is in crate `evidence`. Keepers do not link this crate.
//!
//! Invariants: whatever no policy mentions is refused; a simulated report is refused unless the
//! caller asked for it, whatever the policy says; a guest that can be debugged is always refused.
#![forbid(unsafe_code)]

mod chain;
mod policy;
mod refused;
mod snp;
mod tdx;

pub use policy::{Firmware, Policy, SimulatedPolicy, SnpPolicy, TdxPolicy};
pub use refused::{Reason, Refused};

use evidence::{DATA_BYTES, Document, Kind, Purpose, SimulatedClaims, Subject};

/// What the evidence must be bound to.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Its purpose.
    pub purpose: Purpose,
    /// The keeper's static key, if it is known from elsewhere.
    pub channel: Option<&'a [u8; evidence::KEY_BYTES]>,
    /// The keeper's signing key, if it is known from elsewhere.
    pub signing: Option<&'a [u8; evidence::KEY_BYTES]>,
    /// The nonce.
    pub nonce: &'a [u8],
}

/// What verified evidence says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The kind of the zone.
    pub kind: Kind,
    /// Its measurement, in hexadecimal.
    pub measurement: String,
    /// The versions, for people.
    pub versions: String,
    /// The keeper's static key.
    pub channel: [u8; evidence::KEY_BYTES],
    /// The key that verifies the keeper's signatures.
    pub signing: [u8; evidence::KEY_BYTES],
}

/// What a genuine report says, whatever its kind.
pub(crate) struct Claims {
    /// Measurement of the guest or of the program.
    pub measurement: Vec<u8>,
    pub data: [u8; DATA_BYTES],
    pub debug: bool,
    pub versions: String,
}

/// Checks a document; `now` is in seconds since 1970.
///
/// # Errors
/// [`Refused`], with the reason.
pub fn verify(
    document: &[u8],
    expected: &Expected<'_>,
    policy: &Policy,
    simulated: bool,
    now: u64,
) -> Result<Accepted, Refused> {
    let malformed = || Refused::new(Reason::Malformed, "not a document of evidence");
    let document = Document::decode(document).ok_or_else(malformed)?;
    let same = |key: &[u8; 32], wanted: Option<&[u8; 32]>| wanted.is_none_or(|w| w == key);
    if !same(&document.channel, expected.channel) || !same(&document.signing, expected.signing) {
        return Err(Refused::new(Reason::Keys, "it is of another keeper's keys"));
    }
    let (claims, measurements) = match document.kind {
        Kind::Simulated => simulated_claims(&document, policy, simulated)?,
        Kind::Tdx => tdx::claims(&document, policy, now)?,
        Kind::Snp => snp::claims(&document, policy, now)?,
    };
    let data = evidence::report_data(&Subject {
        purpose: expected.purpose,
        channel: &document.channel,
        signing: &document.signing,
        nonce: expected.nonce,
    });
    check(&claims, measurements, &data)?;
    Ok(Accepted {
        kind: document.kind,
        measurement: hex(&claims.measurement),
        versions: claims.versions,
        channel: document.channel,
        signing: document.signing,
    })
}

/// Checks that all kinds have in common.
fn check(claims: &Claims, measurements: &[String], data: &[u8; DATA_BYTES]) -> Result<(), Refused> {
    if claims.debug {
        return Err(Refused::new(
            Reason::Debug,
            "whoever runs it can debug it, and read its memory",
        ));
    }
    let measurement = hex(&claims.measurement);
    let known = |listed: &String| listed.eq_ignore_ascii_case(&measurement);
    if !measurements.is_empty() && !measurements.iter().any(known) {
        return Err(Refused::new(
            Reason::Measurement,
            format!("{measurement} is not in the policy"),
        ));
    }
    if claims.data != *data {
        return Err(Refused::new(
            Reason::Binding,
            "it was made for other keys, another purpose or another nonce",
        ));
    }
    Ok(())
}

fn simulated_claims<'p>(
    document: &Document,
    policy: &'p Policy,
    asked: bool,
) -> Result<(Claims, &'p [String]), Refused> {
    let refused = |what| Err(Refused::new(Reason::Simulated, what));
    if !asked {
        return refused("it proves nothing, and nobody asked for such");
    }
    let Some(policy) = &policy.simulated else {
        return refused("the policy takes none");
    };
    let altered = || Refused::new(Reason::Altered, "the report was changed");
    let claims = SimulatedClaims::decode(&document.report).ok_or_else(altered)?;
    if claims.version < policy.minimum_version {
        return Err(Refused::new(
            Reason::Version,
            format!(
                "version {}, the policy wants {}",
                claims.version, policy.minimum_version
            ),
        ));
    }
    let claims = Claims {
        measurement: claims.measurement.to_vec(),
        data: claims.data,
        debug: claims.debug,
        versions: format!("version {}", claims.version),
    };
    Ok((claims, &policy.measurements))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            measurement: vec![0xab; 48],
            data: [7; DATA_BYTES],
            debug: false,
            versions: String::new(),
        }
    }

    fn reason(claims: &Claims, measurements: &[String], data: [u8; DATA_BYTES]) -> Option<Reason> {
        check(claims, measurements, &data).err().map(|r| r.reason)
    }

    /// What is checked for genuine reports of all kinds.
    #[test]
    fn checked_of_all() {
        let listed = ["AB".repeat(48)];
        assert_eq!(reason(&claims(), &listed, [7; DATA_BYTES]), None);
        assert_eq!(reason(&claims(), &[], [7; DATA_BYTES]), None);
        let other = ["ac".repeat(48)];
        let measured = reason(&claims(), &other, [7; DATA_BYTES]);
        assert_eq!(measured, Some(Reason::Measurement));
        let bound = reason(&claims(), &listed, [8; DATA_BYTES]);
        assert_eq!(bound, Some(Reason::Binding));
        let debug = Claims {
            debug: true,
            ..claims()
        };
        let debugged = reason(&debug, &listed, [7; DATA_BYTES]);
        assert_eq!(debugged, Some(Reason::Debug));
    }
}
