//! The snapshot of the schema that statements are classified against.
//!
//! The client runs [`SCHEMA_QUERIES`] in the application's own session (simple
//! or extended protocol, all results as text) and hands the rows over. Relations
//! of `pg_catalog` and `information_schema` come without columns: they hold
//! nothing protected.

use crate::pin::Pin;
use contract::TypeCode;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Common table expressions of the queries below: protected types and their arrays (`enc`), and all
/// types that are or contain one (`holds`).
macro_rules! holders {
    () => {
        "WITH RECURSIVE enc AS (\
         SELECT t.oid, t.typarray FROM pg_catalog.pg_type t \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace \
         WHERE n.nspname OPERATOR(pg_catalog.=) 'pg_catalog' AND pg_catalog.starts_with(t.typname::pg_catalog.text, 'enc_')), \
         edge (part, whole) AS MATERIALIZED (\
         SELECT t.typbasetype, t.oid FROM pg_catalog.pg_type t WHERE t.typbasetype OPERATOR(pg_catalog.<>) 0 UNION ALL \
         SELECT t.typelem, t.oid FROM pg_catalog.pg_type t WHERE t.typelem OPERATOR(pg_catalog.<>) 0 \
         AND t.typcategory OPERATOR(pg_catalog.=) 'A' UNION ALL \
         SELECT a.atttypid, c.reltype FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c \
         ON c.oid OPERATOR(pg_catalog.=) a.attrelid \
         WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped AND c.reltype OPERATOR(pg_catalog.<>) 0 UNION ALL \
         SELECT r.rngsubtype, r.rngtypid FROM pg_catalog.pg_range r UNION ALL \
         SELECT r.rngsubtype, r.rngmultitypid FROM pg_catalog.pg_range r), \
         holds AS (SELECT oid FROM enc UNION \
         SELECT e.whole FROM holds h JOIN edge e ON e.part OPERATOR(pg_catalog.=) h.oid)"
    };
}

/// The queries, in the order in which [`Schema::from_rows`] wants their rows.
pub const SCHEMA_QUERIES: [&str; 5] = [
    // Settings: the effective search path in order, and the temporary schema.
    "SELECT 'path', n FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS u(n, i) \
     UNION ALL SELECT 'temp', nspname FROM pg_catalog.pg_namespace \
     WHERE oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()",
    // Relations.
    "SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c \
     JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
     WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S', 'c') \
     AND n.nspname OPERATOR(pg_catalog.<>) 'pg_toast'",
    // Columns of relations of users.
    "SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attgenerated, a.attidentity \
     FROM pg_catalog.pg_attribute a \
     JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.attrelid \
     JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
     WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped \
     AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'c') \
     AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') \
     ORDER BY a.attrelid, a.attnum",
    // Types: kind 'p' a protected type, 'a' its array type, 'o' any other type
    // that contains one (domain, composite, range, their arrays), 't' the rest
    // of the types that columns have.
    concat!(
        holders!(),
        " SELECT t.oid, n.nspname, t.typname, CASE \
     WHEN t.oid IN (SELECT oid FROM enc) THEN 'p' WHEN t.oid IN (SELECT typarray FROM enc) THEN 'a' \
     WHEN t.oid IN (SELECT oid FROM holds) THEN 'o' ELSE 't' END, t.typrelid, t.typtype \
     FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace \
     WHERE t.typtype OPERATOR(pg_catalog.<>) 'p'"
    ),
    // Functions of users: all of a name, when one of that name has something
    // protected in its signature.
    concat!(
        holders!(),
        ", f AS (SELECT p.oid, n.nspname, p.proname, p.proargtypes::pg_catalog.oid[] AS inargs, p.prorettype, \
     p.proallargtypes, p.proargmodes, p.proargnames, p.provariadic, p.pronargdefaults, p.prokind, p.proretset, \
     EXISTS (SELECT FROM holds h WHERE h.oid OPERATOR(pg_catalog.=) p.prorettype \
     OR h.oid OPERATOR(pg_catalog.=) ANY (p.proargtypes::pg_catalog.oid[]) \
     OR h.oid OPERATOR(pg_catalog.=) ANY (p.proallargtypes)) AS holds \
     FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace \
     WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')) \
     SELECT oid, nspname, proname, pg_catalog.array_to_string(inargs, ','), prorettype, \
     pg_catalog.array_to_string(proallargtypes, ','), pg_catalog.array_to_string(proargmodes, ','), \
     pg_catalog.array_to_string(proargnames, pg_catalog.chr(31)), provariadic, pronargdefaults, prokind, proretset \
     FROM f WHERE proname IN (SELECT proname FROM f WHERE holds)"
    ),
];

