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
        let ret = match (name, vals) {
            ("generate_series", [_, _] | [_, _, _]) => self.series(vals, f.location)?,
            ("string_to_table", [_, _] | [_, _, _]) => TypeCode::Text,
            ("json_array_elements", [_]) => TypeCode::Json,
            ("jsonb_array_elements", [_]) => TypeCode::Jsonb,
            ("json_array_elements_text" | "jsonb_array_elements_text", [_]) => TypeCode::Text,
            _ => return Ok(None),
        };
        for (at, val) in vals.iter().enumerate() {
            let span = name == "generate_series" && at == 2 && !is_whole(ret);
            self.expect(val, if span { TypeCode::Interval } else { ret });
            self.protect(val)?;
        }
        self.call_otherwise(&format!("enc_{name}"), f, vals, true);
        self.authority
            .does(family::COMPARE | family::COMPUTE | family::CAST);
        // The server counts.
        self.authority.takes_plain();
        Ok(Some(Val::enc(Some(ret))))
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
        if has(Numeric) || has(Float4) || has(Float8) {
            return Err(Refusal::unsupported(
                "generate_series of numeric does not work on protected values",
            )
            .at(at)
            .hint("Make a series of integers and multiply its numbers."));
        }
        Ok(match () {
            () if has(Timestamptz) => Timestamptz,
            () if has(Timestamp) => Timestamp,
            () if has(Date) => Timestamptz,
            () if has(Int8) => Int8,
            () => Int4,
        })
    }

    /// A set in FROM without an alias would have the name of the extension's function.
    pub fn name_set(&mut self, f: &RangeFunction, call: &Node, val: &Val) -> Res<()> {
        let Some(NodeEnum::FuncCall(function)) = &call.node else {
            return Ok(());
        };
        let path = names(&function.funcname);
        let Some(name) = path.last().filter(|name| is_set(name)) else {
            return Ok(());
        };
        if !matches!(val.class, Class::Enc(_)) || (f.alias.is_some() && !f.is_rowsfrom) {
            return Ok(());
        }
        let close = self.parentheses(function).map(|(_, close)| close);
        match close.filter(|_| !f.ordinality && !f.is_rowsfrom) {
            Some(close) => {
                let end = self.tokens.range(close).end;
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

fn is_whole(code: TypeCode) -> bool {
    matches!(code, TypeCode::Int4 | TypeCode::Int8)
}

fn is_set(name: &str) -> bool {
    name == "generate_series" || name == "string_to_table" || is_of_elements(name)
}

/// Whether the function's column has a name of its own, besides that of the alias.
pub(super) fn is_of_elements(name: &str) -> bool {
    matches!(
        name,
        "json_array_elements"
            | "jsonb_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements_text"
    )
}
