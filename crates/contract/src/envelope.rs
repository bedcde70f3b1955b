//! Envelopes: values in AEAD, the only form in which a value crosses to a
//! client, a dump or another server.
//!
//! Bytes of every envelope: [`MAGIC`] at 0, [`Origin`] at 1, type code at 2 (0:
//! see [`FLAG_TEXT`]), flags at 3. Then, in an export envelope only, 8 bytes of
//! key epoch. Then a 12-byte nonce, the ciphertext, and a 16-byte tag. All
//! before the nonce is authenticated as associated data. The AEAD is
//! AES-256-GCM; keys of session envelopes come from the session's handshake (one
//! per direction), the key of an export envelope from the root key and the epoch.
//!
//! A *delivery envelope* ([`Origin::Delivery`]) is of a value of a column, for all sessions whose
//! clients have the column's key. Where an export envelope has its epoch it has the number of
//! that key, 8 bytes. A client gets the key in an envelope of its session with [`FLAG_KEYED`],
//! whose plaintext is the key's number, its [`KEY_BYTES`], and then the value.
//!
//! An export envelope with [`FLAG_HOME`] says behind the epoch where its value belongs
//! ([`HOME_BYTES`], authenticated too): 8 bytes for the database, 16 for the column. One
//! without it is of an earlier version, and belongs nowhere.
//!
//! With [`FLAG_FITTED`] the value fits a column: behind the header stand [`TARGET_BYTES`] that say
//! which (authenticated), 16 for the column and its type modifier (`i32`). It is sealed under the
//! session's *storing key*, which recovery can derive from a redo record, and always in binary
//! format.
//!
//! The plaintext is the value in PostgreSQL's binary format (what the type's
//! send function gives), or with [`FLAG_TEXT`] in its text format, to be read by
//! the input function of whatever type it meets.
//!
//! With [`FLAG_BATCH`] an envelope holds the values of many rows of a COPY in one
//! column: after the header stands their number (`u32`, not 0, authenticated), and the
//! plaintext is, for each, its length as a varint (7 bits a byte, lowest first) and
//! its bytes. It stands in the column's field of the first of these rows; the others
//! refer to their value by its number: in text [`REFERENCE`] and decimal digits, in
//! binary format the same byte and a `u32`.
//!
//! In text (literals, COPY, results) an envelope is [`TEXT_PREFIX`] followed by
//! unpadded URL-safe base64 of these bytes.

/// First byte of every envelope.
pub const MAGIC: u8 = 0xCF;
/// Prefix of every envelope in text.
pub const TEXT_PREFIX: &str = "cfd1.";
/// Bytes before the nonce (session envelopes) or the epoch (export envelopes).
pub const HEADER_BYTES: usize = 4;
/// Size in bytes of the key epoch of an export envelope, or of the key number of a delivery
/// envelope.
pub const EPOCH_BYTES: usize = 8;
/// Size in bytes of the database identity in an export envelope.
pub const DATABASE_BYTES: usize = 8;
/// Size in bytes of the column identity in it.
pub const COLUMN_BYTES: usize = 16;
/// Size of the column and type modifier in an envelope with [`FLAG_FITTED`].
pub const TARGET_BYTES: usize = COLUMN_BYTES + 4;
/// Size of both.
pub const HOME_BYTES: usize = DATABASE_BYTES + COLUMN_BYTES;
/// Size of a column's key in bytes.
pub const KEY_BYTES: usize = 32;
/// Size of what precedes the value in an envelope with [`FLAG_KEYED`]: number and key.
pub const KEYED_BYTES: usize = EPOCH_BYTES + KEY_BYTES;
/// Size of the nonce in bytes.
pub const NONCE_BYTES: usize = 12;
/// Size of the tag in bytes.
pub const TAG_BYTES: usize = 16;
/// Size in bytes of the number of values in a batch.
pub const COUNT_BYTES: usize = 4;
/// First byte of a field that refers to a value in the batch of its column.
pub const REFERENCE: u8 = b'@';
/// Follows an envelope, or a cell of the family `soft_`, in the detail of an error, where PostgreSQL would have
/// cut a value after [`DETAIL_VALUE_BYTES`].
pub const CUT: u8 = b'~';
/// Maximum length of a value in the detail of an error about a row, in bytes.
pub const DETAIL_VALUE_BYTES: usize = 64;
/// Maximum number of values in a batch.
pub const BATCH_MAX: usize = crate::message::ROWS_MAX;
/// Maximum size of the plaintext in bytes.
pub const PLAINTEXT_MAX: usize = crate::message::BODY_MAX - 1024;

/// Flag: the plaintext is text for the input function of the type that it meets; the type code is
/// 0, or the type whose text format it is in.
pub const FLAG_TEXT: u8 = 1;
/// Flag: the value lives until the session ends, as a prepared statement may; without the flag,
/// until the statement ends.
pub const FLAG_HANDLE: u8 = 2;
/// Flag: the value may stand in a message, not only in a row (docs/security.md, "Messages").
/// Envelopes of the keeper for a session only, which have no [`FLAG_HANDLE`].
pub const FLAG_QUOTED: u8 = FLAG_HANDLE;
/// Flag: the values of many rows of a COPY in one column. Clients only.
pub const FLAG_BATCH: u8 = 4;
/// Flag: not a value but a grant (crate `grant`), which says what a statement may do. Clients only.
pub const FLAG_GRANT: u8 = 8;
/// Flag: the envelope names the database and column of its value. Export envelopes only.
pub const FLAG_HOME: u8 = 16;
/// Flag: the envelope includes the key of the value's column. Envelopes of the keeper for a session
/// only.
pub const FLAG_KEYED: u8 = 32;
/// Flag: there is a value, but the client is shown NULL instead (docs/security.md, "Owners and
/// viewers"); the plaintext is empty. Envelopes of the keeper for a session only.
pub const FLAG_NULL: u8 = 64;
/// Flag: the client has fitted the value to a column, which is named, and sealed it under the
/// session's storing key. Clients only.
pub const FLAG_FITTED: u8 = 128;

/// The maker of an envelope, which determines its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Origin {
    /// The client, with the session's key from client to keeper.
    Client = 1,
    /// The keeper, with the session's key from keeper to client.
    Keeper = 2,
    /// The keeper, with its export key.
    Export = 3,
    /// The keeper, with a key of the value's column, which clients have if they may see the column.
    Delivery = 4,
}

impl Origin {
    /// The origin with this code, if there is one.
    pub const fn from_u8(code: u8) -> Option<Origin> {
        match code {
            1 => Some(Origin::Client),
            2 => Some(Origin::Keeper),
            3 => Some(Origin::Export),
            4 => Some(Origin::Delivery),
            _ => None,
        }
    }
}
