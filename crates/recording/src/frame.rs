//! Frames: length `u32`, number `u64`, tag of the frame before (zeros before the first), what is
//! sealed. Number and tag are authenticated with it, so frames make a chain.
//!
//! A key seals one recording only, so a frame's number is its nonce.

use crate::order::{Key, take};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Size of a tag.
pub(crate) const TAG_BYTES: usize = 16;
/// What stands before what is sealed: length, number, tag of the frame before.
pub(crate) const HEAD_BYTES: usize = 4 + 8 + TAG_BYTES;
/// From so many bytes on messages make a frame: as much as a processor's cache holds.
pub(crate) const FRAME_BYTES: usize = 512 << 10;
/// What a frame of messages begins with.
pub(crate) const MESSAGES: u8 = 1;
/// What the last frame begins with.
pub(crate) const END: u8 = 2;
/// How every file begins, before the recording's name.
pub(crate) const MAGIC: &[u8; 8] = b"CFDREC03";

/// The tag of a frame.
pub(crate) type Tag = [u8; TAG_BYTES];

/// Seals and opens the frames of a recording.
pub(crate) struct Chain {
    key: LessSafeKey,
    id: [u8; 8],
}

/// A frame as it lies in a file.
pub(crate) struct Frame<'a> {
    pub(crate) number: u64,
    pub(crate) before: Tag,
    sealed: &'a [u8],
}

impl Chain {
    pub(crate) fn new(key: &Key) -> Option<Chain> {
        let sealing = UnboundKey::new(&AES_256_GCM, key.bytes()).ok()?;
        Some(Chain {
            key: LessSafeKey::new(sealing),
            id: key.id(),
        })
    }

    fn nonce(number: u64) -> Nonce {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&number.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    }

    fn bound(&self, number: u64, before: &Tag) -> Vec<u8> {
        [self.id.as_slice(), &number.to_le_bytes(), before].concat()
    }

    /// Seals a frame in place: [`HEAD_BYTES`] of room, then its content. Gives its tag.
    pub(crate) fn seal(&self, number: u64, before: &Tag, frame: &mut Vec<u8>) -> Option<Tag> {
        let bound = Aad::from(self.bound(number, before));
        let (head, content) = frame.split_first_chunk_mut::<HEAD_BYTES>()?;
        let length = u32::try_from(content.len() + TAG_BYTES).ok()?;
        let nonce = Chain::nonce(number);
        let sealed = self
            .key
            .seal_in_place_separate_tag(nonce, bound, content)
            .ok()?;
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4..12].copy_from_slice(&number.to_le_bytes());
        head[12..].copy_from_slice(before);
        let tag: Tag = sealed.as_ref().try_into().ok()?;
        frame.extend(tag);
        Some(tag)
    }

    /// The content of a frame and its tag, if it is authentic.
    pub(crate) fn open(&self, frame: &Frame<'_>) -> Option<(Vec<u8>, Tag)> {
        let tag = *frame.sealed.last_chunk()?;
        let bound = Aad::from(self.bound(frame.number, &frame.before));
        let mut content = frame.sealed.to_vec();
        let nonce = Chain::nonce(frame.number);
        let length = self.key.open_in_place(nonce, bound, &mut content).ok()?;
        let length = length.len();
        content.truncate(length);
        Some((content, tag))
    }
}

/// The next frame of a file.
pub(crate) fn next<'a>(rest: &mut &'a [u8]) -> Option<Frame<'a>> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let number = u64::from_le_bytes(take(rest)?);
    let before = take(rest)?;
    let (sealed, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(Frame {
        number,
        before,
        sealed,
    })
}
