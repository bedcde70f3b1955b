//! Requests: which are answered, what happens to errors, and who may. What each
//! family does is in a file of its own.
//!
//! Errors of one-way requests (docs/decisions.md): the result is poisoned, the
//! first error is kept, and the next answered request is answered with it.
//!
//! Invariant: nothing a request can hold makes the keeper panic; a request gets
//! an answer exactly if its kind is answered.

mod aggregate;
mod aggregation;
mod authorise;
mod batches;
mod belonging;
mod cells;
mod columns;
mod descend;
mod described;
mod doings;
mod entries;
mod envelopes;
mod evaluate;
mod garbage;
mod handshake;
mod join;
mod leases;
mod ledger;
mod load;
mod moved;
mod operands;
mod policy;
mod programs;
mod rank;
mod receipt;
mod recorded;
mod recovery;
mod said;
mod search;
mod settings;
mod shown;
mod signed;
mod stats;
mod telling;
mod tokens;
mod versions;
mod viewing;

use crate::aggregation::Aggregation;
use crate::copies::Place;
use crate::fail::{self, Ended, Failure};
use crate::keeper::Keeper;
use crate::session::{Client, Session, Shared};
use crate::space::Space;
use crate::tape::Tape;
use crate::tickets::Admitted;
use contract::codec::{Malformed, Part};
use contract::hello::{Hello, Status, Welcome};
use contract::message::program::FIRST_HANDLE;
use contract::{Fid, Kind, body};
use envelope::handshake::Responder;
use garbage::Collection;
use recovery::Worker;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use values::{Env, Error};
use zeroize::{Zeroize, Zeroizing};

/// A buffer larger than this is given back when its request is done.
const KEEP_BYTES: usize = 1024 * 1024;
/// A buffer larger than this is given back when its statement is done.
const SMALL_BYTES: usize = 1024;
/// Codes of kinds are smaller.
const KINDS: usize = 128;

/// One channel of a session, as its requests see it.
pub struct Connection {
    keeper: Arc<Keeper>,
    session: Arc<Session>,
    /// What its requests can name.
    space: Space,
    /// Whether this is the session's first channel, not a parallel worker's.
    leads: bool,
    /// The recovery worker's channel: whether, and how far it has come.
    worker: Worker,
    /// Copies of what the session's channels share, and their version.
    client: Option<Arc<Client>>,
    ticket: Option<Arc<Admitted>>,
    env: Env,
    ended: Option<Ended>,
    version: u64,
    /// The first error of a one-way request that was not told yet.
    pending: Option<Arc<Error>>,
    /// Whether the backend sees that there is one.
    failed: bool,
    /// The WAL lacks uses of tickets or budgets, and whether the backend was told.
    owes: Cell<bool>,
    owed: bool,
    /// A handshake that has begun.
    responder: Option<(Responder, Instant)>,
    /// A copy of the store's files that a backup is made of.
    copy: Option<(vault::Copy, Place)>,
    /// A collection of garbage that has begun.
    collection: Option<Collection>,
    reply: Vec<u8>,
    scratch: Vec<u8>,
    plain: Zeroizing<Vec<u8>>,
    fids: Vec<Fid>,
    /// A row that was revealed and is not counted yet.
    unsettled: Option<evaluate::Unsettled>,
    /// Rows on their way to be ranked.
    sets: rank::Sets,
    /// Pages of indexes.
    pages: descend::Pages,
    /// Requests, by the code of their kind.
    messages: [u64; KINDS],
    /// A result that shall be signed.
    signing: Option<signed::Signing>,
    /// Of which tables rows of ledger tables are.
    described: described::Descriptions,
    /// What the transaction did to ledger tables; a walk over one.
    ledger: doings::Doings,
    /// Hashes its row versions.
    hasher: Cell<::ledger::row::Hasher>,
    /// Aggregations of the running statements.
    aggregations: HashMap<u32, Aggregation>,
    next_aggregation: u32,
    /// The statement that the channel began in, which is a worker's only one.
    statement: u64,
    /// Under which tokens are made; drawn when the first are asked for.
    token_key: Option<Zeroizing<[u8; 16]>>,
    /// Of labels and grants.
    remembered: RefCell<authorise::Remembered>,
    latest: authorise::Latest,
    /// What is recorded of it goes there.
    tape: Option<Arc<Tape>>,
    /// What will be recorded once its answer was sent.
    answered: Option<recorded::Answered>,
    /// Programs below this are one operation, of which a single row has a shorter way.
    singles_below: u32,
    /// FIDs that are leased to the channel.
    held: leases::Held,
}

