//! The SQL script of types, functions, operators, casts and aggregates.

use super::wrappers::from_plain;
use super::{composed, operands};
use crate::functions::internal_name;
use crate::signatures::IN_RANGE;
use crate::*;
use contract::{Op, OpResult, TypeCode};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) fn text(signatures: &Signatures) -> String {
    let mut out = format!("-- {}\n", super::NOTICE);
    type_definitions(&mut out);
    operands::definitions(&mut out, &types(), signatures);
    operation_functions(&mut out, signatures);
    operator_definitions(&mut out, signatures);
    class_definitions(&mut out);
    ranges(&mut out, signatures);
    named_functions(&mut out, signatures);
    typmod_functions(&mut out, signatures);
    cast_definitions(&mut out, signatures);
    operands::overloads(&mut out);
    composed::powers(&mut out);
    plain_cast_definitions(&mut out);
    concatenations(&mut out);
    composed::functions(&mut out);
    aggregate_definitions(&mut out);
    out
}

/// Attributes of functions: strictness and parallel safety are the same for all.
pub(super) fn function(
    out: &mut String,
    head: &str,
    ret: &str,
    volatility: &str,
    cost: u32,
    symbol: &str,
) {
    let _ = writeln!(
        out,
        "CREATE FUNCTION pg_catalog.{head} RETURNS {ret} AS 'MODULE_PATHNAME', 'cfd_{symbol}' LANGUAGE C STRICT {volatility} PARALLEL SAFE COST {cost};"
    );
}

/// Answered operations make the backend wait, one-way operations do not.
const fn cost(result: OpResult) -> u32 {
    match result {
        OpResult::Fid => 16,
        OpResult::Bool | OpResult::Order | OpResult::Hash => 64,
    }
}

/// Conversions with strings and with time zones depend on settings.
fn volatility(args: &[TypeCode], ret: Option<TypeCode>) -> &'static str {
    use TypeCode::*;
    let all = || args.iter().copied().chain(ret);
    let any = |t: TypeCode| all().any(|u| u == t);
    let datetime = |t: TypeCode| matches!(t, Date | Time | Timestamp | Timestamptz | Interval);
    let strings = any(Text) || any(Varchar) || any(Bpchar);
    let zones = any(Timestamptz) && !all().all(|t| t == Timestamptz);
    if zones || strings && all().any(datetime) {
        "STABLE"
    } else {
        "IMMUTABLE"
    }
}

fn volatility_of(s: &Signature) -> &'static str {
    match s.op {
        // As PostgreSQL's: its separators are the session's.
        Op::ToNumber => "STABLE",
        _ => volatility(&s.args, s.ret),
    }
}

fn type_definitions(out: &mut String) {
    out.push_str("\nCREATE FUNCTION pg_catalog.enc_typanalyze(internal) RETURNS bool AS 'MODULE_PATHNAME', 'cfd_analyze' LANGUAGE C STRICT;\n");
    for t in types() {
        let (name, enc) = (t.code.plain_name(), t.code.enc_name());
        let _ = writeln!(out, "\nCREATE TYPE pg_catalog.{enc};");
        function(
            out,
            &format!("{enc}_in(cstring, oid, int4)"),
            &format!("pg_catalog.{enc}"),
            "STABLE",
            4,
            &format!("in_{name}"),
        );
        function(
            out,
            &format!("{enc}_out(pg_catalog.{enc})"),
            "cstring",
            "STABLE",
            32,
            &format!("out_{name}"),
        );
        function(
            out,
            &format!("{enc}_recv(internal, oid, int4)"),
            &format!("pg_catalog.{enc}"),
            "STABLE",
            4,
            &format!("recv_{name}"),
        );
        function(
            out,
            &format!("{enc}_send(pg_catalog.{enc})"),
            "bytea",
            "STABLE",
            32,
            &format!("send_{name}"),
        );
        let typmod = match t.typmod {
            Typmod::None => String::new(),
            Typmod::Functions(f) => format!("TYPMOD_IN = {f}typmodin, TYPMOD_OUT = {f}typmodout, "),
        };
        let _ = writeln!(
            out,
            "CREATE TYPE pg_catalog.{enc} (INPUT = pg_catalog.{enc}_in, OUTPUT = pg_catalog.{enc}_out, RECEIVE = pg_catalog.{enc}_recv, SEND = pg_catalog.{enc}_send, {typmod}INTERNALLENGTH = 8, PASSEDBYVALUE, ALIGNMENT = double, STORAGE = plain, ANALYZE = pg_catalog.enc_typanalyze, CATEGORY = '{}', PREFERRED = {});",
            t.category, t.preferred
        );
    }
}

