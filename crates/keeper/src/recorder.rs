//! Recordings of the requests and answers of channels, as contained in their messages
//! (docs/maintenance.md, crate `recording`). No other part of the keeper deals with recordings.
//!
//! A recorded channel has a tape (`tape`), a buffer that a thread of the recorder empties,
//! compresses, seals and writes while no other thread wants the processor. Nothing waits for that:
//! data that does not fit is counted, and the recording contains the count. A channel that is not
//! recorded has no tape, which costs one branch for each request.
//!
//! Two locks, in this order: `writing`, the files, is held by who writes; `running`, the scope and
//! the tapes, only for moments, by channels too.

use crate::background::{Signal, happens};
use crate::leases::Progress;
use crate::tape::{self, Shared, Tape, Whose, lock};
use contract::Fid;
use contract::ring::WATCH_STATEMENTS;
use recording::{Chunk, End, Scope, Writer};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use values::Error;

/// Number of files of a ring; the oldest is deleted as a whole.
const PARTS: u64 = 8;
/// How many times the end of a recording looks for what channels do meanwhile.
const LOOKS: u32 = 2_000;

/// A recording in progress.
struct Running {
    scope: Scope,
    run: u64,
    /// By [`tape::now`].
    begun: u64,
    tapes: Vec<Arc<Tape>>,
    /// The tape of no channel.
    own: Arc<Tape>,
    channels: u32,
    /// Begun by a setting, not by an administrator (`ring`).
    standing: bool,
}

/// Its files.
struct Writing {
    writer: Writer,
    begun: Instant,
    /// When the last file was begun.
    turned: Instant,
    /// The times when the files before the last one were completed.
    ended: VecDeque<Instant>,
    /// What the scope says.
    seconds: u64,
    bytes: u64,
    ring: u64,
}

/// What came of writing.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Written {
    /// Why this ends the recording.
    pub end: Option<End>,
    /// The next file of a ring was begun.
    pub turned: bool,
}

/// The recordings of a keeper: one at a time.
pub struct Recorder {
    directory: PathBuf,
    shared: Arc<Shared>,
    writing: Mutex<Option<Writing>>,
    running: Mutex<Option<Running>>,
    runs: AtomicU64,
    /// Recordings that administrators are beginning.
    orders: AtomicU64,
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
            writing: Mutex::default(),
            running: Mutex::default(),
            runs: AtomicU64::new(0),
            orders: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Starts a recording and returns its name. Channels then ask for their tapes. A standing ring
    /// makes room for it.
    pub fn start(&self, scope: Scope) -> Result<String, Error> {
        self.orders.fetch_add(1, Relaxed);
        let begun = loop {
            if self.is_standing() {
                let _ = self.stop(End::Stopped);
            }
            match self.begin(scope.clone(), false) {
                // It began a moment before; no other one does.
                Err(_) if self.is_standing() => {}
                begun => break begun,
            }
        };
        self.orders.fetch_sub(1, Relaxed);
        begun
    }

    /// Starts one that an administrator's replaces.
    pub fn start_standing(&self, scope: Scope) -> Result<String, Error> {
        self.begin(scope, true)
    }

    /// Whether a recording runs, and nobody has ordered it.
    pub fn is_standing(&self) -> bool {
        let running = lock(&self.running);
        running.as_ref().is_some_and(|running| running.standing)
    }

    /// Whether a recording runs, or is about to.
    pub fn runs(&self) -> bool {
        lock(&self.running).is_some() || self.orders.load(Relaxed) > 0
    }

