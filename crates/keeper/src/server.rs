//! The daemon: accepts backends, starts a thread for each channel, and ends them all.
//!
//! Invariants: there are at most `max_channels` threads, plus a few that refuse connections; a
//! panic ends one channel; all channels are closed when [`Server::run`] returns.

use crate::config::Config;
use crate::dispatch::Connection;
use crate::fail;
use crate::keeper::Keeper;
use crate::leases::Progress;
use channel::{Device, HelloError, KeeperEnd, Listener, Pending, Reply, Shutdown};
use contract::hello::{Hello, Status};
use contract::{Kind, VERSION};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time limit for a backend's hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of additional threads that refuse connections.
const REFUSING_MAX: u64 = 16;
/// How long shutdown waits for threads.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Stack size of a channel's thread.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// A listening keeper.
pub struct Server {
    keeper: Arc<Keeper>,
    listener: Listener,
    /// Where channels have their memory, if not each in a memfd.
    device: Option<Arc<Device>>,
    users: Vec<u32>,
    ending: AtomicBool,
    channels: Mutex<HashMap<u64, Shutdown>>,
    empty: Condvar,
    threads: AtomicU64,
    seats: AtomicU64,
    next: AtomicU64,
}

/// One of the channels that may be open.
struct Seat<'a>(&'a AtomicU64);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// IDs of the users that may connect.
pub fn user_ids(config: &Config) -> Result<Vec<u32>, String> {
    let mut ids = vec![nix::unistd::geteuid().as_raw()];
    for user in &config.users {
        if let Ok(id) = user.parse() {
            ids.push(id);
            continue;
        }
        match nix::unistd::User::from_name(user) {
            Ok(Some(found)) => ids.push(found.uid.as_raw()),
            Ok(None) => tracing::warn!(user, "there is no such user; nobody connects as it"),
            Err(error) => return Err(format!("cannot look up user {user}: {error}")),
        }
    }
    Ok(ids)
}

/// The configured device for the memory of channels. Opened before the keeper gives up its rights.
pub fn device(config: &Config) -> Result<Option<Device>, String> {
    let path = &config.channel_memory;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let device =
        Device::open(path).map_err(|e| format!("channel_memory {}: {e}", path.display()))?;
    if !device.is_fixed() {
        tracing::warn!(
            path = %path.display(),
            "channel_memory is no device: whoever shortens the file ends the keeper"
        );
    }
    if device.ranges() < config.max_channels as usize {
        tracing::info!(channels = device.ranges(), "channel_memory has room for");
    }
    Ok(Some(device))
}

impl Server {
    /// Listens on the configured socket for these users ([`user_ids`]). The device is that of the
    /// configuration ([`device`]).
    pub fn bind(
        keeper: Keeper,
        users: Vec<u32>,
        device: Option<Device>,
    ) -> Result<Arc<Server>, String> {
        let config = &keeper.config;
        let listener = Listener::bind(&config.socket, config.socket_mode.0)
            .map_err(|e| format!("cannot listen on {}: {e}", config.socket.display()))?;
        let keeper = Arc::new(keeper);
        crate::room::keep(&keeper)?;
        crate::ahead::keep(&keeper)?;
        crate::lease::keep(&keeper)?;
        crate::scribe::keep(&keeper)?;
        crate::herald::keep(&keeper)?;
        crate::teller::keep(&keeper)?;
        Ok(Arc::new(Server {
            keeper,
            listener,
            device: device.map(Arc::new),
            users,
            ending: AtomicBool::new(false),
            channels: Mutex::new(HashMap::new()),
            empty: Condvar::new(),
            threads: AtomicU64::new(0),
            seats: AtomicU64::new(0),
            next: AtomicU64::new(0),
        }))
    }

