//! The line-based formats, text and CSV: finds the end of each row. The contents of a row are
//! handled by `text.rs` and `csv.rs`.
use super::{ROW_MAX, Shape, Sheet, too_long};
use crate::{Failure, Session};

/// The operations specific to one of the formats.
pub(crate) trait Rows {
    /// Examines the byte at an offset; a line end counts only where this function says so.
    fn step(&mut self, shape: &Shape, buffer: &[u8], at: usize, last: bool) -> Next;
    /// Called when a row has ended.
    fn reset(&mut self);
    /// Fails if the data must not end here.
    fn check_end(&self) -> Result<(), Failure>;
    /// Writes the fields of a row (without its line end).
    fn row(shape: &Shape, session: &Session, row: &[u8], sheet: &mut Sheet) -> Result<(), Failure>;
    /// Whether the row is the end marker.
    fn is_end(shape: &Shape, row: &[u8]) -> bool;
}

/// What was found at an offset of the data.
pub(crate) enum Next {
    /// This many bytes belong to the row.
    Skip(usize),
    /// Possibly a line end.
    Look,
    /// More data is needed.
    Wait,
}

/// The rows of the stream.
pub(crate) struct Lines<R> {
    rows: R,
    pending: Vec<u8>,
    scanned: usize,
    end: LineEnd,
    header: bool,
    over: bool,
}

impl<R: Rows> Lines<R> {
    pub(crate) fn new(rows: R, header: bool) -> Lines<R> {
        Lines {
            rows,
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
        sheet: &mut Sheet,
    ) -> Result<(), Failure> {
        self.pending.extend_from_slice(data);
        self.run(shape, session, sheet, false)
    }

    pub(crate) fn finish(
        &mut self,
        shape: &Shape,
        session: &Session,
        sheet: &mut Sheet,
    ) -> Result<(), Failure> {
        self.run(shape, session, sheet, true)?;
        let rest = std::mem::take(&mut self.pending);
        self.scanned = 0;
        if rest.is_empty() {
            return Ok(());
        }
        let ended = self.rows.check_end();
        ended.inspect_err(|_| sheet.failed = Some(rest.clone()))?;
        self.line(shape, session, &rest, &[], sheet)
    }

    fn run(
        &mut self,
        shape: &Shape,
        session: &Session,
        sheet: &mut Sheet,
        last: bool,
    ) -> Result<(), Failure> {
        let buffer = std::mem::take(&mut self.pending);
        let (mut start, mut at) = (0, self.scanned);
        while at < buffer.len() {
            match self.rows.step(shape, &buffer, at, last) {
                Next::Skip(bytes) => at += bytes,
                Next::Wait => break,
                Next::Look => match self.end.at(&buffer, at, last) {
                    End::No => at += 1,
                    End::Wait => break,
                    End::Yes(length) => {
                        let line = buffer.get(start..at).unwrap_or_default();
                        let end = buffer.get(at..at + length).unwrap_or_default();
                        self.line(shape, session, line, end, sheet)?;
                        self.rows.reset();
                        at += length;
                        start = at;
                    }
                },
            }
        }
        self.scanned = at.min(buffer.len()) - start;
        self.pending = buffer;
        self.pending.drain(..start);
        if self.pending.len() > ROW_MAX {
            return Err(too_long());
        }
        Ok(())
    }

    /// Processes one line and its end.
    fn line(
        &mut self,
        shape: &Shape,
        session: &Session,
        line: &[u8],
        end: &[u8],
        sheet: &mut Sheet,
    ) -> Result<(), Failure> {
        if std::mem::take(&mut self.header) {
            sheet.rows.extend_from_slice(line);
        } else if self.over {
            // PostgreSQL ignores what follows the end marker, so it is not sent.
        } else if R::is_end(shape, line) {
            self.over = true;
            sheet.rows.extend_from_slice(line);
        } else {
            let done = R::row(shape, session, line, sheet);
            done.inspect_err(|_| sheet.failed = Some(line.to_vec()))?;
        }
        sheet.rows.extend_from_slice(end);
        sheet.end_row(shape, session)
    }
}

/// The kind of line end of a stream, determined by its first line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Newline,
    Return,
    ReturnNewline,
}

/// What was found at an offset of the input.
enum End {
    /// No line end.
    No,
    /// A line end of this many bytes.
    Yes(usize),
    /// A carriage return at the end of the input so far: undecided.
    Wait,
}

impl LineEnd {
    /// Whether a line ends at `at`; the first line end determines the kind.
    fn at(&mut self, buffer: &[u8], at: usize, last: bool) -> End {
        match (buffer.get(at), *self) {
            (Some(b'\n'), LineEnd::Unknown | LineEnd::Newline) => {
                *self = LineEnd::Newline;
                End::Yes(1)
            }
            (Some(b'\r'), LineEnd::Unknown | LineEnd::ReturnNewline) => match buffer.get(at + 1) {
                Some(b'\n') => {
                    *self = LineEnd::ReturnNewline;
                    End::Yes(2)
                }
                None if !last => End::Wait,
                _ if *self == LineEnd::Unknown => {
                    *self = LineEnd::Return;
                    End::Yes(1)
                }
                _ => End::No,
            },
            (Some(b'\r'), LineEnd::Return) => End::Yes(1),
            _ => End::No,
        }
    }
}
