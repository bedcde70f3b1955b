//! `MERGE`.

use super::{Infer, Res};
use crate::scope::{Cols, Frame};
use pg_query::NodeEnum;
use pg_query::protobuf::{CmdType, MergeStmt};
use std::rc::Rc;

impl Infer<'_> {
    pub fn merge(&mut self, s: &MergeStmt) -> Res<Cols> {
        let (ctes, scopes) = (self.ctes.len(), self.scopes.len());
        self.with(s.with_clause.as_ref())?;
        let target = self.target(s.relation.as_ref())?;
        let source = match s.source_relation.as_deref() {
            Some(node) => self.tables(std::slice::from_ref(node))?,
            None => Frame::default(),
        };
        let mut both = Frame::of(target.entry.clone());
        both.join(&source);
        self.scopes.push(Rc::new(both));
        if let Some(condition) = s.join_condition.as_deref() {
            self.condition(condition)?;
        }
        for node in &s.merge_when_clauses {
            let Some(NodeEnum::MergeWhenClause(when)) = &node.node else {
                continue;
            };
            if let Some(condition) = when.condition.as_deref() {
                self.condition(condition)?;
            }
            match when.command_type() {
                CmdType::CmdUpdate => self.set_clause(&target, &when.target_list)?,
                CmdType::CmdInsert => {
                    let columns = self.insert_columns(&target, &when.target_list)?;
                    for (column, value) in columns.iter().zip(&when.values) {
                        let val = self.expr(value)?;
                        self.assign(column, &val, -1)?;
                    }
                }
                _ => {}
            }
        }
        self.scopes.pop();
        // The columns of `*` begin with those of the source.
        let mut rows = source;
        rows.join(&target.frame());
        let cols = self.returning(s.returning_clause.as_ref(), &target, rows)?;
        self.ctes.truncate(ctes);
        self.scopes.truncate(scopes);
        Ok(cols)
    }
}
