//! Functions of dates and times: zones, bins, ages, and what makes them of numbers.

use crate::calendar::civil::{self, Civil};
use crate::calendar::zone::{Zone, unix_seconds};
use crate::calendar::{
    USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC, date_infinite, infinite,
    valid_date, valid_timestamp,
};
use crate::datetime::abbrev::{self, Abbrev};
use crate::datetime::{arith, extract, out_of_range, token};
use crate::error::no_such_operation;
use crate::{Env, Error, Interval, Result, Value};
use contract::{Op, TypeCode, Unit};

/// 1970-01-01 in seconds before 2000-01-01.
const UNIX_SECONDS: f64 = 946_684_800.0;

pub(super) fn apply(op: Op, ret: TypeCode, args: &[&Value], env: &Env) -> Result<Value> {
    use Value as V;
    match (op, args) {
        // Before the zone is checked.
        (Op::TimeZone, [_, V::Timestamp(n)]) if infinite(*n) => Ok(V::Timestamptz(*n)),
        (Op::TimeZone, [_, V::Timestamptz(n)]) if infinite(*n) => Ok(V::Timestamp(*n)),
        (Op::DateTruncZone, [_, t @ V::Timestamptz(n), _]) if infinite(*n) => Ok((*t).clone()),
        (Op::TimeZone, [V::Text(zone), t]) => at_zone(&Place::find(zone)?, t),
        (Op::TimeZone, [V::Interval(span), t]) => at_zone(&Place::of_interval(span)?, t),
        (Op::DateTruncZone, [V::Text(unit), t, V::Text(zone)]) => {
            let mut there = env.clone();
            there.zone = Place::find(zone)?.zone();
            extract::date_trunc(unit_of(unit)?, t, &there)
        }
        (Op::DateBin, [V::Interval(stride), V::Timestamp(t), V::Timestamp(origin)]) => {
            bin(stride, *t, *origin).map(V::Timestamp)
        }
        (
            Op::DateBin,
            [
                V::Interval(stride),
                V::Timestamptz(t),
                V::Timestamptz(origin),
            ],
        ) => bin(stride, *t, *origin).map(V::Timestamptz),
        (Op::Age, [V::Timestamp(a), V::Timestamp(b)]) => {
            age(*a, *b, civil::from_timestamp).map(V::Interval)
        }
        (Op::Age, [V::Timestamptz(a), V::Timestamptz(b)]) => {
            let offset = |t| env.zone.offset_at(unix_seconds(t));
            let local = |t| match t {
                // PostgreSQL treats it as a moment, which with an offset does not fit in 64 bits.
                i64::MAX => {
                    let before = t - USECS_PER_DAY + offset(t) * USECS_PER_SEC;
                    let mut c = civil::from_timestamp(before);
                    (c.year, c.month, c.day) = civil::date(c.days() + 1);
                    c
                }
                _ => arith::local(t, env).0,
            };
            age(*a, *b, local).map(V::Interval)
        }
        (Op::JustifyHours, [V::Interval(i)]) => i.justify_hours().map(V::Interval),
        (Op::JustifyDays, [V::Interval(i)]) => justify_days(*i).map(V::Interval),
        (Op::JustifyInterval, [V::Interval(i)]) => justify_interval(*i).map(V::Interval),
        (Op::MakeDate, [V::Int4(y), V::Int4(m), V::Int4(d)]) => make_date(*y, *m, *d).map(V::Date),
        (Op::MakeTime, [V::Int4(h), V::Int4(m), V::Float8(s)]) => {
            make_time(*h, *m, *s).map(V::Time)
        }
        (Op::MakeTimestamp | Op::MakeTimestamptz, _) => make_timestamp(ret, args, env),
        (Op::MakeInterval, _) => make_interval(args).map(V::Interval),
        (Op::IsFinite, [V::Date(d)]) => Ok(V::Bool(!date_infinite(*d))),
        (Op::IsFinite, [V::Timestamp(t) | V::Timestamptz(t)]) => Ok(V::Bool(!infinite(*t))),
        (Op::IsFinite, [V::Interval(_)]) => Ok(V::Bool(true)),
        _ => Err(no_such_operation()),
    }
}

/// A time zone as functions take it: a name, an abbreviation, or an offset.
enum Place {
    Zone(Zone),
    /// An abbreviation whose meaning depends on the time.
    Named(Zone, String),
}

fn unknown_zone() -> Error {
    Error::new(b"22023", "time zone not recognized")
}

