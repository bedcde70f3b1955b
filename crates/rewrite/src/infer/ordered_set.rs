//! Aggregates that sort their values (`WITHIN GROUP`), and those of pairs of numbers.

use super::{Infer, Res, location};
use crate::refusal::Refusal;
use crate::value::{Class, Val};
use contract::TypeCode::{Float4, Float8, Int2, Int4, Int8, Interval, Numeric};
use contract::{Aggregate, Arguments};
use grant::family;
use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, SortByDir, Token};

/// Aggregates of two `float8`.
pub(super) fn is_of_pairs(name: &str) -> bool {
    let pairs = |a: &Aggregate| a.arguments() == Arguments::Pair && a.name() == name;
    name == "regr_count" || Aggregate::ALL.iter().any(pairs)
}

impl Infer<'_> {
    /// PostgreSQL's aggregates that sort values, and return one of them, one between them, or a number.
    pub fn within_group(&mut self, name: &str, vals: &[Val], f: &FuncCall) -> Res<Option<Val>> {
        let (direct, ordered) = vals.split_at(f.args.len().min(vals.len()));
        match (name, direct, ordered) {
            ("mode", [], [value]) => {
                self.authority.does(family::COMPARE);
                Ok(Some(self.settle(value)))
            }
            ("percentile_disc", [fraction], [value]) => {
                self.fraction(name, fraction, value, f)?;
                self.authority.does(family::COMPARE);
                let value = self.settle(value);
                Ok(Some(for_each_fraction(fraction, value)))
            }
            ("percentile_cont", [fraction], [value]) => self.percentile_cont(fraction, value, f),
            ("rank" | "dense_rank" | "percent_rank" | "cume_dist", said, values)
                if said.len() == values.len() =>
            {
                for (one, other) in said.iter().zip(values) {
                    self.compare(one, other, f.location)?;
                }
                self.authority.does(family::COMPARE);
                Ok(Some(Val::plain(None)))
            }
            _ => Ok(None),
        }
    }

    /// PostgreSQL's own gives plain values, so another aggregate is called.
    fn percentile_cont(&mut self, fraction: &Val, value: &Val, f: &FuncCall) -> Res<Option<Val>> {
        let ret = match self.enc_now(value) {
            Some(Some(Interval)) => Interval,
            Some(None | Some(Int2 | Int4 | Int8 | Float4 | Float8 | Numeric)) => Float8,
            _ => return Ok(None),
        };
        self.fraction("percentile_cont", fraction, value, f)?;
        let written = match f.agg_order.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::SortBy(s)) if s.sortby_dir() == SortByDir::SortbyDesc => {
                "enc_percentile_cont_desc"
            }
            Some(NodeEnum::SortBy(s)) if s.sortby_dir() == SortByDir::SortbyUsing => {
                return Err(Refusal::unsupported(
                    "percentile_cont with USING does not work on protected values",
                )
                .at(f.location)
                .hint("Write ASC or DESC."));
            }
            _ => "enc_percentile_cont",
        };
        self.call_otherwise(written, f, &[], true);
        // Of the family `rnd_` it would not find the way from other numbers.
        if let Some(NodeEnum::SortBy(s)) = f.agg_order.first().and_then(|n| n.node.as_ref())
            && let Some(node) = s.node.as_deref()
            && let Some(Some(code)) = self.enc_now(value)
            && !matches!(code, Interval | Float8)
        {
            self.cast_to(node, Float8);
        }
        self.authority
            .does(family::COMPARE | family::COMPUTE | family::CAST);
        // The place between two values is known to the server.
        self.authority.takes_plain();
        let code = self.enc_now(value).flatten().map(|_| ret);
        Ok(Some(for_each_fraction(fraction, Val::enc(code))))
    }

    /// The fraction is plain. Beside a protected value PostgreSQL would not find the type of an untyped one.
    fn fraction(&mut self, name: &str, fraction: &Val, value: &Val, f: &FuncCall) -> Res<()> {
        if self.holds_enc(fraction) {
            return Err(
                Refusal::unsupported(format!("{name} does not take a protected fraction"))
                    .at(f.location)
                    .hint("Keep fractions in a plain column, or write them as constants."),
            );
        }
        self.note_plain(fraction);
        let start = f.args.first().map_or(-1, location);
        if fraction.bare()
            && self.holds_enc(value)
            && let Some(at) = usize::try_from(start)
                .ok()
                .and_then(|at| self.tokens.at(at))
        {
            let range = self.tokens.range(at);
            let text = self.sql.get(range.clone()).unwrap_or_default();
            let typed = format!("{text}::pg_catalog.float8");
            self.replace(range, &typed);
        }
        Ok(())
    }

    /// Casts the arguments of an aggregate of pairs: it takes protected `float8` only, and PostgreSQL would not find
    /// the way there from other types.
    pub fn cast_pair(&mut self, f: &FuncCall, vals: &[Val]) {
        let Some((open, close)) = self.parentheses(f) else {
            return;
        };
        let order = self.outer(open, close, Token::Order).next();
        // With DISTINCT the keys of ORDER BY must be the arguments as they are written.
        let Some(comma) = self.outer(open, close, Token::Ascii44).next() else {
            return;
        };
        if f.agg_distinct && order.is_some() {
            return;
        }
        let start = match self.tokens.kind(open + 1) {
            Token::Distinct | Token::All => open + 1,
            _ => open,
        };
        let end = order.unwrap_or(close);
        for (val, (before, behind)) in vals.iter().zip([(start, comma), (comma, end)]) {
            let (from, to) = (
                self.tokens.range(before).end,
                self.tokens.range(behind).start,
            );
            match val.class {
                Class::Enc(Some(Float8)) | Class::Lit(None | Some(Some(Float8))) => continue,
                Class::Enc(Some(_)) | Class::Lit(Some(Some(_))) => {}
                Class::Plain(Some(_)) if val.leaves.is_empty() => self.authority.takes_plain(),
                _ => continue,
            }
            self.insert(from, "(");
            let space = if order == Some(behind) { " " } else { "" };
            let cast = format!(")::pg_catalog.{}{space}", Float8.enc_name());
            self.insert(to, &cast);
            self.authority.does(family::CAST);
        }
    }
}

/// Of an array of fractions the result is an array.
fn for_each_fraction(fraction: &Val, value: Val) -> Val {
    match fraction.class {
        Class::Array(_) => Val::array(value),
        _ => value,
    }
}
