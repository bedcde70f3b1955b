//! Rows of results: descriptions with plain types, protected fields opened, in the client's encoding.
use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use client::description::{self, Column};
use client::{Failure, Protected, Session, Shown};

use super::encoding::value_to_client;
use super::{Step, Stop};
use crate::charset::Charset;
use crate::wire::{backend, frame};

/// Reads and rewrites a RowDescription; NoData has no columns.
pub(super) fn row_columns(tag: u8, body: &mut [u8], session: &Session) -> Step<Vec<Column>> {
    if tag == b'n' {
        return Ok(Vec::new());
    }
    description::rows(body, &session.types).map_err(Stop::Fatal)
}

/// Writes a DataRow with its protected fields opened; returns their number, or why one does not open.
pub(super) fn map_row(
    (session, charset): (&Session, Option<Charset>),
    message: &[u8],
    column: impl Fn(usize) -> Option<Column>,
    out: &mut BytesMut,
) -> Step<Result<u64, Failure>> {
    let values = backend::row(frame::body(message))?;
    let mut opened = 0;
    let mut failure = None;
    let mut plain = Vec::new();
    let before = out.len();
    frame::write(out, b'D', |out| {
        out.put_u16(values.len() as u16);
        for (at, value) in values.iter().enumerate() {
            let Some(value) = value else {
                out.put_i32(-1);
                continue;
            };
            let target = column(at).and_then(|c| c.protected.map(|p| (p, c.format)));
            let Some((protected, format)) = target else {
                out.put_i32(value.len() as i32);
                out.put_slice(value);
                continue;
            };
            plain.clear();
            match open((session, charset), (protected, format), value, &mut plain) {
                Ok(Some(shown)) => {
                    opened += 1;
                    out.put_i32(shown.len() as i32);
                    out.put_slice(&shown);
                }
                Ok(None) => out.put_i32(-1),
                Err(error) => {
                    failure = Some(error);
                    return;
                }
            }
        }
    });
    match failure {
        // None of it is shown.
        Some(failure) => {
            out.truncate(before);
            Ok(Err(failure))
        }
        None => Ok(Ok(opened)),
    }
}

/// Opens a field into `plain`; returns what the client gets, `None` for NULL.
fn open<'a>(
    (session, charset): (&Session, Option<Charset>),
    (protected, format): (Protected, i16),
    value: &[u8],
    plain: &'a mut Vec<u8>,
) -> Result<Option<Cow<'a, [u8]>>, Failure> {
    // What stands around quoted values is the server's.
    let around = charset.filter(|_| protected == Protected::Quoting);
    let value = around.map_or(Ok(Cow::Borrowed(value)), |charset| charset.decode(value))?;
    match session.open(protected, format, &value, plain)? {
        Shown::Null => Ok(None),
        Shown::Value => value_to_client(charset, (protected, format), plain).map(Some),
    }
}
