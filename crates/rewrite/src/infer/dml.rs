//! `INSERT`, `UPDATE`, `DELETE`.

use super::{Infer, Res, location};
use crate::fit::Fit;
use crate::refusal::Refusal;
use crate::relation::{ColumnType, Relation};
use crate::scope::{Cols, Entry, Frame};
use crate::value::{LeafKind, Val};
use contract::TypeCode;
use pg_query::protobuf::{
    DeleteStmt, InsertStmt, MultiAssignRef, OnConflictClause, RangeVar, ResTarget, ReturningClause,
    SelectStmt, UpdateStmt,
};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

/// The target table of a statement.
pub(crate) struct Target {
    pub relation: Relation,
    pub entry: Entry,
}

impl Target {
    pub fn frame(&self) -> Frame {
        Frame::of(self.entry.clone())
    }

    /// What a value fits that is assigned to this column and goes nowhere else: only an ordinary table stores
    /// it as it is.
    fn fit(&self, name: &str) -> Option<Fit> {
        let columns = self.relation.columns.iter().flatten();
        let column = columns
            .filter(|_| self.relation.kind == 'r')
            .find(|c| c.name == name && c.domain.is_none())?;
        let ColumnType::Enc(code) = column.ty else {
            return None;
        };
        let named = grant::Column::new(&self.relation.schema, &self.relation.name, name);
        Some(Fit {
            column: named.id(),
            code,
            typmod: column.typmod,
        })
    }

    /// The same for the columns named by an `INSERT`, or all.
    fn fits(&self, names: &[Node]) -> Vec<Option<Fit>> {
        if names.is_empty() {
            let columns = self.relation.columns.iter().flatten();
            return columns.map(|c| self.fit(&c.name)).collect();
        }
        let targets = names.iter().filter_map(|node| match &node.node {
            Some(NodeEnum::ResTarget(t)) => Some(t),
            _ => None,
        });
        let whole = |t: &ResTarget| self.fit(&t.name).filter(|_| t.indirection.is_empty());
        targets.map(|t| whole(t)).collect()
    }
}

