//! Bulk loading: `PutBatch`, the values of a column in one envelope; and `PromoteRuns`, the
//! promotion of many rows.
//!
//! Does the same as `PutEnvelope` and `Promote`, with one decryption per column, one lock per run,
//! and one redo record.
//!
//! Invariant: a value is stored as it would be row by row, or its slot is poisoned; a promotion is
//! complete or has no effect.

use super::Connection;
use super::envelopes::{Target, coerce, unopened};
use crate::fail::{self, Failure};
use crate::fault;
use crate::provenance;
use contract::codec::{Each, Fixed, List, Part};
use contract::envelope::{FLAG_TEXT, Origin};
use contract::message::table::{ColumnRuns, Run};
use contract::message::{BODY_MAX, PROMOTE_RUNS_MAX};
use contract::{Fid, answer, body};
use envelope::Envelope;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Entry;
use values::{Env, Error, Value};

/// More bytes than this need several redo records, so `Promote` is used.
const RECORD_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 1600;

/// Values for one column.
struct Column {
    partition: u32,
    /// First FIDs and lengths.
    sources: Vec<(Fid, u32)>,
    /// Lengths of the values, which are stored consecutively.
    lengths: Vec<u32>,
    t: contract::TypeCode,
}

impl Connection {
    pub(super) fn put_batch(&mut self, body: body::PutBatch<'_>) -> Result<(), Failure> {
        let body::PutBatch { fid, typmod, t, .. } = body;
        let target = Target { fid, typmod, t };
        let parsed = Envelope::parse(body.envelope).map_err(unopened)?;
        let count = parsed.count.ok_or_else(|| {
            fail::malformed("The envelope has one value where a batch is expected.")
        })? as usize;
        let entries = self.open_batch(&target, &parsed, count);
        self.wipe();
        let stored = entries.and_then(|(entries, failure)| {
            let label = self.label_if_bound(provenance::CLIENT);
            let mut window = self.space.own_arena(target.fid.partition())?.write();
            window.mark(target.fid.slot(), count, label)?;
            window.set_all(target.fid.slot(), entries)?;
            Ok(failure)
        });
        match stored {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(error) => {
                let failure = Failure::from(error);
                self.space.poison(target.fid, count, &failure);
                Err(failure)
            }
        }
    }

    /// The values of a batch, and the first failure among them.
    fn open_batch(
        &mut self,
        target: &Target,
        parsed: &Envelope<'_>,
        count: usize,
    ) -> Result<(Vec<Entry>, Option<Failure>), Error> {
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        debug_assert!(parsed.origin == Origin::Client);
        let opened = client.opener.open_parsed(parsed, &mut self.plain);
        opened.map_err(unopened)?;
        let session = &self.session;
        session.counters.opened.fetch_add(count as u64, Relaxed);
        let t = parsed.type_code.unwrap_or(target.t);
        if t.stored() != target.t.stored() {
            return Err(fail::wrong_type(t, target.t));
        }
        let mut rest = self.plain.as_slice();
        let mut entries = Vec::with_capacity(count);
        let mut failure: Option<Failure> = None;
        for _ in 0..count {
            let bytes = take_value(&mut rest).ok_or_else(bad_batch)?;
            entries.push(match read(target, parsed.flags, t, bytes, &self.env) {
                Ok(value) => Entry::Value(value),
                Err(error) => {
                    let error = Arc::new(error);
                    failure.get_or_insert_with(|| Failure {
                        error: Arc::clone(&error),
                        told: false,
                    });
                    Entry::Poison(error)
                }
            });
        }
        match rest {
            [] => Ok((entries, failure)),
            _ => Err(bad_batch()),
        }
    }

