//! `confide rotate-column`: gives a column of the family `rnd_` a new key while the table is in use
//! (docs/families.md). One of the family `soft_` is left to `rekey`. `confide transfer-key`: gives the key of one of the family `soft_` to the keeper.
//!
//! New cells are sealed under the new key at once; older ones are sealed anew, some pages at a time.
//! When one snapshot shows no older cell any more, also after those have ended who could see or copy
//! one, and indexes are rebuilt, the keeper opens no older cell. An attempt that was interrupted is continued.
//!
//! Invariant: the older keys are given up only after all of that.

use crate::protect::quoted;
use crate::protect::session::{Session, Trouble};
use crate::psql::{Place, literal};
use std::thread::sleep;
use std::time::Duration;

/// Number of attempts of a batch, and of passes that find nothing to do.
const ATTEMPTS: usize = 20;
/// Time between two looks at what others do.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The column, as in SQL: `clinic.patient.name`.
    column: String,
    /// Connection to the proxy.
    #[command(flatten)]
    place: Place,
    /// Pages of the table per batch, which is a transaction; of the family soft_ all is one.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pages: u32,
    /// Only make cells under older keys readable again, to restore a backup. Afterwards run the
    /// command without this option.
    #[arg(long)]
    accept_old: bool,
}

/// Arguments of `confide transfer-key`.
#[derive(clap::Args)]
pub struct TransferArguments {
    /// The column, as in SQL, with its schema: `clinic.patient.name`.
    column: String,
    /// Connection to the proxy.
    #[command(flatten)]
    place: Place,
    /// Take the key back.
    #[arg(long)]
    withdraw: bool,
}

/// Runs `confide transfer-key`: the proxy seals the key for the keeper.
pub fn transfer(arguments: &TransferArguments) -> Result<String, String> {
    let name = &arguments.column;
    let (what, said) = match arguments.withdraw {
        true => (
            "withdraw_key",
            "the keeper has no key of the column any more",
        ),
        false => (
            "transfer_key",
            "the keeper opens values of the column for its clients",
        ),
    };
    let mut session = Session::begin(&arguments.place)?;
    session.ask(&format!("SELECT confide.{what}({})", literal(name)))?;
    Ok(format!("{name}: {said}"))
}

/// The column, and where its cells are.
struct Column {
    /// Its three names, quoted.
    name: String,
    /// Its own name.
    bare: String,
    /// OIDs of the tables with rows: the table itself, and those that inherit from it.
    tables: Vec<String>,
}

const FIND: &str = "
SELECT n.nspname, c.relname, a.attname, c.oid, r.relation = c.oid, r.relation::regclass
FROM (SELECT parse_ident({column}) AS p) q
JOIN pg_class c ON c.oid = (SELECT string_agg(quote_ident(x), '.') FROM unnest(p[:cardinality(p) - 1]) x)::regclass
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = p[cardinality(p)] AND a.attnum > 0 AND NOT a.attisdropped
JOIN confide.rnd_column r ON r.number = a.atttypmod - 1073741824
WHERE a.atttypid::regtype::text ~ '^(pg_catalog[.])?rnd_'";

const TABLES: &str = "
WITH RECURSIVE t AS (SELECT {oid}::oid AS oid
  UNION SELECT i.inhrelid FROM pg_inherits i JOIN t ON i.inhparent = t.oid)
SELECT c.oid FROM t JOIN pg_class c ON c.oid = t.oid WHERE c.relkind = 'r' ORDER BY 1";

const WRITERS: &str = "
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation IN ({tables}) AND granted AND pid IS DISTINCT FROM pg_backend_pid()
  AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')";

