//! Every kind of message, its code, what is in its body, and in its answer if it has one. The
//! only place where that is said: types for Rust come from it by the macros in `macros.rs`,
//! the C header, the golden vectors and docs/messages.md by `make generate`.
//!
//! To add a message: an entry here, with a code that no other has; a handler in the keeper
//! (`dispatch/mod.rs` names it, and it gets the decoded body); `make generate`; and a sender in
//! the extension, which fills the struct `CfdWire<Name>` and reads the answer with
//! `cfd_decode_<name>_answer`. Every change here changes [`crate::VERSION`].
//!
//! An entry: `Name = code, body <'a> { fields; tails } answer <'a> { fields; tails };`, the
//! lifetime only where there are tails, `answer` only if the kind is answered. A field is
//! `name: type`, and `=> n zeros` where so many zero bytes follow it. A tail is
//! `name: type [counts]`: the fields whose product is the number of its elements, or none if
//! it goes to the end. Fields lie on multiples of their size (a test says which does not).
//!
//! Long because it is one table.

use super::column::Columns;
use crate::codec::{Each, Fixed, List, Malformed, Part, Reader, Sink};
use crate::describe::{Field, Form, Message, Structure, Tail};
use crate::{Fid, TypeCode};
use core::ffi::CStr;

record! {
    /// A value that goes out in an envelope.
    Wanted {
        /// Its FID.
        fid: Fid,
        /// Its type.
        t: TypeCode,
        /// [`super::delivery::SESSION`] and others.
        form: u8 => 6 zeros,
    }
    /// A column of a relation that is alive.
    LiveColumn {
        /// Attribute number.
        attribute: i32,
        /// Type modifier.
        typmod: i32,
        /// Type.
        t: TypeCode => 3 zeros,
    }
    /// A value on its way into a column.
    Move {
        /// Its FID.
        source: Fid,
        /// Partition of the column.
        partition: u32,
        /// As what the database wants an envelope of the new FID for all who may see the column; none:
        /// it wants none.
        t: Option<TypeCode> => 3 zeros,
    }
    /// A value, and the leased FID of a history's column that will have it, too.
    Moved {
        /// FID of the value.
        source: Fid,
        /// The leased FID.
        into: Fid,
    }
    /// FIDs that count up.
    Run {
        /// The first of them.
        first: Fid,
        /// How many there are, not 0.
        length: u32 => 4 zeros,
    }
    /// Identity of a column, as envelopes name it.
    Identity {
        /// Its first half.
        high: u64,
        /// Its second half.
        low: u64,
    }
    /// A registered program, and where its results go.
    Target {
        /// Handle of the program.
        program: u32 => 4 zeros,
        /// FID of the first row's result.
        first: Fid,
    }
    /// A column of rows that shall be ranked.
    RankColumn {
        /// Type; none: numbers that the database knows.
        t: Option<TypeCode>,
        /// [`super::rank::DESCENDING`] and others.
        flags: u8 => 6 zeros,
    }
    /// A value that is sought among keys.
    Sought {
        /// Signature of a key's comparison with it.
        program: u32,
        /// [`super::search::DESCENDING`] and others.
        flags: u32,
        /// Its FID.
        fid: Fid,
    }
    /// One of several searches: how much of the message is its own.
    Among {
        /// Number of values.
        values: u32,
        /// Number of keys.
        keys: u32,
    }
    /// Where a value belongs among keys.
    Place {
        /// How many keys come before it.
        less: u32,
        /// How many come before it, or equal it.
        up_to: u32,
    }
    /// An instruction of a program ([`super::program`]).
    Instruction {
        /// What it does.
        code: u8 => 1 zeros,
        /// On what.
        operand: u16,
        /// And how.
        immediate: i32,
    }
    /// An aggregate of an aggregation.
    AggregateCall {
        /// Its signature; 0: count.
        signature: u16,
        /// Expression of its argument, or [`super::aggregation::NONE`].
        argument: u16,
        /// Expression of its filter, or [`super::aggregation::NONE`].
        filter: u16,
        /// [`super::aggregation::DISTINCT`].
        flags: u16,
    }
    /// A partition whose garbage is collected.
    Collected {
        /// Attribute number.
        attribute: i32,
        /// 1 if its column is alive.
        alive: u32,
        /// Values in it.
        values: u64,
    }
}

