//! Keys of delivery envelopes, and the periods in which they are valid.
//!
//! A delivery envelope contains a value of a column, encrypted under the column's key; whoever has
//! the key can open it. The database may therefore keep it, and pass it to another session whose
//! client has the key, without a request. What limits this is the *period*, a number that each
//! backend sees in its channel's memory. A period ends whenever something told in it may no longer
//! hold: FIDs are about to be freed, a policy changes, a key is withdrawn, or a recording begins
//! (what was told before is not in it); while a recording runs that not everybody is in there is none. Everything remembered from a period is then void;
//! values are requested, and permission is checked, anew. A session without a client, or one that
//! has ended, sees no period.
//!
//! Who may have a key is decided elsewhere (`dispatch/envelopes.rs`).
//!
//! Invariants: nothing is sealed or handed out here except in the period that the caller names; a
//! key has one sealer; a key is not used any more once somebody who has it may no longer see the
//! column.

use channel::{Period, hidden};
use envelope::{ColumnKey, Error, Sealer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use store::ColumnId;

/// No period: nothing is delivered.
const NONE: u64 = 0;

/// A column's key with its sealer.
pub struct Key {
    /// The key, for clients that may have it.
    pub key: ColumnKey,
    /// Seals values of the column.
    pub sealer: Sealer,
}

impl Key {
    fn new() -> Result<Key, Error> {
        hidden::keys(Key::generate).map_err(|_| Error::NoRoom)?
    }

    fn generate() -> Result<Key, Error> {
        let key = ColumnKey::generate()?;
        let sealer = Sealer::delivery(&key)?;
        Ok(Key { key, sealer })
    }
}

/// A channel, and whether its session has a client.
struct Told(Period, Arc<AtomicBool>);

#[derive(Default)]
struct Inner {
    period: u64,
    /// Continues to count while there is no period.
    last: u64,
    told: HashMap<u64, Told>,
    /// What channels see of the recording that runs; not a matter of periods, but told where they are.
    watch: u64,
    keys: Mutex<HashMap<ColumnId, Arc<Key>>>,
}

impl Inner {
    fn begin(&mut self, allowed: bool) {
        self.last = self.last.wrapping_add(1).max(1);
        self.period = if allowed { self.last } else { NONE };
        self.tell();
    }

    fn tell(&self) {
        for Told(word, open) in self.told.values() {
            word.watch(self.watch);
            word.tell(if open.load(Relaxed) {
                self.period
            } else {
                NONE
            });
        }
    }
}

/// See the module documentation.
pub struct Delivery {
    inner: RwLock<Inner>,
    /// Whether anything was sealed or handed out in this period.
    used: AtomicBool,
    /// Envelopes sealed for delivery.
    pub delivered: AtomicU64,
    /// Keys handed to clients.
    pub keyed: AtomicU64,
    /// Periods that have ended.
    pub periods: AtomicU64,
}

impl Delivery {
    /// Starts the first period with a number that no earlier run of a keeper has used.
    pub fn new(first: u64, enabled: bool) -> Delivery {
        let first = first.max(1);
        let inner = Inner {
            period: if enabled { first } else { NONE },
            last: first,
            ..Inner::default()
        };
        Delivery {
            inner: RwLock::new(inner),
            used: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            keyed: AtomicU64::new(0),
            periods: AtomicU64::new(0),
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a channel, which sees the current period from now on; none while its session is
    /// not open.
    pub fn join(&self, channel: u64, word: Period, open: Arc<AtomicBool>) {
        let mut inner = self.write();
        inner.told.insert(channel, Told(word, open));
        inner.tell();
    }

    /// A session has acquired or lost its client. Its channels are updated before this returns.
    pub fn tell(&self) {
        self.write().tell();
    }

    /// What channels shall see of the recording that runs ([`contract::ring::WATCH_OFFSET`]).
    pub fn watch(&self, word: u64) {
        let mut inner = self.write();
        inner.watch = word;
        inner.tell();
    }

    /// A channel was closed.
    pub fn leave(&self, channel: u64) {
        self.write().told.remove(&channel);
    }

    /// FIDs are about to be freed. Before one is reused, everything remembered about its old value
    /// becomes void. Does nothing if nothing was told in this period.
    pub fn forget(&self) {
        let mut inner = self.write();
        if self.used.swap(false, Relaxed) {
            let allowed = inner.period != NONE;
            inner.begin(allowed);
            self.periods.fetch_add(1, Relaxed);
        }
    }

    /// Permissions may have changed: new keys, for whoever may have them now. With `allowed` false
    /// there is no period until the next change.
    pub fn renew(&self, allowed: bool) {
        let mut inner = self.write();
        inner.keys = Mutex::default();
        self.used.store(false, Relaxed);
        inner.begin(allowed);
        self.periods.fetch_add(1, Relaxed);
    }

    /// The current period; 0: none. It may end at any time.
    pub fn period(&self) -> u64 {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner.period
    }

    /// Runs `act` with a column's key if `period` is the current one. The period cannot end
    /// meanwhile.
    pub fn with_key<R>(
        &self,
        period: u64,
        column: &ColumnId,
        act: impl FnOnce(&Key) -> R,
    ) -> Result<Option<R>, Error> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        if period == NONE || period != inner.period {
            return Ok(None);
        }
        let key = {
            let mut keys = inner.keys.lock().unwrap_or_else(PoisonError::into_inner);
            match keys.get(column) {
                Some(key) => Arc::clone(key),
                None => {
                    let key = Arc::new(Key::new()?);
                    keys.insert(*column, Arc::clone(&key));
                    key
                }
            }
        };
        self.used.store(true, Relaxed);
        Ok(Some(act(&key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMN: ColumnId = [7; 16];

    fn number(delivery: &Delivery, period: u64) -> Option<[u8; 8]> {
        delivery
            .with_key(period, &COLUMN, |key| key.key.number())
            .unwrap_or(None)
    }

    /// A key is there in its period only; freed identifiers end the period but not the key, a
    /// change of policy both. With the bug what was remembered is taken for what is asked.
    #[test]
    fn periods() {
        let delivery = Delivery::new(41, true);
        let first = number(&delivery, 41);
        assert!(first.is_some());
        assert_eq!(number(&delivery, 41), first);
        assert_eq!((number(&delivery, 40), number(&delivery, 0)), (None, None));
        delivery.forget();
        assert_eq!(number(&delivery, 41), None);
        // Nothing was said in this period: it need not end.
        delivery.forget();
        assert_eq!(number(&delivery, 42), first);
        delivery.renew(true);
        assert_eq!(number(&delivery, 42), None);
        let second = number(&delivery, 43);
        assert!(second.is_some() && second != first);
    }

    /// While all shall be asked for there is no period, whatever ends.
    #[test]
    fn none() {
        let delivery = Delivery::new(1, true);
        assert!(number(&delivery, 1).is_some());
        delivery.renew(false);
        delivery.forget();
        assert!((0..9).all(|period| number(&delivery, period).is_none()));
        delivery.renew(true);
        assert!(number(&delivery, 3).is_some());
        let off = Delivery::new(5, false);
        assert_eq!(number(&off, 5), None);
    }
}
