//! Positions of expressions in the text, for expressions where they are easy to determine.

use super::Infer;
use pg_query::protobuf::{AExpr, AExprKind, Token};
use pg_query::{Node, NodeEnum};
use std::ops::Range;

impl Infer<'_> {
    /// The range of an expression, if it is easy to determine.
    pub fn expr_range(&self, node: &Node) -> Option<Range<usize>> {
        match node.node.as_ref()? {
            NodeEnum::ColumnRef(c) => {
                let start = usize::try_from(c.location).ok()?;
                let mut index = self.tokens.at(start)?;
                for _ in 1..c.fields.len() {
                    index += 2;
                }
                Some(start..self.tokens.range(index).end)
            }
            NodeEnum::FuncCall(f)
                if f.over.is_none() && f.agg_filter.is_none() && !f.agg_within_group =>
            {
                let start = usize::try_from(f.location).ok()?;
                let mut index = self.tokens.at(start)?;
                while self.tokens.kind(index + 1) == Token::Ascii46 {
                    index += 2;
                }
                self.call_range(start, index + 1)
            }
            NodeEnum::CoalesceExpr(c) => self.keyword_call(c.location),
            NodeEnum::MinMaxExpr(c) => self.keyword_call(c.location),
            NodeEnum::CaseExpr(c) => self.case_range(c.location),
            NodeEnum::ParamRef(p) => {
                let start = usize::try_from(p.location).ok()?;
                Some(start..self.tokens.range(self.tokens.at(start)?).end)
            }
            NodeEnum::TypeCast(c) => {
                let ty = usize::try_from(c.type_name.as_ref()?.location).ok()?;
                let at = self.tokens.at(usize::try_from(c.location).ok()?)?;
                if self.tokens.kind(at) == Token::Cast {
                    return self.call_range(self.tokens.range(at).start, at + 1);
                }
                let arg = self.expr_range(c.arg.as_ref()?)?;
                let end = self.tokens.type_end(self.tokens.at(ty)?).checked_sub(1)?;
                // Parentheses around the argument would be split.
                let follows = self.tokens.next_from(arg.end);
                (follows == at).then(|| arg.start..self.tokens.range(end).end)
            }
            NodeEnum::AExpr(e) if e.kind() == AExprKind::AexprOp => self.operator_range(e),
            NodeEnum::AExpr(e) if e.kind() == AExprKind::AexprNullif => {
                self.keyword_call(e.location)
            }
            _ => None,
        }
    }

    /// Of two operands, with the parentheses around each, and the operator between them.
    fn operator_range(&self, e: &AExpr) -> Option<Range<usize>> {
        let operator = self.tokens.at(usize::try_from(e.location).ok()?)?;
        let (l, r) = (e.lexpr.as_deref()?, e.rexpr.as_deref()?);
        let (l, r) = (self.enclosed(l)?, self.enclosed(r)?);
        let follows = self.tokens.next_from(l.end) == operator;
        let before = self.tokens.next_from(self.tokens.range(operator).end);
        (follows && self.tokens.range(before).start == r.start).then_some(l.start..r.end)
    }

    /// An operand with the parentheses around it alone.
    fn enclosed(&self, node: &Node) -> Option<Range<usize>> {
        let mut range = match &node.node {
            Some(NodeEnum::AConst(c)) => {
                let at = self.tokens.at(usize::try_from(c.location).ok()?)?;
                self.tokens.holds_value(at).then(|| self.tokens.range(at))?
            }
            _ => self.expr_range(node)?,
        };
        loop {
            let first = self.tokens.at(range.start)?;
            let Some(open) = first.checked_sub(1) else {
                return Some(range);
            };
            let behind = self.tokens.next_from(range.end);
            let encloses = self.tokens.kind(open) == Token::Ascii40
                && self.tokens.closing(open) == Some(behind);
            if !encloses {
                return Some(range);
            }
            range = self.tokens.range(open).start..self.tokens.range(behind).end;
        }
    }

    fn keyword_call(&self, location: i32) -> Option<Range<usize>> {
        let start = usize::try_from(location).ok()?;
        self.call_range(start, self.tokens.at(start)? + 1)
    }

    fn call_range(&self, start: usize, open: usize) -> Option<Range<usize>> {
        if self.tokens.kind(open) != Token::Ascii40 {
            return None;
        }
        Some(start..self.tokens.range(self.tokens.closing(open)?).end)
    }

    fn case_range(&self, location: i32) -> Option<Range<usize>> {
        let start = usize::try_from(location).ok()?;
        let mut depth = 0usize;
        for index in self.tokens.at(start)?..self.tokens.len() {
            match self.tokens.kind(index) {
                Token::Case => depth += 1,
                Token::EndP => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(start..self.tokens.range(index).end);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Start of a node (or of its operator), as reported by the parser.
pub(crate) fn location(node: &Node) -> i32 {
    match node.node.as_ref() {
        Some(NodeEnum::ColumnRef(n)) => n.location,
        Some(NodeEnum::AConst(n)) => n.location,
        Some(NodeEnum::AExpr(n)) => n.location,
        Some(NodeEnum::FuncCall(n)) => n.location,
        Some(NodeEnum::TypeCast(n)) if n.location < 0 => {
            n.type_name.as_ref().map_or(-1, |t| t.location)
        }
        Some(NodeEnum::TypeCast(n)) => n.location,
        Some(NodeEnum::ParamRef(n)) => n.location,
        Some(NodeEnum::SubLink(n)) => n.location,
        Some(NodeEnum::CaseExpr(n)) => n.location,
        Some(NodeEnum::CoalesceExpr(n)) => n.location,
        Some(NodeEnum::MinMaxExpr(n)) => n.location,
        Some(NodeEnum::BoolExpr(n)) => n.location,
        Some(NodeEnum::NullTest(n)) => n.location,
        Some(NodeEnum::BooleanTest(n)) => n.location,
        Some(NodeEnum::RowExpr(n)) => n.location,
        Some(NodeEnum::AArrayExpr(n)) => n.location,
        Some(NodeEnum::ResTarget(n)) => n.location,
        Some(NodeEnum::RangeVar(n)) => n.location,
        Some(NodeEnum::NamedArgExpr(n)) => n.location,
        Some(NodeEnum::CollateClause(n)) => n.location,
        Some(NodeEnum::AIndirection(n)) => n.arg.as_ref().map_or(-1, |a| location(a)),
        _ => -1,
    }
}
