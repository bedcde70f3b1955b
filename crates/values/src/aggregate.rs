//! Transition states of aggregates.

use crate::compare::{compare, compare_same};
use crate::error::{no_such_operation, out_of_range};
use crate::pairs::Pairs;
use crate::{Env, Error, Interval, Numeric, Result, Value, float, integer};
use contract::{Aggregate, Arguments, Op, TypeCode};
use std::cmp::Ordering;
use std::fmt;

/// The state of one aggregate of one group.
#[derive(Clone)]
pub struct AggregateState {
    agg: Aggregate,
    count: u64,
    state: State,
}

#[derive(Clone)]
enum State {
    /// Sum and average of integers; the result of a sum has this type.
    Int(i128, TypeCode),
    /// Sum and average of numerics, including infinities and NaN.
    Numeric(Numeric),
    /// Sum of `float4`, rounded at each step as PostgreSQL does.
    Float4(f32),
    /// Sum of `float8`.
    Float8(f64),
    /// Average of floats: sum, and sum of squared deviations, which can overflow.
    FloatAvg(f64, f64),
    Interval(Interval),
    /// Minimum or maximum.
    Extreme(Option<Value>),
    /// Conjunction or disjunction.
    Bool(bool),
    /// Bitwise aggregate of a type.
    Bits(i64, TypeCode),
    /// Sum, and sum of squares.
    Moments(Box<(Numeric, Numeric)>),
    /// Concatenated strings; whether they are bytea.
    Joined(Vec<u8>, bool),
    /// Aggregates of pairs.
    Pairs(Box<Pairs>),
}

/// Whether it is a variance or standard deviation.
fn deviates(agg: Aggregate) -> bool {
    use Aggregate::{StddevPop, StddevSamp, VarPop, VarSamp};
    matches!(agg, VarPop | VarSamp | StddevPop | StddevSamp)
}

fn bits(agg: Aggregate, a: i64, b: i64) -> i64 {
    match agg {
        Aggregate::BitAnd => a & b,
        Aggregate::BitOr => a | b,
        _ => a ^ b,
    }
}

/// Adds a value to states other than sums and extremes.
fn step_more(agg: Aggregate, state: &mut State, v: &Value) -> Result<()> {
    match (state, v) {
        (State::Bool(a), Value::Bool(b)) if agg == Aggregate::BoolAnd => *a &= *b,
        (State::Bool(a), Value::Bool(b)) => *a |= *b,
        (State::Bits(a, _), v) => {
            *a = bits(agg, *a, integer::widen(v).ok_or_else(no_such_operation)?);
        }
        (State::Moments(m), Value::Numeric(n)) => {
            **m = (m.0.add(n)?, m.1.add(&n.mul(n)?)?);
        }
        (State::Moments(m), v) => {
            let n = Numeric::from_i64(integer::widen(v).ok_or_else(no_such_operation)?);
            **m = (m.0.add(&n)?, m.1.add(&n.mul(&n)?)?);
        }
        (State::Joined(all, _), Value::Text(s) | Value::Bytea(s)) => {
            if all.len() + s.len() > crate::text::MAX_BYTES {
                return Err(crate::error::too_large());
            }
            all.extend_from_slice(s);
        }
        (State::Pairs(pairs), Value::Float8(x)) => pairs.take(*x)?,
        _ => return Err(no_such_operation()),
    }
    Ok(())
}

fn overflow(r: f64, inputs: [f64; 2]) -> Result<f64> {
    if r.is_infinite() && inputs.iter().all(|x| x.is_finite() || x.is_nan()) {
        return Err(float::overflow());
    }
    Ok(r)
}

