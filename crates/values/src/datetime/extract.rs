//! `extract`, `date_part` and `date_trunc`.

use super::arith::{from_local, local};
use super::format::Parts;
use super::{UNIX_EPOCH, USECS_PER_DAY, date_infinite, infinite, out_of_range};
use crate::calendar::civil::{self, Civil};
use crate::{Env, Error, Interval, Numeric, Result, Value};
use contract::{TypeCode, Unit};

/// A field's value, before it becomes numeric or float8.
enum Part {
    /// A whole number.
    Int(i64),
    /// A number of microseconds, to be displayed in a unit of 10^scale microseconds.
    Scaled(i128, u16),
    /// A Julian day, and microseconds of the day.
    Julian(i64, i64),
    /// An infinity.
    Infinite(bool),
}

/// PostgreSQL's name of a type in messages.
fn type_name(t: TypeCode) -> &'static str {
    match t {
        TypeCode::Date => "date",
        TypeCode::Time => "time without time zone",
        TypeCode::Timestamp => "timestamp without time zone",
        TypeCode::Timestamptz => "timestamp with time zone",
        _ => "interval",
    }
}

fn unsupported(unit: Unit, t: TypeCode) -> Error {
    let name = type_name(t);
    Error::new(
        b"0A000",
        format!("unit \"{}\" not supported for type {name}", unit.name()),
    )
}

/// `extract(unit from v)`
pub(crate) fn extract(unit: Unit, v: &Value, env: &Env) -> Result<Value> {
    let number = match part(unit, v, env)? {
        Part::Int(n) => Numeric::from_i64(n),
        Part::Scaled(n, scale) => Numeric::from_i128_scaled(n, scale),
        Part::Julian(day, micros) => {
            let fraction = Numeric::from_i64(micros).div(&Numeric::from_i64(USECS_PER_DAY))?;
            Numeric::from_i64(day).add(&fraction)?
        }
        Part::Infinite(negative) => {
            if negative {
                Numeric::NEG_INFINITY
            } else {
                Numeric::INFINITY
            }
        }
    };
    Ok(Value::Numeric(number))
}

/// `date_part(unit, v)`
pub(crate) fn date_part(unit: Unit, v: &Value, env: &Env) -> Result<Value> {
    if let (Unit::Epoch, Value::Interval(i)) = (unit, v) {
        return Ok(Value::Float8(interval_epoch(i)));
    }
    // date_part of a date is that of a timestamp.
    let widened;
    let v = match v {
        Value::Date(d) => {
            widened = Value::Timestamp(super::arith::date_to_timestamp(*d)?);
            &widened
        }
        _ => v,
    };
    let number = match part(unit, v, env)? {
        Part::Int(n) => n as f64,
        Part::Scaled(n, scale) => scaled_float(unit, n, scale),
        Part::Julian(day, micros) => {
            let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
            day as f64 + (seconds as f64 + micros as f64 / 1e6) / 86_400.0
        }
        Part::Infinite(negative) => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
    };
    Ok(Value::Float8(number))
}

/// Computed like PostgreSQL's float arithmetic, so that the last digit is the same.
fn scaled_float(unit: Unit, micros: i128, scale: u16) -> f64 {
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    match (unit, scale) {
        (Unit::Milliseconds, _) => seconds as f64 * 1000.0 + rest as f64 / 1000.0,
        (Unit::Second, _) => seconds as f64 + rest as f64 / 1e6,
        _ => micros as f64 / 1e6,
    }
}

fn interval_epoch(i: &Interval) -> f64 {
    let mut r = i.micros as f64 / 1e6;
    r += (365.25 * 86_400.0) * f64::from(i.months / 12);
    r += (30.0 * 86_400.0) * f64::from(i.months % 12);
    r + 86_400.0 * f64::from(i.days)
}

