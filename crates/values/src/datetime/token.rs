//! Cuts date, time and interval input into fields, and knows their keywords.

use crate::scan::is_space;

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Digits, possibly with a decimal point.
    Number,
    /// Digits with delimiters, or letters with delimiters.
    Date,
    /// Digits with colons.
    Time,
    /// Letters.
    Word,
    /// A sign and letters.
    Special,
    /// A sign and digits.
    Zone,
}

/// One field, letters in lower case.
pub(crate) struct Field {
    pub kind: Kind,
    pub text: Vec<u8>,
}

/// What can be wrong with input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bad {
    Format,
    FieldRange,
    MonthDayRange,
    ZoneRange,
    ZoneName,
}

/// The most fields an input may have.
const MAX_FIELDS: usize = 25;

/// Bits for the kinds of information seen.
pub(crate) mod mask {
    pub const RESERVED: u32 = 1;
    pub const MONTH: u32 = 1 << 1;
    pub const YEAR: u32 = 1 << 2;
    pub const DAY: u32 = 1 << 3;
    pub const ZONE: u32 = 1 << 5;
    pub const DST: u32 = 1 << 6;
    pub const DYNAMIC: u32 = 1 << 7;
    pub const MERIDIAN: u32 = 1 << 9;
    pub const HOUR: u32 = 1 << 10;
    pub const MINUTE: u32 = 1 << 11;
    pub const SECOND: u32 = 1 << 12;
    pub const MILLI: u32 = 1 << 13;
    pub const MICRO: u32 = 1 << 14;
    pub const YEARDAY: u32 = 1 << 15;
    pub const WEEKDAY: u32 = 1 << 16;
    pub const ERA: u32 = 1 << 18;
    pub const WEEK: u32 = 1 << 24;
    pub const DECADE: u32 = 1 << 25;
    pub const CENTURY: u32 = 1 << 26;
    pub const MILLENNIUM: u32 = 1 << 27;
    pub const DST_MOD: u32 = 1 << 28;
    pub const DATE: u32 = YEAR | MONTH | DAY;
    pub const SECONDS: u32 = SECOND | MILLI | MICRO;
    pub const TIME: u32 = HOUR | MINUTE | SECONDS;
}

/// A unit of time in input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Micro,
    Milli,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    Time,
    Zone,
    Other,
}

/// A word for a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Now,
    Yesterday,
    Today,
    Tomorrow,
    /// 00:00 UTC
    Allballs,
    Epoch,
    Infinity,
    NegInfinity,
}

/// A keyword of dates and times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Moment(Moment),
    Month(i64),
    Weekday,
    Ignore,
    Pm(bool),
    Bc(bool),
    DstMod,
    Unit(Unit),
    /// `t` before an ISO time
    IsoTime,
}

/// A keyword of intervals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    Unit(Unit),
    Ago,
    Ignore,
}

/// Keywords count by their first ten letters.
fn key(text: &[u8]) -> &[u8] {
    text.get(..10).unwrap_or(text)
}

/// Looks up a keyword of dates and times.
pub(crate) fn word(text: &[u8]) -> Option<Word> {
    Some(match key(text) {
        b"-infinity" => Word::Moment(Moment::NegInfinity),
        b"infinity" => Word::Moment(Moment::Infinity),
        b"epoch" => Word::Moment(Moment::Epoch),
        b"now" => Word::Moment(Moment::Now),
        b"today" => Word::Moment(Moment::Today),
        b"tomorrow" => Word::Moment(Moment::Tomorrow),
        b"yesterday" => Word::Moment(Moment::Yesterday),
        b"allballs" => Word::Moment(Moment::Allballs),
        b"jan" | b"january" => Word::Month(1),
        b"feb" | b"february" => Word::Month(2),
        b"mar" | b"march" => Word::Month(3),
        b"apr" | b"april" => Word::Month(4),
        b"may" => Word::Month(5),
        b"jun" | b"june" => Word::Month(6),
        b"jul" | b"july" => Word::Month(7),
        b"aug" | b"august" => Word::Month(8),
        b"sep" | b"sept" | b"september" => Word::Month(9),
        b"oct" | b"october" => Word::Month(10),
        b"nov" | b"november" => Word::Month(11),
        b"dec" | b"december" => Word::Month(12),
        b"sun" | b"sunday" | b"mon" | b"monday" | b"tue" | b"tues" | b"tuesday" | b"wed"
        | b"weds" | b"wednesday" | b"thu" | b"thur" | b"thurs" | b"thursday" | b"fri"
        | b"friday" | b"sat" | b"saturday" => Word::Weekday,
        b"at" | b"on" => Word::Ignore,
        b"am" => Word::Pm(false),
        b"pm" => Word::Pm(true),
        b"ad" => Word::Bc(false),
        b"bc" => Word::Bc(true),
        b"dst" => Word::DstMod,
        b"d" => Word::Unit(Unit::Day),
        b"h" => Word::Unit(Unit::Hour),
        b"j" | b"jd" | b"julian" => Word::Unit(Unit::Julian),
        b"m" => Word::Unit(Unit::Month),
        b"mm" => Word::Unit(Unit::Minute),
        b"s" => Word::Unit(Unit::Second),
        b"y" => Word::Unit(Unit::Year),
        b"dow" | b"doy" | b"isodow" | b"isoyear" => Word::Unit(Unit::Other),
        b"t" => Word::IsoTime,
        _ => return None,
    })
}

