//! The pin: which columns are protected, regardless of what the database claims.
//!
//! The schema comes from the database. Its administrators can change it, and a change may become
//! known late. In every snapshot, the pinned columns of a pinned table are protected. If the
//! snapshot disagrees, a statement that names the table is refused.
//!
//! For the family `soft_` the modifier is pinned as well: other encodings would disclose more about
//! a row, and with another key a value could be compared with those of another column.
//!
//! Routines are pinned as a whole, by a fingerprint: what a client reads depends on their bodies (`others`).
//! A statement that calls another one than the pinned one, or one whose body does, is refused.
//!
//! Invariant: no relation of a [`crate::Schema`] with a pin has a pinned column that is plain.

use crate::relation::{ColumnType, Relation};
use crate::report::FunctionRecord;
use crate::soft_type::{self, SOFT_RESULTS};
use aws_lc_rs::digest::{SHA256, digest};
use contract::TypeCode;
use std::collections::HashMap;
use std::sync::Arc;

/// The pins of databases in a file (`confide pin`): one column per line,
/// `database.schema.table.column type place`, or one routine, `database.schema.name routine fingerprint`; and
/// comments that start with `#`.
#[derive(Debug, Default)]
pub struct Pins {
    databases: HashMap<String, Arc<Pin>>,
}

/// The protected columns of a database, and its routines.
#[derive(Clone, Debug, Default)]
pub struct Pin {
    /// By name, which may occur in several schemas.
    tables: HashMap<String, Vec<Table>>,
    /// The same.
    routines: HashMap<String, Vec<PinnedRoutine>>,
}

#[derive(Clone, Debug)]
pub(crate) struct PinnedRoutine {
    pub(crate) schema: String,
    pub(crate) print: String,
}

/// What a line says.
enum Line {
    Column([String; 3], Column),
    Routine([String; 2], PinnedRoutine),
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) schema: String,
    columns: Vec<Column>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Column {
    name: String,
    ty: ColumnType,
    /// Ordinal position in the table; `INSERT` need not name the column.
    place: usize,
}

impl Table {
    /// Whether both have the same pinned columns.
    pub(crate) fn same_columns(&self, other: &Table) -> bool {
        self.columns == other.columns
    }
}

impl Pins {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Pins, String> {
        let mut databases: HashMap<String, Pin> = HashMap::new();
        let lines = text.lines().enumerate();
        for (at, line) in lines.filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')) {
            let line = parse_line(line).ok_or_else(|| {
                format!(
                    "line {}: expected database.schema.table.column type place, \
                     or database.schema.name routine fingerprint",
                    at + 1
                )
            })?;
            match line {
                Line::Column([database, schema, table], column) => {
                    let pin = databases.entry(database).or_default();
                    pin.add(schema, table, column);
                }
                Line::Routine([database, name], routine) => {
                    let pin = databases.entry(database).or_default();
                    pin.routines.entry(name).or_default().push(routine);
                }
            }
        }
        let shared = databases.into_iter().map(|(n, pin)| (n, Arc::new(pin)));
        Ok(Pins {
            databases: shared.collect(),
        })
    }

    /// The pin of a database.
    pub fn of(&self, database: &str) -> Option<Arc<Pin>> {
        self.databases.get(database).cloned()
    }
}

impl Pin {
    fn add(&mut self, schema: String, table: String, column: Column) {
        let tables = self.tables.entry(table).or_default();
        match tables.iter_mut().find(|t| t.schema == schema) {
            Some(table) => table.columns.push(column),
            None => tables.push(Table {
                schema,
                columns: vec![column],
            }),
        }
    }

    /// Names of tables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The tables of this name.
    pub(crate) fn tables(&self, name: &str) -> Option<&[Table]> {
        self.tables.get(name).map(Vec::as_slice)
    }

    /// The routines of this name.
    pub(crate) fn routines(&self, name: &str) -> Option<&[PinnedRoutine]> {
        self.routines.get(name).map(Vec::as_slice)
    }

    /// Whether it has any.
    pub(crate) fn has_routines(&self) -> bool {
        !self.routines.is_empty()
    }

