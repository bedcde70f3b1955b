//! The compact form of signed results and cells.
//!
//! Bytes ([`crate::codec`]): magic, version `u16`; header: statement, nonce, time, principal,
//! columns (name, type, origin, vouched), rows, evidence; root, signature; then the seed and
//! the cells of a result, or place, salt, value and path of a cell. Version 4, of results that show
//! row versions of ledger tables, has ledgers and the columns' ones behind the evidence, and
//! versions behind the cells, or behind the path. (1 and 2 were of results with a binary tree.)

use super::cell::Shown;
use super::{
    Cells, Column, Header, Ledger, SALT_BYTES, SEED_BYTES, SignedCell, SignedResult, Version,
};
use crate::codec::{Reader, Writer};
use crate::{Error, Hash};

const RESULT: &[u8; 8] = b"cfdbndl\n";
const CELL: &[u8; 8] = b"cfdcell\n";
const VERSION: u16 = 3;
const LEDGER_VERSION: u16 = 4;
/// A version of a row has at least a number, a flag and two lengths.
const SHOWN_LEAST: usize = 25;
/// A ledger has at least a length, a size and a root.
const LEDGER_LEAST: usize = 48;
/// The column has no ledger.
const NO_LEDGER: u64 = u64::MAX;
/// A column has at least two lengths and two flags.
const COLUMN_LEAST: usize = 18;
const HASH_BYTES: usize = 32;

impl SignedResult {
    /// The compact form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = begin(RESULT, &self.header, &self.root, &self.signature);
        out.fixed(&self.seed);
        out.u64(self.cells.len() as u64);
        for cell in self.cells.iter() {
            out.optional(cell.map(str::as_bytes));
        }
        if !self.header.ledgers.is_empty() {
            out.u64(self.versions.len() as u64);
            self.versions
                .iter()
                .for_each(|version| version.write(&mut out));
        }
        out.finish()
    }

    /// Decodes a result, without verifying it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Version`], [`Error::Range`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SignedResult, Error> {
        let mut from = Reader::new(bytes);
        let version = check_magic(&mut from, RESULT)?;
        let header = read_header(&mut from, version)?;
        let root = Hash(from.fixed()?);
        let signature = from.fixed()?;
        let seed: [u8; SEED_BYTES] = from.fixed()?;
        let count = from.count(1)?;
        let cells = (0..count).map(|_| read_cell(&mut from));
        let cells: Cells = cells.collect::<Result<_, _>>()?;
        let count = match version {
            LEDGER_VERSION => from.count(SHOWN_LEAST)?,
            _ => 0,
        };
        let versions = (0..count).map(|_| Version::read(&mut from));
        let versions: Vec<Version> = versions.collect::<Result<_, _>>()?;
        header.check(cells.len(), versions.len())?;
        from.end()?;
        Ok(SignedResult {
            header,
            seed,
            cells,
            versions,
            root,
            signature,
        })
    }
}

impl SignedCell {
    /// The compact form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = begin(CELL, &self.header, &self.root, &self.signature);
        out.u64(self.row);
        out.u64(self.column as u64);
        out.fixed(&self.salt);
        out.optional(self.value.as_deref().map(str::as_bytes));
        put_path(&mut out, &self.path);
        if !self.header.ledgers.is_empty() {
            out.u8(u8::from(self.shown.is_some()));
        }
        if let Some(shown) = &self.shown {
            shown.version.write(&mut out);
            out.fixed(&shown.salt);
            put_path(&mut out, &shown.path);
        }
        out.finish()
    }

    /// Decodes a cell, without verifying it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Version`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SignedCell, Error> {
        let mut from = Reader::new(bytes);
        let version = check_magic(&mut from, CELL)?;
        let header = read_header(&mut from, version)?;
        let root = Hash(from.fixed()?);
        let signature = from.fixed()?;
        let row = from.u64()?;
        let column = usize::try_from(from.u64()?).map_err(|_| Error::Range)?;
        let salt: [u8; SALT_BYTES] = from.fixed()?;
        let value = read_cell(&mut from)?;
        let path = read_path(&mut from)?;
        let shown = match version {
            LEDGER_VERSION if from.boolean()? => Some(Shown {
                version: Version::read(&mut from)?,
                salt: from.fixed()?,
                path: read_path(&mut from)?,
            }),
            _ => None,
        };
        from.end()?;
        Ok(SignedCell {
            header,
            root,
            signature,
            row,
            column,
            value,
            salt,
            path,
            shown,
        })
    }
}

