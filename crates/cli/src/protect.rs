//! `confide protect` and `confide unprotect`: columns get protected types, or plain ones again,
//! while the table is in use. A new table is filled by batches beside the old one; triggers write down
//! the keys of rows that change meanwhile, and these are copied again; then the names are switched.
//!
//! Rows go through this process and the proxy, which opens and seals them: the server gives and takes
//! what it has. Each batch is read back and compared.
//!
//! Invariant: the old table is only read and renamed. When the names are switched, under a lock
//! that keeps out all others, the new table has the rows of the old one.

mod copy;
pub(crate) mod session;
mod table;

use crate::psql::Place;
use copy::Copy;
use session::Session;
use table::{Table, Way};

/// Number of attempts to lock the tables for the switch.
const ATTEMPTS: usize = 20;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The table, as in SQL: `payroll.employee`.
    table: String,
    /// Its columns.
    #[arg(required = true)]
    columns: Vec<String>,
    /// Connection to the proxy.
    #[command(flatten)]
    place: Place,
    /// Rows per batch.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Remove what an interrupted attempt has left, and exit.
    #[arg(long)]
    abort: bool,
}

/// Changes columns to protected types.
pub fn protect(arguments: &Arguments) -> Result<String, String> {
    run(arguments, Way::In)
}

/// Changes columns back to plain types.
pub fn unprotect(arguments: &Arguments) -> Result<String, String> {
    run(arguments, Way::Out)
}

/// Names of the objects created for the conversion.
pub(crate) struct Names {
    new: String,
    log: String,
    old: String,
    /// Without the schema.
    bare_old: String,
    changed: String,
    gone: String,
    truncated: String,
}

