//! `ResultBegin`, `ResultRows`, `ResultSign`: a result with the keeper's signature (crate `ledger`;
//! SecuDB, section 6.4).
//!
//! The client sends its statement and nonce in envelopes; the database says which columns and rows
//! the result has. The keeper vouches for the cells of a column if all of them are stored values of
//! one protected column, since clients stored these values there. It also vouches for them if all
//! of them are contents of row versions of a ledger table (`shown`); then the cells of a row also
//! belong together. All other contents of the result are only asserted by the database.
//!
//! Invariants: without a client nothing is signed; an incomplete result is not signed; the size of
//! its cells is limited.

use super::Connection;
use super::shown::Sources;
use crate::fail::{self, Failure};
use aws_lc_rs::rand;
use contract::message::table::{ResultCell, ResultColumn};
use contract::{Fid, TypeCode, body};
use grant::family;
use ledger::result::{Cells, Column, Header, NONCE_MAX, SEED_BYTES, SignedResult};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{Entry, Label};
use values::{Error, Value};

/// Maximum size of a result, including an overhead for each cell in addition to its text.
const BYTES_MAX: usize = 64 * 1024 * 1024;
const CELL_BYTES: usize = 64;
/// Maximum number of columns, more than PostgreSQL's results can have.
const COLUMNS_MAX: usize = 2000;
/// 2000-01-01 UTC, the epoch of PostgreSQL's timestamps.
const EPOCH: Duration = Duration::from_secs(946_684_800);

/// A result being collected.
pub(super) struct Signing {
    statement: String,
    nonce: Vec<u8>,
    columns: Vec<Collected>,
    cells: Cells,
    bytes: usize,
    /// What its cells were computed from.
    label: Label,
    /// The row versions that rows show.
    pub(super) shown: Sources,
}

impl Signing {
    /// Whether a column of the result shows this column of a source.
    pub(super) fn shows(&self, source: u8, name: &str) -> bool {
        let named = |c: &Collected| {
            let origin = c.column.origin.as_ref();
            origin.is_some_and(|[_, _, column]| column == name)
        };
        self.columns.iter().any(|c| c.version == source && named(c))
    }
}

/// A column of the result.
struct Collected {
    column: Column,
    t: Option<TypeCode>,
    source: Source,
    /// The row version that its cells are said to come from, and whether all of them did so far.
    version: u8,
    proven: bool,
}

/// The location of the cells of a column so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// There were none yet, or only NULLs.
    Nowhere,
    /// In one partition.
    Partition(u32),
    /// In several partitions, in an arena, or in the clear.
    Anywhere,
}

impl Source {
    fn and(self, fid: Fid) -> Source {
        match self {
            _ if fid.is_temporary() => Source::Anywhere,
            Source::Nowhere => Source::Partition(fid.partition()),
            Source::Partition(partition) if partition == fid.partition() => self,
            _ => Source::Anywhere,
        }
    }
}

impl Connection {
    pub(super) fn result_begin(&mut self, body: body::ResultBegin<'_>) -> Result<(), Failure> {
        self.signing = None;
        self.need_client()?;
        let statement = match self.space.value(body.statement, Some(TypeCode::Text))? {
            Some(Value::Text(text)) => String::from_utf8(text.to_vec()).ok(),
            _ => None,
        };
        let nonce = match self.space.value(body.nonce, Some(TypeCode::Bytea))? {
            Some(Value::Bytea(bytes)) if bytes.len() <= NONCE_MAX => Some(bytes.to_vec()),
            _ => None,
        };
        let (Some(statement), Some(nonce)) = (statement, nonce) else {
            return Err(fail::unsigned("The statement is no text, or the nonce too long.").into());
        };
        let columns: Vec<Collected> = body.columns.iter().map(collected).collect();
        if columns.is_empty() {
            // Its rows would not be counted.
            return Err(fail::unsigned("It has no columns.").into());
        }
        if columns.len() > COLUMNS_MAX {
            return Err(fail::malformed("There are too many columns.").into());
        }
        self.signing = Some(Signing {
            statement,
            nonce,
            columns,
            cells: Cells::default(),
            bytes: 0,
            label: self.operands(&[body.statement, body.nonce])?.label,
            shown: Sources::default(),
        });
        Ok(())
    }

    pub(super) fn result_rows(&mut self, body: body::ResultRows<'_>) -> Result<(), Failure> {
        // If a step fails, the whole result is dropped.
        let mut signing = self.signing.take().ok_or_else(not_begun)?;
        for cell in body.cells.iter() {
            self.collect(&mut signing, &cell)?;
        }
        self.signing = Some(signing);
        Ok(())
    }

