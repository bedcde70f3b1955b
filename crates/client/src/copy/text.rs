//! COPY's text format.
use super::{End, LineEnd, ROW_MAX, Shape, too_long};
use crate::{Failure, Session};

/// Lines of the stream.
pub(crate) struct Lines {
    pending: Vec<u8>,
    scanned: usize,
    end: LineEnd,
    header: bool,
    over: bool,
}

impl Lines {
    pub(crate) fn new(header: bool) -> Lines {
        Lines {
            pending: Vec::new(),
            scanned: 0,
            end: LineEnd::Unknown,
            header,
            over: false,
        }
    }

    pub(crate) fn push(
        &mut self,
        shape: &Shape,
        session: &Session,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.pending.extend_from_slice(data);
        self.run(shape, session, out, false)
    }

    pub(crate) fn finish(
        &mut self,
        shape: &Shape,
        session: &Session,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.run(shape, session, out, true)?;
        let rest = std::mem::take(&mut self.pending);
        self.scanned = 0;
        if rest.is_empty() {
            return Ok(());
        }
        self.line(shape, session, &rest, out)
    }

    fn run(
        &mut self,
        shape: &Shape,
        session: &Session,
        out: &mut Vec<u8>,
        last: bool,
    ) -> Result<(), Failure> {
        let buffer = std::mem::take(&mut self.pending);
        let (mut start, mut at) = (0, self.scanned);
        while let Some(&byte) = buffer.get(at) {
            if byte == b'\\' {
                // The next byte is escaped, whatever it is.
                if at + 1 >= buffer.len() && !last {
                    break;
                }
                // `\` before a line end of a `\.` line is not special.
                at += 2;
                continue;
            }
            match self.end.at(&buffer, at, last) {
                End::No => at += 1,
                End::Wait => break,
                End::Yes(length) => {
                    let line = buffer.get(start..at).unwrap_or_default();
                    self.line(shape, session, line, out)?;
                    out.extend_from_slice(buffer.get(at..at + length).unwrap_or_default());
                    at += length;
                    start = at;
                }
            }
        }
        let at = at.min(buffer.len());
        self.scanned = at - start;
        self.pending = buffer;
        self.pending.drain(..start);
        if self.pending.len() > ROW_MAX {
            return Err(too_long());
        }
        Ok(())
    }

    /// One line without its end.
    fn line(
        &mut self,
        shape: &Shape,
        session: &Session,
        line: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if std::mem::take(&mut self.header) {
            out.extend_from_slice(line);
            return Ok(());
        }
        if self.over {
            // PostgreSQL ignores what follows the end marker; so it is not sent.
            return Ok(());
        }
        if line == b"\\." {
            self.over = true;
            out.extend_from_slice(line);
            return Ok(());
        }
        let mut found = 0;
        let mut value = Vec::new();
        let mut mapped = Vec::new();
        for raw in split(line, shape.options.delimiter) {
            if found > 0 {
                out.push(shape.options.delimiter);
            }
            match shape.columns.get(found) {
                Some(Some(target)) if raw != shape.options.null.as_bytes() => {
                    value.clear();
                    unescape(raw, &mut value);
                    mapped.clear();
                    shape.field(session, *target, 0, &value, &mut mapped)?;
                    escape(&mapped, shape.options.delimiter, out);
                }
                Some(_) => out.extend_from_slice(raw),
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

/// As `CopyAttributeOutText`.
fn escape(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
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
