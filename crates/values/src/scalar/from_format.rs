//! `to_date` and `to_timestamp`: reads a text by a template of letters.
//!
//! Names of months and days are English, like PostgreSQL's in locale C. fields.rs computes the
//! moment from the fields, and checks that it exists.
//!
//! Invariant: no part of the text is in an error.

use super::fields::Fields;
use super::format::{DAYS, MONTHS, Part, ROMAN, parts};
use crate::calendar::civil;
use crate::calendar::valid_date;
use crate::datetime::with_precision;
use crate::text as chars;
use crate::{Env, Error, Result, Value};

pub(super) fn wrong(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(b"22007", message)
}

fn set(field: &mut i64, value: i64, pattern: &str) -> Result<()> {
    if *field != 0 && *field != value {
        return Err(wrong(format!(
            "conflicting values for \"{pattern}\" field in formatting string"
        ))
        .detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b
}

fn is_separator(b: u8) -> bool {
    b.is_ascii_punctuation()
}

/// The text that is read, and how far it is.
struct Input<'s> {
    rest: &'s [u8],
    /// The byte before.
    last: u8,
    /// Characters skipped that the template has none for.
    skipped: i64,
}

impl Input<'_> {
    fn advance(&mut self, n: usize) {
        let n = n.min(self.rest.len());
        if let Some(last) = n.checked_sub(1).and_then(|at| self.rest.get(at)) {
            self.last = *last;
        }
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    fn character(&mut self) {
        self.advance(chars::char_width(self.rest).max(1));
    }

    fn spaces(&mut self) -> usize {
        let n = self.rest.iter().take_while(|b| is_space(**b)).count();
        self.advance(n);
        n
    }

    /// A number as C's `strtol` reads one, in the first bytes: value and length.
    fn number(s: &[u8]) -> (i128, usize) {
        let blank = s.iter().take_while(|b| is_space(**b)).count();
        let signed = s.get(blank).is_some_and(|b| matches!(b, b'+' | b'-'));
        let from = blank + usize::from(signed);
        let digits = s.get(from..).unwrap_or_default();
        let digits = digits.iter().take_while(|b| b.is_ascii_digit());
        let (mut value, mut count) = (0i128, 0);
        for b in digits {
            value = value
                .saturating_mul(10)
                .saturating_add(i128::from(b - b'0'));
            count += 1;
        }
        if count == 0 {
            return (0, 0);
        }
        let negative = signed && s.get(blank) == Some(&b'-');
        (if negative { -value } else { value }, from + count)
    }

    /// Reads a number with that many digits, or any number of them if `open`; returns it with the
    /// number of bytes read.
    fn integer(&mut self, digits: usize, open: bool, pattern: &str) -> Result<(i64, usize)> {
        let invalid = || wrong(format!("invalid value for \"{pattern}\""));
        let from = self.rest.len();
        let value = if open {
            let (value, used) = Input::number(self.rest);
            self.advance(used);
            value
        } else {
            self.spaces();
            if self.rest.len() < digits {
                return Err(wrong(format!(
                    "source string too short for \"{pattern}\" formatting field"
                ))
                .hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
            }
            let (value, used) = Input::number(self.rest.get(..digits).unwrap_or_default());
            if used > 0 && used < digits {
                return Err(invalid().hint(
                    "If your source string is not fixed-width, try using the \"FM\" modifier.",
                ));
            }
            self.advance(used);
            value
        };
        let used = from - self.rest.len();
        if used == 0 {
            return Err(invalid().detail("Value must be an integer."));
        }
        match i32::try_from(value) {
            Ok(value) => Ok((i64::from(value), used)),
            Err(_) => Err(Error::new(
                b"22008",
                format!("value for \"{pattern}\" in source string is out of range"),
            )),
        }
    }

    /// Finds the word that comes next, ignoring case.
    fn word(&mut self, words: &[&str], length: Option<usize>, pattern: &str) -> Result<i64> {
        let fits = |word: &&str| {
            let word = word.get(..length.unwrap_or(word.len())).unwrap_or(word);
            let head = self.rest.get(..word.len())?;
            head.eq_ignore_ascii_case(word.as_bytes())
                .then_some(word.len())
        };
        let mut found = words.iter().enumerate();
        let found = found.find_map(|(at, word)| fits(word).map(|length| (at, length)));
        let (at, length) = found.ok_or_else(|| {
            wrong(format!("invalid value for \"{pattern}\""))
                .detail("The given value did not match any of the allowed values for this field.")
        })?;
        self.advance(length);
        Ok(at as i64)
    }
}

/// Whether a pattern is a number: adjacent numbers have a fixed number of digits.
fn is_number(pattern: &str) -> bool {
    !matches!(
        pattern,
        "A.D."
            | "A.M."
            | "AD"
            | "AM"
            | "B.C."
            | "BC"
            | "DAY"
            | "DY"
            | "FX"
            | "MONTH"
            | "MON"
            | "OF"
            | "P.M."
            | "PM"
            | "RM"
            | "TZH"
            | "TZM"
            | "TZ"
    ) && !pattern.starts_with("FF")
}

/// The words of a pattern, and the number of their letters that are written.
fn words(pattern: &str) -> Option<(&'static [&'static str], Option<usize>)> {
    Some(match pattern {
        "A.M." | "P.M." => (&["A.M.", "P.M."], None),
        "AM" | "PM" => (&["AM", "PM"], None),
        "A.D." | "B.C." => (&["A.D.", "B.C."], None),
        "AD" | "BC" => (&["AD", "BC"], None),
        "MONTH" => (&MONTHS, None),
        "MON" => (&MONTHS, Some(3)),
        "RM" => (&ROMAN, None),
        "DAY" => (&DAYS, None),
        "DY" => (&DAYS, Some(3)),
        _ => return None,
    })
}

/// Which kind of dates a pattern is of: by ISO weeks or not.
fn dates(pattern: &str) -> Option<bool> {
    match pattern {
        "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Some(true),
        "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY"
        | "YYY" | "YY" | "Y" => Some(false),
        _ => None,
    }
}

/// Whether what follows ends a number.
fn open_end(next: Option<&Part<'_>>) -> bool {
    match next {
        None => true,
        Some(Part::Field { pattern, .. }) => !is_number(pattern),
        Some(Part::Text(s) | Part::Bare(s)) => !matches!(s, [b] if b.is_ascii_digit()),
    }
}

impl Fields {
    /// Reads the text.
    fn read(s: &[u8], template: &[u8]) -> Result<Fields> {
        let mut fields = Fields::default();
        let mut input = Input {
            rest: s,
            last: 0,
            skipped: 0,
        };
        let parts = parts(template);
        let mut exact = false;
        for (at, part) in parts.iter().enumerate() {
            if input.rest.is_empty() {
                break;
            }
            let field = matches!(part, Part::Field { .. });
            let fixed = matches!(part, Part::Field { pattern: "FX", .. });
            if !exact && !fixed && (field || at == 0) {
                input.skipped += input.spaces() as i64;
                if input.rest.is_empty() && !field {
                    continue;
                }
            }
            let Part::Field {
                pattern,
                fill,
                ordinal,
                ..
            } = part
            else {
                other(part, exact, &mut input);
                continue;
            };
            if let Some(iso) = dates(pattern)
                && *fields.iso.get_or_insert(iso) != iso
            {
                return Err(wrong("invalid combination of date conventions").hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ));
            }
            exact |= fixed;
            let open = *fill || ordinal.is_some() || open_end(parts.get(at + 1));
            if fields.take(pattern, open, &mut input)? && ordinal.is_some() {
                for _ in 0..2 {
                    input.character();
                }
            }
            if !exact {
                input.skipped = input.spaces() as i64;
            }
        }
        Ok(fields)
    }

    /// Reads a field; returns whether it may have an ending.
    fn take(&mut self, pattern: &str, open: bool, input: &mut Input<'_>) -> Result<bool> {
        let mut number = |digits: usize| input.integer(digits, open, pattern);
        match pattern {
            "HH" | "HH12" => {
                set(&mut self.hour, number(2)?.0, pattern)?;
                self.twelve = true;
            }
            "HH24" => set(&mut self.hour, number(2)?.0, pattern)?,
            "MI" => set(&mut self.minute, number(2)?.0, pattern)?,
            "SS" => set(&mut self.second, number(2)?.0, pattern)?,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                self.fraction(pattern, open, input)?;
            }
            "SSSS" | "SSSSS" => set(&mut self.of_day, number(pattern.len())?.0, pattern)?,
            "DDD" | "IDDD" => set(&mut self.day_of_year, number(3)?.0, pattern)?,
            "DD" => set(&mut self.day, number(2)?.0, pattern)?,
            "D" => set(&mut self.weekday, number(1)?.0, pattern)?,
            "ID" => {
                set(&mut self.weekday, number(1)?.0, pattern)?;
                // Sunday is the first day elsewhere.
                self.weekday += 1;
                if self.weekday > 7 {
                    self.weekday = 1;
                }
            }
            "MM" => set(&mut self.month, number(2)?.0, pattern)?,
            "WW" | "IW" => set(&mut self.week, number(2)?.0, pattern)?,
            "W" => set(&mut self.week_of_month, number(1)?.0, pattern)?,
            // Which of its days is meant nobody knows.
            "Q" => drop(number(1)?),
            "CC" => set(&mut self.century, number(2)?.0, pattern)?,
            "J" => set(&mut self.julian, number(1)?.0, pattern)?,
            "Y,YYY" => self.thousands(input)?,
            "YYYY" | "IYYY" => {
                set(&mut self.year, number(4)?.0, pattern)?;
                self.year_digits = 4;
            }
            "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => self.short_year(pattern, open, input)?,
            _ => return self.take_word(pattern, open, input).map(|()| false),
        }
        Ok(true)
    }

    /// Parts of a second.
    fn fraction(&mut self, pattern: &str, open: bool, input: &mut Input<'_>) -> Result<()> {
        if pattern == "MS" {
            let (value, length) = input.integer(3, open, pattern)?;
            set(&mut self.millis, value, pattern)?;
            // 25 is a quarter, and 250, too.
            self.millis *= [1, 100, 10].get(length).copied().unwrap_or(1);
            return Ok(());
        }
        let digits = pattern.strip_prefix("FF").and_then(|n| n.parse().ok());
        if let Some(digits) = digits {
            self.precision = digits;
        }
        let digits = digits.map_or(6, |digits| digits as usize);
        let (value, length) = input.integer(digits, open, pattern)?;
        set(&mut self.micros, value, pattern)?;
        let factors = [1, 100_000, 10_000, 1000, 100, 10];
        self.micros *= factors.get(length).copied().unwrap_or(1);
        Ok(())
    }

    /// A year without its first digits.
    fn short_year(&mut self, pattern: &str, open: bool, input: &mut Input<'_>) -> Result<()> {
        let digits = pattern.len();
        let (value, length) = input.integer(digits, open, pattern)?;
        set(&mut self.year, value, pattern)?;
        if length < 4 {
            self.year = near_2020(self.year);
        }
        self.year_digits = digits;
        Ok(())
    }

    fn take_word(&mut self, pattern: &str, open: bool, input: &mut Input<'_>) -> Result<()> {
        let Some((words, length)) = words(pattern) else {
            return self.take_zone(pattern, open, input);
        };
        let which = input.word(words, length, pattern)?;
        match pattern {
            "A.M." | "P.M." | "AM" | "PM" => {
                set(&mut self.afternoon, which, pattern)?;
                self.twelve = true;
            }
            "A.D." | "B.C." | "AD" | "BC" => set(&mut self.before_christ, which, pattern)?,
            "MONTH" | "MON" => set(&mut self.month, which + 1, pattern)?,
            "RM" => set(&mut self.month, 12 - which, pattern)?,
            _ => {
                set(&mut self.weekday, which, pattern)?;
                self.weekday += 1;
            }
        }
        Ok(())
    }

    fn take_zone(&mut self, pattern: &str, open: bool, input: &mut Input<'_>) -> Result<()> {
        match pattern {
            "TZH" => {
                let minus = match input.rest.first() {
                    Some(sign @ (b'+' | b'-' | b' ')) => {
                        let minus = *sign == b'-';
                        input.advance(1);
                        minus
                    }
                    // It was taken for a separator.
                    _ => input.skipped > 0 && input.last == b'-',
                };
                self.zone_sign = if minus { -1 } else { 1 };
                let hours = input.integer(2, open, pattern)?.0;
                set(&mut self.zone_hour, hours, pattern)
            }
            "TZM" => {
                if self.zone_sign == 0 {
                    self.zone_sign = 1;
                }
                let minutes = input.integer(2, open, pattern)?.0;
                set(&mut self.zone_minute, minutes, pattern)
            }
            "TZ" | "OF" => Err(Error::new(
                b"0A000",
                format!("formatting field \"{pattern}\" is only supported in to_char"),
            )),
            _ => Ok(()),
        }
    }

    /// `2,024`
    fn thousands(&mut self, input: &mut Input<'_>) -> Result<()> {
        let invalid = || wrong("invalid input string for \"Y,YYY\"");
        let (millennia, used) = Input::number(input.rest);
        let rest = input.rest.get(used..).unwrap_or_default();
        let (comma, rest) = rest.split_first().ok_or_else(invalid)?;
        let blank = rest.iter().take_while(|b| is_space(**b)).count();
        let three = rest
            .get(blank..rest.len().min(blank + 3))
            .unwrap_or_default();
        let (years, digits) = Input::number(three);
        if used == 0 || *comma != b',' || digits == 0 {
            return Err(invalid());
        }
        let all = millennia.saturating_mul(1000).saturating_add(years);
        let all = i32::try_from(all).map_err(|_| {
            Error::new(
                b"22008",
                "value for \"Y,YYY\" in source string is out of range",
            )
        })?;
        set(&mut self.year, i64::from(all), "Y,YYY")?;
        self.year_digits = 4;
        input.advance(used + 1 + blank + digits);
        Ok(())
    }
}

