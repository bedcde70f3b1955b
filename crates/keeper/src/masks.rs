//! Masks: what is shown of a column to those who may not see it.
//!
//! Invariant: in all cases the result is either NULL or of the value's type, and never the value
//! itself.

use contract::TypeCode;
use values::{Env, Value};

/// What others are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The default of the type.
    Default,
    /// NULL.
    Null,
    /// A constant.
    Constant(String),
    /// So many first and last characters, with a text between them.
    Partial(usize, String, usize),
    /// A number or date with an offset of at most so much, which is always the same for one value.
    Noise(u32),
}

impl Mask {
    /// Parses `default`, `null`, `constant(text)`, `partial(2,text,4)` or `noise(100)`.
    pub fn read(text: &str) -> Option<Mask> {
        let text = text.trim();
        let inside = |name: &str| {
            text.strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')
        };
        let bare = |text: &str| text.trim().trim_matches('\'').to_owned();
        if text == "default" {
            return Some(Mask::Default);
        }
        if text == "null" {
            return Some(Mask::Null);
        }
        if let Some(text) = inside("constant") {
            return Some(Mask::Constant(bare(text)));
        }
        if let Some(most) = inside("noise") {
            return most.trim().parse().ok().map(Mask::Noise);
        }
        let (first, rest) = inside("partial")?.split_once(',')?;
        let (middle, last) = rest.rsplit_once(',')?;
        let count = |text: &str| text.trim().parse().ok();
        Some(Mask::Partial(count(first)?, bare(middle), count(last)?))
    }

    /// The text form.
    pub fn text(&self) -> String {
        match self {
            Mask::Default => "default".into(),
            Mask::Null => "null".into(),
            Mask::Constant(text) => format!("constant({text})"),
            Mask::Partial(first, middle, last) => format!("partial({first},{middle},{last})"),
            Mask::Noise(most) => format!("noise({most})"),
        }
    }

    /// What is shown instead of a value; `None`: NULL. The noise is derived from the key.
    pub fn apply(&self, value: &Value, key: &[u8; 16], env: &Env) -> Option<Value> {
        if *self == Mask::Null {
            return None;
        }
        let t = value.type_code();
        let shown = match (self, value) {
            (Mask::Constant(text), _) => values::parse_text(t, -1, text.as_bytes(), env).ok(),
            (Mask::Partial(first, middle, last), Value::Text(text) | Value::Bpchar(text)) => {
                let letters: Vec<char> = String::from_utf8_lossy(text).chars().collect();
                let short = letters.len() <= first.saturating_add(*last);
                let (first, last) = if short { (0, 0) } else { (*first, *last) };
                let head = letters.iter().take(first);
                let tail = letters.iter().skip(letters.len() - last);
                let text: String = head
                    .copied()
                    .chain(middle.chars())
                    .chain(tail.copied())
                    .collect();
                values::parse_text(t, -1, text.as_bytes(), env).ok()
            }
            (Mask::Noise(most), _) => noisy(value, offset(value, *most, key), env),
            _ => None,
        };
        let own = || values::parse_text(t, -1, usual(t).as_bytes(), env).ok();
        // Each type parses its own default. If one did not, the value would still not be shown.
        Some(shown.or_else(own).unwrap_or(Value::Bool(false)))
    }
}

/// Equal for equal values, so that repeated queries do not average it out.
fn offset(value: &Value, most: u32, key: &[u8; 16]) -> i64 {
    use aws_lc_rs::hmac;
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut said = hmac::Context::with_key(&key);
    said.update(b"confide noise 1");
    said.update(&values::encode_binary(value));
    let tag = said.sign();
    let number = tag
        .as_ref()
        .first_chunk()
        .map_or(0, |b| u64::from_le_bytes(*b));
    let most = u64::from(most);
    (number % (2 * most + 1)).cast_signed() - most.cast_signed()
}