fn result_type(s: &Signature) -> &'static str {
    match (s.op.result(), s.ret) {
        (OpResult::Fid, Some(t)) => t.enc_name(),
        (OpResult::Order, _) | (OpResult::Hash, _) => "int4",
        _ => "bool",
    }
}

fn enc_list(types: &[TypeCode]) -> String {
    types
        .iter()
        .map(|t| t.enc_name())
        .collect::<Vec<_>>()
        .join(", ")
}

fn is_internal(op: Op) -> bool {
    !matches!(
        op,
        Op::Cast
            | Op::Typmod
            | Op::TypmodExplicit
            | Op::Extract
            | Op::DatePart
            | Op::DateTrunc
            | Op::InRange
    )
}

fn operation_functions(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Functions behind operators and operator classes\n");
    for (_, s) in signatures.iter().filter(|(_, s)| is_internal(s.op)) {
        let name = internal_name(s.op);
        let symbol = s.symbol();
        let args = operands::operands(s).join(", ");
        let head = format!("{name}({args})");
        function(
            out,
            &head,
            result_type(s),
            volatility_of(s),
            cost(s.op.result()),
            &symbol,
        );
        if s.op == Op::Hash {
            let head = format!("{name}_extended({}, int8)", enc_list(&s.args));
            function(
                out,
                &head,
                "int8",
                "IMMUTABLE",
                cost(s.op.result()),
                &format!("{symbol}_extended"),
            );
        }
    }
}

fn operator_definitions(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Operators\n");
    let all = operators(signatures);
    for o in all.iter().filter(|o| o.signature.op != Op::Power) {
        let operands = match &operands::operands(&o.signature)[..] {
            [a] => format!("RIGHTARG = {a}"),
            [a, b] => format!("LEFTARG = {a}, RIGHTARG = {b}"),
            _ => continue,
        };
        let mut clauses = String::new();
        if let (Some(c), true) = (o.symbol.commutator, o.has_commutator(&all)) {
            let _ = write!(clauses, ", COMMUTATOR = OPERATOR(pg_catalog.{c})");
        }
        if let Some(n) = o.symbol.negator {
            let _ = write!(clauses, ", NEGATOR = OPERATOR(pg_catalog.{n})");
        }
        if let Some((restrict, join)) = o.symbol.selectivity {
            let _ = write!(clauses, ", RESTRICT = {restrict}, JOIN = {join}");
        }
        if o.hashes() {
            clauses.push_str(", HASHES");
        }
        if o.merges() {
            clauses.push_str(", MERGES");
        }
        let _ = writeln!(
            out,
            "CREATE OPERATOR pg_catalog.{} (FUNCTION = pg_catalog.{}, {operands}{clauses});",
            o.name,
            internal_name(o.signature.op)
        );
    }
}

fn class_definitions(out: &mut String) {
    out.push_str("\n-- Sort support and ANALYZE\n");
    for (t, _) in sort_supports() {
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.{}_sortsupport(internal) RETURNS void AS 'MODULE_PATHNAME', 'cfd_sort_{}' LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;",
            t.enc_name(),
            t.plain_name()
        );
    }
    out.push_str("\n-- Operator classes\n");
    for class in operator_classes() {
        let (method, family) = (class.method, class.family);
        let _ = writeln!(
            out,
            "CREATE OPERATOR FAMILY pg_catalog.{family} USING {method};"
        );
        for &t in class.types {
            let enc = t.enc_name();
            let members = if method == "btree" {
                btree_members(t, t, false)
            } else {
                hash_members(t)
            };
            let _ = writeln!(
                out,
                "CREATE OPERATOR CLASS pg_catalog.{enc}_ops DEFAULT FOR TYPE {enc} USING {method} FAMILY pg_catalog.{family} AS {members};"
            );
        }
        for &a in class.types {
            for &b in class.types.iter().filter(|&&b| b != a) {
                let members = if method == "btree" {
                    btree_members(a, b, true)
                } else {
                    format!("OPERATOR 1 = ({}, {})", a.enc_name(), b.enc_name())
                };
                let _ = writeln!(
                    out,
                    "ALTER OPERATOR FAMILY pg_catalog.{family} USING {method} ADD {members};"
                );
            }
        }
    }
}

