//! Recorded evidence of real machines, and simulated evidence: what is genuine is told apart from
//! what was altered, is too old, revoked, for other keys, or not in the policy.
//!
//! Recorded reports were not made for a keeper. So they come as far as the binding and no
//! further: [`Reason::Binding`] says that everything before it holds.

use attest::{Expected, Firmware, Policy, Reason, SimulatedPolicy, SnpPolicy, TdxPolicy, verify};
use evidence::{Document, Kind, Purpose, Simulated, SimulatedClaims, Subject, document};
use std::path::{Path, PathBuf};

const TDX: &[u8] = include_bytes!("data/tdx_quote");
const TDX_OUTDATED: &[u8] = include_bytes!("data/tdx_quote_outdated");
const SNP: &str = include_str!("data/snp_report_milan.hex");
const VCEK: &[u8] = include_bytes!("data/vcek_milan.der");

/// Days on which the collaterals, and the chip's certificate, were valid.
const TDX_DAY: u64 = 1_751_328_000; // 2025-07-01
const OUTDATED_DAY: u64 = 1_772_323_200; // 2026-03-01
const SNP_DAY: u64 = 1_750_000_000; // 2025-06-15
const YEAR: u64 = 365 * 86_400;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.trim().bytes().collect();
    let pairs = digits.chunks_exact(2);
    let byte = |p: &[u8]| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn shown(kind: Kind, report: &[u8], certificates: &[u8]) -> Vec<u8> {
    let document = Document {
        kind,
        channel: [1; 32],
        signing: [2; 32],
        report: report.to_vec(),
        certificates: certificates.to_vec(),
    };
    document.encode().unwrap()
}

fn expected() -> Expected<'static> {
    Expected {
        purpose: Purpose::Session,
        channel: Some(&[1; 32]),
        signing: None,
        nonce: b"nonce",
    }
}

