//! `Eval` and `Declassify`. One row of one operation is the most frequent request; it avoids
//! vectors and allocations where possible.

use super::Connection;
use super::telling::as_told;
use crate::fail::{self, Failure};
use crate::operators;
use crate::program::eval::{Batch, Target, Tools};
use crate::program::load::Named;
use crate::program::{scalar, vector};
use crate::signatures::{Kernel, Operation};
use contract::codec::List;
use contract::message::program::FIRST_HANDLE;
use contract::message::{COLUMNS_MAX, NULL_RESULT, ROWS_MAX};
use contract::{Fid, Op, OpResult, TypeCode, body};
use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;
use store::{Entry, Label, Scalar};
use values::{Error, Value};

/// Shape and operands of an evaluation.
struct Request<'a> {
    program: u32,
    immediate: i32,
    rows: usize,
    columns: usize,
    fids: List<'a, Fid>,
}

/// Operands of a single row of one operation; there may be only one.
#[derive(Clone, Copy)]
pub(super) struct Single {
    fids: [Fid; 2],
    columns: usize,
}

/// Makes the request from a body: `Eval` and `Declassify` have fields of the same names.
macro_rules! request {
    ($body:expr) => {
        Request {
            program: $body.program,
            immediate: $body.immediate,
            rows: $body.rows as usize,
            columns: $body.columns as usize,
            fids: $body.fids,
        }
        .checked()
    };
}

impl<'a> Request<'a> {
    #[inline]
    fn checked(self) -> Result<Request<'a>, Error> {
        if self.rows > ROWS_MAX || self.columns > COLUMNS_MAX {
            return Err(fail::malformed("There are too many rows or columns."));
        }
        Ok(self)
    }

    #[inline]
    fn single(&self, below: u32) -> Option<Single> {
        if self.rows != 1 || self.program >= below {
            return None;
        }
        let a = self.fids.get(0)?;
        let b = match self.columns {
            1 => Fid::INVALID,
            2 => self.fids.get(1)?,
            _ => return None,
        };
        Some(Single {
            fids: [a, b],
            columns: self.columns,
        })
    }
}

impl Single {
    /// Partitions of stored operands, once each; 0: none.
    #[inline]
    fn stored(&self) -> [u32; 2] {
        let stored = |fid: Fid| match fid.is_temporary() {
            true => 0,
            false => fid.partition(),
        };
        // If there is one operand, the other is `INVALID`.
        let [a, b] = self.fids.map(stored);
        [a, if a == b { 0 } else { b }]
    }
}

/// A row that was revealed but is not counted yet.
pub(super) struct Unsettled {
    stored: [u32; 2],
    result: OpResult,
    label: Label,
}

/// The result of declassifying a row.
enum Revealed {
    Null,
    Bool(bool),
    Order(Ordering),
    Hash(u64),
}

fn misfit() -> Failure {
    fail::misused_program("Its result is of another kind.").into()
}

impl Connection {
    pub(super) fn eval(&mut self, body: body::Eval<'_>) -> Result<(), Failure> {
        let first = body.first;
        let request = request!(body)?;
        match self.eval_request(&request, first) {
            Ok(None) => Ok(()),
            // Single rows failed, and have been poisoned.
            Ok(Some(failure)) => Err(failure),
            Err(failure) => {
                self.space.poison(first, request.rows, &failure);
                Err(failure)
            }
        }
    }

    fn eval_request(
        &mut self,
        request: &Request<'_>,
        first: Fid,
    ) -> Result<Option<Failure>, Failure> {
        let single = request.single(self.singles_below);
        self.may_evaluate(request, single)?;
        if let Some(single) = single {
            let operation = self.operation(request.program)?;
            let label = self.authorise_row(request.program, single.fids)?;
            let entry = match self.whole_result(operation, single) {
                Some(value) => Entry::Value(value),
                None => self.eval_one(request, single)?,
            };
            self.space.set(first, entry, label)?;
            return Ok(None);
        }
        self.space.own_arena(first.partition())?;
        self.with_batch(request, |this, batch, _| {
            if batch.target.result() != OpResult::Fid {
                return Err(misfit());
            }
            let label = this.authorise_batch(&batch)?;
            batch.store(this.tools().labelled(label), first)
        })
    }

    /// Without a client session, a temporary value (from an export envelope) may be converted to
    /// the length or precision of its column, as when COPY imports it, if this does not change the
    /// value (`may_fit`).
    #[inline]
    fn may_evaluate(&self, request: &Request<'_>, single: Option<Single>) -> Result<(), Error> {
        if self.client.is_some() {
            return Ok(());
        }
        let fits = |single: Single| {
            let operation = self.operation(request.program);
            single.columns == 1
                && single.fids[0].is_temporary()
                && operation.is_ok_and(|o| matches!(o.op, Op::Typmod | Op::TypmodExplicit))
        };
        match single.is_some_and(fits) {
            true => Ok(()),
            false => self.need_client(),
        }
    }

