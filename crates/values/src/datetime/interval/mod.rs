//! Interval arithmetic, and the modifiers of `interval`. `read` reads intervals, and `iso` those in
//! ISO 8601 format.

mod iso;
mod read;

pub(crate) use read::parse;

use super::{USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, out_of_range, round_micros};
use crate::error::division_by_zero;
use crate::{Error, Interval, Result};

/// Bits of the fields in a modifier.
const YEAR: i32 = 1 << 2;
const MONTH: i32 = 1 << 1;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;
const ALL_FIELDS: i32 = 0x7fff;
const ANY_PRECISION: i32 = 0xffff;

/// Truncates an interval to the fields and precision of a modifier.
pub(crate) fn with_typmod(mut v: Interval, typmod: i32) -> Result<Interval> {
    if typmod < 0 {
        return Ok(v);
    }
    let (fields, precision) = (typmod >> 16 & ALL_FIELDS, typmod & 0xffff);
    if fields != ALL_FIELDS {
        let smallest = [SECOND, MINUTE, HOUR, DAY, MONTH, YEAR]
            .into_iter()
            .find(|bit| fields & bit != 0)
            .unwrap_or(SECOND);
        match smallest {
            YEAR => {
                v = Interval {
                    months: v.months / 12 * 12,
                    days: 0,
                    micros: 0,
                }
            }
            MONTH => {
                v = Interval {
                    months: v.months,
                    days: 0,
                    micros: 0,
                }
            }
            DAY => v.micros = 0,
            HOUR => v.micros = v.micros / USECS_PER_HOUR * USECS_PER_HOUR,
            MINUTE => v.micros = v.micros / USECS_PER_MINUTE * USECS_PER_MINUTE,
            _ => {}
        }
    }
    match precision {
        ANY_PRECISION => {}
        0..=6 => v.micros = round_micros(v.micros, precision as u32),
        _ => {
            return Err(Error::new(
                b"22023",
                format!("interval({precision}) precision must be between 0 and 6"),
            ));
        }
    }
    Ok(v)
}

impl Interval {
    /// The linear value that orders intervals: a month has 30 days, a day 24 hours.
    pub(crate) fn linear(&self) -> i128 {
        let days = i64::from(self.months) * 30 + i64::from(self.days);
        i128::from(self.micros) + i128::from(days) * i128::from(USECS_PER_DAY)
    }

    pub(crate) fn checked_add(&self, o: &Interval) -> Result<Interval> {
        let sum = (|| {
            Some(Interval {
                months: self.months.checked_add(o.months)?,
                days: self.days.checked_add(o.days)?,
                micros: self.micros.checked_add(o.micros)?,
            })
        })();
        sum.ok_or_else(|| out_of_range("interval"))
    }

    pub(crate) fn checked_sub(&self, o: &Interval) -> Result<Interval> {
        let difference = (|| {
            Some(Interval {
                months: self.months.checked_sub(o.months)?,
                days: self.days.checked_sub(o.days)?,
                micros: self.micros.checked_sub(o.micros)?,
            })
        })();
        difference.ok_or_else(|| out_of_range("interval"))
    }

    pub(crate) fn checked_neg(&self) -> Result<Interval> {
        Interval::default().checked_sub(self)
    }

    /// `interval * float8`
    pub(crate) fn mul(&self, factor: f64) -> Result<Interval> {
        self.scaled(|part| part * factor)
    }