fn part(unit: Unit, v: &Value, env: &Env) -> Result<Part> {
    let t = v.type_code();
    match *v {
        Value::Date(d) if date_infinite(d) => infinite_part(unit, d < 0, t),
        Value::Date(d) => date_part_of(unit, d),
        Value::Time(time) => {
            let mut c = Civil::default();
            c.set_time(time);
            match unit {
                Unit::Epoch => Ok(Part::Scaled(i128::from(time), 6)),
                _ => time_part(unit, &c).ok_or_else(|| unsupported(unit, t)),
            }
        }
        Value::Timestamp(ts) | Value::Timestamptz(ts) if infinite(ts) => {
            infinite_part(unit, ts < 0, t)
        }
        Value::Timestamp(ts) => match unit {
            Unit::Epoch => Ok(epoch(ts)),
            _ => {
                let c = civil::from_timestamp(ts);
                time_part(unit, &c)
                    .or_else(|| day_part(unit, &c))
                    .ok_or_else(|| unsupported(unit, t))
            }
        },
        Value::Timestamptz(ts) => {
            let (c, offset) = local(ts, env);
            match unit {
                Unit::Epoch => Ok(epoch(ts)),
                Unit::Timezone => Ok(Part::Int(offset)),
                Unit::TimezoneHour => Ok(Part::Int(offset / 3600)),
                Unit::TimezoneMinute => Ok(Part::Int(offset / 60 % 60)),
                _ => time_part(unit, &c)
                    .or_else(|| day_part(unit, &c))
                    .ok_or_else(|| unsupported(unit, t)),
            }
        }
        Value::Interval(i) => interval_part(unit, &i),
        _ => Err(crate::error::no_such_operation()),
    }
}

/// Seconds since 1970, in microseconds. If the difference does not fit in 64 bits PostgreSQL
/// divides, which leaves four decimals.
fn epoch(t: i64) -> Part {
    let micros = i128::from(t) - i128::from(UNIX_EPOCH);
    if t < i64::MAX + UNIX_EPOCH {
        Part::Scaled(micros, 6)
    } else {
        Part::Scaled((micros + 50) / 100 * 100, 6)
    }
}

/// Fields of an infinite date or timestamp: monotonic ones are infinite, the others null.
fn infinite_part(unit: Unit, negative: bool, t: TypeCode) -> Result<Part> {
    match unit {
        Unit::Year
        | Unit::Decade
        | Unit::Century
        | Unit::Millennium
        | Unit::Julian
        | Unit::Isoyear
        | Unit::Epoch => Ok(Part::Infinite(negative)),
        Unit::Microseconds
        | Unit::Milliseconds
        | Unit::Second
        | Unit::Minute
        | Unit::Hour
        | Unit::Timezone
        | Unit::TimezoneHour
        | Unit::TimezoneMinute
            if t == TypeCode::Date =>
        {
            Err(unsupported(unit, t))
        }
        _ => Err(Error::null()),
    }
}

fn time_part(unit: Unit, c: &Civil) -> Option<Part> {
    let seconds = i128::from(c.second) * 1_000_000 + i128::from(c.micros);
    Some(match unit {
        Unit::Microseconds => Part::Int(seconds as i64),
        Unit::Milliseconds => Part::Scaled(seconds, 3),
        Unit::Second => Part::Scaled(seconds, 6),
        Unit::Minute => Part::Int(c.minute),
        Unit::Hour => Part::Int(c.hour),
        _ => return None,
    })
}

fn day_part(unit: Unit, c: &Civil) -> Option<Part> {
    let days = c.days();
    Some(match unit {
        Unit::Julian => Part::Julian(civil::julian(days), c.time()),
        _ => Part::Int(calendar(unit, c, days)?),
    })
}

fn date_part_of(unit: Unit, d: i32) -> Result<Part> {
    let days = i64::from(d);
    let (year, month, day) = civil::date(days);
    let c = Civil {
        year,
        month,
        day,
        ..Civil::default()
    };
    Ok(Part::Int(match unit {
        Unit::Julian => civil::julian(days),
        Unit::Epoch => (days + 10_957) * 86_400,
        _ => calendar(unit, &c, days).ok_or_else(|| unsupported(unit, TypeCode::Date))?,
    }))
}

/// Fields of a date.
fn calendar(unit: Unit, c: &Civil, days: i64) -> Option<i64> {
    let year = c.year;
    Some(match unit {
        Unit::Day => c.day,
        Unit::Month => c.month,
        Unit::Quarter => (c.month - 1) / 3 + 1,
        Unit::Week => civil::iso_week(days).1,
        Unit::Year if year > 0 => year,
        Unit::Year => year - 1,
        Unit::Decade if year >= 0 => year / 10,
        Unit::Decade => -((8 - (year - 1)) / 10),
        Unit::Century if year > 0 => (year + 99) / 100,
        Unit::Century => -((99 - (year - 1)) / 100),
        Unit::Millennium if year > 0 => (year + 999) / 1000,
        Unit::Millennium => -((999 - (year - 1)) / 1000),
        Unit::Isoyear => match civil::iso_week(days).0 {
            iso if iso <= 0 => iso - 1,
            iso => iso,
        },
        Unit::Dow => civil::weekday(days),
        Unit::Isodow => (civil::weekday(days) + 6) % 7 + 1,
        Unit::Doy => days - civil::days(year, 1, 1) + 1,
        _ => return None,
    })
}

