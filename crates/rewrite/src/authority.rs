//! What a statement may do with protected values, for its grant (docs/security.md): gathered
//! while its expressions are inferred.
//!
//! One entry covers a statement: all protected columns whose names it mentions, of the
//! relations that it names, with the kinds of operations that it writes down. What a
//! definition does later (a check, a default, an index, a view, a policy, a routine) is in
//! entries of its own, which stand.
//!
//! Invariant: plain values take part only where the text has a plain expression meet a
//! protected one, or cast to a protected type.

use crate::effect::Effect;
use crate::relation::Relation;
use crate::schema::Schema;
use crate::value::{LeafId, Val};
use grant::{Column, Entry, Grant, family, origin};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What is found while a statement is looked at.
#[derive(Default)]
pub(crate) struct Authority {
    /// Protected columns of the relations that it names.
    near: BTreeSet<Column>,
    /// Names that it mentions as columns'.
    mentioned: HashSet<String>,
    /// It may mean columns that it does not mention: `*`, whole rows, columns renamed.
    all: bool,
    pub writes: BTreeSet<Column>,
    pub families: u8,
    pub origins: u8,
    /// What counts if these turn out to be protected.
    pub perhaps: Vec<(LeafId, u8)>,
    /// What stands, besides what the statement's own expressions need.
    standing: Vec<Entry>,
    aliases: BTreeMap<Column, BTreeSet<Column>>,
    /// The table whose definition is looked at.
    pub defining: Option<Relation>,
    /// The table that it creates.
    pub creating: Option<Relation>,
}

/// The protected columns of a relation.
pub(crate) fn protected(relation: &Relation) -> impl Iterator<Item = Column> + '_ {
    let columns = relation.columns.iter().flatten();
    let columns = columns.filter(|c| c.ty.protected());
    columns.map(|c| Column::new(&relation.schema, &relation.name, &c.name))
}

fn routine(schema: &str, name: &str) -> Column {
    Column::new(schema, &format!("{name}()"), "*")
}

impl Authority {
    /// The statement names a relation.
    pub fn name(&mut self, relation: &Relation) {
        self.near.extend(protected(relation));
        // The view of all versions of a ledger table, which the server makes with it.
        let table = relation.name.strip_suffix("_ledger");
        if let Some(part) = table.filter(|_| relation.kind == 'v') {
            for of in [part.to_owned(), format!("{part}_history")] {
                let same = protected(relation).map(|c| Column::new(&c.schema, &of, &c.column));
                self.near.extend(same);
            }
        }
    }

    /// It mentions a column.
    pub fn mention(&mut self, column: &str) {
        if !self.mentioned.contains(column) {
            self.mentioned.insert(column.to_owned());
        }
    }

    /// It may mean any column of what it names.
    pub fn mention_all(&mut self) {
        self.all = true;
    }

    /// It writes a column, or all (`None`).
    pub fn write(&mut self, relation: &Relation, column: Option<&str>) {
        let wanted = protected(relation).filter(|c| column.is_none_or(|name| name == c.column));
        self.writes.extend(wanted);
    }

    /// It does something of these kinds with what is protected.
    pub fn does(&mut self, families: u8) {
        self.families |= families;
    }

    /// A plain value meets something protected.
    pub fn takes_plain(&mut self) {
        self.origins |= origin::PLAIN;
    }

    /// It does something of these kinds, if one of the leaves becomes protected.
    pub fn does_perhaps(&mut self, val: &Val, families: u8) {
        let leaves = val.leaves.iter().map(|u| (u.id, families));
        self.perhaps.extend(leaves);
    }

    /// It calls a routine of a user.
    pub fn call(&mut self, schema: &str, name: &str) {
        self.families |= family::ALL;
        self.near.insert(routine(schema, name));
        self.mention("*");
    }

    /// The values of these columns are those of others: of a child, or by a former name.
    pub fn alias(&mut self, column: Column, of: impl IntoIterator<Item = Column>) {
        self.aliases.entry(column).or_default().extend(of);
    }

