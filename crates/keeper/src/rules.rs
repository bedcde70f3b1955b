//! What holds of claimed columns, groups, and what administrators have said; and how it is written down.
//!
//! Not here: who may change it (`viewers`).
//!
//! Invariant: what is written is read again as it was; what is not understood is an error.

use crate::generations::Generation;
use crate::limits::Budget;
use crate::masks::Mask;
use crate::provenance::column_id;
use crate::said::Mark;
use crate::transferred::Given;
use grant::{Column, Command, GROUP};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::ColumnId;

/// What the line with the number of the last change begins with; no schema is called so.
const NUMBER: &str = "\u{2}";
/// ... the line of a group, and of what administrators have said of an owner that is gone.
const GROUPED: &str = "\u{3}";
const VOTED: &str = "\u{4}";
/// ... of a column's key.
const KEYED: &str = "\u{5}";
/// ... and of one that its owner has given.
const GIVEN: &str = "\u{6}";

/// What follows a ledger table's name in the name of its history.
const HISTORY: &str = "_history";

/// The table that a column's table would be the history of, by its name.
pub fn table_of(column: &Column) -> Option<&str> {
    column.relation.strip_suffix(HISTORY)
}

/// What is known of a claimed column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which.
    pub column: Column,
    /// The last one is the owner.
    pub owners: Vec<String>,
    /// Principals, and groups with [`GROUP`] before their names.
    pub viewers: BTreeSet<String>,
    /// ... who do not see it all the same.
    pub denied: BTreeSet<String>,
    /// What others are shown.
    pub mask: Mask,
    /// How much may be told of it.
    pub budget: Option<Budget>,
}

impl Rule {
    /// That of a column that gets its first owner.
    pub fn of(command: &Command) -> Rule {
        Rule {
            column: command.column.clone(),
            owners: vec![command.word.clone()],
            viewers: BTreeSet::new(),
            denied: BTreeSet::new(),
            mask: Mask::Default,
            budget: None,
        }
    }

    /// Whether somebody in these groups sees the column. Who is denied, himself or by a group, does
    /// not, whatever another group may.
    pub fn shows(&self, name: &str, groups: &Groups) -> bool {
        if self.owners.last().is_some_and(|owner| owner == name) {
            return true;
        }
        let is_in = |list: &BTreeSet<String>| {
            let himself = !name.starts_with(GROUP) && list.contains(name);
            himself
                || list.iter().any(|entry| {
                    let members = entry.strip_prefix(GROUP).and_then(|g| groups.get(g));
                    members.is_some_and(|members| members.contains(name))
                })
        };
        is_in(&self.viewers) && !is_in(&self.denied)
    }
}

/// Members, by the group's name.
pub type Groups = BTreeMap<String, BTreeSet<String>>;
/// Who has said so, by column and who shall be its owner.
pub type Votes = BTreeMap<(Column, String), BTreeSet<String>>;

/// What holds.
#[derive(Clone, Default)]
pub struct Rules {
    /// By column.
    by_column: HashMap<ColumnId, Rule>,
    /// Columns of ledger tables' histories, and whose rules are theirs.
    histories: HashMap<ColumnId, ColumnId>,
    /// Groups.
    pub groups: Groups,
    /// What administrators have said of owners that are gone.
    pub votes: Votes,
    /// Keys that were changed.
    pub keys: BTreeMap<Column, Generation>,
    /// Keys of encodings that were given to the keeper.
    pub given: BTreeMap<Column, Given>,
    /// Number of the last change.
    pub number: u64,
}

impl Rules {
    /// What was written; none: it was not.
    pub fn read(text: &str) -> Option<Rules> {
        let mut rules = Rules::default();
        for line in text.split_terminator('\u{1}') {
            if let Some(number) = line.strip_prefix(NUMBER) {
                rules.number = number.parse().ok()?;
            } else if let Some(line) = line.strip_prefix(KEYED) {
                rules.takes_key(line)?;
            } else if let Some(line) = line.strip_prefix(GIVEN) {
                let (column, text) = line.rsplit_once('\0')?;
                let column = named(column)?;
                rules.given.insert(column, Given::read(text)?);
            } else if !rules.takes(line) {
                let rule = read(line)?;
                rules.put(rule);
            }
        }
        Some(rules)
    }

    /// The rule of a column that was claimed by this name.
    pub fn own(&self, column: &ColumnId) -> Option<&Rule> {
        self.by_column.get(column)
    }

    /// ... to be changed.
    pub fn own_mut(&mut self, column: &ColumnId) -> Option<&mut Rule> {
        self.by_column.get_mut(column)
    }

    /// The rule that a column goes by: its own, or that of the ledger table whose history it is in.
    pub fn of(&self, column: &ColumnId) -> Option<&Rule> {
        let table = || self.by_column.get(self.histories.get(column)?);
        self.by_column.get(column).or_else(table)
    }

