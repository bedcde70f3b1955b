//! Masking rules: what an operand may become, by the column that its value is of.
//!
//! ```toml
//! [default]                  # columns without a rule of their own
//! mask = "scramble"
//!
//! [column."public.patient.name"]
//! mask = "scramble"          # the first characters become others; a number becomes another
//! first = 4                  # none: all characters
//! length = "free"            # texts may become longer or shorter, where the path allows it
//!
//! [column."public.patient.weight"]
//! mask = "vary"              # by so many percent, and it does not stay
//! percent = 10
//!
//! [column."public.patient.born"]
//! mask = "shift"             # by so many days at most, and it does not stay
//! days = 60
//!
//! [column."public.patient.town"]
//! mask = "substitute"        # one of these
//! from = ["Aachen", "Bonn"]
//!
//! [column."public.patient.ward"]
//! mask = "keep"              # no secret
//! ```
//!
//! A constant, and what was computed, goes by the rule of a column that it meets in the call, if
//! there is one of its kind of type there; by the rule `[constant]`, or the default, otherwise.
//! A list is for values of the column only: constants that meet them become any others.
//! Blanks in texts need not change.
//!
//! Invariant: what goes to the solver and what is checked afterwards is one list of conditions.

use crate::call::{self, Call};
use crate::shape::{Kind, Shape};
use contract::TypeCode;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use values::{Env, Value};

/// What is done to values.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "mask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Mask {
    /// Nothing.
    Keep,
    /// They become others.
    Scramble {
        /// So many characters of a text, from its beginning.
        first: Option<usize>,
        /// Whether texts keep their lengths.
        #[serde(default)]
        length: Length,
    },
    /// They become one of these.
    Substitute {
        /// The texts of the values.
        from: Vec<String>,
    },
    /// They become others that are near.
    Vary {
        /// How far, in percent of what they were.
        percent: u32,
    },
    /// Points in time become others that are near.
    Shift {
        /// How far.
        days: u32,
    },
}

/// What becomes of a text's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// It stays.
    #[default]
    Keep,
    /// It need not stay.
    Free,
}

/// A blank's code point.
const BLANK: i128 = 0x20;

const EVERYTHING: Mask = Mask::Scramble {
    first: None,
    length: Length::Keep,
};

/// The rules of a file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    default: Option<Mask>,
    constant: Option<Mask>,
    #[serde(default)]
    column: BTreeMap<String, Mask>,
}

/// What must be true of the numbers of an operand, beside what they were.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// A number lies between these.
    Within(usize, i128, i128),
    /// A number is not this one.
    Differs(usize, i128),
    /// Not all of them are these.
    NotAll(Vec<i128>),
    /// They are those of one of these values.
    OneOf(Vec<Vec<i128>>),
}

impl Condition {
    /// Whether numbers fulfil it.
    #[must_use]
    pub fn holds(&self, numbers: &[i128]) -> bool {
        let number = |at: &usize| numbers.get(*at).copied();
        match self {
            Condition::Within(at, low, high) => {
                number(at).is_some_and(|n| (low..=high).contains(&&n))
            }
            Condition::Differs(at, what) => number(at).is_some_and(|n| n != *what),
            Condition::NotAll(what) => numbers != what.as_slice(),
            Condition::OneOf(list) => list.iter().any(|one| one.as_slice() == numbers),
        }
    }

    /// It in the solver's language; `names` are those of the numbers.
    #[must_use]
    pub fn to_smt(&self, names: &[String]) -> String {
        let all = |what: &[i128]| {
            let mut text = String::from("(and true");
            for (name, n) in names.iter().zip(what) {
                let _ = write!(text, " (= {name} {})", literal(*n));
            }
            text + ")"
        };
        let name = |at: &usize| names.get(*at).map_or("0", String::as_str);
        match self {
            Condition::Within(at, low, high) => {
                format!("(<= {} {} {})", literal(*low), name(at), literal(*high))
            }
            Condition::Differs(at, what) => format!("(not (= {} {}))", name(at), literal(*what)),
            Condition::NotAll(what) => format!("(not {})", all(what)),
            Condition::OneOf(list) => {
                let list: Vec<String> = list.iter().map(|one| all(one)).collect();
                format!("(or false {})", list.join(" "))
            }
        }
    }
}

/// A number in the solver's language.
#[must_use]
pub fn literal(n: i128) -> String {
    match n < 0 {
        true => format!("(- {})", n.unsigned_abs()),
        false => n.to_string(),
    }
}

