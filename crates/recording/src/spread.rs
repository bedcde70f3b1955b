//! Rearranges bytes before they are compressed. Messages consist of numbers of eight bytes that differ
//! little from one to the next (identifiers, keys of groups): of each the difference to the one before
//! is taken bit by bit, then all first bytes come, then all second ones, and so on. Most of these are
//! zeros then, which take no time to compress, and no room.
//!
//! Invariants: the length stays; [`gather`] undoes [`spread`].

/// Less than this stays as it is.
const LEAST: usize = 64;
const WORD: usize = 8;

/// The transpose of a square of bytes: the n-th word has the n-th byte of each.
fn transposed(mut words: [u64; WORD]) -> [u64; WORD] {
    const STEPS: [(usize, u32, u64); 3] = [
        (1, 8, 0x00ff_00ff_00ff_00ff),
        (2, 16, 0x0000_ffff_0000_ffff),
        (4, 32, 0x0000_0000_ffff_ffff),
    ];
    for (distance, bits, low) in STEPS {
        for n in 0..WORD {
            if n & distance == 0 {
                let (a, b) = (words[n], words[n | distance]);
                words[n] = (a & low) | ((b & low) << bits);
                words[n | distance] = ((a >> bits) & low) | (b & !low);
            }
        }
    }
    words
}

/// Appends the bytes, rearranged.
pub(crate) fn spread(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(bytes);
    if bytes.len() < LEAST {
        return;
    }
    let (squares, _) = bytes.as_chunks::<{ WORD * WORD }>();
    let planes = out.get_mut(start..).unwrap_or_default();
    let (planes, _) = planes.split_at_mut(squares.len() * WORD * WORD);
    let mut planes: Vec<&mut [[u8; WORD]]> = planes
        .chunks_exact_mut(squares.len() * WORD)
        .map(|plane| plane.as_chunks_mut().0)
        .collect();
    let mut before = 0;
    for (at, square) in squares.iter().enumerate() {
        let mut words = [0; WORD];
        for (word, eight) in words.iter_mut().zip(square.as_chunks().0) {
            let this = u64::from_le_bytes(*eight);
            *word = this ^ before;
            before = this;
        }
        for (plane, word) in planes.iter_mut().zip(transposed(words)) {
            if let Some(eight) = plane.get_mut(at) {
                *eight = word.to_le_bytes();
            }
        }
    }
}

/// Appends what [`spread`] was given.
pub(crate) fn gather(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(bytes);
    if bytes.len() < LEAST {
        return;
    }
    let count = bytes.len() / (WORD * WORD);
    let planes: Vec<&[[u8; WORD]]> = bytes
        .chunks_exact(count * WORD)
        .take(WORD)
        .map(|plane| plane.as_chunks().0)
        .collect();
    let (squares, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
    let mut before = 0;
    for (at, square) in squares.iter_mut().enumerate() {
        let square: &mut [u8; WORD * WORD] = square;
        let mut words = [0; WORD];
        for (word, plane) in words.iter_mut().zip(&planes) {
            *word = plane.get(at).copied().map_or(0, u64::from_le_bytes);
        }
        for (eight, word) in square.as_chunks_mut().0.iter_mut().zip(transposed(words)) {
            before ^= word;
            *eight = before.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lengths; numbers that count up become zeros nearly all. With a bug what is read is not what
    /// was written, or takes more room.
    #[test]
    fn there_and_back() {
        let noise: Vec<u8> = (0..2000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 21) as u8)
            .collect();
        for length in (0..400).chain([1999, 2000]) {
            let bytes = &noise[..length];
            let (mut spreaded, mut gathered) = (vec![7], vec![8]);
            spread(bytes, &mut spreaded);
            assert_eq!(spreaded.len(), 1 + length);
            gather(&spreaded[1..], &mut gathered);
            assert_eq!((gathered[0], &gathered[1..]), (8, bytes), "{length}");
        }
        let numbers: Vec<u8> = (0..512u64)
            .flat_map(|i| (0x0123_4567_0000_0000 + 3 * i).to_le_bytes())
            .collect();
        let mut spreaded = Vec::new();
        spread(&numbers, &mut spreaded);
        let zeros = spreaded.iter().filter(|byte| **byte == 0).count();
        assert!(zeros > 512 * 6, "{zeros}");
        // The square itself: byte m of word n goes to byte n of word m.
        let square =
            std::array::from_fn(|n| 0x0706_0504_0302_0100 + 0x1010_1010_1010_1010 * n as u64);
        let turned = transposed(square);
        assert_eq!(turned[0], 0x7060_5040_3020_1000);
        assert_eq!(transposed(turned), square);
    }
}