fn interval_part(unit: Unit, i: &Interval) -> Result<Part> {
    let p = Parts::of(i);
    let seconds = i128::from(p.second) * 1_000_000 + i128::from(p.micros);
    Ok(match unit {
        Unit::Microseconds => Part::Int(seconds as i64),
        Unit::Milliseconds => Part::Scaled(seconds, 3),
        Unit::Second => Part::Scaled(seconds, 6),
        Unit::Minute => Part::Int(p.minute),
        Unit::Hour => Part::Int(p.hour),
        Unit::Day => Part::Int(p.day),
        Unit::Month => Part::Int(p.month),
        Unit::Quarter => Part::Int(p.month / 3 + 1),
        Unit::Year => Part::Int(p.year),
        Unit::Decade => Part::Int(p.year / 10),
        Unit::Century => Part::Int(p.year / 100),
        Unit::Millennium => Part::Int(p.year / 1000),
        Unit::Epoch => {
            // A year has 365.25 days, a month 30; a quarter of a day is exact.
            let quarters = 1461 * i128::from(i.months / 12)
                + 120 * i128::from(i.months % 12)
                + 4 * i128::from(i.days);
            Part::Scaled(quarters * 21_600 * 1_000_000 + i128::from(i.micros), 6)
        }
        _ => return Err(unsupported(unit, TypeCode::Interval)),
    })
}

/// `date_trunc(unit, v)`
pub(crate) fn date_trunc(unit: Unit, v: &Value, env: &Env) -> Result<Value> {
    let range = || out_of_range("timestamp");
    match *v {
        Value::Timestamp(t) if infinite(t) => Ok(v.clone()),
        Value::Timestamptz(t) if infinite(t) => Ok(v.clone()),
        Value::Timestamp(t) => {
            let mut c = civil::from_timestamp(t);
            truncate(unit, &mut c, TypeCode::Timestamp)?;
            c.timestamp(0).map(Value::Timestamp).ok_or_else(range)
        }
        Value::Timestamptz(t) => {
            let (mut c, offset) = local(t, env);
            let days = truncate(unit, &mut c, TypeCode::Timestamptz)?;
            let instant = if days {
                from_local(&c, env)
            } else {
                c.timestamp(offset)
            };
            instant.map(Value::Timestamptz).ok_or_else(range)
        }
        Value::Interval(i) => truncate_interval(unit, i).map(Value::Interval),
        _ => Err(crate::error::no_such_operation()),
    }
}

/// Truncates; returns whether the date's offset from UTC may have changed.
fn truncate(unit: Unit, c: &mut Civil, t: TypeCode) -> Result<bool> {
    let midnight = |c: &mut Civil| c.set_time(0);
    match unit {
        Unit::Microseconds => return Ok(false),
        Unit::Milliseconds => {
            c.micros = c.micros / 1000 * 1000;
            return Ok(false);
        }
        Unit::Second | Unit::Minute | Unit::Hour => {
            c.micros = 0;
            if unit != Unit::Second {
                c.second = 0;
            }
            if unit == Unit::Hour {
                c.minute = 0;
            }
            return Ok(false);
        }
        Unit::Day => {}
        Unit::Week => {
            let days = c.days();
            let monday = days - (civil::weekday(days) + 6) % 7;
            (c.year, c.month, c.day) = civil::date(monday);
        }
        Unit::Month => c.day = 1,
        Unit::Quarter => (c.month, c.day) = ((c.month - 1) / 3 * 3 + 1, 1),
        Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
            c.year = first_year(unit, c.year);
            (c.month, c.day) = (1, 1);
        }
        Unit::Dow
        | Unit::Isodow
        | Unit::Doy
        | Unit::Isoyear
        | Unit::Julian
        | Unit::Epoch
        | Unit::Timezone
        | Unit::TimezoneHour
        | Unit::TimezoneMinute => return Err(no_truncation(unit, t)),
    }
    midnight(c);
    Ok(true)
}

/// Some units are known to PostgreSQL but cannot be truncated to; others are unknown.
fn no_truncation(unit: Unit, t: TypeCode) -> Error {
    match unit {
        Unit::Epoch | Unit::Dow | Unit::Isodow | Unit::Doy | Unit::Isoyear | Unit::Julian => {
            Error::new(
                b"22023",
                format!(
                    "unit \"{}\" not recognized for type {}",
                    unit.name(),
                    type_name(t)
                ),
            )
        }
        _ => unsupported(unit, t),
    }
}

