//! Terms: what a value was made of, as a number. Two values with one term were made by the same
//! operations of the same values, so whatever was said of one holds for the other.
//!
//! A term says nothing about the value itself: it begins with identifiers and sealed envelopes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

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

/// Hashes identifiers and small keys. Nobody gains by a collision: whoever asks has the recording.
#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = folded(self.0 ^ number ^ LANES[0], LANES[1]);
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }
}

/// A map from identifiers and small keys.
pub type Quickly<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Odd numbers without a pattern (digits of pi).
const LANES: [u64; 4] = [
    0x2436_f388_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
];

/// Both halves of a product, so that each bit of a number has a say in each bit of the result.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Makes a term: two lanes of 64 bits, each fed with everything. A replayer makes one for each
/// value that it is asked about, so this is most of its work.
pub struct Maker(u64, u64);

impl Maker {
    /// Of things of this kind.
    #[must_use]
    pub fn new(what: &str) -> Maker {
        Maker(LANES[2], LANES[3]).text(what.as_bytes())
    }

    fn word(&mut self, word: u64) {
        let (a, b) = (self.0, self.1);
        self.0 = folded(a ^ word, LANES[0]).wrapping_add(b);
        self.1 = folded(b ^ word.rotate_left(32), LANES[1]) ^ a.rotate_left(17);
    }

    fn text(mut self, bytes: &[u8]) -> Maker {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
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
        self.word(number);
        self
    }

    /// And this term.
    #[must_use]
    pub fn term(mut self, term: Term) -> Maker {
        self.word(term as u64);
        self.word((term >> 64) as u64);
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
        let high = folded(self.0 ^ LANES[3], LANES[1]);
        let low = folded(self.1 ^ LANES[2], LANES[0] ^ self.0);
        Term::from(high) << 64 | Term::from(low)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms of different things differ, in both halves: many that are alike are tried.
    #[test]
    fn apart() {
        let mut made: Vec<Term> = Vec::new();
        for n in 0..50_000u64 {
            made.push(Maker::new("column").number(n).computed());
            made.push(Maker::new("column").number(n << 40).computed());
            made.push(Maker::new("plain").number(n).computed());
            made.push(Maker::new("call").number(n & 255).number(n >> 8).computed());
            let (a, b) = (Term::from(n), Term::from(n) << 64);
            made.push(Maker::new("row").terms([a, b]).computed());
            made.push(Maker::new("row").terms([b, a]).computed());
            made.push(Maker::new("cell").bytes(&n.to_le_bytes()[..3]).computed());
        }
        // Of three bytes, and a pair of zeros, some are the same.
        let same = made.len() - TermSet::from_iter(made.iter().copied()).len();
        assert_eq!(same, 2);
        let halves = |half: fn(Term) -> u64| -> HashSet<u64> {
            made.iter().map(|term| half(*term)).collect()
        };
        assert!(halves(|term| (term >> 64) as u64).len() > made.len() - 5);
        assert!(halves(|term| term as u64 >> 2).len() > made.len() - 5);
    }
}
