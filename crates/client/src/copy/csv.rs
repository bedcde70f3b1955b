//! COPY's csv format.
use rewrite::Direction;

use super::{End, LineEnd, ROW_MAX, Shape, too_long};
use crate::{Failure, Session};

/// Rows of the stream; a row may have line ends within quotes.
pub(crate) struct Rows {
    pending: Vec<u8>,
    scanned: usize,
    quoted: bool,
    escaped: bool,
    end: LineEnd,
    header: bool,
    over: bool,
}

impl Rows {
    pub(crate) fn new(header: bool) -> Rows {
        Rows {
            pending: Vec::new(),
            scanned: 0,
            quoted: false,
            escaped: false,
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
        if self.quoted {
            return Err(Failure::new("22P04", "unterminated CSV quoted field"));
        }
        self.row(shape, session, &rest, out)
    }

    fn run(
        &mut self,
        shape: &Shape,
        session: &Session,
        out: &mut Vec<u8>,
        last: bool,
    ) -> Result<(), Failure> {
        let (quote, escape) = (shape.options.quote, shape.options.escape);
        let buffer = std::mem::take(&mut self.pending);
        let (mut start, mut at) = (0, self.scanned);
        while let Some(&byte) = buffer.get(at) {
            // As `CopyReadLineText`: a line end counts outside quotes only.
            if !self.quoted {
                match self.end.at(&buffer, at, last) {
                    End::No => {}
                    End::Wait => break,
                    End::Yes(length) => {
                        let row = buffer.get(start..at).unwrap_or_default();
                        self.row(shape, session, row, out)?;
                        out.extend_from_slice(buffer.get(at..at + length).unwrap_or_default());
                        at += length;
                        start = at;
                        self.escaped = false;
                        continue;
                    }
                }
            }
            if self.quoted && byte == escape && escape != quote {
                self.escaped = !self.escaped;
            }
            if byte == quote && !self.escaped {
                self.quoted = !self.quoted;
            }
            if byte != escape || escape == quote {
                self.escaped = false;
            }
            at += 1;
        }
        self.scanned = at - start;
        self.pending = buffer;
        self.pending.drain(..start);
        if self.pending.len() > ROW_MAX {
            return Err(too_long());
        }
        Ok(())
    }

    /// One row without its line end.
    fn row(
        &mut self,
        shape: &Shape,
        session: &Session,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if std::mem::take(&mut self.header) {
            out.extend_from_slice(row);
            return Ok(());
        }
        if self.over {
            return Ok(());
        }
        if row == b"\\." && shape.direction == Direction::From {
            self.over = true;
            out.extend_from_slice(row);
            return Ok(());
        }
        let (mut found, mut at) = (0, 0);
        let mut value = Vec::new();
        loop {
            value.clear();
            let field = read(shape, row, at, &mut value)?;
            if found > 0 {
                out.push(shape.options.delimiter);
            }
            let raw = row.get(at..field.end).unwrap_or_default();
            match shape.columns.get(found) {
                Some(Some(target)) if !is_null(shape, found, raw, &value, field.quoted) => {
                    let mut mapped = Vec::new();
                    shape.field(session, *target, 0, &value, &mut mapped)?;
                    let force = shape.direction == Direction::To && field.quoted;
                    write(shape, &mapped, force, out);
                }
                Some(_) => out.extend_from_slice(raw),
                None => return shape.count(found + 1),
            }
            found += 1;
            if !field.more {
                break;
            }
            at = field.end + 1;
        }
        shape.count(found)
    }
}

struct Field {
    end: usize,
    quoted: bool,
    more: bool,
}

/// Reads a field, as `CopyReadAttributesCSV`.
fn read(shape: &Shape, row: &[u8], start: usize, value: &mut Vec<u8>) -> Result<Field, Failure> {
    let (delimiter, quote, escape) = (
        shape.options.delimiter,
        shape.options.quote,
        shape.options.escape,
    );
    let mut at = start;
    let mut saw_quote = false;
    let mut inside = false;
    loop {
        let Some(&byte) = row.get(at) else {
            if inside {
                return Err(Failure::new("22P04", "unterminated CSV quoted field"));
            }
            return Ok(Field {
                end: at,
                quoted: saw_quote,
                more: false,
            });
        };
        if !inside {
            if byte == delimiter {
                return Ok(Field {
                    end: at,
                    quoted: saw_quote,
                    more: true,
                });
            }
            if byte == quote {
                inside = true;
                saw_quote = true;
            } else {
                value.push(byte);
            }
            at += 1;
            continue;
        }
        if byte == escape
            && let Some(&next) = row.get(at + 1)
            && (next == escape || next == quote)
        {
            value.push(next);
            at += 2;
            continue;
        }
        if byte == quote {
            inside = false;
        } else {
            value.push(byte);
        }
        at += 1;
    }
}

fn is_null(shape: &Shape, column: usize, raw: &[u8], value: &[u8], quoted: bool) -> bool {
    let null = shape.options.null.as_bytes();
    if !quoted && raw == null {
        return !(shape.direction == Direction::From
            && shape.options.force_not_null.contains(&column));
    }
    shape.direction == Direction::From
        && shape.options.force_null.contains(&column)
        && value == null
}

/// Writes a field, as `CopyAttributeOutCSV`.
fn write(shape: &Shape, value: &[u8], force: bool, out: &mut Vec<u8>) {
    let (delimiter, quote, escape) = (
        shape.options.delimiter,
        shape.options.quote,
        shape.options.escape,
    );
    let single = shape.columns.len() == 1;
    let needs = force
        || value == shape.options.null.as_bytes()
        || (single && value == b"\\.")
        || value
            .iter()
            .any(|b| *b == delimiter || *b == quote || *b == b'\n' || *b == b'\r');
    if !needs {
        out.extend_from_slice(value);
        return;
    }
    out.push(quote);
    for &byte in value {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}
