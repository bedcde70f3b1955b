//! A session in one of three ways: straight to PostgreSQL (plaintext), with the
//! client library in this process (protected, no hop), or through the proxy
//! (protected, looks like plaintext from here).
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use client::copy::CopyStream;
use client::{Handshake, LiteralCache, Protected, TypeMap, description};
use envelope::{PublicKey, SecretKey};
use rewrite::report::Report;
use rewrite::{Catalog, Fit, Schema};

use crate::waits::{Counting, Waits};
use crate::wire::{Address, Connection, Error, Fields, Result};

/// The keys of a session with the client library.
#[derive(Clone)]
pub struct Keys {
    pub client: std::sync::Arc<SecretKey>,
    pub keeper: PublicKey,
}

impl Keys {
    pub fn read(client: &Path, keeper: &str) -> Result<Keys> {
        let told = |e: envelope::Error| Error::new(e.to_string());
        Ok(Keys {
            client: SecretKey::read_file(envelope::Role::Client, client)
                .map_err(told)?
                .into(),
            keeper: keeper.parse().map_err(told)?,
        })
    }
}

/// What the client library knows.
struct Library {
    session: client::Session,
    schema: Schema,
}

/// A prepared statement: what is protected of its parameters and columns.
pub struct Statement {
    name: String,
    parameters: Vec<Option<Protected>>,
    columns: Vec<Option<Protected>>,
    /// Envelopes are sent in binary format, all else as text; empty: all is text.
    parameter_formats: Vec<i16>,
    column_formats: Vec<i16>,
    /// The columns that parameters are only assigned to.
    fits: BTreeMap<u32, Fit>,
}

impl Statement {
    fn new(
        name: String,
        parameters: Vec<Option<Protected>>,
        columns: Vec<Option<Protected>>,
    ) -> Statement {
        let formats = |all: &[Option<Protected>]| {
            all.iter()
                .map(|p| i16::from(matches!(p, Some(Protected::Scalar(_)))))
                .collect::<Vec<_>>()
        };
        Statement {
            parameter_formats: formats(&parameters),
            column_formats: formats(&columns),
            name,
            parameters,
            columns,
            fits: BTreeMap::new(),
        }
    }
}

/// A value of a parameter.
#[derive(Clone, Debug)]
pub struct Value(pub Option<String>);

macro_rules! values {
    ($($from:ty),*) => { $(impl From<$from> for Value {
        fn from(value: $from) -> Value { Value(Some(value.to_string())) }
    })* };
}
values!(&str, String, i32, i64, u32, usize);

/// Values for parameters, of any types.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::session::Value::from($value)),*] };
}

/// Rows as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// An open session.
pub struct Session {
    connection: Connection,
    library: Option<Library>,
    statements: HashMap<&'static str, Statement>,
    counting: Option<Counting>,
}

impl Session {
    /// With `keys`: by the client library.
    pub fn open(address: &Address, keys: Option<&Keys>) -> Result<Session> {
        let mut connection = Connection::open(address)?;
        let library = keys.map(|keys| begin(&mut connection, keys)).transpose()?;
        Ok(Session {
            connection,
            library,
            statements: HashMap::new(),
            counting: None,
        })
    }

    /// From now on counts what each statement waits for; the role must be one that monitors.
    pub fn count_waits(&mut self) -> Result<()> {
        self.counting = Some(Counting::begin(&mut self.connection)?);
        Ok(())
    }

