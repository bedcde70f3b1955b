//! Who can see a column: `Policy`, and what is shown to those who cannot.
//!
//! Invariant: if a column is hidden from a session's client, its values are not computed with,
//! declassified, stored elsewhere or shown; only its mask is shown. Exception: index searches
//! compare values of one column with each other in every session, because whoever writes a row
//! maintains its indexes. So an index on the column reveals its order (docs/security.md).

use super::Connection;
use crate::fail::{self, Failure};
use crate::masks::Mask;
use crate::provenance::{Origin, column_id};
use crate::rotation::not_the_owner;
use contract::body;
use contract::envelope::{NONCE_BYTES, Origin as Maker};
use envelope::Envelope;
use grant::{Column, Command, Grant, Verb};
use recording::Order;
use std::collections::{BTreeSet, HashSet};
use store::{ColumnId, Label, Listed};
use values::Error;

/// Maximum number of commands in one session.
const COMMANDS_MAX: usize = 4096;

/// A command from a client.
enum Said {
    Viewing(Command),
    Recording(Order),
}

fn is_about_keys(verb: Verb) -> bool {
    use Verb::{RotateBack, RotateBegin, RotateEnd, TransferKey, WithdrawKey};
    matches!(
        verb,
        RotateBegin | RotateEnd | RotateBack | TransferKey | WithdrawKey
    )
}

fn said(plain: &[u8]) -> Result<Said, Error> {
    let malformed = || fail::malformed("The command is malformed.");
    match Order::is_one(plain) {
        true => Order::decode(plain)
            .map(Said::Recording)
            .map_err(|_| malformed()),
        false => Command::decode(plain)
            .map(Said::Viewing)
            .map_err(|_| malformed()),
    }
}

pub(super) fn no_owners() -> Error {
    Error::new(b"0A000", "confide: columns have no owners here")
        .detail("Who sees a column is known of statements that clients authorise.")
        .hint("Set require_grants = true in the keeper's configuration.")
}

impl Connection {
    /// Executes a command of an owner or an administrator.
    pub(super) fn policy(&mut self, body: body::Policy<'_>) -> Result<(), Failure> {
        let parsed = Envelope::parse(body.envelope).map_err(super::envelopes::unopened)?;
        if !parsed.is_grant() || parsed.origin != Maker::Client {
            return Err(fail::malformed("The envelope holds no command.").into());
        }
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let opened = client.opener.open_parsed(&parsed, &mut self.plain);
        let said = opened
            .map_err(super::envelopes::unopened)
            .and_then(|()| said(&self.plain));
        let name = client.name.clone();
        self.wipe();
        let command = match said? {
            Said::Viewing(command) if is_about_keys(command.verb) => {
                return self.rotate(&command, &name, body.envelope);
            }
            Said::Viewing(command) => self.meant(command),
            Said::Recording(order) => {
                self.told_once(body.envelope)?;
                return self.record(order, &name);
            }
        };
        if !self.keeper.config.require_grants {
            return Err(no_owners().into());
        }
        self.may_say()?;
        self.told_once(body.envelope)?;
        let audit = &self.keeper.audit;
        let note = |number| audit.policy(&name, &command, number);
        self.keeper.viewers.tell(&command, &name, note)?;
        self.anchor()?;
        tracing::info!(by = name, verb = ?command.verb, column = ?command.column, to = command.word, "policy");
        self.keeper.reconsider();
        Ok(())
    }

    /// Changes the key of a column of the family `rnd_`, or takes that of one of `soft_`.
    fn rotate(&self, command: &Command, name: &str, envelope: &[u8]) -> Result<(), Failure> {
        let keeper = &self.keeper;
        let ruled = self.ruled(&column_id(&command.column));
        if !keeper.viewers.may_rotate(&ruled, name) {
            return Err(not_the_owner().into());
        }
        self.may_say()?;
        self.told_once(envelope)?;
        let note = |number| keeper.audit.policy(name, command, number);
        if matches!(command.verb, Verb::TransferKey | Verb::WithdrawKey) {
            let count = |all: Vec<_>| keeper.cells.transferred.set(all.into_iter());
            keeper.viewers.transfer(command, note, count)?;
        } else {
            let count = |all| keeper.cells.set_generations(all);
            keeper.viewers.rotate(command, note, count)?;
        }
        self.anchor()?;
        tracing::info!(by = name, verb = ?command.verb, column = ?command.column, "key of a column");
        Ok(())
    }

    /// Makes a statement's client the owner of the columns that it creates, if the keeper is
    /// configured to do so or the statement requests it.
    pub(super) fn own(&self, grant: &Grant) -> Result<(), Failure> {
        let none = BTreeSet::new();
        let creates = match self.keeper.config.creators_own {
            true => &grant.creates,
            false => &none,
        };
        if creates.is_empty() && grant.claims.is_empty() {
            return Ok(());
        }
        if !self.keeper.config.require_grants {
            return match grant.claims.is_empty() {
                true => Ok(()),
                false => Err(no_owners().into()),
            };
        }
        let keeper = &self.keeper;
        let held = self.held();
        // If a column is already known, administrators decide who owns it. If a definition already
        // refers to it, it would not belong to its creator alone.
        let heard = |id: &ColumnId| {
            let named = keeper.standing.name_of(id).is_some();
            !keeper.config.administrators.is_empty() && named || keeper.standing.mentions(id)
        };
        let is_new =
            |c: &Column, id: &ColumnId| c.schema != "pg_temp" && !held.contains(id) && !heard(id);
        self.may_say()?;
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let note = |command: &Command, number| keeper.audit.policy(&client.name, command, number);
        let both = (creates, &grant.claims);
        if keeper.viewers.create(both, &client.name, is_new, note)? {
            self.anchor()?;
            keeper.reconsider();
        }
        Ok(())
    }

