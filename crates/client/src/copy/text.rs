//! COPY's text format.
use super::lines::{Next, Rows};
use super::{Shape, Sheet};
use crate::{Failure, Session};

/// Rows in the text format.
pub(crate) struct Text;

impl Rows for Text {
    fn step(&mut self, _: &Shape, buffer: &[u8], at: usize, last: bool) -> Next {
        match buffer.get(at) {
            // The next byte is escaped, whatever it is; the byte before the line end of a `\.` line
            // is not special.
            Some(b'\\') if at + 1 >= buffer.len() && !last => Next::Wait,
            Some(b'\\') => Next::Skip(2),
            Some(b'\n' | b'\r') => Next::Look,
            _ => Next::Skip(1),
        }
    }

    fn reset(&mut self) {}

    fn check_end(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn is_end(_: &Shape, row: &[u8]) -> bool {
        row == b"\\."
    }

    fn row(shape: &Shape, session: &Session, row: &[u8], sheet: &mut Sheet) -> Result<(), Failure> {
        let mut found = 0;
        let mut value = Vec::new();
        let escaped = row.contains(&b'\\');
        for raw in split(row, shape.options.delimiter) {
            if found > 0 {
                sheet.rows.push(shape.options.delimiter);
            }
            match shape.columns.get(found) {
                Some(Some(_)) if raw != shape.options.null.as_bytes() => {
                    let mut plain = raw;
                    if escaped {
                        value.clear();
                        unescape(raw, &mut value);
                        plain = &value;
                    }
                    sheet.field(shape, session, found, plain, false)?;
                }
                Some(_) => sheet.rows.extend_from_slice(raw),
                None => return shape.count(found + 1),
            }
            found += 1;
        }
        shape.count(found)
    }
}

/// The raw fields of a line.
fn split(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            if byte == b'\\' {
                at += 2;
            } else if byte == delimiter {
                break;
            } else {
                at += 1;
            }
        }
        let at = at.min(line.len());
        rest = line.get(at + 1..);
        line.get(..at)
    })
}

fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut bytes = raw.iter().copied().peekable();
    let digit = |byte: Option<&u8>, radix: u32| -> Option<u8> {
        byte.and_then(|b| (*b as char).to_digit(radix))
            .map(|d| d as u8)
    };
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(next) = bytes.next() else {
            out.push(b'\\');
            break;
        };
        out.push(match next {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => {
                let mut value = next - b'0';
                for _ in 0..2 {
                    let Some(d) = digit(bytes.peek(), 8) else {
                        break;
                    };
                    value = value.wrapping_mul(8).wrapping_add(d);
                    bytes.next();
                }
                value
            }
            b'x' => match digit(bytes.peek(), 16) {
                None => b'x',
                Some(mut value) => {
                    bytes.next();
                    if let Some(d) = digit(bytes.peek(), 16) {
                        value = value.wrapping_mul(16).wrapping_add(d);
                        bytes.next();
                    }
                    value
                }
            },
            other => other,
        });
    }
}

/// Like `CopyAttributeOutText`.
pub(crate) fn escape(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &byte in value {
        let letter = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            _ if byte == delimiter => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.push(b'\\');
        out.push(letter);
    }
}
