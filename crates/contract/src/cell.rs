//! Cells: values of the family `rnd_` as they stand in rows (docs/families.md).
//!
//! A *sealed* cell is what is stored: [`SEALED`] at 0, type code at 1, then the identity of
//! the column ([`COLUMN_BYTES`]), the epoch of its key ([`EPOCH_BYTES`]), the number of the
//! cell in that epoch ([`NUMBER_BYTES`], little-endian), the generation of the column's key
//! ([`GENERATION_BYTES`], little-endian), the ciphertext, and a tag
//! ([`TAG_BYTES`]). Everything before the ciphertext is authenticated as associated data. The
//! AEAD is AES-256-GCM; its key comes from the root key, the column, the generation and the epoch,
//! its nonce from the number and the generation. The plaintext is the value in PostgreSQL's binary
//! format. A column whose key was never changed has generation 0.
//!
//! A sealed cell *with a token* has [`TOKENED`] at 0 and, between number and ciphertext, a token
//! ([`TOKEN_BYTES`]), which is authenticated, too: HMAC-SHA-256, cut, of a form of the value that
//! equal values have in common, under a key that depends on the root key only. So equal values have
//! equal tokens, in whatever column they are, and nobody needs a key to see that.
//!
//! A *loose* cell is [`LOOSE`] and a FID: a value on its way, which is not stored. It lives as
//! long as the value that the FID stands for.
//!
//! In text (dumps, COPY without a client) a sealed cell is [`TEXT_PREFIX`] followed by unpadded
//! URL-safe base64 of these bytes.

/// First byte of a loose cell.
pub const LOOSE: u8 = 1;
/// First byte of a sealed cell.
pub const SEALED: u8 = 2;
/// First byte of a sealed cell with a token.
pub const TOKENED: u8 = 3;
/// What a sealed cell in text begins with.
pub const TEXT_PREFIX: &str = "cell1.";
/// Size of what names the column.
pub const COLUMN_BYTES: usize = crate::envelope::COLUMN_BYTES;
/// Size of the epoch of a key.
pub const EPOCH_BYTES: usize = 8;
/// Size of a cell's number.
pub const NUMBER_BYTES: usize = 5;
/// Size of the generation of a column's key.
pub const GENERATION_BYTES: usize = 3;
/// Where the generation begins.
pub const GENERATION_AT: usize = 2 + COLUMN_BYTES + EPOCH_BYTES + NUMBER_BYTES;
/// Size of the tag.
pub const TAG_BYTES: usize = 16;
/// Bytes before the ciphertext.
pub const HEADER_BYTES: usize = GENERATION_AT + GENERATION_BYTES;
/// Size of a token.
pub const TOKEN_BYTES: usize = 16;
/// In [`crate::message::body::CellSeal`]: into a cell with a token.
pub const WITH_TOKEN: u8 = 1;
/// In [`crate::message::body::CellCompare`]: for an index, which a client wants to be kept.
pub const FOR_INDEX: u8 = 1;
/// Bit of a type modifier of a stored column: the rest is the number of the column.
pub const NUMBERED: u32 = 1 << 30;