    fn begin(&self, scope: Scope, standing: bool) -> Result<String, Error> {
        let mut writing = lock(&self.writing);
        if writing.is_some() {
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
        *writing = Some(Writing {
            writer,
            begun: now,
            turned: now,
            ended: VecDeque::new(),
            seconds: scope.seconds,
            bytes: scope.bytes,
            ring: scope.ring,
        });
        let run = self.runs.fetch_add(1, Relaxed) + 1;
        let nobody = Whose {
            session: 0,
            database: 0,
            role: 0,
            principal: None,
        };
        let whole = Scope {
            statements: Vec::new(),
            ..scope.clone()
        };
        let begun = tape::now();
        let own = Tape::new(&self.shared, (run, begun), (nobody, 0), &whole);
        let own = Arc::new(own);
        *lock(&self.running) = Some(Running {
            scope,
            run,
            begun,
            tapes: vec![Arc::clone(&own)],
            own,
            channels: 0,
            standing,
        });
        Ok(name)
    }

    /// Whether values may be delivered ahead: whoever may be given one that somebody else asked
    /// for is recorded as that one is, so the recording has it.
    pub fn has_deliveries(&self) -> bool {
        let running = lock(&self.running);
        let scope = running.as_ref().map(|running| &running.scope);
        scope.is_none_or(|scope| {
            scope.principal.is_empty() && scope.role == 0 && scope.statements.is_empty()
        })
    }

    /// What channels see of the recording ([`contract::ring::WATCH_OFFSET`]).
    pub fn watch(&self) -> u64 {
        let running = lock(&self.running);
        let scope = running.as_ref().map(|running| &running.scope);
        scope.filter(|scope| !scope.calls).map_or(0, |scope| {
            let statements = match scope.statements.is_empty() {
                true => 0,
                false => WATCH_STATEMENTS,
            };
            self.shared.part.load(Relaxed) << 1 | statements
        })
    }

    /// Notes that these identifiers may name other values from an LSN on, whoever has freed them.
    pub fn freed(&self, position: u64, fids: &[Fid]) {
        let own = lock(&self.running).as_ref().map(|r| Arc::clone(&r.own));
        if let Some(tape) = own.filter(|tape| !tape.has_calls()) {
            let words = std::iter::once(position).chain(fids.iter().map(|fid| fid.0));
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            tape.tell(recording::FREED, &bytes);
        }
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
            role,
            principal,
            ..
        } = &running.scope;
        let wanted = (*database == 0 || *database == whose.database)
            && (*role == 0 || *role == whose.role)
            && (principal.is_empty() || whose.principal == Some(principal));
        if !wanted {
            return None;
        }
        let same = before.filter(|tape| tape.run == running.run);
        same.or_else(|| {
            running.channels += 1;
            let Running { run, begun, .. } = *running;
            let tape = Tape::new(
                &self.shared,
                (run, begun),
                (whose, running.channels),
                &running.scope,
            );
            let tape = Arc::new(tape);
            running.tapes.push(Arc::clone(&tape));
            Some(tape)
        })
    }

