//! Products and quotients of the family `soft_`: encodes factors, opens what PostgreSQL computed of
//! cells.
//!
//! Invariant: the result, or the error, is that of PostgreSQL's operators on the values, from left to
//! right; what could not be told from the masked value is refused.

use contract::soft::{
    BITS_MAX, Column, FACTOR_BYTES, PART_BYTES, PRODUCT, PRODUCT_BYTES, factor_bits,
    precision_and_scale, product_type, shape,
};
use contract::{Op, TypeCode};
use encodings::multiplicative::{self, Mask};
use values::{Env, Value};

use crate::Failure;
use crate::encodable::{assigned, converts, damaged, decimal, numeric, other_type};

/// A literal or parameter that is multiplied with a column, in the type that the statement gives it. A
/// numeric has a shape of its own.
pub(crate) fn factor(column: Column, value: Value) -> Result<(Column, Value), Failure> {
    let from = value.type_code();
    if !converts(from, column.code) {
        return Err(other_type(column, from));
    }
    if column.code != TypeCode::Numeric {
        return Ok((column, assigned(column, value)?));
    }
    let Value::Numeric(number) = numeric(&value)? else {
        return Err(damaged());
    };
    let scaled = number.to_scaled(number.scale());
    let found = scaled.and_then(|scaled| {
        let digits = scaled.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
        let digits = digits.max(number.scale().into());
        shape(
            u8::try_from(digits).ok()?,
            u8::try_from(number.scale()).ok()?,
        )
    });
    let shape = found.ok_or_else(|| {
        Failure::new(
            "0A000",
            "confide: a factor has more than 18 digits, or is no finite number",
        )
        .detail("Encodings multiply numbers of at most 18 digits.")
    })?;
    Ok((Column { shape, ..column }, Value::Numeric(number)))
}

/// Gives the mask of a factor: of its type, its shape, the number of its key, its identifier.
pub(crate) type Masks<'a> = &'a dyn Fn(TypeCode, u8, u32, u64) -> Result<Mask, Failure>;

/// The value of a product or quotient.
pub(crate) fn open(mask: Masks<'_>, cell: &[u8], env: &Env) -> Result<Value, Failure> {
    let (head, rest) = cell
        .split_first_chunk::<PRODUCT_BYTES>()
        .ok_or_else(damaged)?;
    let [kind, code] = *head;
    let (value, rest) = part(mask, rest)?;
    let value = match kind {
        PRODUCT => value,
        _ => return quotient(mask, (code, value), rest, env),
    };
    match (value.type_code() as u8 == code, rest) {
        (true, []) => Ok(value),
        _ => Err(damaged()),
    }
}

fn quotient(
    mask: Masks<'_>,
    (code, dividend): (u8, Value),
    rest: &[u8],
    env: &Env,
) -> Result<Value, Failure> {
    let (divisor, []) = part(mask, rest)? else {
        return Err(damaged());
    };
    let of = product_type(dividend.type_code(), divisor.type_code())
        .filter(|of| *of as u8 == code)
        .ok_or_else(damaged)?;
    let cast = |value: Value| match value.type_code() == of {
        true => Ok(value),
        false => values::apply(Op::Cast, of, 0, &[&value], env),
    };
    let operands = [cast(dividend)?, cast(divisor)?];
    let [dividend, divisor] = &operands;
    Ok(values::apply(Op::Div, of, 0, &[dividend, divisor], env)?)
}

/// The value of a part, and what follows it.
fn part<'a>(mask: Masks<'_>, bytes: &'a [u8]) -> Result<(Value, &'a [u8]), Failure> {
    let (head, rest) = bytes
        .split_first_chunk::<PART_BYTES>()
        .ok_or_else(damaged)?;
    let [count, zero, value @ ..] = *head;
    let length = usize::from(count) * FACTOR_BYTES;
    let (factors, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    // Only those before the first zero are in the value.
    let within = match zero.checked_sub(1) {
        None => usize::from(count),
        Some(before) if zero <= count => usize::from(before),
        Some(_) => return Err(damaged()),
    };
    let (mut code, mut scale, mut bits) = (TypeCode::Int2, 0, 0);
    let mut masks: Vec<Mask> = Vec::with_capacity(within);
    for (at, factor) in factors.as_chunks::<FACTOR_BYTES>().0.iter().enumerate() {
        let [of, shape, 0, 0, k0, k1, k2, k3, identifier @ ..] = *factor else {
            return Err(damaged());
        };
        let of = TypeCode::from_u8(of).ok_or_else(damaged)?;
        code = product_type(code, of).ok_or_else(damaged)?;
        scale += precision_and_scale(shape).map_or(0, |(_, scale)| usize::from(scale));
        if at < within {
            bits += factor_bits(of, shape).ok_or_else(damaged)?;
            let key = u32::from_le_bytes([k0, k1, k2, k3]);
            masks.push(mask(of, shape, key, u64::from_le_bytes(identifier))?);
        }
    }
    if bits > BITS_MAX {
        return Err(too_large());
    }
    let value = multiplicative::open(u128::from_le_bytes(value), &masks, bits);
    let value = value.map_err(|_| damaged())?;
    // A product in which a later factor is zero must have been in range before it.
    let opened = of_type(code, value, scale)?;
    match zero {
        0 => Ok((opened, rest)),
        _ => Ok((of_type(code, 0, scale)?, rest)),
    }
}

fn of_type(code: TypeCode, value: i128, scale: usize) -> Result<Value, Failure> {
    let range = |name| Failure::new("22003", format!("{name} out of range"));
    match code {
        TypeCode::Int2 => match i16::try_from(value) {
            Ok(value) => Ok(Value::Int2(value)),
            Err(_) => Err(range("smallint")),
        },
        TypeCode::Int4 => match i32::try_from(value) {
            Ok(value) => Ok(Value::Int4(value)),
            Err(_) => Err(range("integer")),
        },
        TypeCode::Int8 => match i64::try_from(value) {
            Ok(value) => Ok(Value::Int8(value)),
            Err(_) => Err(range("bigint")),
        },
        _ => decimal(value, scale),
    }
}

fn too_large() -> Failure {
    Failure::new(
        "0A000",
        "confide: a product of encoded values can have more than 126 bits",
    )
    .detail("By the types of its factors, whatever their values are.")
    .hint("Multiply fewer factors, or such with fewer digits.")
}
