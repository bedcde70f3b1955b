//! `WITH` queries as tables that can be named. In `WITH RECURSIVE` a query can name later ones, so
//! they are analysed in dependency order.
//!
//! Invariant: the name of a `WITH` query is never resolved to a table of the schema; if no order is
//! found, the statement is refused.

use super::{Infer, Res, names};
use crate::scope::{Col, Cols};
use crate::tokens::identifier;
use crate::value::Val;
use contract::TypeCode;
use pg_query::protobuf::{CommonTableExpr, SelectStmt, Token, WithClause};
use pg_query::{Node, NodeEnum};
use std::ops::Range;
use std::rc::Rc;

impl Infer<'_> {
    /// Adds the tables of `WITH` to the scope.
    pub fn with(&mut self, with: Option<&WithClause>) -> Res<()> {
        let Some(with) = with else { return Ok(()) };
        let ctes: Vec<&CommonTableExpr> = with
            .ctes
            .iter()
            .filter_map(|node| match &node.node {
                Some(NodeEnum::CommonTableExpr(cte)) => Some(&**cte),
                _ => None,
            })
            .collect();
        if !with.recursive {
            for cte in ctes {
                let cols = self.with_names(|infer| infer.common_table(cte, false))?;
                self.ctes.push((cte.ctename.clone(), Some(Rc::new(cols))));
            }
            return Ok(());
        }
        let base = self.ctes.len();
        self.ctes
            .extend(ctes.iter().map(|cte| (cte.ctename.clone(), None)));
        for at in self.order(&ctes) {
            let cols = self.with_names(|infer| infer.common_table(ctes[at], true))?;
            self.ctes[base + at].1 = Some(Rc::new(cols));
        }
        Ok(())
    }

    /// The queries of a `WITH RECURSIVE` in dependency order, otherwise as written. Any word counts
    /// as a name, so a column with the same name may appear to make a cycle; the order as written
    /// is then kept, too.
    fn order(&self, ctes: &[&CommonTableExpr]) -> Vec<usize> {
        let named: Vec<Vec<usize>> = ctes
            .iter()
            .map(|cte| {
                let words: Vec<_> = self
                    .query_tokens(cte)
                    .map(|i| identifier(&self.sql[self.tokens.range(i)]))
                    .collect();
                (0..ctes.len())
                    .filter(|&other| ctes[other].ctename != cte.ctename)
                    .filter(|&other| words.iter().any(|w| *w == ctes[other].ctename))
                    .collect()
            })
            .collect();
        let mut order = Vec::new();
        while order.len() < ctes.len() {
            let mut left = (0..ctes.len()).filter(|at| !order.contains(at));
            let first = left.clone().next().unwrap_or_default();
            let free = left.find(|&at| named[at].iter().all(|other| order.contains(other)));
            order.push(free.unwrap_or(first));
        }
        order
    }

    /// The tokens of its query in `name (columns) AS MATERIALIZED (query)`.
    fn query_tokens(&self, cte: &CommonTableExpr) -> Range<usize> {
        let name = usize::try_from(cte.location).unwrap_or_default();
        let opening = |from: usize| {
            (from..self.tokens.len()).find(|&i| self.tokens.kind(i) == Token::Ascii40)
        };
        let close = |open: usize| self.tokens.closing(open).unwrap_or(self.tokens.len());
        let mut open = opening(self.tokens.next_from(name));
        if !cte.aliascolnames.is_empty() {
            open = open.and_then(|columns| opening(close(columns)));
        }
        open.map_or(0..0, |open| open..close(open))
    }

    fn common_table(&mut self, cte: &CommonTableExpr, recursive: bool) -> Res<Cols> {
        let Some(query) = cte.ctequery.as_deref() else {
            return Ok(Cols::default());
        };
        let mut cols = match &query.node {
            Some(NodeEnum::SelectStmt(s)) if recursive && s.larg.is_some() => {
                self.recursive_table(cte, s)?
            }
            _ => {
                let cols = self.query_node(query)?;
                self.named(cols, &cte.aliascolnames)
            }
        };
        if let Some(cycle) = cte.cycle_clause.as_deref() {
            for mark in [
                cycle.cycle_mark_value.as_deref(),
                cycle.cycle_mark_default.as_deref(),
            ] {
                if let Some(val) = self.maybe(mark)? {
                    self.note_plain(&val);
                }
            }
        }
        cols.list.extend(followed(cte));
        Ok(cols)
    }

    /// The first arm determines the columns that the second one sees. The second arm is analysed
    /// twice, because it sees its own additions.
    fn recursive_table(&mut self, cte: &CommonTableExpr, s: &SelectStmt) -> Res<Cols> {
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        self.with(s.with_clause.as_ref())?;
        let (Some(left), Some(right)) = (s.larg.as_deref(), s.rarg.as_deref()) else {
            return Ok(Cols::default());
        };
        let cols = self.without_products(|infer| infer.arm(left))?;
        // Records, of which CYCLE and SEARCH make arrays, are compared type by type.
        if cte.cycle_clause.is_none() && cte.search_clause.is_none() {
            self.open_columns(left, right, &cols);
        }
        let mut cols = self.named(cols, &cte.aliascolnames);
        for _ in 0..2 {
            let depth = self.ctes.len();
            let mut seen = cols.clone();
            seen.list.extend(followed(cte));
            self.ctes.push((cte.ctename.clone(), Some(Rc::new(seen))));
            let more = self.without_products(|infer| infer.arm(right))?;
            self.ctes.truncate(depth);
            cols = self.unite(&cols, &more)?;
        }
        for limit in [s.limit_offset.as_deref(), s.limit_count.as_deref()] {
            if let Some(val) = self.maybe(limit)? {
                self.note_plain(&val);
            }
        }
        self.output_order(s, &cols)?;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        Ok(cols)
    }

    /// PostgreSQL compares the types of the first arm with those of both, with their modifiers. The
    /// modifier of a column of the family `rnd_` is its number, which no other expression has.
    fn open_columns(&mut self, first: &SelectStmt, second: &SelectStmt, cols: &Cols) {
        if cols.open.is_some() || first.target_list.len() != cols.list.len() {
            return;
        }
        for (at, (node, col)) in first.target_list.iter().zip(&cols.list).enumerate() {
            let Some((value, name)) = column_of(node) else {
                continue;
            };
            let again = second.target_list.get(at).and_then(column_of);
            if again.is_none_or(|(_, other)| other != name)
                && let Some(Some(code)) = self.enc_now(&col.val)
                && !has_modifier(code)
            {
                self.cast_to(value, code);
            }
        }
    }
}

