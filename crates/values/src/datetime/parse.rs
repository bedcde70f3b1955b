//! Reads dates, times and timestamps, as PostgreSQL's input functions do.
//!
//! Fields are interpreted one after another; a mask of what has been seen
//! decides what a bare number means and refuses what is said twice.

use super::abbrev::{self, Abbrev};
use super::civil::{self, Civil};
use super::token::{
    Bad, Field, Kind, Moment, Unit, Word, fraction, fraction_micros, leading_int, mask, split,
    time, word,
};
use super::zone::Zone;
use super::{UNIX_EPOCH, USECS_PER_DAY, out_of_range, valid_date, valid_timestamp};
use crate::env::DateOrder;
use crate::{Env, Error, Result};
use contract::Code;

/// The error for bad input of a type by PostgreSQL's name.
pub(crate) fn error(bad: Bad, name: &str) -> Error {
    let error = match bad {
        Bad::Format => Error::new(b"22007", format!("invalid input syntax for type {name}")),
        Bad::FieldRange => Error::new(b"22008", "date/time field value out of range"),
        Bad::MonthDayRange => Error::new(b"22008", "date/time field value out of range")
            .hint("Perhaps you need a different \"datestyle\" setting."),
        Bad::ZoneRange => Error::new(b"22009", "time zone displacement out of range"),
        Bad::ZoneName => return Error::new(b"22023", "time zone not recognized"),
    };
    error.code(Code::InvalidText)
}

/// What was read is beyond its type.
fn beyond(name: &str) -> Error {
    out_of_range(name).code(Code::InvalidText)
}

/// What input with a date comes to.
enum Decoded {
    /// A local time and seconds east of UTC.
    At(Civil, i64),
    Epoch,
    Infinity,
    NegInfinity,
}

/// Reads a `date`.
pub(crate) fn date(s: &[u8], env: &Env) -> Result<i32> {
    if let Some(days) = iso_date(s) {
        return Ok(days);
    }
    match decode(s, 128, env).map_err(|bad| error(bad, "date"))? {
        Decoded::Infinity => Ok(i32::MAX),
        Decoded::NegInfinity => Ok(i32::MIN),
        Decoded::Epoch => Ok(-10_957),
        Decoded::At(c, _) if civil::valid_julian(c.year, c.month) => {
            valid_date(c.days()).ok_or_else(|| beyond("date"))
        }
        Decoded::At(..) => Err(beyond("date")),
    }
}

/// A valid `yyyy-mm-dd`, which means the same in all styles.
fn iso_date(s: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = s else {
        return None;
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0i64, |v, b| {
            b.is_ascii_digit().then(|| v * 10 + i64::from(b - b'0'))
        })
    };
    let (year, month, day) = (
        number(&[y1, y2, y3, y4])?,
        number(&[m1, m2])?,
        number(&[d1, d2])?,
    );
    if year < 1 || day < 1 || day > civil::days_in_month(year, month) {
        return None;
    }
    valid_date(civil::days(year, month, day))
}

/// Reads a `timestamp`; a zone is accepted and ignored.
pub(crate) fn timestamp(s: &[u8], env: &Env) -> Result<i64> {
    instant(s, env, "timestamp", |_| 0)
}

/// Reads a `timestamptz`.
pub(crate) fn timestamptz(s: &[u8], env: &Env) -> Result<i64> {
    instant(s, env, "timestamp with time zone", |offset| offset)
}

fn instant(s: &[u8], env: &Env, name: &str, offset: impl Fn(i64) -> i64) -> Result<i64> {
    match decode(s, 152, env).map_err(|bad| error(bad, name))? {
        Decoded::Infinity => Ok(i64::MAX),
        Decoded::NegInfinity => Ok(i64::MIN),
        Decoded::Epoch => Ok(UNIX_EPOCH),
        Decoded::At(c, east) => c.timestamp(offset(east)).ok_or_else(|| beyond("timestamp")),
    }
}

