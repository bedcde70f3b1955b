//! Import and export of values: `PutEnvelope`, `PutPlain`, `GetEnvelope`, `GetEnvelopes`.

use super::Connection;
use crate::fail::{self, Failure};
use crate::limits::Budget;
use crate::provenance;
use crate::told::Told;
use contract::codec::List;
use contract::envelope::{FLAG_NULL, FLAG_QUOTED, Origin};
use contract::message::table::{Move, Sealed, Wanted};
use contract::message::{NOT_PROMOTED, ROWS_MAX, delivery};
use contract::{Fid, TypeCode, body};
use envelope::{Envelope, Error as Envelopes};
use grant::family;
use std::sync::atomic::Ordering::Relaxed;
use store::{ColumnId, Entry, Label};
use values::{Error, Value};

/// An answer with many envelopes ends after this many bytes.
const ENVELOPES_BYTES: usize = 4 * 1024 * 1024;

/// Destination and type of a value.
pub(super) struct Target {
    pub(super) fid: Fid,
    pub(super) typmod: i32,
    pub(super) t: TypeCode,
}

/// A requested envelope.
struct Want {
    fid: Fid,
    t: TypeCode,
    /// A form defined in [`delivery`].
    form: u8,
    period: u64,
}

/// The error for an envelope that does not open.
pub(super) fn unopened(error: Envelopes) -> Error {
    const PROXY: &str = "Send values through the Confide proxy.";
    match error {
        Envelopes::NotAnEnvelope => fail::bad_envelope("This is not an envelope.", PROXY),
        Envelopes::Truncated => fail::bad_envelope("The envelope is truncated.", PROXY),
        Envelopes::UnsupportedVersion => fail::bad_envelope(
            "The envelope is of a version that this keeper does not know.",
            "Use a proxy of the keeper's version.",
        ),
        Envelopes::WrongKeyOrAltered => fail::wrong_key(
            "The envelope is under another key than the session's, or was altered.",
            "Envelopes are good for the session in which they were made.",
        ),
        other => fail::internal("opening failed").detail(other.to_string()),
    }
}

fn unexported(error: Envelopes) -> Error {
    match error {
        Envelopes::WrongKeyOrAltered => fail::wrong_key(
            "The export envelope is of a keeper with another root key, or was altered.",
            "Restore with the root key of the keeper that gave the envelope out.",
        ),
        other => unopened(other),
    }
}

impl Connection {
    pub(super) fn put_envelope(&mut self, body: body::PutEnvelope<'_>) -> Result<(), Failure> {
        let body::PutEnvelope { fid, typmod, t, .. } = body;
        let target = Target { fid, typmod, t };
        let opened = self.open_envelope(&target, body.envelope);
        self.wipe();
        let (value, label) = match opened {
            Ok((value, label)) => (Ok(value), label),
            Err(error) => (Err(error), 0),
        };
        self.keep(target.fid, value, label)
    }

    pub(super) fn put_plain(&mut self, body: body::PutPlain<'_>) -> Result<(), Failure> {
        let body::PutPlain { fid, typmod, t, .. } = body;
        let target = Target { fid, typmod, t };
        let value = self
            .need_client()
            .and_then(|()| values::decode_binary(target.t, -1, body.value))
            .and_then(|value| coerce(value, &target));
        let label = self.label_if_bound(provenance::PLAIN);
        self.keep(target.fid, value, label)
    }

    /// Stores a value, or the error that replaces it.
    fn keep(&mut self, fid: Fid, value: Result<Value, Error>, label: Label) -> Result<(), Failure> {
        let stored = value.and_then(|value| self.space.set(fid, Entry::Value(value), label));
        stored.map_err(|error| {
            let failure = Failure::from(error);
            self.space.poison(fid, 1, &failure);
            failure
        })
    }

