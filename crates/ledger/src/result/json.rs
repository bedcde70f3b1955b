//! Signed results and cells as JSON, for people and other programs: the rows as they are displayed;
//! hashes, keys and signatures in base64.
//!
//! Unknown fields are errors, so a file cannot contain anything that was not signed.

use super::cell::Shown;
use super::{Cell, Cells, Column, Header, Ledger, SignedCell, SignedResult, Version};
use crate::{Error, Hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

const RESULT: &str = "confide-result-v5";
const CELL: &str = "confide-cell-v5";
/// Format of results with row versions of ledger tables.
const LEDGER_RESULT: &str = "confide-result-v6";
const LEDGER_CELL: &str = "confide-cell-v6";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultFile<'a> {
    format: Cow<'a, str>,
    result: HeaderFile<'a>,
    rows: Rows<'a>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<VersionFile<'a>>,
    seed: Base64<'a>,
    root: Base64<'a>,
    signature: Base64<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellFile<'a> {
    format: Cow<'a, str>,
    result: HeaderFile<'a>,
    row: u64,
    column: usize,
    value: Cow<'a, Cell>,
    salt: Base64<'a>,
    path: Vec<Base64<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<ShownFile<'a>>,
    root: Base64<'a>,
    signature: Base64<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerFile<'a> {
    origin: Cow<'a, str>,
    size: u64,
    root: Base64<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionFile<'a> {
    index: u64,
    ended: bool,
    entry: Base64<'a>,
    path: Vec<Base64<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownFile<'a> {
    shown: VersionFile<'a>,
    salt: Base64<'a>,
    path: Vec<Base64<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderFile<'a> {
    statement: Cow<'a, str>,
    nonce: Base64<'a>,
    time: i64,
    principal: Cow<'a, str>,
    columns: Vec<ColumnFile<'a>>,
    rows: u64,
    evidence: Base64<'a>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ledgers: Vec<LedgerFile<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile<'a> {
    name: Cow<'a, str>,
    #[serde(rename = "type")]
    type_name: Cow<'a, str>,
    origin: Option<Cow<'a, [String; 3]>>,
    vouched: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<usize>,
}

impl SignedResult {
    /// As JSON.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_json(&self) -> Result<String, Error> {
        let file = ResultFile {
            format: self.header.form(RESULT, LEDGER_RESULT).into(),
            versions: self.versions.iter().map(VersionFile::of).collect(),
            result: HeaderFile::of(&self.header),
            rows: Rows::Of(&self.cells, self.header.columns.len()),
            seed: Base64::of(&self.seed),
            root: Base64::of(&self.root.0),
            signature: Base64::of(&self.signature),
        };
        write(&file, self.json_bytes())
    }

    /// About how many bytes it has as JSON, more rather than less.
    fn json_bytes(&self) -> usize {
        const AROUND: usize = 16;
        let base64 = |bytes: usize| bytes * 4 / 3 + AROUND;
        let version = |version: &Version| {
            4 * AROUND
                + base64(version.entry.len())
                + version.path.len() * base64(size_of::<Hash>())
        };
        let cells = self.cells.len() * AROUND + self.cells.bytes();
        let versions: usize = self.versions.iter().map(version).sum();
        let header = &self.header;
        let columns = header.columns.len() * 16 * AROUND + header.ledgers.len() * 16 * AROUND;
        1024 + base64(header.evidence.len()) + header.statement.len() + columns + cells + versions
    }

    /// Parses a result, without verifying it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Range`].
    pub fn from_json(text: &str) -> Result<SignedResult, Error> {
        let file: ResultFile = read(text)?;
        let header = file.result.header()?;
        check_format(&file.format, header.form(RESULT, LEDGER_RESULT))?;
        let versions = file.versions.into_iter().map(VersionFile::version);
        let Rows::Read(rows) = file.rows else {
            return Err(Error::Library);
        };
        if rows.len() as u64 != header.rows {
            return Err(Error::Range);
        }
        if rows.iter().any(|row| row.len() != header.columns.len()) {
            return Err(Error::Malformed(
                "a row has more or fewer cells than columns",
            ));
        }
        Ok(SignedResult {
            header,
            seed: bytes(&file.seed)?,
            cells: rows.into_iter().flatten().collect(),
            versions: versions.collect::<Result<_, _>>()?,
            root: Hash(bytes(&file.root)?),
            signature: bytes(&file.signature)?,
        })
    }
}

