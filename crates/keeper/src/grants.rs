//! Grants as the keeper uses them: those of a session, and the standing ones of definitions,
//! which hold for all sessions and outlive the keeper.
//!
//! Not here: whose grants these are (`dispatch::authorise` has opened them under the
//! session's key), and what values were made of (`provenance`).
//!
//! Invariants: nothing but a client's grant adds to what is allowed; what stands is on disk
//! before it counts.

mod heard;

use crate::aliases::{Aliases, closure};
use crate::provenance::{CARRIED, Origin, column_id};
use crate::rules::table_of;
use crate::said::Mark;
use crate::sealed_file::SealedFile;
use grant::{Column, Entry, Grant, origin};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::ColumnId;
use values::Error;
use zeroize::Zeroizing;

/// Entries that one session may have at a time, and standing grants of a keeper.
const ENTRIES_MAX: usize = 16_384;
const STANDING_MAX: usize = 65_536;
/// Columns that a value may pass on its way.
const FLOWS_MAX: usize = 4;
/// In the data directory: the standing grants.
pub const FILE: &str = "standing-grants";

/// An entry with its columns' identities.
#[derive(PartialEq, Eq)]
struct Live {
    others: u8,
    families: u8,
    columns: HashSet<ColumnId>,
    writes: HashSet<ColumnId>,
}

impl Live {
    fn of(entry: &Entry, aliases: &Aliases) -> Live {
        let writes = aliases.resolve(&entry.writes);
        Live {
            others: entry.origins,
            families: entry.families,
            columns: aliases
                .resolve(&entry.reads)
                .union(&writes)
                .copied()
                .collect(),
            writes,
        }
    }

    /// A column that it names stands for these from now on: those of a partition, say, that was
    /// made later.
    fn inherit(&mut self, column: &ColumnId, of: &HashSet<ColumnId>) {
        self.columns.extend(of);
        if self.writes.contains(column) {
            self.writes.extend(of);
        }
    }

    fn covers(&self, origin: &Origin, families: u8) -> bool {
        families & !self.families == 0
            && origin.others & !(self.others | CARRIED) == 0
            && origin.columns.iter().all(|c| self.columns.contains(c))
    }

    /// What of these it does not name.
    fn missing(&self, origin: &Origin) -> Origin {
        let columns = origin.columns.iter();
        Origin {
            others: origin.others & !(self.others | CARRIED),
            columns: columns
                .filter(|c| !self.columns.contains(*c))
                .copied()
                .collect(),
        }
    }
}

/// Columns that values may be stored in, also by way of other columns: what is on its way
/// there may be used as if it were stored already, so that a check sees a new row.
struct Flows<'l> {
    entries: Vec<&'l Live>,
    known: HashMap<Origin, HashSet<ColumnId>>,
}

impl Flows<'_> {
    fn of(&mut self, origin: Origin) -> &HashSet<ColumnId> {
        let entries = &self.entries;
        self.known.entry(origin).or_insert_with_key(|origin| {
            let first = entries.iter().filter(|e| e.covers(origin, 0));
            let mut found: HashSet<ColumnId> = first.flat_map(|e| &e.writes).copied().collect();
            for _ in 0..FLOWS_MAX {
                let next = entries.iter().filter(|e| !e.columns.is_disjoint(&found));
                let next: HashSet<ColumnId> = next.flat_map(|e| &e.writes).copied().collect();
                if next.is_subset(&found) {
                    break;
                }
                found.extend(next);
            }
            found
        })
    }
}

/// What the grants of a session allow.
#[derive(Default)]
pub struct Grants {
    entries: Vec<Live>,
}

impl Grants {
    /// Takes in a grant.
    pub fn add(&mut self, grant: &Grant, standing: &Standing) -> Result<(), Error> {
        let inner = standing.read();
        for entry in &grant.entries {
            let live = Live::of(entry, &inner.aliases);
            if self.entries.len() >= ENTRIES_MAX {
                self.entries.clear();
                return Err(crate::fail::program_limit(
                    "The session has too many grants.",
                ));
            }
            if !self.entries.contains(&live) {
                self.entries.push(live);
            }
        }
        Ok(())
    }

