//! `Grant`, and checking whether the session's client has authorised an operation.
//!
//! Each operation uses values; what these were computed from is known from the labels of their
//! slots and from their columns. The operation is refused unless one entry of a grant covers all of
//! this.
//!
//! Invariants: these checks are made before anything is computed, disclosed or stored; a result is
//! labelled before it becomes available; without `require_grants` nothing is labelled or checked.

use super::Connection;
use super::operands::Operands;
use crate::derived;
use crate::fail::{self, Failure};
use crate::masks::Mask;
use crate::program::Program;
use crate::provenance::{self, Origin, UNKNOWN, UNNAMED};
use crate::quick::{Map, Set};
use crate::told::Tally;
use contract::envelope::Origin as Maker;
use contract::fid::{ARENA_BASE, PARTITION_BITS};
use contract::{Fid, body};
use envelope::Envelope;
use grant::{Grant, Lease, family};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use store::{ColumnId, Label};
use values::Error;

/// The most recent ones of what is remembered, which are found without hashing.
#[derive(Default)]
pub(super) struct Latest {
    /// Labels of columns, by partition.
    columns: [Cell<Option<(u32, Label)>>; LATEST],
    /// What was found to be covered.
    covered: [Cell<Option<(Label, u8)>>; LATEST],
    /// Operations on one row that were found to be authorised.
    rows: [Cell<(Asked, Operands)>; LATEST],
}

/// An operation and where its operands are from: the column of a stored one, the label of a
/// temporary one. Whether the operation is authorised, and the label of its result, depend on
/// nothing else. The default is no operation.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Asked(u64);

impl Asked {
    /// `program` is a signature's number.
    #[inline]
    fn new(program: u32, [a, b]: [u32; 2]) -> Asked {
        let operands = u64::from(a) << PARTITION_BITS | u64::from(b);
        Asked(u64::from(program) << (2 * PARTITION_BITS) | operands)
    }

    #[inline]
    fn place(self) -> usize {
        let bits = self.0 >> (2 * PARTITION_BITS) ^ self.0 >> PARTITION_BITS ^ self.0;
        bits as usize % LATEST
    }
}

/// A channel's cache of labels and grants.
#[derive(Default)]
pub(super) struct Remembered {
    /// Labels of columns, by partition.
    columns: Map<u32, Label>,
    /// The tallies to which disclosures are added.
    latest_tallied: [Option<(Label, Arc<Tally>)>; LATEST],
    /// The masks shown instead of values, valid until the policies change.
    pub(super) masks: Map<Label, Option<Mask>>,
    /// The names by which a column has a budget, valid as long as the masks.
    pub(super) budgeted: HashMap<ColumnId, Vec<ColumnId>>,
    unions: Map<(Label, Label), Label>,
    /// What was found to be covered. Grants only grow as long as the client is the same.
    covered: Set<(Label, u8)>,
    /// Partitions of columns whose keys the client may have.
    pub(super) deliverable: Set<u32>,
    /// Columns whose values have left in export envelopes.
    pub(super) exported: Set<u32>,
    /// Labels of values from export envelopes, and the partitions that they may enter.
    pub(super) taken: Set<(Label, u32)>,
    /// For tokens: labels of the columns, by the number of the tokens.
    tokens: HashMap<u64, Vec<Label>>,
}

impl Remembered {
    /// Returns the tally recently used for this label, if it is cached.
    #[inline]
    pub(super) fn tally(&self, label: Label) -> Option<&Tally> {
        let place = usize::from(label) % LATEST;
        let latest = self.latest_tallied.get(place)?.as_ref();
        latest
            .filter(|(known, _)| *known == label)
            .map(|(_, tally)| &**tally)
    }

    /// Caches the tally for this label.
    pub(super) fn keep_tally(&mut self, label: Label, tally: Arc<Tally>) {
        if let Some(latest) = self.latest_tallied.get_mut(usize::from(label) % LATEST) {
            *latest = Some((label, tally));
        }
    }
}

/// Number of entries that are found without hashing.
const LATEST: usize = 8;
/// If there are more numbers of tokens, they are dropped together with the key of the tokens.
const TOKENS_MAX: usize = 4096;

