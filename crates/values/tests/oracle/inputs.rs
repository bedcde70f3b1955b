//! Input texts of all types: edge cases, random valid ones, random odd ones.

use crate::harness::Rng;
use contract::TypeCode;
use std::fmt::Write as _;

pub const TYPES: &[TypeCode] = TypeCode::ALL;

#[rustfmt::skip]
pub const NUMERIC_EDGES: &[&str] = &[
    "0", "0.0", "0.000", "-0", "-0.00", "1", "-1", "1.0", "1.00", "10", "100", "9", "99", "999",
    "9999", "10000", "9999.9999", "99999999", "0.1", "0.01", "0.001", "0.0001", "0.00001",
    "0.99999999", "0.5", "1.5", "2.5", "-0.5", "-1.5", "-2.5", "0.49999", "0.50001", "3", "7",
    "3.14159265358979323846264338327950288", "123456789.987654321", "1e10", "1e20", "1e38",
    "170141183460469231731687303715884105727", "170141183460469231731687303715884105728",
    "-170141183460469231731687303715884105728", "1e-10", "1e-20", "1e-100", "1e100", "12345e-50",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "32767.5", "32768",
    "2147483647.49", "2147483647.5", "NaN", "Infinity", "-Infinity", "inf", "-inf", "1e1000",
    "1e-1000", "-9.99999999999999999999999999e30", "4999.9999", "5000.0001", "1e-16383", "1e131071",
    "-0.000000000000000000000000000000000000000000000000000000000000001",
    "0.33333333333333333333333333333333333333333333", "0.6666666666666666666666666666666666",
];

#[rustfmt::skip]
pub const FLOAT_EDGES: &[&str] = &[
    "0", "-0", "1", "-1", "0.1", "0.2", "0.3", "1.5", "2.5", "3.5", "-2.5", "0.5", "1e15", "1e16",
    "999999999999999", "1e14", "123456789012345", "1e-4", "1e-5", "0.0001", "0.00012345", "1e22",
    "1e23", "9e22", "5e-324", "2.2250738585072014e-308", "2.225073858507201e-308",
    "1.7976931348623157e308", "-1.7976931348623157e308", "1e300", "1e-300", "NaN", "Infinity",
    "-Infinity", "9007199254740993", "9007199254740992", "4503599627370496.5", "1e6", "1e5",
    "999999", "123456", "1234567", "3.4028235e38", "1.1754944e-38", "1e-45", "1.4e-45", "16777216",
    "16777217", "32767.5", "32768", "2147483647.5", "2147483648", "-2147483648.5",
    "9223372036854775807", "9223372036854774784", "-9223372036854775808", "0.30000000000000004",
    "33554432", "8388608", "1e10", "1.23456789e-7", "2e-3",
];

#[rustfmt::skip]
pub const TEXT_EDGES: &[&str] = &[
    "", " ", "  ", "a", "A", "abc", "ABC", "abc ", " abc", "  abc  ", "aaa", "abcabc", "äöü",
    "Straße", "日本語", "日本", "😀x😀", "aä日😀", "a%b", "a_b", "a\\b", "%", "_", "\\", "\\\\", "xyxyx",
    "ab\tcd", "x'y", "ÀÉ", "é", "12", "12.5", "true", "2001-01-01", "ba", "bab", "Ab", "aB",
    "zzzzzzzzzzzz",
];

#[rustfmt::skip]
pub const PATTERNS: &[&str] = &[
    "", "%", "%%", "_", "__", "%_", "_%", "a%", "%a", "%a%", "a_c", "%b%", "\\%", "a\\%b", "a\\_b",
    "\\", "a\\", "%\\", "a%\\", "_\\", "%_\\", "\\\\", "%\\\\%", "äöü", "ä%", "_ö_", "%日%", "__語",
    "%x%", "%😀", "😀_😀", "A%", "abc", "ABC", "%c", "%bc", "_b_", "a%c%", "%abc%abc%", "%ab%ca%c",
    "%y%y%", "x%x", "%ß%", "%é", "\\a", "\\ä%", "abc ", "% ", "%  %",
];

#[rustfmt::skip]
pub const DATE_EDGES: &[&str] = &[
    "2000-01-01", "1999-12-31", "1970-01-01", "2000-02-29", "1900-02-28", "2004-02-29",
    "2001-12-31", "2020-03-29", "2021-10-31", "0001-01-01", "0001-12-31 BC", "4713-11-24 BC",
    "0044-03-15 BC", "0100-02-28 BC", "0005-02-28 BC", "5874897-12-31", "294276-12-31", "infinity",
    "-infinity", "10000-01-01", "12345-06-07", "9999-12-31", "2008-12-29", "2005-01-01",
    "2009-12-31", "epoch", "1-1-1", "2024-02-29", "0099-01-01", "2100-03-01", "4000-12-31",
];