    /// Another client begins.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Whether one entry allows this.
    pub fn cover(&self, origin: &Origin, families: u8) -> bool {
        self.entries.iter().any(|e| e.covers(origin, families))
    }

    /// Whether such values may be stored in a column.
    pub fn cover_write(&self, origin: &Origin, column: &ColumnId) -> bool {
        let writes = |e: &&Live| e.writes.contains(column);
        self.entries
            .iter()
            .filter(writes)
            .any(|e| e.covers(origin, 0))
    }
}

/// What definitions that clients made allow, in all sessions.
pub struct Standing {
    file: SealedFile,
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    grants: Vec<Grant>,
    /// Where they stand in the history of what was said.
    mark: Mark,
    live: Grants,
    aliases: Aliases,
    /// Each under its own identity.
    names: HashMap<ColumnId, Column>,
}

impl Inner {
    /// The other columns that a column leads to.
    fn others(
        &self,
        column: &ColumnId,
        step: impl Fn(&Aliases, &ColumnId) -> Vec<ColumnId>,
    ) -> Vec<ColumnId> {
        let mut found = closure([*column].into_iter(), |c| step(&self.aliases, c));
        found.remove(column);
        found.into_iter().collect()
    }

    fn name(&mut self, column: &Column) {
        if self.names.len() < STANDING_MAX {
            let name = self.names.entry(column_id(column));
            name.or_insert_with(|| column.clone());
        }
    }

    fn add(&mut self, grant: Grant) {
        for (column, of) in &grant.aliases {
            let all = self.aliases.0.entry(column_id(column)).or_default();
            all.extend(of.iter().map(column_id));
        }
        let inherited = grant.aliases.keys().map(column_id);
        for column in inherited {
            let of = closure([column].into_iter(), |c| self.aliases.direct(c));
            let about = self.live.entries.iter_mut();
            about
                .filter(|e| e.columns.contains(&column))
                .for_each(|e| e.inherit(&column, &of));
        }
        let named = grant
            .aliases
            .iter()
            .flat_map(|(c, of)| of.iter().chain([c]));
        named.for_each(|column| self.name(column));
        let entries = grant.entries.iter();
        let named = entries.flat_map(|e| e.reads.iter().chain(&e.writes));
        named.for_each(|column| self.name(column));
        for entry in &grant.entries {
            let live = Live::of(entry, &self.aliases);
            if !self.live.entries.contains(&live) {
                self.live.entries.push(live);
            }
        }
        self.mark = self.mark.after(&grant.encode());
        self.grants.push(grant);
    }

    /// A statement together with the definitions that are about its columns: a view, a policy
    /// or a routine may be evaluated in one with the rest of it. Not where plain values or
    /// envelopes take part, which a statement allows for its own columns only.
    fn cover_together(
        &self,
        origin: &Origin,
        families: u8,
        grants: &Grants,
        fits: impl Fn(&Live) -> bool,
    ) -> bool {
        if origin.others & (origin::PLAIN | origin::EXPORT) != 0 {
            return false;
        }
        let mut statements = grants.entries.iter().filter(|e| fits(e));
        statements.any(|statement| {
            let about = |e: &&Live| !e.columns.is_disjoint(&statement.columns);
            let mut left = statement.missing(origin);
            let mut kinds = families & !statement.families;
            for entry in self.live.entries.iter().filter(about) {
                left = entry.missing(&left);
                kinds &= !entry.families;
            }
            left == Origin::default() && kinds == 0
        })
    }

    fn cover_flowing(
        &self,
        origin: &Origin,
        grants: &Grants,
        fits: impl Fn(&Live) -> bool,
    ) -> bool {
        let mut flows = Flows {
            entries: self.live.entries.iter().chain(&grants.entries).collect(),
            known: HashMap::new(),
        };
        let mut fitting = self.live.entries.iter().filter(|e| fits(e));
        fitting.any(|e| !flows.of(e.missing(origin)).is_disjoint(&e.columns))
    }
}

