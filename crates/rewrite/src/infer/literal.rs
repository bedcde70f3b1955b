//! Constants and parameters.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::value::{LeafKind, Val};
use contract::TypeCode;
use pg_query::protobuf::{AConst, ParamRef, Token, a_const};
use std::ops::Range;

impl Infer<'_> {
    pub fn constant(&mut self, c: &AConst) -> Res<Val> {
        let Some(val) = c.val.as_ref().filter(|_| !c.isnull) else {
            let at = usize::try_from(c.location).unwrap_or(0);
            let id = self.leaves.add(at..at, LeafKind::Null);
            return Ok(Val::leaf(id, None));
        };
        if c.location < 0 {
            // Inserted by the grammar: the 1 of FETCH FIRST ROW, the marks of CYCLE.
            return Ok(Val::plain(None));
        }
        let range = self.constant_range(c)?;
        let (kind, code) = match val {
            a_const::Val::Sval(s) => (LeafKind::Str(s.sval.clone().into_bytes(), None), None),
            a_const::Val::Boolval(b) => {
                let text: &[u8] = if b.boolval { b"true" } else { b"false" };
                (
                    LeafKind::Typed(TypeCode::Bool, -1, text.to_vec()),
                    Some(Some(TypeCode::Bool)),
                )
            }
            a_const::Val::Bsval(_) => (
                LeafKind::Never("bit strings have no protected type"),
                Some(None),
            ),
            a_const::Val::Ival(_) | a_const::Val::Fval(_) => self.number(&range),
        };
        let id = self.leaf(range, kind);
        Ok(Val::leaf(id, code))
    }

    /// The range of a constant; a negative number includes the sign, and what is between: `-(5)`.
    fn constant_range(&mut self, c: &AConst) -> Res<Range<usize>> {
        let lost = || Refusal::unsupported("a literal cannot be found in the text").at(c.location);
        let start = usize::try_from(c.location).map_err(|_| lost())?;
        let mut index = self.tokens.at(start).ok_or_else(lost)?;
        let mut open = None;
        while let sign @ (Token::Ascii45 | Token::Ascii43 | Token::Ascii40) =
            self.tokens.kind(index)
        {
            if sign == Token::Ascii40 {
                open.get_or_insert(index);
            }
            index += 1;
        }
        self.visited.insert(self.tokens.range(index).start);
        let mut end = self.tokens.range(index).end;
        if self.tokens.kind(index) == Token::Usconst
            && self.tokens.kind(index + 1) == Token::Uescape
        {
            self.visited.insert(self.tokens.range(index + 2).start);
            end = self.tokens.range(index + 2).end;
        }
        if let Some(open) = open {
            end = self
                .tokens
                .range(self.tokens.closing(open).ok_or_else(lost)?)
                .end;
        }
        Ok(start..end)
    }

    /// A number with the type that PostgreSQL gives it: `int4`, `int8` or `numeric`.
    fn number(&self, range: &Range<usize>) -> (LeafKind, Option<Option<TypeCode>>) {
        let kept = |c: &char| !c.is_whitespace() && !matches!(c, '(' | ')');
        let text: String = self.sql[range.clone()].chars().filter(kept).collect();
        let digits = text.trim_start_matches(['-', '+']);
        let negative = text.matches('-').count() - digits.matches('-').count();
        let text = match negative % 2 {
            0 => digits.to_owned(),
            _ => format!("-{digits}"),
        };
        let known = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+');
        if !text.bytes().all(known) {
            let reason =
                "numbers in this notation are not understood by every supported PostgreSQL";
            return (LeafKind::Never(reason), Some(None));
        }
        let code = match text.parse::<i64>() {
            Ok(n) if i32::try_from(n).is_ok() => TypeCode::Int4,
            Ok(_) => TypeCode::Int8,
            Err(_) => TypeCode::Numeric,
        };
        (
            LeafKind::Typed(code, -1, text.into_bytes()),
            Some(Some(code)),
        )
    }

    pub fn parameter(&mut self, p: &ParamRef) -> Res<Val> {
        let lost =
            || Refusal::unsupported("a parameter cannot be found in the text").at(p.location);
        let start = usize::try_from(p.location).map_err(|_| lost())?;
        let index = self.tokens.at(start).ok_or_else(lost)?;
        let number = u32::try_from(p.number)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(lost)?;
        self.visited.insert(start);
        if let Some(argument) = self.arguments.get(p.number as usize - 1) {
            return Ok(argument.clone());
        }
        let declared = self.declared.get(p.number as usize - 1).cloned();
        let said = match &declared {
            Some(ColumnType::Enc(code)) => Some(*code),
            _ => None,
        };
        let id = self.leaf(self.tokens.range(index), LeafKind::Param(number, said));
        // Which column's encodings a parameter has is told by what it meets.
        let encoded = |ty: &ColumnType| matches!(ty, ColumnType::Soft(..));
        if let Some(declared) = declared.filter(|ty| ty.protected() && !encoded(ty)) {
            if matches!(declared, ColumnType::EncArray(_)) {
                self.leaves.get_mut(id).array = Some(None);
            }
            self.leaves.protect(id);
            return Ok(self.value_of(&declared));
        }
        Ok(Val::leaf(id, None))
    }
}
