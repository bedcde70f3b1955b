//! Reads intervals in PostgreSQL's and the SQL standard's forms, field by field from the right.

use super::iso::read_iso;
use super::{ALL_FIELDS, DAY, HOUR, MINUTE, MONTH, SECOND, YEAR, with_typmod};
use crate::datetime::token::{
    Bad, Field, Kind, Span, Unit, fraction, leading_int, mask, span, split, time,
};
use crate::datetime::{
    USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC, out_of_range,
};
use crate::env::IntervalStyle;
use crate::{Env, Error, Interval, Result};
use contract::Code;

pub(super) type Parsed<T> = std::result::Result<T, Bad>;

/// Sums of the fields of an input.
#[derive(Default)]
pub(super) struct Sum {
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
            bad => crate::datetime::parse::error(bad, "interval"),
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
    pub(super) fn add_micros(&mut self, value: i64, frac: f64, scale: i64) -> Parsed<()> {
        let whole = value
            .checked_mul(scale)
            .and_then(|v| self.micros.checked_add(v));
        self.micros = whole.ok_or(Bad::FieldRange)?;
        self.add_fraction(frac, scale)
    }

    /// A fraction of `scale` microseconds.
    pub(super) fn add_fraction(&mut self, frac: f64, scale: i64) -> Parsed<()> {
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

    pub(super) fn add_days(&mut self, value: i64, scale: i32) -> Parsed<()> {
        let days = i32::try_from(value).ok().and_then(|v| v.checked_mul(scale));
        let days = days.and_then(|d| self.days.checked_add(d));
        self.days = days.ok_or(Bad::FieldRange)?;
        Ok(())
    }

    /// A fraction of `scale` days; a fraction of a day becomes time.
    pub(super) fn add_day_fraction(&mut self, frac: f64, scale: i32) -> Parsed<()> {
        if frac == 0.0 {
            return Ok(());
        }
        let scaled = frac * f64::from(scale);
        let days = scaled as i32;
        self.days = self.days.checked_add(days).ok_or(Bad::FieldRange)?;
        self.add_fraction(scaled - f64::from(days), USECS_PER_DAY)
    }

    pub(super) fn add_months(&mut self, value: i64) -> Parsed<()> {
        let months = i32::try_from(value)
            .ok()
            .and_then(|v| self.months.checked_add(v));
        self.months = months.ok_or(Bad::FieldRange)?;
        Ok(())
    }

    /// Years; a fraction becomes whole months.
    pub(super) fn add_years(&mut self, value: i64, frac: f64, scale: i32) -> Parsed<()> {
        let years = i32::try_from(value).ok().and_then(|v| v.checked_mul(scale));
        let years = years.and_then(|y| self.years.checked_add(y));
        self.years = years.ok_or(Bad::FieldRange)?;
        let months = (frac * f64::from(scale) * 12.0).round_ties_even() as i64;
        self.add_months(months)
    }

    /// Adds a number of a unit; returns its bits in the mask of fields.
    pub(super) fn add(&mut self, unit: Unit, value: i64, frac: f64) -> Parsed<u32> {
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

    pub(super) fn negate(&mut self) -> Parsed<()> {
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

/// A clock field, and numbers with units, read from the right so that a unit is known before
/// its number: PostgreSQL's and the SQL standard's forms.
struct Reader {
    sum: Sum,
    /// Fields of the modifier.
    range: i32,
    /// The unit of the next number, if one is named or follows from its neighbour.
    unit: Option<Unit>,
    /// The standard's leading sign applies to all fields.
    negate_all: bool,
    ago: bool,
}

impl Reader {
    /// Adds a field; returns its bits in the mask of fields.
    fn field(&mut self, field: &Field) -> Parsed<u32> {
        let (sign, unsigned) = match field.text.split_first() {
            Some((sign @ (b'-' | b'+'), rest)) => (Some(sign), rest),
            _ => (None, field.text.as_slice()),
        };
        let timed = match field.kind {
            Kind::Time => Some(clock(&field.text, self.range)?),
            Kind::Zone if unsigned.contains(&b':') => clock(unsigned, self.range).ok(),
            _ => None,
        };
        match (field.kind, timed) {
            (_, Some(t)) => {
                let t = if sign == Some(&b'-') { -t } else { t };
                self.sum.micros = if self.negate_all && t > 0 { -t } else { t };
                self.unit = Some(Unit::Day);
                Ok(mask::TIME)
            }
            (Kind::Number | Kind::Date | Kind::Zone, None) => self.number(&field.text),
            (Kind::Word | Kind::Special, _) => self.word(&field.text),
            (Kind::Time, None) => Err(Bad::Format),
        }
    }

    fn number(&mut self, text: &[u8]) -> Parsed<u32> {
        let mut of = self.unit.unwrap_or_else(|| implied_unit(self.range));
        let (mut value, mut frac) = number(text, &mut of)?;
        if self.negate_all {
            value = if value > 0 { -value } else { value };
            frac = if frac > 0.0 { -frac } else { frac };
        }
        let new = self.sum.add(of, value, frac)?;
        self.unit = Some(if of == Unit::Hour { Unit::Day } else { of });
        Ok(new)
    }

    fn word(&mut self, text: &[u8]) -> Parsed<u32> {
        match span(text) {
            Some(Span::Ignore) => {}
            Some(Span::Unit(named)) => self.unit = Some(named),
            Some(Span::Ago) => {
                self.ago = true;
                // What follows to the left needs its unit again.
                self.unit = Some(Unit::Other);
            }
            None => return Err(Bad::Format),
        }
        Ok(0)
    }
}

fn read_fields(fields: &[Field], range: i32, env: &Env) -> Parsed<Sum> {
    let signed = |f: &Field| matches!(f.text.first(), Some(b'-' | b'+'));
    let minus = |f: &Field| f.text.first() == Some(&b'-');
    let mut reader = Reader {
        sum: Sum::default(),
        range,
        unit: None,
        // If it is the only one.
        negate_all: env.interval_style == IntervalStyle::SqlStandard
            && fields.first().is_some_and(minus)
            && !fields.iter().skip(1).any(signed),
        ago: false,
    };
    let mut seen = 0;
    for field in fields.iter().rev() {
        let new = reader.field(field)?;
        if new & seen != 0 {
            return Err(Bad::Format);
        }
        seen |= new;
    }
    if seen == 0 {
        return Err(Bad::Format);
    }
    if reader.ago {
        reader.sum.negate()?;
    }
    Ok(reader.sum)
}
