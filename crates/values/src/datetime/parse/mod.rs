//! Reads dates, times and timestamps, as PostgreSQL's input functions do. `decoder` interprets
//! the fields, `finish` what they come to.

mod decoder;
mod finish;

use super::token::{Bad, split};
use super::{UNIX_EPOCH, out_of_range, valid_date, valid_timestamp};
use crate::calendar::civil::{self, Civil};
use crate::{Env, Error, Result};
use contract::Code;
use decoder::Decoder;

/// The error for bad input of a type by PostgreSQL's name.
pub(crate) fn error(bad: Bad, name: &str) -> Error {
    let error = match bad {
        Bad::Format => Error::new(b"22007", format!("invalid input syntax for type {name}")),
        Bad::FieldRange => Error::new(b"22008", "date/time field value out of range"),
        Bad::MonthDayRange => Error::new(b"22008", "date/time field value out of range")
            .hint("Perhaps you need a different \"datestyle\" setting."),
        Bad::ZoneRange => Error::new(b"22009", "time zone displacement out of range"),
        Bad::ZoneName => return Error::new(b"22023", "time zone not recognized"),
    };
    error.code(Code::InvalidText)
}

/// What was read is beyond its type.
fn beyond(name: &str) -> Error {
    out_of_range(name).code(Code::InvalidText)
}

/// What input with a date comes to.
enum Decoded {
    /// A local time and seconds east of UTC.
    At(Civil, i64),
    Epoch,
    Infinity,
    NegInfinity,
}

/// Reads a `date`.
pub(crate) fn date(s: &[u8], env: &Env) -> Result<i32> {
    if let Some(days) = iso_date(s) {
        return Ok(days);
    }
    match decode(s, 128, env).map_err(|bad| error(bad, "date"))? {
        Decoded::Infinity => Ok(i32::MAX),
        Decoded::NegInfinity => Ok(i32::MIN),
        Decoded::Epoch => Ok(-10_957),
        Decoded::At(c, _) if civil::valid_julian(c.year, c.month) => {
            valid_date(c.days()).ok_or_else(|| beyond("date"))
        }
        Decoded::At(..) => Err(beyond("date")),
    }
}

/// A valid `yyyy-mm-dd`, which means the same in all styles.
fn iso_date(s: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = s else {
        return None;
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0i64, |v, b| {
            b.is_ascii_digit().then(|| v * 10 + i64::from(b - b'0'))
        })
    };
    let (year, month, day) = (
        number(&[y1, y2, y3, y4])?,
        number(&[m1, m2])?,
        number(&[d1, d2])?,
    );
    if year < 1 || day < 1 || day > civil::days_in_month(year, month) {
        return None;
    }
    valid_date(civil::days(year, month, day))
}

/// Reads a `timestamp`; a zone is accepted and ignored.
pub(crate) fn timestamp(s: &[u8], env: &Env) -> Result<i64> {
    instant(s, env, "timestamp", |_| 0)
}

/// Reads a `timestamptz`.
pub(crate) fn timestamptz(s: &[u8], env: &Env) -> Result<i64> {
    instant(s, env, "timestamp with time zone", |offset| offset)
}

fn instant(s: &[u8], env: &Env, name: &str, offset: impl Fn(i64) -> i64) -> Result<i64> {
    match decode(s, 152, env).map_err(|bad| error(bad, name))? {
        Decoded::Infinity => Ok(i64::MAX),
        Decoded::NegInfinity => Ok(i64::MIN),
        Decoded::Epoch => Ok(UNIX_EPOCH),
        Decoded::At(c, east) => c.timestamp(offset(east)).ok_or_else(|| beyond("timestamp")),
    }
}

/// Reads a `time`; a zone is accepted and ignored.
pub(crate) fn time_of_day(s: &[u8], env: &Env) -> Result<i64> {
    let decode = || {
        let fields = split(s, 128)?;
        let mut decoder = Decoder::new(env, true);
        decoder.fields(&fields)?;
        decoder.finish_time()
    };
    decode().map_err(|bad| error(bad, "time"))
}

fn decode(s: &[u8], room: usize, env: &Env) -> std::result::Result<Decoded, Bad> {
    let fields = split(s, room)?;
    let mut decoder = Decoder::new(env, false);
    decoder.fields(&fields)?;
    decoder.finish()
}

