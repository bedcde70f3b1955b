//! Encoding of the parts of a message: numbers, records, lists and texts; each type knows its
//! length. The messages are in [`crate::message::table`].
//!
//! Decoding is checked and copies nothing: lists remain bytes of the message, and elements are
//! decoded on access. Encoding appends to any [`Sink`].
//!
//! Invariants: no input makes a reader panic; [`Part::decode`] rejects trailing bytes; decoding and
//! encoding again yields the same bytes, unless reserved bytes were not zero.

use crate::describe::{Form, Number};
use crate::{Fid, TypeCode};
use core::ffi::CStr;
use core::marker::PhantomData;

/// Why bytes are malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

const SHORT: Malformed = Malformed("The message is too short for its kind.");
const SHORTER: Malformed = Malformed("The message is shorter than it says.");
const LONGER: Malformed = Malformed("There are bytes after the end of the message.");
const UNEVEN: Malformed = Malformed("A list in the message ends within an element.");
const NO_TYPE: Malformed = Malformed("There is no such type.");
const BAD_TEXT: Malformed = Malformed("A text in the message is not ended or not UTF-8.");

/// Receives the bytes of a message.
pub trait Sink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl<T: for<'b> Extend<&'b u8>> Sink for T {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }
}

/// The rest of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads all of these bytes.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// Takes a fixed number of bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    /// Takes a number of bytes given by the message.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(SHORTER)?;
        self.0 = rest;
        Ok(head)
    }

    /// Takes all that is left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Returns what `now`, a later state of this reader, has taken since.
    #[inline]
    pub fn up_to(&self, now: &Reader<'a>) -> &'a [u8] {
        let taken = self.0.len().saturating_sub(now.0.len());
        self.0.get(..taken).unwrap_or_default()
    }

    /// Whether nothing is left.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails if anything is left.
    #[inline]
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(LONGER)
        }
    }
}

/// A type of fixed size: a number, or a record of such types.
pub trait Fixed: Copy {
    /// Size in bytes.
    const BYTES: usize;
    /// Whether some bytes of this size are invalid.
    const CHECKED: bool;
    /// Its form, for the generator.
    const FORM: Form;
    /// Decodes one.
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed>;
    /// Encodes it.
    fn put(&self, to: &mut impl Sink);
}

/// A part of a message. Its size may be given by preceding numbers.
pub trait Part<'a>: Sized {
    /// Its form, for the generator.
    const FORM: Form;
    /// Decodes one. Without `counts` it extends to the end of the message, or has a terminator.
    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<Self, Malformed>;
    /// Encodes it.
    fn put(&self, to: &mut impl Sink);

    /// Decodes a whole message.
    #[inline]
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        let part = Self::take(&mut from, &[])?;
        from.end()?;
        Ok(part)
    }
}

/// A sink that compares with the expected bytes.
struct Expected<'a>(Option<&'a [u8]>);

impl<'b> Extend<&'b u8> for Expected<'_> {
    fn extend<I: IntoIterator<Item = &'b u8>>(&mut self, bytes: I) {
        for byte in bytes {
            let split = self.0.and_then(<[u8]>::split_first);
            self.0 = split
                .filter(|(first, _)| *first == byte)
                .map(|(_, rest)| rest);
        }
    }
}

/// Whether bytes can be decoded, and encode to the same bytes again.
pub fn same<'a, T: Part<'a>>(bytes: &'a [u8]) -> bool {
    let mut left = Expected(Some(bytes));
    T::decode(bytes).is_ok_and(|part| {
        part.put(&mut left);
        left.0.is_some_and(<[u8]>::is_empty)
    })
}

/// Like [`same`], for a type of fixed size.
pub fn same_fixed<T: Fixed>(bytes: &[u8]) -> bool {
    let (mut from, mut left) = (Reader::new(bytes), Expected(Some(bytes)));
    T::take(&mut from).is_ok_and(|fixed| {
        fixed.put(&mut left);
        from.is_empty() && left.0.is_some_and(<[u8]>::is_empty)
    })
}

