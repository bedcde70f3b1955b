//! A set of byte strings, numbered in order of arrival: the forms of groups' keys, and of values
//! that count once. Their meaning is unknown here.
//!
//! Invariant: equal strings have the same number; whoever chooses the strings cannot predict
//! collisions.

/// A set of byte strings, numbered in the order of arrival.
pub struct Strings {
    /// Number + 1 of a string, by its hash; 0 if the place is empty.
    places: Vec<u32>,
    hashes: Vec<u64>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    seed: u64,
}

/// Memory per string in addition to its bytes, with room for growth.
const STRING_BYTES: usize = 48;
const PLACES_MIN: usize = 64;

impl Default for Strings {
    fn default() -> Strings {
        use std::hash::BuildHasher;
        Strings {
            places: vec![0; PLACES_MIN],
            hashes: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            // Values come from clients, who must not be able to predict collisions.
            seed: std::hash::RandomState::new().hash_one(0u8),
        }
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Strings {
    #[inline]
    fn hash(&self, bytes: &[u8]) -> u64 {
        const K: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = self.seed ^ (bytes.len() as u64).wrapping_mul(K);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            hash = fold(
                hash ^ u64::from_le_bytes(*word),
                K ^ self.seed.rotate_left(32),
            );
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            hash = fold(
                hash ^ u64::from_le_bytes(last),
                K ^ self.seed.rotate_left(32),
            );
        }
        fold(hash, K)
    }

    /// The string with this number.
    #[inline]
    pub fn string(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = match number {
            0 => 0,
            n => self.ends.get(n - 1).copied().unwrap_or(0),
        };
        let end = self.ends.get(number).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of a string, or its hash if it is new.
    #[inline]
    pub fn find(&self, string: &[u8]) -> Result<u32, u64> {
        let hash = self.hash(string);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.places.get(at) {
                None | Some(0) => return Err(hash),
                Some(number) => {
                    let number = number - 1;
                    if self.hashes.get(number as usize) == Some(&hash)
                        && self.string(number) == string
                    {
                        return Ok(number);
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a new string and returns its number.
    pub fn add(&mut self, hash: u64, string: &[u8]) -> u32 {
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        if self.hashes.len() * 2 > self.places.len() {
            self.places = vec![0; self.places.len() * 2];
            for number in 0..self.hashes.len() as u32 {
                self.place(number);
            }
        } else {
            self.place(number);
        }
        number
    }

    fn place(&mut self, number: u32) {
        let mask = self.places.len() - 1;
        let mut at = self.hashes.get(number as usize).copied().unwrap_or(0) as usize & mask;
        // There is always an empty place, since at most half are taken.
        while self.places.get(at).is_some_and(|p| *p != 0) {
            at = (at + 1) & mask;
        }
        if let Some(place) = self.places.get_mut(at) {
            *place = number + 1;
        }
    }

    /// Memory needed for a new string, with room for growth.
    pub fn cost(&self, string: &[u8]) -> usize {
        STRING_BYTES + 2 * string.len()
    }
}
