//! The tapes of recorded channels: what a channel has said and was not written yet.
//!
//! A channel puts its messages on its tape and goes on; a thread of the recorder takes them
//! (`recorder`). Data that does not fit is counted. A tape is made of blocks that are used again
//! once they are written, so that a channel seldom touches new pages, and never copies what it has.
//! What concerns other threads is done once for each block: what waits is counted, and the thread woken.
//!
//! Where only some statements are recorded, what a channel says before it is known whose it is
//! waits aside.
//!
//! Invariants: everything recorded was sent to the database or received from it; all tapes together
//! hold at most [`PENDING_MAX`] bytes, besides what each has put into its last block; a channel never waits for anything slower than a copy.

use crate::background::Signal;
use crate::leases::Progress;
use channel::urgency::Thread;
use contract::Kind;
use nix::time::ClockId;
use recording::{Chunk, Event, Outcome, Scope};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

/// Maximum number of bytes waiting to be written, for all channels.
pub const PENDING_MAX: usize = 64 << 20;
/// Number of bytes at which the thread is woken.
const WAKE: usize = 1 << 20;
/// Number of bytes from which on the thread no longer steps back for others.
const HURRY: usize = PENDING_MAX / 4;
/// Size of a block.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that are kept while a recording runs.
const SPARE: usize = HURRY / BLOCK_BYTES;
/// Maximum number of bytes that wait until it is known whose they are, for each channel.
const ASIDE_MAX: usize = 1 << 20;

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
    /// Empty blocks.
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

    /// Takes back the blocks of what was written.
    pub fn recycle(&self, chunks: Vec<Chunk>) {
        let mut spare = lock(&self.spare);
        for mut block in chunks.into_iter().map(|chunk| chunk.events) {
            if spare.len() < SPARE && block.capacity() == BLOCK_BYTES {
                block.clear();
                spare.push(block);
            }
        }
    }

    /// Gives back their memory, when no recording runs.
    pub fn release(&self) {
        lock(&self.spare).clear();
    }

    fn block(&self) -> Vec<u8> {
        let spare = lock(&self.spare).pop();
        spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES))
    }
}

/// Whether what a channel says is of a statement that is recorded.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Phase {
    /// It is, as all are where the scope names none.
    #[default]
    Wanted,
    /// It is not.
    Other,
    /// Nobody knows yet: constants arrive before their statement is known.
    Unknown,
}

/// The data of a channel that has not been written yet.
#[derive(Default)]
struct Held {
    /// Blocks; the last one has room.
    blocks: Vec<Vec<u8>>,
    /// Bytes that are counted as pending: those of all blocks but for what came into the last one
    /// later, and those aside.
    counted: usize,
    lost: u64,
    phase: Phase,
    /// What came in the phase [`Phase::Unknown`].
    aside: Vec<u8>,
    aside_lost: u64,
}

impl Held {
    /// The last block, if it has room for so many bytes.
    #[inline]
    fn room(&mut self, size: usize) -> Option<&mut Vec<u8>> {
        let last = self.blocks.last_mut();
        last.filter(|block| block.capacity() - block.len() >= size)
    }

    /// Counts what came and so many bytes more, if all tapes together have room for them.
    fn count(&mut self, shared: &Shared, more: usize) -> bool {
        let held = self.blocks.iter().map(Vec::len).sum::<usize>() + self.aside.len();
        let due = (held + more).saturating_sub(self.counted);
        let pending = shared.pending.fetch_add(due, Relaxed) + due;
        let fits = pending <= PENDING_MAX;
        match fits {
            true => self.counted += due,
            false => _ = shared.pending.fetch_sub(due, Relaxed),
        }
        if pending > WAKE {
            shared.signal.ring();
        }
        if pending > HURRY {
            shared.hurry();
        }
        fits
    }

    /// Puts an event into a block of its own or the next one, if there is room.
    #[cold]
    #[inline(never)]
    fn put_next(&mut self, shared: &Shared, event: &Event<'_>) {
        let size = event.size();
        if !self.count(shared, size) {
            self.lost += 1;
            return;
        }
        let mut block = match size > BLOCK_BYTES {
            true => Vec::with_capacity(size),
            false => shared.block(),
        };
        event.put(&mut block);
        self.blocks.push(block);
    }

