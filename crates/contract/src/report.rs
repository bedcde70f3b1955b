//! Reports of the schema from the server to a client that watches it: the value of a
//! ParameterStatus of [`SETTING`].
//!
//! A value is a row of fields, each its length in decimal digits, a colon, and its bytes
//! in UTF-8. The first is the kind. A client asks for them with a Parse that it never
//! executes: `SET request TO 'identity', 'version'`, with [`REQUEST`].
//!
//! - [`WHOLE`], [`SINCE`], [`VERSION`], [`WITHOUT`]: whether the open transaction has
//!   changes (0 or 1), identity, version that it is told from, version; then records.
//! - [`PART`], [`OWN`]: records.
//! - [`DONE`], [`DONE_MORE`], [`UNDONE`]: version.
//! - [`KEPT`]: 0 or 1.
//! - [`PATH`]: the settings `search_path`, `role` and `session_authorization`, the
//!   temporary schema or nothing, how many schemas are searched, and these.
//!
//! Records begin with what they are:
//! - [`NAMESPACE`]: OID, name.
//! - [`TYPE`]: OID, namespace, name, relation or 0, type that it is made of or 0, 1 if a domain.
//! - [`RELATION`]: OID, namespace, name, kind, row type or 0; then of each column
//!   [`COLUMN`], number, name, type, modifier, 1 if generated, 1 if an identity; then [`END`].
//! - [`FUNCTION`]: OID, namespace, name, how many input arguments and their types, result,
//!   how many arguments and their types, modes, how many names and these, variadic element
//!   type or 0, how many defaults, language and text of the body where that is a string, and a hash of
//!   what else the routine does: SHA-256, in hexadecimal digits, of its kind, whether it is
//!   `SECURITY DEFINER`, strict and gives a set, its volatility, whether it is leakproof; and, each after a line
//!   feed, settings, library, source, parsed body, defaults, as they are in `pg_proc`.
//! - [`GONE`]: OID of the catalog, OID.

/// The setting, which does not exist.
pub const SETTING: &str = "confide.schema";
/// The setting of the request, which does not exist either.
pub const REQUEST: &str = "confide.schema_since";

/// The whole schema: all parts before this belong to it.
pub const WHOLE: u8 = b'W';
/// Some of the records of the next [`WHOLE`].
pub const PART: u8 = b'P';
/// What has changed behind a version.
pub const SINCE: u8 = b'S';
/// Something has changed; the newest version.
pub const VERSION: u8 = b'V';
/// The database does not have Confide. The client is told when it has.
pub const WITHOUT: u8 = b'N';
/// What the open transaction has changed.
pub const OWN: u8 = b'O';
/// The transaction has committed what it was told to have changed.
pub const DONE: u8 = b'C';
/// The same, and more that was not told.
pub const DONE_MORE: u8 = b'M';
/// The transaction's changes have been undone.
pub const UNDONE: u8 = b'U';
/// Whether the session has anything but settings that ends with it (1), so that it cannot be continued on another
/// connection, or no longer (0). From the client's first request on, ParameterStatus has all settings that change.
pub const KEPT: u8 = b'K';
/// The search path.
pub const PATH: u8 = b'Q';

/// A schema.
pub const NAMESPACE: u8 = b'n';
/// A type.
pub const TYPE: u8 = b't';
/// A relation.
pub const RELATION: u8 = b'r';
/// A column of the relation before.
pub const COLUMN: u8 = b'c';
/// The end of a relation.
pub const END: u8 = b'e';
/// A function.
pub const FUNCTION: u8 = b'f';
/// There is no such object any more.
pub const GONE: u8 = b'x';

/// Kinds and records with their names, for the C header.
pub const LETTERS: [(&str, u8); 18] = [
    ("WHOLE", WHOLE),
    ("PART", PART),
    ("SINCE", SINCE),
    ("VERSION", VERSION),
    ("WITHOUT", WITHOUT),
    ("OWN", OWN),
    ("DONE", DONE),
    ("DONE_MORE", DONE_MORE),
    ("UNDONE", UNDONE),
    ("KEPT", KEPT),
    ("PATH", PATH),
    ("NAMESPACE", NAMESPACE),
    ("TYPE", TYPE),
    ("RELATION", RELATION),
    ("COLUMN", COLUMN),
    ("END", END),
    ("FUNCTION", FUNCTION),
    ("GONE", GONE),
];
