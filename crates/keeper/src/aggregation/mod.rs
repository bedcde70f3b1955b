//! Grouped aggregation over batches: the backend registers what is to be grouped and aggregated,
//! sends rows as columns of FIDs, and fetches groups and results. The group of a row, whether it
//! passes the filter, and its values never leave the keeper.
//!
//! [`plan`] is the checked registration; [`part`] evaluates expressions over a part of a batch;
//! [`keys`] finds groups; [`states`] holds transition states; this module combines them. Parallel
//! workers hand over their groups ([`handed`]), and the leader has them merged ([`merge`]).
//!
//! Invariants: the results are those of [`values::AggregateState`] when fed row by row in order of
//! arrival; memory is charged to the session before it is allocated; a group has either all of its
//! rows in one pass or none: once there is no room for another group, no group is added until the
//! next pass, and the rows without a group are returned.

pub mod handed;
mod keys;
mod merge;
mod part;
mod plan;
mod states;

pub use part::Input;
pub use plan::Plan;

use crate::account::Account;
use crate::fail::{self, Failure};
use crate::program::column::{Column, Data};
use crate::program::eval::{self, Tools};
use crate::program::load::{Named, Touched, load};
use crate::program::logic;
use crate::program::vector::{Context, Meter};
use crate::provenance::EMPTY;
use contract::{Fid, OpResult};
use keys::Groups;
use merge::Partial;
use part::Part;
use plan::{Key, Operand, Output};
use states::States;
use std::ops::Range;
use std::sync::Arc;
use store::{Budget, Entry, Label, Scalar};
use values::{Error, Value};

/// Number of rows evaluated at a time.
const PART: usize = 1024;
/// Number of groups finished at a time.
pub const FETCH_MAX: usize = 4096;
/// Approximate size of rows without a group that are kept before they are returned.
const RETURNED_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of rows returned in one answer.
const RETURNED_MAX: usize = 32_768;
/// Maximum size of the cells returned in one answer, unless a single row is larger.
const RETURNED_CELLS: usize = 16 * 1024 * 1024;
/// Marks a row that belongs to no group, or that an aggregate ignores.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// An aggregation in progress.
pub struct Aggregation {
    plan: Plan,
    groups: Groups,
    states: Vec<States>,
    account: Account,
    /// There is no room for another group.
    full: bool,
    /// Rows that found no group, to be returned.
    returned: Vec<Input>,
    returned_rows: usize,
    /// Number of groups already fetched.
    fetched: usize,
    failure: Option<Failure>,
    numbers: Vec<u32>,
    /// Merged aggregations with groups for which there was no room.
    partials: Vec<Partial>,
    /// The operations of its programs in terms of grants, and their constants.
    pub families: u8,
    /// See `families`.
    pub constants: Vec<Fid>,
    /// What its groups and states were computed from.
    pub label: Label,
}

/// Result of a fetch: for each output the values of some groups.
#[derive(Default)]
pub struct Fetched {
    /// Number of groups in this fetch.
    pub groups: usize,
    /// There may be more groups.
    pub more: bool,
    /// Rows are waiting to be returned.
    pub returned: bool,
    /// Groups that were handed over are waiting for another pass.
    pub unmerged: bool,
    /// Number of groups of this pass.
    pub total: u64,
    /// Column by column: FIDs, raw values or counts; and NULL flags for raw values.
    pub columns: Vec<(Vec<u64>, Option<Vec<u8>>)>,
}

impl Aggregation {
    /// An aggregation without rows.
    pub fn new(plan: Plan, budget: &Arc<Budget>) -> Aggregation {
        let limit = plan.limit.min(budget.limit() / 2) / plan.share;
        let mut aggregation = Aggregation {
            groups: Groups::new(&plan),
            states: Vec::new(),
            account: Account::new(budget, limit),
            full: false,
            returned: plan.no_rows(),
            returned_rows: 0,
            fetched: 0,
            failure: None,
            numbers: Vec::new(),
            partials: Vec::new(),
            families: plan.families(),
            constants: Vec::new(),
            label: EMPTY,
            plan,
        };
        aggregation.reset();
        aggregation
    }

    /// The registration.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Starts again, for a rescan.
    pub fn reset(&mut self) {
        self.partials = Vec::new();
        self.empty();
    }

