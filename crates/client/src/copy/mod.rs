//! COPY data: seals data going to the server and opens data coming from it. The data is processed
//! as a stream and may be split anywhere.
//!
//! Invariant: the bytes of a protected column are replaced or the stream fails; a row whose columns
//! do not match the plan fails.
mod binary;
mod csv;
mod lines;
mod refused;
mod sheet;
mod text;

use rewrite::{CopyPlan, Direction, Format, Header};

use crate::{Failure, Protected, Session, Shown};
pub use refused::{Refused, without_data};
use sheet::Sheet;

/// Maximum length of a row (PostgreSQL's own limit is 1 GB).
pub const ROW_MAX: usize = 1 << 30;

/// The kind of a protected column of the data.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// A known type.
    Typed(Protected),
    /// A column of a query whose type is unknown: each envelope contains its type.
    Untyped,
}

/// The parameters that all formats need.
pub(crate) struct Shape {
    pub(crate) direction: Direction,
    pub(crate) columns: Vec<Option<Target>>,
    pub(crate) typmods: Vec<i32>,
    pub(crate) names: Vec<String>,
    pub(crate) format: Format,
    pub(crate) options: rewrite::Options,
}

impl Shape {
    /// Format code of the values in the stream.
    fn value_format(&self) -> i16 {
        i16::from(self.format == Format::Binary)
    }

    /// Whether the column's type accepts a value. This is only a prediction: the keeper decides.
    fn accepts(&self, session: &Session, at: usize, value: &[u8]) -> bool {
        let Some(Some(Target::Typed(Protected::Scalar(code)))) = self.columns.get(at) else {
            return false;
        };
        let typmod = self.typmods.get(at).copied().unwrap_or(-1);
        if self.format == Format::Binary {
            let value = values::decode_binary(*code, -1, value);
            return value.is_ok_and(|v| {
                typmod == -1 || values::apply_typmod(v, *code, typmod, false).is_ok()
            });
        }
        values::parse_text(*code, typmod, value, &session.env).is_ok()
    }

    /// Records a value that the column's type does not accept.
    fn refused(&self, at: usize, value: &[u8]) -> Refused {
        let code = match self.columns.get(at) {
            Some(Some(Target::Typed(Protected::Scalar(code)))) => Some(*code),
            _ => None,
        };
        Refused {
            column: self.names.get(at).cloned().unwrap_or_default(),
            code: code.filter(|_| self.format != Format::Binary),
            typmod: self.typmods.get(at).copied().unwrap_or(-1),
            value: value.to_vec(),
        }
    }

    /// Whether envelopes and references can be written without escaping.
    fn spells_plainly(&self) -> bool {
        let ours = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        let options = &self.options;
        match self.format {
            Format::Text => !ours(options.delimiter),
            Format::Csv => ![options.delimiter, options.quote, options.escape]
                .map(ours)
                .contains(&true),
            Format::Binary => false,
        }
    }

    /// Whether a field represents NULL or a default.
    fn is_special(&self, field: &[u8]) -> bool {
        let options = &self.options;
        let default = options.default.as_ref().map(String::as_bytes);
        self.format != Format::Binary
            && (field == options.null.as_bytes() || Some(field) == default)
    }

    /// Seals or opens one field in the given format.
    fn field(
        &self,
        session: &Session,
        target: Target,
        format: i16,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Shown, Failure> {
        match (self.direction, target) {
            (Direction::From, Target::Typed(target)) => session
                .seal_row(target, format, value, out)
                .map(|()| Shown::Value),
            (Direction::To, Target::Typed(target)) => session.open(target, format, value, out),
            (Direction::To, Target::Untyped) => session.open_untyped(format, value, out),
            (Direction::From, Target::Untyped) => Err(Failure::new(
                "0A000",
                "confide: COPY into a column of unknown type",
            )),
        }
    }

    /// Returns the same error as PostgreSQL for a row with the wrong number of fields.
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
    sheet: Sheet,
}

enum State {
    Text(lines::Lines<text::Text>),
    Csv(lines::Lines<csv::Csv>),
    Binary(binary::Tuples),
}

impl CopyStream {
    /// Creates a stream for this plan, or `None` if nothing in it is protected.
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
                typmods: plan.columns.iter().map(|c| c.typmod).collect(),
                format: plan.format,
                names: plan.columns.iter().map(|c| c.name.clone()).collect(),
                options: plan.options.clone(),
            },
            state: match plan.format {
                Format::Text => State::Text(lines::Lines::new(text::Text, header)),
                Format::Csv => State::Csv(lines::Lines::new(csv::Csv::default(), header)),
                Format::Binary => State::Binary(binary::Tuples::default()),
            },
            sheet: Sheet::default(),
        }))
    }

    /// Processes a piece of data and appends what is to be sent to `out`. If it fails, the rows
    /// before the invalid one are still appended.
    pub fn push(
        &mut self,
        session: &Session,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let (shape, sheet) = (&self.shape, &mut self.sheet);
        let done = match &mut self.state {
            State::Text(lines) => lines.push(shape, session, data, sheet),
            State::Csv(rows) => rows.push(shape, session, data, sheet),
            State::Binary(tuples) => tuples.push(shape, session, data, sheet),
        };
        let done = done.or_else(|failure| {
            sheet.give_up_row(shape, session)?;
            Err(failure)
        });
        out.append(&mut sheet.ready);
        done
    }

    /// Returns the first value so far that its column's type does not accept; the server stops
    /// there.
    pub fn refused(&mut self) -> Option<Refused> {
        self.sheet.refused.take()
    }

    /// Returns the part that PostgreSQL would append, after the position, to the CONTEXT of the
    /// server's answer to CopyFail: the line at which `push` or `finish` failed.
    pub fn failed(&mut self) -> Option<String> {
        let line = String::from_utf8(self.sheet.failed.take()?).ok()?;
        Some(format!(": \"{}\"", refused::limited(&line)))
    }

    /// The data has ended: appends the rest.
    pub fn finish(&mut self, session: &Session, out: &mut Vec<u8>) -> Result<(), Failure> {
        let (shape, sheet) = (&self.shape, &mut self.sheet);
        let done = match &mut self.state {
            State::Text(lines) => lines.finish(shape, session, sheet),
            State::Csv(rows) => rows.finish(shape, session, sheet),
            State::Binary(tuples) => tuples.finish(),
        };
        let done = match done {
            Ok(()) => sheet.flush(shape, session),
            Err(failure) => sheet.give_up_row(shape, session).and(Err(failure)),
        };
        out.append(&mut sheet.ready);
        done
    }
}

fn too_long() -> Failure {
    Failure::new("54000", "confide: COPY row is too long")
}
