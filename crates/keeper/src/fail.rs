//! Errors of the keeper: SQLSTATE, message, detail, hint. No function here takes a value.

use contract::codec::Part;
use contract::{Code, TypeCode, body};
use std::sync::Arc;
use values::Error;

/// Why a session has ended although it has open channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its leader's channel is closed. Everything that joined the session ends with it.
    LeaderGone,
    /// Its client's key is no longer authorised. Ends with the next handshake.
    KeyWithdrawn,
    /// Its client has not renewed it in time. Ends when the client does.
    LeaseOver,
    /// Its client has left. Ends with the next handshake.
    Left,
}

/// Why an operation has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The error.
    pub error: Arc<Error>,
    /// Whether it was or will be reported by another operation, because an operand was poisoned.
    pub told: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure {
            error: Arc::new(error),
            told: false,
        }
    }
}

impl Failure {
    /// An operand is poisoned with this error.
    pub fn inherited(error: &Arc<Error>) -> Failure {
        Failure {
            error: Arc::clone(error),
            told: true,
        }
    }

    /// The error alone.
    pub fn into_error(self) -> Error {
        Arc::unwrap_or_clone(self.error)
    }
}

/// Encodes an error as the body of [`contract::Kind::Error`].
pub fn encode(error: &Error, out: &mut Vec<u8>) {
    body(error).put(out);
}

/// An error in the form of a message.
pub fn body(error: &Error) -> body::Error<'_> {
    body::Error {
        sqlstate: error.sqlstate,
        t: error.t,
        code: error.code as u16,
        message: &error.message,
        detail: error.detail.as_deref().unwrap_or_default(),
        hint: error.hint.as_deref().unwrap_or_default(),
    }
}

/// A message's body does not have the form required by its kind.
pub fn malformed(what: &'static str) -> Error {
    Error::new(b"08P01", "confide: malformed message to the keeper").detail(what)
}

/// The answer does not fit into a message.
pub fn answer_too_long() -> Error {
    Error::new(b"54000", "confide: answer is too long for a message")
}

/// The policy requires a client session.
pub fn no_client() -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail("Only a client with a key may compute with protected values.")
        .hint("Connect through the Confide proxy.")
}

/// The session has ended.
pub fn ended(why: Ended) -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail(match why {
            Ended::LeaderGone => "The session's leader has gone.",
            Ended::KeyWithdrawn => "The client's key is authorised no more.",
            Ended::LeaseOver => "The client has not renewed the session in time.",
            Ended::Left => "The client has left.",
        })
}

/// A value would have to be changed to fit into its column.
pub fn no_client_to_change() -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail("Without one a value enters a column only as it is: it is not rounded or cut.")
        .hint("Restore into a column of the type that the value came from.")
}

/// Export envelopes are not accepted.
pub fn no_exports() -> Error {
    Error::new(b"42501", "confide: no restore ticket")
        .detail("Without one values from export envelopes are not taken in.")
        .hint("Set confide.restore_ticket to what \"confide restore-ticket\" prints.")
}

/// A value from an export envelope may only return to where it came from.
pub fn belongs_elsewhere() -> Error {
    Error::new(b"42501", "confide: the value belongs elsewhere")
        .detail("An export envelope is of one column of one database.")
        .hint("Set confide.restore_ticket to what \"confide restore-ticket\" prints.")
}

/// An owner's budget for disclosure about a column is used up.
pub fn budget(column: &str, limit: u64, kind: &str) -> Error {
    Error::new(b"53400", "confide: no more may be told of a column")
        .detail(format!(
            "{column}: its owner allows {limit} {kind} for each principal."
        ))
        .hint("Ask the column's owner for another budget (confide.budget).")
}

/// Another copy of the store would be too many.
pub fn too_many_copies(why: &'static str) -> Error {
    Error::new(
        b"53400",
        "confide: too many copies of the store are under way",
    )
    .detail(why)
    .hint("Wait until a backup has ended.")
}

/// A column is hidden from the client.
pub fn no_viewer() -> Error {
    Error::new(b"42501", "confide: the column is hidden from you")
        .detail("It can be selected, which shows its mask, and nothing else.")
        .hint("Ask its owner for GRANT VIEWER.")
}

