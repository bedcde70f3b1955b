//! What permanent identifiers name: what their values were made of, and which value it is if an
//! identifier was freed and given to another one.
//!
//! Invariant: values that one identifier named one after the other have different terms.

use crate::term::{Maker, Quickly, Term};
use contract::Fid;

/// How often an identifier was freed.
type Freed = Quickly<u64, u32>;

/// Permanent identifiers.
#[derive(Default)]
pub struct Stored {
    made_of: Quickly<(u64, u32), Term>,
    freed: Freed,
}

impl Stored {
    fn key(&self, fid: Fid) -> (u64, u32) {
        (fid.0, self.freed.get(&fid.0).copied().unwrap_or(0))
    }

    /// What its value was made of; if nobody recorded that, it is the value of this identifier.
    #[must_use]
    pub fn term(&self, fid: Fid) -> Term {
        let key = self.key(fid);
        self.made_of.get(&key).copied().unwrap_or_else(|| {
            let made = Maker::new("column").number(fid.0);
            match key.1 {
                0 => made.solid(),
                times => made.number(u64::from(times)).solid(),
            }
        })
    }

    /// A value was stored there.
    pub fn store(&mut self, fid: Fid, term: Term) {
        self.made_of.insert(self.key(fid), term);
    }

    /// How many values were stored.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.made_of.len() as u64
    }

    /// Whether a value is known to have been stored there.
    #[must_use]
    pub fn has(&self, fid: Fid) -> bool {
        self.made_of.contains_key(&self.key(fid))
    }

    /// From now on these name other values. Their numbers are little-endian.
    pub fn free(&mut self, fids: &[u8]) {
        let (fids, _) = fids.as_chunks::<8>();
        for fid in fids {
            *self.freed.entry(u64::from_le_bytes(*fid)).or_default() += 1;
        }
    }

    /// Goes back to when these had been freed.
    pub fn go_back(&mut self, then: Stored) {
        self.freed = then.freed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An identifier that was freed names another value, and the first one again at a time before
    /// that. Bug: answers about a row are those about one that was deleted.
    #[test]
    fn values_of_one_identifier() {
        let (mut now, mut then) = (Stored::default(), Stored::default());
        let fid = Fid(1 << 44 | 7);
        let first = now.term(fid);
        now.free(&fid.0.to_le_bytes());
        let second = now.term(fid);
        assert_ne!(first, second);
        let made = Maker::new("made").solid();
        now.store(fid, made);
        assert!(now.has(fid));
        assert_eq!(now.term(fid), made);
        now.free(&fid.0.to_le_bytes());
        assert!(![first, second, made].contains(&now.term(fid)));
        then.free(&fid.0.to_le_bytes());
        now.go_back(then);
        assert_eq!(now.term(fid), made);
        now.go_back(Stored::default());
        assert_eq!(now.term(fid), first);
    }
}
