//! Aggregations over batches: registration, rows, groups. The computation itself is in
//! [`crate::aggregation`].

use super::Connection;
use crate::aggregation::{Aggregation, FETCH_MAX, Input, Plan};
use crate::fail::{self, Failure};
use crate::program::encoded::Encoded;
use crate::told::Told;
use contract::codec::Fixed;
use contract::message::ROWS_MAX;
use contract::message::aggregation::{MORE, RETURNED, UNMERGED};
use contract::message::column::{self, ColumnHead, Columns};
use contract::{Fid, answer, body};
use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;
use values::Error;

/// Maximum number of aggregations of one channel.
const AGGREGATIONS_MAX: usize = 1024;

fn unknown() -> Failure {
    Error::new(b"42883", "confide: no such aggregation").into()
}

/// Reads the columns of a batch.
fn inputs(plan: &Plan, columns: Columns<'_>, rows: usize) -> Result<Vec<Input>, Failure> {
    if columns.len() != plan.columns.len() {
        return Err(fail::malformed("There are other columns than were registered.").into());
    }
    let mut inputs = Vec::with_capacity(plan.columns.len());
    for (t, column) in plan.columns.iter().zip(columns.iter()) {
        inputs.push(Input::of(&Encoded::new(column, rows)?, *t, rows)?);
    }
    Ok(inputs)
}

impl Connection {
    pub(super) fn aggregate_register(
        &mut self,
        body: body::AggregateRegister<'_>,
    ) -> Result<(), Failure> {
        self.need_client()?;
        if self.aggregations.len() >= AGGREGATIONS_MAX {
            let error = fail::program_limit("The statement has too many aggregations.");
            return Err(error.into());
        }
        let session = &self.session;
        let programs = RefCell::new(Vec::new());
        let plan = Plan::new(&body, &self.keeper.table, |handle| {
            let program = session.program(handle);
            programs.borrow_mut().extend(program.clone());
            program
        })?;
        let mut aggregation = Aggregation::new(plan, &session.budget);
        for program in programs.into_inner() {
            aggregation.families |= program.families;
            let constants = program.constants.iter().map(|(fid, _)| *fid);
            aggregation.constants.extend(constants);
        }
        while self.aggregations.contains_key(&self.next_aggregation) {
            self.next_aggregation = self.next_aggregation.wrapping_add(1);
        }
        let handle = self.next_aggregation;
        self.next_aggregation = handle.wrapping_add(1);
        self.aggregations.insert(handle, aggregation);
        self.answer(&answer::AggregateRegister { handle });
        Ok(())
    }

    /// Passes an aggregation to `use_it`, which may also use the connection.
    fn with_aggregation<R>(
        &mut self,
        handle: u32,
        use_it: impl FnOnce(&mut Connection, &mut Aggregation) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.need_client()?;
        let mut aggregation = self.aggregations.remove(&handle).ok_or_else(unknown)?;
        let done = use_it(self, &mut aggregation);
        self.aggregations.insert(handle, aggregation);
        done
    }

    pub(super) fn aggregate_rows(&mut self, body: body::AggregateRows<'_>) -> Result<(), Failure> {
        let rows = body.rows as usize;
        if rows > ROWS_MAX {
            return Err(fail::malformed("There are too many rows.").into());
        }
        self.with_aggregation(body.handle, |this, aggregation| {
            let inputs = inputs(aggregation.plan(), body.batch, rows)?;
            this.authorise_rows(aggregation, &inputs)?;
            aggregation.rows(this.tools(), &inputs, rows)
        })
    }

    /// Everything that goes into an aggregation is authorised together.
    fn authorise_rows(
        &self,
        aggregation: &mut Aggregation,
        inputs: &[Input],
    ) -> Result<(), Failure> {
        let cells = |input: &Input| input.cells().map_or(0, |cells| cells.len());
        self.count_cells(inputs.iter().map(cells).sum());
        if !self.is_bound() {
            return Ok(());
        }
        let mut label = self.operands(&aggregation.constants)?.label;
        for input in inputs {
            let more = match input {
                Input::Fids(fids) => self.operands(fids)?.label,
                Input::Same(fid) => self.operands(&[*fid])?.label,
                Input::Raw(..) => continue,
                Input::Cells(..) => match input.cells() {
                    Some(cells) => self.label_of_each(cells)?,
                    None => continue,
                },
            };
            label = self.union(label, more)?;
        }
        aggregation.label = self.union(aggregation.label, label)?;
        let asked = self.authorise(aggregation.label, aggregation.families);
        asked.map_err(|failure| aggregation.fail(failure))
    }

    pub(super) fn aggregate_return(&mut self, body: body::AggregateReturn) -> Result<(), Failure> {
        self.with_aggregation(body.handle, |this, aggregation| {
            let (columns, rows, more) = aggregation.take_back();
            this.answer(&answer::AggregateReturn {
                allowance: aggregation.allowance(),
                rows: rows as u32,
                more: u32::from(more),
                columns: Columns::NONE,
            });
            for column in &columns {
                match column {
                    Input::Fids(v) => this.answer_column(v.iter().map(|fid| fid.0), None),
                    Input::Same(fid) => this.answer_column((0..rows).map(|_| fid.0), None),
                    Input::Raw(v, nulls) => this.answer_column(v.iter().copied(), Some(nulls)),
                    Input::Cells(bytes, ends) => this.answer_cells(bytes, ends),
                }
            }
            Ok(())
        })
    }

