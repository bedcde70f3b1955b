//! Encodings with several bytes a character, by tables that `tests/clients/test_wide_encodings.py` makes
//! from the server's conversions.
//!
//! Libraries have the tables of the web, which are not PostgreSQL's.
//!
//! Not here: JIS X 0213, of which some characters are two in UTF-8.
use std::sync::OnceLock;

/// How the length of a character follows from its first bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    /// Always two bytes.
    Two,
    /// Two bytes, or three after 0x8F.
    Euc,
    /// As `Euc`, or three after 0x8E.
    EucCn,
    /// As `Euc`, or four after 0x8E.
    EucTw,
    /// One byte from 0xA1 to 0xDF, otherwise two.
    Sjis,
    /// Two bytes, or four if the second one is a digit.
    Gb18030,
}

/// Where the four-byte characters of GB18030 begin among the codes, in their order.
const FOUR: u32 = 0x10000;

/// An encoding and its tables, which are unpacked when they are first used.
#[derive(Debug)]
pub(super) struct Wide {
    pub(super) name: &'static str,
    form: Form,
    packed: &'static [u8],
    tables: OnceLock<Tables>,
}

/// What a sequence of bytes is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Read {
    Character(char),
    /// Valid, but there is no such character in UTF-8.
    Nothing,
    Invalid,
}

/// Consecutive codes that stand for consecutive characters.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u32,
    to: u32,
    count: u32,
}

/// Runs in the order of `from`, which do not overlap.
#[derive(Default, Debug)]
struct Runs(Vec<Run>);

#[derive(Default, Debug)]
struct Tables {
    /// Codes and characters that convert both ways, and the same by character.
    both: Runs,
    back: Runs,
    /// Codes that convert to a character of another code.
    only_read: Runs,
    /// Characters that convert to a code of another character.
    only_written: Runs,
    /// Valid codes without a character.
    none: Runs,
}

impl Runs {
    fn find(&self, from: u32) -> Option<u32> {
        let behind = self.0.partition_point(|run| run.from <= from);
        let run = self.0.get(behind.checked_sub(1)?)?;
        let at = from - run.from;
        (at < run.count).then(|| run.to + at)
    }

    fn flipped(&self) -> Runs {
        let flip = |run: &Run| Run {
            from: run.to,
            to: run.from,
            count: run.count,
        };
        let mut runs: Vec<Run> = self.0.iter().map(flip).collect();
        runs.sort_unstable_by_key(|run| run.from);
        Runs(runs)
    }
}

