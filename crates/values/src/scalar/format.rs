//! `to_char` of timestamps and intervals: templates of letters, and what each gives.
//!
//! Names of months and days are English, as PostgreSQL's are in locale C.

use crate::calendar::civil;
use crate::calendar::zone::unix_seconds;
use crate::calendar::{USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC, infinite};
use crate::datetime::arith;
use crate::error::{no_such_operation, too_large};
use crate::text as chars;
use crate::{Env, Error, Result, Value};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
pub(super) const ROMAN: [&str; 12] = [
    "XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I",
];

/// Template patterns in capital letters; of two that fit, the first one counts.
const PATTERNS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY",
    "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS",
    "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];
/// Those that are also written with one capital letter.
const TITLED: &[&str] = &["Day", "Dy", "Month", "Mon"];

/// How a pattern's letters are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
    Title,
}

/// A part of a template.
pub(super) enum Part<'f> {
    /// A character between double quotes.
    Text(&'f [u8]),
    /// One that is no pattern.
    Bare(&'f [u8]),
    Field {
        pattern: &'static str,
        case: Case,
        /// No padding.
        fill: bool,
        /// The ending of ordinal numbers, in capital letters or not.
        ordinal: Option<bool>,
    },
}

/// The parts of a template.
pub(super) fn parts(mut s: &[u8]) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    while !s.is_empty() {
        let prefix = [&b"FM"[..], b"fm", b"TM", b"tm"];
        let fill = prefix.iter().any(|p| s.starts_with(p));
        if fill {
            s = s.get(2..).unwrap_or_default();
        }
        if let Some((pattern, case, length)) = pattern(s) {
            s = s.get(length..).unwrap_or_default();
            let ordinal = match s {
                [b'T', b'H', ..] => Some(true),
                [b't', b'h', ..] => Some(false),
                _ => None,
            };
            if ordinal.is_some() || s.starts_with(b"SP") {
                s = s.get(2..).unwrap_or_default();
            }
            found.push(Part::Field {
                pattern,
                case,
                fill,
                ordinal,
            });
            continue;
        }
        s = match s {
            [b'"', rest @ ..] => quoted(rest, &mut found),
            [b'\\', b'"', ..] => bare(s.get(1..).unwrap_or_default(), &mut found),
            _ => bare(s, &mut found),
        };
    }
    found
}

fn bare<'f>(s: &'f [u8], found: &mut Vec<Part<'f>>) -> &'f [u8] {
    let (head, rest) = s.split_at_checked(chars::char_width(s)).unwrap_or((s, b""));
    found.push(Part::Bare(head));
    rest
}

/// A literal character.
fn one<'f>(s: &'f [u8], found: &mut Vec<Part<'f>>) -> &'f [u8] {
    let (head, rest) = s.split_at_checked(chars::char_width(s)).unwrap_or((s, b""));
    found.push(Part::Text(head));
    rest
}

/// Text up to a double quote.
fn quoted<'f>(mut s: &'f [u8], found: &mut Vec<Part<'f>>) -> &'f [u8] {
    loop {
        s = match s {
            [] => return s,
            [b'"', rest @ ..] => return rest,
            [b'\\', rest @ ..] if !rest.is_empty() => one(rest, found),
            _ => one(s, found),
        };
    }
}

/// The pattern at the start of a template.
fn pattern(s: &[u8]) -> Option<(&'static str, Case, usize)> {
    let titled = TITLED.iter().find(|p| s.starts_with(p.as_bytes()));
    if let Some(p) = titled {
        let upper = p.to_ascii_uppercase();
        let pattern = PATTERNS.iter().copied().find(|q| *q == upper)?;
        return Some((pattern, Case::Title, p.len()));
    }
    PATTERNS.iter().find_map(|p| {
        let head = s.get(..p.len())?;
        if head == p.as_bytes() {
            return Some((*p, Case::Upper, p.len()));
        }
        let lower = p.to_ascii_lowercase();
        (head == lower.as_bytes()).then_some((*p, Case::Lower, p.len()))
    })
}

/// A moment or span, broken down.
struct Broken {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    /// Days since 2000-01-01; `None` of a span.
    days: Option<i64>,
    zone: String,
    offset: i64,
}

