//! Messages between a backend and the keeper, as they stand in a ring.
//!
//! A message is a [`Header`] and a body. All integers are little-endian; bodies
//! are a fixed part, laid out in the table of [`Kind`], and a variable tail up to
//! the body's length. A request whose kind is *answered* gets exactly one
//! [`Kind::Answer`] or [`Kind::Error`] with its sequence number, in order; a
//! *one-way* request gets none, and an error inside it poisons its result and is
//! told with the next answer of the channel ([`Kind::Error`] in its place).
//!
//! A FID of 0 among operands stands for NULL.

/// Size of a [`Header`] in bytes.
pub const HEADER_BYTES: usize = 16;
/// The largest body in bytes. Longer messages are refused by both sides.
pub const BODY_MAX: usize = 64 * 1024 * 1024;
/// The largest number of rows in one evaluation.
pub const ROWS_MAX: usize = 65_536;
/// In the answer to a promotion: this value and those after it were not promoted,
/// because the redo record has become long; ask for them again.
pub const NOT_PROMOTED: u64 = u64::MAX;
/// In [`Kind::GarbageBegin`]: all partitions of a database that is no more.
pub const WHOLE_DATABASE: u32 = u32::MAX;
/// What [`Kind::RecoveryState`] answers: the keeper needs the WAL from its checkpoint on.
pub const STANDING_RECOVERS: u32 = 0;
/// ...: it serves a cluster that writes, and needs no WAL.
pub const STANDING_SERVES: u32 = 1;
/// ...: it serves a standby, and needs the WAL as that replays it.
pub const STANDING_FOLLOWS: u32 = 2;
/// The largest number of values in one [`Kind::PromoteRuns`].
pub const PROMOTE_RUNS_MAX: usize = 1 << 21;
/// The largest number of operand columns of one evaluation.
pub const COLUMNS_MAX: usize = 256;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $answered:literal, $fixed:literal;)*) => {
        /// What a message is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $variant = $code,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// The kind with this code, if there is one.
            #[inline]
            pub const fn from_u16(code: u16) -> Option<Kind> {
                match code { $($code => Some(Kind::$variant),)* _ => None }
            }

            /// Whether a request of this kind is answered.
            #[inline]
            pub const fn is_answered(self) -> bool {
                match self { $(Kind::$variant => $answered,)* }
            }

            /// Size of the body's fixed part in bytes.
            #[inline]
            pub const fn fixed_bytes(self) -> usize {
                match self { $(Kind::$variant => $fixed,)* }
            }
        }
    };
}

