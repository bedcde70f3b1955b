//! The list of C functions behind the SQL functions, as macro calls.

use crate::{Signatures, aggregates, plain_casts};
use contract::{Arguments, Flag, Op, OpResult, TypeCode};
use std::fmt::Write;

/// C name of the function that takes a plain value in, and casts it on.
pub(super) fn from_plain(from: TypeCode, to: TypeCode) -> String {
    if from == to {
        format!("from_{}", from.plain_name())
    } else {
        format!("from_{}_to_{}", from.plain_name(), to.plain_name())
    }
}

/// Number of the cast between protected types, 0 where none is needed.
fn cast_number(signatures: &crate::Signatures, from: TypeCode, to: TypeCode) -> u16 {
    signatures
        .number(&crate::Signature {
            op: Op::Cast,
            args: vec![from],
            ret: Some(to),
        })
        .unwrap_or(0)
}

pub(super) fn text(signatures: &Signatures) -> String {
    let mut out = format!(
        "/*\n * functions.inc\n *\t  The C functions behind Confide's SQL functions. Whoever includes this\n *\t  defines the macros: see src/ops/functions.c.\n *\n * {}\n */\n\n",
        super::NOTICE
    );
    out.push_str("/* CFD_TYPE(name, type code): input, output, receive and send functions */\n");
    for t in TypeCode::ALL {
        let _ = writeln!(out, "CFD_TYPE({}, {})", t.plain_name(), *t as u8);
    }
    out.push_str("\n/* CFD_SORT(name, type code, signature of the comparison): sort support */\n");
    for (t, number) in crate::sort_supports() {
        let _ = writeln!(out, "CFD_SORT({}, {}, {number})", t.plain_name(), t as u8);
    }
    evaluations(&mut out, signatures);
    conversions(&mut out, signatures);
    out.push_str(
        "\n/*\n * CFD_AGGREGATE_STEP(name, aggregate number)\n * CFD_AGGREGATE_JOIN: of a value, and what goes before it\n * CFD_AGGREGATE_PAIR: of two values\n */\n",
    );
    for a in aggregates() {
        let _ = writeln!(
            out,
            "{}({}_{}, {})",
            match a.aggregate.arguments() {
                Arguments::One => "CFD_AGGREGATE_STEP",
                Arguments::Joined => "CFD_AGGREGATE_JOIN",
                Arguments::Pair => "CFD_AGGREGATE_PAIR",
            },
            a.aggregate.name(),
            a.input.plain_name(),
            a.number
        );
    }
    out.push_str(
        "\n/* CFD_AGGREGATE_FINAL(name, test): of aggregates whose result may be NULL */\n",
    );
    for t in [TypeCode::Float8, TypeCode::Numeric] {
        let test = equality(signatures, t);
        let _ = writeln!(
            out,
            "CFD_AGGREGATE_FINAL(aggregate_final_{}, {test})",
            t.plain_name()
        );
    }
    out
}

/// The signature of `=` on a type, or of what stands in for it.
fn equality(signatures: &crate::Signatures, t: TypeCode) -> u16 {
    let equal = crate::Signature {
        op: match t {
            TypeCode::Json => Op::JsonThere,
            _ => Op::Eq,
        },
        args: vec![t, t],
        ret: None,
    };
    signatures.number(&equal).unwrap_or(0)
}

/// For operations that give NULL though no operand is: the signature of `=` on
/// their result, with which the backend asks. Otherwise 0.
fn null_test(signatures: &crate::Signatures, s: &crate::Signature) -> u16 {
    use TypeCode::{Date, Time, Timestamp, Timestamptz};
    let infinite = matches!(s.args[..], [Date | Timestamp | Timestamptz]);
    let nullable = match s.op {
        Op::Extract | Op::DatePart => infinite,
        Op::Cast => infinite && s.ret == Some(Time),
        _ => signatures.is(s, Flag::Nullable),
    };
    s.ret
        .filter(|_| nullable)
        .map_or(0, |t| equality(signatures, t))
}

