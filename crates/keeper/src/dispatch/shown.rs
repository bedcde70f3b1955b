//! `LedgerRow` for a row version shown in a result: the keeper vouches for the cells that agree
//! with the version, and proves that the table's log contains it.
//!
//! The database sends the whole version, as in a walk. Its hash must match the log. Then each
//! result cell that claims to come from the version is compared with it: protected cells by FID,
//! plain cells by the text of their bytes. Plain types whose text form is not implemented here are
//! not vouched for.
//!
//! Invariants: a version belongs to one row and one source; anything that does not match counts as
//! the database's statement and is not an error, since the database may state the rows anyway.

use super::Connection;
use super::described::Described;
use super::signed::not_begun;
use crate::fail::{self, Failure};
use aws_lc_rs::digest;
use contract::message::ledger::SOURCES;
use contract::message::table::{LedgerCell, ResultCell};
use contract::{Fid, TypeCode, body};
use ledger::Hash;
use ledger::result::{Ledger, Version};
use ledger::tree;
use std::collections::BTreeMap;
use values::{Env, Value};

/// Maximum number of versions that may wait for their rows.
const WAITING_MAX: usize = 16_384;

/// A version's value of a column.
enum Said {
    Protected(Fid),
    /// A plain value: name of its type, and its bytes as stored by PostgreSQL.
    Plain(String, Vec<u8>),
    /// The hash of such bytes.
    Hashed(String, Vec<u8>),
}

/// What a version says of its columns, by name.
type Columns = BTreeMap<String, Said>;

/// A row version whose contents were verified.
struct Proven {
    version: Version,
    columns: Columns,
}

/// The versions of one source.
struct Of {
    log: u32,
    /// One for each row so far, without its proof.
    versions: Vec<Version>,
}

/// The ledger tables that a result's rows show, by source of the columns.
#[derive(Default)]
pub(super) struct Sources {
    of: BTreeMap<u8, Of>,
    waiting: BTreeMap<u64, Proven>,
    /// Versions of the row whose cells follow.
    current: BTreeMap<u8, Columns>,
}

/// A version's value of a column; `None`: NULL.
pub(super) struct Shows<'a>(Option<&'a Said>);

impl Connection {
    pub(super) fn ledger_shown(&mut self, body: &body::LedgerRow<'_>) -> Result<(), Failure> {
        self.log_key(body.log)?;
        let mut signing = self.signing.take().ok_or_else(not_begun)?;
        let source = u8::try_from(body.number % SOURCES).unwrap_or(0);
        if source == 0 || signing.shown.waiting.len() >= WAITING_MAX {
            return Err(fail::malformed("A row version is of no row.").into());
        }
        let of = signing.shown.of.entry(source).or_insert_with(|| Of {
            log: body.log,
            versions: Vec::new(),
        });
        if of.log == body.log
            && let Some(version) = self.shown_version(body)?
        {
            let described = self.described.of(body)?;
            let columns = columns(body, described, |name| signing.shows(source, name));
            let proven = Proven { version, columns };
            signing.shown.waiting.insert(body.number, proven);
        }
        self.signing = Some(signing);
        Ok(())
    }

    /// Proves the versions of a source, all against the same root.
    ///
    /// Versions that somebody has read have committed, so they are on disk, and so is what came
    /// before them in the log. Nothing else is signed that a crash may take away: the log would
    /// seem to have been changed.
    fn prove(&self, of: &mut Of) -> Result<Ledger, Failure> {
        let origin = self.ledger_origin(of.log)?;
        let last = of.versions.iter().map(|version| version.index).max();
        let ledger = self.with_log(of.log, |log| {
            let size = last.map_or(0, |last| last + 1).max(log.kept());
            let range = |_| fail::internal("a log has no such size");
            for version in &mut of.versions {
                let proof = tree::prove_inclusion(&log.tree, version.index, size);
                version.path = proof.map_err(range)?.path;
            }
            Ok(Ledger {
                origin,
                size,
                root: tree::root(&log.tree, size).map_err(range)?,
            })
        })?;
        Ok(ledger)
    }

    /// Proves the versions of the sources for which every row shows one: their ledgers, and the
    /// versions row by row.
    pub(super) fn proven(
        &self,
        mut shown: Sources,
        rows: u64,
    ) -> Result<(Vec<Ledger>, Vec<Version>), Failure> {
        let mut whole: Vec<&mut Of> = shown.whole_mut(rows).collect();
        let ledgers = whole.iter_mut().map(|of| self.prove(of));
        let ledgers = ledgers.collect::<Result<Vec<_>, _>>()?;
        let mut columns: Vec<_> = whole
            .into_iter()
            .map(|of| std::mem::take(&mut of.versions).into_iter())
            .collect();
        let rows = columns.first().map_or(0, ExactSizeIterator::len);
        let row = |_| {
            columns
                .iter_mut()
                .filter_map(Iterator::next)
                .collect::<Vec<_>>()
        };
        Ok((ledgers, (0..rows).flat_map(row).collect()))
    }

