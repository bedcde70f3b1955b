//! How long proofs are, and how long they take to be verified, by the size of the log: a line of
//! JSON for each size, for `make bench-ledger`.
//!
//! Leaves are simulated: all are the same, so that a log of any size takes a hash for each level. Proofs
//! and what verifies them are those of the keeper and of `confide verify`.

use ledger::proof::{Consistency, Inclusion};
use ledger::tree::{Nodes, prove_consistency, prove_inclusion, root};
use ledger::{Error, Hash};
use std::time::Instant;

const HASH_BYTES: usize = 32;
/// So many proofs are made and verified for each size.
const PROOFS: u64 = 2000;

/// Hashes of the complete subtrees, by level.
struct Same(Vec<Hash>);

impl Nodes for Same {
    fn node(&self, level: u32, _: u64) -> Option<Hash> {
        self.0.get(level as usize).copied()
    }
}

fn main() -> Result<(), Error> {
    let leaf = Hash::leaf(b"a leaf");
    let mut levels = vec![leaf];
    for _ in 0..40 {
        let below = levels.last().copied().unwrap_or(leaf);
        levels.push(Hash::node(&below, &below));
    }
    let log = Same(levels);
    for digits in 3..=8 {
        let size = 10_u64.pow(digits);
        let now = root(&log, size)?;
        let indexes = (0..PROOFS).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % size);
        let made = Instant::now();
        let inclusions: Result<Vec<Inclusion>, Error> = indexes
            .clone()
            .map(|index| prove_inclusion(&log, index, size))
            .collect();
        let (inclusions, made) = (inclusions?, micros(made));
        let begun = Instant::now();
        for proof in &inclusions {
            proof.verify(&leaf, &now)?;
        }
        let verified = micros(begun);
        let longest = inclusions.iter().map(|p| p.path.len()).max().unwrap_or(0);
        let old = indexes.map(|old| old + 1).collect::<Vec<u64>>();
        let roots: Result<Vec<Hash>, Error> = old.iter().map(|old| root(&log, *old)).collect();
        let goes_on: Result<Vec<Consistency>, Error> = old
            .iter()
            .map(|old| prove_consistency(&log, *old, size))
            .collect();
        let (roots, goes_on) = (roots?, goes_on?);
        let begun = Instant::now();
        for (proof, old) in goes_on.iter().zip(&roots) {
            proof.verify(old, &now)?;
        }
        let followed = micros(begun);
        let widest = goes_on.iter().map(|p| p.path.len()).max().unwrap_or(0);
        println!(
            "{{\"leaves\": {size}, \"inclusion, bytes\": {}, \"make it, us\": {made:.2}, \
             \"verify it, us\": {verified:.2}, \"consistency, bytes\": {}, \
             \"verify that, us\": {followed:.2}}}",
            longest * HASH_BYTES,
            widest * HASH_BYTES,
        );
    }
    Ok(())
}

/// Microseconds for one of them.
#[allow(clippy::cast_precision_loss)]
fn micros(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64 / 1000.0 / PROOFS as f64
}