    /// The columns that hold values, by the names with which these were stored.
    fn held(&self) -> HashSet<ColumnId> {
        let store = &self.keeper.store;
        let column = |listed: &Listed| Some(store.get(listed.number)?.column()?.0);
        store.list().iter().filter_map(column).collect()
    }

    /// Changes a command to use the name under which the column's values, or its owner, are known:
    /// the column may have been renamed since.
    fn meant(&self, mut command: Command) -> Command {
        let keeper = &self.keeper;
        let id = column_id(&command.column);
        let of_a_group = matches!(command.verb, Verb::GroupAdd | Verb::GroupRemove);
        if of_a_group {
            return command;
        }
        if let Some(column) = keeper.viewers.ruled_by(&id) {
            command.column = column;
            return command;
        }
        let held = self.held();
        let mut former = keeper.standing.former(&id);
        former.retain(|id| keeper.viewers.owns(id) || held.contains(id));
        if let [one] = former.as_slice()
            && let Some(column) = keeper.standing.name_of(one)
        {
            command.column = column;
        }
        command
    }

    /// The names under which there are rules for a column: its own name, or former names and those
    /// of tables that its table is a part of.
    pub(super) fn ruled(&self, column: &ColumnId) -> Vec<ColumnId> {
        let keeper = &self.keeper;
        let has = |id: &ColumnId| keeper.viewers.ruled_by(id).is_some();
        if has(column) {
            return vec![*column];
        }
        let mut others = keeper.standing.former(column);
        others.extend(keeper.standing.standing_for(column));
        others.retain(has);
        others
    }

    /// The mask shown instead of a column's values; `None` if the values are shown.
    fn hidden_column(&self, column: &ColumnId) -> Option<Mask> {
        let client = self.client.as_ref()?;
        self.hidden_from(column, &client.name)
    }

    /// Like [`Self::hidden_column`], for a client with this name.
    pub(super) fn hidden_from(&self, column: &ColumnId, name: &str) -> Option<Mask> {
        let viewers = &self.keeper.viewers;
        if !viewers.any() {
            return None;
        }
        let names = self.ruled(column);
        names.iter().find_map(|id| viewers.hides(id, name))
    }

    /// Restricts a grant to definitions about columns that its client can see. Otherwise they would
    /// take effect in sessions of clients that see other columns, too.
    pub(super) fn within_sight(&self, mut grant: Grant) -> Grant {
        if !self.keeper.viewers.any() {
            return grant;
        }
        let seen = |column: &Column| self.hidden_column(&column_id(column)).is_none();
        for entry in grant.entries.iter_mut().filter(|entry| entry.standing) {
            entry.reads.retain(&seen);
            entry.writes.retain(&seen);
        }
        for of in grant.aliases.values_mut() {
            of.retain(&seen);
        }
        grant
            .aliases
            .retain(|column, of| seen(column) && !of.is_empty());
        grant
    }

    /// The database may keep commands that it has transferred: none is accepted twice.
    fn told_once(&self, envelope: &[u8]) -> Result<(), Error> {
        let tag = envelope
            .last_chunk::<NONCE_BYTES>()
            .copied()
            .unwrap_or_default();
        let mut told = self
            .session
            .commands
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.contains(&tag) || told.len() >= COMMANDS_MAX {
            return Err(fail::malformed("The command was carried out already."));
        }
        told.push(tag);
        Ok(())
    }

    /// The mask shown instead of values computed from this; `None` if the values are shown.
    pub(super) fn hidden(&self, origin: &Origin) -> Option<Mask> {
        let viewers = &self.keeper.viewers;
        if !viewers.any() {
            return None;
        }
        let mut columns = origin.columns.iter();
        columns.find_map(|column| self.hidden_column(column))
    }

    /// Like [`Self::hidden`], by label.
    pub(super) fn mask(&self, label: Label) -> Option<Mask> {
        if !self.is_bound() || !self.keeper.viewers.any() {
            return None;
        }
        if let Some(known) = self.remembered.borrow().masks.get(&label) {
            return known.clone();
        }
        let found = self.hidden(&self.origin(label));
        self.remembered
            .borrow_mut()
            .masks
            .insert(label, found.clone());
        found
    }

    /// Fails if a hidden column is involved.
    pub(super) fn may_see(&self, origin: &Origin) -> Result<(), Failure> {
        match self.hidden(origin) {
            None => Ok(()),
            Some(_) => Err(fail::no_viewer().into()),
        }
    }

    /// Like [`Self::may_see`], by label.
    #[inline]
    pub(super) fn may_view(&self, label: Label) -> Result<(), Failure> {
        match self.keeper.viewers.any() {
            true => self.may_view_some(label),
            false => Ok(()),
        }
    }

    fn may_view_some(&self, label: Label) -> Result<(), Failure> {
        match self.mask(label).is_none() {
            true => Ok(()),
            false => Err(fail::no_viewer().into()),
        }
    }
}
