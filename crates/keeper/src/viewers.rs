//! Who sees a column: its owners, one after the other, its viewers, who is denied, and what
//! others are shown. A principal is a client, by the name in the file of authorised clients.
//!
//! Not here: when somebody asks (`dispatch::viewing`).
//!
//! Invariants: a column that nobody has claimed is everybody's who is authorised; one that was
//! claimed has an owner for good; what was said is on disk before it counts. Each change has a
//! number, which the audit log has, too: an older copy of the file is not taken.

mod heard;

use crate::fail;
use crate::limits::Budget;
use crate::masks::Mask;
use crate::provenance::column_id;
use crate::rules::{Rule, Rules};
use crate::sealed_file::SealedFile;
use grant::{Column, Command, GROUP, Verb};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::ColumnId;
use values::Error;
use zeroize::Zeroizing;

/// In the data directory.
pub const FILE: &str = "viewers";
/// More columns are not claimed.
const CLAIMED_MAX: usize = 65_536;
/// Nor do more bytes go into one redo record.
const LOGGED_MAX: usize = 3 * 1024 * 1024;
/// More groups there are not.
const GROUPS_MAX: usize = 4096;

/// Who changes what owners do not.
#[derive(Default)]
pub struct Administrators {
    /// Their names.
    pub names: Vec<String>,
    /// So many of them give a column another owner; 0: they do not.
    pub quorum: u32,
}

impl Administrators {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
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
            "{column} has an owner, held values or was in somebody's definition before it was created."
        ))
        .hint("Take another name, or have its owner or an administrator say GRANT OWNER.")
}

/// All claimed columns.
pub struct Viewers {
    file: SealedFile,
    administrators: Administrators,
    rules: RwLock<Rules>,
    any: AtomicBool,
    /// Whether any column has a budget.
    limited: AtomicBool,
}

