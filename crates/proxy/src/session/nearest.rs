//! Hints for errors where the server has no such function or operator for a protected type.
//!
//! Refusals by the proxy itself are in crate `rewrite`.

/// Replaces the server's hint for a function or operator that protected types do not have; the
/// server would suggest casts, which do not exist.
const NEAREST_WAY: &[u8] = b"It is not available for protected values (docs/sql.md lists what is). Select the protected columns themselves and compute it in the application.";

/// Returns the fields of an error, replacing the hint if a function is missing for something
/// protected.
pub(super) fn with_nearest_way(mut fields: Vec<(u8, &[u8])>) -> Vec<(u8, &[u8])> {
    let has =
        |tag: u8, holds: &dyn Fn(&[u8]) -> bool| fields.iter().any(|(t, v)| *t == tag && holds(v));
    let missing = has(b'C', &|v| v == b"42883");
    if missing && has(b'M', &|v| v.windows(4).any(|w| w == b"enc_")) {
        fields.retain(|(t, _)| *t != b'H');
        fields.push((b'H', NEAREST_WAY));
    }
    fields
}