/// A test that follows from the order of its operands: the signature that tells the order, and
/// the orders for which the test holds (1: less, 2: equal, 4: greater).
fn ordered_test(signatures: &crate::Signatures, s: &crate::Signature) -> Option<(u16, u8)> {
    let holds = match s.op {
        Op::Lt => 1,
        Op::Eq => 2,
        Op::Le => 3,
        Op::Gt => 4,
        Op::Ne => 5,
        Op::Ge => 6,
        _ => return None,
    };
    let comparison = crate::Signature {
        op: Op::Cmp,
        ..s.clone()
    };
    signatures.number(&comparison).map(|number| (number, holds))
}

fn evaluations(out: &mut String, signatures: &Signatures) {
    out.push_str(
        "\n/*\n * CFD_EVAL(name, signature, operands): result is a FID\n * CFD_TEST(name, signature, operands): result is a declassified boolean\n * CFD_COMPARE(name, signature, comparison, holds): the same of two operands; it holds for these of the\n *	orders that the comparison tells (1: less, 2: equal, 4: greater)\n * CFD_ORDER(name, signature): B-tree comparison\n * CFD_HASH(name, signature): hash and extended hash\n * CFD_IN_RANGE(name, signature): whether a row is in the frame of a window\n * CFD_UNIT(name, signature, test): the first argument is a plain field name\n * CFD_NULLABLE(name, signature, test, operands): the result may be NULL though no operand is\n *\n * test is the signature of = on the result: it says whether the result is NULL; 0\n * where it never is.\n */\n",
    );
    for (number, s) in signatures.iter() {
        let symbol = s.symbol();
        let operands = s.args.len();
        let test = null_test(signatures, s);
        let _ = match (s.op, s.op.result()) {
            (Op::Typmod | Op::TypmodExplicit, _) => continue,
            (Op::Extract | Op::DatePart | Op::DateTrunc, _) => {
                writeln!(out, "CFD_UNIT({symbol}, {number}, {test})")
            }
            (_, OpResult::Fid) if test != 0 => {
                writeln!(out, "CFD_NULLABLE({symbol}, {number}, {test}, {operands})")
            }
            (_, OpResult::Fid) => writeln!(out, "CFD_EVAL({symbol}, {number}, {operands})"),
            (Op::InRange, _) => writeln!(out, "CFD_IN_RANGE({symbol}, {number})"),
            (_, OpResult::Bool) => match ordered_test(signatures, s) {
                Some((comparison, holds)) => {
                    writeln!(
                        out,
                        "CFD_COMPARE({symbol}, {number}, {comparison}, {holds})"
                    )
                }
                None => writeln!(out, "CFD_TEST({symbol}, {number}, {operands})"),
            },
            (_, OpResult::Order) => writeln!(out, "CFD_ORDER({symbol}, {number})"),
            (_, OpResult::Hash) => writeln!(out, "CFD_HASH({symbol}, {number})"),
        };
    }
}

fn conversions(out: &mut String, signatures: &Signatures) {
    out.push_str(
        "\n/* CFD_TYPMOD(name, signature in assignments, signature in explicit casts) */\n",
    );
    for (number, s) in signatures.iter().filter(|(_, s)| s.op == Op::Typmod) {
        let explicit = signatures
            .number(&crate::Signature {
                op: Op::TypmodExplicit,
                ..s.clone()
            })
            .unwrap_or(number);
        let _ = writeln!(out, "CFD_TYPMOD({}, {number}, {explicit})", s.symbol());
    }
    out.push_str(
        "\n/* CFD_FROM_PLAIN(name, plain type code, signature of the cast that follows or 0) */\n",
    );
    for (from, to, _) in plain_casts() {
        let _ = writeln!(
            out,
            "CFD_FROM_PLAIN({}, {}, {})",
            from_plain(from, to),
            from as u8,
            cast_number(signatures, from, to)
        );
    }
}
