//! The policy: which evidence is accepted. A TOML file with a section for each accepted kind of
//! zone; unknown keys are errors.
//!
//! Invariant: a section for hardware has at least one measurement.

use crate::hex;
use dcap_qvl::QuoteCollateralV3;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Which evidence is accepted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// For ordinary processes, if they are accepted.
    pub simulated: Option<SimulatedPolicy>,
    /// For guests under Intel TDX.
    pub tdx: Option<TdxPolicy>,
    /// For guests under AMD SEV-SNP.
    pub snp: Option<SnpPolicy>,
}

/// Conditions for an ordinary process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulatedPolicy {
    /// What `confide measure` prints for the keeper's program; if empty, any program.
    pub measurements: Vec<String>,
    /// Minimum version in the simulated report.
    pub minimum_version: u32,
}

/// Conditions for a guest under Intel TDX.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TdxPolicy {
    /// MRTD, the measurement of the guest's firmware, in hexadecimal.
    pub measurements: Vec<String>,
    /// RTMR0 to RTMR3 (kernel, command line, and what the guest measures); an empty text accepts
    /// any.
    #[serde(default)]
    pub rtmrs: Vec<String>,
    /// File with Intel's collateral for the platform, in JSON, in the policy's directory.
    pub collateral: PathBuf,
    /// Accepted states of the platform's firmware.
    #[serde(default = "up_to_date")]
    pub statuses: Vec<String>,
    /// Minimum evaluation number of the collateral.
    #[serde(default)]
    pub minimum_evaluation: u32,
    /// Revoked platforms: their PPIDs, in hexadecimal.
    #[serde(default)]
    pub revoked_platforms: Vec<String>,
    /// The file's content.
    #[serde(skip)]
    pub loaded: Option<QuoteCollateralV3>,
}

/// Conditions for a guest under AMD SEV-SNP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnpPolicy {
    /// The launch measurement, in hexadecimal.
    pub measurements: Vec<String>,
    /// File with the chip's certificate (VCEK, in DER), in the policy's directory; for machines
    /// that do not include it in their reports.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Minimum versions of the platform's firmware.
    #[serde(default)]
    pub minimum_firmware: Firmware,
    /// Minimum security version set by the guest's owner.
    #[serde(default)]
    pub minimum_guest_svn: u32,
    /// Revoked chips: the first digits of their IDs, in hexadecimal.
    #[serde(default)]
    pub revoked_chips: Vec<String>,
    /// The file's content.
    #[serde(skip)]
    pub loaded: Option<Vec<u8>>,
}

/// Versions of AMD's firmware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Firmware {
    /// Of the boot loader.
    pub bootloader: u8,
    /// Of the security processor's system.
    pub tee: u8,
    /// Of the SNP firmware.
    pub snp: u8,
    /// Of the microcode.
    pub microcode: u8,
}

fn up_to_date() -> Vec<String> {
    vec!["UpToDate".into()]
}

impl Policy {
    /// Accepts simulated evidence of any program.
    pub fn any_simulated() -> Policy {
        Policy {
            simulated: Some(SimulatedPolicy::default()),
            ..Policy::default()
        }
    }

    /// Reads a policy and the files that it names.
    ///
    /// # Errors
    /// Which file is wrong, and why.
    pub fn read(path: &Path) -> Result<Policy, String> {
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| at(&e))?;
        let mut policy: Policy = toml::from_str(&text).map_err(|e| at(&e))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        if let Some(tdx) = &mut policy.tdx {
            let file = beside.join(&tdx.collateral);
            tdx.loaded = Some(read_collateral(&file)?);
        }
        if let Some(snp) = &mut policy.snp
            && let Some(certificate) = &snp.certificate
        {
            let file = beside.join(certificate);
            let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            snp.loaded = Some(bytes);
        }
        policy.check().map_err(|e| at(&e))?;
        Ok(policy)
    }

    /// Checks that the policy is complete.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self) -> Result<(), String> {
        let hardware = [
            ("tdx", self.tdx.as_ref().map(|p| &p.measurements)),
            ("snp", self.snp.as_ref().map(|p| &p.measurements)),
        ];
        for (name, measurements) in hardware {
            if measurements.is_some_and(Vec::is_empty) {
                return Err(format!(
                    "[{name}] names no measurement: everybody's guest would be taken"
                ));
            }
        }
        let simulated = self.simulated.iter().flat_map(|p| &p.measurements);
        let tdx = self.tdx.iter().flat_map(|p| p.measurements.iter());
        let snp = self.snp.iter().flat_map(|p| p.measurements.iter());
        for text in simulated.chain(tdx).chain(snp) {
            if text.len() != 2 * evidence::MEASUREMENT_BYTES
                || !text.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return Err(format!("measurement \"{text}\": not 96 hexadecimal digits"));
            }
        }
        Ok(())
    }
}

/// Reads collateral: JSON, with binary fields in hexadecimal.
///
/// # Errors
/// What is wrong with the file.
fn read_collateral(path: &Path) -> Result<QuoteCollateralV3, String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| at(&e))?;
    serde_json::from_str(&text).map_err(|e| at(&e))
}

impl SnpPolicy {
    /// Whether a chip is revoked.
    pub(crate) fn revokes(&self, chip: &[u8]) -> bool {
        revokes(&self.revoked_chips, chip)
    }
}

impl TdxPolicy {
    /// Whether a platform is revoked.
    pub(crate) fn revokes(&self, platform: &[u8]) -> bool {
        revokes(&self.revoked_platforms, platform)
    }
}

/// An entry revokes all machines whose IDs start with its digits; an empty entry revokes all.
fn revokes(revoked: &[String], machine: &[u8]) -> bool {
    let machine = hex(machine);
    revoked
        .iter()
        .any(|listed| machine.starts_with(&listed.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = dir.path().join("policy.toml");
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        Policy::read(&path)
    }

    #[test]
    fn what_it_says() -> Result<(), String> {
        let good = "ab".repeat(48);
        let text = format!(
            "[snp]\nmeasurements = [\"{good}\"]\nminimum_firmware = {{ snp = 8 }}\n[simulated]\n"
        );
        let policy = read(&text)?;
        let snp = policy.snp.ok_or("no section")?;
        assert_eq!((snp.minimum_firmware.snp, snp.minimum_firmware.tee), (8, 0));
        assert!(policy.simulated.is_some() && policy.tdx.is_none());
        Ok(())
    }

    /// A policy that would accept more than intended is refused.
    #[test]
    fn what_is_wrong() {
        for text in [
            "[snp]\nmeasurements = []\n",
            "[snp]\n",
            "[snp]\nmeasurements = [\"abcd\"]\n",
            "[snp]\nmeasurement = [\"abcd\"]\n",
            "[sgx]\n",
            "[simulated]\nmeasurements = [\"zz\"]\n",
            "[tdx]\nmeasurements = []\ncollateral = \"missing.json\"\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