/// The part of a grant that holds for good.
fn lasting(grant: &Grant) -> Grant {
    Grant {
        entries: grant
            .entries
            .iter()
            .filter(|e| e.standing)
            .cloned()
            .collect(),
        aliases: grant.aliases.clone(),
        ..Grant::default()
    }
}

impl Standing {
    /// The standing grants of a keeper with this directory; without one they end with it.
    pub fn open(directory: &Path, root: &Zeroizing<[u8; 32]>) -> Result<Standing, String> {
        let standing = Standing {
            file: SealedFile::new(directory, FILE, root),
            inner: RwLock::new(Inner::default()),
        };
        standing.load()?;
        Ok(standing)
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what of a grant holds for good, once that is noted, and names its columns.
    pub fn add(
        &self,
        grant: &Grant,
        note: impl FnOnce(&Grant) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let lasting = lasting(grant);
        let mut inner = self.write();
        let entries = grant.entries.iter();
        entries
            .flat_map(|e| e.reads.iter().chain(&e.writes))
            .for_each(|c| inner.name(c));
        if lasting.is_empty() || inner.grants.contains(&lasting) {
            return Ok(());
        }
        if inner.grants.len() >= STANDING_MAX {
            return Err(crate::fail::program_limit(
                "There are too many standing grants.",
            ));
        }
        note(&lasting)?;
        self.save(inner.grants.iter().chain([&lasting]))?;
        inner.add(lasting);
        Ok(())
    }

    /// Remembers a column's name, for errors.
    pub fn name(&self, column: &Column) {
        self.write().name(column);
    }

    /// What a column is called, as far as anybody has said.
    pub fn name_of(&self, column: &ColumnId) -> Option<Column> {
        self.read().names.get(column).cloned()
    }

    /// Whether a column's table is the history of some table, by its name.
    pub fn is_of_history(&self, column: &ColumnId) -> bool {
        let names = &self.read().names;
        names.get(column).and_then(table_of).is_some()
    }

    /// Whether a column is the same one of the history of another's table, by their names.
    pub fn is_history_of(&self, history: &ColumnId, column: &ColumnId) -> bool {
        let names = &self.read().names;
        let both = names.get(history).zip(names.get(column));
        both.is_some_and(|(history, column)| {
            table_of(history) == Some(column.relation.as_str())
                && (&history.schema, &history.column) == (&column.schema, &column.column)
        })
    }

    /// Whether any definition is about a column already.
    pub fn mentions(&self, column: &ColumnId) -> bool {
        let inner = self.read();
        let entries = &inner.live.entries;
        let aliased =
            |(name, of): (&ColumnId, &HashSet<ColumnId>)| name == column || of.contains(column);
        entries.iter().any(|e| e.columns.contains(column)) || inner.aliases.0.iter().any(aliased)
    }

    /// What stands for a column, also by way of others: parents of its table, later names.
    pub fn standing_for(&self, column: &ColumnId) -> Vec<ColumnId> {
        self.read().others(column, Aliases::names)
    }

    /// What a column stands for besides itself, also by way of others: its former names, mostly.
    pub fn former(&self, column: &ColumnId) -> Vec<ColumnId> {
        self.read().others(column, Aliases::direct)
    }

    /// Whether a column is another one by another name, that of a child or a former one.
    pub fn stands_for(&self, column: &ColumnId, other: &ColumnId) -> bool {
        let inner = self.read();
        closure([*column].into_iter(), |c| inner.aliases.direct(c)).contains(other)
    }

    /// Whether one standing entry allows this, of values as they are, or as columns that a
    /// session with these grants may store them in.
    pub fn cover(&self, origin: &Origin, families: u8, grants: &Grants) -> bool {
        let inner = self.read();
        inner.live.cover(origin, families)
            || inner.cover_flowing(origin, grants, |e| families & !e.families == 0)
            || inner.cover_together(origin, families, grants, |_| true)
    }

    /// Whether a definition allows this by itself, whatever statement runs.
    pub fn cover_always(&self, origin: &Origin, families: u8) -> bool {
        self.read().live.cover(origin, families)
    }

    /// Whether such values may be stored in a column.
    pub fn cover_write(&self, origin: &Origin, column: &ColumnId, grants: &Grants) -> bool {
        let inner = self.read();
        inner.live.cover_write(origin, column)
            || inner.cover_flowing(origin, grants, |e| e.writes.contains(column))
            || inner.cover_together(origin, 0, grants, |e| e.writes.contains(column))
    }

    fn save<'g>(&self, grants: impl Iterator<Item = &'g Grant>) -> Result<(), Error> {
        let mut plain = Vec::new();
        for grant in grants {
            let bytes = grant.encode();
            plain.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            plain.extend_from_slice(&bytes);
        }
        self.file.write(&plain).map_err(|what| {
            tracing::error!("cannot write the standing grants: {what}");
            Error::new(
                b"58030",
                "confide: the keeper cannot keep a definition's grant",
            )
        })
    }

