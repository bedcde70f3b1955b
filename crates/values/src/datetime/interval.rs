//! Reads intervals (PostgreSQL's, the SQL standard's and ISO 8601 forms),
//! interval arithmetic, and the modifiers of `interval`.

use super::token::{Bad, Field, Kind, Span, Unit, fraction, leading_int, mask, span, split, time};
use super::{
    USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC, out_of_range, round_micros,
};
use crate::env::IntervalStyle;
use crate::error::division_by_zero;
use crate::{Env, Error, Interval, Result};
use contract::Code;

/// Bits of the fields in a modifier.
const YEAR: i32 = 1 << 2;
const MONTH: i32 = 1 << 1;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;
const ALL_FIELDS: i32 = 0x7fff;
const ANY_PRECISION: i32 = 0xffff;

type Parsed<T> = std::result::Result<T, Bad>;

/// Sums of what the fields of an input say.
#[derive(Default)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

/// Reads an `interval` with a modifier.
pub(crate) fn parse(s: &[u8], typmod: i32, env: &Env) -> Result<Interval> {
    let fields = if typmod >= 0 {
        typmod >> 16 & ALL_FIELDS
    } else {
        ALL_FIELDS
    };
    let sum = split(s, 256)
        .and_then(|parts| read_fields(&parts, fields, env))
        .or_else(|bad| {
            if bad == Bad::Format {
                read_iso(s)
            } else {
                Err(bad)
            }
        })
        .map_err(|bad| match bad {
            Bad::FieldRange => {
                Error::new(b"22015", "interval field value out of range").code(Code::InvalidText)
            }
            bad => super::parse::error(bad, "interval"),
        })?;
    let months = i64::from(sum.years) * 12 + i64::from(sum.months);
    let months = i32::try_from(months).map_err(|_| out_of_range("interval"))?;
    let interval = Interval {
        months,
        days: sum.days,
        micros: sum.micros,
    };
    with_typmod(interval, typmod)
}

impl Sum {
    fn add_micros(&mut self, value: i64, frac: f64, scale: i64) -> Parsed<()> {
        let whole = value
            .checked_mul(scale)
            .and_then(|v| self.micros.checked_add(v));
        self.micros = whole.ok_or(Bad::FieldRange)?;
        self.add_fraction(frac, scale)
    }

    /// A fraction of `scale` microseconds.
    fn add_fraction(&mut self, frac: f64, scale: i64) -> Parsed<()> {
        if frac == 0.0 {
            return Ok(());
        }
        let scaled = frac * scale as f64;
        let mut micros = scaled as i64;
        let rest = scaled - micros as f64;
        if rest > 0.5 {
            micros += 1;
        } else if rest < -0.5 {
            micros -= 1;
        }
        self.micros = self.micros.checked_add(micros).ok_or(Bad::FieldRange)?;
        Ok(())
    }

    fn add_days(&mut self, value: i64, scale: i32) -> Parsed<()> {
        let days = i32::try_from(value).ok().and_then(|v| v.checked_mul(scale));
        let days = days.and_then(|d| self.days.checked_add(d));
        self.days = days.ok_or(Bad::FieldRange)?;
        Ok(())
    }

    /// A fraction of `scale` days; a fraction of a day becomes time.
    fn add_day_fraction(&mut self, frac: f64, scale: i32) -> Parsed<()> {
        if frac == 0.0 {
            return Ok(());
        }
        let scaled = frac * f64::from(scale);
        let days = scaled as i32;
        self.days = self.days.checked_add(days).ok_or(Bad::FieldRange)?;
        self.add_fraction(scaled - f64::from(days), USECS_PER_DAY)
    }

    fn add_months(&mut self, value: i64) -> Parsed<()> {
        let months = i32::try_from(value)
            .ok()
            .and_then(|v| self.months.checked_add(v));
        self.months = months.ok_or(Bad::FieldRange)?;
        Ok(())
    }

    /// Years; a fraction becomes whole months.
    fn add_years(&mut self, value: i64, frac: f64, scale: i32) -> Parsed<()> {
        let years = i32::try_from(value).ok().and_then(|v| v.checked_mul(scale));
        let years = years.and_then(|y| self.years.checked_add(y));
        self.years = years.ok_or(Bad::FieldRange)?;
        let months = (frac * f64::from(scale) * 12.0).round_ties_even() as i64;
        self.add_months(months)
    }

