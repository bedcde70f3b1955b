//! `PolicyLog`, `PolicyLogged`: what owners of columns and definitions said, on its way into the WAL; and
//! what redo records say of it to a keeper that recovers or follows (docs/durability.md).
//!
//! Invariants: what was heard is on disk before it counts; a keeper that follows gives out no
//! records, and takes no words of its own clients.

use super::Connection;
use crate::durable::Durable;
use crate::fail::Failure;
use crate::said::Said;
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
            return Ok(Default::default());
        }
        let record = durable.log_policy(&said)?;
        Ok((durable.said.issue(&said), record))
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
                "confide: a standby's keeper takes no commands of owners and no definitions",
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