impl Broken {
    fn of(v: &Value, env: &Env) -> Result<Broken> {
        let (c, offset, zone) = match v {
            Value::Timestamp(t) | Value::Timestamptz(t) if infinite(*t) => {
                return Err(Error::null());
            }
            Value::Timestamp(t) => (civil::from_timestamp(*t), 0, String::new()),
            Value::Timestamptz(t) => {
                let (c, offset) = arith::local(*t, env);
                (c, offset, env.zone.at(unix_seconds(*t)).name)
            }
            Value::Interval(i) => {
                let (year, month) = (i64::from(i.months / 12), i64::from(i.months % 12));
                return Ok(Broken {
                    year,
                    month,
                    day: i64::from(i.days),
                    hour: i.micros / USECS_PER_HOUR,
                    minute: i.micros % USECS_PER_HOUR / USECS_PER_MINUTE,
                    second: i.micros % USECS_PER_MINUTE / USECS_PER_SEC,
                    micros: i.micros % USECS_PER_SEC,
                    day_of_year: (year * 12 + month) * 30 + i64::from(i.days),
                    days: None,
                    zone: String::new(),
                    offset: 0,
                });
            }
            _ => return Err(no_such_operation()),
        };
        let days = c.days();
        Ok(Broken {
            year: c.year,
            month: c.month,
            day: c.day,
            hour: c.hour,
            minute: c.minute,
            second: c.second,
            micros: c.micros,
            day_of_year: days - civil::days(c.year, 1, 1) + 1,
            days: Some(days),
            zone,
            offset,
        })
    }

    /// Years before 1 AD count from 1 BC.
    fn shown(&self, year: i64) -> i64 {
        match self.days {
            Some(_) if year <= 0 => 1 - year,
            _ => year,
        }
    }

    fn calendar(&self) -> Result<i64> {
        self.days.ok_or_else(|| {
            Error::new(
                b"22007",
                "invalid format specification for an interval value",
            )
            .hint("Intervals are not tied to specific calendar dates.")
        })
    }
}

/// `to_char(v, template)`
pub(super) fn to_char(v: &Value, template: &[u8], env: &Env) -> Result<Value> {
    if template.is_empty() {
        return Err(Error::null());
    }
    let broken = Broken::of(v, env)?;
    if template.len() > chars::MAX_BYTES / 16 {
        return Err(too_large());
    }
    let mut out = Vec::new();
    for part in parts(template) {
        match part {
            Part::Text(text) | Part::Bare(text) => out.extend_from_slice(text),
            Part::Field {
                pattern,
                case,
                fill,
                ordinal,
            } => {
                let (shown, number) = field(&broken, pattern, case, fill)?;
                out.extend_from_slice(shown.as_bytes());
                if let (true, Some(upper)) = (number, ordinal) {
                    out.extend_from_slice(ending(&shown, upper).as_bytes());
                }
            }
        }
    }
    super::text(out)
}

/// The ending of an ordinal number.
pub(super) fn ending(number: &str, upper: bool) -> &'static str {
    let mut digits = number.bytes().rev();
    let (last, before) = (digits.next(), digits.next());
    let endings = match (last, before) {
        (_, Some(b'1')) => ("TH", "th"),
        (Some(b'1'), _) => ("ST", "st"),
        (Some(b'2'), _) => ("ND", "nd"),
        (Some(b'3'), _) => ("RD", "rd"),
        _ => ("TH", "th"),
    };
    if upper { endings.0 } else { endings.1 }
}

fn cased(name: &str, case: Case) -> String {
    match case {
        Case::Upper => name.to_ascii_uppercase(),
        Case::Lower => name.to_ascii_lowercase(),
        Case::Title => name.to_owned(),
    }
}

/// A name, with blanks up to a width unless it is filled.
fn named(name: &str, case: Case, fill: bool, width: usize) -> (String, bool) {
    let name = cased(name, case);
    let width = if fill { 0 } else { width };
    (format!("{name:<width$}"), false)
}

/// A number with zeros up to a width, one more with a sign.
fn padded(n: i64, fill: bool, width: usize) -> (String, bool) {
    let width = match (fill, n < 0) {
        (true, _) => 0,
        (false, negative) => width + usize::from(negative),
    };
    (format!("{n:0width$}"), true)
}

