//! The session: keys, settings, and the sealing and opening of single values.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::TypeCode;
use contract::envelope::{FLAG_GRANT, FLAG_HANDLE, FLAG_TEXT, Origin};
use contract::soft::{Column, Purpose};
use envelope::{Envelope, Opener, Sealer, format};
use grant::Lease;
use rewrite::{Fit, Form, Secret};
use values::Env;

use crate::carried::{self, Carried};
use crate::delivered::Delivered;
use crate::fitted;
use crate::lease::{Due, Term};
use crate::soft::Keyring;
use crate::{Failure, Offer, Protected, Shown, TypeMap, array, blame};

/// Settings that text formats depend on; the server reports them.
const FOLLOWED: [&str; 5] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "bytea_output",
];

/// The protocol's format code for text.
pub const TEXT: i16 = 0;
/// The protocol's format code for binary.
const BINARY: i16 = 1;

/// A literal of the family `soft_`: column, what it is encoded for, type, text.
pub(crate) type Encoded = (Column, Purpose, Option<TypeCode>, Vec<u8>);

/// Envelopes of the literals of one statement: equal values of the same type share one envelope, so
/// that PostgreSQL sees equal constants.
#[derive(Default)]
pub struct LiteralCache {
    made: HashMap<(u8, i32, Vec<u8>), String>,
    pub(crate) encoded: HashMap<Encoded, String>,
}

/// A client's session with the keeper, possibly not yet established.
#[derive(Default)]
pub struct Session {
    /// Settings that text formats depend on.
    pub env: Env,
    /// Protected types of the database.
    pub types: TypeMap,
    /// A dump is being restored: literals and rows of COPY that are export envelopes are passed
    /// unchanged.
    pub restoring: bool,
    /// The keys for encoding values of the family `soft_`, if there is a master key.
    pub soft: Option<Arc<Keyring>>,
    /// Values that are only assigned to a column are fitted to it and sealed for it, so that the database can store
    /// them without waiting for the keeper.
    pub fits: bool,
    keys: Option<(Sealer, Opener)>,
    /// Seals what fits a column, and opens it where the database shows it again; used only while there are
    /// keys.
    storing: Option<(Sealer, Opener)>,
    term: Option<Term>,
    /// Keys of columns, received with results.
    delivered: Delivered,
    carried: Carried,
    generation: u64,
}

impl Session {
    /// Takes the keys of an accepted offer.
    pub fn begin(&mut self, offer: Offer) {
        self.term = Term::of(offer.keeper.evidence.lease, offer.since);
        self.keys = Some((offer.sealer, offer.opener));
        self.storing = Some(offer.storing);
        self.generation += 1;
        self.carried = Carried::default();
        self.delivered = Delivered::default();
    }

    /// Returns the text to append to these statements so that the keeper gets the grants that it
    /// does not have yet; empty if there are no keys yet.
    pub fn grants(&mut self, statements: &[rewrite::Statement]) -> Result<String, Failure> {
        let mut text = String::new();
        let Some((sealer, _)) = &self.keys else {
            return Ok(text);
        };
        for grant in statements.iter().filter_map(|s| s.grant.as_ref()) {
            let wider = self.restoring.then(|| with_exports(grant)).flatten();
            let grant = wider.as_ref().unwrap_or(grant);
            if !self.carried.knows(grant) {
                let mut envelope = String::new();
                sealer.seal_text(0, FLAG_TEXT | FLAG_GRANT, grant, &mut envelope)?;
                text += &self.carried.carry(grant, &envelope);
            }
        }
        Ok(text)
    }

    /// Whether the session's lease has to be renewed.
    pub fn lease_due(&self) -> Due {
        match (&self.keys, &self.term) {
            (Some(_), Some(term)) => term.due(Instant::now()),
            _ => Due::No,
        }
    }

    /// Returns the text to append in order to renew the lease.
    pub fn renew(&mut self) -> Result<String, Failure> {
        let after = match &mut self.term {
            Some(term) => term.renew(Instant::now()),
            None => Duration::ZERO,
        };
        self.say(Lease::GoesOn(after))
    }