impl Infer<'_> {
    pub fn target(&mut self, r: Option<&RangeVar>) -> Res<Target> {
        let r = r.ok_or_else(|| Refusal::unsupported("a statement without a table"))?;
        let relation = self.relation(r)?;
        let alias = r
            .alias
            .as_ref()
            .map_or(&relation.name, |a| &a.aliasname)
            .clone();
        let schema = r.alias.is_none().then(|| relation.schema.clone());
        self.authority.change(&relation);
        let entry = Entry {
            alias,
            schema,
            cols: Rc::new(self.columns(&relation)),
        };
        Ok(Target { relation, entry })
    }

    pub fn insert_into(&mut self, s: &InsertStmt) -> Res<Cols> {
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        self.with(s.with_clause.as_ref())?;
        let target = self.target(s.relation.as_ref())?;
        let columns = self.insert_columns(&target, &s.cols)?;
        match s.select_stmt.as_deref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::SelectStmt(q)) if is_values(q) => {
                let fits = target.fits(&s.cols);
                for (row, node) in self.value_rows(q)?.iter().zip(&q.values_lists) {
                    self.check_width(&target, &columns, row.len(), q.values_lists.first())?;
                    self.assign_all(&columns, row, -1)?;
                    self.note_fits(&fits, row, node);
                }
            }
            Some(NodeEnum::SelectStmt(q)) => {
                self.nameless += 1;
                let cols = self.without_products(|infer| infer.select(q));
                self.nameless -= 1;
                let mut cols = cols?;
                if !q.values_lists.is_empty() {
                    cols = self.named(cols, &[]);
                }
                self.insert_selected(&columns, &cols, s.select_stmt.as_deref())?;
            }
            _ => {}
        }
        if let Some(conflict) = s.on_conflict_clause.as_deref() {
            self.on_conflict(conflict, &target)?;
        }
        let cols = self.returning(s.returning_clause.as_ref(), &target, target.frame())?;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        Ok(cols)
    }

    fn insert_selected(&mut self, columns: &[Val], cols: &Cols, query: Option<&Node>) -> Res<()> {
        if cols.open.is_some() {
            if columns.iter().any(|c| self.holds_enc(c)) {
                return Err(Refusal::unsupported("the columns of * are not known here")
                    .at(query.map_or(-1, location))
                    .hint("Name the columns."));
            }
            return Ok(());
        }
        let vals: Vec<Val> = cols.list.iter().map(|c| c.val.clone()).collect();
        if vals.len() > columns.len() && columns.iter().any(|c| self.holds_enc(c)) {
            return Err(too_many(query));
        }
        self.assign_all(columns, &vals, -1)
    }

    /// The server would refuse it, with all values in the text.
    fn check_width(
        &self,
        target: &Target,
        columns: &[Val],
        width: usize,
        at: Option<&Node>,
    ) -> Res<()> {
        if width > columns.len() && target.relation.protected() {
            Err(too_many(at))
        } else {
            Ok(())
        }
    }

    fn assign_all(&mut self, columns: &[Val], vals: &[Val], at: i32) -> Res<()> {
        for (column, val) in columns.iter().zip(vals) {
            self.assign_column(column, val, at)?;
        }
        Ok(())
    }

    /// Assigns to a column. An integer assigned to text is converted to text.
    fn assign_column(&mut self, column: &Val, val: &Val, at: i32) -> Res<()> {
        use TypeCode::{Bpchar, Int4, Int8, Text, Varchar};
        if let (Some(Some(Text | Varchar | Bpchar)), [only]) =
            (self.enc(column), val.leaves.as_slice())
        {
            let leaf = self.leaves.get_mut(only.id);
            if let LeafKind::Typed(Int4 | Int8, _, text) = &leaf.kind
                && let Some(number) = std::str::from_utf8(text)
                    .ok()
                    .and_then(|t| t.parse::<i64>().ok())
            {
                leaf.kind = LeafKind::Str(number.to_string().into_bytes(), None);
            }
        }
        self.assign(column, val, at)
    }

    /// The columns named by an `INSERT`, or all.
    pub fn insert_columns(&mut self, target: &Target, names: &[Node]) -> Res<Vec<Val>> {
        // Columns that are not named get their defaults.
        self.authority.write(&target.relation, None);
        if names.is_empty() {
            return Ok(match &target.relation.columns {
                Some(columns) => columns.iter().map(|c| self.value_of(&c.ty)).collect(),
                None => Vec::new(),
            });
        }
        let mut columns = Vec::new();
        for node in names {
            let Some(NodeEnum::ResTarget(t)) = &node.node else {
                continue;
            };
            columns.push(self.target_column(target, t)?);
        }
        Ok(columns)
    }

    /// A target column, or the part of it that is written.
    pub fn target_column(&mut self, target: &Target, t: &ResTarget) -> Res<Val> {
        let Some(columns) = &target.relation.columns else {
            return Ok(Val::plain(None));
        };
        let missing = || {
            let text = format!(
                "column \"{}\" of relation \"{}\" does not exist",
                t.name, target.relation.name
            );
            Refusal::new("42703", text).at(t.location).refresh()
        };
        let column = columns
            .iter()
            .find(|c| c.name == t.name)
            .ok_or_else(missing)?;
        self.authority.write(&target.relation, Some(&t.name));
        for step in &t.indirection {
            if let Some(NodeEnum::AIndices(i)) = &step.node {
                for bound in [i.lidx.as_deref(), i.uidx.as_deref()] {
                    if let Some(val) = self.maybe(bound)? {
                        self.note_plain(&val);
                    }
                }
            }
        }
        Ok(match (&column.ty, t.indirection.is_empty()) {
            (ty, true) => self.value_of(ty),
            (ColumnType::EncArray(code), false) => Val::enc(Some(*code)),
            (ColumnType::Plain(..), false) => Val::plain(None),
            _ => Val::unknown(),
        })
    }

    fn on_conflict(&mut self, c: &OnConflictClause, target: &Target) -> Res<()> {
        self.scopes.push(Rc::new(Frame::of(target.entry.clone())));
        if let Some(infer) = c.infer.as_deref() {
            for node in &infer.index_elems {
                if let Some(NodeEnum::IndexElem(e)) = &node.node {
                    self.maybe(e.expr.as_deref())?;
                }
            }
            if let Some(condition) = infer.where_clause.as_deref() {
                self.condition(condition)?;
            }
        }
        self.scopes.pop();
        let mut frame = Frame::of(target.entry.clone());
        frame.entries.push(Entry {
            alias: "excluded".into(),
            schema: None,
            cols: target.entry.cols.clone(),
        });
        self.scopes.push(Rc::new(frame));
        self.set_clause(target, &c.target_list)?;
        if let Some(condition) = c.where_clause.as_deref() {
            self.condition(condition)?;
        }
        self.scopes.pop();
        Ok(())
    }

    /// `SET a = …, (b, c) = …`
    pub fn set_clause(&mut self, target: &Target, nodes: &[Node]) -> Res<()> {
        for node in nodes {
            let Some(NodeEnum::ResTarget(t)) = &node.node else {
                continue;
            };
            let column = self.target_column(target, t)?;
            let Some(value) = t.val.as_deref() else {
                continue;
            };
            let val = match &value.node {
                Some(NodeEnum::MultiAssignRef(m)) => self.multi_assigned(m)?,
                _ => self.expr(value)?,
            };
            self.assign_column(&column, &val, t.location)?;
            if t.indirection.is_empty() {
                self.note_fit(target.fit(&t.name), &val, value);
            }
        }
        Ok(())
    }

    /// Notes which values of a row stand there as they are assigned.
    fn note_fits(&mut self, fits: &[Option<Fit>], row: &[Val], node: &Node) {
        let Some(NodeEnum::List(list)) = &node.node else {
            return;
        };
        // A * stands for several values.
        if list.items.len() == row.len() {
            for ((fit, val), item) in fits.iter().zip(row).zip(&list.items) {
                self.note_fit(*fit, val, item);
            }
        }
    }

    fn note_fit(&mut self, fit: Option<Fit>, val: &Val, node: &Node) {
        let alone = matches!(
            &node.node,
            Some(NodeEnum::AConst(_) | NodeEnum::ParamRef(_))
        );
        if let (true, [only]) = (alone, val.leaves.as_slice()) {
            self.leaves.get_mut(only.id).fits = fit;
        }
    }

    fn multi_assigned(&mut self, m: &MultiAssignRef) -> Res<Val> {
        let at = usize::try_from(m.colno).unwrap_or(1).saturating_sub(1);
        let Some(source) = m.source.as_deref() else {
            return Ok(Val::plain(None));
        };
        match &source.node {
            Some(NodeEnum::RowExpr(r)) => match r.args.get(at) {
                Some(arg) => self.expr(arg),
                None => Ok(Val::plain(None)),
            },
            Some(NodeEnum::SubLink(s)) => {
                let Some(query) = s.subselect.as_deref() else {
                    return Ok(Val::plain(None));
                };
                self.nameless += 1;
                let cols = self.without_products(|infer| infer.query_node(query));
                self.nameless -= 1;
                let cols = cols?;
                match cols.list.get(at) {
                    Some(col) if cols.open.is_none() => Ok(self.settle(&col.val.clone())),
                    _ => Ok(cols.any()),
                }
            }
            _ => {
                let val = self.expr(source)?;
                match val.row_fields() {
                    Some(fields) if at < fields.len() => Ok(fields[at].1.clone()),
                    _ => Ok(Val::unknown_of([&val])),
                }
            }
        }
    }

    pub fn update(&mut self, s: &UpdateStmt) -> Res<Cols> {
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        self.with(s.with_clause.as_ref())?;
        let target = self.target(s.relation.as_ref())?;
        let from = self.tables(&s.from_clause)?;
        let mut frame = target.frame();
        frame.join(&from);
        self.scopes.push(Rc::new(frame.clone()));
        self.set_clause(&target, &s.target_list)?;
        if let Some(condition) = s.where_clause.as_deref() {
            self.condition(condition)?;
        }
        self.scopes.pop();
        let cols = self.returning(s.returning_clause.as_ref(), &target, frame)?;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        Ok(cols)
    }

    pub fn delete(&mut self, s: &DeleteStmt) -> Res<Cols> {
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        self.with(s.with_clause.as_ref())?;
        let target = self.target(s.relation.as_ref())?;
        let using = self.tables(&s.using_clause)?;
        let mut frame = target.frame();
        frame.join(&using);
        self.scopes.push(Rc::new(frame.clone()));
        if let Some(condition) = s.where_clause.as_deref() {
            self.condition(condition)?;
        }
        self.scopes.pop();
        let cols = self.returning(s.returning_clause.as_ref(), &target, frame)?;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        Ok(cols)
    }

    /// The columns of `RETURNING`; the frame has those of `*`, in their order.
    pub fn returning(
        &mut self,
        clause: Option<&ReturningClause>,
        target: &Target,
        mut frame: Frame,
    ) -> Res<Cols> {
        let Some(clause) = clause else {
            return Ok(Cols::default());
        };
        // The rows before and after, which may have been given other names.
        let given = clause.options.iter().filter_map(|node| match &node.node {
            Some(NodeEnum::ReturningOption(option)) => Some(option.value.as_str()),
            _ => None,
        });
        for alias in given.chain(["old", "new"]) {
            if frame.entry(None, alias).is_none() {
                let cols = target.entry.cols.clone();
                frame.entries.push(Entry {
                    alias: alias.into(),
                    schema: None,
                    cols,
                });
            }
        }
        self.scopes.push(Rc::new(frame));
        let cols = self.target_list(&clause.exprs);
        self.scopes.pop();
        cols
    }
}

/// Whether it is a list of values that take their types from the columns. With a clause it is a query,
/// whose columns have types of their own.
fn is_values(q: &SelectStmt) -> bool {
    !q.values_lists.is_empty() && !has_clause(q)
}

fn has_clause(q: &SelectStmt) -> bool {
    !q.sort_clause.is_empty()
        || !q.locking_clause.is_empty()
        || q.limit_count.is_some()
        || q.limit_offset.is_some()
        || q.with_clause.is_some()
}

fn too_many(at: Option<&Node>) -> Refusal {
    Refusal::new("42601", "INSERT has more expressions than target columns")
        .at(at.map_or(-1, location))
        .refresh()
}
