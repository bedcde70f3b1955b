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