kinds! {
    /// Keeper to backend: the result of an answered request, in the body.
    Answer = 1, false, 0;
    /// Keeper to backend: an error. Body: SQLSTATE 0..5, zeros 5..8; then
    /// message, detail and hint, each ended by a zero byte (may be empty).
    Error = 2, false, 8;

    /// Does nothing. Answer: empty.
    Ping = 16, true, 0;
    /// Everything sent before is done when the answer comes. Answer: empty, or
    /// the first error of the one-way requests since the last answer.
    Fence = 17, true, 0;
    /// One message of the client's Noise handshake. Body: step `u32` 0..4 (1
    /// or 3), zero 4..8, message. Answer: the keeper's message (empty for 3).
    Handshake = 18, true, 8;
    /// Settings of the SQL session that values depend on. Body: name and value,
    /// each ended by a zero byte, for each of `TimeZone`, `DateStyle`,
    /// `IntervalStyle`, `extra_float_digits`, `bytea_output`.
    Settings = 19, false, 0;
    /// Frees the slots of an arena below a limit. Body: arena `u32` 0..4, zero
    /// 4..8, first slot to keep `u64` 8..16.
    Release = 20, false, 16;
    /// Counters of the keeper and the session. Answer: lines `name value`.
    Stats = 21, true, 0;
    /// The backend has left a failed statement: forget untold errors of one-way
    /// requests. Body: empty.
    Forget = 22, false, 0;
    /// What `now` means from here on: when the transaction began, for all of it. Body:
    /// microseconds since 2000-01-01 UTC `i64` 0..8.
    Clock = 23, false, 8;

    /// Stores the content of an envelope. Body: destination FID `u64` 0..8, type
    /// modifier `i32` 8..12, type code `u8` 12, zeros 13..16, envelope.
    PutEnvelope = 32, false, 16;
    /// Stores a value that the database knows anyway (cast from a plain type).
    /// Body: as [`Kind::PutEnvelope`], then the value in binary format.
    PutPlain = 33, false, 16;
    /// Body: FID `u64` 0..8, type code `u8` 8, zeros 9..16. Answer: an envelope
    /// for the session's client, or an export envelope.
    GetEnvelope = 34, true, 16;
    /// Body: as [`Kind::GetEnvelope`], again and again. Answer: for each, in order, an
    /// envelope's length `u32` and the envelope; it ends early at a value that has
    /// none, or when it gets long. Tells no errors: whoever misses an envelope asks
    /// for it alone.
    GetEnvelopes = 36, true, 0;

    /// The partition of a column, made when there is none. Body: database OID
    /// `u32` 0..4, relation OID `u32` 4..8 (0: constants in catalogs), attribute
    /// number `i32` 8..12, type modifier `i32` 12..16, type code `u8` 16, zeros
    /// 17..24. Answer: partition `u32` 0..4, zero 4..8; then a redo record, empty
    /// when the partition's making is known to be in the WAL.
    PartitionOpen = 48, true, 24;
    /// Drops all partitions of a relation. Body: database OID `u32` 0..4,
    /// relation OID `u32` 4..8.
    PartitionDrop = 49, false, 8;
    /// Copies values into columns. Body: count `u32` 0..4, zero 4..8; then for
    /// each: source FID `u64`, partition `u32`, zero `u32`. Answer: the
    /// permanent FIDs, `u64` each ([`NOT_PROMOTED`] from some value on, never the
    /// first); then a redo record, which must be in the WAL before any record that
    /// contains one of the FIDs (may be empty).
    Promote = 50, true, 8;
    /// The redo record of a partition's making is in the WAL and on disk. Body:
    /// partition `u32` 0..4, zero 4..8.
    PartitionLogged = 51, false, 8;
    /// Begins to collect the garbage of a relation's partitions: what is in them now
    /// and is not marked before [`Kind::GarbageSweep`] is garbage; what is put into
    /// them from now on is not. Body: database OID `u32` 0..4, relation OID `u32`
    /// 4..8; then its columns that are alive: attribute number `i32`, type modifier
    /// `i32`, type code `u8`, zeros to 12 bytes. Answer: for each partition, attribute
    /// number `i32`, 1 if its column is alive `u32`, values in it `u64`. With relation
    /// OID 0 nothing begins; the answer is the OIDs of the relations of the database
    /// that have partitions, `u32` each (with database OID 0, too: of the databases). With
    /// relation OID [`WHOLE_DATABASE`] it is about all partitions of the database.
    GarbageBegin = 52, true, 8;
    /// FIDs that are still in use. Those of other partitions are ignored. Body: count
    /// `u32` 0..4, zero 4..8; then FIDs `u64`.
    GarbageMark = 53, false, 8;
    /// The next batch of garbage. Nothing is freed before [`Kind::GarbageSwept`].
    /// Body: empty. Answer: number of values `u64` 0..8, 1 if there was a batch `u64`
    /// 8..16; then a redo record (may be empty).
    GarbageSweep = 54, true, 0;
    /// The redo record of the last batch is in the WAL and on disk: its slots may be
    /// used again. Body: empty.
    GarbageSwept = 55, false, 0;
    /// Ends a collection, wherever it stands. Body: empty.
    GarbageEnd = 56, false, 0;
    /// Whether identifiers resolve. Body: count `u32` 0..4, zero 4..8; then FIDs
    /// `u64`. Answer: how many of them name nothing, `u64`.
    Resolve = 57, true, 8;

    /// Evaluates a program; results are FIDs. Body: program `u32` 0..4,
    /// immediate `i32` 4..8, destination FID of the first row `u64` 8..16, rows
    /// `u32` 16..20, columns `u32` 20..24; then FIDs `u64`, column by column.
    Eval = 64, false, 24;
    /// Evaluates a program whose result is declassified. Body: program `u32`
    /// 0..4, immediate `i32` 4..8, rows `u32` 8..12, columns `u32` 12..16; then
    /// FIDs `u64`, column by column. Answer: for each row, a boolean `u8` (0,
    /// 1; 2 is NULL), an order `i8` (-1, 0, 1; 2 is NULL), or a hash `u64` (0 for
    /// NULL), as the program's result says.
    Declassify = 65, true, 16;
    /// Registers a program for evaluation by handle ([`crate::message::program`]).
    /// Answer: program `u32`.
    ProgramRegister = 66, true, 0;
    /// Forgets a registered program. Body: program `u32` 0..4, zero 4..8.
    ProgramForget = 67, false, 8;
    /// Evaluates registered programs over the same columns; results are FIDs. Body:
    /// rows `u32` 0..4, columns `u32` 4..8, programs `u32` 8..12, zero 12..16; then
    /// for each program: its handle `u32`, zero `u32`, destination FID of the first
    /// row `u64`; then the columns ([`crate::message::column`]). Answer: number of
    /// rows before the first that failed `u32`, zero `u32`; then for each program how
    /// many results are NULL `u32`, and if some are, for each row of the batch a `u8`,
    /// 1 for NULL; then, if a row failed, its error as in the body of [`Kind::Error`].
    /// Does not tell earlier errors of one-way requests.
    EvalBatch = 68, true, 16;
    /// Evaluates a registered program whose result is declassified. Body: program
    /// `u32` 0..4, rows `u32` 4..8, columns `u32` 8..12, wanted `u32` 12..16; then the
    /// columns. Answer: number of rows that it is about `u32`, zero `u32`; then the
    /// results of these rows as in [`Kind::Declassify`]; then, if the next row failed, its
    /// error. It is about all rows, or those before the first that failed, or, when wanted is
    /// not 0, those up to the one with which so many booleans are true: nothing is told of
    /// rows that nobody wants. Does not tell earlier errors, either.
    DeclassifyBatch = 69, true, 16;
    /// Which groups of rows pass: the pairs of a row of a semi or anti join. Body: program
    /// `u32` 0..4, rows `u32` 4..8, columns `u32` 8..12, wanted `u32` 12..16, groups `u32`
    /// 16..20, `u32` 20..24: 0 if a group passes of which a row is true, 1 if one of which none
    /// is; then for each group its number of rows `u32`, all rows together; then the columns.
    /// Answer: as of [`Kind::DeclassifyBatch`], with a group for each row there, and a boolean
    /// `u8` as its result. Rows of a group after the first that is true do not count, nor does
    /// their failure.
    DeclassifyGroups = 70, true, 24;

    /// Adds rows to a set that shall be ranked, and makes the set when there is
    /// none of this number. Body: set `u32` 0..4, columns `u32` 4..8, rows `u32`
    /// 8..12, zero 12..16; then for each column: type code `u8` (0: numbers that
    /// the database knows), flags `u8` ([`crate::message::rank`]), zeros to 8 bytes; then `u64`
    /// column by column: FIDs, or numbers.
    RankAdd = 72, false, 16;
    /// Ranks rows of a set by their columns, the first column first. Body: set
    /// `u32` 0..4, first row `u32` 4..8, limit `u32` 8..12, flags `u32` 12..16
    /// ([`crate::message::rank`]). Answer: for each row from the first on a rank `u32`, dense
    /// from 0; equal rows have equal ranks. With a limit other than 0 that many rows have
    /// one, those that come first; others have [`crate::message::rank::BEYOND`]. Then, if
    /// [`crate::message::rank::STEPS`] are wanted, for each rank the first column `u8` in which it
    /// differs from the rank before (0 for the first rank).
    Rank = 73, true, 16;
    /// A set goes. Body: set `u32` 0..4, zero 4..8.
    RankForget = 74, false, 8;
    /// Where values belong among the keys of an index's page. Body: values `u32` 0..4, keys
    /// `u32` 4..8; then for each value: signature of a key's comparison with it `u32`, flags
    /// `u32` ([`crate::message::search`]), its FID `u64`; then the keys, column by column, `u64`
    /// each: FIDs, or [`crate::message::search::BELOW`] or [`crate::message::search::ABOVE`].
    /// The first value is sought in the first column, each other one in the next, among the
    /// keys that equal the values before it. Answer: for each value how many keys come before
    /// it `u32`, how many come before or equal it `u32`; all are
    /// [`crate::message::search::UNKNOWN`] if one of the FIDs that counted names nothing.
    Search = 78, true, 8;

    /// Tokens of rows, for joins and groups that PostgreSQL makes by hash. Body: number `u64`
    /// 0..8, rows `u32` 8..12, columns `u16` 12..14, 1 if NULL equals NULL `u16` 14..16; then a
    /// type code `u8` for each column; then the columns ([`crate::message::column`]). Answer:
    /// number of rows that it is about `u32`, zero `u32`; then for each of them 16 bytes, zeros
    /// if a column of it is NULL and NULL does not equal NULL; then, if the next row failed, its
    /// error. Of one channel and one number two rows have one token exactly if they are equal
    /// column by column (integers of all widths, and floats of both, are one type); other tokens
    /// say nothing about each other. Does not tell earlier errors of one-way requests.
    Tokens = 76, true, 16;

    /// Adds a value to an aggregate's state. Body: state FID `u64` 0..8, value
    /// FID `u64` 8..16, aggregate signature `u16` 16..18, `u8` 18: 1 if the state
    /// is new, zeros 19..24.
    AggregateStep = 80, false, 24;
    /// Adds the second state to the first. Body: state FIDs `u64` 0..8 and 8..16.
    AggregateCombine = 81, false, 16;
    /// Body: destination FID `u64` 0..8, state FID `u64` 8..16.
    AggregateFinal = 82, false, 16;

    /// Registers an aggregation over batches ([`crate::message::aggregation`]).
    /// Answer: its handle `u32`.
    AggregateRegister = 83, true, 24;
    /// Rows of an aggregation. Body: handle `u32` 0..4, rows `u32` 4..8; then the
    /// columns ([`crate::message::column`]).
    AggregateRows = 84, false, 8;
    /// Takes back rows that found no group, because there is no room for another one.
    /// Body: handle `u32` 0..4, zero 4..8. Answer: rows that may be sent before the
    /// next such request `u64` 0..8, rows given back `u32` 8..12, 1 if there are more
    /// `u32` 12..16; then each column: FIDs `u64`, or, where it is not protected,
    /// values `u64` and for each a byte: 1 if it is NULL.
    AggregateReturn = 85, true, 8;
    /// Finishes groups. Body: handle `u32` 0..4, the largest number of groups `u32`
    /// 4..8, first slot for results `u64` 8..16; then FIDs `u64` of constants for the
    /// condition on groups. Answer: groups `u32` 0..4, flags
    /// `u32` 4..8 (1: there may be more groups, 2: rows are to be taken back, 4: groups
    /// that were handed over found no room and wait for another pass), groups
    /// in this pass `u64` 8..16; then for each key and aggregate a column: FIDs `u64`
    /// (0 for NULL), counts `u64`, or raw keys `u64` and for each a byte: 1 if NULL.
    /// Results take the slots, a group after the other.
    AggregateFetch = 86, true, 16;
    /// Begins an aggregation anew. Body: handle `u32` 0..4, `u32` 4..8: 1 for another
    /// pass, which the groups come into that were handed over and found no room.
    AggregateReset = 87, false, 8;
    /// Forgets an aggregation. Body: handle `u32` 0..4, zero 4..8. The release of
    /// the statement arena forgets all.
    AggregateForget = 88, false, 8;
    /// Hands an aggregation over to the session: its handle ends, and one channel of the
    /// session may merge it. No row may wait to be taken back. Body: as
    /// [`Kind::AggregateForget`]. Answer: its number `u64`. The end of the leader's
    /// statement forgets it.
    AggregateHandOver = 89, true, 8;
    /// Takes the groups and states of an aggregation that was handed over into another one
    /// of the same registration (the condition on groups and the bytes apart). Body: handle
    /// `u32` 0..4, zero 4..8, number `u64` 8..16.
    AggregateMerge = 90, false, 16;

    /// Stores the values of a batch ([`crate::envelope::FLAG_BATCH`]) in consecutive slots.
    /// Body: as [`Kind::PutEnvelope`], the FID being that of the first value. A value that
    /// cannot be read is poisoned, the others are stored.
    PutBatch = 93, false, 16;
    /// Copies the values of many rows into columns, column by column. Body: columns `u32`
    /// 0..4, values of all columns `u32` 4..8; then for each column: partition `u32`,
    /// number of runs `u32`, and runs of source FIDs: first FID `u64`, length `u32` (not
    /// 0), zero `u32`. Answer: 1 `u32` (0: nothing was promoted, ask with
    /// [`Kind::Promote`]), zero `u32`; then for each column the number of runs `u32`, zero
    /// `u32`, and runs of permanent FIDs; then a redo record as in [`Kind::Promote`].
    PromoteRuns = 94, true, 8;

    /// Recovery worker only. Body: system identifier of the cluster `u64` 0..8.
    /// Answer: how the keeper stands `u32` 0..4 ([`STANDING_SERVES`] and others);
    /// timeline `u32` 4..8 (of the later LSN); LSN of its checkpoint `u64` 8..16 (0: its
    /// store is empty and has never been checkpointed); LSN up to which it has the redo
    /// records `u64` 16..24; the store's random number `u64` 24..32 (0: no store).
    RecoveryState = 96, true, 8;
    /// Recovery worker only. One redo record from the WAL. Body: LSN of its end
    /// `u64` 0..8, record.
    Redo = 97, false, 8;
    /// Recovery worker only. All redo records up to an LSN have been sent, and the
    /// cluster writes; the keeper may serve. Body: LSN `u64` 0..8. Answer: empty.
    RecoveryDone = 98, true, 8;
    /// Recovery worker only. Makes everything durable that the keeper knows; it
    /// will not need the WAL before the given LSN any more. Body: LSN `u64` 0..8,
    /// system identifier `u64` 8..16, timeline `u32` 16..20, zero 20..24. Answer: empty.
    Checkpoint = 99, true, 24;
    /// Recovery worker only. All redo records up to an LSN have been sent; the cluster
    /// is a standby, and more will come. The keeper may serve, but promotes nothing.
    /// Body: LSN `u64` 0..8, timeline `u32` 8..12, zero 12..16. Answer: empty.
    Follow = 100, true, 16;
    /// Begins a copy of the store's files, sealed as they are, for a backup. Answer: LSN
    /// `u64` 0..8 and timeline `u32` 8..12 of the checkpoint that they are of, number of
    /// files `u32` 12..16; then for each: length `u64`, length of its name `u32`, zero
    /// `u32`, name.
    StoreCopy = 101, true, 0;
    /// Bytes of a file of the copy that this channel has begun. Body: the file's place
    /// among them `u32` 0..4, zero 4..8, offset `u64` 8..16. Answer: at most a MB, none
    /// at the end.
    StoreRead = 102, true, 16;
}