    pub(super) fn aggregate_fetch(
        &mut self,
        body: body::AggregateFetch<'_>,
    ) -> Result<(), Failure> {
        let (max, first) = (body.max as usize, body.first);
        let constants: Vec<Fid> = body.constants.iter().collect();
        self.space.own_arena(first.partition())?;
        self.with_aggregation(body.handle, |this, aggregation| {
            let more = this.operands(&constants)?.label;
            aggregation.label = this.union(aggregation.label, more)?;
            this.authorise(aggregation.label, aggregation.families)?;
            let tools = this
                .tools()
                .labelled(this.label_if_bound(aggregation.label));
            let fetched = aggregation.fetch(tools, first, max.min(FETCH_MAX), &constants)?;
            let mut flags = 0;
            flags |= if fetched.more { MORE } else { 0 };
            flags |= if fetched.returned { RETURNED } else { 0 };
            flags |= if fetched.unmerged { UNMERGED } else { 0 };
            let groups = fetched.groups as u64;
            let counters = &this.session.counters;
            counters.declassified.fetch_add(groups, Relaxed);
            this.told(aggregation.label, Told::Tokens, fetched.groups)?;
            this.answer(&answer::AggregateFetch {
                groups: fetched.groups as u32,
                flags,
                total: fetched.total,
                columns: Columns::NONE,
            });
            for (values, nulls) in &fetched.columns {
                this.answer_column(values.iter().copied(), nulls.as_deref());
            }
            Ok(())
        })
    }

    pub(super) fn aggregate_store(&mut self, body: &body::AggregateStore) -> Result<(), Failure> {
        let first = body.first;
        self.space.own_arena(first.partition())?;
        self.with_aggregation(body.handle, |this, aggregation| {
            let asked = this.authorise(aggregation.label, aggregation.families);
            let tools = this
                .tools()
                .labelled(this.label_if_bound(aggregation.label));
            let stored = asked.and_then(|()| aggregation.store(tools, first));
            if let Err(failure) = &stored {
                let results = aggregation.plan().stored();
                this.space.poison(first, results, failure);
            }
            stored
        })
    }

    /// Appends a column: a list, or, if `nulls` is given, unprotected values.
    fn answer_column(&mut self, values: impl ExactSizeIterator<Item = u64>, nulls: Option<&[u8]>) {
        let form = match nulls {
            Some(_) => column::RAW,
            None => column::LIST,
        };
        let count = values.len() as u32;
        ColumnHead { form, count }.put(&mut self.reply);
        values.for_each(|value| value.put(&mut self.reply));
        self.reply.extend_from_slice(nulls.unwrap_or_default());
    }

    /// Appends a column of cells.
    fn answer_cells(&mut self, bytes: &[u8], ends: &[usize]) {
        let (form, count) = (column::CELLS, ends.len() as u32);
        ColumnHead { form, count }.put(&mut self.reply);
        let mut start = 0;
        for end in ends {
            ((end - start) as u32).put(&mut self.reply);
            start = *end;
        }
        self.reply.extend_from_slice(bytes);
    }

    pub(super) fn aggregate_reset(&mut self, body: body::AggregateReset) -> Result<(), Failure> {
        let goes_on = body.goes_on == 1;
        self.with_aggregation(body.handle, |this, aggregation| match goes_on {
            true => aggregation.next_pass(&this.env),
            false => {
                aggregation.reset();
                Ok(())
            }
        })
    }

    pub(super) fn aggregate_hand_over(
        &mut self,
        body: body::AggregateHandOver,
    ) -> Result<(), Failure> {
        self.need_client()?;
        let handle = body.handle;
        let aggregation = self.aggregations.get(&handle).ok_or_else(unknown)?;
        aggregation.check_whole()?;
        let aggregation = self.aggregations.remove(&handle).ok_or_else(unknown)?;
        let statement = (!self.leads).then_some(self.statement);
        let number = self.session.handed.put(aggregation, statement)?;
        self.answer(&answer::AggregateHandOver { number });
        Ok(())
    }

    pub(super) fn aggregate_merge(&mut self, body: body::AggregateMerge) -> Result<(), Failure> {
        let other = self.session.handed.take(body.number);
        self.with_aggregation(body.handle, |this, aggregation| match other {
            Some(other) => {
                aggregation.label = this.union(aggregation.label, other.label)?;
                this.authorise(aggregation.label, aggregation.families)?;
                aggregation.merge(other, &this.env)
            }
            // Without its groups the result would be wrong.
            None => Err(aggregation.fail(unknown())),
        })
    }

    pub(super) fn aggregate_forget(&mut self, body: body::AggregateForget) -> Result<(), Failure> {
        // Forgetting an unknown aggregation is not an error: the sender could not do anything about
        // it.
        self.aggregations.remove(&body.handle);
        Ok(())
    }
}
