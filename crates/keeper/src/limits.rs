//! What can be told, and budgets of it: how much of a column may be told to each principal, as its owner says.
//!
//! Invariant: what was said is read again as it was written; a number that is none is an error.

/// What can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The truth of a condition for a row.
    Booleans = 0,
    /// The order of two values.
    Orders = 1,
    /// A row's place among others.
    Ranks = 2,
    /// Which rows are equal: hashes, tokens, groups.
    Tokens = 3,
    /// A value, in an envelope.
    Shown = 4,
}

/// Their names.
pub const KINDS: [&str; 5] = ["booleans", "orders", "ranks", "tokens", "shown"];
/// How many of each.
pub type Counts = [u64; KINDS.len()];

/// What an owner allows of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// So many of each kind; `u64::MAX`: as many as there are.
    limits: Counts,
    /// At the limit it is told all the same, and noted.
    notes_only: bool,
    /// Number of the change that it came with: another one begins anew.
    pub epoch: u64,
}

impl Budget {
    /// Reads `booleans=1000, orders=50, then=refuse`. None: it is no budget.
    pub fn read(text: &str, epoch: u64) -> Option<Budget> {
        let mut budget = Budget {
            limits: [u64::MAX; KINDS.len()],
            notes_only: false,
            epoch,
        };
        for part in text.split(',') {
            let (name, value) = part.split_once('=')?;
            match (name.trim(), value.trim()) {
                ("then", "refuse") => budget.notes_only = false,
                ("then", "note") => budget.notes_only = true,
                (name, value) => {
                    let at = KINDS.iter().position(|kind| *kind == name)?;
                    *budget.limits.get_mut(at)? = value.parse().ok()?;
                }
            }
        }
        Some(budget)
    }

    /// As it is read, without its epoch.
    pub fn text(&self) -> String {
        let limited = KINDS.iter().zip(self.limits);
        let limited = limited.filter(|(_, limit)| *limit != u64::MAX);
        let mut parts: Vec<String> = limited.map(|(kind, n)| format!("{kind}={n}")).collect();
        let then = if self.notes_only { "note" } else { "refuse" };
        parts.push(format!("then={then}"));
        parts.join(",")
    }

    /// How many of a kind; none: as many as there are.
    pub fn limit(&self, what: Told) -> Option<u64> {
        let limit = self.limits.get(what as usize).copied();
        limit.filter(|limit| *limit != u64::MAX)
    }

    /// Whether what is beyond is refused.
    pub fn refuses(&self) -> bool {
        !self.notes_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let budget = Budget::read(" orders = 50 ,shown=7", 3);
        assert_eq!(budget.map(|b| b.limit(Told::Orders)), Some(Some(50)));
        assert_eq!(budget.map(|b| b.limit(Told::Ranks)), Some(None));
        assert_eq!(budget.map(|b| b.refuses()), Some(true));
        let again = budget.and_then(|b| Budget::read(&b.text(), 3));
        assert_eq!(again, budget);
        let noted = Budget::read("then=note", 1);
        assert_eq!(noted.map(|b| b.refuses()), Some(false));
        for text in [
            "",
            "orders",
            "orders=-1",
            "orders=x",
            "color=3",
            "then=mask",
        ] {
            assert_eq!(Budget::read(text, 1), None, "{text}");
        }
    }
}