fn field(b: &Broken, pattern: &str, case: Case, fill: bool) -> Result<(String, bool)> {
    let word = |said: &str| Ok((cased(said, case), false));
    Ok(match pattern {
        "A.M." | "P.M." | "AM" | "PM" => {
            let late = b.hour.rem_euclid(24) >= 12 && b.hour >= 0;
            return word(match (pattern.contains('.'), late) {
                (true, false) => "A.M.",
                (true, true) => "P.M.",
                (false, false) => "AM",
                (false, true) => "PM",
            });
        }
        "HH" | "HH12" => {
            let hour = if b.hour % 12 == 0 { 12 } else { b.hour % 12 };
            let width = if fill { 0 } else { 2 + usize::from(b.hour < 0) };
            (format!("{hour:0width$}"), true)
        }
        "HH24" => padded(b.hour, fill, 2),
        "MI" => padded(b.minute, fill, 2),
        "SS" => padded(b.second, fill, 2),
        "FF1" => (format!("{:01}", b.micros / 100_000), true),
        "FF2" => (format!("{:02}", b.micros / 10_000), true),
        "FF3" | "MS" => (format!("{:03}", b.micros / 1000), true),
        "FF4" => (format!("{:04}", b.micros / 100), true),
        "FF5" => (format!("{:05}", b.micros / 10), true),
        "FF6" | "US" => (format!("{:06}", b.micros), true),
        "SSSS" | "SSSSS" => {
            let seconds = (b.hour * 60 + b.minute) * 60 + b.second;
            (seconds.to_string(), true)
        }
        "TZ" | "TZH" | "TZM" | "OF" => return zone(b, pattern, case, fill),
        "FX" => (String::new(), false),
        _ => return date_field(b, pattern, case, fill),
    })
}

fn zone(b: &Broken, pattern: &str, case: Case, fill: bool) -> Result<(String, bool)> {
    b.calendar()?;
    let sign = if b.offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (b.offset.abs() / 3600, b.offset.abs() % 3600 / 60);
    let width = if fill { 0 } else { 2 };
    let shown = match pattern {
        "TZ" if case == Case::Lower => b.zone.to_ascii_lowercase(),
        "TZ" => b.zone.clone(),
        "TZH" => format!("{sign}{hours:02}"),
        "TZM" => format!("{minutes:02}"),
        _ if b.offset % 3600 != 0 => format!("{sign}{hours:0width$}:{minutes:02}"),
        _ => format!("{sign}{hours:0width$}"),
    };
    Ok((shown, false))
}

fn date_field(b: &Broken, pattern: &str, case: Case, fill: bool) -> Result<(String, bool)> {
    let month = usize::try_from(b.month - 1).ok();
    let month_name = || month.and_then(|m| MONTHS.get(m)).copied();
    Ok(match pattern {
        "A.D." | "B.C." | "AD" | "BC" => (cased(era(b, pattern)?, case), false),
        "MONTH" | "MON" => {
            b.calendar()?;
            match (month_name(), pattern) {
                (None, _) => (String::new(), false),
                (Some(name), "MONTH") => named(name, case, fill, 9),
                (Some(name), _) => (cased(name.get(..3).unwrap_or(name), case), false),
            }
        }
        "MM" => padded(b.month, fill, 2),
        "DAY" | "DY" => {
            let weekday = civil::weekday(b.calendar()?) as usize;
            let name = DAYS.get(weekday).copied().unwrap_or_default();
            match pattern {
                "DAY" => named(name, case, fill, 9),
                _ => (cased(name.get(..3).unwrap_or(name), case), false),
            }
        }
        "DD" => {
            let width = if fill { 0 } else { 2 };
            (format!("{:0width$}", b.day), true)
        }
        "DDD" => {
            let width = if fill { 0 } else { 3 };
            (format!("{:0width$}", b.day_of_year), true)
        }
        "D" => (
            civil::weekday(b.calendar()?).wrapping_add(1).to_string(),
            true,
        ),
        "WW" => {
            let width = if fill { 0 } else { 2 };
            (format!("{:0width$}", (b.day_of_year - 1) / 7 + 1), true)
        }
        "W" => (
            (b.day - 1).wrapping_div(7).wrapping_add(1).to_string(),
            true,
        ),
        "Q" if b.month == 0 => (String::new(), false),
        "Q" => (((b.month - 1) / 3 + 1).to_string(), true),
        "RM" => roman(b, case, fill),
        "J" => {
            let days = b
                .days
                .unwrap_or_else(|| civil::days(b.year, b.month.max(1), b.day));
            (civil::julian(days).to_string(), true)
        }
        _ => return year_field(b, pattern, fill),
    })
}

fn era(b: &Broken, pattern: &str) -> Result<&'static str> {
    b.calendar()?;
    Ok(match (pattern.contains('.'), b.year <= 0) {
        (true, true) => "B.C.",
        (true, false) => "A.D.",
        (false, true) => "BC",
        (false, false) => "AD",
    })
}

