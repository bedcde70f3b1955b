//! What the operands of a call must have in common for its outcome and path, in the solver's
//! language: orders, ranges, zero divisors, which characters a pattern was compared with.
//!
//! A guess, made from what operators are known to do; the machine finds out whether it was right.
//! Asked for more, it also demands that values look like what they were ([`Shape::alike`]), and
//! that characters of two strings are equal where they were.
//!
//! Invariant: the operands that were recorded fulfil what is demanded.

use crate::call::{Call, Outcome};
use crate::rules::literal;
use crate::shape::{Kind, Shape};
use contract::{Op, TypeCode};
use std::cmp::Ordering;
use values::Value;

/// An operand with the names of its numbers.
pub struct Named {
    /// The operand's shape.
    pub shape: Shape,
    /// Names of its numbers.
    pub names: Vec<String>,
}

/// How much is demanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// What the outcome says.
    Outcome,
    /// Also that values look like what they were.
    Alike,
}

/// Pairs of characters that are looked at, at most.
const PAIRS_MAX: usize = 6000;

/// What the operands of a call must fulfil.
#[must_use]
pub fn relations(call: &Call, operands: &[Named], level: Level) -> Vec<String> {
    let mut all = Vec::new();
    if let [a, b] = operands {
        two(call, a, b, &mut all);
    }
    if level == Level::Alike {
        for operand in operands {
            for (at, name) in operand.names.iter().enumerate() {
                all.push(within(name, &operand.shape.alike(at)));
            }
        }
        if !is_pattern(call.op) {
            equalities(operands, &mut all);
        }
    }
    all
}

/// A number within ranges.
#[must_use]
pub fn within(name: &str, ranges: &[(i128, i128)]) -> String {
    let range =
        |(low, high): &(i128, i128)| format!("(<= {} {name} {})", literal(*low), literal(*high));
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    format!("(or false {})", ranges.join(" "))
}

/// Whether the second operand is a pattern of `LIKE` or a regular expression.
#[must_use]
pub fn is_pattern(op: Op) -> bool {
    matches!(
        op,
        Op::Like
            | Op::NotLike
            | Op::Ilike
            | Op::NotIlike
            | Op::Regex
            | Op::NotRegex
            | Op::RegexFold
            | Op::NotRegexFold
    )
}

/// Characters of a pattern that stand for something else, and stay.
#[must_use]
pub fn structure(op: Op, pattern: &[i128]) -> Vec<usize> {
    let regex = !matches!(op, Op::Like | Op::NotLike | Op::Ilike | Op::NotIlike);
    let mut stay = Vec::new();
    let mut escaped = false;
    for (at, n) in pattern.iter().enumerate() {
        let character = u32::try_from(*n).ok().and_then(char::from_u32);
        let special = match character {
            Some('%' | '_' | '\\') if !regex => !escaped || character == Some('\\'),
            Some(c) if regex => c.is_ascii() && (!c.is_ascii_alphanumeric() || escaped),
            _ => false,
        };
        escaped = character == Some('\\') && !escaped;
        if special {
            stay.push(at);
        }
    }
    stay
}

fn two(call: &Call, a: &Named, b: &Named, all: &mut Vec<String>) {
    match call.op {
        Op::Lt | Op::Le | Op::Eq | Op::Ge | Op::Gt | Op::Ne | Op::Cmp => order(call, a, b, all),
        Op::Add | Op::Sub | Op::Mul => in_range(call, a, b, all),
        Op::Div | Op::Mod => {
            if let [divisor] = b.names.as_slice() {
                let zero = b.shape.numbers == [0];
                all.push(format!("(= (= {divisor} 0) {zero})"));
            }
        }
        op if is_pattern(op) => pattern(op, a, b, all),
        _ => {}
    }
}

/// Factors of a value's numbers, whose sum is what is compared.
fn linear(shape: &Shape, other: &Shape) -> Option<Vec<i128>> {
    const DAY: i128 = 86_400_000_000;
    Some(match (&shape.kind, &other.kind) {
        (Kind::Decimal(scale), Kind::Decimal(finer)) => {
            let digits = u32::try_from(finer.saturating_sub(*scale)).ok()?;
            vec![10_i128.checked_pow(digits)?]
        }
        (Kind::Whole(TypeCode::Date), Kind::Whole(TypeCode::Date)) => vec![1],
        (Kind::Whole(TypeCode::Date), Kind::Whole(_)) => vec![DAY],
        (Kind::Whole(_), Kind::Whole(_)) => vec![1],
        (Kind::Span, Kind::Span) => vec![30 * DAY, DAY, 1],
        (Kind::Float(t), Kind::Float(u)) if t == u => vec![1],
        _ => return None,
    })
}