    pub(super) fn promote_runs(&mut self, body: body::PromoteRuns<'_>) -> Result<(), Failure> {
        self.may_write()?;
        let mut columns = take_columns(&body)?;
        let gathered = self.gather(&mut columns);
        let promoted = match gathered {
            Ok(true) => self.promote_gathered(&columns),
            Ok(false) => {
                self.answer(&promoted(0, 0));
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        self.wipe();
        promoted
    }

    /// Encodes all values. Returns false if one needs the slow path: NULL, or too long.
    fn gather(&mut self, columns: &mut [Column]) -> Result<bool, Failure> {
        self.plain.clear();
        for column in columns {
            self.must_be_column(column.partition)?;
            let partition = self.keeper.store.get(column.partition);
            let partition = partition.ok_or_else(store::unresolved)?;
            column.t = partition
                .read()
                .stored_type()
                .ok_or_else(store::unresolved)?;
            for (first, count) in &column.sources {
                if !first.is_temporary() && self.client.is_none() {
                    return Err(fail::no_client_to_move().into());
                }
                self.may_take(*first, *count, column.partition)?;
                self.authorise_run(*first, *count, column.partition)?;
                let (plain, lengths, t) = (&mut self.plain, &mut column.lengths, column.t);
                let whole = self.space.look_at_run(*first, *count, t, |scalar| {
                    let start = plain.len();
                    store::encode(scalar, t, plain);
                    lengths.push((plain.len() - start) as u32);
                    plain.len() <= RECORD_BYTES
                })?;
                if !whole {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a run of values may be stored in a column.
    fn authorise_run(&self, first: Fid, count: u32, partition: u32) -> Result<(), Failure> {
        if !self.is_bound() {
            return Ok(());
        }
        let fids: Vec<Fid> = (0..u64::from(count)).map(|n| Fid(first.0 + n)).collect();
        self.authorise_write(self.operands(&fids)?.label, partition)
    }

    fn promote_gathered(&mut self, columns: &[Column]) -> Result<(), Failure> {
        let store = &self.keeper.store;
        let mut made: Vec<(Fid, u32)> = Vec::new();
        let mut log = redo::Runs::new();
        let mut rest = self.plain.as_slice();
        let mut done = Ok(());
        promoted(1, columns.len()).put(&mut self.reply);
        for column in columns {
            let start = made.len();
            let mut bytes = rest;
            let values = column.lengths.iter().map_while(|length| {
                let (value, tail) = bytes.split_at_checked(*length as usize)?;
                bytes = tail;
                store::decode(column.t, value)
            });
            done = store.promote_all(column.partition, column.t, values, |fid| {
                match made.get_mut(start..).and_then(<[_]>::last_mut) {
                    Some((first, count)) if first.0 + u64::from(*count) == fid.0 => *count += 1,
                    _ => made.push((fid, 1)),
                }
            });
            let runs = made.get(start..).unwrap_or_default();
            let stored: u64 = runs.iter().map(|(_, count)| u64::from(*count)).sum();
            if done.is_ok() && stored != column.lengths.len() as u64 {
                done = Err(fail::internal("a value did not come back from its bytes"));
            }
            if done.is_err() {
                break;
            }
            put_runs(&mut self.reply, column.partition, runs);
            let mut lengths = column.lengths.as_slice();
            for (first, count) in runs {
                let (these, others) = lengths.split_at(*count as usize);
                lengths = others;
                log.push(first.0, column.t as u8, these, &mut rest);
            }
        }
        let sealed = done
            .map_err(Failure::from)
            .and_then(|()| self.log_runs(&log));
        sealed.inspect_err(|_| {
            for (first, count) in &made {
                let fids = (0..u64::from(*count)).map(|n| Fid(first.0 + n));
                fids.for_each(|fid| {
                    self.keeper.store.free(fid);
                });
            }
        })?;
        fault::at("promoted");
        Ok(())
    }

    /// Appends the redo record to the answer.
    fn log_runs(&mut self, log: &redo::Runs) -> Result<(), Failure> {
        if let Some(durable) = &self.keeper.durable
            && !log.is_empty()
        {
            self.reply.extend_from_slice(&durable.log_runs(log)?);
        }
        if self.reply.len() > BODY_MAX {
            return Err(fail::answer_too_long().into());
        }
        Ok(())
    }
}

fn bad_batch() -> Error {
    fail::bad_envelope(
        "The batch does not have as many values as it says.",
        "Send values through the Confide proxy.",
    )
}

/// Takes one value of a batch: its length, then its bytes.
fn take_value<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0_usize;
    for shift in [0, 7, 14, 21] {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let (value, tail) = rest.split_at_checked(length)?;
            *rest = tail;
            return Some(value);
        }
    }
    None
}

/// Decodes one value, as from its own envelope.
fn read(
    target: &Target,
    flags: u8,
    t: contract::TypeCode,
    bytes: &[u8],
    env: &Env,
) -> Result<Value, Error> {
    if flags & FLAG_TEXT != 0 {
        return values::parse_text(target.t, target.typmod, bytes, env);
    }
    coerce(values::decode_binary(t, -1, bytes)?, target)
}

fn take_columns(body: &body::PromoteRuns<'_>) -> Result<Vec<Column>, Error> {
    let (count, values) = (body.columns as usize, body.values as usize);
    if count > COLUMNS_MAX || values > PROMOTE_RUNS_MAX {
        return Err(fail::malformed("The message has too many values."));
    }
    let mut columns = Vec::with_capacity(count);
    let mut left = values;
    for ColumnRuns {
        partition, runs, ..
    } in body.sources.iter()
    {
        let mut sources = Vec::with_capacity(runs.len());
        let mut total = 0;
        for Run { first, length } in runs {
            if length == 0 || length as usize > left {
                return Err(fail::malformed("A run's length is impossible."));
            }
            left -= length as usize;
            total += length as usize;
            sources.push((first, length));
        }
        columns.push(Column {
            partition,
            sources,
            lengths: Vec::with_capacity(total),
            t: contract::TypeCode::Bool,
        });
    }
    if left != 0 {
        return Err(fail::malformed(
            "The message has not as many values as it says.",
        ));
    }
    Ok(columns)
}

fn put_runs(reply: &mut Vec<u8>, partition: u32, runs: &[(Fid, u32)]) {
    let head = ColumnRuns {
        partition,
        count: runs.len() as u32,
        runs: List::new(&[]),
    };
    head.put(reply);
    for (first, length) in runs.iter().copied() {
        Run { first, length }.put(reply);
    }
}

/// The fixed part of an answer.
fn promoted(promoted: u32, columns: usize) -> answer::PromoteRuns<'static> {
    answer::PromoteRuns {
        promoted,
        columns: columns as u32,
        runs: Each::new(&[]),
        record: &[],
    }
}