/// A target that is a column, and the column's name.
fn column_of(target: &Node) -> Option<(&Node, &str)> {
    let Some(NodeEnum::ResTarget(target)) = &target.node else {
        return None;
    };
    let value = target.val.as_deref()?;
    match &value.node {
        Some(NodeEnum::ColumnRef(c)) => names(&c.fields).last().map(|name| (value, *name)),
        _ => None,
    }
}

/// Whether a column of the type can have a modifier of its own, which a cast would take away.
fn has_modifier(code: TypeCode) -> bool {
    use TypeCode::{Bpchar, Interval, Numeric, Time, Timestamp, Timestamptz, Varchar};
    matches!(
        code,
        Bpchar | Interval | Numeric | Time | Timestamp | Timestamptz | Varchar
    )
}

/// The columns added by `SEARCH` and `CYCLE`, which the query itself may name as well.
fn followed(cte: &CommonTableExpr) -> Vec<Col> {
    let search = cte.search_clause.iter().map(|s| &s.search_seq_column);
    let cycle = cte.cycle_clause.iter();
    let cycle = cycle.flat_map(|c| [&c.cycle_mark_column, &c.cycle_path_column]);
    let col = |name: &String| Col {
        name: name.clone(),
        val: Val::plain(None),
        own: false,
    };
    search.chain(cycle).map(col).collect()
}
