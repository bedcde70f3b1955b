//! Casts and typed literals: type names are replaced by their protected counterparts if the value
//! is protected.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::soft_type;
use crate::value::{Block, Class, LeafKind, Use, Val};
use contract::TypeCode;
use grant::family;
use pg_query::protobuf::{TypeCast, TypeName, a_const};
use pg_query::{Node, NodeEnum};
use std::ops::Range;

/// "No range of fields" in an interval's type modifier.
const INTERVAL_FULL_RANGE: i32 = 0x7FFF;
/// "No precision" in an interval's type modifier.
const INTERVAL_FULL_PRECISION: i32 = 0xFFFF;

/// A type name in the statement.
pub(crate) struct TypeUse {
    /// Its byte range, including modifier and array bounds.
    pub range: Range<usize>,
    pub kind: TypeKind,
    pub array: bool,
    /// Constant type modifiers; `None` if there are others.
    pub mods: Option<Vec<i32>>,
}

/// The meaning of a type name.
#[derive(Clone)]
pub(crate) enum TypeKind {
    /// A plain type with a protected counterpart.
    Twin(TypeCode),
    /// A plain type without one, and its name.
    Plain(String),
    /// A type that is, or contains, a protected one.
    Protected(ColumnType),
}

impl TypeUse {
    /// The type of a column or parameter declared with this type.
    pub fn column_type(&self) -> ColumnType {
        match (&self.kind, self.array) {
            (TypeKind::Twin(code), false) => {
                ColumnType::Plain(code.plain_oid(), code.plain_name().to_owned())
            }
            (TypeKind::Twin(_), true) => ColumnType::Plain(0, String::new()),
            (TypeKind::Plain(name), false) => ColumnType::Plain(0, name.clone()),
            (TypeKind::Plain(_), true) => ColumnType::Plain(0, String::new()),
            (TypeKind::Protected(ColumnType::Enc(code)), true) => ColumnType::EncArray(*code),
            (TypeKind::Protected(ty), _) => ty.clone(),
        }
    }

    pub fn protected(&self) -> bool {
        matches!(self.kind, TypeKind::Protected(_))
    }

    /// The text that replaces it if the value is protected.
    pub fn twin(&self) -> Option<String> {
        let TypeKind::Twin(code) = self.kind else {
            return None;
        };
        let mods = self.mods.as_ref()?;
        if code == TypeCode::Interval && !mods.is_empty() {
            return None;
        }
        let mut text = format!("pg_catalog.{}", code.enc_name());
        if !mods.is_empty() {
            let list: Vec<String> = mods.iter().map(i32::to_string).collect();
            text.push_str(&format!("({})", list.join(",")));
        }
        if self.array {
            text.push_str("[]");
        }
        Some(text)
    }

    fn interval_typmod(&self) -> Option<i32> {
        if !matches!(self.kind, TypeKind::Twin(TypeCode::Interval)) || self.array {
            return None;
        }
        match self.mods.as_deref()? {
            [] => None,
            [range] if *range == INTERVAL_FULL_RANGE => None,
            [range] => Some((range & INTERVAL_FULL_RANGE) << 16 | INTERVAL_FULL_PRECISION),
            [range, precision] => Some((range & INTERVAL_FULL_RANGE) << 16 | precision & 0xFFFF),
            _ => None,
        }
    }
}

