//! `json` and `jsonb`: operators whose right side is a key, an index or a path, and functions that make
//! documents of any number of values.
//!
//! Keys are protected as values are: they are sealed as texts.

use super::call::{Around, own_cast, sealed, text_cast};
use super::func::has_named;
use super::oper::families;
use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::value::{Class, LeafKind, Val};
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::{FuncCall, Token};

/// Operators that are about documents only.
pub(super) fn is_of_json(name: &str) -> bool {
    let own = [
        "->", "->>", "#>", "#>>", "@>", "<@", "?", "?|", "?&", "#-", "@?", "@@",
    ];
    own.contains(&name)
}

/// Whether it is a literal with one of the types of documents.
pub(super) fn is_literal_json(val: &Val) -> bool {
    matches!(
        val.class,
        Class::Lit(Some(Some(TypeCode::Json | TypeCode::Jsonb)))
    )
}

impl Infer<'_> {
    /// Whether it is a protected document.
    pub fn is_json(&self, val: &Val) -> bool {
        let code = self.enc_now(val).flatten();
        matches!(code, Some(TypeCode::Json | TypeCode::Jsonb))
    }

    /// The extension has some operators by other names, which are written instead.
    pub fn name_json_operator(&mut self, name: &str, at: i32) {
        let other = match name {
            "?" => "??",
            "?&" => "?&&",
            "#-" => "#-*",
            _ => return,
        };
        let token = usize::try_from(at).ok().and_then(|at| self.tokens.at(at));
        if let Some(token) = token {
            let mut range = self.tokens.range(token);
            // OPERATOR(pg_catalog.?) ends with its parenthesis.
            if let Some(close) = self.tokens.closing(token + 1)
                && self.tokens.kind(token) == Token::Operator
            {
                range.end = self.tokens.range(close).end;
            }
            self.replace(range, &format!("OPERATOR(pg_catalog.{other})"));
        }
    }

    /// An operator on a protected document with a key, an index, or an array of keys.
    pub fn json_operator(&mut self, name: &str, l: &Val, r: &Val) -> Res<Option<Val>> {
        if !self.is_json(l) {
            return Ok(None);
        }
        let array = matches!(r.class, Class::Array(_));
        let code = self.enc(l).flatten();
        match name {
            "->" | "->>" | "?" | "-" if !array => {
                self.type_bare(&r.leaves, TypeCode::Text);
                self.protect(r)?;
            }
            "#>" | "#>>" | "?|" | "?&" | "-" | "#-" => {
                if !self.keys(r)? {
                    return Ok(None);
                }
            }
            "@?" | "@@" => {
                return Err(Refusal::unsupported(format!(
                    "\"{name}\" is not available for protected values"
                ))
                .hint(
                    "Take the document apart with ->, ->>, #> and #>>, and use @> for conditions.",
                ));
            }
            _ => return Ok(None),
        }
        self.authority.does(families(name));
        Ok(Some(match (name, code) {
            ("->>" | "#>>", _) => Val::enc(Some(TypeCode::Text)),
            ("?" | "?|" | "?&", _) => Val::boolean(),
            (_, code) => Val::enc(code),
        }))
    }

    /// An array of keys: seals them. False if it is none.
    fn keys(&mut self, val: &Val) -> Res<bool> {
        let written = matches!(val.class, Class::Array(_));
        let Class::Array(element) = self.arrayed(val).class else {
            return Ok(false);
        };
        match written {
            true => self.type_bare(&element.all_leaves(), TypeCode::Text),
            false => {
                for u in &val.leaves {
                    self.leaves.get_mut(u.id).array = Some(Some(TypeCode::Text));
                }
            }
        }
        self.protect(&element)?;
        self.authority
            .does(family::COMPUTE | family::CAST | family::AGGREGATE);
        Ok(true)
    }

    /// `jsonb_set(document, path, new, flag)`, `jsonb_insert` and `jsonb_delete_path(document, path)`; the flag is plain.
    pub fn json_change(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        let (written, [document, path, more @ ..]) = (
            match name {
                "jsonb_set" => "enc_jsonbset",
                "jsonb_insert" => "enc_jsonbinsert",
                "jsonb_delete_path" => "enc_jsondeletepath",
                _ => return Ok(None),
            },
            vals,
        ) else {
            return Ok(None);
        };
        let (new, flag) = match (name, more) {
            ("jsonb_delete_path", []) => (None, None),
            ("jsonb_set" | "jsonb_insert", [new]) => (Some(new), None),
            ("jsonb_set" | "jsonb_insert", [new, flag]) => (Some(new), Some(flag)),
            _ => return Ok(None),
        };
        let documents = [Some(document), new].into_iter().flatten();
        let flagged = flag.is_some_and(|flag| self.holds_enc(flag));
        if has_named(f) || flagged || !documents.clone().any(|val| self.is_json(val)) {
            return Ok(None);
        }
        for val in documents {
            if val.bare() {
                self.type_bare(&val.leaves.clone(), TypeCode::Jsonb);
            }
            self.protect(val)?;
        }
        if !self.keys(path)? {
            return Ok(None);
        }
        if let Some(flag) = flag {
            self.note_plain(flag);
        }
        self.call_otherwise(written, f, vals, true);
        Ok(Some(Val::enc(Some(TypeCode::Jsonb))))
    }
}

/// How a function of documents is written if one of its arguments is protected.
pub(super) fn form(name: &str, vals: &[Val]) -> Option<Around> {
    let last = vals.len().checked_sub(1)?;
    let ret = match name.contains("jsonb") {
        true => TypeCode::Jsonb,
        false => TypeCode::Json,
    };
    match name {
        "to_json" | "to_jsonb" if last == 0 => Some(Around {
            ret,
            head: format!(
                "pg_catalog.enc_{}(pg_catalog.enc_jsonitem((",
                name.replace('_', "")
            ),
            behind: vec![LeafKind::Cast(Some(format!("{}))", own_cast(&vals[0])?)))],
        }),
        "json_build_array" | "jsonb_build_array" | "json_build_object" | "jsonb_build_object" => {
            let item = "coalesce(pg_catalog.enc_jsonitem((";
            let mut behind = Vec::new();
            for (at, val) in vals.iter().enumerate() {
                let next = format!(") || {item}");
                let after = if at == last { "))" } else { next.as_str() };
                behind.push(sealed(format!("{}), ", own_cast(val)?), "-", after));
            }
            Some(Around {
                ret,
                head: format!("pg_catalog.enc_{}({item}", name.replace("_build_", "")),
                behind,
            })
        }
        "json_extract_path"
        | "jsonb_extract_path"
        | "json_extract_path_text"
        | "jsonb_extract_path_text"
            if last > 0 =>
        {
            let text = name.ends_with("_text");
            let mut behind = vec![LeafKind::Cast(Some(format!(
                "{}, pg_catalog.enc_item((",
                own_cast(&vals[0])?
            )))];
            for (at, val) in vals.iter().enumerate().skip(1) {
                let end = match at == last {
                    true => "))",
                    false => ") || pg_catalog.enc_item((",
                };
                behind.push(LeafKind::Cast(Some(format!("{}{end}", text_cast(val)?))));
            }
            Some(Around {
                ret: if text { TypeCode::Text } else { ret },
                head: format!(
                    "pg_catalog.enc_jsonpath{}((",
                    if text { "text" } else { "" }
                ),
                behind,
            })
        }
        _ => None,
    }
}
