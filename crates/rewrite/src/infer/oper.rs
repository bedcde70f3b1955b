//! Operators and the grammar's operator-like constructs: `IN`, `BETWEEN`, `LIKE`, `ANY`, `IS
//! DISTINCT FROM`, `NULLIF`.

use super::json::{is_literal_json, is_of_json};
use super::{Infer, Res, names};
use crate::known::{self, Known};
use crate::refusal::Refusal;
use crate::value::{Block, Class, LeafKind, Use, Val};
use catalog::Arg;
use contract::TypeCode;
use contract::soft::Purpose;
use grant::family;
use pg_query::protobuf::{AExpr, AExprKind, Token};
use pg_query::{Node, NodeEnum};

/// The cast that a plain operand of `||` needs next to protected text.
const TO_ENC_TEXT: &str = "::pg_catalog.text::pg_catalog.enc_text";

impl Infer<'_> {
    pub fn operator(&mut self, e: &AExpr) -> Res<Val> {
        let name = names(&e.name)
            .last()
            .copied()
            .unwrap_or_default()
            .to_owned();
        let outer = self.ordering;
        self.ordering = name.starts_with(['<', '>']) && name != "<>" || name.contains("BETWEEN");
        let val = self.operator_of_kind(&name, e);
        self.ordering = outer;
        val
    }

    fn operator_of_kind(&mut self, name: &str, e: &AExpr) -> Res<Val> {
        match e.kind() {
            AExprKind::AexprOp => self.written_operator(name, e),
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => self.any_all(name, e),
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                let (l, r) = self.both(e)?;
                self.alike("=", &l, &r);
                self.compare(&l, &r, e.location)?;
                Ok(Val::boolean())
            }
            AExprKind::AexprNullif => self.nullif(e),
            AExprKind::AexprIn => self.in_list(e),
            AExprKind::AexprLike | AExprKind::AexprIlike => self.like(name, e),
            AExprKind::AexprSimilar => self.similar(e),
            AExprKind::AexprBetween
            | AExprKind::AexprNotBetween
            | AExprKind::AexprBetweenSym
            | AExprKind::AexprNotBetweenSym => {
                let subject = self.operand(e.lexpr.as_deref())?;
                for bound in list(e.rexpr.as_deref()) {
                    let val = self.expr(bound)?;
                    self.alike("<", &subject, &val);
                    self.compare(&subject, &val, e.location)?;
                }
                Ok(Val::boolean())
            }
            AExprKind::Undefined => Err(Refusal::unsupported("unknown operator").at(e.location)),
        }
    }

    fn nullif(&mut self, e: &AExpr) -> Res<Val> {
        let (l, r) = self.both(e)?;
        let sides = [&e.lexpr, &e.rexpr].into_iter();
        let nodes: Vec<&Node> = sides.filter_map(Option::as_deref).collect();
        let vals = [l.clone(), r.clone()];
        self.cast_plain_ones(&nodes, &vals);
        self.cast_to_one_family(&nodes, &vals);
        self.compare(&l, &r, e.location)?;
        // The result has the type as which its first operand is compared.
        let plain = matches!(l.class, Class::Plain(_)) && l.leaves.is_empty();
        let soft = |v: &Val| matches!(v.class, Class::Soft(_));
        Ok(match self.enc(&l) {
            None if soft(&r) && !soft(&l) => Val::of(r.class),
            None if plain && self.enc_now(&r).is_some() => {
                Val::of(compared_as(Class::Enc(code_of(&l))))
            }
            None if l.bare() => self.settle(&l),
            _ => Val {
                class: compared_as(l.class),
                leaves: l.leaves,
            },
        })
    }

    fn written_operator(&mut self, name: &str, e: &AExpr) -> Res<Val> {
        let left = self.maybe(e.lexpr.as_deref())?;
        let right = self.maybe(e.rexpr.as_deref())?;
        match (left, right) {
            (Some(l), Some(r)) => {
                if let Some(val) = self.concat_plain(name, e, &l, &r) {
                    return Ok(val);
                }
                if let Some(val) = self.json_operator(name, &l, &r)? {
                    self.name_json_operator(name, e.location);
                    return Ok(val);
                }
                if name == "^" {
                    // Its operands have no casts from plain types.
                    let sides = [&e.lexpr, &e.rexpr].into_iter();
                    let nodes: Vec<&Node> = sides.filter_map(Option::as_deref).collect();
                    self.cast_plain_ones(&nodes, &[l.clone(), r.clone()]);
                }
                let vals = [l, r];
                let casts = self.cast_numbers(name, e, &vals);
                let val = self.binary(name, &vals[0], &vals[1], e.location)?;
                Ok(self.with_casts(val, casts))
            }
            (None, Some(r)) => self.unary(name, &r, e.location),
            _ => Err(Refusal::unsupported("postfix operators are not supported").at(e.location)),
        }
    }

    fn operand(&mut self, node: Option<&Node>) -> Res<Val> {
        Ok(self.maybe(node)?.unwrap_or(Val::plain(None)))
    }

    fn both(&mut self, e: &AExpr) -> Res<(Val, Val)> {
        Ok((
            self.operand(e.lexpr.as_deref())?,
            self.operand(e.rexpr.as_deref())?,
        ))
    }

    pub fn binary(&mut self, name: &str, l: &Val, r: &Val, at: i32) -> Res<Val> {
        let (l, r) = &Self::opened_both(name, l, r);
        let shaped = |v: &Val| {
            matches!(
                v.class,
                Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown
            )
        };
        if shaped(l) || shaped(r) {
            return self.binary_shaped(name, l, r, at);
        }
        let mut sigs = Known::get().operator(name, 2);
        if (is_of_json(name) || name == "-") && !self.is_json(l) && !self.is_json(r) {
            match is_literal_json(l) {
                true if r.bare() => self.type_bare(&r.leaves, TypeCode::Text),
                true => {}
                // Not of documents only.
                false if name == "-" => {}
                // Plain documents are PostgreSQL's.
                false => sigs.clear(),
            }
        }
        if sigs.is_empty()
            && !known::is_comparison(name)
            && (self.holds_enc(l) || self.holds_enc(r))
        {
            return self.foreign(&[l.clone(), r.clone()], name, at);
        }
        // Literals only, which are sealed because others have the same value.
        if sigs.is_empty()
            && l.literal()
            && r.literal()
            && (self.enc(l).is_some() || self.enc(r).is_some())
        {
            return self.foreign(&[l.clone(), r.clone()], name, at);
        }
        let (left, right) = (self.enc_now(l), self.enc_now(r));
        if left.is_some() || right.is_some() {
            if sigs.is_empty() {
                return self.foreign(&[l.clone(), r.clone()], name, at);
            }
            self.authority.does(families(name));
            self.operands(name, l, r, at)?;
            let code = |v: &Val, e: Option<Option<TypeCode>>| e.flatten().or_else(|| code_of(v));
            let codes = [code(l, left), code(r, right)];
            return Ok(self.enc_result(&sigs, &codes));
        }
        self.alike(name, l, r);
        self.meet(l, r, at)?;
        if known::is_comparison(name) {
            for val in [l, r] {
                self.authority.does_perhaps(val, families(name));
            }
            return Ok(Val::boolean());
        }
        Ok(self.combine(name, &sigs, &[l, r]))
    }

    /// The operands of a catalog operation meet, one of which is protected.
    fn operands(&mut self, name: &str, l: &Val, r: &Val, at: i32) -> Res<()> {
        if known::is_comparison(name) {
            return self.compare(l, r, at);
        }
        self.meet(l, r, at)?;
        if name == "||" && !self.is_json(l) && !self.is_json(r) {
            // What has no type is text beside text.
            self.expect(l, TypeCode::Text);
            self.expect(r, TypeCode::Text);
        }
        Ok(())
    }

    /// The result of a catalog operation on protected operands.
    pub fn enc_result(&self, sigs: &[&known::Sig], codes: &[Option<TypeCode>]) -> Val {
        match known::result(sigs, codes) {
            Some(Arg::Plain(code)) => Val::plain(Some(code)),
            Some(Arg::Enc(code)) => Val::enc(Some(code)),
            None => Val::enc(None),
        }
    }

    /// An operation on something protected that is not in the catalog.
    pub fn foreign(&mut self, vals: &[Val], name: &str, at: i32) -> Res<Val> {
        if vals.iter().any(|v| !self.secrets(v).is_empty()) {
            return Err(Refusal::unsupported(format!(
                "\"{name}\" is not available for protected values"
            ))
            .at(at)
            .detail("A literal or parameter among its arguments would be sent in the clear."));
        }
        Ok(Val::unknown())
    }

    fn binary_shaped(&mut self, name: &str, l: &Val, r: &Val, at: i32) -> Res<Val> {
        if known::is_comparison(name) {
            let (l, r) = match (&l.class, &r.class) {
                (Class::Array(_), _) => (l.clone(), self.arrayed(r)),
                (_, Class::Array(_)) => (self.arrayed(l), r.clone()),
                _ => (l.clone(), r.clone()),
            };
            for (one, other) in [(&l, &r), (&r, &l)] {
                if let Class::Array(element) = &one.class {
                    self.say_elements(&element.clone(), other);
                }
            }
            self.meet(&l, &r, at)?;
            return Ok(Val::boolean());
        }
        if !self.holds_enc(l) && !self.holds_enc(r) {
            let uses = [l.all_leaves(), r.all_leaves()].concat();
            self.leaves.unite_all(&uses);
            let leaves = uses
                .iter()
                .map(|u| Use {
                    block: u.block.or(Some(Block::PlainFunction)),
                    ..*u
                })
                .collect();
            return Ok(Val {
                class: Class::Plain(None),
                leaves,
            });
        }
        match self.array_operator(name, l, r, at)? {
            Some(val) => Ok(val),
            None => self.foreign(&[l.clone(), r.clone()], name, at),
        }
    }

    /// The result of an operation on values that are not protected (yet).
    pub fn combine(&mut self, name: &str, sigs: &[&known::Sig], vals: &[&Val]) -> Val {
        let known = !sigs.is_empty();
        vals.iter()
            .for_each(|val| self.authority.does_perhaps(val, families(name)));
        let plain = vals.iter().find(|v| matches!(v.class, Class::Plain(_)));
        let mut leaves = Vec::new();
        for val in vals {
            if !known {
                self.pass(val);
                for u in val.leaves.iter().filter(|_| plain.is_some()) {
                    self.leaves.get_mut(u.id).beside_plain = true;
                }
                leaves.extend(val.blocked(Block::PlainFunction));
            } else if let (Some(plain), true) = (plain, val.bare()) {
                leaves.extend(self.beside_plain(plain, val));
            } else {
                leaves.extend(val.leaves.iter().copied());
            }
        }
        let codes: Vec<Option<TypeCode>> = vals.iter().map(|v| code_of(v)).collect();
        let result = match known::result(sigs, &codes) {
            Some(Arg::Enc(code) | Arg::Plain(code)) => Some(code),
            None if name == "||" => Some(TypeCode::Text),
            None => None,
        };
        let class = if plain.is_some() {
            Class::Plain(result)
        } else {
            Class::Lit(Some(result))
        };
        Val { class, leaves }
    }

    /// `'row ' || n`: if the string becomes protected, the plain operand needs a cast to text,
    /// which PostgreSQL adds between plain values only.
    fn concat_plain(&mut self, name: &str, e: &AExpr, l: &Val, r: &Val) -> Option<Val> {
        let text = [TypeCode::Text, TypeCode::Varchar, TypeCode::Bpchar];
        let other = |v: &Val| matches!(v.class, Class::Plain(_));
        let string = |v: &Val| matches!(self.enc_now(v), Some(Some(code)) if text.contains(&code));
        let bare_plain = |v: &Val| other(v) && v.leaves.is_empty();
        if name == "||" && string(l) && bare_plain(r) {
            let end = self.right_end(e.rexpr.as_deref()?, e.location)?;
            self.insert(end, TO_ENC_TEXT);
            self.authority.takes_plain();
            return None;
        }
        if name == "||" && string(r) && bare_plain(l) {
            let end = self.expr_range(e.lexpr.as_deref()?)?.end;
            self.insert(end, TO_ENC_TEXT);
            self.authority.takes_plain();
            return None;
        }
        let open = |v: &Val| v.bare() || !v.leaves.is_empty();
        let (text, plain) = match name {
            "||" if open(l) && other(r) => (l, r),
            "||" if open(r) && other(l) => (r, l),
            _ => return None,
        };
        self.authority.does_perhaps(text, family::COMPUTE);
        let mut leaves = [l.leaves.as_slice(), r.leaves.as_slice()].concat();
        // An operand with its own literals becomes protected together with them.
        if plain.leaves.is_empty() {
            let end = match std::ptr::eq(plain, r) {
                true => self.right_end(e.rexpr.as_deref()?, e.location)?,
                false => self.expr_range(e.lexpr.as_deref()?)?.end,
            };
            let cast = LeafKind::Cast(Some(TO_ENC_TEXT.to_owned()));
            let id = self.leaves.add(end..end, cast);
            leaves.push(Use { id, block: None });
        }
        if text.bare() {
            self.type_bare(&text.leaves, TypeCode::Text);
        }
        self.leaves.unite_all(&leaves);
        Some(Val {
            class: Class::Plain(Some(TypeCode::Text)),
            leaves,
        })
    }

    /// The end of the right operand of the operator at this position, including anything in
    /// parentheses.
    fn right_end(&self, node: &Node, operator: i32) -> Option<usize> {
        if let Some(range) = self.expr_range(node) {
            return Some(range.end);
        }
        let open = self.tokens.at(usize::try_from(operator).ok()?)? + 1;
        if self.tokens.kind(open) != Token::Ascii40 {
            return None;
        }
        let close = self.tokens.closing(open)?;
        let ends_here = matches!(
            self.tokens.kind(close + 1),
            Token::Nul
                | Token::Ascii44
                | Token::Ascii41
                | Token::Ascii59
                | Token::From
                | Token::As
                | Token::Op
        );
        ends_here.then(|| self.tokens.range(close).end)
    }

    /// An untyped string next to a plain operand: there is a common type only if that is text.
    fn beside_plain(&mut self, plain: &Val, val: &Val) -> Vec<Use> {
        let text = matches!(
            plain.class,
            Class::Plain(Some(TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar))
        );
        if !text {
            return val.blocked(Block::BesidePlain);
        }
        self.type_bare(&val.leaves, TypeCode::Text);
        val.leaves.clone()
    }

    fn unary(&mut self, name: &str, val: &Val, at: i32) -> Res<Val> {
        let sigs = Known::get().operator(name, 1);
        let val = &Self::opened(val);
        if self.holds_enc(val) {
            self.authority.does(family::COMPUTE);
            if sigs.is_empty() {
                return self.foreign(std::slice::from_ref(val), name, at);
            }
            let code = self.enc(val).flatten();
            if !val.literal() {
                return Ok(self.enc_result(&sigs, &[code]));
            }
        }
        Ok(self.combine(name, &sigs, &[val]))
    }

    fn any_all(&mut self, name: &str, e: &AExpr) -> Res<Val> {
        let (l, r) = self.both(e)?;
        let array = self.arrayed(&r);
        let Class::Array(element) = array.class.clone() else {
            self.meet(&l, &array, e.location)?;
            return Ok(Val::boolean());
        };
        if let (Class::Soft(column), true) = (&l.class, element.literal()) {
            let listed = |u: &Use| self.leaves.get(u.id).array.is_some();
            let purpose = match (element.leaves.iter().any(listed), self.comparing(*column)) {
                (true, Purpose::Compare) => Purpose::Each,
                (true, _) => {
                    return Err(Refusal::unsupported(
                        "an array of texts is compared by order with encoded ones",
                    )
                    .at(e.location)
                    .hint("Write the comparisons one by one."));
                }
                (false, purpose) => purpose,
            };
            self.encode(*column, purpose, &element, e.location)?;
            return Ok(Val::boolean());
        }
        if let (Some(code), true) = (self.enc(&l), r.bare()) {
            for u in &r.leaves {
                self.leaves.get_mut(u.id).array = Some(code);
            }
        }
        if (self.enc(&l).is_some() || self.holds_enc(&element))
            && Known::get().operator(name, 2).is_empty()
        {
            return self.foreign(&[l, array], name, e.location);
        }
        self.meet(&l, &element, e.location)?;
        Ok(Val::boolean())
    }

    fn in_list(&mut self, e: &AExpr) -> Res<Val> {
        let subject = self.operand(e.lexpr.as_deref())?;
        for item in list(e.rexpr.as_deref()) {
            let val = self.expr(item)?;
            self.alike("=", &subject, &val);
            self.compare(&subject, &val, e.location)?;
        }
        Ok(Val::boolean())
    }

    fn like(&mut self, name: &str, e: &AExpr) -> Res<Val> {
        let subject = self.operand(e.lexpr.as_deref())?;
        let pattern = match e.rexpr.as_deref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::FuncCall(f)) if names(&f.funcname).last() == Some(&"like_escape") => {
                self.escaped(&f.args, e.location)?
            }
            _ => self.operand(e.rexpr.as_deref())?,
        };
        self.binary(name, &subject, &pattern, e.location)
    }

    /// `pattern ESCAPE 'c'`. If both are literals, the pattern is rewritten with the default escape
    /// character when it becomes protected; the planner can estimate such a constant.
    fn escaped(&mut self, args: &[Node], at: i32) -> Res<Val> {
        let vals = self.exprs(args)?;
        let [pattern, escape] = vals.as_slice() else {
            return Ok(Val::unknown());
        };
        let merged = match (self.string(pattern), self.string(escape)) {
            (Some(p), Some(c)) => like_escape(&p, &c),
            _ => None,
        };
        for u in vals.iter().flat_map(|v| &v.leaves) {
            self.leaves.get_mut(u.id).looked_at = true;
        }
        let Some(text) = merged else {
            return self.called("like_escape", &vals, at);
        };
        let start = self.leaves.get(pattern.leaves[0].id).range.start;
        let end = self.leaves.get(escape.leaves[0].id).range.end;
        let between = self.leaves.get(pattern.leaves[0].id).range.end;
        let keyword = self.tokens.next_from(between);
        let adjacent = self.tokens.kind(keyword) == Token::Escape;
        if !adjacent {
            return self.called("like_escape", &vals, at);
        }
        let id = self.leaf(start..end, LeafKind::Str(text.into_bytes(), None));
        Ok(Val::leaf(id, None))
    }

    fn string(&self, val: &Val) -> Option<String> {
        let [only] = val.leaves.as_slice() else {
            return None;
        };
        match &self.leaves.get(only.id).kind {
            LeafKind::Str(bytes, None) if val.bare() => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        }
    }

    fn similar(&mut self, e: &AExpr) -> Res<Val> {
        let subject = self.operand(e.lexpr.as_deref())?;
        let pattern = match e.rexpr.as_deref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::FuncCall(f)) => self.exprs(&f.args)?,
            _ => vec![self.operand(e.rexpr.as_deref())?],
        };
        for val in pattern.iter().filter(|v| v.bare()) {
            self.type_bare(&val.leaves, TypeCode::Text);
        }
        let protected = |this: &Self, v: &Val| this.enc_now(v).is_some();
        if protected(self, &subject) || pattern.iter().any(|p| protected(self, p)) {
            self.authority.does(family::PATTERN);
            for val in pattern.iter().chain([&subject]) {
                self.protect(val)?;
            }
            return Ok(Val::boolean());
        }
        if self.holds_enc(&subject) || pattern.iter().any(|p| self.holds_enc(p)) {
            let vals = [pattern.as_slice(), &[subject]].concat();
            return self.foreign(&vals, "SIMILAR TO", e.location);
        }
        for val in pattern.iter().chain([&subject]) {
            let uses = val.all_leaves();
            self.leaves.unite_all(&uses);
            self.note_plain(val);
        }
        Ok(Val::boolean())
    }
}