    /// The version, if it agrees with the log.
    fn shown_version(&self, body: &body::LedgerRow<'_>) -> Result<Option<Version>, Failure> {
        // A value that no longer exists does not agree either.
        let Ok(row) = self.ledger_hash(body, false) else {
            return Ok(None);
        };
        let store = &self.keeper.store;
        let names = &self.described.of(body)?.names;
        let version = self.with_log(body.log, |log| {
            let known = log.versions.get(body.sn).filter(|_| log.is_of(names));
            let Some(known) = known.filter(|version| !log.is_erased(version)) else {
                return Ok(None);
            };
            let entry = log.bytes(store, known.index)?;
            let same = ledger::entry::Entry::decode(&entry).is_ok_and(|entry| entry.row == row);
            if !same || log.is_void(known.index) {
                return Ok(None);
            }
            let ended = known.ended.is_some_and(|end| !log.is_doubtful(end));
            Ok(Some(Version {
                index: known.index,
                ended,
                entry,
                path: Vec::new(),
            }))
        })?;
        Ok(version)
    }
}

impl Sources {
    /// Starts a row. Returns the size of its versions, with about that of their proofs.
    pub fn row(&mut self, row: u64) -> usize {
        let next = row.saturating_add(1).saturating_mul(SOURCES);
        let rest = self.waiting.split_off(&next);
        let of_row = std::mem::replace(&mut self.waiting, rest);
        self.current.clear();
        let mut bytes = 0;
        for (number, proven) in of_row {
            let source = u8::try_from(number % SOURCES).unwrap_or(0);
            let of = self.of.get_mut(&source).filter(|_| number / SOURCES == row);
            if let Some(of) = of {
                let path = proven.version.index.max(1).ilog2() as usize + 1;
                bytes += proven.version.entry.len() + path * size_of::<Hash>();
                of.versions.push(proven.version);
                self.current.insert(source, proven.columns);
            }
        }
        bytes
    }

    /// What the current row's version has in a column.
    pub fn shows(&self, source: u8, column: &str) -> Option<Shows<'_>> {
        let columns = self.current.get(&source)?;
        Some(Shows(columns.get(column)))
    }

    /// Position of a source among those for which every row shows a version.
    pub fn place(&self, source: u8, rows: u64) -> Option<usize> {
        let mut whole = self.of.iter().filter(|(_, of)| of.is_whole(rows));
        whole.position(|(other, _)| *other == source)
    }

    /// These sources.
    fn whole_mut(&mut self, rows: u64) -> impl Iterator<Item = &mut Of> {
        self.of.values_mut().filter(move |of| of.is_whole(rows))
    }
}

impl Of {
    fn is_whole(&self, rows: u64) -> bool {
        rows > 0 && self.versions.len() as u64 == rows
    }
}

impl Shows<'_> {
    /// Whether a result cell agrees with it.
    pub fn is(&self, cell: &ResultCell<'_>, text: Option<&str>, env: &Env) -> bool {
        let Some(said) = self.0 else {
            return cell.null != 0;
        };
        match (said, text) {
            (_, None) => false,
            (Said::Protected(fid), _) => cell.fid == *fid && !fid.is_temporary(),
            (Said::Plain(name, bytes), Some(text)) => {
                let value = type_code(name).and_then(|t| value_of(t, bytes));
                value.is_some_and(|value| values::format_text(&value, env) == text.as_bytes())
            }
            (Said::Hashed(name, hash), Some(text)) => {
                let texts = [TypeCode::Text, TypeCode::Bpchar];
                type_code(name).is_some_and(|t| texts.contains(&t))
                    && digest::digest(&digest::SHA256, text.as_bytes()).as_ref() == *hash
            }
        }
    }
}

/// What the version says of the columns that are wanted.
fn columns(
    body: &body::LedgerRow<'_>,
    described: &Described,
    wanted: impl Fn(&str) -> bool,
) -> Columns {
    let said = |cell: LedgerCell<'_>| {
        let column = described.column(cell.column).ok()?;
        let name = str::from_utf8(column.heading.name())
            .ok()
            .filter(|n| wanted(n))?;
        let type_name = str::from_utf8(column.heading.type_name()).ok()?.to_owned();
        let said = match (column.t, cell.hashed) {
            (Some(_), _) => Said::Protected(cell.fid),
            (None, 0) => Said::Plain(type_name, cell.bytes.to_vec()),
            (None, _) => Said::Hashed(type_name, cell.bytes.to_vec()),
        };
        Some((name.to_owned(), said))
    };
    let mut columns: Columns = body.cells.iter().filter_map(said).collect();
    // These are not hashed as columns.
    let mut own = |name: &str, type_name: &str, bytes: &[u8]| {
        if wanted(name) {
            let said = Said::Plain(type_name.to_owned(), bytes.to_vec());
            columns.insert(name.to_owned(), said);
        }
    };
    own("sn", "bigint", &body.sn.to_ne_bytes());
    own(
        "valid_from",
        "timestamp with time zone",
        &body.time.to_ne_bytes(),
    );
    own("by", "text", body.principal.as_bytes());
    columns
}

