//! The form of a document.
//!
//! Bytes: version 1 `u8`, kind `u8`, zeros 2..4, length of the report `u32` LE, length of the
//! certificates `u32` LE, channel key, signing key, report, certificates.
//!
//! Invariant: bytes that decode encode to the same.

use crate::provider::Error;
use crate::{KEY_BYTES, Kind};

/// No document is longer: it must fit into a message of the handshake.
pub const DOCUMENT_MAX: usize = 48 * 1024;
const VERSION: u8 = 1;

/// A report with the keys that it is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// What the report is from.
    pub kind: Kind,
    /// The keeper's static public key.
    pub channel: [u8; KEY_BYTES],
    /// The key that verifies the keeper's signatures.
    pub signing: [u8; KEY_BYTES],
    /// The report, in the form of its kind.
    pub report: Vec<u8>,
    /// Certificates that came with it; who verifies need not use them.
    pub certificates: Vec<u8>,
}

impl Document {
    /// Its bytes.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let length = |part: &[u8]| u32::try_from(part.len()).map_err(|_| Error::TooLong);
        let mut out = vec![VERSION, self.kind as u8, 0, 0];
        out.extend_from_slice(&length(&self.report)?.to_le_bytes());
        out.extend_from_slice(&length(&self.certificates)?.to_le_bytes());
        for part in [
            self.channel.as_slice(),
            &self.signing,
            &self.report,
            &self.certificates,
        ] {
            out.extend_from_slice(part);
        }
        match out.len() <= DOCUMENT_MAX {
            true => Ok(out),
            false => Err(Error::TooLong),
        }
    }

    /// The document in these bytes; nothing is verified.
    pub fn decode(bytes: &[u8]) -> Option<Document> {
        if bytes.len() > DOCUMENT_MAX {
            return None;
        }
        let (&[VERSION, kind, 0, 0], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (report, rest) = rest.split_first_chunk()?;
        let (certificates, rest) = rest.split_first_chunk()?;
        let (channel, rest) = rest.split_first_chunk()?;
        let (signing, rest) = rest.split_first_chunk()?;
        let report = usize::try_from(u32::from_le_bytes(*report)).ok()?;
        let certificates = usize::try_from(u32::from_le_bytes(*certificates)).ok()?;
        let (report, rest) = rest.split_at_checked(report)?;
        if rest.len() != certificates {
            return None;
        }
        Some(Document {
            kind: Kind::from_code(kind)?,
            channel: *channel,
            signing: *signing,
            report: report.to_vec(),
            certificates: rest.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        Document {
            kind: Kind::Snp,
            channel: [1; 32],
            signing: [2; 32],
            report: vec![3; 100],
            certificates: vec![4; 7],
        }
    }

    #[test]
    fn there_and_back() -> Result<(), Error> {
        let bytes = document().encode()?;
        assert_eq!(Document::decode(&bytes), Some(document()));
        for length in 0..bytes.len() {
            assert_eq!(Document::decode(&bytes[..length]), None, "{length}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(Document::decode(&longer), None);
        Ok(())
    }

    /// Whatever decodes has no second form: two texts of one document could tell auditors apart.
    #[test]
    fn one_form() -> Result<(), Error> {
        let bytes = document().encode()?;
        for at in 0..12 {
            for value in 0..=255 {
                let mut other = bytes.clone();
                other[at] = value;
                if let Some(read) = Document::decode(&other) {
                    assert_eq!(read.encode()?, other);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn too_long() {
        let document = Document {
            report: vec![0; DOCUMENT_MAX],
            ..document()
        };
        assert!(document.encode().is_err());
    }
}
