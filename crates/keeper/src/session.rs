//! A session: the state shared by the channels of a leader and its parallel workers.
//!
//! Invariant: a change of client or settings increments `version`, so that channels may keep
//! copies.

use crate::aggregation::handed::Handed;
use crate::arenas::{ArenaPair, Arenas};
use crate::delivery::Delivery;
use crate::fail::{self, Ended};
use crate::grants::Grants;
use crate::numbers::Numbers;
use crate::program::Program;
use crate::provenance::Provenance;
use crate::term::Lease;
use crate::tickets::Admitted;
use crate::told::Tallies;
use contract::Kind;
use contract::message::program::FIRST_HANDLE;
use envelope::{Opener, PublicKey, Sealer, StoringKey};
use grant::NUMBER_BYTES;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use store::Budget;
use values::{Env, Error};

/// Maximum number of programs registered in one session at a time.
const PROGRAMS_MAX: usize = 4096;

/// The client at the other end of the handshake.
pub struct Client {
    /// Name in the list of authorised keys.
    pub name: String,
    /// Its static key.
    pub key: PublicKey,
    /// Seals for the client.
    pub sealer: Sealer,
    /// Opens what the client sealed.
    pub opener: Opener,
    /// Opens what was sealed for the client: PostgreSQL prints constants of a check, an index or a
    /// default and reads them again when the type of a column changes. The database does not gain
    /// anything from this: it already has the value's FID in this session.
    pub echo: Opener,
    /// The key for values that fit a column, which goes into redo records.
    pub storing: Arc<StoringKey>,
    /// Opens such values.
    pub opens_fitted: Opener,
}

/// Counters of a session's activity.
#[derive(Debug, Default)]
pub struct Counters {
    /// Rows declassified.
    pub declassified: AtomicU64,
    /// Rows ranked.
    pub ranked: AtomicU64,
    /// Searches of a value among others.
    pub searches: AtomicU64,
    /// Envelopes received.
    pub opened: AtomicU64,
    /// Envelopes sent.
    pub sealed: AtomicU64,
    /// Requests of channels that have been closed, by kind.
    messages: Mutex<HashMap<Kind, u64>>,
}

impl Counters {
    /// Adds the requests of a channel that is being closed.
    pub fn closed(&self, messages: impl Iterator<Item = (Kind, u64)>) {
        let mut all = self.lock();
        for (kind, count) in messages {
            *all.entry(kind).or_default() += count;
        }
    }