/// The next number, seven bits a byte.
fn varint(packed: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = packed.split_first()?;
        *packed = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The runs that `packed` in the test has written.
fn unpack(packed: &mut &[u8]) -> Option<Runs> {
    let mut runs = Runs::default();
    let (mut from, mut to) = (0u64, 0u64);
    for _ in 0..varint(packed)? {
        let gap = varint(packed)?;
        let step = varint(packed)?;
        let count = match gap & 1 {
            1 => varint(packed)?,
            _ => 1,
        };
        from = from.checked_add(gap >> 1)?;
        to = to.checked_add_signed((step >> 1).cast_signed() ^ -(step & 1).cast_signed())?;
        runs.0.push(Run {
            from: u32::try_from(from).ok()?,
            to: u32::try_from(to).ok()?,
            count: u32::try_from(count).ok()?,
        });
        from = from.checked_add(count)?;
        to = to.checked_add(count)?;
    }
    Some(runs)
}

impl Tables {
    fn unpacked(mut packed: &[u8]) -> Option<Tables> {
        let both = unpack(&mut packed)?;
        Some(Tables {
            back: both.flipped(),
            both,
            only_read: unpack(&mut packed)?,
            only_written: unpack(&mut packed)?,
            none: unpack(&mut packed)?,
        })
    }
}

/// A number that counts up through digits of these ranges; the last digit is the lowest.
const DIGITS: [(u8, u32); 4] = [(0x81, 126), (0x30, 10), (0x81, 126), (0x30, 10)];

impl Wide {
    const fn new(name: &'static str, form: Form, packed: &'static [u8]) -> Wide {
        Wide {
            name,
            form,
            packed,
            tables: OnceLock::new(),
        }
    }

    fn tables(&self) -> &Tables {
        let unpack = || Tables::unpacked(self.packed).unwrap_or_default();
        self.tables.get_or_init(unpack)
    }

    /// The number of bytes of the character at the beginning, which is none of ASCII; it may be cut short.
    pub(super) fn length(&self, bytes: &[u8]) -> usize {
        let first = bytes.first().copied().unwrap_or_default();
        match (self.form, first) {
            (Form::Sjis, 0xa1..=0xdf) => 1,
            (Form::Euc | Form::EucCn | Form::EucTw, 0x8f) | (Form::EucCn, 0x8e) => 3,
            (Form::EucTw, 0x8e) => 4,
            (Form::Gb18030, _) if bytes.get(1).is_some_and(u8::is_ascii_digit) => 4,
            _ => 2,
        }
    }

    /// The code of one character; `None` if it is not valid.
    fn code(&self, sequence: &[u8]) -> Option<u32> {
        if self.form != Form::Gb18030 || sequence.len() != 4 {
            let joined = |code, byte: &u8| code << 8 | u32::from(*byte);
            return Some(sequence.iter().fold(0, joined));
        }
        let mut code = 0;
        for (byte, (zero, range)) in sequence.iter().zip(DIGITS) {
            let digit = u32::from(byte.checked_sub(zero)?);
            if digit >= range {
                return None;
            }
            code = code * range + digit;
        }
        Some(FOUR + code)
    }

    /// Appends the bytes of a code.
    fn put(&self, code: u32, out: &mut Vec<u8>) {
        let mut bytes = code.to_be_bytes();
        let mut rest = code.wrapping_sub(FOUR);
        if self.form == Form::Gb18030 && code >= FOUR {
            for (byte, (zero, range)) in bytes.iter_mut().zip(DIGITS).rev() {
                *byte = zero + u8::try_from(rest % range).unwrap_or_default();
                rest /= range;
            }
        }
        out.extend(bytes.iter().skip_while(|byte| **byte == 0));
    }

    /// Reads one character of this length.
    pub(super) fn read(&self, sequence: &[u8]) -> Read {
        let tables = self.tables();
        let Some(code) = self.code(sequence) else {
            return Read::Invalid;
        };
        let found = tables.both.find(code);
        match found.or_else(|| tables.only_read.find(code)) {
            Some(found) => char::from_u32(found).map_or(Read::Invalid, Read::Character),
            None if tables.none.find(code).is_some() => Read::Nothing,
            None => Read::Invalid,
        }
    }

    /// Appends a character; `None` if the encoding does not have it.
    pub(super) fn write(&self, character: char, out: &mut Vec<u8>) -> Option<()> {
        let tables = self.tables();
        let found = tables.back.find(character.into());
        let code = found.or_else(|| tables.only_written.find(character.into()))?;
        self.put(code, out);
        Some(())
    }
}

/// By the names that the server reports.
pub(super) static ALL: [Wide; 10] = [
    Wide::new("EUC_JP", Form::Euc, include_bytes!("wide/EUC_JP.runs")),
    Wide::new("SJIS", Form::Sjis, include_bytes!("wide/SJIS.runs")),
    Wide::new("BIG5", Form::Two, include_bytes!("wide/BIG5.runs")),
    Wide::new("GBK", Form::Two, include_bytes!("wide/GBK.runs")),
    Wide::new("UHC", Form::Two, include_bytes!("wide/UHC.runs")),
    Wide::new("EUC_KR", Form::Euc, include_bytes!("wide/EUC_KR.runs")),
    Wide::new("EUC_CN", Form::EucCn, include_bytes!("wide/EUC_CN.runs")),
    Wide::new("EUC_TW", Form::EucTw, include_bytes!("wide/EUC_TW.runs")),
    Wide::new("JOHAB", Form::Euc, include_bytes!("wide/JOHAB.runs")),
    Wide::new(
        "GB18030",
        Form::Gb18030,
        include_bytes!("wide/GB18030.runs"),
    ),
];

#[cfg(test)]
mod tests {
    use super::{ALL, Read};

    /// All tables are whole, and each character that converts both ways comes back as itself.
    /// A bug would change what passes through.
    #[test]
    fn back_and_forth() {
        for wide in &ALL {
            let tables = wide.tables();
            let count: u32 = tables.both.0.iter().map(|run| run.count).sum();
            assert!(count > 5000, "{}", wide.name);
            for code in tables.both.0.iter().flat_map(|r| r.from..r.from + r.count) {
                let mut bytes = Vec::new();
                wide.put(code, &mut bytes);
                assert_eq!(wide.length(&bytes), bytes.len(), "{} {code:x}", wide.name);
                let Read::Character(read) = wide.read(&bytes) else {
                    panic!("{} {code:x}", wide.name);
                };
                let mut again = Vec::new();
                wide.write(read, &mut again).unwrap();
                assert_eq!(again, bytes);
            }
        }
    }

    /// Characters that are read from another code than they are written to.
    #[test]
    fn one_way() {
        let sjis = ALL.iter().find(|wide| wide.name == "SJIS").unwrap();
        assert_eq!(sjis.read(b"\x87\x90"), Read::Character('\u{2252}'));
        let mut out = Vec::new();
        sjis.write('\u{2252}', &mut out).unwrap();
        assert_eq!(out, b"\x81\xe0");
    }
}