/// The first [`HEADER_BYTES`] bytes of a message.
///
/// Bytes: body length `u32` 0..4, kind `u16` 4..6, zero 6..8, sequence number
/// `u32` 8..12, zero 12..16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Length of the body in bytes.
    pub length: u32,
    /// Code of a [`Kind`], unchecked.
    pub kind: u16,
    /// Number of the request; an answer repeats its request's.
    pub sequence: u32,
}

impl Header {
    /// Bytes in the ring.
    #[inline]
    pub const fn encode(&self) -> [u8; HEADER_BYTES] {
        let l = self.length.to_le_bytes();
        let k = self.kind.to_le_bytes();
        let s = self.sequence.to_le_bytes();
        [
            l[0], l[1], l[2], l[3], k[0], k[1], 0, 0, s[0], s[1], s[2], s[3], 0, 0, 0, 0,
        ]
    }

    /// The header from the ring's bytes. Any bytes decode; the reader checks
    /// length and kind.
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
/// section 4): a typed stack machine.
///
/// Bytes of a program: number of inputs `u16`, number of constants `u16`, number
/// of instructions `u16`, zero `u16`; then a type code `u8` for each input; then a
/// FID `u64` for each constant; then the instructions, 8 bytes each: code `u8`,
/// zero `u8`, operand `u16`, immediate `i32`. The result is what is left on the
/// stack: exactly one FID, boolean, order or hash. An input of type code 0 is a
/// column of booleans that the database knows ([`crate::message::column`]).
pub mod program {
    /// First handle of registered programs; those below are signatures of the
    /// catalog, which are programs of one instruction.
    pub const FIRST_HANDLE: u32 = 1 << 16;
    /// The largest number of instructions.
    pub const INSTRUCTIONS_MAX: usize = 1024;
    /// The largest depth of the stack.
    pub const STACK_MAX: usize = 64;