/// A number, or a time in days, with an offset; `None` for other types and out of range.
fn noisy(value: &Value, by: i64, env: &Env) -> Option<Value> {
    const DAY: i64 = 86_400_000_000;
    let moved = match value {
        Value::Int2(n) => Value::Int2(i64::from(*n).checked_add(by)?.try_into().ok()?),
        Value::Int4(n) => Value::Int4(i64::from(*n).checked_add(by)?.try_into().ok()?),
        Value::Int8(n) => Value::Int8(n.checked_add(by)?),
        Value::Float4(n) if n.is_finite() => Value::Float4(n + by as f32),
        Value::Float8(n) if n.is_finite() => Value::Float8(n + by as f64),
        Value::Numeric(n) => {
            let text = by.to_string();
            match values::parse_text(TypeCode::Numeric, -1, text.as_bytes(), env).ok()? {
                Value::Numeric(by) => Value::Numeric(n.add(&by).ok()?),
                _ => return None,
            }
        }
        Value::Date(n) if ![i32::MIN, i32::MAX].contains(n) => {
            Value::Date(i64::from(*n).checked_add(by)?.try_into().ok()?)
        }
        Value::Timestamp(n) if ![i64::MIN, i64::MAX].contains(n) => {
            Value::Timestamp(n.checked_add(by.checked_mul(DAY)?)?)
        }
        Value::Timestamptz(n) if ![i64::MIN, i64::MAX].contains(n) => {
            Value::Timestamptz(n.checked_add(by.checked_mul(DAY)?)?)
        }
        _ => return None,
    };
    // Dates have a limited range: what is shown must be readable.
    let text = values::format_text(&moved, env);
    let readable = values::parse_text(moved.type_code(), -1, &text, env).is_ok();
    readable.then_some(moved)
}

/// The default of a type.
fn usual(t: TypeCode) -> &'static str {
    match t {
        TypeCode::Bool => "false",
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => "XXXX",
        TypeCode::Bytea => "",
        TypeCode::Json | TypeCode::Jsonb => "null",
        TypeCode::Date => "1900-01-01",
        TypeCode::Timestamp => "1900-01-01 00:00:00",
        TypeCode::Timestamptz => "1900-01-01 00:00:00+00",
        TypeCode::Time => "00:00:00",
        TypeCode::Uuid => "00000000-0000-0000-0000-000000000000",
        _ => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn masks() {
        let env = Env::default();
        let shown = |rule: &str, text: &str| {
            let mask = Mask::read(rule)
                .and_then(|m| m.apply(&Value::Text(text.as_bytes().into()), &[1; 16], &env));
            mask.map(|v| String::from_utf8_lossy(&values::format_text(&v, &env)).into_owned())
        };
        assert_eq!(shown("default", "Kim").as_deref(), Some("XXXX"));
        assert_eq!(
            shown("partial(2,'XX',4)", "0123456789").as_deref(),
            Some("01XX6789")
        );
        // Nothing of a value that is too short shows.
        assert_eq!(shown("partial(2,'XX',4)", "012345").as_deref(), Some("XX"));
        assert_eq!(shown("constant(hidden)", "Kim").as_deref(), Some("hidden"));
        assert_eq!(shown("noise", "Kim"), None);
        assert_eq!(Mask::read(" null "), Some(Mask::Null));
        assert_eq!(Mask::Null.text(), "null");
        assert_eq!(shown("null", "Kim"), None);
        assert_eq!(shown("noise(5)", "Kim").as_deref(), Some("XXXX"));
        for t in TypeCode::ALL {
            assert!(
                values::parse_text(*t, -1, usual(*t).as_bytes(), &env).is_ok(),
                "{t:?}"
            );
        }
    }

    /// Each value is off by what it may be, by the same whenever it is asked for, and by
    /// something else under another key.
    #[test]
    fn noise() {
        let env = Env::default();
        let mask = Mask::read("noise( 10 )").unwrap_or(Mask::Default);
        assert_eq!(mask.text(), "noise(10)");
        let shown = |n: i32, key: u8| match mask.apply(&Value::Int4(n), &[key; 16], &env) {
            Some(Value::Int4(n)) => n,
            _ => i32::MIN,
        };
        let all: Vec<i32> = (0..100).map(|n| shown(n, 1) - n).collect();
        assert!(all.iter().all(|off| (-10..=10).contains(off)));
        assert!(all.iter().collect::<BTreeSet<_>>().len() > 5);
        assert_eq!(shown(7, 1), shown(7, 1));
        assert!((0..100).any(|n| shown(n, 1) != shown(n, 2)));
        for (value, text) in [
            (Value::Date(i32::MAX), "1900-01-01"),
            (Value::Timestamp(i64::MIN), "1900-01-01 00:00:00"),
            (Value::Bool(true), "f"),
            (Value::Float8(f64::NAN), "0"),
        ] {
            let shown = mask.apply(&value, &[1; 16], &env);
            let shown = shown
                .map(|v| values::format_text(&v, &env))
                .unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&shown), text);
        }
        for t in [TypeCode::Numeric, TypeCode::Date, TypeCode::Timestamptz] {
            let value = values::parse_text(t, -1, usual(t).as_bytes(), &env);
            let value = value.unwrap_or(Value::Bool(false));
            let shown = mask.apply(&value, &[1; 16], &env);
            assert_eq!(shown.map(|v| v.type_code()), Some(t));
        }
    }
}
