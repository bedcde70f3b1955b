//! The form of signed results and cells for people and other programs: JSON, with the
//! rows as they are shown, and hashes, keys and signatures in base64.
//!
//! Unknown fields are errors: nobody shall read into a file what was not signed.

use super::{Cell, Column, Header, SignedCell, SignedResult};
use crate::{Error, Hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

const RESULT: &str = "confide-result-v1";
const CELL: &str = "confide-cell-v1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultFile {
    format: String,
    result: HeaderFile,
    rows: Vec<Vec<Cell>>,
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
    root: String,
    signature: String,
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
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    origin: Option<[String; 3]>,
    vouched: bool,
}

impl SignedResult {
    /// As JSON.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_json(&self) -> Result<String, Error> {
        write(&ResultFile {
            format: RESULT.into(),
            result: HeaderFile::of(&self.header),
            rows: self.rows().map(<[Cell]>::to_vec).collect(),
            seed: STANDARD.encode(self.seed),
            root: STANDARD.encode(self.root.0),
            signature: STANDARD.encode(self.signature),
        })
    }

    /// A result from JSON; nothing is verified yet.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Range`].
    pub fn from_json(text: &str) -> Result<SignedResult, Error> {
        let file: ResultFile = read(text)?;
        check_format(&file.format, RESULT)?;
        let header = file.result.header()?;
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
            format: CELL.into(),
            result: HeaderFile::of(&self.header),
            row: self.row,
            column: self.column,
            value: self.value.clone(),
            salt: STANDARD.encode(self.salt),
            path: self.path.iter().map(|h| STANDARD.encode(h.0)).collect(),
            root: STANDARD.encode(self.root.0),
            signature: STANDARD.encode(self.signature),
        })
    }

    /// A cell from JSON; nothing is verified yet.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn from_json(text: &str) -> Result<SignedCell, Error> {
        let file: CellFile = read(text)?;
        check_format(&file.format, CELL)?;
        let path = file.path.iter().map(|hash| bytes(hash).map(Hash));
        Ok(SignedCell {
            header: file.result.header()?,
            root: Hash(bytes(&file.root)?),
            signature: bytes(&file.signature)?,
            row: file.row,
            column: file.column,
            value: file.value,
            salt: bytes(&file.salt)?,
            path: path.collect::<Result<_, _>>()?,
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
        });
        HeaderFile {
            statement: header.statement.clone(),
            nonce: STANDARD.encode(&header.nonce),
            time: header.time,
            principal: header.principal.clone(),
            columns: columns.collect(),
            rows: header.rows,
            evidence: STANDARD.encode(&header.evidence),
        }
    }

    fn header(self) -> Result<Header, Error> {
        let columns = self.columns.into_iter().map(|column| Column {
            name: column.name,
            type_name: column.type_name,
            origin: column.origin,
            vouched: column.vouched,
        });
        Ok(Header {
            statement: self.statement,
            nonce: decode(&self.nonce)?,
            time: self.time,
            principal: self.principal,
            columns: columns.collect(),
            rows: self.rows,
            evidence: decode(&self.evidence)?,
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

fn decode(text: &str) -> Result<Vec<u8>, Error> {
    let bytes = STANDARD.decode(text);
    bytes.map_err(|_| Error::Malformed("not base64"))
}

fn bytes<const N: usize>(text: &str) -> Result<[u8; N], Error> {
    let bytes = decode(text)?.try_into();
    bytes.map_err(|_| Error::Malformed("of another length"))
}