    /// Returns the text to append in order to end the session; the keys are dropped.
    pub fn leave(&mut self) -> Result<String, Failure> {
        let said = self.say(Lease::Over);
        self.lose();
        said
    }

    fn say(&self, what: Lease) -> Result<String, Failure> {
        let (sealer, _) = self.keys()?;
        let mut envelope = String::new();
        sealer.seal_text(0, FLAG_TEXT | FLAG_GRANT, &what.encode(), &mut envelope)?;
        Ok(carried::comment(&envelope))
    }

    /// Returns the envelope of a command that controls who can see a column.
    pub fn seal_command(&self, command: &[u8]) -> Result<String, Failure> {
        let mut envelope = String::new();
        let (sealer, _) = self.keys()?;
        sealer.seal_text(0, FLAG_TEXT | FLAG_GRANT, command, &mut envelope)?;
        Ok(envelope)
    }

    /// The server has reported an error; the keeper may not have received the grants that were
    /// sent.
    pub fn carried_in_vain(&mut self) {
        self.carried.fail();
    }

    /// The server has answered everything that was sent.
    pub fn all_answered(&mut self) {
        self.carried.arrive();
    }

    /// Drops the keys: the keeper no longer knows the session.
    pub fn lose(&mut self) {
        self.keys = None;
    }

    /// Whether there are keys.
    pub fn is_open(&self) -> bool {
        self.keys.is_some()
    }

    /// Number of handshakes so far: envelopes of an earlier generation are invalid.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Processes a ParameterStatus. Irrelevant settings are ignored.
    pub fn parameter_status(&mut self, name: &str, value: &str) {
        if FOLLOWED.contains(&name) && self.env.set(name, value).is_err() {
            // PostgreSQL accepted the setting; if we do not support it, values are shown with the
            // default.
        }
    }

    /// Returns the envelope text for a literal. `handle` says that the statement is prepared.
    pub fn seal_literal(
        &self,
        secret: &Secret,
        handle: bool,
        cache: &mut LiteralCache,
    ) -> Result<String, Failure> {
        let flag = if handle { FLAG_HANDLE } else { 0 };
        let (code, typmod, text) = match &secret.form {
            Form::Soft(column, purpose, text, said) => {
                return self.encode_literal(*column, (*purpose, *said, text.as_slice()), cache);
            }
            Form::Bytes(bytes) => {
                let ((sealer, _), mut out) = (self.keys()?, String::new());
                sealer.seal_text(TypeCode::Bytea as u8, flag, bytes, &mut out)?;
                return Ok(out);
            }
            Form::Text(text, code) => (code.map_or(0, |c| c as u8), -1, text),
            Form::Wider(_, code, text) => (*code as u8, -1, text),
            Form::Typed(code, typmod, text) => (*code as u8, *typmod, text),
        };
        if self.passes(text) {
            return Ok(String::from_utf8_lossy(text).into_owned());
        }
        if let Form::Wider(from, to, text) = &secret.form {
            let wide = fitted::widen((*from, *to), true, text, &self.env)?;
            let mut out = Vec::new();
            self.seal_wide((*to, secret.fits.as_ref()), &wide, handle, &mut out)?;
            return Ok(as_text(&out));
        }
        let mut fitted = Vec::new();
        if let Some(fit) = &secret.fits
            && self.seal_fitted(fit, TEXT, text, handle, &mut fitted)?
        {
            return Ok(as_text(&fitted));
        }
        let key = (code, typmod, text.clone());
        if let Some(made) = cache.made.get(&key) {
            return Ok(made.clone());
        }
        let (sealer, _) = self.keys()?;
        let mut out = String::new();
        match (TypeCode::from_u8(code), typmod) {
            (Some(t), modifier) if modifier != -1 => {
                let value = values::parse_text(t, modifier, text, &self.env).map_err(|e| {
                    let message = blame::with_value(&e, text);
                    Failure {
                        message,
                        ..Failure::from(e)
                    }
                })?;
                sealer.seal_text(code, flag, &values::encode_binary(&value), &mut out)?;
            }
            _ => sealer.seal_text(code, flag | FLAG_TEXT, text, &mut out)?,
        }
        cache.made.insert(key, out.clone());
        Ok(out)
    }

