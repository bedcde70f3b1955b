//! Why an action is not done.

use std::fmt;

/// A rule, and what breaks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The rule's name, as docs/maintenance.md has it.
    pub rule: &'static str,
    /// What breaks it.
    pub what: String,
}

impl Refused {
    pub(crate) fn new(rule: &'static str, what: impl Into<String>) -> Refused {
        Refused {
            rule,
            what: what.into(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule \"{}\": {}", self.rule, self.what)
    }
}