macro_rules! numbers {
    ($($t:ty = $number:ident;)*) => {$(
        impl Fixed for $t {
            const BYTES: usize = size_of::<$t>();
            const CHECKED: bool = false;
            const FORM: Form = Form::Number(Number::$number);

            #[inline]
            fn take(from: &mut Reader<'_>) -> Result<$t, Malformed> {
                from.array().map(|bytes| <$t>::from_le_bytes(*bytes))
            }

            #[inline]
            fn put(&self, to: &mut impl Sink) {
                to.put(&self.to_le_bytes());
            }
        }
    )*};
}

numbers! { u8 = U8; u16 = U16; u32 = U32; u64 = U64; i32 = I32; i64 = I64; }

impl Fixed for Fid {
    const BYTES: usize = 8;
    const CHECKED: bool = false;
    const FORM: Form = Form::Number(Number::Fid);

    #[inline]
    fn take(from: &mut Reader<'_>) -> Result<Fid, Malformed> {
        u64::take(from).map(Fid)
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        self.0.put(to);
    }
}

impl Fixed for TypeCode {
    const BYTES: usize = 1;
    const CHECKED: bool = true;
    const FORM: Form = Form::Number(Number::Type);

    #[inline]
    fn take(from: &mut Reader<'_>) -> Result<TypeCode, Malformed> {
        TypeCode::from_u8(u8::take(from)?).ok_or(NO_TYPE)
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        (*self as u8).put(to);
    }
}

/// The code of a type, or 0.
impl Fixed for Option<TypeCode> {
    const BYTES: usize = 1;
    const CHECKED: bool = true;
    const FORM: Form = Form::Number(Number::TypeOrNone);

    #[inline]
    fn take(from: &mut Reader<'_>) -> Result<Option<TypeCode>, Malformed> {
        match u8::take(from)? {
            0 => Ok(None),
            code => TypeCode::from_u8(code).ok_or(NO_TYPE).map(Some),
        }
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        self.map_or(0, |t| t as u8).put(to);
    }
}

impl<const N: usize> Fixed for [u8; N] {
    const BYTES: usize = N;
    const CHECKED: bool = false;
    const FORM: Form = Form::Array(N);

    #[inline]
    fn take(from: &mut Reader<'_>) -> Result<[u8; N], Malformed> {
        from.array().copied()
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        to.put(self);
    }
}

/// The product of counts.
#[inline]
fn product(counts: &[usize]) -> Result<usize, Malformed> {
    let product = counts
        .iter()
        .try_fold(1_usize, |all, n| all.checked_mul(*n));
    product.ok_or(SHORTER)
}

/// Elements of a fixed size, without gaps: as many as the product of the counts, or up to the end
/// of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Fixed> List<'a, T> {
    /// Makes a list of these bytes; a partial element at the end is ignored.
    pub fn new(bytes: &'a [u8]) -> List<'a, T> {
        let whole = bytes.len() / T::BYTES * T::BYTES;
        List {
            bytes: bytes.get(..whole).unwrap_or_default(),
            of: PhantomData,
        }
    }

    /// Number of elements.
    #[inline]
    pub const fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes in the message.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns an element, if it exists.
    #[inline]
    pub fn get(&self, at: usize) -> Option<T> {
        let start = at.checked_mul(T::BYTES)?;
        let bytes = self.bytes.get(start..start.checked_add(T::BYTES)?)?;
        T::take(&mut Reader(bytes)).ok()
    }

    /// Splits the list after that many elements, if there are as many.
    #[inline]
    pub fn split_at(&self, count: usize) -> Option<(List<'a, T>, List<'a, T>)> {
        let (head, rest) = self.bytes.split_at_checked(count.checked_mul(T::BYTES)?)?;
        Some((List::new(head), List::new(rest)))
    }

    /// Iterates over the elements.
    #[inline]
    pub fn iter(&self) -> Elements<'a, T> {
        Elements(*self)
    }
}

impl List<'_, Fid> {
    /// Appends the elements, all at once.
    #[inline]
    pub fn append_to(&self, out: &mut impl Extend<Fid>) {
        let (fids, _) = self.bytes.as_chunks();
        out.extend(fids.iter().map(|bytes| Fid(u64::from_le_bytes(*bytes))));
    }
}

impl<'a, T: Fixed> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Elements<'a, T>;

    #[inline]
    fn into_iter(self) -> Elements<'a, T> {
        Elements(self)
    }
}

/// The remaining elements of a [`List`].
#[derive(Clone)]
pub struct Elements<'a, T>(List<'a, T>);

