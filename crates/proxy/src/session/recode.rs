//! ALTER TABLE … ALTER COLUMN … TYPE between families whose values must pass the client
//! (docs/families.md, "Changing the family").
//!
//! The proxy acts as the application for a while: it feeds statements into its own connection and
//! hears the answers, so they are analysed, sealed, opened and authorised like any others. Under
//! a lock the values are read by the batch and written, in their new type, into a temporary table
//! beside the rows' places; then PostgreSQL itself alters the column USING them. So keys, indexes,
//! NOT NULL and what PostgreSQL refuses are its own.
//!
//! Not here: which changes these are (`rewrite::Recoding`).
//!
//! Invariants: everything is one transaction, the client's if it has begun one; the client gets one
//! answer; a value goes to the server only through the analysis.
use std::collections::VecDeque;
use std::mem::take;

use bytes::{Bytes, BytesMut};
use client::Failure;
use rewrite::{RECODING as NAME, Recoding, Row};

use super::{Core, Flow, Step};
use crate::wire::{backend, frame, frontend};

/// Rows that are read and written together.
const BATCH: usize = 5000;

/// What the last statement was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Begin,
    Owner,
    Lock,
    Viewer,
    Method,
    Table,
    Type,
    Function,
    Cursor,
    Fetch,
    Copy,
    Close,
    Alter,
    Clean,
    Commit,
    Rollback,
}

/// A change of a column's family in progress.
pub(super) struct Script {
    recoding: Recoding,
    at: At,
    /// The transaction was begun here.
    own: bool,
    /// What goes to the connection next, as if the client had sent it.
    frames: VecDeque<Bytes>,
    /// What the client has not been sent yet of the time before.
    aside: BytesMut,
    /// Of the answer to the current statement.
    rows: Vec<Row>,
    error: Option<Bytes>,
    /// The new type, with the key that the server chose.
    target: String,
    /// Values so far, and the table's estimate.
    done: usize,
    estimate: String,
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn message(fill: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::new();
    fill(&mut out);
    out.freeze()
}

/// A row in the text format of COPY.
fn copy_line(row: &Row, out: &mut Vec<u8>) {
    for (at, field) in row.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        let Some(field) = field else {
            out.extend_from_slice(b"\\N");
            continue;
        };
        for byte in field.bytes() {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                other => out.push(other),
            }
        }
    }
    out.push(b'\n');
}

/// Why a change is refused before anything is read.
fn refused(recoding: &Recoding) -> Option<Failure> {
    (!recoding.alike).then(|| {
        Failure::new(
            "0A000",
            format!(
                "confide: column \"{}\" cannot change its family and its type at once",
                recoding.column
            ),
        )
        .hint("Change one after the other.")
    })
}

impl Script {
    fn table(&self) -> String {
        let Recoding { schema, table, .. } = &self.recoding;
        format!("{}.{}", quoted(schema), quoted(table))
    }