    /// Total number of requests of a kind: those of the session's closed channels, plus `open`.
    pub fn messages(&self, kind: Kind, open: u64) -> u64 {
        self.lock().get(&kind).copied().unwrap_or(0) + open
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, u64>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of which channels keep copies.
#[derive(Clone)]
pub struct Shared {
    /// The client, if there was a handshake.
    pub client: Option<Arc<Client>>,
    /// The ticket that permits importing export envelopes.
    pub ticket: Option<Arc<Admitted>>,
    /// Settings.
    pub env: Env,
    /// The reason why the session has ended, if it has.
    pub ended: Option<Ended>,
}

/// A session.
pub struct Session {
    /// Its number.
    pub id: u64,
    /// Authorises channels to join, after the leader has announced some.
    pub pass: Mutex<Option<[u8; 16]>>,
    lease: Mutex<Option<Lease>>,
    /// The database specified by the leader.
    pub database: u32,
    /// The role specified by the leader, as the database says.
    pub role: u32,
    /// Memory budget of its arenas.
    pub budget: Arc<Budget>,
    /// Its counters.
    pub counters: Counters,
    /// Aggregations that its channels hand over to each other.
    pub handed: Handed,
    /// What its temporary values were computed from.
    pub provenance: RwLock<Provenance>,
    /// Tags of the commands about viewers sent in this session.
    pub commands: Mutex<Vec<[u8; 12]>>,
    /// Restore tickets used in this session: each is counted once.
    pub admitted: Mutex<Vec<[u8; NUMBER_BYTES]>>,
    /// Whether a value was received in an export envelope.
    pub took: AtomicBool,
    tallies: Mutex<Tallies>,
    /// What its client permits.
    pub grants: RwLock<Grants>,
    /// Its channels' arenas.
    pub arenas: Arc<Arenas>,
    /// Whether it has a client and has not ended; otherwise nothing is delivered to it.
    pub open: Arc<AtomicBool>,
    delivery: Arc<Delivery>,
    numbers: Arc<Numbers>,
    version: AtomicU64,
    shared: RwLock<Shared>,
    programs: RwLock<Programs>,
}

/// A program, and the message that registered it, which is needed for recordings.
type Registered = (Arc<Program>, Box<[u8]>);

#[derive(Default)]
struct Programs {
    by_handle: HashMap<u32, Registered>,
    next: u32,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// What was disclosed since the last collection, for adding to it or collecting it.
    #[inline]
    pub fn tallies(&self) -> MutexGuard<'_, Tallies> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session of this database and role, without channels.
    pub fn new(
        id: u64,
        (database, role): (u32, u32),
        budget: Arc<Budget>,
        numbers: &Arc<Numbers>,
        delivery: &Arc<Delivery>,
    ) -> Session {
        Session {
            id,
            pass: Mutex::default(),
            lease: Mutex::default(),
            database,
            role,
            budget,
            counters: Counters::default(),
            handed: Handed::default(),
            provenance: RwLock::new(Provenance::default()),
            commands: Mutex::default(),
            admitted: Mutex::default(),
            took: AtomicBool::new(false),
            tallies: Mutex::default(),
            grants: RwLock::new(Grants::default()),
            arenas: Arc::default(),
            numbers: Arc::clone(numbers),
            open: Arc::default(),
            delivery: Arc::clone(delivery),
            version: AtomicU64::new(0),
            shared: RwLock::new(Shared {
                client: None,
                ticket: None,
                env: Env::default(),
                ended: None,
            }),
            programs: RwLock::new(Programs::default()),
        }
    }

    /// Creates arenas for another channel; `None` if all numbers are used.
    pub fn enter(&self) -> Option<Arc<ArenaPair>> {
        self.arenas.enter(&self.numbers, &self.budget)
    }

    /// The leader's statement has ended: removes what closed channels have left.
    pub fn end_statement(&self) {
        self.handed.end_statement();
        self.arenas.end_statement();
    }

    /// Changes whenever the state copied by channels changes.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns a copy of client and settings, and its version.
    pub fn shared(&self) -> (Shared, u64) {
        let shared = read(&self.shared);
        (shared.clone(), self.version())
    }

    /// Changes client or settings.
    pub fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let mut shared = write(&self.shared);
        let result = change(&mut shared);
        self.version.fetch_add(1, Ordering::Release);
        let open = shared.client.is_some() && shared.ended.is_none();
        if self.open.swap(open, Ordering::Relaxed) != open {
            self.delivery.tell();
        }
        result
    }

    /// The lease, which says how long the client is considered present.
    pub fn lease(&self) -> MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake has succeeded; its second message was sent at `since`.
    pub fn begin_lease(&self, since: Instant, seconds: u16) {
        let length = Duration::from_secs(seconds.into());
        *self.lease() = (seconds > 0).then(|| Lease::begin(since, length));
    }

    /// The client has renewed the lease. A session whose lease had expired continues.
    pub fn renew(&self, after: Duration, now: Instant) {
        let mut lease = self.lease();
        let Some(lease) = lease.as_mut() else {
            return;
        };
        lease.renew(after, now);
        let (Shared { ended, .. }, _) = self.shared();
        if ended == Some(Ended::LeaseOver) && !lease.is_over(now) {
            self.change(|shared| shared.ended = None);
        }
    }

    /// The client has left: only another handshake revives the session.
    pub fn leave(&self) {
        *self.lease() = None;
        self.change(|shared| {
            shared.client = None;
            shared.ended = Some(Ended::Left);
        });
    }

    /// Ends the session unless it has already ended; returns whether it did. The client may revive
    /// it.
    pub fn end_for_now(&self, why: Ended) -> bool {
        if read(&self.shared).ended.is_some() {
            return false;
        }
        self.change(|shared| shared.ended = Some(why));
        true
    }

    /// Registers a program; returns its handle.
    pub fn register(&self, program: Program, message: Vec<u8>) -> Result<u32, Error> {
        let mut programs = write(&self.programs);
        if programs.by_handle.len() >= PROGRAMS_MAX {
            let error = fail::program_limit("The session has registered too many programs.");
            return Err(error.hint("Close cursors and prepared statements."));
        }
        let span = u32::MAX - FIRST_HANDLE;
        for _ in 0..=PROGRAMS_MAX {
            let handle = FIRST_HANDLE + programs.next % span;
            programs.next = programs.next.wrapping_add(1);
            if let Entry::Vacant(place) = programs.by_handle.entry(handle) {
                place.insert((Arc::new(program), message.into()));
                return Ok(handle);
            }
        }
        Err(fail::internal("no handle"))
    }

    /// The program with this handle.
    pub fn program(&self, handle: u32) -> Option<Arc<Program>> {
        let programs = read(&self.programs);
        programs.by_handle.get(&handle).map(|(p, _)| Arc::clone(p))
    }

    /// All programs: their handles, and the messages that registered them.
    pub fn programs(&self) -> Vec<(u32, Box<[u8]>)> {
        let programs = read(&self.programs);
        let each = programs.by_handle.iter();
        each.map(|(handle, (_, message))| (*handle, message.clone()))
            .collect()
    }

    /// Removes a program. Returns false if there is none.
    pub fn forget(&self, handle: u32) -> bool {
        write(&self.programs).by_handle.remove(&handle).is_some()
    }

    /// Number of registered programs, and of channels' arenas.
    pub fn sizes(&self) -> (usize, usize) {
        let programs = read(&self.programs).by_handle.len();
        (programs, self.arenas.len())
    }
}