    /// Names of columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        let columns = self.tables.values().flatten().flat_map(|t| &t.columns);
        columns.map(|c| c.name.as_str())
    }

    /// Makes the relation's pinned columns protected. Returns how the relation differed.
    pub(crate) fn hold(&self, relation: &mut Relation) -> Option<String> {
        let tables = self.tables.get(&relation.name)?;
        let table = tables.iter().find(|t| t.schema == relation.schema)?;
        let found = relation.columns.get_or_insert_default();
        let mut wrong = None;
        for pinned in &table.columns {
            let name = &pinned.name;
            let said = match found.iter_mut().enumerate().find(|(_, c)| c.name == *name) {
                None => format!("Column \"{name}\" is missing."),
                Some((_, column)) if column.ty != pinned.ty => {
                    let is = std::mem::replace(&mut column.ty, pinned.ty.clone());
                    let (is, pinned) = (type_name(&is), type_name(&pinned.ty));
                    format!("Column \"{name}\" is pinned as {pinned}; the database says {is}.")
                }
                Some((at, _)) if at + 1 != pinned.place => format!(
                    "Column \"{name}\" is pinned as column {} of the table; now it is column {}.",
                    pinned.place,
                    at + 1
                ),
                Some(_) => continue,
            };
            wrong.get_or_insert(said);
        }
        wrong
    }
}

fn type_name(ty: &ColumnType) -> String {
    match ty {
        ColumnType::Enc(code) => code.enc_name().to_owned(),
        ColumnType::Soft(code, modifier) => soft_type::written(*code, *modifier),
        ColumnType::EncArray(code) => format!("_{}", code.enc_name()),
        ColumnType::SoftArray(code) => format!("_{}", code.soft_name()),
        ColumnType::Plain(_, name) | ColumnType::Opaque(_, name) => name.clone(),
    }
}

/// A fingerprint of a routine: SHA-256, in hexadecimal digits, of all that the client reads of it, each field
/// with its length before it. `confide pin` computes the same in SQL.
pub(crate) fn fingerprint(f: &FunctionRecord, type_name: impl Fn(u32) -> String) -> String {
    let types = |oids: &[u32]| {
        let count = std::iter::once(oids.len().to_string());
        let names = oids.iter().map(|oid| type_name(*oid));
        count.chain(names).collect::<Vec<_>>()
    };
    let fields = [
        types(&f.inputs),
        types(&f.all),
        vec![f.modes.clone(), type_name(f.result), type_name(f.variadic)],
        vec![f.language.clone(), f.body.clone(), f.rest.clone()],
        f.names.clone(),
    ];
    let fields = fields.iter().flatten();
    let text: String = fields.map(|f| format!("{}:{f}", f.len())).collect();
    let hash = digest(&SHA256, text.as_bytes());
    let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

fn parse_line(line: &str) -> Option<Line> {
    let (database, rest) = identifier(line)?;
    let (schema, rest) = identifier(rest.strip_prefix('.')?)?;
    let (table, rest) = identifier(rest.strip_prefix('.')?)?;
    let Some(rest) = rest.strip_prefix('.') else {
        let print = rest.strip_prefix(" routine ")?.to_owned();
        let hexadecimal = print.len() == 64 && print.bytes().all(|b| b.is_ascii_hexdigit());
        let routine = PinnedRoutine { schema, print };
        return hexadecimal.then_some(Line::Routine([database, table], routine));
    };
    let (name, rest) = identifier(rest)?;
    let mut words = rest.split_whitespace();
    let (ty, place) = (words.next()?, words.next()?.parse().ok()?);
    // The binder does not distinguish values of `enc_` and `rnd_`.
    let code = |name: &str| TypeCode::from_protected_name(name);
    let result = SOFT_RESULTS.iter().find_map(|r| ty.strip_prefix(r));
    let soft = result.map_or_else(|| ty.to_owned(), |name| format!("soft_{name}"));
    let ty = match (soft_type::parse(&soft), ty.strip_prefix('_')) {
        (Some((code, modifier)), _) => ColumnType::Soft(code, modifier),
        (None, Some(element)) => ColumnType::EncArray(code(element)?),
        (None, None) => ColumnType::Enc(code(ty)?),
    };
    let column = Column { name, ty, place };
    words
        .next()
        .is_none()
        .then_some(Line::Column([database, schema, table], column))
}

/// Parses a name as written by `quote_ident`. Returns it with the rest of the text.
fn identifier(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(['.', ' ']).filter(|end| *end > 0)?;
        return Some((text.get(..end)?.to_owned(), text.get(end..)?));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            None => return Some((name, after)),
            Some(more) => {
                name.push('"');
                rest = more;
            }
        }
    }
}
