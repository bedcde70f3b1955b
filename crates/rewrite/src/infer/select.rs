//! Queries: `SELECT`, `VALUES`, set operations. (`WITH`: with.rs.)

use super::{Infer, Res, location, names};
use crate::naming::figure_name;
use crate::refusal::Refusal;
use crate::scope::{Col, Cols, Frame};
use crate::value::Val;
use pg_query::protobuf::{SelectStmt, SetOperation, a_const};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

impl Infer<'_> {
    /// A statement that returns columns: a query, or DML with `RETURNING`.
    pub fn query_node(&mut self, node: &Node) -> Res<Cols> {
        self.writes |= !matches!(node.node, Some(NodeEnum::SelectStmt(_)));
        match &node.node {
            Some(NodeEnum::SelectStmt(s)) => self.select(s),
            Some(NodeEnum::InsertStmt(s)) => self.insert_into(s),
            Some(NodeEnum::UpdateStmt(s)) => self.update(s),
            Some(NodeEnum::DeleteStmt(s)) => self.delete(s),
            Some(NodeEnum::MergeStmt(s)) => self.merge(s),
            _ => Err(
                Refusal::unsupported("this kind of statement is not supported here")
                    .at(location(node)),
            ),
        }
    }

    pub fn select(&mut self, s: &SelectStmt) -> Res<Cols> {
        self.depth += 1;
        if self.depth > 5_000 {
            return Err(Refusal::new("54001", "the statement is too complex"));
        }
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        let conditions = std::mem::take(&mut self.conditions);
        let result = self.select_inner(s);
        self.conditions = conditions;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        self.depth -= 1;
        result
    }

    fn select_inner(&mut self, s: &SelectStmt) -> Res<Cols> {
        self.with(s.with_clause.as_ref())?;
        let cols = if !s.values_lists.is_empty() {
            let cols = self.values(s)?;
            self.output_order(s, &cols)?;
            cols
        } else if s.op() == SetOperation::SetopNone || s.op() == SetOperation::Undefined {
            self.simple_select(s)?
        } else {
            let cols = self.set_operation(s)?;
            self.output_order(s, &cols)?;
            cols
        };
        for limit in [s.limit_offset.as_deref(), s.limit_count.as_deref()] {
            if let Some(val) = self.maybe(limit)? {
                self.note_plain(&val);
            }
        }
        Ok(cols)
    }

    fn simple_select(&mut self, s: &SelectStmt) -> Res<Cols> {
        let frame = self.tables(&s.from_clause)?;
        self.scopes.push(Rc::new(frame));
        if let Some(condition) = s.where_clause.as_deref() {
            self.condition(condition)?;
        }
        let cols = match s.distinct_clause.is_empty() {
            true => self.target_list(&s.target_list)?,
            false => self.without_products(|infer| infer.target_list(&s.target_list))?,
        };
        self.group_clause(&s.group_clause, &cols)?;
        if let Some(condition) = s.having_clause.as_deref() {
            self.condition(condition)?;
        }
        for node in &s.window_clause {
            if let Some(NodeEnum::WindowDef(w)) = &node.node {
                self.window(w)?;
            }
        }
        self.by_output(&s.distinct_clause, &cols)?;
        self.by_output(&s.sort_clause, &cols)?;
        Ok(cols)
    }

    /// `ORDER BY` after `UNION` or `VALUES`: names of output columns.
    pub fn output_order(&mut self, s: &SelectStmt, cols: &Cols) -> Res<()> {
        self.scopes.push(Rc::new(Frame {
            entries: Vec::new(),
            list: cols.list.clone(),
            open: cols.open.clone(),
        }));
        self.by_output(&s.sort_clause, cols)
    }

    pub fn target_list(&mut self, nodes: &[Node]) -> Res<Cols> {
        let mut cols = Cols::default();
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else {
                continue;
            };
            let Some(value) = target.val.as_deref() else {
                continue;
            };
            if let Some(star) = self.star_of(value)? {
                cols.list.extend(star.list);
                cols.open = crate::scope::riskier(cols.open.as_ref(), star.open.as_ref()).cloned();
                continue;
            }
            let val = self.result(value)?;
            self.keep_name(target, value);
            let name = if target.name.is_empty() {
                figure_name(value)
            } else {
                target.name.clone()
            };
            cols.list.push(Col {
                name,
                val,
                own: false,
            });
        }
        Ok(cols)
    }

    /// `GROUP BY`: expressions, positions, names of output columns.
    fn group_clause(&mut self, nodes: &[Node], cols: &Cols) -> Res<()> {
        for node in nodes {
            match &node.node {
                Some(NodeEnum::GroupingSet(set)) => self.group_clause(&set.content, cols)?,
                Some(NodeEnum::AConst(c)) => {
                    let position = self.constant(c)?;
                    self.note_plain(&position);
                    self.sorted(output_column(node, cols));
                }
                Some(NodeEnum::ColumnRef(c)) => {
                    if let Err(refusal) = self.column(c) {
                        let found = output_column(node, cols);
                        self.sorted(Some(found.ok_or(refusal)?));
                    }
                }
                _ => {
                    self.expr(node)?;
                }
            }
        }
        Ok(())
    }

    /// PostgreSQL takes an untyped literal for `text` where it sorts or groups by it.
    fn sorted(&mut self, col: Option<&Col>) {
        if let Some(col) = col {
            self.settle(&col.val);
        }
    }

    /// `ORDER BY`, `DISTINCT ON`: names of output columns, positions, expressions; `DISTINCT`: all columns.
    fn by_output(&mut self, nodes: &[Node], cols: &Cols) -> Res<()> {
        for node in nodes {
            let inner = match &node.node {
                Some(NodeEnum::SortBy(s)) => s.node.as_deref(),
                _ => Some(node),
            };
            let Some(inner) = inner.filter(|n| n.node.is_some()) else {
                cols.list.iter().for_each(|col| self.sorted(Some(col)));
                continue;
            };
            let found = output_column(inner, cols);
            self.sorted(found);
            if found.is_some() && matches!(inner.node, Some(NodeEnum::ColumnRef(_))) {
                continue;
            }
            let val = self.expr(inner)?;
            if matches!(inner.node, Some(NodeEnum::AConst(_))) {
                self.note_plain(&val);
            }
        }
        Ok(())
    }

    fn values(&mut self, s: &SelectStmt) -> Res<Cols> {
        let rows = self.value_rows(s)?;
        let width = rows.iter().map(Vec::len).min().unwrap_or(0);
        let mut cols = Cols::default();
        for at in 0..width {
            let column: Vec<Val> = rows.iter().map(|row| row[at].clone()).collect();
            let val = if let [only] = column.as_slice() {
                only.clone()
            } else {
                self.common(&column, -1)?
            };
            cols.list.push(Col {
                name: format!("column{}", at + 1),
                val,
                own: false,
            });
        }
        Ok(cols)
    }

    /// The rows of `VALUES`.
    pub fn value_rows(&mut self, s: &SelectStmt) -> Res<Vec<Vec<Val>>> {
        let mut rows = Vec::new();
        for node in &s.values_lists {
            let Some(NodeEnum::List(list)) = &node.node else {
                continue;
            };
            let mut row = Vec::new();
            for item in &list.items {
                match self.star_of(item)? {
                    Some(cols) if cols.open.is_none() => {
                        row.extend(cols.list.into_iter().map(|c| c.val))
                    }
                    Some(_) => {
                        return Err(Refusal::unsupported("the columns of * are not known here")
                            .at(location(item)));
                    }
                    None => row.push(self.expr(item)?),
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn set_operation(&mut self, s: &SelectStmt) -> Res<Cols> {
        let (Some(left), Some(right)) = (s.larg.as_deref(), s.rarg.as_deref()) else {
            return Ok(Cols::default());
        };
        let (one, other) = (left, right);
        let (left, right) =
            self.without_products(|infer| -> Res<_> { Ok((infer.arm(left)?, infer.arm(right)?)) })?;
        self.cast_arm(one, &left, &right);
        self.cast_arm(other, &right, &left);
        self.unite(&left, &right)
    }

    /// An arm of a set operation. PostgreSQL takes untyped literals of `VALUES` for `text` before it
    /// looks at the other arm.
    pub fn arm(&mut self, s: &SelectStmt) -> Res<Cols> {
        let cols = self.select(s)?;
        Ok(match s.values_lists.is_empty() {
            true => cols,
            false => self.named(cols, &[]),
        })
    }

    /// Casts the columns of an arm if those of the other arm are protected or of another type, as
    /// PostgreSQL's common type requires.
    fn cast_arm(&mut self, s: &SelectStmt, cols: &Cols, others: &Cols) {
        // For `*`, and for nested arms, there is no expression to cast.
        if cols.open.is_some() || s.target_list.len() != cols.list.len() {
            return;
        }
        for (node, (col, other)) in s.target_list.iter().zip(cols.list.iter().zip(&others.list)) {
            if let Some(NodeEnum::ResTarget(target)) = &node.node
                && let Some(value) = target.val.as_deref()
                && !is_star(value)
            {
                let vals = [col.val.clone(), other.val.clone()];
                let edits = self.edits.len();
                self.cast_plain_ones(&[value], &vals);
                self.cast_to_one_family(&[value], &vals);
                if self.edits.len() > edits {
                    self.keep_name_of_cast(target, value);
                }
            }
        }
    }

    pub fn unite(&mut self, left: &Cols, right: &Cols) -> Res<Cols> {
        if left.open.is_some() || right.open.is_some() {
            return self.unite_open(left, right);
        }
        let mut list = Vec::new();
        for (l, r) in left.list.iter().zip(&right.list) {
            let val = self.common(&[l.val.clone(), r.val.clone()], -1)?;
            list.push(Col {
                name: l.name.clone(),
                val,
                own: false,
            });
        }
        Ok(Cols { list, open: None })
    }

    /// An arm has unknown columns: no literal may be next to something protected.
    fn unite_open(&mut self, left: &Cols, right: &Cols) -> Res<Cols> {
        let all: Vec<&Col> = left.list.iter().chain(&right.list).collect();
        if all.iter().any(|c| self.holds_enc(&c.val)) {
            return match all
                .iter()
                .find_map(|c| self.secrets(&c.val).first().copied())
            {
                Some(u) => Err(self.undecided(&u, -1)),
                None => Ok(left.clone()),
            };
        }
        Ok(left.clone())
    }

    /// Columns of a subquery, renamed by an alias; untyped strings in them are `text` from here on.
    pub fn named(&mut self, cols: Cols, aliases: &[Node]) -> Cols {
        let aliases = names(aliases);
        let mut list = Vec::new();
        for (at, col) in cols.list.into_iter().enumerate() {
            let name = aliases
                .get(at)
                .map_or(col.name, |alias| (*alias).to_owned());
            list.push(Col {
                name,
                val: self.settle(&col.val),
                own: col.own,
            });
        }
        Cols {
            list,
            open: cols.open,
        }
    }
}

/// `*`, or `t.*`.
fn is_star(node: &Node) -> bool {
    let Some(NodeEnum::ColumnRef(c)) = &node.node else {
        return false;
    };
    let last = c.fields.last().and_then(|f| f.node.as_ref());
    matches!(last, Some(NodeEnum::AStar(_)))
}

/// The output column that a name or a position means.
fn output_column<'c>(node: &Node, cols: &'c Cols) -> Option<&'c Col> {
    match &node.node {
        Some(NodeEnum::ColumnRef(c)) => match names(&c.fields).as_slice() {
            [name] => cols.list.iter().find(|col| col.name == *name),
            _ => None,
        },
        Some(NodeEnum::AConst(c)) => match &c.val {
            Some(a_const::Val::Ival(n)) if cols.open.is_none() => {
                let at = usize::try_from(n.ival).ok()?.checked_sub(1)?;
                cols.list.get(at)
            }
            _ => None,
        },
        _ => None,
    }
}