/// Looks up a keyword of intervals.
pub(crate) fn span(text: &[u8]) -> Option<Span> {
    let unit = match key(text) {
        b"@" => return Some(Span::Ignore),
        b"ago" => return Some(Span::Ago),
        b"microsecon" | b"us" | b"usec" | b"usecond" | b"useconds" | b"usecs" => Unit::Micro,
        b"millisecon" | b"ms" | b"msec" | b"msecond" | b"mseconds" | b"msecs" => Unit::Milli,
        b"s" | b"sec" | b"second" | b"seconds" | b"secs" => Unit::Second,
        b"m" | b"min" | b"mins" | b"minute" | b"minutes" => Unit::Minute,
        b"h" | b"hour" | b"hours" | b"hr" | b"hrs" => Unit::Hour,
        b"d" | b"day" | b"days" => Unit::Day,
        b"w" | b"week" | b"weeks" => Unit::Week,
        b"mon" | b"mons" | b"month" | b"months" => Unit::Month,
        b"qtr" | b"quarter" => Unit::Quarter,
        b"y" | b"year" | b"years" | b"yr" | b"yrs" => Unit::Year,
        b"dec" | b"decade" | b"decades" | b"decs" => Unit::Decade,
        b"c" | b"cent" | b"centuries" | b"century" => Unit::Century,
        b"mil" | b"millennia" | b"millennium" | b"mils" => Unit::Millennium,
        b"timezone" | b"timezone_h" | b"timezone_m" => Unit::Zone,
        _ => return None,
    };
    Some(Span::Unit(unit))
}

/// Input that is being cut, and the field that is being read.
struct Cutter<'a> {
    input: &'a [u8],
    at: usize,
    text: Vec<u8>,
}

fn digit(b: u8) -> bool {
    b.is_ascii_digit()
}

fn alpha(b: u8) -> bool {
    b.is_ascii_alphabetic()
}

impl Cutter<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// The next byte belongs to the field.
    fn take(&mut self) {
        if let Some(b) = self.peek() {
            self.text.push(b.to_ascii_lowercase());
            self.at += 1;
        }
    }

    /// Reads on while `accept` holds.
    fn take_while(&mut self, accept: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&accept) {
            self.take();
        }
    }

    /// A field that starts with a digit.
    fn digits(&mut self) -> Kind {
        self.take_while(digit);
        let delimiter = match self.peek() {
            Some(b':') => {
                self.take_while(|b| digit(b) || b == b':' || b == b'.');
                return Kind::Time;
            }
            Some(b @ (b'-' | b'/' | b'.')) => b,
            _ => return Kind::Number,
        };
        self.take();
        if !self.peek().is_some_and(digit) {
            self.take_while(|b| b.is_ascii_alphanumeric() || b == delimiter);
            return Kind::Date;
        }
        self.take_while(digit);
        if self.peek() == Some(delimiter) {
            self.take_while(|b| digit(b) || b == delimiter);
            Kind::Date
        } else if delimiter == b'.' {
            Kind::Number
        } else {
            Kind::Date
        }
    }

    /// A field that starts with a letter.
    fn letters(&mut self) -> Kind {
        self.take_while(alpha);
        let dated = match self.peek() {
            Some(b'-' | b'/' | b'.') => true,
            Some(b) if b == b'+' || digit(b) => word(&self.text).is_none(),
            _ => false,
        };
        if !dated {
            return Kind::Word;
        }
        self.take_while(|b| b.is_ascii_alphanumeric() || b"+-/_.:".contains(&b));
        Kind::Date
    }

    /// A field that starts with a sign.
    fn signed(&mut self) -> Result<Kind, Bad> {
        self.take();
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        match self.peek() {
            Some(b) if digit(b) => {
                self.take_while(|b| digit(b) || b":.-".contains(&b));
                Ok(Kind::Zone)
            }
            Some(b) if alpha(b) => {
                self.take_while(alpha);
                Ok(Kind::Special)
            }
            _ => Err(Bad::Format),
        }
    }
}

/// Cuts `s` into fields. `room` is the size of PostgreSQL's buffer: longer
/// input is bad format.
pub(crate) fn split(s: &[u8], room: usize) -> Result<Vec<Field>, Bad> {
    let mut fields: Vec<Field> = Vec::new();
    let mut used = 0;
    let mut cutter = Cutter {
        input: s,
        at: 0,
        text: Vec::new(),
    };
    while let Some(b) = cutter.peek() {
        if is_space(b) {
            cutter.at += 1;
            continue;
        }
        if fields.len() >= MAX_FIELDS {
            return Err(Bad::Format);
        }
        let kind = match b {
            b if digit(b) => cutter.digits(),
            b if alpha(b) => cutter.letters(),
            b'.' => {
                cutter.take();
                cutter.take_while(digit);
                Kind::Number
            }
            b'+' | b'-' => cutter.signed()?,
            b if b.is_ascii_punctuation() => {
                cutter.at += 1;
                continue;
            }
            _ => return Err(Bad::Format),
        };
        let text = std::mem::take(&mut cutter.text);
        // Each field takes its bytes and a terminator.
        used += text.len() + 1;
        if used > room {
            return Err(Bad::Format);
        }
        fields.push(Field { kind, text });
    }
    Ok(fields)
}

