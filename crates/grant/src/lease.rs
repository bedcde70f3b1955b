//! What a client says of its session as a whole: that it goes on, or that it is over. A session
//! is a lease, which only its client renews (docs/security.md).
//!
//! Bytes: `L`, 1, and how many milliseconds after the keeper's part of the handshake it was said
//! (`u64`, little-endian); or `L`, 2. A grant never begins like that.

use crate::Malformed;
use std::time::Duration;

/// What it begins with.
const MARK: u8 = b'L';
const GOES_ON: u8 = 1;
const OVER: u8 = 2;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lease {
    /// The client was there so long after the handshake. By this, not by when it comes, the
    /// lease goes on: to hold it back or to repeat it gains nothing.
    GoesOn(Duration),
    /// The client leaves.
    Over,
}

impl Lease {
    /// Its bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        match self {
            Lease::Over => vec![MARK, OVER],
            Lease::GoesOn(after) => {
                let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                let mut out = vec![MARK, GOES_ON];
                out.extend_from_slice(&millis.to_le_bytes());
                out
            }
        }
    }

    /// Whether these bytes are such a thing at all, well formed or not.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.first() == Some(&MARK)
    }

    /// What these bytes say.
    pub fn decode(bytes: &[u8]) -> Result<Lease, Malformed> {
        match bytes {
            [MARK, OVER] => Ok(Lease::Over),
            [MARK, GOES_ON, rest @ ..] => {
                let millis = rest.try_into().map_err(|_| Malformed)?;
                Ok(Lease::GoesOn(Duration::from_millis(u64::from_le_bytes(
                    millis,
                ))))
            }
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is encoded comes back, nothing else is taken, and it is no grant.
    #[test]
    fn there_and_back() {
        for lease in [Lease::Over, Lease::GoesOn(Duration::from_millis(70_001))] {
            let bytes = lease.encode();
            assert!(Lease::is_one(&bytes));
            assert_eq!(Lease::decode(&bytes), Ok(lease));
            assert!(crate::Grant::decode(&bytes).is_err());
            assert_eq!(
                Lease::decode(&[bytes.as_slice(), &[0]].concat()),
                Err(Malformed)
            );
            assert_eq!(Lease::decode(&bytes[..bytes.len() - 1]), Err(Malformed));
        }
    }
}
