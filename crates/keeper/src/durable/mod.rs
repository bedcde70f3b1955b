//! Values that outlive the keeper (docs/durability.md): redo records for PostgreSQL's WAL,
//! checkpoints in a vault, and the phase between start and service.
//!
//! The formats of redo records and the vault are defined in crates `redo` and `vault`; permissions
//! are checked in `dispatch::recovery`.
//!
//! Invariants: the keeper serves only after the recovery worker has confirmed that it has sent
//! everything since the last checkpoint; on a standby it produces no records; a checkpoint at an
//! LSN contains the effects of all redo records before that LSN; a failed checkpoint changes
//! nothing that the next one does not rewrite.

mod backup;
mod checkpoint;
mod history;
mod leased;
mod lineage;
mod meta;
mod pages;
mod redone;

pub use backup::accept_backup;

use crate::config::Config;
use crate::logs::End;
use crate::said::{Heard, Logged, Said};
use crate::used::Used;
use channel::hidden;
use channel::secret::Secret;
use contract::{Fid, message};
use history::History;
use leased::Open;
use ledger::audit::Head;
use lineage::Lineage;
use meta::Meta;
use redo::{Opener, Order, Record, Sealer};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Partition, Store};
use values::Error;
use vault::{CounterFile, Directory, Freshness, Index, TpmCounter, Vault, VaultKey};
use zeroize::Zeroizing;

/// The durable part of a store.
pub struct Durable {
    place: Place,
    sealer: Sealer,
    /// Random identifier of the store.
    id: u64,
    mode: AtomicU8,
    system: AtomicU64,
    position: AtomicU64,
    timeline: AtomicU32,
    /// LSN up to which redo records have been applied.
    applied: AtomicU64,
    /// End of the audit log at the last checkpoint before startup.
    audit: Head,
    /// Ends of transactions on ledger tables at that checkpoint.
    ends: Vec<End>,
    /// What of owners' and definitions' words the WAL has.
    pub said: Logged,
    state: Mutex<State>,
    /// Locked while this keeper runs.
    _lock: File,
}

struct State {
    /// `None` after a failure: it must be reopened.
    vault: Option<Vault>,
    opener: Opener,
    history: History,
    lineage: Lineage,
    leases: Open,
    applied: u64,
    skipped: u64,
}

/// Location of the vault.
struct Place {
    directory: PathBuf,
    freshness: Counter,
    compress: bool,
    root: Arc<Secret<32>>,
    vault: VaultKey,
    index: Arc<Index>,
}

/// Mode of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Mode {
    /// Waits for the WAL since its checkpoint.
    Recovers = message::STANDING_RECOVERS,
    /// Serves a primary.
    Serves = message::STANDING_SERVES,
    /// Serves a standby and follows its replay of the WAL.
    Follows = message::STANDING_FOLLOWS,
}

/// Kind of freshness counter.
enum Counter {
    File(PathBuf),
    Tpm(PathBuf, u32),
}

impl Counter {
    fn open(&self) -> Box<dyn Freshness> {
        match self {
            Counter::File(path) => Box::new(CounterFile::new(path)),
            Counter::Tpm(device, index) => Box::new(TpmCounter::new(device, *index)),
        }
    }
}

/// What the recovery worker is told first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The mode of operation.
    pub mode: Mode,
    /// Timeline of the later of the two positions.
    pub timeline: u32,
    /// LSN of the last checkpoint.
    pub position: u64,
    /// LSN up to which redo records have been applied.
    pub applied: u64,
    /// The store's identifier.
    pub store: u64,
}

impl Standing {
    /// A keeper without a store needs no WAL.
    pub const VOLATILE: Standing = Standing {
        mode: Mode::Serves,
        timeline: 0,
        position: 0,
        applied: 0,
        store: 0,
    };
}

/// A position in the history of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The cluster's system identifier.
    pub system: u64,
    /// The timeline.
    pub timeline: u32,
    /// The LSN.
    pub position: u64,
}

impl Place {
    fn of(config: &Config, root: &Arc<Secret<32>>) -> Result<Place, String> {
        let directory = config.data_dir.clone();
        let given = |path: &Path| !path.as_os_str().is_empty();
        let freshness = if given(&config.freshness_tpm) {
            Counter::Tpm(config.freshness_tpm.clone(), config.freshness_tpm_index)
        } else {
            Counter::File(config.freshness())
        };
        let vault = hidden::keys(|| VaultKey::new(root));
        Ok(Place {
            directory,
            freshness,
            compress: config.compress_at_rest,
            root: Arc::clone(root),
            vault: vault.map_err(|full| full.to_string())?,
            index: Arc::default(),
        })
    }