impl Place {
    fn find(name: &[u8]) -> Result<Place> {
        let lower = name.to_ascii_lowercase();
        match abbrev::find(&lower) {
            Some(Abbrev::Fixed(offset, _)) => Ok(Place::Zone(Zone::Fixed(offset, None))),
            Some(Abbrev::Zone(zone)) => {
                let zone = Zone::find(zone).ok_or_else(unknown_zone)?;
                let abbreviation = String::from_utf8_lossy(&lower).into_owned();
                Ok(Place::Named(zone, abbreviation))
            }
            None => {
                let name = std::str::from_utf8(name).map_err(|_| unknown_zone())?;
                Zone::find(name).map(Place::Zone).ok_or_else(unknown_zone)
            }
        }
    }

    fn of_interval(span: &Interval) -> Result<Place> {
        if span.months != 0 || span.days != 0 {
            return Err(Error::new(
                b"22023",
                "interval time zone must not include months or days",
            ));
        }
        // PostgreSQL keeps 32 bits.
        let seconds = (span.micros / USECS_PER_SEC) as i32;
        Ok(Place::Zone(Zone::Fixed(seconds, None)))
    }

    fn zone(self) -> Zone {
        match self {
            Place::Zone(zone) | Place::Named(zone, _) => zone,
        }
    }

    /// Seconds east of UTC at a local time.
    fn offset_of(&self, local: &Civil) -> i64 {
        match self {
            Place::Zone(zone) => zone.offset_of(local),
            Place::Named(zone, abbreviation) => zone.abbreviated(abbreviation, local),
        }
    }

    /// Seconds east of UTC at an instant.
    fn offset_at(&self, t: i64) -> i64 {
        match self {
            Place::Zone(zone) => zone.offset_at(unix_seconds(t)),
            Place::Named(zone, abbreviation) => {
                let near = zone.offset_at(unix_seconds(t));
                let local = civil::from_timestamp(t.saturating_add(near * USECS_PER_SEC));
                zone.abbreviated(abbreviation, &local)
            }
        }
    }
}

fn moved(t: i64, seconds: i64) -> Result<i64> {
    let moved = i128::from(t) + i128::from(seconds) * i128::from(USECS_PER_SEC);
    valid_timestamp(moved).ok_or_else(|| out_of_range("timestamp"))
}

/// `t AT TIME ZONE place`
fn at_zone(place: &Place, t: &Value) -> Result<Value> {
    match *t {
        Value::Timestamptz(t) if infinite(t) => Ok(Value::Timestamp(t)),
        Value::Timestamp(t) if infinite(t) => Ok(Value::Timestamptz(t)),
        Value::Timestamptz(t) => moved(t, place.offset_at(t)).map(Value::Timestamp),
        Value::Timestamp(t) => {
            let local = civil::from_timestamp(t);
            moved(t, -place.offset_of(&local)).map(Value::Timestamptz)
        }
        _ => Err(no_such_operation()),
    }
}

/// The field of `date_trunc` by any of its names.
fn unit_of(name: &[u8]) -> Result<Unit> {
    use token::Unit as U;
    let unknown = || {
        Error::new(
            b"22023",
            "unit not recognized for type timestamp with time zone",
        )
    };
    match token::span(&name.to_ascii_lowercase()) {
        Some(token::Span::Unit(unit)) => Ok(match unit {
            U::Micro => Unit::Microseconds,
            U::Milli => Unit::Milliseconds,
            U::Second => Unit::Second,
            U::Minute => Unit::Minute,
            U::Hour => Unit::Hour,
            U::Day => Unit::Day,
            U::Week => Unit::Week,
            U::Month => Unit::Month,
            U::Quarter => Unit::Quarter,
            U::Year => Unit::Year,
            U::Decade => Unit::Decade,
            U::Century => Unit::Century,
            U::Millennium => Unit::Millennium,
            _ => Unit::Timezone,
        }),
        _ => Err(unknown()),
    }
}