structure! {
    /// A setting of the SQL session.
    Setting<'a> {
        ;
        /// Name.
        name: &'a str [],
        /// Value.
        value: &'a str [],
    }
    /// A program: a typed stack machine ([`super::program`]).
    Program<'a> {
        /// Number of inputs.
        inputs: u16,
        /// Number of constants.
        constants: u16,
        /// Number of instructions.
        instructions: u16 => 2 zeros;
        /// Types of the inputs; none: booleans that the database knows.
        types: List<'a, Option<TypeCode>> [inputs],
        /// Constants.
        values: List<'a, Fid> [constants],
        /// Instructions. What they leave on the stack is the result: one FID, boolean, order
        /// or hash.
        code: List<'a, Instruction> [instructions],
    }
    /// What an expression of an aggregation is made of.
    Expression<'a> {
        /// Its program; 0: a column as it is, or, of the condition on groups, none.
        program: u32,
        /// How many inputs it has.
        count: u16;
        /// Numbers of the columns; of the condition on groups, of the outputs: keys first, then
        /// aggregates, from [`super::aggregation::CONSTANT`] on constants of each fetch.
        inputs: List<'a, u16> [count],
    }
    /// What goes into one column, or came to be in it.
    ColumnRuns<'a> {
        /// Its partition.
        partition: u32,
        /// How many runs there are.
        count: u32;
        /// The runs.
        runs: List<'a, Run> [count],
    }
    /// An envelope of several.
    Sealed<'a> {
        /// Its length.
        length: u32;
        /// Its bytes.
        envelope: &'a [u8] [length],
    }
    /// A cell of several.
    SealedCell<'a> {
        /// Its length; 0: there is none.
        length: u32;
        /// Its bytes.
        cell: &'a [u8] [length],
    }
    /// A column of a result that shall be signed.
    ResultColumn<'a> {
        /// Type of its values; none: not protected.
        t: Option<TypeCode>,
        /// Of which row version of a ledger table its cells are ([`Kind::LedgerRow`]); 0: of none.
        source: u8;
        /// Name in the result.
        name: &'a str [],
        /// Type, as people know it.
        type_name: &'a str [],
        /// Schema of the table's column that it shows; empty for an expression.
        schema: &'a str [],
        /// Name of that table.
        table: &'a str [],
        /// Name of that column.
        column: &'a str [],
    }
    /// A cell of a result that shall be signed.
    ResultCell<'a> {
        /// FID of a protected value.
        fid: Fid,
        /// 1 for NULL.
        null: u32,
        /// Length of the text.
        length: u32;
        /// Of a value that is not protected: its text.
        text: &'a [u8] [length],
    }
    /// A column of a ledger table.
    LedgerColumn<'a> {
        /// Type of its values; none: not protected.
        t: Option<TypeCode>;
        /// Its name.
        name: &'a CStr [],
        /// Name of its type.
        type_name: &'a CStr [],
    }
    /// A column of a row version of a ledger table that is not NULL.
    LedgerCell<'a> {
        /// FID of a protected value.
        fid: Fid,
        /// Which of the columns it is that the table was described with, from 0.
        column: u16,
        /// Of a value that is not protected: 1 if the bytes are the SHA-256 of its bytes.
        hashed: u8 => 1 zeros,
        /// Number of bytes.
        length: u32;
        /// The bytes of a value that is not protected, as PostgreSQL stores them.
        bytes: &'a [u8] [length],
    }
    /// Which results of a program are NULL.
    Nulls<'a> {
        /// How many are.
        count: u32,
        /// Number of rows, or 0 if none is NULL.
        length: u32;
        /// For each row a `u8`, 1 for NULL.
        rows: &'a [u8] [length],
    }
    /// What was declassified of rows, or groups of rows, and what failed.
    Revealed<'a> {
        /// Number of rows that it is about.
        good: u32,
        /// Bytes of each row's result.
        width: u32;
        /// Their results.
        results: &'a [u8] [good, width],
        /// Why the next row failed, if one did.
        error: Option<body::Error<'a>> [],
    }
    /// A file of the store.
    File<'a> {
        /// Its length.
        length: u64,
        /// Length of its name.
        name_length: u32 => 4 zeros;
        /// Its name.
        name: &'a [u8] [name_length],
    }
}