impl SignedCell {
    /// As JSON.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_json(&self) -> Result<String, Error> {
        let file = CellFile {
            format: self.header.form(CELL, LEDGER_CELL).into(),
            version: self.shown.as_ref().map(ShownFile::of),
            result: HeaderFile::of(&self.header),
            row: self.row,
            column: self.column,
            value: Cow::Borrowed(&self.value),
            salt: Base64::of(&self.salt),
            path: hashes(&self.path),
            root: Base64::of(&self.root.0),
            signature: Base64::of(&self.signature),
        };
        write(&file, 4096)
    }

    /// Parses a cell, without verifying it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn from_json(text: &str) -> Result<SignedCell, Error> {
        let file: CellFile = read(text)?;
        let header = file.result.header()?;
        check_format(&file.format, header.form(CELL, LEDGER_CELL))?;
        Ok(SignedCell {
            header,
            shown: file.version.map(ShownFile::shown).transpose()?,
            root: Hash(bytes(&file.root)?),
            signature: bytes(&file.signature)?,
            row: file.row,
            column: file.column,
            value: file.value.into_owned(),
            salt: bytes(&file.salt)?,
            path: path(&file.path)?,
        })
    }
}

impl Header {
    fn form<'a>(&self, plain: &'a str, ledger: &'a str) -> &'a str {
        match self.ledgers.is_empty() {
            true => plain,
            false => ledger,
        }
    }
}

