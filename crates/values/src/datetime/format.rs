//! Writes dates, times, timestamps and intervals in all of PostgreSQL's styles.

use super::{USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC};
use crate::calendar::civil::{self, Civil};
use crate::calendar::zone::{Local, unix_seconds};
use crate::env::{DateOrder, DateStyle, IntervalStyle};
use crate::{Env, Interval};
use std::fmt::Write;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends formatted text; writing to a String cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); };
}

/// `ss[.ffffff]`, or `s[.ffffff]` without `fill`; no sign, no trailing zeros in the fraction.
fn put_seconds(out: &mut String, second: i64, micros: i64, fill: bool) {
    if fill {
        put_two(out, second.abs());
    } else {
        put!(out, "{}", second.unsigned_abs());
    }
    if micros != 0 {
        let fraction = format!("{:06}", micros.unsigned_abs());
        put!(out, ".{}", fraction.trim_end_matches('0'));
    }
}

/// Two digits.
fn put_two(out: &mut String, n: i64) {
    for digit in [n / 10 % 10, n % 10] {
        out.push(char::from(b'0' + digit.unsigned_abs() as u8));
    }
}

fn put_time(out: &mut String, c: &Civil) {
    put_two(out, c.hour);
    out.push(':');
    put_two(out, c.minute);
    out.push(':');
    put_seconds(out, c.second, c.micros, true);
}

/// Years before 1 AD are counted from 1 BC.
fn shown_year(c: &Civil) -> i64 {
    if c.year > 0 { c.year } else { 1 - c.year }
}

fn put_era(out: &mut String, c: &Civil) {
    if c.year <= 0 {
        out.push_str(" BC");
    }
}

fn put_date(out: &mut String, c: &Civil, env: &Env) {
    let year = shown_year(c);
    let dmy = env.date_order == DateOrder::Dmy;
    let (first, second) = if dmy {
        (c.day, c.month)
    } else {
        (c.month, c.day)
    };
    match env.date_style {
        DateStyle::Iso => {
            if year < 10_000 {
                put_two(out, year / 100);
                put_two(out, year % 100);
            } else {
                put!(out, "{year}");
            }
            out.push('-');
            put_two(out, c.month);
            out.push('-');
            put_two(out, c.day);
        }
        DateStyle::Sql => {
            put!(out, "{first:02}/{second:02}/{year:04}");
        }
        DateStyle::German => {
            put!(out, "{:02}.{:02}.{year:04}", c.day, c.month);
        }
        DateStyle::Postgres => {
            put!(out, "{first:02}-{second:02}-{year:04}");
        }
    }
}

/// PostgreSQL's output of a `date`.
pub(crate) fn date(d: i32, env: &Env) -> String {
    match d {
        i32::MAX => return "infinity".into(),
        i32::MIN => return "-infinity".into(),
        _ => {}
    }
    let (year, month, day) = civil::date(i64::from(d));
    let c = Civil {
        year,
        month,
        day,
        ..Civil::default()
    };
    let mut out = String::with_capacity(16);
    put_date(&mut out, &c, env);
    put_era(&mut out, &c);
    out
}

/// PostgreSQL's output of a `time`.
pub(crate) fn time(t: i64) -> String {
    let mut c = Civil::default();
    c.set_time(t);
    let mut out = String::with_capacity(16);
    put_time(&mut out, &c);
    out
}

/// PostgreSQL's output of a `timestamp`.
pub(crate) fn timestamp(t: i64, env: &Env) -> String {
    put_timestamp(t, None, env)
}

/// PostgreSQL's output of a `timestamptz`.
pub(crate) fn timestamptz(t: i64, env: &Env) -> String {
    let unix = unix_seconds(t);
    // ISO style has no zone name.
    let local = if env.date_style == DateStyle::Iso {
        Local {
            offset: env.zone.offset_at(unix),
            name: String::new(),
        }
    } else {
        env.zone.at(unix)
    };
    put_timestamp(t, Some(local), env)
}

