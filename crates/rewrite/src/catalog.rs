//! The schema of a database, built from the server's reports: first complete, then changes.
//!
//! Keeps the records by OID and derives a [`Schema`] (without a search path) from them. A change
//! rebuilds what it concerns, and everything only if it affects other records: a schema is renamed,
//! or a type starts to contain something protected.
//!
//! Invariant: the schema equals the one that would be built from all records; a type with an
//! unreported component counts as protected.
use crate::memo::Memo;
use crate::pin::{Pin, fingerprint};
use crate::reach::mentions_us;
use crate::relation::{Column, ColumnType, Relation};
use crate::report::{FunctionRecord, Record, RelationRecord, TypeRecord};
use crate::schema::{RoutineBody, Schema, UserFunction, is_theirs};
use crate::shards::Shards;
use crate::soft_type::SOFT_RESULTS;
use contract::TypeCode;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// OID of `pg_catalog`.
const PG_CATALOG: u32 = 11;
/// First OID of user objects.
const FIRST_NORMAL: u32 = 16384;
/// Number of search paths for which schemas are kept.
const PATHS_MAX: usize = 16;
/// Maximum nesting depth of types.
const DEPTH: usize = 32;

/// Catalog and OID of an object.
type Key = (u32, u32);
const NAMESPACES: u32 = 2615;
const TYPES: u32 = 1247;
const RELATIONS: u32 = 1259;
const FUNCTIONS: u32 = 1255;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    records: Shards<Key, Arc<Record>>,
    schema: Schema,
    /// Protected types and their arrays.
    protected: Arc<Vec<(u32, ColumnType)>>,
    places: Arc<()>,
    /// What is protected besides the extension's own.
    guarded: Arc<HashSet<Key>>,
    /// Ledger tables, and routines of users whose bodies mention the extension.
    needing: Arc<HashSet<Key>>,
    meanings: Meanings,
    memo: Memo,
}

/// The schema with a search path, and the analyses made with it.
type Meaning = (Arc<Schema>, Memo);

/// What sessions with the same search path share; empty in a copy, which is made to be changed.
#[derive(Default)]
struct Meanings(Mutex<Vec<Meaning>>);

impl Clone for Meanings {
    fn clone(&self) -> Meanings {
        Meanings::default()
    }
}

impl std::fmt::Debug for Meanings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanings")
    }
}

impl Record {
    fn key(&self) -> Key {
        match self {
            Record::Namespace { oid, .. } => (NAMESPACES, *oid),
            Record::Type(t) => (TYPES, t.oid),
            Record::Relation(r) => (RELATIONS, r.oid),
            Record::Function(f) => (FUNCTIONS, f.oid),
            Record::Gone { class, oid } => (*class, *oid),
        }
    }
}

impl Catalog {
    /// The catalog of these records, with the database's pin.
    pub fn new(records: &[Record], pin: Option<Arc<Pin>>) -> Catalog {
        let mut catalog = Catalog::default();
        catalog.schema.set_pin(pin);
        catalog.apply(records);
        catalog
    }

    /// The schema, with an empty search path.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The schema with this search path, and the analyses made with it. Sessions share both.
    pub fn meaning(&self, path: &[String]) -> (Arc<Schema>, Memo) {
        let known = &self.meanings.0;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known
            .iter()
            .find(|(schema, _)| schema.search_path() == path)
        {
            return found.clone();
        }
        let mut schema = self.schema.clone();
        schema.set_search_path(path.iter().cloned());
        let made = (Arc::new(schema), self.memo());
        if known.len() >= PATHS_MAX {
            known.remove(0);
        }
        known.push(made.clone());
        made
    }

    /// The cache for analyses made with a schema of this catalog. While nothing is protected, that is one
    /// for all of its schemas and versions: most analyses then hold for all of them.
    pub fn memo(&self) -> Memo {
        match self.protects_anything() {
            true => Memo::default(),
            false => self.memo.clone(),
        }
    }