impl<'a> VersionFile<'a> {
    fn of(version: &'a Version) -> VersionFile<'a> {
        VersionFile {
            index: version.index,
            ended: version.ended,
            entry: Base64::of(&version.entry),
            path: hashes(&version.path),
        }
    }

    fn version(self) -> Result<Version, Error> {
        Ok(Version {
            index: self.index,
            ended: self.ended,
            entry: self.entry.decoded(),
            path: path(&self.path)?,
        })
    }
}

impl<'a> ShownFile<'a> {
    fn of(shown: &'a Shown) -> ShownFile<'a> {
        ShownFile {
            shown: VersionFile::of(&shown.version),
            salt: Base64::of(&shown.salt),
            path: hashes(&shown.path),
        }
    }

    fn shown(self) -> Result<Shown, Error> {
        Ok(Shown {
            version: self.shown.version()?,
            salt: bytes(&self.salt)?,
            path: path(&self.path)?,
        })
    }
}

impl<'a> LedgerFile<'a> {
    fn of(ledger: &'a Ledger) -> LedgerFile<'a> {
        LedgerFile {
            origin: Cow::Borrowed(ledger.origin.as_str()),
            size: ledger.size,
            root: Base64::of(&ledger.root.0),
        }
    }

    fn ledger(self) -> Result<Ledger, Error> {
        Ok(Ledger {
            origin: self.origin.into_owned(),
            size: self.size,
            root: Hash(bytes(&self.root)?),
        })
    }
}

impl<'a> HeaderFile<'a> {
    fn of(header: &'a Header) -> HeaderFile<'a> {
        let columns = header.columns.iter().map(|column| ColumnFile {
            name: Cow::Borrowed(column.name.as_str()),
            type_name: Cow::Borrowed(column.type_name.as_str()),
            origin: column.origin.as_ref().map(Cow::Borrowed),
            vouched: column.vouched,
            ledger: column.ledger,
        });
        HeaderFile {
            statement: Cow::Borrowed(header.statement.as_str()),
            nonce: Base64::of(&header.nonce),
            time: header.time,
            principal: Cow::Borrowed(header.principal.as_str()),
            columns: columns.collect(),
            rows: header.rows,
            evidence: Base64::of(&header.evidence),
            ledgers: header.ledgers.iter().map(LedgerFile::of).collect(),
        }
    }

    fn header(self) -> Result<Header, Error> {
        let columns = self.columns.into_iter().map(|column| Column {
            name: column.name.into_owned(),
            type_name: column.type_name.into_owned(),
            origin: column.origin.map(Cow::into_owned),
            vouched: column.vouched,
            ledger: column.ledger,
        });
        let ledgers = self.ledgers.into_iter().map(LedgerFile::ledger);
        Ok(Header {
            statement: self.statement.into_owned(),
            nonce: self.nonce.decoded(),
            time: self.time,
            principal: self.principal.into_owned(),
            columns: columns.collect(),
            rows: self.rows,
            evidence: self.evidence.decoded(),
            ledgers: ledgers.collect::<Result<_, _>>()?,
        })
    }
}

/// `bytes`: about how many it will have, so that it is seldom moved while it grows.
fn write(file: &impl Serialize, bytes: usize) -> Result<String, Error> {
    let mut out = Vec::with_capacity(bytes);
    serde_json::to_writer(&mut out, file).map_err(|_| Error::Library)?;
    String::from_utf8(out).map_err(|_| Error::Library)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::Malformed("not JSON of this form"))
}

fn check_format(found: &str, wanted: &str) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    let name = wanted.trim_end_matches(|c: char| c.is_ascii_digit());
    let version = found.strip_prefix(name).and_then(|v| v.parse().ok());
    Err(version.map_or(Error::Malformed("another format"), Error::Version))
}

fn hashes(path: &[Hash]) -> Vec<Base64<'_>> {
    path.iter().map(|hash| Base64::of(&hash.0)).collect()
}

fn path(texts: &[Base64<'_>]) -> Result<Vec<Hash>, Error> {
    texts.iter().map(|hash| bytes(hash).map(Hash)).collect()
}

fn bytes<const N: usize>(text: &Base64<'_>) -> Result<[u8; N], Error> {
    let bytes = text.0.as_ref().try_into();
    bytes.map_err(|_| Error::Malformed("bytes of another length"))
}

/// The cells as an array for each row.
enum Rows<'a> {
    /// To be written, with the number of columns.
    Of(&'a Cells, usize),
    Read(Vec<Vec<Cell>>),
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Rows::Of(cells, columns) => {
                let rows = 0..cells.len() / columns.max(&1);
                serializer.collect_seq(rows.map(|row| Row(cells, row, *columns)))
            }
            Rows::Read(rows) => rows.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Rows<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Rows::Read)
    }
}

/// One of them.
struct Row<'a>(&'a Cells, usize, usize);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Row(cells, row, columns) = self;
        serializer.collect_seq(cells.row(*row, *columns))
    }
}

/// Bytes that are base64 in JSON.
struct Base64<'a>(Cow<'a, [u8]>);

impl<'a> Base64<'a> {
    fn of(bytes: &'a [u8]) -> Base64<'a> {
        Base64(Cow::Borrowed(bytes))
    }

    fn decoded(self) -> Vec<u8> {
        self.0.into_owned()
    }
}

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Hashes, of which there are many, need no memory of their own.
        let mut short = [0; 64];
        match STANDARD.encode_slice(&self.0, &mut short) {
            Ok(length) => {
                let text = short.get(..length).map(std::str::from_utf8);
                serializer.serialize_str(text.and_then(Result::ok).unwrap_or_default())
            }
            Err(_) => serializer.serialize_str(&STANDARD.encode(&self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Base64<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes());
        bytes
            .map(|bytes| Base64(Cow::Owned(bytes)))
            .map_err(|_| D::Error::custom("not base64"))
    }
}