    /// Columns of one relation by the names of another's.
    pub fn alias_all(&mut self, relation: &Relation, of: &Relation) {
        let pairs: Vec<(Column, Column)> = protected(relation)
            .filter_map(|c| protected(of).find(|o| o.column == c.column).map(|o| (c, o)))
            .collect();
        pairs
            .into_iter()
            .for_each(|(column, other)| self.alias(column, [other]));
    }

    /// A foreign key compares the columns of two tables, and may write the first ones.
    pub fn references(&mut self, from: &Relation, columns: &[&str], to: &Relation) {
        let writes: BTreeSet<Column> = protected(from)
            .filter(|c| columns.contains(&c.column.as_str()))
            .collect();
        if !writes.is_empty() {
            self.standing.push(Entry {
                standing: true,
                origins: 0,
                families: family::COMPARE | family::CAST,
                reads: writes.iter().cloned().chain(protected(to)).collect(),
                writes,
            });
        }
    }

    /// A routine with this text: whatever may be done with the columns that it mentions, but
    /// not with plain values.
    pub fn body(&mut self, name: Option<(&str, &str)>, text: &str, trigger: bool, schema: &Schema) {
        let lower = text.to_ascii_lowercase();
        let split = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
        let words: HashSet<&str> = lower.split(split).chain(text.split(split)).collect();
        let named = |r: &Relation| words.contains(r.name.as_str());
        let relations = || schema.protected_relations().filter(|r| trigger || named(r));
        let all = text.contains('*') || words.contains("record") || words.contains("row");
        let columns: BTreeSet<Column> = relations()
            .flat_map(protected)
            .filter(|c| all || words.contains(c.column.as_str()))
            .collect();
        // `INSERT INTO t VALUES …` names no column.
        let written = relations().filter(|r| named(r)).flat_map(protected);
        let entry = Entry {
            standing: name.is_some(),
            origins: origin::CLIENT,
            families: family::ALL,
            reads: columns.clone(),
            writes: columns.iter().cloned().chain(written).collect(),
        };
        self.standing.push(entry);
        if let Some((schema, name)) = name {
            self.alias(routine(schema, name), columns);
        }
    }

    fn reads(&self) -> BTreeSet<Column> {
        let read = |c: &&Column| self.all || self.mentioned.contains(&c.column);
        self.near.iter().filter(read).cloned().collect()
    }
}

impl Authority {
    /// The grant of a statement that is no definition.
    pub fn statement(self) -> Grant {
        let entry = Entry {
            standing: false,
            origins: self.origins,
            families: self.families,
            reads: self.reads(),
            writes: self.writes,
        };
        let mut entries = self.standing;
        entries.push(entry);
        Grant {
            entries,
            aliases: self.aliases,
            ..Grant::default()
        }
    }

    /// While it runs a definition may rewrite the tables that it names; what it says stands.
    pub fn definition(mut self, effects: &[Effect]) -> Grant {
        let relations = effects.iter().filter_map(|effect| match effect {
            Effect::Relation(relation) => Some(relation),
            _ => None,
        });
        let made: Vec<&Relation> = relations.collect();
        let reads = self.reads();
        let created: BTreeSet<Column> = made.iter().flat_map(|r| protected(r)).collect();
        let kept = made
            .iter()
            .filter(|r| r.kind == 'm')
            .flat_map(|r| protected(r));
        let writes: BTreeSet<Column> = kept.chain(self.writes.iter().cloned()).collect();
        if !reads.is_empty() || !writes.is_empty() {
            self.standing.push(Entry {
                standing: true,
                origins: self.origins | origin::CLIENT,
                families: self.families,
                reads: reads.clone(),
                writes,
            });
        }
        for view in made.iter().filter(|r| r.kind == 'v') {
            for column in protected(view) {
                self.aliases
                    .entry(column)
                    .or_default()
                    .extend(reads.iter().cloned());
            }
        }
        let all: BTreeSet<Column> = self.near.union(&created).cloned().collect();
        self.standing.push(Entry {
            standing: false,
            origins: self.origins | origin::CLIENT | origin::EXPORT,
            families: family::ALL,
            reads: all.clone(),
            writes: all,
        });
        Grant {
            entries: self.standing,
            aliases: self.aliases,
            creates: self.creating.iter().flat_map(protected).collect(),
            claims: BTreeSet::new(),
        }
    }
}
