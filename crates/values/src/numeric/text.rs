//! Text format of [`Numeric`].

use super::*;
use crate::scan;
use contract::Code;

fn invalid() -> Error {
    Error::new(b"22P02", "invalid input syntax for type numeric").code(Code::InvalidText)
}

/// Digits before and after the decimal point, and the exponent.
struct Literal<'a> {
    negative: bool,
    int: &'a [u8],
    frac: &'a [u8],
    exponent: i64,
}

impl Numeric {
    /// Reads PostgreSQL's text format; `typmod` as in [`Numeric::with_typmod`].
    pub fn parse(s: &[u8], typmod: i32) -> Result<Numeric> {
        let s = scan::trim(s);
        if let Some(plain) = plain(s) {
            return plain.with_typmod(typmod);
        }
        for (name, special) in [
            ("nan", Numeric::NAN),
            ("infinity", Numeric::INFINITY),
            ("+infinity", Numeric::INFINITY),
            ("-infinity", Numeric::NEG_INFINITY),
            ("inf", Numeric::INFINITY),
            ("+inf", Numeric::INFINITY),
            ("-inf", Numeric::NEG_INFINITY),
        ] {
            if s.eq_ignore_ascii_case(name.as_bytes()) {
                return special.with_typmod(typmod);
            }
        }
        let literal = Literal::read(s).ok_or_else(invalid)??;
        literal.value(typmod)
    }

    /// PostgreSQL's text format.
    pub fn to_text(&self) -> String {
        let (negative, digits, scale) = match &self.0 {
            Repr::NaN => return "NaN".into(),
            Repr::PosInf => return "Infinity".into(),
            Repr::NegInf => return "-Infinity".into(),
            Repr::Small(s) => {
                let c = s.coef();
                let digits = match u64::try_from(c.unsigned_abs()) {
                    Ok(narrow) => narrow.to_string(),
                    Err(_) => c.unsigned_abs().to_string(),
                };
                (c < 0, digits, usize::from(s.scale))
            }
            Repr::Big(b) => {
                let negative = b.coef.sign() == Sign::Negative;
                (
                    negative,
                    magnitude(&b.coef).to_string(),
                    usize::from(b.scale),
                )
            }
        };
        let mut out = String::with_capacity(digits.len().max(scale) + 3);
        if negative {
            out.push('-');
        }
        if scale == 0 {
            out.push_str(&digits);
            return out;
        }
        if digits.len() > scale {
            let (int, frac) = digits.split_at(digits.len() - scale);
            out.push_str(int);
            out.push('.');
            out.push_str(frac);
        } else {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', scale - digits.len()));
            out.push_str(&digits);
        }
        out
    }
}

/// Up to 18 digits with sign and point: what most numbers are.
fn plain(s: &[u8]) -> Option<Numeric> {
    let (negative, digits) = match s.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, s),
    };
    if digits.len() > 19 {
        return None;
    }
    let (int, rest) = scan::digits(digits);
    let frac = match rest.split_first() {
        None => b"",
        Some((b'.', rest)) => rest,
        Some(_) => return None,
    };
    if int.is_empty() || int.len() + frac.len() > 18 {
        return None;
    }
    let value = frac.iter().try_fold(scan::integer(int)?, |v, b| {
        let digit = b.checked_sub(b'0').filter(|d| *d <= 9)?;
        Some(v * 10 + i64::from(digit))
    })?;
    Some(Numeric::from_scaled(
        if negative { -value } else { value },
        frac.len() as u16,
    ))
}