    /// `interval / float8`
    pub(crate) fn div(&self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(division_by_zero());
        }
        self.scaled(|part| part / divisor)
    }

    /// Scales each part; fractions of months become days, and fractions of days become time.
    fn scaled(&self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        const SECS_PER_DAY: f64 = 86_400.0;
        let range = || out_of_range("interval");
        let to_i32 = |v: f64| {
            let fits = v >= f64::from(i32::MIN) && v < -f64::from(i32::MIN);
            if fits { Ok(v as i32) } else { Err(range()) }
        };
        let round_micro = |v: f64| (v * 1e6).round_ties_even() / 1e6;
        let (months, days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let (whole_months, mut whole_days) = (to_i32(months)?, to_i32(days)?);
        let month_days = round_micro((months - f64::from(whole_months)) * 30.0);
        let day_rest = days - f64::from(whole_days) + month_days - f64::from(month_days as i32);
        let mut seconds = round_micro(day_rest * SECS_PER_DAY);
        if seconds.abs() >= SECS_PER_DAY {
            let carry = (seconds / SECS_PER_DAY) as i32;
            whole_days = whole_days.checked_add(carry).ok_or_else(range)?;
            seconds -= f64::from(carry) * SECS_PER_DAY;
        }
        whole_days = whole_days
            .checked_add(month_days as i32)
            .ok_or_else(range)?;
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        // 2^63 itself does not fit.
        if !(micros >= i64::MIN as f64 && micros < 9_223_372_036_854_775_808.0) {
            return Err(range());
        }
        Ok(Interval {
            months: whole_months,
            days: whole_days,
            micros: micros as i64,
        })
    }

    /// Moves whole days from the time to the days.
    pub(crate) fn justify_hours(mut self) -> Result<Interval> {
        let whole = self.micros / USECS_PER_DAY;
        self.micros %= USECS_PER_DAY;
        let days = i64::from(self.days) + whole;
        self.days = i32::try_from(days).map_err(|_| out_of_range("interval"))?;
        if self.days > 0 && self.micros < 0 {
            self.micros += USECS_PER_DAY;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= USECS_PER_DAY;
            self.days += 1;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;
    use crate::Env;

    fn shown(s: &str, typmod: i32) -> String {
        let env = Env::default();
        match parse(s.as_bytes(), typmod, &env) {
            Ok(v) => format::interval(&v, &env),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn input() {
        for (s, expected) in [
            (
                "1 year 2 mons 3 days 04:05:06",
                "1 year 2 mons 3 days 04:05:06",
            ),
            ("90", "00:01:30"),
            ("1-2", "1 year 2 mons"),
            ("-1 1:30", "-1 days +01:30:00"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("PT040506", "04:05:06"),
            ("@ 1 day 2 hours ago", "-1 days -02:00:00"),
            ("2562047788:00:54.775807", "2562047788:00:54.775807"),
            ("2147483648 months", "22015"),
            ("178956971 years", "22008"),
            ("1 day 2 days", "22007"),
            ("infinity", "22007"),
            ("1:60", "22015"),
        ] {
            assert_eq!(shown(s, -1), expected, "{s}");
        }
    }

    #[test]
    fn modifiers() {
        let only = |fields: i32, precision: i32| fields << 16 | precision;
        assert_eq!(
            shown("1 year 2 mons 3 days", only(YEAR, ANY_PRECISION)),
            "1 year"
        );
        assert_eq!(shown("90", only(DAY, ANY_PRECISION)), "90 days");
        assert_eq!(
            shown("1 04:05:06", only(DAY | HOUR, ANY_PRECISION)),
            "1 day 04:00:00"
        );
        assert_eq!(
            shown("4:05", only(MINUTE | SECOND, ANY_PRECISION)),
            "00:04:05"
        );
        assert_eq!(shown("1.2567", only(ALL_FIELDS, 2)), "00:00:01.26");
        assert_eq!(shown("-1.255", only(ALL_FIELDS, 2)), "-00:00:01.26");
    }

    /// Fractions are carried to smaller units, with PostgreSQL's rounding.
    #[test]
    fn scaling() {
        let mon = Interval {
            months: 1,
            days: 1,
            micros: 0,
        };
        let show = |v: Result<Interval>| v.map(|v| format::interval(&v, &Env::default())).ok();
        assert_eq!(show(mon.mul(1.5)).unwrap(), "1 mon 16 days 12:00:00");
        assert_eq!(show(mon.div(7.0)).unwrap(), "4 days 10:17:08.546743");
        assert_eq!(show(mon.mul(1e10)), None);
        assert_eq!(show(mon.mul(f64::NAN)), None);
        assert_eq!(mon.div(0.0).unwrap_err().sqlstate, *b"22012");
    }

    /// A month has 30 days and a day 24 hours, also beyond 64 bits.
    #[test]
    fn linear_value() {
        let month = Interval {
            months: 1,
            days: 0,
            micros: 0,
        };
        let days = Interval {
            months: 0,
            days: 29,
            micros: USECS_PER_DAY,
        };
        assert_eq!(month.linear(), days.linear());
        let most = Interval {
            months: i32::MAX,
            days: i32::MAX,
            micros: i64::MAX,
        };
        assert!(most.linear() > i128::from(i64::MAX));
    }
}