/// What the template has between its fields.
fn other(part: &Part<'_>, exact: bool, input: &mut Input<'_>) {
    let between = match part {
        Part::Bare([b]) => is_space(*b) || is_separator(*b),
        _ => false,
    };
    match (between, exact) {
        (_, true) => input.character(),
        (true, false) => {
            input.skipped -= 1;
            if input
                .rest
                .first()
                .is_some_and(|b| is_space(*b) || is_separator(*b))
            {
                input.advance(1);
                input.skipped += 1;
            }
        }
        (false, false) if input.skipped > 0 => input.skipped -= 1,
        (false, false) => input.character(),
    }
}

/// The year that is meant by one of less than four digits.
fn near_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// `to_date(s, template)`
pub(super) fn to_date(s: &[u8], template: &[u8]) -> Result<Value> {
    let c = Fields::read(s, template)?.civil()?;
    let out = || Error::new(b"22008", "date out of range");
    if !civil::valid_julian(c.year, c.month) {
        return Err(out());
    }
    valid_date(c.days()).map(Value::Date).ok_or_else(out)
}

/// `to_timestamp(s, template)`
pub(super) fn to_timestamp(s: &[u8], template: &[u8], env: &Env) -> Result<Value> {
    let fields = Fields::read(s, template)?;
    let c = fields.civil()?;
    let offset = match fields.offset()? {
        Some(offset) => offset,
        None => env.zone.offset_of(&c),
    };
    let t = c
        .timestamp(offset)
        .ok_or_else(|| Error::new(b"22008", "timestamp out of range"))?;
    let precision = fields.precision;
    match precision {
        0 => Ok(Value::Timestamptz(t)),
        _ => with_precision(t, precision, "timestamp").map(Value::Timestamptz),
    }
}