impl Viewers {
    /// Those of a keeper with this directory.
    pub fn open(
        directory: &Path,
        root: &Zeroizing<[u8; 32]>,
        administrators: Administrators,
    ) -> Result<Viewers, String> {
        let file = SealedFile::new(directory, FILE, root);
        let plain = file.read()?;
        let text = std::str::from_utf8(&plain).map_err(|_| file.altered())?;
        let rules = Rules::read(text).ok_or_else(|| file.altered())?;
        Ok(Viewers {
            file,
            administrators,
            any: AtomicBool::new(rules.claimed() > 0),
            limited: AtomicBool::new(rules.has_budgets()),
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

    /// Whether a column was claimed by this name itself.
    pub fn owns(&self, column: &ColumnId) -> bool {
        let rules = self.read_rules();
        rules.own(column).is_some()
    }

    /// The column whose rule this one goes by, if there is one: itself, or that of a ledger table.
    pub fn ruled_by(&self, column: &ColumnId) -> Option<Column> {
        let rules = self.read_rules();
        rules.of(column).map(|rule| rule.column.clone())
    }

    /// What somebody is shown instead of a column's values; none: what they are.
    pub fn hides(&self, column: &ColumnId, name: &str) -> Option<Mask> {
        let rules = self.read_rules();
        let rule = rules.of(column)?;
        (!rule.shows(name, &rules.groups)).then(|| rule.mask.clone())
    }

    /// Whether somebody may ask what was told of a column: its owner, an administrator; of a column
    /// without an owner everybody.
    pub fn may_ask(&self, column: &ColumnId, name: &str) -> bool {
        let rules = self.read_rules();
        let rule = rules.of(column);
        rule.is_none_or(|rule| rule.owners.last().is_some_and(|owner| owner == name))
            || self.administrators.has(name)
    }

    /// Whether any column has a budget.
    #[inline]
    pub fn has_budgets(&self) -> bool {
        self.limited.load(Ordering::Acquire)
    }

    /// A column's budget, if it has one.
    pub fn budget(&self, column: &ColumnId) -> Option<Budget> {
        let rules = self.read_rules();
        rules.of(column).and_then(|rule| rule.budget)
    }

    /// Carries out what a client has said, once it is noted.
    pub fn tell(
        &self,
        command: &Command,
        by: &str,
        note: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rules = self.write_rules();
        if rules.claimed() >= CLAIMED_MAX {
            return Err(fail::program_limit("Too many columns have owners."));
        }
        let mut next = rules.clone();
        next.number += 1;
        match command.verb {
            Verb::GroupAdd | Verb::GroupRemove => self.regroup(&mut next, command, by)?,
            Verb::Recover => self.vote(&mut next, command, by)?,
            _ => {
                let id = column_id(&command.column);
                let mut rule = self.changed(rules.own(&id), command, by)?;
                if let Some(budget) = &mut rule.budget
                    && command.verb == Verb::Budget
                {
                    budget.epoch = next.number;
                }
                // Its owner is not gone, or another one is there.
                next.votes
                    .retain(|(column, _), _| *column != command.column);
                next.put(rule);
            }
        }
        self.save(&next)?;
        note(next.number)?;
        self.limited.store(next.has_budgets(), Ordering::Release);
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
            let owner = next.of(&id).map(|rule| rule.owners.last());
            match owner {
                Some(owner) if owner.is_some_and(|owner| owner == by) => continue,
                None if is_new(column, &id) && next.claimed() < CLAIMED_MAX => {}
                _ if !claims.contains(column) => continue,
                _ => return Err(taken(column)),
            }
            let command = Command {
                verb: Verb::GrantOwner,
                column: column.clone(),
                word: by.to_owned(),
            };
            next.put(Rule::of(&command));
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

    pub(crate) fn read_rules(&self) -> RwLockReadGuard<'_, Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write_rules(&self) -> RwLockWriteGuard<'_, Rules> {
        self.rules.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn save(&self, rules: &Rules) -> Result<(), Error> {
        let text = rules.text();
        if text.len() > LOGGED_MAX {
            return Err(fail::program_limit(
                "Too many columns have owners and viewers.",
            ));
        }
        self.file.write(text.as_bytes()).map_err(|what| {
            tracing::error!("cannot write who sees what: {what}");
            Error::new(
                b"58030",
                "confide: the keeper cannot note who sees a column",
            )
        })
    }

    /// Somebody comes into a group or out of it, as an administrator says.
    fn regroup(&self, rules: &mut Rules, command: &Command, by: &str) -> Result<(), Error> {
        if !self.administrators.has(by) {
            return Err(refused(
                "Who is in a group is an administrator's.",
                "See \"administrators\" in the keeper's configuration.",
            ));
        }
        let (group, word) = (&command.column.column, &command.word);
        if group.is_empty() || word.is_empty() || rules.groups.len() >= GROUPS_MAX {
            return Err(Error::new(
                b"22023",
                "confide: there is no such group, or there are too many",
            ));
        }
        let members = rules.groups.entry(group.clone()).or_default();
        match command.verb {
            Verb::GroupAdd => members.insert(word.clone()),
            _ => members.remove(word),
        };
        if members.is_empty() {
            rules.groups.remove(group);
        }
        Ok(())
    }

    /// An administrator says that a column's owner is gone. When enough of them have said the same, and
    /// the owner nothing meanwhile, the column is another principal's. Who is gone is no viewer.
    fn vote(&self, rules: &mut Rules, command: &Command, by: &str) -> Result<(), Error> {
        let quorum = self.administrators.quorum as usize;
        let id = column_id(&command.column);
        let has_owner = rules.own(&id).is_some();
        let no_principal = command.word.is_empty() || command.word.starts_with(GROUP);
        if quorum == 0 || !self.administrators.has(by) || !has_owner || no_principal {
            return Err(refused(
                "To say that a column's owner is gone is for several administrators, of a column that has one.",
                "See \"administrators\" and \"recovery_quorum\" in the keeper's configuration.",
            ));
        }
        let key = (command.column.clone(), command.word.clone());
        let names = rules.votes.entry(key).or_default();
        names.insert(by.to_owned());
        let administrate = |name: &&String| self.administrators.has(name);
        if names.iter().filter(administrate).count() < quorum {
            return Ok(());
        }
        rules
            .votes
            .retain(|(column, _), _| *column != command.column);
        if let Some(rule) = rules.own_mut(&id) {
            if let Some(gone) = rule.owners.last() {
                rule.viewers.remove(gone);
            }
            rule.owners.push(command.word.clone());
        }
        Ok(())
    }

    /// The rule of a column that had no owner.
    fn claimed(&self, command: &Command, by: &str) -> Result<Rule, Error> {
        let Command { verb, word, .. } = command;
        let administers = self.administrators.has(by);
        let own = self.administrators.names.is_empty() && by == word;
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
        if *verb == Verb::GrantOwner && word.starts_with(GROUP) {
            return Err(refused("A group owns no column.", "Name a principal."));
        }
        let administers = self.administrators.has(by);
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
            Verb::Budget => rule.budget = limit(&word)?,
            // Carried out elsewhere.
            _ => {}
        }
        Ok(rule)
    }
}

/// A budget, which begins with this change; `none` is none.
fn limit(word: &str) -> Result<Option<Budget>, Error> {
    if word.trim() == "none" {
        return Ok(None);
    }
    let budget = Budget::read(word, 0);
    budget.map(Some).ok_or_else(|| {
        Error::new(b"22023", "confide: there is no such budget").hint(
            "none, or some of booleans=n, orders=n, ranks=n, tokens=n, shown=n, then=refuse or then=note",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boss(quorum: u32) -> Administrators {
        Administrators {
            names: vec!["root".to_owned(), "toor".to_owned()],
            quorum,
        }
    }

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
        let open = || Viewers::open(dir.path(), &root, boss(1));
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
        let open = || Viewers::open(dir.path(), &root, Administrators::default());
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
    fn hides(viewers: &Viewers, name: &str) -> bool {
        let id = column_id(&Column::new("s", "t", "pay"));
        viewers.hides(&id, name).is_some()
    }

    fn regroup(viewers: &Viewers, by: &str, verb: Verb, group: &str, word: &str) -> bool {
        let command = Command {
            verb,
            column: Column::new("", "", group),
            word: word.into(),
        };
        viewers.tell(&command, by, |_| Ok(())).is_ok()
    }

    /// A member sees what the group may see, unless he is denied, himself or by another group; a
    /// principal who is called as a group is none. With the bug a grant to a group undoes a DENY.
    #[test]
    fn groups() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = || Viewers::open(dir.path(), &root, boss(0));
        let all = open()?;
        assert!(say(&all, "root", Verb::GrantOwner, "ann"));
        assert!(!regroup(&all, "ann", Verb::GroupAdd, "staff", "bob"));
        assert!(regroup(&all, "root", Verb::GroupAdd, "staff", "bob"));
        assert!(regroup(&all, "root", Verb::GroupAdd, "staff", "eve"));
        assert!(hides(&all, "bob") && hides(&all, "eve"));
        assert!(say(&all, "ann", Verb::GrantViewer, "GROUP staff"));
        assert!(!hides(&all, "bob") && !hides(&all, "eve"));
        assert!(hides(&all, "staff") && hides(&all, "GROUP staff"));
        assert!(say(&all, "ann", Verb::DenyViewer, "eve"));
        assert!(say(&all, "ann", Verb::GrantViewer, "GROUP staff"));
        assert!(!hides(&all, "bob") && hides(&all, "eve"));
        let all = open()?;
        assert!(!hides(&all, "bob") && hides(&all, "eve"));
        assert!(regroup(&all, "root", Verb::GroupAdd, "leavers", "bob"));
        assert!(say(&all, "ann", Verb::DenyViewer, "GROUP leavers"));
        assert!(hides(&all, "bob"));
        assert!(regroup(&all, "root", Verb::GroupRemove, "leavers", "bob"));
        assert!(!hides(&all, "bob"));
        assert!(regroup(&all, "root", Verb::GroupRemove, "staff", "bob"));
        assert!(hides(&all, "bob") && hides(&open()?, "bob"));
        assert!(!say(&all, "ann", Verb::GrantOwner, "GROUP staff"));
        Ok(())
    }

    /// So many administrators as are needed give a column of somebody who is gone away, over a
    /// restart; not one of them twice, nor others, nor while the owner says something.
    #[test]
    fn owners_who_are_gone() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let open = |quorum| Viewers::open(dir.path(), &root, boss(quorum));
        let all = open(0)?;
        assert!(say(&all, "root", Verb::GrantOwner, "ann"));
        assert!(!say(&all, "root", Verb::Recover, "bob"));
        let all = open(2)?;
        assert!(!say(&all, "eve", Verb::Recover, "bob"));
        assert!(say(&all, "root", Verb::Recover, "bob"));
        assert!(say(&all, "root", Verb::Recover, "bob"));
        assert!(say(&all, "toor", Verb::Recover, "toor"));
        assert!(hides(&all, "bob") && hides(&all, "toor") && !hides(&all, "ann"));
        // The owner is there.
        assert!(say(&all, "ann", Verb::GrantViewer, "kim"));
        assert!(say(&all, "toor", Verb::Recover, "bob"));
        let all = open(2)?;
        assert!(hides(&all, "bob"));
        assert!(say(&all, "root", Verb::Recover, "bob"));
        assert!(!hides(&all, "bob") && hides(&all, "ann") && !hides(&all, "kim"));
        assert!(!say(&all, "ann", Verb::GrantViewer, "eve"));
        assert!(say(&open(2)?, "bob", Verb::GrantViewer, "eve"));
        Ok(())
    }
}