impl AggregateState {
    /// The empty state of `agg` over values of type `input`.
    pub fn new(agg: Aggregate, input: TypeCode) -> Result<AggregateState> {
        use TypeCode as T;
        let state = match (agg, input) {
            (Aggregate::Min | Aggregate::Max, T::Bool | T::Bytea | T::Uuid) => {
                return Err(no_such_operation());
            }
            (Aggregate::Min | Aggregate::Max, _) => State::Extreme(None),
            (Aggregate::BoolAnd, T::Bool) => State::Bool(true),
            (Aggregate::BoolOr, T::Bool) => State::Bool(false),
            (Aggregate::BitAnd, T::Int2 | T::Int4 | T::Int8) => State::Bits(-1, input),
            (Aggregate::BitOr | Aggregate::BitXor, T::Int2 | T::Int4 | T::Int8) => {
                State::Bits(0, input)
            }
            (_, T::Float4 | T::Float8) if deviates(agg) => State::FloatAvg(0.0, 0.0),
            (_, T::Int2 | T::Int4 | T::Int8 | T::Numeric) if deviates(agg) => {
                State::Moments(Box::new((Numeric::from_i64(0), Numeric::from_i64(0))))
            }
            (Aggregate::StringAgg, T::Text | T::Bytea) => {
                State::Joined(Vec::new(), input == T::Bytea)
            }
            (_, T::Float8) if agg.arguments() == Arguments::Pair => State::Pairs(Box::default()),
            (Aggregate::Sum, T::Int2 | T::Int4) => State::Int(0, T::Int8),
            (Aggregate::Sum | Aggregate::Avg, T::Int2 | T::Int4 | T::Int8) => {
                State::Int(0, T::Numeric)
            }
            (Aggregate::Sum | Aggregate::Avg, T::Numeric) => State::Numeric(Numeric::from_i64(0)),
            // Adding to -0 leaves the first value unchanged.
            (Aggregate::Sum, T::Float4) => State::Float4(-0.0),
            (Aggregate::Sum, T::Float8) => State::Float8(-0.0),
            (Aggregate::Avg, T::Float4 | T::Float8) => State::FloatAvg(0.0, 0.0),
            (Aggregate::Sum | Aggregate::Avg, T::Interval) => State::Interval(Interval::default()),
            _ => return Err(no_such_operation()),
        };
        Ok(AggregateState {
            agg,
            count: 0,
            state,
        })
    }

    /// The type of the result of `agg` over values of type `input`.
    pub fn result_type(agg: Aggregate, input: TypeCode) -> Result<TypeCode> {
        Ok(match (agg, AggregateState::new(agg, input)?.state) {
            (Aggregate::Sum, State::Int(_, ret)) => ret,
            (_, State::Int(..) | State::Numeric(_)) => TypeCode::Numeric,
            (_, State::Float4(_)) => TypeCode::Float4,
            (_, State::Float8(_) | State::FloatAvg(..)) => TypeCode::Float8,
            (_, State::Interval(_)) => TypeCode::Interval,
            // min(varchar) is min(text).
            (_, State::Extreme(_)) => input.stored(),
            (_, State::Moments(_)) => TypeCode::Numeric,
            (_, State::Pairs(_)) => TypeCode::Float8,
            (_, State::Bool(_) | State::Bits(..) | State::Joined(..)) => input,
        })
    }

    /// Adds a value that is not null.
    pub fn step(&mut self, v: &Value, env: &Env) -> Result<()> {
        let first = self.count == 0;
        match (&mut self.state, v) {
            (State::Int(sum, _), v) => {
                let n = integer::widen(v).ok_or_else(no_such_operation)?;
                *sum = sum
                    .checked_add(i128::from(n))
                    .ok_or_else(|| out_of_range("bigint"))?;
            }
            (State::Numeric(sum), Value::Numeric(n)) => *sum = sum.add(n)?,
            (State::Float4(sum), Value::Float4(x)) => *sum = float::binary_f32(Op::Add, *sum, *x)?,
            (State::Float8(sum), Value::Float8(x)) => *sum = float::binary_f64(Op::Add, *sum, *x)?,
            (State::FloatAvg(sum, squares), v) => {
                let x = v.widen().ok_or_else(no_such_operation)?;
                let n = self.count as f64;
                let new_sum = *sum + x;
                if first {
                    *squares = if x.is_finite() { 0.0 } else { f64::NAN };
                } else {
                    let tmp = x * (n + 1.0) - new_sum;
                    *squares += tmp * tmp / ((n + 1.0) * n);
                    if new_sum.is_infinite() || squares.is_infinite() {
                        overflow(f64::INFINITY, [*sum, x])?;
                        *squares = f64::NAN;
                    }
                }
                *sum = new_sum;
            }
            (State::Interval(sum), Value::Interval(i)) => *sum = sum.checked_add(i)?,
            (State::Extreme(kept), v) => {
                let replace = match kept {
                    None => true,
                    Some(old) => replaces(self.agg, v, compare(old, v, env)?),
                };
                if replace {
                    *kept = Some(v.clone());
                }
            }
            (state, v) => step_more(self.agg, state, v)?,
        }
        self.count += 1;
        Ok(())
    }