/// Types that a column's rule is passed on among.
fn family(t: TypeCode) -> u8 {
    match t {
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => 1,
        TypeCode::Date | TypeCode::Timestamp | TypeCode::Timestamptz => 2,
        TypeCode::Int2 | TypeCode::Int4 | TypeCode::Int8 => 3,
        TypeCode::Float4 | TypeCode::Float8 | TypeCode::Numeric => 3,
        t => 16 + t as u8,
    }
}

impl Rules {
    /// The rules of a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let rules: Rules = toml::from_str(text).map_err(|e| e.to_string())?;
        let all = rules
            .column
            .values()
            .chain(&rules.default)
            .chain(&rules.constant);
        for mask in all {
            match mask {
                Mask::Scramble { first: Some(0), .. }
                | Mask::Vary { percent: 0 }
                | Mask::Shift { days: 0 } => {
                    return Err("a rule with 0 changes nothing: mask = \"keep\" says so".into());
                }
                Mask::Substitute { from } if from.is_empty() => {
                    return Err("a list to substitute from is empty".into());
                }
                _ => {}
            }
        }
        Ok(rules)
    }

    fn of_column(&self, column: &str) -> &Mask {
        let own = self.column.get(column);
        own.or(self.default.as_ref()).unwrap_or(&EVERYTHING)
    }

    /// The rule for an operand of a call.
    #[must_use]
    pub fn of(&self, call: &Call, at: usize) -> &Mask {
        let Some(operand) = call.operands.get(at) else {
            return &EVERYTHING;
        };
        if let Some(column) = &operand.column {
            return self.of_column(column);
        }
        let t = family(operand.value.type_code());
        let mut met = call.operands.iter().filter_map(|other| {
            let column = other.column.as_ref()?;
            (family(other.value.type_code()) == t).then_some(column)
        });
        match met.next() {
            Some(column) => match self.of_column(column) {
                // A list has values, and no parts or patterns of them.
                Mask::Substitute { .. } => &EVERYTHING,
                mask => mask,
            },
            None => self
                .constant
                .as_ref()
                .or(self.default.as_ref())
                .unwrap_or(&EVERYTHING),
        }
    }
}

/// A point in time's day, in its own unit.
fn day(t: &Kind) -> Option<i128> {
    match t {
        Kind::Whole(TypeCode::Date) => Some(1),
        Kind::Whole(TypeCode::Timestamp | TypeCode::Timestamptz) => Some(86_400_000_000),
        _ => None,
    }
}

/// The values of a list, in shapes of their own.
#[must_use]
pub fn listed(from: &[String], t: TypeCode, env: &Env) -> Vec<Shape> {
    let values = from
        .iter()
        .filter_map(|text| call::value(t, text, env).ok());
    values.filter_map(|value| Shape::of(&value)).collect()
}

/// What a rule demands of an operand.
///
/// # Errors
/// When the rule is none for such a value.
pub fn conditions(
    mask: &Mask,
    shape: &Shape,
    t: TypeCode,
    env: &Env,
) -> Result<Vec<Condition>, String> {
    let numbers = &shape.numbers;
    let near = |far: i128| {
        let n = numbers.first().copied().unwrap_or(0);
        vec![
            Condition::Within(0, n.saturating_sub(far), n.saturating_add(far)),
            Condition::Differs(0, n),
        ]
    };
    if shape.kind == Kind::Fixed {
        return Ok(Vec::new()); // neither NaN nor an infinity has neighbours
    }
    Ok(match (mask, &shape.kind) {
        (Mask::Keep, _) => vec![Condition::OneOf(vec![numbers.clone()])],
        (Mask::Scramble { first, .. }, Kind::Characters(_) | Kind::Bytes(_)) => {
            let first = numbers.iter().take(first.unwrap_or(usize::MAX)).enumerate();
            let first = first.filter(|(_, n)| **n != BLANK);
            first.map(|(at, n)| Condition::Differs(at, *n)).collect()
        }
        (Mask::Scramble { .. }, _) => vec![Condition::NotAll(numbers.clone())],
        (Mask::Substitute { from }, _) => {
            let list = listed(from, t, env).into_iter();
            let list = list
                .filter(|one| one.kind == shape.kind)
                .map(|one| one.numbers);
            vec![Condition::OneOf(list.collect())]
        }
        (Mask::Vary { percent }, Kind::Whole(t)) if family(*t) == 3 => {
            near(numbers.first().map_or(0, |n| n.abs()) * i128::from(*percent) / 100)
        }
        (Mask::Vary { percent }, Kind::Decimal(_)) => {
            near(numbers.first().map_or(0, |n| n.abs()) * i128::from(*percent) / 100)
        }
        (Mask::Vary { percent }, Kind::Float(t)) => vary_float(numbers, *t, *percent),
        (Mask::Shift { days }, kind) => match day(kind) {
            Some(day) => near(day * i128::from(*days)),
            None => return Err("only dates and timestamps can be shifted".into()),
        },
        (Mask::Vary { .. }, _) => return Err("only numbers can be varied".into()),
    })
}