    /// Appends the binary envelope of a value in the binary format of this type, fitted if it can be.
    fn seal_wide(
        &self,
        (code, fit): (TypeCode, Option<&Fit>),
        value: &[u8],
        handle: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Some(fit) = fit.filter(|fit| fit.code == code)
            && self.seal_fitted(fit, BINARY, value, handle, out)?
        {
            return Ok(());
        }
        let (sealer, _) = self.keys()?;
        let flag = if handle { FLAG_HANDLE } else { 0 };
        Ok(sealer.seal(code as u8, flag, value, out)?)
    }

    /// The type with which a parameter was declared, if it is narrower than the column that it is only assigned to:
    /// it is to be declared with the column's type, and sealed by [`Session::seal_assigned`].
    pub fn narrower(&self, declared: Option<u32>, fit: Option<&Fit>) -> Option<TypeCode> {
        let fit = fit.filter(|_| self.fits)?;
        let oid = declared?;
        let code = TypeCode::ALL
            .iter()
            .copied()
            .find(|t| t.plain_oid() == oid)?;
        rewrite::widens(code, fit.code).then_some(code)
    }

    /// Appends the binary envelope of a value that fits a column (of the type's text or binary format), and
    /// returns true; or false if it does not fit, or only the server can tell.
    pub fn seal_fitted(
        &self,
        fit: &Fit,
        format: i16,
        value: &[u8],
        handle: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        self.keys()?;
        let Some((sealer, _)) = self.storing.as_ref().filter(|_| self.fits) else {
            return Ok(false);
        };
        let Some(plain) = fitted::fit(fit, format == TEXT, value, &self.env) else {
            return Ok(false);
        };
        let target = envelope::Target {
            column: fit.column,
            typmod: fit.typmod,
        };
        let flag = if handle { FLAG_HANDLE } else { 0 };
        sealer.seal_fitted(fit.code as u8, flag, &target, &plain, out)?;
        Ok(true)
    }

    /// Like [`Session::seal`], for a parameter that is only assigned to a column. `declared` is what the client
    /// has declared, as an OID.
    pub fn seal_assigned(
        &self,
        (target, fit, declared): (Protected, Option<&Fit>, Option<u32>),
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Some(fit) = fit.filter(|fit| target == Protected::Scalar(fit.code)) else {
            return self.seal(target, format, value, out);
        };
        let mut sealed = Vec::new();
        match self.narrower(declared, Some(fit)) {
            Some(from) => {
                let wide = fitted::widen((from, fit.code), format == TEXT, value, &self.env)?;
                self.seal_wide((fit.code, Some(fit)), &wide, false, &mut sealed)?;
            }
            None if self.seal_fitted(fit, format, value, false, &mut sealed)? => {}
            None => return self.seal(target, format, value, out),
        }
        match format == TEXT {
            true => out.extend_from_slice(as_text(&sealed).as_bytes()),
            false => out.append(&mut sealed),
        }
        Ok(())
    }

    /// Appends the envelope (or the array of envelopes) for a value given by the client, in the
    /// same format.
    pub fn seal(
        &self,
        target: Protected,
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match (target, format) {
            (Protected::Scalar(code), _) => self.seal_scalar(code, format, value, out),
            (Protected::Array(code), TEXT) => array::map_text(value, out, |element, out| {
                self.seal_scalar(code, TEXT, element, out)
                    .map(|()| Shown::Value)
            }),
            (Protected::Array(code), _) => {
                let twin = self.twin(code)?;
                array::map_binary(value, twin, out, |element, out| {
                    self.seal_scalar(code, format, element, out)
                        .map(|()| Shown::Value)
                })
            }
            (Protected::Soft(code, Some(column)), _) => {
                self.encode(column, (Purpose::Store, code), (format, value), out)
            }
            (Protected::Soft(..) | Protected::SoftArray(_), _) => {
                Err(Failure::protocol("value of no known column"))
            }
            (Protected::Quoting, _) => Err(Failure::protocol("plain value to be sealed")),
        }
    }

