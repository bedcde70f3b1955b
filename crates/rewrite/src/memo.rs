//! Caches analyses. A text that differs from an earlier one only in literals of which nothing but
//! the value matters need not be parsed again.
//!
//! An analysis is stored under the shape of its text (`shape`). Some of the literals that the shape
//! leaves out are *free* (`Infer::free`): constants of expressions whose value the inference
//! ignores. For the others, the stored analysis is valid only if they have the same text.
//!
//! An analysis holds for its own schema. Where nothing is protected it holds for another one, too, in
//! which nothing is protected either and everything that the text names is the same: what is reached
//! through those objects, such as columns' types, is plain in both. Texts that mention the extension or
//! call routines with bodies are left out, since they could make something protected.
//!
//! Invariant: the result is that of [`analyze_with`](crate::analyze_with) for the same text, schema
//! and prepared statements; the cache never contains the value of a free literal.

use crate::analysis::Analysis;
use crate::analyze::analyses;
use crate::edit::Piece;
use crate::infer::key;
use crate::later::may_be_sql;
use crate::reach::mentions_us;
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::shape::Shape;
use crate::statement::{Prepared, Statement, StatementKind};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of cached analyses, in total and per shape.
const ALL_MAX: usize = 256;
const SHAPE_MAX: usize = 4;

/// Cached analyses. Clones share them; no lock is held while a text is analysed.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    known: HashMap<String, Vec<Known>>,
    count: usize,
}

/// The analysis of a text with some shape.
struct Known {
    /// A schema for which it holds.
    schema: Arc<Schema>,
    /// What the text names, if it may hold for another schema.
    names: Option<Vec<String>>,
    /// It was used since the cache was last full.
    used: bool,
    statement: Statement,
    /// Which of its edits seal a free literal.
    sealed: Vec<usize>,
    /// The marked literals of its text.
    literals: Vec<Marked>,
    /// Constants that must differ from every sealed value.
    open: Vec<Range<usize>>,
    /// What a text must not contain.
    absent: Option<&'static str>,
}

struct Marked {
    range: Range<usize>,
    /// Required text; `None`: any.
    fixed: Option<String>,
}

impl Memo {
    /// Like [`analyze_with`](crate::analyze_with).
    pub fn analyze(
        &self,
        sql: &str,
        schema: &Arc<Schema>,
        prepared: &Prepared,
    ) -> Result<Vec<Statement>, Refusal> {
        self.look(sql, schema, prepared).0
    }

    /// Like [`Self::analyze`]; also returns whether an earlier analysis was reused.
    pub fn look(
        &self,
        sql: &str,
        schema: &Arc<Schema>,
        prepared: &Prepared,
    ) -> (Result<Vec<Statement>, Refusal>, bool) {
        let shape = Shape::of(sql);
        if let Some(found) = shape
            .as_ref()
            .and_then(|s| self.store().find(sql, s, schema))
        {
            return (Ok(vec![found]), true);
        }
        let found = match analyses(sql, schema, prepared) {
            Ok(found) => found,
            Err(refusal) => return (Err(refusal), false),
        };
        if let (Some(shape), [only]) = (shape, found.as_slice())
            && let Some(known) = Known::of(sql, &shape, only, schema)
        {
            self.store().remember(shape.key, known);
        }
        (Ok(found.into_iter().map(|a| a.statement).collect()), false)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Memo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memo")
    }
}

impl Store {
    fn find(&mut self, sql: &str, shape: &Shape, schema: &Arc<Schema>) -> Option<Statement> {
        let known = self.known.get_mut(&shape.key)?.iter_mut();
        let mut valid = known.filter_map(|k| k.holds(schema).then_some(k));
        valid.find_map(|k| {
            let found = k.instance(sql, &shape.literals)?;
            k.used = true;
            Some(found)
        })
    }

    fn remember(&mut self, key: String, known: Known) {
        if self.count >= ALL_MAX {
            self.make_room();
        }
        let same = self.known.entry(key).or_default();
        if same.len() >= SHAPE_MAX {
            self.count -= same.len();
            same.clear();
        }
        same.push(known);
        self.count += 1;
    }

    /// Forgets what was not used since the last time, or everything if that was most of it.
    fn make_room(&mut self) {
        for same in self.known.values_mut() {
            same.retain_mut(|known| std::mem::take(&mut known.used));
        }
        self.known.retain(|_, same| !same.is_empty());
        self.count = self.known.values().map(Vec::len).sum();
        if self.count > ALL_MAX / 2 {
            self.known.clear();
            self.count = 0;
        }
    }
}