    fn open(&self) -> Result<(Vault, Meta), String> {
        let files = Directory::open(&self.directory).map_err(|e| e.to_string())?;
        let counter = self.freshness.open();
        let mut vault =
            Vault::open(Box::new(files), counter, self.vault.clone()).map_err(|e| e.to_string())?;
        vault.compress(self.compress);
        vault.serve(&self.index);
        let meta = Meta::decode(vault.meta()).ok_or("the manifest's content is malformed")?;
        Ok((vault, meta))
    }
}

/// Two keepers with the same directory would remove each other's files.
fn lock(directory: &Path) -> Result<File, String> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory).map_err(|e| e.to_string())?;
    let file = File::create(directory.join("lock")).map_err(|e| e.to_string())?;
    file.try_lock()
        .map_err(|_| "another keeper uses this directory".to_owned())?;
    Ok(file)
}

fn other_cluster(ours: u64, theirs: u64) -> Error {
    Error::new(
        b"55000",
        "confide: the keeper's store belongs to another cluster",
    )
    .detail(format!(
        "The store is of the cluster with system identifier {ours}, this one has {theirs}."
    ))
    .hint("Give each cluster a keeper with a data directory of its own.")
}

fn not_recovering() -> Error {
    Error::new(b"55000", "confide: the keeper is not being recovered")
}