/// What the operator families say about the frames of windows.
fn ranges(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Windows with an offset\n");
    for (_, s) in signatures.iter().filter(|(_, s)| s.op == Op::InRange) {
        let (types, cost) = (enc_list(&s.args), cost(OpResult::Bool));
        let head = format!("enc_in_range({types}, bool, bool)");
        let volatility = match s.args.first() {
            Some(TypeCode::Timestamptz) => "STABLE",
            _ => "IMMUTABLE",
        };
        function(out, &head, "bool", volatility, cost, &s.symbol());
    }
    for (family, of, offset) in IN_RANGE {
        let (x, y) = (of.enc_name(), offset.enc_name());
        let _ = writeln!(
            out,
            "ALTER OPERATOR FAMILY pg_catalog.{family} USING btree ADD FUNCTION 3 ({x}, {y}) pg_catalog.enc_in_range({x}, {x}, {y}, bool, bool);"
        );
    }
}

fn btree_members(a: TypeCode, b: TypeCode, loose: bool) -> String {
    let (x, y) = (a.enc_name(), b.enc_name());
    let mut parts: Vec<String> = ["<", "<=", "=", ">=", ">"]
        .iter()
        .enumerate()
        .map(|(i, o)| format!("OPERATOR {} {o} ({x}, {y})", i + 1))
        .collect();
    let types = if loose {
        format!(" ({x}, {y})")
    } else {
        String::new()
    };
    parts.push(format!("FUNCTION 1{types} pg_catalog.enc_cmp({x}, {y})"));
    if !loose {
        parts.push(format!("FUNCTION 2 pg_catalog.{x}_sortsupport(internal)"));
    }
    parts.join(", ")
}

fn hash_members(t: TypeCode) -> String {
    let x = t.enc_name();
    format!(
        "OPERATOR 1 = ({x}, {x}), FUNCTION 1 pg_catalog.enc_hash({x}), FUNCTION 2 pg_catalog.enc_hash_extended({x}, int8)"
    )
}

fn named_functions(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Functions by PostgreSQL's names\n");
    let ours = functions(signatures);
    for f in ours.iter().filter(|f| f.written.is_none()) {
        let Some(s) = signatures.get(f.number) else {
            continue;
        };
        let args = operands::arguments(f.name, &f.args).join(", ");
        function(
            out,
            &format!("\"{}\"({args})", f.name),
            f.ret.name(),
            volatility_of(s),
            cost(s.op.result()),
            &s.symbol(),
        );
    }
}

fn typmod_functions(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Application of type modifiers\n");
    for (_, s) in signatures.iter().filter(|(_, s)| s.op == Op::Typmod) {
        let enc = enc_list(&s.args);
        let explicit = signatures.number(&Signature {
            op: Op::TypmodExplicit,
            ..s.clone()
        });
        let args = if explicit.is_some() {
            "int4, bool"
        } else {
            "int4"
        };
        function(
            out,
            &format!("{enc}({enc}, {args})"),
            &enc,
            "IMMUTABLE",
            4,
            &s.symbol(),
        );
        let _ = writeln!(
            out,
            "CREATE CAST ({enc} AS {enc}) WITH FUNCTION pg_catalog.{enc}({enc}, {args}) AS IMPLICIT;"
        );
    }
}

fn cast_definitions(out: &mut String, signatures: &Signatures) {
    out.push_str("\n-- Casts between protected types\n");
    for c in casts() {
        let (from, to, context) = (c.from.enc_name(), c.to.enc_name(), c.context.clause());
        if c.method == CastMethod::Binary {
            let _ = writeln!(
                out,
                "CREATE CAST ({from} AS {to}) WITHOUT FUNCTION{context};"
            );
            continue;
        }
        let signature = Signature {
            op: Op::Cast,
            args: vec![c.from],
            ret: Some(c.to),
        };
        debug_assert!(signatures.number(&signature).is_some());
        function(
            out,
            &format!("{to}({from})"),
            to,
            volatility(&[c.from], Some(c.to)),
            4,
            &signature.symbol(),
        );
        let _ = writeln!(
            out,
            "CREATE CAST ({from} AS {to}) WITH FUNCTION pg_catalog.{to}({from}){context};"
        );
    }
}