#[rustfmt::skip]
pub const TIMESTAMP_EDGES: &[&str] = &[
    "2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "1970-01-01 00:00:00",
    "2000-02-29 12:34:56.789", "2021-03-28 02:30:00", "2021-03-28 01:59:59.999999",
    "2021-03-28 03:00:00", "2021-10-31 02:30:00", "2021-10-31 03:00:00", "2021-03-14 02:30:00",
    "2021-11-07 01:30:00", "1883-11-18 12:00:00", "1850-01-01 00:00:00", "1945-05-24 02:30",
    "0001-01-01 00:00:00", "0001-12-31 23:59:59 BC", "4713-11-24 00:00:00 BC",
    "294276-12-31 23:59:59.999999", "infinity", "-infinity", "epoch", "2500-07-01 12:00:00",
    "10000-07-01 12:00:00", "12345-01-02 03:04:05", "2038-01-19 03:14:08", "2024-12-31 23:59:59.5",
    "2008-12-29 01:02:03.000001", "0044-03-15 12:00:00 BC", "200000-07-07 07:07:07.777777",
    "2014-10-26 01:30:00", "2011-12-30 12:00", "1999-01-08 04:05:06.1",
];

#[rustfmt::skip]
pub const TIME_EDGES: &[&str] = &[
    "00:00:00", "23:59:59.999999", "24:00:00", "12:00", "04:05:06.789", "01:02:03.000001",
    "23:59:60", "11:59:59.5", "00:00:00.000001",
];

#[rustfmt::skip]
pub const INTERVAL_EDGES: &[&str] = &[
    "0", "1 day", "-1 day", "1 mon", "-1 mon", "1 year", "1 year 2 mons 3 days 04:05:06.789",
    "-1 year -2 mons +3 days -04:05:06.789", "30 days", "24:00:00", "720:00:00", "1 microsecond",
    "-1 microsecond", "178956970 years 7 mons", "-178956970 years", "2147483647 days",
    "-2147483648 days", "2147483647 mons", "2562047788:00:54.775807", "-2562047788:00:54.775808",
    "1 mon -1 day", "-1 mon 30 days", "11 mons", "13 mons", "1.5 years", "1.3 mons", "0.5 days",
    "1.5 weeks", "10 decades", "2 centuries", "1 millennium", "-00:00:00.5", "1 day -23:59:59",
    "-1 day 23:59:59", "25:61:61", "100 days 100:00:00", "@ 1 day ago", "365 days 05:49:12", "1:00",
];

#[rustfmt::skip]
pub const ZONES: &[&str] = &[
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "America/St_Johns", "Europe/Moscow", "Pacific/Apia", "Asia/Kathmandu", "-5", "5.5",
    "Europe/Dublin", "Africa/Casablanca",
];

pub fn edges(t: TypeCode) -> &'static [&'static str] {
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
        TypeCode::Json | TypeCode::Jsonb => &[
            "{\"a\": [1, 2.50]}",
            "[]",
            "null",
            "\"\\u00e9\"",
            "[1,",
            "{\"a\":1,\"a\":2}",
        ],
        TypeCode::Uuid => &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a12}",
        ],
    }
}

/// An input that is valid (mostly).
pub fn random_input(t: TypeCode, r: &mut Rng) -> String {
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
        TypeCode::Json | TypeCode::Jsonb => {
            format!("{{\"a\": {}, \"b\": [{}]}}", r.next() % 100, r.next() % 10)
        }
        TypeCode::Uuid => format!("{:016x}{:016x}", r.next(), r.next()),
        TypeCode::Bool => r.pick(&["t", "f"]).to_string(),
    }
}

pub fn random_time(r: &mut Rng) -> String {
    let mut s = format!("{:02}:{:02}:{:02}", r.below(24), r.below(60), r.below(60));
    if r.below(2) == 0 {
        let n = 1 + r.below(6);
        let _ = write!(s, ".{}", r.digits(n));
    }
    s
}

pub fn random_interval(r: &mut Rng) -> String {
    #[rustfmt::skip]
    let units = [
        "year", "mon", "day", "hour", "min", "sec", "week", "decade", "millisecond", "microsecond",
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

pub fn random_numeric(r: &mut Rng) -> String {
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
pub fn odd_input(t: TypeCode, r: &mut Rng) -> String {
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

pub fn typmod(t: TypeCode, r: &mut Rng) -> i32 {
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