/// Checks a timestamp that came in binary.
pub(crate) fn check_timestamp(t: i64) -> Result<i64> {
    if super::infinite(t) {
        return Ok(t);
    }
    valid_timestamp(i128::from(t)).ok_or_else(|| beyond("timestamp"))
}

/// Checks a date that came in binary.
pub(crate) fn check_date(d: i32) -> Result<i32> {
    if super::date_infinite(d) {
        return Ok(d);
    }
    valid_date(i64::from(d)).ok_or_else(|| beyond("date"))
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;

    fn env(zone: &str, style: &str) -> Env {
        let mut env = Env::default();
        env.set("TimeZone", zone).unwrap();
        env.set("DateStyle", style).unwrap();
        // 2004-10-19 10:23:54.5 UTC
        env.set_now(151_496_634_500_000);
        env
    }

    fn tz(s: &str) -> String {
        let env = env("America/New_York", "ISO, MDY");
        match timestamptz(s.as_bytes(), &env) {
            Ok(t) => format::timestamptz(t, &env),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn timestamps() {
        for (s, shown) in [
            ("1999-01-08 04:05:06 PST", "1999-01-08 07:05:06-05"),
            ("January 8, 1999 4:05 PM", "1999-01-08 16:05:00-05"),
            ("19990708T040506.789+02", "1999-07-07 22:05:06.789-04"),
            ("1999-07-08 12:00 Europe/Berlin", "1999-07-08 06:00:00-04"),
            ("2012-07-08 12:00 MSK", "2012-07-08 04:00:00-04"),
            ("0044-03-15 12:00 BC", "0044-03-15 12:00:00-04:56:02 BC"),
            // Does not exist; exists twice.
            ("2021-03-14 02:30", "2021-03-14 03:30:00-04"),
            ("2021-11-07 01:30", "2021-11-07 01:30:00-05"),
            ("12021-07-01 12:00", "12021-07-01 12:00:00-04"),
            ("J2451187", "1999-01-08 00:00:00-05"),
            ("1999.008", "1999-01-08 00:00:00-05"),
            ("infinity", "infinity"),
            ("epoch", "1969-12-31 19:00:00-05"),
            ("now", "2004-10-19 06:23:54.5-04"),
            ("today", "2004-10-19 00:00:00-04"),
            ("tomorrow 12:00", "2004-10-20 12:00:00-04"),
            ("yesterday", "2004-10-18 00:00:00-04"),
            ("2000-02-30", "22008"),
            ("2000-13-01", "22008"),
            ("2000-01-01 25:00", "22008"),
            ("2000-01-01 +16", "22009"),
            ("2000-01-01 10:00 Mars/Olympus", "22023"),
            ("294277-01-01", "22008"),
            ("x", "22007"),
        ] {
            assert_eq!(tz(s), shown, "{s}");
        }
    }

    /// The order of day, month and year comes from the date style, except where the
    /// input is unambiguous.
    #[test]
    fn styles() {
        for (style, expected) in [
            ("MDY", "2003-01-02"),
            ("DMY", "2003-02-01"),
            ("YMD", "2001-02-03"),
        ] {
            let env = env("UTC", style);
            assert_eq!(
                format::date(date(b"01/02/03", &env).unwrap(), &env),
                expected
            );
            assert_eq!(
                format::date(date(b"1999-Jan-08", &env).unwrap(), &env),
                "1999-01-08"
            );
        }
        let e = date(b"13/13/2000", &env("UTC", "MDY")).unwrap_err();
        assert_eq!(
            e.hint.unwrap(),
            "Perhaps you need a different \"datestyle\" setting."
        );
    }

    #[test]
    fn times() {
        let env = env("America/New_York", "ISO");
        let t = |s: &str| time_of_day(s.as_bytes(), &env).map(format::time).ok();
        assert_eq!(t("04:05:06.7891234").unwrap(), "04:05:06.789123");
        assert_eq!(t("040506").unwrap(), "04:05:06");
        assert_eq!(t("12:34 pm").unwrap(), "12:34:00");
        assert_eq!(t("24:00").unwrap(), "24:00:00");
        assert_eq!(t("now").unwrap(), "06:23:54.5");
        assert_eq!(t("24:00:01"), None);
        assert_eq!(t("12:00 America/New_York"), None);
    }
}
