//! `in_range`: whether a row is within the frame of a window that is given by an offset from the
//! current row (`RANGE BETWEEN 5 PRECEDING …`), as the support functions of PostgreSQL's B-trees tell it.
//!
//! Invariant: a bound beyond the type's range is beyond all its values; it is no error, except for
//! timestamps and intervals, where PostgreSQL computes it.
use crate::compare::compare;
use crate::datetime::arith;
use crate::error::no_such_operation;
use crate::{Env, Error, Interval, Numeric, Result, Value, integer};
use contract::range;
use std::cmp::Ordering;

/// Where the bound is, and which side of it is within.
#[derive(Clone, Copy)]
struct Side {
    preceding: bool,
    up_to: bool,
}

impl Side {
    /// Whether a value is within, given its order relative to the bound.
    fn holds(self, order: Ordering) -> bool {
        match self.up_to {
            true => order.is_le(),
            false => order.is_ge(),
        }
    }

    /// Values that are not numbers come after all others, and form a frame of their own.
    fn not_numbers(self, value: bool, base: bool) -> Option<bool> {
        match (value, base) {
            (true, true) => Some(true),
            (true, false) => Some(!self.up_to),
            (false, true) => Some(self.up_to),
            (false, false) => None,
        }
    }
}

fn negative() -> Error {
    let message = "invalid preceding or following size in window function";
    Error::new(b"22013", message)
}

/// Whether `value` is at most (`range::UP_TO`) or at least `base` plus or minus (`range::PRECEDING`)
/// `offset`.
pub fn in_range(
    immediate: i32,
    value: &Value,
    base: &Value,
    offset: &Value,
    env: &Env,
) -> Result<bool> {
    let side = Side {
        preceding: immediate & range::PRECEDING != 0,
        up_to: immediate & range::UP_TO != 0,
    };
    let three = (value, base, offset);
    if let (Some(v), Some(b), Some(o)) = (
        integer::widen(value),
        integer::widen(base),
        integer::widen(offset),
    ) {
        return integers(side, v.into(), b.into(), o.into());
    }
    if let (Some(v), Some(b), Some(o)) = (value.widen(), base.widen(), offset.widen()) {
        return floats(side, v, b, o);
    }
    match three {
        (Value::Numeric(v), Value::Numeric(b), Value::Numeric(o)) => numerics(side, v, b, o),
        (Value::Time(v), Value::Time(b), Value::Interval(o)) => {
            integers(side, (*v).into(), (*b).into(), o.micros.into())
        }
        (_, _, Value::Interval(o)) => spans(side, value, base, o, env),
        _ => Err(no_such_operation()),
    }
}

fn integers(side: Side, value: i128, base: i128, offset: i128) -> Result<bool> {
    if offset < 0 {
        return Err(negative());
    }
    let bound = match side.preceding {
        true => base - offset,
        false => base + offset,
    };
    Ok(side.holds(value.cmp(&bound)))
}

fn floats(side: Side, value: f64, base: f64, offset: f64) -> Result<bool> {
    if offset.is_nan() || offset < 0.0 {
        return Err(negative());
    }
    if let Some(known) = side.not_numbers(value.is_nan(), base.is_nan()) {
        return Ok(known);
    }
    let bound = match side.preceding {
        true => base - offset,
        false => base + offset,
    };
    // Infinity minus infinity: everything is that far.
    Ok(value
        .partial_cmp(&bound)
        .is_none_or(|order| side.holds(order)))
}

fn numerics(side: Side, value: &Numeric, base: &Numeric, offset: &Numeric) -> Result<bool> {
    let zero = Numeric::from_scaled(0, 0);
    if offset.is_nan() || offset.compare(&zero).is_lt() {
        return Err(negative());
    }
    if let Some(known) = side.not_numbers(value.is_nan(), base.is_nan()) {
        return Ok(known);
    }
    let bound = match side.preceding {
        true => base.sub(offset)?,
        false => base.add(offset)?,
    };
    Ok(bound.is_nan() || side.holds(value.compare(&bound)))
}

