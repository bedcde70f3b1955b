//! Aggregates whose transition state lives in the keeper.

use contract::{Aggregate, TypeCode};

use TypeCode::*;

/// An aggregate over one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AggregateSignature {
    /// Number in messages, from 1.
    pub number: u16,
    /// The aggregate.
    pub aggregate: Aggregate,
    /// Type of the argument.
    pub input: TypeCode,
    /// Type of the result.
    pub result: TypeCode,
}

impl AggregateSignature {
    /// Types of the arguments.
    pub fn arguments(&self) -> Vec<TypeCode> {
        match self.aggregate.arguments() {
            contract::Arguments::One => vec![self.input],
            _ => vec![self.input; 2],
        }
    }

    /// SQL's names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aggregate.aliases().iter().copied();
        std::iter::once(self.aggregate.name()).chain(aliases)
    }
}

/// Those whose types follow no list of their own.
fn others() -> Vec<(Aggregate, TypeCode, TypeCode)> {
    use Aggregate::*;
    let mut more: Vec<(Aggregate, TypeCode, TypeCode)> = vec![
        (BoolAnd, Bool, Bool),
        (BoolOr, Bool, Bool),
        (StringAgg, Text, Text),
        (StringAgg, Bytea, Bytea),
    ];
    for t in [Int2, Int4, Int8] {
        more.extend([BitAnd, BitOr, BitXor].map(|a| (a, t, t)));
    }
    for (input, result) in [
        (Int2, Numeric),
        (Int4, Numeric),
        (Int8, Numeric),
        (Numeric, Numeric),
        (Float4, Float8),
        (Float8, Float8),
    ] {
        more.extend([VarPop, VarSamp, StddevPop, StddevSamp].map(|a| (a, input, result)));
    }
    let pairs = Aggregate::ALL
        .iter()
        .filter(|a| a.arguments() == contract::Arguments::Pair);
    more.extend(pairs.map(|a| (*a, Float8, Float8)));
    more
}

/// All aggregates. `count` is PostgreSQL's own: it looks at NULL only.
pub fn aggregates() -> Vec<AggregateSignature> {
    let sums = [
        (Int2, Int8),
        (Int4, Int8),
        (Int8, Numeric),
        (Numeric, Numeric),
        (Float4, Float4),
        (Float8, Float8),
        (Interval, Interval),
    ];
    let averages = [
        (Int2, Numeric),
        (Int4, Numeric),
        (Int8, Numeric),
        (Numeric, Numeric),
        (Float4, Float8),
        (Float8, Float8),
        (Interval, Interval),
    ];
    let ordered = [
        Int2,
        Int4,
        Int8,
        Float4,
        Float8,
        Numeric,
        Text,
        Bpchar,
        Date,
        Time,
        Timestamp,
        Timestamptz,
        Interval,
    ];
    let entries = sums
        .iter()
        .map(|&(i, r)| (Aggregate::Sum, i, r))
        .chain(averages.iter().map(|&(i, r)| (Aggregate::Avg, i, r)))
        .chain(ordered.iter().map(|&t| (Aggregate::Min, t, t)))
        .chain(ordered.iter().map(|&t| (Aggregate::Max, t, t)))
        .chain(others());
    (1..)
        .zip(entries)
        .map(|(number, (aggregate, input, result))| AggregateSignature {
            number,
            aggregate,
            input,
            result,
        })
        .collect()
}