impl Infer<'_> {
    /// Examines a type name; its constants are not values.
    pub fn type_use(&mut self, name: &TypeName) -> Res<TypeUse> {
        let range = self.visit_type(name).ok_or_else(|| {
            Refusal::unsupported("a type name cannot be found in the text").at(name.location)
        })?;
        let path = super::names(&name.names);
        let (last, schema) = match path.split_last() {
            Some((last, schema)) => (*last, schema.last().copied()),
            None => ("", None),
        };
        let system = schema.is_none_or(|s| s == "pg_catalog");
        // The name of an array's type, as PostgreSQL writes it.
        let (last, named_array) = match last.strip_prefix('_') {
            Some(element) if system && TypeCode::from_protected_name(element).is_some() => {
                (element, true)
            }
            _ => (last, false),
        };
        let plain = TypeCode::ALL
            .iter()
            .copied()
            .find(|t| t.plain_name() == last);
        let enc = TypeCode::from_protected_name(last);
        let kind = match (plain, enc) {
            (Some(code), _) if system && !name.pct_type => TypeKind::Twin(code),
            (_, Some(code)) if system => TypeKind::Protected(ColumnType::Enc(code)),
            _ => match self.schema.protected_type(schema, last) {
                Some(ColumnType::Soft(code, -1)) => {
                    let words: Vec<String> = name.typmods.iter().filter_map(word).collect();
                    let (code, modifier) = soft_type::named(*code, &words).unwrap_or((*code, -1));
                    TypeKind::Protected(ColumnType::Soft(code, modifier))
                }
                Some(ty) => TypeKind::Protected(ty.clone()),
                None if name.pct_type => {
                    return Err(Refusal::unsupported("%TYPE is not supported").at(name.location));
                }
                None => TypeKind::Plain(last.to_owned()),
            },
        };
        if matches!(kind, TypeKind::Protected(_)) {
            self.touches_protected = true;
        }
        if !name.array_bounds.is_empty() && self.domain(name).is_some() {
            return Err(Refusal::unsupported(format!(
                "an array of \"{last}\" is not available, which is a domain over a protected type"
            ))
            .at(name.location));
        }
        let mods = name.typmods.iter().map(constant).collect();
        Ok(TypeUse {
            range,
            kind,
            array: named_array || !name.array_bounds.is_empty(),
            mods,
        })
    }

    /// Marks the constants of a type name as examined, and returns its byte range.
    pub fn visit_type(&mut self, name: &TypeName) -> Option<Range<usize>> {
        let start = usize::try_from(name.location).ok()?;
        let first = self.tokens.at(start)?;
        let end = self
            .tokens
            .range(self.tokens.type_end(first).checked_sub(1)?)
            .end;
        for typmod in &name.typmods {
            if let Some(NodeEnum::AConst(c)) = &typmod.node
                && let Ok(at) = usize::try_from(c.location)
            {
                self.visited.insert(at);
            }
        }
        let inside: Vec<usize> = self
            .tokens
            .values(&(start..end))
            .map(|(_, r)| r.start)
            .collect();
        self.visited.extend(inside);
        Some(start..end)
    }

    pub fn cast(&mut self, c: &TypeCast) -> Res<Val> {
        let (Some(arg), Some(name)) = (c.arg.as_deref(), c.type_name.as_ref()) else {
            return Ok(Val::plain(None));
        };
        // Generated by the grammar: SUBSTRING (… FOR n).
        if name.location < 0 {
            return self.expr(arg);
        }
        let ty = self.type_use(name)?;
        if let Some(val) = self.interval_literal(c, arg, &ty)? {
            return Ok(val);
        }
        let val = self.expr(arg)?;
        match &ty.kind {
            TypeKind::Protected(_) => {
                if self.domain(name).is_some() {
                    // Its checks see the value, and have constants.
                    self.authority.takes_constants();
                    self.authority
                        .does(family::COMPARE | family::PATTERN | family::COMPUTE | family::CAST);
                }
                self.cast_protected(&ty.column_type(), &val, c.location)
            }
            TypeKind::Twin(code) if ty.array => self.cast_array(*code, &ty, arg, &val),
            TypeKind::Twin(code) => self.cast_twin(*code, &ty, &val),
            TypeKind::Plain(name) => self.cast_plain(&name.clone(), &ty, &val),
        }
    }

    /// A cast to a protected type in the statement itself.
    pub(super) fn cast_protected(&mut self, target: &ColumnType, val: &Val, at: i32) -> Res<Val> {
        if let (ColumnType::Enc(code), [only]) = (target, val.leaves.as_slice())
            && val.bare()
        {
            self.say_type(only, *code);
        }
        // The keeper opens the encodings, if it has their key.
        let opened = matches!((target, &val.class), (ColumnType::Enc(to), Class::Soft(of)) if of.code == *to);
        let target = self.value_of(target);
        if !opened {
            self.assign(&target, val, at)?;
        }
        Ok(target)
    }

    /// `enc_text('x')`: a cast written as a function call.
    pub(super) fn called_type(&self, schema: Option<&str>, name: &str) -> Option<ColumnType> {
        match TypeCode::from_protected_name(name) {
            Some(code) => Some(ColumnType::Enc(code)),
            None => self.schema.called_type(schema, name).cloned(),
        }
    }

    /// A cast directly applied to a string or parameter determines its type.
    fn say_type(&mut self, u: &Use, code: TypeCode) {
        match &mut self.leaves.get_mut(u.id).kind {
            LeafKind::Str(_, said) | LeafKind::Param(_, said) => *said = Some(code),
            _ => {}
        }
    }

    fn cast_twin(&mut self, code: TypeCode, ty: &TypeUse, val: &Val) -> Res<Val> {
        if let Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown = val.class {
            return self.cast_plain(code.plain_name(), ty, val);
        }
        if matches!(val.class, Class::Enc(_)) {
            let twin = ty.twin().ok_or_else(|| no_twin(ty, code.plain_name()))?;
            self.replace(ty.range.clone(), &twin);
            return Ok(Val::enc(Some(code)));
        }
        let mut leaves = val.leaves.clone();
        if let ([only], true) = (val.leaves.as_slice(), val.bare()) {
            self.say_type(only, code);
        }
        if !leaves.is_empty() {
            let id = self.leaves.add(ty.range.clone(), LeafKind::Cast(ty.twin()));
            leaves.push(Use { id, block: None });
            self.leaves.unite_all(&leaves);
        }
        let class = match val.class {
            Class::Plain(_) => Class::Plain(Some(code)),
            _ => Class::Lit(Some(Some(code))),
        };
        Ok(Val { class, leaves })
    }

    fn cast_array(&mut self, code: TypeCode, ty: &TypeUse, arg: &Node, val: &Val) -> Res<Val> {
        if matches!(val.class, Class::Soft(_) | Class::Unknown | Class::Row(_)) {
            return self.cast_plain("array", ty, val);
        }
        let array = self.arrayed(val);
        let Class::Array(element) = &array.class else {
            return Ok(Val::unknown());
        };
        for u in &element.leaves {
            let bracket = matches!(arg.node, Some(NodeEnum::AArrayExpr(_)));
            let leaf = self.leaves.get_mut(u.id);
            match &leaf.kind {
                LeafKind::Str(_, None) | LeafKind::Param(_, None) if bracket => {
                    leaf.typed = Some(code)
                }
                _ => {}
            }
            if leaf.array.is_some() {
                leaf.array = Some(Some(code));
            }
        }
        if self.holds_enc(element) {
            let twin = ty.twin().ok_or_else(|| no_twin(ty, code.plain_name()))?;
            self.replace(ty.range.clone(), &twin);
            return Ok(Val::array(Val::enc(Some(code))));
        }
        let mut leaves = element.leaves.clone();
        if !leaves.is_empty() {
            let id = self.leaves.add(ty.range.clone(), LeafKind::Cast(ty.twin()));
            leaves.push(Use { id, block: None });
            self.leaves.unite_all(&leaves);
        }
        let class = match element.class {
            Class::Plain(_) => Class::Plain(Some(code)),
            _ => Class::Lit(Some(Some(code))),
        };
        Ok(Val::array(Val { class, leaves }))
    }

    /// A cast to a plain type without a protected counterpart.
    fn cast_plain(&mut self, name: &str, ty: &TypeUse, val: &Val) -> Res<Val> {
        if self.holds_enc(val) {
            return Err(no_twin(ty, name));
        }
        self.pass(val);
        let leaves = Val {
            class: Class::Lit(None),
            leaves: val.all_leaves(),
        }
        .blocked(Block::PlainFunction);
        let class = match val.class {
            Class::Lit(_) => Class::Lit(Some(None)),
            _ => Class::Plain(None),
        };
        Ok(Val { class, leaves })
    }

    /// `interval '90' day`, `interval(3) '…'`, `'…'::interval day to second(3)`: the client reads
    /// the text with this modifier, which the protected type does not support.
    fn interval_literal(&mut self, c: &TypeCast, arg: &Node, ty: &TypeUse) -> Res<Option<Val>> {
        let Some(typmod) = ty.interval_typmod() else {
            return Ok(None);
        };
        let Some(NodeEnum::AConst(constant)) = &arg.node else {
            return Ok(None);
        };
        let Some(a_const::Val::Sval(text)) = &constant.val else {
            return Ok(None);
        };
        let inner = self.constant(constant)?;
        let [literal] = inner.leaves.as_slice() else {
            return Ok(None);
        };
        let literal = self.leaves.get(literal.id).range.clone();
        let range = if c.location < 0 {
            let first = self.tokens.next_from(literal.end);
            let end = self.tokens.interval_fields(first);
            let inside = self
                .tokens
                .range(end.saturating_sub(1))
                .end
                .max(literal.end);
            let values: Vec<usize> = self
                .tokens
                .values(&(literal.end..inside))
                .map(|(_, r)| r.start)
                .collect();
            self.visited.extend(values);
            ty.range.start..inside
        } else if ty.range.start > literal.end && self.is_typecast(literal.end) {
            literal.start..ty.range.end
        } else {
            return self.interval_in_cast(c, literal, ty, typmod, &text.sval);
        };
        let kind = LeafKind::Typed(TypeCode::Interval, typmod, text.sval.clone().into_bytes());
        let id = self.leaf(range, kind);
        Ok(Some(Val::leaf(id, Some(Some(TypeCode::Interval)))))
    }

    fn is_typecast(&self, behind: usize) -> bool {
        self.tokens.kind(self.tokens.next_from(behind)) == pg_query::protobuf::Token::Typecast
    }

    /// `CAST('…' AS interval day)`
    fn interval_in_cast(
        &mut self,
        c: &TypeCast,
        literal: Range<usize>,
        ty: &TypeUse,
        typmod: i32,
        text: &str,
    ) -> Res<Option<Val>> {
        let start = usize::try_from(c.location).unwrap_or(literal.start);
        let at = self.tokens.at(start);
        let cast = at.is_some_and(|at| self.tokens.kind(at) == pg_query::protobuf::Token::Cast);
        let close = at
            .and_then(|at| self.tokens.closing(at + 1))
            .map(|close| self.tokens.range(close));
        let (kind, range) = match (cast, close) {
            (true, Some(close)) if close.start >= ty.range.end => (
                LeafKind::Typed(TypeCode::Interval, typmod, text.as_bytes().to_vec()),
                start..close.end,
            ),
            _ => (
                LeafKind::Never("an interval in this form has no protected counterpart"),
                literal,
            ),
        };
        let id = self.leaf(range, kind);
        Ok(Some(Val::leaf(id, Some(Some(TypeCode::Interval)))))
    }
}

fn no_twin(ty: &TypeUse, name: &str) -> Refusal {
    Refusal::unsupported(format!("a protected value cannot be cast to {name}"))
        .at(i32::try_from(ty.range.start).unwrap_or(-1))
        .detail("Only casts between types that have protected twins are possible, intervals without fields or precision.")
        .hint("Select the protected value itself and convert it in the application.")
}

/// A word or number of a type modifier.
fn word(node: &Node) -> Option<String> {
    match &node.node {
        Some(NodeEnum::ColumnRef(c)) => super::names(&c.fields).last().map(|s| (*s).to_owned()),
        _ => constant(node).map(|number| number.to_string()),
    }
}

fn constant(node: &Node) -> Option<i32> {
    match &node.node {
        Some(NodeEnum::AConst(c)) => match &c.val {
            Some(a_const::Val::Ival(i)) => Some(i.ival),
            _ => None,
        },
        _ => None,
    }
}