impl Connection {
    /// Processes a grant of the client.
    pub(super) fn grant(&mut self, body: body::Grant<'_>) -> Result<(), Failure> {
        let parsed = Envelope::parse(body.envelope).map_err(super::envelopes::unopened)?;
        if !parsed.is_grant() || parsed.origin != Maker::Client {
            return Err(fail::malformed("The envelope holds no grant.").into());
        }
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let opened = client.opener.open_parsed(&parsed, &mut self.plain);
        opened.map_err(super::envelopes::unopened)?;
        if Lease::is_one(&self.plain) {
            return self.lease(&self.plain);
        }
        if let Some(ended) = self.ended {
            return Err(fail::ended(ended).into());
        }
        let grant = Grant::decode(&self.plain);
        let grant = grant.map_err(|_| fail::malformed("The grant is malformed."));
        self.wipe();
        let (grant, standing) = (grant?, &self.keeper.standing);
        self.own(&grant)?;
        let grant = self.within_sight(grant);
        let by = self.client.as_ref().map_or("-", |c| c.name.as_str());
        let audit = &self.keeper.audit;
        standing.add(&grant, |lasting| {
            self.may_say()?;
            audit.note("standing-grant", by, lasting.to_string())
        })?;
        let grants = &self.session.grants;
        let mut grants = grants.write().unwrap_or_else(PoisonError::into_inner);
        Ok(grants.add(&grant, standing)?)
    }

    /// Whether grants are checked: only for what a client's session does.
    #[inline]
    pub(super) fn is_bound(&self) -> bool {
        self.keeper.config.require_grants && self.client.is_some()
    }

    /// The label for a value being imported; none if grants are not checked.
    #[inline]
    pub(super) fn label_if_bound(&self, label: Label) -> Label {
        if self.keeper.config.require_grants {
            label
        } else {
            0
        }
    }

    /// The session has another client: earlier checks are no longer valid.
    pub(super) fn forget_covered(&self) {
        let mut remembered = self.remembered.borrow_mut();
        remembered.covered.clear();
        remembered.masks.clear();
        remembered.budgeted.clear();
        remembered.deliverable.clear();
        self.latest.covered.iter().for_each(|place| place.set(None));
        let rows = self.latest.rows.iter();
        rows.for_each(|place| place.set(Default::default()));
    }

    #[inline]
    pub(super) fn label_of_column(&self, partition: u32) -> Result<Label, Failure> {
        let place = self.latest.columns.get(partition as usize % LATEST);
        if let Some(Some((known, label))) = place.map(Cell::get)
            && known == partition
        {
            return Ok(label);
        }
        let label = self.find_label_of_column(partition)?;
        place.inspect(|place| place.set(Some((partition, label))));
        Ok(label)
    }

    #[cold]
    fn find_label_of_column(&self, partition: u32) -> Result<Label, Failure> {
        if let Some(label) = self.remembered.borrow().columns.get(&partition) {
            return Ok(*label);
        }
        let found = self.keeper.store.get(partition);
        let column = found
            .and_then(|p| p.column())
            .ok_or_else(store::unresolved)?;
        let origin = match column {
            (_, true) => return Ok(provenance::CLIENT),
            (id, _) if id == ColumnId::default() => return Ok(UNKNOWN),
            (id, _) => Origin {
                others: 0,
                columns: self.sources(&id),
            },
        };
        let label = self.write_provenance().number(origin)?;
        self.remembered
            .borrow_mut()
            .columns
            .insert(partition, label);
        Ok(label)
    }

    pub(super) fn write_provenance(
        &self,
    ) -> std::sync::RwLockWriteGuard<'_, provenance::Provenance> {
        let provenance = &self.session.provenance;
        provenance.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The label of something computed from both.
    #[inline]
    pub(super) fn union(&self, a: Label, b: Label) -> Result<Label, Failure> {
        if a == b || b == provenance::EMPTY || b == 0 {
            return Ok(a);
        }
        if a == provenance::EMPTY || a == 0 {
            return Ok(b);
        }
        if let Some(label) = self.remembered.borrow().unions.get(&(a, b)) {
            return Ok(*label);
        }
        let label = self.write_provenance().union(a, b)?;
        self.remembered.borrow_mut().unions.insert((a, b), label);
        Ok(label)
    }

    /// Fails unless a grant covers this use of values with this label.
    #[inline]
    pub(super) fn authorise(&self, label: Label, families: u8) -> Result<(), Failure> {
        if !self.is_bound() {
            return Ok(());
        }
        let place = self.latest.covered.get(usize::from(label) % LATEST);
        match place.map(Cell::get) == Some(Some((label, families))) {
            true => Ok(()),
            false => self.authorise_other(label, families),
        }
    }

    #[cold]
    fn authorise_other(&self, label: Label, families: u8) -> Result<(), Failure> {
        let known = (label, families);
        if !self.remembered.borrow().covered.contains(&known) {
            self.ask(label, families)?;
        }
        let place = self.latest.covered.get(usize::from(label) % LATEST);
        place.inspect(|place| place.set(Some(known)));
        Ok(())
    }

    /// Whether a grant of the session itself shows a column. Grants of definitions do not count,
    /// since they may show less than the column.
    pub(super) fn shows(&self, column: ColumnId) -> bool {
        if !self.is_bound() {
            return true;
        }
        let origin = Origin {
            others: 0,
            columns: vec![column],
        };
        let grants = &self.session.grants;
        let grants = grants.read().unwrap_or_else(PoisonError::into_inner);
        grants.cover(&origin, family::SHOW)
    }

