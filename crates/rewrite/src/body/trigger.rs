//! Whether the sealed constants of a trigger's function fit the trigger's table. When the function is
//! created, a field of NEW or OLD with the name of any protected column counts as protected; in a table
//! where that column is plain, the constant fails when the trigger runs.
//!
//! Does not: judge functions that ask for the table's name, or expressions that also name something
//! else that is protected.

use super::Body;
use super::sealed::is_exported;
use crate::refusal::Refusal;
use crate::relation::Relation;
use crate::tokens::{Tokens, identifier};
use std::collections::HashSet;

/// A function that knows its table may do in one what would fail in another.
const ASKS: [&str; 5] = [
    "tg_relid",
    "tg_relname",
    "tg_table_name",
    "tg_table_schema",
    "tg_argv",
];

impl Body<'_> {
    /// The plain column of this table that meets a sealed constant in the body.
    pub(crate) fn misfit(&self, table: &Relation) -> Option<String> {
        let lower = self.text.to_lowercase();
        if ASKS.iter().any(|word| lower.contains(word)) {
            return None;
        }
        self.pieces.iter().find_map(|piece| {
            let tokens = Tokens::scan(&piece.sql).ok()?;
            let mut all = 0..tokens.len();
            let sealed = all.any(|at| is_exported(&piece.sql, &tokens, at));
            let fields = self.fields_met(piece.target.as_deref(), &piece.sql, &tokens)?;
            let column = |name: &String| {
                let mut columns = table.columns.iter().flatten();
                columns.find(|c| c.name == *name)
            };
            let plain = |name: &&String| column(name).is_some_and(|c| !c.ty.protected());
            let first = fields.iter().find(plain).filter(|_| sealed)?;
            fields
                .iter()
                .all(|name| plain(&name))
                .then(|| first.clone())
        })
    }

    /// The fields of NEW and OLD with names of protected columns; none if the piece also names a
    /// protected table.
    fn fields_met(&self, target: Option<&str>, sql: &str, tokens: &Tokens) -> Option<Vec<String>> {
        let word = |at: usize| identifier(sql.get(tokens.range(at)).unwrap_or_default());
        let tables: HashSet<&str> = self
            .schema
            .protected_relations()
            .map(|r| &*r.name)
            .collect();
        let mut names = (0..tokens.len()).filter(|at| tokens.is_name(*at));
        if names.any(|at| tables.contains(&*word(at))) {
            return None;
        }
        let rows = (0..tokens.len()).filter(|at| matches!(&*word(*at), "new" | "old"));
        let fields = rows.filter(|at| word(at + 1) == ".").map(|at| word(at + 2));
        let assigned = target.and_then(|target| self.field_of_trigger(target));
        let all = fields
            .map(|f| f.into_owned())
            .chain(assigned.map(str::to_owned));
        let columns = self.schema.protected_columns();
        Some(all.filter(|name| columns.contains(name.as_str())).collect())
    }
}

pub(crate) fn refuse_misfit(function: &str, column: &str, table: &Relation) -> Refusal {
    Refusal::unsupported(format!(
        "function \"{function}\" has constants that are sealed for \"{column}\", which is plain in table \"{}\"",
        table.name
    ))
    .detail("When the function was created, a protected column had that name.")
    .hint("Create a function for this table, in which the column has no other meaning, or protect the column.")
    .for_good()
}