fn reason(document: &[u8], policy: &Policy, now: u64) -> Reason {
    let refused = verify(document, &expected(), policy, true, now).unwrap_err();
    println!("{refused}");
    refused.reason
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// MRTD of a recorded quote: at 48 (header) + 136 in versions 4 of the format.
fn mrtd(quote: &[u8]) -> String {
    hex(&quote[48 + 136..][..48])
}

/// A policy in a file, as users write it, for a recorded quote.
fn tdx(quote: &[u8], collateral: &str, change: impl Fn(&mut TdxPolicy)) -> Policy {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.toml");
    let text = format!(
        "[tdx]\nmeasurements = [\"{}\"]\ncollateral = {:?}\n",
        mrtd(quote),
        data(collateral)
    );
    std::fs::write(&path, text).unwrap();
    let mut policy = Policy::read(&path).unwrap();
    change(policy.tdx.as_mut().unwrap());
    policy
}

fn tdx_reason(quote: &[u8], now: u64, change: impl Fn(&mut TdxPolicy)) -> Reason {
    let policy = tdx(TDX, "tdx_quote_collateral.json", change);
    reason(&shown(Kind::Tdx, quote, &[]), &policy, now)
}

#[test]
fn tdx_genuine() {
    assert_eq!(tdx_reason(TDX, TDX_DAY, |_| ()), Reason::Binding);
    // The platform is what Intel calls up to date, and the guest what the policy says.
    let rtmr0 = hex(&TDX[48 + 328..][..48]);
    let with = |p: &mut TdxPolicy| p.rtmrs = vec![rtmr0.clone()];
    assert_eq!(tdx_reason(TDX, TDX_DAY, with), Reason::Binding);
}

#[test]
fn tdx_not_in_the_policy() {
    let other = |p: &mut TdxPolicy| p.measurements = vec!["00".repeat(48)];
    assert_eq!(tdx_reason(TDX, TDX_DAY, other), Reason::Measurement);
    let rtmr = |p: &mut TdxPolicy| p.rtmrs = vec![String::new(), "00".repeat(48)];
    assert_eq!(tdx_reason(TDX, TDX_DAY, rtmr), Reason::Measurement);
    let status = |p: &mut TdxPolicy| p.statuses.clear();
    assert_eq!(tdx_reason(TDX, TDX_DAY, status), Reason::Version);
    let evaluation = |p: &mut TdxPolicy| p.minimum_evaluation = 18;
    assert_eq!(tdx_reason(TDX, TDX_DAY, evaluation), Reason::Version);
    let revoked = |p: &mut TdxPolicy| p.revoked_platforms = vec![String::new()];
    assert_eq!(tdx_reason(TDX, TDX_DAY, revoked), Reason::Revoked);
    let document = shown(Kind::Tdx, TDX, &[]);
    assert_eq!(reason(&document, &Policy::default(), TDX_DAY), Reason::Kind);
}

/// Collateral has an end: who keeps an old one would call old firmware good forever.
#[test]
fn tdx_expired() {
    for now in [TDX_DAY + YEAR, TDX_DAY - YEAR] {
        assert_eq!(tdx_reason(TDX, now, |_| ()), Reason::Expired);
    }
}

/// A platform with known faults.
#[test]
fn tdx_out_of_date() {
    let policy = tdx(TDX_OUTDATED, "tdx_quote_outdated_collateral.json", |_| ());
    let document = shown(Kind::Tdx, TDX_OUTDATED, &[]);
    assert_eq!(reason(&document, &policy, OUTDATED_DAY), Reason::Version);
    // Another platform's collateral does not help.
    let policy = tdx(TDX_OUTDATED, "tdx_quote_collateral.json", |_| ());
    let refused = reason(&document, &policy, TDX_DAY);
    assert_ne!(refused, Reason::Binding);
}

/// Not one bit of what Intel's key signs can be changed: measurement, attributes (debug), data.
#[test]
fn tdx_altered() {
    for at in [48 + 120, 48 + 136, 48 + 200, 48 + 520, 48 + 583] {
        let mut quote = TDX.to_vec();
        quote[at] ^= 1;
        let refused = tdx_reason(&quote, TDX_DAY, |p| {
            p.measurements.push(mrtd(&quote));
        });
        assert!(
            [Reason::Altered, Reason::Debug].contains(&refused),
            "{at}: {refused:?}"
        );
    }
    for length in [0, 1, 48, 600, TDX.len() / 2] {
        assert_eq!(tdx_reason(&TDX[..length], TDX_DAY, |_| ()), Reason::Altered);
    }
}

fn snp(change: impl Fn(&mut SnpPolicy)) -> Policy {
    let report = unhex(SNP);
    let mut snp = SnpPolicy {
        measurements: vec![hex(&report[0x90..][..48])],
        certificate: None,
        minimum_firmware: Firmware::default(),
        minimum_guest_svn: 0,
        revoked_chips: Vec::new(),
        loaded: Some(VCEK.to_vec()),
    };
    change(&mut snp);
    Policy {
        snp: Some(snp),
        ..Policy::default()
    }
}

fn snp_reason(report: &[u8], now: u64, change: impl Fn(&mut SnpPolicy)) -> Reason {
    reason(&shown(Kind::Snp, report, &[]), &snp(change), now)
}

#[test]
fn snp_genuine() {
    let report = unhex(SNP);
    assert_eq!(snp_reason(&report, SNP_DAY, |_| ()), Reason::Binding);
    // The machine gives the certificate along.
    let mut table = vec![0x63, 0xda, 0x75, 0x8d, 0xe6, 0x64, 0x45, 0x64];
    table.extend([0xad, 0xc5, 0xf4, 0xb9, 0x3b, 0xe8, 0xac, 0xcd, 48, 0, 0, 0]);
    table.extend((VCEK.len() as u32).to_le_bytes());
    table.extend([0; 24]);
    table.extend(VCEK);
    let policy = snp(|p| p.loaded = None);
    let document = shown(Kind::Snp, &report, &table);
    assert_eq!(reason(&document, &policy, SNP_DAY), Reason::Binding);
}

#[test]
fn snp_not_in_the_policy() {
    let report = unhex(SNP);
    let refused = |change: fn(&mut SnpPolicy)| snp_reason(&report, SNP_DAY, change);
    let other = |p: &mut SnpPolicy| p.measurements = vec!["00".repeat(48)];
    assert_eq!(refused(other), Reason::Measurement);
    assert_eq!(
        refused(|p| p.minimum_firmware.microcode = 255),
        Reason::Version
    );
    assert_eq!(
        refused(|p| p.minimum_firmware.bootloader = 255),
        Reason::Version
    );
    assert_eq!(refused(|p| p.minimum_guest_svn = 9), Reason::Version);
    let chip = |p: &mut SnpPolicy| {
        p.revoked_chips = vec![hex(&unhex(SNP)[0x1a0..][..8]).to_uppercase()];
    };
    assert_eq!(refused(chip), Reason::Revoked);
    assert_eq!(refused(|p| p.loaded = None), Reason::Collateral);
    assert_eq!(
        refused(|p| p.loaded = Some(b"no certificate".to_vec())),
        Reason::Altered
    );
    let document = shown(Kind::Snp, &report, &[]);
    assert_eq!(reason(&document, &Policy::default(), SNP_DAY), Reason::Kind);
}

#[test]
fn snp_expired() {
    let report = unhex(SNP);
    for now in [SNP_DAY + 20 * YEAR, SNP_DAY - 3 * YEAR] {
        assert_eq!(snp_reason(&report, now, |_| ()), Reason::Expired);
    }
}

/// Report and certificate: what is changed was not signed.
#[test]
fn snp_altered() {
    let genuine = unhex(SNP);
    // The guest's policy (debug), report data, measurement, chip, signature.
    for at in [0x0a, 0x50, 0x90, 0x1a0, 0x2a0] {
        let mut report = genuine.clone();
        report[at] ^= 8;
        let refused = snp_reason(&report, SNP_DAY, |p| {
            p.measurements.push(hex(&report[0x90..][..48]));
        });
        assert_eq!(refused, Reason::Altered, "{at}");
    }
    assert_eq!(
        snp_reason(&genuine[..1183], SNP_DAY, |_| ()),
        Reason::Malformed
    );
    for at in [40, 200, 700, VCEK.len() - 1] {
        let refused = snp_reason(&genuine, SNP_DAY, |p| {
            let mut der = VCEK.to_vec();
            der[at] ^= 1;
            p.loaded = Some(der);
        });
        assert_eq!(refused, Reason::Altered, "{at}");
    }
}

fn simulated() -> Vec<u8> {
    let subject = Subject {
        purpose: Purpose::Session,
        channel: &[1; 32],
        signing: &[2; 32],
        nonce: b"nonce",
    };
    document(&Simulated::with([7; 48]), &subject).unwrap()
}

/// Simulated evidence has to be asked for, by caller and policy both.
#[test]
fn simulated_only_if_asked_for() {
    let any = Policy::any_simulated();
    let check = |policy: &Policy, asked| verify(&simulated(), &expected(), policy, asked, 0);
    let refused = |policy: &Policy, asked| check(policy, asked).unwrap_err().reason;
    assert_eq!(refused(&any, false), Reason::Simulated);
    assert_eq!(refused(&Policy::default(), true), Reason::Simulated);
    assert_eq!(refused(&snp(|_| ()), true), Reason::Simulated);
    let listed = |measurement: &str| Policy {
        simulated: Some(SimulatedPolicy {
            measurements: vec![measurement.repeat(48)],
            minimum_version: 1,
        }),
        ..Policy::default()
    };
    if cfg!(debug_assertions) {
        // Built for debugging, it says so.
        assert_eq!(refused(&any, true), Reason::Debug);
    } else {
        let accepted = check(&any, true).unwrap();
        assert_eq!(accepted.measurement, "07".repeat(48));
        assert_eq!(
            (accepted.kind, accepted.signing),
            (Kind::Simulated, [2; 32])
        );
        assert!(check(&listed("07"), true).is_ok());
        assert_eq!(refused(&listed("08"), true), Reason::Measurement);
    }
}

fn claimed(change: impl Fn(&mut SimulatedClaims)) -> Vec<u8> {
    let mut document = Document::decode(&simulated()).unwrap();
    let mut claims = SimulatedClaims::decode(&document.report).unwrap();
    claims.debug = false;
    change(&mut claims);
    document.report = claims.encode();
    document.encode().unwrap()
}

/// Every check but the signature works on simulated evidence, too: it stands in for the other
/// kinds in end-to-end tests.
#[test]
fn simulated_is_checked() {
    let mut any = Policy::any_simulated();
    let good = claimed(|_| ());
    assert!(verify(&good, &expected(), &any, true, 0).is_ok());
    assert_eq!(reason(&claimed(|c| c.debug = true), &any, 0), Reason::Debug);
    assert_eq!(
        reason(&claimed(|c| c.data[0] ^= 1), &any, 0),
        Reason::Binding
    );
    let mut altered = Document::decode(&good).unwrap();
    altered.report[70] ^= 1;
    assert_eq!(reason(&altered.encode().unwrap(), &any, 0), Reason::Altered);
    assert_eq!(reason(&good[..good.len() - 1], &any, 0), Reason::Malformed);
    assert_eq!(reason(b"", &any, 0), Reason::Malformed);
    any.simulated.as_mut().unwrap().minimum_version = 2;
    assert_eq!(reason(&good, &any, 0), Reason::Version);
}

/// A document of this keeper for this purpose and nonce, and of no other.
#[test]
fn bound_to_keys_purpose_and_nonce() {
    let any = Policy::any_simulated();
    let good = claimed(|_| ());
    let refused = |expected: Expected<'_>| verify(&good, &expected, &any, true, 0).unwrap_err();
    let other = [9; 32];
    let keys = Expected {
        channel: Some(&other),
        ..expected()
    };
    assert_eq!(refused(keys).reason, Reason::Keys);
    let signing = Expected {
        signing: Some(&other),
        ..expected()
    };
    assert_eq!(refused(signing).reason, Reason::Keys);
    let purpose = Expected {
        purpose: Purpose::Broker,
        ..expected()
    };
    assert_eq!(refused(purpose).reason, Reason::Binding);
    let nonce = Expected {
        nonce: b"another",
        ..expected()
    };
    assert_eq!(refused(nonce).reason, Reason::Binding);
    // Keys exchanged within the document.
    let mut exchanged = Document::decode(&good).unwrap();
    exchanged.signing = [9; 32];
    let exchanged = exchanged.encode().unwrap();
    assert_eq!(reason(&exchanged, &any, 0), Reason::Binding);
}