/// The type of a column or argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// A plain type: OID and `typname`.
    Plain(u32, String),
    /// A protected type.
    Enc(TypeCode),
    /// An array of a protected type.
    EncArray(TypeCode),
    /// A type that contains protected ones: domain, composite, range, their
    /// arrays. OID and `typname`.
    Opaque(u32, String),
}

impl ColumnType {
    /// Values of this type are, or contain, protected ones.
    pub fn protected(&self) -> bool {
        !matches!(self, ColumnType::Plain(..))
    }
}

/// A column of a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its number.
    pub attnum: i16,
    /// Its type.
    pub ty: ColumnType,
    /// Type modifier, -1 for none.
    pub typmod: i32,
    /// `GENERATED ALWAYS AS (…) STORED`: not part of `COPY` by default.
    pub generated: bool,
    /// An identity column.
    pub identity: bool,
}

/// A table, view, materialized view, foreign table, sequence or composite type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relation {
    /// OID; 0 for one that an earlier statement of the same text creates.
    pub oid: u32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: char,
    /// Columns; `None` for relations of the system, which are plain.
    pub columns: Option<Vec<Column>>,
}

impl Relation {
    /// One of its columns is protected.
    pub fn protected(&self) -> bool {
        self.columns
            .iter()
            .flatten()
            .any(|column| column.ty.protected())
    }
}

/// A function of a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserFunction {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Input arguments.
    pub args: Vec<ColumnType>,
    /// Names of input arguments (may be empty).
    pub arg_names: Vec<String>,
    /// The last argument may repeat; its element type.
    pub variadic: Option<ColumnType>,
    /// How many of the last arguments have defaults.
    pub defaults: usize,
    /// Result type.
    pub ret: ColumnType,
    /// Output columns, for functions with `OUT` arguments or `RETURNS TABLE`.
    pub out: Vec<(String, ColumnType)>,
    /// OID of the row type's relation when the result is a composite type.
    pub ret_relation: Option<u32>,
}

/// A type that is not a plain one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedType {
    pub ty: ColumnType,
}

/// The snapshot.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    search_path: Vec<String>,
    temp: Option<String>,
    pub(crate) relations: HashMap<String, Vec<Relation>>,
    types: HashMap<String, Vec<(String, NamedType)>>,
    functions: HashMap<String, Vec<UserFunction>>,
    columns_of: HashMap<u32, (String, String)>,
    pub(crate) pin: Option<Arc<Pin>>,
    /// Relations that are not as pinned, by schema and name, and how.
    pub(crate) broken: HashMap<(String, String), String>,
}

/// A row of a query's result, all values as text.
pub type Row = Vec<Option<String>>;

impl Schema {
    /// Builds the snapshot from the rows of [`SCHEMA_QUERIES`], in their order.
    pub fn from_rows(results: &[Vec<Row>]) -> Result<Schema, String> {
        let [settings, relations, columns, types, functions] = results else {
            return Err(format!(
                "expected the rows of {} queries",
                SCHEMA_QUERIES.len()
            ));
        };
        let mut schema = Schema::default();
        schema.read_settings(settings)?;
        let types = schema.read_types(types)?;
        schema.read_relations(relations, columns, &types)?;
        schema.read_functions(functions, &types)?;
        Ok(schema)
    }

    /// The effective search path.
    pub fn search_path(&self) -> &[String] {
        &self.search_path
    }

    /// Sets the effective search path (for tests and for callers that know it).
    pub fn set_search_path<S: Into<String>>(&mut self, path: impl IntoIterator<Item = S>) {
        self.search_path = path.into_iter().map(Into::into).collect();
    }

    /// Says which schema `pg_temp` is.
    pub fn set_temp(&mut self, name: Option<String>) {
        self.temp = name;
    }

