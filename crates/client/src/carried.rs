//! Grants on their way to the keeper: each is carried by the first statements that need it,
//! as comments behind their text, until one of them has succeeded.
//!
//! Invariant: a grant counts as known only if the server has analysed a text with it under
//! the session's present keys.

use std::collections::HashSet;
use std::sync::Arc;

/// Grants that are remembered; then all are carried anew.
const KNOWN_MAX: usize = 4096;

/// What a comment that carries a grant begins with.
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
    /// On their way.
    sent: Vec<Arc<[u8]>>,
    /// Something has failed since nothing was on its way.
    failed: bool,
}

impl Carried {
    /// Whether the keeper has a grant already.
    pub fn knows(&self, grant: &Arc<[u8]>) -> bool {
        self.known.contains(grant)
    }

    /// The comment for a grant in an envelope.
    pub fn carry(&mut self, grant: &Arc<[u8]>, envelope: &str) -> String {
        self.sent.push(Arc::clone(grant));
        comment(envelope)
    }

    /// The server has told an error: it may not have come to some of the texts.
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

    /// A grant is carried until a text with it has succeeded; with the bug a statement that
    /// failed before it was analysed leaves all later ones without their grant.
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