fn bin(stride: &Interval, t: i64, origin: i64) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    if infinite(origin) {
        return Err(Error::new(b"22008", "origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::new(
            b"0A000",
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let interval = || out_of_range("interval");
    let days = i64::from(stride.days).checked_mul(USECS_PER_DAY);
    let stride = days.and_then(|d| d.checked_add(stride.micros));
    let stride = stride.ok_or_else(interval)?;
    if stride <= 0 {
        return Err(Error::new(b"22008", "stride must be greater than zero"));
    }
    let apart = t.checked_sub(origin).ok_or_else(interval)?;
    let start = i128::from(origin) + i128::from(apart) - i128::from(apart.rem_euclid(stride));
    valid_timestamp(start).ok_or_else(|| out_of_range("timestamp"))
}

/// Years, months, days and time between two moments, as on a calendar.
fn age(a: i64, b: i64, broken_down: impl Fn(i64) -> Civil) -> Result<Interval> {
    if a == i64::MIN || b == i64::MIN {
        return Err(out_of_range("timestamp"));
    }
    let (x, y) = (broken_down(a), broken_down(b));
    let sign = if a < b { -1 } else { 1 };
    let mut micros = (x.time() - y.time()) * sign;
    let mut days = (x.day - y.day) * sign;
    let mut months = (x.month - y.month) * sign;
    let mut years = (x.year - y.year) * sign;
    if micros < 0 {
        micros += USECS_PER_DAY;
        days -= 1;
    }
    let month = if a < b { &x } else { &y };
    while days < 0 {
        days += civil::days_in_month(month.year, month.month);
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    let narrow = |n: i64| i32::try_from(n * sign).map_err(|_| out_of_range("interval"));
    Ok(Interval {
        months: narrow(years * 12 + months)?,
        days: narrow(days)?,
        micros: micros * sign,
    })
}

fn add_months(i: &mut Interval, months: i32) -> Result<()> {
    let sum = i.months.checked_add(months);
    i.months = sum.ok_or_else(|| out_of_range("interval"))?;
    Ok(())
}

/// 30 days become a month.
fn justify_days(mut i: Interval) -> Result<Interval> {
    let months = i.days / 30;
    i.days -= months * 30;
    add_months(&mut i, months)?;
    if i.months > 0 && i.days < 0 {
        i.days += 30;
        i.months -= 1;
    } else if i.months < 0 && i.days > 0 {
        i.days -= 30;
        i.months += 1;
    }
    Ok(i)
}

/// 24 hours become a day, 30 days a month, and all have one sign.
fn justify_interval(mut i: Interval) -> Result<Interval> {
    if (i.days > 0 && i.micros > 0) || (i.days < 0 && i.micros < 0) {
        let months = i.days / 30;
        i.days -= months * 30;
        add_months(&mut i, months)?;
    }
    let days = i.micros / USECS_PER_DAY;
    i.micros -= days * USECS_PER_DAY;
    let days = i64::from(i.days) + days;
    i.days = i32::try_from(days).map_err(|_| out_of_range("interval"))?;
    let months = i.days / 30;
    i.days -= months * 30;
    add_months(&mut i, months)?;
    if i.months > 0 && (i.days < 0 || (i.days == 0 && i.micros < 0)) {
        i.days += 30;
        i.months -= 1;
    } else if i.months < 0 && (i.days > 0 || (i.days == 0 && i.micros > 0)) {
        i.days -= 30;
        i.months += 1;
    }
    if i.days > 0 && i.micros < 0 {
        i.micros += USECS_PER_DAY;
        i.days -= 1;
    } else if i.days < 0 && i.micros > 0 {
        i.micros -= USECS_PER_DAY;
        i.days += 1;
    }
    Ok(i)
}

/// Days since 2000-01-01 of a year (negative: BC), month and day that exist.
pub(super) fn make_date(year: i32, month: i32, day: i32) -> Result<i32> {
    let field = || Error::new(b"22008", "date field value out of range");
    let year = i64::from(year);
    let (month, day) = (i64::from(month), i64::from(day));
    let year = match year {
        0 => return Err(field()),
        ..0 => year + 1,
        _ => year,
    };
    if !(1..=12).contains(&month) || day < 1 || day > civil::days_in_month(year, month) {
        return Err(field());
    }
    let valid = civil::valid_julian(year, month)
        .then(|| valid_date(civil::days(year, month, day)))
        .flatten();
    valid.ok_or_else(|| out_of_range("date"))
}

/// Microseconds since midnight.
pub(super) fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let field = || Error::new(b"22008", "time field value out of range");
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || second.is_nan() {
        return Err(field());
    }
    let micros = (second * 1_000_000.0).round_ties_even();
    if !(0.0..=60_000_000.0).contains(&micros) {
        return Err(field());
    }
    let minutes = i64::from(hour) * 60 + i64::from(minute);
    let time = minutes * USECS_PER_MINUTE + micros as i64;
    (time <= USECS_PER_DAY).then_some(time).ok_or_else(field)
}

fn make_timestamp(ret: TypeCode, args: &[&Value], env: &Env) -> Result<Value> {
    use Value::{Float8, Int4, Text};
    let (
        [
            Int4(year),
            Int4(month),
            Int4(day),
            Int4(hour),
            Int4(minute),
            Float8(second),
        ],
        rest,
    ) = args.split_at_checked(6).ok_or_else(no_such_operation)?
    else {
        return Err(no_such_operation());
    };
    let date = make_date(*year, *month, *day)?;
    let time = make_time(*hour, *minute, *second)?;
    let t = i128::from(date) * i128::from(USECS_PER_DAY) + i128::from(time);
    let t = valid_timestamp(t).ok_or_else(|| out_of_range("timestamp"))?;
    match (ret, rest) {
        (TypeCode::Timestamp, []) => Ok(Value::Timestamp(t)),
        (_, []) => arith::timestamp_to_timestamptz(t, env).map(Value::Timestamptz),
        (_, [Text(zone)]) => at_zone(&written_zone(zone)?, &Value::Timestamp(t)),
        _ => Err(no_such_operation()),
    }
}

/// A zone of `make_timestamptz`: a name, or an offset with its sign.
fn written_zone(s: &[u8]) -> Result<Place> {
    let bad = || {
        Error::new(b"22023", "invalid input syntax for type numeric time zone")
            .hint("Numeric time zones must have \"-\" or \"+\" as first character.")
    };
    let (sign, digits) = match s {
        [b'0'..=b'9', ..] => return Err(bad()),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Place::find(s),
    };
    let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
    let mut parts = [0i32; 3];
    let pieces: Vec<&str> = match (digits.contains(':'), digits.len()) {
        (false, 3..) => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            vec![hours, minutes]
        }
        _ => digits.split(':').collect(),
    };
    if pieces.len() > 3 {
        return Err(bad());
    }
    for (part, piece) in parts.iter_mut().zip(pieces) {
        *part = piece.parse().map_err(|_| bad())?;
    }
    let [hours, minutes, seconds] = parts;
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Error::new(b"22023", "numeric time zone out of range"));
    }
    let offset = sign * (hours * 3600 + minutes * 60 + seconds);
    Ok(Place::Zone(Zone::Fixed(offset, None)))
}