messages! {
    /// Keeper to backend: the result of an answered request.
    Answer = 1, body {};
    /// Keeper to backend: an error.
    Error = 2, body<'a> {
        /// Five characters.
        sqlstate: [u8; 5],
        /// The type that it is about, if it is about one.
        t: Option<TypeCode>,
        /// What it is, apart from its texts: a [`crate::Code`].
        code: u16;
        /// Primary message.
        message: &'a str [],
        /// Detail, or empty.
        detail: &'a str [],
        /// Hint, or empty.
        hint: &'a str [],
    };

    /// Does nothing.
    Ping = 16, body {} answer {};
    /// Everything sent before is done when the answer comes, or the answer is the first error
    /// of the one-way requests since the last one.
    Fence = 17, body {} answer {};
    /// One message of the client's Noise handshake.
    Handshake = 18, body<'a> {
        /// 1 or 3.
        step: u32 => 4 zeros;
        /// The client's message.
        message: &'a [u8] [],
    } answer<'a> {
        ;
        /// The keeper's message (empty for 3).
        message: &'a [u8] [],
    };
    /// Settings of the SQL session that values depend on: `TimeZone`, `DateStyle`,
    /// `IntervalStyle`, `extra_float_digits`, `bytea_output`.
    Settings = 19, body<'a> {
        ;
        /// Those that changed.
        settings: Each<'a, Setting<'a>> [],
    };
    /// Frees the slots of an arena below a limit.
    Release = 20, body {
        /// Partition of the arena.
        arena: u32 => 4 zeros,
        /// First slot to keep.
        keep: u64,
    };
    /// Counters of the keeper and the session.
    Stats = 21, body {} answer<'a> {
        ;
        /// Lines `name value`.
        lines: &'a [u8] [],
    };
    /// What was told of each column, and to whom. To the database as lines in the answer; or, with
    /// a slot, to the client.
    Accounts = 28, body {
        /// Where the text goes; 0: into the answer.
        to: Fid,
        /// A text of the client's that begins it.
        words: Fid,
    } answer<'a> {
        ;
        /// Lines of principal, schema, table, column and counts, with tabs between.
        lines: &'a [u8] [],
    };
    /// The backend has left a failed statement: forget untold errors of one-way requests.
    Forget = 22, body {};
    /// What `now` means from here on: when the transaction began, for all of it.
    Clock = 23, body {
        /// Microseconds since 2000-01-01 UTC.
        now: i64,
    };

    /// Which statement the messages from here on belong to. Sent only where the keeper has asked for it
    /// (`ring::WATCH_OFFSET`), and only when it is another one than before.
    Statement = 35, body {
        /// Identifier of its query, as `pg_stat_statements` shows it; 0: it is not known yet.
        query: u64,
    };

    /// Session's leader only. Other channels may join the session with this pass, which the leader
    /// has drawn, until it is withdrawn or another one is announced.
    Announce = 26, body {
        /// One half of the pass.
        low: u64,
        /// The other half.
        high: u64,
    } answer {};
    /// Session's leader only. Nobody may join any more; who has joined stays.
    Withdraw = 27, body {};

    /// What a statement of the client may do, or that its session goes on or is over
    /// ([`crate::envelope::FLAG_GRANT`]).
    Grant = 29, body<'a> {
        ;
        /// The client's envelope.
        envelope: &'a [u8] [],
    };

    /// A text that lets the session take in export envelopes, as its issuer has sealed it
    /// (docs/operations.md); an empty one takes that back.
    RestoreTicket = 30, body<'a> {
        ;
        /// Name of the session's database.
        database: &'a str [],
        /// The ticket.
        ticket: &'a [u8] [],
    };
    /// Whether values of a column can be compared in this session.
    Orderable = 31, body {
        /// Partition of the column.
        partition: u32 => 4 zeros,
    } answer {
        /// 1 if they can.
        allowed: u32 => 4 zeros,
    };

    /// Who sees a column, as its owner or an administrator says (docs/security.md).
    Policy = 25, body<'a> {
        ;
        /// The client's envelope.
        envelope: &'a [u8] [],
    } answer {};
    /// What owners of columns and definitions said that the WAL does not have yet.
    PolicyLog = 59, body {} answer<'a> {
        /// Number of the record.
        number: u64;
        /// A redo record; empty: the WAL has everything.
        record: &'a [u8] [],
    };
    /// The record of [`Kind::PolicyLog`] with this number is in the WAL and on disk.
    PolicyLogged = 60, body {
        /// The number.
        number: u64,
    };
    /// An index of a column is built. Where a client builds it, or who has a restore ticket, the
    /// column's values may be compared without a client from then on, to keep it.
    IndexBuilt = 24, body {
        /// Partition of the column.
        partition: u32 => 4 zeros,
    };

    /// Whose rows a statement sees: told when it starts, while something is recorded; and once more
    /// when it has ended. The keeper does nothing with it but record it.
    Snapshot = 40, body<'a> {
        /// Of the client's text ([`super::snapshot::hash`]); 0: a query within the statement before.
        text: u64,
        /// LSN up to which there was WAL after the snapshot was taken.
        position: u64,
        /// The oldest transaction in progress.
        xmin: u32,
        /// The first that had not begun.
        xmax: u32,
        /// The statement's own transaction; 0: it has changed nothing yet.
        own: u32,
        /// [`super::snapshot::FOLLOWS`] or [`super::snapshot::ENDS`].
        flags: u32,
        /// Number of others in progress between these.
        count: u32 => 4 zeros;
        /// These.
        running: List<'a, u32> [count],
    };

    /// Stores the content of an envelope.
    PutEnvelope = 32, body<'a> {
        /// Where to.
        fid: Fid,
        /// Type modifier.
        typmod: i32,
        /// Type.
        t: TypeCode => 3 zeros;
        /// The envelope.
        envelope: &'a [u8] [],
    };
    /// Stores a value that the database knows anyway (cast from a plain type).
    PutPlain = 33, body<'a> {
        /// Where to.
        fid: Fid,
        /// Type modifier.
        typmod: i32,
        /// Type.
        t: TypeCode => 3 zeros;
        /// The value in binary format.
        value: &'a [u8] [],
    };
    /// Asks for an envelope for the session's client, or an export envelope.
    GetEnvelope = 34, body {
        /// Of which value.
        fid: Fid,
        /// Its type.
        t: TypeCode => 7 zeros,
    } answer<'a> {
        ;
        /// The envelope; empty for NULL.
        envelope: &'a [u8] [],
    };
    /// Asks for many envelopes. The answer ends early at a value that has none, or when it gets
    /// long, and tells no errors: whoever misses an envelope asks for it alone.
    GetEnvelopes = 36, body<'a> {
        /// The period that the forms were chosen in ([`crate::ring::PERIOD_OFFSET`]). In another one
        /// all envelopes are for the session alone.
        period: u64;
        /// Of which values.
        wanted: List<'a, Wanted> [],
    } answer<'a> {
        ;
        /// For each value, in order.
        envelopes: Each<'a, Sealed<'a>> [],
    };

    /// The partition of a column, made when there is none.
    PartitionOpen = 48, body<'a> {
        /// OID of the database.
        database: u32,
        /// OID of the relation; 0: constants in catalogs.
        relation: u32,
        /// Attribute number.
        attribute: i32,
        /// Type modifier.
        typmod: i32,
        /// Type.
        t: TypeCode => 7 zeros;
        /// Where it has names, those of its schema, relation and column, each ended by a zero
        /// byte: what clients' grants call it, for good.
        name: &'a [u8] [],
    } answer<'a> {
        /// Its number.
        partition: u32 => 4 zeros;
        /// A redo record; empty when the partition's making is known to be in the WAL.
        record: &'a [u8] [],
    };
    /// Drops all partitions of a relation.
    PartitionDrop = 49, body {
        /// OID of the database.
        database: u32,
        /// OID of the relation.
        relation: u32,
    };
    /// Copies values into columns.
    Promote = 50, body<'a> {
        /// How many.
        count: u32 => 4 zeros;
        /// Which, and where to.
        moves: List<'a, Move> [count],
    } answer<'a> {
        /// How many.
        count: u32,
        /// Length of the redo record.
        length: u32,
        /// The period that the envelopes are of.
        period: u64;
        /// The permanent FIDs ([`super::NOT_PROMOTED`] from some value on, never the first).
        fids: List<'a, Fid> [count],
        /// A redo record, which must be in the WAL before any record that contains one of the
        /// FIDs (may be empty).
        record: &'a [u8] [length],
        /// For each value of which one was wanted, as [`super::delivery::DELIVERY`] has it; empty if the
        /// keeper gives none. None at all if it gives none from there on.
        envelopes: Each<'a, Sealed<'a>> [],
    };
    /// Leases FIDs of columns to the channel: the database gives them to values that the client has
    /// fitted to the columns and sealed ([`crate::envelope::FLAG_FITTED`]), and announces each with
    /// [`Kind::Adopt`]. FIDs that were not used when the channel ends are free again.
    Lease = 61, body<'a> {
        /// How many for each column, at most [`super::LEASE_MAX`].
        count: u32,
        /// Number of columns, at most [`super::LEASE_COLUMNS_MAX`].
        columns: u32;
        /// Partitions of the columns.
        partitions: List<'a, u32> [columns],
    } answer<'a> {
        /// Number of runs; 0: nothing is leased.
        count: u32,
        /// Number of columns.
        columns: u32;
        /// The FIDs.
        runs: List<'a, Run> [count],
        /// Which column each partition is of: what an envelope must name.
        names: List<'a, Identity> [columns],
        /// A redo record, which must be in the WAL before any record with one of the FIDs.
        record: &'a [u8] [],
    };
    /// Gives leased FIDs the values that a client has sealed.
    Adopt = 62, body<'a> {
        ;
        /// A redo record of adopted values, as it is logged (crate `redo`).
        record: &'a [u8] [],
    };
    /// As [`Kind::Fence`], before the commit of a transaction that has adopted values: an error of one of
    /// them is told again, even if it was told before.
    Confirm = 71, body<'a> {
        /// The period in which envelopes are wanted.
        period: u64;
        /// Adopted values of which delivery envelopes are wanted; their forms do not count.
        wanted: List<'a, Wanted> [],
    } answer<'a> {
        ;
        /// For each of them, as [`super::delivery::DELIVERY`] has it; empty if the keeper gives none. None at
        /// all if it gives none from there on.
        envelopes: Each<'a, Sealed<'a>> [],
    };
    /// Whether the keeper opens cells of the family `soft_` of a column, and how busy it is.
    SoftState = 63, body {
        /// Type of the column.
        t: TypeCode,
        /// What [`crate::soft`] calls its shape.
        shape: u8 => 2 zeros,
        /// Number of its key.
        key: u32,
    } answer {
        /// 1 if the keeper has the column's key.
        held: u32,
        /// How long a cell takes to be opened and compared, as measured at start, in nanoseconds.
        open: u32,
        /// How long the last probe took, in nanoseconds.
        probe: u64,
        /// The shortest time a probe has taken.
        usual: u64,
        /// How many probes there were.
        probes: u64,
        /// Segments that have been read back from disk since the keeper has started.
        faults: u64,
    };
    /// The redo record of a partition's making is in the WAL and on disk.
    PartitionLogged = 51, body {
        /// Its number.
        partition: u32 => 4 zeros,
    };
    /// Begins to collect the garbage of a relation's partitions: what is in them now and is not
    /// marked before [`Kind::GarbageSweep`] is garbage; what is put into them from now on is
    /// not.
    GarbageBegin = 52, body<'a> {
        /// OID of the database.
        database: u32,
        /// OID of the relation, or [`super::WHOLE_DATABASE`]: all partitions of the database.
        relation: u32;
        /// Its columns that are alive.
        alive: List<'a, LiveColumn> [],
    } answer<'a> {
        ;
        /// The partitions.
        partitions: List<'a, Collected> [],
    };
    /// FIDs that are still in use. Those of other partitions are ignored.
    GarbageMark = 53, body<'a> {
        /// How many.
        count: u32 => 4 zeros;
        /// Which.
        fids: List<'a, Fid> [count],
    };
    /// The next batch of garbage. Nothing is freed before [`Kind::GarbageSwept`].
    GarbageSweep = 54, body {} answer<'a> {
        /// Number of values.
        values: u64,
        /// 1 if there was a batch.
        more: u64;
        /// A redo record (may be empty).
        record: &'a [u8] [],
    };
    /// The redo record of the last batch is in the WAL and on disk: its slots may be used again.
    GarbageSwept = 55, body {};
    /// Ends a collection, wherever it stands.
    GarbageEnd = 56, body {};
    /// Whether identifiers resolve.
    Resolve = 57, body<'a> {
        /// How many.
        count: u32 => 4 zeros;
        /// Which.
        fids: List<'a, Fid> [count],
    } answer {
        /// How many of them name nothing.
        unresolved: u64,
    };

    /// What has partitions.
    GarbageList = 58, body {
        /// OID of a database, whose relations are asked for; 0: the databases are.
        database: u32,
    } answer<'a> {
        ;
        /// Their OIDs.
        oids: List<'a, u32> [],
    };

    /// Evaluates a program; results are FIDs.
    Eval = 64, body<'a> {
        /// Signature, or handle of a registered program.
        program: u32,
        /// For operations that take one.
        immediate: i32,
        /// FID of the first row's result.
        first: Fid,
        /// Number of rows.
        rows: u32,
        /// Number of operands.
        columns: u32;
        /// Operands, column by column.
        fids: List<'a, Fid> [rows, columns],
    };
    /// Evaluates a program whose result is declassified.
    Declassify = 65, body<'a> {
        /// Signature, or handle of a registered program.
        program: u32,
        /// For operations that take one.
        immediate: i32,
        /// Number of rows.
        rows: u32,
        /// Number of operands.
        columns: u32;
        /// Operands, column by column.
        fids: List<'a, Fid> [rows, columns],
    } answer<'a> {
        ;
        /// For each row, a boolean `u8` (0, 1; [`super::NULL_RESULT`]), an order `i8` (-1, 0, 1;
        /// [`super::NULL_RESULT`]), or a hash `u64` (0 for NULL), as the program's result says.
        results: &'a [u8] [],
    };
    /// Registers a program for evaluation by handle.
    ProgramRegister = 66, body<'a> {
        ;
        /// The program.
        program: Program<'a> [],
    } answer {
        /// Its handle.
        program: u32,
    };
    /// Forgets a registered program.
    ProgramForget = 67, body {
        /// Its handle.
        program: u32 => 4 zeros,
    };
    /// Evaluates registered programs over the same columns; results are FIDs. Does not tell
    /// earlier errors of one-way requests.
    EvalBatch = 68, body<'a> {
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u32,
        /// Number of programs.
        programs: u32 => 4 zeros;
        /// The programs.
        targets: List<'a, Target> [programs],
        /// The columns.
        batch: Columns<'a> [rows, columns],
    } answer<'a> {
        /// Number of rows before the first that failed.
        good: u32,
        /// Number of programs.
        programs: u32;
        /// Of each program, which results are NULL.
        nulls: Each<'a, Nulls<'a>> [programs],
        /// Why the next row failed, if one did.
        error: Option<body::Error<'a>> [],
    };
    /// Evaluates a registered program whose result is declassified. The answer is about all
    /// rows, or those before the first that failed, or, when wanted is not 0, those up to the
    /// one with which so many booleans are true: nothing is told of rows that nobody wants.
    /// Does not tell earlier errors, either.
    DeclassifyBatch = 69, body<'a> {
        /// Handle of the program.
        program: u32,
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u32,
        /// How many true rows are enough; 0: all rows are wanted.
        wanted: u32;
        /// The columns.
        batch: Columns<'a> [rows, columns],
    } answer<'a> {
        ;
        /// The rows' results, as of [`Kind::Declassify`].
        revealed: Revealed<'a> [],
    };
    /// Which groups of rows pass: the pairs of a row of a semi or anti join. Rows of a group
    /// after the first that is true do not count, nor does their failure.
    DeclassifyGroups = 70, body<'a> {
        /// Handle of the program.
        program: u32,
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u32,
        /// How many groups that pass are enough; 0: all groups are wanted.
        wanted: u32,
        /// Number of groups.
        groups: u32,
        /// 0 if a group passes of which a row is true, 1 if one of which none is.
        none: u32;
        /// Rows of each group, all rows together.
        lengths: List<'a, u32> [groups],
        /// The columns.
        batch: Columns<'a> [rows, columns],
    } answer<'a> {
        ;
        /// For each group a boolean `u8`.
        revealed: Revealed<'a> [],
    };

    /// Adds rows to a set that shall be ranked, and makes the set when there is none of this
    /// number.
    RankAdd = 72, body<'a> {
        /// Number of the set.
        set: u32,
        /// Number of columns.
        columns: u32,
        /// Number of rows.
        rows: u32 => 4 zeros;
        /// The columns.
        keys: List<'a, RankColumn> [columns],
        /// Column by column: FIDs, or numbers that the database knows.
        values: List<'a, Fid> [rows, columns],
    };
    /// Ranks rows of a set by their columns, the first column first.
    Rank = 73, body {
        /// Number of the set.
        set: u32,
        /// The first row whose rank is wanted.
        first: u32,
        /// Other than 0: so many rows have a rank, those that come first; others have
        /// [`super::rank::BEYOND`].
        limit: u32,
        /// [`super::rank::GOES`] and others.
        flags: u32,
    } answer<'a> {
        /// Number of rows from the first on.
        rows: u32,
        /// Number of ranks, if [`super::rank::STEPS`] are wanted.
        count: u32;
        /// Of each row its rank, dense from 0; equal rows have equal ranks.
        ranks: List<'a, u32> [rows],
        /// Of each rank the first column in which it differs from the rank before (0 for the
        /// first rank).
        steps: &'a [u8] [count],
    };
    /// A set goes.
    RankForget = 74, body {
        /// Number of the set.
        set: u32 => 4 zeros,
    };
    /// Where values belong among the keys of an index's page. The first value is sought in the
    /// first column, each other one in the next (or beside it, [`super::search::BESIDE`]), among
    /// the keys that equal the values before it.
    Search = 78, body<'a> {
        /// Number of values.
        values: u32,
        /// Number of keys.
        keys: u32;
        /// The values.
        sought: List<'a, Sought> [values],
        /// The keys, column by column: FIDs, [`super::search::BELOW`] or
        /// [`super::search::ABOVE`].
        columns: List<'a, Fid> [],
    } answer<'a> {
        ;
        /// For each value; all are [`super::search::UNKNOWN`] if one of the FIDs that counted
        /// names nothing.
        places: List<'a, Place> [],
    };
    /// Several searches at once, each as [`Kind::Search`]: of the pages that many rows come to.
    SearchMany = 79, body<'a> {
        /// Number of searches.
        searches: u32,
        /// Number of values of all of them.
        values: u32;
        /// The searches.
        among: List<'a, Among> [searches],
        /// The values of one search after the other.
        sought: List<'a, Sought> [values],
        /// The keys of one search after the other, of each column by column.
        columns: List<'a, Fid> [],
    } answer<'a> {
        ;
        /// For each value, as [`Kind::Search`] answers; unknown are those of one search only.
        places: List<'a, Place> [],
    };

    /// Where values belong among the keys of an index's page, and of the pages below it that the keeper remembers, as far as
    /// the values' places lead there. Each page that is sent is remembered under the number that it comes with. The first
    /// value is sought in the first column, each other one in the next, as in [`Kind::Search`].
    Descend = 77, body<'a> {
        /// Number of values.
        values: u32,
        /// Number of the page, below [`super::search::PAGES_MAX`].
        page: u32,
        /// Number of columns of the keys, perhaps more than values; 0: the page is remembered.
        columns: u32,
        /// Number of keys.
        keys: u32,
        /// The page that it is a child of, or [`super::search::NO_PAGE`].
        above: u32,
        /// Which child of that: how many keys come before it.
        child: u32;
        /// The values.
        sought: List<'a, Sought> [values],
        /// The keys, column by column: FIDs, [`super::search::BELOW`] or [`super::search::ABOVE`].
        fids: List<'a, Fid> [],
    } answer<'a> {
        /// How often the keeper has forgotten all pages of this channel.
        forgotten: u32,
        /// How many pages there are answers about; 0: it does not know the page, or remembers none now.
        levels: u32;
        /// Their numbers, from the first on.
        pages: List<'a, u32> [levels],
        /// For each page and value, as [`Kind::Search`] answers.
        places: List<'a, Place> [],
    };

    /// Tokens of rows, for joins and groups that PostgreSQL makes by hash. Of one channel and
    /// one number two rows have one token exactly if they are equal column by column (integers
    /// of all widths, and floats of both, are one type); other tokens say nothing about each
    /// other. Does not tell earlier errors of one-way requests.
    Tokens = 76, body<'a> {
        /// Number under which they are made.
        number: u64,
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u16,
        /// 1 if NULL equals NULL.
        nulls_equal: u16;
        /// Types of the columns.
        types: List<'a, TypeCode> [columns],
        /// The columns.
        batch: Columns<'a> [rows, columns],
    } answer<'a> {
        ;
        /// For each row [`super::token::BYTES`], zeros if a column of it is NULL and NULL does
        /// not equal NULL.
        revealed: Revealed<'a> [],
    };

    /// Adds a value to an aggregate's state.
    AggregateStep = 80, body {
        /// FID of the state.
        state: Fid,
        /// FID of the value.
        value: Fid,
        /// Signature of the aggregate.
        aggregate: u16,
        /// 1 if the state is new.
        new: u8 => 5 zeros,
    };
    /// Adds the second state to the first.
    AggregateCombine = 81, body {
        /// FID of the first.
        into: Fid,
        /// FID of the second.
        from: Fid,
    };
    /// The result of a state.
    AggregateFinal = 82, body {
        /// FID of the result.
        to: Fid,
        /// FID of the state.
        from: Fid,
    };

    /// Registers an aggregation over batches.
    AggregateRegister = 83, body<'a> {
        /// Number of columns.
        columns: u16,
        /// Number of expressions.
        expressions: u16,
        /// Number of group keys.
        keys: u16,
        /// Number of aggregates.
        aggregates: u16,
        /// Expression of the filter, or [`super::aggregation::NONE`].
        filter: u16,
        /// How many aggregations share the bytes (0 as 1).
        share: u16 => 4 zeros,
        /// Bytes that groups may take.
        limit: u64;
        /// Types of the columns; none where they are not protected.
        types: List<'a, Option<TypeCode>> [columns],
        /// The expressions.
        programs: Each<'a, Expression<'a>> [expressions],
        /// Expression of each key.
        key: List<'a, u16> [keys],
        /// The aggregates.
        calls: List<'a, AggregateCall> [aggregates],
        /// The condition on groups.
        having: Expression<'a> [],
    } answer {
        /// Its handle.
        handle: u32,
    };
    /// Rows of an aggregation.
    AggregateRows = 84, body<'a> {
        /// Its handle.
        handle: u32,
        /// Number of rows.
        rows: u32;
        /// Its columns.
        batch: Columns<'a> [rows],
    };
    /// Takes back rows that found no group, because there is no room for another one.
    AggregateReturn = 85, body {
        /// Handle of the aggregation.
        handle: u32 => 4 zeros,
    } answer<'a> {
        /// Rows that may be sent before the next such request.
        allowance: u64,
        /// Rows given back.
        rows: u32,
        /// 1 if there are more.
        more: u32;
        /// Each column: FIDs, or, where it is not protected, values.
        columns: Columns<'a> [rows],
    };
    /// Finishes groups. Results take the slots, a group after the other.
    AggregateFetch = 86, body<'a> {
        /// Handle of the aggregation.
        handle: u32,
        /// The largest number of groups.
        max: u32,
        /// First FID for results.
        first: Fid;
        /// Constants for the condition on groups.
        constants: List<'a, Fid> [],
    } answer<'a> {
        /// Number of groups.
        groups: u32,
        /// [`super::aggregation::MORE`] and others.
        flags: u32,
        /// Groups in this pass.
        total: u64;
        /// For each key and aggregate a column: a list of FIDs or of counts, or keys that are
        /// not protected.
        columns: Columns<'a> [groups],
    };
    /// Begins an aggregation anew.
    AggregateReset = 87, body {
        /// Its handle.
        handle: u32,
        /// 1 for another pass, which the groups come into that were handed over and found no
        /// room.
        goes_on: u32,
    };
    /// Forgets an aggregation. The release of the statement arena forgets all.
    AggregateForget = 88, body {
        /// Its handle.
        handle: u32 => 4 zeros,
    };
    /// Hands an aggregation over to the session: its handle ends, and one channel of the
    /// session may merge it. No row may wait to be taken back. The end of the leader's
    /// statement forgets it.
    AggregateHandOver = 89, body {
        /// Its handle.
        handle: u32 => 4 zeros,
    } answer {
        /// Its number.
        number: u64,
    };
    /// Takes the groups and states of an aggregation that was handed over into another one
    /// of the same registration (the condition on groups and the bytes apart).
    AggregateMerge = 90, body {
        /// Handle of the other one.
        handle: u32 => 4 zeros,
        /// Number of that which was handed over.
        number: u64,
    };

    /// Stores the results of an aggregation without keys, which is one group, in consecutive
    /// slots: NULL where an aggregate has none. Whether it has is told to nobody.
    AggregateStore = 91, body {
        /// Its handle.
        handle: u32 => 4 zeros,
        /// FID of the first result.
        first: Fid,
    };

    /// Stores the values of a batch ([`crate::envelope::FLAG_BATCH`]) in consecutive slots. A
    /// value that cannot be read is poisoned, the others are stored.
    PutBatch = 93, body<'a> {
        /// Where the first value goes.
        fid: Fid,
        /// Type modifier.
        typmod: i32,
        /// Type.
        t: TypeCode => 3 zeros;
        /// The envelope.
        envelope: &'a [u8] [],
    };
    /// Copies a row's values into columns, and says where they will belong in indexes' pages.
    PromoteSearch = 95, body<'a> {
        /// How many values.
        count: u32,
        /// Number of searches.
        searches: u32,
        /// Number of values that are sought in all of them.
        values: u32 => 4 zeros;
        /// Which, and where to, as [`Kind::Promote`] has them.
        moves: List<'a, Move> [count],
        /// The searches, as [`Kind::SearchMany`] has them; a value may be one that is promoted
        /// ([`super::search::MOVED`]).
        among: List<'a, Among> [searches],
        /// The values of one search after the other.
        sought: List<'a, Sought> [values],
        /// The keys of one search after the other.
        columns: List<'a, Fid> [],
    } answer<'a> {
        /// How many values.
        count: u32,
        /// Length of the redo record.
        length: u32,
        /// Number of places: one for each value that was sought; 0 if the keeper does not tell.
        told: u32 => 4 zeros,
        /// The period that the envelopes are of.
        period: u64;
        /// The permanent FIDs, as [`Kind::Promote`] gives them.
        fids: List<'a, Fid> [count],
        /// A redo record, which must be in the WAL before any record that contains one of the
        /// FIDs (may be empty).
        record: &'a [u8] [length],
        /// Where they belong.
        places: List<'a, Place> [told],
        /// As [`Kind::Promote`] gives them.
        envelopes: Each<'a, Sealed<'a>> [],
    };
    /// Copies the values of many rows into columns, column by column.
    PromoteRuns = 94, body<'a> {
        /// Number of columns.
        columns: u32,
        /// Values of all columns.
        values: u32;
        /// The columns, and runs of sources.
        sources: Each<'a, ColumnRuns<'a>> [columns],
    } answer<'a> {
        /// 0: nothing was promoted, ask with [`Kind::Promote`].
        promoted: u32,
        /// Number of columns.
        columns: u32;
        /// The columns, and runs of permanent FIDs.
        runs: Each<'a, ColumnRuns<'a>> [columns],
        /// A redo record as of [`Kind::Promote`].
        record: &'a [u8] [],
    };

    /// Recovery worker only. How the keeper stands.
    RecoveryState = 96, body {
        /// System identifier of the cluster.
        system: u64,
    } answer {
        /// [`super::STANDING_SERVES`] and others.
        standing: u32,
        /// Timeline of the later LSN.
        timeline: u32,
        /// LSN of its checkpoint; 0: its store is empty and has never been checkpointed.
        checkpoint: u64,
        /// LSN up to which it has the redo records.
        applied: u64,
        /// The store's random number; 0: no store.
        store: u64,
    };
    /// Recovery worker only. One redo record from the WAL.
    Redo = 97, body<'a> {
        /// LSN of its end.
        end: u64,
        /// The transaction that wrote it; 0: none.
        transaction: u32 => 4 zeros;
        /// The record.
        record: &'a [u8] [],
    };
    /// Recovery worker only. A transaction has committed, as the WAL says, of which records were sent.
    Committed = 124, body {
        /// Its identifier, as of [`Kind::Redo`].
        transaction: u32 => 4 zeros,
    };
    /// Recovery worker only. The LSN of a checkpoint is going to be taken: the checkpoint says of
    /// transactions on ledger tables how those have ended whose ends are known now.
    CheckpointBegin = 125, body {} answer {};
    /// Recovery worker only. All redo records up to an LSN have been sent, and the cluster
    /// writes; the keeper may serve.
    RecoveryDone = 98, body {
        /// That LSN.
        position: u64,
    } answer {};
    /// Recovery worker only. Makes everything durable that the keeper knows; it will not need
    /// the WAL before the given LSN any more.
    Checkpoint = 99, body {
        /// That LSN.
        position: u64,
        /// System identifier of the cluster.
        system: u64,
        /// Timeline.
        timeline: u32 => 4 zeros,
    } answer {};
    /// Recovery worker only. All redo records up to an LSN have been sent; the cluster is a
    /// standby, and more will come. The keeper may serve, but promotes nothing.
    Follow = 100, body {
        /// That LSN.
        position: u64,
        /// Timeline.
        timeline: u32 => 4 zeros,
    } answer {};
    /// Begins a copy of the store's files, sealed as they are, for a backup.
    StoreCopy = 101, body {} answer<'a> {
        /// LSN of the checkpoint that they are of.
        position: u64,
        /// Its timeline.
        timeline: u32,
        /// Number of files.
        count: u32;
        /// The files.
        files: Each<'a, File<'a>> [count],
    };
    /// Bytes of a file of the copy that this channel has begun.
    StoreRead = 102, body {
        /// The file's place among them.
        file: u32 => 4 zeros,
        /// Where to begin.
        offset: u64,
    } answer<'a> {
        ;
        /// At most a MB, none at the end.
        bytes: &'a [u8] [],
    };

    /// Begins a result that shall be signed (crate `ledger`); one that had begun goes.
    ResultBegin = 104, body<'a> {
        /// The statement's shape, a text of the client's.
        statement: Fid,
        /// The client's nonce, bytes.
        nonce: Fid;
        /// The columns.
        columns: Each<'a, ResultColumn<'a>> [],
    };
    /// Rows of it.
    ResultRows = 105, body<'a> {
        ;
        /// Their cells, row by row.
        cells: Each<'a, ResultCell<'a>> [],
    };
    /// Signs it; it ends. The signed result is a text in JSON. If it cannot be signed, the next
    /// request that is answered tells why, and the slot stays empty.
    ResultSign = 106, body {
        /// Where the text goes.
        to: Fid,
    };

    /// What the rows with a place's number are rows of, for this channel: a ledger table or its
    /// history. In place of what the place meant before.
    LedgerTable = 123, body<'a> {
        /// The place's number, less than [`super::ledger::PLACES`].
        place: u32;
        /// Schema of the table, also where the rows are the history's.
        schema: &'a str [],
        /// Its name.
        table: &'a str [],
        /// The columns, but for the ledger's own, at most [`super::ledger::COLUMNS_MAX`].
        columns: Each<'a, LedgerColumn<'a>> [],
    };
    /// Something that happened to a row version of a ledger table, or a version that a walk over
    /// the table has found. What happens is kept by the channel, and becomes entries of the
    /// table's log with [`Kind::LedgerSeal`].
    LedgerRow = 107, body<'a> {
        /// Partition of the table's log.
        log: u32,
        /// [`super::ledger::WRITE`] and others.
        what: u32,
        /// How many the transaction has had before: those that the channel has from here on
        /// were rolled back. Of a walk: 1 if the columns are left out, since an earlier walk has
        /// compared them; else 0. Of a version that a result shows: the row's number,
        /// times [`super::ledger::SOURCES`], and the source of its columns.
        number: u64,
        /// Number of the version.
        sn: u64,
        /// Of what is written: the version that it replaces, or 0.
        other: u64,
        /// When, in microseconds since 2000-01-01 UTC.
        time: i64,
        /// Of a version in the history that a walk has found, or that was restored: when it ended.
        until: i64,
        /// Of which table, as [`Kind::LedgerTable`] has described it.
        place: u32;
        /// Who did it.
        principal: &'a str [],
        /// Of a version in the history that a walk has found, or that was restored: who ended it.
        ended_by: &'a str [],
        /// Its columns, in their order.
        cells: Each<'a, LedgerCell<'a>> [],
    };
    /// Makes entries of what the transaction did, before it commits. Whoever asks holds a lock,
    /// so that redo records come into the WAL in the order of the entries. If the transaction has
    /// adopted values, it confirms them, too, as [`Kind::Confirm`].
    LedgerSeal = 108, body<'a> {
        /// How many rows the transaction had. 0: the rest of those.
        count: u64,
        /// 1 if the WAL may lack entries: nobody knows that the record before was written, or
        /// PostgreSQL was restarted.
        lost: u32,
        /// 1 if the transaction has adopted values.
        adopted: u32,
        /// As for [`Kind::Confirm`].
        period: u64;
        /// As for [`Kind::Confirm`].
        wanted: List<'a, Wanted> [],
    } answer<'a> {
        /// 1: ask again for more.
        more: u32,
        /// Bytes of the record.
        length: u32;
        /// A redo record.
        record: &'a [u8] [length],
        /// As of [`Kind::Confirm`].
        envelopes: Each<'a, Sealed<'a>> [],
    };
    /// How the transaction ended whose entries this channel has made.
    LedgerEnd = 109, body {
        /// 1 if it committed.
        committed: u32 => 4 zeros,
    };
    /// Under which name the session's client writes.
    LedgerWho = 110, body {} answer<'a> {
        ;
        /// The name.
        name: &'a str [],
    };
    /// Begins a walk over a ledger table. Snapshots taken after the answer show what has
    /// committed by then.
    LedgerCheck = 111, body<'a> {
        /// Partition of the table's log.
        log: u32 => 4 zeros,
        /// Columns of versions that were written before this entry need not be compared again.
        since: u64;
        /// Schema of the table.
        schema: &'a str [],
        /// Its name.
        table: &'a str [],
    } answer {
        /// Number of entries.
        size: u64,
        /// Columns of versions with smaller numbers may be left out.
        first: u64,
    };
    /// Ends a walk, and signs what it found, a text.
    LedgerReport = 112, body {
        /// Where the text goes.
        to: Fid,
        /// The client's nonce, bytes.
        nonce: Fid,
        /// Size of the log from which it must go on; 0: not asked.
        old: u64,
    } answer {
        /// Number of findings.
        findings: u64,
        /// Row versions that are as they were.
        versions: u64,
    };
    /// A signed checkpoint of a log, perhaps with a proof.
    LedgerProve = 113, body {
        /// Partition of the table's log.
        log: u32,
        /// [`super::ledger::CHECKPOINT`] and others.
        what: u32,
        /// The old size, or a version's number.
        number: u64,
    } answer<'a> {
        ;
        /// A text.
        text: &'a [u8] [],
    };

    /// Signs what the session's last transaction that committed has written into ledger tables, a text
    /// (crate `ledger`). Once; then there is none.
    LedgerReceipt = 114, body {
        /// Where the text goes.
        to: Fid,
        /// The client's nonce, bytes.
        nonce: Fid,
    } answer {
        /// Number of entries in it.
        entries: u64,
    };

    /// Gives leased FIDs of a history's columns the values of the version that the last row
    /// ([`Kind::LedgerRow`]) has ended. Their redo record comes with the transaction's entries.
    LedgerMove = 103, body<'a> {
        /// Number of values.
        count: u32 => 4 zeros;
        /// The values.
        moved: List<'a, Moved> [count],
    };

    /// Opens a cell of the family `rnd_` ([`crate::cell`]) into a temporary value.
    CellOpen = 116, body<'a> {
        /// Where to.
        fid: Fid,
        /// Its type.
        t: TypeCode => 7 zeros;
        /// The sealed cell.
        cell: &'a [u8] [],
    };
    /// Seals a value into a cell.
    CellSeal = 117, body<'a> {
        /// Which value.
        fid: Fid,
        /// Its type.
        t: TypeCode,
        /// [`crate::cell::WITH_TOKEN`].
        flags: u8 => 6 zeros;
        /// Names of schema, relation and column that it is for, each ended by a zero byte; none:
        /// a constant of a definition.
        name: &'a [u8] [],
    } answer<'a> {
        ;
        /// The sealed cell; empty for NULL.
        cell: &'a [u8] [],
    };
    /// The order of two values, each a cell, sealed or loose.
    CellCompare = 118, body<'a> {
        /// Type of the first.
        a: TypeCode,
        /// Type of the second.
        b: TypeCode,
        /// [`crate::cell::FOR_INDEX`].
        flags: u8 => 1 zeros,
        /// Length of the first.
        length: u32;
        /// The first.
        first: &'a [u8] [length],
        /// The second.
        second: &'a [u8] [],
    } answer {
        /// -1, 0, 1; [`super::NULL_RESULT`] if one is NULL.
        order: i32 => 4 zeros,
    };
    /// The hash of a value, a cell.
    CellHash = 119, body<'a> {
        /// Its type.
        t: TypeCode => 7 zeros;
        /// The cell.
        cell: &'a [u8] [],
    } answer {
        /// Its hash, 0 for NULL.
        hash: u64,
    };
    /// The token of a value, a cell, sealed or loose.
    CellToken = 120, body<'a> {
        /// Its type.
        t: TypeCode => 7 zeros;
        /// The cell.
        cell: &'a [u8] [],
    } answer<'a> {
        ;
        /// The token; empty for NULL.
        token: &'a [u8] [],
    };
    /// Which key a column's cells are sealed with.
    CellKey = 121, body<'a> {
        ;
        /// Names of schema, relation and column, each ended by a zero byte.
        name: &'a [u8] [],
    } answer<'a> {
        /// Generation of the key.
        generation: u32,
        /// 1 while cells under older keys are opened, too.
        turning: u32;
        /// What names the column in cells.
        column: &'a [u8] [],
    };
    /// Seals cells of a column anew, under its present key. Only while the key is being changed, for a
    /// client who may change it.
    CellReseal = 122, body<'a> {
        /// Their type.
        t: TypeCode,
        /// [`crate::cell::WITH_TOKEN`].
        flags: u8 => 2 zeros,
        /// Length of the names.
        length: u32;
        /// Names of schema, relation and column, each ended by a zero byte.
        name: &'a [u8] [length],
        /// The cells.
        cells: Each<'a, SealedCell<'a>> [],
    } answer<'a> {
        ;
        /// The new ones.
        cells: Each<'a, SealedCell<'a>> [],
    };
}
