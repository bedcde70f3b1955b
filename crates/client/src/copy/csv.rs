//! COPY's csv format.
use rewrite::Direction;

use super::lines::{Next, Rows};
use super::{Shape, Sheet};
use crate::{Failure, Session};

/// Rows in CSV; a row may contain line ends within quotes.
#[derive(Default)]
pub(crate) struct Csv {
    quoted: bool,
    escaped: bool,
}

impl Rows for Csv {
    /// Like `CopyReadLineText`: a line end counts only outside quotes.
    fn step(&mut self, shape: &Shape, buffer: &[u8], at: usize, _: bool) -> Next {
        let (quote, escape) = (shape.options.quote, shape.options.escape);
        let Some(&byte) = buffer.get(at) else {
            return Next::Wait;
        };
        if !self.quoted && (byte == b'\n' || byte == b'\r') {
            return Next::Look;
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
        Next::Skip(1)
    }

    fn reset(&mut self) {
        self.escaped = false;
    }

    fn check_end(&self) -> Result<(), Failure> {
        match self.quoted {
            true => Err(Failure::new("22P04", "unterminated CSV quoted field")),
            false => Ok(()),
        }
    }

    fn is_end(shape: &Shape, row: &[u8]) -> bool {
        row == b"\\." && shape.direction == Direction::From
    }

    fn row(shape: &Shape, session: &Session, row: &[u8], sheet: &mut Sheet) -> Result<(), Failure> {
        let (mut found, mut at) = (0, 0);
        let mut value = Vec::new();
        loop {
            value.clear();
            let field = read(shape, row, at, &mut value)?;
            if found > 0 {
                sheet.rows.push(shape.options.delimiter);
            }
            let raw = row.get(at..field.end).unwrap_or_default();
            match shape.columns.get(found) {
                Some(Some(_)) if !is_null(shape, found, raw, &value, field.quoted) => {
                    sheet.field(shape, session, found, &value, field.quoted)?;
                }
                Some(_) => sheet.rows.extend_from_slice(raw),
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

/// Reads a field, like `CopyReadAttributesCSV`.
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

/// Writes a field, like `CopyAttributeOutCSV`.
pub(crate) fn write(shape: &Shape, value: &[u8], force: bool, out: &mut Vec<u8>) {
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
