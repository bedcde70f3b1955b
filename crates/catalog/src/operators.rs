//! Operators and operator classes.

use crate::signatures::{FAMILIES, Signature, Signatures};
use contract::{Op, OpResult, TypeCode};

/// An operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its name, like `<=`.
    pub name: &'static str,
    /// Number of its signature.
    pub number: u16,
    /// Its signature; one operand means a prefix operator.
    pub signature: Signature,
    /// What the planner should know of it.
    pub symbol: Symbol,
}

/// An operator's name and what the planner should know of it.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// The operation.
    pub op: Op,
    /// The operator's name.
    pub name: &'static str,
    /// The operator with exchanged operands.
    pub commutator: Option<&'static str>,
    /// The operator with the opposite result.
    pub negator: Option<&'static str>,
    /// Selectivity functions for restrictions and joins.
    pub selectivity: Option<(&'static str, &'static str)>,
}

const fn symbol(op: Op, name: &'static str) -> Symbol {
    Symbol {
        op,
        name,
        commutator: None,
        negator: None,
        selectivity: None,
    }
}

const fn commutative(op: Op, name: &'static str) -> Symbol {
    Symbol {
        commutator: Some(name),
        ..symbol(op, name)
    }
}

const fn test(
    op: Op,
    name: &'static str,
    commutator: Option<&'static str>,
    negator: Option<&'static str>,
    selectivity: (&'static str, &'static str),
) -> Symbol {
    Symbol {
        op,
        name,
        commutator,
        negator,
        selectivity: Some(selectivity),
    }
}

const MATCHING: (&str, &str) = ("pg_catalog.enc_matchingsel", "matchingjoinsel");

const SYMBOLS: &[Symbol] = &[
    test(
        Op::Lt,
        "<",
        Some(">"),
        Some(">="),
        ("pg_catalog.enc_scalarltsel", "scalarltjoinsel"),
    ),
    test(
        Op::Le,
        "<=",
        Some(">="),
        Some(">"),
        ("pg_catalog.enc_scalarlesel", "scalarlejoinsel"),
    ),
    test(
        Op::Eq,
        "=",
        Some("="),
        Some("<>"),
        ("pg_catalog.enc_eqsel", "eqjoinsel"),
    ),
    test(
        Op::Ge,
        ">=",
        Some("<="),
        Some("<"),
        ("pg_catalog.enc_scalargesel", "scalargejoinsel"),
    ),
    test(
        Op::Gt,
        ">",
        Some("<"),
        Some("<="),
        ("pg_catalog.enc_scalargtsel", "scalargtjoinsel"),
    ),
    test(
        Op::Ne,
        "<>",
        Some("<>"),
        Some("="),
        ("pg_catalog.enc_neqsel", "neqjoinsel"),
    ),
    test(Op::Like, "~~", None, Some("!~~"), MATCHING),
    test(Op::NotLike, "!~~", None, Some("~~"), MATCHING),
    test(Op::Ilike, "~~*", None, Some("!~~*"), MATCHING),
    test(Op::NotIlike, "!~~*", None, Some("~~*"), MATCHING),
    test(Op::StartsWith, "^@", None, None, MATCHING),
    test(Op::Regex, "~", None, Some("!~"), MATCHING),
    test(Op::NotRegex, "!~", None, Some("~"), MATCHING),
    test(Op::RegexFold, "~*", None, Some("!~*"), MATCHING),
    test(Op::NotRegexFold, "!~*", None, Some("~*"), MATCHING),
    test(Op::JsonContains, "@>", Some("<@"), None, MATCHING),
    test(Op::JsonContained, "<@", Some("@>"), None, MATCHING),
    // Of the name `?` PostgreSQL has one operator only, which it would not find for untyped operands
    // any more; the proxy writes this name.
    test(Op::JsonExists, "??", None, None, MATCHING),
    symbol(Op::JsonGet, "->"),
    symbol(Op::JsonGetText, "->>"),
    symbol(Op::JsonElement, "->"),
    symbol(Op::JsonElementText, "->>"),
    symbol(Op::JsonConcat, "||"),
    symbol(Op::JsonDelete, "-"),
    commutative(Op::Add, "+"),
    symbol(Op::Sub, "-"),
    commutative(Op::Mul, "*"),
    symbol(Op::Div, "/"),
    symbol(Op::Mod, "%"),
    symbol(Op::Neg, "-"),
    symbol(Op::Plus, "+"),
    symbol(Op::Abs, "@"),
    commutative(Op::BitAnd, "&"),
    commutative(Op::BitOr, "|"),
    commutative(Op::BitXor, "#"),
    symbol(Op::BitNot, "~"),
    symbol(Op::ShiftLeft, "<<"),
    symbol(Op::ShiftRight, ">>"),
    symbol(Op::Concat, "||"),
    symbol(Op::Power, "^"),
    symbol(Op::Sqrt, "|/"),
];