    /// A number of some unit; gives the bits it counts as.
    fn add(&mut self, unit: Unit, value: i64, frac: f64) -> Parsed<u32> {
        Ok(match unit {
            Unit::Micro => {
                self.add_micros(value, frac, 1)?;
                mask::MICRO
            }
            Unit::Milli => {
                self.add_micros(value, frac, 1000)?;
                mask::MILLI
            }
            Unit::Second => {
                self.add_micros(value, frac, USECS_PER_SEC)?;
                if frac == 0.0 {
                    mask::SECOND
                } else {
                    mask::SECONDS
                }
            }
            Unit::Minute => {
                self.add_micros(value, frac, USECS_PER_MINUTE)?;
                mask::MINUTE
            }
            Unit::Hour => {
                self.add_micros(value, frac, USECS_PER_HOUR)?;
                mask::HOUR
            }
            Unit::Day => {
                self.add_days(value, 1)?;
                self.add_fraction(frac, USECS_PER_DAY)?;
                mask::DAY
            }
            Unit::Week => {
                self.add_days(value, 7)?;
                self.add_day_fraction(frac, 7)?;
                mask::WEEK
            }
            Unit::Month => {
                self.add_months(value)?;
                self.add_day_fraction(frac, 30)?;
                mask::MONTH
            }
            Unit::Year => {
                self.add_years(value, frac, 1)?;
                mask::YEAR
            }
            Unit::Decade => {
                self.add_years(value, frac, 10)?;
                mask::DECADE
            }
            Unit::Century => {
                self.add_years(value, frac, 100)?;
                mask::CENTURY
            }
            Unit::Millennium => {
                self.add_years(value, frac, 1000)?;
                mask::MILLENNIUM
            }
            _ => return Err(Bad::Format),
        })
    }

