//! The table before the conversion: what prevents it, and what the new table must have, too.
//!
//! Nothing is changed here.

use super::session::Session;

/// The table, its columns and dependent objects.
pub struct Table {
    /// Its qualified name, quoted.
    pub name: String,
    /// Its schema.
    pub schema: String,
    /// Its name without the schema.
    pub bare: String,
    /// The columns that are copied.
    pub columns: String,
    /// Columns of the primary key.
    pub key: Vec<String>,
    /// Statements that create the new table, `{new}`, without indexes and privileges.
    pub making: Vec<String>,
    /// Number of rows, according to the statistics.
    pub estimate: String,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Foreign keys from and to it: table, name, definition.
    pub foreign: Vec<(String, String, String)>,
    /// Statements that grant the same privileges on the new table.
    pub rights: Vec<String>,
    /// Sequences owned by its columns, and these columns.
    pub sequences: Vec<(String, String)>,
    /// Identity columns and their sequences.
    pub identities: Vec<(String, String)>,
}

/// An index of the table.
pub struct Index {
    /// Its name.
    pub name: String,
    /// `p`, `u`, or empty.
    pub constraint: String,
    /// Whether it is unique.
    pub unique: bool,
    /// The definition from `USING` on.
    pub rest: String,
}

/// Direction of the conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To protected types.
    In,
    /// To plain types.
    Out,
}

/// Quotes a text as a literal.
pub fn literal(text: &str) -> String {
    crate::psql::literal(text)
}

/// Values of `{t}` and `{c}` in the queries: the table, and the names of the columns.
struct Questions {
    table: String,
    columns: String,
}

impl Questions {
    fn rows(&self, session: &mut Session, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let sql = sql
            .replace("{t}", &self.table)
            .replace("{c}", &self.columns);
        let lines = session.ask(&sql)?;
        let fields = |line: String| line.split('\t').map(str::to_owned).collect();
        Ok(lines.into_iter().map(fields).collect())
    }

    fn firsts(&self, session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
        let rows = self.rows(session, sql)?;
        Ok(rows
            .into_iter()
            .filter_map(|r| r.into_iter().next())
            .collect())
    }

    fn pairs(&self, session: &mut Session, sql: &str) -> Result<Vec<(String, String)>, String> {
        let rows = self.rows(session, sql)?.into_iter();
        let pair = |row: Vec<String>| {
            let mut fields = row.into_iter();
            Some((fields.next()?, fields.next()?))
        };
        Ok(rows.filter_map(pair).collect())
    }
}

/// What would be lost or wrong after the switch.
const OBSTACLES: &str = "
SELECT 'it is no ordinary table' FROM pg_class WHERE oid = {t} AND relkind <> 'r'
UNION ALL SELECT 'it has no primary key' WHERE NOT EXISTS (SELECT FROM pg_index WHERE indrelid = {t} AND indisprimary)
UNION ALL SELECT 'it is a partition, or inherits' FROM pg_inherits WHERE inhrelid = {t} OR inhparent = {t}
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = {t} AND NOT tgisinternal
UNION ALL SELECT 'policy ' || polname FROM pg_policy WHERE polrelid = {t}
UNION ALL SELECT 'row level security' FROM pg_class WHERE oid = {t} AND relrowsecurity
UNION ALL SELECT 'publication ' || p.pubname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = {t}
UNION ALL SELECT 'rights on column ' || attname FROM pg_attribute WHERE attrelid = {t} AND attacl IS NOT NULL
UNION ALL SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {t}
UNION ALL SELECT 'column ' || attname || ' is in the primary key' FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
  AND a.attnum = ANY (i.indkey) WHERE i.indrelid = {t} AND i.indisprimary AND a.attname IN ({c})
UNION ALL SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
  JOIN pg_attribute a ON a.attrelid = {t} AND a.attnum = d.refobjsubid
    AND (a.attname IN ({c}) OR a.atttypid::regtype::text ~ '^(pg_catalog[.])?(enc|rnd|soft)_')
  LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
  LEFT JOIN pg_index i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid
  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {t}
  AND (d.classid = 'pg_attrdef'::regclass OR k.contype IN ('c', 'f', 'x') OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
    OR d.classid = 'pg_statistic_ext'::regclass)
UNION ALL SELECT 'index ' || i.indexrelid::regclass || ' with an operator class for patterns' FROM pg_index i
  JOIN pg_opclass o ON o.oid = ANY (i.indclass) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
  WHERE i.indrelid = {t} AND o.opcname LIKE '%pattern%' AND a.attname IN ({c})";

