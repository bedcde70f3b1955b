//! What an action must know of the database: one query for each, whose answer is one row, or
//! none where there is no such thing.

use crate::action::{Action, Session};
use crate::name::{Relation, literal};

/// Old values of settings, with the unit that they are counted in.
const SETTING: &str = "SELECT context, CASE WHEN unit IS NULL OR reset_val::numeric <= 0 THEN \
    reset_val WHEN unit = '8kB' THEN reset_val::numeric * 8 || 'kB' ELSE reset_val || unit END, \
    coalesce(sourcefile LIKE '%/postgresql.auto.conf', false) FROM pg_settings WHERE name = ";

/// Kind and owner come first for all relations. `joined` is a join of `more`'s.
fn relation_with(relation: &Relation, more: &str, joined: &str) -> String {
    // Not to_regclass: that needs rights on the schema.
    format!(
        "SELECT c.relkind, pg_get_userbyid(c.relowner){more} FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace{joined} WHERE n.nspname = {} AND c.relname = {}",
        literal(relation.schema()),
        literal(relation.name())
    )
}

fn relation(relation: &Relation, more: &str) -> String {
    relation_with(relation, more, "")
}

fn session(session: &Session) -> String {
    format!(
        "SELECT backend_type, coalesce(usename, ''), to_char(backend_start AT TIME ZONE 'UTC', \
         'YYYY-MM-DD HH24:MI:SS.US'), coalesce(state, ''), coalesce(r.rolsuper, true) \
         FROM pg_stat_activity s LEFT JOIN pg_roles r ON r.oid = s.usesysid \
         WHERE pid = {} AND pid <> pg_backend_pid()",
        session.pid
    )
}

fn create_index(index: &str, table: &Relation, columns: &[String]) -> String {
    let list: Vec<String> = columns.iter().map(|c| literal(c)).collect();
    let list = format!("ARRAY[{}]::text[]", list.join(", "));
    let there = "a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped";
    relation(
        table,
        &format!(
            ", EXISTS (SELECT FROM pg_class k WHERE k.relnamespace = n.oid AND k.relname = {}), \
             (SELECT string_agg(w, ', ') FROM unnest({list}) w WHERE NOT EXISTS \
             (SELECT FROM pg_attribute a WHERE {there} AND a.attname = w)), \
             (SELECT string_agg(a.attname, ', ') FROM pg_attribute a JOIN pg_type t \
             ON t.oid = a.atttypid WHERE {there} AND a.attname = ANY ({list}) \
             AND t.typname ~ '^_?enc_' AND t.typnamespace = 'pg_catalog'::regnamespace)",
            literal(index)
        ),
    )
}

/// Whether a constraint needs it; table, columns and method, if a template could make it again.
const INDEX: &str = ", i.indisunique OR i.indisexclusion OR i.indisreplident OR EXISTS \
    (SELECT FROM pg_constraint k WHERE k.conindid = c.oid), \
    CASE WHEN i.indexprs IS NULL AND i.indpred IS NULL AND i.indnatts = i.indnkeyatts \
    AND c.reloptions IS NULL AND 0 = ALL (i.indoption::int2[]) \
    AND NOT EXISTS (SELECT FROM unnest(i.indclass::oid[]) o JOIN pg_opclass p ON p.oid = o \
    WHERE NOT p.opcdefault) \
    AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[], i.indcollation::oid[]) u(k, l) \
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.k \
    JOIN pg_type t ON t.oid = a.atttypid \
    WHERE a.attcollation <> u.l OR t.typname ~ '^_?enc_') \
    THEN (SELECT format('%I.%I', s.nspname, r.relname) FROM pg_class r JOIN pg_namespace s \
    ON s.oid = r.relnamespace WHERE r.oid = i.indrelid) END, \
    (SELECT json_agg(a.attname ORDER BY k.place)::text FROM unnest(i.indkey::int2[]) \
    WITH ORDINALITY k(number, place) JOIN pg_attribute a ON a.attrelid = i.indrelid \
    AND a.attnum = k.number), (SELECT amname FROM pg_am WHERE oid = c.relam)";

impl Action {
    /// The query, if there is something to know.
    pub fn question(&self) -> Option<String> {
        Some(match self {
            Action::Set { parameter, .. } | Action::Reset { parameter } => {
                format!("{SETTING}{}", literal(parameter))
            }
            Action::Cancel(of) | Action::Terminate(of) => session(of),
            Action::Reindex { relation: r } => {
                relation(r, ", pg_size_pretty(pg_total_relation_size(c.oid))")
            }
            Action::Vacuum { relation: r, .. } | Action::Analyze { relation: r } => {
                relation(r, ", pg_size_pretty(pg_total_relation_size(c.oid))")
            }
            Action::Fillfactor { relation: r, .. } => relation(
                r,
                ", (SELECT option_value FROM pg_options_to_table(c.reloptions) \
                 WHERE option_name = 'fillfactor')",
            ),
            Action::Statistics {
                relation: r,
                column,
                ..
            } => relation(
                r,
                &format!(
                    ", (SELECT a.attstattarget FROM pg_attribute a WHERE a.attrelid = c.oid \
                     AND a.attnum > 0 AND NOT a.attisdropped AND a.attname = {})",
                    literal(column)
                ),
            ),
            Action::CreateIndex {
                index,
                relation,
                columns,
                ..
            } => create_index(index, relation, columns),
            Action::DropIndex { relation } => {
                relation_with(relation, INDEX, " JOIN pg_index i ON i.indexrelid = c.oid")
            }
            // The host is looked at, and the cluster's directory is where the server says.
            on_host if on_host.is_on_host() => "SELECT current_setting('data_directory')".into(),
            _ => return None,
        })
    }
}
