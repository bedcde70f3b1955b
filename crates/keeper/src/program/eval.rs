//! Evaluation of a program over a batch. The batch is processed in parts, so that intermediate
//! results stay in the CPU cache and memory is bounded.

use super::among::among;
use super::check::Program;
use super::column::{Column, Data};
use super::load::{Named, Touched, load};
use super::logic;
use super::vector::{Context, Meter, call};
use crate::fail::{self, Failure};
use crate::signatures::{Operation, Table};
use crate::space::Space;
use contract::message::program as code;
use contract::{Fid, OpResult, TypeCode};
use std::rc::Rc;
use store::{Entry, Label};
use values::{Env, Numeric, Value};

/// Number of rows in a part.
pub(super) const PART: usize = 1024;

/// The program to evaluate.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// A single operation, with its immediate operand.
    One(&'a Operation, i32),
    /// A registered program.
    Program(&'a Program),
}

impl Target<'_> {
    /// Kind of the result.
    pub fn result(&self) -> OpResult {
        match self {
            Target::One(operation, _) => operation.result(),
            Target::Program(program) => program.result,
        }
    }

    fn arity(&self) -> usize {
        match self {
            Target::One(operation, _) => operation.args.len(),
            Target::Program(program) => program.inputs.len(),
        }
    }

    /// Type of an input; `None` for plain booleans, which are not possible here.
    fn input(&self, number: usize) -> Option<TypeCode> {
        match self {
            Target::One(operation, _) => operation.args.get(number).copied(),
            Target::Program(program) => program.inputs.get(number).copied().flatten(),
        }
    }
}

/// A batch: FIDs column by column.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The program to evaluate.
    pub target: Target<'a>,
    /// Columns × rows FIDs.
    pub fids: &'a [Fid],
    /// The same, column by column.
    pub columns: &'a [Named<'a>],
    /// Number of rows.
    pub rows: usize,
}

/// The environment of an evaluation.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// The values that can be named.
    pub space: &'a Space,
    /// The session's settings.
    pub env: &'a Env,
    /// Label of the results; 0: not tracked.
    pub label: Label,
}

impl<'a> Tools<'a> {
    /// The same, with another label for results.
    pub fn labelled(self, label: Label) -> Tools<'a> {
        Tools { label, ..self }
    }
}

impl Batch<'_> {
    /// Checks that the batch has the columns that the target takes.
    pub fn check(&self) -> Result<(), values::Error> {
        let columns = self.target.arity();
        if matches!(self.target, Target::Program(program) if program.takes_lists()) {
            return Err(fail::misused_program("An input is a list."));
        }
        if self.fids.len() != columns.saturating_mul(self.rows) {
            return Err(fail::misused_program("It takes another number of columns."));
        }
        Ok(())
    }

    /// Evaluates rows `from..to`.
    fn part(
        &self,
        tools: Tools<'_>,
        from: usize,
        to: usize,
        touched: &mut Touched,
    ) -> Result<Column, Failure> {
        let space = tools.space;
        let meter = Meter::new(&space.budget);
        let context = Context {
            env: tools.env,
            hash_key: &space.keys.hash,
            meter: &meter,
        };
        let mut inputs = Vec::with_capacity(self.target.arity());
        for (number, column) in self.columns.iter().enumerate() {
            let t = self.target.input(number);
            let t = t.ok_or_else(|| fail::misused_program("An input is of plain booleans."))?;
            inputs.push(load(space, column.part(from, to), t, touched, &meter)?);
        }
        match self.target {
            Target::One(operation, immediate) => {
                let args: Vec<&Column> = inputs.iter().collect();
                Ok(call(operation, immediate, &args, to - from, context))
            }
            Target::Program(program) => {
                let inputs: Vec<&Column> = inputs.iter().collect();
                run(space, program, &inputs, to - from, context)
            }
        }
    }

    /// Evaluates, and appends the declassified results to `out`. The failure of the first failing
    /// row is returned for the whole batch.
    pub fn declassify(&self, tools: Tools<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.check()?;
        let mut touched = Touched::default();
        let mut from = 0;
        while from < self.rows {
            let to = self.rows.min(from + PART);
            let column = self.part(tools, from, to, &mut touched)?;
            if let Some((_, failure)) = column.failures.first_key_value() {
                return Err(failure.clone());
            }
            write(&column, to - from, out)?;
            from = to;
        }
        let result = self.target.result();
        for (partition, rows) in touched.iter() {
            if let Some(partition) = tools.space.store.get(partition) {
                partition.reveal(result, rows);
            }
        }
        Ok(())
    }

    /// Evaluates, and stores the results in consecutive slots. Rows that fail are poisoned. Returns
    /// the first failure that was not reported before.
    pub fn store(&self, tools: Tools<'_>, first: Fid) -> Result<Option<Failure>, Failure> {
        self.check()?;
        let mut new = None;
        let mut from = 0;
        while from < self.rows {
            let to = self.rows.min(from + PART);
            let column = self.part(tools, from, to, &mut Touched::default())?;
            let failure = store(tools.space, &column, (first, tools.label), from, to)?;
            new = new.or(failure);
            from = to;
        }
        Ok(new)
    }
}