fn plain_cast_definitions(out: &mut String) {
    out.push_str("\n-- Casts from plain types\n");
    for (from, to, context) in plain_casts() {
        let (plain, enc, context) = (from.plain_name(), to.enc_name(), context.clause());
        function(
            out,
            &format!("{enc}(pg_catalog.{plain})"),
            enc,
            "STABLE",
            8,
            &from_plain(from, to),
        );
        let _ = writeln!(
            out,
            "CREATE CAST (pg_catalog.{plain} AS {enc}) WITH FUNCTION pg_catalog.{enc}(pg_catalog.{plain}){context};"
        );
    }
    for (to, context) in NAME_CASTS {
        let (plain, enc, context) = (to.plain_name(), to.enc_name(), context.clause());
        let _ = writeln!(
            out,
            "CREATE FUNCTION pg_catalog.{enc}(name) RETURNS {enc} AS 'SELECT $1::pg_catalog.{plain}::pg_catalog.{enc}' LANGUAGE sql STRICT STABLE PARALLEL SAFE COST 8;\nCREATE CAST (name AS {enc}) WITH FUNCTION pg_catalog.{enc}(name){context};"
        );
    }
}

/// `text || anything` and `anything || text`, which PostgreSQL has as polymorphic
/// functions. Not with plain text: PostgreSQL prefers it for an untyped literal,
/// which would then be no envelope; the proxy casts plain operands.
fn concatenations(out: &mut String) {
    use TypeCode::{Bpchar, Text, Varchar};
    out.push_str("\n-- Concatenation of text and anything\n");
    let text = Text.enc_name();
    let others = TypeCode::ALL
        .iter()
        .filter(|t| !matches!(t, Text | Varchar | Bpchar))
        .map(|t| t.enc_name());
    for other in others {
        for (left, right, body) in [
            (
                text,
                other,
                "$1 OPERATOR(pg_catalog.||) $2::pg_catalog.enc_text",
            ),
            (
                other,
                text,
                "$1::pg_catalog.enc_text OPERATOR(pg_catalog.||) $2",
            ),
        ] {
            let _ = writeln!(
                out,
                "CREATE FUNCTION pg_catalog.enc_concat({left}, {right}) RETURNS {text} AS 'SELECT {body}' LANGUAGE sql STRICT STABLE PARALLEL SAFE;\nCREATE OPERATOR pg_catalog.|| (FUNCTION = pg_catalog.enc_concat, LEFTARG = {left}, RIGHTARG = {right});"
            );
        }
    }
}

fn aggregate_definitions(out: &mut String) {
    out.push_str("\n-- Aggregates\n");
    let nullable: BTreeSet<TypeCode> = aggregates()
        .iter()
        .filter(|a| a.aggregate.nullable())
        .map(|a| a.result)
        .collect();
    for t in nullable {
        let enc = t.enc_name();
        function(
            out,
            &format!("{enc}_final_or_null(enc_aggstate)"),
            enc,
            "STABLE",
            64,
            &format!("aggregate_final_{}", t.plain_name()),
        );
    }
    let mut finals: Vec<TypeCode> = aggregates().iter().map(|a| a.result).collect();
    finals.sort();
    finals.dedup();
    for t in finals {
        let enc = t.enc_name();
        function(
            out,
            &format!("{enc}_final(enc_aggstate)"),
            enc,
            "STABLE",
            4,
            "aggregate_final",
        );
    }
    aggregates()
        .iter()
        .for_each(|a| aggregate_definition(out, a));
}

fn aggregate_definition(out: &mut String, a: &AggregateSignature) {
    let (name, enc) = (a.aggregate.name(), operands::of_aggregate(a).join(", "));
    let _ = writeln!(
        out,
        "CREATE FUNCTION pg_catalog.enc_{name}_step(enc_aggstate, {enc}) RETURNS enc_aggstate AS 'MODULE_PATHNAME', 'cfd_{name}_{}' LANGUAGE C STABLE PARALLEL SAFE COST 4;",
        a.input.plain_name()
    );
    let sort = match a.aggregate {
        contract::Aggregate::Min => ", SORTOP = OPERATOR(pg_catalog.<)",
        contract::Aggregate::Max => ", SORTOP = OPERATOR(pg_catalog.>)",
        _ => "",
    };
    // As in PostgreSQL, parts of strings are not put together.
    let combine = match a.aggregate.arguments() {
        contract::Arguments::One => ", COMBINEFUNC = pg_catalog.enc_aggregate_combine",
        _ => "",
    };
    let or_null = if a.aggregate.nullable() {
        "_or_null"
    } else {
        ""
    };
    for sql_name in a.names() {
        let _ = writeln!(
            out,
            "CREATE AGGREGATE pg_catalog.{sql_name}({enc}) (SFUNC = pg_catalog.enc_{name}_step, STYPE = enc_aggstate, FINALFUNC = pg_catalog.{}_final{or_null}, FINALFUNC_MODIFY = READ_ONLY{combine}{sort}, PARALLEL = SAFE);",
            a.result.enc_name()
        );
    }
}
