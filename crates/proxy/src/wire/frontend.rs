//! Messages of the client: reads those that the proxy changes, writes those that it sends.
use bytes::{BufMut, BytesMut};

use super::frame::{cstr, write};
use super::{Malformed, Reader};

/// Parse.
pub struct Parse<'a> {
    /// Name of the statement.
    pub name: &'a str,
    /// Its text.
    pub sql: &'a str,
    /// Declared parameter types (0: undeclared).
    pub types: Vec<u32>,
}

impl<'a> Parse<'a> {
    /// Reads the body.
    pub fn read(body: &'a [u8]) -> Result<Parse<'a>, Malformed> {
        let mut reader = Reader::new(body, "Parse");
        let (name, sql) = (reader.str()?, reader.str()?);
        let count = reader.count()?;
        let types = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Parse { name, sql, types })
    }
}

/// Appends Parse.
pub fn parse(out: &mut BytesMut, name: &str, sql: &str, types: &[u32]) {
    write(out, b'P', |b| {
        cstr(b, name.as_bytes());
        cstr(b, sql.as_bytes());
        b.put_u16(types.len() as u16);
        types.iter().for_each(|t| b.put_u32(*t));
    });
}

/// Bind.
pub struct Bind<'a> {
    /// Name of the portal.
    pub portal: &'a str,
    /// Name of the statement.
    pub statement: &'a str,
    /// Format codes of the parameters, as given (none, one for all, or each).
    pub formats: Vec<i16>,
    /// The parameters.
    pub values: Vec<Option<&'a [u8]>>,
    /// Format codes of the results, as given.
    pub results: Vec<i16>,
}

impl<'a> Bind<'a> {
    /// Reads the body.
    pub fn read(body: &'a [u8]) -> Result<Bind<'a>, Malformed> {
        let mut reader = Reader::new(body, "Bind");
        let (portal, statement) = (reader.str()?, reader.str()?);
        let count = reader.count()?;
        let formats = (0..count).map(|_| reader.i16()).collect::<Result<_, _>>()?;
        let count = reader.count()?;
        let values = (0..count)
            .map(|_| reader.value())
            .collect::<Result<_, _>>()?;
        let count = reader.count()?;
        let results = (0..count).map(|_| reader.i16()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Bind {
            portal,
            statement,
            formats,
            values,
            results,
        })
    }

    /// Format of parameter `at`.
    pub fn format(&self, at: usize) -> i16 {
        format_of(&self.formats, at)
    }
}

/// The format code that applies to item `at`.
pub fn format_of(formats: &[i16], at: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(at).copied().unwrap_or(0),
    }
}

/// Appends Bind; `values` may differ from the client's.
pub fn bind(
    out: &mut BytesMut,
    portal: &str,
    statement: &str,
    formats: &[i16],
    values: &[Option<&[u8]>],
    results: &[i16],
) {
    write(out, b'B', |b| {
        cstr(b, portal.as_bytes());
        cstr(b, statement.as_bytes());
        b.put_u16(formats.len() as u16);
        formats.iter().for_each(|f| b.put_i16(*f));
        b.put_u16(values.len() as u16);
        for value in values {
            match value {
                None => b.put_i32(-1),
                Some(value) => {
                    b.put_i32(value.len() as i32);
                    b.put_slice(value);
                }
            }
        }
        b.put_u16(results.len() as u16);
        results.iter().for_each(|f| b.put_i16(*f));
    });
}

/// Reads the body of Describe or Close: `S` or `P`, and a name.
pub fn target(body: &[u8]) -> Result<(u8, &str), Malformed> {
    let mut reader = Reader::new(body, "Describe or Close");
    let found = (reader.u8()?, reader.str()?);
    reader.end()?;
    Ok(found)
}

/// Appends Describe (`D`) or Close (`C`).
pub fn targeted(out: &mut BytesMut, tag: u8, kind: u8, name: &str) {
    write(out, tag, |b| {
        b.put_u8(kind);
        cstr(b, name.as_bytes());
    });
}

/// Reads the body of Query: the text.
pub fn query_text(body: &[u8]) -> Result<&str, Malformed> {
    Reader::new(body, "Query").str()
}

/// Reads the body of Execute: the portal's name.
pub fn execute_portal(body: &[u8]) -> Result<&str, Malformed> {
    Reader::new(body, "Execute").str()
}

/// Appends Execute without a limit.
pub fn execute(out: &mut BytesMut, portal: &str) {
    write(out, b'E', |b| {
        cstr(b, portal.as_bytes());
        b.put_i32(0);
    });
}

/// Appends Query.
pub fn query(out: &mut BytesMut, sql: &str) {
    write(out, b'Q', |b| cstr(b, sql.as_bytes()));
}

/// Appends a message without a body: Sync, Flush, Terminate, CopyDone.
pub fn bare(out: &mut BytesMut, tag: u8) {
    write(out, tag, |_| {});
}

/// Appends CopyFail.
pub fn copy_fail(out: &mut BytesMut, reason: &str) {
    write(out, b'f', |b| cstr(b, reason.as_bytes()));
}

/// Appends CopyData.
pub fn copy_data(out: &mut BytesMut, data: &[u8]) {
    write(out, b'd', |b| b.put_slice(data));
}

#[cfg(test)]
mod tests {
    use super::super::frame::body;
    use super::*;

    #[test]
    fn bind_round_trip() {
        let mut out = BytesMut::new();
        let values: [Option<&[u8]>; 3] = [Some(b"a"), None, Some(b"")];
        bind(&mut out, "p", "s", &[1], &values, &[0, 1]);
        let read = Bind::read(body(&out)).unwrap();
        assert_eq!((read.portal, read.statement), ("p", "s"));
        assert_eq!(read.values, values);
        assert_eq!(read.results, [0, 1]);
        assert_eq!(read.format(2), 1);
        for n in 0..body(&out).len() {
            assert!(Bind::read(&body(&out)[..n]).is_err());
        }
    }

    #[test]
    fn parse_round_trip() {
        let mut out = BytesMut::new();
        parse(&mut out, "s", "SELECT $1", &[23, 0]);
        let read = Parse::read(body(&out)).unwrap();
        assert_eq!((read.name, read.sql), ("s", "SELECT $1"));
        assert_eq!(read.types, [23, 0]);
    }
}
