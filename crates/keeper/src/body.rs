//! Takes the bodies of messages apart. Every access is checked; what is wrong
//! becomes an error of the request, not of the channel.

use crate::fail::malformed;
use contract::{Fid, TypeCode};
use values::Error;

/// What is left of a body.
#[derive(Clone, Copy)]
pub struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    /// A whole body.
    pub fn new(bytes: &'a [u8]) -> Body<'a> {
        Body(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or_else(|| malformed("The message is too short for its kind."))?;
        self.0 = rest;
        Ok(*head)
    }

    /// Takes a byte.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[b]| b)
    }

    /// Takes a `u16`.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    /// Takes a `u32`.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes an `i32`.
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_le_bytes)
    }

    /// Takes a `u64`.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a FID.
    pub fn fid(&mut self) -> Result<Fid, Error> {
        self.u64().map(Fid)
    }

    /// Takes the code of a type.
    pub fn type_code(&mut self) -> Result<TypeCode, Error> {
        TypeCode::from_u8(self.u8()?).ok_or_else(|| malformed("There is no such type."))
    }

    /// Takes the code of a type, or 0 for plain booleans.
    pub fn type_code_or_plain(&mut self) -> Result<Option<TypeCode>, Error> {
        if self.0.first() == Some(&0) {
            return self.u8().map(|_| None);
        }
        self.type_code().map(Some)
    }

    /// Takes a number of bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| malformed("The message is shorter than it says."))?;
        self.0 = rest;
        Ok(head)
    }

    /// Takes bytes that mean nothing.
    pub fn skip<const N: usize>(&mut self) -> Result<(), Error> {
        self.array::<N>().map(drop)
    }

    /// Takes a string that a zero byte ends.
    pub fn string(&mut self) -> Result<&'a str, Error> {
        let bad = || malformed("A string in the message is not ended or not UTF-8.");
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(bad)?;
        let (head, tail) = self.0.split_at(end);
        self.0 = tail.get(1..).unwrap_or(&[]);
        std::str::from_utf8(head).map_err(|_| bad())
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// What is left, as exactly `count` FIDs.
    pub fn fids(self, count: usize, out: &mut Vec<Fid>) -> Result<(), Error> {
        if count.checked_mul(8) != Some(self.0.len()) {
            return Err(malformed(
                "The message does not have as many FIDs as it says.",
            ));
        }
        out.clear();
        let words = self.0.chunks_exact(8).filter_map(<[u8]>::first_chunk);
        out.extend(words.map(|bytes| Fid(u64::from_le_bytes(*bytes))));
        Ok(())
    }
}