fn put_timestamp(t: i64, local: Option<Local>, env: &Env) -> String {
    match t {
        i64::MAX => return "infinity".into(),
        i64::MIN => return "-infinity".into(),
        _ => {}
    }
    let offset = local.as_ref().map_or(0, |l| l.offset);
    let c = civil::from_timestamp(t.saturating_add(offset * USECS_PER_SEC));
    let mut out = String::with_capacity(32);
    if env.date_style == DateStyle::Postgres {
        let day = DAYS
            .get(civil::weekday(c.days()) as usize)
            .copied()
            .unwrap_or_default();
        let month = MONTHS
            .get((c.month - 1) as usize)
            .copied()
            .unwrap_or_default();
        if env.date_order == DateOrder::Dmy {
            put!(out, "{day} {:02} {month} ", c.day);
        } else {
            put!(out, "{day} {month} {:02} ", c.day);
        }
        put_time(&mut out, &c);
        put!(out, " {:04}", shown_year(&c));
    } else {
        put_date(&mut out, &c, env);
        out.push(' ');
        put_time(&mut out, &c);
    }
    match local {
        Some(local) if env.date_style == DateStyle::Iso => put_offset(&mut out, local.offset),
        Some(local) => {
            out.push(' ');
            out.push_str(local.name.get(..10).unwrap_or(&local.name));
        }
        None => {}
    }
    put_era(&mut out, &c);
    out
}

/// `±hh[:mm[:ss]]`
fn put_offset(out: &mut String, offset: i64) {
    let seconds = offset.unsigned_abs();
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    put!(out, "{}{h:02}", if offset < 0 { '-' } else { '+' });
    if m != 0 || s != 0 {
        put!(out, ":{m:02}");
    }
    if s != 0 {
        put!(out, ":{s:02}");
    }
}

/// An interval, broken down; all parts of the time have one sign.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub micros: i64,
}

impl Parts {
    pub(crate) fn of(v: &Interval) -> Parts {
        Parts {
            year: i64::from(v.months / 12),
            month: i64::from(v.months % 12),
            day: i64::from(v.days),
            hour: v.micros / USECS_PER_HOUR,
            minute: v.micros % USECS_PER_HOUR / USECS_PER_MINUTE,
            second: v.micros % USECS_PER_MINUTE / USECS_PER_SEC,
            micros: v.micros % USECS_PER_SEC,
        }
    }

    fn time_negative(&self) -> bool {
        self.hour < 0 || self.minute < 0 || self.second < 0 || self.micros < 0
    }

    fn time_zero(&self) -> bool {
        self.hour == 0 && self.minute == 0 && self.second == 0 && self.micros == 0
    }
}

/// PostgreSQL's output of an `interval`.
pub(crate) fn interval(v: &Interval, env: &Env) -> String {
    let parts = Parts::of(v);
    match env.interval_style {
        IntervalStyle::Postgres => postgres(&parts),
        IntervalStyle::Verbose => verbose(&parts),
        IntervalStyle::SqlStandard => sql_standard(&parts),
        IntervalStyle::Iso8601 => iso_8601(&parts),
    }
}

