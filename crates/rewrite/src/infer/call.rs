//! Calls that must be rewritten if an argument is protected.

use super::func::has_named;
use super::{Infer, Res};
use crate::edit::{Edit, Form, Piece, Secret};
use crate::value::{Class, LeafKind, Use, Val};
use contract::TypeCode;
use grant::family;
use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, Token};

impl Infer<'_> {
    /// `substring(x for n)`: makes the 1 that the grammar inserts a literal that can be sealed.
    pub fn starting_at_one(&mut self, f: &FuncCall) -> Option<Val> {
        let (open, close) = self.parentheses(f)?;
        let keyword = self.outer(open, close, Token::For).next()?;
        let written = LeafKind::Written(", ".into(), TypeCode::Int4, "1", ",".into());
        let id = self.leaves.add(self.tokens.range(keyword), written);
        Some(Val::leaf(id, Some(Some(TypeCode::Int4))))
    }

    /// Functions that are rewritten if one of their arguments is protected, most of them with any number of arguments.
    pub fn of_many(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        if let Some(val) = self.gathered(name, f, vals)? {
            return Ok(Some(val));
        }
        if let Some(val) = self.json_change(name, f, vals)? {
            return Ok(Some(val));
        }
        let Some(text) = form(name, vals) else {
            return Ok(None);
        };
        let Some((open, close)) = self.parentheses(f) else {
            return Ok(None);
        };
        let ret = text.ret;
        let commas: Vec<usize> = self.outer(open, close, Token::Ascii44).collect();
        if f.func_variadic || has_named(f) || commas.len() + 1 != vals.len() {
            return Ok(None);
        }
        let protected = vals.iter().any(|v| self.enc_now(v).is_some());
        let mut uses: Vec<Use> = vals.iter().flat_map(|v| v.leaves.iter().copied()).collect();
        let start = usize::try_from(f.location).unwrap_or(0);
        let head = start..self.tokens.range(open).end;
        let mut ids = vec![self.leaves.add(head, LeafKind::Cast(Some(text.head)))];
        let ends = commas.iter().copied().chain([close]);
        for (written, index) in text.behind.into_iter().zip(ends) {
            ids.push(self.leaves.add(self.tokens.range(index), written));
        }
        uses.extend(ids.into_iter().map(|id| Use { id, block: None }));
        self.leaves.unite_all(&uses);
        let plain = vals.iter().any(|v| matches!(v.class, Class::Plain(_)));
        let all = Val {
            class: match plain {
                true => Class::Plain(Some(ret)),
                false => Class::Lit(Some(Some(ret))),
            },
            leaves: uses,
        };
        vals.iter()
            .for_each(|val| self.authority.does_perhaps(val, family::COMPUTE));
        if protected {
            self.authority.does(family::COMPUTE);
            vals.iter().for_each(|val| self.note_meeting(val));
            self.protect(&all)?;
            return Ok(Some(Val::enc(Some(ret))));
        }
        if plain {
            self.note_plain(&all);
        }
        Ok(Some(all))
    }

    /// `pi()`: a constant that can be sealed.
    pub fn pi(&mut self, f: &FuncCall) -> Option<Val> {
        let (_, close) = self.parentheses(f)?;
        let range = usize::try_from(f.location).ok()?..self.tokens.range(close).end;
        // It is not secret, so other occurrences of the value do not matter.
        let kind = LeafKind::Written("".into(), TypeCode::Float8, "3.141592653589793", "".into());
        let id = self.leaves.add(range, kind);
        Some(Val::leaf(id, Some(Some(TypeCode::Float8))))
    }

    /// `make_interval(days => x)`: puts named arguments in order, with zeros for those omitted. The
    /// underlying operations take positional arguments.
    pub fn make_interval_named(&mut self, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        const NAMES: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
        let mut place = 0;
        let mut edits = Vec::new();
        for node in &f.args {
            let Some(NodeEnum::NamedArgExpr(arg)) = &node.node else {
                place += 1;
                continue;
            };
            let wanted = NAMES.iter().position(|name| *name == arg.name);
            let from = usize::try_from(arg.location).ok();
            let name = from.and_then(|from| self.tokens.at(from));
            let (Some(wanted), Some(from), Some(name)) =
                (wanted.filter(|at| *at >= place), from, name)
            else {
                return Ok(None);
            };
            let mut pieces = Vec::new();
            for _ in place..wanted {
                pieces.push(Piece::Envelope(Secret {
                    form: Form::Typed(TypeCode::Int4, -1, b"0".to_vec()),
                    position: from,
                    meets: None,
                    fits: None,
                }));
                pieces.push(Piece::Text("::pg_catalog.enc_int4, ".into()));
            }
            edits.push(Edit {
                // The name and the following arrow.
                range: from..self.tokens.range(name + 1).end,
                pieces,
            });
            place = wanted + 1;
        }
        let start = usize::try_from(f.location).ok();
        let (Some(start), Some((open, _))) = (start, self.parentheses(f)) else {
            return Ok(None);
        };
        self.replace(
            start..self.tokens.range(open).start,
            "pg_catalog.enc_makeinterval",
        );
        self.edits.extend(edits);
        self.authority.does(family::COMPUTE);
        for val in vals {
            self.protect(val)?;
        }
        Ok(Some(Val::enc(Some(TypeCode::Interval))))
    }

    /// If arguments are protected, or turn out to be, a function that exists only in PostgreSQL's
    /// own form is called by another name.
    pub fn call_otherwise(&mut self, written: &str, f: &FuncCall, vals: &[Val], protected: bool) {
        let start = usize::try_from(f.location).ok();
        let (Some(start), Some((open, _))) = (start, self.parentheses(f)) else {
            return;
        };
        let range = start..self.tokens.range(open).start;
        let text = format!("pg_catalog.{written}");
        if protected {
            self.replace(range, &text);
            return;
        }
        let mut uses: Vec<Use> = vals.iter().flat_map(|v| v.leaves.iter().copied()).collect();
        if !uses.is_empty() {
            let id = self.leaves.add(range, LeafKind::Cast(Some(text)));
            uses.push(Use { id, block: None });
            self.leaves.unite_all(&uses);
        }
    }

    /// The parentheses of a call.
    pub fn parentheses(&self, f: &FuncCall) -> Option<(usize, usize)> {
        let mut open = self.tokens.at(usize::try_from(f.location).ok()?)? + 1;
        while self.tokens.kind(open) == Token::Ascii46 {
            open += 2;
        }
        let found = self.tokens.kind(open) == Token::Ascii40;
        found.then(|| self.tokens.closing(open).map(|close| (open, close)))?
    }

    /// Tokens of this kind between the parentheses, outside nested ones.
    pub fn outer(
        &self,
        open: usize,
        close: usize,
        kind: Token,
    ) -> impl Iterator<Item = usize> + use<> {
        let mut depth = 0usize;
        let mut found = Vec::new();
        for index in open + 1..close {
            match self.tokens.kind(index) {
                Token::Ascii40 | Token::Ascii91 => depth += 1,
                Token::Ascii41 | Token::Ascii93 => depth = depth.saturating_sub(1),
                other if other == kind && depth == 0 => found.push(index),
                _ => {}
            }
        }
        found.into_iter()
    }
}