/// Whether an answer to this may be the error of an earlier one-way request. Answers
/// to batches may be given up when enough rows have been found.
fn tells_errors(kind: Kind) -> bool {
    use Kind::{
        DeclassifyBatch, DeclassifyGroups, EvalBatch, GetEnvelopes, Handshake, Ping, Tokens,
    };
    !matches!(
        kind,
        Ping | Handshake | DeclassifyBatch | DeclassifyGroups | EvalBatch | GetEnvelopes | Tokens
    )
}

fn same_client(one: Option<&Arc<Client>>, other: Option<&Arc<Client>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What a body says, if it is what its kind asks for.
#[inline(always)]
fn take<'a, B: Part<'a>>(body: &'a [u8]) -> Result<B, Failure> {
    B::decode(body).map_err(|Malformed(what)| fail::malformed(what).into())
}

impl Connection {
    /// A channel for a backend, in a new session or one that it can name.
    pub fn open(keeper: &Arc<Keeper>, hello: &Hello) -> Result<Connection, Status> {
        let (session, leads) = keeper.session(hello)?;
        let own = session.enter().ok_or(Status::TooManyChannels)?;
        let (shared, version) = session.shared();
        let Shared {
            client,
            ticket,
            env,
            ended,
        } = shared;
        let statement = session.handed.statement();
        let tape = recorded::tape(keeper, &session, client.as_deref(), None);
        Ok(Connection {
            space: keeper.space(&session, own),
            keeper: Arc::clone(keeper),
            session,
            leads,
            worker: Worker::of(hello),
            client,
            ticket,
            env,
            ended,
            version,
            pending: None,
            failed: false,
            owes: Cell::new(false),
            owed: false,
            responder: None,
            copy: None,
            collection: None,
            reply: Vec::new(),
            scratch: Vec::new(),
            plain: Zeroizing::new(Vec::new()),
            fids: Vec::new(),
            unsettled: None,
            sets: rank::Sets::new(),
            pages: descend::Pages::default(),
            messages: [0; KINDS],
            signing: None,
            described: described::Descriptions::default(),
            ledger: doings::Doings::default(),
            hasher: Cell::default(),
            aggregations: HashMap::new(),
            next_aggregation: 0,
            statement,
            token_key: None,
            remembered: RefCell::default(),
            latest: authorise::Latest::default(),
            tape,
            answered: None,
            singles_below: FIRST_HANDLE,
            held: leases::Held::default(),
        })
    }

    /// Whether its session has a client and has not ended.
    pub fn open_to_client(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.session.open)
    }

    /// What the backend is told at the beginning.
    pub fn welcome(&self) -> Welcome {
        Welcome {
            version: contract::VERSION,
            status: Status::Accepted,
            arena: self.space.own.first(),
            session: self.session.id,
            range: 0,
            incarnation: self.keeper.incarnation,
        }
    }

    /// Whether the backend shall see that an error is left to be told, if that has changed since
    /// ([`contract::ring::FAILED_OFFSET`]).
    #[inline]
    pub fn failed(&mut self) -> Option<bool> {
        let failed = self.pending.is_some();
        (std::mem::replace(&mut self.failed, failed) != failed).then_some(failed)
    }

    /// The body of the last answer.
    pub fn reply(&self) -> &[u8] {
        &self.reply
    }

    /// Carries out a request. Gives what it is to be answered with, if it is.
    #[inline]
    pub fn handle(&mut self, kind: Kind, body: &[u8]) -> Option<Result<(), Error>> {
        self.settle();
        if self.version != self.session.version() {
            self.refresh();
        }
        if let Some(count) = self.messages.get_mut(usize::from(kind as u16)) {
            *count += 1;
        }
        match self.tape.is_some() {
            true => self.recorded(kind, body),
            false => self.carry_out(kind, body),
        }
    }

    /// Refusals are in the audit log, once each.
    #[cold]
    fn note_refusal(&self, kind: Kind, failure: &Failure) {
        let refused = [*b"42501", *b"53400"].contains(&failure.error.sqlstate);
        if refused && !failure.told {
            let by = self.client.as_ref().map_or("-", |c| c.name.as_str());
            let audit = &self.keeper.audit;
            audit.refused(by, self.session.id, kind, &failure.error);
        }
    }

    #[inline]
    fn carry_out(&mut self, kind: Kind, body: &[u8]) -> Option<Result<(), Error>> {
        if kind.is_answered() {
            self.reply.clear();
            if self.pending.is_some() && tells_errors(kind) {
                let error = self.pending.take()?;
                return Some(Err(Arc::unwrap_or_clone(error)));
            }
            let done = self.answered(kind, body);
            return Some(done.map_err(|failure| {
                self.note_refusal(kind, &failure);
                failure.into_error()
            }));
        }
        if let Err(failure) = self.one_way(kind, body)
            && !failure.told
            && self.pending.is_none()
        {
            self.note_refusal(kind, &failure);
            self.pending = Some(failure.error);
        }
        None
    }

    fn answered(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        self.shrink();
        self.worker.may_ask(kind)?;
        self.may_go_on(kind)?;
        match kind {
            Kind::Declassify => self.declassify(take(body)?),
            Kind::DeclassifyBatch => self.declassify_batch(take(body)?),
            Kind::DeclassifyGroups => self.declassify_groups(take(body)?),
            Kind::EvalBatch => self.eval_batch(take(body)?),
            Kind::GetEnvelope => self.get_envelope(take(body)?),
            Kind::GetEnvelopes => self.get_envelopes(take(body)?),
            Kind::Promote => self.promote(take(body)?),
            Kind::PromoteSearch => self.promote_search(take(body)?),
            Kind::Lease => self.lease_fids(take(body)?),
            Kind::Confirm => self.confirm(&take(body)?),
            Kind::PromoteRuns => self.promote_runs(take(body)?),
            Kind::Search => self.search(take(body)?),
            Kind::SearchMany => self.search_many(take(body)?),
            Kind::Descend => self.descend(take(body)?),
            Kind::Rank => self.rank(take(body)?),
            Kind::Tokens => self.tokens(take(body)?),
            Kind::CellSeal => self.cell_seal(take(body)?),
            Kind::CellCompare => self.cell_compare(take(body)?),
            Kind::CellHash => self.cell_hash(take(body)?),
            Kind::CellToken => self.cell_token(take(body)?),
            Kind::CellKey => self.cell_key(take(body)?),
            Kind::SoftState => self.soft_state(take(body)?),
            Kind::CellReseal => self.cell_reseal(take(body)?),
            Kind::Ping | Kind::Fence => self.fence(kind),
            Kind::Policy => self.policy(take(body)?),
            Kind::PolicyLog => self.policy_log(),
            Kind::Announce => self.announce(&take(body)?),
            Kind::Orderable => self.orderable(take(body)?),
            Kind::PartitionOpen => self.partition_open(take(body)?),
            Kind::ProgramRegister => self.program_register(take(body)?),
            Kind::AggregateRegister => self.aggregate_register(take(body)?),
            Kind::AggregateReturn => self.aggregate_return(take(body)?),
            Kind::AggregateFetch => self.aggregate_fetch(take(body)?),
            Kind::AggregateHandOver => self.aggregate_hand_over(take(body)?),
            Kind::Handshake => self.handshake(take(body)?),
            Kind::Stats => self.stats(),
            Kind::Accounts => self.accounts(take(body)?),
            Kind::Resolve => self.resolve(take(body)?),
            Kind::GarbageList => self.garbage_list(take(body)?),
            Kind::GarbageBegin => self.garbage_begin(take(body)?),
            Kind::GarbageSweep => self.garbage_sweep(),
            Kind::RecoveryState => self.recovery_state(take(body)?),
            Kind::RecoveryDone => self.recovery_done(take(body)?),
            Kind::Follow => self.follow(take(body)?),
            Kind::StoreCopy => self.store_copy(),
            Kind::StoreRead => self.store_read(take(body)?),
            Kind::Checkpoint => self.checkpoint(take(body)?),
            Kind::CheckpointBegin => {
                self.checkpoint_begin();
                Ok(())
            }
            _ => self.answered_of_ledgers(kind, body),
        }
    }

    fn answered_of_ledgers(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        match kind {
            Kind::LedgerSeal => self.ledger_seal(&take(body)?),
            Kind::LedgerWho => self.ledger_who(),
            Kind::LedgerCheck => self.ledger_check(take(body)?),
            Kind::LedgerReport => self.ledger_report(take(body)?),
            Kind::LedgerProve => self.ledger_prove(take(body)?),
            Kind::LedgerReceipt => self.ledger_receipt(take(body)?),
            _ => Err(fail::internal("a kind of message has no handler").into()),
        }
    }

    fn one_way(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        self.worker.may_ask(kind)?;
        self.may_go_on(kind)?;
        match kind {
            Kind::Eval => self.eval(take(body)?),
            Kind::PutEnvelope => self.put_envelope(take(body)?),
            Kind::CellOpen => self.cell_open(take(body)?),
            Kind::RestoreTicket => self.restore_ticket(take(body)?),
            Kind::PolicyLogged => {
                self.policy_logged(take(body)?);
                Ok(())
            }
            Kind::IndexBuilt => {
                self.index_built(&take(body)?);
                Ok(())
            }
            Kind::Grant => self.grant(take(body)?),
            Kind::Adopt => self.adopt(take(body)?),
            Kind::Withdraw => {
                self.withdraw();
                Ok(())
            }
            Kind::PutBatch => self.put_batch(take(body)?),
            Kind::PutPlain => self.put_plain(take(body)?),
            Kind::Release => self.release(take(body)?),
            Kind::AggregateStep => self.aggregate_step(take(body)?),
            Kind::AggregateCombine => self.aggregate_combine(take(body)?),
            Kind::AggregateFinal => self.aggregate_final(take(body)?),
            Kind::RankAdd => self.rank_add(take(body)?),
            Kind::RankForget => self.rank_forget(take(body)?),
            Kind::AggregateRows => self.aggregate_rows(take(body)?),
            Kind::AggregateReset => self.aggregate_reset(take(body)?),
            Kind::AggregateForget => self.aggregate_forget(take(body)?),
            Kind::AggregateMerge => self.aggregate_merge(take(body)?),
            Kind::AggregateStore => self.aggregate_store(&take(body)?),
            Kind::ProgramForget => self.program_forget(take(body)?),
            Kind::PartitionDrop => self.partition_drop(take(body)?),
            Kind::Settings => self.settings(take(body)?),
            Kind::Clock => self.clock(take(body)?),
            Kind::Snapshot => self.snapshot(take(body)?),
            Kind::Statement => take::<body::Statement>(body).map(|_| ()), // for the tape
            Kind::Forget => {
                self.pending = None;
                Ok(())
            }
            Kind::PartitionLogged => self.partition_logged(take(body)?),
            Kind::Redo => self.redo(take(body)?),
            Kind::Committed => {
                self.committed(take(body)?);
                Ok(())
            }
            Kind::GarbageMark => self.garbage_mark(take(body)?),
            Kind::GarbageSwept => self.garbage_swept(),
            Kind::GarbageEnd => {
                self.garbage_end();
                Ok(())
            }
            _ => self.one_way_of_ledgers(kind, body),
        }
    }

    fn one_way_of_ledgers(&mut self, kind: Kind, body: &[u8]) -> Result<(), Failure> {
        match kind {
            Kind::ResultBegin => self.result_begin(take(body)?),
            Kind::ResultRows => self.result_rows(take(body)?),
            Kind::ResultSign => self.result_sign(take(body)?),
            Kind::LedgerTable => self.ledger_table(&take(body)?),
            Kind::LedgerRow => self.ledger_row(take(body)?),
            Kind::LedgerMove => self.ledger_move(take(body)?),
            Kind::LedgerEnd => self.ledger_end(take(body)?),
            _ => Err(fail::internal("a kind of message has no handler").into()),
        }
    }

    /// Appends to the answer.
    #[inline]
    fn answer<'b>(&mut self, answer: &impl Part<'b>) {
        answer.put(&mut self.reply);
    }

    /// Takes new copies of what channels share.
    #[cold]
    fn refresh(&mut self) {
        let (shared, version) = self.session.shared();
        let Shared {
            client,
            ticket,
            env,
            ended,
        } = shared;
        let now = self.env.now();
        self.tape = recorded::tape(
            &self.keeper,
            &self.session,
            client.as_deref(),
            self.tape.take(),
        );
        if !same_client(self.client.as_ref(), client.as_ref()) {
            self.end_leases();
        }
        self.client = client;
        self.ticket = ticket;
        self.forget_covered();
        self.env = env;
        self.ended = ended;
        self.env.set_now(now);
        self.version = version;
    }

    /// Nothing of the plaintext stays behind, nor the room that an unusually long one took.
    fn wipe(&mut self) {
        self.plain.as_mut_slice().zeroize();
        self.plain.clear();
        self.plain.shrink_to(KEEP_BYTES);
    }

    /// Nothing of a statement that has ended stays in the buffers: what was opened, keys of columns on their way
    /// to the client, answers.
    fn forget_buffers(&mut self) {
        for buffer in [&mut self.reply, &mut self.scratch, &mut *self.plain] {
            match buffer.capacity() > SMALL_BYTES {
                // Freed memory is overwritten.
                true => *buffer = Vec::new(),
                false => buffer.zeroize(),
            }
        }
    }

    /// Gives back what an unusually large request made the buffers grow to.
    fn shrink(&mut self) {
        self.reply.shrink_to(KEEP_BYTES);
        if self.fids.capacity() * size_of::<Fid>() > KEEP_BYTES {
            self.fids = Vec::new();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end_answer();
        self.end_leases();
        self.garbage_end();
        self.ledger_gone();
        self.settle();
        self.keeper.collect_from(&self.session);
        self.session.counters.closed(self.messages());
        let answered = &self.keeper.counters.answered_total;
        answered.fetch_add(self.answered_messages(), Relaxed);
        self.session.arenas.leave(&self.space.own);
        if self.leads {
            self.keeper.end(&self.session);
        }
    }
}