fn postgres(p: &Parts) -> String {
    let mut out = String::with_capacity(32);
    // The sign of a part is shown after a negative one.
    let mut after_negative = false;
    for (value, unit) in [(p.year, "year"), (p.month, "mon"), (p.day, "day")] {
        if value != 0 {
            let space = if out.is_empty() { "" } else { " " };
            let plus = if after_negative && value > 0 { "+" } else { "" };
            put!(
                out,
                "{space}{plus}{value} {unit}{}",
                if value == 1 { "" } else { "s" }
            );
            after_negative = value < 0;
        }
    }
    if out.is_empty() || !p.time_zero() {
        let space = if out.is_empty() { "" } else { " " };
        let sign = match (p.time_negative(), after_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let (hour, minute) = (p.hour.unsigned_abs(), p.minute.unsigned_abs());
        put!(out, "{space}{sign}{hour:02}:{minute:02}:");
        put_seconds(&mut out, p.second, p.micros, true);
    }
    out
}

fn verbose(p: &Parts) -> String {
    let mut out = String::from("@");
    let (mut zero, mut ago) = (true, false);
    let units = [
        (p.year, "year"),
        (p.month, "mon"),
        (p.day, "day"),
        (p.hour, "hour"),
        (p.minute, "min"),
    ];
    for (value, unit) in units {
        if value == 0 {
            continue;
        }
        // The sign of the first part decides about "ago".
        if zero {
            ago = value < 0;
        }
        let value = if ago { -value } else { value };
        put!(out, " {value} {unit}{}", if value == 1 { "" } else { "s" });
        zero = false;
    }
    if p.second != 0 || p.micros != 0 {
        out.push(' ');
        if p.second < 0 || (p.second == 0 && p.micros < 0) {
            if zero {
                ago = true;
            } else if !ago {
                out.push('-');
            }
        } else if ago {
            out.push('-');
        }
        put_seconds(&mut out, p.second, p.micros, false);
        out.push_str(if p.second.abs() != 1 || p.micros != 0 {
            " secs"
        } else {
            " sec"
        });
        zero = false;
    }
    if zero {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
    out
}

fn sql_standard(p: &Parts) -> String {
    let negative = p.year < 0 || p.month < 0 || p.day < 0 || p.time_negative();
    let time_positive = p.hour > 0 || p.minute > 0 || p.second > 0 || p.micros > 0;
    let positive = p.year > 0 || p.month > 0 || p.day > 0 || time_positive;
    let year_month = p.year != 0 || p.month != 0;
    let day_time = p.day != 0 || !p.time_zero();
    let mut out = String::with_capacity(32);
    if !negative && !positive {
        out.push('0');
        return out;
    }
    let (year, month, day) = (
        p.year.unsigned_abs(),
        p.month.unsigned_abs(),
        p.day.unsigned_abs(),
    );
    let (hour, minute) = (p.hour.unsigned_abs(), p.minute.unsigned_abs());
    if (negative && positive) || (year_month && day_time) {
        // The standard has no format for this: all signs are shown.
        let sign = |negative: bool| if negative { '-' } else { '+' };
        put!(out, "{}{year}-{month} ", sign(p.year < 0 || p.month < 0));
        put!(out, "{}{day} ", sign(p.day < 0));
        put!(out, "{}{hour}:{minute:02}:", sign(p.time_negative()));
        put_seconds(&mut out, p.second, p.micros, true);
        return out;
    }
    if negative {
        out.push('-');
    }
    if year_month {
        put!(out, "{year}-{month}");
        return out;
    }
    if day != 0 {
        put!(out, "{day} ");
    }
    put!(out, "{hour}:{minute:02}:");
    put_seconds(&mut out, p.second, p.micros, true);
    out
}

fn iso_8601(p: &Parts) -> String {
    let mut out = String::from("P");
    for (value, unit) in [(p.year, 'Y'), (p.month, 'M'), (p.day, 'D')] {
        if value != 0 {
            put!(out, "{value}{unit}");
        }
    }
    if p.time_zero() {
        if out.len() == 1 {
            out.push_str("T0S");
        }
        return out;
    }
    out.push('T');
    for (value, unit) in [(p.hour, 'H'), (p.minute, 'M')] {
        if value != 0 {
            put!(out, "{value}{unit}");
        }
    }
    if p.second != 0 || p.micros != 0 {
        if p.second < 0 || p.micros < 0 {
            out.push('-');
        }
        put_seconds(&mut out, p.second, p.micros, false);
        out.push('S');
    }
    out
}

/// Whether a time is in range (24:00 included).
pub(crate) fn valid_time(t: i64) -> bool {
    (0..=USECS_PER_DAY).contains(&t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_styles() {
        // 1997-12-17 15:37:16.5 UTC
        let t = -64_311_763_500_000;
        for (style, shown) in [
            ("ISO", "1997-12-17 07:37:16.5-08"),
            ("SQL, MDY", "12/17/1997 07:37:16.5 PST"),
            ("SQL, DMY", "17/12/1997 07:37:16.5 PST"),
            ("Postgres, MDY", "Wed Dec 17 07:37:16.5 1997 PST"),
            ("Postgres, DMY", "Wed 17 Dec 07:37:16.5 1997 PST"),
            ("German", "17.12.1997 07:37:16.5 PST"),
        ] {
            let mut env = Env::default();
            env.set("TimeZone", "America/Los_Angeles").unwrap();
            env.set("DateStyle", style).unwrap();
            assert_eq!(timestamptz(t, &env), shown);
        }
        assert_eq!(date(-730_119, &Env::default()), "0001-01-01");
        assert_eq!(date(-730_120, &Env::default()), "0001-12-31 BC");
    }

    #[test]
    fn interval_styles() {
        let mixed = Interval {
            months: -14,
            days: 3,
            micros: -14_706_789_000,
        };
        let plain = Interval {
            months: 0,
            days: 1,
            micros: 3_600_000_000,
        };
        let zero = Interval::default();
        for (style, a, b, c) in [
            (
                "postgres",
                "-1 years -2 mons +3 days -04:05:06.789",
                "1 day 01:00:00",
                "00:00:00",
            ),
            (
                "postgres_verbose",
                "@ 1 year 2 mons -3 days 4 hours 5 mins 6.789 secs ago",
                "@ 1 day 1 hour",
                "@ 0",
            ),
            ("sql_standard", "-1-2 +3 -4:05:06.789", "1 1:00:00", "0"),
            ("iso_8601", "P-1Y-2M3DT-4H-5M-6.789S", "P1DT1H", "PT0S"),
        ] {
            let mut env = Env::default();
            env.set("IntervalStyle", style).unwrap();
            assert_eq!(
                [
                    interval(&mixed, &env),
                    interval(&plain, &env),
                    interval(&zero, &env)
                ],
                [a, b, c]
            );
        }
    }
}
