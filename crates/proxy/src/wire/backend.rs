//! Messages of the server: reads those that the proxy inspects, writes those that it creates or
//! changes.
use bytes::{BufMut, BytesMut};
use client::Failure;

use super::frame::{cstr, write};
use super::{Malformed, Reader};

/// Returns the server's SASL offer without the mechanisms with channel binding, if it contains any:
/// the client would bind to its own channel to the proxy, or has none.
pub fn without_binding(message: &[u8]) -> Option<BytesMut> {
    let offered = message.get(5..)?.strip_prefix(&10i32.to_be_bytes())?;
    let binds = |name: &&[u8]| name.ends_with(b"-PLUS");
    let names = || offered.split(|b| *b == 0).filter(|name| !name.is_empty());
    names().find(binds)?;
    let mut out = BytesMut::new();
    write(&mut out, b'R', |b| {
        b.put_i32(10);
        names()
            .filter(|name| !binds(name))
            .for_each(|name| cstr(b, name));
        b.put_u8(0);
    });
    Some(out)
}

/// Appends ErrorResponse with our own error.
pub fn error(out: &mut BytesMut, severity: &str, failure: &Failure) {
    error_in(out, severity, failure, None);
}

/// Like [`error`], with its CONTEXT.
pub fn error_in(out: &mut BytesMut, severity: &str, failure: &Failure, context: Option<&str>) {
    write(out, b'E', |b| {
        let mut field = |tag: u8, text: &str| {
            b.put_u8(tag);
            cstr(b, text.as_bytes());
        };
        field(b'S', severity);
        field(b'V', severity);
        field(b'C', &failure.sqlstate);
        field(b'M', &failure.message);
        if let Some(detail) = &failure.detail {
            field(b'D', detail);
        }
        if let Some(hint) = &failure.hint {
            field(b'H', hint);
        }
        if let Some(context) = context {
            field(b'W', context);
        }
        if let Some(position) = failure.position {
            field(b'P', &position.to_string());
        }
        b.put_u8(0);
    });
}

/// Appends NoticeResponse.
pub fn notice(out: &mut BytesMut, severity: &str, sqlstate: &str, message: &str) {
    write(out, b'N', |b| {
        for (tag, text) in [
            (b'S', severity),
            (b'V', severity),
            (b'C', sqlstate),
            (b'M', message),
        ] {
            b.put_u8(tag);
            cstr(b, text.as_bytes());
        }
        b.put_u8(0);
    });
}

/// The fields of an ErrorResponse or NoticeResponse.
pub fn fields(body: &[u8]) -> Result<Vec<(u8, &[u8])>, Malformed> {
    let mut reader = Reader::new(body, "ErrorResponse");
    let mut found = Vec::new();
    loop {
        match reader.u8()? {
            0 => return Ok(found),
            tag => found.push((tag, reader.cstr()?)),
        }
    }
}

/// Appends an ErrorResponse or NoticeResponse with these fields.
pub fn write_fields(out: &mut BytesMut, tag: u8, fields: &[(u8, &[u8])]) {
    write(out, tag, |b| {
        for (field, text) in fields {
            b.put_u8(*field);
            cstr(b, text);
        }
        b.put_u8(0);
    });
}

/// Appends ReadyForQuery.
pub fn ready(out: &mut BytesMut, status: u8) {
    write(out, b'Z', |b| b.put_u8(status));
}

/// Appends CommandComplete.
pub fn complete(out: &mut BytesMut, tag: &str) {
    write(out, b'C', |b| cstr(b, tag.as_bytes()));
}

/// Appends ParameterStatus.
pub fn parameter(out: &mut BytesMut, name: &str, value: &str) {
    write(out, b'S', |b| {
        cstr(b, name.as_bytes());
        cstr(b, value.as_bytes());
    });
}

/// Appends RowDescription of text columns.
pub fn text_columns(out: &mut BytesMut, names: &[&str]) {
    write(out, b'T', |b| {
        b.put_u16(names.len() as u16);
        for name in names {
            cstr(b, name.as_bytes());
            b.put_u32(0);
            b.put_i16(0);
            b.put_u32(25);
            b.put_i16(-1);
            b.put_i32(-1);
            b.put_i16(0);
        }
    });
}

/// Appends DataRow of texts.
pub fn text_row(out: &mut BytesMut, values: &[String]) {
    write(out, b'D', |b| {
        b.put_u16(values.len() as u16);
        for value in values {
            b.put_i32(value.len() as i32);
            b.put_slice(value.as_bytes());
        }
    });
}

/// The fields of a DataRow.
pub fn row(body: &[u8]) -> Result<Vec<Option<&[u8]>>, Malformed> {
    let mut reader = Reader::new(body, "DataRow");
    let count = reader.count()?;
    (0..count).map(|_| reader.value()).collect()
}

/// Name and value of a ParameterStatus.
pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), Malformed> {
    let mut reader = Reader::new(body, "ParameterStatus");
    Ok((reader.str()?, reader.str()?))
}