fn roman(b: &Broken, case: Case, fill: bool) -> (String, bool) {
    let index = match (b.month, b.year) {
        (0, 0) => return (String::new(), false),
        (0, 0..) => 0,
        (0, _) => 11,
        (m @ ..0, _) => -(m + 1),
        (m, _) => 12 - m,
    };
    let name = usize::try_from(index).ok().and_then(|i| ROMAN.get(i));
    named(name.copied().unwrap_or_default(), case, fill, 4)
}

fn year_field(b: &Broken, pattern: &str, fill: bool) -> Result<(String, bool)> {
    let iso = |b: &Broken| b.calendar().map(civil::iso_week);
    Ok(match pattern {
        "CC" => {
            let century = match (b.days, b.year) {
                (None, year) => year / 100,
                (_, 1..) => (b.year - 1) / 100 + 1,
                (_, year) => year / 100 - 1,
            };
            match century {
                -99..=99 => padded(century, fill, 2),
                _ => (century.to_string(), true),
            }
        }
        "Y,YYY" => {
            let year = b.shown(b.year);
            (format!("{},{:03}", year / 1000, year % 1000), true)
        }
        "YYYY" => padded(b.shown(b.year), fill, 4),
        "YYY" => padded(b.shown(b.year) % 1000, fill, 3),
        "YY" => padded(b.shown(b.year) % 100, fill, 2),
        "Y" => ((b.shown(b.year) % 10).to_string(), true),
        "IYYY" => padded(b.shown(iso(b)?.0), fill, 4),
        "IYY" => padded(b.shown(iso(b)?.0) % 1000, fill, 3),
        "IY" => padded(b.shown(iso(b)?.0) % 100, fill, 2),
        "I" => ((b.shown(iso(b)?.0) % 10).to_string(), true),
        "IW" => {
            let width = if fill { 0 } else { 2 };
            (format!("{:0width$}", iso(b)?.1), true)
        }
        "ID" => {
            let weekday = civil::weekday(b.calendar()?);
            (if weekday == 0 { 7 } else { weekday }.to_string(), true)
        }
        "IDDD" => {
            let days = b.calendar()?;
            let weekday = (days + 5).rem_euclid(7);
            let day = (iso(b)?.1 - 1) * 7 + weekday + 1;
            let width = if fill { 0 } else { 3 };
            (format!("{day:0width$}"), true)
        }
        _ => return Err(no_such_operation()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_text;
    use contract::TypeCode;

    fn shown(t: TypeCode, s: &str, template: &str) -> String {
        let mut env = Env::default();
        env.set("TimeZone", "America/New_York").unwrap();
        let v = parse_text(t, -1, s.as_bytes(), &env).unwrap();
        match to_char(&v, template.as_bytes(), &env) {
            Ok(Value::Text(s)) => String::from_utf8(s.into()).unwrap(),
            Ok(_) => "other".into(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn moments() {
        for (template, expected) in [
            ("YYYY-MM-DD HH24:MI:SS.US", "2024-02-29 15:04:05.600000"),
            ("Day, DD Month YYYY", "Thursday , 29 February  2024"),
            ("FMDay, FMDDth FMMonth", "Thursday, 29th February"),
            ("HH12:MI am", "03:04 pm"),
            ("IYYY-IW-ID IDDD", "2024-09-4 060"),
            ("\"year\" Y,YYY \\\"", "year 2,024 \""),
            ("CC Q RM DDD J", "21 1 II   060 2460370"),
            ("Mi", "M4"),
            ("", "00000"),
            ("TZ OF", " +00"),
        ] {
            let got = shown(TypeCode::Timestamp, "2024-02-29 15:04:05.6", template);
            assert_eq!(got, expected, "{template}");
        }
        assert_eq!(
            shown(TypeCode::Timestamp, "0044-03-15 BC", "YYYY BC"),
            "0044 BC"
        );
        assert_eq!(shown(TypeCode::Timestamp, "infinity", "YYYY"), "00000");
        let zoned = shown(
            TypeCode::Timestamptz,
            "2024-07-01 12:00+00",
            "HH24 TZ tz OF TZH:TZM",
        );
        assert_eq!(zoned, "08 EDT edt -04 -04:00");
    }

    #[test]
    fn spans() {
        let span = |template| {
            shown(
                TypeCode::Interval,
                "1 year 2 mons -3 days 100:05:06",
                template,
            )
        };
        assert_eq!(span("YYYY MM DD HH24:MI:SS"), "0001 02 -3 100:05:06");
        assert_eq!(span("Month"), "22007");
        assert_eq!(
            shown(TypeCode::Interval, "-01:02:03", "HH24:MI:SS"),
            "-01:-02:-03"
        );
    }
}
