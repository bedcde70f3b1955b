//! One connection as a state machine without I/O: its input is frames from client and server, its
//! output is bytes for both.
//!
//! Invariants: every message that the server answers has an entry in the queue; responses reach the
//! client in the order of its messages; text that has not been classified by the analysis never
//! reaches the server in a session with Confide enabled.
mod again;
mod analysis;
mod copy;
mod cursors;
mod echo;
mod encoding;
mod explain;
mod extended;
mod internal;
mod late;
mod lease;
mod nearest;
mod policy;
mod queue;
mod recode;
mod refuse;
mod restore;
mod revive;
mod rows;
mod server;
mod simple;
mod statement;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use client::{Failure, Session};
use rewrite::{ColumnType, Schema};

use crate::config::Pooling;
use crate::dial::Kind;
use crate::keys::Key;
use crate::shared::Shared;
use crate::wire::{Malformed, backend, frame};
use queue::Expect;
use statement::{Portal, Statement};
use view::View;

/// Why a connection ends.
#[derive(Debug)]
pub enum Stop {
    /// One side has closed it normally.
    Closed,
    /// The client is told the reason.
    Fatal(Failure),
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Fatal(Failure::new("08P01", malformed.to_string()))
    }
}

/// Frames up to this length are copied.
const COPIED_MAX: usize = 1024;

type Step<T = ()> = Result<T, Stop>;

/// Whether a client's frame has been processed.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Flow {
    /// It has been processed.
    Done,
    /// It must be retried when [`Core::wait`] is over.
    Wait,
}

/// What the client's next frame waits for.
enum Wait {
    Nothing,
    /// A task of the proxy.
    Task,
    /// All answers.
    Drain,
    /// The parameter types of a statement.
    Params(Arc<Statement>),
    /// The server's CopyInResponse.
    CopyStart,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Phase {
    /// Authentication is relayed.
    Startup,
    /// The server is ready; the proxy prepares the session.
    Preparing,
    Running,
}

/// The state of a connection.
pub struct Core {
    shared: Arc<Shared>,
    database: String,
    user: String,
    phase: Phase,
    /// The proxy has authenticated the client; the server must not ask it for anything.
    authenticated: bool,
    /// Bytes to send to the client.
    pub to_client: BytesMut,
    /// Bytes to send to the server.
    pub to_server: BytesMut,
    held: Option<Bytes>,
    wait: Wait,
    queue: VecDeque<Expect>,
    /// Status of the last ReadyForQuery.
    status: u8,
    /// An error was reported: the client's messages are dropped until Sync.
    discarding: bool,
    /// Messages of the extended protocol have been sent since the last Sync.
    pipeline: bool,
    /// A statement that changes what the analysis depends on is being executed.
    must_drain: bool,
    restore: restore::Restore,
    again: again::Again,
    late: late::Late,
    /// Parameters that the next text's analysis must seal regardless of what they are combined
    /// with.
    sealing: Vec<u32>,

    /// The database has Confide.
    enabled: bool,
    /// The catalogs show plain types.
    plain_catalogs: bool,
    session: Session,
    /// The session with the keeper was put off.
    unmet: bool,
    /// What the server says about its kind, and its position in the configuration.
    kind: Kind,
    place: usize,
    /// The number of the connection to the server: more than 0 if the session was continued on another.
    link: u64,
    key: Key,
    /// The client's name for the server, and what texts end with that have it.
    name: String,
    signature: String,
    /// The server's process knows that this transaction is the client's.
    signed: bool,
    settings: revive::Settings,
    /// The connection to the server has ended, and the session will be continued on another.
    lost: Option<Box<revive::Lost>>,
    encoding: encoding::ClientEncoding,
    /// How much of `to_client` and `to_server` is in the client's encoding.
    converted: (usize, usize),
    /// The server interprets backslashes in `'…'` as escapes.
    escapes: bool,
    /// It did so at some time: the end of a transaction may restore that.
    escaped_once: bool,
    /// `escapes` may be out of date: the server reports changes at the end of the pipeline.
    escapes_stale: bool,
    view: View,
    schema: Arc<Schema>,
    /// The types that the session knows.
    types: Arc<Vec<(u32, ColumnType)>>,
    /// A statement of the proxy may be left on the server.
    litter: bool,
    registry: rewrite::Prepared,
    cursors: cursors::Cursors,
    memo: rewrite::Memo,
    task: Option<internal::Task>,
    /// The proxy acts as the client.
    script: Option<Box<recode::Script>>,
    /// What has already been tried for the current frame.
    tried: Tried,