    #[cold]
    fn ask(&self, label: Label, families: u8) -> Result<(), Failure> {
        let origin = self.origin(label);
        self.may_see(&origin)?;
        let grants = &self.session.grants;
        let grants = grants.read().unwrap_or_else(PoisonError::into_inner);
        let covered = grants.cover(&origin, families)
            || self.keeper.standing.cover(&origin, families, &grants);
        if !covered {
            return Err(self.unauthorised(family::name(families), &origin, None));
        }
        self.remembered
            .borrow_mut()
            .covered
            .insert((label, families));
        Ok(())
    }

    /// Like [`Self::authorise`], for comparisons: stored values of one column may be compared with
    /// each other, which keeps its indexes in order.
    pub(super) fn authorise_order(&self, operands: Operands) -> Result<(), Failure> {
        match operands.one_column {
            true => self.may_view(operands.label),
            false => self.authorise(operands.label, family::COMPARE),
        }
    }

    /// Fails unless an operation on one row is authorised; returns the label of its result. If
    /// there is one operand, the other is `INVALID`.
    #[inline]
    pub(super) fn authorise_row(&self, program: u32, fids: [Fid; 2]) -> Result<Label, Failure> {
        if !self.is_bound() {
            return Ok(0);
        }
        let [a, b] = fids;
        let asked = Asked::new(program, [self.source(a)?, self.source(b)?]);
        if let Some((known, operands)) = self.latest.rows.get(asked.place()).map(Cell::get)
            && known == asked
        {
            // Who sees a column is asked each time.
            if operands.one_column {
                self.may_view(operands.label)?;
            }
            return Ok(operands.label);
        }
        self.authorise_other_row(program, fids, asked)
    }

    /// Where an operand is from, for [`Asked`].
    #[inline]
    fn source(&self, fid: Fid) -> Result<u32, Failure> {
        match fid.is_temporary() {
            true => Ok(ARENA_BASE | u32::from(self.label_of_one(fid)?)),
            false => Ok(fid.partition()),
        }
    }

    #[cold]
    fn authorise_other_row(
        &self,
        program: u32,
        fids: [Fid; 2],
        asked: Asked,
    ) -> Result<Label, Failure> {
        let operation = self.keeper.table.operation(program);
        let operation = operation.ok_or_else(fail::no_such_program)?;
        let operands = self.operands_of_row(&fids)?;
        let orders = operation.is_comparison();
        match orders {
            true => self.authorise_order(operands)?,
            false => self.authorise(operands.label, operation.family)?,
        }
        // A column without a name may still get one.
        if operands.label != UNKNOWN
            && let Some(place) = self.latest.rows.get(asked.place())
        {
            let one_column = orders && operands.one_column;
            place.set((
                asked,
                Operands {
                    one_column,
                    ..operands
                },
            ));
        }
        Ok(operands.label)
    }

    /// Checks whether values with this label may be stored in a column.
    pub(super) fn authorise_write(&self, label: Label, partition: u32) -> Result<(), Failure> {
        if !self.is_bound() {
            return Ok(());
        }
        let found = self.keeper.store.get(partition);
        let (key, target) = found
            .and_then(|p| p.key().zip(p.column()))
            .ok_or_else(store::unresolved)?;
        match key.is_derived() {
            true => self.authorise_index(label, target.0),
            false => self.authorise_write_to(label, target),
        }
    }

    /// The columns that values under a name were made of.
    fn sources(&self, column: &ColumnId) -> Vec<ColumnId> {
        let name = self.keeper.standing.name_of(column);
        name.map_or_else(|| vec![*column], |name| derived::sources(&name))
    }

    /// Checks whether values with this label may be stored as those of an index's expression: the
    /// index is one that a client has made, and they keep the label.
    fn authorise_index(&self, label: Label, target: ColumnId) -> Result<(), Failure> {
        let origin = self.origin(label);
        self.may_see(&origin)?;
        let standing = &self.keeper.standing;
        let sources = self.sources(&target);
        let kept = |c: &ColumnId| sources.iter().any(|s| standing.stands_for(s, c));
        let covered = origin.columns.iter().all(kept)
            && !origin.columns.is_empty()
            && standing.cover_always(&origin, family::COMPARE);
        match covered {
            true => Ok(()),
            false => Err(self.unauthorised("index", &origin, Some(target))),
        }
    }

