//! Functions with PostgreSQL's names, and what stands behind each.

use crate::signatures::Signatures;
use contract::{Flag, Op, OpResult, TypeCode};

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
    /// What it is called by instead, where the name is PostgreSQL's alone.
    pub written: Option<String>,
}

/// SQL name of the function behind an operation: overloaded by its operands.
pub(crate) fn internal_name(op: Op) -> String {
    format!("enc_{}", format!("{op:?}").to_lowercase())
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
        let renamed = signatures.is(signature, Flag::Renamed);
        let written = renamed.then(|| internal_name(signature.op));
        for name in signatures.names(signature) {
            all.push(Function {
                name,
                args: args.clone(),
                ret,
                number,
                written: written.clone(),
            });
        }
    }
    all
}
