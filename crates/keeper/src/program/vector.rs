//! Evaluates one operation on whole columns. Fast paths compute all rows, including NULLs (whose
//! elements are meaningless), and leave unusual rows (overflow, division by zero) to crate
//! `values`, which raises PostgreSQL's errors.

use super::column::{Column, Data, string, strings};
use super::load::join;
use super::scalar;
use crate::fail::{self, Failure};
use crate::operators;
use crate::signatures::{ARITY_MAX, Kernel, Operation};
use crate::witness::{self, Source};
use calls::Outcome;
use contract::{Op, OpResult, TypeCode};
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use store::Budget;
use values::{Env, Error, Value};

/// What evaluation depends on in addition to its operands.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The session's settings.
    pub env: &'a Env,
    /// The key for hashes.
    pub hash_key: &'a [u8; 16],
    /// The meter to which intermediate results are charged.
    pub meter: &'a Meter<'a>,
}

/// Charges a session for the memory held by an evaluation until it ends. Charges in larger portions
/// than needed, since charging costs atomic operations.
pub struct Meter<'a> {
    budget: &'a Budget,
    taken: Cell<usize>,
    used: Cell<usize>,
}

/// Number of bytes charged at a time.
const PIECE: usize = 16 * 1024;

impl<'a> Meter<'a> {
    /// Creates a meter without charges.
    pub fn new(budget: &'a Budget) -> Meter<'a> {
        Meter {
            budget,
            taken: Cell::new(0),
            used: Cell::new(0),
        }
    }

    /// Charges bytes.
    #[inline]
    pub fn take(&self, bytes: usize) -> Result<(), Error> {
        let used = self.used.get().saturating_add(bytes);
        if used > self.taken.get() {
            self.charge(used - self.taken.get())?;
        }
        self.used.set(used);
        Ok(())
    }

    #[cold]
    fn charge(&self, missing: usize) -> Result<(), Error> {
        let piece = missing.max(PIECE);
        if self.budget.take(piece).is_ok() {
            self.taken.set(self.taken.get() + piece);
            return Ok(());
        }
        self.budget.take(missing)?;
        self.taken.set(self.taken.get() + missing);
        Ok(())
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.budget.give(self.taken.get());
    }
}

/// Evaluates an operation on operands of the correct types.
pub fn call(
    operation: &Operation,
    immediate: i32,
    args: &[&Column],
    rows: usize,
    context: Context<'_>,
) -> Column {
    let length = if args.iter().all(|c| c.is_constant()) {
        1
    } else {
        rows
    };
    let (nulls, failures) = strict(args, length);
    let told = witness::on() && operation.is_told();
    let frame = Frame {
        told,
        operation,
        immediate,
        args,
        rows: length,
        context,
        nulls,
        failures,
    };
    if told {
        let sources = args.iter().map(|column| column.source);
        let source = sources.fold(Source::Nothing, Source::with);
        return Column {
            source,
            ..frame.general()
        };
    }
    match frame.fast() {
        Ok(column) => column,
        Err(frame) => frame.general(),
    }
}

/// Determines which rows have an operand that is NULL or failed.
fn strict(args: &[&Column], rows: usize) -> (Vec<bool>, BTreeMap<u32, Failure>) {
    let mut nulls = Vec::new();
    for column in args.iter().filter(|c| !c.nulls.is_empty()) {
        nulls.resize(rows, false);
        for (row, null) in nulls.iter_mut().enumerate() {
            *null |= column.is_null(row);
        }
    }
    (nulls, join(args, rows))
}

/// Two columns of elements over which a loop can run.
enum Pair<'a, T> {
    Both(&'a [T], &'a [T]),
    Left(&'a [T], T),
    Right(T, &'a [T]),
}

impl<'a, T: Copy> Pair<'a, T> {
    fn new(a: &'a [T], b: &'a [T], rows: usize) -> Option<Pair<'a, T>> {
        match (a, b) {
            (a, b) if a.len() == rows && b.len() == rows => Some(Pair::Both(a, b)),
            (a, [b]) if a.len() == rows => Some(Pair::Left(a, *b)),
            ([a], b) if b.len() == rows => Some(Pair::Right(*a, b)),
            _ => None,
        }
    }

    #[inline]
    fn map<R>(&self, f: impl Fn(T, T) -> R) -> Vec<R> {
        match self {
            Pair::Both(a, b) => a.iter().zip(*b).map(|(a, b)| f(*a, *b)).collect(),
            Pair::Left(a, b) => a.iter().map(|a| f(*a, *b)).collect(),
            Pair::Right(a, b) => b.iter().map(|b| f(*a, *b)).collect(),
        }
    }

    fn at(&self, row: usize) -> Option<(T, T)> {
        match self {
            Pair::Both(a, b) => Some((*a.get(row)?, *b.get(row)?)),
            Pair::Left(a, b) => Some((*a.get(row)?, *b)),
            Pair::Right(a, b) => Some((*a, *b.get(row)?)),
        }
    }
}

/// Compares elements that the processor can compare.
fn compare<T: Copy + PartialOrd>(op: Op, pair: &Pair<'_, T>) -> Option<Data> {
    Some(Data::Bool(match op {
        Op::Lt => pair.map(|a, b| u8::from(a < b)),
        Op::Le => pair.map(|a, b| u8::from(a <= b)),
        Op::Eq => pair.map(|a, b| u8::from(a == b)),
        Op::Ge => pair.map(|a, b| u8::from(a >= b)),
        Op::Gt => pair.map(|a, b| u8::from(a > b)),
        Op::Ne => pair.map(|a, b| u8::from(a != b)),
        Op::Cmp => {
            return Some(Data::Order(
                pair.map(|a, b| i8::from(a > b) - i8::from(a < b)),
            ));
        }
        _ => return None,
    }))
}

/// Converts orders determined one by one into results.
fn by_order(op: Op, orders: impl Iterator<Item = Ordering>) -> Option<Data> {
    if op == Op::Cmp {
        return Some(Data::Order(orders.map(|o| o as i8).collect()));
    }
    let booleans: Option<Vec<u8>> = orders
        .map(|order| scalar::holds(op, order).map(u8::from))
        .collect();
    booleans.map(Data::Bool)
}

struct Frame<'a> {
    /// Each call is logged (`witness`).
    told: bool,
    operation: &'a Operation,
    immediate: i32,
    args: &'a [&'a Column],
    rows: usize,
    context: Context<'a>,
    nulls: Vec<bool>,
    failures: BTreeMap<u32, Failure>,
}