/// Reads a `time`; a zone is accepted and ignored.
pub(crate) fn time_of_day(s: &[u8], env: &Env) -> Result<i64> {
    let decode = || {
        let fields = split(s, 128)?;
        let mut decoder = Decoder::new(env, true);
        decoder.fields(&fields)?;
        decoder.finish_time()
    };
    decode().map_err(|bad| error(bad, "time"))
}

fn decode(s: &[u8], room: usize, env: &Env) -> std::result::Result<Decoded, Bad> {
    let fields = split(s, room)?;
    let mut decoder = Decoder::new(env, false);
    decoder.fields(&fields)?;
    decoder.finish()
}

/// What has been understood so far.
struct Decoder<'e> {
    env: &'e Env,
    /// Only a time is wanted.
    time_only: bool,
    seen: u32,
    civil: Civil,
    year_day: i64,
    /// Seconds east of UTC.
    offset: i64,
    zone: Option<Zone>,
    abbreviation: Option<(&'static str, String)>,
    /// A unit that says what the next number is.
    prefix: Option<Unit>,
    moment: Option<Moment>,
    pm: Option<bool>,
    bc: bool,
    julian: bool,
    text_month: bool,
    two_digits: bool,
}

type Step = std::result::Result<u32, Bad>;

fn text(s: &[u8]) -> &str {
    std::str::from_utf8(s).unwrap_or_default()
}

