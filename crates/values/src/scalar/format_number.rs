//! `to_char` of numbers: the meaning of a template, and the layout of the digits. Separators and
//! signs are those of locale C.

use super::layout::Layout;
use crate::error::no_such_operation;
use crate::text as chars;
use crate::{Error, Numeric, Result, Value};

/// Template patterns in capital letters; of two that fit, the first one counts.
const PATTERNS: &[&str] = &[
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V",
];
/// Digits that a double keeps.
const DOUBLE_DIGITS: usize = 15;
const FLOAT_DIGITS: usize = 6;

/// A part of a template.
#[derive(Clone, Copy)]
pub(super) enum Part<'f> {
    Text(&'f [u8]),
    /// A pattern, and whether it is in capital letters.
    Field(&'static str, bool),
}

/// Where the locale's sign stands.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    #[default]
    Nowhere,
    Before,
    After,
}

/// The properties of a whole template.
#[derive(Clone, Default)]
pub(super) struct Shape {
    pub before: usize,
    pub after: usize,
    /// Digits that V moves to before the point.
    pub moved: usize,
    pub sign: Place,
    pub sign_at: usize,
    pub zero_start: usize,
    pub zero_end: usize,
    pub decimal: bool,
    pub zero: bool,
    pub fill: bool,
    pub locale_sign: bool,
    pub bracket: bool,
    pub minus: bool,
    pub plus: bool,
    pub roman: bool,
    pub multiplied: bool,
    pub exponent: bool,
}

fn wrong(what: &'static str) -> Error {
    Error::new(b"42601", what)
}

pub(super) fn parts(mut s: &[u8]) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    while !s.is_empty() {
        let fits = |p: &&&str| s.get(..p.len()).is_some_and(|h| h == p.as_bytes());
        let small = |p: &&&str| {
            s.get(..p.len())
                .is_some_and(|h| h == p.to_ascii_lowercase().as_bytes())
        };
        let pattern = PATTERNS.iter().find(fits).map(|p| (*p, true));
        let pattern = pattern.or_else(|| PATTERNS.iter().find(small).map(|p| (*p, false)));
        if let Some((pattern, upper)) = pattern {
            found.push(Part::Field(pattern, upper));
            s = s.get(pattern.len()..).unwrap_or_default();
            continue;
        }
        s = match s {
            [b'"', rest @ ..] => quoted(rest, &mut found),
            [b'\\', b'"', ..] => one(s.get(1..).unwrap_or_default(), &mut found),
            _ => one(s, &mut found),
        };
    }
    found
}

fn one<'f>(s: &'f [u8], found: &mut Vec<Part<'f>>) -> &'f [u8] {
    let (head, rest) = s.split_at_checked(chars::char_width(s)).unwrap_or((s, b""));
    found.push(Part::Text(head));
    rest
}

fn quoted<'f>(mut s: &'f [u8], found: &mut Vec<Part<'f>>) -> &'f [u8] {
    loop {
        s = match s {
            [] => return s,
            [b'"', rest @ ..] => return rest,
            [b'\\', rest @ ..] if !rest.is_empty() => one(rest, found),
            _ => one(s, found),
        };
    }
}