    /// Merges another state of the same aggregate.
    pub fn combine(&mut self, other: &AggregateState) -> Result<()> {
        if self.agg != other.agg {
            return Err(no_such_operation());
        }
        if other.count == 0 {
            return Ok(());
        }
        if self.count == 0 {
            *self = other.clone();
            return Ok(());
        }
        match (&mut self.state, &other.state) {
            (State::Int(a, _), State::Int(b, _)) => {
                *a = a.checked_add(*b).ok_or_else(|| out_of_range("bigint"))?;
            }
            (State::Numeric(a), State::Numeric(b)) => *a = a.add(b)?,
            (State::Float4(a), State::Float4(b)) => *a = float::binary_f32(Op::Add, *a, *b)?,
            (State::Float8(a), State::Float8(b)) => *a = float::binary_f64(Op::Add, *a, *b)?,
            (State::FloatAvg(sum, squares), State::FloatAvg(sum2, squares2)) => {
                let (n1, n2) = (self.count as f64, other.count as f64);
                let tmp = *sum / n1 - *sum2 / n2;
                let deviation = *squares + squares2 + n1 * n2 * tmp * tmp / (n1 + n2);
                *squares = overflow(deviation, [*squares, *squares2])?;
                *sum = float::binary_f64(Op::Add, *sum, *sum2)?;
            }
            (State::Interval(a), State::Interval(b)) => *a = a.checked_add(b)?,
            (State::Extreme(Some(a)), State::Extreme(Some(b))) => {
                let order = compare_same(a, b).ok_or_else(no_such_operation)?;
                if replaces(self.agg, b, order) {
                    *a = b.clone();
                }
            }
            (State::Bool(a), State::Bool(b)) if self.agg == Aggregate::BoolAnd => *a &= *b,
            (State::Bool(a), State::Bool(b)) => *a |= *b,
            (State::Bits(a, _), State::Bits(b, _)) => *a = bits(self.agg, *a, *b),
            (State::Moments(a), State::Moments(b)) => {
                **a = (a.0.add(&b.0)?, a.1.add(&b.1)?);
            }
            _ => return Err(no_such_operation()),
        }
        self.count += other.count;
        Ok(())
    }

    /// The state of a sum or average of integers after `count` values with this sum.
    pub fn of_integers(
        agg: Aggregate,
        input: TypeCode,
        sum: i128,
        count: u64,
    ) -> Result<AggregateState> {
        let mut state = AggregateState::new(agg, input)?;
        match &mut state.state {
            State::Int(total, _) => *total = sum,
            _ => return Err(no_such_operation()),
        }
        state.count = count;
        Ok(state)
    }

    /// The state after `count` numerics with the sum `sum` · 10^-`scale`, where `scale` is their
    /// largest scale.
    pub fn of_numerics(
        agg: Aggregate,
        sum: i128,
        scale: u16,
        count: u64,
    ) -> Result<AggregateState> {
        let mut state = AggregateState::new(agg, TypeCode::Numeric)?;
        match &mut state.state {
            State::Numeric(total) => *total = Numeric::from_i128_scaled(sum, scale),
            _ => return Err(no_such_operation()),
        }
        state.count = count;
        Ok(state)
    }

    /// This state as that of another aggregate with the same transitions: sum and average of
    /// integers or numerics.
    pub fn to_end_as(mut self, agg: Aggregate) -> AggregateState {
        if matches!(self.state, State::Int(..) | State::Numeric(_)) {
            self.agg = agg;
        }
        self
    }

    /// Whether there was no value; then the result is null.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The result; [`Error::null`] if there was no value.
    pub fn finish(&self) -> Result<Value> {
        if self.count == 0 {
            return Err(Error::null());
        }
        let average = self.agg == Aggregate::Avg;
        let sample = matches!(self.agg, Aggregate::VarSamp | Aggregate::StddevSamp);
        let root = matches!(self.agg, Aggregate::StddevPop | Aggregate::StddevSamp);
        if sample && self.count < 2 {
            return Err(Error::null());
        }
        let count = || Numeric::from_i128(i128::from(self.count));
        Ok(match &self.state {
            State::Int(sum, _) if average => {
                Value::Numeric(Numeric::from_i128(*sum).div(&count())?)
            }
            State::Int(sum, TypeCode::Int8) => integer::narrow(*sum, TypeCode::Int8)?,
            State::Int(sum, _) => Value::Numeric(Numeric::from_i128(*sum)),
            State::Numeric(sum) if average => Value::Numeric(sum.div(&count())?),
            State::Numeric(sum) => Value::Numeric(sum.clone()),
            State::Float4(sum) => Value::Float4(*sum),
            State::Float8(sum) => Value::Float8(*sum),
            State::FloatAvg(_, squares) if deviates(self.agg) => {
                let variance = *squares / (self.count as f64 - f64::from(u8::from(sample)));
                Value::Float8(if root { variance.sqrt() } else { variance })
            }
            State::FloatAvg(sum, _) => Value::Float8(*sum / self.count as f64),
            State::Moments(m) => {
                Value::Numeric(Numeric::variance(self.count, &m.0, &m.1, sample, root)?)
            }
            State::Bool(b) => Value::Bool(*b),
            State::Bits(n, t) => integer::narrow(i128::from(*n), *t)?,
            State::Joined(s, true) => Value::Bytea(s.as_slice().into()),
            State::Joined(s, false) => Value::Text(s.as_slice().into()),
            State::Pairs(pairs) => Value::Float8(pairs.result(self.agg).ok_or_else(Error::null)?),
            State::Interval(sum) if average => Value::Interval(sum.div(self.count as f64)?),
            State::Interval(sum) => Value::Interval(*sum),
            State::Extreme(kept) => kept.clone().ok_or_else(Error::null)?,
        })
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Numeric(n) => n.heap_bytes(),
            State::Extreme(Some(v)) => v.heap_bytes(),
            State::Joined(s, _) => s.capacity(),
            State::Moments(m) => m.0.heap_bytes() + m.1.heap_bytes(),
            _ => 0,
        }
    }
}

