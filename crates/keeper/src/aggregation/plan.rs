//! A registered aggregation ([`contract::Kind::AggregateRegister`]), decoded and checked.
//!
//! Invariant: every number in a [`Plan`] refers to an existing part, and every expression has the
//! kind that its use requires. Execution relies on this.

use super::misfit;
use super::part::Input;
use crate::fail;
use crate::program::{Instruction, Program};
use crate::signatures::Table;
use contract::body::AggregateRegister;
use contract::message::COLUMNS_MAX;
use contract::message::aggregation::{CONSTANT, DISTINCT, NONE};
use contract::message::program::{FIRST_HANDLE, INPUT};
use contract::message::table::{self, AggregateCall};
use contract::{Aggregate, OpResult, TypeCode};
use grant::family;
use std::sync::Arc;
use values::{AggregateState, Error};

/// Maximum number of expressions, keys or aggregates.
const PARTS_MAX: usize = 1024;

/// Where the values of an expression come from.
pub enum Source {
    /// A column unchanged.
    Column(usize),
    /// A program over columns; `None` for inputs that it does not use.
    Program(Arc<Program>, Vec<Option<usize>>),
}

/// The kind of an expression's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Eight bytes that are not protected.
    Raw,
    /// Protected values of a type.
    Value(TypeCode),
    /// The truth value of a condition.
    Truth,
}

/// An expression over the columns of a batch.
pub struct Expression {
    /// Source of the values.
    pub source: Source,
    /// Kind of the values.
    pub kind: Kind,
}

impl Expression {
    /// Whether the two yield the same values. Constants arrive with the rows.
    fn same(&self, other: &Expression) -> bool {
        let source = match (&self.source, &other.source) {
            (Source::Column(a), Source::Column(b)) => a == b,
            (Source::Program(a, x), Source::Program(b, y)) => {
                x == y && a.code == b.code && a.constants == b.constants
            }
            _ => false,
        };
        source && self.kind == other.kind
    }
}

/// A group key; the number is that of its expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Unprotected values.
    Raw(usize),
    /// Whether a condition holds; returned like a raw value.
    Truth(usize),
    /// A column; a group returns the FID of its first row.
    Column(usize, TypeCode),
    /// Computed values.
    Value(usize, TypeCode),
}

impl Key {
    /// Number of its expression.
    pub fn expression(&self) -> usize {
        match self {
            Key::Raw(e) | Key::Truth(e) | Key::Column(e, _) | Key::Value(e, _) => *e,
        }
    }
}

/// How transition states are updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Counts rows or non-NULL values.
    Count,
    /// Sum and count of integers.
    Integers,
    /// Sum and count of numerics.
    Numerics,
    /// Minimum or maximum.
    Extreme(Aggregate),
    /// Any other aggregate, computed by crate `values`.
    General(Aggregate),
}

/// Transition states. Aggregates that differ only in their final function share them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateSpec {
    /// How they are updated.
    pub family: Family,
    /// Type of the values.
    pub input: TypeCode,
    /// Expression of the values.
    pub argument: Option<usize>,
    /// Expression that selects the rows to be aggregated.
    pub filter: Option<usize>,
    /// Whether equal values count once.
    pub distinct: bool,
}

/// An aggregate.
pub struct AggregateSpec {
    /// The aggregate; meaningless for counts.
    pub aggregate: Aggregate,
    /// Number of its states.
    pub state: usize,
    /// Type of the result; `None` for counts.
    pub result: Option<TypeCode>,
}

/// An output of a group; the number is that of the key or aggregate.
#[derive(Clone, Copy)]
pub enum Output {
    /// A key.
    Key(usize, Key),
    /// A count.
    Count(usize),
    /// A result of the given type.
    Result(usize, TypeCode),
}

impl Output {
    /// An empty column for this output.
    pub fn column(&self) -> (Vec<u64>, Option<Vec<u8>>) {
        let raw = matches!(self, Output::Key(_, Key::Raw(_) | Key::Truth(_)));
        (Vec::new(), raw.then(Vec::new))
    }
}

