//! Arithmetic of dates and timestamps, and conversions between them.

use super::{
    USECS_PER_DAY, USECS_PER_SEC, date_infinite, infinite, out_of_range, valid_date,
    valid_timestamp,
};
use crate::calendar::civil::{self, Civil};
use crate::calendar::zone::unix_seconds;
use crate::{Env, Error, Interval, Result};
use std::cmp::Ordering;

/// A timestamp in the session's time zone, and the offset.
pub(crate) fn local(t: i64, env: &Env) -> (Civil, i64) {
    let offset = env.zone.offset_at(unix_seconds(t));
    (
        civil::from_timestamp(t.saturating_add(offset * USECS_PER_SEC)),
        offset,
    )
}

/// The instant of a local time in the session's time zone.
pub(crate) fn from_local(c: &Civil, env: &Env) -> Option<i64> {
    c.timestamp(env.zone.offset_of(c))
}

/// `date + int4`
pub(crate) fn date_add_days(d: i32, days: i64) -> Result<i32> {
    if date_infinite(d) {
        return Ok(d);
    }
    let sum = i64::from(d) + days;
    // PostgreSQL adds in 32 bits.
    i32::try_from(sum)
        .ok()
        .and_then(|_| valid_date(sum))
        .ok_or_else(|| out_of_range("date"))
}

/// `date - date`
pub(crate) fn date_diff(a: i32, b: i32) -> Result<i32> {
    if date_infinite(a) || date_infinite(b) {
        return Err(Error::new(b"22008", "cannot subtract infinite dates"));
    }
    a.checked_sub(b).ok_or_else(|| out_of_range("date"))
}

/// The timestamp of a date at midnight.
pub(crate) fn date_to_timestamp(d: i32) -> Result<i64> {
    match d {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        _ => valid_timestamp(i128::from(d) * i128::from(USECS_PER_DAY))
            .ok_or_else(|| Error::new(b"22008", "date out of range for timestamp")),
    }
}

/// The instant of a date at midnight in the session's time zone.
pub(crate) fn date_to_timestamptz(d: i32, env: &Env) -> Result<i64> {
    match d {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        _ => local_midnight(d, env)
            .and_then(valid_timestamp)
            .ok_or_else(|| Error::new(b"22008", "date out of range for timestamp")),
    }
}

/// Midnight of a finite date in the session's time zone; may be out of range.
fn local_midnight(d: i32, env: &Env) -> Option<i128> {
    let (year, month, day) = civil::date(i64::from(d));
    let c = Civil {
        year,
        month,
        day,
        ..Civil::default()
    };
    let offset = i128::from(env.zone.offset_of(&c));
    Some(i128::from(d) * i128::from(USECS_PER_DAY) - offset * i128::from(USECS_PER_SEC))
}

/// Order of a date and a timestamp; a date beyond all timestamps is still below
/// infinity.
pub(crate) fn cmp_date_timestamp(d: i32, t: i64) -> Ordering {
    match d {
        i32::MAX => i64::MAX.cmp(&t),
        i32::MIN => i64::MIN.cmp(&t),
        _ => beyond(i128::from(d) * i128::from(USECS_PER_DAY), t),
    }
}

/// Order of a date and a timestamptz.
pub(crate) fn cmp_date_timestamptz(d: i32, t: i64, env: &Env) -> Ordering {
    match d {
        i32::MAX => i64::MAX.cmp(&t),
        i32::MIN => i64::MIN.cmp(&t),
        _ => local_midnight(d, env).map_or(Ordering::Greater, |v| beyond(v, t)),
    }
}

/// Order of a timestamp and a timestamptz.
pub(crate) fn cmp_timestamp_timestamptz(a: i64, t: i64, env: &Env) -> Ordering {
    if infinite(a) {
        return a.cmp(&t);
    }
    let offset = env.zone.offset_of(&civil::from_timestamp(a));
    beyond(
        i128::from(a) - i128::from(offset) * i128::from(USECS_PER_SEC),
        t,
    )
}

/// Order of a finite instant, which may be out of range, and a timestamp.
fn beyond(v: i128, t: i64) -> Ordering {
    match t {
        i64::MAX => Ordering::Less,
        i64::MIN => Ordering::Greater,
        _ => v.cmp(&i128::from(t)),
    }
}

/// `date + time`
pub(crate) fn date_add_time(d: i32, t: i64) -> Result<i64> {
    let base = date_to_timestamp(d)?;
    if infinite(base) {
        return Ok(base);
    }
    valid_timestamp(i128::from(base) + i128::from(t)).ok_or_else(|| out_of_range("timestamp"))
}

/// `timestamp + interval`
pub(crate) fn add(t: i64, span: &Interval) -> Result<i64> {
    add_with(
        t,
        span,
        |t| (civil::from_timestamp(t), 0),
        |c| c.timestamp(0),
    )
}

/// `timestamptz + interval`: months and days are local.
pub(crate) fn add_tz(t: i64, span: &Interval, env: &Env) -> Result<i64> {
    add_with(t, span, |t| local(t, env), |c| from_local(c, env))
}

fn add_with(
    mut t: i64,
    span: &Interval,
    break_down: impl Fn(i64) -> (Civil, i64),
    build: impl Fn(&Civil) -> Option<i64>,
) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    let range = || out_of_range("timestamp");
    if span.months != 0 {
        let (mut c, _) = break_down(t);
        let months = c.year * 12 + c.month - 1 + i64::from(span.months);
        (c.year, c.month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        c.day = c.day.min(civil::days_in_month(c.year, c.month));
        t = build(&c).ok_or_else(range)?;
    }
    if span.days != 0 {
        let (mut c, _) = break_down(t);
        (c.year, c.month, c.day) = civil::date(c.days() + i64::from(span.days));
        t = build(&c).ok_or_else(range)?;
    }
    valid_timestamp(i128::from(t) + i128::from(span.micros)).ok_or_else(range)
}

