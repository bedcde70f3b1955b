//! RowDescription and ParameterDescription: determines which columns and parameters are protected
//! and tells the client the plain types.
use crate::types::TEXT_OID;
use crate::{Failure, Protected, TypeMap};

/// Columns of texts in which the server quotes constants, which are envelopes: EXPLAIN output, and
/// definitions as queried by pg_dump and psql.
const QUOTING: [&[u8]; 16] = [
    b"Check",
    b"QUERY PLAN",
    b"adsrc",
    b"condef",
    b"conditiondef",
    b"consrc",
    b"definition",
    b"funcdef",
    b"indexdef",
    b"pg_get_expr",
    b"polqual",
    b"polwithcheck",
    b"prosqlbody",
    b"tgdef",
    b"typdefaultbin",
    b"viewdef",
];

/// Whether a column contains such texts: it is computed and has one of these names.
fn quotes(name: &[u8], table: u32, oid: u32) -> bool {
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    oid == TEXT_OID && table == 0 && (QUOTING.contains(&name) || name.starts_with(b"pg_get_"))
}

/// A column of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// The protected type, if it has one.
    pub protected: Option<Protected>,
    /// Format code of its fields (0: text).
    pub format: i16,
}

/// Whether a modifier is the number of a column of cells ([`contract::cell`]), which contains no
/// information about the plain type. Among other modifiers only that of an interval with all fields
/// has this bit set.
fn is_number(modifier: i32) -> bool {
    const ALL_FIELDS: i32 = 0x7fff;
    modifier >= contract::cell::NUMBERED as i32 && modifier >> 16 != ALL_FIELDS
}

/// Rewrites the body of a RowDescription in place.
pub fn rows(body: &mut [u8], types: &TypeMap) -> Result<Vec<Column>, Failure> {
    let bad = || Failure::protocol("RowDescription");
    let (count, mut rest) = body.split_first_chunk_mut::<2>().ok_or_else(bad)?;
    let count = usize::from(u16::from_be_bytes(*count));
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let end = rest.iter().position(|b| *b == 0).ok_or_else(bad)?;
        // After the name: table OID (4 bytes), attribute (2), type OID (4), length (2), modifier
        // (4), format (2).
        let (name, tail) = rest.split_at_mut_checked(end + 1).ok_or_else(bad)?;
        let (fixed, tail) = tail.split_first_chunk_mut::<18>().ok_or_else(bad)?;
        rest = tail;
        let [
            b0,
            b1,
            b2,
            b3,
            _,
            _,
            t0,
            t1,
            t2,
            t3,
            l0,
            l1,
            m0,
            m1,
            m2,
            m3,
            f0,
            f1,
        ] = fixed;
        let oid = u32::from_be_bytes([*t0, *t1, *t2, *t3]);
        let table = u32::from_be_bytes([*b0, *b1, *b2, *b3]);
        let quoting = quotes(name, table, oid).then_some(Protected::Quoting);
        let protected = types.get(oid).or(quoting);
        if let Some(protected) = protected {
            [*t0, *t1, *t2, *t3] = protected.plain_oid().to_be_bytes();
            [*l0, *l1] = protected.plain_length().to_be_bytes();
            let modifier = i32::from_be_bytes([*m0, *m1, *m2, *m3]);
            let plain = match protected {
                Protected::Soft(code, _) => crate::soft::plain_modifier(code, modifier),
                _ if is_number(modifier) => -1,
                _ => modifier,
            };
            [*m0, *m1, *m2, *m3] = plain.to_be_bytes();
        }
        columns.push(Column {
            protected,
            format: i16::from_be_bytes([*f0, *f1]),
        });
    }
    Ok(columns)
}

/// Has the body of a ParameterDescription say another type of a parameter.
pub fn set_parameter(body: &mut [u8], at: usize, oid: u32) {
    let words = body.get_mut(2..).unwrap_or_default();
    let (words, _) = words.as_chunks_mut::<4>();
    if let Some(word) = words.get_mut(at) {
        *word = oid.to_be_bytes();
    }
}

/// Rewrites the body of a ParameterDescription in place; returns the server's OIDs.
pub fn parameters(body: &mut [u8], types: &TypeMap) -> Result<Vec<u32>, Failure> {
    let bad = || Failure::protocol("ParameterDescription");
    let (count, rest) = body.split_first_chunk_mut::<2>().ok_or_else(bad)?;
    let count = usize::from(u16::from_be_bytes(*count));
    let (words, _) = rest.as_chunks_mut::<4>();
    if words.len() < count {
        return Err(bad());
    }
    Ok(words
        .iter_mut()
        .take(count)
        .map(|word| {
            let oid = u32::from_be_bytes(*word);
            if let Some(protected) = types.get(oid) {
                *word = protected.plain_oid().to_be_bytes();
            }
            oid
        })
        .collect())
}
