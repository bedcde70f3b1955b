//! Whether the client restores a dump: then values that are export envelopes go on to the keeper as they are.
//!
//! A dump that was made without a client holds export envelopes, and the keeper takes them in. But an application
//! that passed on whatever its users type would show them the value behind any envelope that they were given. So the
//! proxy passes them on only to who has said what pg_dump and pg_restore say at the beginning, in these words:
//! `SET row_security = off`, and the search path emptied by `set_config`. Data never says that; whoever can have the
//! application's connection say it can read everything anyway. Only rows of COPY and literals are passed on, never parameters.
//!
//! Invariant: what counts is what the client has sent, not what the server reports of its settings.
use rewrite::{Statement, StatementKind};

const WITHOUT_POLICIES: &str = "SET row_security = off";
const WITHOUT_PATH: &str = "SELECT pg_catalog.set_config('search_path', '', false)";

/// See the module.
#[derive(Default)]
pub(super) struct Restore {
    without_policies: bool,
    without_path: bool,
}

impl Restore {
    /// A statement is sent, with this text.
    pub(super) fn sent(&mut self, statement: &Statement, text: &str) {
        match &statement.kind {
            _ if text == WITHOUT_PATH => self.without_path = true,
            _ if text == WITHOUT_POLICIES => self.without_policies = true,
            StatementKind::Discard { all: true } => *self = Restore::default(),
            StatementKind::Set { name } => {
                self.without_policies &= !matches!(name.as_str(), "row_security" | "");
                self.without_path &= !matches!(name.as_str(), "search_path" | "");
            }
            _ if statement.changes_search_path && statement.kind == StatementKind::Select => {
                self.without_path = false;
            }
            _ => {}
        }
    }

    /// Whether a dump is being restored.
    pub(super) fn is_on(&self) -> bool {
        self.without_policies && self.without_path
    }
}

#[cfg(test)]
mod tests {
    use super::Restore;
    use rewrite::{Schema, analyze};

    fn after(texts: &[&str]) -> bool {
        let mut restore = Restore::default();
        for text in texts {
            for statement in analyze(text, &Schema::default()).unwrap() {
                restore.sent(&statement, &text[statement.range.clone()]);
            }
        }
        restore.is_on()
    }

    #[test]
    fn is_said_as_pg_dump_says_it() {
        let path = "-- dump\nSELECT pg_catalog.set_config('search_path', '', false);";
        let policies = "SET row_security = off;\n";
        assert!(after(&[path, policies]) && after(&[policies, path, "SELECT 1", "BEGIN"]));
        assert!(!after(&[path]) && !after(&[policies]));
        for end in [
            "RESET ALL",
            "DISCARD ALL",
            "SET row_security = on",
            "SET search_path TO a",
        ] {
            assert!(!after(&[path, policies, end]), "{end}");
        }
        let other = "SELECT pg_catalog.set_config('search_path', 'a', false)";
        assert!(!after(&[path, policies, other]));
        // A value is no statement.
        let value = "SELECT 'SET row_security = off'";
        assert!(!after(&[path, value]));
    }
}
