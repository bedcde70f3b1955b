//! Keys of columns, and the delivery envelopes that are under them.
//!
//! The keeper sends the key of a column to a session whose client may see the column, in the
//! envelope of one of its values. From then on the database may give out envelopes of values of that column
//! that it has kept, which the keeper sealed for any session.
//!
//! Invariants: a key is taken only from an envelope of this session; a delivery envelope opens
//! only under a key that came so.

use contract::envelope::{EPOCH_BYTES, KEYED_BYTES, Origin};
use envelope::{ColumnKey, Envelope, Error, Opener};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use crate::Failure;

/// Keys that are kept; then all are forgotten, and what is under them fails. A session gets one
/// for each column that it reads, and others when policies change.
const KEYS_MAX: usize = 1 << 16;

type Number = [u8; EPOCH_BYTES];

/// See the module.
#[derive(Default)]
pub(crate) struct Delivered(Mutex<HashMap<Number, Arc<Opener>>>);

impl Delivered {
    /// Opens an envelope of a result, the session's own or one for delivery.
    pub fn open<'a>(
        &self,
        own: &Opener,
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
            _ => own.open_parsed(&envelope, plain)?,
        }
        if envelope.is_keyed() {
            self.take(plain)?;
        }
        Ok(envelope)
    }

    /// Takes a key from before a value.
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
