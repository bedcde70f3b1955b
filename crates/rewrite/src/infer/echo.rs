//! A value that is sealed anywhere in a statement must not be plain elsewhere in it.
//!
//! After a run of the inference, this module finds the leaves that repeat a value sealed elsewhere
//! (`'x'::text IS NULL OR name = 'x'`, `$1 IS NULL OR name = $2`). In the next run they are
//! protected from the start. If one of them cannot be protected, the statement is refused.
//!
//! A value combined with a plain column is not considered, since the application has placed it
//! there deliberately. Exceptions are strings that are only compared, and all uses of a parameter.
//!
//! Invariant: no parameter is both sealed and plain.

use super::Infer;
use crate::refusal::Refusal;
use crate::value::{Class, Leaf, LeafId, LeafKind, Use, Val};
use contract::TypeCode;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Shorter numbers are ignored unless they are part of a condition, and as arguments of functions
/// that take plain values only: `THEN 1 ELSE 0`, `repeat(note, 3)`.
const DIGITS_MIN: usize = 4;

/// String types, on which the operators considered do not depend on the collation.
const STRINGS: [TypeCode; 3] = [TypeCode::Text, TypeCode::Varchar, TypeCode::Bpchar];

/// Positions of leaves that are protected from the start of the next run, and of those among them
/// that repeat a value sealed elsewhere.
pub(crate) type Again = (HashSet<usize>, HashSet<usize>);