    /// The keeper.
    pub fn keeper(&self) -> &Arc<Keeper> {
        &self.keeper
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<u64, Shutdown>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves until [`Server::shut_down`].
    pub fn run(self: &Arc<Server>) -> Result<(), String> {
        let result = loop {
            match self.listener.accept() {
                _ if self.ending.load(Ordering::Acquire) => break Ok(()),
                Ok(pending) => self.start(pending),
                // For example out of descriptors: other channels will close theirs.
                Err(error) => {
                    tracing::error!(%error, "cannot accept a backend");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        };
        self.end_channels();
        let _ = self.keeper.recorder.stop(recording::End::Keeper);
        // Failures are logged.
        let _ = crate::teller::write(&self.keeper);
        // A channel's thread may still hold a reference to the server when the process exits.
        self.listener.unlink();
        result
    }

    /// Makes [`Server::run`] return.
    pub fn shut_down(&self) {
        self.ending.store(true, Ordering::Release);
        self.listener.close();
    }

    fn end_channels(&self) {
        let channels = self.channels();
        for shutdown in channels.values() {
            shutdown.shutdown();
        }
        let waited = self
            .empty
            .wait_timeout_while(channels, END_TIMEOUT, |channels| !channels.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        if !waited.0.is_empty() {
            tracing::warn!(channels = waited.0.len(), "channels did not end in time");
        }
    }

    fn start(self: &Arc<Server>, pending: Pending) {
        let max = u64::from(self.keeper.config.max_channels);
        let threads = self.threads.fetch_add(1, Ordering::AcqRel);
        if threads >= max + REFUSING_MAX {
            self.threads.fetch_sub(1, Ordering::AcqRel);
            let _ = pending.refuse(Status::TooManyChannels);
            return;
        }
        let server = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("channel".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                server.serve_guarded(pending);
                server.threads.fetch_sub(1, Ordering::AcqRel);
            });
        if let Err(error) = started {
            self.threads.fetch_sub(1, Ordering::AcqRel);
            tracing::error!(%error, "cannot start a thread for a backend");
        }
    }

    /// Serves one channel from beginning to end. A panic ends it.
    fn serve_guarded(&self, pending: Pending) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(number, pending)));
        if served.is_err() {
            self.keeper
                .counters
                .panics_total
                .fetch_add(1, Ordering::Relaxed);
            tracing::error!(channel = number, "the channel ended by a panic");
        }
        let mut channels = self.channels();
        if channels.remove(&number).is_some() {
            self.keeper.delivery.leave(number);
            self.keeper
                .counters
                .channels
                .fetch_sub(1, Ordering::Relaxed);
        }
        if channels.is_empty() {
            self.empty.notify_all();
        }
    }

    fn serve(&self, number: u64, mut pending: Pending) {
        let hello = match self.greet(&mut pending) {
            Ok(hello) => hello,
            Err(Some(Status::Recovering)) => {
                let _ = pending.refuse(Status::Recovering);
                return;
            }
            Err(Some(status)) => {
                tracing::warn!(?status, "refused a backend");
                let _ = pending.refuse(status);
                return;
            }
            Err(None) => return,
        };
        let Some(_seat) = self.take_seat() else {
            tracing::warn!(pid = hello.pid, "refused a backend: too many channels");
            let _ = pending.refuse(Status::TooManyChannels);
            return;
        };
        let mut connection = match Connection::open(&self.keeper, &hello) {
            Ok(connection) => connection,
            Err(status) => {
                tracing::warn!(?status, pid = hello.pid, "refused a backend");
                let _ = pending.refuse(status);
                return;
            }
        };
        let welcome = connection.welcome();
        match pending.accept(welcome, self.device.as_ref()) {
            Ok(mut end) => {
                end.linger(Duration::from_micros(self.keeper.config.linger_us));
                if self.admit(number, &end, connection.open_to_client()) {
                    connection.may_lease(number, Progress::new(end.backlog()));
                    let session = welcome.session;
                    tracing::debug!(channel = number, session, pid = hello.pid, "open");
                    let messages = converse(end, connection);
                    let total = &self.keeper.counters.messages_total;
                    total.fetch_add(messages, Ordering::Relaxed);
                    tracing::debug!(channel = number, messages, "closed");
                }
            }
            Err(error) => tracing::warn!(%error, "could not welcome a backend"),
        }
    }