fn sum(names: &[String], factors: &[i128]) -> String {
    let parts = names.iter().zip(factors);
    let parts: Vec<String> = parts.map(|(name, f)| format!("(* {f} {name})")).collect();
    format!("(+ 0 {})", parts.join(" "))
}

fn worth(numbers: &[i128], factors: &[i128]) -> Option<i128> {
    let parts = numbers.iter().zip(factors);
    parts.map(|(n, f)| n.checked_mul(*f)).sum()
}

/// What an order is to be, of which an operation tells something only.
fn demanded(op: Op, order: Ordering) -> &'static str {
    match (op, order) {
        (Op::Cmp, Ordering::Less) => "<",
        (Op::Cmp, Ordering::Greater) => ">",
        (Op::Cmp | Op::Eq | Op::Ne, Ordering::Equal) => "=",
        (Op::Eq | Op::Ne, _) => "distinct",
        (Op::Lt | Op::Ge, Ordering::Less) => "<",
        (Op::Lt | Op::Ge, _) => ">=",
        (_, Ordering::Greater) => ">",
        (_, _) => "<=",
    }
}

fn order(call: &Call, a: &Named, b: &Named, all: &mut Vec<String>) {
    let (x, y) = (&a.shape, &b.shape);
    if let (Some(f), Some(g)) = (linear(x, y), linear(y, x)) {
        if let (Some(m), Some(n)) = (worth(&x.numbers, &f), worth(&y.numbers, &g)) {
            let relation = demanded(call.op, m.cmp(&n));
            all.push(format!(
                "({relation} {} {})",
                sum(&a.names, &f),
                sum(&b.names, &g)
            ));
        }
        return;
    }
    // Strings: equal up to a place, and what they are to each other there.
    let pairs = x
        .numbers
        .iter()
        .zip(&y.numbers)
        .zip(a.names.iter().zip(&b.names));
    for ((m, n), (p, q)) in pairs {
        let relation = demanded(if m == n { Op::Cmp } else { call.op }, m.cmp(n));
        all.push(format!("({relation} {p} {q})"));
        if m != n {
            return;
        }
    }
}

/// A sum, difference or product is in its type's range, or is not, as it was.
fn in_range(call: &Call, a: &Named, b: &Named, all: &mut Vec<String>) {
    let ([x], [y], Some(ret)) = (a.names.as_slice(), b.names.as_slice(), call.ret) else {
        return;
    };
    if !matches!(
        (&a.shape.kind, &b.shape.kind),
        (Kind::Whole(_), Kind::Whole(_))
    ) {
        return;
    }
    let symbol = match call.op {
        Op::Add => "+",
        Op::Sub => "-",
        _ => "*",
    };
    let ends = |value: Value| Shape::of(&value).map(|shape| shape.bounds(0));
    let bounds = match ret {
        TypeCode::Int2 => ends(Value::Int2(0)),
        TypeCode::Int4 => ends(Value::Int4(0)),
        TypeCode::Int8 => ends(Value::Int8(0)),
        TypeCode::Date => ends(Value::Date(0)),
        _ => None,
    };
    let Some(bounds) = bounds else { return };
    let inside = within(&format!("({symbol} {x} {y})"), &bounds);
    match &call.outcome {
        Outcome::Value => all.push(inside),
        Outcome::Error(_) => all.push(format!("(not {inside})")),
        _ => {}
    }
}

/// A character with capitals as small letters.
fn folded(name: &str) -> String {
    format!("(ite (<= 65 {name} 90) (+ {name} 32) {name})")
}

fn fold(n: i128) -> i128 {
    if (65..=90).contains(&n) { n + 32 } else { n }
}

