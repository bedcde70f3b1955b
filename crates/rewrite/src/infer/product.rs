//! Products and quotients of values of the family `soft_`: where PostgreSQL computes them of encodings,
//! and which literals are encoded as factors.
//!
//! Nothing can be done with such a product but to open it, so `*` and `/` become operators of the family
//! (`@*`, `@/`) only where their result is a result of the query. Everywhere else the values are opened, by
//! a keeper that has the columns' keys. Both columns must have the encoding.
//!
//! Invariant: the result's type is that of the plain operator.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::value::{Class, LeafKind, Use, Val};
use contract::TypeCode;
use contract::soft::{
    BITS_MAX, Column, MUL, PRECISION_MAX, Purpose, factor_bits, factor_rank, product_type, shape,
};
use pg_query::protobuf::{AExpr, AExprKind, Token};
use pg_query::{Node, NodeEnum};

/// An operand.
struct Factor {
    val: Val,
    /// The column whose key its literals take, with the operand's type, if it has the encoding.
    column: Option<Column>,
    /// It is a product or a quotient, which cannot be opened in the server any more.
    computed: Option<&'static str>,
    /// How many bits it can have.
    bits: u16,
}

impl Infer<'_> {
    /// An expression whose value is a result of the query.
    pub fn result(&mut self, node: &Node) -> Res<Val> {
        match multiplying(node) {
            Some((name, e)) if self.yields => self.product(name, e).map(|factor| factor.val),
            _ => self.expr(node),
        }
    }

    /// Analyses a query that may have products of encodings among its results, or must not.
    pub fn yielding<T>(&mut self, yields: bool, analyse: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.yields, yields);
        let result = analyse(self);
        self.yields = outer;
        result
    }

    pub fn without_products<T>(&mut self, analyse: impl FnOnce(&mut Self) -> T) -> T {
        self.yielding(false, analyse)
    }

    fn factor(&mut self, node: Option<&Node>) -> Res<Factor> {
        let Some(node) = node else {
            return Err(Refusal::unsupported("postfix operators are not supported"));
        };
        if let Some((name, e)) = multiplying(node) {
            self.deeper()?;
            let factor = self.product(name, e);
            self.depth -= 1;
            return factor;
        }
        let val = self.expr(node)?;
        let column = match val.class {
            Class::Soft(column) if column.encodings & MUL != 0 => Some(column),
            _ => None,
        };
        let bits = column.and_then(|column| factor_bits(column.code, column.shape));
        Ok(Factor {
            val,
            column,
            computed: None,
            bits: bits.unwrap_or(0),
        })
    }

    fn product(&mut self, name: &str, e: &AExpr) -> Res<Factor> {
        let (l, r) = (
            self.factor(e.lexpr.as_deref())?,
            self.factor(e.rexpr.as_deref())?,
        );
        let quotient = name.ends_with('/');
        if let Some((column, bits)) = self.multiplied(&l, &r, quotient, e.location)? {
            self.name_operator(name, e.location)?;
            return Ok(Factor {
                val: Val::unknown(),
                column: Some(column),
                computed: Some(if quotient { "quotient" } else { "product" }),
                bits,
            });
        }
        if let Some(computed) = l.computed.or(r.computed) {
            return Err(lost(computed, e.location));
        }
        let vals = [l.val, r.val];
        let casts = self.cast_numbers(name, e, &vals);
        let val = self.binary(name, &vals[0], &vals[1], e.location)?;
        Ok(Factor {
            val: self.with_casts(val, casts),
            column: None,
            computed: None,
            bits: 0,
        })
    }

    /// A column with the type of the result, and how many bits that can have, if it is computed of
    /// encodings.
    fn multiplied(
        &mut self,
        l: &Factor,
        r: &Factor,
        quotient: bool,
        at: i32,
    ) -> Res<Option<(Column, u16)>> {
        let literal = |f: &Factor| f.val.literal() && !f.val.all_leaves().is_empty();
        let (a, b) = match (l.column, r.column) {
            (Some(a), Some(b)) => (a, b),
            (Some(a), None) if literal(r) => match self.factor_type(a, &r.val) {
                Some(b) => (a, b),
                None => return Ok(None),
            },
            (None, Some(b)) if literal(l) => match self.factor_type(b, &l.val) {
                Some(a) => (a, b),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some(code) = product_type(a.code, b.code) else {
            return Ok(None);
        };
        let rounded = |f: &Factor| f.computed == Some("quotient");
        if rounded(l) || rounded(r) {
            return Err(lost("quotient", at));
        }
        if !quotient && l.computed.is_some() && r.computed.is_some() {
            return Err(lost("product", at));
        }
        // A product of integers has the range of its type.
        let narrow = |f: &Factor, of: Column| {
            f.computed.is_some() && of.code != TypeCode::Numeric && of.code != code
        };
        if !quotient && (narrow(l, a) || narrow(r, b)) {
            return Err(lost("product", at));
        }
        for (factor, column) in [(l, a), (r, b)] {
            if factor.column.is_none() {
                self.encode(column, Purpose::Multiply, &factor.val, at)?;
            }
        }
        let of = |factor: &Factor, column: Column| match factor.column {
            Some(_) => factor.bits,
            None => self.literal_bits(column.code, &factor.val),
        };
        let bits = of(l, a) + of(r, b);
        if !quotient && bits > BITS_MAX {
            return Err(too_large(at));
        }
        let key = if l.column.is_some() { a } else { b };
        Ok(Some((Column { code, ..key }, bits)))
    }

    /// How many bits a literal can have; of a parameter, or another notation, the most.
    fn literal_bits(&self, code: TypeCode, literal: &Val) -> u16 {
        let digits = |u: &Use| match &self.leaves.get(u.id).kind {
            LeafKind::Str(text, _) | LeafKind::Typed(_, _, text)
                if text
                    .iter()
                    .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+')) =>
            {
                let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
                u8::try_from(digits).unwrap_or(PRECISION_MAX)
            }
            LeafKind::Null | LeafKind::Cast(_) => 1,
            _ => PRECISION_MAX,
        };
        let digits = literal.all_leaves().iter().map(digits).max();
        let precision = digits.unwrap_or(1).clamp(1, PRECISION_MAX);
        factor_bits(code, shape(precision, 0).unwrap_or(0)).unwrap_or(0)
    }

    /// What a literal is encoded for beside this column: its own type, and the column's key.
    fn factor_type(&self, column: Column, literal: &Val) -> Option<Column> {
        let code = match literal.bare() {
            true => column.code,
            false => super::oper::code_of(literal)?,
        };
        factor_rank(code)?;
        Some(Column {
            code,
            encodings: MUL,
            shape: 0,
            key: column.key,
        })
    }

    /// Writes the operator as that of the family.
    fn name_operator(&mut self, name: &str, at: i32) -> Res<()> {
        if name.starts_with('@') {
            return Ok(());
        }
        let start = usize::try_from(at).ok().and_then(|at| self.tokens.at(at));
        let Some(index) = start
            .filter(|index| matches!(self.tokens.kind(*index), Token::Ascii42 | Token::Ascii47))
        else {
            return Err(Refusal::unsupported("an operator cannot be found in the text").at(at));
        };
        let text = format!(" OPERATOR(pg_catalog.@{name}) ");
        self.replace(self.tokens.range(index), &text);
        Ok(())
    }
}

/// The operator, if it multiplies or divides two operands.
fn multiplying(node: &Node) -> Option<(&'static str, &AExpr)> {
    let Some(NodeEnum::AExpr(e)) = &node.node else {
        return None;
    };
    let name = super::names(&e.name);
    let name = match name.as_slice() {
        ["*"] => "*",
        ["/"] => "/",
        [.., "@*"] => "@*",
        [.., "@/"] => "@/",
        _ => return None,
    };
    (e.kind() == AExprKind::AexprOp && e.lexpr.is_some()).then_some((name, e))
}

fn too_large(at: i32) -> Refusal {
    Refusal::unsupported("a product of encoded values can have more than 126 bits")
        .at(at)
        .detail("By the types of its factors, whatever their values are.")
        .hint("Multiply fewer factors, or such with fewer digits.")
}

/// Something is computed of a product that is only known to the client.
fn lost(computed: &str, at: i32) -> Refusal {
    Refusal::unsupported(format!(
        "a {computed} of encoded values meets what it cannot be computed with"
    ))
    .at(at)
    .detail("Only the client knows its value. A product can be multiplied with columns that have the encoding \"mul\", and literals, of its type or a smaller one, and divide or be divided.")
    .hint("Compute it in the application; or have a keeper compute it, by a cast of a column: a::enc_int4 * b.")
}
