//! Messages between a backend and the keeper, as they are in a ring.
//!
//! A message is a [`Header`] and a body. All integers are little-endian; bodies are fields, and
//! tails up to the body's length, as defined in the [`table`]. An *answered* request gets exactly
//! one [`Kind::Answer`] or [`Kind::Error`] with its sequence number, in order. A *one-way* request
//! gets none; if it fails, its result is poisoned, and the next answer of the channel is replaced
//! by the error ([`Kind::Error`]).
//!
//! A FID of 0 among operands represents NULL.

#[macro_use]
mod macros;
pub mod column;
pub mod table;

pub use table::{Kind, answer, body};

numbers! {
    /// Size of a [`Header`] in bytes.
    HEADER_BYTES: usize = 16;
    /// The largest body in bytes. Longer messages are refused by both sides.
    BODY_MAX: usize = 64 * 1024 * 1024;
    /// The largest number of rows in one evaluation.
    ROWS_MAX: usize = 65_536;
    /// In the answer to a promotion: this value and those after it were not promoted,
    /// because the redo record has become long; ask for them again.
    NOT_PROMOTED: u64 = u64::MAX;
    /// In [`Kind::GarbageBegin`]: all partitions of a database that is no more.
    WHOLE_DATABASE: u32 = u32::MAX;
    /// The largest number of FIDs of a column in one lease.
    LEASE_MAX: u32 = 1024;
    /// The largest number of columns in one lease.
    LEASE_COLUMNS_MAX: u32 = 64;
    /// What [`Kind::RecoveryState`] answers: the keeper needs the WAL from its checkpoint on.
    STANDING_RECOVERS: u32 = 0;
    /// ...: it serves a cluster that writes, and needs no WAL.
    STANDING_SERVES: u32 = 1;
    /// ...: it serves a standby, and needs the WAL as that replays it.
    STANDING_FOLLOWS: u32 = 2;
    /// The largest number of values in one [`Kind::PromoteRuns`].
    PROMOTE_RUNS_MAX: usize = 1 << 21;
    /// The largest number of operand columns of one evaluation.
    COLUMNS_MAX: usize = 256;
    /// In place of a boolean or an order that is declassified: it is NULL.
    NULL_RESULT: u8 = 2;
}

/// The first [`HEADER_BYTES`] bytes of a message.
///
/// Bytes: body length `u32` 0..4, kind `u16` 4..6, zero 6..8, sequence number `u32` 8..12, zero
/// 12..16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Length of the body in bytes.
    pub length: u32,
    /// Code of a [`Kind`], unchecked.
    pub kind: u16,
    /// Number of the request; the answer has the same.
    pub sequence: u32,
}

impl Header {
    /// Encodes the header.
    #[inline]
    pub const fn encode(&self) -> [u8; HEADER_BYTES] {
        let l = self.length.to_le_bytes();
        let k = self.kind.to_le_bytes();
        let s = self.sequence.to_le_bytes();
        [
            l[0], l[1], l[2], l[3], k[0], k[1], 0, 0, s[0], s[1], s[2], s[3], 0, 0, 0, 0,
        ]
    }

    /// Decodes the header. All bytes are valid; the reader checks length and kind.
    #[inline]
    pub const fn decode(b: &[u8; HEADER_BYTES]) -> Header {
        Header {
            length: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            kind: u16::from_le_bytes([b[4], b[5]]),
            sequence: u32::from_le_bytes([b[8], b[9], b[10], b[11]]),
        }
    }
}