    /// The statement for this step.
    fn sql(&self, at: At) -> String {
        let (table, column) = (self.table(), quoted(&self.recoding.column));
        match at {
            At::Begin => "BEGIN".to_owned(),
            At::Owner => format!(
                "SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE')::text, c.reltuples::int8::text, \
                 (c.relispartition OR c.relhassubclass)::text \
                 FROM pg_catalog.pg_class c WHERE c.oid = '{}'::regclass",
                table.replace('\'', "''")
            ),
            At::Lock => format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"),
            // Whoever may not see the values would read their masks; a condition on them is refused.
            At::Viewer => format!("SELECT 1 FROM {table} WHERE {column} <> {column} LIMIT 1"),
            At::Method => format!("ALTER TABLE {table} SET ACCESS METHOD confide"),
            At::Table => format!(
                "CREATE TEMP TABLE {NAME} (place tid PRIMARY KEY, value {})",
                self.recoding.target
            ),
            At::Type => format!(
                "SELECT pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute \
                 WHERE attrelid = 'pg_temp.{NAME}'::regclass AND attname = 'value'"
            ),
            // A place that is not there is an error, not NULL.
            At::Function => format!(
                "CREATE FUNCTION pg_temp.{NAME}(tid) RETURNS {} LANGUAGE plpgsql AS $$\n\
                 DECLARE v pg_temp.{NAME}.value%TYPE;\nBEGIN\n\
                 SELECT r.value INTO STRICT v FROM pg_temp.{NAME} r WHERE r.place = $1;\n\
                 RETURN v;\nEND $$",
                self.recoding.target
            ),
            At::Cursor => format!(
                "DECLARE {NAME} NO SCROLL CURSOR FOR SELECT ctid, {column} FROM ONLY {table}"
            ),
            At::Fetch => format!("FETCH {BATCH} FROM {NAME}"),
            At::Copy => format!("COPY pg_temp.{NAME} (place, value) FROM STDIN"),
            At::Close => format!("CLOSE {NAME}"),
            At::Alter => format!(
                "ALTER TABLE {table} ALTER COLUMN {column} TYPE {} USING pg_temp.{NAME}(ctid)",
                self.target
            ),
            At::Clean => {
                format!("DROP FUNCTION pg_temp.{NAME}(tid); DROP TABLE pg_temp.{NAME}")
            }
            At::Commit => "COMMIT".to_owned(),
            At::Rollback => "ROLLBACK".to_owned(),
        }
    }

    fn send(&mut self, at: At) {
        self.at = at;
        let sql = self.sql(at);
        self.frames
            .push_back(message(|out| frontend::query(out, &sql)));
        if at == At::Copy {
            let mut lines = Vec::new();
            for row in take(&mut self.rows) {
                self.done += 1;
                copy_line(&row, &mut lines);
            }
            self.frames
                .push_back(message(|out| frontend::copy_data(out, &lines)));
            self.frames
                .push_back(message(|out| frontend::bare(out, b'c')));
        }
    }

    /// The first field of the answer.
    fn field(&self, at: usize) -> &str {
        let row = self.rows.first().and_then(|row| row.get(at));
        row.and_then(Option::as_deref).unwrap_or_default()
    }

    /// What follows a statement that has succeeded; an error if the change is not possible.
    fn following(&mut self) -> Result<Option<At>, Failure> {
        let Recoding {
            to_keeper,
            from_keeper,
            ..
        } = self.recoding;
        Ok(Some(match self.at {
            At::Begin => At::Owner,
            At::Owner => {
                self.may()?;
                self.estimate = self.field(1).to_owned();
                At::Lock
            }
            At::Lock if from_keeper => At::Viewer,
            At::Lock | At::Viewer if to_keeper => At::Method,
            At::Lock | At::Viewer | At::Method => At::Table,
            At::Table => At::Type,
            At::Type => {
                self.target = self.field(0).to_owned();
                At::Function
            }
            At::Function => At::Cursor,
            At::Cursor | At::Copy => At::Fetch,
            At::Fetch if self.rows.is_empty() => At::Close,
            At::Fetch => At::Copy,
            At::Close => At::Alter,
            At::Alter => At::Clean,
            At::Clean if self.own => At::Commit,
            At::Clean | At::Commit | At::Rollback => return Ok(None),
        }))
    }

    /// Whether the user may change this table, and it is one that is read as a whole.
    fn may(&self) -> Result<(), Failure> {
        let table = &self.recoding.table;
        if self.field(0) != "true" {
            let what = format!("must be owner of table {table}");
            return Err(Failure::new("42501", what));
        }
        if self.field(2) != "false" {
            let what = format!("confide: table \"{table}\" is a partition, or has children");
            return Err(Failure::new("0A000", what)
                .detail("Values that must pass the client are moved in tables of their own only.")
                .hint("Write them into a new table."));
        }
        Ok(())
    }
}

