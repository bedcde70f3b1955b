//! The state shared by all channels: the store, the keys, the table of operations, and the
//! sessions.

use crate::arenas::ArenaPair;
use crate::audit::Audit;
use crate::background::Signal;
use crate::cells::Cells;
use crate::clients::Clients;
use crate::config::{Bytes, Config};
use crate::copies::Copies;
use crate::delivery::Delivery;
use crate::durable::Durable;
use crate::ends::Ends;
use crate::fail::Ended;
use crate::grants::Standing;
use crate::keys::Keys;
use crate::leases::Leases;
use crate::logs::Logs;
use crate::lru::{self, Lru};
use crate::numbers::Numbers;
use crate::probe::Probe;
use crate::published::Published;
use crate::random::random;
use crate::recorder::Recorder;
use crate::session::{Session, Shared};
use crate::signatures::Table;
use crate::space::Space;
use crate::tickets::Tickets;
use crate::told::Accounts;
use crate::viewers::{Administrators, Viewers};
use crate::zone::Zone;
use contract::hello::{Hello, Status};
use grant::Column;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use store::{Budget, ColumnId, NoJournal, Store};

/// What the audit says of a policy whose change it lacks.
const UNNOTED: &str = "a change that was not noted when the keeper ended";

/// Counters of the keeper's activity.
#[derive(Debug, Default)]
pub struct Counters {
    /// Channels currently open.
    pub channels: AtomicU64,
    /// Channels opened since the start.
    pub channels_total: AtomicU64,
    /// Messages received on channels that have been closed.
    pub messages_total: AtomicU64,
    /// Number of these that were answered.
    pub answered_total: AtomicU64,
    /// Channels ended by a panic.
    pub panics_total: AtomicU64,
    /// Successful handshakes.
    pub handshakes_total: AtomicU64,
    /// Leases renewed by clients.
    pub renewals_total: AtomicU64,
    /// Sessions ended by clients.
    pub goodbyes_total: AtomicU64,
    /// Sessions whose lease expired.
    pub leases_over_total: AtomicU64,
    /// Failed handshakes.
    pub handshakes_failed_total: AtomicU64,
    /// Garbage collections started.
    pub collections_total: AtomicU64,
    /// Values collected as garbage.
    pub swept_total: AtomicU64,
}

/// The keeper.
pub struct Keeper {
    /// Its configuration.
    pub config: Config,
    /// The columns.
    pub store: Arc<Store>,
    /// Makes the store persistent, if configured.
    pub durable: Option<Durable>,
    /// Operations by number.
    pub table: Arc<Table>,
    /// The keeper's own keys.
    pub keys: Arc<Keys>,
    /// Proves to clients which zone this is.
    pub(crate) zone: Zone,
    /// The clients authorised to hold a session.
    pub clients: Clients,
    /// What clients' definitions allow.
    pub standing: Standing,
    /// Who can see which columns.
    pub viewers: Viewers,
    /// Restore tickets that have been used.
    pub tickets: Tickets,
    /// What was disclosed of each column.
    pub accounts: Accounts,
    /// The log of what was allowed and refused.
    pub audit: Audit,
    /// Leases of FIDs.
    pub leases: Leases,
    /// Channels whose transactions on ledger tables may have ended.
    pub ends: Ends,
    /// Keys of delivery envelopes.
    pub delivery: Arc<Delivery>,
    /// Cells of the family `rnd_`.
    pub cells: Arc<Cells>,
    /// How busy it is.
    pub(crate) probe: Probe,
    /// Logs of ledger tables.
    pub logs: Logs,
    /// Checkpoints of these logs that anybody may fetch.
    pub(crate) published: Published,
    /// Copies of the store that are under way.
    pub(crate) copies: Arc<Copies>,
    /// Recordings for administrators.
    pub recorder: Recorder,
    /// Counters of its activity.
    pub counters: Counters,
    /// Random number that identifies this run.
    pub incarnation: u64,
    /// Signalled when the file of authorised clients may have changed.
    pub(crate) withdrawn: Arc<Signal>,
    /// Signalled when values use more memory than intended.
    pub(crate) room: Arc<Signal>,
    /// It was logged that memory use is close to `memory_limit`.
    pub(crate) near_limit: AtomicBool,
    /// Memory held by the allocator in addition to values when memory was last returned.
    pub(crate) spare: AtomicUsize,
    /// Signalled when values that are not in memory will be needed.
    pub(crate) ahead: Arc<Signal>,
    numbers: Arc<Numbers>,
    sessions: Mutex<HashMap<u64, Weak<Session>>>,
}

fn note_start(audit: &Audit) -> Result<(), String> {
    let begun = format!("contract {}", contract::VERSION);
    let noted = audit.note("started", "-", begun);
    noted.map_err(|e| e.message.to_string())
}

