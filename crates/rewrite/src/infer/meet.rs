//! Rules for values that are combined: as operands, as branches with a common type, or by
//! assignment to a column or argument.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::value::{Block, Class, LeafId, LeafKind, Use, Val};
use contract::TypeCode;
use contract::soft::Purpose;
use std::collections::HashSet;
use std::ops::Range;

impl Infer<'_> {
    /// The value is combined with something protected: its literals become protected.
    pub fn protect(&mut self, val: &Val) -> Res<()> {
        self.note_meeting(val);
        match &val.class {
            Class::Row(fields) => {
                for (_, field) in fields.clone().iter() {
                    self.protect(field)?;
                }
            }
            Class::Array(element) => self.protect(&element.clone())?,
            _ => {}
        }
        for u in &val.leaves {
            match u.block {
                None => self.leaves.protect(u.id),
                Some(Block::PlainFunction) if matches!(val.class, Class::Plain(_)) => {}
                Some(Block::Counted) if !self.telling(u) => {}
                Some(_) if !self.secret(u) => {}
                Some(block) => return Err(self.blocked(u, block)),
            }
        }
        Ok(())
    }

    /// Whether it may contain what the other operand is compared with, unlike a number of
    /// characters.
    fn telling(&self, u: &Use) -> bool {
        !matches!(self.leaves.get(u.id).kind, LeafKind::Typed(..))
    }

    fn blocked(&self, u: &Use, block: Block) -> Refusal {
        let position = self.leaves.get(u.id).range.start as i32;
        let refusal = Refusal::unsupported(
            "a literal meets a protected expression where it cannot be protected",
        )
        .at(position);
        match block {
            Block::PlainFunction | Block::Argument | Block::Counted => refusal
                .detail(
                    "It is an argument of a function or operator that works on plain values only.",
                )
                .hint(
                    "Compute the value in the application and pass it as one literal or parameter.",
                ),
            Block::BesidePlain => refusal
                .detail("It stands beside a plain expression whose type it takes.")
                .hint("Cast the plain expression to the protected type."),
        }
    }

    /// Two values are combined as operands that must have the same type.
    pub fn meet(&mut self, a: &Val, b: &Val, location: i32) -> Res<()> {
        if self.meet_soft(a, b, location)? {
            return Ok(());
        }
        if let (Class::Row(left), Class::Row(right)) = (&a.class, &b.class) {
            let (left, right) = (left.clone(), right.clone());
            if left.len() != right.len() {
                return self.meet_opaque(a, b, location);
            }
            for ((_, l), (_, r)) in left.iter().zip(right.iter()) {
                self.meet(l, r, location)?;
            }
            return Ok(());
        }
        if let (Class::Array(left), Class::Array(right)) = (&a.class, &b.class) {
            let (left, right) = (left.clone(), right.clone());
            return self.meet(&left, &right, location);
        }
        let opaque = |v: &Val| {
            matches!(
                v.class,
                Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown
            )
        };
        if opaque(a) || opaque(b) {
            return self.meet_opaque(a, b, location);
        }
        match (self.enc_now(a).is_some(), self.enc_now(b).is_some()) {
            (true, true) => Ok(()),
            (true, false) => self.protect(b),
            (false, true) => self.protect(a),
            (false, false) => {
                self.meet_open(a, b);
                Ok(())
            }
        }
    }

    /// Like [`Self::meet`], for operands where an untyped literal takes the type of the other
    /// operand.
    pub fn compare(&mut self, a: &Val, b: &Val, location: i32) -> Res<()> {
        self.meet(a, b, location)?;
        for (literal, other) in [(a, b), (b, a)] {
            if let Class::Enc(Some(code)) = other.class {
                self.expect(literal, code);
            }
        }
        Ok(())
    }

    /// An untyped literal is read as a value of this type.
    pub fn expect(&mut self, val: &Val, code: TypeCode) {
        if val.bare() {
            for u in &val.leaves {
                self.leaves.get_mut(u.id).meets.get_or_insert(code);
            }
        }
    }

    /// A row, an array or something unknown is combined with something of another shape.
    fn meet_opaque(&mut self, a: &Val, b: &Val, location: i32) -> Res<()> {
        if !self.holds_enc(a) && !self.holds_enc(b) {
            self.note_plain(a);
            self.note_plain(b);
            return Ok(());
        }
        let literals = |v: &Val| self.secrets(v).into_iter().next();
        match literals(a).or_else(|| literals(b)) {
            None => Ok(()),
            Some(u) => Err(self.undecided(&u, location)),
        }
    }

    /// Whether the leaf has a value.
    fn secret(&self, u: &Use) -> bool {
        self.leaves.get(u.id).holds_value()
    }

    /// The literals and parameters in a value.
    pub fn secrets(&self, val: &Val) -> Vec<Use> {
        val.all_leaves()
            .into_iter()
            .filter(|u| self.secret(u))
            .collect()
    }

    /// Whether it is an untyped NULL.
    pub fn is_null(&self, val: &Val) -> bool {
        val.bare()
            && val
                .leaves
                .iter()
                .all(|u| matches!(self.leaves.get(u.id).kind, LeafKind::Null))
    }

    pub fn undecided(&self, u: &Use, location: i32) -> Refusal {
        let at = self.leaves.get(u.id).range.start as i32;
        Refusal::unsupported("cannot tell whether a literal meets a protected value here")
            .at(if at >= 0 { at } else { location })
            .hint("Name the columns, or cast the literal and the expression to the protected type.")
    }

    /// Neither is protected yet; one may become so.
    fn meet_open(&mut self, a: &Val, b: &Val) {
        let uses: Vec<Use> = a.leaves.iter().chain(&b.leaves).copied().collect();
        self.leaves.unite_all(&uses);
        if a.bare() && b.bare() {
            self.type_bare(&uses, TypeCode::Text);
        }
        if matches!(a.class, Class::Plain(_)) || matches!(b.class, Class::Plain(_)) {
            let alone = |v: &Val| matches!(v.class, Class::Plain(_)) && v.leaves.is_empty();
            if alone(a) || alone(b) {
                self.met_plain(&uses);
            } else {
                for u in uses {
                    self.leaves.get_mut(u.id).met_plain = true;
                }
            }
        }
    }

    /// The value is passed to something that takes plain values only.
    pub fn pass(&mut self, val: &Val) {
        self.note_plain(val);
        for u in val.all_leaves() {
            self.leaves.get_mut(u.id).passed = true;
        }
    }

    /// A literal that was passed as plain turned out to be protected: the inference must run again
    /// with this knowledge.
    pub fn overtaken(&self) -> Option<HashSet<usize>> {
        let protected = |id: &usize| self.leaves.protected(*id);
        let late = |id: &usize| {
            let leaf = self.leaves.get(*id);
            leaf.passed && !self.forced.contains(&leaf.range.start)
        };
        let all: Vec<usize> = (0..self.leaves.len()).filter(protected).collect();
        let starts = all.iter().map(|id| self.leaves.get(*id).range.start);
        all.iter()
            .any(late)
            .then(|| starts.chain(self.forced.iter().copied()).collect())
    }

    /// A new leaf for a literal or parameter.
    pub fn leaf(&mut self, range: Range<usize>, kind: LeafKind) -> LeafId {
        let forced = self.forced.contains(&range.start);
        let id = self.leaves.add(range, kind);
        self.leaves.get_mut(id).tested = self.conditions > 0;
        if forced {
            self.leaves.protect(id);
        }
        id
    }

    /// The parameters of the value are combined with something plain.
    pub fn note_plain(&mut self, val: &Val) {
        self.met_plain(&val.all_leaves());
    }

    /// Untyped strings and parameters need a cast if they become protected.
    pub fn type_bare(&mut self, uses: &[Use], code: TypeCode) {
        for u in uses {
            let leaf = self.leaves.get_mut(u.id);
            if matches!(leaf.kind, LeafKind::Str(_, None) | LeafKind::Param(_, None)) {
                leaf.typed.get_or_insert(code);
            }
        }
    }

    /// The value of a literal in the select list of a subquery: PostgreSQL resolves an untyped one
    /// as `text`.
    pub fn settle(&mut self, val: &Val) -> Val {
        if !val.bare() {
            return val.clone();
        }
        self.type_bare(&val.leaves, TypeCode::Text);
        Val {
            class: Class::Lit(Some(Some(TypeCode::Text))),
            leaves: val.leaves.clone(),
        }
    }

    /// Values that get a common type: branches of `CASE`, `COALESCE`, rows of `VALUES`, arms of
    /// `UNION`, elements of an array.
    pub fn common(&mut self, vals: &[Val], location: i32) -> Res<Val> {
        let Some(first) = vals.first() else {
            return Ok(Val::plain(None));
        };
        let opaque = |v: &Val| {
            matches!(
                v.class,
                Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown
            )
        };
        if let Some(val) = self.common_soft(vals, location)? {
            return Ok(val);
        }
        if vals.iter().any(opaque) {
            return self.common_opaque(vals, location);
        }
        if vals.iter().any(|v| self.enc_now(v).is_some()) {
            let mut codes: Vec<Option<TypeCode>> = Vec::new();
            for val in vals {
                match self.enc_now(val) {
                    Some(code) => codes.push(code),
                    None => self.protect(val)?,
                }
            }
            codes.dedup();
            if let [Some(code)] = codes.as_slice() {
                vals.iter().for_each(|val| self.expect(val, *code));
            }
            return Ok(Val::enc(match codes.as_slice() {
                [only] => *only,
                _ => self.common_code(vals),
            }));
        }
        let mut uses: Vec<Use> = vals.iter().flat_map(|v| v.leaves.iter().copied()).collect();
        self.leaves.unite_all(&uses);
        if let Some(plain) = vals.iter().find(|v| matches!(v.class, Class::Plain(_))) {
            let class = plain.class.clone();
            self.met_plain(&uses);
            for u in &mut uses {
                u.block = u.block.or(Some(Block::BesidePlain));
            }
            return Ok(Val {
                class,
                leaves: uses,
            });
        }
        if vals.len() == 1 {
            return Ok(self.settle(first));
        }
        let typed = vals.iter().find(|v| !v.bare()).map(|v| v.class.clone());
        if typed.is_none() {
            self.type_bare(&uses, TypeCode::Text);
        }
        Ok(Val {
            class: typed.unwrap_or(Class::Lit(Some(Some(TypeCode::Text)))),
            leaves: uses,
        })
    }

    fn common_opaque(&mut self, vals: &[Val], location: i32) -> Res<Val> {
        let mut result = vals[0].clone();
        for val in &vals[1..] {
            if self.is_null(&result) {
                result = val.clone();
                continue;
            }
            if self.is_null(val) {
                continue;
            }
            result = match (&result.class, &val.class) {
                (Class::Row(a), Class::Row(b)) if a.len() == b.len() => {
                    let pairs: Vec<_> = a.iter().cloned().zip(b.iter().cloned()).collect();
                    let mut fields = Vec::new();
                    for ((name, l), (_, r)) in pairs {
                        fields.push((name, self.common(&[l, r], location)?));
                    }
                    Val::row(fields)
                }
                (Class::Array(a), Class::Array(b)) => {
                    let pair = [(**a).clone(), (**b).clone()];
                    Val::array(self.common(&pair, location)?)
                }
                (Class::Array(element), Class::Lit(None))
                | (Class::Lit(None), Class::Array(element))
                    if self.holds_enc(element) =>
                {
                    let element = (**element).clone();
                    let literal = if matches!(val.class, Class::Array(_)) {
                        &result
                    } else {
                        val
                    };
                    self.meet_array(&element, literal, location)?;
                    Val::array(element)
                }
                _ => {
                    self.meet_opaque(&result.clone(), val, location)?;
                    if self.holds_enc(&result) || self.holds_enc(val) {
                        Val::unknown_of([&result, val])
                    } else {
                        Val::plain(None)
                    }
                }
            };
        }
        Ok(result)
    }

    /// Assigns a value to a target (a column, an argument).
    pub fn assign(&mut self, target: &Val, val: &Val, location: i32) -> Res<()> {
        if self.is_null(val) {
            return Ok(());
        }
        match (&target.class, &val.class) {
            (Class::Soft(column), _) => self.encode(*column, Purpose::Store, val, location),
            (Class::Enc(code), Class::Lit(_) | Class::Plain(_) | Class::Enc(_)) => {
                if let Some(code) = code {
                    self.expect(val, *code);
                }
                self.protect(val)
            }
            (Class::Enc(_), _) if self.secrets(val).is_empty() => Ok(()),
            (Class::Array(element), Class::Lit(None)) => {
                let val = self.arrayed(val);
                let element = element.clone();
                self.say_elements(&element, &val);
                self.meet(&Val::of(Class::Array(element)), &val, location)
            }
            (Class::Plain(_), _) => {
                self.note_plain(val);
                Ok(())
            }
            _ => self.meet(target, val, location),
        }
    }

    /// The elements of an array literal have the type of this element.
    pub fn say_elements(&mut self, element: &Val, array: &Val) {
        let Some(code) = self.enc_now(element) else {
            return;
        };
        for u in array.all_leaves() {
            let leaf = self.leaves.get_mut(u.id);
            if leaf.array == Some(None) {
                leaf.array = Some(code);
            }
        }
    }

    /// A literal where an array is expected.
    pub fn arrayed(&mut self, val: &Val) -> Val {
        if matches!(val.class, Class::Array(_)) {
            return val.clone();
        }
        if !val.literal() {
            return match val.class {
                Class::Plain(_) => Val::array(Val {
                    class: Class::Plain(None),
                    leaves: val.leaves.clone(),
                }),
                _ => Val::unknown_of([val]),
            };
        }
        for u in &val.leaves {
            self.leaves.get_mut(u.id).array.get_or_insert(None);
        }
        Val::array(val.clone())
    }
}