/// What `LIKE` compares on its way, character by character: which are equal, and which are not. A
/// regular expression's are all compared.
fn pattern(op: Op, a: &Named, b: &Named, all: &mut Vec<String>) {
    let folds = matches!(
        op,
        Op::Ilike | Op::NotIlike | Op::RegexFold | Op::NotRegexFold
    );
    let stay = structure(op, &b.shape.numbers);
    for (at, n) in b.shape.numbers.iter().enumerate() {
        let Some(name) = b.names.get(at) else {
            continue;
        };
        if stay.contains(&at) {
            all.push(format!("(= {name} {n})"));
        } else {
            all.push(format!(
                "(not (or (= {name} 37) (= {name} 95) (= {name} 92)))"
            ));
        }
    }
    let unit = |n: &i128| if folds { fold(*n) } else { *n };
    let text: Vec<i128> = a.shape.numbers.iter().map(unit).collect();
    let literals: Vec<i128> = b.shape.numbers.iter().map(unit).collect();
    let compared = match op {
        Op::Like | Op::NotLike | Op::Ilike | Op::NotIlike => like(&text, &literals, &stay),
        _ => {
            let places = (0..text.len()).flat_map(|i| (0..literals.len()).map(move |j| (i, j)));
            places
                .filter(|(_, j)| !stay.contains(j))
                .take(PAIRS_MAX)
                .collect()
        }
    };
    for (i, j) in compared {
        let (Some(m), Some(n)) = (text.get(i), literals.get(j)) else {
            continue;
        };
        let (Some(p), Some(q)) = (a.names.get(i), b.names.get(j)) else {
            continue;
        };
        let (p, q) = match folds {
            true => (folded(p), folded(q)),
            false => (p.clone(), q.clone()),
        };
        equal_as(*m, *n, &p, &q, all);
    }
}

/// Two characters are equal if they were, and begin with as many equal bytes.
fn equal_as(m: i128, n: i128, p: &str, q: &str, all: &mut Vec<String>) {
    all.push(format!("(= (= {p} {q}) {})", m == n));
    if m != n && m >= 0x80 && n >= 0x80 {
        for unit in [64, 4096, 262_144] {
            all.push(format!(
                "(= (= (div {p} {unit}) (div {q} {unit})) {})",
                m / unit == n / unit
            ));
        }
    }
}

/// The places of a text and a pattern that are compared: from each run of wildcards on the
/// literals are tried at one place of the text after the other, and only the last run is gone
/// back to.
fn like(text: &[i128], pattern: &[i128], stay: &[usize]) -> Vec<(usize, usize)> {
    let is = |at: usize, c: u8| stay.contains(&at) && pattern.get(at) == Some(&i128::from(c));
    let (mut i, mut j, mut back) = (0, 0, None::<(usize, usize)>);
    let mut compared = Vec::new();
    while i < text.len() && compared.len() < PAIRS_MAX {
        let equal = if is(j, b'%') {
            j += 1;
            back = Some((i, j));
            continue;
        } else if j >= pattern.len() {
            false
        } else if is(j, b'_') {
            true
        } else {
            if is(j, b'\\') {
                j += 1;
            }
            compared.push((i, j));
            text.get(i) == pattern.get(j)
        };
        match (equal, &mut back) {
            (true, _) => (i, j) = (i + 1, j + 1),
            (false, Some((place, after))) => {
                if *after >= pattern.len() {
                    break; // a wildcard at the end takes what is left
                }
                *place += 1;
                (i, j) = (*place, *after);
            }
            (false, None) => break,
        }
    }
    compared
}

/// Characters of different strings are equal where they were.
fn equalities(operands: &[Named], all: &mut Vec<String>) {
    let strings = operands
        .iter()
        .filter(|o| matches!(o.shape.kind, Kind::Characters(_) | Kind::Bytes(_)));
    let strings: Vec<&Named> = strings.collect();
    for (at, a) in strings.iter().enumerate() {
        for b in strings.iter().skip(at + 1) {
            if a.names.len() * b.names.len() > PAIRS_MAX {
                continue;
            }
            for (m, p) in a.shape.numbers.iter().zip(&a.names) {
                for (n, q) in b.shape.numbers.iter().zip(&b.names) {
                    equal_as(*m, *n, p, q, all);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<i128> {
        text.chars().map(|c| i128::from(u32::from(c))).collect()
    }

    #[test]
    fn compared_characters() {
        for (text, pattern, right) in [
            ("abc", "a%", vec![(0, 0)]),
            ("abc", "%c", vec![(0, 1), (1, 1), (2, 1)]),
            ("abc", "_b_", vec![(1, 1)]),
            ("abc", "x%", vec![(0, 0)]),
            ("a%c", "a\\%c", vec![(0, 0), (1, 2), (2, 3)]),
            ("aab", "%ab", vec![(0, 1), (1, 2), (1, 1), (2, 2)]),
        ] {
            let (text, pattern) = (points(text), points(pattern));
            let stay = structure(Op::Like, &pattern);
            assert_eq!(like(&text, &pattern, &stay), right);
        }
    }

    #[test]
    fn what_stays_of_a_pattern() {
        assert_eq!(structure(Op::Like, &points("a%b_\\%")), [1, 3, 4]);
        assert_eq!(
            structure(Op::Regex, &points("^a\\d+[0-9]$")),
            [0, 2, 3, 4, 5, 7, 9, 10]
        );
    }
}