/// Years, months, weeks, days, hours, minutes, seconds: as many as are there.
fn make_interval(args: &[&Value]) -> Result<Interval> {
    let mut fields = [0i32; 6];
    for (field, arg) in fields.iter_mut().zip(args) {
        let Value::Int4(n) = arg else {
            return Err(no_such_operation());
        };
        *field = *n;
    }
    let seconds = match args.get(6) {
        None => 0.0,
        Some(Value::Float8(s)) if s.is_finite() => (s * 1_000_000.0).round_ties_even(),
        Some(_) => return Err(out_of_range("interval")),
    };
    let [years, months, weeks, days, hours, minutes] = fields;
    let time = i64::from(hours) * USECS_PER_HOUR + i64::from(minutes) * USECS_PER_MINUTE;
    Ok(Interval {
        months: years.wrapping_mul(12).wrapping_add(months),
        days: weeks.wrapping_mul(7).wrapping_add(days),
        micros: time.wrapping_add(seconds as i64),
    })
}

/// `to_timestamp(seconds since 1970)`
pub(super) fn from_epoch(seconds: f64) -> Result<Value> {
    if seconds.is_nan() {
        return Err(Error::new(b"22008", "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        let end = if seconds < 0.0 { i64::MIN } else { i64::MAX };
        return Ok(Value::Timestamptz(end));
    }
    let micros = ((seconds - UNIX_SECONDS) * 1_000_000.0).round_ties_even();
    valid_timestamp(micros as i128)
        .map(Value::Timestamptz)
        .ok_or_else(|| out_of_range("timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format_text, parse_text};

    fn v(t: TypeCode, s: &str) -> Value {
        parse_text(t, -1, s.as_bytes(), &Env::default()).unwrap()
    }

    fn run(op: Op, ret: TypeCode, args: &[Value]) -> String {
        let env = Env::default();
        let args: Vec<&Value> = args.iter().collect();
        match apply(op, ret, &args, &env) {
            Ok(v) => String::from_utf8(format_text(&v, &env)).unwrap(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn zones() {
        use TypeCode::{Interval, Text, Timestamp, Timestamptz};
        let winter = || v(Timestamptz, "2024-01-01 12:00+00");
        for (zone, expected) in [
            ("America/New_York", "2024-01-01 07:00:00"),
            ("est", "2024-01-01 07:00:00"),
            ("EDT", "2024-01-01 08:00:00"),
            ("UTC", "2024-01-01 12:00:00"),
            ("Nowhere/Land", "22023"),
        ] {
            assert_eq!(
                run(Op::TimeZone, Timestamp, &[v(Text, zone), winter()]),
                expected
            );
        }
        let local = v(Timestamp, "2024-07-01 12:00");
        let there = [v(Text, "Europe/Berlin"), local];
        assert_eq!(
            run(Op::TimeZone, Timestamptz, &there),
            "2024-07-01 10:00:00+00"
        );
        let month = [v(Interval, "1 mon"), winter()];
        assert_eq!(run(Op::TimeZone, Timestamp, &month), "22023");
        let endless = [v(Text, "UTC"), v(Timestamptz, "infinity")];
        assert_eq!(run(Op::TimeZone, Timestamp, &endless), "infinity");
    }

    #[test]
    fn bins() {
        use TypeCode::{Interval, Timestamp};
        for (stride, t, expected) in [
            ("15 minutes", "2020-02-11 15:44:17", "2020-02-11 15:30:00"),
            ("15 minutes", "1999-02-11 15:44:17", "1999-02-11 15:30:00"),
            ("1 month", "2020-02-11", "0A000"),
            ("0", "2020-02-11", "22008"),
            ("1 day", "infinity", "infinity"),
        ] {
            let args = [
                v(Interval, stride),
                v(Timestamp, t),
                v(Timestamp, "2001-01-01"),
            ];
            assert_eq!(run(Op::DateBin, Timestamp, &args), expected, "{stride} {t}");
        }
    }

    #[test]
    fn ages() {
        use TypeCode::{Interval, Timestamp};
        for (a, b, expected) in [
            ("2001-04-10", "1957-06-13", "43 years 9 mons 27 days"),
            ("1957-06-13", "2001-04-10", "-43 years -9 mons -27 days"),
            ("2000-03-01", "2000-02-29 12:00", "12:00:00"),
            ("-infinity", "2000-01-01", "22008"),
            (
                "2000-01-01",
                "infinity",
                "-292277 years -8 days -04:00:54.775807",
            ),
        ] {
            let args = [v(Timestamp, a), v(Timestamp, b)];
            assert_eq!(run(Op::Age, Interval, &args), expected, "{a} {b}");
        }
        for (op, i, expected) in [
            (Op::JustifyDays, "35 days", "1 mon 5 days"),
            (Op::JustifyHours, "27 hours", "1 day 03:00:00"),
            (Op::JustifyInterval, "1 mon -1 hour", "29 days 23:00:00"),
            (Op::JustifyInterval, "2147483647 mons 30 days", "22008"),
        ] {
            assert_eq!(run(op, Interval, &[v(Interval, i)]), expected, "{i}");
        }
    }

    #[test]
    fn made_of_numbers() {
        use TypeCode::{Date, Text, Time, Timestamptz};
        let n = Value::Int4;
        for (y, m, d, expected) in [
            (2024, 2, 29, "2024-02-29"),
            (-44, 3, 15, "0044-03-15 BC"),
            (2023, 2, 29, "22008"),
            (0, 1, 1, "22008"),
            (i32::MIN, 1, 1, "22008"),
            (6_000_000, 1, 1, "22008"),
        ] {
            assert_eq!(run(Op::MakeDate, Date, &[n(y), n(m), n(d)]), expected);
        }
        for (h, m, s, expected) in [
            (10, 20, 30.5, "10:20:30.5"),
            (24, 0, 0.0, "24:00:00"),
            (24, 0, 0.5, "22008"),
            (10, 60, 0.0, "22008"),
            (10, 0, f64::NAN, "22008"),
        ] {
            assert_eq!(
                run(Op::MakeTime, Time, &[n(h), n(m), Value::Float8(s)]),
                expected
            );
        }
        let at = |zone: &str| {
            let six = [
                n(2020),
                n(1),
                n(1),
                n(10),
                n(0),
                Value::Float8(0.0),
                v(Text, zone),
            ];
            run(Op::MakeTimestamptz, Timestamptz, &six)
        };
        assert_eq!(at("+02"), "2020-01-01 08:00:00+00");
        assert_eq!(at("-0330"), "2020-01-01 13:30:00+00");
        assert_eq!(at("Asia/Tokyo"), "2020-01-01 01:00:00+00");
        assert_eq!(at("5"), "22023");
        assert!(from_epoch(f64::NAN).is_err() && from_epoch(1e20).is_err());
    }
}
