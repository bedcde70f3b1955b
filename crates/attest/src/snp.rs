//! Reports of AMD SEV-SNP: 1184 bytes signed by the chip's key (ECDSA, P-384), and the table of
//! certificates that a machine may include.
//!
//! Invariant: a report is used only if it was signed by the chip that it names.

use crate::chain::{Chip, Family};
use crate::policy::{Firmware, Policy, SnpPolicy};
use crate::{Claims, Reason, Refused};
use aws_lc_rs::signature::{ECDSA_P384_SHA384_FIXED, UnparsedPublicKey};
use evidence::{DATA_BYTES, Document, MEASUREMENT_BYTES};

const REPORT_BYTES: usize = 1184;
/// Offset of the signature; everything before it is signed.
const SIGNED_BYTES: usize = 0x2a0;
/// Size of an integer in the signature, little-endian; 48 of its bytes are used.
const NUMBER_BYTES: usize = 72;
const FIELD_BYTES: usize = 48;
const ECDSA_P384_SHA384: u32 = 1;
/// Bits of the guest's policy: it may be debugged; a migration agent may move it.
const DEBUG: u64 = 1 << 19;
const MIGRATION: u64 = 1 << 18;
/// Bits about the signing key: which key it is, and whether the chip's ID is masked.
const KEY_KIND: u32 = 0b1_1100;
const MASKED: u32 = 0b10;
/// ID of the chip's key in the table of certificates.
const VCEK: [u8; 16] = [
    0x63, 0xda, 0x75, 0x8d, 0xe6, 0x64, 0x45, 0x64, 0xad, 0xc5, 0xf4, 0xb9, 0x3b, 0xe8, 0xac, 0xcd,
];

/// The fields of a report that are used.
struct Report {
    guest_svn: u32,
    policy: u64,
    data: [u8; DATA_BYTES],
    measurement: [u8; MEASUREMENT_BYTES],
    firmware: [u8; 8],
    chip: [u8; 64],
}

/// What a genuine report says, and the measurements that the policy accepts.
pub(crate) fn claims<'p>(
    document: &Document,
    policy: &'p Policy,
    now: u64,
) -> Result<(Claims, &'p [String]), Refused> {
    let none = || Refused::new(Reason::Kind, "the policy has no section [snp]");
    let policy = policy.snp.as_ref().ok_or_else(none)?;
    let from_machine = certificate(&document.certificates);
    let missing = || Refused::new(Reason::Collateral, "there is no certificate of the chip");
    let der = policy.loaded.as_deref().or(from_machine);
    let chip = Chip::verify(der.ok_or_else(missing)?, now)?;
    let report = verified(&document.report, &chip)?;
    let firmware = firmware(chip.family, &report.firmware);
    check(policy, &report, &chip, firmware)?;
    let claims = Claims {
        measurement: report.measurement.to_vec(),
        data: report.data,
        debug: report.policy & DEBUG != 0,
        versions: format!(
            "bootloader {}, tee {}, snp {}, microcode {}, guest {}",
            firmware.bootloader, firmware.tee, firmware.snp, firmware.microcode, report.guest_svn
        ),
    };
    Ok((claims, &policy.measurements))
}

/// Parses a report after verifying the chip's signature.
fn verified(bytes: &[u8], chip: &Chip) -> Result<Report, Refused> {
    let malformed = || Refused::new(Reason::Malformed, "not a report of SEV-SNP");
    if bytes.len() != REPORT_BYTES {
        return Err(malformed());
    }
    let (body, signature) = bytes.split_at(SIGNED_BYTES);
    if u32_at(body, 0x34) != Some(ECDSA_P384_SHA384) {
        return Err(malformed());
    }
    let key_kind = u32_at(body, 0x48).ok_or_else(malformed)?;
    if key_kind & (KEY_KIND | MASKED) != 0 {
        let what = "the report is not signed by the chip's own key, or hides the chip";
        return Err(Refused::new(Reason::Kind, what));
    }
    let signature = big_endian(signature).ok_or_else(malformed)?;
    UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, chip.key())
        .verify(body, &signature)
        .map_err(|_| Refused::new(Reason::Altered, "the chip has not signed the report"))?;
    read(body).ok_or_else(malformed)
}

fn read(body: &[u8]) -> Option<Report> {
    Some(Report {
        guest_svn: u32_at(body, 0x04)?,
        policy: u64::from_le_bytes(array_at(body, 0x08)?),
        data: array_at(body, 0x50)?,
        measurement: array_at(body, 0x90)?,
        firmware: array_at(body, 0x180)?,
        chip: array_at(body, 0x1a0)?,
    })
}