const INDEXES: &str = "
SELECT i.indexrelid::regclass, i.indisvalid, i.indisexclusion FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
WHERE i.indrelid = {oid} AND a.attname = {column} AND (a.attnum = ANY (i.indkey) OR EXISTS (
  SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
ORDER BY i.indisvalid, 1";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let mut session = Session::begin(&arguments.place)?;
    if !arguments.accept_old
        && let Some(said) = crate::rekey::run(&mut session, &arguments.column)?
    {
        return Ok(said);
    }
    let column = find(&mut session, &arguments.column)?;
    if arguments.accept_old {
        command(&mut session, &column, "back")?;
        return Ok(format!(
            "{}: cells under older keys are readable again. After the restore, run \"confide \
             rotate-column\" to seal them anew.",
            column.name
        ));
    }
    let seen = look(&mut session, &column)?.1;
    command(&mut session, &column, &format!("begin {seen}"))?;
    for table in &column.tables {
        session.ask(&format!("SELECT confide.rotate_announce('{table}')"))?;
    }
    others_end(&mut session, |session| writers(session, &column))?;
    let mut cells = 0;
    loop {
        cells += reseal(&mut session, &column, arguments.pages)?;
        // Others may have copied older cells to new rows, which are not visible yet.
        settle(&mut session, &column)?;
        if look(&mut session, &column)?.0 == 0 {
            break;
        }
    }
    rebuild(&mut session, &column)?;
    command(&mut session, &column, "end")?;
    Ok(format!(
        "{}: {cells} cells were sealed anew. The keeper opens none that was sealed before; backups \
         have such cells: docs/families.md, \"Changing the key\".",
        column.name
    ))
}

/// Waits for everybody who may still see what was replaced, or has written what cannot be seen yet.
fn settle(session: &mut Session, column: &Column) -> Result<(), String> {
    let limit = session.ask("SELECT pg_snapshot_xmin(pg_current_snapshot())")?;
    let older = format!("SELECT confide.rotate_snapshots('{}')", limit.concat());
    others_end(session, |session| {
        let list = session.ask(&older)?.concat();
        Ok(list.split(' ').map(str::to_owned).collect())
    })?;
    others_end(session, |session| writers(session, column))
}

fn command(session: &mut Session, column: &Column, what: &str) -> Result<(), String> {
    let name = literal(&column.name);
    session.ask(&format!("SELECT confide.rotate_key({name}, '{what}')"))?;
    Ok(())
}

fn find(session: &mut Session, name: &str) -> Result<Column, String> {
    let found = session.ask(&FIND.replace("{column}", &literal(name)))?;
    let row: Vec<&str> = found
        .first()
        .map_or(Vec::new(), |l| l.split('\t').collect());
    let [schema, relation, bare, oid, own, parent] = row.as_slice() else {
        return Err(format!("{name} is not a column of the family rnd_"));
    };
    if *own != "t" {
        return Err(format!("{name} has the key of its parent: name {parent}"));
    }
    let tables = session.ask(&TABLES.replace("{oid}", oid))?;
    let names = [*schema, *relation, *bare].map(quoted);
    Ok(Column {
        name: names.join("."),
        bare: (*bare).to_owned(),
        tables,
    })
}

/// Transactions of others that may have sealed values before.
fn writers(session: &mut Session, column: &Column) -> Result<Vec<String>, Trouble> {
    session.ask(&WRITERS.replace("{tables}", &column.tables.join(", ")))
}

/// Waits until transactions that are there now are no more.
fn others_end(
    session: &mut Session,
    look: impl Fn(&mut Session) -> Result<Vec<String>, Trouble>,
) -> Result<(), String> {
    let mut waiting = look(session)?;
    waiting.retain(|one| !one.is_empty());
    let mut said = false;
    while !waiting.is_empty() {
        if !std::mem::replace(&mut said, true) {
            eprintln!("waiting for {} transactions to end", waiting.len());
        }
        sleep(PAUSE);
        let now = look(session)?;
        waiting.retain(|one| now.contains(one));
    }
    Ok(())
}

/// Seals everything anew; returns the number of cells.
fn reseal(session: &mut Session, column: &Column, pages: u32) -> Result<u64, String> {
    let (mut all, mut idle) = (0, 0);
    loop {
        let (mut cells, mut failed) = (0, 0);
        for table in &column.tables {
            let done = pass(session, column, table, pages)?;
            cells += done.0;
            failed += done.1;
        }
        all += cells;
        let (left, _) = look(session, column)?;
        if left == 0 {
            return Ok(all);
        }
        idle = if cells == 0 { idle + 1 } else { 0 };
        if failed > 0 && cells == 0 {
            return Err(format!(
                "{}: {failed} cells cannot be opened: they are another column's, or were altered. Older \
                 keys stay valid.\nHint: Correct these rows, and run the command again.",
                column.name
            ));
        }
        if idle == ATTEMPTS {
            return Err(format!(
                "{}: {left} older cells come again and again",
                column.name
            ));
        }
    }
}

/// Number of cells that are not under the present key, and the highest generation of these.
fn look(session: &mut Session, column: &Column) -> Result<(u64, u32), String> {
    let (mut left, mut highest) = (0, 0);
    for table in &column.tables {
        let name = literal(&column.bare);
        let found = session.ask(&format!(
            "SELECT left_over, highest FROM confide.rotate_left('{table}', {name})"
        ))?;
        let found = found.concat();
        let (count, generation) = found.split_once('\t').unwrap_or_default();
        left += count.parse::<u64>().map_err(|e| e.to_string())?;
        highest = highest.max(
            generation
                .parse()
                .map_err(|e: std::num::ParseIntError| e.to_string())?,
        );
    }
    Ok((left, highest))
}

/// Goes through a table once; returns how many cells were sealed anew, and could not be opened.
fn pass(
    session: &mut Session,
    column: &Column,
    table: &str,
    pages: u32,
) -> Result<(u64, u64), String> {
    let (mut cells, mut failed, mut attempts) = (0, 0, 0);
    let mut first = "0".to_owned();
    loop {
        let name = literal(&column.bare);
        let batch = session.ask(&format!(
            "SELECT next, resealed, failed FROM confide.rotate_batch('{table}', {name}, {first}, {pages})"
        ));
        let batch = match batch {
            Ok(lines) => lines.concat(),
            Err(Trouble::Refused(state)) if state == "40P01" || state == "40001" => {
                attempts += 1;
                if attempts > ATTEMPTS {
                    return Err("others hold the rows all the time".to_owned());
                }
                continue;
            }
            Err(other) => return Err(other.into()),
        };
        attempts = 0;
        let [next, done, bad] = batch.split('\t').collect::<Vec<_>>()[..] else {
            return Err("a batch has no result".to_owned());
        };
        let number = |text: &str| text.parse::<u64>().map_err(|e| e.to_string());
        cells += number(done)?;
        failed += number(bad)?;
        if next.is_empty() {
            eprintln!("{}: {cells} cells sealed anew", column.name);
            return Ok((cells, failed));
        }
        eprintln!("{}: page {next}, {cells} cells sealed anew", column.name);
        first = next.to_owned();
    }
}

/// Builds the column's indexes anew, since they contain cells.
fn rebuild(session: &mut Session, column: &Column) -> Result<(), String> {
    for table in &column.tables {
        let sql = INDEXES.replace("{oid}", table);
        let sql = sql.replace("{column}", &literal(&column.bare));
        for line in session.ask(&sql)? {
            let fields: Vec<&str> = line.split('\t').collect();
            let [index, valid, exclusion] = fields.as_slice() else {
                return Err("an index has no name".to_owned());
            };
            // What an interrupted attempt has left.
            if *valid != "t" && index.contains("_ccnew") {
                session.ask(&format!("DROP INDEX CONCURRENTLY {index}"))?;
                continue;
            }
            let how = if *exclusion == "t" {
                ""
            } else {
                "CONCURRENTLY "
            };
            session.ask(&format!("REINDEX INDEX {how}{index}"))?;
        }
    }
    Ok(())
}
