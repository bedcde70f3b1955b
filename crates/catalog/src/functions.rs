//! Functions with PostgreSQL's names, and what stands behind each.

use crate::signatures::Signatures;
use contract::{Op, OpResult, TypeCode};

/// The type of an argument or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A protected type.
    Enc(TypeCode),
    /// A plain type; `extract` takes its field's name so.
    Plain(TypeCode),
}

impl Arg {
    /// The SQL name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Arg::Enc(t) => t.enc_name(),
            Arg::Plain(t) => t.plain_name(),
        }
    }
}

/// A function by name.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, in `pg_catalog`.
    pub name: &'static str,
    /// Its arguments.
    pub args: Vec<Arg>,
    /// Its result.
    pub ret: Arg,
    /// Number of the signature behind it.
    pub number: u16,
}

/// The names under which SQL knows an operation.
fn names(op: Op, types: &[TypeCode]) -> &'static [&'static str] {
    let text = types.first() == Some(&TypeCode::Text);
    match op {
        Op::StartsWith => &["starts_with"],
        Op::Abs => &["abs"],
        Op::Mod => &["mod"],
        Op::Round => &["round"],
        Op::Trunc => &["trunc"],
        Op::Ceil => &["ceil", "ceiling"],
        Op::Floor => &["floor"],
        Op::Sign => &["sign"],
        Op::Substring => &["substring", "substr"],
        Op::Upper => &["upper"],
        Op::Lower => &["lower"],
        Op::Length if types == [TypeCode::Bytea] => &["length"],
        Op::Length => &["length", "char_length", "character_length"],
        Op::OctetLength => &["octet_length"],
        Op::TrimBoth => &["btrim"],
        Op::TrimLeft => &["ltrim"],
        Op::TrimRight => &["rtrim"],
        Op::Position if text => &["strpos"],
        Op::Replace => &["replace"],
        Op::Left => &["left"],
        Op::Right => &["right"],
        Op::Reverse => &["reverse"],
        Op::LikeEscape => &["like_escape"],
        Op::Extract => &["extract"],
        Op::DatePart => &["date_part"],
        Op::DateTrunc => &["date_trunc"],
        _ => crate::scalars::find(op, types).map_or(&[], |s| s.names),
    }
}

/// All functions by name, without casts and aggregates.
pub fn functions(signatures: &Signatures) -> Vec<Function> {
    let mut all = Vec::new();
    for (number, signature) in signatures.iter() {
        let unit = matches!(signature.op, Op::Extract | Op::DatePart | Op::DateTrunc);
        let args = unit
            .then_some(Arg::Plain(TypeCode::Text))
            .into_iter()
            .chain(signature.args.iter().map(|&t| Arg::Enc(t)))
            .collect::<Vec<_>>();
        let ret = match (signature.op.result(), signature.ret) {
            (OpResult::Fid, Some(t)) => Arg::Enc(t),
            _ => Arg::Plain(TypeCode::Bool),
        };
        for name in names(signature.op, &signature.args) {
            all.push(Function {
                name,
                args: args.clone(),
                ret,
                number,
            });
        }
        // position(a in b) puts the string that is searched first, too.
        if signature.op == Op::Position {
            all.push(Function {
                name: "position",
                args,
                ret,
                number,
            });
        }
    }
    all
}