    fn load(&self) -> Result<(), String> {
        let plain = self.file.read()?;
        let altered = || self.file.altered();
        let mut rest = plain.as_slice();
        let mut inner = self.write();
        while let Some((length, tail)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let (bytes, tail) = tail.split_at_checked(length).ok_or_else(altered)?;
            inner.add(Grant::decode(bytes).map_err(|_| altered())?);
            rest = tail;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grant::family;
    use std::collections::BTreeSet;

    fn column(relation: &str, name: &str) -> Column {
        Column::new("public", relation, name)
    }

    fn entry(standing: bool, reads: &[&Column]) -> Entry {
        Entry {
            standing,
            origins: origin::CLIENT,
            families: family::COMPARE,
            reads: reads.iter().copied().cloned().collect(),
            writes: BTreeSet::new(),
        }
    }

    fn of(others: u8, columns: &[&Column]) -> Origin {
        let columns = columns.iter().map(|c| column_id(c)).collect();
        Origin { others, columns }
    }

    /// Only what one entry names, in all respects, is covered.
    #[test]
    fn covering() -> Result<(), String> {
        let standing = Standing::open(Path::new(""), &Zeroizing::new([1; 32]))?;
        let (a, b, c) = (column("t", "a"), column("t", "b"), column("t", "c"));
        let grant = Grant {
            entries: vec![entry(false, &[&a, &b]), entry(false, &[&c])],
            ..Grant::default()
        };
        let mut grants = Grants::default();
        grants
            .add(&grant, &standing)
            .map_err(|e| e.message.to_string())?;
        let compare = |origin| grants.cover(&origin, family::COMPARE);
        assert!(compare(of(origin::CLIENT, &[&a, &b])));
        assert!(!compare(of(0, &[&b, &c])));
        assert!(!compare(of(origin::PLAIN, &[&a])));
        assert!(!compare(of(crate::provenance::UNNAMED, &[])));
        assert!(!grants.cover(&of(0, &[&a]), family::COMPUTE));
        assert!(!grants.cover_write(&of(0, &[]), &column_id(&a)));
        Ok(())
    }

    /// What stands is there after a restart, and nothing else; a view's columns stand for
    /// those below it, through other views too.
    #[test]
    fn standing() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let (a, b) = (column("t", "a"), column("t", "b"));
        let (v, w) = (column("v", "x"), column("w", "x"));
        let aliases = [(w.clone(), [v.clone()].into()), (v, [a.clone()].into())];
        let grant = Grant {
            entries: vec![entry(true, &[&a]), entry(false, &[&b])],
            aliases: aliases.into(),
            ..Grant::default()
        };
        let first = Standing::open(dir.path(), &root)?;
        first
            .add(&grant, |_| Ok(()))
            .map_err(|e| e.message.to_string())?;
        let again = Standing::open(dir.path(), &root)?;
        let none = Grants::default();
        assert!(again.cover(&of(origin::CLIENT, &[&a]), family::COMPARE, &none));
        assert!(!again.cover(&of(0, &[&b]), family::COMPARE, &none));
        let mut grants = Grants::default();
        let view = Grant {
            entries: vec![entry(false, &[&w])],
            ..Grant::default()
        };
        grants
            .add(&view, &again)
            .map_err(|e| e.message.to_string())?;
        assert!(grants.cover(&of(0, &[&a]), family::COMPARE));
        assert!(Standing::open(dir.path(), &Zeroizing::new([2; 32])).is_err());
        Ok(())
    }

    /// A check of a column sees what a statement may store there, before it is stored; but no
    /// kind of operation, and no other value, that the two do not allow. With the bug an
    /// INSERT from another table fails at the check, or a check compares anything.
    #[test]
    fn on_the_way() -> Result<(), String> {
        let standing = Standing::open(Path::new(""), &Zeroizing::new([1; 32]))?;
        let (a, b, c, d) = (
            column("t", "a"),
            column("t", "b"),
            column("t", "c"),
            column("t", "d"),
        );
        let mut copy = entry(true, &[&b]);
        copy.writes = [c.clone()].into();
        let grant = Grant {
            entries: vec![entry(true, &[&b]), copy, entry(true, &[&c, &d])],
            ..Grant::default()
        };
        standing
            .add(&grant, |_| Ok(()))
            .map_err(|e| e.message.to_string())?;
        let mut grants = Grants::default();
        let write = Entry {
            standing: false,
            origins: origin::PLAIN,
            families: 0,
            reads: [a.clone()].into(),
            writes: [b.clone()].into(),
        };
        let asked =
            |origin: &Origin, grants: &Grants| standing.cover(origin, family::COMPARE, grants);
        let value = of(origin::PLAIN, &[&a]);
        assert!(!asked(&value, &grants));
        let one = Grant {
            entries: vec![write],
            ..Grant::default()
        };
        grants
            .add(&one, &standing)
            .map_err(|e| e.message.to_string())?;
        assert!(asked(&value, &grants));
        assert!(asked(&of(0, &[&a, &d]), &grants));
        assert!(asked(&of(0, &[&a, &b]), &grants));
        assert!(!asked(&of(origin::EXPORT, &[&a]), &grants));
        assert!(!asked(&of(0, &[&a, &column("t", "e")]), &grants));
        assert!(!standing.cover(&value, family::COMPUTE, &grants));
        assert!(standing.cover_write(&value, &column_id(&c), &grants));
        assert!(!standing.cover_write(&value, &column_id(&d), &grants));
        Ok(())
    }

    /// What a statement makes of a view may be asked for as one thing with what the view does;
    /// but a view about other columns adds nothing, nor does one let plain values meet more.
    #[test]
    fn together() -> Result<(), String> {
        let standing = Standing::open(Path::new(""), &Zeroizing::new([1; 32]))?;
        let (a, b, c) = (column("t", "a"), column("t", "b"), column("t", "c"));
        let other = Entry {
            families: family::PATTERN,
            ..entry(true, &[&c])
        };
        let grant = Grant {
            entries: vec![entry(true, &[&a, &b]), other],
            ..Grant::default()
        };
        standing
            .add(&grant, |_| Ok(()))
            .map_err(|e| e.message.to_string())?;
        let statement = |origins| Entry {
            origins,
            families: family::AGGREGATE,
            ..entry(false, &[&a])
        };
        let mut grants = Grants::default();
        let one = Grant {
            entries: vec![statement(origin::PLAIN)],
            ..Grant::default()
        };
        grants
            .add(&one, &standing)
            .map_err(|e| e.message.to_string())?;
        let both = family::COMPARE | family::AGGREGATE;
        let asked = |origin: Origin, families| standing.cover(&origin, families, &grants);
        assert!(asked(of(origin::CLIENT, &[&a, &b]), both));
        assert!(!asked(of(origin::PLAIN, &[&a, &b]), both));
        assert!(!asked(of(origin::CLIENT, &[&a, &c]), both));
        assert!(!asked(of(origin::CLIENT, &[&a]), both | family::PATTERN));
        Ok(())
    }
}
