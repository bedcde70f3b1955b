//! Functions that return sets, called with something protected: the extension has them by other
//! names (extension/sql/core_sets.sql), so that PostgreSQL finds its own as before.

use super::func::has_named;
use super::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::value::{Class, Val};
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::{FuncCall, RangeFunction};
use pg_query::{Node, NodeEnum};

impl Infer<'_> {
    pub fn set(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        let single = |v: &Val| matches!(v.class, Class::Enc(_) | Class::Lit(_) | Class::Plain(_));
        let protected = vals.iter().any(|v| self.enc_now(v).is_some());
        if !protected || !vals.iter().all(single) || has_named(f) || f.func_variadic {
            return Ok(None);
        }
        let (takes, ret) = match (name, vals) {
            ("generate_series", [_, _] | [_, _, _]) => {
                let ret = self.series(vals, f.location)?;
                (ret, ret)
            }
            ("string_to_table" | "regexp_split_to_table", [_, _] | [_, _, _]) => {
                (TypeCode::Text, TypeCode::Text)
            }
            (_, [_]) => match of_document(name) {
                Some(types) => types,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        for (at, val) in vals.iter().enumerate() {
            let span = name == "generate_series" && at == 2 && !is_number(ret);
            self.expect(val, if span { TypeCode::Interval } else { takes });
            self.protect(val)?;
        }
        self.call_otherwise(&format!("enc_{name}"), f, vals, true);
        self.authority
            .does(family::COMPARE | family::COMPUTE | family::CAST);
        // The server counts.
        self.authority.takes_plain();
        let value = Val::enc(Some(ret));
        if !gives_pairs(name) {
            return Ok(Some(value));
        }
        let key = Val::enc(Some(TypeCode::Text));
        Ok(Some(Val::row(vec![
            ("key".into(), key),
            ("value".into(), value),
        ])))
    }

    /// The type of a series, as PostgreSQL finds it by its arguments.
    fn series(&self, vals: &[Val], at: i32) -> Res<TypeCode> {
        use TypeCode::{Date, Float4, Float8, Int4, Int8, Numeric, Timestamp, Timestamptz};
        let has = |code: TypeCode| {
            let of = |v: &Val| match v.class {
                Class::Enc(c) => c == Some(code),
                Class::Plain(c) | Class::Lit(Some(c)) => c == Some(code),
                _ => false,
            };
            vals.iter().any(of)
        };
        if has(Float4) || has(Float8) {
            let text = "generate_series of floating-point numbers does not exist";
            return Err(Refusal::new("42883", text)
                .at(at)
                .hint("Cast them to numeric."));
        }
        Ok(match () {
            () if has(Numeric) => Numeric,
            () if has(Timestamptz) => Timestamptz,
            () if has(Timestamp) => Timestamp,
            () if has(Date) => Timestamptz,
            () if has(Int8) => Int8,
            () => Int4,
        })
    }

    /// A set in FROM without an alias would have the name of the extension's function.
    pub fn name_set(&mut self, f: &RangeFunction, call: &Node) -> Res<()> {
        let Some(NodeEnum::FuncCall(function)) = &call.node else {
            return Ok(());
        };
        let path = names(&function.funcname);
        let Some(name) = path.last().filter(|name| is_set(name)) else {
            return Ok(());
        };
        if f.alias.is_some() && !f.is_rowsfrom {
            return Ok(());
        }
        let close = self.parentheses(function).map(|(_, close)| close);
        match close.filter(|_| !f.is_rowsfrom) {
            Some(close) => {
                // ... WITH ORDINALITY
                let last = if f.ordinality { close + 2 } else { close };
                let end = self.tokens.range(last).end;
                self.insert(end, &format!(" AS {name}"));
                Ok(())
            }
            None => Err(Refusal::unsupported(format!(
                "{name} of protected values needs a name here"
            ))
            .at(function.location)
            .hint("Call it alone in FROM, with an alias.")),
        }
    }
}

fn is_number(code: TypeCode) -> bool {
    matches!(code, TypeCode::Int4 | TypeCode::Int8 | TypeCode::Numeric)
}

fn is_set(name: &str) -> bool {
    matches!(
        name,
        "generate_series" | "string_to_table" | "regexp_split_to_table"
    ) || of_document(name).is_some()
}

/// What a set is made of, and what it gives.
fn of_document(name: &str) -> Option<(TypeCode, TypeCode)> {
    let (document, rest) = match name.strip_prefix("jsonb_") {
        Some(rest) => (TypeCode::Jsonb, rest),
        None => (TypeCode::Json, name.strip_prefix("json_")?),
    };
    match rest {
        "array_elements" | "each" => Some((document, document)),
        "array_elements_text" | "each_text" | "object_keys" => Some((document, TypeCode::Text)),
        _ => None,
    }
}

/// Whether its columns are a key and a value.
fn gives_pairs(name: &str) -> bool {
    name.ends_with("_each") || name.ends_with("_each_text")
}

/// Whether the function's column has a name of its own, besides that of the alias.
pub(super) fn is_of_elements(name: &str) -> bool {
    of_document(name).is_some() && name.contains("_array_elements")
}
