//! What to do where the server says that it has no such function or operator for a protected type.
//!
//! Not here: what the proxy refuses itself (crate `rewrite`).

/// What the server says of a function or operator that protected types do not have: it would
/// advise casts, which there are none of.
const NEAREST_WAY: &[u8] = b"It is not available for protected values (docs/sql.md lists what is). Select the protected columns themselves and compute it in the application.";

/// The fields of an error, with another hint where something protected misses a function.
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