/// Types whose text form is implemented here, by the names of `format_type`.
fn type_code(name: &str) -> Option<TypeCode> {
    let plain = match (name.find('('), name.find(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", name.get(..open)?, name.get(close + 1..)?)
        }
        _ => name.to_owned(),
    };
    let name = plain.strip_prefix("pg_catalog.").unwrap_or(&plain);
    Some(match name {
        "boolean" | "bool" => TypeCode::Bool,
        "smallint" => TypeCode::Int2,
        "integer" => TypeCode::Int4,
        "bigint" => TypeCode::Int8,
        "real" => TypeCode::Float4,
        "double precision" => TypeCode::Float8,
        "numeric" => TypeCode::Numeric,
        "text" | "character varying" => TypeCode::Text,
        "character" | "bpchar" => TypeCode::Bpchar,
        "date" => TypeCode::Date,
        "time without time zone" => TypeCode::Time,
        "timestamp without time zone" => TypeCode::Timestamp,
        "timestamp with time zone" => TypeCode::Timestamptz,
        "uuid" => TypeCode::Uuid,
        _ => return None,
    })
}

/// Decodes a value from its bytes as stored by PostgreSQL.
fn value_of(t: TypeCode, bytes: &[u8]) -> Option<Value> {
    let sent = match t {
        TypeCode::Numeric => numeric_sent(bytes)?,
        TypeCode::Text | TypeCode::Bpchar | TypeCode::Uuid | TypeCode::Bool => bytes.to_vec(),
        // PostgreSQL's binary format is big-endian.
        _ if cfg!(target_endian = "little") => bytes.iter().rev().copied().collect(),
        _ => bytes.to_vec(),
    };
    values::decode_binary(t, -1, &sent).ok()
}

/// The binary format of a `numeric`; its stored form has a header of two or four bytes before the
/// digits.
fn numeric_sent(bytes: &[u8]) -> Option<Vec<u8>> {
    const SHORT: u16 = 0x8000;
    const SPECIAL: u16 = 0xC000;
    let words: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|word| <[u8; 2]>::try_from(word).map(u16::from_ne_bytes))
        .collect::<Result<_, _>>()
        .ok()?;
    let (head, rest) = words.split_first()?;
    let (sign, scale, weight, digits) = match head & SPECIAL {
        SPECIAL => (*head, 0, 0, [].as_slice()),
        SHORT => {
            let weight = (head & 0x3F) as i16 - if head & 0x40 == 0 { 0 } else { 0x40 };
            let sign = if head & 0x2000 == 0 { 0 } else { 0x4000 };
            (sign, (head & 0x1F80) >> 7, weight, rest)
        }
        sign => {
            let (weight, digits) = rest.split_first()?;
            (sign, head & 0x3FFF, weight.cast_signed(), digits)
        }
    };
    let mut sent = Vec::new();
    let count = u16::try_from(digits.len()).ok()?;
    for word in [count, weight.cast_unsigned(), sign, scale]
        .iter()
        .chain(digits)
    {
        sent.extend_from_slice(&word.to_be_bytes());
    }
    Some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL 15 stores them on a machine whose lowest byte comes first. A bug would call
    /// what is as it was written the database's word, or another number the same.
    #[test]
    fn stored_numbers() {
        let text = |words: &[u16]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let value = value_of(TypeCode::Numeric, &bytes)?;
            String::from_utf8(values::format_text(&value, &Env::default())).ok()
        };
        assert_eq!(text(&[0x8000]).as_deref(), Some("0"));
        assert_eq!(text(&[0x8000, 12]).as_deref(), Some("12"));
        assert_eq!(text(&[0x8101, 1, 2345, 6700]).as_deref(), Some("12345.67"));
        assert_eq!(text(&[0xA27F, 5]).as_deref(), Some("-0.0005"));
        assert_eq!(text(&[0x0002, 100, 1]).map(|t| t.len()), Some(404));
        assert_eq!(text(&[0x4000, 0, 7]).as_deref(), Some("-7"));
        assert_eq!(text(&[0xC000]).as_deref(), Some("NaN"));
        assert_eq!(text(&[0xF000]).as_deref(), Some("-Infinity"));
        assert_eq!(text(&[]), None);
    }

    #[test]
    fn names_of_types() {
        assert_eq!(type_code("numeric(12,2)"), Some(TypeCode::Numeric));
        assert_eq!(type_code("pg_catalog.text"), Some(TypeCode::Text));
        let zoned = type_code("timestamp(3) with time zone");
        assert_eq!(zoned, Some(TypeCode::Timestamptz));
        assert_eq!(type_code("public.text2"), None);
        assert_eq!(type_code("pg_catalog.jsonb"), None);
        assert_eq!(type_code("integer[]"), None);
    }
}
