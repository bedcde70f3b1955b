//! Field identifiers (Fedb, section 4.1): 64 bits, consisting of a partition and a slot. They
//! reveal nothing about the value.

/// Number of bits for the slot within its partition.
pub const SLOT_BITS: u32 = 44;
/// Number of bits for the partition.
pub const PARTITION_BITS: u32 = 20;
/// The largest slot number.
pub const SLOT_MAX: u64 = (1 << SLOT_BITS) - 1;
/// Partitions from here up are temporary arenas of sessions; those below are columns. Partition 0
/// is never used, so a zero FID is invalid.
pub const ARENA_BASE: u32 = 1 << (PARTITION_BITS - 1);
/// One past the largest partition number.
pub const PARTITION_END: u32 = 1 << PARTITION_BITS;

/// Number of FIDs that [`alike`] compares at a time.
const BLOCK: usize = 32;
/// Number of FIDs at the front that it compares one by one.
const HEAD: usize = 4;

/// A field identifier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct Fid(pub u64);

impl Fid {
    /// The FID of no value.
    pub const INVALID: Fid = Fid(0);

    /// Composes a FID. Excess bits of the arguments are ignored.
    pub const fn new(partition: u32, slot: u64) -> Fid {
        Fid((((partition % PARTITION_END) as u64) << SLOT_BITS) | (slot & SLOT_MAX))
    }

    /// The partition number.
    pub const fn partition(self) -> u32 {
        (self.0 >> SLOT_BITS) as u32
    }

    /// The slot within the partition.
    pub const fn slot(self) -> u64 {
        self.0 & SLOT_MAX
    }

    /// Whether this FID is in a session's temporary arena.
    pub const fn is_temporary(self) -> bool {
        self.partition() >= ARENA_BASE
    }
}

/// Number of items at the front whose FIDs agree with the first one's in all bits from `low` up.
/// With [`SLOT_BITS`] these are the FIDs of one partition. Long runs take some two instructions per
/// item, because blocks are compared as a whole.
#[inline]
pub fn alike<T>(items: &[T], low: u32, fid: impl Fn(&T) -> Fid) -> usize {
    let Some(first) = items.first().map(&fid) else {
        return 0;
    };
    let bits = |item: &T| fid(item).0 ^ first.0;
    let other = |item: &T| bits(item) >> low != 0;
    if let Some(end) = items.iter().take(HEAD).position(other) {
        return end;
    }
    let (blocks, _) = items.as_chunks::<BLOCK>();
    let same = |block: &&[T; BLOCK]| block.iter().fold(0, |all, item| all | bits(item)) >> low == 0;
    let whole = blocks.iter().take_while(same).count() * BLOCK;
    let rest = items.get(whole..).unwrap_or_default();
    whole + rest.iter().position(other).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a run is found wherever it is: with a bug a FID of another column passes for one
    /// of this column, which grants and locks of a whole run would then be wrong for.
    #[test]
    fn runs_end() {
        let fid = |slot: u64| Fid::new(7, slot);
        for length in [0, 1, 3, 4, 5, 31, 32, 33, 64, 100] {
            let mut fids: [Fid; 140] = core::array::from_fn(|at| fid(at as u64 * 65_537));
            assert_eq!(alike(&fids[..length], SLOT_BITS, |f| *f), length);
            fids[length] = Fid::new(6, 0);
            assert_eq!(alike(&fids, SLOT_BITS, |f| *f), length.max(1), "{length}");
        }
        let fids = [fid(3), fid(4), fid(1 << 16)];
        assert_eq!(alike(&fids, 16, |f| *f), 2);
    }
}
