//! Sending grants to the keeper: each grant is appended as a comment to the text of the first
//! statements that need it, until one of them has succeeded.
//!
//! Invariant: a grant counts as known only if the server has analysed a text containing it under
//! the session's current keys.

use std::collections::HashSet;
use std::sync::Arc;

/// Number of grants that are remembered; beyond it all are sent again.
const KNOWN_MAX: usize = 4096;

/// Start of a comment that carries a grant.
const BEGIN: &str = "\n/*confide:";
const END: &str = "*/";

/// The comment for an envelope.
pub(crate) fn comment(envelope: &str) -> String {
    [BEGIN, envelope, END].concat()
}

/// See the module.
#[derive(Default)]
pub(crate) struct Carried {
    known: HashSet<Arc<[u8]>>,
    /// Grants sent but not yet confirmed.
    sent: Vec<Arc<[u8]>>,
    /// An error has occurred since the last time no grant was unconfirmed.
    failed: bool,
}

impl Carried {
    /// Whether the keeper already has a grant.
    pub fn knows(&self, grant: &Arc<[u8]>) -> bool {
        self.known.contains(grant)
    }

    /// Returns the comment for a grant in an envelope.
    pub fn carry(&mut self, grant: &Arc<[u8]>, envelope: &str) -> String {
        self.sent.push(Arc::clone(grant));
        comment(envelope)
    }

    /// The server has reported an error: it may not have processed some of the texts.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// The server has answered everything.
    pub fn arrive(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if self.known.len() + sent.len() > KNOWN_MAX {
            self.known.clear();
        }
        if !std::mem::take(&mut self.failed) {
            self.known.extend(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grant is sent until a text containing it has succeeded. The bug this guards against: if a
    /// statement fails before it is analysed, all later statements lack its grant.
    #[test]
    fn until_it_arrives() {
        let mut carried = Carried::default();
        let grant: Arc<[u8]> = Arc::from([1, 2, 3]);
        assert_eq!(carried.carry(&grant, "cfd1.x"), "\n/*confide:cfd1.x*/");
        carried.fail();
        carried.arrive();
        assert!(!carried.knows(&grant));
        carried.carry(&grant, "cfd1.x");
        carried.arrive();
        assert!(carried.knows(&grant));
    }
}
