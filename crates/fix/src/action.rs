//! The actions, as a file has them: a TOML list `[[fix]]` of tables, each with its `action`.

use crate::Refused;
use crate::name::{self, Relation};
use crate::setting;
use serde::{Deserialize, Deserializer, Serialize};

/// Most actions of a file.
const ACTIONS_MAX: usize = 100;

/// Something to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Gives a setting of the server a value.
    Set {
        /// The setting.
        parameter: String,
        /// Its value, with a unit where it has one.
        #[serde(deserialize_with = "word")]
        value: String,
    },
    /// Takes back what `set` did.
    Reset {
        /// The setting.
        parameter: String,
    },
    /// Builds an index, or all of a table's, anew; others go on reading and writing.
    Reindex {
        /// Index or table.
        relation: Relation,
    },
    /// Makes room of dead rows usable again.
    Vacuum {
        /// The table.
        relation: Relation,
        /// Writes the table anew, which nobody can use meanwhile.
        #[serde(default)]
        full: bool,
        /// Freezes all rows.
        #[serde(default)]
        freeze: bool,
        /// Statistics, too.
        #[serde(default)]
        analyze: bool,
    },
    /// Gathers statistics.
    Analyze {
        /// The table.
        relation: Relation,
    },
    /// Cancels a session's statement.
    Cancel(Session),
    /// Ends a session.
    Terminate(Session),
    /// Begins a new log file.
    RotateLog {},
    /// How full pages are made, in percent; without a value as PostgreSQL has it.
    Fillfactor {
        /// Table or index.
        relation: Relation,
        /// 10 to 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<u8>,
    },
    /// How much of a column is sampled; -1 is PostgreSQL's default.
    Statistics {
        /// The table.
        relation: Relation,
        /// The column, as it is stored.
        column: String,
        /// -1 to 10000.
        target: i16,
    },
    /// Makes an index on plain columns; others go on reading and writing.
    CreateIndex {
        /// Its name, as it is stored.
        index: String,
        /// The table.
        relation: Relation,
        /// The columns, as they are stored.
        columns: Vec<String>,
        /// The access method.
        #[serde(default)]
        method: Method,
    },
    /// Drops an index that no constraint needs.
    DropIndex {
        /// The index.
        relation: Relation,
    },
    /// On the host (`host`): who may enter a directory of the cluster.
    DirectoryMode {
        /// Path below the cluster's directory.
        path: String,
        /// 0700 or 0750.
        mode: String,
    },
    /// On the host: removes core files of the server.
    RemoveCores {},
    /// On the host: memory for `huge_pages`.
    HugePages {
        /// 64 to 65536; 0: none.
        pages: u32,
    },
    /// On the host: the largest packet of an interface.
    Mtu {
        /// Its name.
        interface: String,
        /// 64 to 8192.
        mtu: u32,
    },
    /// On the host: how many processes the server's user may have, from now on.
    ProcessLimit {
        /// 64 to 8000.
        limit: u32,
    },
    /// On the host: restarts the server.
    Restart {},
}

/// A session, told from a later one with the same process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Its process.
    pub pid: u32,
    /// When it began, in UTC: `backend_start` as docs/maintenance.md asks for it.
    pub started: String,
}

/// Access methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// In order.
    #[default]
    Btree,
    /// By hashes.
    Hash,
    /// By ranges of blocks.
    Brin,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Btree => "btree",
            Method::Hash => "hash",
            Method::Brin => "brin",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Method> {
        let all = [Method::Btree, Method::Hash, Method::Brin];
        all.into_iter().find(|m| m.name() == name)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    fix: Vec<Action>,
}

/// A text, or a number or truth in its place.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Word {
        Truth(bool),
        Number(i64),
        Real(f64),
        Text(String),
    }
    Ok(match Word::deserialize(deserializer)? {
        Word::Truth(true) => "on".to_owned(),
        Word::Truth(false) => "off".to_owned(),
        Word::Number(n) => n.to_string(),
        Word::Real(n) => n.to_string(),
        Word::Text(text) => text,
    })
}

/// Reads a file; what can be checked without a database is.
///
/// # Errors
/// Name the rule, and the action by its number.
pub fn parse(text: &str) -> Result<Vec<Action>, Refused> {
    let file: File = toml::from_str(text)
        .map_err(|e| Refused::new("template", e.to_string().trim_end().to_owned()))?;
    if file.fix.len() > ACTIONS_MAX {
        let what = format!("more than {ACTIONS_MAX} actions");
        return Err(Refused::new("template", what));
    }
    for (number, action) in (1..).zip(&file.fix) {
        action.check().map_err(|refused| Refused {
            what: format!("action {number}: {}", refused.what),
            ..refused
        })?;
    }
    Ok(file.fix)
}

/// The text of a file with these actions.
pub fn print(actions: &[Action]) -> String {
    let file = File {
        fix: actions.to_vec(),
    };
    toml::to_string(&file).unwrap_or_default()
}

fn stored(name: &str) -> Result<(), Refused> {
    if name.is_empty() || name.len() > 63 || name.contains('\0') {
        return Err(Refused::new("template", format!("\"{name}\" is no name")));
    }
    Ok(())
}