impl Infer<'_> {
    /// What the next run must know, if one is needed.
    pub fn again(&self) -> Option<Again> {
        let (late, new) = (self.overtaken(), self.echoing());
        if late.is_none() && new.is_empty() {
            return None;
        }
        let mut forced = late.unwrap_or_else(|| self.forced.clone());
        forced.extend(&new);
        Some((forced, self.echoes.union(&new).copied().collect()))
    }

    /// Positions of leaves that must be protected because of other leaves. What is encoded does not
    /// leave in the clear anyway.
    pub fn echoing(&self) -> HashSet<usize> {
        let mut again = self.saying_again(|id, _| self.leaves.protected(id));
        for id in 0..self.leaves.len() {
            let leaf = self.leaves.get(id);
            if leaf.soft.is_some() {
                again.remove(&leaf.range.start);
            }
        }
        again
    }

    /// Like [`Self::echoing`], for leaves that repeat the value of certain others.
    pub fn saying_again(&self, hidden: impl Fn(LeafId, &Leaf) -> bool) -> HashSet<usize> {
        let all = || (0..self.leaves.len()).map(|id| (self.leaves.get(id), id));
        let sealed: Vec<&Leaf> = all()
            .filter(|(leaf, id)| hidden(*id, leaf) && leaf.holds_value())
            .map(|(leaf, _)| leaf)
            .collect();
        if sealed.is_empty() {
            return HashSet::new();
        }
        let texts: HashSet<String> = sealed.iter().filter_map(|leaf| text(leaf)).collect();
        let numbers: HashSet<u32> = sealed.iter().filter_map(|leaf| number(leaf)).collect();
        let plain: HashSet<u32> = all()
            .filter(|(leaf, _)| leaf.met_plain)
            .filter_map(|(leaf, _)| number(leaf))
            .collect();
        let within = |leaf: &Leaf| {
            sealed
                .iter()
                .any(|s| s.range.start <= leaf.range.start && leaf.range.end <= s.range.end)
        };
        let says_again = |leaf: &Leaf| match number(leaf) {
            Some(number) => numbers.contains(&number) || !plain.contains(&number),
            None => open(leaf) && text(leaf).is_some_and(|t| texts.contains(&t)),
        };
        all()
            .filter(|(leaf, id)| !hidden(*id, leaf) && says_again(leaf) && !within(leaf))
            .map(|(leaf, _)| leaf.range.start)
            .collect()
    }

    /// Constants that are sealed if a sealed constant has the same value.
    pub fn open_constants(&self) -> Vec<Range<usize>> {
        let open = |id: &usize| {
            let leaf = self.leaves.get(*id);
            let kind = matches!(leaf.kind, LeafKind::Str(..) | LeafKind::Typed(..));
            let met = !leaf.met_plain || leaf.comparable || leaf.passed;
            kind && met && !self.leaves.protected(*id)
        };
        let all = (0..self.leaves.len()).filter(open);
        all.map(|id| self.leaves.get(id).range.clone()).collect()
    }

    /// Parameters that are only compared with plain columns. They can be sealed if their value
    /// turns out to equal that of a sealed parameter.
    pub fn compared_parameters(&self) -> Vec<u32> {
        let mut compared: HashMap<u32, bool> = HashMap::new();
        for id in 0..self.leaves.len() {
            let leaf = self.leaves.get(id);
            if let Some(number) = number(leaf) {
                let only = leaf.comparable && !self.leaves.protected(id);
                *compared.entry(number).or_insert(true) &= only;
            }
        }
        let mut all: Vec<u32> = compared.into_iter().filter(|c| c.1).map(|c| c.0).collect();
        all.sort_unstable();
        all
    }

    /// Determines the type of a string that is sealed only because of its value and is combined
    /// with nothing.
    pub fn type_echoes(&mut self) {
        let mut members: HashMap<LeafId, usize> = HashMap::new();
        for id in 0..self.leaves.len() {
            *members.entry(self.leaves.root(id)).or_default() += 1;
        }
        for id in 0..self.leaves.len() {
            let alone = members.get(&self.leaves.root(id)) == Some(&1);
            let u = Use { id, block: None };
            let leaf = self.leaves.get(id);
            // The type of a parameter may be declared.
            let declared = leaf.any_type && number(leaf).is_some();
            if alone && self.is_echo(&u) && leaf.array.is_none() && !declared {
                self.type_bare(&[u], TypeCode::Text);
            }
        }
    }

    /// Records that two values are compared in a way that has the same result when both are
    /// protected. A value sealed elsewhere can then be sealed here, even next to a plain operand.
    pub fn alike(&mut self, operator: &str, a: &Val, b: &Val) {
        for (literal, other) in [(a, b), (b, a)] {
            let Class::Plain(Some(code)) = other.class else {
                continue;
            };
            let any = matches!(operator, "=" | "<>" | "~~" | "!~~");
            let fits = any || (is_order(operator) && !STRINGS.contains(&code));
            if !literal.literal() || !other.leaves.is_empty() || !fits {
                continue;
            }
            let code = if STRINGS.contains(&code) {
                TypeCode::Text
            } else {
                code
            };
            for u in &literal.leaves {
                self.leaves.get_mut(u.id).comparable = true;
                if self.is_echo(u) && literal.bare() {
                    self.type_bare(&[*u], code);
                }
            }
        }
    }

    fn is_echo(&self, u: &Use) -> bool {
        self.echoes.contains(&self.leaves.get(u.id).range.start)
    }

    /// Records that these are combined with something plain. A value that must be sealed cannot be,
    /// unless it is only compared.
    pub fn met_plain(&mut self, uses: &[Use]) {
        for u in uses {
            let echo = self.is_echo(u);
            let leaf = self.leaves.get_mut(u.id);
            leaf.met_plain = true;
            if echo && leaf.holds_value() && !leaf.comparable && self.torn.is_none() {
                self.torn = Some(u.id);
            }
        }
    }

    /// Refuses a value that would have to be both sealed and plain.
    pub fn check_torn(&self) -> Result<(), Refusal> {
        let Some(leaf) = self.torn.map(|id| self.leaves.get(id)) else {
            return Ok(());
        };
        let refusal = match number(leaf) {
            Some(number) => Refusal::new(
                "42P08",
                format!("parameter ${number} meets both protected and plain values"),
            )
            .hint("Use two parameters: one of them is sent in the clear."),
            None => Refusal::unsupported(
                "a literal is sealed in one place and meets a plain value in another",
            )
            .detail("It would be sent in the clear beside its envelope.")
            .hint("Pass it as two parameters."),
        };
        Err(refusal
            .at(i32::try_from(leaf.range.start).unwrap_or(-1))
            .for_good())
    }
}

/// Whether the constant can be sealed in place, or is passed to something without plain operands.
fn open(leaf: &Leaf) -> bool {
    let string = matches!(leaf.kind, LeafKind::Str(..));
    let telling = string || text(leaf).is_some_and(|t| t.len() >= DIGITS_MIN);
    if leaf.passed && !leaf.beside_plain {
        return telling;
    }
    (!leaf.met_plain && (telling || leaf.tested)) || (string && leaf.comparable)
}

/// The value of a constant without the wildcards of a pattern. `None` if it reveals nothing.
fn text(leaf: &Leaf) -> Option<String> {
    let bytes = match &leaf.kind {
        LeafKind::Str(bytes, _) => bytes,
        LeafKind::Typed(code, _, bytes) if *code != TypeCode::Bool => bytes,
        _ => return None,
    };
    key(bytes)
}

/// A key that is equal for texts of the same value.
pub fn key(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '%' | '_' | '\\'));
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(leaf: &Leaf) -> Option<u32> {
    match leaf.kind {
        LeafKind::Param(number, _) => Some(number),
        _ => None,
    }
}

fn is_order(operator: &str) -> bool {
    matches!(operator, "<" | "<=" | ">" | ">=")
}