impl Known {
    /// Returns `None` for statements whose analysis may depend on more than text and schema, and
    /// for edits that contain more of a free literal than its value.
    fn of(sql: &str, shape: &Shape, analysis: &Analysis, schema: &Arc<Schema>) -> Option<Known> {
        let statement = &analysis.statement;
        if statement.unresolved || analysis.unique {
            return None;
        }
        if !matches!(
            statement.kind,
            StatementKind::Select | StatementKind::Dml | StatementKind::TransactionControl(_)
        ) {
            return None;
        }
        let free = |literal: &&Range<usize>| {
            let whole = analysis.free.iter().find(|f| f.end == literal.end);
            whole.is_some_and(|f| matches!(sql.get(f.start..literal.start), Some("" | "-" | "+")))
        };
        let mut statement = statement.clone();
        let mut sealed = Vec::new();
        for (at, edit) in statement.edits.iter_mut().enumerate() {
            let range = edit.range.clone();
            let over = |l: &&Range<usize>| l.start < range.end && range.start < l.end;
            if !shape.literals.iter().filter(over).any(|l| free(&l)) {
                continue;
            }
            match edit.pieces.as_mut_slice() {
                [Piece::Envelope(secret), rest @ ..]
                    if analysis.free.contains(&range)
                        && rest.iter().all(|p| matches!(p, Piece::Text(_)))
                        && secret.text() == value(sql, &range).as_bytes() =>
                {
                    secret.set_text(Vec::new());
                    sealed.push(at);
                }
                _ => return None,
            }
        }
        let marked = |literal: &Range<usize>| Marked {
            range: literal.clone(),
            fixed: (!free(&literal))
                .then(|| sql.get(literal.clone()).unwrap_or_default().to_owned()),
        };
        Some(Known {
            schema: schema.clone(),
            names: outlives(sql, shape, schema),
            used: false,
            statement,
            sealed,
            open: analysis.open.clone(),
            absent: analysis.absent,
            literals: shape.literals.iter().map(marked).collect(),
        })
    }

    /// Whether it holds for this schema.
    fn holds(&mut self, schema: &Arc<Schema>) -> bool {
        if Arc::ptr_eq(&self.schema, schema) {
            return true;
        }
        let holds = self
            .names
            .as_ref()
            .is_some_and(|names| !schema.protects_anything() && self.schema.agrees(schema, names));
        if holds {
            self.schema = schema.clone();
        }
        holds
    }

    /// The analysis of another text with the same shape, unless a literal differs that must not.
    fn instance(&self, sql: &str, literals: &[Range<usize>]) -> Option<Statement> {
        let differs = |(known, here): (&Marked, &Range<usize>)| {
            let text = sql.get(here.clone());
            known
                .fixed
                .as_deref()
                .is_some_and(|fixed| text != Some(fixed))
        };
        if self.literals.iter().zip(literals).any(differs)
            || self.absent.is_some_and(|text| sql.contains(text))
        {
            return None;
        }
        let moved = |range: &Range<usize>| {
            Some(self.moved(range.start, literals)?..self.moved(range.end, literals)?)
        };
        let mut statement = self.statement.clone();
        statement.range = moved(&statement.range)?;
        for edit in &mut statement.edits {
            edit.range = moved(&edit.range)?;
            for piece in &mut edit.pieces {
                if let Piece::Envelope(secret) = piece {
                    secret.position = self.moved(secret.position, literals)?;
                }
            }
        }
        for at in &self.sealed {
            let edit = statement.edits.get_mut(*at)?;
            if let Some(Piece::Envelope(secret)) = edit.pieces.first_mut() {
                secret.set_text(value(sql, &edit.range).as_bytes().to_vec());
            }
        }
        self.differ(sql, literals, &statement)?.then_some(statement)
    }

    /// Checks that no constant left as plain repeats a sealed value, and that none is a statement.
    fn differ(&self, sql: &str, literals: &[Range<usize>], statement: &Statement) -> Option<bool> {
        let pieces = statement.edits.iter().flat_map(|e| &e.pieces);
        let sealed: HashSet<String> = pieces
            .filter_map(|piece| match piece {
                Piece::Envelope(secret) => key(secret.text()),
                Piece::Text(_) => None,
            })
            .collect();
        for open in self.open.iter().filter(|_| !sealed.is_empty()) {
            let range = self.moved(open.start, literals)?..self.moved(open.end, literals)?;
            if key(value(sql, &range).as_bytes()).is_some_and(|k| sealed.contains(&k)) {
                return Some(false);
            }
        }
        let edited = |r: &Range<usize>| statement.edits.iter().any(|e| e.range == *r);
        let clear = literals.iter().filter(|r| !edited(r));
        Some(!clear.clone().any(|r| may_be_sql(value(sql, r))))
    }

    /// Converts a position in the cached text into one in a text with these literals.
    fn moved(&self, offset: usize, literals: &[Range<usize>]) -> Option<usize> {
        let before = self.literals.partition_point(|l| l.range.end <= offset);
        match before.checked_sub(1) {
            None => Some(offset),
            Some(last) => {
                let (was, is) = (&self.literals.get(last)?.range, literals.get(last)?);
                Some(is.end + (offset - was.end))
            }
        }
    }
}