fn spans(side: Side, value: &Value, base: &Value, offset: &Interval, env: &Env) -> Result<bool> {
    if offset.linear() < 0 {
        return Err(negative());
    }
    let span = || match side.preceding {
        true => arith::opposite(offset),
        false => *offset,
    };
    let (value, bound) = match (value, base) {
        (Value::Date(v), Value::Date(b)) => {
            let v = arith::date_to_timestamp(*v)?;
            let bound = arith::add(arith::date_to_timestamp(*b)?, &span())?;
            (&Value::Timestamp(v), Value::Timestamp(bound))
        }
        (Value::Timestamp(_), Value::Timestamp(b)) => {
            (value, Value::Timestamp(arith::add(*b, &span())?))
        }
        (Value::Timestamptz(_), Value::Timestamptz(b)) => {
            (value, Value::Timestamptz(arith::add_tz(*b, &span(), env)?))
        }
        (Value::Interval(_), Value::Interval(b)) => {
            let bound = match side.preceding {
                true => b.checked_sub(offset)?,
                false => b.checked_add(offset)?,
            };
            (value, Value::Interval(bound))
        }
        _ => return Err(no_such_operation()),
    };
    Ok(side.holds(compare(value, &bound, env)?))
}

#[cfg(test)]
mod tests {
    use super::in_range;
    use crate::{Env, Value, parse_text};
    use contract::{TypeCode, range};

    fn read(t: TypeCode, text: &str) -> Value {
        parse_text(t, -1, text.as_bytes(), &Env::default()).unwrap()
    }

    /// For each of preceding and following: at most, at least.
    fn sides(t: TypeCode, offset: TypeCode, texts: [&str; 3]) -> Result<[bool; 4], String> {
        let [value, base] = [texts[0], texts[1]].map(|text| read(t, text));
        let offset = read(offset, texts[2]);
        let of = |immediate| {
            in_range(immediate, &value, &base, &offset, &Env::default())
                .map_err(|e| e.sqlstate_str().to_owned())
        };
        let both = range::PRECEDING | range::UP_TO;
        Ok([of(both)?, of(range::PRECEDING)?, of(range::UP_TO)?, of(0)?])
    }

    #[test]
    fn bounds() {
        use TypeCode::{Float8, Int4, Int8, Interval, Numeric, Time, Timestamp};
        let ok = |t, offset, texts, wanted| assert_eq!(sides(t, offset, texts), Ok(wanted));
        ok(Int4, Int4, ["3", "5", "2"], [true, true, true, false]);
        // Beyond the type's range there is nothing.
        let max = "9223372036854775807";
        ok(Int8, Int8, [max, max, "1"], [false, true, true, false]);
        ok(Int8, Int8, ["-1", "0", max], [false, true, true, false]);
        // Infinity minus infinity is everywhere.
        let infinite = ["1", "inf", "inf"];
        ok(Float8, Float8, infinite, [true, true, true, false]);
        ok(Numeric, Numeric, infinite, [true, true, true, false]);
        ok(
            Float8,
            Float8,
            ["NaN", "1", "inf"],
            [false, true, false, true],
        );
        ok(
            Numeric,
            Numeric,
            ["1", "NaN", "2"],
            [true, false, true, false],
        );
        // A time does not wrap around, and months are none of its business.
        let late = ["00:30", "23:30", "1 mon 1:00"];
        ok(Time, Interval, late, [true, false, true, false]);
        let leap = ["2020-02-29", "2020-03-31", "1 mon"];
        ok(Timestamp, Interval, leap, [true, true, true, false]);
        for (t, offset, text) in [
            (Int4, Int4, "-1"),
            (Float8, Float8, "NaN"),
            (Numeric, Numeric, "-inf"),
        ] {
            assert_eq!(sides(t, offset, ["1", "1", text]), Err("22013".into()));
        }
    }
}
