//! Where values from export envelopes belong, and restore tickets, which let them go elsewhere:
//! `RestoreTicket`, `Orderable`, `IndexBuilt`.
//!
//! An export envelope names the database and the column that its value is of. The value is
//! taken with a ticket of a client or an operator; where `take_exports` is on, and for
//! constants of catalogs, also without one, into the same column of the same database.
//!
//! Invariant: a slot that was filled from an export envelope has a label that says so, and no
//! value is promoted from it but by [`Connection::may_take`].

use super::Connection;
use crate::fail::{self, Failure};
use crate::provenance::{CLIENT, CONSTANT, ELSEWHERE, Origin, TAKEN};
use crate::tickets::{self, Admitted};
use contract::envelope::{COLUMN_BYTES, DATABASE_BYTES, HOME_BYTES};
use contract::{Fid, answer, body};
use envelope::{Envelope, Home, SealedTicket};
use grant::{Column, Ticket, origin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use store::{ColumnId, Label};
use values::Error;

/// In the place of a column's name: constants of catalogs.
const CONSTANTS: ColumnId = [0xff; COLUMN_BYTES];
/// A value that belongs nowhere.
const NOWHERE: Home = [0; HOME_BYTES];

/// Whether a ticket lets values into a column.
fn holds(ticket: &Ticket, column: Option<&Column>) -> bool {
    ticket.places.is_empty()
        || column.is_some_and(|c| {
            let mut places = ticket.places.iter();
            places.any(|p| p.holds(&c.schema, &c.relation, &c.column))
        })
}

impl Connection {
    /// Takes in a ticket, which holds until the session ends or it expires; none: gives up
    /// the one that there was.
    pub(super) fn restore_ticket(&mut self, body: body::RestoreTicket<'_>) -> Result<(), Failure> {
        let session = &self.session;
        if self.ticket.is_some() {
            session.change(|shared| shared.ticket = None);
        }
        if body.ticket.is_empty() {
            return Ok(());
        }
        let ticket = self.opened_ticket(&body)?;
        let admitted = session.admitted.lock();
        let mut admitted = admitted.unwrap_or_else(PoisonError::into_inner);
        if !admitted.contains(&ticket.number) {
            // A use is told to standbys, not by them.
            if ticket.uses > 0 {
                self.may_say()?;
            }
            let audit = &self.keeper.audit;
            let number = tickets::hex(&ticket.number);
            let what = format!("{number} {} (session {})", *ticket, session.id);
            let note = || audit.note("ticket", "-", what);
            self.keeper.tickets.take(&ticket, tickets::now(), note)?;
            self.owe();
            self.anchor()?;
            admitted.push(ticket.number);
            tracing::info!(session = session.id, "restore ticket taken");
        }
        session.change(|shared| shared.ticket = Some(Arc::new(ticket)));
        Ok(())
    }

    fn opened_ticket(&self, body: &body::RestoreTicket<'_>) -> Result<Admitted, Error> {
        let keeper = &self.keeper;
        let bad = |_| fail::bad_ticket("It is not for this keeper, or was altered.");
        let sealed = SealedTicket::parse(body.ticket).map_err(bad)?;
        let issuer = sealed.issuer().map(|key| keeper.clients.name(&key));
        if issuer == Some(None) {
            return Err(fail::bad_ticket(
                "The client that issued it is not authorised.",
            ));
        }
        let content = sealed.open(&keeper.keys.secret, keeper.keys.root());
        let content = zeroize::Zeroizing::new(content.map_err(bad)?);
        let ticket = Ticket::decode(&content).map_err(|_| fail::bad_ticket("It is malformed."))?;
        match ticket.database == body.database {
            true => Ok(Admitted {
                ticket,
                issuer: issuer.flatten(),
            }),
            false => Err(fail::bad_ticket("It is for another database.")),
        }
    }

    /// Whether the session has a ticket that is good.
    pub(super) fn has_ticket(&self) -> bool {
        self.ticket().is_some()
    }

    /// The session's ticket, while it is good.
    fn ticket(&self) -> Option<&Admitted> {
        let ticket = self.ticket.as_deref();
        ticket.filter(|ticket| tickets::now() < ticket.expires)
    }

    /// What names a database in export envelopes: equal numbers in another store are others.
    fn database_name(&self, database: u32) -> [u8; DATABASE_BYTES] {
        let keeper = &self.keeper;
        let store = keeper.durable.as_ref().map(|d| d.store());
        let store = store.unwrap_or(keeper.incarnation);
        let bytes = [&store.to_le_bytes()[..], &database.to_le_bytes()].concat();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes);
        digest.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Where a value belongs that goes out in an export envelope.
    pub(super) fn home_of(&self, fid: Fid) -> Result<Home, Failure> {
        let keeper = &self.keeper;
        let (database, column) = match fid.is_temporary() {
            false => {
                let key = keeper.store.get(fid.partition()).and_then(|p| p.key());
                let key = key.ok_or_else(store::unresolved)?;
                (key.database, self.column_in_envelopes(fid.partition())?)
            }
            true => {
                let slots = std::iter::once(fid.slot());
                let origin = self.origin(self.label_of_run(fid.partition(), slots)?);
                let database = self.session.database;
                let others = origin.others & (TAKEN | ELSEWHERE | CONSTANT);
                match origin.columns.as_slice() {
                    [column] if others == TAKEN => (database, *column),
                    [] if others == TAKEN | CONSTANT => (database, CONSTANTS),
                    _ => return Ok(NOWHERE),
                }
            }
        };
        if column == ColumnId::default() {
            return Ok(NOWHERE);
        }
        let mut home = NOWHERE;
        let (first, second) = home.split_at_mut(DATABASE_BYTES);
        first.copy_from_slice(&self.database_name(database));
        second.copy_from_slice(&column);
        Ok(home)
    }

    /// Whether a value is a constant of a catalog of the session's database.
    pub(super) fn is_constant(&self, fid: Fid) -> bool {
        let found = self.keeper.store.get(fid.partition());
        let here = |p: &store::Partition| {
            let key = p.key();
            key.is_some_and(|key| key.database == self.session.database)
        };
        !fid.is_temporary()
            && found.is_some_and(|p| here(p) && p.column().is_some_and(|(_, constant)| constant))
    }

    fn column_in_envelopes(&self, partition: u32) -> Result<ColumnId, Failure> {
        let found = self.keeper.store.get(partition);
        match found.and_then(|p| p.column()) {
            Some((_, true)) => Ok(CONSTANTS),
            Some((column, false)) => Ok(column),
            None => Err(store::unresolved().into()),
        }
    }

    /// The label of what comes from an export envelope, if any may be taken at all.
    pub(super) fn label_of_export(&self, parsed: &Envelope<'_>) -> Result<Label, Error> {
        let home = parsed.home.unwrap_or(NOWHERE);
        let (database, column) = home.split_at(DATABASE_BYTES);
        let column: ColumnId = column.try_into().unwrap_or_default();
        let here = database == self.database_name(self.session.database);
        let named = column != ColumnId::default();
        let constant = here && column == CONSTANTS;
        if !constant && !self.keeper.config.take_exports && self.ticket().is_none() {
            return Err(fail::no_exports());
        }
        // A client's session finds it in the text of a routine, and may use it as the constants that
        // the server keeps parsed.
        if constant && self.client.is_some() {
            return Ok(self.label_if_bound(CLIENT));
        }
        let elsewhere = if here && named { 0 } else { ELSEWHERE };
        let constant = if column == CONSTANTS { CONSTANT } else { 0 };
        // With a ticket for other columns the client's grant is about the column it goes into.
        let anywhere = self.ticket().is_some_and(|t| t.other_columns);
        let bound = named && constant == 0 && !anywhere;
        if named && anywhere {
            self.issuer_sees(&column)?;
        }
        self.session.took.store(true, Relaxed);
        self.write_provenance().number(Origin {
            others: origin::EXPORT | TAKEN | elsewhere | constant,
            columns: if bound { vec![column] } else { Vec::new() },
        })
    }

    /// Whoever lets values of a column into others sees them there.
    fn issuer_sees(&self, column: &ColumnId) -> Result<(), Error> {
        let issuer = self.ticket().and_then(|ticket| ticket.issuer.as_deref());
        match issuer.and_then(|name| self.hidden_from(column, name)) {
            None => Ok(()),
            Some(_) => Err(fail::bad_ticket(
                "The client that issued it may not see the column that the value is of.",
            )),
        }
    }

    /// Whether a value may go into a column, if it comes from an export envelope.
    pub(super) fn may_take(&self, source: Fid, count: u32, partition: u32) -> Result<(), Failure> {
        if !source.is_temporary() || !self.session.took.load(Relaxed) {
            return Ok(());
        }
        let slots = (0..u64::from(count)).map(|n| source.slot().saturating_add(n));
        let label = self.label_of_run(source.partition(), slots)?;
        // A ticket may expire.
        let lasting = self.ticket.is_none();
        if lasting && self.remembered.borrow().taken.contains(&(label, partition)) {
            return Ok(());
        }
        let origin = self.origin(label);
        let taken = origin.others & TAKEN != 0;
        if taken && !self.belongs(&origin, partition)? {
            return Err(fail::belongs_elsewhere().into());
        }
        if lasting {
            self.remembered
                .borrow_mut()
                .taken
                .insert((label, partition));
        }
        Ok(())
    }

    fn belongs(&self, origin: &Origin, partition: u32) -> Result<bool, Failure> {
        let keeper = &self.keeper;
        let key = keeper.store.get(partition).and_then(|p| p.key());
        let key = key.ok_or_else(store::unresolved)?;
        if key.database != self.session.database {
            return Ok(false);
        }
        let target = self.column_in_envelopes(partition)?;
        let same = match origin.columns.as_slice() {
            [column] => keeper.standing.stands_for(&target, column),
            _ => target == CONSTANTS && origin.others & CONSTANT != 0,
        };
        let free = target == CONSTANTS || keeper.config.take_exports;
        if same && free && origin.others & ELSEWHERE == 0 {
            return Ok(true);
        }
        let Some(ticket) = self.ticket() else {
            return Ok(false);
        };
        let inside =
            target == CONSTANTS || holds(ticket, keeper.standing.name_of(&target).as_ref());
        Ok(inside && (same || ticket.other_columns))
    }

    /// Whether a ticket lets values into a column: then its indexes can be built, too.
    pub(super) fn restores(&self, partition: u32) -> bool {
        let keeper = &self.keeper;
        let Some(ticket) = self.ticket() else {
            return false;
        };
        let Some(found) = keeper.store.get(partition) else {
            return false;
        };
        let here = found
            .key()
            .is_some_and(|k| k.database == self.session.database);
        let column = found
            .column()
            .and_then(|(id, _)| keeper.standing.name_of(&id));
        here && holds(ticket, column.as_ref())
    }

    /// What a client indexes, or who has a ticket for it, is kept in order without a client.
    pub(super) fn index_built(&self, body: &body::IndexBuilt) {
        let column = self.keeper.store.get(body.partition);
        if let Some(column) = column
            && (self.client.is_some() || self.restores(body.partition))
        {
            column.set_indexed();
        }
    }

    /// Whether the order of a column can be had now.
    pub(super) fn orderable(&mut self, body: body::Orderable) -> Result<(), Failure> {
        let may = self.client.is_some() || self.may_order(body.partition).is_ok();
        self.answer(&answer::Orderable {
            allowed: u32::from(may),
        });
        Ok(())
    }
}