/// All operators, in the order of signatures.
pub fn operators(signatures: &Signatures) -> Vec<Operator> {
    signatures
        .iter()
        .filter_map(|(number, signature)| {
            let symbol = *SYMBOLS.iter().find(|s| s.op == signature.op)?;
            if signature.op == Op::Sqrt && signature.args != [TypeCode::Float8] {
                return None;
            }
            Some(Operator {
                name: symbol.name,
                number,
                signature: signature.clone(),
                symbol,
            })
        })
        .collect()
}

/// The hash operator families: types whose equal values hash equally and that
/// have `=` between them. As in PostgreSQL, dates and timestamps are apart.
const HASH_FAMILIES: &[(&str, &[TypeCode])] = {
    use TypeCode::*;
    &[
        ("enc_bool_ops", &[Bool]),
        ("enc_integer_ops", &[Int2, Int4, Int8]),
        ("enc_float_ops", &[Float4, Float8]),
        ("enc_numeric_ops", &[Numeric]),
        ("enc_text_ops", &[Text]),
        ("enc_bpchar_ops", &[Bpchar]),
        ("enc_bytea_ops", &[Bytea]),
        ("enc_date_ops", &[Date]),
        ("enc_timestamp_ops", &[Timestamp]),
        ("enc_timestamptz_ops", &[Timestamptz]),
        ("enc_time_ops", &[Time]),
        ("enc_interval_ops", &[Interval]),
        ("enc_uuid_ops", &[Uuid]),
        ("enc_jsonb_ops", &[Jsonb]),
    ]
};

/// An operator family of an access method with the types it covers.
#[derive(Clone, Copy, Debug)]
pub struct OperatorClass {
    /// `btree` or `hash`.
    pub method: &'static str,
    /// Name of the family; the class of each type is named like the type.
    pub family: &'static str,
    /// The types; operators exist between any two of them.
    pub types: &'static [TypeCode],
}

/// All operator families.
pub fn operator_classes() -> Vec<OperatorClass> {
    let of = |method| {
        move |&(family, types): &(&'static str, &'static [TypeCode])| OperatorClass {
            method,
            family,
            types,
        }
    };
    FAMILIES
        .iter()
        .map(of("btree"))
        .chain(HASH_FAMILIES.iter().map(of("hash")))
        .collect()
}

impl Operator {
    /// Whether `=` can be used for hash joins.
    pub fn hashes(&self) -> bool {
        self.signature.op == Op::Eq
            && HASH_FAMILIES
                .iter()
                .any(|(_, types)| self.signature.args.iter().all(|t| types.contains(t)))
    }

    /// Whether `=` can be used for merge joins.
    pub fn merges(&self) -> bool {
        self.signature.op == Op::Eq
    }

    /// Whether the operator with exchanged operands exists.
    pub fn has_commutator(&self, all: &[Operator]) -> bool {
        let [a, b] = self.signature.args[..] else {
            return false;
        };
        all.iter()
            .any(|o| Some(o.name) == self.symbol.commutator && o.signature.args == [b, a])
    }

    /// Whether the result is a declassified boolean.
    pub fn is_test(&self) -> bool {
        self.signature.op.result() == OpResult::Bool
    }
}

/// Types that B-trees sort, and the numbers of the comparisons they sort by.
pub fn sort_supports() -> Vec<(TypeCode, u16)> {
    let signatures = crate::signatures();
    let classes = operator_classes()
        .into_iter()
        .filter(|c| c.method == "btree");
    classes
        .flat_map(|class| class.types.iter().copied())
        .filter_map(|t| {
            let comparison = Signature {
                op: Op::Cmp,
                args: vec![t, t],
                ret: None,
            };
            Some((t, signatures.number(&comparison)?))
        })
        .collect()
}