    /// Parameter types reported by the server for texts under this schema.
    known_types: HashMap<(String, Vec<u32>), Vec<u32>>,
    statements: HashMap<String, Arc<Statement>>,
    portals: HashMap<String, Arc<Portal>>,
    copy_in: Option<copy::In>,
    copy_out: Option<copy::Out>,
    copy_refused: copy::Refused,
    /// Our error, which replaces the server's answer to CopyFail, and the line it is about.
    override_error: Option<(Failure, String)>,
}

/// What was tried for a frame, and how it failed.
#[derive(Default)]
struct Tried {
    refresh: bool,
    handshake: bool,
    failure: Option<Failure>,
}

impl Core {
    /// Creates a connection whose startup packet has been sent to the server.
    pub fn new(shared: Arc<Shared>, database: &str, user: &str) -> Core {
        let session = session(&shared);
        let name = crate::keys::name();
        let key = Key::new(shared.keys.clone());
        Core {
            view: View::new(database),
            shared,
            database: database.to_owned(),
            user: user.to_owned(),
            phase: Phase::Startup,
            authenticated: false,
            to_client: BytesMut::new(),
            to_server: BytesMut::new(),
            held: None,
            wait: Wait::Nothing,
            queue: VecDeque::new(),
            status: b'I',
            discarding: false,
            pipeline: false,
            must_drain: false,
            restore: restore::Restore::default(),
            again: again::Again::default(),
            late: late::Late::default(),
            sealing: Vec::new(),
            enabled: false,
            plain_catalogs: false,
            session,
            unmet: false,
            kind: Kind::default(),
            place: 0,
            link: 0,
            key,
            signature: format!("\n/*confide:own1.{name}*/"),
            name,
            signed: false,
            settings: revive::Settings::default(),
            lost: None,
            encoding: encoding::ClientEncoding::Utf8,
            converted: (0, 0),
            escapes: false,
            escaped_once: false,
            escapes_stale: false,
            schema: Arc::default(),
            types: Arc::default(),
            litter: false,
            registry: rewrite::Prepared::default(),
            cursors: cursors::Cursors::default(),
            memo: rewrite::Memo::default(),
            task: None,
            script: None,
            tried: Tried::default(),
            known_types: HashMap::new(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            copy_in: None,
            copy_out: None,
            copy_refused: copy::Refused::Plain,
            override_error: None,
        }
    }

    /// Sets whether the catalogs show plain types instead of protected ones.
    #[must_use]
    pub fn showing_plain(mut self, plain: bool) -> Core {
        self.plain_catalogs = plain;
        self
    }

    /// Sets the server's position in the configuration.
    #[must_use]
    pub fn at(mut self, place: usize) -> Core {
        self.place = place;
        self
    }

    /// The proxy has authenticated the client, and the server the proxy: from here on neither asks
    /// for authentication, and no message of the client is an answer to it.
    #[must_use]
    pub fn authenticated(mut self, said: BytesMut) -> Core {
        self.authenticated = true;
        self.to_client = said;
        frame::write(&mut self.to_client, b'R', |b| b.put_i32(0));
        self
    }

    /// Whether there is a pooler between the proxy and the server.
    fn pooled(&self) -> bool {
        self.shared.config.upstream_pooling == Pooling::Session
    }

    /// A text is about to be sent.
    fn sign_text(&mut self, text: &mut analysis::Text) {
        let signature = self.signature(text.discards());
        text.sql.push_str(signature);
        text.changed |= !signature.is_empty();
        self.signed = true;
    }

    /// What a text ends with: where a pooler may give the connection to another process of the server, and
    /// before DISCARD ALL, after which the process would be anybody's.
    fn signature(&self, discards: bool) -> &str {
        match discards || self.pooled() {
            true => &self.signature,
            false => "",
        }
    }

    /// Processes complete frames received from the client, as long as the connection can proceed
    /// without the server.
    pub fn client_input(&mut self, input: &mut BytesMut) -> Step {
        self.mark();
        self.listen();
        let step = self.next_frames(input);
        self.hear()?;
        self.convert()?;
        step
    }

    fn next_frames(&mut self, input: &mut BytesMut) -> Step {
        loop {
            let early = self.phase == Phase::Startup && self.authenticated;
            let waits = self.phase == Phase::Preparing || self.again.waits() || self.lost.is_some();
            if early || waits || !self.may_retry() {
                return Ok(());
            }
            let next = match self.held.take() {
                Some(frame) => frame,
                None if self.again.has_rest() => match self.again.next() {
                    None => return Ok(()),
                    Some(frame) => {
                        self.tried = Tried::default();
                        frame
                    }
                },
                None if self.script.is_some() => match self.fed() {
                    None => return Ok(()),
                    Some(frame) => {
                        self.tried = Tried::default();
                        frame
                    }
                },
                None => {
                    let max = self.shared.config.max_message_bytes;
                    match frame::first(input, max)? {
                        None => return Ok(()),
                        Some(length) => {
                            self.tried = Tried::default();
                            let frame = taken(input, length);
                            let tag = frame.first().copied().unwrap_or_default();
                            match self.utf8_of_client(frame)? {
                                Ok(frame) => {
                                    self.keep(&frame);
                                    frame
                                }
                                Err(_) if self.discarding => continue,
                                Err(failure) => {
                                    self.refuse_strings(tag, failure)?;
                                    continue;
                                }
                            }
                        }
                    }
                }
            };
            self.wait = Wait::Nothing;
            match self.on_client(&next)? {
                Flow::Done => self.tried = Tried::default(),
                Flow::Wait => self.held = Some(next),
            }
        }
    }

    /// Processes complete frames received from the server.
    pub fn server_input(&mut self, input: &mut BytesMut) -> Step {
        self.mark();
        self.listen();
        while let Some(length) = frame::first(input, self.shared.config.max_message_bytes)? {
            let before = self.to_client.len();
            let frame = input.get_mut(..length).unwrap_or_default();
            match self.utf8_of_server(frame)? {
                Some(mut converted) => self.on_server(&mut converted)?,
                None => self.on_server(frame)?,
            }
            input.advance(length);
            self.told(before)?;
        }
        self.hear()?;
        self.convert()
    }

    /// Tells the client why the connection ends. Unfinished work is not sent; the server rolls it
    /// back.
    pub fn tell_end(&mut self, failure: &Failure) {
        self.mark();
        self.to_server.clear();
        backend::error(&mut self.to_client, "FATAL", failure);
        self.converted.1 = 0;
        // A message without strings to convert is none that fails.
        let _ = self.convert();
    }

    /// Whether a client's frame is held back, so that reading more is pointless.
    pub fn blocked(&self) -> bool {
        let again = self.again.waits() || self.again.has_rest();
        again
            || self.lost.is_some()
            || self.held.is_some()
            || self.phase == Phase::Preparing
            || self.script.is_some()
    }

    /// Whether nothing is in progress.
    pub fn idle(&self) -> bool {
        self.phase == Phase::Running
            && self.queue.is_empty()
            && self.status == b'I'
            && !self.pipeline
            && self.held.is_none()
            && !self.again.has_rest()
            && self.script.is_none()
    }

    fn may_retry(&self) -> bool {
        if self.held.is_none() {
            return true;
        }
        let over = self.queue.is_empty() || self.discarding;
        match &self.wait {
            Wait::Nothing => true,
            Wait::Task => self.task.is_none(),
            Wait::Drain => self.queue.is_empty(),
            Wait::Params(statement) => statement.params.get().is_some() || over,
            Wait::CopyStart => self.copy_in.is_some() || over,
        }
    }

    fn wait_for(&mut self, wait: Wait) -> Flow {
        self.wait = wait;
        Flow::Wait
    }

    /// Processes one frame from the client.
    fn on_client(&mut self, frame: &Bytes) -> Step<Flow> {
        let tag = frame.first().copied().unwrap_or(0);
        if self.phase == Phase::Startup {
            // Passwords and SASL are exchanged between client and server.
            self.to_server.extend_from_slice(frame);
            return Ok(Flow::Done);
        }
        if tag == b'X' {
            self.leave();
            self.to_server.extend_from_slice(frame);
            return Err(Stop::Closed);
        }
        if self.discarding && tag != b'S' {
            return Ok(Flow::Done);
        }
        if self.awaits_rows(tag) == Flow::Wait {
            return Ok(Flow::Wait);
        }
        if matches!(tag, b'Q' | b'P' | b'B' | b'F') && self.renew() == Flow::Wait {
            return Ok(Flow::Wait);
        }
        match tag {
            b'Q' => self.on_query(frame),
            b'P' => self.on_parse(frame),
            b'B' => self.on_bind(frame),
            b'D' => self.on_describe(frame),
            b'E' => self.on_execute(frame),
            b'C' => self.on_close(frame),
            b'H' => {
                self.to_server.extend_from_slice(frame);
                Ok(Flow::Done)
            }
            b'S' => {
                self.on_sync(frame);
                Ok(Flow::Done)
            }
            b'd' | b'c' | b'f' => self.on_copy_input(tag, frame),
            b'F' => self.on_function_call(frame),
            _ => Err(Stop::Fatal(Failure::new(
                "08P01",
                format!("invalid frontend message type {tag}"),
            ))),
        }
    }

    fn on_sync(&mut self, frame: &Bytes) {
        self.to_server.extend_from_slice(frame);
        self.pipeline = false;
        self.discarding = false;
        self.synced();
        // During COPY the server ignores Sync.
        if !self.copy_in.as_ref().is_some_and(|copy| copy.extended) {
            self.queue.push_back(Expect::Sync);
        }
    }

    /// Tells the client that it may proceed, after the preparation.
    fn release(&mut self) {
        self.phase = Phase::Running;
        backend::ready(&mut self.to_client, self.status);
    }
}

/// A session before the handshake.
fn session(shared: &Shared) -> Session {
    let mut session = Session::default();
    session.soft.clone_from(&shared.soft);
    session.fits = shared.config.fit_values;
    session
}

/// Takes a frame out of the buffer. A short one is copied: a frame that is kept while its statement runs
/// would otherwise keep the whole buffer, and the next read would need another.
fn taken(input: &mut BytesMut, length: usize) -> Bytes {
    match input.get(..length).filter(|_| length <= COPIED_MAX) {
        Some(frame) => {
            let frame = Bytes::copy_from_slice(frame);
            input.advance(length);
            frame
        }
        None => input.split_to(length).freeze(),
    }
}

/// Frees the memory of a buffer that has become large.
pub fn shrink(buffer: &mut BytesMut) {
    if !buffer.has_remaining() && buffer.capacity() > 256 * 1024 {
        *buffer = BytesMut::new();
    }
}