fn check(
    policy: &SnpPolicy,
    report: &Report,
    chip: &Chip,
    firmware: Firmware,
) -> Result<(), Refused> {
    let versions = [
        firmware.bootloader,
        firmware.tee,
        firmware.snp,
        firmware.microcode,
    ];
    let number = chip.number().unwrap_or_default();
    // The ID has 64 bytes; newer families use only the first 8.
    let same = (number.len() == 64 || number.len() == 8) && report.chip.starts_with(number);
    if chip.versions() != Some(versions) || !same {
        let what = "the certificate is of another chip, or of other versions of its firmware";
        return Err(Refused::new(Reason::Collateral, what));
    }
    if policy.revokes(&report.chip) {
        return Err(Refused::new(Reason::Revoked, "the policy revokes the chip"));
    }
    if report.policy & MIGRATION != 0 {
        let what = "an agent may move the guest's memory to other machines";
        return Err(Refused::new(Reason::Debug, what));
    }
    let least = policy.minimum_firmware;
    let old = firmware.bootloader < least.bootloader
        || firmware.tee < least.tee
        || firmware.snp < least.snp
        || firmware.microcode < least.microcode;
    if old || report.guest_svn < policy.minimum_guest_svn {
        return Err(Refused::new(
            Reason::Version,
            format!(
                "bootloader {}, tee {}, snp {}, microcode {}, guest {}: older than the policy wants",
                versions[0], versions[1], versions[2], versions[3], report.guest_svn
            ),
        ));
    }
    Ok(())
}

/// Decodes the versions, whose positions depend on the family.
fn firmware(family: Family, bytes: &[u8; 8]) -> Firmware {
    match (family, *bytes) {
        (Family::Turin, [_, bootloader, tee, snp, .., microcode])
        | (Family::Milan | Family::Genoa, [bootloader, tee, _, _, _, _, snp, microcode]) => {
            Firmware {
                bootloader,
                tee,
                snp,
                microcode,
            }
        }
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// Both integers of a signature in the form that the library expects.
fn big_endian(signature: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(2 * FIELD_BYTES);
    for number in signature.get(..2 * NUMBER_BYTES)?.chunks(NUMBER_BYTES) {
        let (used, rest) = number.split_at_checked(FIELD_BYTES)?;
        if rest.iter().any(|b| *b != 0) {
            return None;
        }
        out.extend(used.iter().rev());
    }
    Some(out)
}

/// Finds the chip's certificate in a machine's table: entries of 24 bytes (ID, offset, length),
/// terminated by zeros, followed by the data.
fn certificate(table: &[u8]) -> Option<&[u8]> {
    for entry in table.chunks_exact(24) {
        let what: [u8; 16] = array_at(entry, 0)?;
        if what == [0; 16] {
            return None;
        }
        if what == VCEK {
            let at = usize::try_from(u32_at(entry, 16)?).ok()?;
            let length = usize::try_from(u32_at(entry, 20)?).ok()?;
            return table.get(at..)?.get(..length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine's table can be any bytes.
    #[test]
    fn tables() {
        let entry = |what: [u8; 16], at: u32, length: u32| {
            [what.as_slice(), &at.to_le_bytes(), &length.to_le_bytes()].concat()
        };
        let end = entry([0; 16], 0, 0);
        let table = [
            entry([9; 16], 0, 4),
            entry(VCEK, 72, 3),
            end.clone(),
            b"abc".to_vec(),
        ];
        assert_eq!(certificate(&table.concat()), Some(b"abc".as_slice()));
        assert_eq!(certificate(&[end, entry(VCEK, 0, 3)].concat()), None);
        assert_eq!(certificate(&entry(VCEK, 72, 3)), None);
        assert_eq!(certificate(&entry(VCEK, u32::MAX, u32::MAX)), None);
        assert_eq!(certificate(b"short"), None);
    }

    #[test]
    fn firmware_by_family() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let milan = firmware(Family::Milan, &bytes);
        assert_eq!(
            (milan.bootloader, milan.tee, milan.snp, milan.microcode),
            (1, 2, 7, 8)
        );
        let turin = firmware(Family::Turin, &bytes);
        assert_eq!(
            (turin.bootloader, turin.tee, turin.snp, turin.microcode),
            (2, 3, 4, 8)
        );
    }
}
