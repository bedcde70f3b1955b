//! A passphrase as key source: Argon2id makes the wrapping key from it. Its costs
//! and salt are in the root key's file, so that they can grow later.

use crate::format::{decode, encode};
use crate::seal;
use crate::secret::Secret;
use crate::source::{KeySource, Wrapped};
use crate::{Error, KEY_BYTES, RootKey, random};
use argon2::{Algorithm, Argon2, Params, Version};
use zeroize::Zeroizing;

/// KiB of memory, passes and lanes for new wrappings (RFC 9106, section 4).
const COSTS: [u32; 3] = [64 * 1024, 3, 4];
/// The largest costs that a file may ask for.
const COSTS_MAX: [u32; 3] = [1 << 20, 64, 64];
const SALT_BYTES: usize = 16;

/// A passphrase that is read from somewhere.
pub(crate) struct Passphrase {
    secret: Secret,
}

impl Passphrase {
    pub(crate) fn parse(text: &str) -> Result<Passphrase, String> {
        let secret = Secret::parse(text);
        let secret = secret.ok_or("a passphrase comes from file=, fd= or credential=")?;
        Ok(Passphrase { secret })
    }

    fn wrapping_key(
        &self,
        [memory, passes, lanes]: [u32; 3],
        salt: &[u8],
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        let failed = |e: argon2::Error| Error::Unavailable {
            source_name: "Argon2id".into(),
            what: e.to_string(),
        };
        let params = Params::new(memory, passes, lanes, Some(KEY_BYTES)).map_err(failed)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(&self.secret.read()?, salt, key.as_mut_slice())
            .map_err(failed)?;
        Ok(key)
    }
}

fn parameters([memory, passes, lanes]: [u32; 3], salt: &[u8]) -> String {
    format!(
        "argon2id m={memory} t={passes} p={lanes} salt={}",
        encode(salt)
    )
}

fn read_parameters(text: &str) -> Option<([u32; 3], Vec<u8>)> {
    let mut words = text.split_ascii_whitespace();
    if words.next() != Some("argon2id") {
        return None;
    }
    let mut costs = [0; 3];
    for ((name, most), cost) in ["m=", "t=", "p="].iter().zip(COSTS_MAX).zip(&mut costs) {
        let number: u32 = words.next()?.strip_prefix(name)?.parse().ok()?;
        *cost = Some(number).filter(|n| (1..=most).contains(n))?;
    }
    let salt = decode(words.next()?.strip_prefix("salt=")?)?;
    (salt.len() == SALT_BYTES && words.next().is_none()).then_some((costs, salt))
}

fn bind(bound: &[u8], parameters: &str) -> Vec<u8> {
    [bound, parameters.as_bytes()].concat()
}

impl KeySource for Passphrase {
    fn kind(&self) -> &'static str {
        "passphrase"
    }

    fn name(&self) -> String {
        format!("the passphrase from {}", self.secret.name())
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn wrap(&self, root: &RootKey, bound: &[u8]) -> Result<Wrapped, Error> {
        let salt = random::<SALT_BYTES>()?;
        let parameters = parameters(COSTS, &salt);
        let key = self.wrapping_key(COSTS, &salt)?;
        let sealed = seal::seal(&key, &bind(bound, &parameters), root)?;
        Ok(Wrapped { parameters, sealed })
    }

    fn unwrap(&self, wrapped: &Wrapped, bound: &[u8]) -> Result<Option<RootKey>, Error> {
        let Some((costs, salt)) = read_parameters(&wrapped.parameters) else {
            return Ok(None);
        };
        let key = self.wrapping_key(costs, &salt)?;
        let bound = bind(bound, &wrapped.parameters);
        Ok(seal::open(&key, &bound, &wrapped.sealed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file must not make the keeper allocate or compute without limit.
    #[test]
    fn costs_are_bounded() {
        let salt = [7; SALT_BYTES];
        let good = parameters(COSTS, &salt);
        assert_eq!(read_parameters(&good), Some((COSTS, salt.to_vec())));
        for costs in [[u32::MAX, 3, 4], [65536, 1000, 4], [65536, 3, 0]] {
            assert_eq!(read_parameters(&parameters(costs, &salt)), None);
        }
        assert_eq!(read_parameters(&parameters(COSTS, &[1, 2])), None);
        assert_eq!(read_parameters("argon2id"), None);
        assert_eq!(read_parameters(""), None);
    }
}
