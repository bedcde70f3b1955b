//! Logs of calls: a line for each, fields with tabs between them.
//!
//! `call`, operation, type of the result (`-`: it is declassified), immediate, outcome, and for
//! each operand its type, its column (`-`: a constant or something computed) and its text. A line
//! `set` holds a setting of the session and its value. Tabs, line ends and backslashes within a
//! field are escaped as in COPY.
//!
//! Who writes one: a keeper, for a client that asks for it (docs/maintenance.md); who reads it: `crates/anonymise`.
//!
//! Invariant: what is read is what was written; a line that is none of these is an error that
//! names its number and does not quote it.
#![forbid(unsafe_code)]

use contract::{Op, TypeCode};
use std::fmt;
use values::{Env, Value, format_text, parse_text};

/// What stands in the first line.
pub const HEADER: &str = "confide-calls\t1";

/// What came of a call, as far as it is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Declassified: a boolean, or an order.
    Answer(&'static str),
    /// A value, which is not told.
    Value,
    /// NULL.
    Null,
    /// An error's SQLSTATE.
    Error(String),
    /// The operator panicked.
    Panic,
    /// It passed more edges than any operator does.
    Endless,
    /// The process died.
    Died,
    /// The call was not seen to end.
    Unknown,
}

const ANSWERS: [&str; 5] = ["true", "false", "<", "=", ">"];

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Answer(answer) => answer,
            Outcome::Value => "value",
            Outcome::Null => "null",
            Outcome::Error(sqlstate) => return write!(f, "error {sqlstate}"),
            Outcome::Panic => "panic",
            Outcome::Endless => "endless",
            Outcome::Died => "died",
            Outcome::Unknown => "?",
        })
    }
}

impl Outcome {
    /// The outcome that is written so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Outcome> {
        if let Some(answer) = ANSWERS.iter().find(|answer| **answer == text) {
            return Some(Outcome::Answer(answer));
        }
        Some(match text {
            "value" => Outcome::Value,
            "null" => Outcome::Null,
            "panic" => Outcome::Panic,
            "endless" => Outcome::Endless,
            "died" => Outcome::Died,
            "?" => Outcome::Unknown,
            _ => {
                let sqlstate = text.strip_prefix("error ")?;
                let right =
                    sqlstate.len() == 5 && sqlstate.bytes().all(|b| b.is_ascii_alphanumeric());
                return right.then(|| Outcome::Error(sqlstate.into()));
            }
        })
    }
}

/// An operand.
#[derive(Clone)]
pub struct Operand {
    /// Its column, if it is a value of one.
    pub column: Option<String>,
    /// The value.
    pub value: Value,
}

/// A call of an operator.
#[derive(Clone)]
pub struct Call {
    /// The operation.
    pub op: Op,
    /// Type of the result; none: it is declassified.
    pub ret: Option<TypeCode>,
    /// The immediate.
    pub immediate: i32,
    /// What came of it.
    pub outcome: Outcome,
    /// The operands. None is NULL: operators are strict.
    pub operands: Vec<Operand>,
}

/// A log of calls.
#[derive(Default)]
pub struct Log {
    /// Settings of the session.
    pub settings: Vec<(String, String)>,
    /// The calls, in their order.
    pub calls: Vec<Call>,
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                '\\' => '\\',
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

fn type_named(name: &str) -> Option<TypeCode> {
    let mut types = TypeCode::ALL.iter().copied();
    types.find(|t| t.plain_name() == name)
}

fn operation_named(name: &str) -> Option<Op> {
    Op::ALL.iter().copied().find(|op| format!("{op:?}") == name)
}

/// A value from its text, as it is and not cut or padded.
///
/// # Errors
/// When it is none of the type.
pub fn value(t: TypeCode, text: &str, env: &Env) -> Result<Value, values::Error> {
    match t {
        TypeCode::Text | TypeCode::Varchar => Ok(Value::Text(text.as_bytes().into())),
        TypeCode::Bpchar => Ok(Value::Bpchar(text.as_bytes().into())),
        t => parse_text(t, -1, text.as_bytes(), env),
    }
}

/// The text of a value.
#[must_use]
pub fn text(value: &Value) -> String {
    String::from_utf8_lossy(&format_text(value, &Env::default())).into_owned()
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ret = self.ret.map_or("-", TypeCode::plain_name);
        let Call {
            op,
            immediate,
            outcome,
            ..
        } = self;
        write!(f, "call\t{op:?}\t{ret}\t{immediate}\t{outcome}")?;
        for operand in &self.operands {
            let column = operand.column.as_deref().unwrap_or("-");
            let t = operand.value.type_code().plain_name();
            write!(
                f,
                "\t{t}\t{}\t{}",
                escape(column),
                escape(&text(&operand.value))
            )?;
        }
        Ok(())
    }
}