/// Evaluates a program over a part, given one column for each input.
pub fn run(
    space: &Space,
    program: &Program,
    inputs: &[&Column],
    rows: usize,
    context: Context<'_>,
) -> Result<Column, Failure> {
    let constants = constants(space, program, context.meter)?;
    let run = Run {
        table: &space.table,
        inputs,
        constants: &constants,
        rows,
        context,
    };
    run.all(program)
}

/// Stores a part's results. Returns the first failure that was not reported before.
pub(super) fn store(
    space: &Space,
    column: &Column,
    (first, label): (Fid, Label),
    from: usize,
    to: usize,
) -> Result<Option<Failure>, Failure> {
    let mut window = space.own_arena(first.partition())?.write();
    let first = first.slot().saturating_add(from as u64);
    window.mark(first, to - from, label)?;
    let new = column.failures.values().find(|f| !f.told).cloned();
    match &column.data {
        // The common case: no NULLs and no failures.
        Data::Scaled(v, scale) if column.nulls.is_empty() && v.len() == to - from => {
            let entry = |v: &i64| Entry::Value(Value::Numeric(Numeric::from_scaled(*v, *scale)));
            window.set_all(first, v.iter().map(entry))?;
        }
        _ => window.set_all(first, (0..to - from).map(|row| entry(column, row)))?,
    }
    Ok(new)
}

/// The result of a row.
fn entry(column: &Column, row: usize) -> Entry {
    if let Some(failure) = column.failure(row) {
        return Entry::Poison(failure.error.clone());
    }
    if column.is_null(row) {
        return Entry::Null;
    }
    match column.value(row) {
        Some(value) => Entry::Value(value.into_owned()),
        None => Entry::Poison(Failure::from(fail::internal("a result has no value")).error),
    }
}

/// Writes declassified results, with NULL as the contract defines it.
pub(super) fn write(column: &Column, rows: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    const NULL: u8 = 2;
    let each = |out: &mut Vec<u8>, value: &dyn Fn(usize) -> u8| {
        for row in 0..rows {
            let null = column.is_null(row);
            out.push(if null { NULL } else { value(column.at(row)) });
        }
    };
    match &column.data {
        Data::Bool(v) if column.nulls.is_empty() && v.len() == rows => out.extend_from_slice(v),
        Data::Bool(v) => each(out, &|at| v.get(at).copied().unwrap_or(0)),
        Data::Order(v) => each(out, &|at| v.get(at).copied().unwrap_or(0) as u8),
        Data::Hash(v) => {
            for row in 0..rows {
                let hash = v.get(column.at(row)).copied().unwrap_or(0);
                let hash = if column.is_null(row) { 0 } else { hash };
                out.extend_from_slice(&hash.to_le_bytes());
            }
        }
        _ => return Err(fail::internal("a value was to be declassified").into()),
    }
    Ok(())
}

fn constants(space: &Space, program: &Program, meter: &Meter<'_>) -> Result<Vec<Column>, Failure> {
    let mut touched = Touched::default();
    let mut columns = Vec::with_capacity(program.constants.len());
    for (fid, t) in &program.constants {
        let t = t.unwrap_or(TypeCode::Bool);
        columns.push(load(space, Named::new(&[*fid]), t, &mut touched, meter)?);
    }
    Ok(columns)
}

