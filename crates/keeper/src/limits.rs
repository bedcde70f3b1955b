//! Kinds of disclosure, and budgets for them: how much may be disclosed about a column to each
//! principal, as set by its owner.
//!
//! Invariant: the text form is read back as written; an invalid number is an error.

/// A kind of disclosure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// The truth value of a condition for a row.
    Booleans = 0,
    /// The order of two values.
    Orders = 1,
    /// A row's rank among others.
    Ranks = 2,
    /// Which rows are equal: hashes, tokens, groups.
    Tokens = 3,
    /// A value, in an envelope.
    Shown = 4,
}

/// The names of the kinds.
pub const KINDS: [&str; 5] = ["booleans", "orders", "ranks", "tokens", "shown"];
/// A number for each kind.
pub type Counts = [u64; KINDS.len()];

/// An owner's budget for a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Limit for each kind; `u64::MAX`: unlimited.
    limits: Counts,
    /// Beyond the limit, disclosures are logged instead of refused.
    notes_only: bool,
    /// Number of the change that set it. A different number restarts the counts.
    pub epoch: u64,
}

impl Budget {
    /// Parses `booleans=1000, orders=50, then=refuse`. `None`: malformed.
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

    /// The text form, without the epoch.
    pub fn text(&self) -> String {
        let limited = KINDS.iter().zip(self.limits);
        let limited = limited.filter(|(_, limit)| *limit != u64::MAX);
        let mut parts: Vec<String> = limited.map(|(kind, n)| format!("{kind}={n}")).collect();
        let then = if self.notes_only { "note" } else { "refuse" };
        parts.push(format!("then={then}"));
        parts.join(",")
    }

    /// The limit for a kind; `None`: unlimited.
    pub fn limit(&self, what: Told) -> Option<u64> {
        let limit = self.limits.get(what as usize).copied();
        limit.filter(|limit| *limit != u64::MAX)
    }

    /// Whether disclosures beyond the limit are refused.
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
