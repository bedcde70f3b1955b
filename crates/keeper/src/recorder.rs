//! Recordings of the requests and answers of channels, as contained in their messages
//! (docs/maintenance.md, crate `recording`). No other part of the keeper deals with recordings.
//!
//! A recorded channel has a tape, a buffer that a thread of the recorder empties, compresses, seals
//! and writes. Nothing waits for that: data that does not fit is counted, and the recording
//! contains the count. A channel that is not recorded has no tape, which costs one branch for each
//! request.
//!
//! Invariants: everything recorded was sent to the database or received from it; all tapes together
//! hold at most [`PENDING_MAX`] bytes.

use crate::background::Signal;
use contract::Kind;
use recording::{Chunk, End, Event, Outcome, Scope, Writer};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use values::Error;

/// Maximum number of bytes waiting to be written, for all channels.
const PENDING_MAX: usize = 64 << 20;
/// Number of bytes at which the thread is woken.
const WAKE: usize = 1 << 20;
/// Number of files of a ring; the oldest is deleted as a whole.
const PARTS: u64 = 8;

/// The state shared by tapes and the thread.
#[derive(Default)]
struct Shared {
    pending: AtomicUsize,
    signal: Arc<Signal>,
    /// Number of the file, counted over all recordings: programs are recorded again in each file.
    part: AtomicU64,
}

/// The data of a channel that has not been written yet.
#[derive(Default)]
struct Held {
    events: Vec<u8>,
    lost: u64,
}

/// The tape of a recorded channel.
pub struct Tape {
    shared: Arc<Shared>,
    /// Number of the recording.
    run: u64,
    session: u64,
    channel: u32,
    database: u32,
    /// Calls are recorded instead of messages.
    calls: bool,
    begun: Instant,
    told: AtomicU64,
    held: Mutex<Held>,
}