impl<'a> Frame<'a> {
    fn t(&self) -> TypeCode {
        self.operation.ret.map_or(TypeCode::Bool, TypeCode::stored)
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.get(row).is_some_and(|null| *null)
    }

    fn finish(self, data: Data) -> Column {
        Column {
            t: self.t(),
            data,
            nulls: self.nulls,
            failures: self.failures,
            source: Source::Nothing,
        }
    }

    /// Uses the fast path, or returns the frame unchanged.
    fn fast(self) -> Result<Column, Frame<'a>> {
        let data = match (self.operation.kernel, self.args) {
            (Kernel::Truth, [a]) => truth(a),
            (Kernel::Ordered | Kernel::OrderedPadded, [a, b]) => self.ordered(a, b),
            (Kernel::Like, [a, b]) => return self.like(a, b),
            (Kernel::Dated, [a, b]) => self.dated(a, b),
            (Kernel::Integer, [a, b]) => return self.integers(a, b),
            (Kernel::Days, [a, b]) => self.days(a, b),
            (Kernel::Numeric, [a, b]) => self.numerics(a, b),
            (Kernel::Float, [a, b]) => self.floats(a, b),
            _ => None,
        };
        match data {
            Some(data) => Ok(self.finish(data)),
            None => Err(self),
        }
    }

    fn ordered(&self, a: &Column, b: &Column) -> Option<Data> {
        let op = self.operation.op;
        match (&a.data, &b.data) {
            (Data::Int(a), Data::Int(b)) => compare(op, &Pair::new(a, b, self.rows)?),
            (Data::Scaled(a, sa), Data::Scaled(b, sb)) => {
                let (a, b) = (rescale(a, *sa, *sb)?, rescale(b, *sb, *sa)?);
                compare(op, &Pair::new(&a, &b, self.rows)?)
            }
            (Data::Float(a), Data::Float(b)) => {
                let pair = Pair::new(a, b, self.rows)?;
                by_order(op, pair.map(scalar::order_floats).into_iter())
            }
            (Data::Bytes(ba, ea), Data::Bytes(bb, eb)) => {
                let mut x: Vec<&[u8]> = strings(ba, ea).collect();
                let mut y: Vec<&[u8]> = strings(bb, eb).collect();
                if self.operation.kernel == Kernel::OrderedPadded {
                    let texts = x.iter_mut().chain(&mut y);
                    texts.for_each(|text| *text = scalar::without_blanks(text));
                }
                compare(op, &Pair::new(&x, &y, self.rows)?)
            }
            _ => None,
        }
    }

    /// A pattern that is the same for all rows is examined only once.
    fn like(mut self, a: &Column, b: &Column) -> Result<Column, Frame<'a>> {
        let (Data::Bytes(texts, ends), Data::Bytes(patterns, pattern_ends)) = (&a.data, &b.data)
        else {
            return Err(self);
        };
        if !b.is_constant() {
            return Err(self);
        }
        let pattern = values::Pattern::new(string(patterns, pattern_ends, 0));
        let wanted = self.operation.op == Op::Like;
        let out = self.each(|_, row| {
            let matches = pattern.matches(string(texts, ends, a.at(row)))?;
            Ok(u8::from(matches == wanted))
        });
        Ok(self.finish(Data::Bool(out)))
    }

    /// Compares dates with timestamps.
    fn dated(&self, a: &Column, b: &Column) -> Option<Data> {
        let (Data::Int(x), Data::Int(y)) = (&a.data, &b.data) else {
            return None;
        };
        let micros = |column: &Column, v: &[i64]| -> Option<Vec<i64>> {
            match column.t {
                TypeCode::Date => v.iter().map(|days| scalar::midnight(*days)).collect(),
                _ => Some(v.to_vec()),
            }
        };
        let (x, y) = (micros(a, x)?, micros(b, y)?);
        compare(self.operation.op, &Pair::new(&x, &y, self.rows)?)
    }

    fn integers(mut self, a: &Column, b: &Column) -> Result<Column, Frame<'a>> {
        let (Data::Int(x), Data::Int(y)) = (&a.data, &b.data) else {
            return Err(self);
        };
        let Some(pair) = Pair::new(x, y, self.rows) else {
            return Err(self);
        };
        let (op, ret) = (self.operation.op, self.t());
        let (out, odd) = integer_loop(op, ret, &pair);
        if odd {
            for row in 0..self.rows {
                let unusual = match pair.at(row) {
                    Some((x, y)) => scalar::integer(op, ret, x, y).is_none(),
                    None => true,
                };
                if unusual && !self.is_null(row) {
                    match self.value(row) {
                        // For integers, whatever the fast path cannot compute is an error.
                        Ok(_) => return Err(self),
                        Err(error) => self.fail(row, error),
                    }
                }
            }
        }
        Ok(self.finish(Data::Int(out)))
    }

    fn days(&self, a: &Column, b: &Column) -> Option<Data> {
        let (Data::Int(x), Data::Int(y)) = (&a.data, &b.data) else {
            return None;
        };
        let pair = Pair::new(x, y, self.rows)?;
        let odd = Cell::new(false);
        let out = pair.map(|x, y| {
            let v = scalar::days(self.operation.op, x, y);
            odd.set(odd.get() | v.is_none());
            v.unwrap_or(0)
        });
        // One unusual row makes the batch use the general path.
        (!odd.get()).then_some(Data::Int(out))
    }

    fn numerics(&self, a: &Column, b: &Column) -> Option<Data> {
        let (Data::Scaled(x, sx), Data::Scaled(y, sy)) = (&a.data, &b.data) else {
            return None;
        };
        let op = self.operation.op;
        let (_, scale) = scalar::scaled(op, 0, *sx, 0, *sy)?;
        let (x, y) = match op {
            Op::Mul => (Cow::Borrowed(x.as_slice()), Cow::Borrowed(y.as_slice())),
            _ => (rescale(x, *sx, *sy)?, rescale(y, *sy, *sx)?),
        };
        let pair = Pair::new(&x, &y, self.rows)?;
        let (out, odd) = integer_loop(op, TypeCode::Int8, &pair);
        // One row that does not fit makes the batch use general numbers.
        (!odd).then_some(Data::Scaled(out, scale))
    }

    fn floats(&self, a: &Column, b: &Column) -> Option<Data> {
        let (Data::Float(x), Data::Float(y)) = (&a.data, &b.data) else {
            return None;
        };
        let pair = Pair::new(x, y, self.rows)?;
        let (op, ret) = (self.operation.op, self.t());
        let mut out = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            let (x, y) = pair.at(row)?;
            match scalar::float(op, ret, x, y) {
                Some(v) => out.push(v),
                None if self.is_null(row) => out.push(0.0),
                None => return None,
            }
        }
        Some(Data::Float(out))
    }

    /// Evaluates row by row with crate `values`.
    fn general(mut self) -> Column {
        match self.operation.result() {
            OpResult::Fid => self.general_values(),
            OpResult::Bool => {
                let out = self.each(|frame, row| frame.test(row).map(u8::from));
                self.finish(Data::Bool(out))
            }
            OpResult::Order => {
                let out = self.each(|frame, row| frame.order(row).map(|o| o as i8));
                self.finish(Data::Order(out))
            }
            OpResult::Hash => {
                let out = self.each(Frame::hash);
                self.finish(Data::Hash(out))
            }
        }
    }

    fn each<T: Default>(&mut self, f: impl Fn(&Frame<'a>, usize) -> Result<T, Error>) -> Vec<T> {
        let mut out = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            if self.is_null(row) {
                out.push(T::default());
                continue;
            }
            match f(self, row) {
                Ok(v) => out.push(v),
                Err(error) => {
                    out.push(T::default());
                    self.fail(row, error);
                }
            }
        }
        out
    }

    fn general_values(mut self) -> Column {
        let t = self.t();
        let mut column = Column::of(t, Data::for_type(t, self.rows));
        for row in 0..self.rows {
            if let Some(failure) = self.failures.remove(&(row as u32)) {
                column.push_failure(failure);
            } else if self.is_null(row) {
                column.push_null();
            } else {
                match self.value(row) {
                    Ok(value) => column.push(&store::Scalar::of(&value)),
                    Err(error) if error.is_null() => column.push_null(),
                    Err(error) => column.push_failure(error.into()),
                }
            }
        }
        column
    }

    fn fail(&mut self, row: usize, error: Error) {
        self.nulls.resize(self.rows, false);
        if let Some(null) = self.nulls.get_mut(row) {
            *null = true;
        }
        self.failures.insert(row as u32, error.into());
    }

    fn operand(&self, index: usize, row: usize) -> Result<Cow<'a, Value>, Error> {
        self.args
            .get(index)
            .and_then(|column| column.value(row))
            .ok_or_else(|| fail::internal("an operand has no value"))
    }

    fn value(&self, row: usize) -> Result<Value, Error> {
        let mut operands = Vec::with_capacity(ARITY_MAX);
        for index in 0..self.args.len() {
            operands.push(self.operand(index, row)?);
        }
        let refs: Vec<&Value> = operands.iter().map(Cow::as_ref).collect();
        let ret = self.operation.ret.unwrap_or(TypeCode::Bool);
        let env = self.context.env;
        let apply = || operators::apply(self.operation.op, ret, self.immediate, &refs, env);
        let value = match self.told {
            true => self.watch(&refs, apply, |_| Outcome::Value)?,
            false => apply()?,
        };
        self.context.meter.take(value.heap_bytes())?;
        Ok(value)
    }

    /// Whether a row is in the frame of a window.
    fn within(&self, row: usize) -> Result<bool, Error> {
        let [value, base, offset] = [0, 1, 2].map(|index| self.operand(index, row));
        let (value, base, offset) = (value?, base?, offset?);
        let env = self.context.env;
        let within = || values::in_range(self.immediate, &value, &base, &offset, env);
        match self.told {
            true => self.watch(&[&*value, &*base, &*offset], within, truth_of),
            false => within(),
        }
    }

    fn test(&self, row: usize) -> Result<bool, Error> {
        if self.operation.op == Op::InRange {
            return self.within(row);
        }
        let (a, b) = (self.operand(0, row)?, self.operand(1, row)?);
        let test = || values::test(self.operation.op, &a, &b, self.context.env);
        match self.told {
            true => self.watch(&[&*a, &*b], test, truth_of),
            false => test(),
        }
    }

    fn order(&self, row: usize) -> Result<Ordering, Error> {
        let (a, b) = (self.operand(0, row)?, self.operand(1, row)?);
        let order = || values::compare(&a, &b, self.context.env);
        match self.told {
            true => self.watch(&[&*a, &*b], order, |order| {
                Outcome::Answer(match order {
                    Ordering::Less => "<",
                    Ordering::Equal => "=",
                    Ordering::Greater => ">",
                })
            }),
            false => order(),
        }
    }

    /// Makes a call and logs it.
    #[cold]
    fn watch<R>(
        &self,
        operands: &[&Value],
        call: impl FnOnce() -> Result<R, Error>,
        outcome: impl FnOnce(&R) -> Outcome,
    ) -> Result<R, Error> {
        let operands: Vec<(&Value, Source)> = operands
            .iter()
            .zip(self.args)
            .map(|(value, column)| (*value, column.source))
            .collect();
        witness::watch(self.operation, self.immediate, &operands, call, outcome)
    }

    fn hash(&self, row: usize) -> Result<u64, Error> {
        Ok(hash(&*self.operand(0, row)?, self.context.hash_key))
    }
}

