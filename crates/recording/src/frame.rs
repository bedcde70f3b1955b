//! Frames: length `u32`, number `u64`, tag of the frame before (zeros before the first), what is
//! sealed. Number and tag are authenticated with it, so frames make a chain.
//!
//! A key seals one recording only, so a frame's number is its nonce.

use crate::order::{Key, take};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Size of a tag.
pub(crate) const TAG_BYTES: usize = 16;
/// The largest frame's content, packed.
pub(crate) const FRAME_MAX: usize = 256 << 20;
/// What a frame of messages begins with.
pub(crate) const MESSAGES: u8 = 1;
/// What the last frame begins with.
pub(crate) const END: u8 = 2;
/// How every file begins, before the recording's name.
pub(crate) const MAGIC: &[u8; 8] = b"CFDREC01";

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

    /// Appends a frame, and gives its tag.
    pub(crate) fn seal(
        &self,
        number: u64,
        before: &Tag,
        mut content: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<Tag> {
        let bound = Aad::from(self.bound(number, before));
        let nonce = Chain::nonce(number);
        self.key
            .seal_in_place_append_tag(nonce, bound, &mut content)
            .ok()?;
        let length = u32::try_from(content.len()).ok()?;
        out.extend(length.to_le_bytes());
        out.extend(number.to_le_bytes());
        out.extend(before);
        out.extend(&content);
        content.last_chunk().copied()
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
