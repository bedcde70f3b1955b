//! Values of the family `soft_`: which literals are combined with a column of encodings, and with
//! which key the client encodes them.
//!
//! Everything else treats such a value as unknown (`Class::Unknown`). What is not handled here is
//! refused if a literal is combined with it, and otherwise left to the server.
//!
//! Invariant: a literal that repeats the value of an encoded one is encoded for the same column, or
//! the statement is refused.

use super::{Infer, Res};
use crate::edit::{Edit, Form, Piece, Secret};
use crate::known;
use crate::refusal::Refusal;
use crate::value::{Class, Leaf, LeafKind, Soft, Use, Val};
use contract::TypeCode;
use contract::soft::{Column, Purpose};
use grant::family;
use std::collections::{HashMap, HashSet};

impl Infer<'_> {
    /// Handles two values of which at least one is a column of encodings; otherwise returns false.
    pub fn meet_soft(&mut self, a: &Val, b: &Val, at: i32) -> Res<bool> {
        if let (Class::Soft(_), _) | (_, Class::Soft(_)) = (&a.class, &b.class) {
            // The keeper may do it instead (`confide.soft_mode`).
            self.authority.does(family::COMPARE);
        }
        match (&a.class, &b.class) {
            (Class::Soft(x), Class::Soft(y)) if !x.comparable(y) => Err(other_key(x, at)),
            (Class::Soft(x), _) => self.encode(*x, self.comparing(*x), b, at).map(|()| true),
            (_, Class::Soft(y)) => self.encode(*y, self.comparing(*y), a, at).map(|()| true),
            _ => Ok(false),
        }
    }

    /// An operand of what no encoding allows. PostgreSQL casts it to the type `enc_`, implicitly, and
    /// the keeper opens it if it has the column's key.
    pub fn opened(val: &Val) -> Val {
        match val.class {
            Class::Soft(column) => Val::enc(Some(column.code)),
            _ => val.clone(),
        }
    }

    /// The operands of an operator, opened if no encoding allows it.
    pub fn opened_both(name: &str, l: &Val, r: &Val) -> (Val, Val) {
        // There are no encodings of a plain operand that is no literal.
        let plain = |v: &Val| matches!(v.class, Class::Plain(_)) && v.all_leaves().is_empty();
        let no_text =
            |v: &Val| matches!(v.class, Class::Soft(column) if column.code != TypeCode::Text);
        // PostgreSQL would join a cell of another type than text to a text as it is.
        let joins = name == "||" && (no_text(l) || no_text(r));
        let beyond = known::beyond_encodings(name) || plain(l) || plain(r);
        match beyond && !joins {
            true => (Self::opened(l), Self::opened(r)),
            false => (l.clone(), r.clone()),
        }
    }

    /// The arguments of a function or an aggregate, opened unless it is one of the family's own.
    pub fn opened_for(name: &str, aggregate: bool, vals: &[Val]) -> Vec<Val> {
        match aggregate && matches!(name, "sum" | "avg" | "min" | "max") {
            true => vals.to_vec(),
            false => vals.iter().map(Self::opened).collect(),
        }
    }

    /// What a value is encoded for that is compared with this column here.
    pub fn comparing(&self, column: Column) -> Purpose {
        match self.ordering && column.code == TypeCode::Text {
            true => Purpose::Order,
            false => Purpose::Compare,
        }
    }

    /// Encodes the literals of a value for a column and purpose.
    pub fn encode(&mut self, column: Column, purpose: Purpose, val: &Val, at: i32) -> Res<()> {
        let each = purpose == Purpose::Each;
        let simple = |u: &Use| {
            let leaf = self.leaves.get(u.id);
            u.block.is_none()
                && (leaf.array.is_some() == each || matches!(leaf.kind, LeafKind::Cast(_)))
                && match &leaf.kind {
                    LeafKind::Str(..) | LeafKind::Typed(..) | LeafKind::Param(..) => true,
                    LeafKind::Null => true,
                    LeafKind::Cast(twin) => twin.as_ref().is_some_and(|t| !t.contains('(')),
                    _ => false,
                }
        };
        let leaves = val.all_leaves();
        if !val.literal() || !leaves.iter().all(simple) {
            return match self.secrets(val).first() {
                Some(u) => Err(self.undecided(u, at)),
                None => Ok(()),
            };
        }
        for u in &leaves {
            let leaf = self.leaves.get_mut(u.id);
            let before = leaf.soft.unwrap_or(Soft { column, purpose });
            if before.column != column {
                return Err(other_key(&column, at));
            }
            let purpose = before.purpose.and(purpose).ok_or_else(|| two_uses(at))?;
            leaf.soft = Some(Soft { column, purpose });
        }
        self.leaves.unite_all(&leaves);
        Ok(())
    }

    /// Values with a common type, one of which is a column of encodings.
    pub fn common_soft(&mut self, vals: &[Val], at: i32) -> Res<Option<Val>> {
        let column = |v: &Val| match v.class {
            Class::Soft(column) => Some(column),
            _ => None,
        };
        let Some(first) = vals.iter().find_map(column) else {
            return Ok(None);
        };
        let mut same = true;
        for val in vals {
            match column(val) {
                Some(other) => same &= other.comparable(&first),
                None => {
                    self.same_scale(first, val, at)?;
                    self.encode(first, self.comparing(first), val, at)?;
                }
            }
        }
        Ok(Some(match same {
            true => Val::of(Class::Soft(first)),
            false => Val::unknown_of(vals),
        }))
    }

    /// A result has the scale of its column, but a literal in a result the scale in which it is
    /// written.
    fn same_scale(&self, column: Column, val: &Val, at: i32) -> Res<()> {
        let Some((_, scale)) = column.precision_and_scale() else {
            return Ok(());
        };
        for u in val.all_leaves() {
            let (LeafKind::Str(text, _) | LeafKind::Typed(_, _, text)) =
                &self.leaves.get(u.id).kind
            else {
                continue;
            };
            let point = text.iter().position(|byte| *byte == b'.');
            let digits = point.map_or(0, |point| text.len() - point - 1);
            if digits != usize::from(scale) {
                return Err(Refusal::unsupported(
                    "a literal of a result has another scale than the column whose encodings it takes",
                )
                .at(at)
                .hint(format!(
                    "Write it with {scale} digits after the decimal point."
                )));
            }
        }
        Ok(())
    }

    /// The edit of an encoded leaf.
    pub fn soft_edit(&self, leaf: &Leaf, soft: Soft) -> Option<Edit> {
        let many = match &leaf.kind {
            LeafKind::Cast(twin) => twin.as_ref().is_some_and(|t| t.ends_with("[]")),
            _ => soft.purpose == Purpose::Each,
        };
        let ty = soft.column.code.soft_name();
        let ty = format!("pg_catalog.{ty}{}", if many { "[]" } else { "" });
        let secret = |text: &[u8], said| {
            Piece::Envelope(Secret {
                form: Form::Soft(soft.column, soft.purpose, text.to_vec(), said),
                position: leaf.range.start,
                meets: None,
                fits: None,
            })
        };
        let cast = Piece::Text(format!("::{ty}"));
        let (range, pieces) = match &leaf.kind {
            LeafKind::Str(text, said) => (
                leaf.range.clone(),
                vec![secret(text, leaf.array.flatten().or(*said)), cast],
            ),
            LeafKind::Typed(code, _, text) => {
                (leaf.range.clone(), vec![secret(text, Some(*code)), cast])
            }
            LeafKind::Param(..) => (leaf.range.end..leaf.range.end, vec![cast]),
            // A collation, which is left out.
            LeafKind::Cast(Some(none)) if none.is_empty() => (leaf.range.clone(), Vec::new()),
            LeafKind::Cast(_) => (leaf.range.clone(), vec![Piece::Text(ty)]),
            _ => return None,
        };
        Some(Edit { range, pieces })
    }

    /// Checks that an encoded value is neither plain nor sealed elsewhere in the statement.
    pub fn check_encoded(&mut self) -> Res<()> {
        let soft = |this: &Self, id: usize| this.leaves.get(id).soft;
        let ids = 0..self.leaves.len();
        let groups: HashSet<usize> = ids
            .clone()
            .filter(|id| soft(self, *id).is_some())
            .map(|id| self.leaves.root(id))
            .collect();
        if groups.is_empty() {
            return Ok(());
        }
        self.encode_again();
        let mut again =
            self.saying_again(|id, leaf| leaf.soft.is_some() || self.leaves.protected(id));
        // By using different parameters the application states that the values are independent.
        let numbers: HashSet<u32> = ids
            .clone()
            .filter(|id| soft(self, *id).is_some())
            .filter_map(|id| number(self.leaves.get(id)))
            .collect();
        for id in ids.clone() {
            let leaf = self.leaves.get(id);
            if let LeafKind::Param(n, Some(_)) = leaf.kind
                && !numbers.contains(&n)
            {
                again.remove(&leaf.range.start);
            }
        }
        for id in ids {
            let leaf = self.leaves.get(id);
            let torn = match leaf.soft {
                Some(_) => self.leaves.protected(id),
                None => {
                    leaf.holds_value() && groups.contains(&self.leaves.root(id))
                        || again.contains(&leaf.range.start)
                }
            };
            if torn {
                let at = i32::try_from(leaf.range.start).unwrap_or(-1);
                return Err(Refusal::unsupported(
                    "a literal or parameter is encoded in one place and stands in the clear in another",
                )
                .at(at)
                .hint("Pass it as two parameters, with a cast to a plain type for the one in the clear."));
            }
        }
        Ok(())
    }

    /// Handles other uses of an encoded parameter that only test for NULL.
    fn encode_again(&mut self) {
        let mut encoded: HashMap<u32, Soft> = HashMap::new();
        for id in 0..self.leaves.len() {
            let leaf = self.leaves.get(id);
            if let (Some(number), Some(soft)) = (number(leaf), leaf.soft) {
                encoded.insert(number, soft);
            }
        }
        for id in 0..self.leaves.len() {
            let leaf = self.leaves.get_mut(id);
            if leaf.any_type
                && leaf.soft.is_none()
                && let Some(soft) = number(leaf).and_then(|n| encoded.get(&n))
            {
                leaf.soft = Some(*soft);
            }
        }
    }
}

fn number(leaf: &Leaf) -> Option<u32> {
    match leaf.kind {
        LeafKind::Param(number, _) => Some(number),
        _ => None,
    }
}

fn two_uses(at: i32) -> Refusal {
    Refusal::unsupported("a literal or parameter is encoded in two ways")
        .at(at)
        .hint("Use two parameters.")
}

fn other_key(column: &Column, at: i32) -> Refusal {
    Refusal::unsupported("encodings with different keys cannot be computed with each other")
        .at(at)
        .hint(format!(
            "Give both columns one type and one key: {}(key_{}).",
            column.code.soft_name(),
            column.key
        ))
}