    pub(super) fn tools(&self) -> Tools<'_> {
        Tools {
            space: &self.space,
            env: &self.env,
            label: 0,
        }
    }

    /// Like [`Self::authorise_row`], for many rows.
    fn authorise_batch(&self, batch: &Batch<'_>) -> Result<Label, Failure> {
        if !self.is_bound() {
            return Ok(0);
        }
        let operands = self.operands_of_columns(batch.columns)?;
        match batch.target {
            Target::One(operation, _) if operation.is_comparison() => {
                self.authorise_order(operands)?;
                Ok(operands.label)
            }
            Target::One(operation, _) => {
                self.authorise(operands.label, operation.family)?;
                Ok(operands.label)
            }
            Target::Program(program) => {
                let columns = vec![operands; program.inputs.len()];
                let label = self.program_label(program, &columns)?;
                self.authorise(label, program.families)?;
                Ok(label)
            }
        }
    }

    /// Passes the batch of a request, and the reply to append to, to `use_it`.
    fn with_batch<R>(
        &mut self,
        request: &Request<'_>,
        use_it: impl FnOnce(&Connection, Batch<'_>, &mut Vec<u8>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut fids = std::mem::take(&mut self.fids);
        let mut reply = std::mem::take(&mut self.reply);
        fids.clear();
        request.fids.append_to(&mut fids);
        let registered;
        let target = if request.program < FIRST_HANDLE {
            let operation = self.operation(request.program);
            operation.map(|operation| Target::One(operation, request.immediate))
        } else {
            registered = self.session.program(request.program);
            let program = registered.as_ref().ok_or_else(fail::no_such_program);
            program.map(|program| Target::Program(program))
        };
        let done = target.map_err(Failure::from).and_then(|target| {
            let columns = fids.chunks_exact(request.rows.max(1)).map(Named::new);
            let batch = Batch {
                target,
                fids: &fids,
                columns: &columns.collect::<Vec<_>>(),
                rows: request.rows,
            };
            use_it(self, batch, &mut reply)
        });
        self.fids = fids;
        self.reply = reply;
        done
    }

    #[inline]
    fn operation(&self, program: u32) -> Result<&Operation, Error> {
        let operation = self.keeper.table.operation(program);
        operation.ok_or_else(fail::no_such_program)
    }

    /// The operands of an operation on two integers, if they are at hand.
    #[inline]
    fn two_ints(&self, operation: &Operation, single: Single) -> Option<[i64; 2]> {
        match operation.args.as_slice() {
            [ta, tb] if operation.whole && single.columns == 2 => {
                self.space.two_ints(single.fids, [*ta, *tb])
            }
            _ => None,
        }
    }

    /// The value of such an operation.
    #[inline]
    fn whole_result(&self, operation: &Operation, single: Single) -> Option<Value> {
        let [a, b] = self.two_ints(operation, single)?;
        scalar::whole(operation, a, b)
    }

    /// What is answered to such a comparison.
    #[inline]
    fn whole_answer(&self, operation: &Operation, single: Single) -> Option<u8> {
        let [a, b] = self.two_ints(operation, single)?;
        let order = a.cmp(&b);
        match operation.op {
            Op::Cmp => Some(order as i8 as u8),
            op => scalar::holds(op, order).map(u8::from),
        }
    }

    /// Evaluates an operation on one row.
    fn eval_one(&mut self, request: &Request<'_>, single: Single) -> Result<Entry, Failure> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = self.eval_one_with(request, single, &mut scratch);
        self.scratch = scratch;
        done
    }

    fn eval_one_with(
        &self,
        request: &Request<'_>,
        single: Single,
        scratch: &mut Vec<u8>,
    ) -> Result<Entry, Failure> {
        let operation = self.operation(request.program)?;
        let Some(ret) = operation.ret else {
            return Err(misfit());
        };
        let [a, b] = single.fids;
        match (operation.args.as_slice(), single.columns) {
            ([ta, tb], 2) => {
                let fast = self
                    .space
                    .look_at_two([a, b], [*ta, *tb], scratch, |a, b| {
                        scalar::apply(operation, a, b)
                    })?;
                match fast {
                    None => return Ok(Entry::Null),
                    Some(Some(value)) => return Ok(Entry::Value(value)),
                    Some(None) => {}
                }
                let (Some(a), Some(b)) = (self.value(a, *ta)?, self.value(b, *tb)?) else {
                    return Ok(Entry::Null);
                };
                self.apply(operation, ret, request.immediate, &[&a, &b])
            }
            ([t], 1) => match self.value(a, *t)? {
                None => Ok(Entry::Null),
                Some(a) => {
                    let made = self.apply(operation, ret, request.immediate, &[&a])?;
                    if let (None, Entry::Value(made)) = (&self.client, &made) {
                        self.may_fit(&a, made)?; // the only evaluation without a client
                    }
                    Ok(made)
                }
            },
            _ => Err(misfit()),
        }
    }

    fn value(&self, fid: Fid, t: TypeCode) -> Result<Option<Value>, Failure> {
        self.space.value(fid, Some(t))
    }

    fn apply(
        &self,
        operation: &Operation,
        ret: TypeCode,
        immediate: i32,
        args: &[&Value],
    ) -> Result<Entry, Failure> {
        match operators::apply(operation.op, ret, immediate, args, &self.env) {
            Ok(value) => Ok(Entry::Value(value)),
            Err(error) if error.is_null() => Ok(Entry::Null),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn declassify(&mut self, body: body::Declassify<'_>) -> Result<(), Failure> {
        let request = request!(body)?;
        match request.single(self.singles_below) {
            Some(single) => return self.declassify_one(&request, single),
            None => self.with_batch(&request, |this, batch, reply| {
                match batch.target {
                    Target::One(operation, _) => this.may_declassify(operation, batch.fids)?,
                    Target::Program(_) => this.need_client()?,
                }
                if batch.target.result() == OpResult::Fid {
                    return Err(misfit());
                }
                let label = this.authorise_batch(&batch)?;
                batch.declassify(this.tools(), reply)?;
                let what = as_told(batch.target.result());
                this.told_of(label, what, batch.fids, request.rows)
            })?,
        }
        let counters = &self.session.counters;
        counters
            .declassified
            .fetch_add(request.rows as u64, Relaxed);
        Ok(())
    }

    #[inline]
    fn declassify_one(&mut self, request: &Request<'_>, single: Single) -> Result<(), Failure> {
        let operation = self.operation(request.program)?;
        self.may_declassify(operation, &single.fids)?;
        let label = self.authorise_row(request.program, single.fids)?;
        let result = operation.result();
        let Some(answer) = self.whole_answer(operation, single) else {
            return self.declassify_other(request, single, label);
        };
        self.spend_single(single, result, label)?;
        self.reply.push(answer);
        self.settle_later(single, result, label);
        Ok(())
    }

    #[inline]
    fn settle_later(&mut self, single: Single, result: OpResult, label: Label) {
        self.unsettled = Some(Unsettled {
            stored: single.stored(),
            result,
            label,
        });
    }

    #[inline]
    fn spend_single(&self, single: Single, result: OpResult, label: Label) -> Result<(), Failure> {
        match self.keeper.viewers.has_budgets() {
            true => self.spend_single_budget(single, result, label),
            false => Ok(()),
        }
    }

    #[cold]
    fn spend_single_budget(
        &self,
        single: Single,
        result: OpResult,
        label: Label,
    ) -> Result<(), Failure> {
        let label = self.label_or_stored(label, single.stored());
        self.spend(label, as_told(result), 1)
    }

    #[inline(never)]
    fn declassify_other(
        &mut self,
        request: &Request<'_>,
        single: Single,
        label: Label,
    ) -> Result<(), Failure> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = self.reveal(request, single, &mut scratch);
        self.scratch = scratch;
        let (revealed, result) = done?;
        self.spend_single(single, result, label)?;
        self.settle_later(single, result, label);
        match (revealed, result) {
            (Revealed::Null, OpResult::Hash) => self.reply.extend_from_slice(&[0; 8]),
            (Revealed::Null, _) => self.reply.push(NULL_RESULT),
            (Revealed::Bool(v), _) => self.reply.push(u8::from(v)),
            (Revealed::Order(o), _) => self.reply.push(o as i8 as u8),
            (Revealed::Hash(h), _) => self.reply.extend_from_slice(&h.to_le_bytes()),
        }
        Ok(())
    }

    /// Counts what was revealed last. The backend need not wait for that: it happens after the
    /// answer, at the latest with the next request.
    #[inline]
    pub fn settle(&mut self) {
        if let Some(last) = self.unsettled.take() {
            for number in last.stored {
                if number != 0
                    && let Some(partition) = self.keeper.store.get(number)
                {
                    partition.reveal(last.result, 1);
                }
            }
            let label = self.label_or_stored(last.label, last.stored);
            self.tally(label, as_told(last.result), 1);
            let counters = &self.session.counters;
            counters.declassified.fetch_add(1, Relaxed);
        }
    }

    fn reveal(
        &self,
        request: &Request<'_>,
        single: Single,
        scratch: &mut Vec<u8>,
    ) -> Result<(Revealed, OpResult), Failure> {
        let operation = self.operation(request.program)?;
        let revealed = match (operation.args.as_slice(), single.columns) {
            ([ta, tb], 2) => self.reveal_two(operation, single.fids, [*ta, *tb], scratch)?,
            ([t], 1) => self.reveal_single(operation, single.fids, *t)?,
            _ => return Err(misfit()),
        };
        Ok((revealed, operation.result()))
    }

    #[inline]
    fn reveal_two(
        &self,
        operation: &Operation,
        fids: [Fid; 2],
        types: [TypeCode; 2],
        scratch: &mut Vec<u8>,
    ) -> Result<Revealed, Failure> {
        let op = operation.op;
        let ints = match operation.whole {
            true => self.space.two_ints(fids, types),
            false => None,
        };
        let order = match ints {
            Some([a, b]) => Some(Some(a.cmp(&b))),
            None => self.look_at_order(operation.kernel, fids, types, scratch)?,
        };
        match order {
            None => return Ok(Revealed::Null),
            Some(Some(order)) if op == Op::Cmp => return Ok(Revealed::Order(order)),
            Some(Some(order)) => {
                if let Some(truth) = scalar::holds(op, order) {
                    return Ok(Revealed::Bool(truth));
                }
            }
            Some(None) => {}
        }
        let ([a, b], [ta, tb]) = (fids, types);
        let (Some(a), Some(b)) = (self.value(a, ta)?, self.value(b, tb)?) else {
            return Ok(Revealed::Null);
        };
        match operation.result() {
            OpResult::Order => Ok(Revealed::Order(values::compare(&a, &b, &self.env)?)),
            OpResult::Bool => Ok(Revealed::Bool(values::test(op, &a, &b, &self.env)?)),
            _ => Err(misfit()),
        }
    }

    #[inline(never)]
    fn look_at_order(
        &self,
        kernel: Kernel,
        fids: [Fid; 2],
        types: [TypeCode; 2],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Option<Ordering>>, Failure> {
        self.space
            .look_at_two(fids, types, scratch, |a, b| scalar::order(kernel, a, b))
    }

    /// Declassifies the order of an index key and a value, given the signature of a comparison;
    /// `None` if one is NULL. If a client searches an index, the column's index order is to be
    /// maintained from then on.
    #[inline]
    pub(super) fn reveal_order(
        &self,
        program: u32,
        fids: [Fid; 2],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Ordering>, Failure> {
        let operation = self.operation(program)?;
        let (Op::Cmp, [ta, tb]) = (operation.op, operation.args.as_slice()) else {
            return Err(misfit());
        };
        self.may_declassify(operation, &fids)?;
        let revealed = self.reveal_two(operation, fids, [*ta, *tb], scratch)?;
        self.count(&fids, OpResult::Order);
        let [key, _] = fids;
        if self.client.is_some()
            && let Some(column) = self.keeper.store.get(key.partition())
        {
            column.set_indexed();
        }
        match revealed {
            Revealed::Order(order) => Ok(Some(order)),
            _ => Ok(None),
        }
    }

    fn reveal_single(
        &self,
        operation: &Operation,
        [fid, _]: [Fid; 2],
        t: TypeCode,
    ) -> Result<Revealed, Failure> {
        match operation.op {
            Op::IsTrue => {
                let truth = self
                    .space
                    .look(fid, t, |v| matches!(v, Scalar::Int(v) if *v != 0))?;
                Ok(truth.map_or(Revealed::Null, Revealed::Bool))
            }
            Op::Hash => {
                let value = self.value(fid, t)?;
                let key = &self.keeper.keys.hash;
                let hash = value.map(|v| vector::hash(&v, key));
                Ok(hash.map_or(Revealed::Null, Revealed::Hash))
            }
            _ => Err(misfit()),
        }
    }

    /// Counts a row for each column involved.
    #[inline]
    fn count(&self, fids: &[Fid], result: OpResult) {
        let mut last = 0;
        for fid in fids.iter().filter(|fid| !fid.is_temporary()) {
            let number = fid.partition();
            if number != last
                && let Some(partition) = self.keeper.store.get(number)
            {
                partition.reveal(result, 1);
            }
            last = number;
        }
    }
}