/// An operand of a condition on groups.
#[derive(Clone, Copy)]
pub enum Operand {
    /// A key or a result.
    Output(Output),
    /// A constant that arrives with the fetch, and its type.
    Constant(usize, TypeCode),
}

/// A condition on groups.
pub type Condition = (Arc<Program>, Vec<Operand>);

/// What to group and aggregate.
pub struct Plan {
    /// Types of the columns; `None` if not protected.
    pub columns: Vec<Option<TypeCode>>,
    /// Expressions over the columns.
    pub expressions: Vec<Expression>,
    /// Group keys.
    pub keys: Vec<Key>,
    /// Expression that selects the rows to be aggregated.
    pub filter: Option<usize>,
    /// Transition states.
    pub states: Vec<StateSpec>,
    /// Aggregates.
    pub aggregates: Vec<AggregateSpec>,
    /// HAVING: a program over outputs.
    pub having: Option<Condition>,
    /// Memory limit for groups in bytes, shared with other aggregations.
    pub limit: usize,
    /// Number of aggregations that share it.
    pub share: usize,
}

impl Plan {
    /// The operations that the aggregation itself performs, in terms of grants: groups are found by
    /// comparison, and counts disclose nothing more.
    pub fn families(&self) -> u8 {
        let computes = self.aggregates.iter().any(|a| a.result.is_some());
        family::COMPARE | if computes { family::AGGREGATE } else { 0 }
    }

    /// Decodes a registration. `program_of` looks up registered programs.
    pub fn new(
        body: &AggregateRegister<'_>,
        table: &Table,
        program_of: impl Fn(u32) -> Option<Arc<Program>>,
    ) -> Result<Plan, Error> {
        let many = body.expressions.max(body.keys).max(body.aggregates);
        if body.types.len() > COLUMNS_MAX || usize::from(many) > PARTS_MAX {
            return Err(fail::program_limit(
                "It has too many columns, expressions, keys or aggregates.",
            ));
        }
        let mut plan = Plan {
            columns: Vec::with_capacity(body.types.len()),
            expressions: Vec::with_capacity(usize::from(body.expressions)),
            keys: Vec::with_capacity(body.key.len()),
            filter: None,
            states: Vec::new(),
            aggregates: Vec::with_capacity(body.calls.len()),
            having: None,
            limit: usize::try_from(body.limit).unwrap_or(usize::MAX),
            share: usize::from(body.share).max(1),
        };
        plan.read(body, table, program_of)?;
        Ok(plan)
    }

    fn read(
        &mut self,
        body: &AggregateRegister<'_>,
        table: &Table,
        program_of: impl Fn(u32) -> Option<Arc<Program>>,
    ) -> Result<(), Error> {
        let stored = |t: Option<TypeCode>| t.map(TypeCode::stored);
        self.columns.extend(body.types.iter().map(stored));
        for expression in body.programs.iter() {
            let expression = self.expression(&expression, &program_of)?;
            self.expressions.push(expression);
        }
        for expression in body.key {
            let key = self.key(usize::from(expression))?;
            self.keys.push(key);
        }
        self.filter = self.condition(optional(body.filter))?;
        for call in body.calls {
            self.aggregate(call, table)?;
        }
        self.having = self.read_having(&body.having, program_of)?;
        Ok(())
    }

