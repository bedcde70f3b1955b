//! Compares this crate with a running PostgreSQL 15 on generated inputs.
//!
//! Mechanism: each case is an SQL expression and what this crate makes of the
//! same; `psql` evaluates all expressions of a batch, and text or SQLSTATE and
//! message (without quoted values) must agree. The right answer is PostgreSQL's;
//! a bug shows as a list of expressions with both answers.
//!
//! Needs `CONFIDE_ORACLE` (a libpq URL of a superuser); without it the tests say
//! so and do nothing. `CONFIDE_ORACLE_CASES` scales the number of generated
//! cases, `CONFIDE_ORACLE_SEED` varies them.

use contract::{Aggregate, Op, TypeCode, Unit};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use values::*;

const TYPES: &[TypeCode] = TypeCode::ALL;

/// A small generator of pseudo-random numbers (xorshift64*).
struct Rng(u64);

impl Rng {
    fn new(salt: u64) -> Rng {
        let seed: u64 = std::env::var("CONFIDE_ORACLE_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(1);
        Rng(
            (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03))
                | 1,
        )
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 1) as i64 % (high - low + 1)
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn digits(&mut self, n: usize) -> String {
        (0..n)
            .map(|_| (b'0' + self.below(10) as u8) as char)
            .collect()
    }
}

fn count(base: usize) -> usize {
    let scale: f64 = std::env::var("CONFIDE_ORACLE_CASES")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1.0);
    (base as f64 * scale) as usize
}

