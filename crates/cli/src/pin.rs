//! `confide pin`: writes the list of a database's protected columns and routines for the proxy's `pin_file`, and
//! shows what has changed. Queries through psql, like `confide backup`.
//!
//! At this moment the database is trusted, so its output must be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The file; its columns of other databases are kept.
    file: PathBuf,
    /// Connection string of the database, directly or through the proxy.
    #[arg(long, value_name = "CONNSTR", default_value = "")]
    dbname: String,
    /// Directory of psql (default: search PATH).
    #[arg(long, value_name = "DIR")]
    bindir: Option<PathBuf>,
    /// Change nothing; fail if the file is not up to date.
    #[arg(long)]
    check: bool,
}

const HEADER: &str = "# Protected columns and routines, written by `confide pin`: \
                      database.schema.table.column type place; database.schema.name routine fingerprint\n";

const QUERIES: [&str; 4] = [
    "SET search_path = pg_catalog",
    "SELECT quote_ident(current_database())",
    "SELECT format('%I.%I.%I.%I %s %s', current_database(), n.nspname, c.relname, a.attname, \
     CASE WHEN t.typname ~ '^soft_' THEN format_type(t.oid, a.atttypmod) ELSE t.typname END, \
     a.place) \
     FROM (SELECT *, row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS place \
     FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped) a \
     JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_type t ON t.oid = a.atttypid \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' \
     AND t.typnamespace = 'pg_catalog'::regnamespace AND t.typname ~ '^(_?enc_|rnd_|soft_)'",
    ROUTINES,
];

/// Fingerprints as the proxy computes them (`rewrite/src/pin.rs`); the innermost hash is in the server's
/// reports (`extension/src/schema/define.c`).
const ROUTINES: &str = "\
WITH types AS (SELECT t.oid, CASE WHEN t.oid < 16384 THEN t.oid::text \
  ELSE format('%s.%s', n.nspname, t.typname) END AS name \
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace), \
routines AS (SELECT p.*, n.nspname, l.lanname, p.prolang IN (12, 13) AS compiled, \
  ARRAY(SELECT y.name FROM unnest(p.proargtypes) WITH ORDINALITY u(oid, at) JOIN types y USING (oid) ORDER BY at) \
    AS inputs, \
  ARRAY(SELECT y.name FROM unnest(p.proallargtypes) WITH ORDINALITY u(oid, at) JOIN types y USING (oid) ORDER BY at) \
    AS every, \
  (SELECT name FROM types WHERE oid = p.prorettype) AS result, \
  coalesce((SELECT name FROM types WHERE oid = p.provariadic), '0') AS rest_type, \
  encode(sha256(convert_to(concat(prokind, prosecdef, proisstrict, proretset, provolatile, proleakproof, \
    chr(10), proconfig, chr(10), probin, chr(10), prosrc, chr(10), prosqlbody, chr(10), proargdefaults), \
    getdatabaseencoding())), 'hex') AS rest \
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang \
  WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'confide') AND n.nspname !~ '^pg_temp_') \
SELECT format('%I.%I.%I routine %s', current_database(), nspname, proname, \
  (SELECT encode(sha256(convert_to(string_agg(octet_length(convert_to(f, 'UTF8')) || ':' || f, '' ORDER BY at), \
    'UTF8')), 'hex') \
  FROM unnest(cardinality(inputs)::text || inputs || cardinality(every)::text || every || \
    ARRAY[coalesce(array_to_string(proargmodes, ''), ''), result, rest_type, CASE WHEN compiled THEN '' ELSE lanname END, \
    CASE WHEN compiled THEN '' ELSE prosrc END, rest] || proargnames) WITH ORDINALITY u(f, at))) FROM routines";

type Lines = BTreeSet<String>;

/// Writes the file; returns the changes.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let path = &arguments.file;
    let at = |e: std::io::Error| format!("{}: {e}", path.display());
    let (database, now) = protected(arguments)?;
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(at)?,
    };
    let own = format!("{database}.");
    let lines = text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(str::to_owned);
    let (before, others): (Lines, Lines) = lines.partition(|line| line.starts_with(&own));
    let mut shown: String = before
        .difference(&now)
        .map(|line| format!("- {line}\n"))
        .chain(now.difference(&before).map(|line| format!("+ {line}\n")))
        .collect();
    let routines = now.iter().filter(|line| line.contains(" routine ")).count();
    let count = format!(
        "{}: {} protected columns and {routines} routines",
        path.display(),
        now.len() - routines
    );
    if shown.is_empty() {
        return Ok(format!("{count}, as before"));
    }
    if arguments.check {
        return Err(format!(
            "{} has changed:\n{}",
            path.display(),
            shown.trim_end()
        ));
    }
    let all: Vec<&str> = others.union(&now).map(String::as_str).collect();
    replace(path, &format!("{HEADER}{}\n", all.join("\n"))).map_err(at)?;
    shown.push_str(&count);
    Ok(shown)
}

/// Returns the database's name and protected columns.
fn protected(arguments: &Arguments) -> Result<(String, Lines), String> {
    let program = arguments
        .bindir
        .as_ref()
        .map_or("psql".into(), |dir| dir.join("psql"));
    let mut psql = Command::new(program);
    // With this name the proxy does not hide protected types (plain_catalogs).
    psql.env("PGAPPNAME", "confide");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
    if !arguments.dbname.is_empty() {
        psql.args(["--dbname", &arguments.dbname]);
    }
    for query in QUERIES {
        psql.args(["-c", query]);
    }
    psql.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = psql.output().map_err(|e| format!("psql: {e}"))?;
    if !output.status.success() {
        return Err(format!("psql failed: {}", output.status));
    }
    let text = String::from_utf8(output.stdout).map_err(|e| format!("psql: {e}"))?;
    let mut lines = text.lines().map(str::to_owned);
    let database = lines.next().ok_or("psql gave no answer")?;
    Ok((database, lines.collect()))
}

/// Atomic, since the proxy may be starting.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(new, path)
}