/// The text around the arguments of a call.
pub(super) struct Around {
    pub head: String,
    /// Replacements for each comma and for the closing parenthesis.
    pub behind: Vec<LeafKind>,
    /// The type of the result.
    pub ret: TypeCode,
}

/// A cast to the protected counterpart of the argument's type.
pub(super) fn own_cast(val: &Val) -> Option<String> {
    let code = match val.class {
        Class::Enc(None) => return Some(")".into()),
        Class::Enc(code) | Class::Plain(code) | Class::Lit(Some(code)) => code?,
        Class::Lit(None) => TypeCode::Text,
        _ => return None,
    };
    Some(format!(")::pg_catalog.{}", code.enc_name()))
}

/// A cast to protected text.
pub(super) fn text_cast(val: &Val) -> Option<&'static str> {
    match val.class {
        Class::Plain(_) if val.leaves.is_empty() => Some(")::pg_catalog.text::pg_catalog.enc_text"),
        Class::Plain(_) | Class::Enc(_) | Class::Lit(_) => Some(")::pg_catalog.enc_text"),
        _ => None,
    }
}

pub(super) fn sealed(before: String, value: &'static str, after: &str) -> LeafKind {
    LeafKind::Written(before, TypeCode::Text, value, after.into())
}

/// How a function with any number of arguments is written if one is protected: `concat` with `||`,
/// the others with a single list of items (values::scalar::items).
fn form(name: &str, vals: &[Val]) -> Option<Around> {
    let last = vals.len().checked_sub(1)?;
    let item = "coalesce(pg_catalog.enc_item((";
    match name {
        name if name.starts_with("json") || name.starts_with("to_json") => {
            super::json::form(name, vals)
        }
        "concat" => Some(Around {
            ret: TypeCode::Text,
            head: format!("({}", shown_head(vals.first()?)),
            behind: (0..=last)
                .map(|at| {
                    let cast = shown_tail(&vals[at])?;
                    let after = match vals.get(at + 1) {
                        None => "))".to_owned(),
                        Some(next) => format!(") || {}", shown_head(next)),
                    };
                    Some(sealed(format!("{cast}, "), "", &after))
                })
                .collect::<Option<_>>()?,
        }),
        "concat_ws" | "format" if !(name == "concat_ws" && last == 0) => {
            let function = name.replace('_', "");
            let mut behind = Vec::new();
            for (at, val) in vals.iter().enumerate() {
                behind.push(match (at, last) {
                    (0, 0) => sealed(format!("{}, ", text_cast(val)?), "", ")"),
                    (0, _) => LeafKind::Cast(Some(format!("{}, ({item}", text_cast(val)?))),
                    (at, last) => {
                        let before = format!("{}), ", own_cast(val)?);
                        let next = format!(") || {item}");
                        let after = if at == last { ")))" } else { next.as_str() };
                        sealed(before, "-", after)
                    }
                });
            }
            Some(Around {
                ret: TypeCode::Text,
                head: format!("pg_catalog.enc_{function}(("),
                behind,
            })
        }
        "quote_nullable" if last == 0 => Some(Around {
            ret: TypeCode::Text,
            head: "coalesce(pg_catalog.quote_literal((".into(),
            behind: vec![sealed(format!("{}), ", text_cast(&vals[0])?), "NULL", ")")],
        }),
        // For text, the catalog has a function.
        "quote_literal" if last == 0 && own_cast(&vals[0])? != ")::pg_catalog.enc_text" => {
            Some(Around {
                ret: TypeCode::Text,
                head: "pg_catalog.quote_literal((".into(),
                behind: vec![LeafKind::Cast(Some(format!("{})", text_cast(&vals[0])?)))],
            })
        }
        _ => None,
    }
}

/// Types whose text in `concat` differs from that of a cast.
fn by_output(val: &Val) -> bool {
    matches!(
        val.class,
        Class::Plain(Some(TypeCode::Bool | TypeCode::Bpchar))
            | Class::Enc(Some(TypeCode::Bool | TypeCode::Bpchar))
            | Class::Lit(Some(Some(TypeCode::Bool | TypeCode::Bpchar)))
    )
}

/// The text before an argument of `concat`.
fn shown_head(val: &Val) -> &'static str {
    match by_output(val) {
        true => "coalesce(pg_catalog.enc_output((",
        false => "coalesce((",
    }
}

/// The text after it.
fn shown_tail(val: &Val) -> Option<String> {
    match val.class {
        _ if by_output(val) => own_cast(val).map(|cast| format!("{cast})")),
        Class::Enc(None) | Class::Plain(None) | Class::Lit(Some(None)) => None,
        _ => text_cast(val).map(str::to_owned),
    }
}