/// As C's `strtol`: sign, digits, and what follows; `None` on overflow of `T`.
pub(crate) fn leading_int<T: TryFrom<i64>>(s: &[u8]) -> Option<(T, &[u8])> {
    let trimmed = crate::scan::trim_start(s);
    let (negative, body) = match trimmed.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, trimmed),
    };
    let (digits, rest) = crate::scan::digits(body);
    if digits.is_empty() {
        return T::try_from(0).ok().map(|zero| (zero, s));
    }
    let value = digits.iter().try_fold(0i64, |v, b| {
        let digit = i64::from(b - b'0');
        let v = v.checked_mul(10)?;
        if negative {
            v.checked_sub(digit)
        } else {
            v.checked_add(digit)
        }
    })?;
    Some((T::try_from(value).ok()?, rest))
}

/// Reads the fraction `.ddd`, which must be the whole input.
pub(crate) fn fraction(s: &[u8]) -> Result<f64, Bad> {
    let digits = s.strip_prefix(b".").ok_or(Bad::Format)?;
    if digits.is_empty() {
        return Ok(0.0);
    }
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(Bad::Format);
    }
    let text = std::str::from_utf8(s).map_err(|_| Bad::Format)?;
    let value: f64 = text.parse().map_err(|_| Bad::Format)?;
    // strtod reports underflow, which is bad format here.
    if value == 0.0 && digits.iter().any(|&b| b != b'0') {
        return Err(Bad::Format);
    }
    Ok(value)
}

/// The fraction in microseconds.
pub(crate) fn fraction_micros(s: &[u8]) -> Result<i64, Bad> {
    fraction(s).map(|f| (f * 1e6).round_ties_even() as i64)
}

/// Hour, minute, second and microsecond of a field with colons. `mm_ss`: two
/// fields are minutes and seconds.
pub(crate) fn time(s: &[u8], mm_ss: bool) -> Result<(i64, i64, i64, i64), Bad> {
    let (mut hour, rest) = leading_int::<i64>(s).ok_or(Bad::FieldRange)?;
    let rest = rest.strip_prefix(b":").ok_or(Bad::Format)?;
    let (minute, rest) = leading_int::<i32>(rest).ok_or(Bad::FieldRange)?;
    let mut minute = i64::from(minute);
    let (mut second, mut micros) = (0, 0);
    let mut shift = false;
    match rest.first() {
        None => shift = mm_ss,
        Some(b'.') => {
            micros = fraction_micros(rest)?;
            shift = true;
        }
        Some(b':') => {
            let after = rest.get(1..).unwrap_or_default();
            let (value, rest) = leading_int::<i32>(after).ok_or(Bad::FieldRange)?;
            second = i64::from(value);
            match rest.first() {
                None => {}
                Some(b'.') => micros = fraction_micros(rest)?,
                Some(_) => return Err(Bad::Format),
            }
        }
        Some(_) => return Err(Bad::Format),
    }
    if shift {
        i32::try_from(hour).map_err(|_| Bad::FieldRange)?;
        (hour, minute, second) = (0, hour, minute);
    }
    let valid = hour >= 0
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..=1_000_000).contains(&micros);
    if valid {
        Ok((hour, minute, second, micros))
    } else {
        Err(Bad::FieldRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let fields = split(b"Fri, 1999-Jan-08 04:05:06.7 +02:00 Europe/Berlin", 128).unwrap();
        let texts: Vec<_> = fields
            .iter()
            .map(|f| String::from_utf8_lossy(&f.text))
            .collect();
        assert_eq!(
            texts,
            [
                "fri",
                "1999-jan-08",
                "04:05:06.7",
                "+02:00",
                "europe/berlin"
            ]
        );
        assert!(fields[3].kind == Kind::Zone && fields[4].kind == Kind::Date);
        // PostgreSQL's buffer is full.
        assert!(split(&[b'1'; 200], 128).is_err());
        assert!(split("1999\u{e4}".as_bytes(), 128).is_err());
    }

    /// Keywords count by ten letters.
    #[test]
    fn keywords() {
        assert!(span(b"microseconds") == Some(Span::Unit(Unit::Micro)));
        assert!(span(b"secondss").is_none());
        assert!(word(b"september") == Some(Word::Month(9)));
    }

    #[test]
    fn numbers() {
        assert_eq!(leading_int::<i32>(b"12ab"), Some((12, &b"ab"[..])));
        assert_eq!(leading_int::<i32>(b"x"), Some((0, &b"x"[..])));
        assert_eq!(leading_int::<i32>(b"99999999999"), None);
        assert_eq!(fraction_micros(b".1234565"), Ok(123_456));
        assert_eq!(fraction_micros(b"."), Ok(0));
    }
}
