//! Order-revealing cells: who holds two can tell which value is less, and nothing of
//! either from one alone but its length (Lewi and Wu, CCS 2016: the block scheme of
//! section 4, with blocks of four bits).
//!
//! A cell has two halves. The *left* one has for each digit a key and where the digit
//! stands in a secret permutation of all sixteen; the *right* one has for each digit
//! and each place of the permutation how the digit that stands there compares with the
//! value's own, as 0, 1 or 2, hidden by a hash under that place's key. A left key opens
//! just one entry of another value's right half: that of the left value's digit, and only
//! as long as all digits before are equal.
//!
//! A row reveals at rest nothing in its right half; with the left half of another value,
//! which stored cells have for the sake of indexes, the order of both and the first digit
//! in which they differ. Known attacks on columns whose order is known: Grubbs and others,
//! S&P 2017; Durak and others, CCS 2016.
//!
//! Invariant: comparing needs no key, looks at no more than one entry a digit, and never
//! guesses: cells of different lengths are an error.

use crate::{ColumnKeys, Error};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Values of a digit.
const DIGITS: usize = 16;
pub use contract::soft::{LEFT_BYTES, NONCE_BYTES, RIGHT_BYTES};

/// What a seed's cipher is asked for.
#[derive(Clone, Copy)]
enum Purpose {
    /// The order of digits in the permutation.
    Permutation = 1,
    /// The key of a place.
    Key = 2,
    /// The seed of the next digit.
    Next = 3,
}

/// Encodes values of one column.
pub struct Ore {
    seed: zeroize::Zeroizing<[u8; 16]>,
}

/// Of a value's digits, four bits each, the first one first.
pub mod digits {
    /// Of an integer: as ordered as the integers are. `bytes` of two's complement, the
    /// highest first, as `to_be_bytes` gives them.
    pub fn signed<const N: usize>(mut bytes: [u8; N]) -> Vec<u8> {
        if let Some(first) = bytes.first_mut() {
            *first ^= 0x80;
        }
        of(&bytes)
    }

    /// Of the first `length` bytes of a text in "C" order, with zeros behind a shorter
    /// one. Texts that agree so far have equal digits, whatever follows.
    pub fn text(text: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        of(&bytes)
    }

    fn of(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().flat_map(|b| [b >> 4, b & 15]).collect()
    }
}

/// Where one digit's halves come from: everything follows from the digits before it.
struct Level {
    cipher: Aes128,
    /// Place of each digit.
    places: [usize; DIGITS],
}

impl Ore {
    /// For a column.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(keys: &ColumnKeys) -> Result<Ore, Error> {
        let seed = keys.derive("order")?;
        Ok(Ore { seed })
    }

    /// The left half, to be compared with right ones.
    ///
    /// # Errors
    /// [`Error::Range`] for a digit above 15.
    pub fn left(&self, digits: &[u8]) -> Result<Vec<u8>, Error> {
        let mut left = Vec::with_capacity(digits.len() * LEFT_BYTES);
        self.walk(digits, |level, digit| {
            let place = *level.places.get(digit).ok_or(Error::Range)?;
            left.extend_from_slice(&level.ask(Purpose::Key, place));
            left.push(u8::try_from(place).map_err(|_| Error::Range)?);
            Ok(())
        })?;
        Ok(left)
    }

    /// The right half, under a nonce that no other cell has.
    ///
    /// # Errors
    /// [`Error::Range`] for a digit above 15.
    pub fn right(&self, digits: &[u8], nonce: [u8; NONCE_BYTES]) -> Result<Vec<u8>, Error> {
        let mut right = nonce.to_vec();
        right.reserve(digits.len() * RIGHT_BYTES);
        self.walk(digits, |level, own| {
            let keys = level.ask_all(Purpose::Key);
            let mut entries = 0_u32;
            for (digit, place) in level.places.iter().enumerate() {
                let key = keys.get(*place).ok_or(Error::Range)?;
                let order = trit(digit.cmp(&own));
                let hidden = (order + hash(key, &nonce)) % 3;
                entries |= hidden << (2 * place);
            }
            right.extend_from_slice(&entries.to_le_bytes());
            Ok(())
        })?;
        Ok(right)
    }

    fn walk(
        &self,
        digits: &[u8],
        mut each: impl FnMut(&Level, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut seed = zeroize::Zeroizing::new(*self.seed);
        for digit in digits {
            let digit = usize::from(*digit);
            if digit >= DIGITS {
                return Err(Error::Range);
            }
            let level = Level::new(&seed);
            each(&level, digit)?;
            *seed = level.ask(Purpose::Next, digit);
        }
        Ok(())
    }
}