fn truth_of(truth: &bool) -> Outcome {
    Outcome::Answer(if *truth { "true" } else { "false" })
}

/// The hash of a value; never 0, which represents NULL.
pub fn hash(value: &Value, key: &[u8; 16]) -> u64 {
    values::hash(value, key).max(1)
}

fn truth(a: &Column) -> Option<Data> {
    match &a.data {
        Data::Int(v) => Some(Data::Bool(v.iter().map(|b| u8::from(*b != 0)).collect())),
        _ => None,
    }
}

/// Converts multiples of 10^-`from` to the larger of two scales.
fn rescale(v: &[i64], from: u16, other: u16) -> Option<Cow<'_, [i64]>> {
    if from >= other {
        return Some(Cow::Borrowed(v));
    }
    let factor = scalar::power(other - from)?;
    let scaled: Option<Vec<i64>> = v.iter().map(|x| x.checked_mul(factor)).collect();
    scaled.map(Cow::Owned)
}

/// Returns all results, and whether any row has a result out of range (its element is arbitrary).
fn integer_loop(op: Op, ret: TypeCode, pair: &Pair<'_, i64>) -> (Vec<i64>, bool) {
    let (low, high) = match ret {
        TypeCode::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        TypeCode::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let odd = Cell::new(false);
    let narrow = |(v, overflow): (i64, bool)| {
        odd.set(odd.get() | overflow | (v < low) | (v > high));
        v
    };
    let out = match op {
        Op::Add => pair.map(|a, b| narrow(a.overflowing_add(b))),
        Op::Sub => pair.map(|a, b| narrow(a.overflowing_sub(b))),
        Op::Mul => pair.map(|a, b| narrow(a.overflowing_mul(b))),
        Op::Div => pair.map(|a, b| match a.checked_div(b) {
            Some(v) => narrow((v, false)),
            None => narrow((0, true)),
        }),
        _ => {
            odd.set(true);
            pair.map(|a, _| a)
        }
    };
    (out, odd.get())
}
