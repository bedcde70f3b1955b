//! What the keeper seals, before it is sealed: as it is, or in LZ4 where that is shorter.
//! Segments of the vault and redo records use it (crates `vault`, `redo`).
//!
//! Bytes: form `u8`; for LZ4 the content's length as `u32`; then the content, or what
//! LZ4 made of it.
//!
//! Lengths then tell how well something compresses (docs/leakage.md), so whoever packs can
//! say no. What was packed is unpacked whatever the setting.
//!
//! Invariant: what was packed comes back as it was; any other bytes are `None`, without a
//! panic, and with no more memory than LZ4 could have made of them.
#![forbid(unsafe_code)]

use lz4_flex::block;
use zeroize::Zeroizing;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
/// Form and length before LZ4's bytes.
const HEADER_BYTES: usize = 1 + size_of::<u32>();
/// LZ4 makes at most so many bytes of one.
const RATIO_MAX: usize = 255;

/// Less than this is left as it is.
const LEAST: usize = 256;
/// Less than this is left as it is where memory is wiped: LZ4's own costs more than the bytes.
const LEAST_WIPED: usize = 4096;

/// Content, ready to be sealed. What is on the way is wiped.
pub fn pack(content: &[u8], compress: bool) -> Vec<u8> {
    Room::default().pack(content, compress, 0)
}

/// Memory that LZ4 writes to. Whoever packs much keeps it, since new memory takes longer than LZ4.
/// It is wiped in the end.
#[derive(Default)]
pub struct Room(Zeroizing<Vec<u8>>);

impl Room {
    /// As [`pack`], with capacity for so many bytes of a seal.
    pub fn pack(&mut self, content: &[u8], compress: bool, seal: usize) -> Vec<u8> {
        if compress
            && content.len() >= LEAST_WIPED
            && let Some(packed) = self.lz4(content, seal)
        {
            return packed;
        }
        let mut out = Vec::with_capacity(1 + content.len() + seal);
        out.push(PLAIN);
        out.extend_from_slice(content);
        out
    }

    /// `None` when it would not be shorter.
    fn lz4(&mut self, content: &[u8], seal: usize) -> Option<Vec<u8>> {
        let length = u32::try_from(content.len()).ok()?;
        let most = block::get_maximum_output_size(content.len());
        if self.0.len() < most {
            self.0 = Zeroizing::new(vec![0; most]);
        }
        let used = block::compress_into(content, &mut self.0).ok()?;
        let packed = self.0.get(..used)?;
        if HEADER_BYTES + used > content.len() {
            return None;
        }
        let mut out = Vec::with_capacity(HEADER_BYTES + used + seal);
        out.push(LZ4);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(packed);
        Some(out)
    }
}

/// Appends content, ready to be sealed, in the form that [`pack`] gives it. For content that is no
/// secret: nothing is wiped, so no memory is touched but the content's and the room for it.
pub fn append(content: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if let Ok(length) = u32::try_from(content.len())
        && content.len() >= LEAST
    {
        let begin = start + HEADER_BYTES;
        out.resize(begin + block::get_maximum_output_size(content.len()), 0);
        let room = out.get_mut(begin..).unwrap_or_default();
        let used = block::compress_into(content, room).unwrap_or(usize::MAX - HEADER_BYTES);
        if HEADER_BYTES + used <= content.len() {
            out.truncate(begin + used);
            if let Some([form, size @ ..]) = out.get_mut(start..begin) {
                *form = LZ4;
                size.copy_from_slice(&length.to_le_bytes());
            }
            return;
        }
        out.truncate(start);
    }
    out.push(PLAIN);
    out.extend_from_slice(content);
}

/// Whether LZ4 can make so many bytes of so few.
fn is_possible(length: usize, packed: usize) -> bool {
    length <= packed.saturating_mul(RATIO_MAX)
}

/// The content of what was opened; `None` when it was not packed.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed.split_first()? {
        (&PLAIN, content) => Some(content.to_vec()),
        (&LZ4, rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            if !is_possible(length, rest.len()) {
                return None;
            }
            let mut content = vec![0; length];
            let made = block::decompress_into(rest, &mut content).ok()?;
            (made == length).then_some(content)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content that compresses well, a little, and not at all.
    fn samples() -> Vec<Vec<u8>> {
        let noise = |n: u32| (0..n).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8);
        vec![
            vec![],
            vec![7],
            vec![7; LEAST],
            vec![7; LEAST_WIPED],
            vec![0; 100_000],
            noise(1000).collect(),
            (0..50_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect(),
        ]
    }

    #[test]
    fn there_and_back() {
        let mut room = Room::default();
        for content in samples() {
            for compress in [false, true] {
                let packed = pack(&content, compress);
                assert!(packed.len() <= content.len() + 1);
                assert!(compress || packed.len() == content.len() + 1);
                assert_eq!(unpack(&packed), Some(content.clone()));
                let again = room.pack(&content, compress, 16);
                assert!(again == packed && again.capacity() >= packed.len() + 16);
                if compress {
                    let mut appended = vec![9];
                    append(&content, &mut appended);
                    assert_eq!(unpack(&appended[1..]), Some(content.clone()));
                    assert!(content.len() < LEAST_WIPED || appended[1..] == packed);
                }
            }
        }
        let zeros = pack(&vec![0; 1 << 20], true);
        assert!(zeros.len() < 5000);
        assert!(is_possible(1 << 20, zeros.len() - HEADER_BYTES));
        assert!(!is_possible(1 << 21, zeros.len() - HEADER_BYTES));
    }

    /// What is unpacked is authentic already, so this is a second line: a length
    /// that is too large would be allocated, one that is not the content's would be served.
    #[test]
    fn any_bytes() {
        let packed = pack(&[3; 5000], true);
        for length in [0, 4999, 5001, u32::MAX] {
            let mut changed = packed.clone();
            changed[1..5].copy_from_slice(&length.to_le_bytes());
            assert_eq!(unpack(&changed), None, "{length}");
        }
        for cut in 0..packed.len() {
            assert_eq!(unpack(&packed[..cut]), None, "{cut}");
        }
        for form in 2..=255 {
            assert_eq!(unpack(&[form, 0, 0, 0, 0, 0]), None);
        }
        for content in samples() {
            let packed = pack(&content, true);
            for at in 0..packed.len().min(2000) {
                let mut changed = packed.clone();
                changed[at] ^= 0x55;
                let _ = unpack(&changed);
            }
        }
    }
}
