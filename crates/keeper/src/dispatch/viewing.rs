//! Who sees a column: `Policy`, and what those are given who do not.
//!
//! Invariant: of a column that is hidden from a session's client nothing is computed,
//! declassified, stored elsewhere or shown but its mask.

use super::Connection;
use crate::fail::{self, Failure};
use crate::masks::Mask;
use crate::provenance::Origin;
use contract::body;
use contract::envelope::{NONCE_BYTES, Origin as Maker};
use envelope::Envelope;
use grant::{Column, Command, Grant};
use recording::Order;
use std::collections::{BTreeSet, HashSet};
use store::{ColumnId, Label};
use values::Error;

/// Commands of one session.
const COMMANDS_MAX: usize = 4096;

/// What a client says.
enum Said {
    Viewing(Command),
    Recording(Order),
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

fn no_owners() -> Error {
    Error::new(b"0A000", "confide: columns have no owners here")
        .detail("Who sees a column is known of statements that clients authorise.")
        .hint("Set require_grants = true in the keeper's configuration.")
}

impl Connection {
    /// Carries out what an owner or an administrator says.
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
            Said::Viewing(command) => command,
            Said::Recording(order) => {
                self.told_once(body.envelope)?;
                return self.record(order, &name);
            }
        };
        if !self.keeper.config.require_grants {
            return Err(no_owners().into());
        }
        self.told_once(body.envelope)?;
        let audit = &self.keeper.audit;
        let note = |number| audit.policy(&name, &command, number);
        self.keeper.viewers.tell(&command, &name, note)?;
        tracing::info!(by = name, verb = ?command.verb, column = ?command.column, to = command.word, "policy");
        self.keeper.reconsider();
        Ok(())
    }

    /// Columns that a statement creates are its client's, if the keeper is configured so or the
    /// statement says so.
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
        let held: HashSet<ColumnId> = keeper
            .store
            .list()
            .iter()
            .filter_map(|listed| keeper.store.get(listed.number)?.column())
            .map(|(id, _)| id)
            .collect();
        // Administrators say whose columns are that anybody has heard of.
        let heard = |id: &ColumnId| {
            !keeper.config.administrators.is_empty() && keeper.standing.name_of(id).is_some()
        };
        let is_new =
            |c: &Column, id: &ColumnId| c.schema != "pg_temp" && !held.contains(id) && !heard(id);
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let note = |command: &Command, number| keeper.audit.policy(&client.name, command, number);
        let both = (creates, &grant.claims);
        if keeper.viewers.create(both, &client.name, is_new, note)? {
            keeper.reconsider();
        }
        Ok(())
    }

    /// The database keeps what it has carried: nothing counts twice.
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

    /// What is shown instead of values that were made of this; none: what they are.
    pub(super) fn hidden(&self, origin: &Origin) -> Option<Mask> {
        let viewers = &self.keeper.viewers;
        let client = self.client.as_ref().filter(|_| viewers.any())?;
        let mut columns = origin.columns.iter();
        columns.find_map(|column| viewers.hides(column, &client.name))
    }

    /// As [`Self::hidden`], by label.
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

    /// Refuses what is about a hidden column.
    pub(super) fn may_see(&self, origin: &Origin) -> Result<(), Failure> {
        match self.hidden(origin) {
            None => Ok(()),
            Some(_) => Err(fail::no_viewer().into()),
        }
    }

    /// As [`Self::may_see`], by label.
    pub(super) fn may_view(&self, label: Label) -> Result<(), Failure> {
        match self.mask(label).is_none() {
            true => Ok(()),
            false => Err(fail::no_viewer().into()),
        }
    }
}