    /// OIDs of protected types and of their arrays.
    pub fn protected(&self) -> &Arc<Vec<(u32, ColumnType)>> {
        &self.protected
    }

    /// Whether anything but the extension's own is protected or pinned.
    pub fn protects_anything(&self) -> bool {
        self.schema.protects_anything()
    }

    /// Whether statements may need the keeper that do not mention the extension: something is protected,
    /// there is a ledger table, whose rows have an author, or a routine's body mentions the extension.
    pub fn needs_keeper(&self) -> bool {
        self.protects_anything() || !self.needing.is_empty()
    }

    /// Names of schemas, sorted.
    pub fn namespaces(&self) -> Vec<&str> {
        let records = self.records.values();
        let mut names: Vec<&str> = records
            .filter_map(|record| match record.as_ref() {
                Record::Namespace { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names
    }

    /// A different value whenever a schema is created, dropped or renamed.
    pub fn places(&self) -> &Arc<()> {
        &self.places
    }

    /// States that another catalog describes the same database.
    pub fn keep_places(&mut self, other: &Catalog) {
        if self.namespaces() == other.namespaces() {
            self.places = other.places.clone();
        }
    }

    /// Applies changes.
    pub fn apply(&mut self, records: &[Record]) {
        self.meanings = Meanings::default();
        self.take(records);
        self.schema.set_guarded(!self.guarded.is_empty());
    }

    fn take(&mut self, records: &[Record]) {
        let before = self.of_others(records);
        let keys: HashSet<Key> = records.iter().map(Record::key).collect();
        if keys.iter().any(|(class, _)| *class == NAMESPACES) {
            self.places = Arc::default();
        }
        let mut renamed = false;
        for record in records {
            let key = record.key();
            if let Some(old) = self.records.get(&key).cloned() {
                renamed |= renames(&old, record);
                self.withdraw(&old);
            }
            match record {
                Record::Gone { .. } => self.records.remove(&key),
                _ => self.records.insert(key, Arc::new(record.clone())),
            }
        }
        let differs = |(ty, held): &(u32, bool)| {
            self.type_record(*ty).is_some() && self.contains(*ty) != *held
        };
        if renamed || before.iter().any(differs) {
            return self.compile_all();
        }
        for key in &keys {
            if let Some(record) = self.records.get(key).cloned() {
                self.compile(&record);
            }
        }
        if self.changes_protected(&keys) {
            self.find_protected();
        }
    }

    /// Whether a protected type was created or dropped.
    fn changes_protected(&self, keys: &HashSet<Key>) -> bool {
        let known = |oid: u32| self.protected.iter().any(|(known, _)| *known == oid);
        let mut types = keys.iter().filter(|(class, _)| *class == TYPES);
        types.any(|(_, oid)| known(*oid) || self.is_protected(*oid))
    }

    /// The types among these records that others may be built from, and whether they contain
    /// something protected.
    fn of_others(&self, records: &[Record]) -> Vec<(u32, bool)> {
        let ty = |record: &Record| {
            let known = self.records.get(&record.key())?;
            match known.as_ref() {
                Record::Type(t) => Some(t.oid),
                Record::Relation(r) => Some(r.row_type).filter(|oid| *oid != 0),
                _ => None,
            }
        };
        let types = records.iter().filter_map(ty);
        types.map(|oid| (oid, self.contains(oid))).collect()
    }

    fn withdraw(&mut self, record: &Record) {
        self.guard(record.key(), false);
        note(&mut self.needing, record.key(), false);
        match record {
            Record::Type(t) => self.schema.remove_type(&t.name, t.oid),
            Record::Relation(r) => self.schema.remove_relation_by_oid(r.oid),
            Record::Function(f) => self.schema.remove_function(&f.name, f.oid),
            Record::Namespace { .. } | Record::Gone { .. } => {}
        }
    }

    fn compile_all(&mut self) {
        let pin = self.schema.pin.clone();
        self.schema = Schema::default();
        self.schema.set_pin(pin);
        self.guarded = Arc::default();
        self.needing = Arc::default();
        let all: Vec<_> = self.records.values().cloned().collect();
        all.iter().for_each(|record| self.compile(record));
        self.find_protected();
    }

    fn find_protected(&mut self) {
        let ty = |record: &Arc<Record>| match record.as_ref() {
            Record::Type(t) => match self.resolved(t) {
                ty @ (ColumnType::Enc(_)
                | ColumnType::Soft(..)
                | ColumnType::EncArray(_)
                | ColumnType::SoftArray(_)) => {
                    Some((t.domain || is_second_name(&t.name), (t.oid, ty)))
                }
                _ => None,
            },
            _ => None,
        };
        // Counterparts of plain types first.
        let mut found: Vec<_> = self.records.values().filter_map(ty).collect();
        found.sort_by_key(|(second, (oid, _))| (*second, *oid));
        self.protected = Arc::new(found.into_iter().map(|(_, found)| found).collect());
    }

    fn compile(&mut self, record: &Record) {
        match record {
            Record::Type(t) => {
                let (schema, ty) = (self.namespace(t.namespace), self.resolved(t));
                let domain = t.domain && matches!(ty, ColumnType::Enc(_));
                self.guard(record.key(), ty.protected() && is_theirs(&schema));
                let ty = (ty, domain);
                self.schema.add_type(&schema, &t.name, t.oid, ty);
            }
            Record::Relation(r) => {
                let relation = self.relation(r);
                self.guard(record.key(), relation.protected());
                note(&mut self.needing, record.key(), relation.is_ledger());
                self.schema.add_relation(relation);
            }
            Record::Function(f) => {
                let function = self.function(f);
                let theirs = is_theirs(&function.schema);
                self.guard(record.key(), function.protected() && theirs);
                let body = function.source.as_ref();
                let mentions = body.is_some_and(|body| mentions_us(&body.text));
                note(&mut self.needing, record.key(), mentions && theirs);
                let pinned = self.schema.pin.as_ref();
                let pinned = pinned.is_some_and(|pin| pin.routines(&f.name).is_some());
                let print = pinned.then(|| fingerprint(f, |oid| self.type_name(oid)));
                self.schema.add_function_with_oid(f.oid, function, print);
            }
            Record::Namespace { .. } | Record::Gone { .. } => {}
        }
    }

    /// Notes whether an object is protected and not the extension's own.
    fn guard(&mut self, key: Key, guarded: bool) {
        note(&mut self.guarded, key, guarded);
    }

    fn namespace(&self, oid: u32) -> String {
        match self.records.get(&(NAMESPACES, oid)).map(Arc::as_ref) {
            Some(Record::Namespace { name, .. }) => name.clone(),
            _ => String::new(),
        }
    }

    fn relation(&self, r: &RelationRecord) -> Relation {
        let schema = self.namespace(r.namespace);
        let system = schema == "pg_catalog" || schema == "information_schema";
        let columns = r.columns.iter().map(|c| Column {
            name: c.name.clone(),
            attnum: c.number,
            ty: self.modified(c.ty, c.modifier),
            typmod: c.modifier,
            generated: c.generated,
            identity: c.identity,
            domain: self.domain(c.ty),
        });
        Relation {
            oid: r.oid,
            name: r.name.clone(),
            kind: r.kind,
            columns: (!system).then(|| columns.collect()),
            schema,
        }
    }

    fn function(&self, f: &FunctionRecord) -> UserFunction {
        let name_at = |at: usize| f.names.get(at).cloned().unwrap_or_default();
        let mode = |at: usize| f.modes.as_bytes().get(at).copied();
        let all = f.all.iter().enumerate();
        let out = all.filter(|(at, _)| matches!(mode(*at), Some(b'o' | b'b' | b't')));
        let inputs =
            (0..f.names.len()).filter(|at| matches!(mode(*at), None | Some(b'i' | b'b' | b'v')));
        UserFunction {
            schema: self.namespace(f.namespace),
            name: f.name.clone(),
            args: f.inputs.iter().map(|oid| self.ty(*oid)).collect(),
            arg_names: inputs.map(name_at).collect(),
            variadic: Some(f.variadic)
                .filter(|oid| *oid != 0)
                .map(|oid| self.ty(oid)),
            defaults: f.defaults,
            ret: self.ty(f.result),
            out: out.map(|(at, oid)| (name_at(at), self.ty(*oid))).collect(),
            ret_relation: self
                .type_record(f.result)
                .map(|t| t.relation)
                .filter(|oid| *oid != 0),
            source: (!f.language.is_empty() && !f.body.is_empty()).then(|| RoutineBody {
                language: f.language.clone(),
                text: f.body.clone(),
            }),
        }
    }

    fn type_record(&self, oid: u32) -> Option<&TypeRecord> {
        match self.records.get(&(TYPES, oid))?.as_ref() {
            Record::Type(record) => Some(record),
            _ => None,
        }
    }

    /// What a fingerprint calls a type.
    fn type_name(&self, oid: u32) -> String {
        match self.type_record(oid).filter(|_| oid >= FIRST_NORMAL) {
            Some(t) => format!("{}.{}", self.namespace(t.namespace), t.name),
            None => oid.to_string(),
        }
    }

    fn ty(&self, oid: u32) -> ColumnType {
        match self.type_record(oid) {
            Some(record) => self.resolved(record),
            None if oid < FIRST_NORMAL => ColumnType::Plain(oid, String::new()),
            None => ColumnType::Opaque(oid, String::new()),
        }
    }

    /// The domain over a protected type that this is.
    fn domain(&self, oid: u32) -> Option<grant::Column> {
        let t = self.type_record(oid).filter(|t| t.domain)?;
        matches!(self.resolved(t), ColumnType::Enc(_))
            .then(|| crate::relation::domain(&self.namespace(t.namespace), &t.name))
    }

    /// The type of a column; for the family `soft_`, with the contents of its modifier.
    fn modified(&self, oid: u32, modifier: i32) -> ColumnType {
        match self.ty(oid) {
            ColumnType::Soft(code, _) => ColumnType::Soft(code, modifier),
            other => other,
        }
    }

    fn resolved(&self, t: &TypeRecord) -> ColumnType {
        if let Some(code) = soft_code(t, &t.name) {
            return ColumnType::Soft(code, -1);
        }
        if let Some(element) = t.name.strip_prefix('_')
            && let Some(code) = soft_code(t, element)
        {
            return ColumnType::SoftArray(code);
        }
        if let Some(code) = protected_code(t, &FAMILIES) {
            return ColumnType::Enc(code);
        }
        match protected_code(t, &ARRAYS) {
            Some(code) => ColumnType::EncArray(code),
            None if t.domain => self.based(t, DEPTH),
            None if self.contains(t.oid) => ColumnType::Opaque(t.oid, t.name.clone()),
            None => ColumnType::Plain(t.oid, t.name.clone()),
        }
    }

    /// A domain has its base type's values. Only of the family `enc_` it is stored.
    fn based(&self, t: &TypeRecord, depth: usize) -> ColumnType {
        match (self.type_record(t.part), depth.checked_sub(1)) {
            (Some(base), Some(depth)) if base.domain => self.based(base, depth),
            (Some(base), _) => match protected_code(base, &FAMILIES[..1]) {
                Some(code) => ColumnType::Enc(code),
                None if self.contains(t.oid) => ColumnType::Opaque(t.oid, t.name.clone()),
                None => ColumnType::Plain(t.oid, t.name.clone()),
            },
            _ if self.contains(t.oid) => ColumnType::Opaque(t.oid, t.name.clone()),
            _ => ColumnType::Plain(t.oid, t.name.clone()),
        }
    }

    fn is_protected(&self, oid: u32) -> bool {
        matches!(
            self.ty(oid),
            ColumnType::Enc(_)
                | ColumnType::Soft(..)
                | ColumnType::EncArray(_)
                | ColumnType::SoftArray(_)
        )
    }

    /// Whether values of the type are, or contain, protected ones.
    fn contains(&self, oid: u32) -> bool {
        self.contains_below(oid, DEPTH)
    }

    fn contains_below(&self, oid: u32, depth: usize) -> bool {
        let (Some(t), Some(depth)) = (self.type_record(oid), depth.checked_sub(1)) else {
            return oid >= FIRST_NORMAL;
        };
        if t.namespace == PG_CATALOG
            && (FAMILIES.iter().any(|f| t.name.starts_with(f)) || t.name.starts_with(SOFT))
        {
            return true;
        }
        if t.part != 0 {
            return self.contains_below(t.part, depth);
        }
        match self.records.get(&(RELATIONS, t.relation)).map(Arc::as_ref) {
            Some(Record::Relation(r)) => {
                let mut columns = r.columns.iter();
                columns.any(|c| self.contains_below(c.ty, depth))
            }
            _ => t.relation >= FIRST_NORMAL,
        }
    }
}

/// Suffixes of alias types under which functions accept protected numbers.
const SECOND_NAMES: [&str; 2] = ["_operand", "_count"];

/// Prefixes of protected types and of arrays of them.
/// The longer of two that begin alike comes first.
const FAMILIES: [&str; 3] = ["enc_", "rnd_det_", "rnd_"];
const ARRAYS: [&str; 3] = ["_enc_", "_rnd_det_", "_rnd_"];
/// Prefix of types of encodings.
const SOFT: &str = "soft_";

/// The type of the values that a type of encodings with this name, or of results, represents.
fn soft_code(t: &TypeRecord, name: &str) -> Option<TypeCode> {
    let result = SOFT_RESULTS.iter().find_map(|r| name.strip_prefix(r));
    let name = result
        .or_else(|| name.strip_prefix(SOFT))
        .filter(|_| t.namespace == PG_CATALOG)?;
    TypeCode::ALL
        .iter()
        .copied()
        .find(|code| code.plain_name() == name)
}

/// Whether it is an alias of a type: an operand, or a family other than `enc_`.
fn is_second_name(name: &str) -> bool {
    name.trim_start_matches('_').starts_with("rnd_")
        || name.starts_with(SOFT)
        || SECOND_NAMES.iter().any(|s| name.ends_with(s))
}

/// The type that a system type represents, judged by its name.
fn protected_code(t: &TypeRecord, prefixes: &[&str]) -> Option<TypeCode> {
    let plain = prefixes
        .iter()
        .find_map(|prefix| t.name.strip_prefix(prefix))
        .filter(|_| t.namespace == PG_CATALOG)?;
    let end = SECOND_NAMES.iter().find_map(|s| plain.strip_suffix(s));
    let plain = end.unwrap_or(plain);
    let code = |c: &TypeCode| c.enc_name().strip_prefix("enc_") == Some(plain);
    TypeCode::ALL.iter().copied().find(code)
}

/// Whether a name changes by which other objects are known.
fn renames(old: &Record, new: &Record) -> bool {
    match (old, new) {
        (Record::Namespace { name: was, .. }, Record::Namespace { name: is, .. }) => was != is,
        // Names of row types and array types do not matter.
        (Record::Type(was), Record::Type(is)) => {
            was.name != is.name && is.relation == 0 && !is.name.starts_with('_')
        }
        _ => false,
    }
}

/// Adds to a set, or takes out of it.
fn note(all: &mut Arc<HashSet<Key>>, key: Key, is_in: bool) {
    if all.contains(&key) == is_in {
        return;
    }
    let all = Arc::make_mut(all);
    match is_in {
        true => all.insert(key),
        false => all.remove(&key),
    };
}
