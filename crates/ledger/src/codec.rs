//! Encoding of what is hashed and signed: little-endian integers, and byte strings preceded by
//! their length, so different contents have different bytes.
//!
//! Invariant: decoding encoded bytes yields the original, and rejects trailing bytes.

use crate::Error;

/// Encodes values as bytes.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Has room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Writer {
        Writer(Vec::with_capacity(bytes))
    }

    /// Writes into memory that was used before, in place of what is there.
    pub(crate) fn over(mut bytes: Vec<u8>) -> Writer {
        bytes.clear();
        Writer(bytes)
    }

    /// Begins anew, with the memory it has.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a number over the one that stands there.
    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        if let Some(place) = self.0.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
            *place = value.to_le_bytes();
        }
    }

    /// Writes bytes whose length the reader knows.
    pub(crate) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes the length as `u64`, then the bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.fixed(bytes);
    }

    /// Writes 0 for `None`, or 1 and the bytes.
    pub(crate) fn optional(&mut self, bytes: Option<&[u8]>) {
        self.u8(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Decodes bytes.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.fixed().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.fixed().map(u16::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.fixed().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.u64()?).map_err(|_| SHORT)?;
        let (head, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let text = std::str::from_utf8(self.bytes()?);
        Ok(text
            .map_err(|_| Error::Malformed("text is not UTF-8"))?
            .to_owned())
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Error::Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn optional(&mut self) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.boolean()? {
            true => Some(self.bytes()?.to_vec()),
            false => None,
        })
    }

    /// Reads a number of records, each of at least `least` bytes. A number that cannot be right is
    /// refused before anything is allocated.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Error> {
        let count = usize::try_from(self.u64()?).map_err(|_| SHORT)?;
        let needed = count.checked_mul(least).ok_or(SHORT)?;
        if needed > self.0.len() {
            return Err(SHORT);
        }
        Ok(count)
    }

    pub(crate) fn end(self) -> Result<(), Error> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Error::Malformed("something follows the end")),
        }
    }
}

const SHORT: Error = Error::Malformed("it ends too early");

#[cfg(test)]
mod tests {
    use super::*;

    /// With the bug a file of some bytes could ask for as much memory as it likes.
    #[test]
    fn counts() {
        let bytes = |count: u64| [&count.to_le_bytes(), [0; 24].as_slice()].concat();
        assert_eq!(Reader::new(&bytes(3)).count(8), Ok(3));
        for more in [4, 1 << 40, u64::MAX] {
            assert_eq!(Reader::new(&bytes(more)).count(8), Err(SHORT));
        }
    }
}