const INDEXES: &str = "
SELECT c.relname, coalesce(k.contype::text, ''), i.indisunique,
  substr(pg_get_indexdef(c.oid), strpos(pg_get_indexdef(c.oid), ' USING '))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')
WHERE i.indrelid = {t} ORDER BY i.indisprimary DESC, c.relname";

const FOREIGN: &str = "
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND (conrelid = {t} OR confrelid = {t}) ORDER BY 1, 2";

const RIGHTS: &str = "
SELECT format('GRANT %s ON {new} TO %s%s', a.privilege_type,
  CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
  CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = {t} AND a.grantee <> c.relowner";

const SEQUENCES: &str = "
SELECT d.objid::regclass::text, quote_ident(a.attname) FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refobjid = {t} AND d.deptype = ";

impl Table {
    /// Returns the names of a table, also schema and bare name: enough to remove what was created
    /// for it.
    pub fn named(session: &mut Session, name: &str) -> Result<[String; 3], String> {
        session.ask("SET search_path = ''")?;
        let table = format!("{}::regclass", literal(name));
        let columns = String::new();
        let [name, schema, bare, _] = names(&Questions { table, columns }, session)?;
        Ok([name, schema, bare])
    }

    /// Examines a table; the error lists everything that prevents the conversion.
    pub fn look(
        session: &mut Session,
        name: &str,
        columns: &[String],
        way: Way,
    ) -> Result<Table, String> {
        session.ask("SET search_path = ''")?;
        let named = columns.iter().map(|c| literal(c)).collect::<Vec<_>>();
        let asked = Questions {
            table: format!("{}::regclass", literal(name)),
            columns: named.join(", "),
        };
        let [name, schema, bare, estimate] = names(&asked, session)?;
        let changes = changes(&asked, session, columns, way)?;
        let obstacles = asked.firsts(session, OBSTACLES)?;
        if !obstacles.is_empty() {
            return Err(format!(
                "{name} cannot be moved while it is in use:\n  {}\n\
                 Hint: Drop what can be made again, or use ALTER TABLE (docs/migrating.md).",
                obstacles.join("\n  ")
            ));
        }
        let making = match way {
            Way::In => made_alike(&name, &changes),
            Way::Out => made_anew(&asked, session, &name, &changes)?,
        };
        let all = "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = {t} AND attnum > 0 \
             AND NOT attisdropped AND attgenerated = '' ORDER BY attnum";
        let key = "SELECT quote_ident(a.attname) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY u (num, place) \
             JOIN pg_attribute a ON a.attnum = u.num WHERE a.attrelid = {t} AND i.indrelid = {t} \
             AND i.indisprimary ORDER BY u.place";
        let foreign = asked.rows(session, FOREIGN)?.into_iter().filter_map(|row| {
            let [table, name, text] = <[String; 3]>::try_from(row).ok()?;
            Some((table, name, text))
        });
        Ok(Table {
            columns: asked.firsts(session, all)?.join(", "),
            key: asked.firsts(session, key)?,
            indexes: indexes(&asked, session)?,
            foreign: foreign.collect(),
            rights: asked.firsts(session, RIGHTS)?,
            sequences: asked.pairs(session, &format!("{SEQUENCES}'a'"))?,
            identities: asked.pairs(session, &format!("{SEQUENCES}'i'"))?,
            name,
            schema,
            bare,
            making,
            estimate,
        })
    }
}

fn names(asked: &Questions, session: &mut Session) -> Result<[String; 4], String> {
    let known = "SELECT {t}::text, quote_ident(n.nspname), c.relname, c.reltuples::int8 \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {t}";
    let row = asked.rows(session, known)?.into_iter().next();
    <[String; 4]>::try_from(row.unwrap_or_default())
        .map_err(|_| "there is no such table".to_owned())
}

fn indexes(asked: &Questions, session: &mut Session) -> Result<Vec<Index>, String> {
    let rows = asked.rows(session, INDEXES)?.into_iter().filter_map(|row| {
        let [name, constraint, unique, rest] = <[String; 4]>::try_from(row).ok()?;
        let unique = unique == "t";
        Some(Index {
            name,
            constraint,
            unique,
            rest,
        })
    });
    Ok(rows.collect())
}

/// A column to be converted: its name, its present type, and its new type.
struct Change {
    column: String,
    now: String,
    to: String,
}

/// The conversions of the columns.
fn changes(
    asked: &Questions,
    session: &mut Session,
    columns: &[String],
    way: Way,
) -> Result<Vec<Change>, String> {
    let types = "SELECT a.attname, quote_ident(a.attname), t.typname, \
         coalesce(substring(format_type(a.atttypid, a.atttypmod) FROM '\\([0-9,]+\\)'), '') \
         FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
         WHERE a.attrelid = {t} AND a.attnum > 0 AND NOT a.attisdropped AND a.attname IN ({c})";
    let found = asked.rows(session, types)?;
    let one = |name: &String| {
        let row = found.iter().find(|row| row.first() == Some(name));
        let Some([_, quoted, now, modifier]) = row.map(Vec::as_slice) else {
            return Err(format!("there is no column {name}"));
        };
        let to = match (way, now.strip_prefix("enc_")) {
            (Way::In, None) => format!("enc_{now}{modifier}"),
            (Way::Out, Some(plain)) => format!("pg_catalog.{plain}{modifier}"),
            (Way::In, Some(_)) => return Err(format!("{name} is protected already")),
            (Way::Out, None) => return Err(format!("{name} is not protected")),
        };
        let (column, now) = (quoted.clone(), now.clone());
        Ok(Change { column, now, to })
    };
    columns.iter().map(one).collect()
}

/// Creates the table like the old one, then changes types.
fn made_alike(name: &str, changes: &[Change]) -> Vec<String> {
    let change = |c: &Change| format!("ALTER COLUMN {} TYPE {}", c.column, c.to);
    let changes: Vec<_> = changes.iter().map(change).collect();
    let alike = format!(
        "CREATE TABLE {{new}} (LIKE {name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS \
         INCLUDING IDENTITY INCLUDING GENERATED INCLUDING COMMENTS) USING confide"
    );
    vec![alike, format!("ALTER TABLE {{new}} {}", changes.join(", "))]
}

const DETAILS: &str = "
SELECT format('ALTER TABLE {new} ALTER COLUMN %I SET NOT NULL', attname) FROM pg_attribute
  WHERE attrelid = {t} AND attnum > 0 AND NOT attisdropped AND attnotnull
UNION ALL SELECT format('ALTER TABLE {new} ALTER COLUMN %I ADD GENERATED %s AS IDENTITY', attname,
  CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END)
  FROM pg_attribute WHERE attrelid = {t} AND attnum > 0 AND NOT attisdropped AND attidentity <> ''
UNION ALL SELECT format('ALTER TABLE {new} ALTER COLUMN %I SET DEFAULT %s', attname, pg_get_expr(adbin, adrelid))
  FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = {t}
UNION ALL SELECT format('ALTER TABLE {new} ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE conrelid = {t} AND contype = 'c'";

/// A protected type cannot be altered to another, even without rows.
fn made_anew(
    asked: &Questions,
    session: &mut Session,
    name: &str,
    changes: &[Change],
) -> Result<Vec<String>, String> {
    let generated = "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = {t} \
         AND attnum > 0 AND NOT attisdropped AND attgenerated <> ''";
    if let Some(column) = asked.firsts(session, generated)?.first() {
        return Err(format!("column {column} is generated"));
    }
    let all = "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = {t} AND attnum > 0 \
         AND NOT attisdropped ORDER BY attnum";
    let all = asked.firsts(session, all)?;
    let shown = all.into_iter().map(|column| {
        let change = changes.iter().find(|change| change.column == column);
        change.map_or(column.clone(), |c| format!("NULL::{} AS {column}", c.to))
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let create =
        format!("CREATE TABLE {{new}} USING confide AS SELECT {shown} FROM {name} WITH NO DATA");
    let mut making = vec![create];
    making.extend(asked.firsts(session, DETAILS)?);
    making.extend(changes.iter().filter_map(check));
    Ok(making)
}

/// Keeps envelopes out of a column that becomes plain and whose type accepts any text: a statement
/// sealed for the old table may reach the new one.
fn check(change: &Change) -> Option<String> {
    let column = &change.column;
    let condition = match change.now.as_str() {
        "enc_text" | "enc_varchar" | "enc_bpchar" => format!("{column} NOT LIKE 'cfd1.%'"),
        "enc_bytea" => format!("position('cfd1.'::pg_catalog.bytea in {column}) <> 1"),
        _ => return None,
    };
    let bare = column.trim_matches('"').replace("\"\"", "\"");
    let name = super::quoted(&super::suffixed(&format!("confide_envelope_{bare}"), ""));
    Some(format!(
        "ALTER TABLE {{new}} ADD CONSTRAINT {name} CHECK ({condition})"
    ))
}
