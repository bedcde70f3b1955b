//! Small readers of bytes: blanks, digits, binary words.
//!
//! Nothing here panics; missing input is `None` or an error.

use crate::{Error, Result};

/// What C's `isspace` accepts in the C locale.
pub(crate) fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Without blanks at the start.
pub(crate) fn trim_start(s: &[u8]) -> &[u8] {
    let n = s.iter().take_while(|&&b| is_space(b)).count();
    s.get(n..).unwrap_or_default()
}

/// Without blanks at both ends.
pub(crate) fn trim(s: &[u8]) -> &[u8] {
    let s = trim_start(s);
    let n = s.iter().rev().take_while(|&&b| is_space(b)).count();
    s.get(..s.len() - n).unwrap_or_default()
}

/// The digits at the start, and the rest.
pub(crate) fn digits(s: &[u8]) -> (&[u8], &[u8]) {
    let n = s.iter().take_while(|b| b.is_ascii_digit()).count();
    s.split_at_checked(n).unwrap_or((s, b""))
}

/// The value of a run of digits, if it fits.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |v, b| {
        v.checked_mul(10)?
            .checked_add(i64::from(b.checked_sub(b'0')?))
    })
}

/// Reads big-endian words.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| Error::new(b"08P01", "insufficient data left in message"))?;
        self.0 = tail;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes
            .try_into()
            .map_err(|_| Error::new(b"08P01", "insufficient data left in message"))
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }
}
