//! MD5 (RFC 1321) for the function `md5`, which returns hexadecimal digits; not to be used for
//! anything else.

/// The shifts of each round.
const SHIFTS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// The constant of step `i`: the whole part of 2^32 |sin(i + 1)|.
fn constant(i: u32) -> u32 {
    ((f64::from(i) + 1.0).sin().abs() * 4_294_967_296.0) as u32
}

/// The digest.
pub(super) fn md5(data: &[u8]) -> [u8; 16] {
    let table: Vec<u32> = (0..64).map(constant).collect();
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = data.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if data.len() % 64 >= 56 {
        padded.resize(padded.len() + 64, 0);
    }
    let bits = (data.len() as u64).wrapping_mul(8);
    padded.truncate(padded.len() - 8);
    padded.extend_from_slice(&bits.to_le_bytes());
    for block in padded.chunks_exact(64) {
        step(&mut state, block, &table);
    }
    let mut out = [0; 16];
    for (place, word) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn step(state: &mut [u32; 4], block: &[u8], table: &[u32]) {
    let words: Vec<u32> = block
        .chunks_exact(4)
        .map(|w| w.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b)))
        .collect();
    let [mut a, mut b, mut c, mut d] = *state;
    for (i, constant) in table.iter().enumerate() {
        let (f, word) = match i / 16 {
            0 => (b & c | !b & d, i),
            1 => (d & b | !d & c, 5 * i + 1),
            2 => (b ^ c ^ d, 3 * i + 5),
            _ => (c ^ (b | !d), 7 * i),
        };
        let word = words.get(word % 16).copied().unwrap_or(0);
        let shifts = SHIFTS.get(i / 16).copied().unwrap_or_default();
        let shift = shifts.get(i % 4).copied().unwrap_or(0);
        let sum = a.wrapping_add(f).wrapping_add(*constant).wrapping_add(word);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(shift)));
    }
    for (held, new) in state.iter_mut().zip([a, b, c, d]) {
        *held = held.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::md5;

    fn hex(data: &[u8]) -> String {
        md5(data).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The examples of RFC 1321, and lengths around a block's end.
    #[test]
    fn digests() {
        assert_eq!(hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        let digits = b"1234567890".repeat(8);
        assert_eq!(hex(&digits), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(hex(&b"a".repeat(55)), "ef1772b6dff9a122358552954ad0df65");
        assert_eq!(hex(&b"a".repeat(56)), "3b0c8ac703f828b04c6c197006d17218");
        assert_eq!(hex(&b"a".repeat(64)), "014842d480b571495a4a0363793f7367");
    }
}
