//! `confide rotate-column` for the family `soft_`: gives a column a new key (docs/families.md). The
//! server has no key, so the proxy encodes the values anew, in one transaction under a lock.
//!
//! Not here: columns of the family `rnd_`, which are changed while they are in use (`rotate`).
//!
//! Invariant: afterwards no row has a cell under the former key, or nothing has changed.

use crate::protect::session::Session;
use crate::psql::literal;

/// A column of the family, its type, and the number of its key.
struct Column {
    /// Table and column, quoted.
    table: String,
    name: String,
    kind: String,
    key: String,
}

const FIND: &str = "
SELECT c.oid::regclass, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), a.atttypmod & 524287
FROM (SELECT parse_ident({column}) AS p) q
JOIN pg_class c ON c.oid = (SELECT string_agg(quote_ident(x), '.') FROM unnest(p[:cardinality(p) - 1]) x)::regclass
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = p[cardinality(p)] AND a.attnum > 0 AND NOT a.attisdropped
WHERE a.atttypid::regtype::text ~ '^(pg_catalog[.])?soft_'";

/// Others with the same key and type, which could not be compared with the column any more.
const OTHERS: &str = "
SELECT b.attrelid::regclass || '.' || quote_ident(b.attname)
FROM pg_attribute a JOIN pg_attribute b ON b.atttypid = a.atttypid AND b.atttypmod & 524287 = a.atttypmod & 524287
JOIN pg_class c ON c.oid = b.attrelid AND c.relkind IN ('r', 'p')
WHERE a.attrelid = {table}::regclass AND a.attname = (parse_ident({name}))[1]
  AND (b.attrelid, b.attnum) <> (a.attrelid, a.attnum) AND b.attnum > 0 AND NOT b.attisdropped";

/// Gives the column a new key, if it is one of the family; otherwise nothing.
pub fn run(session: &mut Session, name: &str) -> Result<Option<String>, String> {
    let Some(column) = find(session, name)? else {
        return Ok(None);
    };
    let Column {
        table, name: bare, ..
    } = &column;
    let others = OTHERS
        .replace("{table}", &literal(table))
        .replace("{name}", &literal(bare));
    let others = session.ask(&others)?;
    if !others.is_empty() {
        return Err(format!(
            "{name}: {} has the same key (key_{}), and could not be compared with it any more\nHint: Give all of \
             them the same new key: ALTER TABLE … ALTER … TYPE {}, with one number for all.",
            others.join(", "),
            column.key,
            column.kind
        ));
    }
    // Without a number the server chooses one that no column has.
    let kind = without_key(&column.kind).ok_or("the column's type has no key")?;
    session.ask(&format!("ALTER TABLE {table} ALTER {bare} TYPE {kind}"))?;
    let now = find(session, name)?.ok_or("the column is gone")?;
    if now.key == column.key {
        return Err(format!("{name} still has the key key_{}", now.key));
    }
    Ok(Some(format!(
        "{name}: all values were encoded anew, under the key key_{}. A keeper that was given the former one \
         must be given this one; backups have values under key_{}.",
        now.key, column.key
    )))
}

fn find(session: &mut Session, name: &str) -> Result<Option<Column>, String> {
    let found = session.ask(&FIND.replace("{column}", &literal(name)))?;
    let fields: Vec<&str> = found
        .first()
        .map_or(Vec::new(), |l| l.split('\t').collect());
    let [table, bare, kind, key] = fields.as_slice() else {
        return Ok(None);
    };
    Ok(Some(Column {
        table: (*table).to_owned(),
        name: (*bare).to_owned(),
        kind: (*kind).to_owned(),
        key: (*key).to_owned(),
    }))
}

/// `soft_int4(eq,key_17)` without the number of its key, which is its last word.
fn without_key(kind: &str) -> Option<String> {
    let (rest, _) = kind.rsplit_once("key_")?;
    let rest = rest.strip_suffix(',').unwrap_or(rest);
    Some(format!("{rest})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encodings and the shape stay as they are. The bug this guards against: a column comes out
    /// with more encodings than its owner wants to reveal.
    #[test]
    fn the_rest_stays() {
        let stripped = |kind| without_key(kind);
        assert_eq!(
            stripped("soft_int4(eq,key_17)").as_deref(),
            Some("soft_int4(eq)")
        );
        assert_eq!(
            stripped("soft_numeric(10,2,eq,ord,key_1)").as_deref(),
            Some("soft_numeric(10,2,eq,ord)")
        );
        assert_eq!(stripped("soft_int4"), None);
    }
}
