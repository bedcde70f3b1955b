//! The tapes of recorded channels: what a channel has said and was not written yet.
//!
//! A channel puts its messages on its tape and goes on; a thread of the recorder takes them
//! (`recorder`). Data that does not fit is counted. Memory of what was written is used again, so
//! that a channel seldom touches new pages.
//!
//! Invariants: everything recorded was sent to the database or received from it; all tapes together
//! hold at most [`PENDING_MAX`] bytes; a channel never waits for anything slower than a copy.

use crate::background::Signal;
use channel::urgency::Thread;
use contract::Kind;
use recording::{Chunk, Event, Outcome};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes waiting to be written, for all channels.
pub const PENDING_MAX: usize = 64 << 20;
/// Number of bytes at which the thread is woken.
const WAKE: usize = 1 << 20;
/// Number of bytes from which on the thread no longer steps back for others.
const HURRY: usize = PENDING_MAX / 4;
/// Buffers that are kept, and the largest of them.
const SPARE: usize = 8;
const SPARE_BYTES: usize = 2 << 20;

/// The state shared by tapes and the thread.
#[derive(Default)]
pub struct Shared {
    pub pending: AtomicUsize,
    pub signal: Arc<Signal>,
    /// Number of the file, counted over all recordings: programs are recorded again in each file.
    pub part: AtomicU64,
    /// The thread that writes, and whether it was called to hurry.
    writer: OnceLock<Thread>,
    hurries: AtomicBool,
    /// How often it has stepped back.
    pub stepped: AtomicU64,
    /// Empty buffers.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    /// Calls the thread to the front if it has stepped back.
    pub fn hurry(&self) {
        if !self.hurries.swap(true, Relaxed)
            && let Some(thread) = self.writer.get()
        {
            thread.step_forward();
        }
    }

    /// The thread lets all others go first, but not when much is waiting. It must hold no lock
    /// that a channel needs.
    pub fn step_back(&self) {
        let thread = *self.writer.get_or_init(Thread::current);
        // Who else writes (at the end of a recording) does not step back.
        if thread == Thread::current() && self.pending.load(Relaxed) <= HURRY {
            let stepped = thread.step_back();
            self.stepped.fetch_add(u64::from(stepped), Relaxed);
            self.hurries.store(false, Relaxed);
        }
    }

    /// The thread is as urgent as all others again.
    pub fn step_forward(&self) {
        if let Some(thread) = self.writer.get() {
            thread.step_forward();
        }
    }

    /// Takes back the buffers of what was written.
    pub fn recycle(&self, chunks: Vec<Chunk>) {
        let mut spare = lock(&self.spare);
        for mut buffer in chunks.into_iter().map(|chunk| chunk.events) {
            if spare.len() < SPARE && buffer.capacity() <= SPARE_BYTES {
                buffer.clear();
                spare.push(buffer);
            }
        }
    }

    fn buffer(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }
}

/// The data of a channel that has not been written yet.
#[derive(Default)]
struct Held {
    events: Vec<u8>,
    lost: u64,
}

/// The owner of a channel.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    /// Its session.
    pub session: u64,
    /// OID of the session's database.
    pub database: u32,
    /// OID of the session's role, as the database says.
    pub role: u32,
    /// The session's client.
    pub principal: Option<&'a str>,
}

/// The tape of a recorded channel.
pub struct Tape {
    shared: Arc<Shared>,
    /// Number of the recording.
    pub run: u64,
    session: u64,
    channel: u32,
    database: u32,
    /// Calls are recorded instead of messages.
    calls: bool,
    begun: Instant,
    told: AtomicU64,
    held: Mutex<Held>,
}

/// Locks, whoever has panicked while it was locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether requests of this kind are recorded: those made by statements, but not those that contain
/// keys or the store's files, or belong to recovery.
fn is_recorded(kind: Kind) -> bool {
    use Kind::{
        Checkpoint, Follow, Handshake, Policy, RecoveryDone, RecoveryState, Redo, RestoreTicket,
        Stats, StoreCopy, StoreRead,
    };
    !matches!(
        kind,
        Handshake
            | Policy
            | RestoreTicket
            | Stats
            | StoreCopy
            | StoreRead
            | RecoveryState
            | RecoveryDone
            | Redo
            | Checkpoint
            | Follow
    )
}

impl Tape {
    /// An empty one, of the recording with this number, which began then; of the channel with that
    /// number.
    pub fn new(
        shared: &Arc<Shared>,
        (run, begun): (u64, Instant),
        (whose, channel): (Whose<'_>, u32),
        calls: bool,
    ) -> Tape {
        Tape {
            shared: Arc::clone(shared),
            run,
            session: whose.session,
            channel,
            database: whose.database,
            calls,
            begun,
            told: AtomicU64::new(0),
            held: Mutex::default(),
        }
    }

    /// Records a request and its outcome, if there is room.
    pub fn note(&self, kind: Kind, body: &[u8], from: Instant, outcome: Outcome<'_>) {
        if !is_recorded(kind) {
            return;
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let took = micros(from.elapsed());
        let event = Event {
            at: micros(from.saturating_duration_since(self.begun)),
            took: u32::try_from(took).unwrap_or(u32::MAX),
            kind: kind as u16,
            body,
            outcome,
        };
        self.put(&event);
    }

    /// Whether calls of operators are recorded instead of messages.
    pub fn has_calls(&self) -> bool {
        self.calls
    }

    /// Records what is no message, if there is room: a line of a log of calls, freed identifiers.
    pub fn tell(&self, kind: u16, body: &[u8]) {
        let at = Instant::now().saturating_duration_since(self.begun);
        self.put(&Event {
            at: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            took: 0,
            kind,
            body,
            outcome: Outcome::OneWay,
        });
    }

    fn put(&self, event: &Event<'_>) {
        let size = event.size();
        let pending = self.shared.pending.fetch_add(size, Relaxed) + size;
        let mut held = lock(&self.held);
        if pending > PENDING_MAX {
            self.shared.pending.fetch_sub(size, Relaxed);
            held.lost += 1;
        } else {
            event.put(&mut held.events);
        }
        drop(held);
        if pending > WAKE {
            self.shared.signal.ring();
        }
        if pending > HURRY {
            self.shared.hurry();
        }
    }

    /// Whether the session's programs must be recorded: once in each file.
    pub fn wants_programs(&self) -> bool {
        let part = self.shared.part.load(Relaxed);
        self.told.swap(part, Relaxed) != part
    }

    /// What has come since the last time.
    pub fn take(&self) -> Option<Chunk> {
        if !self.has_some() {
            return None;
        }
        let fresh = Held {
            events: self.shared.buffer(),
            lost: 0,
        };
        let Held { events, lost } = std::mem::replace(&mut *lock(&self.held), fresh);
        self.shared.pending.fetch_sub(events.len(), Relaxed);
        (!events.is_empty() || lost > 0).then_some(Chunk {
            session: self.session,
            channel: self.channel,
            database: self.database,
            lost,
            events,
        })
    }
}

impl Tape {
    /// Whether something has not been taken.
    pub fn has_some(&self) -> bool {
        let held = lock(&self.held);
        !held.events.is_empty() || held.lost > 0
    }
}

/// Data that arrives after the end of the recording is dropped.
impl Drop for Tape {
    fn drop(&mut self) {
        drop(self.take());
    }
}