    fn negate(&mut self) -> Parsed<()> {
        let negated = (|| {
            Some(Sum {
                years: self.years.checked_neg()?,
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        })();
        *self = negated.ok_or(Bad::FieldRange)?;
        Ok(())
    }
}

/// The unit of the last number if none is named, by the fields of the modifier.
fn implied_unit(fields: i32) -> Unit {
    const YEAR_MONTH: i32 = YEAR | MONTH;
    const DAY_HOUR: i32 = DAY | HOUR;
    const HOUR_MINUTE: i32 = HOUR | MINUTE;
    const DAY_MINUTE: i32 = DAY | HOUR | MINUTE;
    match fields {
        YEAR => Unit::Year,
        MONTH | YEAR_MONTH => Unit::Month,
        DAY => Unit::Day,
        HOUR | DAY_HOUR => Unit::Hour,
        MINUTE | HOUR_MINUTE | DAY_MINUTE => Unit::Minute,
        _ => Unit::Second,
    }
}

fn clock(s: &[u8], fields: i32) -> Parsed<i64> {
    let (hour, minute, second, micros) = time(s, fields == MINUTE | SECOND)?;
    hour.checked_mul(USECS_PER_HOUR)
        .and_then(|t| t.checked_add(minute * USECS_PER_MINUTE + second * USECS_PER_SEC + micros))
        .ok_or(Bad::FieldRange)
}

/// Integer and fraction of a number, or years and months as `y-m`, which turns
/// the unit into months.
fn number(s: &[u8], unit: &mut Unit) -> Parsed<(i64, f64)> {
    let (value, rest) = leading_int::<i64>(s).ok_or(Bad::FieldRange)?;
    let negative = s.first() == Some(&b'-');
    match rest.first() {
        None => Ok((value, 0.0)),
        Some(b'.') => {
            let frac = fraction(rest)?;
            Ok((value, if negative { -frac } else { frac }))
        }
        Some(b'-') => {
            let after = rest.get(1..).unwrap_or_default();
            let (months, rest) = leading_int::<i32>(after).ok_or(Bad::FieldRange)?;
            if !(0..12).contains(&months) {
                return Err(Bad::FieldRange);
            }
            if !rest.is_empty() {
                return Err(Bad::Format);
            }
            *unit = Unit::Month;
            let months = i64::from(if negative { -months } else { months });
            let total = value.checked_mul(12).and_then(|v| v.checked_add(months));
            Ok((total.ok_or(Bad::FieldRange)?, 0.0))
        }
        Some(_) => Err(Bad::Format),
    }
}

/// PostgreSQL's and the SQL standard's forms, read from the right so that a unit
/// is known before its number.
fn read_fields(fields: &[Field], range: i32, env: &Env) -> Parsed<Sum> {
    let signed = |f: &Field| matches!(f.text.first(), Some(b'-' | b'+'));
    // The standard's leading sign goes for all fields, if it is the only one.
    let negate_all = env.interval_style == IntervalStyle::SqlStandard
        && fields
            .first()
            .is_some_and(|f| f.text.first() == Some(&b'-'))
        && !fields.iter().skip(1).any(signed);
    let mut sum = Sum::default();
    let mut unit: Option<Unit> = None;
    let (mut seen, mut ago) = (0, false);
    for field in fields.iter().rev() {
        let (sign, unsigned) = match field.text.split_first() {
            Some((sign @ (b'-' | b'+'), rest)) => (Some(sign), rest),
            _ => (None, field.text.as_slice()),
        };
        let timed = match field.kind {
            Kind::Time => Some(clock(&field.text, range)?),
            Kind::Zone if unsigned.contains(&b':') => clock(unsigned, range).ok(),
            _ => None,
        };
        let new = match (field.kind, timed) {
            (_, Some(t)) => {
                let t = if sign == Some(&b'-') { -t } else { t };
                sum.micros = if negate_all && t > 0 { -t } else { t };
                unit = Some(Unit::Day);
                mask::TIME
            }
            (Kind::Number | Kind::Date | Kind::Zone, None) => {
                let mut of = unit.unwrap_or_else(|| implied_unit(range));
                let (mut value, mut frac) = number(&field.text, &mut of)?;
                if negate_all {
                    value = if value > 0 { -value } else { value };
                    frac = if frac > 0.0 { -frac } else { frac };
                }
                let new = sum.add(of, value, frac)?;
                unit = Some(if of == Unit::Hour { Unit::Day } else { of });
                new
            }
            (Kind::Word | Kind::Special, _) => match span(&field.text) {
                Some(Span::Ignore) => continue,
                Some(Span::Unit(named)) => {
                    unit = Some(named);
                    0
                }
                Some(Span::Ago) => {
                    ago = true;
                    // What follows to the left needs its unit again.
                    unit = Some(Unit::Other);
                    0
                }
                None => return Err(Bad::Format),
            },
            (Kind::Time, None) => return Err(Bad::Format),
        };
        if new & seen != 0 {
            return Err(Bad::Format);
        }
        seen |= new;
    }
    if seen == 0 {
        return Err(Bad::Format);
    }
    if ago {
        sum.negate()?;
    }
    Ok(sum)
}

/// A number as `strtod` reads it, cut into integer and fraction, and the rest.
fn iso_number(s: &[u8]) -> Parsed<(i64, f64, &[u8])> {
    if !s
        .first()
        .is_some_and(|&b| b.is_ascii_digit() || b == b'-' || b == b'.')
    {
        return Err(Bad::Format);
    }
    let sign = usize::from(s.first() == Some(&b'-'));
    let digits_at = |from: usize| {
        s.get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let int = digits_at(sign);
    let mut end = sign + int;
    let mut frac = 0;
    if s.get(end) == Some(&b'.') {
        frac = digits_at(end + 1);
        end += 1 + frac;
    }
    if int + frac == 0 {
        return Err(Bad::Format);
    }
    if matches!(s.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(s.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits_at(end + 1 + signed);
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    let (text, rest) = s.split_at_checked(end).ok_or(Bad::Format)?;
    let text = std::str::from_utf8(text).map_err(|_| Bad::Format)?;
    let value: f64 = text.parse().map_err(|_| Bad::Format)?;
    if value.is_infinite() {
        return Err(Bad::Format);
    }
    if !(-1.0e15..=1.0e15).contains(&value) {
        return Err(Bad::FieldRange);
    }
    Ok((value.trunc() as i64, value - value.trunc(), rest))
}

/// Digits before the point of the number that `s` starts with.
fn int_width(s: &[u8]) -> usize {
    let s = s.strip_prefix(b"-").unwrap_or(s);
    s.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// ISO 8601: with designators (`P1Y2M3DT4H5M6S`) or alternative
/// (`P0001-02-03T04:05:06`, `P00010203T040506`).
fn read_iso(s: &[u8]) -> Parsed<Sum> {
    let mut sum = Sum::default();
    let mut rest = s
        .strip_prefix(b"P")
        .filter(|r| !r.is_empty())
        .ok_or(Bad::Format)?;
    let (mut date_part, mut have_field) = (true, false);
    while let Some(&b) = rest.first() {
        if b == b'T' {
            (date_part, have_field) = (false, false);
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let width = int_width(rest);
        let (value, frac, after) = iso_number(rest)?;
        let unit = after.first().copied();
        rest = after.get(1..).unwrap_or_default();
        let named = match (date_part, unit) {
            (true, Some(b'Y')) => Some(Unit::Year),
            (true, Some(b'M')) => Some(Unit::Month),
            (true, Some(b'W')) => Some(Unit::Week),
            (true, Some(b'D')) => Some(Unit::Day),
            (false, Some(b'H')) => Some(Unit::Hour),
            (false, Some(b'M')) => Some(Unit::Minute),
            (false, Some(b'S')) => Some(Unit::Second),
            _ => None,
        };
        if let Some(named) = named {
            sum.add(named, value, frac)?;
            have_field = true;
            continue;
        }
        if date_part {
            match unit {
                Some(b'T') | None if width == 8 && !have_field => {
                    sum.add_years(value / 10_000, 0.0, 1)?;
                    sum.add_months(value / 100 % 100)?;
                    sum.add(Unit::Day, value % 100, frac)?;
                }
                Some(b'T' | b'-') | None => {
                    if have_field {
                        return Err(Bad::Format);
                    }
                    sum.add(Unit::Year, value, frac)?;
                    if unit == Some(b'-') {
                        rest = iso_month_day(&mut sum, rest)?;
                    }
                }
                _ => return Err(Bad::Format),
            }
            (date_part, have_field) = (false, false);
        } else {
            match unit {
                None if width == 6 && !have_field => {
                    sum.add_micros(value / 10_000, 0.0, USECS_PER_HOUR)?;
                    sum.add_micros(value / 100 % 100, 0.0, USECS_PER_MINUTE)?;
                    sum.add_micros(value % 100, 0.0, USECS_PER_SEC)?;
                    sum.add_fraction(frac, 1)?;
                }
                Some(b':') | None => {
                    if have_field {
                        return Err(Bad::Format);
                    }
                    sum.add_micros(value, frac, USECS_PER_HOUR)?;
                    if unit.is_some() {
                        iso_minute_second(&mut sum, rest)?;
                    }
                }
                _ => return Err(Bad::Format),
            }
            return Ok(sum);
        }
    }
    Ok(sum)
}

/// `mm[-dd]` after `yyyy-`; gives what follows the `T`, or nothing.
fn iso_month_day<'a>(sum: &mut Sum, s: &'a [u8]) -> Parsed<&'a [u8]> {
    let (value, frac, rest) = iso_number(s)?;
    sum.add(Unit::Month, value, frac)?;
    let rest = match rest.first() {
        Some(b'-') => {
            let (value, frac, rest) = iso_number(rest.get(1..).unwrap_or_default())?;
            sum.add(Unit::Day, value, frac)?;
            rest
        }
        _ => rest,
    };
    match rest.first() {
        None | Some(b'T') => Ok(rest),
        Some(_) => Err(Bad::Format),
    }
}

/// `mm[:ss]` after `hh:`
fn iso_minute_second(sum: &mut Sum, s: &[u8]) -> Parsed<()> {
    let (value, frac, rest) = iso_number(s)?;
    sum.add_micros(value, frac, USECS_PER_MINUTE)?;
    let rest = match rest.first() {
        None => return Ok(()),
        Some(b':') => rest.get(1..).unwrap_or_default(),
        Some(_) => return Err(Bad::Format),
    };
    let (value, frac, rest) = iso_number(rest)?;
    sum.add_micros(value, frac, USECS_PER_SEC)?;
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Bad::Format)
    }
}

/// Cuts an interval down to the fields and precision of a modifier.
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

    /// Scales each part; fractions of months become days, of days time.
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

    /// Moves whole days of the time into the days.
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

    /// Fractions go down to smaller units, with the rounding of PostgreSQL.
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

    /// A month is 30 days, a day 24 hours, beyond 64 bits too.
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