    pub(crate) fn temp(&self) -> Option<&str> {
        self.temp.as_deref()
    }

    /// Adds or replaces a relation.
    pub fn add_relation(&mut self, mut relation: Relation) {
        if let Some(pin) = &self.pin {
            let key = (relation.schema.clone(), relation.name.clone());
            match pin.hold(&mut relation) {
                Some(wrong) => self.broken.insert(key, wrong),
                None => self.broken.remove(&key),
            };
        }
        let named = self.relations.entry(relation.name.clone()).or_default();
        named.retain(|other| other.schema != relation.schema);
        if relation.oid != 0 {
            self.columns_of.insert(
                relation.oid,
                (relation.schema.clone(), relation.name.clone()),
            );
        }
        named.push(relation);
    }

    /// Removes a relation.
    pub fn remove_relation(&mut self, schema: &str, name: &str) {
        if let Some(named) = self.relations.get_mut(name) {
            named.retain(|relation| relation.schema != schema);
        }
    }

    /// Adds a function.
    pub fn add_function(&mut self, function: UserFunction) {
        self.functions
            .entry(function.name.clone())
            .or_default()
            .push(function);
    }

    /// Adds a type that contains protected ones.
    pub fn add_opaque_type(&mut self, schema: &str, name: &str) {
        let ty = ColumnType::Opaque(0, name.to_owned());
        self.types
            .entry(name.to_owned())
            .or_default()
            .push((schema.to_owned(), NamedType { ty }));
    }