    /// Whether a value is passed to the keeper unchanged: it is a complete export envelope of a
    /// dump that is being restored. Only the keeper can check whether it is genuine.
    pub(crate) fn passes(&self, text: &[u8]) -> bool {
        let mut binary = Vec::new();
        self.restoring
            && format::looks_like_text(text)
            && format::from_text(text, &mut binary).is_ok()
            && Envelope::parse(&binary).is_ok_and(|e| e.origin == Origin::Export)
    }

    /// Like [`Session::seal`], for a row of COPY.
    pub(crate) fn seal_row(
        &self,
        target: Protected,
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match target {
            _ if format != TEXT => self.seal(target, format, value, out),
            Protected::Scalar(_) if self.passes(value) => {
                out.extend_from_slice(value);
                Ok(())
            }
            Protected::Array(code) if self.restoring => array::map_text(value, out, |one, out| {
                self.seal_row(Protected::Scalar(code), TEXT, one, out)
                    .map(|()| Shown::Value)
            }),
            _ => self.seal(target, format, value, out),
        }
    }

    /// Appends a batch: `count` values in the form described in [`contract::envelope`], each in the
    /// given format.
    pub(crate) fn seal_batch(
        &self,
        code: TypeCode,
        format: i16,
        count: u32,
        values: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let (sealer, _) = self.keys()?;
        if format == TEXT {
            let mut binary = Vec::new();
            sealer.seal_batch(code as u8, FLAG_TEXT, count, values, &mut binary)?;
            let mut text = String::new();
            envelope::format::to_text(&binary, &mut text);
            out.extend_from_slice(text.as_bytes());
        } else {
            sealer.seal_batch(code as u8, 0, count, values, out)?;
        }
        Ok(())
    }

    fn seal_scalar(
        &self,
        code: TypeCode,
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let (sealer, _) = self.keys()?;
        if format == TEXT {
            let mut text = String::new();
            sealer.seal_text(code as u8, FLAG_TEXT, value, &mut text)?;
            out.extend_from_slice(text.as_bytes());
        } else {
            sealer.seal(code as u8, 0, value, out)?;
        }
        Ok(())
    }

    /// Appends the envelope of a value that the client has as text, for a parameter sent in binary
    /// format, which is shorter than text and faster on both sides.
    pub fn seal_text_as_binary(
        &self,
        code: TypeCode,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let (sealer, _) = self.keys()?;
        Ok(sealer.seal(code as u8, FLAG_TEXT, value, out)?)
    }

    /// Appends the value of a result field received in binary format, as text.
    pub fn open_binary_as_text(
        &self,
        code: TypeCode,
        field: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        self.open_envelope(code, field, TEXT, out)
    }

    /// Appends the value of a result field in the format in which it was received. Appends nothing
    /// if the value is NULL to this client.
    pub fn open(
        &self,
        source: Protected,
        format: i16,
        field: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        match (source, format) {
            (Protected::Scalar(code), _) => self.open_scalar(code, format, field, out),
            (Protected::Soft(code, _), _) => {
                self.decode(code, format, field, out).map(|()| Shown::Value)
            }
            (Protected::SoftArray(code), TEXT) => {
                let open = |one: &[u8], out: &mut Vec<u8>| {
                    self.decode(code, TEXT, one, out).map(|()| Shown::Value)
                };
                array::map_text(field, out, open).map(|()| Shown::Value)
            }
            (Protected::SoftArray(code), _) => {
                let open = |one: &[u8], out: &mut Vec<u8>| {
                    self.decode(code, format, one, out).map(|()| Shown::Value)
                };
                array::map_binary(field, code.plain_oid(), out, open).map(|()| Shown::Value)
            }
            (Protected::Array(code), TEXT) => {
                let open = |one: &[u8], out: &mut Vec<u8>| self.open_scalar(code, TEXT, one, out);
                array::map_text(field, out, open).map(|()| Shown::Value)
            }
            (Protected::Array(code), _) => {
                let open = |one: &[u8], out: &mut Vec<u8>| self.open_scalar(code, format, one, out);
                array::map_binary(field, code.plain_oid(), out, open).map(|()| Shown::Value)
            }
            (Protected::Quoting, _) => {
                self.open_quoted(field, true, out);
                Ok(Shown::Value)
            }
        }
    }