/// A column that belongs to somebody else, was computed, or is also held by a local variable.
enum Element<'a> {
    There(&'a Column),
    Made(Column),
    Shared(Rc<Column>),
}

impl<'a> Element<'a> {
    fn column(&self) -> &Column {
        match self {
            Element::There(column) => column,
            Element::Made(column) => column,
            Element::Shared(column) => column,
        }
    }

    /// Duplicates a column.
    fn split(self) -> (Element<'a>, Element<'a>) {
        match self {
            Element::There(column) => (Element::There(column), Element::There(column)),
            Element::Made(column) => Element::Shared(Rc::new(column)).split(),
            Element::Shared(column) => {
                (Element::Shared(Rc::clone(&column)), Element::Shared(column))
            }
        }
    }
}

struct Run<'a> {
    table: &'a Table,
    inputs: &'a [&'a Column],
    constants: &'a [Column],
    rows: usize,
    context: Context<'a>,
}

/// The type check should have prevented this.
fn unchecked() -> Failure {
    fail::internal("a program does not fit together").into()
}

impl<'a> Run<'a> {
    fn all(&self, program: &Program) -> Result<Column, Failure> {
        let mut stack: Vec<Element<'a>> = Vec::new();
        let mut locals: Vec<Option<Element<'a>>> = Vec::new();
        for instruction in &program.code {
            let local = usize::from(instruction.operand);
            let element = match instruction.code {
                code::STORE => {
                    let (kept, top) = stack.pop().ok_or_else(unchecked)?.split();
                    if locals.len() <= local {
                        locals.resize_with(local + 1, || None);
                    }
                    *locals.get_mut(local).ok_or_else(unchecked)? = Some(kept);
                    top
                }
                code::LOAD => {
                    let place = locals.get_mut(local).ok_or_else(unchecked)?;
                    let (kept, top) = place.take().ok_or_else(unchecked)?.split();
                    *place = Some(kept);
                    top
                }
                _ => self.step(instruction, &mut stack)?,
            };
            stack.push(element);
        }
        drop(locals);
        match stack.pop().ok_or_else(unchecked)? {
            Element::Made(column) => Ok(column),
            Element::Shared(column) => {
                Ok(Rc::try_unwrap(column).unwrap_or_else(|column| logic::copy(&column, self.rows)))
            }
            // An input or constant is itself the result.
            Element::There(column) => Ok(logic::copy(column, self.rows)),
        }
    }

    fn step(
        &self,
        instruction: &super::parse::Instruction,
        stack: &mut Vec<Element<'a>>,
    ) -> Result<Element<'a>, Failure> {
        let operand = usize::from(instruction.operand);
        let mut pop = || stack.pop().ok_or_else(unchecked);
        let made = match instruction.code {
            code::INPUT => {
                let input = self.inputs.get(operand).copied();
                return input.map(Element::There).ok_or_else(unchecked);
            }
            code::CONSTANT => {
                let constant = self.constants.get(operand);
                return constant.map(Element::There).ok_or_else(unchecked);
            }
            code::CALL => {
                let operation = self.table.operation(u32::from(instruction.operand));
                let operation = operation.ok_or_else(unchecked)?;
                let at = stack.len().checked_sub(operation.args.len());
                let elements = stack.split_off(at.ok_or_else(unchecked)?);
                let args: Vec<&Column> = elements.iter().map(Element::column).collect();
                call(
                    operation,
                    instruction.immediate,
                    &args,
                    self.rows,
                    self.context,
                )
            }
            code::AND | code::OR => {
                let (b, a) = (pop()?, pop()?);
                logic::connect(instruction.code, a.column(), b.column(), self.rows)
            }
            code::NOT => logic::not(pop()?.column()),
            code::HOLDS => logic::holds(pop()?.column()),
            code::BOOLEAN => logic::known(&[instruction.operand.min(2) as u8]),
            code::IS_NULL => logic::is_null(pop()?.column()),
            code::SELECT => {
                let (no, yes, condition) = (pop()?, pop()?, pop()?);
                logic::select(condition.column(), yes.column(), no.column(), self.rows)
            }
            code::AMONG => {
                let list = self.inputs.get(operand).ok_or_else(unchecked)?;
                among(pop()?.column(), list, self.rows, self.context.meter)?
            }
            _ => return Err(unchecked()),
        };
        Ok(Element::Made(made))
    }
}
