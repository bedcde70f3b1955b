//! What the keeper says when it refuses or cannot: SQLSTATE, message, detail,
//! hint. No function here takes a value.

use contract::codec::Part;
use contract::{Code, TypeCode, body};
use std::sync::Arc;
use values::Error;

/// Why a session has ended while channels of it are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Its leader's channel is closed: what joined it ends with it.
    LeaderGone,
    /// Its client's key is authorised no more: until the next handshake.
    KeyWithdrawn,
    /// Its client has not renewed it in time: until it does.
    LeaseOver,
    /// Its client has left: until the next handshake.
    Left,
}

/// Why an operation gave no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What happened.
    pub error: Arc<Error>,
    /// Whether it was already told, or will be, for another operation: an
    /// operand was poisoned.
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

    /// The error by itself.
    pub fn into_error(self) -> Error {
        Arc::unwrap_or_clone(self.error)
    }
}

/// Writes an error as the body of [`contract::Kind::Error`] has it.
pub fn encode(error: &Error, out: &mut Vec<u8>) {
    body(error).put(out);
}

/// An error as it stands in a message.
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

/// A message's body is not what its kind asks for.
pub fn malformed(what: &'static str) -> Error {
    Error::new(b"08P01", "confide: malformed message to the keeper").detail(what)
}

/// The answer does not fit into a message.
pub fn answer_too_long() -> Error {
    Error::new(b"54000", "confide: answer is too long for a message")
}

/// The policy asks for a client session.
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

/// A value does not fit into its column as it is.
pub fn no_client_to_change() -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail("Without one a value enters a column only as it is: it is not rounded or cut.")
        .hint("Restore into a column of the type that the value came from.")
}

/// Export envelopes are not taken in.
pub fn no_exports() -> Error {
    Error::new(b"42501", "confide: no restore ticket")
        .detail("Without one values from export envelopes are not taken in.")
        .hint("Set confide.restore_ticket to what \"confide restore-ticket\" prints.")
}

/// A value from an export envelope goes where it came from only.
pub fn belongs_elsewhere() -> Error {
    Error::new(b"42501", "confide: the value belongs elsewhere")
        .detail("An export envelope is of one column of one database.")
        .hint("Set confide.restore_ticket to what \"confide restore-ticket\" prints.")
}

/// An owner lets nobody be told more of a column.
pub fn budget(column: &str, limit: u64, kind: &str) -> Error {
    Error::new(b"53400", "confide: no more may be told of a column")
        .detail(format!(
            "{column}: its owner allows {limit} {kind} for each principal."
        ))
        .hint("Ask the column's owner for another budget (confide.budget).")
}

/// A column is hidden from the client.
pub fn no_viewer() -> Error {
    Error::new(b"42501", "confide: the column is hidden from you")
        .detail("It can be selected, which shows its mask, and nothing else.")
        .hint("Ask its owner for GRANT VIEWER.")
}

/// A restore ticket is good for nothing.
pub fn bad_ticket(what: &'static str) -> Error {
    Error::new(b"42501", "confide: the restore ticket is not valid")
        .detail(what)
        .hint("Make another one with \"confide restore-ticket\".")
}

/// The order of a column is told without a client only if a client has an index on it.
pub fn no_client_to_compare() -> Error {
    Error::new(b"42501", "confide: no client session")
        .detail("Without one values are compared only in columns that a client has an index on.")
        .hint("Connect through the Confide proxy.")
}

/// A value may not go to another row.
pub fn no_client_to_move() -> Error {
    Error::new(b"42501", "confide: no client session")
        .code(Code::NoClient)
        .detail("Without one a value stays in its row.")
        .hint("Connect through the Confide proxy.")
}

/// At a standby nothing is written.
pub fn standby() -> Error {
    Error::new(
        b"25006",
        "confide: cannot store values of columns during recovery",
    )
    .detail("The cluster of this keeper is a standby.")
}

/// A FID of an arena of another session.
pub fn foreign() -> Error {
    Error::new(b"42501", "confide: no such value in this session")
        .detail("The identifier names a temporary value of another session, or of none.")
}

/// A result may only go to the channel's own arenas.
pub fn not_own_arena() -> Error {
    Error::new(
        b"42501",
        "confide: destination is not in the channel's arenas",
    )
}

/// An operand has another type than the operation takes.
pub fn wrong_type(found: TypeCode, wanted: TypeCode) -> Error {
    Error::new(b"42804", "confide: protected value is of another type").detail(format!(
        "The value is of type {}, the operation takes {}.",
        found.enc_name(),
        wanted.enc_name()
    ))
}

/// An aggregate's state stands where a value should.
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

/// A program does not fit the way it is called.
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

/// A limit on programs.
pub fn program_limit(what: &'static str) -> Error {
    Error::new(b"54000", "confide: program is too large").detail(what)
}

/// An envelope whose bytes are no good.
pub fn bad_envelope(what: &'static str, hint: &'static str) -> Error {
    Error::new(b"22P03", "confide: invalid envelope")
        .detail(what)
        .hint(hint)
}

/// An envelope that does not open.
pub fn wrong_key(what: &'static str, hint: &'static str) -> Error {
    Error::new(b"28000", "confide: envelope cannot be opened")
        .detail(what)
        .hint(hint)
}

/// A handshake that failed.
pub fn handshake(error: &envelope::Error) -> Error {
    Error::new(b"28000", "confide: handshake failed").detail(error.to_string())
}

/// Something that must not happen, without a panic.
pub fn internal(what: &'static str) -> Error {
    Error::new(b"XX000", "confide: internal error in the keeper").detail(what)
}