/// What the text names, if its analysis may hold for other schemas. What a routine does depends on
/// the routines that it calls.
fn outlives(sql: &str, shape: &Shape, schema: &Schema) -> Option<Vec<String>> {
    if schema.protects_anything() || mentions_us(sql) {
        return None;
    }
    let names = shape.names()?;
    let followed = |name: &String| schema.all_bodies(name).next().is_some();
    (!names.iter().any(followed)).then_some(names)
}

/// The text of a marked literal, with its sign.
fn value<'a>(sql: &'a str, range: &Range<usize>) -> &'a str {
    sql.get(range.clone())
        .unwrap_or_default()
        .trim_matches('\'')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::{Column, ColumnType, Relation};
    use contract::TypeCode;

    fn schema() -> Arc<Schema> {
        let column = |name: &str, ty| Column {
            name: name.into(),
            attnum: 1,
            ty,
            typmod: -1,
            generated: false,
            identity: false,
            domain: None,
        };
        let mut schema = Schema::default();
        schema.set_search_path(["public"]);
        schema.add_relation(Relation {
            oid: 1,
            schema: "public".into(),
            name: "t".into(),
            kind: 'r',
            columns: Some(vec![
                column("id", ColumnType::Plain(23, "int4".into())),
                column("k", ColumnType::Enc(TypeCode::Int4)),
                column("c", ColumnType::Enc(TypeCode::Text)),
            ]),
        });
        Arc::new(schema)
    }

    /// How many of the texts are remembered apart from each other.
    fn kept(texts: &[&str]) -> usize {
        let (memo, schema, prepared) = (Memo::default(), schema(), Prepared::default());
        for sql in texts {
            let found = memo.analyze(sql, &schema, &prepared);
            assert_eq!(found, crate::analyze(sql, &schema), "{sql}");
        }
        memo.store().count
    }

    /// Texts that differ in free literals are one; what else differs keeps them apart, or
    /// they are not remembered at all.
    #[test]
    fn what_is_remembered() {
        for (texts, count) in [
            (
                [
                    "INSERT INTO t VALUES (-5, 7, 'a')",
                    "INSERT INTO t VALUES (-123456, 8, 'b-c')",
                ],
                1,
            ),
            (
                [
                    "INSERT INTO t VALUES (5, -7, 'a')",
                    "INSERT INTO t VALUES (2147483647, -8, '')",
                ],
                1,
            ),
            (
                [
                    "INSERT INTO t VALUES (5, 7, 9)",
                    "INSERT INTO t VALUES (5, 7, 10)",
                ],
                1,
            ),
            (
                [
                    "SELECT k FROM t WHERE id = 5 LIMIT 3",
                    "SELECT k FROM t WHERE id = 6 LIMIT 4",
                ],
                1,
            ),
            (["BEGIN", "BEGIN"], 1),
            (
                [
                    "INSERT INTO t (id, k, c) VALUES (-371926275, 13117, '22377640566-88143502341')",
                    "INSERT INTO t (id, k, c) VALUES (-2111753750, 82, '99216428758-51390698702-24500651175')",
                ],
                1,
            ),
            (
                [
                    "INSERT INTO t (id, k, c) VALUES (1649688298, 13117, '22377640566-88143502341')",
                    "INSERT INTO t (id, k, c) VALUES (815581190, 82, '99216428758-51390698702-24500651175')",
                ],
                1,
            ),
            (["SELECT '1'::numeric(9,2)", "SELECT '1'::numeric(8,2)"], 2),
            (
                [
                    "SELECT k FROM t WHERE c LIKE 'a' ESCAPE '#'",
                    "SELECT k FROM t WHERE c LIKE 'a' ESCAPE '!'",
                ],
                2,
            ),
            (["CREATE TABLE u (x varchar(5))", "DO 'BEGIN END'"], 0),
            (["PREPARE p AS SELECT 5", "EXECUTE p (5)"], 0),
            (["SELECT 5; SELECT 6", "SELECT k FROM nowhere"], 0),
        ] {
            assert_eq!(kept(&texts), count, "{texts:?}");
        }
    }

    /// Memory stays bounded, and no value of a free literal stays in it.
    #[test]
    fn bounds() {
        let (memo, schema, prepared) = (Memo::default(), schema(), Prepared::default());
        for n in 0..2 * ALL_MAX {
            let name = format!("a{n}");
            let sql = format!("INSERT INTO t VALUES (1, 2, 'SEKRIT') RETURNING id AS {name}");
            memo.analyze(&sql, &schema, &prepared).expect("insert");
            let sql = format!("SELECT '1'::numeric({}, 2)", 10 + n % 20);
            memo.analyze(&sql, &schema, &prepared).expect("select");
            let store = memo.store();
            assert!(store.count <= ALL_MAX);
            assert_eq!(
                store.count,
                store.known.values().map(Vec::len).sum::<usize>()
            );
        }
        let store = memo.store();
        let secrets = store
            .known
            .values()
            .flatten()
            .flat_map(|k| &k.statement.edits);
        for piece in secrets.flat_map(|e| &e.pieces) {
            if let Piece::Envelope(secret) = piece {
                assert!(secret.text().is_empty());
            }
        }
    }
}
