//! What the inference reports to [`crate::authority`], and the resulting grant.

use super::Infer;
use crate::effect::Effect;
use crate::relation::Relation;
use crate::statement::{ParamUse, StatementKind};
use crate::value::{Class, LeafKind, Val};
use grant::{Grant, family, origin};
use pg_query::protobuf::{ColumnDef, ConstrType, Constraint};
use pg_query::{Node, NodeEnum};
use std::collections::BTreeMap;

impl Infer<'_> {
    /// A plain expression is combined with something protected.
    pub fn note_meeting(&mut self, val: &Val) {
        if matches!(val.class, Class::Plain(_)) {
            self.authority.takes_plain();
        }
    }

    /// A column's default or generation expression stores values in the column.
    pub fn fill(&mut self, def: &ColumnDef, relation: &Relation) {
        let fills = |c: &Node| match &c.node {
            Some(NodeEnum::Constraint(c)) => matches!(
                c.contype(),
                ConstrType::ConstrDefault | ConstrType::ConstrGenerated
            ),
            _ => false,
        };
        if def.raw_default.is_some() || def.constraints.iter().any(fills) {
            self.authority.write(relation, Some(&def.colname));
        }
    }

    /// The operations of a foreign key.
    pub fn foreign_key(&mut self, c: &Constraint, from: &Relation, columns: &[&str]) {
        let Some(table) = c
            .pktable
            .as_ref()
            .filter(|_| c.contype() == ConstrType::ConstrForeign)
        else {
            return;
        };
        let schema = Some(table.schemaname.as_str()).filter(|s| !s.is_empty());
        // A table may reference itself while it is being created.
        let found = self.schema.relation(schema, &table.relname).cloned();
        let to = found.unwrap_or_else(|| from.clone());
        self.authority.references(from, columns, &to);
    }

    /// The grant of the statement.
    pub fn grant(
        &mut self,
        kind: &StatementKind,
        params: &BTreeMap<u32, ParamUse>,
        effects: &[Effect],
    ) -> Grant {
        let sealed = (0..self.leaves.len()).any(|id| {
            let value = !matches!(self.leaves.get(id).kind, LeafKind::Null | LeafKind::Cast(_));
            value && self.leaves.protected(id)
        });
        let mut authority = std::mem::take(&mut self.authority);
        let copied = matches!(kind, StatementKind::Copy) && !authority.writes.is_empty();
        if sealed || copied || params.values().any(|u| !matches!(u, ParamUse::Plain)) {
            authority.origins |= origin::CLIENT;
        }
        // A literal is sealed because of another occurrence, and combined with something plain
        // here.
        let met = |id| self.leaves.protected(id) && self.leaves.get(id).met_plain;
        if (0..self.leaves.len()).any(met) {
            authority.takes_plain();
        }
        for (leaf, families) in std::mem::take(&mut authority.perhaps) {
            if self.leaves.protected(leaf) {
                authority.families |= families;
            }
        }
        authority.families |= family::COMPARE | family::CAST | family::SHOW;
        match kind {
            StatementKind::Ddl => authority.definition(effects),
            _ => authority.statement(),
        }
    }
}
