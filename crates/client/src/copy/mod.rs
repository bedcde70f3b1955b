//! COPY data: seals what goes to the server, opens what comes from it. A stream:
//! data may be split anywhere.
//!
//! Invariant: the bytes of a protected column are replaced or the stream fails;
//! a row that does not have the plan's columns fails.
mod binary;
mod csv;
mod text;

use rewrite::{CopyPlan, Direction, Format, Header};

use crate::{Failure, Protected, Session};

/// No row may be longer than this (PostgreSQL's own limit is 1 GB).
pub const ROW_MAX: usize = 1 << 30;

/// What a protected column of the data is.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// A known type.
    Typed(Protected),
    /// A column of a query whose type is not known: each envelope says its own.
    Untyped,
}

/// What all formats need to know.
pub(crate) struct Shape {
    pub(crate) direction: Direction,
    pub(crate) columns: Vec<Option<Target>>,
    pub(crate) names: Vec<String>,
    pub(crate) options: rewrite::Options,
}

impl Shape {
    /// Seals or opens one field in the given format.
    fn field(
        &self,
        session: &Session,
        target: Target,
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match (self.direction, target) {
            (Direction::From, Target::Typed(target)) => session.seal(target, format, value, out),
            (Direction::To, Target::Typed(target)) => session.open(target, format, value, out),
            (Direction::To, Target::Untyped) => session.open_untyped(format, value, out),
            (Direction::From, Target::Untyped) => Err(Failure::new(
                "0A000",
                "confide: COPY into a column of unknown type",
            )),
        }
    }

    /// The error for a row with the wrong number of fields, as PostgreSQL's.
    fn count(&self, found: usize) -> Result<(), Failure> {
        if found < self.columns.len() {
            let name = self.names.get(found).map_or("", String::as_str);
            return Err(Failure::new(
                "22P04",
                format!("missing data for column \"{name}\""),
            ));
        }
        if found > self.columns.len() {
            return Err(Failure::new(
                "22P04",
                "extra data after last expected column",
            ));
        }
        Ok(())
    }
}

/// The data of one COPY.
pub struct CopyStream {
    shape: Shape,
    state: State,
}

enum State {
    Text(text::Lines),
    Csv(csv::Rows),
    Binary(binary::Tuples),
}

impl CopyStream {
    /// A stream for this plan, or `None` when nothing in it is protected.
    pub fn new(plan: &CopyPlan) -> Result<Option<CopyStream>, Failure> {
        if !plan.columns.iter().any(|c| c.protected) {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(plan.columns.len());
        for column in &plan.columns {
            let typed = column.ty.as_ref().and_then(Protected::of_column);
            let target = match (typed, column.protected) {
                (Some(typed), _) => Some(Target::Typed(typed)),
                (None, false) => None,
                (None, true) if plan.direction == Direction::To => Some(Target::Untyped),
                (None, true) => {
                    return Err(Failure::new(
                        "0A000",
                        format!(
                            "COPY of column \"{}\" is not supported: its type contains protected values",
                            column.name
                        ),
                    ));
                }
            };
            columns.push(target);
        }
        let header = plan.options.header != Header::No;
        Ok(Some(CopyStream {
            shape: Shape {
                direction: plan.direction,
                columns,
                names: plan.columns.iter().map(|c| c.name.clone()).collect(),
                options: plan.options.clone(),
            },
            state: match plan.format {
                Format::Text => State::Text(text::Lines::new(header)),
                Format::Csv => State::Csv(csv::Rows::new(header)),
                Format::Binary => State::Binary(binary::Tuples::default()),
            },
        }))
    }

    /// Takes a piece of data and appends what is complete to `out`.
    pub fn push(
        &mut self,
        session: &Session,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match &mut self.state {
            State::Text(lines) => lines.push(&self.shape, session, data, out),
            State::Csv(rows) => rows.push(&self.shape, session, data, out),
            State::Binary(tuples) => tuples.push(&self.shape, session, data, out),
        }
    }

    /// The data has ended: appends what is left.
    pub fn finish(&mut self, session: &Session, out: &mut Vec<u8>) -> Result<(), Failure> {
        match &mut self.state {
            State::Text(lines) => lines.finish(&self.shape, session, out),
            State::Csv(rows) => rows.finish(&self.shape, session, out),
            State::Binary(tuples) => tuples.finish(),
        }
    }
}

fn too_long() -> Failure {
    Failure::new("54000", "confide: COPY row is too long")
}

/// The kind of line end of a stream: that of its first line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Newline,
    Return,
    ReturnNewline,
}

/// What stands at an offset of the input.
enum End {
    /// No line end.
    No,
    /// A line end of this many bytes.
    Yes(usize),
    /// A return at the end of the input so far: undecided.
    Wait,
}

impl LineEnd {
    /// Whether a line ends at `at`; settles the kind with the first one.
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
