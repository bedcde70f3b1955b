//! Operators with bugs of known kinds, for tests of anonymised replay. The environment's
//! `CONFIDE_SEEDED` says which one stands in for the keeper's: `leak`, `wrong`, `panic`,
//! `memory` or `endless`.
//!
//! A crate of its own, so that it can be instrumented as the keeper's operators are
//! (`scripts/traced`). Only `confide-anonymise` with the feature `seeded` links it; neither the
//! keeper nor any program that is installed does.
#![forbid(unsafe_code)]

use contract::Op;
use std::hint::black_box;
use values::Value;

/// What an operator gave.
pub enum Given {
    /// A value.
    Value(Value),
    /// A declassified boolean.
    Truth(bool),
}

/// The seeded operator, if the environment asks for one of this operation.
#[must_use]
pub fn apply(op: Op, operands: &[&Value]) -> Option<Given> {
    let seeded = std::env::var("CONFIDE_SEEDED").ok()?;
    match (seeded.as_str(), op, operands) {
        ("leak", Op::Like, [Value::Text(s), Value::Text(_)]) => {
            leak(s).then_some(Given::Truth(true))
        }
        ("wrong", Op::Left, [Value::Text(s), Value::Int4(n)]) => Some(Given::Value(left(s, *n))),
        ("panic", Op::Position, [Value::Text(s), Value::Text(sub)]) => {
            Some(Given::Value(Value::Int4(position(s, sub))))
        }
        ("memory", Op::Upper, [Value::Text(s)]) => Some(Given::Value(upper(s))),
        ("endless", Op::TrimLeft, [Value::Text(s), Value::Text(of)]) => {
            Some(Given::Value(trim(s, of)))
        }
        _ => None,
    }
}

/// An operator that tells a secret by its control flow: of the text of the paper (HEDB, figure 4).
fn leak(s: &[u8]) -> bool {
    const SECRET: &[u8] = b"OSDI-2023";
    let mut at = 0;
    while at < SECRET.len() && s.get(at) == SECRET.get(at) {
        at += 1;
    }
    at == SECRET.len() && s.len() == at
}

/// `left(s, n)` that counts a character of three bytes twice.
fn left(s: &[u8], n: i32) -> Value {
    let text = String::from_utf8_lossy(s);
    let (mut out, mut count) = (String::new(), 0);
    for c in text.chars() {
        if count >= n {
            break;
        }
        count += if c.len_utf8() == 3 { 2 } else { 1 };
        out.push(c);
    }
    Value::Text(out.into_bytes().into())
}

/// `strpos(s, sub)` that looks past the text's end where the beginning of `sub` ends it.
fn position(s: &[u8], sub: &[u8]) -> i32 {
    for from in 0..s.len() {
        let mut at = 0;
        while at < sub.len() && s[from + at] == sub[at] {
            at += 1;
        }
        if at == sub.len() {
            return i32::try_from(from + 1).unwrap_or(i32::MAX);
        }
    }
    0
}

/// `upper(s)` that keeps a page for each capital that it meets.
fn upper(s: &[u8]) -> Value {
    for b in s {
        if b.is_ascii_uppercase() {
            // The optimiser would leave out what nobody reads.
            black_box(Box::leak(vec![*b; 64 * 1024].into_boxed_slice()));
        }
    }
    Value::Text(s.to_ascii_uppercase().into())
}

/// `ltrim(s, of)` that forgets to go on behind a character of two bytes.
fn trim(s: &[u8], of: &[u8]) -> Value {
    let (text, of) = (String::from_utf8_lossy(s), String::from_utf8_lossy(of));
    let mut rest: &str = &text;
    while let Some(first) = rest.chars().next().filter(|c| of.contains(*c)) {
        if first.len_utf8() != 2 {
            rest = rest.get(first.len_utf8()..).unwrap_or("");
        }
    }
    Value::Text(rest.as_bytes().into())
}