fn vary_float(numbers: &[i128], t: TypeCode, percent: u32) -> Vec<Condition> {
    let n = numbers.first().copied().unwrap_or(0);
    let shape = |x: f64| match t {
        TypeCode::Float4 => Shape::of(&Value::Float4(x as f32)),
        _ => Shape::of(&Value::Float8(x)),
    };
    let number = |x: f64| {
        shape(x)
            .and_then(|s| s.numbers.first().copied())
            .unwrap_or(n)
    };
    let x = match shape(0.0).and_then(|s| s.value(&[n])) {
        Some(Value::Float4(x)) => f64::from(x),
        Some(Value::Float8(x)) => x,
        _ => 0.0,
    };
    let far = x.abs() * f64::from(percent) / 100.0;
    let (low, high) = (number(x - far), number(x + far));
    vec![Condition::Within(0, low, high), Condition::Differs(0, n)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(t: TypeCode, text: &str) -> Shape {
        let value = call::value(t, text, &Env::default()).expect(text);
        Shape::of(&value).expect(text)
    }

    fn allowed(mask: &Mask, t: TypeCode, was: &str, is: &str) -> bool {
        let conditions = conditions(mask, &shape(t, was), t, &Env::default()).expect("fits");
        conditions.iter().all(|c| c.holds(&shape(t, is).numbers))
    }

    #[test]
    fn what_rules_allow() {
        let scramble = |first| Mask::Scramble {
            first,
            length: Length::Keep,
        };
        let (vary, shift) = (Mask::Vary { percent: 10 }, Mask::Shift { days: 3 });
        let list = Mask::Substitute {
            from: vec!["Ann".into(), "7".into()],
        };
        for (mask, t, was, is, right) in [
            (&scramble(None), TypeCode::Text, "Bob", "xyz", true),
            (&scramble(None), TypeCode::Text, "Bob", "xyb", false),
            (&scramble(Some(2)), TypeCode::Text, "Bob", "xyb", true),
            (&scramble(Some(2)), TypeCode::Text, "Bob", "Bxb", false),
            (&scramble(None), TypeCode::Int4, "7", "7", false),
            (&vary, TypeCode::Int4, "-100", "-91", true),
            (&vary, TypeCode::Int4, "-100", "-111", false),
            (&vary, TypeCode::Numeric, "2.50", "2.75", true),
            (&vary, TypeCode::Numeric, "2.50", "2.76", false),
            (&vary, TypeCode::Float8, "2.5", "2.7", true),
            (&vary, TypeCode::Float8, "2.5", "2.2", false),
            (&shift, TypeCode::Date, "2020-02-28", "2020-03-02", true),
            (&shift, TypeCode::Date, "2020-02-28", "2020-02-28", false),
            (
                &shift,
                TypeCode::Timestamp,
                "2020-02-28 10:00",
                "2020-02-26",
                true,
            ),
            (&list, TypeCode::Text, "Bob", "Ann", true),
            (&list, TypeCode::Text, "Bob", "Tim", false),
            (&list, TypeCode::Int8, "1", "7", true),
            (&Mask::Keep, TypeCode::Text, "Bob", "Bob", true),
            (&Mask::Keep, TypeCode::Text, "Bob", "Bod", false),
        ] {
            assert_eq!(allowed(mask, t, was, is), right, "{mask:?} {was} {is}");
        }
    }

    #[test]
    fn files() {
        let rules = Rules::parse(
            "[default]\nmask = \"keep\"\n[column.\"t.a\"]\nmask = \"scramble\"\nfirst = 4\n",
        );
        let rules = rules.expect("rules");
        let line = "call\tLike\t-\t0\ttrue\ttext\tt.a\tAbc\ttext\t-\tA%";
        let call = Call::parse(line).expect("a call");
        let scrambled = Mask::Scramble {
            first: Some(4),
            length: Length::Keep,
        };
        assert_eq!(rules.of(&call, 0), &scrambled);
        assert_eq!(rules.of(&call, 1), &scrambled);
        let call = Call::parse(&line.replace("t.a", "t.b")).expect("a call");
        assert_eq!(rules.of(&call, 0), &Mask::Keep);
        for bad in [
            "[default]\nmask = \"hide\"",
            "[default]\nmask = \"vary\"\npercent = 0",
            "[default]\nmask = \"substitute\"\nfrom = []",
            "[other]\n",
        ] {
            assert!(Rules::parse(bad).is_err(), "{bad}");
        }
    }
}
