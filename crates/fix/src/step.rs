//! From an action and what the database has answered to the statements, and to what undoes them.

use crate::Refused;
use crate::action::{Action, Method, Session};
use crate::name::{Relation, literal, quoted};

/// What is to be done for an action.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What is, and what will be.
    pub shown: String,
    /// Each by itself, outside of a transaction.
    pub statements: Vec<String>,
    /// What undoes it, if a template can.
    pub undo: Option<Action>,
    /// It has effect when the server is restarted.
    pub restart: bool,
    /// The cluster's directory, if the action is one on the host, which has no statements.
    pub data: Option<String>,
}

/// One row of the answer; `None` for NULL.
type Row = [Option<String>];

/// Kinds of relations, as `pg_class.relkind` has them.
const TABLES: &[&str] = &["r", "m", "p"];
const INDEXES: &[&str] = &["i", "I"];

fn field(row: &Row, at: usize) -> Option<&str> {
    row.get(at).and_then(Option::as_deref)
}

/// What a relation's row begins with, if it is of one of the kinds.
fn kind_and_owner<'a>(row: &'a Row, kinds: &[&[&str]]) -> Result<(bool, &'a str), Refused> {
    let (kind, owner) = (field(row, 0).unwrap_or(""), field(row, 1).unwrap_or(""));
    if !kinds.iter().any(|all| all.contains(&kind)) {
        let what = format!("a relation of kind \"{kind}\" is not maintained so");
        return Err(Refused::new("relation-kind", what));
    }
    Ok((TABLES.contains(&kind), owner))
}

/// As the relation's owner, and nobody else.
fn as_owner(owner: &str, statement: String) -> Vec<String> {
    vec![format!("SET ROLE {}", quoted(owner)), statement]
}

fn done(shown: String, statements: Vec<String>, undo: Option<Action>) -> Step {
    Step {
        shown,
        statements,
        undo,
        restart: false,
        data: None,
    }
}

fn setting(parameter: &str, value: Option<&str>, row: &Row) -> Step {
    let old = field(row, 1).unwrap_or("").to_owned();
    let ours = field(row, 2) == Some("t");
    let statement = match value {
        Some(value) => format!("ALTER SYSTEM SET {parameter} = {}", literal(value)),
        None => format!("ALTER SYSTEM RESET {parameter}"),
    };
    let undo = match ours {
        true => Action::Set {
            parameter: parameter.to_owned(),
            value: old.clone(),
        },
        false => Action::Reset {
            parameter: parameter.to_owned(),
        },
    };
    Step {
        shown: format!(
            "{parameter}: {old} -> {}",
            value.unwrap_or("as without a template")
        ),
        statements: vec![statement, "SELECT pg_reload_conf()".into()],
        undo: Some(undo),
        restart: field(row, 0) == Some("postmaster"),
        data: None,
    }
}

fn session(what: &str, function: &str, of: &Session, row: &Row) -> Result<Step, Refused> {
    let (kind, user) = (field(row, 0).unwrap_or(""), field(row, 1).unwrap_or(""));
    if kind != "client backend" {
        let what = format!("process {} is a {kind}", of.pid);
        return Err(Refused::new("client-session", what));
    }
    if field(row, 4) != Some("f") {
        let what = format!("process {} is a superuser's", of.pid);
        return Err(Refused::new("client-session", what));
    }
    if field(row, 2) != Some(of.started.as_str()) {
        let what = format!(
            "process {} began at {}, not at {}: it is another session",
            of.pid,
            field(row, 2).unwrap_or("?"),
            of.started
        );
        return Err(Refused::new("same-session", what));
    }
    let state = field(row, 3).unwrap_or("");
    Ok(done(
        format!("{what} process {} of {user} ({state})", of.pid),
        // The session may have ended since the question: its number may be another's.
        vec![format!(
            "SELECT {function}(pid) FROM pg_stat_activity WHERE pid = {} AND to_char(backend_start \
             AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') = {}",
            of.pid,
            literal(&of.started)
        )],
        None,
    ))
}

fn reindex(relation: &Relation, row: &Row) -> Result<Step, Refused> {
    let (table, owner) = kind_and_owner(row, &[TABLES, INDEXES])?;
    let kind = if table { "TABLE" } else { "INDEX" };
    let (name, size) = (relation.quoted(), field(row, 2).unwrap_or("?"));
    let statement = format!("REINDEX {kind} CONCURRENTLY {name}");
    let shown = format!("build anew: {} {name}, {size}", kind.to_lowercase());
    Ok(done(shown, as_owner(owner, statement), None))
}

fn vacuum(relation: &Relation, options: &[(&str, bool)], row: &Row) -> Result<Step, Refused> {
    let (_, owner) = kind_and_owner(row, &[TABLES])?;
    let chosen: Vec<&str> = options.iter().filter(|o| o.1).map(|o| o.0).collect();
    let name = relation.quoted();
    let size = field(row, 2).unwrap_or("?");
    let list = match chosen.is_empty() {
        true => String::new(),
        false => format!(" ({})", chosen.join(", ")),
    };
    let warning = match chosen.contains(&"FULL") {
        true => "; nobody can use it meanwhile",
        false => "",
    };
    Ok(done(
        format!("vacuum {name}{list}, {size}{warning}"),
        as_owner(owner, format!("VACUUM{list} {name}")),
        None,
    ))
}

