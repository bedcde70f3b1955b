//! A session that lasts for several statements: a psql process that is sent one after the other.
//!
//! Invariant: values are only in this process and in psql's pipes, not in files or arguments.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::psql::Place;

/// Marks the end of an answer. No line of COPY starts with a tab and this text.
const END: &str = "\tconfide: end of the answer";

/// See the module.
pub struct Session {
    psql: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Why a statement failed.
#[derive(Debug)]
pub enum Trouble {
    /// The server refused the statement; psql has printed the reason.
    Refused(String),
    /// The session has ended.
    Gone(String),
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> String {
        match trouble {
            Trouble::Refused(state) => format!("the server refuses a statement ({state})"),
            Trouble::Gone(why) => format!("psql: {why}"),
        }
    }
}

type Answer = Result<Vec<String>, Trouble>;

impl Session {
    /// Connects.
    pub fn begin(place: &Place) -> Result<Session, String> {
        let mut command = place.program("psql");
        command.args(["-X", "-q", "-A", "-t", "-F", "\t", "-f", "-"]);
        if !place.dbname.is_empty() {
            command.args(["--dbname", &place.dbname]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut psql = command.spawn().map_err(|e| format!("psql: {e}"))?;
        let input = psql.stdin.take();
        let output = psql.stdout.take().ok_or("psql has no output")?;
        Ok(Session {
            psql,
            input,
            output: BufReader::new(output),
        })
    }

    /// Runs a statement; returns the lines of its result.
    pub fn ask(&mut self, sql: &str) -> Answer {
        self.tell(&format!("{sql};\n"))
    }

    /// Sends rows in COPY format.
    pub fn copy(&mut self, into: &str, rows: &[String]) -> Answer {
        let mut text = format!("COPY {into} FROM STDIN;\n");
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        text.push_str("\\.\n");
        self.tell(&text)
    }

    fn tell(&mut self, text: &str) -> Answer {
        let gone = |e: std::io::Error| Trouble::Gone(e.to_string());
        let ended = || Trouble::Gone("the session has ended".to_owned());
        let input = self.input.as_mut().ok_or_else(ended)?;
        input.write_all(text.as_bytes()).map_err(gone)?;
        let mark = format!("\\echo '{END}' :ERROR :SQLSTATE\n");
        input.write_all(mark.as_bytes()).map_err(gone)?;
        input.flush().map_err(gone)?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).map_err(gone)? == 0 {
                return Err(ended());
            }
            let line = line.trim_end_matches('\n');
            match line.strip_prefix(END) {
                None => lines.push(line.to_owned()),
                Some(state) => {
                    return match state.trim().split_once(' ') {
                        Some(("false", _)) => Ok(lines),
                        Some((_, state)) => Err(Trouble::Refused(state.to_owned())),
                        None => Err(ended()),
                    };
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // psql exits at the end of its input, and the open transaction is rolled back.
        self.input = None;
        let _ = self.psql.wait();
    }
}