/// Makes the store persistent, if configured.
fn durable(config: &Config, keys: &Keys, store: &Arc<Store>) -> Result<Option<Durable>, String> {
    if config.data_dir.as_os_str().is_empty() {
        tracing::warn!("no data_dir is configured: ALL VALUES ARE LOST when the keeper ends");
        return Ok(None);
    }
    Durable::open(config, keys.root(), store).map(Some)
}

fn cells(config: &Config, keys: &Keys, store: &Store) -> Result<Cells, String> {
    let cells = Cells::open(&config.data_dir, keys.root(), &keys.standing)?;
    // Otherwise they would drive out the values of columns, which share the memory.
    let most = match config.memory_budget.0 {
        0 => usize::MAX,
        budget => budget / lru::SHARE,
    };
    let cache = |size: Bytes, setting| Lru::new(store.budget(), size.0.min(most), setting);
    Ok(cells.remembering(
        cache(config.cell_cache, "cell_cache"),
        cache(config.answer_cache, "answer_cache"),
    ))
}

fn administrators(config: &Config) -> Administrators {
    Administrators {
        names: config.administrators.clone(),
        quorum: config.recovery_quorum,
    }
}

impl Keeper {
    /// Creates a keeper with the store of its last checkpoint, or an empty one.
    pub fn new(config: Config, keys: Keys, clients: Clients) -> Result<Keeper, String> {
        let budget = Budget::new(config.memory_limit.0, "memory_limit");
        let store = Arc::new(Store::new(budget, Box::new(NoJournal)));
        let room = Arc::new(Signal::default());
        let ring = Arc::clone(&room);
        store.set_bound(config.memory_budget.0, Box::new(move || ring.ring()));
        let durable = durable(&config, &keys, &store)?;
        let zone = Zone::of(&config.evidence, &keys.public, &keys.signing)?;
        zone.warn();
        let standing = Standing::open(&config.data_dir, &keys.standing)?;
        let viewers = Viewers::open(&config.data_dir, &keys.standing, administrators(&config))?;
        let accounts = Accounts::open(&config.data_dir, &keys.standing)?;
        let mut tickets = Tickets::open(&config.data_dir, &keys.standing)?;
        let known = durable.as_ref().map(Durable::audit).unwrap_or_default();
        let audit = Audit::open(&config.data_dir, keys.signing.clone(), known)?;
        tickets.know(audit.used_tickets());
        accounts.goes_on(audit.reservations())?;
        viewers.goes_on(audit.policies(), |number| {
            audit.policy("-", &UNNOTED, number)
        })?;
        note_start(&audit)?;
        let cells = Arc::new(cells(&config, &keys, &store)?);
        viewers.tell_keys(&cells);
        let incarnation = u64::from_le_bytes(random().map_err(|e| e.to_string())?);
        let logs = Logs::default();
        logs.have_ended(durable.as_ref().map_or(&[], Durable::ends));
        Ok(Keeper {
            accounts,
            audit,
            leases: Leases::default(),
            ends: Ends::default(),
            delivery: Arc::new(Delivery::new(incarnation, config.deliver)),
            store,
            cells,
            standing,
            tickets,
            viewers,
            durable,
            table: Arc::new(Table::new()),
            zone,
            keys: Arc::new(keys),
            clients,
            probe: Probe::new(config.probe_bytes.0, config.probe_interval_ms)?,
            logs,
            published: Published::open(&config)?,
            copies: Arc::new(Copies::new(config.store_copies)),
            recorder: Recorder::new(&config.recordings()),
            counters: Counters::default(),
            room,
            withdrawn: Arc::default(),
            near_limit: AtomicBool::new(false),
            spare: AtomicUsize::new(0),
            ahead: Arc::default(),
            incarnation,
            numbers: Arc::new(Numbers::default()),
            sessions: Mutex::new(HashMap::new()),
            config,
        })
    }

    /// Records the name of a column of cells.
    pub fn name_cells(&self, id: &ColumnId, column: &Column) {
        if self.standing.name_of(id).is_none() {
            self.standing.name(column);
        }
    }

