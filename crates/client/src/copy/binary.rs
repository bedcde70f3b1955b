//! COPY's binary format.
use super::{ROW_MAX, Shape, Sheet, too_long};
use crate::{Failure, Session};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The tuples of the stream.
#[derive(Default)]
pub(crate) struct Tuples {
    pending: Vec<u8>,
    begun: bool,
    over: bool,
}

impl Tuples {
    pub(crate) fn push(
        &mut self,
        shape: &Shape,
        session: &Session,
        data: &[u8],
        sheet: &mut Sheet,
    ) -> Result<(), Failure> {
        self.pending.extend_from_slice(data);
        let buffer = std::mem::take(&mut self.pending);
        let mut rest = buffer.as_slice();
        loop {
            let before = rest;
            let kept = sheet.rows.len();
            let done = if self.over {
                // PostgreSQL allows nothing after the trailer.
                rest.is_empty() || return Err(bad())
            } else if self.begun {
                self.tuple(shape, session, &mut rest, sheet)?
            } else {
                self.header(&mut rest, &mut sheet.rows)?
            };
            if done {
                rest = before;
                sheet.rows.truncate(kept);
                break;
            }
            sheet.end_row(shape, session)?;
        }
        let left = rest.len();
        self.pending = buffer;
        let used = self.pending.len() - left;
        self.pending.drain(..used);
        if self.pending.len() > ROW_MAX {
            return Err(too_long());
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err(Failure::new("22P04", "unexpected EOF in COPY data"))
        }
    }

    /// Returns true if there is not enough data yet.
    fn header(&mut self, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some((head, tail)) = rest.split_first_chunk::<19>() else {
            return Ok(true);
        };
        if !head.starts_with(SIGNATURE) {
            return Err(Failure::new("22P04", "COPY file signature not recognized"));
        }
        let [.., e0, e1, e2, e3] = head;
        let extension = usize::try_from(i32::from_be_bytes([*e0, *e1, *e2, *e3]))
            .map_err(|_| Failure::new("22P04", "invalid COPY file header"))?;
        let Some((extension, tail)) = tail.split_at_checked(extension) else {
            return Ok(true);
        };
        out.extend_from_slice(head);
        out.extend_from_slice(extension);
        self.begun = true;
        *rest = tail;
        Ok(false)
    }

    fn tuple(
        &mut self,
        shape: &Shape,
        session: &Session,
        rest: &mut &[u8],
        sheet: &mut Sheet,
    ) -> Result<bool, Failure> {
        let Some((count, mut tail)) = rest.split_first_chunk::<2>() else {
            return Ok(true);
        };
        sheet.rows.extend_from_slice(count);
        let count = i16::from_be_bytes(*count);
        if count == -1 {
            self.over = true;
            *rest = tail;
            return Ok(false);
        }
        shape.count(usize::try_from(count).map_err(|_| bad())?)?;
        // A first pass, so that no value is sealed twice if data is missing.
        if !complete(tail, shape.columns.len())? {
            return Ok(true);
        }
        for (at, target) in shape.columns.iter().enumerate() {
            let (length, after) = tail.split_first_chunk::<4>().ok_or_else(bad)?;
            tail = after;
            let Ok(bytes) = usize::try_from(i32::from_be_bytes(*length)) else {
                sheet.rows.extend_from_slice(length);
                continue;
            };
            let (field, after) = tail.split_at_checked(bytes).ok_or_else(bad)?;
            tail = after;
            if target.is_some() {
                sheet.field(shape, session, at, field, false)?;
            } else {
                sheet.rows.extend_from_slice(length);
                sheet.rows.extend_from_slice(field);
            }
        }
        *rest = tail;
        Ok(false)
    }
}

/// Whether all fields of a tuple are present.
fn complete(mut rest: &[u8], fields: usize) -> Result<bool, Failure> {
    for _ in 0..fields {
        let Some((length, tail)) = rest.split_first_chunk::<4>() else {
            return Ok(false);
        };
        rest = match i32::from_be_bytes(*length) {
            -1 => tail,
            length => {
                let length = usize::try_from(length).map_err(|_| bad())?;
                match tail.get(length..) {
                    Some(tail) => tail,
                    None => return Ok(false),
                }
            }
        };
    }
    Ok(true)
}

fn bad() -> Failure {
    Failure::new("22P04", "invalid COPY data in binary format")
}