    /// Appends the value of a field that may be an envelope of any type; other values are not
    /// changed.
    pub fn open_untyped(
        &self,
        format: i16,
        field: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        let mut binary = Vec::new();
        let claimed = if format == TEXT {
            if !format::looks_like_text(field) || format::from_text(field, &mut binary).is_err() {
                None
            } else {
                Envelope::parse(&binary).ok()
            }
        } else {
            Envelope::parse(field).ok()
        };
        match claimed.and_then(|envelope| envelope.type_code) {
            Some(code) => self.open_scalar(code, format, field, out),
            None => {
                out.extend_from_slice(field);
                Ok(Shown::Value)
            }
        }
    }

    fn open_scalar(
        &self,
        code: TypeCode,
        format: i16,
        field: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        if format != TEXT {
            return self.open_envelope(code, field, format, out);
        }
        let mut binary = Vec::with_capacity(field.len());
        format::from_text(field, &mut binary)?;
        self.open_envelope(code, &binary, TEXT, out)
    }

    /// Appends the value of an envelope in the requested format.
    pub(crate) fn open_envelope(
        &self,
        code: TypeCode,
        envelope: &[u8],
        format: i16,
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        let (_, opener) = self.keys()?;
        let mut plain = Vec::with_capacity(envelope.len());
        let storing = self.storing.as_ref().map(|(_, opener)| opener);
        let envelope = self
            .delivered
            .open((opener, storing), envelope, &mut plain)?;
        let opened = describe(&envelope);
        if opened.0.map(TypeCode::stored) != Some(code.stored()) {
            return Err(Failure::new(
                "XX001",
                "confide: envelope is of another type than its column",
            ));
        }
        if envelope.is_null() {
            return Ok(Shown::Null);
        }
        match (opened.1, format == TEXT) {
            (true, true) | (false, false) => out.extend_from_slice(&plain),
            // For these types the binary format is the text.
            (_, true) if matches!(code, TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar) => {
                out.extend_from_slice(&plain);
            }
            (false, true) => {
                let value = values::decode_binary(code, -1, &plain)?;
                out.extend_from_slice(&values::format_text(&value, &self.env));
            }
            (true, false) => {
                let value = values::parse_text(code, -1, &plain, &self.env)?;
                out.extend_from_slice(&values::encode_binary(&value));
            }
        }
        Ok(Shown::Value)
    }

    fn keys(&self) -> Result<&(Sealer, Opener), Failure> {
        self.keys.as_ref().ok_or_else(Failure::no_session)
    }

    fn twin(&self, code: TypeCode) -> Result<u32, Failure> {
        self.types
            .twin(code.plain_oid())
            .ok_or_else(|| Failure::new("42704", "confide: type has no protected twin"))
    }
}

fn as_text(envelope: &[u8]) -> String {
    let mut text = String::new();
    format::to_text(envelope, &mut text);
    text
}

/// Returns a grant that allows export envelopes wherever the client's own values are allowed.
fn with_exports(bytes: &[u8]) -> Option<Arc<[u8]>> {
    let mut grant = grant::Grant::decode(bytes).ok()?;
    for entry in &mut grant.entries {
        if entry.origins & grant::origin::CLIENT != 0 {
            entry.origins |= grant::origin::EXPORT;
        }
    }
    Some(Arc::from(grant.encode()))
}

fn describe(envelope: &Envelope<'_>) -> (Option<TypeCode>, bool) {
    (envelope.type_code, envelope.is_text())
}