impl Core {
    /// Begins to change the family of a column.
    pub(super) fn recode(&mut self, recoding: Recoding) -> Flow {
        if let Some(failure) = refused(&recoding) {
            return self.refuse_query(failure);
        }
        if self.pipeline {
            return self.refuse_query(alone());
        }
        if !self.queue.is_empty() {
            return self.wait_for(super::Wait::Drain);
        }
        self.again.forbid();
        let own = self.status == b'I';
        let mut script = Script {
            recoding,
            at: At::Begin,
            own,
            frames: VecDeque::new(),
            aside: take(&mut self.to_client),
            rows: Vec::new(),
            error: None,
            target: String::new(),
            done: 0,
            estimate: String::new(),
        };
        script.send(if own { At::Begin } else { At::Owner });
        self.script = Some(Box::new(script));
        Flow::Done
    }

    /// The next frame of a script.
    pub(super) fn fed(&mut self) -> Option<Bytes> {
        self.script.as_mut()?.frames.pop_front()
    }

    /// From here on what is said to the client is for the script, if there is one.
    pub(super) fn listen(&mut self) {
        if let Some(script) = &mut self.script {
            script.aside = take(&mut self.to_client);
        }
    }

    /// Reads what was said since `listen`; the client gets only what is meant for it.
    pub(super) fn hear(&mut self) -> Step {
        let Some(script) = &mut self.script else {
            return Ok(());
        };
        let mut said = take(&mut self.to_client);
        self.to_client = take(&mut script.aside);
        while let Some(length) = frame::first(&said, usize::MAX)? {
            let one = said.split_to(length).freeze();
            let Some(script) = &mut self.script else {
                self.to_client.extend_from_slice(&one);
                continue;
            };
            match one.first() {
                Some(b'D') => {
                    let text =
                        |v: Option<&[u8]>| v.map(|v| String::from_utf8_lossy(v).into_owned());
                    let row = backend::row(frame::body(&one))?;
                    script.rows.push(row.into_iter().map(text).collect());
                }
                Some(b'E') => script.error = Some(one),
                Some(b'N' | b'S' | b'A') => self.to_client.extend_from_slice(&one),
                Some(b'Z') => self.stepped(),
                _ => {}
            }
        }
        Ok(())
    }

    /// A statement of the script is over.
    fn stepped(&mut self) {
        let Some(script) = &mut self.script else {
            return;
        };
        let failed = script.error.is_some();
        let next = match (script.at, failed) {
            (At::Rollback | At::Commit, true) | (At::Rollback, _) => None,
            (_, true) => script.own.then_some(At::Rollback),
            (_, false) => match script.following() {
                Ok(next) => next,
                Err(failure) if script.own => {
                    script.error = Some(message(|out| backend::error(out, "ERROR", &failure)));
                    Some(At::Rollback)
                }
                Err(failure) => {
                    // The client's transaction fails with it.
                    self.script = None;
                    let _ = self.refuse_query(failure);
                    return;
                }
            },
        };
        if script.at == At::Copy && !failed && script.done >= BATCH {
            let told = format!(
                "confide: {} values of about {}",
                script.done, script.estimate
            );
            backend::notice(&mut self.to_client, "INFO", "00000", &told);
        }
        let Some(next) = next else {
            return self.answered();
        };
        script.send(next);
        script.rows.clear();
    }

    /// The whole is done, or has failed.
    fn answered(&mut self) {
        let Some(script) = self.script.take() else {
            return;
        };
        let status = self.status;
        match script.error {
            Some(error) => self.to_client.extend_from_slice(&error),
            None => backend::complete(&mut self.to_client, "ALTER TABLE"),
        }
        backend::ready(&mut self.to_client, status);
    }
}

/// The refusal of a change in a text with others, or in the extended protocol.
pub(super) fn alone() -> Failure {
    Failure::new(
        "0A000",
        "confide: a change of a column's family that values must pass the client for is a statement of its own",
    )
    .hint("Send it by itself, without parameters (as a simple query).")
}

#[cfg(test)]
mod tests {
    use super::copy_line;

    /// What COPY reads back is what was read: delimiters, backslashes and NULL.
    #[test]
    fn lines() {
        let row = vec![
            Some("(0,1)".to_owned()),
            Some("a\tb\\N\n\r".to_owned()),
            None,
        ];
        let mut out = Vec::new();
        copy_line(&row, &mut out);
        assert_eq!(out, b"(0,1)\ta\\tb\\\\N\\n\\r\t\\N\n");
    }
}