impl<T: Fixed> Iterator for Elements<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let (head, rest) = self.0.bytes.split_at_checked(T::BYTES)?;
        self.0.bytes = rest;
        T::take(&mut Reader(head)).ok()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<T: Fixed> ExactSizeIterator for Elements<'_, T> {}

impl<'a, T: Fixed> Part<'a> for List<'a, T> {
    const FORM: Form = Form::List(&T::FORM);

    #[inline]
    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<List<'a, T>, Malformed> {
        let bytes = if counts.is_empty() {
            from.rest()
        } else {
            from.bytes(product(counts)?.checked_mul(T::BYTES).ok_or(SHORTER)?)?
        };
        if !bytes.len().is_multiple_of(T::BYTES) {
            return Err(UNEVEN);
        }
        if T::CHECKED {
            for element in bytes.chunks_exact(T::BYTES) {
                T::take(&mut Reader(element))?;
            }
        }
        Ok(List {
            bytes,
            of: PhantomData,
        })
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        to.put(self.bytes);
    }
}

/// Elements of variable size: as many as the product of the counts, or up to the end of the
/// message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Each<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Part<'a>> Each<'a, T> {
    /// Makes a sequence of these bytes.
    pub fn new(bytes: &'a [u8]) -> Each<'a, T> {
        Each {
            bytes,
            of: PhantomData,
        }
    }

    /// Iterates over the elements.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut from = Reader(self.bytes);
        core::iter::from_fn(move || {
            if from.is_empty() {
                return None;
            }
            T::take(&mut from, &[]).ok()
        })
    }
}

impl<'a, T: Part<'a>> Part<'a> for Each<'a, T> {
    const FORM: Form = Form::Each(&T::FORM);

    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<Each<'a, T>, Malformed> {
        let start = *from;
        let count = match counts {
            [] => usize::MAX,
            counts => product(counts)?,
        };
        for _ in 0..count {
            if counts.is_empty() && from.is_empty() {
                break;
            }
            let left = from.0.len();
            T::take(from, &[])?;
            // Elements without bytes would repeat forever.
            if from.0.len() == left {
                return Err(SHORTER);
            }
        }
        Ok(Each::new(start.up_to(from)))
    }

    fn put(&self, to: &mut impl Sink) {
        to.put(self.bytes);
    }
}

/// Bytes: as many as the product of the counts, or up to the end of the message.
impl<'a> Part<'a> for &'a [u8] {
    const FORM: Form = Form::Bytes;

    #[inline]
    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<&'a [u8], Malformed> {
        match counts {
            [] => Ok(from.rest()),
            counts => from.bytes(product(counts)?),
        }
    }

    #[inline]
    fn put(&self, to: &mut impl Sink) {
        to.put(self);
    }
}

/// A zero-terminated text. When it is encoded, zero bytes in it are omitted.
impl<'a> Part<'a> for &'a str {
    const FORM: Form = Form::Text;

    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<&'a str, Malformed> {
        let text = <&CStr>::take(from, counts)?;
        text.to_str().map_err(|_| BAD_TEXT)
    }

    fn put(&self, to: &mut impl Sink) {
        for part in self.split('\0') {
            to.put(part.as_bytes());
        }
        to.put(&[0]);
    }
}

/// A zero-terminated text that is only hashed or compared: any bytes but zeros.
impl<'a> Part<'a> for &'a CStr {
    const FORM: Form = Form::Text;

    fn take(from: &mut Reader<'a>, _: &[usize]) -> Result<&'a CStr, Malformed> {
        let text = CStr::from_bytes_until_nul(from.0).map_err(|_| BAD_TEXT)?;
        from.bytes(text.count_bytes() + 1)?;
        Ok(text)
    }

    fn put(&self, to: &mut impl Sink) {
        to.put(self.to_bytes_with_nul());
    }
}

/// An optional part at the end of a message.
impl<'a, T: Part<'a>> Part<'a> for Option<T> {
    const FORM: Form = Form::Optional(&T::FORM);

    fn take(from: &mut Reader<'a>, counts: &[usize]) -> Result<Option<T>, Malformed> {
        if from.is_empty() {
            return Ok(None);
        }
        T::take(from, counts).map(Some)
    }

    fn put(&self, to: &mut impl Sink) {
        if let Some(part) = self {
            part.put(to);
        }
    }
}