    /// Ends the current recording. Returns false if there is none.
    pub fn stop(&self, why: End) -> Result<bool, Error> {
        self.shared.hurry();
        let mut guard = lock(&self.writing);
        let Some(mut writing) = guard.take() else {
            return Ok(false);
        };
        self.await_told();
        self.await_answered();
        let chunks = self.collect();
        *lock(&self.running) = None;
        let written = self.put(&mut writing, chunks);
        self.shared.release();
        let bytes = writing.writer.bytes();
        written
            .and_then(|()| writing.writer.end(why))
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

    /// Waits for what channels were sent before without being woken: they look for it by
    /// themselves. Not for long, if one of them has much to do.
    fn await_told(&self) {
        let due: Vec<_> = {
            let running = lock(&self.running);
            let tapes = running.iter().flat_map(|running| &running.tapes);
            tapes.filter_map(|tape| tape.backlog()).collect()
        };
        let reached = |(progress, sent): &(Progress, u64)| progress.reached(*sent);
        happens(LOOKS, || due.iter().all(reached));
    }

    /// Waits for what was answered just now, whoever may know the answer already. Not for long, if
    /// a channel has died of it.
    fn await_answered(&self) {
        happens(LOOKS, || {
            let running = lock(&self.running);
            let mut tapes = running.iter().flat_map(|running| &running.tapes);
            !tapes.any(|tape| tape.is_answering())
        });
    }

    /// What all tapes have.
    fn collect(&self) -> Vec<Chunk> {
        let mut running = lock(&self.running);
        let Some(running) = running.as_mut() else {
            return Vec::new();
        };
        let mut chunks = Vec::new();
        running.tapes.iter().for_each(|t| t.take(&mut chunks));
        // Its channel is closed, and it was just found empty: nothing more will be added.
        running
            .tapes
            .retain(|t| Arc::strong_count(t) > 1 || t.has_some());
        chunks
    }

    fn put(&self, writing: &mut Writing, chunks: Vec<Chunk>) -> Result<(), recording::Error> {
        self.lost
            .fetch_add(chunks.iter().map(|chunk| chunk.lost).sum(), Relaxed);
        let written = writing.writer.write(&chunks);
        self.shared.recycle(chunks);
        self.bytes.store(writing.writer.bytes(), Relaxed);
        written
    }

    /// Starts the next file of a ring when due, and deletes files that are too old or exceed the
    /// size. Returns whether there is another file.
    fn turn(&self, writing: &mut Writing) -> Result<bool, recording::Error> {
        let Writing { ring, bytes, .. } = *writing;
        if ring == 0 {
            return Ok(false);
        }
        let (now, ring) = (Instant::now(), Duration::from_secs(ring));
        let writer = &mut writing.writer;
        let full = bytes > 0 && writer.bytes() > bytes / PARTS * writer.parts() as u64;
        let due = now.duration_since(writing.turned) >= ring / PARTS as u32 || full;
        if due {
            writer.turn()?;
            writing.ended.push_back(now);
            writing.turned = now;
            self.shared.part.fetch_add(1, Relaxed);
        }
        let old = |ended: &Instant| now.duration_since(*ended) > ring;
        while writing.ended.front().is_some_and(old)
            || (bytes > 0 && writer.bytes() > bytes && !writing.ended.is_empty())
        {
            writing.ended.pop_front();
            writer.drop_oldest()?;
        }
        Ok(due)
    }

    /// Signalled when there is much to write.
    pub fn signal(&self) -> &Arc<Signal> {
        &self.shared.signal
    }

    /// Writes the pending data. For the recorder's thread.
    pub fn write(&self) -> Written {
        let mut guard = lock(&self.writing);
        let Some(writing) = guard.as_mut() else {
            return Written::default();
        };
        let chunks = self.collect();
        self.shared.step_back();
        let written = self.put(writing, chunks);
        self.shared.step_forward();
        let turned = match written.and_then(|()| self.turn(writing)) {
            Ok(turned) => turned,
            Err(what) => {
                tracing::error!("the recording is given up: {what}");
                (*guard, *lock(&self.running)) = (None, None);
                let end = Some(End::Size);
                return Written { end, turned: false };
            }
        };
        let Writing {
            seconds,
            bytes,
            ring,
            ..
        } = *writing;
        let over = seconds > 0 && writing.begun.elapsed() >= Duration::from_secs(seconds);
        let full = ring == 0 && bytes > 0 && writing.writer.bytes() >= bytes;
        let end = match (over, full) {
            (true, _) => Some(End::Time),
            (false, true) => Some(End::Size),
            _ => None,
        };
        Written { end, turned }
    }

    /// Names and values describing the current recording, for the statistics.
    pub fn lines(&self) -> [(&'static str, u64); 4] {
        let runs = self.runs();
        [
            ("recording", u64::from(runs)),
            ("recording_bytes", self.bytes.load(Relaxed)),
            ("recording_lost", self.lost.load(Relaxed)),
            ("recording_stepped_back", self.shared.stepped.load(Relaxed)),
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
mod tests;