impl Level {
    fn new(seed: &[u8; 16]) -> Level {
        let mut level = Level {
            cipher: Aes128::new(seed.into()),
            places: [0; DIGITS],
        };
        // A pseudorandom permutation of sixteen: the order of sixteen random numbers.
        let random = level.ask_all(Purpose::Permutation).map(u128::from_le_bytes);
        for (place, own) in level.places.iter_mut().zip(&random) {
            *place = random.iter().filter(|other| *other < own).count();
        }
        level
    }

    fn ask(&self, purpose: Purpose, number: usize) -> [u8; 16] {
        let mut block = question(purpose, number);
        self.cipher.encrypt_block(&mut block);
        block.into()
    }

    /// All sixteen answers at once: AES has several blocks under way at a time.
    fn ask_all(&self, purpose: Purpose) -> [[u8; 16]; DIGITS] {
        let mut blocks: [Block; DIGITS] = std::array::from_fn(|n| question(purpose, n));
        self.cipher.encrypt_blocks(&mut blocks);
        blocks.map(Into::into)
    }
}

fn question(purpose: Purpose, number: usize) -> Block {
    let mut block = [0; 16];
    let [first, second, ..] = &mut block;
    *first = purpose as u8;
    // Below 16.
    *second = number as u8;
    block.into()
}

/// How the value of a left half compares with that of a right one.
///
/// # Errors
/// [`Error::Malformed`] and [`Error::OtherType`].
pub fn compare(left: &[u8], right: &[u8]) -> Result<Ordering, Error> {
    let (nonce, entries) = right
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or(Error::Malformed)?;
    let (left, []) = left.as_chunks::<LEFT_BYTES>() else {
        return Err(Error::Malformed);
    };
    let (entries, []) = entries.as_chunks::<RIGHT_BYTES>() else {
        return Err(Error::Malformed);
    };
    if left.len() != entries.len() {
        return Err(Error::OtherType);
    }
    for (digit, entries) in left.iter().zip(entries) {
        let order = entry(digit, entries, nonce)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// How one cell's value compares with another's, of which both halves are known: the left
/// halves agree as far as the digits do, so only the first entry behind is opened.
///
/// # Errors
/// As [`compare`].
pub fn compare_cells(left: &[u8], other: &[u8], right: &[u8]) -> Result<Ordering, Error> {
    let (nonce, entries) = right
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or(Error::Malformed)?;
    let ((left, []), (other, [])) = (
        left.as_chunks::<LEFT_BYTES>(),
        other.as_chunks::<LEFT_BYTES>(),
    ) else {
        return Err(Error::Malformed);
    };
    let (entries, []) = entries.as_chunks::<RIGHT_BYTES>() else {
        return Err(Error::Malformed);
    };
    if left.len() != other.len() || left.len() != entries.len() {
        return Err(Error::OtherType);
    }
    let digits = left.iter().zip(other).zip(entries);
    for ((digit, others), entries) in digits {
        if digit != others {
            return match entry(digit, entries, nonce)? {
                Ordering::Equal => Err(Error::Malformed),
                order => Ok(order),
            };
        }
    }
    Ok(Ordering::Equal)
}

/// Opens one entry of a right half.
fn entry(
    digit: &[u8; LEFT_BYTES],
    entries: &[u8; RIGHT_BYTES],
    nonce: &[u8; NONCE_BYTES],
) -> Result<Ordering, Error> {
    let [key @ .., place] = digit;
    if usize::from(*place) >= DIGITS {
        return Err(Error::Malformed);
    }
    let hidden = (u32::from_le_bytes(*entries) >> (2 * place)) & 3;
    Ok(match (hidden + 3 - hash(key, nonce)) % 3 {
        0 => Ordering::Equal,
        1 => Ordering::Less,
        _ => Ordering::Greater,
    })
}

fn trit(order: Ordering) -> u32 {
    match order {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    }
}

/// 0, 1 or 2 from a place's key and a nonce: AES under a key that everybody knows, as a
/// random permutation, made one-way (Matyas, Meyer and Oseas).
fn hash(key: &[u8; 16], nonce: &[u8; NONCE_BYTES]) -> u32 {
    static PUBLIC: LazyLock<Aes128> =
        LazyLock::new(|| Aes128::new(contract::soft::ORDER_HASH_KEY.into()));
    let input = u128::from_le_bytes(*key) ^ u128::from_le_bytes(*nonce);
    let mut block = input.to_le_bytes().into();
    PUBLIC.encrypt_block(&mut block);
    let output = u128::from_le_bytes(block.into()) ^ input;
    // 2^64 is 1 modulo 3. Not quite even, by 2^-128.
    let halves = [output as u64, (output >> 64) as u64];
    let [low, high] = halves.map(|half| (half % 3) as u32);
    (low + high) % 3
}