    /// Like [`Self::authorise_write`]; the target is the column, and whether it is a constant of a
    /// definition.
    pub(super) fn authorise_write_to(
        &self,
        label: Label,
        target: (ColumnId, bool),
    ) -> Result<(), Failure> {
        let origin = self.origin(label);
        self.may_see(&origin)?;
        let grants = &self.session.grants;
        let grants = grants.read().unwrap_or_else(PoisonError::into_inner);
        let covered = match target {
            // Constants of definitions are the client's own, or were printed and read again.
            (_, true) => {
                let own = origin.others & !grant::origin::CLIENT == 0;
                origin.columns.is_empty() && (own || grants.cover(&origin, family::CAST))
            }
            (column, _) => {
                grants.cover_write(&origin, &column)
                    || self.keeper.standing.cover_write(&origin, &column, &grants)
                    || self.is_history(&origin, &column)
            }
        };
        match covered {
            true => Ok(()),
            false => Err(self.unauthorised("store", &origin, Some(target.0))),
        }
    }

    /// Whether values of one column are stored in the same column of the history of their ledger
    /// table. What may be done with them there is checked separately.
    fn is_history(&self, origin: &Origin, target: &ColumnId) -> bool {
        let ([from], 0) = (origin.columns.as_slice(), origin.others) else {
            return false;
        };
        self.keeper.standing.is_history_of(target, from) && !self.keeper.viewers.owns(target)
    }

    /// Whether a column may be of the history of a ledger table, by its name. If somebody has claimed
    /// it, it does not belong to a ledger.
    pub(super) fn may_be_history(&self, column: &ColumnId) -> bool {
        self.keeper.standing.is_of_history(column) && !self.keeper.viewers.owns(column)
    }

    /// Returns what a label represents.
    pub(super) fn origin(&self, label: Label) -> Arc<Origin> {
        let provenance = &self.session.provenance;
        let provenance = provenance.read().unwrap_or_else(PoisonError::into_inner);
        provenance.set(label)
    }

    fn unauthorised(&self, what: &str, origin: &Origin, target: Option<ColumnId>) -> Failure {
        let name = |column: &ColumnId| {
            let name = self.keeper.standing.name_of(column);
            let text = name.map(|c| format!("{}.{}.{}", c.schema, c.relation, c.column));
            text.unwrap_or_else(|| "a column that no statement has named".to_owned())
        };
        let mut of: Vec<String> = origin.columns.iter().map(name).collect();
        let others = [
            (grant::origin::CLIENT, "constants of the client"),
            (grant::origin::PLAIN, "plain values"),
            (grant::origin::EXPORT, "envelopes of the keeper"),
            (UNNAMED, "a column that nobody has named"),
        ];
        let others = others.iter().filter(|(bit, _)| origin.others & bit != 0);
        of.extend(others.map(|(_, text)| (*text).to_owned()));
        let place = target
            .map(|t| format!(" in {}", name(&t)))
            .unwrap_or_default();
        let detail = format!(
            "It would {what} values{place} that are made of: {}.",
            of.join(", ")
        );
        Error::new(b"42501", "confide: the client's statement does not authorise this operation")
            .detail(detail)
            .hint("What a trigger, policy, view, default or function does must be in a definition that a client has made through Confide's proxy, or has authorised (\"confide authorise\").")
            .into()
    }

    /// Returns what the columns of a batch used by a program, and its constants, were computed
    /// from.
    pub(super) fn program_label(
        &self,
        program: &Program,
        columns: &[Operands],
    ) -> Result<Label, Failure> {
        if !self.is_bound() {
            return Ok(0);
        }
        let constants: Vec<Fid> = program.constants.iter().map(|(fid, _)| *fid).collect();
        let constants = self.operands(&constants)?.label;
        let used = columns
            .iter()
            .enumerate()
            .filter(|(at, _)| program.uses(*at));
        used.map(|(_, column)| column.label)
            .try_fold(constants, |all, label| self.union(all, label))
    }

    /// Tokens with the same number reveal which of their rows are equal: their columns are
    /// authorised together.
    pub(super) fn authorise_tokens(
        &mut self,
        number: u64,
        columns: &[Operands],
    ) -> Result<(), Failure> {
        if !self.is_bound() {
            return Ok(());
        }
        if self.remembered.borrow().tokens.len() >= TOKENS_MAX {
            self.remembered.borrow_mut().tokens.clear();
            self.token_key = None;
        }
        let before = self
            .remembered
            .borrow_mut()
            .tokens
            .remove(&number)
            .unwrap_or_default();
        let mut now = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            let earlier = before.get(at).copied().unwrap_or(provenance::EMPTY);
            now.push(self.union(earlier, column.label)?);
        }
        let done = now
            .iter()
            .try_for_each(|label| self.authorise(*label, family::COMPARE));
        // The request counts even if it was refused.
        self.remembered.borrow_mut().tokens.insert(number, now);
        done
    }
}