fn fillfactor(relation: &Relation, value: Option<u8>, row: &Row) -> Result<Step, Refused> {
    let (table, owner) = kind_and_owner(row, &[TABLES, INDEXES])?;
    let old = field(row, 2).and_then(|n| n.parse().ok());
    let kind = if table { "TABLE" } else { "INDEX" };
    let name = relation.quoted();
    let change = match value {
        Some(n) => format!("SET (fillfactor = {n})"),
        None => "RESET (fillfactor)".to_owned(),
    };
    let shown = |v: Option<u8>| v.map_or("default".to_owned(), |n| n.to_string());
    Ok(done(
        format!(
            "fillfactor of {name}: {} -> {}, for pages that are written from now on",
            shown(old),
            shown(value)
        ),
        as_owner(owner, format!("ALTER {kind} {name} {change}")),
        Some(Action::Fillfactor {
            relation: relation.clone(),
            value: old,
        }),
    ))
}

fn statistics(relation: &Relation, column: &str, target: i16, row: &Row) -> Result<Step, Refused> {
    let (_, owner) = kind_and_owner(row, &[TABLES])?;
    let old: i16 = field(row, 2)
        .and_then(|n| n.parse().ok())
        .ok_or_else(|| Refused::new("exists", format!("no column \"{column}\"")))?;
    let name = relation.quoted();
    Ok(done(
        format!("statistics target of {name} {column}: {old} -> {target}"),
        as_owner(
            owner,
            format!(
                "ALTER TABLE {name} ALTER COLUMN {} SET STATISTICS {target}",
                quoted(column)
            ),
        ),
        Some(Action::Statistics {
            relation: relation.clone(),
            column: column.to_owned(),
            target: old,
        }),
    ))
}

fn create_index(
    (index, relation): (&str, &Relation),
    columns: &[String],
    method: Method,
    row: &Row,
) -> Result<Step, Refused> {
    let (_, owner) = kind_and_owner(row, &[&["r", "m"]])?;
    if field(row, 2) == Some("t") {
        let what = format!("a relation \"{index}\" is there already");
        return Err(Refused::new("new-name", what));
    }
    if let Some(missing) = field(row, 3) {
        return Err(Refused::new("exists", format!("no column {missing}")));
    }
    if let Some(protected) = field(row, 4) {
        let what = format!(
            "{protected}: an index tells the database the order of its values; the application makes it"
        );
        return Err(Refused::new("plain-columns", what));
    }
    let list: Vec<String> = columns.iter().map(|c| quoted(c)).collect();
    let list = list.join(", ");
    let (name, method) = (relation.quoted(), method.name());
    Ok(done(
        format!("new index {index} on {name} using {method} ({list})"),
        as_owner(
            owner,
            format!(
                "CREATE INDEX CONCURRENTLY {} ON {name} USING {method} ({list})",
                quoted(index)
            ),
        ),
        Some(Action::DropIndex {
            relation: relation.beside(index),
        }),
    ))
}

/// Only an index that a template could make can be made again.
fn drop_index(relation: &Relation, row: &Row) -> Result<Step, Refused> {
    let (_, owner) = kind_and_owner(row, &[&["i"]])?;
    let name = relation.quoted();
    if field(row, 2) != Some("f") {
        let what = format!("{name} keeps rows unique, or a constraint or replication needs it");
        return Err(Refused::new("index-needed", what));
    }
    let table = field(row, 3).and_then(|t| Relation::try_from(t.to_owned()).ok());
    let columns = field(row, 4).and_then(|c| serde_json::from_str(c).ok());
    let method = field(row, 5).and_then(Method::of);
    let undo = match (table, columns, method) {
        (Some(table), Some(columns), Some(method)) => Some(Action::CreateIndex {
            index: relation.name().to_owned(),
            relation: table,
            columns,
            method,
        }),
        _ => None,
    };
    Ok(done(
        format!("drop index {name}"),
        as_owner(owner, format!("DROP INDEX CONCURRENTLY {name}")),
        undo,
    ))
}

impl Action {
    /// What is to be done, given the rows that answered [`Action::question`].
    ///
    /// # Errors
    /// Name the rule that is broken.
    pub fn step(&self, rows: &[Vec<Option<String>>]) -> Result<Step, Refused> {
        let row: &Row = match (rows, self) {
            ([row], _) => row,
            (_, Action::RotateLog {}) => &[],
            _ => return Err(Refused::new("exists", "there is no such thing")),
        };
        match self {
            Action::Set { parameter, value } => Ok(setting(parameter, Some(value), row)),
            Action::Reset { parameter } => Ok(setting(parameter, None, row)),
            Action::Reindex { relation } => reindex(relation, row),
            Action::Vacuum {
                relation,
                full,
                freeze,
                analyze,
            } => vacuum(
                relation,
                &[("FULL", *full), ("FREEZE", *freeze), ("ANALYZE", *analyze)],
                row,
            ),
            Action::Analyze { relation } => {
                let (_, owner) = kind_and_owner(row, &[TABLES])?;
                let name = relation.quoted();
                let statement = format!("ANALYZE {name}");
                Ok(done(
                    format!("new statistics of {name}"),
                    as_owner(owner, statement),
                    None,
                ))
            }
            Action::Cancel(of) => session("cancel the statement of", "pg_cancel_backend", of, row),
            Action::Terminate(of) => session("end", "pg_terminate_backend", of, row),
            Action::RotateLog {} => Ok(done(
                "begin a new log file".into(),
                vec!["SELECT pg_rotate_logfile()".into()],
                None,
            )),
            Action::Fillfactor { relation, value } => fillfactor(relation, *value, row),
            Action::Statistics {
                relation,
                column,
                target,
            } => statistics(relation, column, *target, row),
            Action::CreateIndex {
                index,
                relation,
                columns,
                method,
            } => create_index((index, relation), columns, *method, row),
            Action::DropIndex { relation } => drop_index(relation, row),
            // What is shown and what undoes it, looking at the host tells.
            _ => Ok(Step {
                data: field(row, 0).map(str::to_owned),
                ..done(String::new(), Vec::new(), None)
            }),
        }
    }
}