    /// Whether backends must wait because the WAL since the last checkpoint has not been replayed.
    pub fn is_recovering(&self) -> bool {
        self.durable.as_ref().is_some_and(Durable::is_recovering)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u64, Weak<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session that a backend wants to join, and whether the backend is its leader.
    pub fn session(&self, hello: &Hello) -> Result<(Arc<Session>, bool), Status> {
        if hello.session == 0 {
            let session = self.begin((hello.database, hello.role));
            return session.map(|s| (s, true)).ok_or(Status::TooManyChannels);
        }
        let found = self.sessions().get(&hello.session).and_then(Weak::upgrade);
        let session = found.ok_or(Status::NoSuchSession)?;
        let pass = session.pass.lock();
        let announced = *pass.unwrap_or_else(PoisonError::into_inner);
        let pass = announced.ok_or(Status::NoSuchSession)?;
        aws_lc_rs::constant_time::verify_slices_are_equal(&pass, &hello.pass)
            .map_err(|_| Status::NoSuchSession)?;
        if session.arenas.open() >= self.config.session_channels as usize {
            return Err(Status::TooManyChannels);
        }
        Ok((session, false))
    }

    fn begin(&self, whose: (u32, u32)) -> Option<Arc<Session>> {
        let limit = self.config.session_memory_limit.0;
        let budget = Budget::within(self.store.budget(), limit, "session_memory_limit");
        let mut sessions = self.sessions();
        let id = loop {
            let id = u64::from_le_bytes(random().ok()?);
            if id != 0 && !sessions.contains_key(&id) {
                break id;
            }
        };
        let session = Arc::new(Session::new(
            id,
            whose,
            budget,
            &self.numbers,
            &self.delivery,
        ));
        sessions.insert(id, Arc::downgrade(&session));
        Some(session)
    }

    /// Returns the values that a channel of a session can refer to, with its own arenas.
    pub fn space(&self, session: &Session, own: Arc<ArenaPair>) -> Space {
        Space {
            store: Arc::clone(&self.store),
            table: Arc::clone(&self.table),
            keys: Arc::clone(&self.keys),
            cells: Arc::clone(&self.cells),
            budget: Arc::clone(&session.budget),
            arenas: Arc::clone(&session.arenas),
            own,
        }
    }

    /// The leader of a session is gone: nobody can join any more, and members get no more answers.
    pub fn end(&self, session: &Session) {
        self.sessions().remove(&session.id);
        self.collect_from(session);
        session.change(|shared| shared.ended = Some(Ended::LeaderGone));
    }

    /// Reads the file of authorised clients again.
    pub fn reload_clients(&self) {
        self.clients.reload();
        self.withdrawn.ring();
    }

    /// Ends the sessions of clients that are no longer authorised.
    pub(crate) fn end_unauthorised(&self) {
        let sessions: Vec<_> = self.sessions().values().filter_map(Weak::upgrade).collect();
        for session in sessions {
            let (Shared { client, .. }, _) = session.shared();
            if let Some(client) = client
                && self.clients.name(&client.key).is_none()
            {
                self.audit.key_withdrawn(&client.name, &client.key);
                tracing::info!(key = %client.key, session = session.id, "key withdrawn: session ended");
                session.change(|shared| {
                    shared.client = None;
                    shared.ended = Some(Ended::KeyWithdrawn);
                });
            }
        }
        // Include clients that currently have no session.
        self.renew_delivery();
    }

    pub(crate) fn renew_delivery(&self) {
        let allowed = self.config.deliver && self.recorder.has_deliveries();
        self.delivery.watch(self.recorder.watch());
        self.delivery.renew(allowed);
    }

    /// Ends the sessions whose clients have not renewed them in time.
    pub(crate) fn end_overdue(&self, now: Instant) {
        let sessions: Vec<_> = self.sessions().values().filter_map(Weak::upgrade).collect();
        for session in sessions {
            let lease = session.lease();
            let over = lease.as_ref().is_some_and(|lease| lease.is_over(now));
            if over && session.end_for_now(Ended::LeaseOver) {
                self.counters.leases_over_total.fetch_add(1, Relaxed);
                tracing::info!(session = session.id, "the session's lease is over");
            }
        }
    }

    /// Makes sessions check again what they are allowed to do.
    pub(crate) fn reconsider(&self) {
        let sessions: Vec<_> = self.sessions().values().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.change(|_| ()));
        self.renew_delivery();
    }

    /// Adds what a session has disclosed to the accounts.
    pub(crate) fn collect_from(&self, session: &Session) {
        let (principal, labels) = session.tallies().take();
        for (label, counts) in labels {
            let provenance = session.provenance.read();
            let origin = provenance
                .unwrap_or_else(PoisonError::into_inner)
                .set(label);
            let name = |column: &ColumnId| self.standing.name_of(column);
            self.accounts.enter(&principal, (&origin, &counts), name);
        }
    }

    /// Like [`Self::collect_from`], for all sessions.
    pub(crate) fn collect(&self) {
        let sessions: Vec<_> = self.sessions().values().filter_map(Weak::upgrade).collect();
        sessions
            .iter()
            .for_each(|session| self.collect_from(session));
    }

    /// Number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions().len()
    }
}
