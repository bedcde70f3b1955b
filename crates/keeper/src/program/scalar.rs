//! Single rows: fast paths over stored values. `None` means that the caller must use crate
//! `values`.

use crate::signatures::{Kernel, Operation};
use contract::{Op, TypeCode};
use std::cmp::Ordering;
use store::Scalar;
use values::{Numeric, Value};

/// The result of a comparison with this order; `None` for other operations.
#[inline]
pub fn holds(op: Op, order: Ordering) -> Option<bool> {
    Some(match op {
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Eq => order.is_eq(),
        Op::Ge => order.is_ge(),
        Op::Gt => order.is_gt(),
        Op::Ne => order.is_ne(),
        _ => return None,
    })
}

/// PostgreSQL's order of floats: NaN equals NaN and is greater than everything else.
#[inline]
pub fn order_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// 10^n, unless it overflows.
#[inline]
pub fn power(n: u16) -> Option<i64> {
    10i64.checked_pow(u32::from(n))
}

/// The order of two integers with different scales.
fn order_scaled(a: i64, sa: u16, b: i64, sb: u16) -> Option<Ordering> {
    let up = |v: i64, by: u16| Some(i128::from(v) * i128::from(power(by)?));
    Some(match sa.cmp(&sb) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => up(a, sb - sa)?.cmp(&i128::from(b)),
        Ordering::Greater => i128::from(a).cmp(&up(b, sa - sb)?),
    })
}

/// A string without trailing blanks.
pub fn without_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().rev().take_while(|b| **b == b' ').count();
    bytes.get(..bytes.len() - blanks).unwrap_or(bytes)
}

/// The order of two values, by the operation's fast path.
#[inline]
pub fn order(kernel: Kernel, a: &Scalar<'_>, b: &Scalar<'_>) -> Option<Ordering> {
    match (kernel, a, b) {
        (Kernel::Ordered, Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(b)),
        (Kernel::Ordered, Scalar::Scaled(a, sa), Scalar::Scaled(b, sb)) => {
            order_scaled(*a, *sa, *b, *sb)
        }
        (Kernel::Ordered, Scalar::Bytes(a), Scalar::Bytes(b)) => Some(a.cmp(b)),
        (Kernel::OrderedPadded, Scalar::Bytes(a), Scalar::Bytes(b)) => {
            Some(without_blanks(a).cmp(without_blanks(b)))
        }
        (Kernel::Ordered, Scalar::Float(a), Scalar::Float(b)) => Some(order_floats(*a, *b)),
        (Kernel::Ordered, Scalar::Uuid(a), Scalar::Uuid(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The result of an integer operation, if it is within the range of `ret`.
#[inline]
pub fn integer(op: Op, ret: TypeCode, a: i64, b: i64) -> Option<i64> {
    let v = match op {
        Op::Add => a.checked_add(b)?,
        Op::Sub => a.checked_sub(b)?,
        Op::Mul => a.checked_mul(b)?,
        Op::Div => a.checked_div(b)?,
        _ => return None,
    };
    let fits = match ret {
        TypeCode::Int2 => i16::try_from(v).is_ok(),
        TypeCode::Int4 => i32::try_from(v).is_ok(),
        _ => true,
    };
    fits.then_some(v)
}

/// Number of days that is certainly a valid date and not infinity.
const DAYS_MAX: i64 = 700_000;

/// The timestamp at the start of an ordinary date.
#[inline]
pub fn midnight(days: i64) -> Option<i64> {
    (-DAYS_MAX..=DAYS_MAX)
        .contains(&days)
        .then(|| days * 86_400_000_000)
}

/// The result of an operation on dates and days, if all of them are ordinary.
#[inline]
pub fn days(op: Op, a: i64, b: i64) -> Option<i64> {
    let v = match op {
        Op::Add => a.checked_add(b)?,
        Op::Sub => a.checked_sub(b)?,
        _ => return None,
    };
    let ordinary = |v: i64| (-DAYS_MAX..=DAYS_MAX).contains(&v);
    (ordinary(a) && ordinary(b) && ordinary(v)).then_some(v)
}

/// The result of an operation on decimals, unless it overflows.
#[inline]
pub fn scaled(op: Op, a: i64, sa: u16, b: i64, sb: u16) -> Option<(i64, u16)> {
    if op == Op::Mul {
        let scale = sa.checked_add(sb).filter(|s| *s <= SCALE_MAX)?;
        return Some((a.checked_mul(b)?, scale));
    }
    let scale = sa.max(sb);
    let a = a.checked_mul(power(scale - sa)?)?;
    let b = b.checked_mul(power(scale - sb)?)?;
    let v = match op {
        Op::Add => a.checked_add(b)?,
        Op::Sub => a.checked_sub(b)?,
        _ => return None,
    };
    Some((v, scale))
}

/// Products of larger scale may be rounded, so they are left to `values`.
const SCALE_MAX: u16 = 1000;

/// The result of a floating-point operation, unless it over- or underflows or an operand is
/// special.
#[inline]
pub fn float(op: Op, ret: TypeCode, a: f64, b: f64) -> Option<f64> {
    let v = match ret {
        TypeCode::Float4 => f64::from(operate(op, a as f32, b as f32)?),
        _ => operate(op, a, b)?,
    };
    // Zero may be an underflow of a product or quotient, so leave it to `values`.
    let sure = v.is_finite() && (v != 0.0 || matches!(op, Op::Add | Op::Sub));
    (sure && a.is_finite() && b.is_finite()).then_some(v)
}

fn operate<T>(op: Op, a: T, b: T) -> Option<T>
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>,
{
    Some(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        _ => return None,
    })
}

/// The result of an operation on two integers, by its fast path.
#[inline]
pub fn whole(operation: &Operation, a: i64, b: i64) -> Option<Value> {
    let ret = operation.ret?;
    let v = match operation.kernel {
        Kernel::Integer => integer(operation.op, ret, a, b)?,
        Kernel::Days => days(operation.op, a, b)?,
        _ => return None,
    };
    store::int_value(v, ret)
}

/// The result of an operation on two values, by its fast path.
#[inline]
pub fn apply(operation: &Operation, a: &Scalar<'_>, b: &Scalar<'_>) -> Option<Value> {
    let ret = operation.ret?;
    match (operation.kernel, a, b) {
        (_, Scalar::Int(a), Scalar::Int(b)) => whole(operation, *a, *b),
        (Kernel::Numeric, Scalar::Scaled(a, sa), Scalar::Scaled(b, sb)) => {
            let (v, scale) = scaled(operation.op, *a, *sa, *b, *sb)?;
            Some(Value::Numeric(Numeric::from_scaled(v, scale)))
        }
        (Kernel::Float, Scalar::Float(a), Scalar::Float(b)) => {
            Scalar::Float(float(operation.op, ret, *a, *b)?).to_value(ret)
        }
        _ => None,
    }
}