impl State {
    fn apply(
        &mut self,
        store: &Store,
        order: Order,
        record: &Record,
        before_freeing: &dyn Fn(),
    ) -> Result<(), Error> {
        if matches!(
            record,
            Record::Sweep(_) | Record::Drop(_) | Record::Lease(_)
        ) {
            before_freeing();
        }
        match record {
            Record::Partition(partition) => redone::partition(store, partition)?,
            Record::Sweep(sweep) => {
                for fid in sweep.iter() {
                    if !self.history.set(order, fid, 1).is_empty() {
                        store.sweep(Fid(fid));
                    }
                }
            }
            Record::Drop(number) => {
                store.drop_partition(*number);
            }
            Record::Lease(lease) => self.apply_lease(store, order, lease)?,
            // Not the store's.
            Record::Policy(_) | Record::Used(_) => {}
            Record::Promotion(promoted) => {
                for run in promoted.runs() {
                    for part in self.history.set(order, run.first, run.count) {
                        self.skipped += redone::values(store, &run, part)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Durable {
    /// Opens the vault and loads the store from it.
    ///
    /// # Errors
    /// They name the directory and the problem.
    pub fn open(config: &Config, root: &Arc<Secret<32>>, store: &Store) -> Result<Durable, String> {
        let place = Place::of(config, root)?;
        Durable::open_at(place, store)
            .map_err(|e| format!("data directory {}: {e}", config.data_dir.display()))
    }

    fn open_at(place: Place, store: &Store) -> Result<Durable, String> {
        let held = lock(&place.directory)?;
        let (vault, meta) = place.open()?;
        store.set_backing(Arc::new(pages::Pages::of(&place)?));
        load(&vault, &meta, store)?;
        let made = hidden::keys(|| (Sealer::new(&place.root), Opener::new(&place.root)));
        let (sealer, mut opener) = made.map_err(|full| full.to_string())?;
        let mut sealer = sealer.map_err(|e| e.to_string())?;
        sealer.compress(place.compress);
        let id = match meta.store {
            0 => u64::from_le_bytes(crate::random::random().map_err(|e| e.to_string())?).max(1),
            id => id,
        };
        let mut leases = Open::default();
        for leased in &meta.leases {
            leases.add(leased).map_err(|e| e.message.to_string())?;
        }
        sealer.bind(id);
        opener.bind(id);
        Ok(Durable {
            sealer,
            id,
            mode: AtomicU8::new(Mode::Recovers as u8),
            system: AtomicU64::new(meta.system),
            position: AtomicU64::new(meta.position),
            timeline: AtomicU32::new(meta.timeline),
            applied: AtomicU64::new(meta.position),
            audit: meta.audit,
            ends: meta.ends,
            said: Logged::up_to(meta.said),
            state: Mutex::new(State {
                vault: Some(vault),
                opener,
                history: History::after(meta.generation),
                lineage: Lineage::after(meta.run, meta.sent),
                leases,
                applied: 0,
                skipped: 0,
            }),
            place,
            _lock: held,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mode(&self) -> Mode {
        const SERVES: u8 = Mode::Serves as u8;
        const FOLLOWS: u8 = Mode::Follows as u8;
        match self.mode.load(Ordering::Acquire) {
            SERVES => Mode::Serves,
            FOLLOWS => Mode::Follows,
            _ => Mode::Recovers,
        }
    }

    /// End of the audit log at the last checkpoint before startup.
    pub fn audit(&self) -> Head {
        self.audit
    }

    /// Ends of transactions on ledger tables, as the last checkpoint before startup has them.
    pub fn ends(&self) -> &[End] {
        &self.ends
    }

    /// Whether the keeper must not serve yet.
    pub fn is_recovering(&self) -> bool {
        self.mode() == Mode::Recovers
    }

    /// The store's random identifier, shared by its copies.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the keeper serves a standby.
    pub fn follows(&self) -> bool {
        self.mode() == Mode::Follows
    }

    /// LSN of the last checkpoint.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// The store's identifier.
    pub fn store(&self) -> u64 {
        self.id
    }

    /// The state of the store, if it belongs to this cluster.
    pub fn standing(&self, system: u64) -> Result<Standing, Error> {
        match self.system.load(Ordering::Acquire) {
            0 => {}
            ours if ours == system => {}
            ours => return Err(other_cluster(ours, system)),
        }
        Ok(Standing {
            mode: self.mode(),
            timeline: self.timeline.load(Ordering::Acquire),
            position: self.position(),
            applied: self.applied.load(Ordering::Acquire),
            store: self.id,
        })
    }

    /// Seals the record of a new partition.
    pub fn log_partition(&self, number: u32, of: &Partition) -> Result<Vec<u8>, Error> {
        let key = of.key().ok_or_else(store::bad_segment)?;
        let (column, _) = of.column().unwrap_or_default();
        let partition = redo::Partition {
            number,
            database: key.database,
            relation: key.relation,
            attribute: key.attribute,
            layout: meta::layout_code(key.layout, of.is_indexed()),
            column,
        };
        self.sealer.partition(&partition).map_err(of_redo)
    }

    /// Seals the record of a promotion.
    pub fn log_promotion(&self, promotion: redo::Promotion) -> Result<Vec<u8>, Error> {
        self.sealer.promotion(promotion).map_err(of_redo)
    }

    /// Seals the record of a promotion by runs.
    pub fn log_runs(&self, runs: &redo::Runs) -> Result<Vec<u8>, Error> {
        self.sealer.runs(runs).map_err(of_redo)
    }

    /// Seals the record of a lease. Returns its place in the history, too.
    pub fn log_lease(&self, lease: &redo::Lease) -> Result<(Order, Vec<u8>), Error> {
        self.sealer.lease(lease).map_err(of_redo)
    }

    /// Seals the record of a sweep.
    pub fn log_sweep(&self, sweep: &redo::Sweep) -> Result<Vec<u8>, Error> {
        self.sealer.sweep(sweep).map_err(of_redo)
    }

    /// Seals the record of a dropped partition.
    pub fn log_drop(&self, partition: u32) -> Result<Vec<u8>, Error> {
        self.sealer.drop(partition).map_err(of_redo)
    }

    /// Seals what owners and definitions said.
    pub fn log_policy(&self, said: &Said) -> Result<Vec<u8>, Error> {
        self.sealer.policy(&said.encode()).map_err(of_redo)
    }

    /// Seals what is used of tickets and budgets.
    pub fn log_used(&self, used: &Used) -> Result<Vec<u8>, Error> {
        self.sealer.used(&used.encode()).map_err(of_redo)
    }

    /// Applies a redo record. Gives what it says that is not the store's.
    pub fn redo(
        &self,
        store: &Store,
        record: &[u8],
        before_freeing: &dyn Fn(),
    ) -> Result<Heard, Error> {
        if self.mode() == Mode::Serves {
            return Err(not_recovering());
        }
        crate::fault::at("redo");
        let mut state = self.state();
        if redo::Adopted::is_one(record) {
            state.applied += 1;
            state.apply_adopted(store, record)?;
            return Ok(Heard::Nothing);
        }
        let (order, record) = state.opener.open(record).map_err(of_redo)?;
        let counts = state.history.admits(order);
        if counts {
            let run = state.opener.epoch().unwrap_or_default();
            state.lineage.take(run, order.counter)?;
            state.apply(store, order, &record, before_freeing)?;
        }
        state.applied += 1;
        let heard = match &record {
            Record::Policy(said) if counts => Said::decode(said).map(Heard::Said),
            Record::Used(used) if counts => Used::decode(used).map(Heard::Used),
            // Those of an earlier generation came with the checkpoint, but their ends may not have.
            Record::Promotion(made) => Some(redone::entries(store, made)),
            _ => Some(Heard::Nothing),
        };
        heard.ok_or_else(|| of_redo(redo::Error::Malformed))
    }

    /// Starts to serve a primary: all redo records have been sent.
    pub fn done(&self, position: u64) -> Result<(), Error> {
        self.up_to_date(position, Mode::Serves)
    }

    /// Starts or continues to serve a standby: all redo records that it has replayed have been
    /// sent.
    pub fn follow(&self, position: u64, timeline: u32) -> Result<(), Error> {
        self.up_to_date(position, Mode::Follows)?;
        self.timeline.store(timeline, Ordering::Release);
        Ok(())
    }

    fn up_to_date(&self, position: u64, mode: Mode) -> Result<(), Error> {
        let before = self.mode();
        if before == Mode::Serves {
            return Err(not_recovering());
        }
        if self.position() == 0 || position < self.applied.load(Ordering::Acquire) {
            return Err(Error::new(
                b"55000",
                "confide: the WAL that was sent ends before the keeper's checkpoint",
            ));
        }
        crate::fault::at("up-to-date");
        if mode == Mode::Serves {
            let mut state = self.state();
            self.note_run(&mut state)?;
            // What a client of an earlier run did not use is free.
            state.leases.clear();
            self.sealer.begin(state.history.next());
        }
        self.applied.store(position, Ordering::Release);
        self.mode.store(mode as u8, Ordering::Release);
        if before == mode {
            return Ok(());
        }
        let state = self.state();
        let position = format!("{:X}/{:X}", position >> 32, position as u32);
        tracing::info!(position, records = state.applied, serves = ?mode, "up to date");
        if state.history.stale > 0 {
            tracing::info!(
                records = state.history.stale,
                "redo records that later ones or the checkpoint had overtaken"
            );
        }
        if state.skipped > 0 {
            tracing::warn!(values = state.skipped, "redo records of dropped columns");
        }
        Ok(())
    }
}

fn of_redo(error: redo::Error) -> Error {
    Error::new(b"XX001", format!("confide: {error}"))
        .hint("The WAL and the keeper's root key may be of different clusters.")
}

/// Reads every segment once, to validate it and to learn which slots are taken. Values are loaded
/// on demand.
fn load(vault: &Vault, meta: &Meta, store: &Store) -> Result<(), String> {
    let began = std::time::Instant::now();
    let mut segments = 0u64;
    for listed in &meta.partitions {
        store.restore(*listed).map_err(|e| e.message.to_string())?;
        if meta.indexed.contains(&listed.number)
            && let Some(partition) = store.get(listed.number)
        {
            partition.set_indexed();
        }
        if let (Some(made), Some(column)) =
            (store.get(listed.number), meta.columns.get(&listed.number))
        {
            made.set_column(*column);
        }
    }
    store.skip_to(meta.next);
    for id in vault.segments().collect::<Vec<_>>() {
        let listed = meta.partitions.iter().any(|l| l.number == id.partition);
        let partition = store.get(id.partition).filter(|_| listed);
        let (Some(partition), Some(bytes)) =
            (partition, vault.read(id).map_err(|e| e.to_string())?)
        else {
            continue;
        };
        let bytes = Zeroizing::new(bytes);
        partition
            .adopt_segment(id.number, &bytes)
            .map_err(|e| format!("partition {}: {}", id.partition, e.message))?;
        segments += 1;
    }
    tracing::info!(
        version = vault.version(),
        partitions = meta.partitions.len(),
        segments,
        took = ?began.elapsed(),
        "store checked; waiting for the WAL since its checkpoint"
    );
    Ok(())
}