    /// What was counted, by statement.
    pub fn waits(&mut self) -> BTreeMap<&'static str, Waits> {
        let counting = self.counting.take();
        counting.map(|c| c.by_statement).unwrap_or_default()
    }

    /// Runs a text that has no secrets and no results of interest.
    pub fn simple(&mut self, sql: &str) -> Result<Vec<Fields>> {
        self.connection.simple(sql)
    }

    /// Runs a statement, which is prepared when it is first seen.
    pub fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<(Rows, u64)> {
        let result = self.run_prepared(sql, values)?;
        if let Some(counting) = &mut self.counting {
            counting.count(&mut self.connection, sql)?;
        }
        Ok(result)
    }

    fn run_prepared(&mut self, sql: &'static str, values: &[Value]) -> Result<(Rows, u64)> {
        if !self.statements.contains_key(sql) {
            let name = format!("s{}", self.statements.len());
            let statement = self.prepare(name, sql)?;
            self.statements.insert(sql, statement);
        }
        let statement = &self.statements[sql];
        let mut bound = Vec::with_capacity(values.len());
        for (value, protected) in values.iter().zip(&statement.parameters) {
            bound.push(match (&value.0, protected, &self.library) {
                (Some(value), Some(Protected::Scalar(code)), Some(library)) => {
                    let mut sealed = Vec::with_capacity(value.len() + 64);
                    let session = &library.session;
                    let value = value.as_bytes();
                    let fit = statement.fits.get(&(bound.len() as u32 + 1));
                    let fit = fit.filter(|fit| fit.code == *code);
                    let fitted = match fit {
                        Some(fit) => {
                            session.seal_fitted(fit, client::TEXT, value, false, &mut sealed)?
                        }
                        None => false,
                    };
                    if !fitted {
                        session.seal_text_as_binary(*code, value, &mut sealed)?;
                    }
                    Some(sealed)
                }
                (Some(value), Some(target), Some(library)) => {
                    let mut sealed = Vec::new();
                    let session = &library.session;
                    session.seal(*target, 0, value.as_bytes(), &mut sealed)?;
                    Some(sealed)
                }
                (value, _, _) => value.as_ref().map(|v| v.clone().into_bytes()),
            });
        }
        let (rows, touched) = self.connection.execute(
            &statement.name,
            &bound,
            &statement.parameter_formats,
            &statement.column_formats,
        )?;
        let mut opened = Vec::with_capacity(rows.len());
        for row in rows {
            opened.push(open_row(self.library.as_ref(), statement, row)?);
        }
        Ok((opened, touched))
    }

    fn prepare(&mut self, name: String, sql: &str) -> Result<Statement> {
        let Some(library) = &mut self.library else {
            self.connection.prepare(&name, sql)?;
            let mut statement = Statement::new(name, vec![None; 64], Vec::new());
            statement.parameter_formats.clear();
            return Ok(statement);
        };
        let (text, _, fits) = rewritten(library, sql)?;
        let (mut parameters, mut rows) = self.connection.prepare(&name, &text)?;
        library.session.all_answered();
        let types = &library.session.types;
        let columns = match rows.is_empty() {
            true => Vec::new(),
            false => description::rows(&mut rows, types)?,
        };
        let parameters = description::parameters(&mut parameters, types)?;
        let parameters = parameters.into_iter().map(|oid| types.get(oid)).collect();
        let columns = columns.into_iter().map(|c| c.protected).collect();
        Ok(Statement {
            fits,
            ..Statement::new(name, parameters, columns)
        })
    }

    /// Loads what `fill` gives, piece by piece (text format), into a table.
    pub fn copy(&mut self, sql: &str, mut fill: impl FnMut() -> Option<Vec<u8>>) -> Result<()> {
        let (text, mut stream) = match &mut self.library {
            None => (sql.to_owned(), None),
            Some(library) => {
                let (text, plan, _) = rewritten(library, sql)?;
                let plan = plan.ok_or_else(|| Error::new("not a COPY"))?;
                (text, CopyStream::new(&plan)?)
            }
        };
        self.connection.begin_copy(&text)?;
        while let Some(piece) = fill() {
            let mut out = Vec::new();
            match (&mut stream, &self.library) {
                (Some(stream), Some(library)) => {
                    stream.push(&library.session, &piece, &mut out)?;
                }
                _ => out = piece,
            }
            self.connection.copy_data(&out)?;
        }
        if let (Some(mut stream), Some(library)) = (stream, &self.library) {
            let mut out = Vec::new();
            stream.finish(&library.session, &mut out)?;
            self.connection.copy_data(&out)?;
        }
        self.connection.end_copy()?;
        if let Some(library) = &mut self.library {
            library.session.all_answered();
        }
        Ok(())
    }

    /// The schema has changed: reads it again.
    pub fn refresh(&mut self) -> Result<()> {
        if let Some(library) = &mut self.library {
            library.schema = watch(&mut self.connection, &mut library.session)?;
        }
        Ok(())
    }
}

