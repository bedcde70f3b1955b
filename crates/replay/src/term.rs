//! Terms: what a value was made of, as a number. Two values with one term were made by the same
//! operations of the same values, so whatever was said of one holds for the other.
//!
//! A term says nothing about the value itself: it begins with identifiers and sealed envelopes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};

/// What a value was made of.
pub type Term = u128;

/// NULL.
pub const NULL: Term = 0;

/// The last bits of a term: of a value that is never NULL, and of what was computed.
const KIND: Term = 3;
const SOLID: Term = 1;
const COMPUTED: Term = 2;

/// Whether a term's value is not NULL, whatever was recorded: a column's or a client's.
#[must_use]
pub fn is_solid(term: Term) -> bool {
    term & KIND == SOLID
}

/// Hashes terms, which are hashes already.
#[derive(Default)]
pub struct Already(u64);

impl Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    // The last bits say of what kind a term is: most are the same in one half.
    fn write_u128(&mut self, term: u128) {
        self.0 = (term >> 64) as u64 ^ (term as u64);
    }
}

/// A map from terms.
pub type Terms<V> = HashMap<Term, V, BuildHasherDefault<Already>>;
/// A set of terms.
pub type TermSet = HashSet<Term, BuildHasherDefault<Already>>;

/// Makes a term.
pub struct Maker(DefaultHasher, DefaultHasher);

impl Maker {
    /// Of things of this kind.
    #[must_use]
    pub fn new(what: &str) -> Maker {
        let mut made = Maker(DefaultHasher::new(), DefaultHasher::new());
        made.1.write_u8(1);
        made.text(what.as_bytes())
    }

    fn text(mut self, bytes: &[u8]) -> Maker {
        for half in [&mut self.0, &mut self.1] {
            half.write_usize(bytes.len());
            half.write(bytes);
        }
        self
    }

    /// And these bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Maker {
        self.text(bytes)
    }

    /// And this number.
    #[must_use]
    pub fn number(mut self, number: u64) -> Maker {
        self.0.write_u64(number);
        self.1.write_u64(number);
        self
    }

    /// And this term.
    #[must_use]
    pub fn term(mut self, term: Term) -> Maker {
        self.0.write_u128(term);
        self.1.write_u128(term);
        self
    }

    /// And these, in their order.
    #[must_use]
    pub fn terms(self, terms: impl IntoIterator<Item = Term>) -> Maker {
        let (mut made, mut count) = (self, 0);
        for term in terms {
            made = made.term(term);
            count += 1;
        }
        made.number(count)
    }

    fn raw(&self) -> Term {
        Term::from(self.0.finish()) << 64 | Term::from(self.1.finish())
    }

    /// The term of a value that is never NULL.
    #[must_use]
    pub fn solid(self) -> Term {
        self.raw() & !KIND | SOLID
    }

    /// The term of something computed.
    #[must_use]
    pub fn computed(self) -> Term {
        self.raw() & !KIND | COMPUTED
    }
}