    /// Removes all groups.
    fn empty(&mut self) {
        self.groups = Groups::new(&self.plan);
        self.states = self.plan.states.iter().map(States::new).collect();
        self.returned = self.plan.no_rows();
        self.returned_rows = 0;
        self.account.empty();
        self.full = false;
        self.fetched = 0;
        self.failure = None;
        if self.plan.keys.is_empty() {
            // Without GROUP BY there is one group, even if there are no rows.
            self.groups.insert_only();
            for state in &mut self.states {
                state.grow(1);
            }
        }
    }

    /// Adds a batch.
    pub fn rows(&mut self, tools: Tools<'_>, inputs: &[Input], rows: usize) -> Result<(), Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + PART);
            if let Err(failure) = self.part(tools, inputs, from, to) {
                self.failure = Some(failure.clone());
                return Err(failure);
            }
            from = to;
        }
        Ok(())
    }

    fn part(
        &mut self,
        tools: Tools<'_>,
        inputs: &[Input],
        from: usize,
        to: usize,
    ) -> Result<(), Failure> {
        let meter = Meter::new(&tools.space.budget);
        let context = Context {
            env: tools.env,
            hash_key: &tools.space.keys.hash,
            meter: &meter,
        };
        let all = Part::new(tools.space, &self.plan, inputs, from, to, context);
        let gathered: Vec<Input>;
        let selected;
        let mut part = &all;
        if let Some(filter) = self.plan.filter {
            let passing = all.passing(filter)?;
            if passing.len() < to - from {
                gathered = inputs.iter().map(|i| i.gather(from, &passing)).collect();
                let rows = passing.len();
                selected = Part::new(tools.space, &self.plan, &gathered, 0, rows, context);
                part = &selected;
            }
        }
        aggregate(
            &self.plan,
            &mut self.groups,
            &mut self.states,
            &mut self.account,
            &mut self.numbers,
            &mut self.full,
            (&mut self.returned, &mut self.returned_rows),
            part,
        )
    }

    /// Number of rows that may be sent before rows must be taken back.
    pub fn allowance(&self) -> u64 {
        (RETURNED_BYTES / self.plan.row_bytes()).max(1) as u64
    }

    /// Takes rows that found no group: their columns, their number, and whether there are more.
    pub fn take_back(&mut self) -> (Vec<Input>, usize, bool) {
        let most = RETURNED_CELLS / self.returned.len().max(1);
        let rows = self.returned_rows.min(RETURNED_MAX);
        let rows = self
            .returned
            .iter()
            .fold(rows, |rows, input| input.rows_within(rows, most));
        let rows = rows.min(self.returned_rows);
        let some: Vec<Input> = self.returned.iter_mut().map(|i| i.split(rows)).collect();
        self.returned_rows -= rows;
        let given = (0..rows).map(|row| returned_bytes(&self.plan, &some, row));
        self.account.give(given.fold(0, usize::saturating_add));
        (some, rows, self.returned_rows > 0)
    }

    /// Finishes some groups: results are stored in slots starting with `first`, group by group.
    pub fn fetch(
        &mut self,
        tools: Tools<'_>,
        first: Fid,
        max: usize,
        constants: &[Fid],
    ) -> Result<Fetched, Failure> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let mut fetched = Fetched {
            returned: self.returned_rows > 0,
            unmerged: !self.partials.is_empty(),
            total: self.groups.len() as u64,
            columns: self.plan.outputs().map(|o| o.column()).collect(),
            ..Fetched::default()
        };
        let mut slot = first.slot();
        while fetched.groups < max && self.fetched < self.groups.len() {
            let room = max - fetched.groups;
            let to = self.groups.len().min(self.fetched + room.min(PART));
            let at = Fid::new(first.partition(), slot);
            self.fetch_part(tools, to, at, constants, &mut fetched)?;
            slot = first
                .slot()
                .saturating_add((fetched.groups * self.plan.stored()) as u64);
            self.fetched = to;
        }
        fetched.more = self.fetched < self.groups.len();
        Ok(fetched)
    }

    /// Finishes the only group, of which nothing is told: results are stored in slots starting
    /// with `first`.
    pub fn store(&mut self, tools: Tools<'_>, first: Fid) -> Result<(), Failure> {
        if !self.plan.keys.is_empty() || self.plan.having.is_some() {
            return Err(misfit("Its groups are not one.").into());
        }
        self.fetched = 0;
        self.fetch(tools, first, 1, &[]).map(drop)
    }

    fn fetch_part(
        &self,
        tools: Tools<'_>,
        to: usize,
        first: Fid,
        constants: &[Fid],
        fetched: &mut Fetched,
    ) -> Result<(), Failure> {
        let meter = Meter::new(&tools.space.budget);
        let range = self.fetched..to;
        let results = self.results(range.clone())?;
        let kept: Vec<usize> = match self.plan.having {
            Some(_) => self.having(tools, range, &results, constants, &meter)?,
            None => range.collect(),
        };
        let mut entries = Vec::with_capacity(kept.len() * self.plan.stored());
        for group in &kept {
            self.output(tools, *group, &results, first, &mut entries, fetched)?;
        }
        fetched.groups += kept.len();
        let mut window = tools.space.own_arena(first.partition())?.write();
        window.mark(first.slot(), entries.len(), tools.label)?;
        window.set_all(first.slot(), entries)?;
        Ok(())
    }

    /// Returns the results of the aggregates: none for counts.
    fn results(&self, range: Range<usize>) -> Result<Vec<Vec<Option<Value>>>, Failure> {
        let mut all = Vec::with_capacity(self.plan.aggregates.len());
        for aggregate in &self.plan.aggregates {
            let state = self.states.get(aggregate.state).ok_or_else(lost)?;
            let mut column = Vec::new();
            if aggregate.result.is_some() {
                for group in range.clone() {
                    column.push(state.finish(aggregate.aggregate, group)?);
                }
            }
            all.push(column);
        }
        Ok(all)
    }

    /// Returns the groups that satisfy the HAVING condition.
    fn having(
        &self,
        tools: Tools<'_>,
        range: Range<usize>,
        results: &[Vec<Option<Value>>],
        constants: &[Fid],
        meter: &Meter<'_>,
    ) -> Result<Vec<usize>, Failure> {
        let Some((program, operands)) = &self.plan.having else {
            return Ok(range.collect());
        };
        let mut columns = Vec::with_capacity(operands.len());
        for operand in operands {
            columns.push(match operand {
                Operand::Output(output) => {
                    self.output_column(tools, *output, &range, results, meter)?
                }
                Operand::Constant(n, t) => {
                    let fid = constants.get(*n).ok_or_else(no_constant)?;
                    let fids = std::slice::from_ref(fid);
                    load(
                        tools.space,
                        Named::new(fids),
                        *t,
                        &mut Touched::default(),
                        meter,
                    )?
                }
            });
        }
        let context = Context {
            env: tools.env,
            hash_key: &tools.space.keys.hash,
            meter,
        };
        let inputs: Vec<&Column> = columns.iter().collect();
        let truth = eval::run(tools.space, program, &inputs, range.len(), context)?;
        let mut kept = Vec::new();
        for (row, group) in range.enumerate() {
            if let Some(failure) = truth.failure(row) {
                return Err(failure.clone());
            }
            if !truth.is_null(row) && truth.truth(row) {
                kept.push(group);
            }
        }
        Ok(kept)
    }

    /// An output of some groups, as an operand of the HAVING condition.
    fn output_column(
        &self,
        tools: Tools<'_>,
        output: Output,
        range: &Range<usize>,
        results: &[Vec<Option<Value>>],
        meter: &Meter<'_>,
    ) -> Result<Column, Failure> {
        Ok(match output {
            Output::Key(n, Key::Column(_, t)) => {
                let fids = self.groups.fids(n, range.clone());
                load(
                    tools.space,
                    Named::new(fids),
                    t,
                    &mut Touched::default(),
                    meter,
                )?
            }
            Output::Key(n, Key::Value(_, t)) => {
                let mut column = Column::of(t, Data::for_type(t, range.len()));
                for group in range.clone() {
                    push(&mut column, self.groups.value(n, group));
                }
                column
            }
            Output::Result(n, t) => {
                let mut column = Column::of(t, Data::for_type(t, range.len()));
                for value in results.get(n).ok_or_else(lost)? {
                    push(&mut column, value.as_ref());
                }
                column
            }
            Output::Key(n, Key::Raw(_) | Key::Truth(_)) => {
                let truth = |group| match self.groups.raw(n, group) {
                    (_, true) => 2,
                    (word, false) => u8::from(word != 0),
                };
                logic::known(&range.clone().map(truth).collect::<Vec<u8>>())
            }
            Output::Count(_) => return Err(lost()),
        })
    }

    /// Appends a group to the fetch result, and values that need a slot to `entries`.
    fn output(
        &self,
        tools: Tools<'_>,
        group: usize,
        results: &[Vec<Option<Value>>],
        first: Fid,
        entries: &mut Vec<Entry>,
        fetched: &mut Fetched,
    ) -> Result<(), Failure> {
        let mut store = |value: Option<Value>| match value {
            Some(value) => {
                let slot = first.slot().saturating_add(entries.len() as u64);
                entries.push(Entry::Value(value));
                Fid::new(first.partition(), slot).0
            }
            None => {
                // Preserves the stride; 0 represents NULL.
                entries.push(Entry::Null);
                0
            }
        };
        for (output, column) in self.plan.outputs().zip(&mut fetched.columns) {
            let value = match output {
                Output::Key(n, Key::Column(..)) => {
                    let fid = self.groups.fid(n, group);
                    reveal(tools, fid);
                    fid.0
                }
                Output::Key(n, Key::Raw(_) | Key::Truth(_)) => {
                    let (value, null) = self.groups.raw(n, group);
                    if let Some(nulls) = &mut column.1 {
                        nulls.push(u8::from(null));
                    }
                    value
                }
                Output::Key(n, Key::Value(..)) => store(self.groups.value(n, group).cloned()),
                Output::Count(n) => {
                    let state = self.plan.aggregates.get(n).map(|a| a.state);
                    let state = state.and_then(|s| self.states.get(s));
                    state.ok_or_else(lost)?.count(group)
                }
                Output::Result(n, _) => {
                    let column = results.get(n).ok_or_else(lost)?;
                    let value = column.get(group - self.fetched).ok_or_else(lost)?;
                    store(value.clone())
                }
            };
            column.0.push(value);
        }
        Ok(())
    }
}

