//! The meaning of names: the schema against which statements are classified.
//!
//! Relations of `pg_catalog` and `information_schema` come without columns, since they contain
//! nothing protected. Copies are cheap (`shards`). [`crate::Catalog`] builds a schema from the
//! server's reports.

use crate::pin::Pin;
use crate::refusal::Refusal;
use crate::relation::{ColumnType, Relation};
use crate::shards::{Mark, Shards};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A user-defined function.
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
    /// Element type of a variadic last argument.
    pub variadic: Option<ColumnType>,
    /// Number of trailing arguments with defaults.
    pub defaults: usize,
    /// Result type.
    pub ret: ColumnType,
    /// Output columns, for functions with `OUT` arguments or `RETURNS TABLE`.
    pub out: Vec<(String, ColumnType)>,
    /// OID of the row type's relation if the result is a composite type.
    pub ret_relation: Option<u32>,
    /// Its body, if that is a string.
    pub source: Option<RoutineBody>,
}

/// A routine's schema and name.
pub(crate) type Routine = (String, String);

/// The body of a routine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutineBody {
    /// Its language.
    pub language: String,
    /// Its text.
    pub text: String,
}

impl UserFunction {
    /// Whether an argument or the result is protected.
    pub fn protected(&self) -> bool {
        let out = self.out.iter().map(|(_, ty)| ty);
        let types = self.args.iter().chain(&self.variadic).chain(out);
        types.chain([&self.ret]).any(ColumnType::protected)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedType {
    schema: String,
    oid: u32,
    ty: ColumnType,
    domain: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedFunction {
    oid: u32,
    function: UserFunction,
    /// Its fingerprint, if a routine of its name is pinned.
    print: Option<String>,
}

impl Mark for Vec<Relation> {
    fn marked(&self) -> bool {
        self.iter().any(Relation::protected)
    }
}

impl Mark for Vec<NamedType> {
    fn marked(&self) -> bool {
        self.iter().any(|named| named.ty.protected())
    }
}

impl Mark for Vec<NamedFunction> {
    fn marked(&self) -> bool {
        self.iter().any(|named| named.function.protected())
    }
}

/// The snapshot.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    search_path: Vec<String>,
    temp: Option<String>,
    relations: Shards<String, Vec<Relation>>,
    types: Shards<String, Vec<NamedType>>,
    functions: Shards<String, Vec<NamedFunction>>,
    /// Schema and name of relations.
    by_oid: Shards<u32, (String, String)>,
    pub(crate) pin: Option<Arc<Pin>>,
    /// Relations that differ from the pin, by schema and name, with the difference.
    broken: HashMap<(String, String), String>,
    /// Whether any user object is protected, if that is known.
    guarded: Option<bool>,
}

/// A row of a query result, with all values as text.
pub type Row = Vec<Option<String>>;

impl Schema {
    /// The effective search path.
    pub fn search_path(&self) -> &[String] {
        &self.search_path
    }

    /// Sets the effective search path (for tests and callers that know it).
    pub fn set_search_path<S: Into<String>>(&mut self, path: impl IntoIterator<Item = S>) {
        self.search_path = path.into_iter().map(Into::into).collect();
    }

    /// Sets the schema that `pg_temp` refers to.
    pub fn set_temp(&mut self, name: Option<String>) {
        self.temp = name;
    }

    pub(crate) fn temp(&self) -> Option<&str> {
        self.temp.as_deref()
    }

    /// Adds or replaces a relation.
    pub fn add_relation(&mut self, mut relation: Relation) {
        self.guarded = None;
        if let Some(pin) = &self.pin {
            let key = (relation.schema.clone(), relation.name.clone());
            match pin.hold(&mut relation) {
                Some(wrong) => self.broken.insert(key, wrong),
                None => self.broken.remove(&key),
            };
        }
        let (schema, name) = (relation.schema.clone(), relation.name.clone());
        self.remove_relation(&schema, &name);
        if relation.oid != 0 {
            self.by_oid.insert(relation.oid, (schema, name.clone()));
        }
        self.relations.push(name, relation);
    }

    /// Removes a relation.
    pub fn remove_relation(&mut self, schema: &str, name: &str) {
        self.relations.change(name, |named| {
            named.retain(|relation| relation.schema != schema);
        });
    }

    /// Removes the relation with this OID.
    pub(crate) fn remove_relation_by_oid(&mut self, oid: u32) {
        if let Some((schema, name)) = self.by_oid.get(&oid).cloned() {
            self.relations.change(&name, |named| {
                named.retain(|r| r.schema != schema || r.oid != oid);
            });
            self.by_oid.remove(&oid);
        }
    }

    /// Adds a function.
    pub fn add_function(&mut self, function: UserFunction) {
        self.add_function_with_oid(0, function, None);
    }

    pub(crate) fn add_function_with_oid(
        &mut self,
        oid: u32,
        function: UserFunction,
        print: Option<String>,
    ) {
        self.guarded = None;
        let name = function.name.clone();
        let named = NamedFunction {
            oid,
            function,
            print,
        };
        self.functions.push(name, named);
    }

    pub(crate) fn remove_function(&mut self, name: &str, oid: u32) {
        self.functions
            .change(name, |named| named.retain(|f| f.oid != oid));
    }

    /// Adds a type that contains protected ones.
    pub fn add_opaque_type(&mut self, schema: &str, name: &str) {
        let ty = ColumnType::Opaque(0, name.to_owned());
        self.add_type(schema, name, 0, (ty, false));
    }

    /// Adds a type, and whether it is a domain over a protected one.
    pub(crate) fn add_type(
        &mut self,
        schema: &str,
        name: &str,
        oid: u32,
        (ty, domain): (ColumnType, bool),
    ) {
        self.guarded = None;
        let named = NamedType {
            schema: schema.to_owned(),
            oid,
            ty,
            domain,
        };
        self.types.push(name.to_owned(), named);
    }

    pub(crate) fn remove_type(&mut self, name: &str, oid: u32) {
        self.types
            .change(name, |named| named.retain(|t| t.oid != oid));
    }

    /// All relations with protected columns.
    pub fn protected_relations(&self) -> impl Iterator<Item = &Relation> {
        let named = self.relations.marked().flat_map(|(_, named)| named);
        named.filter(|relation| relation.protected())
    }

    /// The relation with this name; without a schema, the first one in the search path.
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
        let (schema, name) = self.by_oid.get(&oid)?;
        self.relations
            .get(name)?
            .iter()
            .find(|r| r.schema == *schema)
    }

    /// Whether relations with this name in different schemas differ in their protection.
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

    /// The temporary schema first, then `pg_catalog`, unless the path includes them.
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

    /// The schema in which `CREATE` without a schema creates objects.
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

    /// The type with this name, if it is or contains a protected one.
    pub(crate) fn protected_type(&self, schema: Option<&str>, name: &str) -> Option<&ColumnType> {
        let named = self.types.get(name)?;
        let found = match schema {
            Some(schema) => named.iter().find(|t| t.schema == schema),
            // Whichever comes first in the path: a protected one counts.
            None => named.iter().find(|t| t.ty.protected()),
        };
        found.map(|named| &named.ty).filter(|ty| ty.protected())
    }

    /// The type with this name, if it is no row type, and the same in all schemas: of a plain one only
    /// that it is plain.
    pub(crate) fn scalar_type(&self, name: &str) -> Option<ColumnType> {
        let seen = |named: &NamedType| match &named.ty {
            ColumnType::Plain(..) => ColumnType::Plain(0, name.to_owned()),
            ty => ty.clone(),
        };
        let named = self.types.get(name)?;
        let ty = seen(named.first()?);
        let scalar = matches!(ty, ColumnType::Plain(..) | ColumnType::Enc(_));
        let alike = named.iter().all(|t| seen(t) == ty);
        (scalar && alike && self.relations.get(name).is_none_or(Vec::is_empty)).then_some(ty)
    }

    /// The domain over a protected type with this name, in grants.
    pub(crate) fn domain(&self, schema: Option<&str>, name: &str) -> Option<grant::Column> {
        let mut named = self.types.get(name)?.iter();
        let found = named.find(|t| t.domain && schema.is_none_or(|schema| t.schema == schema));
        found.map(|t| crate::relation::domain(&t.schema, name))
    }

    /// The protected type that a call with this name casts to. A row type is none: PostgreSQL
    /// looks for a function only.
    pub(crate) fn called_type(&self, schema: Option<&str>, name: &str) -> Option<&ColumnType> {
        let named = self.types.get(name)?.iter();
        let mut named = named.filter(|t| schema.is_none_or(|schema| t.schema == schema));
        let row = |t: &&NamedType| self.relation(Some(&t.schema), name).is_some();
        let found = named.find(|t| t.ty.protected() && !row(t));
        found.map(|named| &named.ty)
    }

    /// All functions with this name, if one of them involves something protected.
    fn protected_functions(&self, name: &str) -> Option<&[NamedFunction]> {
        let named = self.functions.get(name)?;
        let any = named.iter().any(|f| f.function.protected());
        any.then_some(named)
    }

    /// The functions with this name, if one of them involves something protected.
    pub(crate) fn functions(&self, schema: Option<&str>, name: &str) -> Vec<&UserFunction> {
        let Some(named) = self.protected_functions(name) else {
            return Vec::new();
        };
        let named = named.iter().map(|f| &f.function);
        match schema {
            Some(schema) => named.filter(|f| f.schema == schema).collect(),
            None => {
                let path: HashSet<&str> = self.path().collect();
                named.filter(|f| path.contains(f.schema.as_str())).collect()
            }
        }
    }

    /// The routines with bodies that a call with this name and number of arguments may refer to.
    pub(crate) fn bodies<'s>(
        &'s self,
        schema: Option<&'s str>,
        name: &'s str,
        count: usize,
    ) -> impl Iterator<Item = &'s UserFunction> {
        let fits = move |f: &&UserFunction| {
            let most = f.args.len();
            (most.saturating_sub(f.defaults)..=most).contains(&count)
                || (f.variadic.is_some() && count + 1 >= most)
        };
        let placed = move |f: &&UserFunction| schema.is_none_or(|schema| f.schema == schema);
        self.all_bodies(name).filter(fits).filter(placed)
    }

    /// The routines with this name that have bodies, except the extension's own.
    pub(crate) fn all_bodies(&self, name: &str) -> impl Iterator<Item = &UserFunction> {
        let named = self.functions.get(name).into_iter().flatten();
        let theirs = |f: &&UserFunction| f.source.is_some() && f.schema != "confide";
        named.map(|named| &named.function).filter(theirs)
    }

    /// For each output argument of the routines with this name whether it may be protected in one of
    /// them: declared so, or of a polymorphic type.
    pub(crate) fn outputs(&self, name: &str) -> Vec<bool> {
        let may = |ty: &ColumnType| match ty {
            ColumnType::Plain(_, name) => name.starts_with("any"),
            _ => true,
        };
        let mut all: Vec<bool> = Vec::new();
        for named in self.functions.get(name).into_iter().flatten() {
            let out = &named.function.out;
            all.resize(all.len().max(out.len()), false);
            for (known, (_, ty)) in all.iter_mut().zip(out) {
                *known |= may(ty);
            }
        }
        all
    }

    /// Whether functions with this name exist in several schemas, or in one outside the search
    /// path.
    pub(crate) fn function_elsewhere(&self, name: &str) -> bool {
        let Some(named) = self.protected_functions(name) else {
            return false;
        };
        let schemas: HashSet<&str> = named.iter().map(|f| f.function.schema.as_str()).collect();
        schemas.len() > 1 || schemas.iter().any(|s| !self.path().any(|p| p == *s))
    }

    /// Says whether any user object is protected, which holds until something is added.
    pub(crate) fn set_guarded(&mut self, guarded: bool) {
        self.guarded = Some(guarded);
    }

    /// Whether any user object is protected or pinned.
    pub(crate) fn protects_anything(&self) -> bool {
        self.pin.is_some() || self.guarded.unwrap_or_else(|| self.finds_protected())
    }

    fn finds_protected(&self) -> bool {
        let mut types = self.types.marked().flat_map(|(_, named)| named);
        let mut functions = self.functions.marked().flat_map(|(_, named)| named);
        self.protected_relations().next().is_some()
            || types.any(|t| t.ty.protected() && is_theirs(&t.schema))
            || functions.any(|f| f.function.protected() && is_theirs(&f.function.schema))
    }

    /// Whether the search path and all objects with these names, in any schema, are the same in another
    /// snapshot.
    pub(crate) fn agrees(&self, other: &Schema, names: &[String]) -> bool {
        let same = |name: &str| {
            self.relations.agrees(&other.relations, name)
                && self.types.agrees(&other.types, name)
                && self.functions.agrees(&other.functions, name)
        };
        self.search_path == other.search_path
            && self.temp == other.temp
            && names.iter().all(|name| same(name))
    }

    /// Whether a relation, type or function with this name, in any schema, is protected or pinned.
    pub(crate) fn is_protected_name(&self, name: &str) -> bool {
        self.relations.get(name).is_some_and(Mark::marked)
            || self.types.get(name).is_some_and(Mark::marked)
            || self.functions.get(name).is_some_and(Mark::marked)
            || self
                .pin
                .as_ref()
                .is_some_and(|pin| pin.tables(name).is_some())
    }

    /// All names for which [`Self::is_protected_name`] is true.
    pub(crate) fn protected_names(&self) -> impl Iterator<Item = &str> {
        let relations = self.relations.marked().map(|(name, _)| name.as_str());
        let types = self.types.marked().map(|(name, _)| name.as_str());
        let functions = self.functions.marked().map(|(name, _)| name.as_str());
        let pinned = self.pin.iter().flat_map(|pin| pin.names());
        relations.chain(types).chain(functions).chain(pinned)
    }

    /// Sets the pin of this database.
    pub fn set_pin(&mut self, pin: Option<Arc<Pin>>) {
        let names: Vec<String> = pin.iter().flat_map(|p| p.names()).map(Into::into).collect();
        self.pin = pin;
        for name in names {
            for relation in self.relations.get(&name).cloned().unwrap_or_default() {
                self.add_relation(relation);
            }
        }
    }

    /// Why a statement that names this relation is refused because of the pin.
    pub(crate) fn unpinned(&self, schema: Option<&str>, name: &str) -> Option<Refusal> {
        let tables = self.pin.as_ref()?.tables(name)?;
        let found = self.relation(schema, name);
        let place = match (found, schema) {
            (Some(found), _) => found.schema.as_str(),
            (None, Some(schema)) => schema,
            // It does not exist, and is refused for that reason.
            (None, None) => return None,
        };
        let pinned = tables.iter().find(|t| t.schema == place);
        let differ = tables.windows(2).any(|w| !w[0].same_columns(&w[1]));
        let why = match (pinned, schema) {
            (None, Some(_)) => return None,
            (None, None) => format!("It is {place}.{name} that it stands for now."),
            (Some(_), None) if differ => "Tables of this name are pinned in several schemas, with different columns. Write the schema before the name.".to_owned(),
            _ if found.is_none() => "The database has no such table.".to_owned(),
            _ => self.broken.get(&(place.to_owned(), name.to_owned()))?.clone(),
        };
        let table = match schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_owned(),
        };
        Some(not_as_pinned(&format!("table {table}"), why))
    }

    /// Why a statement that calls a routine of this name is refused because of the pin: those that it may
    /// stand for are not the pinned ones.
    pub(crate) fn unpinned_routine(&self, schema: Option<&str>, name: &str) -> Option<Refusal> {
        let pinned = self.pin.as_ref()?.routines(name)?;
        let path: HashSet<&str> = self.path().collect();
        let meant = |place: &str| schema.map_or_else(|| path.contains(place), |s| s == place);
        let pinned: Vec<_> = pinned.iter().filter(|p| meant(&p.schema)).collect();
        if pinned.is_empty() {
            return None;
        }
        let found = self.functions.get(name).into_iter().flatten();
        let found: Vec<_> = found.filter(|f| meant(&f.function.schema)).collect();
        let same = |f: &&&NamedFunction| {
            let print = f.print.as_deref();
            let mut here = pinned.iter().filter(|p| p.schema == f.function.schema);
            here.any(|p| Some(p.print.as_str()) == print)
        };
        let why = match found.iter().find(|f| !same(f)) {
            Some(other) => {
                let place = &other.function.schema;
                format!("The database has another {place}.{name} than the pin.")
            }
            None if found.len() < pinned.len() => {
                "A pinned one of this name is missing.".to_owned()
            }
            None => return None,
        };
        Some(not_as_pinned(&format!("routine {name}"), why))
    }

    /// Whether the pin has routines.
    pub(crate) fn pins_routines(&self) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.has_routines())
    }

    /// Names of protected columns: a trigger function refers to its table by `NEW` and `OLD` only.
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
}

/// Whether objects in a schema of this name are not the extension's own.
pub(crate) fn is_theirs(schema: &str) -> bool {
    !matches!(schema, "pg_catalog" | "confide")
}

/// Something is not what `confide pin` found.
fn not_as_pinned(what: &str, why: String) -> Refusal {
    let refusal = Refusal::new("55000", format!("{what} is not as it is pinned"))
        .detail(why)
        .hint("If the schema was changed on purpose, write the pin anew with \"confide pin\" and restart the proxy.");
    refusal.refresh().for_good()
}
