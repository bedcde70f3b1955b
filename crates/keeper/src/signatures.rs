//! The catalog's signatures in the form that the evaluator needs, by number.

use catalog::AggregateSignature;
use contract::{Op, OpResult, TypeCode};
use grant::family;

/// Maximum number of operands of a signature.
pub const ARITY_MAX: usize = 7;

/// The fast path of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// None.
    General,
    /// Compares operands of the same unit in their stored form.
    Ordered,
    /// Like `Ordered`, ignoring trailing blanks.
    OrderedPadded,
    /// `LIKE` or `NOT LIKE` on characters.
    Like,
    /// Compares a date with a timestamp.
    Dated,
    /// Integers with the range of the result type.
    Integer,
    /// A date and a number of days, or two dates.
    Days,
    /// Numbers with a decimal point.
    Numeric,
    /// Floating-point numbers with the width of the result type.
    Float,
    /// Returns the value itself.
    Truth,
}

/// A signature.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The operation.
    pub op: Op,
    /// Types of the operands, as stored.
    pub args: Vec<TypeCode>,
    /// Type of the result if it is a value.
    pub ret: Option<TypeCode>,
    /// Its fast path.
    pub kernel: Kernel,
    /// Whether the fast path is one on two integers.
    pub whole: bool,
    /// The kind of operation in terms of grants.
    pub family: u8,
}

fn family_of(op: Op) -> u8 {
    match op {
        Op::Like | Op::NotLike | Op::Ilike | Op::NotIlike | Op::StartsWith => family::PATTERN,
        Op::JsonContains | Op::JsonContained | Op::JsonExists => family::PATTERN,
        Op::JsonExistsAny | Op::JsonExistsAll => family::PATTERN,
        Op::Regex | Op::NotRegex | Op::RegexFold | Op::NotRegexFold | Op::RegexpLike => {
            family::PATTERN
        }
        Op::Cast | Op::Typmod | Op::TypmodExplicit => family::CAST,
        Op::Hash | Op::IsTrue => family::COMPARE,
        // It compares with what it computes: whoever may do one of both only may not do this.
        Op::InRange => family::COMPARE | family::COMPUTE,
        Op::Lt | Op::Le | Op::Eq | Op::Ge | Op::Gt | Op::Ne | Op::Cmp => family::COMPARE,
        _ => family::COMPUTE,
    }
}

impl Operation {
    /// The kind of result of the operation.
    #[inline]
    pub fn result(&self) -> OpResult {
        self.op.result()
    }

    /// Whether its calls appear in a log of calls: it examines more than one bit, and does not
    /// return a hash.
    pub fn is_told(&self) -> bool {
        !matches!(self.op, Op::Hash | Op::IsTrue)
    }

    /// Whether it only compares two values: then it is allowed without a client within one column.
    #[inline]
    pub fn is_comparison(&self) -> bool {
        matches!(
            self.op,
            Op::Lt | Op::Le | Op::Eq | Op::Ge | Op::Gt | Op::Ne | Op::Cmp
        )
    }
}

/// All signatures and aggregates.
pub struct Table {
    operations: Vec<Operation>,
    aggregates: Vec<AggregateSignature>,
}

const INTEGERS: [TypeCode; 3] = [TypeCode::Int2, TypeCode::Int4, TypeCode::Int8];

fn kernel(op: Op, args: &[TypeCode], ret: Option<TypeCode>) -> Kernel {
    use TypeCode::*;
    let all = |types: &[TypeCode]| args.iter().all(|t| types.contains(t));
    match op {
        Op::Lt | Op::Le | Op::Eq | Op::Ge | Op::Gt | Op::Ne | Op::Cmp => match args {
            [Bpchar, Bpchar] => Kernel::OrderedPadded,
            [Interval, Interval] | [Jsonb, Jsonb] => Kernel::General,
            [a, b] if a == b => Kernel::Ordered,
            [Date, Timestamp] | [Timestamp, Date] => Kernel::Dated,
            _ if all(&INTEGERS) || all(&[Float4, Float8]) => Kernel::Ordered,
            _ => Kernel::General,
        },
        Op::Add | Op::Sub | Op::Mul | Op::Div if args.len() == 2 => match ret {
            Some(Int2 | Int4 | Int8) if all(&INTEGERS) => Kernel::Integer,
            Some(Date | Int4) if all(&[Date, Int4]) => Kernel::Days,
            Some(Numeric) if op != Op::Div => Kernel::Numeric,
            Some(Float4 | Float8) => Kernel::Float,
            _ => Kernel::General,
        },
        Op::Like | Op::NotLike => match args {
            [Text | Bpchar, Text] => Kernel::Like,
            _ => Kernel::General,
        },
        Op::IsTrue => Kernel::Truth,
        _ => Kernel::General,
    }
}

fn whole(kernel: Kernel, args: &[TypeCode]) -> bool {
    use TypeCode::*;
    let integers = [Bool, Int2, Int4, Int8, Date, Time, Timestamp, Timestamptz];
    matches!(kernel, Kernel::Ordered | Kernel::Integer | Kernel::Days)
        && args.len() == 2
        && args.iter().all(|t| integers.contains(t))
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    /// Creates the table from the catalog.
    pub fn new() -> Table {
        let operations = catalog::signatures()
            .iter()
            .map(|(_, s)| {
                let args: Vec<_> = s.args.iter().map(|t| t.stored()).collect();
                let kernel = kernel(s.op, &args, s.ret);
                Operation {
                    op: s.op,
                    kernel,
                    whole: whole(kernel, &args),
                    family: family_of(s.op),
                    args,
                    ret: s.ret,
                }
            })
            .collect();
        Table {
            operations,
            aggregates: catalog::aggregates(),
        }
    }

    /// The signature with this number.
    #[inline]
    pub fn operation(&self, number: u32) -> Option<&Operation> {
        self.operations.get((number as usize).checked_sub(1)?)
    }

    /// The aggregate with this number.
    #[inline]
    pub fn aggregate(&self, number: u16) -> Option<&AggregateSignature> {
        self.aggregates.get(usize::from(number).checked_sub(1)?)
    }

    /// All signatures, starting with number 1.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariants that the evaluator relies on.
    #[test]
    fn catalog_fits() {
        let table = Table::new();
        for operation in table.operations() {
            assert!((1..=ARITY_MAX).contains(&operation.args.len()));
            assert_eq!(operation.ret.is_some(), operation.result() == OpResult::Fid);
            assert!(!operation.args.contains(&TypeCode::Varchar));
        }
        assert!(table.operation(0).is_none());
        assert!(table.aggregate(0).is_none());
        assert!(table.operations().len() < contract::message::program::FIRST_HANDLE as usize);
    }
}
