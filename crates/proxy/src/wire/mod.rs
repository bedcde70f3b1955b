//! The PostgreSQL protocol, version 3, as bytes. There is one file per family of messages, without
//! state or I/O.
//!
//! Invariant: no input makes these functions panic; malformed input is an error.
pub mod backend;
pub mod frame;
pub mod frontend;
pub mod startup;
pub mod strings;

/// A message that violates the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

/// Reads the parts of a message body.
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Creates a reader of this body; errors mention `what`.
    pub fn new(body: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { rest: body, what }
    }

    fn bad(&self) -> Malformed {
        Malformed(self.what)
    }

    /// Bytes up to a zero byte, which is skipped.
    pub fn cstr(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.rest.iter().position(|b| *b == 0);
        let (text, tail) = end
            .and_then(|end| self.rest.split_at_checked(end))
            .ok_or(self.bad())?;
        self.rest = tail.get(1..).ok_or(self.bad())?;
        Ok(text)
    }

    /// Like [`Reader::cstr`], but must be valid UTF-8.
    pub fn str(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.cstr()?;
        std::str::from_utf8(bytes).map_err(|_| Malformed("text is not UTF-8"))
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(self.bad())?;
        self.rest = tail;
        Ok(head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes.
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    /// Four bytes.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// Four bytes, unsigned.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// The number of items that follow.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        self.array().map(|b| usize::from(u16::from_be_bytes(b)))
    }

    /// A value preceded by its length; `None` for NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| self.bad())?;
                self.bytes(length).map(Some)
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(self.bad())?;
        self.rest = tail;
        Ok(*head)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Fails if anything is left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.bad())
        }
    }
}
