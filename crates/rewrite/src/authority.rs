//! Collects what a statement may do with protected values, for its grant (docs/security.md), while
//! its expressions are inferred.
//!
//! A statement is covered by a single entry: all protected columns that it mentions, of the
//! relations that it names, with the kinds of operations that it contains. What a definition does
//! later (a check, default, index, view, policy or routine) has separate entries, which are
//! standing.
//!
//! Invariant: plain values take part only where the text combines a plain expression with a
//! protected one, or casts it to a protected type.

use crate::effect::Effect;
use crate::relation::Relation;
use crate::schema::Schema;
use crate::value::{LeafId, Val};
use contract::message::derived;
use grant::{Column, Entry, Grant, family, origin};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Collected during the analysis of a statement.
#[derive(Default)]
pub(crate) struct Authority {
    /// Protected columns of the relations that it names.
    near: BTreeSet<Column>,
    /// Names that it mentions as columns.
    mentioned: HashSet<String>,
    /// It may refer to columns that it does not mention: `*`, whole rows, renamed columns.
    all: bool,
    pub writes: BTreeSet<Column>,
    /// Protected columns of the tables whose rows it changes.
    changed: BTreeSet<Column>,
    pub families: u8,
    pub origins: u8,
    /// Operations that count if these leaves turn out to be protected.
    pub perhaps: Vec<(LeafId, u8)>,
    /// Standing entries, in addition to what the statement's own expressions need.
    standing: Vec<Entry>,
    aliases: BTreeMap<Column, BTreeSet<Column>>,
    /// The table whose definition is being analysed.
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

/// Words of a routine that may end in a message with values.
const SPEAKS: [&str; 8] = [
    "raise", "assert", "insert", "update", "delete", "merge", "execute", "call",
];

fn routine(schema: &str, name: &str) -> Column {
    Column::new(schema, &format!("{name}()"), "*")
}

impl Authority {
    /// Records that the statement names a relation.
    pub fn name(&mut self, relation: &Relation) {
        self.near.extend(protected(relation));
        // The view of all versions of a ledger table, which the server creates with the table.
        let table = relation.name.strip_suffix("_ledger");
        if let Some(part) = table.filter(|_| relation.kind == 'v') {
            for of in [part.to_owned(), format!("{part}_history")] {
                let same = protected(relation).map(|c| Column::new(&c.schema, &of, &c.column));
                self.near.extend(same);
            }
        }
    }

    /// Records that it mentions a column.
    pub fn mention(&mut self, column: &str) {
        if !self.mentioned.contains(column) {
            self.mentioned.insert(column.to_owned());
        }
    }

    /// Records that it may refer to any column of the relations it names.
    pub fn mention_all(&mut self) {
        self.all = true;
    }

    /// Records that it writes a column, or all columns (`None`).
    pub fn write(&mut self, relation: &Relation, column: Option<&str>) {
        let wanted = protected(relation).filter(|c| column.is_none_or(|name| name == c.column));
        self.writes.extend(wanted);
    }

    /// Records that it changes rows of a table, which constraints may refuse.
    pub fn change(&mut self, relation: &Relation) {
        self.changed.extend(protected(relation));
    }

    /// Records operations of these kinds on protected values.
    pub fn does(&mut self, families: u8) {
        self.families |= families;
    }

    /// Records that a plain value is combined with a protected one.
    pub fn takes_plain(&mut self) {
        self.origins |= origin::PLAIN;
    }

    /// Records that constants are sealed which are no leaves.
    pub fn takes_constants(&mut self) {
        self.origins |= origin::CLIENT;
    }

    /// Records operations of these kinds in case one of the leaves becomes protected.
    pub fn does_perhaps(&mut self, val: &Val, families: u8) {
        let leaves = val.leaves.iter().map(|u| (u.id, families));
        self.perhaps.extend(leaves);
    }

    /// Records a call of a user's routine.
    pub fn call(&mut self, schema: &str, name: &str) {
        self.families |= family::ALL;
        self.near.insert(routine(schema, name));
        self.mention("*");
    }

    /// The values of these columns come from other ones: those of a child table, or under a former
    /// name.
    pub fn alias(&mut self, column: Column, of: impl IntoIterator<Item = Column>) {
        self.aliases.entry(column).or_default().extend(of);
    }

    /// The same for all columns of a relation that have equal names in another one.
    pub fn alias_all(&mut self, relation: &Relation, of: &Relation) {
        let pairs: Vec<(Column, Column)> = protected(relation)
            .filter_map(|c| protected(of).find(|o| o.column == c.column).map(|o| (c, o)))
            .collect();
        pairs
            .into_iter()
            .for_each(|(column, other)| self.alias(column, [other]));
    }

    /// A domain's checks see the values of the columns of its type.
    pub fn of_domains(&mut self, relation: &Relation) {
        for column in relation.columns.iter().flatten() {
            if let Some(domain) = &column.domain {
                let own = Column::new(&relation.schema, &relation.name, &column.name);
                self.alias(domain.clone(), [own]);
            }
        }
    }

    /// What follows is part of a domain's definition. Its default is written to columns of its type.
    pub fn define_domain(&mut self, domain: &Column, default: bool) {
        self.near.insert(domain.clone());
        self.mention("*");
        if default {
            self.writes.insert(domain.clone());
        }
    }

    /// An expression of an index follows. Returns what was mentioned before, for
    /// [`Self::end_index`].
    pub fn begin_index(&mut self) -> HashSet<String> {
        std::mem::take(&mut self.mentioned)
    }

    /// The index keeps what its expression makes of the columns that it mentions. What is made of
    /// several has a name of its own, which consists of theirs in order.
    pub fn end_index(&mut self, relation: &Relation, before: HashSet<String>) {
        let mentioned = std::mem::replace(&mut self.mentioned, before);
        let of: BTreeSet<Column> = protected(relation)
            .filter(|c| mentioned.contains(&c.column))
            .collect();
        self.mentioned.extend(mentioned);
        if of.len() > 1 {
            let mark = char::from(derived::MARK);
            let name: String = of
                .iter()
                .flat_map(|c| [mark.to_string(), c.column.clone()])
                .collect();
            self.alias(Column::new(&relation.schema, &relation.name, &name), of);
        }
    }

    /// A foreign key compares columns of two tables and may write the referencing ones.
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

    /// A routine with this text may do anything with the columns that it mentions, except combine
    /// them with plain values.
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
        // `INSERT INTO t VALUES ...` names no columns.
        let written = relations().filter(|r| named(r)).flat_map(protected);
        // It quotes values in messages only if it raises some, or if constraints may.
        let speaks = SPEAKS.iter().any(|word| words.contains(word));
        let entry = Entry {
            standing: name.is_some(),
            origins: origin::CLIENT,
            families: family::ALL & if speaks { u8::MAX } else { !family::QUOTE },
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
    /// The grant of a statement that is not a definition.
    pub fn statement(self) -> Grant {
        let entry = Entry {
            standing: false,
            origins: self.origins,
            families: self.families,
            reads: self.reads(),
            writes: self.writes,
        };
        let mut entries = self.standing;
        if !self.changed.is_empty() {
            // A constraint's message quotes the row, or its key.
            entries.push(Entry {
                families: family::SHOW | family::QUOTE,
                reads: entry.reads.union(&self.changed).cloned().collect(),
                writes: BTreeSet::new(),
                ..entry.clone()
            });
        }
        entries.push(entry);
        Grant {
            entries,
            aliases: self.aliases,
            ..Grant::default()
        }
    }

    /// While a definition runs, it may rewrite the tables it names. What it defines is standing.
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