/// Programs with more than one instruction (design, section 7; Cipherbase,
/// section 4): a typed stack machine ([`table::Program`]).
pub mod program {
    numbers! {
        /// First handle of registered programs; those below are signatures of the
        /// catalog, which are programs of one instruction.
        FIRST_HANDLE: u32 = 1 << 16;
        /// The largest number of instructions.
        INSTRUCTIONS_MAX: usize = 1024;
        /// The largest depth of the stack.
        STACK_MAX: usize = 64;

        /// Pushes input column `operand`.
        INPUT: u8 = 1;
        /// Pushes constant `operand`.
        CONSTANT: u8 = 2;
        /// Pops the operands of signature `operand`, pushes its result.
        CALL: u8 = 3;
        /// Pops two booleans, pushes their conjunction (three-valued).
        AND: u8 = 4;
        /// Pops two booleans, pushes their disjunction (three-valued).
        OR: u8 = 5;
        /// Pops a boolean, pushes its negation.
        NOT: u8 = 6;
        /// Pops anything, pushes whether it is NULL.
        IS_NULL: u8 = 7;
        /// Pops else-value, then-value and condition, pushes one of the values.
        SELECT: u8 = 8;
        /// Copies the top of the stack into local `operand`.
        STORE: u8 = 9;
        /// Pushes local `operand`.
        LOAD: u8 = 10;
        /// Pops a boolean, pushes whether it is true: false for NULL.
        HOLDS: u8 = 11;
        /// Pushes a boolean that the database knows: `operand` 0, 1, or 2 for NULL.
        BOOLEAN: u8 = 12;
        /// Pops a value, pushes whether it equals one of the list that is input `operand`
        /// ([`column::VALUES`]; three-valued, as `= ANY`). Not in aggregations.
        AMONG: u8 = 13;
        /// The largest number of locals.
        LOCALS_MAX: usize = 64;
    }
}

/// Tokens of rows ([`Kind::Tokens`]).
pub mod token {
    numbers! {
        /// Size of a token in bytes.
        BYTES: usize = 16;
    }
}

/// Ranks of rows ([`Kind::RankAdd`], [`Kind::Rank`]).
pub mod rank {
    numbers! {
        /// Flag of a column: the largest value comes first.
        DESCENDING: u8 = 1;
        /// Flag of a column: NULL comes before all values, not after them.
        NULLS_FIRST: u8 = 2;
        /// Flag of a ranking: the set goes.
        GOES: u32 = 1;
        /// Flag of a ranking: in which columns neighbours differ is wanted, too.
        STEPS: u32 = 2;
        /// The largest number of rows in a set.
        ROWS_MAX: usize = 1 << 23;
        /// The largest number of columns of a set.
        COLUMNS_MAX: usize = 32;
        /// The largest number of sets of a channel.
        SETS_MAX: usize = 256;
        /// Rank of rows beyond the limit.
        BEYOND: u32 = u32::MAX;
    }
}

/// Snapshots of statements ([`Kind::Snapshot`]).
pub mod snapshot {
    numbers! {
        /// Flag: the statement may see rows that others changed after its snapshot, because it
        /// changes or locks rows, and reads what is committed.
        FOLLOWS: u32 = 1;
        /// Flag: it is no snapshot, but a statement that was told has ended.
        ENDS: u32 = 2;
        /// The largest number of transactions in progress that are told.
        RUNNING_MAX: usize = 4096;
        /// The hash of no text.
        HASH_BEGIN: u64 = 0xcbf2_9ce4_8422_2325;
        /// By what it is multiplied after each byte.
        HASH_FACTOR: u64 = 0x0100_0000_01b3;
    }

    /// Tells the texts of statements apart: FNV-1a, without blanks and semicolons at both ends.
    #[must_use]
    pub fn hash(text: &str) -> u64 {
        let text = text.trim_matches([' ', '\t', '\r', '\n', ';']);
        let hashed = text.bytes().fold(HASH_BEGIN, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(HASH_FACTOR)
        });
        hashed.max(1)
    }
}

/// Under which key an envelope is wanted.
pub mod delivery {
    numbers! {
        /// The session's.
        SESSION: u8 = 0;
        /// The column's, if the session's client may have that; else the session's.
        DELIVERY: u8 = 1;
        /// The session's, and the column's comes with the value, if the client may have that.
        KEYED: u8 = 2;
        /// That of exports, of a constant of a catalog: for the text of a routine.
        CONSTANT: u8 = 3;
        /// The session's, for a message: a notice, an error, a text that quotes constants.
        QUOTED: u8 = 4;
        /// Longer envelopes are not kept.
        KEPT_BYTES: u32 = 264;
    }
}