    fn collect(&self, signing: &mut Signing, cell: &ResultCell<'_>) -> Result<(), Failure> {
        let width = signing.columns.len().max(1);
        let (row, at) = (signing.cells.len() / width, signing.cells.len() % width);
        if at == 0 {
            signing.bytes += signing.shown.row(row as u64);
        }
        let column = signing.columns.get_mut(at).ok_or_else(not_begun)?;
        let formatted;
        let text = match column.t {
            _ if cell.null != 0 => None,
            None => Some(cell.text),
            Some(t) => {
                column.source = column.source.and(cell.fid);
                let more = self.operands(&[cell.fid])?.label;
                signing.label = self.union(signing.label, more)?;
                let value = self.space.value(cell.fid, Some(t.stored()))?;
                formatted = value.map(|value| values::into_text(value, &self.env));
                formatted.as_deref()
            }
        };
        signing.bytes += CELL_BYTES + text.map_or(0, <[u8]>::len);
        if signing.bytes > BYTES_MAX {
            return Err(fail::unsigned_too_long().into());
        }
        let text = text.map(std::str::from_utf8).transpose();
        let text = text.map_err(|_| fail::malformed("A cell is not UTF-8."))?;
        if column.version > 0 && column.proven {
            let origin = column.column.origin.as_ref();
            let name = origin.map_or("", |[_, _, name]| name.as_str());
            let shows = signing.shown.shows(column.version, name);
            column.proven = shows.is_some_and(|it| it.is(cell, text, &self.env));
        }
        signing.cells.push(text);
        Ok(())
    }

    pub(super) fn result_sign(&mut self, body: body::ResultSign) -> Result<(), Failure> {
        let client = self.client.as_ref().ok_or_else(fail::no_client)?;
        let signing = self.signing.take().ok_or_else(not_begun)?;
        let label = signing.label;
        self.authorise(label, family::SHOW)?;
        let mut header = header(&signing, &client.name)?;
        let (ledgers, versions) = self.proven(signing.shown, header.rows)?;
        header.ledgers = ledgers;
        header.evidence = self.keeper.zone.signing()?.to_vec();
        let failed = |e: ledger::Error| fail::internal("signing failed").detail(e.to_string());
        let mut seed = [0; SEED_BYTES];
        rand::fill(&mut seed).map_err(|_| fail::internal("there are no random bytes"))?;
        let key = &self.keeper.keys.signing;
        let signed =
            SignedResult::sign(header, signing.cells, versions, seed, key).map_err(failed)?;
        let text = signed.to_json().map_err(failed)?;
        self.space.set(
            body.to,
            Entry::Value(Value::Text(text.into_bytes().into())),
            label,
        )?;
        Ok(())
    }
}

fn collected(column: ResultColumn<'_>) -> Collected {
    let ResultColumn { schema, table, .. } = column;
    let origin = [schema, table, column.column].map(str::to_owned);
    Collected {
        t: column.t,
        source: Source::Nowhere,
        version: column.source,
        proven: true,
        column: Column {
            name: column.name.to_owned(),
            type_name: column.type_name.to_owned(),
            origin: (!table.is_empty()).then_some(origin),
            vouched: false,
            ledger: None,
        },
    }
}

fn header(signing: &Signing, principal: &str) -> Result<Header, Error> {
    let width = signing.columns.len().max(1);
    if !signing.cells.len().is_multiple_of(width) {
        return Err(fail::malformed("A row of the result is not whole."));
    }
    let rows = (signing.cells.len() / width) as u64;
    let columns = signing.columns.iter().map(|collected| {
        let whole = collected.version > 0 && collected.proven;
        let ledger = whole
            .then(|| signing.shown.place(collected.version, rows))
            .flatten();
        Column {
            vouched: ledger.is_some() || matches!(collected.source, Source::Partition(_)),
            ledger,
            ..collected.column.clone()
        }
    });
    Ok(Header {
        statement: signing.statement.clone(),
        nonce: signing.nonce.clone(),
        time: now(),
        principal: principal.to_owned(),
        columns: columns.collect(),
        rows,
        evidence: Vec::new(),
        ledgers: Vec::new(),
    })
}

/// Microseconds since 2000-01-01 UTC according to the keeper's clock.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH + EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0))
}

pub(super) fn not_begun() -> Error {
    fail::unsigned("There is none, or a part of it failed.")
}
