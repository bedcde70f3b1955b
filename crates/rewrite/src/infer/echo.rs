//! A value that is sealed anywhere in a statement is plain nowhere in it.
//!
//! After a run of the inference this finds the leaves that say again what is sealed
//! elsewhere (`'x'::text IS NULL OR name = 'x'`, `$1 IS NULL OR name = $2`). The next run
//! has them protected from the start; where one cannot be, the statement is refused.
//!
//! What meets a plain column is not looked for: there the application has put the value
//! itself. But a string that is only compared with one is, and all uses of a parameter are.
//!
//! Invariant: no parameter is both sealed and plain.

use super::Infer;
use crate::refusal::Refusal;
use crate::value::{Class, Leaf, LeafId, LeafKind, Use, Val};
use contract::TypeCode;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Numbers with fewer digits mean nothing where they are not part of a condition, or are
/// arguments of functions that take plain values only: `THEN 1 ELSE 0`, `repeat(note, 3)`.
const DIGITS_MIN: usize = 4;

/// The strings, and the operators on them that do not depend on the collation.
const STRINGS: [TypeCode; 3] = [TypeCode::Text, TypeCode::Varchar, TypeCode::Bpchar];

/// Where leaves begin that are protected from the start of the next run, and those of
/// them that say again what is sealed elsewhere.
pub(crate) type Again = (HashSet<usize>, HashSet<usize>);

impl Infer<'_> {
    /// What the next run must know, if there must be one.
    pub fn again(&self) -> Option<Again> {
        let (late, new) = (self.overtaken(), self.echoing());
        if late.is_none() && new.is_empty() {
            return None;
        }
        let mut forced = late.unwrap_or_else(|| self.forced.clone());
        forced.extend(&new);
        Some((forced, self.echoes.union(&new).copied().collect()))
    }

    /// Where leaves begin that must be protected for what other leaves are.
    pub fn echoing(&self) -> HashSet<usize> {
        self.saying_again(|id, _| self.leaves.protected(id))
    }

    /// As [`Self::echoing`], of what leaves of some kind say.
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

    /// The constants that are sealed if another one that is sealed says the same.
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

    /// Parameters that are only compared with plain columns: they can be sealed, if their value turns out to be
    /// that of one that is.
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

    /// The type of a string that is sealed only for what it says, and meets nothing.
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

    /// These two are compared in a way that gives the same when both are protected: so a
    /// value that is sealed elsewhere can be sealed here, too, beside a plain operand.
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

    /// Notes that these meet something plain. What must be sealed cannot, unless it is
    /// only compared.
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

    /// Refuses what would have to be both sealed and plain.
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

/// The constant can be sealed where it stands, or what takes it has nothing plain beside it.
fn open(leaf: &Leaf) -> bool {
    let string = matches!(leaf.kind, LeafKind::Str(..));
    let telling = string || text(leaf).is_some_and(|t| t.len() >= DIGITS_MIN);
    if leaf.passed && !leaf.beside_plain {
        return telling;
    }
    (!leaf.met_plain && (telling || leaf.tested)) || (string && leaf.comparable)
}

/// What a constant says, without what a pattern puts around it. None for what hides nothing.
fn text(leaf: &Leaf) -> Option<String> {
    let bytes = match &leaf.kind {
        LeafKind::Str(bytes, _) => bytes,
        LeafKind::Typed(code, _, bytes) if *code != TypeCode::Bool => bytes,
        _ => return None,
    };
    key(bytes)
}

/// What texts of the same value have in common.
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