/// The class of an operand as the operator takes it: strings are compared as `text`.
fn compared_as(class: Class) -> Class {
    let text = Some(TypeCode::Text);
    match class {
        Class::Plain(Some(TypeCode::Varchar)) => Class::Plain(text),
        Class::Enc(Some(TypeCode::Varchar)) => Class::Enc(text),
        Class::Lit(Some(Some(TypeCode::Varchar))) => Class::Lit(Some(text)),
        other => other,
    }
}

/// Whether a function is the same operation as an operator that searches in its operand.
pub(super) fn searches(function: &str) -> bool {
    matches!(
        function,
        "starts_with" | "regexp_like" | "jsonb_contains" | "jsonb_contained" | "jsonb_exists"
    )
}

/// The kind of operation that an operator is in terms of grants.
pub(super) fn families(name: &str) -> u8 {
    match name {
        "@>" | "<@" | "?" | "?|" | "?&" => family::PATTERN,
        "=" | "<>" | "<" | "<=" | ">" | ">=" => family::COMPARE,
        _ if known::is_comparison(name) => family::PATTERN,
        _ => family::COMPUTE,
    }
}

/// The items of a list node.
pub(crate) fn list(node: Option<&Node>) -> &[Node] {
    match node.and_then(|n| n.node.as_ref()) {
        Some(NodeEnum::List(l)) => &l.items,
        _ => &[],
    }
}

/// The type of an unprotected value, if known.
pub(crate) fn code_of(val: &Val) -> Option<TypeCode> {
    match val.class {
        Class::Plain(code) | Class::Enc(code) | Class::Lit(Some(code)) => code,
        _ => None,
    }
}

/// The result of PostgreSQL's `like_escape` for a pattern.
fn like_escape(pattern: &str, escape: &str) -> Option<String> {
    let mut out = String::new();
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return None;
    }
    match escape {
        None => pattern.chars().for_each(|c| match c {
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }),
        Some('\\') => out.push_str(pattern),
        Some(escape) => {
            let mut after = false;
            for c in pattern.chars() {
                match c {
                    c if c == escape && !after => {
                        out.push('\\');
                        after = true;
                        continue;
                    }
                    '\\' => {
                        out.push('\\');
                        if !after {
                            out.push('\\');
                        }
                    }
                    c => out.push(c),
                }
                after = false;
            }
        }
    }
    Some(out)
}