    /// Takes one of `max_channels` seats.
    fn take_seat(&self) -> Option<Seat<'_>> {
        let max = u64::from(self.keeper.config.max_channels);
        let before = self.seats.fetch_add(1, Ordering::AcqRel);
        // The seat is released at once if there are too many.
        Some(Seat(&self.seats)).filter(|_| before < max)
    }

    /// Identifies the backend. If it is refused, returns the status to be sent, if any.
    fn greet(&self, pending: &mut Pending) -> Result<Hello, Option<Status>> {
        let (hello, peer) = pending.hello(HELLO_TIMEOUT).map_err(|error| {
            if !matches!(error, HelloError::Io(_)) {
                tracing::warn!(%error, "a stranger connected");
            }
            None
        })?;
        if !self.users.contains(&peer.uid) {
            return Err(Some(Status::WrongUser));
        }
        if hello.version != VERSION {
            return Err(Some(Status::WrongVersion));
        }
        // The recovery worker is connected to no database.
        if hello.database != 0 && self.keeper.is_recovering() {
            return Err(Some(Status::Recovering));
        }
        Ok(hello)
    }

    /// Registers the channel, unless there are too many or the server is shutting down.
    fn admit(&self, number: u64, end: &KeeperEnd, open: Arc<AtomicBool>) -> bool {
        let mut channels = self.channels();
        if self.ending.load(Ordering::Acquire) {
            return false;
        }
        channels.insert(number, end.shutdown_handle());
        self.keeper.delivery.join(number, end.period(), open);
        let counters = &self.keeper.counters;
        counters.channels.fetch_add(1, Ordering::Relaxed);
        counters.channels_total.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Answers requests until the channel ends. Returns the number of requests.
fn converse(mut end: KeeperEnd, mut connection: Connection) -> u64 {
    let mut buffer = Vec::new();
    let mut messages = 0;
    let words = end.period();
    loop {
        connection.dealt_with(end.taken());
        end.look_every(connection.looks_every());
        let (header, body, mut reply) = match end.request(&mut buffer) {
            Ok(request) => request,
            Err(channel::Error::Closed) => return messages,
            Err(error) => {
                tracing::warn!(%error, "channel closed");
                return messages;
            }
        };
        messages += 1;
        let Some(kind) = Kind::from_u16(header.kind) else {
            return messages;
        };
        let handled = connection.handle(kind, body);
        if let Some(owed) = connection.owed() {
            words.owe(owed);
        }
        if let Some(failed) = connection.failed() {
            words.fail(failed);
        }
        let sent = match handled {
            None => {
                if kind == Kind::Release {
                    // The last message of a statement, which is not in the buffer itself: what is there
                    // is of the statement. Freed memory is overwritten.
                    buffer = Vec::new();
                }
                continue;
            }
            Some(Ok(())) => reply.answer(header.sequence, &[connection.reply()]),
            Some(Err(error)) => tell(&mut reply, header.sequence, &error),
        };
        let sent = match sent {
            Err(channel::Error::TooLong) => {
                tell(&mut reply, header.sequence, &fail::answer_too_long())
            }
            sent => sent,
        };
        if sent.is_err() {
            return messages;
        }
        // A backend that commits waits for the disk next.
        if matches!(kind, Kind::Confirm | Kind::LedgerSeal) {
            reply.give_way();
        }
        connection.settle();
        connection.answered_so(kind, body);
    }
}

fn tell(reply: &mut Reply<'_>, sequence: u32, error: &values::Error) -> Result<(), channel::Error> {
    reply.error(sequence, &fail::body(error))
}