/// A name with a suffix, within PostgreSQL's limit of 63 bytes.
fn suffixed(bare: &str, suffix: &str) -> String {
    let mut end = bare.len().min(63 - suffix.len());
    while !bare.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", bare.get(..end).unwrap_or_default())
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Names {
    fn of(schema: &str, bare: &str) -> Names {
        let place = |suffix: &str| format!("{schema}.{}", quoted(&suffixed(bare, suffix)));
        Names {
            new: place("_confide_new"),
            log: place("_confide_log"),
            old: place("_confide_old"),
            bare_old: quoted(&suffixed(bare, "_confide_old")),
            changed: place("_confide_changed"),
            gone: place("_confide_gone"),
            truncated: place("_confide_truncated"),
        }
    }

    /// Removes everything that was created for the conversion.
    fn remove(&self, session: &mut Session) -> Result<(), String> {
        session.ask("ROLLBACK")?;
        session.ask("SET client_min_messages = warning")?;
        for function in [&self.changed, &self.gone, &self.truncated] {
            session.ask(&format!("DROP FUNCTION IF EXISTS {function}() CASCADE"))?;
        }
        session.ask(&format!("DROP TABLE IF EXISTS {}, {}", self.log, self.new))?;
        Ok(())
    }
}

fn run(arguments: &Arguments, way: Way) -> Result<String, String> {
    let mut session = Session::begin(&arguments.place)?;
    if arguments.abort {
        return abort(&mut session, arguments);
    }
    let table = Table::look(&mut session, &arguments.table, &arguments.columns, way)?;
    let names = Names::of(&table.schema, &table.bare);
    let free = [&names.new, &names.log, &names.old];
    let free = free.map(|name| format!("to_regclass({})", table::literal(name)));
    let taken = session.ask(&format!("SELECT coalesce({})::text", free.join(", ")))?;
    if let Some(name) = taken.first().filter(|name| !name.is_empty()) {
        return Err(format!(
            "there is a table {name}\nHint: Drop it; --abort removes what a broken attempt has left."
        ));
    }
    let done = moved(&mut session, &table, &names, arguments.batch);
    if let Err(why) = done {
        // If it cannot be removed now, `--abort` removes it later.
        let left = names.remove(&mut session).is_err();
        let left = if left {
            "; run it again with --abort"
        } else {
            ""
        };
        return Err(format!("{}: {why}{left}", table.name));
    }
    let mut said = format!("{}: {} rows are in the new table.\n", table.name, done?);
    said.push_str(&match way {
        Way::In => format!(
            "The plain values are in {} until you drop it; then in the file that is unlinked, in the \
             write-ahead log, in backups and standbys: docs/migrating.md.",
            names.old
        ),
        Way::Out => format!(
            "The protected values are in {} until you drop it. Columns of text have a check \
             confide_envelope_…: drop it when no session is left that began before the switch.",
            names.old
        ),
    });
    Ok(said)
}

fn abort(session: &mut Session, arguments: &Arguments) -> Result<String, String> {
    let [name, schema, bare] = Table::named(session, &arguments.table)?;
    Names::of(&schema, &bare).remove(session)?;
    Ok(format!("{name}: nothing is left of the attempt"))
}

/// Does the whole conversion; returns the number of rows.
fn moved(
    session: &mut Session,
    table: &Table,
    names: &Names,
    batch: u32,
) -> Result<String, String> {
    begin(session, table, names)?;
    let mut copy = Copy::new(table, names, batch);
    copy.all(session)?;
    copy.changes(session)?;
    for statement in indexes(table, names) {
        session.ask(&statement)?;
    }
    session.ask(&format!("ANALYZE {}", names.new))?;
    copy.changes(session)?;
    eprintln!("switching the names");
    locked(session, table, &mut copy)?;
    let rows = switch(session, table, names)?;
    session.ask("COMMIT")?;
    for (from, name, _) in &table.foreign {
        session.ask(&format!("ALTER TABLE {from} VALIDATE CONSTRAINT {name}"))?;
    }
    Ok(rows)
}

/// Creates the new table, the list of changed keys, and the triggers that fill it.
fn begin(session: &mut Session, table: &Table, names: &Names) -> Result<(), String> {
    let Names { new, log, .. } = names;
    let key = table.key.join(", ");
    let of = |row: &str| {
        let columns = table.key.iter().map(|column| format!("{row}.{column}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    for statement in table.making.iter().chain(&table.rights) {
        session.ask(&statement.replace("{new}", new))?;
    }
    session.ask(&format!(
        "CREATE TABLE {log} AS SELECT {key} FROM {} WITH NO DATA",
        table.name
    ))?;
    for (function, body) in [
        (
            &names.changed,
            format!("INSERT INTO {log} ({key}) VALUES ({})", of("NEW")),
        ),
        (
            &names.gone,
            format!("INSERT INTO {log} ({key}) VALUES ({})", of("OLD")),
        ),
        (
            &names.truncated,
            format!("INSERT INTO {log} ({key}) SELECT {key} FROM {}", table.name),
        ),
    ] {
        session.ask(&format!(
            "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER \
             SET search_path = pg_catalog AS $body$ BEGIN {body}; RETURN NULL; END $body$"
        ))?;
    }
    for (when, each, function) in [
        ("AFTER INSERT OR UPDATE", "ROW", &names.changed),
        ("AFTER UPDATE OR DELETE", "ROW", &names.gone),
        ("BEFORE TRUNCATE", "STATEMENT", &names.truncated),
    ] {
        let name = quoted(&format!("confide {when}"));
        session.ask(&format!(
            "CREATE TRIGGER {name} {when} ON {} FOR EACH {each} EXECUTE FUNCTION {function}()",
            table.name
        ))?;
    }
    Ok(())
}

/// An index's name before the switch.
fn index_name(place: usize, table: &Table) -> String {
    quoted(&suffixed(&table.bare, &format!("_confide_index_{place}")))
}

fn indexes(table: &Table, names: &Names) -> Vec<String> {
    let mut statements = Vec::new();
    for (place, index) in table.indexes.iter().enumerate() {
        let (name, new) = (index_name(place, table), &names.new);
        let unique = if index.unique { "UNIQUE " } else { "" };
        statements.push(format!(
            "CREATE {unique}INDEX {name} ON {new}{}",
            index.rest
        ));
        let kind = match index.constraint.as_str() {
            "p" => "PRIMARY KEY",
            "u" => "UNIQUE",
            _ => continue,
        };
        statements.push(format!(
            "ALTER TABLE {new} ADD CONSTRAINT {name} {kind} USING INDEX {name}"
        ));
    }
    statements
}

/// Starts the transaction of the switch: locks the table exclusively, after all changes have been
/// copied. It does not block others for long: if they hold the table, it gives way.
fn locked(session: &mut Session, table: &Table, copy: &mut Copy<'_>) -> Result<(), String> {
    for _ in 0..ATTEMPTS {
        copy.changes(session)?;
        session.ask("BEGIN")?;
        session.ask("SET LOCAL lock_timeout = '3s'")?;
        match session.ask(&format!(
            "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
            table.name
        )) {
            Ok(_) => {
                copy.rest(session)?;
                return Ok(());
            }
            Err(session::Trouble::Refused(state)) if state == "55P03" || state == "40P01" => {
                session.ask("ROLLBACK")?;
            }
            Err(other) => return Err(other.into()),
        }
    }
    Err("others hold the table all the time".to_owned())
}

/// Must run in the transaction; returns the number of rows.
fn switch(session: &mut Session, table: &Table, names: &Names) -> Result<String, String> {
    let count = |name: &str| format!("SELECT count(*) FROM {name}");
    let (old, new) = (
        session.ask(&count(&table.name))?,
        session.ask(&count(&names.new))?,
    );
    if old != new {
        return Err(format!("rows differ: {old:?} and {new:?}"));
    }
    for function in [&names.changed, &names.gone, &names.truncated] {
        session.ask(&format!("DROP FUNCTION {function}() CASCADE"))?;
    }
    session.ask(&format!("DROP TABLE {}", names.log))?;
    for (sequence, column) in &table.sequences {
        session.ask(&format!(
            "ALTER SEQUENCE {sequence} OWNED BY {}.{column}",
            names.new
        ))?;
    }
    for (sequence, column) in &table.identities {
        session.ask(&format!(
            "SELECT setval(pg_get_serial_sequence({}, {}), last_value, is_called) FROM {sequence}",
            table::literal(&names.new),
            table::literal(&column.trim_matches('"').replace("\"\"", "\"")),
        ))?;
    }
    for (from, name, _) in &table.foreign {
        session.ask(&format!("ALTER TABLE {from} DROP CONSTRAINT {name}"))?;
    }
    for (place, index) in table.indexes.iter().enumerate() {
        let kept = quoted(&suffixed(&index.name, "_confide_old"));
        let (old, schema) = (quoted(&index.name), &table.schema);
        session.ask(&format!("ALTER INDEX {schema}.{old} RENAME TO {kept}"))?;
        let made = index_name(place, table);
        session.ask(&format!("ALTER INDEX {schema}.{made} RENAME TO {old}"))?;
    }
    session.ask(&format!(
        "ALTER TABLE {} RENAME TO {}",
        table.name, names.bare_old
    ))?;
    session.ask(&format!(
        "ALTER TABLE {} RENAME TO {}",
        names.new,
        quoted(&table.bare)
    ))?;
    for (from, name, text) in &table.foreign {
        session.ask(&format!(
            "ALTER TABLE {from} ADD CONSTRAINT {name} {text} NOT VALID"
        ))?;
    }
    Ok(new.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_limit() {
        let long = "ä".repeat(31);
        let name = suffixed(&long, "_confide_old");
        assert!(
            name.len() <= 63 && name.ends_with("ä_confide_old"),
            "{name}"
        );
        assert_eq!(suffixed("t", "_confide_new"), "t_confide_new");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
