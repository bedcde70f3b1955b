//! Detects whether the client is restoring a dump; then values that are export envelopes are
//! forwarded to the keeper unchanged.
//!
//! A dump created without a client contains export envelopes, and the keeper accepts them. But if
//! an application forwards user input, users could enter any envelope that they have obtained and
//! see its value. Therefore the proxy forwards envelopes only for clients that have sent exactly
//! what pg_dump and pg_restore send at the beginning: `SET row_security = off`, and `set_config`
//! with an empty search path. Data never contains these statements as such; whoever can make the
//! application's connection execute them can read everything anyway. Only literals and rows of COPY
//! are forwarded, never parameters.
//!
//! Invariant: the decision is based on what the client has sent, not on the settings reported by
//! the server.
use rewrite::{Statement, StatementKind};

const WITHOUT_POLICIES: &str = "SET row_security = off";
const WITHOUT_PATH: &str = "SELECT pg_catalog.set_config('search_path', '', false)";

/// Which of the two statements have been sent.
#[derive(Default)]
pub(super) struct Restore {
    without_policies: bool,
    without_path: bool,
}

impl Restore {
    /// A statement with this text is being sent.
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
        // A value is not a statement.
        let value = "SELECT 'SET row_security = off'";
        assert!(!after(&[path, value]));
    }
}