fn open_row(
    library: Option<&Library>,
    statement: &Statement,
    row: Fields,
) -> Result<Vec<Option<String>>> {
    let mut opened = Vec::with_capacity(row.len());
    for (at, field) in row.into_iter().enumerate() {
        let protected = statement.columns.get(at).copied().flatten();
        let field = match (field, protected, library) {
            (Some(field), Some(Protected::Scalar(code)), Some(library)) => {
                let mut plain = Vec::with_capacity(field.len());
                let session = &library.session;
                session.open_binary_as_text(code, &field, &mut plain)?;
                Some(plain)
            }
            (Some(field), Some(source), Some(library)) => {
                let mut plain = Vec::new();
                library.session.open(source, 0, &field, &mut plain)?;
                Some(plain)
            }
            (field, _, _) => field,
        };
        opened.push(field.map(|f| String::from_utf8_lossy(&f).into_owned()));
    }
    Ok(opened)
}

/// The statement for the server, with its literals sealed and its grant behind it, and its
/// COPY plan, and the columns that parameters are assigned to.
fn rewritten(
    library: &mut Library,
    sql: &str,
) -> Result<(String, Option<rewrite::CopyPlan>, BTreeMap<u32, Fit>)> {
    let statements = rewrite::analyze(sql, &library.schema)
        .map_err(|refusal| client::Failure::from_refusal(&refusal, sql))?;
    let statement = statements
        .first()
        .ok_or_else(|| Error::new("no statement"))?;
    let mut cache = LiteralCache::default();
    let (text, _) = rewrite::apply_edits(sql, &statement.edits, |secret| {
        library.session.seal_literal(secret, true, &mut cache)
    })?;
    let copy = statement.copy.clone();
    let fit = |(number, used): (&u32, &rewrite::ParamUse)| Some((*number, *used.fits()?));
    let fits = statement.params.iter().filter_map(fit).collect();
    Ok((text + &library.session.grants(&statements)?, copy, fits))
}

/// The handshake with the keeper, and what the library must know of the database.
fn begin(connection: &mut Connection, keys: &Keys) -> Result<Library> {
    let mut session = client::Session::default();
    // As a proxy would.
    session.fits = std::env::var("CONFIDE_PROXY_FIT_VALUES").map_or(true, |fits| fits != "false");
    for (name, value) in &connection.settings {
        session.parameter_status(name, value);
    }
    let schema = watch(connection, &mut session)?;
    let handshake = Handshake::new(&keys.client)?;
    let answer = texts(connection.simple(&handshake.first_sql())?);
    let field = answer.first().and_then(|row| row.first()?.as_deref());
    let offer = handshake.offer(field.ok_or_else(|| Error::new("handshake"))?)?;
    if offer.keeper.key != keys.keeper {
        return Err(Error::new("the keeper is not the one that is trusted"));
    }
    connection.simple(&offer.sql())?;
    session.begin(offer);
    Ok(Library { session, schema })
}

/// Has the server report the schema.
fn watch(connection: &mut Connection, session: &mut client::Session) -> Result<Schema> {
    let before = connection.settings.len();
    let request = contract::report::REQUEST;
    connection.prepare("", &format!("SET {request} TO ''"))?;
    let mut records = Vec::new();
    let mut path = None;
    let told = connection.settings.iter().skip(before);
    for (_, value) in told.filter(|(name, _)| name == contract::report::SETTING) {
        match Report::read(value.as_bytes()).map_err(Error::new)? {
            Report::Part(part) => records.extend(part),
            Report::Path(told) => path = Some(told),
            _ => {}
        }
    }
    let path = path.ok_or_else(|| Error::new("the server does not report its schema"))?;
    let catalog = Catalog::new(&records, None);
    session.types = TypeMap::new(catalog.protected());
    let mut schema = catalog.schema().clone();
    schema.set_search_path(path.schemas);
    schema.set_temp(path.temporary);
    Ok(schema)
}

pub(crate) fn texts(rows: Vec<Fields>) -> Vec<rewrite::Row> {
    let text = |field: Vec<u8>| String::from_utf8_lossy(&field).into_owned();
    rows.into_iter()
        .map(|row| row.into_iter().map(|field| field.map(text)).collect())
        .collect()
}
