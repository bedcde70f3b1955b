//! Signed results and cells as JSON, for people and other programs: the rows as they are displayed;
//! hashes, keys and signatures in base64.
//!
//! Unknown fields are errors, so a file cannot contain anything that was not signed.

use super::cell::Shown;
use super::{Cell, Column, Header, Ledger, SignedCell, SignedResult, Version};
use crate::{Error, Hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

const RESULT: &str = "confide-result-v1";
const CELL: &str = "confide-cell-v1";
/// Format of results with row versions of ledger tables.
const LEDGER_RESULT: &str = "confide-result-v2";
const LEDGER_CELL: &str = "confide-cell-v2";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultFile {
    format: String,
    result: HeaderFile,
    rows: Vec<Vec<Cell>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    versions: Vec<VersionFile>,
    seed: String,
    root: String,
    signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellFile {
    format: String,
    result: HeaderFile,
    row: u64,
    column: usize,
    value: Cell,
    salt: String,
    path: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<ShownFile>,
    root: String,
    signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerFile {
    origin: String,
    size: u64,
    root: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionFile {
    index: u64,
    ended: bool,
    entry: String,
    path: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownFile {
    shown: VersionFile,
    salt: String,
    path: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderFile {
    statement: String,
    nonce: String,
    time: i64,
    principal: String,
    columns: Vec<ColumnFile>,
    rows: u64,
    evidence: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ledgers: Vec<LedgerFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    origin: Option<[String; 3]>,
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
        write(&ResultFile {
            format: self.header.form(RESULT, LEDGER_RESULT).into(),
            versions: self.versions.iter().map(VersionFile::of).collect(),
            result: HeaderFile::of(&self.header),
            rows: self.rows().map(<[Cell]>::to_vec).collect(),
            seed: STANDARD.encode(self.seed),
            root: STANDARD.encode(self.root.0),
            signature: STANDARD.encode(self.signature),
        })
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
        if file.rows.len() as u64 != header.rows {
            return Err(Error::Range);
        }
        if file
            .rows
            .iter()
            .any(|row| row.len() != header.columns.len())
        {
            return Err(Error::Malformed(
                "a row has more or fewer cells than columns",
            ));
        }
        Ok(SignedResult {
            header,
            seed: bytes(&file.seed)?,
            cells: file.rows.into_iter().flatten().collect(),
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
        write(&CellFile {
            format: self.header.form(CELL, LEDGER_CELL).into(),
            version: self.shown.as_ref().map(ShownFile::of),
            result: HeaderFile::of(&self.header),
            row: self.row,
            column: self.column,
            value: self.value.clone(),
            salt: STANDARD.encode(self.salt),
            path: hashes(&self.path),
            root: STANDARD.encode(self.root.0),
            signature: STANDARD.encode(self.signature),
        })
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
            value: file.value,
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

impl VersionFile {
    fn of(version: &Version) -> VersionFile {
        VersionFile {
            index: version.index,
            ended: version.ended,
            entry: STANDARD.encode(&version.entry),
            path: hashes(&version.path),
        }
    }

    fn version(self) -> Result<Version, Error> {
        Ok(Version {
            index: self.index,
            ended: self.ended,
            entry: decode(&self.entry)?,
            path: path(&self.path)?,
        })
    }
}

impl ShownFile {
    fn of(shown: &Shown) -> ShownFile {
        ShownFile {
            shown: VersionFile::of(&shown.version),
            salt: STANDARD.encode(shown.salt),
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

impl LedgerFile {
    fn of(ledger: &Ledger) -> LedgerFile {
        LedgerFile {
            origin: ledger.origin.clone(),
            size: ledger.size,
            root: STANDARD.encode(ledger.root.0),
        }
    }

    fn ledger(self) -> Result<Ledger, Error> {
        Ok(Ledger {
            origin: self.origin,
            size: self.size,
            root: Hash(bytes(&self.root)?),
        })
    }
}

impl HeaderFile {
    fn of(header: &Header) -> HeaderFile {
        let columns = header.columns.iter().map(|column| ColumnFile {
            name: column.name.clone(),
            type_name: column.type_name.clone(),
            origin: column.origin.clone(),
            vouched: column.vouched,
            ledger: column.ledger,
        });
        HeaderFile {
            statement: header.statement.clone(),
            nonce: STANDARD.encode(&header.nonce),
            time: header.time,
            principal: header.principal.clone(),
            columns: columns.collect(),
            rows: header.rows,
            evidence: STANDARD.encode(&header.evidence),
            ledgers: header.ledgers.iter().map(LedgerFile::of).collect(),
        }
    }

    fn header(self) -> Result<Header, Error> {
        let columns = self.columns.into_iter().map(|column| Column {
            name: column.name,
            type_name: column.type_name,
            origin: column.origin,
            vouched: column.vouched,
            ledger: column.ledger,
        });
        let ledgers = self.ledgers.into_iter().map(LedgerFile::ledger);
        Ok(Header {
            statement: self.statement,
            nonce: decode(&self.nonce)?,
            time: self.time,
            principal: self.principal,
            columns: columns.collect(),
            rows: self.rows,
            evidence: decode(&self.evidence)?,
            ledgers: ledgers.collect::<Result<_, _>>()?,
        })
    }
}

fn write(file: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(file).map_err(|_| Error::Library)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::Malformed("not JSON of this form"))
}

fn check_format(found: &str, wanted: &str) -> Result<(), Error> {
    match found == wanted {
        true => Ok(()),
        false => Err(Error::Malformed("another format, or a later version")),
    }
}

fn hashes(path: &[Hash]) -> Vec<String> {
    path.iter().map(|hash| STANDARD.encode(hash.0)).collect()
}

fn path(texts: &[String]) -> Result<Vec<Hash>, Error> {
    texts.iter().map(|hash| bytes(hash).map(Hash)).collect()
}

fn decode(text: &str) -> Result<Vec<u8>, Error> {
    let bytes = STANDARD.decode(text);
    bytes.map_err(|_| Error::Malformed("not base64"))
}

fn bytes<const N: usize>(text: &str) -> Result<[u8; N], Error> {
    let bytes = decode(text)?.try_into();
    bytes.map_err(|_| Error::Malformed("of another length"))
}