    /// The value of an envelope and its label.
    fn open_envelope(&mut self, target: &Target, bytes: &[u8]) -> Result<(Value, Label), Error> {
        let parsed = Envelope::parse(bytes).map_err(unopened)?;
        if parsed.is_grant() {
            return Err(fail::bad_envelope(
                "A grant stands where a value is expected.",
                "Send values through the Confide proxy.",
            ));
        }
        if parsed.origin == Origin::Delivery || parsed.is_keyed() {
            return Err(fail::bad_envelope(
                "An envelope of a result stands where a value is expected.",
                "Send values through the Confide proxy.",
            ));
        }
        if parsed.count.is_some() {
            return Err(fail::bad_envelope(
                "A batch of values stands where one value is expected.",
                "Send values through the Confide proxy.",
            ));
        }
        let label = match (parsed.origin, parsed.epoch) {
            (Origin::Export, Some(epoch)) => {
                let label = self.label_of_export(&parsed)?;
                let opener = self.keeper.keys.export_opener(epoch);
                let opener = opener.map_err(unexported)?;
                opener
                    .open_parsed(&parsed, &mut self.plain)
                    .map_err(unexported)?;
                label
            }
            _ => {
                let client = self.client.as_ref().ok_or_else(fail::no_client)?;
                let (opener, label) = match parsed.origin {
                    Origin::Keeper => (&client.echo, provenance::EXPORT),
                    _ if parsed.target.is_some() => (&client.opens_fitted, provenance::CLIENT),
                    _ => (&client.opener, provenance::CLIENT),
                };
                opener
                    .open_parsed(&parsed, &mut self.plain)
                    .map_err(unopened)?;
                self.label_if_bound(label)
            }
        };
        self.session.counters.opened.fetch_add(1, Relaxed);
        Ok((self.decode(target, &parsed)?, label))
    }

    /// The value of an opened envelope.
    fn decode(&mut self, target: &Target, parsed: &Envelope<'_>) -> Result<Value, Error> {
        if let Some(t) = parsed.type_code
            && t.stored() != target.t.stored()
        {
            return Err(fail::wrong_type(t, target.t));
        }
        if parsed.is_text() {
            return values::parse_text(target.t, target.typmod, &self.plain, &self.env);
        }
        // A typed envelope always has a type; otherwise it would not have been parsed.
        let t = parsed.type_code.unwrap_or(target.t);
        let value = values::decode_binary(t, -1, &self.plain)?;
        if target.typmod == -1 || self.client.is_some() {
            return coerce(value, target);
        }
        let fitted = coerce(value.clone(), target)?;
        self.may_fit(&value, &fitted)?;
        Ok(fitted)
    }

    pub(super) fn get_envelope(&mut self, body: body::GetEnvelope) -> Result<(), Failure> {
        self.seal(&Want {
            fid: body.fid,
            t: body.t,
            form: delivery::SESSION,
            period: 0,
        })
    }

    /// Returns envelopes up to the first value that has none.
    pub(super) fn get_envelopes(&mut self, body: body::GetEnvelopes<'_>) -> Result<(), Failure> {
        for Wanted { fid, t, form } in body.wanted.iter().take(ROWS_MAX) {
            if self.reply.len() > ENVELOPES_BYTES {
                break;
            }
            let start = self.reply.len();
            let want = Want {
                fid,
                t,
                form,
                period: body.period,
            };
            if !self.append_sealed(|connection| connection.seal(&want)) {
                self.reply.truncate(start);
                break;
            }
        }
        Ok(())
    }

    /// Values of a column are exported in a session without a client: logged once.
    fn note_export(&self, fid: Fid) {
        let partition = fid.partition();
        if fid.is_temporary() || !self.remembered.borrow_mut().exported.insert(partition) {
            return;
        }
        let column = self.keeper.store.get(partition).and_then(|p| p.column());
        let column = column.and_then(|(id, _)| self.keeper.standing.name_of(&id));
        let column = column.map_or_else(|| format!("column number {partition}"), |c| c.to_string());
        let what = format!(
            "{column} (database {}, session {})",
            self.session.database, self.session.id
        );
        self.keeper.audit.mention("export", "-", what);
    }