    fn expression(
        &self,
        expression: &table::Expression<'_>,
        program_of: impl Fn(u32) -> Option<Arc<Program>>,
    ) -> Result<Expression, Error> {
        let handle = expression.program;
        let columns = inputs(expression)?;
        if handle < FIRST_HANDLE {
            let [column] = columns.as_slice() else {
                return Err(misfit("A column by itself is one column."));
            };
            let t = self.columns.get(*column).ok_or_else(no_such_part)?;
            return Ok(Expression {
                source: Source::Column(*column),
                kind: t.map_or(Kind::Raw, Kind::Value),
            });
        }
        let program = program_of(handle).ok_or_else(fail::no_such_program)?;
        let mut types = Vec::with_capacity(columns.len());
        for column in &columns {
            types.push(*self.columns.get(*column).ok_or_else(no_such_part)?);
        }
        fits(&program, &types)?;
        let kind = match (program.result, program.value) {
            (OpResult::Bool, _) => Kind::Truth,
            (OpResult::Fid, Some(t)) => Kind::Value(t),
            _ => return Err(misfit("An aggregation takes values and conditions.")),
        };
        let looks = |input: &usize| {
            let same = |i: &Instruction| i.code == INPUT && usize::from(i.operand) == *input;
            program.code.iter().any(same)
        };
        let columns = columns.iter().enumerate();
        let columns = columns.map(|(input, column)| looks(&input).then_some(*column));
        let columns = columns.collect();
        Ok(Expression {
            source: Source::Program(program, columns),
            kind,
        })
    }

    fn kind(&self, expression: usize) -> Result<Kind, Error> {
        let found = self.expressions.get(expression).map(|e| e.kind);
        found.ok_or_else(no_such_part)
    }

    fn key(&self, expression: usize) -> Result<Key, Error> {
        let found = self.expressions.get(expression).ok_or_else(no_such_part)?;
        match (&found.source, found.kind) {
            (_, Kind::Raw) => Ok(Key::Raw(expression)),
            (Source::Column(_), Kind::Value(t)) => Ok(Key::Column(expression, t)),
            (_, Kind::Value(t)) => Ok(Key::Value(expression, t)),
            (_, Kind::Truth) => Ok(Key::Truth(expression)),
        }
    }

    fn condition(&self, expression: Option<usize>) -> Result<Option<usize>, Error> {
        match expression.map(|e| self.kind(e)).transpose()? {
            None | Some(Kind::Raw | Kind::Truth | Kind::Value(TypeCode::Bool)) => Ok(expression),
            Some(Kind::Value(_)) => Err(misfit("A filter is not a condition.")),
        }
    }

    fn aggregate(&mut self, call: AggregateCall, table: &Table) -> Result<(), Error> {
        let number = call.signature;
        let argument = optional(call.argument);
        let filter = self.condition(optional(call.filter))?;
        let distinct = call.flags & DISTINCT != 0;
        let kind = argument.map(|a| self.kind(a)).transpose()?;
        let mut spec = StateSpec {
            family: Family::Count,
            input: TypeCode::Int8,
            argument,
            filter,
            distinct,
        };
        let mut result = None;
        let mut aggregate = Aggregate::Sum;
        if number == 0 {
            if distinct && kind.is_none() {
                return Err(misfit("This cannot be counted."));
            }
        } else {
            let signature = table.aggregate(number).ok_or_else(fail::no_such_program)?;
            if kind != Some(Kind::Value(signature.input.stored())) {
                return Err(misfit("An aggregate takes values of another type."));
            }
            aggregate = signature.aggregate;
            spec.input = signature.input.stored();
            spec.family = family(aggregate, spec.input)?;
            result = Some(signature.result.stored());
        }
        let known = self.states.iter().position(|s| *s == spec);
        let state = known.unwrap_or(self.states.len());
        if known.is_none() {
            self.states.push(spec);
        }
        self.aggregates.push(AggregateSpec {
            aggregate,
            state,
            result,
        });
        Ok(())
    }

    fn read_having(
        &self,
        having: &table::Expression<'_>,
        program_of: impl Fn(u32) -> Option<Arc<Program>>,
    ) -> Result<Option<Condition>, Error> {
        let handle = having.program;
        let outputs = inputs(having)?;
        if handle == 0 {
            return Ok(None);
        }
        let program = program_of(handle).ok_or_else(fail::no_such_program)?;
        let mut operands = Vec::with_capacity(outputs.len());
        for (output, t) in outputs.iter().zip(&program.inputs) {
            operands.push(match output.checked_sub(usize::from(CONSTANT)) {
                Some(constant) => {
                    let t = t.ok_or_else(|| misfit("A constant is not protected."))?;
                    Operand::Constant(constant, t)
                }
                None => Operand::Output(self.operand(*output, *t)?),
            });
        }
        if outputs.len() != program.inputs.len() || program.takes_lists() {
            return Err(misfit("The condition on groups takes something else."));
        }
        if program.result != OpResult::Bool {
            return Err(misfit("The condition on groups is none."));
        }
        Ok(Some((program, operands)))
    }