impl Call {
    /// The call in a line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Call> {
        let mut fields = line.split('\t');
        if fields.next() != Some("call") {
            return None;
        }
        let op = operation_named(fields.next()?)?;
        let ret = match fields.next()? {
            "-" => None,
            name => Some(type_named(name)?),
        };
        let immediate = fields.next()?.parse().ok()?;
        let outcome = Outcome::parse(fields.next()?)?;
        let env = Env::default();
        let mut operands = Vec::new();
        while let Some(t) = fields.next() {
            let t = type_named(t)?;
            let column = Some(unescape(fields.next()?)?).filter(|name| name != "-");
            let value = value(t, &unescape(fields.next()?)?, &env).ok()?;
            operands.push(Operand { column, value });
        }
        if !(1..=8).contains(&operands.len()) {
            return None;
        }
        Some(Call {
            op,
            ret,
            immediate,
            outcome,
            operands,
        })
    }

    /// What the log is called by in messages: its operation and its columns, no value.
    #[must_use]
    pub fn name(&self) -> String {
        let operands: Vec<_> = self
            .operands
            .iter()
            .map(|o| match &o.column {
                Some(column) => column.clone(),
                None => format!("constant {}", o.value.type_code().plain_name()),
            })
            .collect();
        format!("{:?}({})", self.op, operands.join(", "))
    }
}

/// The line of a call with another outcome.
#[must_use]
pub fn with_outcome(line: &str, outcome: &str) -> String {
    let mut fields: Vec<&str> = line.split('\t').collect();
    if let Some(field) = fields.get_mut(4) {
        *field = outcome;
    }
    fields.join("\t")
}

impl Log {
    /// The log in a text.
    ///
    /// # Errors
    /// The number of a line that is none.
    pub fn parse(text: &str) -> Result<Log, String> {
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEADER) {
            return Err("it is no log of calls of this version".into());
        }
        let mut log = Log::default();
        for (number, line) in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["set", name, value] => {
                    let setting = unescape(name).zip(unescape(value));
                    log.settings.push(setting.ok_or_else(|| bad(number))?);
                }
                ["call", ..] => log
                    .calls
                    .push(Call::parse(line).ok_or_else(|| bad(number))?),
                _ => return Err(bad(number)),
            }
        }
        log.env()?;
        Ok(log)
    }

    /// The session's settings, as values depend on them.
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn env(&self) -> Result<Env, String> {
        let mut env = Env::default();
        env.set_now(0);
        for (name, value) in &self.settings {
            if name == "now" {
                env.set_now(value.parse().map_err(|_| "the clock is no number")?);
            } else {
                env.set(name, value).map_err(|e| e.to_string())?;
            }
        }
        Ok(env)
    }
}

fn bad(number: usize) -> String {
    format!("line {}: it is no call", number + 1)
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for (name, value) in &self.settings {
            writeln!(f, "set\t{}\t{}", escape(name), escape(value))?;
        }
        for call in &self.calls {
            writeln!(f, "{call}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let text = format!(
            "{HEADER}\nset\tTimeZone\tEurope/Berlin\n\
             call\tLike\t-\t0\ttrue\ttext\ts.t.name\tA\\tb\\\\\ttext\t-\tA%\n\
             call\tDiv\tint4\t0\terror 22012\tint4\ts.t.n\t5\tint4\t-\t0\n\
             call\tSub\tinterval\t0\tvalue\ttimestamp\t-\t2020-02-29 00:00:00.000001\ttimestamp\t-\t-infinity\n"
        );
        let log = Log::parse(&text).expect("a log");
        assert_eq!(log.to_string(), text);
        assert_eq!(log.calls[0].name(), "Like(s.t.name, constant text)");
    }

    /// With a bug an error shows what stood in the line.
    #[test]
    fn errors_say_nothing() {
        for line in [
            "call\tLike\t-\t0\ttrue\tint4\t-\tsecret",
            "secret",
            "call\tSecret\t-\t0\t?",
        ] {
            let error = Log::parse(&format!("{HEADER}\n{line}\n")).err();
            assert_eq!(error.as_deref(), Some("line 2: it is no call"));
        }
    }
}
