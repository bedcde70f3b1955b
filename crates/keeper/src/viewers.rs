//! Who sees a column: its owners, one after the other, its viewers, who is denied, and what
//! others are shown. A principal is a client, by the name in the file of authorised clients.
//!
//! Not here: when somebody asks (`dispatch::viewing`).
//!
//! Invariants: a column that nobody has claimed is everybody's who is authorised; one that was
//! claimed has an owner for good; what was said is on disk before it counts. Each change has a
//! number, which the audit log has, too: an older copy of the file is not taken.

use crate::fail;
use crate::masks::Mask;
use crate::provenance::column_id;
use crate::sealed_file::SealedFile;
use grant::{Column, Command, Verb};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use store::ColumnId;
use values::Error;
use zeroize::Zeroizing;

/// In the data directory.
pub const FILE: &str = "viewers";
/// More columns are not claimed.
const CLAIMED_MAX: usize = 65_536;
/// What the line with the number of the last change begins with; no schema is called so.
const NUMBER: &str = "\u{2}";

/// What is known of a claimed column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    column: Column,
    /// The last one is the owner.
    owners: Vec<String>,
    viewers: BTreeSet<String>,
    denied: BTreeSet<String>,
    mask: Mask,
}

impl Rule {
    /// That of a column that gets its first owner.
    fn of(command: &Command) -> Rule {
        Rule {
            column: command.column.clone(),
            owners: vec![command.word.clone()],
            viewers: BTreeSet::new(),
            denied: BTreeSet::new(),
            mask: Mask::Default,
        }
    }
}

fn refused(what: &'static str, hint: &'static str) -> Error {
    Error::new(b"42501", "confide: only a column's owner says who sees it")
        .detail(what)
        .hint(hint)
}

/// A column's name was somebody's before.
fn taken(column: &Column) -> Error {
    Error::new(b"42501", "confide: the column is another principal's")
        .detail(format!(
            "{column} has an owner, or held values before it was created."
        ))
        .hint("Take another name, or have its owner or an administrator say GRANT OWNER.")
}

/// What holds.
#[derive(Clone, Default)]
struct Rules {
    by_column: HashMap<ColumnId, Rule>,
    /// Number of the last change.
    number: u64,
}

/// All claimed columns.
pub struct Viewers {
    file: SealedFile,
    administrators: Vec<String>,
    rules: RwLock<Rules>,
    any: AtomicBool,
}

impl Viewers {
    /// Those of a keeper with this directory.
    pub fn open(
        directory: &Path,
        root: &Zeroizing<[u8; 32]>,
        administrators: &[String],
    ) -> Result<Viewers, String> {
        let file = SealedFile::new(directory, FILE, root);
        let plain = file.read()?;
        let text = std::str::from_utf8(&plain).map_err(|_| file.altered())?;
        let mut rules = Rules::default();
        for line in text.split_terminator('\u{1}') {
            if let Some(number) = line.strip_prefix(NUMBER) {
                rules.number = number.parse().map_err(|_| file.altered())?;
                continue;
            }
            let rule = read(line).ok_or_else(|| file.altered())?;
            rules.by_column.insert(column_id(&rule.column), rule);
        }
        Ok(Viewers {
            file,
            administrators: administrators.to_vec(),
            any: AtomicBool::new(!rules.by_column.is_empty()),
            rules: RwLock::new(rules),
        })
    }

    /// The audit log knows of the change with this number, or of none (0). A keeper that was
    /// killed between the two has a change that the log lacks: it counts, and is noted now.
    ///
    /// # Errors
    /// The file is older than that.
    pub fn goes_on(
        &self,
        known: u64,
        note: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), String> {
        let number = self.write_rules().number;
        if number < known {
            return Err(format!(
                "who sees which column (\"{FILE}\") is older than the audit log: change {number} of \
                 {known}. Put the newest copy of the file back, or say that it is lost: --accept-backup"
            ));
        }
        match number > known && known > 0 {
            true => note(number).map_err(|e| e.message.into_owned()),
            false => Ok(()),
        }
    }

