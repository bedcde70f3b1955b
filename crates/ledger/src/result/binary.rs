//! The compact form of signed results and cells.
//!
//! Bytes ([`crate::codec`]): magic, version `u16`; header: statement, nonce, time, principal,
//! columns (name, type, origin, vouched), rows, evidence; root, signature; then the seed and
//! the cells of a result, or place, salt, value and path of a cell.

use super::{Column, Header, SALT_BYTES, SEED_BYTES, SignedCell, SignedResult};
use crate::codec::{Reader, Writer};
use crate::{Error, Hash};

const RESULT: &[u8; 8] = b"cfdbndl\n";
const CELL: &[u8; 8] = b"cfdcell\n";
const VERSION: u16 = 1;
/// A column has at least two lengths and two flags.
const COLUMN_LEAST: usize = 18;
const HASH_BYTES: usize = 32;

impl SignedResult {
    /// The compact form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = begin(RESULT, &self.header, &self.root, &self.signature);
        out.fixed(&self.seed);
        out.u64(self.cells.len() as u64);
        for cell in &self.cells {
            out.optional(cell.as_deref().map(str::as_bytes));
        }
        out.finish()
    }

    /// A result from its compact form; nothing is verified yet.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Version`], [`Error::Range`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SignedResult, Error> {
        let mut from = Reader::new(bytes);
        check_magic(&mut from, RESULT)?;
        let header = read_header(&mut from)?;
        let root = Hash(from.fixed()?);
        let signature = from.fixed()?;
        let seed: [u8; SEED_BYTES] = from.fixed()?;
        let count = from.count(1)?;
        header.check(count)?;
        let cells = (0..count).map(|_| read_cell(&mut from));
        let cells = cells.collect::<Result<_, _>>()?;
        from.end()?;
        Ok(SignedResult {
            header,
            seed,
            cells,
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
        out.u64(self.path.len() as u64);
        for hash in &self.path {
            out.fixed(&hash.0);
        }
        out.finish()
    }

    /// A cell from its compact form; nothing is verified yet.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Version`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SignedCell, Error> {
        let mut from = Reader::new(bytes);
        check_magic(&mut from, CELL)?;
        let header = read_header(&mut from)?;
        let root = Hash(from.fixed()?);
        let signature = from.fixed()?;
        let row = from.u64()?;
        let column = usize::try_from(from.u64()?).map_err(|_| Error::Range)?;
        let salt: [u8; SALT_BYTES] = from.fixed()?;
        let value = read_cell(&mut from)?;
        let count = from.count(HASH_BYTES)?;
        let path = (0..count).map(|_| Ok(Hash(from.fixed()?)));
        let path = path.collect::<Result<_, Error>>()?;
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
        })
    }
}

fn begin(magic: &[u8; 8], header: &Header, root: &Hash, signature: &[u8]) -> Writer {
    let mut out = Writer::default();
    out.fixed(magic);
    out.u16(VERSION);
    write_header(&mut out, header);
    out.fixed(&root.0);
    out.fixed(signature);
    out
}

fn check_magic(from: &mut Reader, magic: &[u8; 8]) -> Result<(), Error> {
    if from.fixed::<8>()? != *magic {
        return Err(Error::Malformed("it does not begin as such a file does"));
    }
    match from.u16()? {
        VERSION => Ok(()),
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
}

fn read_header(from: &mut Reader) -> Result<Header, Error> {
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
    })
}

fn read_column(from: &mut Reader) -> Result<Column, Error> {
    Ok(Column {
        name: from.text()?,
        type_name: from.text()?,
        vouched: from.boolean()?,
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