impl<'e> Decoder<'e> {
    fn new(env: &'e Env, time_only: bool) -> Decoder<'e> {
        Decoder {
            env,
            time_only,
            seen: 0,
            civil: Civil::default(),
            year_day: 0,
            offset: 0,
            zone: None,
            abbreviation: None,
            prefix: None,
            moment: None,
            pm: None,
            bc: false,
            julian: false,
            text_month: false,
            two_digits: false,
        }
    }

    fn fields(&mut self, fields: &[Field]) -> std::result::Result<(), Bad> {
        for (i, field) in fields.iter().enumerate() {
            let rest = fields.get(i + 1..).unwrap_or_default();
            let new = match field.kind {
                Kind::Date if self.time_only => self.date_in_time(&field.text, i, rest)?,
                Kind::Date => self.date_field(&field.text)?,
                Kind::Time => self.time_field(&field.text)?,
                Kind::Zone => self.numeric_zone(&field.text)?,
                Kind::Number if self.prefix.is_some() => self.labelled(&field.text)?,
                Kind::Number if self.time_only => self.number_in_time(&field.text, i, rest)?,
                Kind::Number => self.number(&field.text)?,
                Kind::Word | Kind::Special => match self.word(&field.text, rest)? {
                    Some(new) => new,
                    None => continue,
                },
            };
            if new & self.seen != 0 {
                return Err(Bad::Format);
            }
            self.seen |= new;
        }
        Ok(())
    }

    /// A field with delimiters, where a date is wanted.
    fn date_field(&mut self, s: &[u8]) -> Step {
        let have_day = self.seen & (mask::MONTH | mask::DAY) == mask::MONTH | mask::DAY;
        if self.prefix == Some(Unit::Julian) {
            let (day, rest) = leading_int::<i32>(s).ok_or(Bad::FieldRange)?;
            if day < 0 {
                return Err(Bad::FieldRange);
            }
            self.set_julian(i64::from(day));
            self.numeric_zone(rest)?;
            self.prefix = None;
            return Ok(mask::DATE | mask::TIME | mask::ZONE);
        }
        if self.prefix.is_none() && !have_day {
            return self.date(s);
        }
        if self.prefix.is_none() && !s.first().is_some_and(u8::is_ascii_digit) {
            return self.named_zone(s, Bad::ZoneName);
        }
        if self.prefix.take().is_some_and(|unit| unit != Unit::Time) {
            return Err(Bad::Format);
        }
        self.time_with_zone(s, self.seen)
    }

    /// A field with delimiters, where a time is wanted.
    fn date_in_time(&mut self, s: &[u8], i: usize, rest: &[Field]) -> Step {
        let dated = rest.last().is_some_and(|f| f.kind == Kind::Date)
            || rest.first().is_some_and(|f| f.kind == Kind::Time);
        if i == 0 && dated {
            self.date(s)
        } else if s.first().is_some_and(u8::is_ascii_digit) {
            self.time_with_zone(s, self.seen | mask::DATE)
        } else {
            self.named_zone(s, Bad::ZoneName)
        }
    }

    /// `hhmmss-zz`
    fn time_with_zone(&mut self, s: &[u8], seen: u32) -> Step {
        if self.seen & mask::TIME == mask::TIME {
            return Err(Bad::Format);
        }
        let at = s.iter().position(|&b| b == b'-').ok_or(Bad::Format)?;
        let (time, zone) = s.split_at_checked(at).ok_or(Bad::Format)?;
        self.numeric_zone(zone)?;
        Ok(self.run_together(time, seen)? | mask::ZONE)
    }

    fn named_zone(&mut self, s: &[u8], unknown: Bad) -> Step {
        self.zone = Some(Zone::find(text(s)).ok_or(unknown)?);
        Ok(mask::ZONE)
    }

    fn set_julian(&mut self, day: i64) {
        let (year, month, day) = civil::date(day - super::EPOCH_JULIAN);
        (self.civil.year, self.civil.month, self.civil.day) = (year, month, day);
        self.julian = true;
    }

    fn time_field(&mut self, s: &[u8]) -> Step {
        if !self.time_only && self.prefix.take().is_some_and(|unit| unit != Unit::Time) {
            return Err(Bad::Format);
        }
        let (hour, minute, second, micros) = time(s, false)?;
        if hour > i64::from(i32::MAX) {
            return Err(Bad::FieldRange);
        }
        let c = &mut self.civil;
        (c.hour, c.minute, c.second, c.micros) = (hour, minute, second, micros);
        if !self.time_only {
            self.check_time()?;
        }
        Ok(mask::TIME)
    }

    /// Refuses what is not a time of day.
    fn check_time(&self) -> std::result::Result<(), Bad> {
        let c = &self.civil;
        let valid = (0..=24).contains(&c.hour)
            && (0..60).contains(&c.minute)
            && (0..=60).contains(&c.second)
            && (0..=1_000_000).contains(&c.micros)
            && c.time() <= USECS_PER_DAY;
        if valid { Ok(()) } else { Err(Bad::FieldRange) }
    }

    /// `±hh[:mm[:ss]]` or `±hhmm`
    fn numeric_zone(&mut self, s: &[u8]) -> Step {
        let west = match s.first() {
            Some(b'-') => true,
            Some(b'+') => false,
            _ => return Err(Bad::Format),
        };
        let part = |s| leading_int::<i32>(s).ok_or(Bad::ZoneRange);
        let (mut hour, mut rest) = part(s.get(1..).unwrap_or_default())?;
        let (mut minute, mut second) = (0, 0);
        if let Some(after) = rest.strip_prefix(b":") {
            (minute, rest) = part(after)?;
            if let Some(after) = rest.strip_prefix(b":") {
                (second, rest) = part(after)?;
            }
        } else if rest.is_empty() && s.len() > 3 {
            (hour, minute) = (hour / 100, hour % 100);
        }
        let valid =
            (0..=15).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !valid {
            return Err(Bad::ZoneRange);
        }
        if !rest.is_empty() {
            return Err(Bad::Format);
        }
        let seconds = i64::from((hour * 60 + minute) * 60 + second);
        self.offset = if west { -seconds } else { seconds };
        Ok(mask::ZONE)
    }

    /// A number after a unit (`y2001m02d04`, `J2451187`, `T040506`).
    fn labelled(&mut self, s: &[u8]) -> Step {
        let Some(unit) = self.prefix.take() else {
            return Err(Bad::Format);
        };
        self.moment = None;
        let (value, rest) = leading_int::<i32>(s).ok_or(Bad::FieldRange)?;
        let value = i64::from(value);
        match rest.first() {
            None => {}
            Some(b'.') if matches!(unit, Unit::Julian | Unit::Time | Unit::Second) => {}
            _ => return Err(Bad::Format),
        }
        let c = &mut self.civil;
        Ok(match unit {
            Unit::Year => {
                c.year = value;
                mask::YEAR
            }
            Unit::Month if self.seen & (mask::MONTH | mask::HOUR) == mask::MONTH | mask::HOUR => {
                c.minute = value;
                mask::MINUTE
            }
            Unit::Month => {
                c.month = value;
                mask::MONTH
            }
            Unit::Day => {
                c.day = value;
                mask::DAY
            }
            Unit::Hour => {
                c.hour = value;
                mask::HOUR
            }
            Unit::Minute => {
                c.minute = value;
                mask::MINUTE
            }
            Unit::Second => {
                c.second = value;
                if rest.is_empty() {
                    mask::SECOND
                } else {
                    c.micros = fraction_micros(rest)?;
                    mask::SECONDS
                }
            }
            Unit::Julian => {
                if value < 0 {
                    return Err(Bad::FieldRange);
                }
                self.set_julian(value);
                if rest.is_empty() {
                    mask::DATE
                } else {
                    self.civil
                        .set_time((fraction(rest)? * USECS_PER_DAY as f64) as i64);
                    mask::DATE | mask::TIME
                }
            }
            Unit::Time => {
                let new = self.run_together(s, self.seen | mask::DATE)?;
                if new != mask::TIME {
                    return Err(Bad::Format);
                }
                new
            }
            _ => return Err(Bad::Format),
        })
    }

    /// A bare number, where a date is wanted.
    fn number(&mut self, s: &[u8]) -> Step {
        let point = s.iter().position(|&b| b == b'.');
        match point {
            Some(_) if self.seen & mask::DATE == 0 => self.date(s),
            Some(at) if at > 2 => self.run_together(s, self.seen),
            _ if s.len() >= 6 && (self.seen & mask::DATE == 0 || self.seen & mask::TIME == 0) => {
                self.run_together(s, self.seen)
            }
            _ => self.plain_number(s, self.text_month, self.seen),
        }
    }

    /// A bare number, where a time is wanted.
    fn number_in_time(&mut self, s: &[u8], i: usize, rest: &[Field]) -> Step {
        let seen = self.seen | mask::DATE;
        match s.iter().position(|&b| b == b'.') {
            Some(_) if i == 0 && rest.last().is_some_and(|f| f.kind == Kind::Date) => self.date(s),
            Some(at) if at > 2 => self.run_together(s, seen),
            Some(_) => Err(Bad::Format),
            None if s.len() > 4 => self.run_together(s, seen),
            None => self.plain_number(s, false, seen),
        }
    }

    /// Digits that hold several fields: `yyyymmdd`, `yymmdd`, `hhmmss`, `hhmm`.
    fn run_together(&mut self, s: &[u8], seen: u32) -> Step {
        let two = |s: &[u8]| {
            let digits = s.iter().take_while(|b| b.is_ascii_digit());
            digits.fold(0i64, |v, b| {
                v.saturating_mul(10).saturating_add(i64::from(b - b'0'))
            })
        };
        let c = &mut self.civil;
        let mut digits = s;
        if let Some(at) = s.iter().position(|&b| b == b'.') {
            let (int, frac) = s.split_at_checked(at).ok_or(Bad::Format)?;
            c.micros = fraction_micros(frac)?;
            digits = int;
        } else if seen & mask::DATE != mask::DATE && s.len() >= 6 {
            let (rest, day) = s.split_at_checked(s.len() - 2).ok_or(Bad::Format)?;
            let (year, month) = rest.split_at_checked(rest.len() - 2).ok_or(Bad::Format)?;
            // C's atoi wraps, and so may a year.
            (c.year, c.month, c.day) = (i64::from(two(year) as i32), two(month), two(day));
            if year.len() == 2 {
                self.two_digits = true;
            }
            return Ok(mask::DATE);
        }
        if seen & mask::TIME != mask::TIME && matches!(digits.len(), 4 | 6) {
            let part = |from: usize| digits.get(from..from + 2).map_or(0, two);
            (c.hour, c.minute, c.second) = (part(0), part(2), part(4));
            return Ok(mask::TIME);
        }
        Err(Bad::Format)
    }

    /// A number whose meaning depends on what is there already.
    fn plain_number(&mut self, s: &[u8], text_month: bool, seen: u32) -> Step {
        let (value, rest) = leading_int::<i32>(s).ok_or(Bad::FieldRange)?;
        let value = i64::from(value);
        let int_len = s.len() - rest.len();
        if int_len == 0 {
            return Err(Bad::Format);
        }
        match rest.first() {
            None => {}
            Some(b'.') if int_len > 2 => return self.run_together(s, seen | mask::DATE),
            Some(b'.') => self.civil.micros = fraction_micros(rest)?,
            Some(_) => return Err(Bad::Format),
        }
        let have = seen & mask::DATE;
        if s.len() == 3 && have == mask::YEAR && (1..=366).contains(&value) {
            self.year_day = value;
            return Ok(mask::YEARDAY | mask::MONTH | mask::DAY);
        }
        let order = self.env.date_order;
        let year_like = s.len() >= 3 || order == DateOrder::Ymd;
        const YEAR_MONTH: u32 = mask::YEAR | mask::MONTH;
        const MONTH_DAY: u32 = mask::MONTH | mask::DAY;
        let c = &mut self.civil;
        let new = match have {
            0 if year_like => mask::YEAR,
            0 if order == DateOrder::Dmy => mask::DAY,
            0 => mask::MONTH,
            mask::YEAR => mask::MONTH,
            mask::MONTH if text_month && year_like => mask::YEAR,
            mask::MONTH => mask::DAY,
            YEAR_MONTH if text_month && s.len() >= 3 && self.two_digits => {
                // What was taken for the year was the day.
                c.day = c.year;
                c.year = value;
                self.two_digits = false;
                return Ok(mask::DAY);
            }
            YEAR_MONTH => mask::DAY,
            mask::DAY => mask::MONTH,
            MONTH_DAY => mask::YEAR,
            mask::DATE => return self.run_together(s, seen),
            _ => return Err(Bad::Format),
        };
        match new {
            mask::YEAR => {
                c.year = value;
                self.two_digits = s.len() <= 2;
            }
            mask::MONTH => c.month = value,
            _ => c.day = value,
        }
        Ok(new)
    }

    /// A date with delimiters, perhaps with the name of a month.
    fn date(&mut self, s: &[u8]) -> Step {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut rest = s;
        while !rest.is_empty() && parts.len() < 25 {
            let skip = rest
                .iter()
                .take_while(|b| !b.is_ascii_alphanumeric())
                .count();
            rest = rest.get(skip..).unwrap_or_default();
            let digits = rest.first().ok_or(Bad::Format)?.is_ascii_digit();
            let same = |b: &u8| {
                if digits {
                    b.is_ascii_digit()
                } else {
                    b.is_ascii_alphabetic()
                }
            };
            let len = rest.iter().take_while(|b| same(b)).count();
            let (part, after) = rest.split_at_checked(len).ok_or(Bad::Format)?;
            parts.push(part);
            // Whatever ends a part is dropped.
            rest = after.get(1..).unwrap_or_default();
        }
        let (mut seen, mut new) = (self.seen, 0);
        let mut add = |bits: u32, seen: &mut u32| {
            if *seen & bits != 0 {
                return Err(Bad::Format);
            }
            *seen |= bits;
            new |= bits;
            Ok(())
        };
        let mut text_month = false;
        // The name of a month first: it decides what the numbers are.
        let month_of = |part: &[u8]| match word(part) {
            Some(Word::Month(month)) => Some(month),
            _ => None,
        };
        for part in parts
            .iter()
            .filter(|p| p.first().is_some_and(u8::is_ascii_alphabetic))
        {
            match word(part) {
                Some(Word::Ignore) => {}
                Some(Word::Month(month)) => {
                    self.civil.month = month;
                    text_month = true;
                    add(mask::MONTH, &mut seen)?;
                }
                _ => return Err(Bad::Format),
            }
        }
        for part in parts.iter().filter(|p| month_of(p).is_none()) {
            let bits = self.plain_number(part, text_month, seen)?;
            add(bits, &mut seen)?;
        }
        if seen & !(mask::YEARDAY | mask::ZONE) != mask::DATE {
            return Err(Bad::Format);
        }
        Ok(new)
    }

    /// A word; `None` if it says nothing.
    fn word(&mut self, s: &[u8], rest: &[Field]) -> std::result::Result<Option<u32>, Bad> {
        if let Some(meaning) = abbrev::find(s) {
            return Ok(Some(self.zone_abbreviation(s, meaning)));
        }
        Ok(Some(match word(s) {
            None => self.named_zone(s, Bad::Format)?,
            Some(Word::Ignore) => return Ok(None),
            Some(Word::Moment(moment)) => self.moment(moment)?,
            Some(Word::Month(_)) if self.time_only => return Err(Bad::Format),
            Some(Word::Month(month)) => {
                let c = &mut self.civil;
                let swap = self.seen & mask::MONTH != 0
                    && !self.text_month
                    && self.seen & mask::DAY == 0
                    && (1..=31).contains(&c.month);
                if swap {
                    c.day = c.month;
                }
                self.text_month = true;
                c.month = month;
                if swap { mask::DAY } else { mask::MONTH }
            }
            Some(Word::Weekday) if self.time_only => return Err(Bad::Format),
            Some(Word::Weekday) => mask::WEEKDAY,
            Some(Word::Pm(pm)) => {
                self.pm = Some(pm);
                mask::MERIDIAN
            }
            Some(Word::Bc(bc)) => {
                self.bc = bc;
                mask::ERA
            }
            Some(Word::DstMod) => {
                self.offset += 3600;
                mask::DST_MOD | mask::DST
            }
            Some(Word::Unit(unit)) => {
                self.prefix = Some(unit);
                0
            }
            Some(Word::IsoTime) => {
                let next = rest.first().map(|f| f.kind);
                let timed = matches!(next, Some(Kind::Number | Kind::Time | Kind::Date));
                let dated = self.time_only || self.seen & mask::DATE == mask::DATE;
                if !timed || !dated {
                    return Err(Bad::Format);
                }
                self.prefix = Some(Unit::Time);
                0
            }
        }))
    }

    fn zone_abbreviation(&mut self, s: &[u8], meaning: Abbrev) -> u32 {
        match meaning {
            Abbrev::Fixed(offset, dst) => {
                self.offset = i64::from(offset);
                if dst {
                    mask::ZONE | mask::DST
                } else {
                    mask::ZONE
                }
            }
            Abbrev::Zone(name) => {
                self.abbreviation = Some((name, text(s).to_string()));
                mask::ZONE | mask::DYNAMIC
            }
        }
    }

    fn moment(&mut self, moment: Moment) -> Step {
        let (now, offset) = self.env.local_now();
        let c = &mut self.civil;
        let day_shift = match moment {
            Moment::Now if self.time_only => {
                *c = now;
                return Ok(mask::TIME);
            }
            Moment::Allballs => {
                self.moment = None;
                (c.hour, c.minute, c.second) = (0, 0, 0);
                self.offset = 0;
                return Ok(mask::TIME | mask::ZONE);
            }
            _ if self.time_only => return Err(Bad::Format),
            Moment::Now => {
                *c = now;
                self.offset = offset;
                self.moment = None;
                return Ok(mask::DATE | mask::TIME | mask::ZONE);
            }
            Moment::Epoch | Moment::Infinity | Moment::NegInfinity => {
                self.moment = Some(moment);
                return Ok(mask::RESERVED);
            }
            Moment::Yesterday => -1,
            Moment::Today => 0,
            Moment::Tomorrow => 1,
        };
        (c.year, c.month, c.day) = civil::date(now.days() + day_shift);
        self.moment = None;
        Ok(mask::DATE)
    }

    /// Final checks of year, month and day.
    fn validate_date(&mut self) -> std::result::Result<(), Bad> {
        let c = &mut self.civil;
        if self.seen & mask::YEAR != 0 && !self.julian {
            if self.bc {
                if c.year <= 0 {
                    return Err(Bad::FieldRange);
                }
                c.year = 1 - c.year;
            } else if self.two_digits {
                c.year += match c.year {
                    0..70 => 2000,
                    70..100 => 1900,
                    _ => 0,
                };
            } else if c.year <= 0 {
                return Err(Bad::FieldRange);
            }
        }
        if self.seen & mask::YEARDAY != 0 {
            let day = civil::days(c.year, 1, 1) + self.year_day - 1;
            (c.year, c.month, c.day) = civil::date(day);
        }
        if self.seen & mask::MONTH != 0 && !(1..=12).contains(&c.month) {
            return Err(Bad::MonthDayRange);
        }
        if self.seen & mask::DAY != 0 && !(1..=31).contains(&c.day) {
            return Err(Bad::MonthDayRange);
        }
        let dated = self.seen & mask::DATE == mask::DATE;
        if dated && c.day > civil::days_in_month(c.year, c.month) {
            return Err(Bad::FieldRange);
        }
        Ok(())
    }

    fn apply_meridian(&mut self) -> std::result::Result<(), Bad> {
        let Some(pm) = self.pm else { return Ok(()) };
        let hour = &mut self.civil.hour;
        if *hour > 12 {
            return Err(Bad::FieldRange);
        }
        match (pm, *hour) {
            (false, 12) => *hour = 0,
            (true, h) if h != 12 => *hour += 12,
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> std::result::Result<Decoded, Bad> {
        self.validate_date()?;
        self.apply_meridian()?;
        match self.moment {
            Some(Moment::Epoch) => return Ok(Decoded::Epoch),
            Some(Moment::Infinity) => return Ok(Decoded::Infinity),
            Some(Moment::NegInfinity) => return Ok(Decoded::NegInfinity),
            _ => {}
        }
        if self.seen & mask::DATE != mask::DATE {
            return Err(Bad::Format);
        }
        self.resolve_zone()?;
        Ok(Decoded::At(self.civil, self.offset))
    }

    /// Finds the offset, now that the date is known.
    fn resolve_zone(&mut self) -> std::result::Result<(), Bad> {
        let modified = self.seen & mask::DST_MOD != 0;
        if let Some(zone) = &self.zone {
            if modified {
                return Err(Bad::Format);
            }
            self.offset = zone.offset_of(&self.civil);
        }
        if let Some((name, abbreviation)) = &self.abbreviation {
            if modified {
                return Err(Bad::Format);
            }
            let zone = Zone::find(name).ok_or(Bad::ZoneName)?;
            self.offset = zone.abbreviated(abbreviation, &self.civil);
        }
        if self.seen & mask::ZONE == 0 {
            if modified {
                return Err(Bad::Format);
            }
            self.offset = self.env.zone.offset_of(&self.civil);
        }
        Ok(())
    }

    fn finish_time(mut self) -> std::result::Result<i64, Bad> {
        self.validate_date()?;
        self.apply_meridian()?;
        self.check_time()?;
        if self.seen & mask::TIME != mask::TIME {
            return Err(Bad::Format);
        }
        let dated = self.seen & mask::DATE;
        let modified = self.seen & mask::DST_MOD != 0;
        // A zone whose offset depends on the date needs one.
        if let Some(zone) = &self.zone {
            let constant = zone.constant_offset().is_some();
            if modified || (!constant && dated != mask::DATE) {
                return Err(Bad::Format);
            }
        }
        let by_session = self.abbreviation.is_some() || self.seen & mask::ZONE == 0;
        if by_session && (modified || (dated != 0 && dated != mask::DATE)) {
            return Err(Bad::Format);
        }
        Ok(self.civil.time())
    }
}

/// Checks a timestamp that came in binary.
pub(crate) fn check_timestamp(t: i64) -> Result<i64> {
    if super::infinite(t) {
        return Ok(t);
    }
    valid_timestamp(i128::from(t)).ok_or_else(|| beyond("timestamp"))
}

/// Checks a date that came in binary.
pub(crate) fn check_date(d: i32) -> Result<i32> {
    if super::date_infinite(d) {
        return Ok(d);
    }
    valid_date(i64::from(d)).ok_or_else(|| beyond("date"))
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;

    fn env(zone: &str, style: &str) -> Env {
        let mut env = Env::default();
        env.set("TimeZone", zone).unwrap();
        env.set("DateStyle", style).unwrap();
        // 2004-10-19 10:23:54.5 UTC
        env.set_now(151_496_634_500_000);
        env
    }

    fn tz(s: &str) -> String {
        let env = env("America/New_York", "ISO, MDY");
        match timestamptz(s.as_bytes(), &env) {
            Ok(t) => format::timestamptz(t, &env),
            Err(e) => e.sqlstate_str().into(),
        }
    }

    #[test]
    fn timestamps() {
        for (s, shown) in [
            ("1999-01-08 04:05:06 PST", "1999-01-08 07:05:06-05"),
            ("January 8, 1999 4:05 PM", "1999-01-08 16:05:00-05"),
            ("19990708T040506.789+02", "1999-07-07 22:05:06.789-04"),
            ("1999-07-08 12:00 Europe/Berlin", "1999-07-08 06:00:00-04"),
            ("2012-07-08 12:00 MSK", "2012-07-08 04:00:00-04"),
            ("0044-03-15 12:00 BC", "0044-03-15 12:00:00-04:56:02 BC"),
            // Does not exist; exists twice.
            ("2021-03-14 02:30", "2021-03-14 03:30:00-04"),
            ("2021-11-07 01:30", "2021-11-07 01:30:00-05"),
            ("12021-07-01 12:00", "12021-07-01 12:00:00-04"),
            ("J2451187", "1999-01-08 00:00:00-05"),
            ("1999.008", "1999-01-08 00:00:00-05"),
            ("infinity", "infinity"),
            ("epoch", "1969-12-31 19:00:00-05"),
            ("now", "2004-10-19 06:23:54.5-04"),
            ("today", "2004-10-19 00:00:00-04"),
            ("tomorrow 12:00", "2004-10-20 12:00:00-04"),
            ("yesterday", "2004-10-18 00:00:00-04"),
            ("2000-02-30", "22008"),
            ("2000-13-01", "22008"),
            ("2000-01-01 25:00", "22008"),
            ("2000-01-01 +16", "22009"),
            ("2000-01-01 10:00 Mars/Olympus", "22023"),
            ("294277-01-01", "22008"),
            ("x", "22007"),
        ] {
            assert_eq!(tz(s), shown, "{s}");
        }
    }

    /// The order of day, month and year comes from the date style, except where the
    /// input is unambiguous.
    #[test]
    fn styles() {
        for (style, expected) in [
            ("MDY", "2003-01-02"),
            ("DMY", "2003-02-01"),
            ("YMD", "2001-02-03"),
        ] {
            let env = env("UTC", style);
            assert_eq!(
                format::date(date(b"01/02/03", &env).unwrap(), &env),
                expected
            );
            assert_eq!(
                format::date(date(b"1999-Jan-08", &env).unwrap(), &env),
                "1999-01-08"
            );
        }
        let e = date(b"13/13/2000", &env("UTC", "MDY")).unwrap_err();
        assert_eq!(
            e.hint.unwrap(),
            "Perhaps you need a different \"datestyle\" setting."
        );
    }

    #[test]
    fn times() {
        let env = env("America/New_York", "ISO");
        let t = |s: &str| time_of_day(s.as_bytes(), &env).map(format::time).ok();
        assert_eq!(t("04:05:06.7891234").unwrap(), "04:05:06.789123");
        assert_eq!(t("040506").unwrap(), "04:05:06");
        assert_eq!(t("12:34 pm").unwrap(), "12:34:00");
        assert_eq!(t("24:00").unwrap(), "24:00:00");
        assert_eq!(t("now").unwrap(), "06:23:54.5");
        assert_eq!(t("24:00:01"), None);
        assert_eq!(t("12:00 America/New_York"), None);
    }
}
