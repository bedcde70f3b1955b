//! Reads intervals in the formats of ISO 8601.

use super::read::{Parsed, Sum};
use crate::datetime::token::{Bad, Unit};
use crate::datetime::{USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC};

/// Reads a number like `strtod`; returns integer, fraction, and the rest.
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

/// Number of digits before the decimal point at the start of `s`.
fn int_width(s: &[u8]) -> usize {
    let s = s.strip_prefix(b"-").unwrap_or(s);
    s.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// ISO 8601: with designators (`P1Y2M3DT4H5M6S`) or alternative
/// (`P0001-02-03T04:05:06`, `P00010203T040506`).
pub(super) fn read_iso(s: &[u8]) -> Parsed<Sum> {
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
        let number = Number {
            width: int_width(rest),
            first: !have_field,
            parts: iso_number(rest)?,
        };
        let (value, frac, after) = number.parts;
        let unit = after.first().copied();
        rest = after.get(1..).unwrap_or_default();
        if let Some(named) = designated(date_part, unit) {
            sum.add(named, value, frac)?;
            have_field = true;
        } else if date_part {
            rest = alternative_date(&mut sum, &number, unit, rest)?;
            (date_part, have_field) = (false, false);
        } else {
            alternative_time(&mut sum, &number, unit, rest)?;
            return Ok(sum);
        }
    }
    Ok(sum)
}

/// A number of the input.
struct Number<'a> {
    /// Number of digits before the decimal point.
    width: usize,
    /// Whether it is the first number in its part.
    first: bool,
    /// Integer, fraction, and what follows.
    parts: (i64, f64, &'a [u8]),
}

/// The unit that a designator names.
fn designated(date_part: bool, unit: Option<u8>) -> Option<Unit> {
    Some(match (date_part, unit?) {
        (true, b'Y') => Unit::Year,
        (true, b'M') => Unit::Month,
        (true, b'W') => Unit::Week,
        (true, b'D') => Unit::Day,
        (false, b'H') => Unit::Hour,
        (false, b'M') => Unit::Minute,
        (false, b'S') => Unit::Second,
        _ => return None,
    })
}

/// `yyyymmdd` or `yyyy[-mm[-dd]]`; returns what follows the `T`, or nothing.
fn alternative_date<'a>(
    sum: &mut Sum,
    number: &Number<'_>,
    unit: Option<u8>,
    rest: &'a [u8],
) -> Parsed<&'a [u8]> {
    let (value, frac, _) = number.parts;
    match unit {
        Some(b'T') | None if number.width == 8 && number.first => {
            sum.add_years(value / 10_000, 0.0, 1)?;
            sum.add_months(value / 100 % 100)?;
            sum.add(Unit::Day, value % 100, frac)?;
            Ok(rest)
        }
        Some(b'T' | b'-') | None if number.first => {
            sum.add(Unit::Year, value, frac)?;
            match unit {
                Some(b'-') => iso_month_day(sum, rest),
                _ => Ok(rest),
            }
        }
        _ => Err(Bad::Format),
    }
}

/// `hhmmss` or `hh[:mm[:ss]]`
fn alternative_time(
    sum: &mut Sum,
    number: &Number<'_>,
    unit: Option<u8>,
    rest: &[u8],
) -> Parsed<()> {
    let (value, frac, _) = number.parts;
    match unit {
        None if number.width == 6 && number.first => {
            sum.add_micros(value / 10_000, 0.0, USECS_PER_HOUR)?;
            sum.add_micros(value / 100 % 100, 0.0, USECS_PER_MINUTE)?;
            sum.add_micros(value % 100, 0.0, USECS_PER_SEC)?;
            sum.add_fraction(frac, 1)
        }
        Some(b':') | None if number.first => {
            sum.add_micros(value, frac, USECS_PER_HOUR)?;
            match unit {
                Some(_) => iso_minute_second(sum, rest),
                None => Ok(()),
            }
        }
        _ => Err(Bad::Format),
    }
}

/// `mm[-dd]` after `yyyy-`; returns what follows the `T`, or nothing.
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