    /// The output with this number, which must have the type that the condition on groups takes.
    fn operand(&self, output: usize, want: Option<TypeCode>) -> Result<Output, Error> {
        let output = self.output(output).ok_or_else(no_such_part)?;
        let fits = match output {
            Output::Key(_, Key::Column(_, t) | Key::Value(_, t)) => want == Some(t),
            Output::Result(_, t) => want == Some(t),
            // A plain boolean.
            Output::Key(_, Key::Raw(_) | Key::Truth(_)) => want.is_none(),
            Output::Count(_) => false,
        };
        match fits {
            true => Ok(output),
            false => Err(misfit("The condition on groups takes something else.")),
        }
    }

    /// All outputs: keys, then aggregates.
    pub fn outputs(&self) -> impl Iterator<Item = Output> + '_ {
        let all = self.keys.len() + self.aggregates.len();
        (0..all).filter_map(|n| self.output(n))
    }

    /// The output with this number.
    pub fn output(&self, number: usize) -> Option<Output> {
        if let Some(key) = self.keys.get(number) {
            return Some(Output::Key(number, *key));
        }
        let number = number - self.keys.len();
        let aggregate = self.aggregates.get(number)?;
        Some(match aggregate.result {
            None => Output::Count(number),
            Some(t) => Output::Result(number, t),
        })
    }

    /// Whether the groups and states of another plan can be merged into this one's.
    pub fn merges(&self, other: &Plan) -> bool {
        self.columns == other.columns
            && self.keys == other.keys
            && self.filter == other.filter
            && self.states == other.states
            && self.states.iter().all(|state| !state.distinct)
            && self.expressions.len() == other.expressions.len()
            && self
                .expressions
                .iter()
                .zip(&other.expressions)
                .all(|(a, b)| a.same(b))
    }

    /// Number of slots needed per group.
    pub fn stored(&self) -> usize {
        let stored = |o: &Output| matches!(o, Output::Result(..) | Output::Key(_, Key::Value(..)));
        self.outputs().filter(stored).count()
    }

    /// Columns without rows.
    pub fn no_rows(&self) -> Vec<Input> {
        self.columns.iter().map(|t| Input::none(*t)).collect()
    }

    /// Approximate size of a row that is returned, in bytes.
    pub fn row_bytes(&self) -> usize {
        (self.columns.len() + 1) * 16
    }
}

fn family(aggregate: Aggregate, input: TypeCode) -> Result<Family, Error> {
    // Refuses aggregates that do not exist.
    AggregateState::new(aggregate, input)?;
    Ok(match (aggregate, input) {
        (Aggregate::Min | Aggregate::Max, _) => Family::Extreme(aggregate),
        (Aggregate::Sum | Aggregate::Avg, TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8) => {
            Family::Integers
        }
        (Aggregate::Sum | Aggregate::Avg, TypeCode::Numeric) => Family::Numerics,
        _ => Family::General(aggregate),
    })
}

/// Checks that a program takes values of these types.
fn fits(program: &Program, types: &[Option<TypeCode>]) -> Result<(), Error> {
    if program.inputs != types || program.takes_lists() {
        return Err(misfit("A program takes columns of other types."));
    }
    Ok(())
}

fn no_such_part() -> Error {
    misfit("It names a part that it does not have.")
}

fn optional(number: u16) -> Option<usize> {
    (number != NONE).then_some(usize::from(number))
}

/// The inputs of an expression.
fn inputs(expression: &table::Expression<'_>) -> Result<Vec<usize>, Error> {
    if expression.inputs.len() > COLUMNS_MAX {
        return Err(fail::program_limit("It takes too many columns."));
    }
    Ok(expression.inputs.iter().map(usize::from).collect())
}
