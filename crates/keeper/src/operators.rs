//! The operators that values are computed with: those of crate `values`, but in a test build with
//! the feature `seeded`, where some have a bug (crate `seeded`, docs/maintenance.md).

use contract::{Op, TypeCode};
use values::{Env, Error, Value};

/// Applies an operator.
#[inline]
pub fn apply(
    op: Op,
    ret: TypeCode,
    immediate: i32,
    operands: &[&Value],
    env: &Env,
) -> Result<Value, Error> {
    #[cfg(feature = "seeded")]
    if let Some(seeded::Given::Value(value)) = seeded::apply(op, operands) {
        return Ok(value);
    }
    values::apply(op, ret, immediate, operands, env)
}