/// The owner of a channel.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    /// Its session.
    pub session: u64,
    /// OID of the session's database.
    pub database: u32,
    /// The session's client.
    pub principal: Option<&'a str>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

    /// Records a line of a log of calls, if there is room.
    pub fn tell(&self, kind: u16, line: &str) {
        let at = Instant::now().saturating_duration_since(self.begun);
        self.put(&Event {
            at: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            took: 0,
            kind,
            body: line.as_bytes(),
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
    }

    /// Whether the session's programs must be recorded: once in each file.
    pub fn wants_programs(&self) -> bool {
        let part = self.shared.part.load(Relaxed);
        self.told.swap(part, Relaxed) != part
    }

    fn take(&self) -> Option<Chunk> {
        let Held { events, lost } = std::mem::take(&mut *lock(&self.held));
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

/// Data that arrives after the end of the recording is dropped.
impl Drop for Tape {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A recording in progress.
struct Running {
    writer: Writer,
    scope: Scope,
    run: u64,
    begun: Instant,
    turned: Instant,
    /// The times when the files before the last one were completed.
    ended: VecDeque<Instant>,
    tapes: Vec<Arc<Tape>>,
    channels: u32,
}

/// The recordings of a keeper: one at a time.
pub struct Recorder {
    directory: PathBuf,
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
    runs: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
}

impl Recorder {
    /// Creates a recorder that writes into this directory; if none is configured, recordings are
    /// refused.
    pub fn new(directory: &Path) -> Recorder {
        Recorder {
            directory: directory.to_owned(),
            shared: Arc::default(),
            running: Mutex::default(),
            runs: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Starts a recording and returns its name. Channels then ask for their tapes.
    pub fn start(&self, scope: Scope) -> Result<String, Error> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return Err(refused("There is one already: stop it first."));
        }
        if self.directory.as_os_str().is_empty() {
            return Err(refused("Neither record_dir nor data_dir is configured."));
        }
        let name = scope.key.name();
        let writer = Writer::create(&self.directory, &scope.key).map_err(|what| {
            tracing::error!("cannot begin a recording: {what}");
            refused("Its files cannot be made, or its key was used before.")
        })?;
        let now = Instant::now();
        self.shared.part.fetch_add(1, Relaxed);
        self.lost.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        *running = Some(Running {
            writer,
            scope,
            run: self.runs.fetch_add(1, Relaxed) + 1,
            begun: now,
            turned: now,
            ended: VecDeque::new(),
            tapes: Vec::new(),
            channels: 0,
        });
        Ok(name)
    }

    /// Whether a recording is in progress.
    pub fn runs(&self) -> bool {
        lock(&self.running).is_some()
    }

    /// Whether a log of this client's calls is in progress.
    pub fn is_log_of(&self, principal: &str) -> bool {
        let running = lock(&self.running);
        let scope = running.as_ref().map(|running| &running.scope);
        scope.is_some_and(|scope| scope.calls && scope.principal == principal)
    }

    /// Returns the tape of a channel, which may already have had one; `None` if it is not recorded.
    pub fn tape(&self, before: Option<Arc<Tape>>, whose: Whose<'_>) -> Option<Arc<Tape>> {
        let mut running = lock(&self.running);
        let running = running.as_mut()?;
        let Scope {
            database,
            principal,
            ..
        } = &running.scope;
        let wanted = (*database == 0 || *database == whose.database)
            && (principal.is_empty() || whose.principal == Some(principal));
        if !wanted {
            return None;
        }
        let same = before.filter(|tape| tape.run == running.run);
        same.or_else(|| {
            running.channels += 1;
            let tape = Arc::new(Tape {
                shared: Arc::clone(&self.shared),
                run: running.run,
                session: whose.session,
                channel: running.channels,
                database: whose.database,
                calls: running.scope.calls,
                begun: running.begun,
                told: AtomicU64::new(0),
                held: Mutex::default(),
            });
            running.tapes.push(Arc::clone(&tape));
            Some(tape)
        })
    }

    /// Ends the current recording. Returns false if there is none.
    pub fn stop(&self, why: End) -> Result<bool, Error> {
        let taken = lock(&self.running).take();
        let Some(mut running) = taken else {
            return Ok(false);
        };
        let written = self.collect(&mut running);
        let bytes = running.writer.bytes();
        written
            .and_then(|()| running.writer.end(why))
            .map_err(|what| {
                tracing::error!("cannot end the recording: {what}");
                refused("Its files cannot be written; what is there counts as cut.")
            })?;
        tracing::info!(
            ?why,
            bytes,
            lost = self.lost.load(Relaxed),
            "recording ended"
        );
        Ok(true)
    }

    fn collect(&self, running: &mut Running) -> Result<(), recording::Error> {
        let chunks: Vec<Chunk> = running.tapes.iter().filter_map(|t| t.take()).collect();
        self.lost
            .fetch_add(chunks.iter().map(|chunk| chunk.lost).sum(), Relaxed);
        // Its channel is closed, and it was just found empty: nothing more will be added.
        running
            .tapes
            .retain(|t| Arc::strong_count(t) > 1 || !lock(&t.held).events.is_empty());
        running.writer.write(&chunks)?;
        self.bytes.store(running.writer.bytes(), Relaxed);
        Ok(())
    }

    /// Starts the next file of a ring when due, and deletes files that are too old or exceed the
    /// size.
    fn turn(&self, running: &mut Running) -> Result<(), recording::Error> {
        let Scope { ring, bytes, .. } = running.scope;
        if ring == 0 {
            return Ok(());
        }
        let (now, ring) = (Instant::now(), Duration::from_secs(ring));
        let full =
            bytes > 0 && running.writer.bytes() > bytes / PARTS * running.writer.parts() as u64;
        if now.duration_since(running.turned) >= ring / PARTS as u32 || full {
            running.writer.turn()?;
            running.ended.push_back(now);
            running.turned = now;
            self.shared.part.fetch_add(1, Relaxed);
        }
        let old = |ended: &Instant| now.duration_since(*ended) > ring;
        while running.ended.front().is_some_and(old)
            || (bytes > 0 && running.writer.bytes() > bytes && !running.ended.is_empty())
        {
            running.ended.pop_front();
            running.writer.drop_oldest()?;
        }
        Ok(())
    }

    /// Signalled when there is much to write.
    pub fn signal(&self) -> &Arc<Signal> {
        &self.shared.signal
    }

    /// Writes the pending data. Returns the reason if this ends the recording.
    pub fn write(&self) -> Option<End> {
        let mut guard = lock(&self.running);
        let running = guard.as_mut()?;
        let written = self.collect(running).and_then(|()| self.turn(running));
        if let Err(what) = written {
            tracing::error!("the recording is given up: {what}");
            *guard = None;
            return Some(End::Size);
        }
        let Scope {
            seconds,
            bytes,
            ring,
            ..
        } = running.scope;
        if seconds > 0 && running.begun.elapsed() >= Duration::from_secs(seconds) {
            return Some(End::Time);
        }
        (ring == 0 && bytes > 0 && running.writer.bytes() >= bytes).then_some(End::Size)
    }

    /// Names and values describing the current recording, for the statistics.
    pub fn lines(&self) -> [(&'static str, u64); 3] {
        let runs = lock(&self.running).is_some();
        [
            ("recording", u64::from(runs)),
            ("recording_bytes", self.bytes.load(Relaxed)),
            ("recording_lost", self.lost.load(Relaxed)),
        ]
    }
}

fn refused(what: &'static str) -> Error {
    Error::new(
        b"55000",
        "confide: the keeper cannot do that with a recording",
    )
    .detail(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::{Key, read};

    fn scope(key: &Key, principal: &str) -> Scope {
        Scope {
            key: key.clone(),
            database: 5,
            seconds: 0,
            bytes: 0,
            ring: 0,
            principal: principal.into(),
            calls: false,
        }
    }

    fn whose(database: u32, principal: Option<&str>) -> Whose<'_> {
        Whose {
            session: 1,
            database,
            principal,
        }
    }

    /// The statement continues if nobody writes; data that does not fit is counted.
    #[test]
    fn full() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = Key::generate().expect("a key");
        let recorder = Recorder::new(directory.path());
        recorder.start(scope(&key, "")).expect("a recording");
        let tape = recorder.tape(None, whose(5, None)).expect("a tape");
        let body = vec![0; PENDING_MAX / 10];
        for _ in 0..12 {
            tape.note(Kind::Eval, &body, Instant::now(), Outcome::OneWay);
        }
        assert_eq!(recorder.stop(End::Stopped), Ok(true));
        let recorded = read(&directory.path().join(key.name()), &key, false).expect("it");
        let events = recorded.chunks[0].events().expect("events").len() as u64;
        assert_eq!((events, recorded.lost()), (9, 3));
        assert_eq!(recorder.stop(End::Stopped), Ok(false));
        // Too late: it is not written and takes no space.
        tape.note(Kind::Eval, b"late", Instant::now(), Outcome::OneWay);
        drop(tape);
        assert_eq!(recorder.shared.pending.load(Relaxed), 0);
    }

    #[test]
    fn scopes() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = Key::generate().expect("a key");
        let recorder = Recorder::new(directory.path());
        assert!(recorder.tape(None, whose(5, Some("ann"))).is_none(), "off");
        recorder.start(scope(&key, "ann")).expect("a recording");
        let tape = recorder.tape(None, whose(5, Some("ann"))).expect("hers");
        assert!(recorder.tape(None, whose(6, Some("ann"))).is_none());
        assert!(recorder.tape(None, whose(5, Some("bob"))).is_none());
        assert!(recorder.tape(None, whose(5, None)).is_none());
        let same = recorder.tape(Some(Arc::clone(&tape)), whose(5, Some("ann")));
        assert!(same.is_some_and(|same| Arc::ptr_eq(&same, &tape)));
        assert!(recorder.start(scope(&key, "")).is_err(), "one at a time");
        assert!(tape.wants_programs() && !tape.wants_programs());
        tape.note(Kind::Handshake, b"keys", Instant::now(), Outcome::OneWay);
        assert_eq!(recorder.stop(End::Stopped), Ok(true));
        assert!(
            recorder.tape(Some(tape), whose(5, Some("ann"))).is_none(),
            "stopped"
        );
        assert!(recorder.start(scope(&key, "")).is_err(), "a key twice");
        let recorded = read(&directory.path().join(key.name()), &key, false).expect("it");
        assert!(recorded.chunks.is_empty(), "no handshake");
    }

    /// A ring keeps the newest data, and records programs again in each file.
    #[test]
    fn ring() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = Key::generate().expect("a key");
        let recorder = Recorder::new(directory.path());
        let bytes = 64_000;
        let ring = 1_000_000;
        recorder
            .start(Scope {
                bytes,
                ring,
                ..scope(&key, "")
            })
            .expect("a recording");
        let tape = recorder.tape(None, whose(5, None)).expect("a tape");
        let mut told = 0;
        for _ in 0..200 {
            told += u32::from(tape.wants_programs());
            let noise: [u8; 1000] = crate::random::random().expect("noise");
            tape.note(Kind::Eval, &noise, Instant::now(), Outcome::OneWay);
            assert_eq!(recorder.write(), None);
        }
        assert_eq!(recorder.stop(End::Stopped), Ok(true));
        assert!(told > 8, "{told}");
        let recorded = read(&directory.path().join(key.name()), &key, false).expect("it");
        assert!(recorded.bytes <= bytes + 20_000, "{}", recorded.bytes);
        let events = recorded.chunks.len();
        assert!(events > 20 && events < 100, "{events}");
    }
}
