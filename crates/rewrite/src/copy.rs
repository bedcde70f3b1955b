//! What a `COPY` transfers and in which format, for the caller that opens and seals the values in
//! the stream.

use crate::relation::ColumnType;

/// A `COPY`, with at least the information which columns are protected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyPlan {
    /// Direction of the transfer.
    pub direction: Direction,
    /// The other end.
    pub endpoint: Endpoint,
    /// What is copied.
    pub source: Source,
    /// The columns of the data, in order.
    pub columns: Vec<CopyColumn>,
    /// Format of the data.
    pub format: Format,
    /// The options of the text and csv formats.
    pub options: Options,
}

/// A column of the data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyColumn {
    /// Its name.
    pub name: String,
    /// Whether its values are, or may contain, protected ones.
    pub protected: bool,
    /// Its type; for a query's column, if it is known.
    pub ty: Option<ColumnType>,
    /// Type modifier, -1 for none.
    pub typmod: i32,
}

/// Direction of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the table.
    From,
    /// Out of the table or query.
    To,
}

/// The other end of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// The client: `STDIN`, `STDOUT`.
    Client,
    /// A file on the server.
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

/// Format of the data.
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
    /// Representation of NULL.
    pub null: String,
    /// Representation of the column's default (PostgreSQL 16 and later).
    pub default: Option<String>,
    /// One byte; csv only.
    pub quote: u8,
    /// One byte; csv only.
    pub escape: u8,
    /// The header line.
    pub header: Header,
    /// Positions in `columns` for `FORCE_QUOTE` (csv, TO).
    pub force_quote: Vec<usize>,
    /// Positions in `columns` for `FORCE_NULL` (csv, FROM).
    pub force_null: Vec<usize>,
    /// Positions in `columns` for `FORCE_NOT_NULL` (csv, FROM).
    pub force_not_null: Vec<usize>,
    /// `ENCODING`, if specified; anything but UTF-8 is refused if a column is protected.
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
