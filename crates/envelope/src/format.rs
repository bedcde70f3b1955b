//! The binary and text formats of an envelope. No cryptography.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::TypeCode;
use contract::envelope::{
    BATCH_MAX, COLUMN_BYTES, COUNT_BYTES, EPOCH_BYTES, FLAG_BATCH, FLAG_FITTED, FLAG_GRANT,
    FLAG_HANDLE, FLAG_HOME, FLAG_KEYED, FLAG_NULL, FLAG_QUOTED, FLAG_TEXT, HEADER_BYTES,
    HOME_BYTES, MAGIC, NONCE_BYTES, Origin, TAG_BYTES, TARGET_BYTES, TEXT_PREFIX,
};

use crate::Error;

/// Where a value belongs: its database and its column.
pub type Home = [u8; HOME_BYTES];

/// The column that a value was fitted to, and its type modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Identity of the column.
    pub column: [u8; COLUMN_BYTES],
    /// Type modifier, -1 for none.
    pub typmod: i32,
}

impl Target {
    pub(crate) fn bytes(&self) -> [u8; TARGET_BYTES] {
        let mut bytes = [0; TARGET_BYTES];
        let (column, typmod) = bytes.split_at_mut(COLUMN_BYTES);
        column.copy_from_slice(&self.column);
        typmod.copy_from_slice(&self.typmod.to_le_bytes());
        bytes
    }
}

/// Whether envelopes of this origin may have these flags; every bit is one.
fn possible(origin: Origin, flags: u8) -> bool {
    let alone = |flag: u8, of: Origin| flags & flag == 0 || (origin == of && flags == flag);
    let with = |flag: u8, other: u8| origin == Origin::Client && flags & !other == flag;
    (flags & FLAG_HOME == 0 || origin == Origin::Export)
        && alone(FLAG_KEYED, Origin::Keeper)
        && alone(FLAG_NULL, Origin::Keeper)
        && (flags == 0 || origin != Origin::Delivery)
        && (flags & FLAG_FITTED == 0 || with(FLAG_FITTED, FLAG_HANDLE))
        && (flags & FLAG_GRANT == 0 || with(FLAG_GRANT | FLAG_TEXT, 0))
}

/// Takes the next bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Error> {
    let (head, tail) = rest.split_first_chunk().ok_or(Error::Truncated)?;
    *rest = tail;
    Ok(*head)
}

/// The parts of the envelope of a value that fits a column. The rest of the envelope follows from
/// them.
#[derive(Clone, Copy)]
pub struct Fitted<'a> {
    /// Code of its type.
    pub type_code: u8,
    /// Flags of [`contract::envelope`].
    pub flags: u8,
    /// The column, and its type modifier.
    pub target: Target,
    /// Number of the envelope, which is its nonce.
    pub counter: u64,
    /// Ciphertext and tag.
    pub sealed: &'a [u8],
}

impl Fitted<'_> {
    pub(crate) fn associated(&self) -> [u8; HEADER_BYTES + TARGET_BYTES] {
        let mut bytes = [0; HEADER_BYTES + TARGET_BYTES];
        let (header, target) = bytes.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&[MAGIC, Origin::Client as u8, self.type_code, self.flags]);
        target.copy_from_slice(&self.target.bytes());
        bytes
    }
}

