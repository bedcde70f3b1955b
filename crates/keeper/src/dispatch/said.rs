//! `PolicyLog`, `PolicyLogged`: what owners of columns and definitions said, on its way into the WAL; and
//! what redo records say of it to a keeper that recovers or follows (docs/durability.md).
//!
//! Invariants: what was heard is on disk before it counts; a keeper that follows gives out no
//! records, and takes no words of its own clients.

use super::Connection;
use crate::durable::Durable;
use crate::fail::Failure;
use crate::said::Said;
use crate::used::{Point, Used};
use contract::{answer, body};
use values::Error;

impl Connection {
    /// The next record that the WAL lacks. Anybody may ask: it is sealed.
    pub(super) fn policy_log(&mut self) -> Result<(), Failure> {
        let (number, record) = match &self.keeper.durable {
            Some(durable) if !durable.follows() => self.unlogged(durable)?,
            _ => Default::default(),
        };
        self.answer(&answer::PolicyLog {
            number,
            record: &record,
        });
        Ok(())
    }

    fn unlogged(&self, durable: &Durable) -> Result<(u64, Vec<u8>), Error> {
        let logged = durable.said.point();
        let said = Said {
            rules: self.keeper.viewers.since(logged.rules),
            standing: self.keeper.standing.since(logged.standing),
        };
        if said.is_empty() {
            return self.unlogged_uses(durable);
        }
        let record = durable.log_policy(&said)?;
        Ok((durable.said.issue(&said), record))
    }

    fn unlogged_uses(&self, durable: &Durable) -> Result<(u64, Vec<u8>), Error> {
        let (tickets, accounts) = (&self.keeper.tickets, &self.keeper.accounts);
        let point = Point {
            tickets: tickets.last(),
            budgets: accounts.last(),
        };
        if point == durable.said.used() {
            self.owes.set(false);
            return Ok(Default::default());
        }
        let used = Used {
            tickets: tickets.used(),
            budgets: accounts.reserved(),
        };
        let record = durable.log_used(&used)?;
        Ok((durable.said.issue_used(point), record))
    }

    /// Something was used that the WAL does not have: the backend asks for the record at the end of its
    /// statement.
    pub(super) fn owe(&self) {
        self.owes.set(self.keeper.durable.is_some());
    }

    /// What the backend shall see of that, if it has changed since ([`contract::ring::OWED_OFFSET`]).
    pub(crate) fn owed(&mut self) -> Option<bool> {
        let owes = self.owes.get();
        (std::mem::replace(&mut self.owed, owes) != owes).then_some(owes)
    }

    /// Takes in what a redo record says of tickets and budgets.
    pub(super) fn hear_uses(&self, used: &Used) -> Result<(), Failure> {
        self.keeper.tickets.hear(&used.tickets)?;
        Ok(self.keeper.accounts.hear(&used.budgets)?)
    }

    pub(super) fn policy_logged(&self, body: body::PolicyLogged) {
        if let Some(durable) = &self.keeper.durable {
            durable.said.confirm(body.number);
        }
    }

    /// A keeper that follows hears owners and definitions from the primary.
    pub(super) fn may_say(&self) -> Result<(), Error> {
        let follows = self.keeper.durable.as_ref().is_some_and(Durable::follows);
        match follows {
            false => Ok(()),
            true => Err(Error::new(
                b"25006",
                "confide: a standby's keeper takes no commands of owners, definitions and counted tickets",
            )
            .detail("It follows those of the primary's keeper.")
            .hint("Say it at the primary.")),
        }
    }

    /// Takes in what a redo record says.
    pub(super) fn hear(&self, said: &Said) -> Result<(), Failure> {
        let (keeper, audit) = (&self.keeper, &self.keeper.audit);
        let mut changed = false;
        if let Some(part) = &said.standing {
            changed |= keeper.standing.hear(part, |lasting| {
                audit.note("standing-grant", "-", lasting.to_string())
            })?;
        }
        if let Some(part) = &said.rules {
            let what = "owners and viewers as at the primary";
            changed |= keeper
                .viewers
                .hear(part, |number| audit.policy("-", &what, number))?;
            keeper.viewers.tell_keys(&keeper.cells);
        }
        if let Some(durable) = &keeper.durable {
            durable.said.found(said);
        }
        if changed {
            self.anchor()?;
            keeper.reconsider();
        }
        Ok(())
    }
}