impl<'a> Literal<'a> {
    /// `None`: not a number; the inner error: an exponent beyond all limits.
    fn read(s: &'a [u8]) -> Option<Result<Literal<'a>>> {
        let (negative, s) = match s.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, s),
        };
        let (int, rest) = scan::digits(s);
        let (frac, rest) = match rest.split_first() {
            Some((b'.', rest)) => scan::digits(rest),
            _ => (&b""[..], rest),
        };
        if int.is_empty() && frac.is_empty() {
            return None;
        }
        let mut exponent = 0;
        if let Some((b'e' | b'E', rest)) = rest.split_first() {
            // PostgreSQL reads the exponent with strtol, which skips blanks.
            let rest = scan::trim_start(rest);
            let (minus, rest) = match rest.split_first()? {
                (b'-', rest) => (true, rest),
                (b'+', rest) => (false, rest),
                _ => (false, rest),
            };
            let (digits, rest) = scan::digits(rest);
            if digits.is_empty() {
                return None;
            }
            let value = scan::integer(digits).filter(|&e| e < i64::from(i32::MAX / 2));
            let Some(value) = value else {
                return Some(Err(overflow()));
            };
            if !rest.is_empty() {
                return None;
            }
            exponent = if minus { -value } else { value };
        } else if !rest.is_empty() {
            return None;
        }
        Some(Ok(Literal {
            negative,
            int,
            frac,
            exponent,
        }))
    }

    fn value(&self, typmod: i32) -> Result<Numeric> {
        let scale = (self.frac.len() as i64 - self.exponent).max(0);
        // Number of zeros to append to the digits to get `scale` of them.
        let append = scale - (self.frac.len() as i64 - self.exponent);
        let all = [self.int, self.frac].concat();
        let lead = all.iter().take_while(|&&b| b == b'0').count();
        let digits = all.get(lead..).unwrap_or_default();
        let round_to = typmod_parts(typmod).map(|(_, scale)| scale);
        if digits.is_empty() {
            let scale = round_to.map_or(scale, |s| i64::from(s.max(0)));
            return Numeric::from_small(0, u32::try_from(scale).map_err(|_| overflow())?);
        }
        let int_digits = digits.len() as i64 + append - scale;
        if int_digits > i64::from(MAX_INT_DIGITS) {
            return Err(match typmod_parts(typmod) {
                Some((precision, scale)) => field_overflow(precision, scale),
                None => overflow(),
            });
        }
        let (digits, scale) = match round_to {
            // Far below the last digit kept: round before building the number.
            Some(s) if scale > i64::from(MAX_SCALE) => {
                let keep = digits.len() as i64 - (scale - i64::from(s)) + 2;
                match usize::try_from(keep) {
                    Ok(keep) if keep >= 2 => {
                        (digits.get(..keep).unwrap_or(digits), i64::from(s) + 2)
                    }
                    _ => (&b""[..], i64::from(s.max(0))),
                }
            }
            _ => (digits, scale),
        };
        let scale = u32::try_from(scale).map_err(|_| overflow())?;
        if scale > MAX_SCALE {
            return Err(overflow());
        }
        self.build(digits, append as u32, scale)?
            .with_typmod(typmod)
    }

    fn build(&self, digits: &[u8], append: u32, scale: u32) -> Result<Numeric> {
        if digits.len() + append as usize <= 38 {
            let mut c: i128 = digits.iter().fold(0, |c, b| c * 10 + i128::from(b - b'0'));
            c *= pow10(append).unwrap_or(1);
            return Numeric::from_small(if self.negative { -c } else { c }, scale);
        }
        let text = std::str::from_utf8(digits).map_err(|_| invalid())?;
        let magnitude = UBig::from_str_radix(text, 10).map_err(|_| invalid())?;
        let c = IBig::from(magnitude * big_pow10(append));
        Numeric::from_big(if self.negative { -c } else { c }, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for (s, shown) in [
            (" 12.50 ", "12.50"),
            ("+.5", "0.5"),
            ("5.", "5"),
            ("-0.00", "0.00"),
            ("1.5e3", "1500"),
            ("1.5e-3", "0.0015"),
            ("1e 5", "100000"),
            ("-inf", "-Infinity"),
            ("nAn", "NaN"),
            (
                "0.000000000000000000000000000000000000000001",
                "0.000000000000000000000000000000000000000001",
            ),
            (
                "123456789012345678901234567890123456789012345",
                "123456789012345678901234567890123456789012345",
            ),
        ] {
            assert_eq!(Numeric::parse(s.as_bytes(), -1).unwrap().to_text(), shown);
        }
    }

    /// What is too large is refused before any digit is made of it.
    #[test]
    fn errors() {
        for (s, state) in [
            ("", b"22P02"),
            (".", b"22P02"),
            ("1.2.3", b"22P02"),
            ("1e", b"22P02"),
            ("0x10", b"22P02"),
            ("1_0", b"22P02"),
            ("1e131072", b"22003"),
            ("1e-16384", b"22003"),
            ("1e999999999999", b"22003"),
            ("0e-20000", b"22003"),
        ] {
            assert_eq!(
                Numeric::parse(s.as_bytes(), -1).unwrap_err().sqlstate,
                *state,
                "{s}"
            );
        }
        // With a modifier, digits far below the last one are insignificant.
        let typmod = (5 << 16 | 2) + 4;
        assert_eq!(
            Numeric::parse(b"1e-20000", typmod).unwrap().to_text(),
            "0.00"
        );
    }
}
