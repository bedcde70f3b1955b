//! Batches of cases: collects them, has psql evaluate them, compares.

use contract::TypeCode;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use values::*;

/// A small generator of pseudo-random numbers (xorshift64*).
pub struct Rng(u64);

impl Rng {
    pub fn new(salt: u64) -> Rng {
        let seed: u64 = std::env::var("CONFIDE_ORACLE_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(1);
        Rng(
            (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03))
                | 1,
        )
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 1) as i64 % (high - low + 1)
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    pub fn digits(&mut self, n: usize) -> String {
        (0..n)
            .map(|_| (b'0' + self.below(10) as u8) as char)
            .collect()
    }
}

pub fn count(base: usize) -> usize {
    let scale: f64 = std::env::var("CONFIDE_ORACLE_CASES")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1.0);
    (base as f64 * scale) as usize
}

/// Settings of a session, for both sides.
#[derive(Clone, Default)]
pub struct Settings(pub Vec<(&'static str, String)>);

impl Settings {
    pub fn new(of: &[(&'static str, &str)]) -> Settings {
        Settings(of.iter().map(|(n, v)| (*n, v.to_string())).collect())
    }

    pub fn env(&self) -> Env {
        let mut env = Env::default();
        for (name, value) in &self.0 {
            env.set(name, value)
                .unwrap_or_else(|e| panic!("{name} = {value}: {e}"));
        }
        env
    }
}

thread_local! {
    /// Whether any batch of this test differed.
    static FAILED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Fails the test if any of its batches differed.
pub fn verdict() {
    assert!(!FAILED.with(|f| f.get()), "differences, see above");
}

pub struct Case {
    sql: String,
    ours: Result<Vec<u8>>,
}

pub struct Batch {
    settings: Settings,
    pub env: Env,
    cases: Vec<Case>,
    known: HashSet<String>,
}

impl Batch {
    pub fn new(settings: Settings) -> Batch {
        let env = settings.env();
        Batch {
            settings,
            env,
            cases: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// A case with any text as result.
    pub fn text(&mut self, sql: String, ours: Result<Vec<u8>>) {
        if self.known.insert(sql.clone()) {
            self.cases.push(Case { sql, ours });
        }
    }

    /// A case with a value as result.
    pub fn value(&mut self, sql: String, ours: Result<Value>) {
        let text = ours.map(|v| format_text(&v, &self.env));
        self.text(sql, text);
    }

    pub fn bool(&mut self, sql: String, ours: Result<bool>) {
        self.value(sql, ours.map(Value::Bool));
    }

    /// Runs the batch; panics with the differences.
    pub fn run(self, name: &str) {
        let Ok(url) = std::env::var("CONFIDE_ORACLE") else {
            eprintln!("skipped: CONFIDE_ORACLE is not set");
            return;
        };
        let mut script = String::from(
            "\\set ON_ERROR_STOP 1\nset client_min_messages = warning;\n\
             create function pg_temp.ev(q text) returns text language plpgsql as $f$\n\
             declare r text; begin\n\
             execute 'select case when x is null then ''NULL'' else ''='' || format(''%s'', x) end \
             from (select ' || q || ' as x) s' into r;\n\
             return r;\n\
             exception when others then\n\
             return '!' || sqlstate || sqlerrm; end $f$;\n",
        );
        // Receive functions can only be reached through COPY.
        script.push_str(
            "create function pg_temp.recv(t text, octal text) returns text language plpgsql as $f$\n\
             declare r text; begin\n\
             execute 'create temp table received (x ' || t || ')';\n\
             execute format('copy received from program %L with (format binary)', \
             'printf ''' || octal || '''');\n\
             execute 'select format(''%s'', x) from received' into r;\n\
             drop table received;\n\
             return r; end $f$;\n",
        );
        for (name, value) in &self.settings.0 {
            let _ = writeln!(script, "set {name} = {};", quote(value));
        }
        for case in &self.cases {
            let _ = writeln!(
                script,
                "select encode(convert_to(pg_temp.ev({}), 'UTF8'), 'hex');",
                quote(&case.sql)
            );
        }
        let answers = psql(&url, &script);
        assert_eq!(answers.len(), self.cases.len(), "answers of {name}");
        let mut wrong = 0;
        let mut report = String::new();
        for (case, theirs) in self.cases.iter().zip(&answers) {
            let ours = match &case.ours {
                Ok(text) => format!("={}", String::from_utf8_lossy(text)),
                Err(e) if e.is_null() => "NULL".to_string(),
                Err(e) => format!("!{}{}", e.sqlstate_str(), e.message),
            };
            if !same(&ours, theirs) && !known_deviation(&case.sql, &ours) {
                wrong += 1;
                if wrong <= 60 {
                    let _ = writeln!(
                        report,
                        "{}\n    PostgreSQL {}\n    ours       {}",
                        cut(&case.sql),
                        cut(theirs),
                        cut(&ours)
                    );
                }
            }
        }
        eprintln!("{name}: {} cases, {wrong} differ", self.cases.len());
        if wrong > 0 {
            eprintln!("{report}");
            FAILED.with(|f| f.set(true));
        }
    }
}

pub fn cut(s: &str) -> String {
    if s.len() <= 400 {
        s.to_string()
    } else {
        format!("{}…", s.chars().take(400).collect::<String>())
    }
}

/// Where this crate gives an error on purpose, and PostgreSQL does not.
///
/// A POSIX zone with daylight-saving time more than a day from UTC
/// (`x3.158`): jiff does not take it. A day of a year that PostgreSQL's 32-bit
/// Julian day wraps around (`405061999.008`).
fn known_deviation(sql: &str, ours: &str) -> bool {
    match ours {
        "!22023time zone not recognized" => sql.as_bytes().windows(3).any(|w| {
            let signed = matches!(w[1], b'+' | b'-') && w[2].is_ascii_digit();
            w[0].is_ascii_alphabetic() && (w[1].is_ascii_digit() || signed)
        }),
        "!22008date out of range" | "!22008timestamp out of range" => sql.contains(".0"),
        _ => false,
    }
}

/// Same text, or same SQLSTATE and same message but for quoted values.
pub fn same(ours: &str, theirs: &str) -> bool {
    if let (Some(a), Some(b)) = (ours.strip_prefix('!'), theirs.strip_prefix('!')) {
        return bare(a) == bare(b);
    }
    ours == theirs
}

/// A message without the value: PostgreSQL quotes it at the end or at the start.
pub fn bare(message: &str) -> String {
    let state = &message[..5];
    // Messages that only say the value differently, or name a function.
    let text = &message[5..];
    let text = text.split_once(": \"").map_or(text, |(head, _)| head);
    let text = text.split_once(": 0x").map_or(text, |(head, _)| head);
    let text = match text.strip_prefix('"').and_then(|t| t.rsplit_once("\" is ")) {
        Some((_, tail)) => format!("value is {tail}"),
        None => text.to_string(),
    };
    let text = match (text.starts_with("value \""), text.rsplit_once("\" is ")) {
        (true, Some((_, tail))) => format!("value is {tail}"),
        _ => text,
    };
    let text = match (text.starts_with("time zone \""), text.rsplit_once('"')) {
        (true, Some((_, tail))) => format!("time zone{tail}"),
        _ => text,
    };
    if text.starts_with("operator does not exist") || text.starts_with("function") {
        return state.to_string();
    }
    format!("{state}{text}")
}

pub fn quote(s: &str) -> String {
    format!("'{}'", s.replace('\'', "''"))
}

pub fn psql(url: &str, script: &str) -> Vec<String> {
    let mut child = Command::new("psql")
        .args([url, "-X", "-q", "-A", "-t", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql");
    let mut stdin = child.stdin.take().unwrap();
    let script = script.to_string();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    assert!(
        output.status.success(),
        "psql: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let unhex = |line: &str| {
        let bytes: Vec<u8> = (0..line.len() / 2)
            .map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        String::from_utf8(bytes).unwrap()
    };
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(unhex)
        .collect()
}

/// The input function of a type.
pub fn input_function(t: TypeCode) -> &'static str {
    match t {
        TypeCode::Bool => "boolin",
        TypeCode::Int2 => "int2in",
        TypeCode::Int4 => "int4in",
        TypeCode::Int8 => "int8in",
        TypeCode::Float4 => "float4in",
        TypeCode::Float8 => "float8in",
        TypeCode::Numeric => "numeric_in",
        TypeCode::Text => "textin",
        TypeCode::Varchar => "varcharin",
        TypeCode::Bpchar => "bpcharin",
        TypeCode::Bytea => "byteain",
        TypeCode::Date => "date_in",
        TypeCode::Time => "time_in",
        TypeCode::Timestamp => "timestamp_in",
        TypeCode::Timestamptz => "timestamptz_in",
        TypeCode::Interval => "interval_in",
        TypeCode::Uuid => "uuid_in",
        TypeCode::Json => "json_in",
        TypeCode::Jsonb => "jsonb_in",
    }
}

pub fn send_function(t: TypeCode) -> String {
    match t {
        TypeCode::Bool
        | TypeCode::Int2
        | TypeCode::Int4
        | TypeCode::Int8
        | TypeCode::Float4
        | TypeCode::Float8
        | TypeCode::Text
        | TypeCode::Varchar
        | TypeCode::Bpchar
        | TypeCode::Bytea => format!("{}send", t.plain_name()),
        _ => format!("{}_send", t.plain_name()),
    }
}

pub fn has_typmod(t: TypeCode) -> bool {
    matches!(
        t,
        TypeCode::Numeric
            | TypeCode::Varchar
            | TypeCode::Bpchar
            | TypeCode::Time
            | TypeCode::Timestamp
            | TypeCode::Timestamptz
            | TypeCode::Interval
    )
}

pub fn input_sql(t: TypeCode, typmod: i32, s: &str) -> String {
    let function = input_function(t);
    if has_typmod(t) {
        format!("{function}({}::cstring, 0, {typmod})", quote(s))
    } else {
        format!("{function}({}::cstring)", quote(s))
    }
}

/// A typed literal: its SQL, and our value.
pub fn literal(t: TypeCode, s: &str, env: &Env) -> Option<(String, Value)> {
    let v = parse_text(t, -1, s.as_bytes(), env).ok()?;
    Some((format!("{}::{}", quote(s), t.plain_name()), v))
}

pub fn default_settings() -> Settings {
    Settings::new(&[("timezone", "UTC")])
}

/// Rows of a query that gives one column in hex; none without an oracle.
pub fn rows(query: &str) -> Vec<String> {
    std::env::var("CONFIDE_ORACLE")
        .map(|url| psql(&url, &format!("{query};")))
        .unwrap_or_default()
}