/// The row of a group reveals which rows are equal, counted as one row for each group.
fn reveal(tools: Tools<'_>, fid: Fid) {
    if !fid.is_temporary()
        && let Some(partition) = tools.space.store.get(fid.partition())
    {
        partition.reveal(OpResult::Hash, 1);
    }
}

fn push(column: &mut Column, value: Option<&Value>) {
    match value {
        Some(value) => column.push(&Scalar::of(value)),
        None => column.push_null(),
    }
}

fn no_constant() -> Failure {
    misfit("The condition on groups lacks a constant.").into()
}

/// The error for something missing although the plan was checked.
fn lost() -> Failure {
    fail::internal("an aggregation has lost a part").into()
}

/// Adds rows: first to groups, then to states.
#[allow(clippy::too_many_arguments)]
fn aggregate(
    plan: &Plan,
    groups: &mut Groups,
    states: &mut [States],
    account: &mut Account,
    numbers: &mut Vec<u32>,
    full: &mut bool,
    (returned, returned_rows): (&mut [Input], &mut usize),
    part: &Part<'_>,
) -> Result<(), Failure> {
    numbers.clear();
    if part.rows() == 0 {
        return Ok(());
    }
    if plan.keys.is_empty() {
        numbers.resize(part.rows(), 0);
    } else {
        let known = groups.len();
        groups.find(plan, part, account, full, numbers)?;
        if groups.len() > known {
            for state in states.iter_mut() {
                state.grow(groups.len());
            }
        }
        if *full {
            give_back(plan, part, numbers, account, returned, returned_rows)?;
        }
    }
    for (state, spec) in states.iter_mut().zip(&plan.states) {
        state.step(spec, part, numbers, account)?;
    }
    Ok(())
}

/// Approximate size of a returned row.
fn returned_bytes(plan: &Plan, inputs: &[Input], row: usize) -> usize {
    let cells = inputs.iter().map(|input| input.bytes_of(row));
    cells.fold(plan.row_bytes(), usize::saturating_add)
}

/// Keeps the rows that found no group.
fn give_back(
    plan: &Plan,
    part: &Part<'_>,
    numbers: &[u32],
    account: &mut Account,
    returned: &mut [Input],
    returned_rows: &mut usize,
) -> Result<(), Failure> {
    for (row, group) in numbers.iter().enumerate() {
        if *group != NO_GROUP {
            continue;
        }
        account.take_beyond(returned_bytes(plan, part.inputs(), part.first() + row))?;
        for (input, to) in part.inputs().iter().zip(returned.iter_mut()) {
            to.push(input, part.first() + row);
        }
        *returned_rows += 1;
    }
    Ok(())
}

/// An error that the plan should have excluded.
pub(crate) fn misfit(what: &'static str) -> Error {
    fail::misused_program(what)
}