    /// Puts an event aside, if there is room.
    fn put_aside(&mut self, shared: &Shared, event: &Event<'_>) {
        let size = event.size();
        if self.aside.len() + size > ASIDE_MAX || !self.count(shared, size) {
            self.aside_lost += 1;
        } else {
            event.put(&mut self.aside);
        }
    }

    /// What stands aside is recorded, or forgotten.
    fn settle(&mut self, shared: &Shared, wanted: bool) {
        let aside = std::mem::take(&mut self.aside);
        let lost = std::mem::take(&mut self.aside_lost);
        if wanted {
            // What comes after it does not fit there.
            self.blocks.push(aside);
            self.lost += lost;
        } else {
            self.counted = self.counted.saturating_sub(aside.len());
            shared.pending.fetch_sub(aside.len(), Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        self.lost == 0 && self.blocks.iter().all(Vec::is_empty)
    }
}

/// Microseconds of a clock that never goes back.
#[inline]
pub fn now() -> u64 {
    let Ok(time) = ClockId::CLOCK_MONOTONIC.now() else {
        return 0;
    };
    time.tv_sec().cast_unsigned() * 1_000_000 + time.tv_nsec().cast_unsigned() / 1000
}

/// Whether later statements may need what this message says: it names something that outlives its
/// own.
fn outlives(kind: u16) -> bool {
    let kinds = [
        Kind::ProgramRegister,
        Kind::ProgramForget,
        Kind::PartitionOpen,
        Kind::PartitionDrop,
    ];
    kinds.iter().any(|other| *other as u16 == kind)
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
    /// The statements that are recorded, in order; none: all.
    statements: Vec<u64>,
    /// By [`now`].
    begun: u64,
    told: AtomicU64,
    /// Something was answered and is about to be put here.
    answering: AtomicBool,
    /// How much of what it was sent the channel has dealt with, and its thread.
    progress: OnceLock<(ThreadId, Progress)>,
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
        Checkpoint, CheckpointBegin, Committed, Follow, Handshake, Policy, PolicyLog, PolicyLogged,
        RecoveryDone, RecoveryState, Redo, RestoreTicket, SoftState, Stats, StoreCopy, StoreRead,
    };
    !matches!(
        kind,
        Handshake
            | Policy
            | PolicyLog
            | PolicyLogged
            | RestoreTicket
            | SoftState
            | Stats
            | StoreCopy
            | StoreRead
            | RecoveryState
            | RecoveryDone
            | Redo
            | Committed
            | CheckpointBegin
            | Checkpoint
            | Follow
    )
}

impl Tape {
    /// An empty one, of the recording with this number, which began then; of the channel with that
    /// number.
    pub fn new(
        shared: &Arc<Shared>,
        (run, begun): (u64, u64),
        (whose, channel): (Whose<'_>, u32),
        scope: &Scope,
    ) -> Tape {
        let mut statements = scope.statements.clone();
        statements.sort_unstable();
        let phase = match statements.is_empty() {
            true => Phase::Wanted,
            false => Phase::Unknown,
        };
        Tape {
            shared: Arc::clone(shared),
            run,
            session: whose.session,
            channel,
            database: whose.database,
            calls: scope.calls,
            statements,
            begun,
            told: AtomicU64::new(0),
            answering: AtomicBool::new(false),
            progress: OnceLock::new(),
            held: Mutex::new(Held {
                phase,
                ..Held::default()
            }),
        }
    }

    /// Records a request and its outcome, if there is room. It took from then until then, by [`now`].
    #[inline]
    pub fn note(&self, kind: Kind, body: &[u8], (from, until): (u64, u64), outcome: Outcome<'_>) {
        if is_recorded(kind) {
            self.put(&Event {
                at: from.saturating_sub(self.begun),
                took: u32::try_from(until.saturating_sub(from)).unwrap_or(u32::MAX),
                kind: kind as u16,
                body,
                outcome,
            });
        }
    }

    /// What comes from here on is of this statement; 0: nobody knows yet.
    pub fn statement(&self, query: u64) {
        if self.statements.is_empty() {
            return;
        }
        let phase = match (query, self.statements.binary_search(&query)) {
            (0, _) => Phase::Unknown,
            (_, Ok(_)) => Phase::Wanted,
            (_, Err(_)) => Phase::Other,
        };
        let mut held = lock(&self.held);
        let before = std::mem::replace(&mut held.phase, phase);
        if phase == Phase::Unknown && before == Phase::Unknown {
            return;
        }
        let wanted = (before, phase) == (Phase::Unknown, Phase::Wanted);
        held.settle(&self.shared, wanted);
    }

    /// Whether calls of operators are recorded instead of messages.
    pub fn has_calls(&self) -> bool {
        self.calls
    }

    /// Records what is no message, if there is room: a line of a log of calls, freed identifiers.
    pub fn tell(&self, kind: u16, body: &[u8]) {
        self.put(&Event {
            at: now().saturating_sub(self.begun),
            took: 0,
            kind,
            body,
            outcome: Outcome::OneWay,
        });
    }

    #[inline]
    fn put(&self, event: &Event<'_>) {
        let mut held = lock(&self.held);
        if held.phase != Phase::Wanted && !outlives(event.kind) {
            if held.phase == Phase::Unknown {
                held.put_aside(&self.shared, event);
            }
        } else if let Some(room) = held.room(event.size()) {
            event.put(room);
        } else {
            held.put_next(&self.shared, event);
        }
    }

    /// Whether the session's programs must be recorded: once in each file.
    pub fn wants_programs(&self) -> bool {
        let part = self.shared.part.load(Relaxed);
        let told = self.told.load(Relaxed) == part;
        !told && self.told.swap(part, Relaxed) != part
    }

    /// Whether what comes is recorded in any case.
    pub fn is_wanted(&self) -> bool {
        lock(&self.held).phase == Phase::Wanted
    }

    /// Number of the file that is written.
    pub fn part(&self) -> u64 {
        self.shared.part.load(Relaxed)
    }

    /// Something is about to be answered, and recorded only then: the statement does not wait for
    /// that.
    pub fn begin_answer(&self) {
        self.answering.store(true, Release);
    }

    /// It was recorded.
    pub fn end_answer(&self) {
        self.answering.store(false, Release);
    }

    /// The channel's progress can be seen here. For its own thread.
    #[inline]
    pub fn follow(&self, progress: &Progress) {
        self.progress
            .get_or_init(|| (std::thread::current().id(), progress.clone()));
    }

    /// How far the channel has come, and how much it was sent, unless it is the thread's own.
    pub fn backlog(&self) -> Option<(Progress, u64)> {
        let (thread, progress) = self.progress.get()?;
        let other = *thread != std::thread::current().id();
        other.then(|| (progress.clone(), progress.sent()))
    }

    /// Whether something that was answered is not here yet.
    pub fn is_answering(&self) -> bool {
        self.answering.load(Acquire)
    }

    /// What has come since the last time.
    pub fn take(&self, chunks: &mut Vec<Chunk>) {
        let mut held = lock(&self.held);
        if held.is_empty() {
            return;
        }
        let (blocks, mut lost) = (
            std::mem::take(&mut held.blocks),
            std::mem::take(&mut held.lost),
        );
        let aside = held.aside.len();
        let counted = std::mem::replace(&mut held.counted, aside);
        drop(held);
        let counted = counted.saturating_sub(aside);
        self.shared.pending.fetch_sub(counted, Relaxed);
        let blocks = match blocks.is_empty() {
            true => vec![Vec::new()],
            false => blocks,
        };
        chunks.extend(blocks.into_iter().map(|events| Chunk {
            session: self.session,
            channel: self.channel,
            database: self.database,
            lost: std::mem::take(&mut lost),
            events,
        }));
    }

    /// Whether something has not been taken.
    pub fn has_some(&self) -> bool {
        !lock(&self.held).is_empty()
    }
}

/// Data that arrives after the end of the recording is dropped.
impl Drop for Tape {
    fn drop(&mut self) {
        let counted = lock(&self.held).counted;
        self.shared.pending.fetch_sub(counted, Relaxed);
    }
}
