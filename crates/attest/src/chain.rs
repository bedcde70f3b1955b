//! AMD's certificates: the pinned ones for each family of processors, and the chip's, which one of
//! them must have signed.
//!
//! Invariant: nothing is trusted unless a pinned certificate has signed it.

use crate::{Reason, Refused};
use aws_lc_rs::signature::{RSA_PSS_2048_8192_SHA384, UnparsedPublicKey};
use der::asn1::ObjectIdentifier;
use der::{Decode, Encode};
use x509_cert::Certificate;

/// A family of processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Milan,
    Genoa,
    Turin,
}

/// For each family: the certificate that signs the chips' keys, then the root.
const PINNED: [(Family, &str); 3] = [
    (Family::Milan, include_str!("../data/amd-milan.pem")),
    (Family::Genoa, include_str!("../data/amd-genoa.pem")),
    (Family::Turin, include_str!("../data/amd-turin.pem")),
];

/// Extensions of a chip's certificate: versions of its firmware, and its ID.
const BOOTLOADER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.3.1");
const TEE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.3.2");
const SNP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.3.3");
const MICROCODE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.3.8");
const CHIP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.3704.1.4");

/// A valid chip certificate, signed by one of the pinned ones.
pub(crate) struct Chip {
    pub family: Family,
    certificate: Certificate,
}

impl Chip {
    /// Verifies a certificate in DER.
    pub fn verify(der: &[u8], now: u64) -> Result<Chip, Refused> {
        let malformed = || Refused::new(Reason::Altered, "the chip's certificate is malformed");
        let certificate = Certificate::from_der(der).map_err(|_| malformed())?;
        let mut pinned = PINNED.iter();
        let signer = pinned.find_map(|(family, pem)| {
            let signer = signer(pem)?;
            signed(&certificate, &signer).then_some((*family, signer))
        });
        let unknown = || Refused::new(Reason::Altered, "AMD has not signed the chip's certificate");
        let (family, signer) = signer.ok_or_else(unknown)?;
        for each in [&certificate, &signer] {
            let validity = each.tbs_certificate().validity();
            let from = validity.not_before.to_unix_duration().as_secs();
            let until = validity.not_after.to_unix_duration().as_secs();
            if now < from || now > until {
                let what = "a certificate has expired, or is not valid yet";
                return Err(Refused::new(Reason::Expired, what));
            }
        }
        Ok(Chip {
            family,
            certificate,
        })
    }

    /// The public key: a point on P-384, uncompressed.
    pub fn key(&self) -> &[u8] {
        let info = self.certificate.tbs_certificate().subject_public_key_info();
        info.subject_public_key.raw_bytes()
    }

    fn extension(&self, id: ObjectIdentifier) -> Option<&[u8]> {
        let extensions = self.certificate.tbs_certificate().extensions()?;
        let mut found = extensions.iter().filter(|e| e.extn_id == id);
        match (found.next(), found.next()) {
            (Some(extension), None) => Some(extension.extn_value.as_bytes()),
            _ => None,
        }
    }

    /// The versions of bootloader, TEE, SNP and microcode from which the key is derived.
    pub fn versions(&self) -> Option<[u8; 4]> {
        let version = |id| self.extension(id).and_then(|der| u8::from_der(der).ok());
        Some([
            version(BOOTLOADER)?,
            version(TEE)?,
            version(SNP)?,
            version(MICROCODE)?,
        ])
    }

    /// The chip's ID.
    pub fn number(&self) -> Option<&[u8]> {
        self.extension(CHIP)
    }
}

fn signer(pem: &str) -> Option<Certificate> {
    let chain = Certificate::load_pem_chain(pem.as_bytes()).ok()?;
    chain.into_iter().next()
}

/// RSA-PSS with SHA-384, which AMD uses for all of its certificates.
fn signed(certificate: &Certificate, signer: &Certificate) -> bool {
    let info = signer.tbs_certificate().subject_public_key_info();
    let key = UnparsedPublicKey::new(
        &RSA_PSS_2048_8192_SHA384,
        info.subject_public_key.raw_bytes(),
    );
    let signature = certificate.signature().raw_bytes();
    let body = certificate.tbs_certificate().to_der();
    body.is_ok_and(|body| key.verify(&body, signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each pinned signer is signed by the root of its family, and by no other.
    #[test]
    fn pinned_ones() -> Result<(), Box<dyn std::error::Error>> {
        let mut roots = Vec::new();
        for (family, pem) in PINNED {
            let chain = Certificate::load_pem_chain(pem.as_bytes())?;
            let [signer, root] = chain.as_slice() else {
                return Err("two certificates".into());
            };
            assert!(signed(signer, root) && signed(root, root), "{family:?}");
            assert!(!signed(root, signer), "{family:?}");
            roots.push(root.clone());
        }
        assert!(!signed(&roots[0], &roots[1]) && !signed(&roots[1], &roots[2]));
        Ok(())
    }
}
