//! Plain and protected operands of one construct: PostgreSQL finds an operator, or a common type,
//! once the plain ones are cast to protected types.
//!
//! Invariant: an expression is cast to its own type's counterpart, so the result's type is the one
//! that plain operands have.

use super::oper::code_of;
use super::{Infer, Res};
use crate::value::{Class, LeafKind, Use, Val};
use contract::TypeCode;
use pg_query::protobuf::{AExpr, AExprKind, BoolExprType};
use pg_query::{Node, NodeEnum};

/// Whether it is a plain expression without literals, which could become protected together.
fn is_settled(val: &Val) -> bool {
    matches!(val.class, Class::Plain(_)) && val.leaves.is_empty()
}

impl Infer<'_> {
    /// Expressions of which one supplies the value.
    pub fn alternatives(&mut self, nodes: &[&Node], vals: &[Val], at: i32) -> Res<Val> {
        self.cast_plain_ones(nodes, vals);
        self.cast_to_one_family(nodes, vals);
        let casts = self.cast_perhaps(nodes, vals);
        let mut val = self.common(vals, at)?;
        if let Some(casts) = casts {
            val.leaves = val
                .leaves
                .iter()
                .map(|u| Use { block: None, ..*u })
                .collect();
            self.link(&mut val, casts);
        }
        Ok(val)
    }

    /// Casts plain expressions among protected ones, as PostgreSQL's common type requires.
    pub fn cast_plain_ones(&mut self, nodes: &[&Node], vals: &[Val]) {
        if !vals.iter().any(|v| self.enc_now(v).is_some()) {
            return;
        }
        for (node, val) in nodes.iter().zip(vals) {
            if let (Class::Plain(Some(code)), true) = (&val.class, is_settled(val))
                && self.cast_to(node, *code)
            {
                self.authority.takes_plain();
            }
        }
    }

    pub fn cast_to(&mut self, node: &Node, code: TypeCode) -> bool {
        let Some(range) = self.expr_range(node) else {
            return false;
        };
        let cast = format!(")::pg_catalog.{}", code.enc_name());
        self.insert(range.start, "(");
        self.insert(range.end, &cast);
        true
    }

    /// The same for the case that a literal among them becomes protected: the casts, to be united
    /// with it. `None` if there is no literal, or not everything can be cast.
    pub fn cast_perhaps(&mut self, nodes: &[&Node], vals: &[Val]) -> Option<Vec<Use>> {
        let opaque = |v: &Val| !matches!(v.class, Class::Plain(_) | Class::Lit(_));
        let blocked = |v: &Val| v.leaves.iter().any(|u| u.block.is_some());
        if vals.iter().any(|v| opaque(v) || blocked(v)) || vals.iter().all(|v| v.leaves.is_empty())
        {
            return None;
        }
        let mut places = Vec::new();
        for (node, val) in nodes.iter().zip(vals).filter(|(_, v)| is_settled(v)) {
            places.push((self.expr_range(node)?, code_of(val)?));
        }
        let mut casts = Vec::new();
        for (range, code) in &places {
            let cast = format!(")::pg_catalog.{}", code.enc_name());
            for (at, text) in [(range.start, "(".to_owned()), (range.end, cast)] {
                let id = self.leaves.add(at..at, LeafKind::Cast(Some(text)));
                casts.push(Use { id, block: None });
            }
        }
        Some(casts)
    }

    fn link(&mut self, val: &mut Val, casts: Vec<Use>) {
        val.leaves.extend(casts);
        self.leaves.unite_all(&val.leaves);
    }

    /// Arithmetic of numbers of two types, one of them plain: no operator would be the best one.
    pub fn cast_numbers(&mut self, name: &str, e: &AExpr, vals: &[Val; 2]) -> Option<Vec<Use>> {
        use TypeCode::{Float4, Float8, Int2, Int4, Int8, Numeric};
        let numbers = [Int2, Int4, Int8, Float4, Float8, Numeric];
        let nodes = [e.lexpr.as_deref()?, e.rexpr.as_deref()?];
        let [l, r] = [0, 1].map(|at| self.code(&vals[at]));
        let both = numbers.contains(&l?) && numbers.contains(&r?) && l != r;
        if !matches!(name, "+" | "-" | "*" | "/" | "%") || !both {
            return None;
        }
        self.cast_plain_ones(&nodes, vals);
        self.cast_perhaps(&nodes, vals)
    }

    /// The result of an operator whose operands are cast in that case.
    pub fn with_casts(&mut self, mut val: Val, casts: Option<Vec<Use>>) -> Val {
        if let (Some(casts), Class::Plain(_)) = (casts, &val.class) {
            self.link(&mut val, casts);
        }
        val
    }

    /// The type that PostgreSQL finds for values of these types: of numbers the widest, of strings
    /// the first.
    pub fn common_code(&self, vals: &[Val]) -> Option<TypeCode> {
        use TypeCode::{Float4, Float8, Int2, Int4, Int8, Numeric, Text, Varchar};
        let typed = vals.iter().filter(|v| !v.bare());
        let codes: Vec<TypeCode> = typed.map(|v| self.code(v)).collect::<Option<_>>()?;
        let width = |code: &TypeCode| {
            let widths = [Int2, Int4, Int8, Numeric, Float4, Float8];
            widths.iter().position(|of| of == code)
        };
        if codes.iter().all(|code| width(code).is_some()) {
            return codes.into_iter().max_by_key(width);
        }
        let strings = codes.iter().all(|code| matches!(code, Text | Varchar));
        codes.first().copied().filter(|_| strings)
    }

    fn code(&self, val: &Val) -> Option<TypeCode> {
        self.enc_now(val).flatten().or(code_of(val))
    }

    /// Between types of several families PostgreSQL would choose by the direction of their implicit
    /// casts, if it finds a common type at all.
    pub fn cast_to_one_family(&mut self, nodes: &[&Node], vals: &[Val]) {
        let mut codes: Vec<_> = vals
            .iter()
            .filter(|v| !v.bare())
            .map(|v| self.code(v))
            .collect();
        codes.dedup();
        if codes.len() < 2 {
            return;
        }
        for (node, val) in nodes.iter().zip(vals) {
            if let (Some(Some(code)), true) = (self.enc_now(val), val.leaves.is_empty()) {
                self.cast_to(node, code);
            }
        }
    }

    /// A FULL JOIN needs an operator that can be hashed or merged: those of the type `enc_`.
    pub fn cast_joined(&mut self, condition: &Node) -> Res<()> {
        match &condition.node {
            Some(NodeEnum::BoolExpr(b)) if b.boolop() == BoolExprType::AndExpr => {
                b.args.iter().try_for_each(|arg| self.cast_joined(arg))
            }
            Some(NodeEnum::AExpr(e))
                if e.kind() == AExprKind::AexprOp && super::names(&e.name) == ["="] =>
            {
                let (Some(l), Some(r)) = (e.lexpr.as_deref(), e.rexpr.as_deref()) else {
                    return Ok(());
                };
                let columns = [l, r].map(|n| matches!(n.node, Some(NodeEnum::ColumnRef(_))));
                if columns != [true, true] {
                    return Ok(());
                }
                let vals = [self.expr(l)?, self.expr(r)?];
                let [a, b] = [0, 1].map(|at| self.enc_now(&vals[at]).flatten());
                let codes = [0, 1].map(|at| self.code(&vals[at]));
                if let ([Some(x), Some(y)], true) = (codes, (a.is_some() || b.is_some()) && a != b)
                {
                    self.cast_to(l, x);
                    self.cast_to(r, y);
                    self.authority.takes_plain();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