/// A restore ticket is not valid.
pub fn bad_ticket(what: &'static str) -> Error {
    Error::new(b"42501", "confide: the restore ticket is not valid")
        .detail(what)
        .hint("Make another one with \"confide restore-ticket\".")
}

/// Without a client, only columns on which a client has an index may be ordered.
pub fn no_client_to_compare() -> Error {
    Error::new(b"42501", "confide: no client session")
        .detail("Without one values are compared only in columns that a client has an index on.")
        .hint("Connect through the Confide proxy.")
}

/// A value may not move to another row.
pub fn no_client_to_move() -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail("Without one a value stays in its row.")
        .hint("Connect through the Confide proxy.")
}

/// Nothing can be written on a standby.
pub fn standby() -> Error {
    Error::new(
        b"25006",
        "confide: cannot store values of columns during recovery",
    )
    .detail("The cluster of this keeper is a standby.")
}

/// A FID of another session's arena.
pub fn foreign() -> Error {
    Error::new(b"42501", "confide: no such value in this session")
        .detail("The identifier names a temporary value of another session, or of none.")
}

/// A result may only be stored in the channel's own arenas.
pub fn not_own_arena() -> Error {
    Error::new(
        b"42501",
        "confide: destination is not in the channel's arenas",
    )
}

/// An operand does not have the type that the operation takes.
pub fn wrong_type(found: TypeCode, wanted: TypeCode) -> Error {
    Error::new(b"42804", "confide: protected value is of another type").detail(format!(
        "The value is of type {}, the operation takes {}.",
        found.enc_name(),
        wanted.enc_name()
    ))
}

/// An aggregate's state is used as a value.
pub fn not_a_value(wanted: TypeCode) -> Error {
    Error::new(b"42804", "confide: protected value is of another type").detail(format!(
        "It is an aggregate's state, the operation takes {}.",
        wanted.enc_name()
    ))
}

/// No signature or registered program has this number.
pub fn no_such_program() -> Error {
    Error::new(b"42883", "confide: no such program")
        .hint("The extension and the keeper may be of different versions.")
}

/// A program does not match the way it is called.
pub fn misused_program(what: &'static str) -> Error {
    Error::new(b"42804", "confide: program does not fit the request").detail(what)
}

/// A result that cannot be signed.
pub fn unsigned(what: &'static str) -> Error {
    Error::new(b"55000", "confide: the result cannot be signed").detail(what)
}

/// A result that is too long to be signed.
pub fn unsigned_too_long() -> Error {
    Error::new(b"54000", "confide: the result is too long to be signed")
        .hint("Sign fewer rows at a time.")
}

/// A limit on programs is exceeded.
pub fn program_limit(what: &'static str) -> Error {
    Error::new(b"54000", "confide: program is too large").detail(what)
}

/// A malformed envelope.
pub fn bad_envelope(what: &'static str, hint: &'static str) -> Error {
    Error::new(b"22P03", "confide: invalid envelope")
        .detail(what)
        .hint(hint)
}

/// An envelope that cannot be opened.
pub fn wrong_key(what: &'static str, hint: &'static str) -> Error {
    Error::new(b"28000", "confide: envelope cannot be opened")
        .detail(what)
        .hint(hint)
}

/// There is no hidden memory for another key.
pub fn no_hidden_memory() -> Error {
    Error::new(b"53200", "confide: no hidden memory is left for a key")
        .detail(
            "The keys of sessions and of columns are in memory that the kernel hides from root.",
        )
        .hint("Close sessions, or raise secret_memory_size in the keeper's configuration.")
}

/// A failed handshake.
pub fn handshake(error: &envelope::Error) -> Error {
    if *error == envelope::Error::NoRoom {
        return no_hidden_memory();
    }
    Error::new(b"28000", "confide: handshake failed").detail(error.to_string())
}

/// An internal error, reported without a panic.
pub fn internal(what: &'static str) -> Error {
    Error::new(b"XX000", "confide: internal error in the keeper").detail(what)
}