/// Whether a new value replaces the old one, given their order. Among equal values that look
/// different (1.0 and 1.00) the last is kept, except for `char(n)`.
fn replaces(agg: Aggregate, new: &Value, order: Ordering) -> bool {
    replaces_extreme(agg, new.type_code(), order)
}

/// Whether a new value replaces the old minimum or maximum, given their order.
#[inline]
pub fn replaces_extreme(agg: Aggregate, t: TypeCode, order: Ordering) -> bool {
    match (agg, order) {
        (_, Ordering::Equal) => t != TypeCode::Bpchar,
        (Aggregate::Max, order) => order.is_lt(),
        (_, order) => order.is_gt(),
    }
}

impl fmt::Debug for AggregateState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} values", self.agg.name(), self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format_text, parse_text};

    fn run(agg: Aggregate, t: TypeCode, inputs: &[&str]) -> String {
        let env = Env::default();
        let mut state = AggregateState::new(agg, t).unwrap();
        let result = inputs
            .iter()
            .try_for_each(|s| state.step(&parse_text(t, -1, s.as_bytes(), &env).unwrap(), &env))
            .and_then(|()| state.finish());
        match result {
            Ok(v) => {
                assert_eq!(v.type_code(), AggregateState::result_type(agg, t).unwrap());
                String::from_utf8(format_text(&v, &env)).unwrap()
            }
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn results() {
        use Aggregate::{Avg, Max, Min, Sum};
        use TypeCode::*;
        for (agg, t, inputs, expected) in [
            (Sum, Int4, &["2147483647", "2147483647"][..], "4294967294"),
            (
                Sum,
                Int8,
                &["9223372036854775807", "1"],
                "9223372036854775808",
            ),
            (Avg, Int4, &["1", "2"], "1.5000000000000000"),
            (Avg, Int8, &["1", "1", "2"], "1.3333333333333333"),
            // The display scale is the largest of all inputs.
            (Sum, Numeric, &["1.5", "2.25", "0.000"], "3.750"),
            (Avg, Numeric, &["1.5", "2.25"], "1.8750000000000000"),
            (Sum, Numeric, &["Infinity", "-Infinity"], "NaN"),
            // float4 rounds at each step.
            (Sum, Float4, &["16777216", "1", "1"], "1.6777216e+07"),
            (Sum, Float8, &["-0"], "-0"),
            (Sum, Float8, &["1.7e308", "1.7e308"], "22003"),
            // The sum of squares overflows first.
            (Avg, Float8, &["1e200", "-1e200"], "22003"),
            (Avg, Float4, &["1", "2"], "1.5"),
            (Avg, Interval, &["1 mon", "1 day"], "15 days 12:00:00"),
            (Sum, Interval, &["2147483647 days", "1 day"], "22008"),
            (Max, Numeric, &["1.0", "1.00"], "1.00"),
            (Min, Float8, &["NaN", "1"], "1"),
            (Max, Text, &["a", "B"], "a"),
            (Sum, Int4, &[], "00000"),
        ] {
            assert_eq!(run(agg, t, inputs), expected, "{agg:?} {inputs:?}");
        }
        assert!(AggregateState::new(Max, Bool).is_err());
        assert!(AggregateState::new(Sum, Text).is_err());
    }

    /// Two partial states, one of them empty, merge to the whole.
    #[test]
    fn parts() {
        let env = Env::default();
        let mut a = AggregateState::new(Aggregate::Avg, TypeCode::Int4).unwrap();
        let mut b = a.clone();
        a.combine(&b).unwrap();
        assert!(a.is_empty());
        b.step(&Value::Int4(3), &env).unwrap();
        a.combine(&b).unwrap();
        b.step(&Value::Int4(5), &env).unwrap();
        a.combine(&b).unwrap();
        assert_eq!(
            format_text(&a.finish().unwrap(), &env),
            b"3.6666666666666667"
        );
        let other = AggregateState::new(Aggregate::Sum, TypeCode::Int4).unwrap();
        assert!(a.combine(&other).is_err());
    }
}
