//! Values that are only assigned to a column, as the column stores them.
//!
//! Invariant: a value is fitted only if PostgreSQL would store the same, whatever the session's settings and the
//! time of day are. A value that PostgreSQL would refuse is not fitted: the server reports the error.

use contract::{Op, TypeCode};
use rewrite::Fit;
use values::Env;

use crate::{Failure, blame};

/// The bytes of the value in binary format, after the column's length coercion.
pub(crate) fn fit(fit: &Fit, is_text: bool, value: &[u8], env: &Env) -> Option<Vec<u8>> {
    let read = match is_text {
        true if !certain(fit.code, value) => return None,
        true => values::parse_text(fit.code, -1, value, env),
        false => values::decode_binary(fit.code, -1, value),
    };
    let fitted = values::apply_typmod(read.ok()?, fit.code, fit.typmod, false).ok()?;
    Some(values::encode_binary(&fitted))
}

/// The bytes in the binary format of a wider type ([`rewrite::widens`]).
///
/// # Errors
/// PostgreSQL's, if this is no value of the first type.
pub(crate) fn widen(
    (from, to): (TypeCode, TypeCode),
    is_text: bool,
    value: &[u8],
    env: &Env,
) -> Result<Vec<u8>, Failure> {
    let read = match is_text {
        true => values::parse_text(from, -1, value, env),
        false => values::decode_binary(from, -1, value),
    };
    let wide = read.and_then(|read| values::apply(Op::Cast, to, 0, &[&read], env));
    match wide {
        Ok(wide) => Ok(values::encode_binary(&wide)),
        Err(error) if is_text => Err(Failure {
            message: blame::with_value(&error, value),
            ..Failure::from(error)
        }),
        Err(error) => Err(Failure::from(error)),
    }
}

/// Whether a text of this type means the same with all settings and at any time.
fn certain(code: TypeCode, text: &[u8]) -> bool {
    match code {
        TypeCode::Interval | TypeCode::Timestamptz => false,
        TypeCode::Date => is_date(text),
        TypeCode::Time => is_time(text),
        TypeCode::Timestamp => match text.split_at_checked(DATE.len()) {
            Some((date, [b' ', time @ ..])) => is_date(date) && is_time(time),
            Some((date, [])) => is_date(date),
            _ => false,
        },
        _ => true,
    }
}

const DATE: &[u8] = b"0000-00-00";
const TIME: &[u8] = b"00:00:00";

/// Whether the text has digits where the form has a 0, and otherwise equals it.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let same = |(byte, want): (&u8, &u8)| match want {
        b'0' => byte.is_ascii_digit(),
        _ => byte == want,
    };
    text.len() == form.len() && text.iter().zip(form).all(same)
}

fn is_date(text: &[u8]) -> bool {
    has_form(text, DATE)
}

fn is_time(text: &[u8]) -> bool {
    match text.split_at_checked(TIME.len()) {
        Some((time, [])) => has_form(time, TIME),
        Some((time, [b'.', digits @ ..])) => {
            has_form(time, TIME)
                && (1..=6).contains(&digits.len())
                && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: TypeCode, typmod: i32, value: &str) -> Option<Vec<u8>> {
        let column = Fit {
            column: [1; 16],
            code,
            typmod,
        };
        fit(&column, true, value.as_bytes(), &Env::default())
    }

    /// What PostgreSQL stores: rounded, padded, cut where an assignment cuts. What it refuses, and what depends
    /// on settings or the clock, is left to it. Bug: another value is stored, or an error is lost.
    #[test]
    fn as_stored() {
        use TypeCode::{
            Bpchar, Date, Int4, Interval, Numeric, Text, Time, Timestamp, Timestamptz, Varchar,
        };
        let numeric = |text: &str| {
            let value = values::parse_text(Numeric, -1, text.as_bytes(), &Env::default());
            value.ok().map(|value| values::encode_binary(&value))
        };
        // numeric(5, 1): 5 << 16 | 1, plus 4.
        let typmod = (5 << 16 | 1) + 4;
        assert_eq!(text(Numeric, typmod, "61.25"), numeric("61.3"));
        assert_eq!(text(Numeric, typmod, "100000"), None);
        assert_eq!(text(Bpchar, 4 + 4, "ab").as_deref(), Some(&b"ab  "[..]));
        assert_eq!(text(Varchar, 4 + 2, "ab   ").as_deref(), Some(&b"ab"[..]));
        assert_eq!(text(Varchar, 4 + 2, "abc"), None);
        assert_eq!(text(Text, -1, "now").as_deref(), Some(&b"now"[..]));
        assert_eq!(text(Int4, -1, "x"), None);
        assert!(text(Date, -1, "2024-02-29").is_some());
        assert!(text(Timestamp, -1, "2024-02-29 10:11:12.5").is_some());
        assert!(text(Time, -1, "10:11:12").is_some());
        for (code, uncertain) in [
            (Date, "now"),
            (Date, "29-02-2024"),
            (Date, "2024-02-30"),
            (Date, "today"),
            (Timestamp, "2024-02-29 10:11:12 PM"),
            (Timestamp, "2024-02-29 now"),
            (Timestamptz, "2024-02-29 10:11:12"),
            (Time, "now"),
            (Time, "10:11"),
            (Interval, "1 day"),
        ] {
            assert_eq!(text(code, -1, uncertain), None, "{uncertain}");
        }
    }
}