/// A parsed envelope, not yet opened: nothing here is authenticated.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// Its maker, according to the header.
    pub origin: Origin,
    /// Type of the value; none for the text of an unknown literal.
    pub type_code: Option<TypeCode>,
    /// Flags of [`contract::envelope`].
    pub flags: u8,
    /// Key epoch of an export envelope, or key number of a delivery envelope.
    pub epoch: Option<[u8; EPOCH_BYTES]>,
    /// Where the value of an export envelope belongs, if it is included.
    pub home: Option<Home>,
    /// Number of values, for a batch only.
    pub count: Option<u32>,
    /// The column that the value was fitted to, if it was.
    pub target: Option<Target>,
    pub(crate) associated: &'a [u8],
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) sealed: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Parses the binary format.
    pub fn parse(bytes: &'a [u8]) -> Result<Envelope<'a>, Error> {
        if bytes.first() != Some(&MAGIC) {
            return Err(Error::NotAnEnvelope);
        }
        let (header, mut rest) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Error::Truncated)?;
        let [_, origin, type_code, flags] = *header;
        let origin = Origin::from_u8(origin).ok_or(Error::UnsupportedVersion)?;
        if !possible(origin, flags) {
            return Err(Error::UnsupportedVersion);
        }
        let type_code = match type_code {
            0 if flags & FLAG_TEXT != 0 => None,
            code => Some(TypeCode::from_u8(code).ok_or(Error::UnsupportedVersion)?),
        };
        let mut epoch = None;
        if matches!(origin, Origin::Export | Origin::Delivery) {
            epoch = Some(take(&mut rest)?);
        }
        let mut home = None;
        if flags & FLAG_HOME != 0 {
            home = Some(take(&mut rest)?);
        }
        let mut count = None;
        if flags & FLAG_BATCH != 0 {
            let values = u32::from_le_bytes(take::<COUNT_BYTES>(&mut rest)?);
            if origin != Origin::Client || values == 0 || values as usize > BATCH_MAX {
                return Err(Error::UnsupportedVersion);
            }
            count = Some(values);
        }
        let mut target = None;
        if flags & FLAG_FITTED != 0 {
            target = Some(Target {
                column: take(&mut rest)?,
                typmod: i32::from_le_bytes(take(&mut rest)?),
            });
        }
        let associated = &bytes[..bytes.len() - rest.len()];
        let nonce = take(&mut rest)?;
        if rest.len() < TAG_BYTES {
            return Err(Error::Truncated);
        }
        Ok(Envelope {
            origin,
            type_code,
            flags,
            epoch,
            home,
            count,
            target,
            associated,
            nonce,
            sealed: rest,
        })
    }

    pub(crate) fn parse_fitted(
        fitted: &Fitted<'a>,
        associated: &'a [u8; HEADER_BYTES + TARGET_BYTES],
    ) -> Result<Envelope<'a>, Error> {
        if fitted.flags & !FLAG_HANDLE != FLAG_FITTED {
            return Err(Error::UnsupportedVersion);
        }
        let t = TypeCode::from_u8(fitted.type_code).ok_or(Error::UnsupportedVersion)?;
        let mut nonce = [0; NONCE_BYTES];
        nonce[NONCE_BYTES - 8..].copy_from_slice(&fitted.counter.to_le_bytes());
        Ok(Envelope {
            origin: Origin::Client,
            type_code: Some(t),
            flags: fitted.flags,
            epoch: None,
            home: None,
            count: None,
            target: Some(fitted.target),
            associated,
            nonce,
            sealed: fitted.sealed,
        })
    }

    /// Whether it contains a grant, not a value.
    pub fn is_grant(&self) -> bool {
        self.flags & FLAG_GRANT != 0
    }

    /// Whether the key of the value's column precedes the value.
    pub fn is_keyed(&self) -> bool {
        self.flags & FLAG_KEYED != 0
    }

    /// Whether the value may stand in a message.
    pub fn is_quoted(&self) -> bool {
        self.origin == Origin::Keeper && self.flags & FLAG_QUOTED != 0
    }

    /// Whether NULL is to be shown instead of a value.
    pub fn is_null(&self) -> bool {
        self.flags & FLAG_NULL != 0
    }

    /// Whether the plaintext is in the type's text format.
    pub fn is_text(&self) -> bool {
        self.flags & FLAG_TEXT != 0
    }
}

/// Whether this text claims to be an envelope (of any version).
pub fn looks_like_text(text: &[u8]) -> bool {
    match text {
        [b'c', b'f', b'd', version, b'.', ..] => version.is_ascii_digit(),
        _ => false,
    }
}

/// Appends the text format of an envelope.
pub fn to_text(binary: &[u8], out: &mut String) {
    out.push_str(TEXT_PREFIX);
    URL_SAFE_NO_PAD.encode_string(binary, out);
}

/// Decodes the text format and appends the binary envelope.
pub fn from_text(text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let Some(body) = text.strip_prefix(TEXT_PREFIX.as_bytes()) else {
        return Err(if looks_like_text(text) {
            Error::UnsupportedVersion
        } else {
            Error::NotAnEnvelope
        });
    };
    URL_SAFE_NO_PAD.decode_vec(body, out).map_err(|_| {
        out.clear();
        Error::NotAnEnvelope
    })
}