    /// Whether any column was claimed.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// What somebody is shown instead of a column's values; none: what they are.
    pub fn hides(&self, column: &ColumnId, name: &str) -> Option<Mask> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let rule = rules.by_column.get(column)?;
        let owns = rule.owners.last().is_some_and(|owner| owner == name);
        let views = rule.viewers.contains(name) && !rule.denied.contains(name);
        (!owns && !views).then(|| rule.mask.clone())
    }

    /// Whether somebody may ask what was told of a column: its owner, an administrator; of a column
    /// without an owner everybody.
    pub fn may_ask(&self, column: &ColumnId, name: &str) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let rule = rules.by_column.get(column);
        rule.is_none_or(|rule| rule.owners.last().is_some_and(|owner| owner == name))
            || self.administrators.iter().any(|other| other == name)
    }

    /// Carries out what a client has said, once it is noted.
    pub fn tell(
        &self,
        command: &Command,
        by: &str,
        note: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rules = self.write_rules();
        if rules.by_column.len() >= CLAIMED_MAX {
            return Err(fail::program_limit("Too many columns have owners."));
        }
        let id = column_id(&command.column);
        let rule = self.changed(rules.by_column.get(&id), command, by)?;
        let mut next = rules.clone();
        next.by_column.insert(id, rule);
        next.number += 1;
        self.save(&next)?;
        note(next.number)?;
        *rules = next;
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    /// A client creates columns: they are its own, if nobody has them and they are new. One that
    /// has an owner, or may hold values of somebody else's, is left; if it is claimed, the
    /// statement is refused.
    pub fn create(
        &self,
        (creates, claims): (&BTreeSet<Column>, &BTreeSet<Column>),
        by: &str,
        is_new: impl Fn(&Column, &ColumnId) -> bool,
        note: impl Fn(&Command, u64) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut rules = self.write_rules();
        let mut next = rules.clone();
        let mut commands = Vec::new();
        for column in claims.union(creates) {
            let id = column_id(column);
            let owner = next.by_column.get(&id).map(|rule| rule.owners.last());
            match owner {
                Some(owner) if owner.is_some_and(|owner| owner == by) => continue,
                None if is_new(column, &id) && next.by_column.len() < CLAIMED_MAX => {}
                _ if !claims.contains(column) => continue,
                _ => return Err(taken(column)),
            }
            let command = Command {
                verb: Verb::GrantOwner,
                column: column.clone(),
                word: by.to_owned(),
            };
            next.by_column.insert(id, Rule::of(&command));
            next.number += 1;
            commands.push((command, next.number));
        }
        let changed = !commands.is_empty();
        if changed {
            self.save(&next)?;
            commands
                .iter()
                .try_for_each(|(command, at)| note(command, *at))?;
            *rules = next;
            self.any.store(true, Ordering::Release);
        }
        Ok(changed)
    }

    fn write_rules(&self) -> RwLockWriteGuard<'_, Rules> {
        self.rules.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, rules: &Rules) -> Result<(), Error> {
        let mut text = format!("{NUMBER}{}\u{1}", rules.number);
        text.extend(rules.by_column.values().map(write));
        self.file.write(text.as_bytes()).map_err(|what| {
            tracing::error!("cannot write who sees what: {what}");
            Error::new(
                b"58030",
                "confide: the keeper cannot note who sees a column",
            )
        })
    }

    /// The rule of a column that had no owner.
    fn claimed(&self, command: &Command, by: &str) -> Result<Rule, Error> {
        let Command { verb, word, .. } = command;
        let administers = self.administrators.iter().any(|name| name == by);
        let own = self.administrators.is_empty() && by == word;
        if *verb != Verb::GrantOwner || !(administers || own) {
            return Err(refused(
                "The column has no owner.",
                "GRANT OWNER schema.table.column TO a principal first.",
            ));
        }
        Ok(Rule::of(command))
    }

    fn changed(&self, rule: Option<&Rule>, command: &Command, by: &str) -> Result<Rule, Error> {
        let Command { verb, word, .. } = command;
        let administers = self.administrators.iter().any(|name| name == by);
        let Some(rule) = rule else {
            return self.claimed(command, by);
        };
        let mut rule = rule.clone();
        let word = word.clone();
        if *verb == Verb::RevokeOwner {
            if !administers || rule.owners.len() < 2 {
                return Err(refused(
                    "REVOKE OWNER undoes the last GRANT OWNER, and is an administrator's.",
                    "See \"administrators\" in the keeper's configuration.",
                ));
            }
            rule.owners.pop();
            return Ok(rule);
        }
        if rule.owners.last().is_none_or(|owner| owner != by) {
            return Err(refused(
                "The column is another principal's.",
                "Ask its owner.",
            ));
        }
        match verb {
            Verb::GrantViewer => {
                rule.denied.remove(&word);
                rule.viewers.insert(word);
            }
            Verb::DenyViewer => {
                rule.denied.insert(word);
            }
            Verb::RevokeViewer => {
                rule.denied.remove(&word);
                rule.viewers.remove(&word);
            }
            Verb::Mask => {
                rule.mask = Mask::read(&word).ok_or_else(|| {
                    Error::new(b"22023", "confide: there is no such mask")
                        .hint("default, constant(text), partial(2,text,4) or noise(100)")
                })?;
            }
            Verb::GrantOwner => {
                rule.viewers.insert(by.to_owned());
                rule.owners.push(word);
            }
            Verb::RevokeOwner => {}
        }
        Ok(rule)
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
    Some(Rule {
        column,
        mask,
        owners: list()?,
        viewers: list()?.into_iter().collect(),
        denied: list()?.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(viewers: &Viewers, by: &str, verb: Verb, word: &str) -> bool {
        let command = Command {
            verb,
            column: Column::new("s", "t", "pay"),
            word: word.into(),
        };
        viewers.tell(&command, by, |_| Ok(())).is_ok()
    }

    fn hidden(viewers: &Viewers, name: &str) -> bool {
        let id = column_id(&Column::new("s", "t", "pay"));
        viewers.hides(&id, name).is_some()
    }

    /// The chain of owners and who sees what, also after a restart; with a bug somebody who
    /// was not named sees the column, or says who does.
    #[test]
    fn owners_and_viewers() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = || Viewers::open(dir.path(), &root, &["root".to_owned()]);
        let all = open()?;
        assert!(!hidden(&all, "bob"));
        assert!(!say(&all, "ann", Verb::GrantOwner, "ann"));
        assert!(say(&all, "root", Verb::GrantOwner, "ann"));
        assert!(hidden(&all, "bob") && hidden(&all, "root") && !hidden(&all, "ann"));
        assert!(!say(&all, "bob", Verb::GrantViewer, "bob"));
        assert!(!say(&all, "root", Verb::GrantViewer, "root"));
        assert!(say(&all, "ann", Verb::GrantViewer, "bob"));
        assert!(!hidden(&open()?, "bob"));
        assert!(say(&all, "ann", Verb::DenyViewer, "bob"));
        assert!(hidden(&open()?, "bob"));
        assert!(say(&all, "ann", Verb::GrantViewer, "bob"));
        assert!(say(&all, "ann", Verb::RevokeViewer, "bob"));
        assert!(hidden(&all, "bob"));
        assert!(say(&all, "ann", Verb::GrantOwner, "bob"));
        assert!(!hidden(&all, "bob") && !hidden(&all, "ann"));
        assert!(!say(&all, "ann", Verb::GrantViewer, "eve"));
        assert!(!say(&all, "bob", Verb::RevokeOwner, ""));
        assert!(say(&all, "root", Verb::RevokeOwner, ""));
        assert!(!say(&all, "root", Verb::RevokeOwner, ""));
        assert!(say(&open()?, "ann", Verb::GrantViewer, "eve"));
        assert!(hidden(&open()?, "bob"));
        Ok(())
    }

    /// An older copy of the file is not taken, a newer one is noted; with the bug who was
    /// revoked is a viewer again.
    #[test]
    fn older_copies() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = || Viewers::open(dir.path(), &root, &[]);
        let all = open()?;
        assert!(say(&all, "ann", Verb::GrantOwner, "ann"));
        assert!(say(&all, "ann", Verb::GrantViewer, "bob"));
        assert!(open()?.goes_on(3, |_| Ok(())).is_err());
        assert!(open()?.goes_on(2, |_| Err(fail::internal("noted"))).is_ok());
        let mut noted = 0;
        open()?.goes_on(1, |number| {
            noted = number;
            Ok(())
        })?;
        assert_eq!(noted, 2);
        assert!(open()?.goes_on(0, |_| Err(fail::internal("noted"))).is_ok());
        Ok(())
    }
}