    /// Puts a rule in the place of the one before.
    pub fn put(&mut self, rule: Rule) {
        let id = column_id(&rule.column);
        let Column {
            schema,
            relation,
            column,
        } = &rule.column;
        for suffix in [HISTORY, "_ledger"] {
            let beside = Column::new(schema, &format!("{relation}{suffix}"), column);
            self.histories.insert(column_id(&beside), id);
        }
        self.by_column.insert(id, rule);
    }

    /// How many columns were claimed.
    pub fn claimed(&self) -> usize {
        self.by_column.len()
    }

    /// All of it as text, which is always the same for the same rules.
    pub fn text(&self) -> String {
        let mut text = format!("{NUMBER}{}\u{1}", self.number);
        let mut columns: Vec<String> = self.by_column.values().map(write).collect();
        columns.sort_unstable();
        text.extend(columns);
        for (group, members) in &self.groups {
            let names: Vec<&str> = members.iter().map(String::as_str).collect();
            text += &format!("{GROUPED}{group}\0{}\u{1}", names.join("\0"));
        }
        for ((column, word), names) in &self.votes {
            let Column {
                schema,
                relation,
                column,
            } = column;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let names = names.join("\0");
            text += &format!("{VOTED}{schema}\0{relation}\0{column}\0{word}\0{names}\u{1}");
        }
        for (column, generation) in &self.keys {
            let Column {
                schema,
                relation,
                column,
            } = column;
            let generation = generation.text();
            text += &format!("{KEYED}{schema}\0{relation}\0{column}\0{generation}\u{1}");
        }
        for (column, given) in &self.given {
            let Column {
                schema,
                relation,
                column,
            } = column;
            let given = given.text();
            text += &format!("{GIVEN}{schema}\0{relation}\0{column}\0{given}\u{1}");
        }
        text
    }

    /// Where these rules stand in the history of what was said.
    pub fn mark(&self) -> Mark {
        match self.number {
            0 => Mark::default(),
            number => Mark::of(number, self.text().as_bytes()),
        }
    }

    /// Whether any column has a budget.
    pub fn has_budgets(&self) -> bool {
        self.by_column.values().any(|rule| rule.budget.is_some())
    }

    fn takes_key(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split('\0').collect();
        let [schema, relation, column, current, turning] = fields.as_slice() else {
            return None;
        };
        let column = Column::new(schema, relation, column);
        self.keys
            .insert(column, Generation::read(current, turning)?);
        Some(())
    }

    /// Takes a line in that is of no column.
    fn takes(&mut self, line: &str) -> bool {
        let names = |fields: &[&str]| fields.iter().map(|name| (*name).to_owned()).collect();
        if let Some(line) = line.strip_prefix(GROUPED) {
            let fields: Vec<&str> = line.split('\0').collect();
            if let [group, members @ ..] = fields.as_slice() {
                self.groups.insert((*group).to_owned(), names(members));
            }
            return true;
        }
        let Some(line) = line.strip_prefix(VOTED) else {
            return false;
        };
        let fields: Vec<&str> = line.split('\0').collect();
        if let [schema, relation, column, word, voters @ ..] = fields.as_slice() {
            let key = (Column::new(schema, relation, column), (*word).to_owned());
            self.votes.insert(key, names(voters));
        }
        true
    }
}

/// The column with these names.
fn named(text: &str) -> Option<Column> {
    let names: Vec<&str> = text.split('\0').collect();
    match names.as_slice() {
        [schema, relation, column] => Some(Column::new(schema, relation, column)),
        _ => None,
    }
}

/// A rule as text: fields end with \0, lists have their length before them.
fn write(rule: &Rule) -> String {
    let column = &rule.column;
    let mut fields = vec![
        column.schema.clone(),
        column.relation.clone(),
        column.column.clone(),
        rule.mask.text(),
    ];
    let viewers: Vec<String> = rule.viewers.iter().cloned().collect();
    let denied: Vec<String> = rule.denied.iter().cloned().collect();
    for list in [&rule.owners, &viewers, &denied] {
        fields.push(list.len().to_string());
        fields.extend(list.iter().cloned());
    }
    if let Some(budget) = &rule.budget {
        fields.extend([budget.text(), budget.epoch.to_string()]);
    }
    fields.join("\0") + "\u{1}"
}

fn read(line: &str) -> Option<Rule> {
    let mut fields = line.split('\0').map(str::to_owned);
    let column = Column::new(&fields.next()?, &fields.next()?, &fields.next()?);
    let mask = Mask::read(&fields.next()?)?;
    let mut list = || -> Option<Vec<String>> {
        let count: usize = fields.next()?.parse().ok()?;
        (0..count).map(|_| fields.next()).collect()
    };
    let (owners, viewers, denied) = (list()?, list()?, list()?);
    let budget = match fields.next() {
        Some(text) => Some(Budget::read(&text, fields.next()?.parse().ok()?)?),
        None => None,
    };
    Some(Rule {
        column,
        mask,
        owners,
        viewers: viewers.into_iter().collect(),
        denied: denied.into_iter().collect(),
        budget,
    })
}
