//! Keys of columns, and the delivery envelopes sealed with them.
//!
//! The keeper sends the key of a column to a session whose client may see the column, in the
//! envelope of one of the column's values. From then on the database may return stored envelopes of
//! that column, which the keeper sealed for all sessions; and values that the transaction has stored, as
//! this client sealed them for a column.
//!
//! Invariants: a key is accepted only from an envelope of this session; a delivery envelope is
//! opened only with a key received in this way.

use contract::envelope::{EPOCH_BYTES, KEYED_BYTES, Origin};
use envelope::{ColumnKey, Envelope, Error, Opener};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use crate::Failure;

/// Maximum number of keys; beyond it all are dropped, and envelopes sealed with them fail. A
/// session gets one key for each column that it reads, and new ones when policies change.
const KEYS_MAX: usize = 1 << 16;

type Number = [u8; EPOCH_BYTES];

/// See the module.
#[derive(Default)]
pub(crate) struct Delivered(Mutex<HashMap<Number, Arc<Opener>>>);

impl Delivered {
    /// Opens an envelope of a result: the session's own, a delivery envelope, or one that this client
    /// made of a value that fits a column.
    pub fn open<'a>(
        &self,
        (own, storing): (&Opener, Option<&Opener>),
        binary: &'a [u8],
        plain: &mut Vec<u8>,
    ) -> Result<Envelope<'a>, Failure> {
        let envelope = Envelope::parse(binary)?;
        match (envelope.origin, envelope.epoch) {
            (Origin::Delivery, Some(number)) => {
                let opener = self.keys().get(&number).map(Arc::clone);
                let opener = opener.ok_or(Error::WrongKeyOrAltered)?;
                opener.open_parsed(&envelope, plain)?;
            }
            (Origin::Client, _) if envelope.target.is_some() => {
                let opener = storing.ok_or(Error::WrongKeyOrAltered)?;
                opener.open_parsed(&envelope, plain)?;
            }
            _ => own.open_parsed(&envelope, plain)?,
        }
        if envelope.is_keyed() {
            self.take(plain)?;
        }
        Ok(envelope)
    }

    /// Stores the key that precedes a value.
    fn take(&self, plain: &mut Vec<u8>) -> Result<(), Failure> {
        let bytes: &[u8; KEYED_BYTES] = plain.first_chunk().ok_or(Error::Truncated)?;
        let key = ColumnKey::read(bytes).ok_or(Error::Truncated)?;
        let mut keys = self.keys();
        if keys.len() >= KEYS_MAX {
            keys.clear();
        }
        keys.insert(key.number(), Arc::new(Opener::delivery(&key)?));
        plain.drain(..KEYED_BYTES);
        Ok(())
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, HashMap<Number, Arc<Opener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