/// Settings of a session, for both sides.
#[derive(Clone, Default)]
struct Settings(Vec<(&'static str, String)>);

impl Settings {
    fn new(of: &[(&'static str, &str)]) -> Settings {
        Settings(of.iter().map(|(n, v)| (*n, v.to_string())).collect())
    }

    fn env(&self) -> Env {
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
fn verdict() {
    assert!(!FAILED.with(|f| f.get()), "differences, see above");
}

struct Case {
    sql: String,
    ours: Result<Vec<u8>>,
}

struct Batch {
    settings: Settings,
    env: Env,
    cases: Vec<Case>,
    known: HashSet<String>,
}

impl Batch {
    fn new(settings: Settings) -> Batch {
        let env = settings.env();
        Batch {
            settings,
            env,
            cases: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// A case with any text as result.
    fn text(&mut self, sql: String, ours: Result<Vec<u8>>) {
        if self.known.insert(sql.clone()) {
            self.cases.push(Case { sql, ours });
        }
    }

    /// A case with a value as result.
    fn value(&mut self, sql: String, ours: Result<Value>) {
        let text = ours.map(|v| format_text(&v, &self.env));
        self.text(sql, text);
    }

    fn bool(&mut self, sql: String, ours: Result<bool>) {
        self.value(sql, ours.map(Value::Bool));
    }

    /// Runs the batch; panics with the differences.
    fn run(self, name: &str) {
        let Ok(url) = std::env::var("CONFIDE_ORACLE") else {
            eprintln!("skipped: CONFIDE_ORACLE is not set");
            return;
        };
        let mut script = String::from(
            "\\set ON_ERROR_STOP 1\nset client_min_messages = warning;\n\
             create function pg_temp.ev(q text) returns text language plpgsql as $f$\n\
             declare r text; h text; begin\n\
             execute 'select case when x is null then ''NULL'' else ''='' || format(''%s'', x) end \
             from (select ' || q || ' as x) s' into r;\n\
             return r;\n\
             exception when others then\n\
             get stacked diagnostics h = pg_exception_detail;\n\
             return '!' || sqlstate || sqlerrm; end $f$;\n",
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
            if !same(&ours, theirs) {
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

fn cut(s: &str) -> String {
    if s.len() <= 400 {
        s.to_string()
    } else {
        format!("{}…", s.chars().take(400).collect::<String>())
    }
}

/// Same text, or same SQLSTATE and same message but for quoted values.
fn same(ours: &str, theirs: &str) -> bool {
    if let (Some(a), Some(b)) = (ours.strip_prefix('!'), theirs.strip_prefix('!')) {
        return bare(a) == bare(b);
    }
    ours == theirs
}

/// A message without the value: PostgreSQL quotes it at the end or at the start.
fn bare(message: &str) -> String {
    let state = &message[..5];
    // Messages that only say the value differently, or name a function.
    let text = &message[5..];
    let text = match text.split_once(": \"") {
        Some((head, _)) => head,
        None => text,
    };
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

fn quote(s: &str) -> String {
    format!("'{}'", s.replace('\'', "''"))
}

fn psql(url: &str, script: &str) -> Vec<String> {
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
fn input_function(t: TypeCode) -> &'static str {
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
    }
}

fn send_function(t: TypeCode) -> String {
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

fn has_typmod(t: TypeCode) -> bool {
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

fn input_sql(t: TypeCode, typmod: i32, s: &str) -> String {
    let function = input_function(t);
    if has_typmod(t) {
        format!("{function}({}::cstring, 0, {typmod})", quote(s))
    } else {
        format!("{function}({}::cstring)", quote(s))
    }
}

/// A typed literal: its SQL, and our value.
fn literal(t: TypeCode, s: &str, env: &Env) -> Option<(String, Value)> {
    let v = parse_text(t, -1, s.as_bytes(), env).ok()?;
    Some((format!("{}::{}", quote(s), t.plain_name()), v))
}

const NUMERIC_EDGES: &[&str] = &[
    "0",
    "0.0",
    "0.000",
    "-0",
    "-0.00",
    "1",
    "-1",
    "1.0",
    "1.00",
    "10",
    "100",
    "9",
    "99",
    "999",
    "9999",
    "10000",
    "9999.9999",
    "99999999",
    "0.1",
    "0.01",
    "0.001",
    "0.0001",
    "0.00001",
    "0.99999999",
    "0.5",
    "1.5",
    "2.5",
    "-0.5",
    "-1.5",
    "-2.5",
    "0.49999",
    "0.50001",
    "3",
    "7",
    "3.14159265358979323846264338327950288",
    "123456789.987654321",
    "1e10",
    "1e20",
    "1e38",
    "170141183460469231731687303715884105727",
    "170141183460469231731687303715884105728",
    "-170141183460469231731687303715884105728",
    "1e-10",
    "1e-20",
    "1e-100",
    "1e100",
    "12345e-50",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "32767.5",
    "32768",
    "2147483647.49",
    "2147483647.5",
    "NaN",
    "Infinity",
    "-Infinity",
    "inf",
    "-inf",
    "1e1000",
    "1e-1000",
    "-9.99999999999999999999999999e30",
    "4999.9999",
    "5000.0001",
    "1e-16383",
    "1e131071",
    "-0.000000000000000000000000000000000000000000000000000000000000001",
    "0.33333333333333333333333333333333333333333333",
    "0.6666666666666666666666666666666666",
];

const FLOAT_EDGES: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "0.3",
    "1.5",
    "2.5",
    "3.5",
    "-2.5",
    "0.5",
    "1e15",
    "1e16",
    "999999999999999",
    "1e14",
    "123456789012345",
    "1e-4",
    "1e-5",
    "0.0001",
    "0.00012345",
    "1e22",
    "1e23",
    "9e22",
    "5e-324",
    "2.2250738585072014e-308",
    "2.225073858507201e-308",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "1e300",
    "1e-300",
    "NaN",
    "Infinity",
    "-Infinity",
    "9007199254740993",
    "9007199254740992",
    "4503599627370496.5",
    "1e6",
    "1e5",
    "999999",
    "123456",
    "1234567",
    "3.4028235e38",
    "1.1754944e-38",
    "1e-45",
    "1.4e-45",
    "16777216",
    "16777217",
    "32767.5",
    "32768",
    "2147483647.5",
    "2147483648",
    "-2147483648.5",
    "9223372036854775807",
    "9223372036854774784",
    "-9223372036854775808",
    "0.30000000000000004",
    "33554432",
    "8388608",
    "1e10",
    "1.23456789e-7",
    "2e-3",
];

const TEXT_EDGES: &[&str] = &[
    "",
    " ",
    "  ",
    "a",
    "A",
    "abc",
    "ABC",
    "abc ",
    " abc",
    "  abc  ",
    "aaa",
    "abcabc",
    "äöü",
    "Straße",
    "日本語",
    "日本",
    "😀x😀",
    "aä日😀",
    "a%b",
    "a_b",
    "a\\b",
    "%",
    "_",
    "\\",
    "\\\\",
    "xyxyx",
    "ab\tcd",
    "x'y",
    "ÀÉ",
    "é",
    "12",
    "12.5",
    "true",
    "2001-01-01",
    "ba",
    "bab",
    "Ab",
    "aB",
    "zzzzzzzzzzzz",
];

const PATTERNS: &[&str] = &[
    "",
    "%",
    "%%",
    "_",
    "__",
    "%_",
    "_%",
    "a%",
    "%a",
    "%a%",
    "a_c",
    "%b%",
    "\\%",
    "a\\%b",
    "a\\_b",
    "\\",
    "a\\",
    "%\\",
    "a%\\",
    "_\\",
    "%_\\",
    "\\\\",
    "%\\\\%",
    "äöü",
    "ä%",
    "_ö_",
    "%日%",
    "__語",
    "%x%",
    "%😀",
    "😀_😀",
    "A%",
    "abc",
    "ABC",
    "%c",
    "%bc",
    "_b_",
    "a%c%",
    "%abc%abc%",
    "%ab%ca%c",
    "%y%y%",
    "x%x",
    "%ß%",
    "%é",
    "\\a",
    "\\ä%",
    "abc ",
    "% ",
    "%  %",
];

const DATE_EDGES: &[&str] = &[
    "2000-01-01",
    "1999-12-31",
    "1970-01-01",
    "2000-02-29",
    "1900-02-28",
    "2004-02-29",
    "2001-12-31",
    "2020-03-29",
    "2021-10-31",
    "0001-01-01",
    "0001-12-31 BC",
    "4713-11-24 BC",
    "0044-03-15 BC",
    "0100-02-28 BC",
    "0005-02-28 BC",
    "5874897-12-31",
    "294276-12-31",
    "infinity",
    "-infinity",
    "10000-01-01",
    "12345-06-07",
    "9999-12-31",
    "2008-12-29",
    "2005-01-01",
    "2009-12-31",
    "epoch",
    "1-1-1",
    "2024-02-29",
    "0099-01-01",
    "2100-03-01",
    "4000-12-31",
];

const TIMESTAMP_EDGES: &[&str] = &[
    "2000-01-01 00:00:00",
    "1999-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2000-02-29 12:34:56.789",
    "2021-03-28 02:30:00",
    "2021-03-28 01:59:59.999999",
    "2021-03-28 03:00:00",
    "2021-10-31 02:30:00",
    "2021-10-31 03:00:00",
    "2021-03-14 02:30:00",
    "2021-11-07 01:30:00",
    "1883-11-18 12:00:00",
    "1850-01-01 00:00:00",
    "1945-05-24 02:30",
    "0001-01-01 00:00:00",
    "0001-12-31 23:59:59 BC",
    "4713-11-24 00:00:00 BC",
    "294276-12-31 23:59:59.999999",
    "infinity",
    "-infinity",
    "epoch",
    "2500-07-01 12:00:00",
    "10000-07-01 12:00:00",
    "12345-01-02 03:04:05",
    "2038-01-19 03:14:08",
    "2024-12-31 23:59:59.5",
    "2008-12-29 01:02:03.000001",
    "0044-03-15 12:00:00 BC",
    "200000-07-07 07:07:07.777777",
    "2014-10-26 01:30:00",
    "2011-12-30 12:00",
    "1999-01-08 04:05:06.1",
];

const TIME_EDGES: &[&str] = &[
    "00:00:00",
    "23:59:59.999999",
    "24:00:00",
    "12:00",
    "04:05:06.789",
    "01:02:03.000001",
    "23:59:60",
    "11:59:59.5",
    "00:00:00.000001",
];

const INTERVAL_EDGES: &[&str] = &[
    "0",
    "1 day",
    "-1 day",
    "1 mon",
    "-1 mon",
    "1 year",
    "1 year 2 mons 3 days 04:05:06.789",
    "-1 year -2 mons +3 days -04:05:06.789",
    "30 days",
    "24:00:00",
    "720:00:00",
    "1 microsecond",
    "-1 microsecond",
    "178956970 years 7 mons",
    "-178956970 years",
    "2147483647 days",
    "-2147483648 days",
    "2147483647 mons",
    "2562047788:00:54.775807",
    "-2562047788:00:54.775808",
    "1 mon -1 day",
    "-1 mon 30 days",
    "11 mons",
    "13 mons",
    "1.5 years",
    "1.3 mons",
    "0.5 days",
    "1.5 weeks",
    "10 decades",
    "2 centuries",
    "1 millennium",
    "-00:00:00.5",
    "1 day -23:59:59",
    "-1 day 23:59:59",
    "25:61:61",
    "100 days 100:00:00",
    "@ 1 day ago",
    "365 days 05:49:12",
    "1:00",
];

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Europe/Moscow",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "-5",
    "5.5",
    "Europe/Dublin",
    "Africa/Casablanca",
];

fn edges(t: TypeCode) -> &'static [&'static str] {
    match t {
        TypeCode::Bool => &["t", "f"],
        TypeCode::Int2 => &[
            "0", "1", "-1", "2", "3", "-3", "7", "10", "32767", "-32768", "100", "255",
        ],
        TypeCode::Int4 => &[
            "0",
            "1",
            "-1",
            "2",
            "3",
            "-3",
            "7",
            "10",
            "31",
            "32",
            "33",
            "2147483647",
            "-2147483648",
            "32768",
            "-32769",
            "100",
            "65536",
            "46341",
            "-7",
            "5",
        ],
        TypeCode::Int8 => &[
            "0",
            "1",
            "-1",
            "2",
            "3",
            "-3",
            "7",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
            "2147483648",
            "-2147483649",
            "3037000500",
            "4611686018427387904",
            "1000000007",
        ],
        TypeCode::Float4 | TypeCode::Float8 => FLOAT_EDGES,
        TypeCode::Numeric => NUMERIC_EDGES,
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => TEXT_EDGES,
        TypeCode::Bytea => &[
            "",
            "\\x",
            "\\x00",
            "\\x0001ff",
            "abc",
            "\\x616263",
            "\\xdeadbeef",
            "aXbXc",
            "\\x58",
        ],
        TypeCode::Date => DATE_EDGES,
        TypeCode::Time => TIME_EDGES,
        TypeCode::Timestamp | TypeCode::Timestamptz => TIMESTAMP_EDGES,
        TypeCode::Interval => INTERVAL_EDGES,
        TypeCode::Uuid => &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a12}",
        ],
    }
}

/// An input that is valid (mostly).
fn random_input(t: TypeCode, r: &mut Rng) -> String {
    if r.below(3) == 0 {
        return r.pick(edges(t)).to_string();
    }
    match t {
        TypeCode::Int2 => r.between(-32768, 32767).to_string(),
        TypeCode::Int4 => {
            let shift = r.below(31);
            (r.between(-2147483648, 2147483647) >> shift).to_string()
        }
        TypeCode::Int8 => {
            let shift = r.below(63);
            (r.next() as i64 >> shift).to_string()
        }
        TypeCode::Float4 => match r.below(3) {
            0 => format!("{:e}", f32::from_bits(r.next() as u32)),
            1 => format!("{}", r.between(-1_000_000, 1_000_000) as f64 / 1000.0),
            _ => format!("{}e{}", r.between(-9999, 9999), r.between(-40, 35)),
        },
        TypeCode::Float8 => match r.below(4) {
            0 => format!("{:e}", f64::from_bits(r.next())),
            1 => format!("{}", r.between(-1_000_000, 1_000_000) as f64 / 1000.0),
            2 => format!("{}", (r.next() as i64 >> r.below(60)) as f64),
            _ => format!("{}e{}", r.between(-99999, 99999), r.between(-310, 305)),
        },
        TypeCode::Numeric => random_numeric(r),
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => {
            let n = r.below(12);
            (0..n)
                .map(|_| r.pick(&["a", "b", "c", " ", "ä", "日", "😀", "X", "%", "_", "\\"]))
                .collect()
        }
        TypeCode::Bytea => {
            let n = r.below(10);
            (0..n).fold("\\x".to_string(), |mut s, _| {
                let _ = write!(s, "{:02x}", r.below(256));
                s
            })
        }
        TypeCode::Date => {
            let year = match r.below(4) {
                0 => r.between(1, 4713),
                1 => r.between(1, 5_874_897),
                _ => r.between(1900, 2100),
            };
            let bc = if year < 4713 && r.below(5) == 0 {
                " BC"
            } else {
                ""
            };
            format!(
                "{year:04}-{:02}-{:02}{bc}",
                r.between(1, 12),
                r.between(1, 28)
            )
        }
        TypeCode::Time => random_time(r),
        TypeCode::Timestamp | TypeCode::Timestamptz => {
            let year = match r.below(5) {
                0 => r.between(1, 4712),
                1 => r.between(1, 294_276),
                _ => r.between(1880, 2100),
            };
            let bc = if year < 4713 && r.below(8) == 0 {
                " BC"
            } else {
                ""
            };
            let (month, day) = (r.between(1, 12), r.between(1, 28));
            format!("{year:04}-{month:02}-{day:02} {}{bc}", random_time(r))
        }
        TypeCode::Interval => random_interval(r),
        TypeCode::Uuid => format!("{:016x}{:016x}", r.next(), r.next()),
        TypeCode::Bool => r.pick(&["t", "f"]).to_string(),
    }
}

fn random_time(r: &mut Rng) -> String {
    let mut s = format!("{:02}:{:02}:{:02}", r.below(24), r.below(60), r.below(60));
    if r.below(2) == 0 {
        let n = 1 + r.below(6);
        let _ = write!(s, ".{}", r.digits(n));
    }
    s
}

fn random_interval(r: &mut Rng) -> String {
    let units = [
        "year",
        "mon",
        "day",
        "hour",
        "min",
        "sec",
        "week",
        "decade",
        "millisecond",
        "microsecond",
    ];
    let mut s = String::new();
    for unit in units {
        if r.below(4) == 0 {
            let max = if r.below(6) == 0 { 100_000_000 } else { 100 };
            let _ = write!(s, "{} {unit} ", r.between(-max, max));
        }
    }
    if s.is_empty() {
        s = format!("{}{}", r.pick(&["", "-"]), random_time(r));
    }
    s
}

fn random_numeric(r: &mut Rng) -> String {
    let sign = r.pick(&["", "-"]);
    let (int, frac) = match r.below(12) {
        0 => (r.below(60), r.below(60)),
        1 => (r.below(1100), r.below(300)),
        2 => (1, r.below(30)),
        3 => (0, 1 + r.below(25)),
        _ => (1 + r.below(12), r.below(8)),
    };
    let zeros = if r.below(4) == 0 {
        r.below(int + frac + 1)
    } else {
        0
    };
    let mut digits = r.digits(int + frac);
    if r.below(2) == 0 {
        digits.replace_range(..zeros, &"0".repeat(zeros));
    } else {
        let at = digits.len() - zeros;
        digits.replace_range(at.., &"0".repeat(zeros));
    }
    let (i, f) = digits.split_at(int);
    match (i, f) {
        ("", "") => "0".into(),
        (i, "") => format!("{sign}{i}"),
        ("", f) => format!("{sign}.{f}"),
        (i, f) => format!("{sign}{i}.{f}"),
    }
}

/// Input that is often invalid: a valid one with a character changed, or parts
/// strung together.
fn odd_input(t: TypeCode, r: &mut Rng) -> String {
    let mut s: Vec<char> = random_input(t, r).chars().take(200).collect();
    let junk: Vec<char> = " -+.:/,eExXnN0159Tzab\\{}()%ä日\t".chars().collect();
    for _ in 0..=r.below(2) {
        let at = r.below(s.len() + 1);
        let c = junk[r.below(junk.len())];
        match r.below(3) {
            0 => s.insert(at, c),
            1 if at < s.len() => s[at] = c,
            _ if at < s.len() => {
                s.remove(at);
            }
            _ => s.push(c),
        }
    }
    s.into_iter().collect()
}

fn typmod(t: TypeCode, r: &mut Rng) -> i32 {
    match t {
        _ if r.below(3) == 0 => -1,
        TypeCode::Numeric => {
            let most = if r.below(10) == 0 { 1000 } else { 20 };
            let precision = 1 + r.below(most) as i32;
            let scale = match r.below(6) {
                0 => r.between(-20, 30) as i32,
                1 => r.between(-1000, 1000) as i32,
                _ => r.below(precision as usize + 1) as i32,
            };
            (precision << 16 | scale & 0x7ff) + 4
        }
        TypeCode::Varchar | TypeCode::Bpchar => 4 + 1 + r.below(8) as i32,
        TypeCode::Time | TypeCode::Timestamp | TypeCode::Timestamptz => r.below(7) as i32,
        TypeCode::Interval => {
            let (y, mo, d, h, mi, s) = (4, 2, 8, 1024, 2048, 4096);
            let ranges = [
                y,
                mo,
                d,
                h,
                mi,
                s,
                y | mo,
                d | h,
                d | h | mi,
                d | h | mi | s,
                h | mi,
                h | mi | s,
                mi | s,
                0x7fff,
            ];
            let range = ranges[r.below(ranges.len())];
            let precise = range == 0x7fff || range & s != 0;
            let precision = if precise && r.below(2) == 0 {
                r.below(7) as i32
            } else {
                0xffff
            };
            range << 16 | precision
        }
        _ => -1,
    }
}

fn default_settings() -> Settings {
    Settings::new(&[("timezone", "UTC")])
}

fn check_inputs(b: &mut Batch, t: TypeCode, inputs: impl IntoIterator<Item = (String, i32)>) {
    for (s, typmod) in inputs {
        let ours = parse_text(t, typmod, s.as_bytes(), &b.env);
        if let Ok(v) = &ours {
            let sql = format!(
                "encode({}({}), 'hex')",
                send_function(t),
                input_sql(t, typmod, &s)
            );
            let bytes = encode_binary(v);
            let hex = bytes.iter().fold(String::new(), |mut s, b| {
                let _ = write!(s, "{b:02x}");
                s
            });
            // The payload of a NaN is lost.
            if !s.contains("nan(") {
                b.text(sql, Ok(hex.into_bytes()));
            }
            // Rounding may leave the range that the receive function checks.
            let rounded_up = s.starts_with("294276-12-31 23:59:59.9");
            let back = decode_binary(t, typmod, &bytes).map(|v| format_text(&v, &b.env));
            assert!(
                rounded_up || back.ok() == Some(format_text(v, &b.env)),
                "binary round trip: {t:?} {s}"
            );
        }
        b.value(input_sql(t, typmod, &s), ours);
    }
}

#[test]
fn inputs_and_outputs() {
    for &t in TYPES {
        let mut r = Rng::new(t as u64);
        let mut b = Batch::new(default_settings());
        check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
        for _ in 0..count(600) {
            let (s, m) = (random_input(t, &mut r), typmod(t, &mut r));
            check_inputs(&mut b, t, [(s, m)]);
            let (s, m) = (odd_input(t, &mut r), typmod(t, &mut r));
            check_inputs(&mut b, t, [(s, m)]);
        }
        b.run(&format!("input of {}", t.plain_name()));
    }
    verdict();
}

#[test]
fn number_inputs() {
    let odd = [
        "",
        " ",
        "+",
        "-",
        ".",
        "+.",
        "-.",
        "1.",
        ".1",
        "+1",
        "--1",
        "1-",
        "1e",
        "1e+",
        "1e5",
        "1E5",
        "1e-5",
        "1e 5",
        "1 e5",
        " 12 ",
        "\t12\n",
        "1_000",
        "0x10",
        "0X1p3",
        "0x",
        "0x.8",
        "0x1.8p-1",
        "0x1p99999",
        "0x1p-99999",
        "nan",
        "NAN",
        "+nan",
        "-nan",
        "nan(1)",
        "nanx",
        "inf",
        "+inf",
        "-inf",
        "INFINITY",
        "+Infinity",
        "-infinity",
        "infin",
        "infinityx",
        "1e400",
        "-1e400",
        "1e-400",
        "1e39",
        "1e-46",
        "0e400",
        "0e-400",
        "1e1000000",
        "1e99999999999999999999",
        "1e2147483647",
        "1e1073741823",
        "1e1073741822",
        "0e1073741822",
        "0e1073741823",
        "1e-1073741822",
        "1e-16384",
        "0.1e-16383",
        "1e131072",
        "1e131071",
        "9e131071",
        "0e-20000",
        "0e20000",
        "1e-20000",
        "1.5e3",
        "1.5e-3",
        "123.456e2",
        "123.456e1",
        "123.456e10",
        "00012",
        "000.100",
        "1.2.3",
        "12abc",
        "abc",
        "32767",
        "32768",
        "-32768",
        "-32769",
        "2147483648",
        "-2147483649",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999999999999999999999999",
        "1,000",
        "١",
        "1 2",
        "99999.995",
        "0.00499999",
        "-0.005",
        "999.9999e-4",
        "t",
        "true",
        "T",
        "tr",
        "truex",
        "yes",
        "y",
        "ye",
        "no",
        "n",
        "on",
        "o",
        "of",
        "off",
        "1",
        "0",
        "2",
        " true ",
        "f",
        "fa",
        "false",
    ];
    let mut b = Batch::new(default_settings());
    for t in [
        TypeCode::Bool,
        TypeCode::Int2,
        TypeCode::Int4,
        TypeCode::Int8,
        TypeCode::Float4,
        TypeCode::Float8,
        TypeCode::Numeric,
    ] {
        check_inputs(&mut b, t, odd.iter().map(|s| (s.to_string(), -1)));
    }
    let m = |p: i32, s: i32| (p << 16 | s & 0x7ff) + 4;
    for typmod in [
        m(5, 2),
        m(3, -2),
        m(3, 5),
        m(1, 0),
        m(1000, 1000),
        m(1000, -1000),
        m(10, 10),
        m(2, 4),
    ] {
        let inputs = odd
            .iter()
            .chain(NUMERIC_EDGES)
            .map(|s| (s.to_string(), typmod));
        check_inputs(&mut b, TypeCode::Numeric, inputs);
    }
    b.run("numbers");
    verdict();
}

const DATETIME_INPUTS: &[&str] = &[
    "January 8, 1999",
    "1999-01-08",
    "1/8/1999",
    "1/18/1999",
    "01/02/03",
    "1999-Jan-08",
    "Jan-08-1999",
    "08-Jan-1999",
    "99-Jan-08",
    "08-Jan-99",
    "Jan-08-99",
    "19990108",
    "990108",
    "1999.008",
    "J2451187",
    "January 8, 99 BC",
    "1999-01-08 04:05:06",
    "1999-01-08 04:05:06 PST",
    "1999-01-08 04:05:06 -8:00",
    "1999-01-08T04:05:06Z",
    "1999-01-08T04:05:06+02",
    "1999-01-08T04:05:06.789-0730",
    "19990108T040506",
    "19990108T040506.789-07",
    "19990108 040506",
    "19990108T0405",
    "Jan 8 04:05:06 1999 PST",
    "January 8 04:05:06 1999 PST",
    "Fri Jan 08 04:05:06 1999",
    "1999-01-08 04:05 AM",
    "1999-01-08 12:05 AM",
    "1999-01-08 12:05 PM",
    "1999-01-08 04:05 PM",
    "1999-01-08 13:05 PM",
    "1999-01-08 24:00:00",
    "1999-01-08 24:00:01",
    "1999-01-08 23:59:60",
    "1999-01-08 23:60:00",
    "1999-01-08 25:00:00",
    "1999-01-08 4:5:6",
    "1999-1-8",
    "1999-13-01",
    "1999-12-32",
    "1999-02-29",
    "2000-02-30",
    "0000-01-01",
    "0001-01-01",
    "1-1-0",
    "1-1-00",
    "1-1-69",
    "1-1-70",
    "1-1-99",
    "1-1-100",
    "0-1-1",
    "00-01-01",
    "69-01-01",
    "1999-01-08 BC",
    "1999-01-08 AD",
    "4714-11-24 BC",
    "4713-11-24 BC",
    "4714-11-23 BC",
    "4715-01-01 BC",
    "5874897-12-31",
    "5874898-01-01",
    "5874898-06-03",
    "294277-01-01",
    "294276-12-31 23:59:59.999999",
    "294276-12-31 23:59:59.9999999",
    "infinity",
    "-infinity",
    "+infinity",
    "Infinity",
    "INFINITY",
    "infinity x",
    "epoch",
    "epoch 1",
    "allballs",
    "1999-01-08 allballs",
    "",
    " ",
    "x",
    "1999",
    "1999-01",
    "01",
    "199901",
    "1999010",
    "199901081",
    "Jan",
    "Jan 8",
    "Jan 1999",
    "8 Jan",
    "1999 Jan 8",
    "8 1999 Jan",
    "Jan 8 1999 Jan",
    "Monday 1999-01-08",
    "Fri, 08 Jan 1999 04:05:06 GMT",
    "1999-01-08 04:05:06 America/New_York",
    "1999-07-08 04:05:06 America/New_York",
    "1999-07-08 04:05:06 america/new_york",
    "1999-07-08 04:05:06 Europe/Nowhere",
    "1999-07-08 04:05:06 EST",
    "1999-07-08 04:05:06 EDT",
    "1999-07-08 04:05:06 MSK",
    "2012-07-08 04:05:06 MSK",
    "2016-07-08 04:05:06 MSK",
    "1999-07-08 04:05:06 MET DST",
    "1999-07-08 04:05:06 CET DST",
    "1999-07-08 04:05:06 DST",
    "1999-07-08 04:05:06 z",
    "1999-07-08 04:05:06 UTC",
    "1999-07-08 04:05:06 GMT+3",
    "1999-07-08 04:05:06 UTC-5",
    "1999-07-08 04:05:06 XYZ+3",
    "1999-07-08 04:05:06 utc+03:30",
    "1999-07-08 04:05:06 +03:30",
    "1999-07-08 04:05:06 +15:59",
    "1999-07-08 04:05:06 +16",
    "1999-07-08 04:05:06 -15:59:59",
    "1999-07-08 04:05:06 +1",
    "1999-07-08 04:05:06 +123",
    "1999-07-08 04:05:06 +1234",
    "1999-07-08 04:05:06 +12345",
    "1999-07-08 04:05:06 +12:60",
    "1999-07-08 04:05:06+",
    "1999-07-08 04:05:06 +x",
    "1999-07-08 04:05:06+02:00 x",
    "1999-07-08 04:05:06 IRKT",
    "1999-07-08 04:05:06 LHDT",
    "1999-07-08 EST5EDT",
    "04:05:06 1999-07-08",
    "04:05:06.123456789 1999-07-08",
    "1999-07-08 04:05:06.1234565",
    "1999-07-08 04:05:06.12345649999",
    "1999-07-08 04:05:06.",
    "1999-07-08 04:05.5",
    "1999-07-08 04:05:06.9999999",
    "1999-07-08 23:59:59.9999999",
    "1999-12-31 23:59:59.9999996",
    "1999-07-08 04::06",
    "1999-07-08 04:",
    "1999-07-08 :05",
    "1999-07-08 -04:05",
    "1999/07/08",
    "1999/7/8",
    "7/8/99",
    "07.08.1999",
    "7.8.99",
    "1999.07.08",
    "08.07.1999 04:05",
    "1999-07/08",
    "1999-07-08-09",
    "1999--07-08",
    "1999-07-",
    "-1999-07-08",
    "J0",
    "J-1",
    "J2451187.5",
    "julian 2451187",
    "J2451187 04:05",
    "jd 2451187.25",
    "J2147483647",
    "J2147483648",
    "J2451187-08",
    "y1999m07d08",
    "1999-07-08 d",
    "d 8 1999-07",
    "1999-07-08 t 040506",
    "t 040506 1999-07-08",
    "1999-07-08t",
    "1999-07-08 tt",
    "1999-07-08T",
    "1999-07-08 T 04:05",
    "1999 189",
    "1999189",
    "1999.189",
    "1999.366",
    "2000.366",
    "1999.000",
    "1999.367",
    "99189",
    "12:34",
    "12:34:56",
    "12:34:56.789",
    "123456",
    "1234",
    "12345",
    "123",
    "12",
    "123456.789",
    "1234.5",
    "12:34 PM",
    "00:34 PM",
    "12:34 am",
    "13:00 am",
    "24:00",
    "24:00:00.000001",
    "23:59:60",
    "23:59:60.5",
    "23:59:61",
    "12:34:56 UTC",
    "12:34:56+02",
    "12:34:56 America/New_York",
    "2000-01-01 12:34:56 America/New_York",
    "12:34:56 EST",
    "12:34:56 MSK",
    "2000-01-01 12:34:56",
    "T12:34",
    "t 1234",
    "T123456",
    "h12",
    "1999-01-08 h4",
    "1999-01-08 h4m5s6.5",
    "1999-01-08 y 5",
    "1999-01-08 mm 5",
    "at 1999-01-08",
    "on 1999-01-08 at 5:06",
    "1999-01-08,04:05:06",
    "(1999-01-08)",
    "1999-01-08;",
    "#1999-01-08",
    "1999-01-08 04:05:06 america",
    "1999-01-08 zulu",
    "99999999-01-01",
    "2147483648-01-01",
    "1999-2147483648-01",
    "1999-01-99999999999",
    "1999-01-08 99999999999:00",
    "99999999999999999999",
    "199912311259591",
    "Sept 8 1999",
    "September 8 1999",
    "Septem 8 1999",
    "decembe 8 1999",
    "thurs 1999-01-07",
    "weds 1999-01-06",
    "1999-01-08 bc ad",
    "1999-01-08 am pm",
    "1999-01-08 04:05 am pm",
    "1999-01-08 04:05:06 04:05:06",
    "1999-01-08 1999-01-08",
    "1999-01-08 Jan",
    "01 Jan 02 03",
    "Jan 1 2 3",
    "1 2 3",
    "10 11 12",
    "99 1 2",
    "1999 1 2",
    "1999 1 2 3",
    "31 12 1999",
    "12 31 1999",
    "20000229",
    "19000229",
    "1e5",
    "1999-01-08 1e5",
    "2000-01-01 00:00:00 LMT",
    "2000-01-01 00:00:00 Etc/GMT-14",
    "2000-01-01 00:00:00 GMT0",
    "0099-07-08",
    "099-07-08",
    "07-08-0099",
    "07-08-099",
    "1000000-01-01",
    "100000-01-01 12:00",
    "1999-01-08 \u{00e4}",
    "2000-01-01 10:00 Europe/Berlin Europe/Berlin",
    "2000-01-01 10:00 +01 +02",
    "2000-01-01 10:00 CET +02",
    "2021-03-28 02:30 Europe/Berlin",
    "2021-10-31 02:30 Europe/Berlin",
    "2021-03-14 02:30 America/New_York",
    "2021-11-07 01:30 America/New_York",
    "2021-11-07 01:30 EDT",
    "12021-07-01 12:00 America/New_York",
    "0021-07-01 12:00 America/New_York",
    "1883-11-18 12:03:57 America/New_York",
    "2000-01-01 microsecond",
    "tomorrow x",
    "2000-01-01 yesterday",
    "2000-01-01 now",
];

fn style_settings() -> Vec<Settings> {
    let mut all = Vec::new();
    for style in [
        "ISO, MDY",
        "ISO, DMY",
        "ISO, YMD",
        "SQL, MDY",
        "SQL, DMY",
        "German",
        "Postgres, MDY",
        "Postgres, DMY",
    ] {
        for zone in ["UTC", "America/New_York", "Asia/Kolkata", "5.5"] {
            all.push(Settings::new(&[("datestyle", style), ("timezone", zone)]));
        }
    }
    all
}

#[test]
fn datetime_inputs() {
    for settings in style_settings() {
        let name = format!("date and time input, {:?}", settings.0);
        let mut b = Batch::new(settings);
        let mut r = Rng::new(77);
        for t in [
            TypeCode::Date,
            TypeCode::Time,
            TypeCode::Timestamp,
            TypeCode::Timestamptz,
        ] {
            check_inputs(
                &mut b,
                t,
                DATETIME_INPUTS.iter().map(|s| (s.to_string(), -1)),
            );
            check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
            for _ in 0..count(150) {
                let input = random_input(t, &mut r);
                check_inputs(&mut b, t, [(input, -1)]);
            }
        }
        b.run(&name);
    }
    verdict();
}

/// Fields strung together at random.
#[test]
fn datetime_soup() {
    let parts = [
        "1999-01-08",
        "1999",
        "99",
        "8",
        "01",
        "13",
        "Jan",
        "jan",
        "Feb-29",
        "29-Feb-2000",
        "04:05",
        "04:05:06",
        "04:05:06.5",
        "+02",
        "-0730",
        "PST",
        "EDT",
        "z",
        "UTC",
        "MSK",
        "Europe/Berlin",
        "BC",
        "AD",
        "AM",
        "PM",
        "Mon",
        "T",
        "t",
        "J2451187",
        "J",
        "2451187",
        "d",
        "y",
        "m",
        "h",
        "mm",
        "s",
        "dst",
        "at",
        "on",
        ",",
        "-",
        "infinity",
        "epoch",
        "allballs",
        "040506",
        "19990108",
        "1.5",
        "1999.008",
        "366",
        "008",
        "x",
        "1/2/3",
        "+",
        "40506",
        "0405",
        "julian",
        "2000-02-30",
        "24:00",
        "12:60",
        "1e5",
        ":",
        "99999",
        "123456789",
        "999999999999",
        "040506-07",
        "12",
    ];
    for settings in [
        Settings::new(&[("datestyle", "ISO, MDY"), ("timezone", "America/New_York")]),
        Settings::new(&[("datestyle", "ISO, DMY"), ("timezone", "UTC")]),
        Settings::new(&[("datestyle", "ISO, YMD"), ("timezone", "Europe/Berlin")]),
    ] {
        let mut b = Batch::new(settings);
        let mut r = Rng::new(78);
        for t in [
            TypeCode::Date,
            TypeCode::Time,
            TypeCode::Timestamp,
            TypeCode::Timestamptz,
        ] {
            for _ in 0..count(2500) {
                let n = 1 + r.below(4);
                let s: String = (0..n)
                    .map(|_| format!("{}{}", r.pick(&parts), r.pick(&[" ", " ", ""])))
                    .collect();
                check_inputs(&mut b, t, [(s, -1)]);
            }
        }
        b.run("date and time soup");
    }
    verdict();
}

const INTERVAL_INPUTS: &[&str] = &[
    "1",
    "1.5",
    "-1.5",
    "1:30",
    "1:30:15",
    "1:30.5",
    "-1:30",
    "+1:30",
    "1 1:30",
    "-1 1:30",
    "-1 +1:30",
    "1-2",
    "-1-2",
    "+1-2",
    "1-12",
    "1-2 3",
    "1-2 3 4:05:06",
    "-1-2 3 4:05:06",
    "-1-2 -3 -4:05:06",
    "1 year 2 months",
    "1y 2mon",
    "1y2mon",
    "1 day ago",
    "1 day -1 hour ago",
    "ago",
    "day",
    "1 day day",
    "1 day 2 day",
    "1 day 2 hours 3 hours",
    "1 hour 2:03",
    "2:03 1 hour",
    "1.5 hours 30 min",
    "1.5 years",
    "1.55 years",
    "1.999 years",
    "-1.5 months",
    "1.5 weeks",
    "0.1 months",
    "0.7 days",
    "1.23456789 seconds",
    "1.2345675 sec",
    "100 ms",
    "100 us",
    "1.5 us",
    "1 quarter",
    "1 qtr",
    "1 c",
    "1 mil",
    "1 dec",
    "1 century",
    "@ 1 minute",
    "@1 minute",
    "1 minute @",
    "P1Y2M3DT4H5M6S",
    "P1Y",
    "PT1H",
    "P1W",
    "P1.5Y",
    "P1.5M",
    "P1.5W",
    "P1.5D",
    "PT1.5H",
    "PT1.5M",
    "PT1.5S",
    "P-1Y",
    "P-1Y-2M",
    "P1Y-2M3DT-4H",
    "P0001-02-03T04:05:06",
    "P1-2-3T4:5:6",
    "P00010203T040506",
    "P00010203",
    "P0001",
    "P",
    "PT",
    "P1",
    "PT1",
    "P1T1",
    "P1Y1",
    "P1S",
    "PT1Y",
    "PT040506.5",
    "P1e3D",
    "P1e400D",
    "P1e16D",
    "P.5D",
    "P1.D",
    "P-.5D",
    "PT04:05",
    "PT04:05:06.7",
    "P0001-02",
    "P0001-02-03T",
    "p1y",
    "P1Y 2M",
    "P1YT",
    "1e5",
    "1 day 1e5 sec",
    "infinity",
    "-infinity",
    "",
    " ",
    "x",
    "1 x",
    "1 dayx",
    "1 microsecondsss",
    "1 millisecondes",
    "1 millenniumm",
    "2147483647 months",
    "2147483648 months",
    "178956970 years",
    "178956971 years",
    "-178956970 years -8 months",
    "-178956970 years -9 months",
    "2147483647 days",
    "2147483648 days",
    "-2147483648 days",
    "306783378 weeks",
    "306783379 weeks",
    "9223372036854775807 us",
    "9223372036854775808 us",
    "-9223372036854775808 us",
    "-9223372036854775808 us ago",
    "2562047788:00:54.775807",
    "2562047788:00:54.775808",
    "2562047789:00",
    "-2562047788:00:54.775808",
    "9223372036855 sec",
    "1 day 25:00",
    "25:00",
    "1:60",
    "1:59:60",
    "1:59:61",
    "1:00:00.9999999",
    "10:20:30:40",
    "1:2:3.4.5",
    "1.2.3",
    "1..2",
    "1-2-3",
    "1/2",
    "1/2/3",
    "1-2.5",
    "1 - 2",
    "- 1 day",
    "-  1 day",
    "1 -day",
    "+1 day",
    "--1 day",
    "1 day, 2 hours",
    "(1 day)",
    "1 day;",
    "0.000001 sec",
    "0.0000005 sec",
    "0.00000051 sec",
    "-0.5 sec",
    "-.5 sec",
    ".5 sec",
    ". sec",
    "1. sec",
    "1 timezone",
    "1 now",
    "1 jan",
    "1 at 2 hours",
    "1 d 2 h 3 m 4 s",
    "1 mm",
    "1 j",
    "1 dow",
    "6 months 1.5 days -00:00:01",
    "1 day 04:05:06 ago",
    "1 decade 1 century 1 millennium",
    "1 year 1-2",
    "1 2 3",
    "1 2:03 4",
    "1 day 2",
    "2 1 day",
    "1 week 1 day",
    "1 day 1 week",
    "0",
    "00:00",
    "-0",
    "-0:00",
    "1 second 1 millisecond 1 microsecond",
    "1.5 second 1 millisecond",
    "1 millisecond 1.5 second",
    "1 sec 1:00",
    "1000000000 hours",
    "3000000000 hours",
    "1e3 days",
    "1\u{00e4}",
    "12345678901234567890 sec",
    "1 12345678901:00",
    "1 hour ago 1 day",
    "ago 1 day",
    "1 day ago ago",
    "1-2 ago",
    "@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs ago",
    "-1 day -04:05:06",
    "-1 04:05:06",
    "1-2 -3 4:05:06",
    "-1-2 3 -4:05:06",
    "1 year -2 months",
];

#[test]
fn interval_inputs() {
    for style in ["postgres", "postgres_verbose", "sql_standard", "iso_8601"] {
        let mut b = Batch::new(Settings::new(&[("intervalstyle", style)]));
        let mut r = Rng::new(79);
        let t = TypeCode::Interval;
        let typmods: Vec<i32> = (0..25).map(|_| typmod(t, &mut r)).chain([-1]).collect();
        for m in typmods {
            check_inputs(
                &mut b,
                t,
                INTERVAL_INPUTS.iter().map(|s| (s.to_string(), m)),
            );
        }
        check_inputs(&mut b, t, edges(t).iter().map(|s| (s.to_string(), -1)));
        let parts = [
            "1",
            "-1",
            "+2",
            "1.5",
            "-.5",
            "1:30",
            "-1:30:15",
            "1:30:15.5",
            "1-2",
            "-1-2",
            "year",
            "mons",
            "days",
            "day",
            "hour",
            "min",
            "sec",
            "ms",
            "us",
            "week",
            "ago",
            "@",
            "decade",
            "century",
            "y",
            "m",
            "d",
            "h",
            "s",
            "w",
            "2147483647",
            "999999999999",
            "P1Y",
            "T",
            "x",
            "-",
            "+",
            "qtr",
            "at",
            "1.5e3",
            "12",
            "0",
        ];
        for _ in 0..count(4000) {
            let n = 1 + r.below(6);
            let s: String = (0..n)
                .map(|_| format!("{}{}", r.pick(&parts), r.pick(&[" ", " ", " ", ""])))
                .collect();
            let m = typmod(t, &mut r);
            check_inputs(&mut b, t, [(s, m)]);
            let iso = [
                "1", "-1", "1.5", "12", "Y", "M", "D", "W", "T", "H", "S", "-", ":", "00010203",
                "040506", ".5", "e2",
            ];
            let n = 1 + r.below(9);
            let s: String = std::iter::once("P")
                .chain((0..n).map(|_| r.pick(&iso)))
                .collect();
            check_inputs(&mut b, t, [(s, -1)]);
            let input = random_input(t, &mut r);
            check_inputs(&mut b, t, [(input, m)]);
        }
        b.run(&format!("intervals, {style}"));
    }
    verdict();
}

#[test]
fn float_outputs() {
    for digits in ["-15", "-5", "0", "1", "3"] {
        let mut b = Batch::new(Settings::new(&[("extra_float_digits", digits)]));
        let mut r = Rng::new(80);
        for t in [TypeCode::Float4, TypeCode::Float8] {
            check_inputs(&mut b, t, FLOAT_EDGES.iter().map(|s| (s.to_string(), -1)));
            for _ in 0..count(3000) {
                let input = random_input(t, &mut r);
                check_inputs(&mut b, t, [(input, -1)]);
            }
            // Powers of two and of ten and their neighbours.
            for i in -330..330 {
                check_inputs(
                    &mut b,
                    t,
                    [(format!("1e{i}"), -1), (format!("{:e}", 2f64.powi(i)), -1)],
                );
                let up = f64::from_bits(2f64.powi(i).to_bits() + 1);
                let ten: f64 = format!("1e{i}").parse().unwrap();
                let down = f64::from_bits(ten.to_bits().saturating_sub(1));
                check_inputs(
                    &mut b,
                    t,
                    [(format!("{up:e}"), -1), (format!("{down:e}"), -1)],
                );
            }
        }
        b.run(&format!("float output, extra_float_digits {digits}"));
    }
    verdict();
}

/// What an operator is called, and which signatures it has.
fn operators() -> Vec<(Op, &'static str, Vec<(TypeCode, TypeCode, TypeCode)>)> {
    use TypeCode::*;
    let ints = [
        (Int2, Int2, Int2),
        (Int4, Int4, Int4),
        (Int8, Int8, Int8),
        (Int2, Int4, Int4),
        (Int4, Int2, Int4),
        (Int2, Int8, Int8),
        (Int8, Int2, Int8),
        (Int4, Int8, Int8),
        (Int8, Int4, Int8),
    ];
    let floats = [
        (Float4, Float4, Float4),
        (Float8, Float8, Float8),
        (Float4, Float8, Float8),
        (Float8, Float4, Float8),
    ];
    let numeric = [(Numeric, Numeric, Numeric)];
    let same = [(Int2, Int2, Int2), (Int4, Int4, Int4), (Int8, Int8, Int8)];
    let shifts = vec![(Int2, Int4, Int2), (Int4, Int4, Int4), (Int8, Int4, Int8)];
    let arithmetic = || ints.iter().chain(&floats).chain(&numeric).copied();
    let with = |more: &[(TypeCode, TypeCode, TypeCode)]| {
        arithmetic().chain(more.iter().copied()).collect()
    };
    vec![
        (
            Op::Add,
            "+",
            with(&[
                (Date, Int4, Date),
                (Int4, Date, Date),
                (Date, Interval, Timestamp),
                (Interval, Date, Timestamp),
                (Date, Time, Timestamp),
                (Time, Date, Timestamp),
                (Time, Interval, Time),
                (Interval, Time, Time),
                (Timestamp, Interval, Timestamp),
                (Interval, Timestamp, Timestamp),
                (Timestamptz, Interval, Timestamptz),
                (Interval, Timestamptz, Timestamptz),
                (Interval, Interval, Interval),
            ]),
        ),
        (
            Op::Sub,
            "-",
            with(&[
                (Date, Int4, Date),
                (Date, Date, Int4),
                (Date, Interval, Timestamp),
                (Time, Time, Interval),
                (Time, Interval, Time),
                (Timestamp, Timestamp, Interval),
                (Timestamptz, Timestamptz, Interval),
                (Timestamp, Interval, Timestamp),
                (Timestamptz, Interval, Timestamptz),
                (Interval, Interval, Interval),
            ]),
        ),
        (
            Op::Mul,
            "*",
            with(&[(Interval, Float8, Interval), (Float8, Interval, Interval)]),
        ),
        (Op::Div, "/", with(&[(Interval, Float8, Interval)])),
        (Op::Mod, "%", same.iter().chain(&numeric).copied().collect()),
        (Op::BitAnd, "&", same.to_vec()),
        (Op::BitOr, "|", same.to_vec()),
        (Op::BitXor, "#", same.to_vec()),
        (Op::ShiftLeft, "<<", shifts.clone()),
        (Op::ShiftRight, ">>", shifts),
        (
            Op::Concat,
            "||",
            vec![(Text, Text, Text), (Bytea, Bytea, Bytea)],
        ),
    ]
}

#[test]
fn binary_operators() {
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
    ] {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(81);
        for (op, name, signatures) in operators() {
            for (ta, tb, ret) in signatures {
                let mut pairs = Vec::new();
                let (ea, eb) = (edges(ta), edges(tb));
                for _ in 0..count(250) {
                    pairs.push((r.pick(ea).to_string(), r.pick(eb).to_string()));
                    pairs.push((random_input(ta, &mut r), random_input(tb, &mut r)));
                }
                if zone == "UTC" && ea.len() * eb.len() < 800 {
                    pairs.extend(
                        ea.iter()
                            .flat_map(|x| eb.iter().map(|y| (x.to_string(), y.to_string()))),
                    );
                }
                for (x, y) in pairs {
                    let (Some((sx, vx)), Some((sy, vy))) =
                        (literal(ta, &x, &env), literal(tb, &y, &env))
                    else {
                        continue;
                    };
                    b.value(
                        format!("({sx}) {name} ({sy})"),
                        apply(op, ret, 0, &[&vx, &vy], &env),
                    );
                }
            }
        }
        b.run(&format!("binary operators, {zone}"));
    }
    verdict();
}

#[test]
fn numeric_arithmetic() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(82);
    let t = TypeCode::Numeric;
    for _ in 0..count(6000) {
        let (x, y) = (random_input(t, &mut r), random_input(t, &mut r));
        let (Some((sx, vx)), Some((sy, vy))) = (literal(t, &x, &env), literal(t, &y, &env)) else {
            continue;
        };
        for (op, name) in [
            (Op::Add, "+"),
            (Op::Sub, "-"),
            (Op::Mul, "*"),
            (Op::Div, "/"),
            (Op::Mod, "%"),
        ] {
            b.value(
                format!("({sx}) {name} ({sy})"),
                apply(op, t, 0, &[&vx, &vy], &env),
            );
        }
        let order = compare(&vx, &vy, &env).map(|o| Value::Int4(o as i32));
        b.value(format!("numeric_cmp({sx}, {sy})"), order);
        for digits in [
            0,
            1,
            -1,
            r.between(-40, 40) as i32,
            r.between(-3000, 3000) as i32,
            i32::MIN,
            i32::MAX,
        ] {
            for (op, name) in [(Op::Round, "round"), (Op::Trunc, "trunc")] {
                let d = Value::Int4(digits);
                b.value(
                    format!("{name}({sx}, ({digits})::int4)"),
                    apply(op, t, 0, &[&vx, &d], &env),
                );
            }
        }
    }
    b.run("numeric arithmetic");
    verdict();
}

#[test]
fn unary_operators() {
    use TypeCode::*;
    let functions: &[(Op, &str, &[TypeCode])] = &[
        (
            Op::Neg,
            "-",
            &[Int2, Int4, Int8, Float4, Float8, Numeric, Interval],
        ),
        (Op::Plus, "+", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::Abs, "@", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::Abs, "abs", &[Int2, Int4, Int8, Float4, Float8, Numeric]),
        (Op::BitNot, "~", &[Int2, Int4, Int8]),
        (Op::Round, "round", &[Float8, Numeric]),
        (Op::Trunc, "trunc", &[Float8, Numeric]),
        (Op::Ceil, "ceil", &[Float8, Numeric]),
        (Op::Floor, "floor", &[Float8, Numeric]),
        (Op::Sign, "sign", &[Float8, Numeric]),
        (Op::Upper, "upper", &[Text]),
        (Op::Lower, "lower", &[Text]),
        (Op::Length, "length", &[Text, Bpchar, Bytea]),
        (Op::OctetLength, "octet_length", &[Text, Bpchar, Bytea]),
        (Op::Reverse, "reverse", &[Text]),
        (Op::TrimBoth, "btrim", &[Text]),
        (Op::TrimLeft, "ltrim", &[Text]),
        (Op::TrimRight, "rtrim", &[Text]),
    ];
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(83);
    for (op, name, types) in functions {
        for &t in *types {
            let ret = if matches!(op, Op::Length | Op::OctetLength) {
                Int4
            } else {
                t
            };
            let random: Vec<String> = (0..count(300)).map(|_| random_input(t, &mut r)).collect();
            for s in edges(t).iter().map(|s| s.to_string()).chain(random) {
                let Some((sql, v)) = literal(t, &s, &env) else {
                    continue;
                };
                b.value(format!("{name} ({sql})"), apply(*op, ret, 0, &[&v], &env));
            }
        }
    }
    b.run("unary operators");
    verdict();
}

#[test]
fn comparisons() {
    use TypeCode::*;
    let families: &[&[TypeCode]] = &[
        &[Int2, Int4, Int8],
        &[Float4, Float8],
        &[Numeric],
        &[Text],
        &[Bpchar],
        &[Bytea],
        &[Bool],
        &[Uuid],
        &[Time],
        &[Interval],
        &[Date, Timestamp, Timestamptz],
    ];
    let ops = [
        (Op::Lt, "<"),
        (Op::Le, "<="),
        (Op::Eq, "="),
        (Op::Ge, ">="),
        (Op::Gt, ">"),
        (Op::Ne, "<>"),
    ];
    for zone in ["UTC", "America/New_York", "Asia/Kolkata"] {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(84);
        for family in families {
            for &ta in *family {
                for &tb in *family {
                    for i in 0..count(250) {
                        let x = if i % 2 == 0 {
                            r.pick(edges(ta)).to_string()
                        } else {
                            random_input(ta, &mut r)
                        };
                        let y = match i % 3 {
                            0 => x.clone(),
                            1 => r.pick(edges(tb)).to_string(),
                            _ => random_input(tb, &mut r),
                        };
                        let (Some((sx, vx)), Some((sy, vy))) =
                            (literal(ta, &x, &env), literal(tb, &y, &env))
                        else {
                            continue;
                        };
                        let (op, name) = ops[r.below(ops.len())];
                        b.bool(format!("({sx}) {name} ({sy})"), test(op, &vx, &vy, &env));
                        // Only families that are hashed across types must agree.
                        let joinable = ta == tb || !matches!(ta, Date | Timestamp | Timestamptz);
                        if joinable && compare(&vx, &vy, &env).is_ok_and(|o| o.is_eq()) {
                            assert_eq!(
                                hash(&vx, &[1; 16]),
                                hash(&vy, &[1; 16]),
                                "hash of {sx} and {sy}"
                            );
                        }
                        let order = compare(&vx, &vy, &env).unwrap();
                        assert_eq!(
                            compare(&vy, &vx, &env).unwrap(),
                            order.reverse(),
                            "{sx} and {sy}"
                        );
                    }
                }
            }
        }
        b.run(&format!("comparisons, {zone}"));
    }
    verdict();
}

#[test]
fn patterns() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(85);
    let mut add = |s: &str, p: &str, t: TypeCode| {
        let (Some((ss, vs)), Some((sp, vp))) =
            (literal(t, s, &env), literal(TypeCode::Text, p, &env))
        else {
            return;
        };
        for (op, name) in [
            (Op::Like, "~~"),
            (Op::NotLike, "!~~"),
            (Op::Ilike, "~~*"),
            (Op::NotIlike, "!~~*"),
        ] {
            b.bool(format!("({ss}) {name} ({sp})"), test(op, &vs, &vp, &env));
        }
        if t == TypeCode::Text {
            b.bool(
                format!("({ss}) ^@ ({sp})"),
                test(Op::StartsWith, &vs, &vp, &env),
            );
        }
    };
    for s in TEXT_EDGES {
        for p in PATTERNS {
            add(s, p, TypeCode::Text);
            add(s, p, TypeCode::Bpchar);
        }
    }
    for _ in 0..count(4000) {
        let s: String = (0..r.below(10))
            .map(|_| r.pick(&["a", "b", "A", "ä", "日", "%", "\\"]))
            .collect();
        let p: String = (0..r.below(8))
            .map(|_| r.pick(&["a", "b", "A", "ä", "日", "%", "%", "_", "\\"]))
            .collect();
        add(&s, &p, TypeCode::Text);
    }
    b.run("patterns");
    verdict();
}

#[test]
fn string_functions() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(86);
    let t = TypeCode::Text;
    let ints = [
        0,
        1,
        2,
        3,
        -1,
        -2,
        5,
        100,
        -100,
        i32::MAX,
        i32::MIN,
        i32::MAX - 1,
        i32::MIN + 1,
    ];
    for i in 0..count(2500) {
        let s = if i % 2 == 0 {
            r.pick(TEXT_EDGES).to_string()
        } else {
            random_input(t, &mut r)
        };
        let Some((sql, v)) = literal(t, &s, &env) else {
            continue;
        };
        let (n, m) = (ints[r.below(ints.len())], ints[r.below(ints.len())]);
        let (vn, vm) = (Value::Int4(n), Value::Int4(m));
        b.value(
            format!("substring({sql}, ({n})::int4)"),
            apply(Op::Substring, t, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("substring({sql}, ({n})::int4, ({m})::int4)"),
            apply(Op::Substring, t, 0, &[&v, &vn, &vm], &env),
        );
        b.value(
            format!("left({sql}, ({n})::int4)"),
            apply(Op::Left, t, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("right({sql}, ({n})::int4)"),
            apply(Op::Right, t, 0, &[&v, &vn], &env),
        );
        let other: String = (0..r.below(4))
            .map(|_| r.pick(&["a", "b", "ä", "日", " ", "bc", "😀"]))
            .collect();
        let (Some((so, vo)), Some((sw, vw))) = (
            literal(t, &other, &env),
            literal(t, r.pick(TEXT_EDGES), &env),
        ) else {
            continue;
        };
        b.value(
            format!("strpos({sql}, {so})"),
            apply(Op::Position, TypeCode::Int4, 0, &[&v, &vo], &env),
        );
        b.value(
            format!("replace({sql}, {so}, {sw})"),
            apply(Op::Replace, t, 0, &[&v, &vo, &vw], &env),
        );
        for (op, name) in [
            (Op::TrimBoth, "btrim"),
            (Op::TrimLeft, "ltrim"),
            (Op::TrimRight, "rtrim"),
        ] {
            b.value(
                format!("{name}({sql}, {so})"),
                apply(op, t, 0, &[&v, &vo], &env),
            );
        }
        let y = TypeCode::Bytea;
        let (input, small) = (random_input(y, &mut r), random_input(y, &mut r));
        let (Some((sql, v)), Some((so, vo))) = (literal(y, &input, &env), literal(y, &small, &env))
        else {
            continue;
        };
        b.value(
            format!("substring({sql}, ({n})::int4)"),
            apply(Op::Substring, y, 0, &[&v, &vn], &env),
        );
        b.value(
            format!("substring({sql}, ({n})::int4, ({m})::int4)"),
            apply(Op::Substring, y, 0, &[&v, &vn, &vm], &env),
        );
        b.value(
            format!("position({so} in {sql})"),
            apply(Op::Position, TypeCode::Int4, 0, &[&v, &vo], &env),
        );
        b.bool(format!("({sql}) ~~ ({so})"), test(Op::Like, &v, &vo, &env));
        for (op, name) in [
            (Op::TrimBoth, "btrim"),
            (Op::TrimLeft, "ltrim"),
            (Op::TrimRight, "rtrim"),
        ] {
            b.value(
                format!("{name}({sql}, {so})"),
                apply(op, y, 0, &[&v, &vo], &env),
            );
        }
    }
    b.run("string functions");
    verdict();
}

#[test]
fn casts() {
    for settings in [
        Settings::new(&[("timezone", "UTC")]),
        Settings::new(&[
            ("timezone", "America/New_York"),
            ("datestyle", "German"),
            ("intervalstyle", "iso_8601"),
        ]),
        Settings::new(&[("timezone", "Asia/Kolkata"), ("extra_float_digits", "0")]),
    ] {
        let mut b = Batch::new(settings);
        let env = b.env.clone();
        let mut r = Rng::new(87);
        for &from in TYPES {
            for &to in TYPES {
                if from == TypeCode::Varchar || from == to {
                    continue;
                }
                let random: Vec<String> =
                    (0..count(40)).map(|_| random_input(from, &mut r)).collect();
                for s in edges(from).iter().map(|s| s.to_string()).chain(random) {
                    let Some((sql, v)) = literal(from, &s, &env) else {
                        continue;
                    };
                    let ours = apply(Op::Cast, to, 0, &[&v], &env);
                    // A cast that PostgreSQL does not know fails for its own reasons.
                    if ours.as_ref().is_err_and(|e| e.sqlstate == *b"42846") {
                        continue;
                    }
                    b.value(format!("({sql})::{}", to.plain_name()), ours);
                }
            }
        }
        b.run("casts");
    }
    verdict();
}

#[test]
fn modifiers() {
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(88);
    for &t in TYPES.iter().filter(|t| has_typmod(**t)) {
        for _ in 0..count(600) {
            let (s, m) = (random_input(t, &mut r), typmod(t, &mut r));
            let Some((sql, v)) = literal(t, &s, &env) else {
                continue;
            };
            let function = match t {
                TypeCode::Interval => "interval",
                TypeCode::Time => "time",
                _ => t.plain_name(),
            };
            for explicit in [false, true] {
                let args = match t {
                    TypeCode::Varchar | TypeCode::Bpchar => format!(", {m}, {explicit}"),
                    _ => format!(", {m}"),
                };
                let op = if explicit {
                    Op::TypmodExplicit
                } else {
                    Op::Typmod
                };
                b.value(
                    format!("pg_catalog.\"{function}\"({sql}{args})"),
                    apply(op, t, m, &[&v], &env),
                );
            }
        }
    }
    b.run("modifiers");
    verdict();
}

#[test]
fn datetime_fields() {
    use TypeCode::*;
    for zone in ZONES {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(89);
        for t in [Date, Time, Timestamp, Timestamptz, Interval] {
            let random: Vec<String> = (0..count(25)).map(|_| random_input(t, &mut r)).collect();
            for s in edges(t).iter().map(|s| s.to_string()).chain(random) {
                let Some((sql, v)) = literal(t, &s, &env) else {
                    continue;
                };
                for &unit in Unit::ALL {
                    let (name, code) = (unit.name(), unit as i32);
                    b.value(
                        format!("extract({name} from {sql})"),
                        apply(Op::Extract, Numeric, code, &[&v], &env),
                    );
                    b.value(
                        format!("date_part('{name}', {sql})"),
                        apply(Op::DatePart, Float8, code, &[&v], &env),
                    );
                    if !matches!(t, Date | Time) {
                        b.value(
                            format!("date_trunc('{name}', {sql})"),
                            apply(Op::DateTrunc, t, code, &[&v], &env),
                        );
                    }
                }
            }
        }
        b.run(&format!("fields, {zone}"));
    }
    verdict();
}

#[test]
fn zones() {
    for zone in ZONES {
        let mut b = Batch::new(Settings::new(&[("timezone", zone)]));
        let env = b.env.clone();
        let mut r = Rng::new(90);
        for i in 0..count(400) {
            let s = match i % 2 {
                0 => r.pick(TIMESTAMP_EDGES).to_string(),
                _ => random_input(TypeCode::Timestamp, &mut r),
            };
            let other = r.pick(ZONES);
            if !other.contains('/') {
                continue;
            }
            let with_zone = format!("{s} {other}");
            check_inputs(
                &mut b,
                TypeCode::Timestamptz,
                [(with_zone, -1), (s.clone(), -1)],
            );
            let Some((sql, v)) = literal(TypeCode::Timestamptz, &s, &env) else {
                continue;
            };
            b.value(
                format!("({sql})::timestamp"),
                apply(Op::Cast, TypeCode::Timestamp, 0, &[&v], &env),
            );
        }
        b.run(&format!("zones, {zone}"));
    }
    verdict();
}

#[test]
fn aggregates() {
    use TypeCode::*;
    let mut b = Batch::new(default_settings());
    let env = b.env.clone();
    let mut r = Rng::new(91);
    for agg in Aggregate::ALL {
        for &t in TYPES {
            if AggregateState::new(*agg, t).is_err() || t == Varchar {
                continue;
            }
            for _ in 0..count(120) {
                let n = r.below(6);
                let special = r.below(3) == 0;
                let inputs: Vec<String> = (0..n).map(|_| random_input(t, &mut r)).collect();
                let inputs = inputs.into_iter().filter(|s| {
                    let finite = !["NaN", "Inf", "inf"].iter().any(|w| s.contains(w));
                    special || finite
                });
                let literals: Vec<_> = inputs.filter_map(|s| literal(t, &s, &env)).collect();
                let list: Vec<String> = literals
                    .iter()
                    .enumerate()
                    .map(|(i, (sql, _))| format!("({i}, {sql})"))
                    .collect();
                let rows = match list.len() {
                    0 => format!("select 1 as i, null::{} as x where false", t.plain_name()),
                    _ => format!("select * from (values {}) v(i, x)", list.join(", ")),
                };
                let run = |split: usize| -> Result<Value> {
                    let mut a = AggregateState::new(*agg, t)?;
                    let mut second = AggregateState::new(*agg, t)?;
                    for (i, (_, v)) in literals.iter().enumerate() {
                        if i < split {
                            a.step(v, &env)?
                        } else {
                            second.step(v, &env)?
                        }
                    }
                    a.combine(&second)?;
                    a.finish()
                };
                let ours = run(literals.len());
                // Sums of floats depend on the order; the others must not.
                if !matches!(t, Float4 | Float8) && ours.is_ok() && n > 0 {
                    let halves = run(r.below(n));
                    if let (Ok(x), Ok(y)) = (&ours, &halves) {
                        assert_eq!(
                            format_text(x, &env),
                            format_text(y, &env),
                            "{agg:?} in two parts: {rows}"
                        );
                    }
                }
                b.value(
                    format!("(select {}(x order by i) from ({rows}) w)", agg.name()),
                    ours,
                );
            }
        }
    }
    b.run("aggregates");
    verdict();
}
