//! Calls that are written otherwise where their arguments are protected.

use super::{Infer, Res};
use crate::value::{Class, LeafId, LeafKind, Use, Val};
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::{FuncCall, Token};

impl Infer<'_> {
    /// `substring(x for n)`: the 1 that the grammar puts between, as a literal that can be
    /// sealed.
    pub fn starting_at_one(&mut self, f: &FuncCall) -> Option<Val> {
        let (open, close) = self.parentheses(f)?;
        let keyword = self.outer(open, close, Token::For).next()?;
        let written = LeafKind::Written(", ".into(), TypeCode::Int4, "1", ",".into());
        let id = self.leaves.add(self.tokens.range(keyword), written);
        Some(Val::leaf(id, Some(Some(TypeCode::Int4))))
    }

    /// `concat(a, b)`: of protected values it is `coalesce(a, '') || coalesce(b, '')`.
    pub fn concat(&mut self, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        let text = |v: &Val| match v.class {
            // Its text in concat is another one than in a cast.
            Class::Plain(code) | Class::Enc(code) | Class::Lit(Some(code)) => {
                code.is_some_and(|code| code != TypeCode::Bool)
            }
            Class::Lit(None) => true,
            _ => false,
        };
        let Some((open, close)) = self.parentheses(f) else {
            return Ok(None);
        };
        let commas: Vec<usize> = self.outer(open, close, Token::Ascii44).collect();
        if f.func_variadic || !vals.iter().all(text) || commas.len() + 1 != vals.len() {
            return Ok(None);
        }
        let protected = vals.iter().any(|v| self.enc_now(v).is_some());
        let mut uses: Vec<Use> = vals.iter().flat_map(|v| v.leaves.iter().copied()).collect();
        uses.extend(self.written_apart(f, vals, &commas, close));
        self.leaves.unite_all(&uses);
        let plain = vals.iter().any(|v| matches!(v.class, Class::Plain(_)));
        let all = Val {
            class: match plain {
                true => Class::Plain(Some(TypeCode::Text)),
                false => Class::Lit(Some(Some(TypeCode::Text))),
            },
            leaves: uses,
        };
        // It becomes a concatenation with `||`.
        vals.iter()
            .for_each(|val| self.authority.does_perhaps(val, family::COMPUTE));
        if protected {
            self.authority.does(family::COMPUTE);
            vals.iter().for_each(|val| self.note_meeting(val));
            self.protect(&all)?;
            return Ok(Some(Val::enc(Some(TypeCode::Text))));
        }
        if plain {
            self.note_plain(&all);
        }
        Ok(Some(all))
    }

    /// A function whose name is PostgreSQL's alone is called by another one where its arguments
    /// are protected, or turn out to be.
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

    /// The parts of `concat(a, b)` around its arguments.
    fn written_apart(
        &mut self,
        f: &FuncCall,
        vals: &[Val],
        commas: &[usize],
        close: usize,
    ) -> Vec<Use> {
        let start = usize::try_from(f.location).unwrap_or(0);
        let open = self
            .parentheses(f)
            .map_or(start, |(open, _)| self.tokens.range(open).end);
        let head = LeafKind::Cast(Some("(coalesce((".into()));
        let mut ids: Vec<LeafId> = vec![self.leaves.add(start..open, head)];
        let ends = commas.iter().copied().chain([close]);
        for (val, index) in vals.iter().zip(ends) {
            let cast = match val.class {
                Class::Plain(_) if val.leaves.is_empty() => {
                    ")::pg_catalog.text::pg_catalog.enc_text, "
                }
                _ => ")::pg_catalog.enc_text, ",
            };
            let after = if index == close {
                "))"
            } else {
                ") || coalesce(("
            };
            let written = LeafKind::Written(cast.into(), TypeCode::Text, "", after.into());
            ids.push(self.leaves.add(self.tokens.range(index), written));
        }
        ids.into_iter().map(|id| Use { id, block: None }).collect()
    }

    /// The parentheses of a call.
    fn parentheses(&self, f: &FuncCall) -> Option<(usize, usize)> {
        let mut open = self.tokens.at(usize::try_from(f.location).ok()?)? + 1;
        while self.tokens.kind(open) == Token::Ascii46 {
            open += 2;
        }
        let found = self.tokens.kind(open) == Token::Ascii40;
        found.then(|| self.tokens.closing(open).map(|close| (open, close)))?
    }

    /// Tokens of this kind between them, in no inner ones.
    fn outer(&self, open: usize, close: usize, kind: Token) -> impl Iterator<Item = usize> + use<> {
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