impl Action {
    /// What needs no database.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        match self {
            Action::Set { parameter, value } => setting::find(parameter)?.check(value),
            Action::Reset { parameter } => setting::find(parameter).map(|_| ()),
            Action::Reindex { relation }
            | Action::Vacuum { relation, .. }
            | Action::Analyze { relation }
            | Action::DropIndex { relation } => name::users(relation),
            Action::Fillfactor { relation, value } => {
                name::users(relation)?;
                match value {
                    Some(n) if !(10..=100).contains(n) => {
                        Err(Refused::new("fillfactor", format!("{n}: 10 to 100")))
                    }
                    _ => Ok(()),
                }
            }
            Action::Statistics {
                relation,
                column,
                target,
            } => {
                name::users(relation)?;
                stored(column)?;
                match target {
                    -1..=10_000 => Ok(()),
                    _ => Err(Refused::new("statistics", format!("{target}: -1 to 10000"))),
                }
            }
            Action::CreateIndex {
                index,
                relation,
                columns,
                ..
            } => {
                name::users(relation)?;
                stored(index)?;
                if columns.is_empty() || columns.len() > 32 {
                    return Err(Refused::new("index-columns", "1 to 32 columns"));
                }
                columns.iter().try_for_each(|c| stored(c))
            }
            Action::Cancel(_) | Action::Terminate(_) | Action::RotateLog {} => Ok(()),
            on_host => on_host.check_on_host(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> &'static str {
        parse(text).map_or_else(|r| r.rule, |_| "none")
    }

    /// What is no action, or not all of one, or more than one, is refused: a template is a
    /// list of what is known, not of what is forbidden.
    #[test]
    fn only_what_is_known() {
        for (text, broken) in [
            ("[[fix]]\naction = 'rotate-log'", "none"),
            (
                "[[fix]]\naction = 'set'\nparameter = 'jit'\nvalue = false",
                "none",
            ),
            (
                "[[fix]]\naction = 'set'\nparameter = 'max_connections'\nvalue = 200",
                "none",
            ),
            ("[[fix]]\naction = 'cancel'\npid = 7\nstarted = 'x'", "none"),
            ("[[fix]]\naction = 'reindex'\nrelation = 'app.t'", "none"),
            ("[[fix]]\naction = 'restart'", "none"),
            ("[[fix]]\naction = 'restart'\nand = 1", "template"),
            ("[[fix]]\naction = 'huge-pages'\npages = 64", "none"),
            ("[[fix]]\naction = 'huge-pages'\npages = 1", "host-range"),
            (
                "[[fix]]\naction = 'sql'\nstatement = 'DROP TABLE t'",
                "template",
            ),
            ("[[fix]]\naction = 'rotate-log'\nand = 1", "template"),
            ("[[fix]]\naction = 'cancel'\npid = 7", "template"),
            (
                "[[fix]]\naction = 'cancel'\npid = -1\nstarted = 'x'",
                "template",
            ),
            ("[[fix]]\naction = 'reindex'\nrelation = 't'", "template"),
            (
                "[[fix]]\naction = 'reindex'\nrelation = 'app.t; DROP TABLE x'",
                "template",
            ),
            ("other = 1\n[[fix]]\naction = 'rotate-log'", "template"),
            (
                "[[fix]]\naction = 'set'\nparameter = 'fsync'\nvalue = false",
                "setting-listed",
            ),
            (
                "[[fix]]\naction = 'reset'\nparameter = 'hba_file'",
                "setting-listed",
            ),
            (
                "[[fix]]\naction = 'set'\nparameter = 'work_mem'\nvalue = 9",
                "setting-range",
            ),
            (
                "[[fix]]\naction = 'vacuum'\nrelation = 'pg_catalog.pg_class'",
                "user-relation",
            ),
            (
                "[[fix]]\naction = 'fillfactor'\nrelation = 'app.t'\nvalue = 9",
                "fillfactor",
            ),
            (
                "[[fix]]\naction = 'statistics'\nrelation = 'app.t'\ncolumn = 'a'\ntarget = -2",
                "statistics",
            ),
            (
                "[[fix]]\naction = 'create-index'\nindex = 'i'\nrelation = 'app.t'\ncolumns = []",
                "index-columns",
            ),
        ] {
            assert_eq!(rule(text), broken, "{text}");
        }
    }

    /// What is printed, as for undoing, is read again.
    #[test]
    fn printed() {
        let text = "[[fix]]\naction = 'fillfactor'\nrelation = 'App.\"T\"'\n\
                    [[fix]]\naction = 'terminate'\npid = 1\nstarted = 'now'\n\
                    [[fix]]\naction = 'create-index'\nindex = 'I x'\nrelation = 'a.t'\n\
                    columns = ['x', 'Y']\nmethod = 'hash'\n\
                    [[fix]]\naction = 'mtu'\ninterface = 'eth0'\nmtu = 1500";
        let actions = parse(text).unwrap();
        assert_eq!(parse(&print(&actions)).unwrap(), actions);
    }
}
