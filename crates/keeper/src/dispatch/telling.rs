//! Counts what the connection discloses for the accounts (`told`); `Accounts` reports them.
//!
//! Invariants: whatever is declassified or leaves in an envelope is counted under its label before
//! the next request is processed; nothing is disclosed beyond a budget.

use super::Connection;
use crate::fail::{self, Failure};
use crate::limits::Budget;
use crate::told::{KINDS, NOBODY, Spending, Spent, Told};
use contract::{Fid, OpResult, TypeCode, answer, body};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use store::{ColumnId, Entry, Label};
use values::Value;

/// Maximum number of lines in one answer.
const LINES_MAX: usize = 16_384;

/// The kind of disclosure as which a result counts.
pub(super) fn as_told(result: OpResult) -> Told {
    match result {
        OpResult::Bool => Told::Booleans,
        OpResult::Order => Told::Orders,
        OpResult::Hash => Told::Tokens,
        OpResult::Fid => Told::Shown,
    }
}

impl Connection {
    /// Called before disclosing values with a label: checks the budgets of their columns, and
    /// counts the disclosure.
    #[inline]
    pub(super) fn told(&self, label: Label, what: Told, rows: usize) -> Result<(), Failure> {
        self.spend(label, what, rows)?;
        self.tally(label, what, rows);
        Ok(())
    }

    #[inline]
    pub(super) fn tally(&self, label: Label, what: Told, rows: usize) {
        if rows == 0 || label == 0 {
            return;
        }
        if let Some(tally) = self.remembered.borrow().tally(label) {
            tally.add(what, rows as u64);
            return;
        }
        self.tally_other(label, what, rows);
    }

    #[cold]
    fn tally_other(&self, label: Label, what: Told, rows: usize) {
        let tally = self.session.tallies().of(label);
        tally.add(what, rows as u64);
        self.remembered.borrow_mut().keep_tally(label, tally);
    }

    /// Uses the budgets of the columns that values were computed from.
    #[inline]
    pub(super) fn spend(&self, label: Label, what: Told, rows: usize) -> Result<(), Failure> {
        match self.keeper.viewers.has_budgets() && rows > 0 && label != 0 {
            true => self.spend_of(label, what, rows as u64),
            false => Ok(()),
        }
    }

    #[cold]
    fn spend_of(&self, label: Label, what: Told, rows: u64) -> Result<(), Failure> {
        let keeper = &self.keeper;
        let principal: Arc<str> = Arc::from(self.client.as_ref().map_or(NOBODY, |c| &c.name));
        let origin = self.origin(label);
        let all = origin
            .columns
            .iter()
            .flat_map(|column| self.budgets(column));
        // A budget of a table is used once for values of several of its parts.
        let all: BTreeMap<ColumnId, Budget> = all.collect();
        for (column, budget) in &all {
            let Some(limit) = budget.limit(what) else {
                continue;
            };
            let name = || {
                let name = keeper.standing.name_of(column);
                name.map_or_else(|| "a column".to_owned(), |name| name.to_string())
            };
            let kind = KINDS.get(what as usize).copied().unwrap_or_default();
            let spent = keeper.accounts.spend(&Spending {
                principal: &principal,
                column: *column,
                budget: *budget,
                what,
                rows,
            })?;
            let note = |what: &str, number| {
                let text = format!("{}: {what} {limit} {kind}", name());
                keeper.audit.budget(&principal, &text, number)
            };
            match spent {
                Spent::Within => {}
                Spent::Reserved(number) => {
                    self.owe();
                    note("some more of", number)?;
                }
                Spent::Noted(number) => note("more than", number)?,
                Spent::Beyond => return Err(fail::budget(&name(), limit, kind).into()),
            }
        }
        Ok(())
    }

    /// The budgets of a column: its own, or those of its former names and of the tables that its table is a
    /// part of.
    pub(super) fn budgets(&self, column: &ColumnId) -> Vec<(ColumnId, Budget)> {
        let viewers = &self.keeper.viewers;
        let budget = |id: &ColumnId| Some((*id, viewers.budget(id)?));
        if let Some(names) = self.remembered.borrow().budgeted.get(column) {
            return names.iter().filter_map(budget).collect();
        }
        let found: Vec<_> = self.ruled(column).iter().filter_map(budget).collect();
        let names = found.iter().map(|(id, _)| *id).collect();
        let mut remembered = self.remembered.borrow_mut();
        remembered.budgeted.insert(*column, names);
        found
    }

    /// Like [`Self::told`]; if nothing is labelled, for the column of the first stored value.
    #[inline]
    pub(super) fn told_of(
        &self,
        label: Label,
        what: Told,
        fids: &[Fid],
        rows: usize,
    ) -> Result<(), Failure> {
        let label = match label {
            0 => {
                let stored = fids.iter().filter(|fid| !fid.is_temporary());
                self.label_of_stored(stored.map(|fid| fid.partition()))
            }
            label => label,
        };
        self.told(label, what, rows)
    }

    #[inline]
    pub(super) fn label_or_stored(&self, label: Label, stored: [u32; 2]) -> Label {
        match label {
            0 => self.label_of_stored(stored.into_iter()),
            label => label,
        }
    }

    /// The label of the first of these partitions that has one.
    #[inline]
    fn label_of_stored(&self, mut stored: impl Iterator<Item = u32>) -> Label {
        let label = |number| match number {
            0 => None,
            number => self.label_of_column(number).ok(),
        };
        stored.find_map(label).unwrap_or(0)
    }

    /// Returns the accounts to the database. If a slot is given, stores them there for the client,
    /// which gets its own accounts and those of columns that it may ask about, after the words that
    /// it supplied.
    pub(super) fn accounts(&mut self, body: body::Accounts) -> Result<(), Failure> {
        self.keeper.collect();
        if body.to == Fid::INVALID {
            let text = self.account_lines(None);
            self.answer(&answer::Accounts {
                lines: text.as_bytes(),
            });
            return Ok(());
        }
        let client = self.client.clone().ok_or_else(fail::no_client)?;
        let words = match self.space.value(body.words, Some(TypeCode::Text))? {
            Some(Value::Text(words)) => String::from_utf8_lossy(&words).into_owned(),
            _ => String::new(),
        };
        let text = format!("{words}\n{}", self.account_lines(Some(&client.name)));
        let label = self.operands(&[body.words])?.label;
        let entry = Entry::Value(Value::Text(text.into_bytes().into()));
        self.space.set(body.to, entry, label)?;
        self.answer(&answer::Accounts { lines: &[] });
        Ok(())
    }

    /// Formats one line for each account: principal, schema, table, column, and the number of each
    /// kind.
    fn account_lines(&self, asks: Option<&str>) -> String {
        let keeper = &self.keeper;
        let mut lines: Vec<String> = Vec::new();
        for entry in keeper.accounts.list() {
            let asked = asks.is_none_or(|name| {
                *name == *entry.principal || keeper.viewers.may_ask(&entry.column, name)
            });
            if !asked {
                continue;
            }
            let name = &entry.name;
            let texts = [
                &entry.principal,
                name.schema.as_str(),
                &name.relation,
                &name.column,
            ];
            let texts = texts.map(|text| text.replace(char::is_control, "?"));
            let mut line = texts.join("\t");
            for count in entry.told {
                let _ = write!(line, "\t{count}");
            }
            lines.push(line);
        }
        lines.sort_unstable();
        lines.truncate(LINES_MAX);
        lines.join("\n")
    }
}