    /// The column of a value if the client may have its key: the value belongs to one column, which
    /// a grant of the client permits to show.
    fn deliverable(&self, fid: Fid) -> Option<ColumnId> {
        let partition = fid.partition();
        if fid.is_temporary() || partition == 0 {
            return None;
        }
        let (column, constant) = self.keeper.store.get(partition)?.column()?;
        if constant || column == ColumnId::default() {
            return None;
        }
        // What the database hands out by itself is not counted against a budget.
        let limits = |(_, budget): &(ColumnId, Budget)| budget.limit(Told::Shown).is_some();
        if self.keeper.viewers.has_budgets() && self.budgets(&column).iter().any(limits) {
            return None;
        }
        let known = self.remembered.borrow().deliverable.contains(&partition);
        if !known {
            if !self.shows(column) {
                return None;
            }
            let mut remembered = self.remembered.borrow_mut();
            remembered.deliverable.insert(partition);
        }
        Some(column)
    }

    /// Appends an envelope in the requested form, if the client may have the column's key and the
    /// period is the one that the backend assumes. Returns false otherwise.
    fn deliver(&mut self, want: &Want, plain: &[u8]) -> Result<bool, Envelopes> {
        let (Some(client), Some(column)) = (&self.client, self.deliverable(want.fid)) else {
            return Ok(false);
        };
        let (t, reply) = (want.t as u8, &mut self.reply);
        let keys = &self.keeper.delivery;
        let done = keys.with_key(want.period, &column, |key| match want.form {
            delivery::DELIVERY => {
                keys.delivered.fetch_add(1, Relaxed);
                key.sealer.seal(t, 0, plain, reply).map(|()| true)
            }
            delivery::KEYED => {
                keys.keyed.fetch_add(1, Relaxed);
                let sealer = &client.sealer;
                sealer.seal_keyed(t, &key.key, plain, reply).map(|()| true)
            }
            _ => Ok(false),
        })?;
        done.unwrap_or(Ok(false))
    }

    /// Appends delivery envelopes of values that have just been promoted, as far as they are
    /// requested and the client may have the column's key. Returns their period.
    pub(super) fn seal_promoted(&mut self, moves: List<'_, Move>, fids: &[Fid]) -> u64 {
        if moves.iter().all(|moved| moved.t.is_none()) {
            return 0;
        }
        let period = self.keeper.delivery.period();
        let moved = moves.iter().zip(fids);
        self.seal_for_delivery(period, moved.filter_map(|(m, fid)| Some((*fid, m.t?))));
        period
    }

    /// Appends delivery envelopes of values of columns, each empty if the client may not have it.
    pub(super) fn seal_for_delivery(
        &mut self,
        period: u64,
        values: impl Iterator<Item = (Fid, TypeCode)>,
    ) {
        for (fid, t) in values {
            if period == 0 || self.reply.len() > ENVELOPES_BYTES {
                break;
            }
            let want = Want {
                fid,
                t,
                form: delivery::DELIVERY,
                period,
            };
            self.append_sealed(|connection| connection.seal_for_all(&want));
        }
    }

    /// Appends an envelope under the column's key, or nothing.
    fn seal_for_all(&mut self, want: &Want) -> Result<(), Failure> {
        if want.fid.0 == NOT_PROMOTED || self.deliverable(want.fid).is_none() {
            return Ok(());
        }
        let label = self.operands(&[want.fid])?.label;
        if self.mask(label).is_some() {
            return Ok(());
        }
        self.authorise(label, family::SHOW)?;
        let Some(value) = self.space.value(want.fid, Some(want.t.stored()))? else {
            return Ok(());
        };
        let plain = zeroize::Zeroizing::new(values::encode_binary(&value));
        if plain.len() < delivery::KEPT_BYTES as usize {
            let sealed = self.deliver(want, &plain);
            let sealed = sealed
                .map_err(|error| fail::internal("sealing failed").detail(error.to_string()))?;
            self.told(label, Told::Shown, usize::from(sealed))?;
        }
        Ok(())
    }

    /// Appends what `seal` produces, preceded by its length, which is 0 if there is nothing.
    /// Returns whether there was something.
    fn append_sealed(&mut self, seal: impl FnOnce(&mut Self) -> Result<(), Failure>) -> bool {
        // The envelope's length is known only after sealing.
        let head = |length: usize| (length as u32).to_le_bytes();
        let start = self.reply.len();
        self.reply.extend_from_slice(&head(0));
        if seal(self).is_err() {
            self.reply.truncate(start + Sealed::FIXED);
        }
        let length = self.reply.len() - start - Sealed::FIXED;
        if let Some(place) = self.reply.get_mut(start..start + Sealed::FIXED) {
            place.copy_from_slice(&head(length));
        }
        length > 0
    }