    /// All relations with protected columns.
    pub fn protected_relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations
            .values()
            .flatten()
            .filter(|relation| relation.protected())
    }

    /// The relation of this name; without a schema, the first on the search path.
    pub fn relation(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        let named = self.relations.get(name)?;
        match schema {
            Some("pg_temp") if self.temp.is_some() => {
                named.iter().find(|r| Some(&r.schema) == self.temp.as_ref())
            }
            Some(schema) => named.iter().find(|r| r.schema == schema),
            None => self
                .path()
                .find_map(|schema| named.iter().find(|r| r.schema == schema)),
        }
    }

    /// The relation with this OID.
    pub fn relation_by_oid(&self, oid: u32) -> Option<&Relation> {
        let (schema, name) = self.columns_of.get(&oid)?;
        self.relations
            .get(name)?
            .iter()
            .find(|r| r.schema == *schema)
    }

    /// Relations of this name differ in their protection from schema to schema.
    pub(crate) fn ambiguous(&self, name: &str) -> bool {
        let Some(named) = self.relations.get(name) else {
            return false;
        };
        let shape = |r: &Relation| -> Vec<(String, bool)> {
            r.columns
                .iter()
                .flatten()
                .map(|c| (c.name.clone(), c.ty.protected()))
                .collect()
        };
        named.len() > 1
            && named.iter().any(Relation::protected)
            && named.iter().map(shape).collect::<HashSet<_>>().len() > 1
    }

    /// The temporary schema first, then `pg_catalog`, unless the path has them.
    fn path(&self) -> impl Iterator<Item = &str> {
        let first = self
            .temp
            .as_deref()
            .filter(|t| !self.search_path.iter().any(|p| p == t));
        let second =
            Some("pg_catalog").filter(|_| !self.search_path.iter().any(|p| p == "pg_catalog"));
        first
            .into_iter()
            .chain(second)
            .chain(self.search_path.iter().map(String::as_str))
    }

    /// The schema in which `CREATE` without a schema puts things.
    pub(crate) fn creation_schema(&self, schema: &str, temporary: bool) -> String {
        if temporary || schema == "pg_temp" {
            return self.temp.clone().unwrap_or_else(|| "pg_temp".into());
        }
        if !schema.is_empty() {
            return schema.to_owned();
        }
        let usable = |name: &&String| *name != "pg_catalog" && !name.starts_with("pg_temp");
        self.search_path
            .iter()
            .find(usable)
            .cloned()
            .unwrap_or_else(|| "public".into())
    }

    /// The type of this name that is or contains a protected one.
    pub(crate) fn protected_type(&self, schema: Option<&str>, name: &str) -> Option<&ColumnType> {
        let named = self.types.get(name)?;
        let found = match schema {
            Some(schema) => named.iter().find(|(s, _)| s == schema),
            // Whichever comes first on the path: a protected one counts.
            None => named.iter().find(|(_, t)| t.ty.protected()),
        };
        found
            .map(|(_, named)| &named.ty)
            .filter(|ty| ty.protected())
    }

    /// The functions of this name, if one of them has something protected.
    pub(crate) fn functions(&self, schema: Option<&str>, name: &str) -> Vec<&UserFunction> {
        let Some(named) = self.functions.get(name) else {
            return Vec::new();
        };
        match schema {
            Some(schema) => named.iter().filter(|f| f.schema == schema).collect(),
            None => {
                let path: HashSet<&str> = self.path().collect();
                named
                    .iter()
                    .filter(|f| path.contains(f.schema.as_str()))
                    .collect()
            }
        }
    }

    /// Functions of this name are in several schemas, or in one that is not on
    /// the search path.
    pub(crate) fn function_elsewhere(&self, name: &str) -> bool {
        let Some(named) = self.functions.get(name) else {
            return false;
        };
        let schemas: HashSet<&str> = named.iter().map(|f| f.schema.as_str()).collect();
        schemas.len() > 1 || schemas.iter().any(|s| !self.path().any(|p| p == *s))
    }

    /// Something of the users' is protected, or pinned.
    pub(crate) fn protects_anything(&self) -> bool {
        let theirs = |schema: &str| !matches!(schema, "pg_catalog" | "confide");
        let mut types = self.types.values().flatten();
        let mut functions = self.functions.values().flatten();
        self.pin.is_some()
            || self.protected_relations().next().is_some()
            || types.any(|(schema, t)| t.ty.protected() && theirs(schema))
            || functions.any(|f| theirs(&f.schema))
    }

    /// Words that, in the body of a function, say that it deals with something
    /// protected.
    pub(crate) fn protected_names(&self) -> HashSet<&str> {
        let relations = self.protected_relations().map(|r| r.name.as_str());
        let types = self
            .types
            .iter()
            .filter(|(_, t)| t.iter().any(|(_, t)| t.ty.protected()));
        let functions = self.functions.keys().map(String::as_str);
        relations
            .chain(types.map(|(name, _)| name.as_str()))
            .chain(functions)
            .chain(self.pin.iter().flat_map(|pin| pin.names()))
            .collect()
    }

    /// Names of protected columns: a trigger function knows its table by `NEW` and
    /// `OLD` only.
    pub(crate) fn protected_columns(&self) -> HashSet<&str> {
        let columns = self
            .protected_relations()
            .flat_map(|r| r.columns.iter().flatten());
        columns
            .filter(|c| c.ty.protected())
            .map(|c| c.name.as_str())
            .chain(self.pin.iter().flat_map(|pin| pin.columns()))
            .collect()
    }

    fn read_settings(&mut self, rows: &[Row]) -> Result<(), String> {
        for row in rows {
            match (field(row, 0)?, field(row, 1)?) {
                ("path", name) => self.search_path.push(name.to_owned()),
                ("temp", name) => self.temp = Some(name.to_owned()),
                _ => return Err("unknown setting".into()),
            }
        }
        Ok(())
    }

    fn read_types(&mut self, rows: &[Row]) -> Result<BTreeMap<u32, (ColumnType, u32)>, String> {
        let mut types = BTreeMap::new();
        for row in rows {
            let oid = number(row, 0)?;
            let (schema, name, kind) = (field(row, 1)?, field(row, 2)?, field(row, 3)?);
            let code = |name: &str| TypeCode::ALL.iter().copied().find(|t| t.enc_name() == name);
            let ty = match kind {
                "p" => code(name).map(ColumnType::Enc),
                "a" => code(name.trim_start_matches('_')).map(ColumnType::EncArray),
                "o" => None,
                _ => Some(ColumnType::Plain(oid, name.to_owned())),
            };
            let ty = ty.unwrap_or_else(|| ColumnType::Opaque(oid, name.to_owned()));
            let named = self.types.entry(name.to_owned()).or_default();
            named.push((schema.to_owned(), NamedType { ty: ty.clone() }));
            types.insert(oid, (ty, number(row, 4)?));
        }
        Ok(types)
    }

    fn read_relations(
        &mut self,
        relations: &[Row],
        columns: &[Row],
        types: &BTreeMap<u32, (ColumnType, u32)>,
    ) -> Result<(), String> {
        let mut by_oid: HashMap<u32, Vec<Column>> = HashMap::new();
        for row in columns {
            by_oid.entry(number(row, 0)?).or_default().push(Column {
                name: field(row, 2)?.to_owned(),
                attnum: field(row, 1)?.parse().map_err(|_| "bad attnum")?,
                ty: lookup(types, number(row, 3)?),
                typmod: field(row, 4)?.parse().map_err(|_| "bad typmod")?,
                generated: !field(row, 5)?.is_empty(),
                identity: !field(row, 6)?.is_empty(),
            });
        }
        for row in relations {
            let oid = number(row, 0)?;
            let schema = field(row, 1)?.to_owned();
            let system = schema == "pg_catalog" || schema == "information_schema";
            let columns = by_oid.remove(&oid).unwrap_or_default();
            self.add_relation(Relation {
                oid,
                schema,
                name: field(row, 2)?.to_owned(),
                kind: field(row, 3)?.chars().next().unwrap_or('r'),
                columns: if system { None } else { Some(columns) },
            });
        }
        Ok(())
    }

    fn read_functions(
        &mut self,
        rows: &[Row],
        types: &BTreeMap<u32, (ColumnType, u32)>,
    ) -> Result<(), String> {
        for row in rows {
            let args = list(row, 3, ",")
                .iter()
                .map(|t| typed(types, t))
                .collect::<Result<Vec<_>, _>>()?;
            let ret_oid = number(row, 4)?;
            let all = list(row, 5, ",")
                .iter()
                .map(|t| typed(types, t))
                .collect::<Result<Vec<_>, _>>()?;
            let (modes, names) = (list(row, 6, ","), list(row, 7, "\u{1f}"));
            let name_at = |at: usize| names.get(at).cloned().unwrap_or_default();
            let out = all
                .iter()
                .enumerate()
                .filter(|(at, _)| {
                    modes
                        .get(*at)
                        .is_some_and(|m| matches!(m.as_str(), "o" | "b" | "t"))
                })
                .map(|(at, ty)| (name_at(at), ty.clone()))
                .collect();
            let inputs = (0..names.len()).filter(|at| {
                modes
                    .get(*at)
                    .is_none_or(|m| matches!(m.as_str(), "i" | "b" | "v"))
            });
            let variadic = match number(row, 8)? {
                0 => None,
                oid => Some(lookup(types, oid)),
            };
            self.add_function(UserFunction {
                schema: field(row, 1)?.to_owned(),
                name: field(row, 2)?.to_owned(),
                args,
                arg_names: inputs.map(name_at).collect(),
                variadic,
                defaults: field(row, 9)?.parse().map_err(|_| "bad pronargdefaults")?,
                ret: lookup(types, ret_oid),
                out,
                ret_relation: types
                    .get(&ret_oid)
                    .map(|(_, relation)| *relation)
                    .filter(|r| *r != 0),
            });
        }
        Ok(())
    }
}

fn field(row: &Row, at: usize) -> Result<&str, String> {
    row.get(at)
        .and_then(Option::as_deref)
        .ok_or_else(|| format!("field {at} is missing"))
}

fn number(row: &Row, at: usize) -> Result<u32, String> {
    field(row, at)?
        .parse()
        .map_err(|_| format!("field {at} is not an OID"))
}

fn list(row: &Row, at: usize, separator: &str) -> Vec<String> {
    match row.get(at).and_then(Option::as_deref) {
        None | Some("") => Vec::new(),
        Some(text) => text.split(separator).map(str::to_owned).collect(),
    }
}

fn lookup(types: &BTreeMap<u32, (ColumnType, u32)>, oid: u32) -> ColumnType {
    types.get(&oid).map_or_else(
        || ColumnType::Plain(oid, String::new()),
        |(ty, _)| ty.clone(),
    )
}

fn typed(types: &BTreeMap<u32, (ColumnType, u32)>, oid: &str) -> Result<ColumnType, String> {
    Ok(lookup(types, oid.parse().map_err(|_| "bad type OID")?))
}
