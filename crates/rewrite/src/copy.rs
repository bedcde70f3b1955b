//! What a `COPY` moves and how its data is written, for the caller that opens and
//! seals the values in the stream.

use crate::relation::ColumnType;

/// A `COPY` with at least the knowledge which of its columns are protected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyPlan {
    /// Which way the data goes.
    pub direction: Direction,
    /// What is on the other side.
    pub endpoint: Endpoint,
    /// What is copied.
    pub source: Source,
    /// The columns of the data, in order.
    pub columns: Vec<CopyColumn>,
    /// How the data is written.
    pub format: Format,
    /// The options of the text and csv formats.
    pub options: Options,
}

/// A column of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyColumn {
    /// Its name.
    pub name: String,
    /// Its values are protected, or may contain something that is.
    pub protected: bool,
    /// Its type; for a column of a query, as far as it is known.
    pub ty: Option<ColumnType>,
    /// Type modifier, -1 for none.
    pub typmod: i32,
}

/// Which way the data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the table.
    From,
    /// Out of the table or query.
    To,
}

/// What is on the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// The client: `STDIN`, `STDOUT`.
    Client,
    /// A file of the server.
    File,
    /// A program on the server.
    Program,
}

/// What is copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A table or view.
    Relation {
        /// Its schema.
        schema: String,
        /// Its name.
        name: String,
    },
    /// A query.
    Query,
}

/// How the data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `FORMAT text`
    Text,
    /// `FORMAT csv`
    Csv,
    /// `FORMAT binary`
    Binary,
}

/// The header option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// No header line.
    No,
    /// A header line.
    Yes,
    /// A header line that must match the columns.
    Match,
}

/// Options of the text and csv formats, with PostgreSQL's defaults filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// One byte.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// What stands for the column's default (PostgreSQL 16 and later).
    pub default: Option<String>,
    /// One byte; csv only.
    pub quote: u8,
    /// One byte; csv only.
    pub escape: u8,
    /// The header line.
    pub header: Header,
    /// Positions in `columns` of `FORCE_QUOTE` (csv, to).
    pub force_quote: Vec<usize>,
    /// Positions in `columns` of `FORCE_NULL` (csv, from).
    pub force_null: Vec<usize>,
    /// Positions in `columns` of `FORCE_NOT_NULL` (csv, from).
    pub force_not_null: Vec<usize>,
    /// `ENCODING`, if it is given: anything but UTF-8 is refused when a column
    /// is protected.
    pub encoding: Option<String>,
}

impl Options {
    /// PostgreSQL's defaults for the format.
    pub fn defaults(format: Format) -> Options {
        let csv = format == Format::Csv;
        Options {
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".into() },
            default: None,
            quote: b'"',
            escape: b'"',
            header: Header::No,
            force_quote: Vec::new(),
            force_null: Vec::new(),
            force_not_null: Vec::new(),
            encoding: None,
        }
    }
}
