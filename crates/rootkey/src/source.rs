//! What a key source does: it wraps the root key. Which sources there are, `sources` knows.

use crate::{Error, RootKey};

/// A wrapped root key, as it lies in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrapped {
    /// What the source needs besides its secret, as words.
    pub parameters: String,
    /// The sealed key.
    pub sealed: Vec<u8>,
}

/// Wraps root keys, and unwraps what it has wrapped.
pub trait KeySource {
    /// Its kind, the first word in the file.
    fn kind(&self) -> &'static str;

    /// Which one it is, for messages.
    fn name(&self) -> String;

    /// Makes what it lacks (a wrapping key), durably, before the first use.
    ///
    /// # Errors
    /// When it cannot.
    fn prepare(&self) -> Result<(), Error>;

    /// Wraps a root key, bound to `bound` and to the parameters.
    ///
    /// # Errors
    /// When the source is not available.
    fn wrap(&self, root: &RootKey, bound: &[u8]) -> Result<Wrapped, Error>;

    /// Unwraps; `None` when the secret is another one, or anything was changed.
    ///
    /// # Errors
    /// When the source is not available.
    fn unwrap(&self, wrapped: &Wrapped, bound: &[u8]) -> Result<Option<RootKey>, Error>;

    /// For development only.
    fn is_weak(&self) -> bool {
        false
    }
}

/// A source by its description.
pub type Source = Box<dyn KeySource + Send + Sync>;