    /// Appends an envelope that shows NULL: the row has a value that the session's client may not
    /// see.
    fn seal_null(&mut self, t: TypeCode) -> Result<(), Failure> {
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let sealed = client.sealer.seal(t as u8, FLAG_NULL, &[], &mut self.reply);
        sealed.map_err(|error| fail::internal("sealing failed").detail(error.to_string()))?;
        self.session.counters.sealed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Appends the export envelope of a constant of a catalog, which sessions without a client get when
    /// the catalog is printed.
    fn seal_constant(&mut self, want: &Want) -> Result<(), Failure> {
        if !self.is_constant(want.fid) {
            return Err(fail::malformed("The value is no constant of a catalog.").into());
        }
        let home = self.home_of(want.fid)?;
        let Some(value) = self.space.value(want.fid, Some(want.t.stored()))? else {
            return Ok(());
        };
        let plain = zeroize::Zeroizing::new(values::encode_binary(&value));
        let sealer = &self.keeper.keys.export;
        let sealed = sealer.seal_home(want.t as u8, &home, &plain, &mut self.reply);
        sealed.map_err(|error| fail::internal("sealing failed").detail(error.to_string()))?;
        self.session.counters.sealed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Checks whether a value may be quoted in a message: a message is wherever the database puts
    /// it, so the client must have permitted that for the columns. Constants without columns are
    /// the client's own, or the database's.
    fn may_quote(&self, label: Label) -> Result<(), Failure> {
        let origin = self.origin(label);
        let known = grant::origin::CLIENT | grant::origin::PLAIN;
        match origin.columns.is_empty() && origin.others & !known == 0 {
            true => Ok(()),
            false => self.authorise(label, family::SHOW | family::QUOTE),
        }
    }

    /// Appends a value's envelope to the reply; nothing for NULL.
    fn seal(&mut self, want: &Want) -> Result<(), Failure> {
        let (fid, t) = (want.fid, want.t);
        if want.form == delivery::CONSTANT {
            return self.seal_constant(want);
        }
        let label = self.operands(&[fid])?.label;
        let mask = self.mask(label);
        if mask.is_none() {
            self.authorise(label, family::SHOW)?;
        }
        let quoted = want.form == delivery::QUOTED;
        if quoted && mask.is_none() {
            self.may_quote(label)?;
        }
        let Some(value) = self.space.value(fid, Some(t.stored()))? else {
            // NULL has no envelope.
            return Ok(());
        };
        let shown = match &mask {
            Some(mask) => mask.apply(&value, &self.keeper.keys.hash, &self.env),
            None => Some(value),
        };
        let Some(value) = shown else {
            return self.seal_null(t);
        };
        let plain = zeroize::Zeroizing::new(values::encode_binary(&value));
        let mut delivered = Ok(false);
        if want.form != delivery::SESSION && !quoted && mask.is_none() {
            delivered = self.deliver(want, &plain);
        }
        let sealed = match &self.client {
            _ if !matches!(delivered, Ok(false)) => delivered.map(|_| ()),
            Some(client) => {
                let flags = if quoted { FLAG_QUOTED } else { 0 };
                client.sealer.seal(t as u8, flags, &plain, &mut self.reply)
            }
            None => {
                let home = self.home_of(fid)?;
                self.note_export(fid);
                let sealer = &self.keeper.keys.export;
                sealer.seal_home(t as u8, &home, &plain, &mut self.reply)
            }
        };
        sealed.map_err(|error| match error {
            Envelopes::TooLong => Error::new(b"54000", "confide: value is too long")
                .detail("It does not fit into an envelope."),
            other => fail::internal("sealing failed").detail(other.to_string()),
        })?;
        if mask.is_none() {
            self.told_of(label, Told::Shown, &[fid], 1)?;
        }
        self.session.counters.sealed.fetch_add(1, Relaxed);
        Ok(())
    }
}

/// Converts a value to the target's type and modifier, as an assignment does.
pub(super) fn coerce(value: Value, target: &Target) -> Result<Value, Error> {
    match target.typmod {
        -1 => Ok(value),
        typmod => values::apply_typmod(value, target.t, typmod, false),
    }
}
