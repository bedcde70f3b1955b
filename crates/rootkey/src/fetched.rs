//! A key source whose wrapping key comes from elsewhere, asked for anew each time: a broker's
//! (crate `broker`).

use crate::seal;
use crate::source::{KeySource, Wrapped};
use crate::{Error, KEY_BYTES, RootKey};
use zeroize::Zeroizing;

/// Gets the wrapping key, or says why not.
pub type Fetch = dyn Fn() -> Result<Zeroizing<[u8; KEY_BYTES]>, String> + Send + Sync;

/// A wrapping key from elsewhere.
pub struct Fetched {
    name: String,
    fetch: Box<Fetch>,
}

impl Fetched {
    /// Of the kind "broker"; the name is for messages.
    pub fn broker(name: String, fetch: Box<Fetch>) -> Fetched {
        Fetched { name, fetch }
    }

    fn key(&self) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        (self.fetch)().map_err(|what| Error::Unavailable {
            source_name: self.name.clone(),
            what,
        })
    }
}

impl KeySource for Fetched {
    fn kind(&self) -> &'static str {
        "broker"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    fn wrap(&self, root: &RootKey, bound: &[u8]) -> Result<Wrapped, Error> {
        Ok(Wrapped {
            parameters: String::new(),
            sealed: seal::seal(&*self.key()?, bound, root)?,
        })
    }

    fn unwrap(&self, wrapped: &Wrapped, bound: &[u8]) -> Result<Option<RootKey>, Error> {
        Ok(seal::open(&*self.key()?, bound, &wrapped.sealed))
    }
}
