//! Leases of FIDs, and channels that hold some.
//!
//! The database gives a leased FID to a value that the client has sealed, and logs it, without an
//! answer of ours. So the value may be in the WAL before it is here, in the channel's ring. A
//! checkpoint therefore waits until each channel with leases has taken in what it was sent before.
//!
//! Invariants: a lease is listed here from before its record is sealed until its channel has ended;
//! the number of bytes that a channel has dealt with does not include the message that it deals with.

use channel::Backlog;
use contract::message::table::Identity;
use envelope::StoringKey;
use redo::Order;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{ColumnId, Store};
use values::Error;
use zeroize::Zeroizing;

/// How much of what it was sent a channel has dealt with.
#[derive(Clone)]
pub struct Progress {
    backlog: Backlog,
    done: Arc<AtomicU64>,
}

impl Progress {
    /// Of a new channel.
    pub fn new(backlog: Backlog) -> Progress {
        Progress {
            backlog,
            done: Arc::default(),
        }
    }

    /// All bytes up to here have been dealt with.
    #[inline]
    pub fn done(&self, position: u64) {
        self.done.store(position, Ordering::Release);
    }

    /// How much it was sent, as its backend says.
    pub fn sent(&self) -> u64 {
        self.backlog.sent()
    }

    /// Whether all bytes up to here have been dealt with.
    pub fn reached(&self, position: u64) -> bool {
        self.done.load(Ordering::Acquire) >= position
    }
}

/// A lease of FIDs without values.
#[derive(Clone, PartialEq, Eq)]
pub struct Leased {
    /// The place of its record in the history.
    pub order: Order,
    /// The storing key of the session.
    pub key: Zeroizing<[u8; 32]>,
    /// Runs of a first FID and a number.
    pub runs: Vec<(u64, u64)>,
}

impl std::fmt::Debug for Leased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Leased({:?}, {:?})", self.order, self.runs)
    }
}

/// A lease that is not over.
struct Live {
    order: Order,
    key: Arc<StoringKey>,
    runs: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    live: HashMap<u64, Live>,
    channels: HashMap<u64, Progress>,
}

/// See the module documentation.
#[derive(Default)]
pub struct Leases {
    inner: Mutex<Inner>,
    moved: Condvar,
    waits: AtomicU64,
}

/// How long a checkpoint waits.
const LIMIT: Duration = Duration::from_secs(60);
/// At least so often it looks.
const LOOK: Duration = Duration::from_millis(20);

impl Leases {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a lease. `seal` makes its record. Returns the lease's number and the record.
    ///
    /// # Errors
    /// Those of `seal`.
    pub fn begin(
        &self,
        (channel, progress): (u64, &Progress),
        key: &Arc<StoringKey>,
        runs: Vec<(u64, u64)>,
        seal: impl FnOnce(&redo::Lease) -> Result<(Order, Vec<u8>), Error>,
    ) -> Result<(u64, Vec<u8>), Error> {
        // A checkpoint that begins another generation lists this lease, or its record is of that.
        let mut inner = self.lock();
        let lease = redo::Lease {
            key: *key.expose(),
            runs,
        };
        let (order, record) = seal(&lease)?;
        inner.last += 1;
        let number = inner.last;
        let live = Live {
            order,
            key: Arc::clone(key),
            runs: lease.runs,
        };
        inner.live.insert(number, live);
        inner
            .channels
            .entry(channel)
            .or_insert_with(|| progress.clone());
        Ok((number, record))
    }

    /// Ends leases.
    pub fn end(&self, numbers: impl Iterator<Item = u64>) {
        let mut inner = self.lock();
        for number in numbers {
            inner.live.remove(&number);
        }
    }

    /// A channel is closed: nothing is to be expected of it.
    pub fn leave(&self, channel: u64) {
        self.lock().channels.remove(&channel);
        self.moved.notify_all();
    }

    /// A channel has dealt with a message.
    #[inline]
    pub fn moved(&self) {
        if self.waits.load(Ordering::Relaxed) > 0 {
            self.moved.notify_all();
        }
    }

    /// The number of checkpoints that wait.
    pub fn waiting(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// The FIDs that are leased and have no value.
    pub fn list(&self, store: &Store) -> Vec<Leased> {
        let inner = self.lock();
        let mut numbers: Vec<&u64> = inner.live.keys().collect();
        numbers.sort_unstable();
        let live = numbers.iter().filter_map(|number| inner.live.get(number));
        live.map(|live| Leased {
            order: live.order,
            key: Zeroizing::new(*live.key.expose()),
            runs: empty(store, &live.runs),
        })
        .filter(|leased| !leased.runs.is_empty())
        .collect()
    }

    /// Waits until all channels with leases have dealt with what they have been sent.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn catch_up(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        let behind: Vec<(u64, u64)> = inner
            .channels
            .iter()
            .map(|(channel, progress)| (*channel, progress.backlog.sent()))
            .collect();
        let last = Instant::now() + LIMIT;
        let waits = |inner: &Inner| {
            let here = |(channel, sent): &(u64, u64)| {
                let progress = inner.channels.get(channel);
                progress.is_none_or(|progress| progress.reached(*sent))
            };
            !behind.iter().all(here)
        };
        self.waits.fetch_add(1, Ordering::Relaxed);
        while waits(&inner) && Instant::now() < last {
            let waited = self.moved.wait_timeout(inner, LOOK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.waits.fetch_sub(1, Ordering::Relaxed);
        match waits(&inner) {
            false => Ok(()),
            true => Err(is_behind("the values that are in the WAL")),
        }
    }
}

/// The error of somebody who has waited for a channel in vain.
pub fn is_behind(of_what: &str) -> Error {
    let what = format!("confide: a channel has not taken in {of_what}");
    Error::new(b"55000", what).hint("Try again.")
}

/// A column, as the database is told which it is.
pub fn identity(column: &ColumnId) -> Identity {
    let (high, low) = column.split_at(8);
    let number = |half: &[u8]| {
        half.first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    Identity {
        high: number(high),
        low: number(low),
    }
}

/// The parts of runs of FIDs that are leased and have no value.
fn empty(store: &Store, runs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for fid in runs.iter().flat_map(|(first, count)| *first..first + count) {
        let fid = contract::Fid(fid);
        if !store
            .get(fid.partition())
            .is_some_and(|p| p.is_leased(fid.slot()))
        {
            continue;
        }
        match found.last_mut() {
            Some((first, count)) if *first + *count == fid.0 => *count += 1,
            _ => found.push((fid.0, 1)),
        }
    }
    found
}