/// Places among the keys of an index's page.
pub mod search {
    numbers! {
        /// Flag of a value: its column descends.
        DESCENDING: u32 = 1;
        /// Flag of a value: sought where the value before it is, not in a column of its own.
        BESIDE: u32 = 2;
        /// Flag of a value: not its FID stands in its place, but the number of the value that the
        /// same message promotes.
        MOVED: u32 = 4;
        /// The largest number of values.
        VALUES_MAX: usize = 32;
        /// A key that comes before all values: cut off, or NULL.
        BELOW: u64 = 0;
        /// A key that comes after all values: NULL.
        ABOVE: u64 = u64::MAX;
        /// Place of a value that cannot be told.
        UNKNOWN: u32 = u32::MAX;
        /// Numbers of pages that a keeper remembers are below.
        PAGES_MAX: u32 = 4096;
        /// No page.
        NO_PAGE: u32 = u32::MAX;
        /// So many pages are looked at by one message at most.
        LEVELS_MAX: usize = 8;
        /// So many keys, counted in each column, are remembered for a channel at most.
        REMEMBERED_MAX: usize = 512 * 1024;
    }
}

/// Aggregations over batches ([`body::AggregateRegister`]).
pub mod aggregation {
    numbers! {
        /// No expression.
        NONE: u16 = u16::MAX;
        /// The first number of constants of the condition on groups.
        CONSTANT: u16 = 1 << 15;
        /// Flag of an aggregate: of equal values only one counts.
        DISTINCT: u16 = 1;
        /// Flag of an answer: there may be more groups.
        MORE: u32 = 1;
        /// Flag of an answer: rows are to be taken back.
        RETURNED: u32 = 2;
        /// Flag of an answer: groups that were handed over found no room, and wait for another
        /// pass.
        UNMERGED: u32 = 4;
    }
}

/// Ledger tables ([`body::LedgerRow`]).
pub mod ledger {
    numbers! {
        /// In place of an attribute's number: a partition is a table's log. Nothing but its own
        /// messages puts anything there, and nothing takes it away.
        ATTRIBUTE: i32 = 30000;
        /// A version was written.
        WRITE: u32 = 1;
        /// A version was deleted.
        END: u32 = 2;
        /// An ended version was erased.
        ERASE: u32 = 3;
        /// A walk has found a version in the table.
        CURRENT: u32 = 4;
        /// A walk has found a version in the history.
        PAST: u32 = 5;
        /// A row of a result that shall be signed shows a version. Comes before the row's cells.
        SHOWN: u32 = 6;
        /// A version of a dump's history was restored.
        RESTORE: u32 = 7;
        /// Numbers of the places of tables are less.
        PLACES: u32 = 64;
        /// Columns of a table.
        COLUMNS_MAX: u32 = 1600;
        /// Sources of the columns of a result are less.
        SOURCES: u64 = 256;
        /// Only the checkpoint is wanted.
        CHECKPOINT: u32 = 0;
        /// And the proof that it goes on from an older size.
        CONSISTENCY: u32 = 1;
        /// And the proof that a version is in it.
        INCLUSION: u32 = 2;
    }
}

/// Values of an index's expression, which belong to the table and are in partitions of their own.
pub mod derived {
    numbers! {
        /// Attribute numbers from here on are no columns': what an index's expression makes of
        /// one column has this plus the column's number.
        ATTRIBUTE: i32 = 65536;
        /// ... of several columns: this plus a hash of their names.
        SEVERAL: i32 = 131_072;
        /// Stands before each column's name in the name of what is made of several.
        MARK: u8 = 1;
        /// Maximum number of these columns.
        SOURCES_MAX: u32 = 16;
    }
}