    /// Pushes input column `operand`.
    pub const INPUT: u8 = 1;
    /// Pushes constant `operand`.
    pub const CONSTANT: u8 = 2;
    /// Pops the operands of signature `operand`, pushes its result.
    pub const CALL: u8 = 3;
    /// Pops two booleans, pushes their conjunction (three-valued).
    pub const AND: u8 = 4;
    /// Pops two booleans, pushes their disjunction (three-valued).
    pub const OR: u8 = 5;
    /// Pops a boolean, pushes its negation.
    pub const NOT: u8 = 6;
    /// Pops anything, pushes whether it is NULL.
    pub const IS_NULL: u8 = 7;
    /// Pops else-value, then-value and condition, pushes one of the values.
    pub const SELECT: u8 = 8;
    /// Copies the top of the stack into local `operand`.
    pub const STORE: u8 = 9;
    /// Pushes local `operand`.
    pub const LOAD: u8 = 10;
    /// Pops a boolean, pushes whether it is true: false for NULL.
    pub const HOLDS: u8 = 11;
    /// Pushes a boolean that the database knows: `operand` 0, 1, or 2 for NULL.
    pub const BOOLEAN: u8 = 12;
    /// The largest number of locals.
    pub const LOCALS_MAX: usize = 64;
}

/// Columns of a batch (`EvalBatch`, `DeclassifyBatch`, `DeclassifyGroups`, `Tokens`), one after
/// the other: form `u32`, count `u32`, then as the form says.
pub mod column {
    /// `count` FIDs `u64`, one for each row.
    pub const LIST: u32 = 0;
    /// `count` runs that together have as many rows as the batch: first FID `u64`,
    /// length `u32` (not 0), stride `u32`: 1 if the FIDs count up, 0 if they are all
    /// the same.
    pub const RUNS: u32 = 1;
    /// `count` booleans `u8` that the database knows, one for each row: 0, 1, or 2
    /// for NULL.
    pub const BOOLS: u32 = 2;
    /// `count` values `u64` that are not protected, one for each row, then for each a
    /// byte: 1 if it is NULL. Group keys only (`AggregateRows`).
    pub const RAW: u32 = 3;
    /// Size of a run in bytes.
    pub const RUN_BYTES: usize = 16;
}

/// Tokens of rows ([`Kind::Tokens`]).
pub mod token {
    /// Size of a token in bytes.
    pub const BYTES: usize = 16;
}

/// Ranks of rows ([`Kind::RankAdd`], [`Kind::Rank`]).
pub mod rank {
    /// Flag of a column: the largest value comes first.
    pub const DESCENDING: u8 = 1;
    /// Flag of a column: NULL comes before all values, not after them.
    pub const NULLS_FIRST: u8 = 2;
    /// Flag of a ranking: the set goes.
    pub const GOES: u32 = 1;
    /// Flag of a ranking: in which columns neighbours differ is wanted, too.
    pub const STEPS: u32 = 2;
    /// The largest number of rows in a set.
    pub const ROWS_MAX: usize = 1 << 23;
    /// The largest number of columns of a set.
    pub const COLUMNS_MAX: usize = 32;
    /// The largest number of sets of a channel.
    pub const SETS_MAX: usize = 256;
    /// Rank of rows beyond the limit.
    pub const BEYOND: u32 = u32::MAX;
}

/// Places among the keys of an index's page.
pub mod search {
    /// Flag of a value: its column descends.
    pub const DESCENDING: u32 = 1;
    /// Flag of a value: sought where the value before it is, not in a column of its own.
    pub const BESIDE: u32 = 2;
    /// The largest number of values.
    pub const VALUES_MAX: usize = 32;
    /// A key that comes before all values: cut off, or NULL.
    pub const BELOW: u64 = 0;
    /// A key that comes after all values: NULL.
    pub const ABOVE: u64 = u64::MAX;
    /// Place of a value that cannot be told.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// Aggregations over batches.
///
/// Bytes of a registration: number of columns `u16`, of expressions `u16`, of group
/// keys `u16`, of aggregates `u16`, the filter's expression `u16` or [`NONE`], how many
/// aggregations share the bytes `u16` 10..12 (0 as 1), zero 12..16, bytes that groups may
/// take `u64` 16..24; then for each column its type
/// code `u8`, 0 if it is not protected; for each expression its program `u32` (0: a
/// column as it is) and the columns it takes, a number `u16` and so many `u16`; for
/// each key its expression `u16`; for each aggregate its signature `u16` (0: count),
/// its argument's expression `u16` or [`NONE`], its filter's expression `u16` or
/// [`NONE`], flags `u16`; then the program of the condition on groups `u32` (0:
/// none) and what it takes, a number `u16` and so many outputs `u16`, keys first,
/// then aggregates; from [`CONSTANT`] on, constants that come with each fetch.
///
/// [`CONSTANT`]: aggregation::CONSTANT
///
/// [`NONE`]: aggregation::NONE
pub mod aggregation {
    /// No expression.
    pub const NONE: u16 = u16::MAX;
    /// The first number of constants of the condition on groups.
    pub const CONSTANT: u16 = 1 << 15;
    /// Flag of an aggregate: of equal values only one counts.
    pub const DISTINCT: u16 = 1;
}
