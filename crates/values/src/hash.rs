//! Keyed hash.

use crate::Value;

/// A keyed hash under which values that are equal within a family are equal.
pub fn hash(v: &Value, key: &[u8; 16]) -> u64 {
    let _ = (v, key);
    0
}