fn first_year(unit: Unit, year: i64) -> i64 {
    match unit {
        Unit::Millennium if year > 0 => (year + 999) / 1000 * 1000 - 999,
        Unit::Millennium => -((999 - (year - 1)) / 1000) * 1000 + 1,
        Unit::Century if year > 0 => (year + 99) / 100 * 100 - 99,
        Unit::Century => -((99 - (year - 1)) / 100) * 100 + 1,
        Unit::Decade if year > 0 => year / 10 * 10,
        Unit::Decade => -((8 - (year - 1)) / 10) * 10,
        _ => year,
    }
}

fn truncate_interval(unit: Unit, mut i: Interval) -> Result<Interval> {
    let keep = |months: i32| Interval {
        months: i.months / months * months,
        days: 0,
        micros: 0,
    };
    let time = |scale: i64| i.micros / scale * scale;
    match unit {
        Unit::Millennium => return Ok(keep(12_000)),
        Unit::Century => return Ok(keep(1200)),
        Unit::Decade => return Ok(keep(120)),
        Unit::Year => return Ok(keep(12)),
        Unit::Quarter => return Ok(keep(3)),
        Unit::Month => return Ok(keep(1)),
        Unit::Day => i.micros = 0,
        Unit::Hour => i.micros = time(super::USECS_PER_HOUR),
        Unit::Minute => i.micros = time(super::USECS_PER_MINUTE),
        Unit::Second => i.micros = time(super::USECS_PER_SEC),
        Unit::Milliseconds => i.micros = time(1000),
        Unit::Microseconds => {}
        Unit::Week => {
            return Err(unsupported(unit, TypeCode::Interval)
                .detail("Months usually have fractional weeks."));
        }
        Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute => {
            return Err(unsupported(unit, TypeCode::Interval));
        }
        _ => {
            return Err(Error::new(
                b"22023",
                format!("unit \"{}\" not recognized for type interval", unit.name()),
            ));
        }
    }
    Ok(i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format_text, parse_text};

    fn field(unit: Unit, t: TypeCode, s: &str) -> String {
        let env = Env::default();
        let v = parse_text(t, -1, s.as_bytes(), &env).unwrap();
        match extract(unit, &v, &env) {
            Ok(v) => String::from_utf8(format_text(&v, &env)).unwrap(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    /// The scale of each field is PostgreSQL's.
    #[test]
    fn fields() {
        let ts = "2001-02-16 20:38:40.12";
        for (unit, expected) in [
            (Unit::Second, "40.120000"),
            (Unit::Milliseconds, "40120.000"),
            (Unit::Microseconds, "40120000"),
            (Unit::Epoch, "982355920.120000"),
            (Unit::Century, "21"),
            (Unit::Dow, "5"),
            (Unit::Doy, "47"),
            (Unit::Julian, "2451957.86018657407407407407"),
            (Unit::Timezone, "0A000"),
        ] {
            assert_eq!(field(unit, TypeCode::Timestamp, ts), expected, "{unit:?}");
        }
        assert_eq!(
            field(Unit::Epoch, TypeCode::Date, "2001-02-16"),
            "982281600"
        );
        assert_eq!(field(Unit::Hour, TypeCode::Date, "2001-02-16"), "0A000");
        assert_eq!(field(Unit::Isoyear, TypeCode::Date, "2006-01-01"), "2005");
        assert_eq!(field(Unit::Year, TypeCode::Date, "0044-03-15 BC"), "-44");
        assert_eq!(
            field(Unit::Epoch, TypeCode::Interval, "1 year 1 mon"),
            "34149600.000000"
        );
        assert_eq!(field(Unit::Quarter, TypeCode::Interval, "4 mons"), "2");
        // Null for cyclic fields, infinite for monotonic ones.
        assert_eq!(field(Unit::Day, TypeCode::Date, "infinity"), "00000");
        assert_eq!(field(Unit::Year, TypeCode::Date, "-infinity"), "-Infinity");
    }

    #[test]
    fn truncation() {
        let env = Env::default();
        let v = parse_text(TypeCode::Timestamp, -1, b"2001-02-18 20:38:40.12", &env).unwrap();
        for (unit, expected) in [
            (Unit::Hour, "2001-02-18 20:00:00"),
            (Unit::Week, "2001-02-12 00:00:00"),
            (Unit::Quarter, "2001-01-01 00:00:00"),
            (Unit::Decade, "2000-01-01 00:00:00"),
            (Unit::Millennium, "2001-01-01 00:00:00"),
        ] {
            let r = date_trunc(unit, &v, &env).unwrap();
            assert_eq!(format_text(&r, &env), expected.as_bytes());
        }
        assert_eq!(
            date_trunc(Unit::Dow, &v, &env).unwrap_err().sqlstate,
            *b"22023"
        );
    }
}