/// The negated interval, for subtraction.
pub(crate) fn opposite(span: &Interval) -> Interval {
    Interval {
        months: span.months.wrapping_neg(),
        days: span.days.wrapping_neg(),
        micros: span.micros.wrapping_neg(),
    }
}

/// `timestamp - timestamp`
pub(crate) fn diff(a: i64, b: i64) -> Result<Interval> {
    if infinite(a) || infinite(b) {
        return Err(Error::new(b"22008", "cannot subtract infinite timestamps"));
    }
    // PostgreSQL 15 does not check for overflow here.
    let micros = a.wrapping_sub(b);
    Interval {
        months: 0,
        days: 0,
        micros,
    }
    .justify_hours()
}

/// `time + interval`, wrapping around at midnight.
pub(crate) fn time_add(t: i64, span: i64) -> i64 {
    t.wrapping_add(span).rem_euclid(USECS_PER_DAY)
}

/// `time - interval`, wrapping around at midnight.
pub(crate) fn time_sub(t: i64, span: i64) -> i64 {
    t.wrapping_sub(span).rem_euclid(USECS_PER_DAY)
}

/// The date of a local timestamp.
pub(crate) fn timestamp_to_date(t: i64) -> Result<i32> {
    match t {
        i64::MAX => Ok(i32::MAX),
        i64::MIN => Ok(i32::MIN),
        _ => valid_date(t.div_euclid(USECS_PER_DAY)).ok_or_else(|| out_of_range("timestamp")),
    }
}

/// The date of an instant in the session's time zone.
pub(crate) fn timestamptz_to_date(t: i64, env: &Env) -> Result<i32> {
    if infinite(t) {
        return timestamp_to_date(t);
    }
    // The local time may be after the last timestamp, but its date is valid.
    valid_date(local(t, env).0.days()).ok_or_else(|| out_of_range("timestamp"))
}

/// The local time of an instant.
pub(crate) fn timestamptz_to_timestamp(t: i64, env: &Env) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    let (c, _) = local(t, env);
    c.timestamp(0).ok_or_else(|| out_of_range("timestamp"))
}

/// The instant of a local time.
pub(crate) fn timestamp_to_timestamptz(t: i64, env: &Env) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    from_local(&civil::from_timestamp(t), env).ok_or_else(|| out_of_range("timestamp"))
}

/// Time of day of a finite local timestamp.
pub(crate) fn timestamp_to_time(t: i64) -> i64 {
    t.rem_euclid(USECS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::super::{format, parse};
    use super::*;

    fn span(s: &str) -> Interval {
        super::super::interval::parse(s.as_bytes(), -1, &Env::default()).unwrap()
    }

    fn plus(s: &str, i: &str) -> String {
        let env = Env::default();
        let t = parse::timestamp(s.as_bytes(), &env).unwrap();
        match add(t, &span(i)) {
            Ok(t) => format::timestamp(t, &env),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    /// Months are added first, truncated to the end of the month, then days, then time.
    #[test]
    fn timestamps() {
        assert_eq!(plus("2004-01-31", "1 mon"), "2004-02-29 00:00:00");
        assert_eq!(plus("2004-02-29", "1 year"), "2005-02-28 00:00:00");
        assert_eq!(
            plus("2004-01-31", "1 mon 1 day 01:00"),
            "2004-03-01 01:00:00"
        );
        assert_eq!(plus("0001-01-01", "-1 day"), "0001-12-31 00:00:00 BC");
        assert_eq!(plus("294276-12-31", "1 day"), "22008");
        assert_eq!(plus("infinity", "1 day"), "infinity");
    }

    /// A day does not have 24 hours when the clock changes.
    #[test]
    fn date_of_the_last_instant() {
        let mut env = Env::default();
        env.set("TimeZone", "Asia/Kolkata").unwrap();
        let last = crate::datetime::END_TIMESTAMP - 1;
        let in_utc = timestamptz_to_date(last, &Env::default()).unwrap();
        assert_eq!(timestamptz_to_date(last, &env).unwrap(), in_utc + 1);
    }

    #[test]
    fn local_days() {
        let mut env = Env::default();
        env.set("TimeZone", "Europe/Berlin").unwrap();
        let t = parse::timestamptz(b"2021-03-27 12:00", &env).unwrap();
        let day = add_tz(t, &span("1 day"), &env).unwrap();
        let hours = add_tz(t, &span("24:00"), &env).unwrap();
        assert_eq!(format::timestamptz(day, &env), "2021-03-28 12:00:00+02");
        assert_eq!(format::timestamptz(hours, &env), "2021-03-28 13:00:00+02");
    }

    #[test]
    fn dates() {
        assert_eq!(date_add_days(0, 1).unwrap(), 1);
        assert_eq!(date_add_days(i32::MAX, 1).unwrap(), i32::MAX);
        assert_eq!(
            date_add_days(2_145_031_948, 1).unwrap_err().sqlstate,
            *b"22008"
        );
        assert_eq!(date_diff(i32::MAX, 0).unwrap_err().sqlstate, *b"22008");
        assert_eq!(
            date_to_timestamp(2_145_031_948).unwrap_err().message,
            "date out of range for timestamp"
        );
        assert_eq!(cmp_date_timestamp(2_145_031_948, i64::MAX), Ordering::Less);
        assert_eq!(cmp_date_timestamp(2_145_031_948, 0), Ordering::Greater);
        assert_eq!(time_add(0, -1), USECS_PER_DAY - 1);
    }
}