impl Shape {
    pub(super) fn of(parts: &[Part<'_>]) -> Result<Shape> {
        let mut shape = Shape::default();
        for part in parts {
            if let Part::Field(pattern, _) = part {
                shape.take(pattern)?;
            }
        }
        Ok(shape)
    }

    fn take(&mut self, pattern: &str) -> Result<()> {
        if self.exponent && pattern != "EEEE" {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match pattern {
            "9" | "0" if self.bracket => return Err(wrong("\"PR\" must be the last pattern used")),
            "9" if self.multiplied => self.moved += 1,
            "9" if self.decimal => self.after += 1,
            "9" => self.before += 1,
            "0" => {
                if !self.zero && !self.decimal {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                match self.decimal {
                    true => self.after += 1,
                    false => self.before += 1,
                }
                self.zero_end = self.before + self.after;
            }
            "D" | "." => {
                if self.decimal {
                    return Err(wrong("multiple decimal points"));
                }
                if self.multiplied {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.decimal = true;
            }
            "FM" => self.fill = true,
            "V" if self.decimal => {
                return Err(wrong("cannot use \"V\" and decimal point together"));
            }
            "V" => self.multiplied = true,
            "RN" => self.roman = true,
            "EEEE" => {
                let others = self.fill || self.locale_sign || self.bracket || self.minus;
                if self.exponent || others || self.plus || self.roman || self.multiplied {
                    return Err(wrong("\"EEEE\" is incompatible with other formats"));
                }
                self.exponent = true;
            }
            _ => return self.take_sign(pattern),
        }
        Ok(())
    }

    fn take_sign(&mut self, pattern: &str) -> Result<()> {
        let together = || wrong("patterns of signs cannot be used together");
        match pattern {
            "S" => {
                if self.locale_sign || self.plus || self.minus || self.bracket {
                    return Err(together());
                }
                self.locale_sign = true;
                match self.decimal {
                    false => (self.sign, self.sign_at) = (Place::Before, self.before),
                    true => self.sign = Place::After,
                }
            }
            "MI" | "PL" | "SG" if self.locale_sign => return Err(together()),
            "MI" => self.minus = true,
            "PL" => self.plus = true,
            "SG" => (self.minus, self.plus) = (true, true),
            "PR" if self.locale_sign || self.plus || self.minus => return Err(together()),
            "PR" => self.bracket = true,
            _ => {}
        }
        Ok(())
    }
}

/// `to_char(v, template)`
pub(super) fn to_char(v: &Value, template: &[u8]) -> Result<Value> {
    if template.len() > chars::MAX_BYTES / 16 {
        return Err(crate::error::too_large());
    }
    let parts = parts(template);
    let mut shape = Shape::of(&parts)?;
    if shape.exponent {
        return super::text(exponent(v, &shape)?.into_bytes());
    }
    let (number, negative) = match shape.roman {
        true => (roman(v)?, false),
        false => digits(v, &mut shape)?,
    };
    let mut layout = Layout::new(shape, number, negative);
    layout.run(&parts);
    super::text(layout.out)
}

/// The digits of a number without its sign, at most as many as the template has; `#` where that is
/// too few.
fn digits(v: &Value, shape: &mut Shape) -> Result<(String, bool)> {
    let moved = match (shape.multiplied, v) {
        (false, _) => v.clone(),
        (
            true,
            Value::Float4(_)
            | Value::Float8(_)
            | Value::Int4(_)
            | Value::Int8(_)
            | Value::Numeric(_),
        ) => {
            shape.before += shape.moved;
            multiplied(v, shape.moved)?
        }
        _ => return Err(no_such_operation()),
    };
    let text = match &moved {
        Value::Int4(n) => n.to_string() + &point(shape.after),
        Value::Int8(n) => n.to_string() + &point(shape.after),
        Value::Numeric(n) => n.rounded(shape.after as i32)?.to_text(),
        Value::Float4(x) => float(f64::from(*x), FLOAT_DIGITS, shape),
        Value::Float8(x) => float(*x, DOUBLE_DIGITS, shape),
        _ => return Err(no_such_operation()),
    };
    let (text, negative) = match text.strip_prefix('-') {
        Some(rest) => (rest.to_owned(), true),
        None => (text, false),
    };
    let before = text.find('.').unwrap_or(text.len());
    if before > shape.before {
        let mut hashes = "#".repeat(shape.before + shape.after + 1);
        hashes.replace_range(shape.before..=shape.before, ".");
        return Ok((hashes, negative));
    }
    Ok((text, negative))
}

fn point(after: usize) -> String {
    match after {
        0 => String::new(),
        _ => format!(".{}", "0".repeat(after)),
    }
}

/// The number times a power of ten.
fn multiplied(v: &Value, by: usize) -> Result<Value> {
    let power = i32::try_from(by).unwrap_or(i32::MAX);
    Ok(match v {
        Value::Int4(n) => {
            let made = (f64::from(*n) * 10f64.powi(power)).round_ties_even();
            match made.abs() <= f64::from(i32::MAX) {
                true => Value::Int4(made as i32),
                false => return Err(crate::error::out_of_range("integer")),
            }
        }
        Value::Int8(n) => {
            let ten = 10i64.checked_pow(by as u32);
            let made = ten.and_then(|ten| n.checked_mul(ten));
            Value::Int8(made.ok_or_else(|| crate::error::out_of_range("bigint"))?)
        }
        Value::Numeric(n) => {
            let ten = Numeric::from_i64(10).power(&Numeric::from_i64(by as i64))?;
            Value::Numeric(n.mul(&ten)?)
        }
        Value::Float4(x) => Value::Float4((f64::from(*x) * 10f64.powi(power)) as f32),
        Value::Float8(x) => Value::Float8(x * 10f64.powi(power)),
        _ => return Err(no_such_operation()),
    })
}

/// A float with no more digits than it keeps.
fn float(x: f64, keeps: usize, shape: &mut Shape) -> String {
    if !x.is_finite() {
        return match (x.is_nan(), x < 0.0) {
            (true, _) => "NaN".into(),
            (_, true) => "-Infinity".into(),
            _ => "Infinity".into(),
        };
    }
    let before = format!("{:.0}", x.abs()).len();
    if before >= keeps {
        shape.after = 0;
    } else if before + shape.after > keeps {
        shape.after = keeps - before;
    }
    let digits = shape.after;
    format!("{x:.digits$}")
}

/// In scientific notation, with a blank for a sign that is plus.
fn exponent(v: &Value, shape: &Shape) -> Result<String> {
    let scientific = |text: String| {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let power: i32 = exponent.parse().unwrap_or(0);
        let sign = if power < 0 { '-' } else { '+' };
        let blank = if mantissa.starts_with('-') { "" } else { " " };
        format!("{blank}{mantissa}e{sign}{:02}", power.abs())
    };
    let after = shape.after;
    let hashes = || {
        let mut all = "#".repeat(shape.before + shape.after + 6);
        all.replace_range(0..1, " ");
        let at = shape.before + 1;
        all.replace_range(at..=at, ".");
        all
    };
    Ok(match v {
        Value::Float4(x) if !x.is_finite() => hashes(),
        Value::Float8(x) if !x.is_finite() => hashes(),
        Value::Float4(x) => scientific(format!("{:.after$e}", f64::from(*x))),
        Value::Float8(x) => scientific(format!("{x:.after$e}")),
        Value::Int4(n) => scientific(format!("{:.after$e}", f64::from(*n))),
        Value::Int8(n) => scientific(whole_exponent(&Numeric::from_i64(*n), after)?),
        Value::Numeric(n) if n.is_nan() || n.is_infinite() => hashes(),
        Value::Numeric(n) => scientific(whole_exponent(n, after)?),
        _ => return Err(no_such_operation()),
    })
}

/// A numeric as mantissa and exponent.
fn whole_exponent(n: &Numeric, after: usize) -> Result<String> {
    let plain = n.abs().to_text();
    let bare: String = plain.chars().filter(|c| *c != '.').collect();
    let point = plain.find('.').unwrap_or(plain.len());
    let zeros = bare.len() - bare.trim_start_matches('0').len();
    let mut power = match zeros == bare.len() {
        true => 0,
        false => point as i64 - 1 - zeros as i64,
    };
    // Rounding may give one more digit before the point.
    let mut mantissa = n.mul(&Numeric::parse(format!("1e{}", -power).as_bytes(), -1)?)?;
    mantissa = mantissa.rounded(after as i32)?;
    if mantissa.abs().compare(&Numeric::from_i64(10)).is_ge() {
        mantissa = mantissa
            .mul(&Numeric::from_scaled(1, 1))?
            .rounded(after as i32)?;
        power += 1;
    }
    Ok(format!("{}e{power}", mantissa.to_text()))
}

/// A whole number from 1 to 3999 in Roman digits.
fn roman(v: &Value) -> Result<String> {
    let n = match v {
        Value::Int4(n) => i64::from(*n),
        Value::Int8(n) => i32::try_from(*n)
            .map(i64::from)
            .map_err(|_| crate::error::out_of_range("integer"))?,
        Value::Numeric(n) => n.to_integer("integer")?,
        Value::Float4(x) => f64::from(*x).round_ties_even() as i64,
        Value::Float8(x) => x.round_ties_even() as i64,
        _ => return Err(no_such_operation()),
    };
    if !(1..=3999).contains(&n) {
        return Ok("#".repeat(15));
    }
    const DIGITS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let (mut n, mut out) = (n, String::new());
    for (value, digit) in DIGITS {
        while n >= value {
            out.push_str(digit);
            n -= value;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(n: &str, template: &str) -> String {
        let v = Value::Numeric(Numeric::parse(n.as_bytes(), -1).unwrap());
        match to_char(&v, template.as_bytes()) {
            Ok(Value::Text(s)) => String::from_utf8(s.into()).unwrap(),
            Ok(_) => "other".into(),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    /// The examples of PostgreSQL's manual (table 9.32), and errors.
    #[test]
    fn templates() {
        for (n, template, expected) in [
            ("-0.1", "99.99", "  -.10"),
            ("-0.1", "FM9.99", "-.1"),
            ("-0.1", "FM90.99", "-0.1"),
            ("0.1", "0.9", " 0.1"),
            ("12", "9990999.9", "    0012.0"),
            ("12", "FM9990999.9", "0012."),
            ("485", "999", " 485"),
            ("-485", "999", "-485"),
            ("485", "9 9 9", " 4 8 5"),
            ("1485", "9,999", " 1,485"),
            ("1485", "9G999", " 1,485"),
            ("148.5", "999.999", " 148.500"),
            ("148.5", "FM999.999", "148.5"),
            ("148.5", "FM999.990", "148.500"),
            ("3148.5", "9G999D999", " 3,148.500"),
            ("-485", "999S", "485-"),
            ("-485", "999MI", "485-"),
            ("485", "999MI", "485 "),
            ("485", "FM999MI", "485"),
            ("485", "PL999", "+ 485"),
            ("485", "SG999", "+485"),
            ("-485", "SG999", "-485"),
            ("-485", "9SG99", "4-85"),
            ("-485", "999PR", "<485>"),
            ("485", "L999", "  485"),
            ("485", "RN", "        CDLXXXV"),
            ("485", "FMRN", "CDLXXXV"),
            ("5.2", "FMRN", "V"),
            ("482", "999th", " 482nd"),
            ("485", "\"Good number:\"999", "Good number: 485"),
            ("485.8", "\"Pre:\"999\" Post:\" .999", "Pre: 485 Post: .800"),
            ("12", "99V999", " 12000"),
            ("12.4", "99V999", " 12400"),
            ("12.45", "99V9", " 125"),
            ("0.0004859", "9.99EEEE", " 4.86e-04"),
            ("1234", "99", " ##"),
            ("1", "9.9.9", "42601"),
            ("1", "EEEE9", "42601"),
            ("1", "", ""),
        ] {
            assert_eq!(shown(n, template), expected, "{n} {template}");
        }
    }
}