fn put_path(out: &mut Writer, path: &[Hash]) {
    out.u64(path.len() as u64);
    path.iter().for_each(|hash| out.fixed(&hash.0));
}

fn read_path(from: &mut Reader) -> Result<Vec<Hash>, Error> {
    let count = from.count(HASH_BYTES)?;
    (0..count).map(|_| Ok(Hash(from.fixed()?))).collect()
}

fn begin(magic: &[u8; 8], header: &Header, root: &Hash, signature: &[u8]) -> Writer {
    let mut out = Writer::default();
    out.fixed(magic);
    out.u16(match header.ledgers.is_empty() {
        true => VERSION,
        false => LEDGER_VERSION,
    });
    write_header(&mut out, header);
    out.fixed(&root.0);
    out.fixed(signature);
    out
}

fn check_magic(from: &mut Reader, magic: &[u8; 8]) -> Result<u16, Error> {
    if from.fixed::<8>()? != *magic {
        return Err(Error::Malformed("it does not begin as such a file does"));
    }
    match from.u16()? {
        version @ (VERSION | LEDGER_VERSION) => Ok(version),
        other => Err(Error::Version(other)),
    }
}

pub(super) fn write_header(out: &mut Writer, header: &Header) {
    out.bytes(header.statement.as_bytes());
    out.bytes(&header.nonce);
    out.u64(header.time.cast_unsigned());
    out.bytes(header.principal.as_bytes());
    out.u64(header.columns.len() as u64);
    for column in &header.columns {
        out.bytes(column.name.as_bytes());
        out.bytes(column.type_name.as_bytes());
        out.u8(u8::from(column.vouched));
        out.u8(u8::from(column.origin.is_some()));
        for part in column.origin.iter().flatten() {
            out.bytes(part.as_bytes());
        }
    }
    out.u64(header.rows);
    out.bytes(&header.evidence);
    if header.ledgers.is_empty() {
        return;
    }
    out.u64(header.ledgers.len() as u64);
    header.ledgers.iter().for_each(|ledger| ledger.write(out));
    for column in &header.columns {
        out.u64(column.ledger.map_or(NO_LEDGER, |ledger| ledger as u64));
    }
}

fn read_header(from: &mut Reader, version: u16) -> Result<Header, Error> {
    let mut header = read_plain_header(from)?;
    if version == VERSION {
        return Ok(header);
    }
    let count = from.count(LEDGER_LEAST)?;
    if count == 0 {
        return Err(Error::Malformed("there is no ledger"));
    }
    let ledgers = (0..count).map(|_| Ledger::read(from));
    header.ledgers = ledgers.collect::<Result<_, _>>()?;
    for column in &mut header.columns {
        column.ledger = match from.u64()? {
            NO_LEDGER => None,
            ledger => Some(usize::try_from(ledger).map_err(|_| Error::Range)?),
        };
    }
    Ok(header)
}

fn read_plain_header(from: &mut Reader) -> Result<Header, Error> {
    Ok(Header {
        statement: from.text()?,
        nonce: from.bytes()?.to_vec(),
        time: from.u64()?.cast_signed(),
        principal: from.text()?,
        columns: {
            let count = from.count(COLUMN_LEAST)?;
            let columns = (0..count).map(|_| read_column(from));
            columns.collect::<Result<_, _>>()?
        },
        rows: from.u64()?,
        evidence: from.bytes()?.to_vec(),
        ledgers: Vec::new(),
    })
}

fn read_column(from: &mut Reader) -> Result<Column, Error> {
    Ok(Column {
        name: from.text()?,
        type_name: from.text()?,
        vouched: from.boolean()?,
        ledger: None,
        origin: match from.boolean()? {
            true => Some([from.text()?, from.text()?, from.text()?]),
            false => None,
        },
    })
}

fn read_cell(from: &mut Reader) -> Result<super::Cell, Error> {
    let cell = from.optional()?.map(String::from_utf8).transpose();
    cell.map_err(|_| Error::Malformed("a cell is not UTF-8"))
}
