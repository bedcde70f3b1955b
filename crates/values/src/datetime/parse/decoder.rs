//! Interprets the fields of a date or time in order. A mask of the fields seen determines the
//! meaning of a bare number, and detects duplicates.

use crate::calendar::civil::{self, Civil};
use crate::calendar::zone::Zone;
use crate::datetime::USECS_PER_DAY;
use crate::datetime::abbrev::{self, Abbrev};
use crate::datetime::token::{
    Bad, Field, Kind, Moment, Unit, Word, fraction, fraction_micros, leading_int, mask, time, word,
};
use crate::env::{DateOrder, Env};

/// What has been understood so far.
pub(super) struct Decoder<'e> {
    pub(super) env: &'e Env,
    /// Only a time is wanted.
    pub(super) time_only: bool,
    pub(super) seen: u32,
    pub(super) civil: Civil,
    pub(super) year_day: i64,
    /// Seconds east of UTC.
    pub(super) offset: i64,
    pub(super) zone: Option<Zone>,
    pub(super) abbreviation: Option<(&'static str, String)>,
    /// A unit that determines the meaning of the next number.
    pub(super) prefix: Option<Unit>,
    pub(super) moment: Option<Moment>,
    pub(super) pm: Option<bool>,
    pub(super) bc: bool,
    pub(super) julian: bool,
    pub(super) text_month: bool,
    pub(super) two_digits: bool,
}

pub(super) type Step = std::result::Result<u32, Bad>;

fn text(s: &[u8]) -> &str {
    std::str::from_utf8(s).unwrap_or_default()
}

/// The runs of digits and of letters of a date with delimiters.
fn date_parts(s: &[u8]) -> std::result::Result<Vec<&[u8]>, Bad> {
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
    Ok(parts)
}

impl<'e> Decoder<'e> {
    pub(super) fn new(env: &'e Env, time_only: bool) -> Decoder<'e> {
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

    pub(super) fn fields(&mut self, fields: &[Field]) -> std::result::Result<(), Bad> {
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
        let (year, month, day) = civil::date(day - crate::datetime::EPOCH_JULIAN);
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
    pub(super) fn check_time(&self) -> std::result::Result<(), Bad> {
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
        let timed = self.seen & (mask::MONTH | mask::HOUR) == mask::MONTH | mask::HOUR;
        let c = &mut self.civil;
        let (place, bits) = match unit {
            Unit::Year => (&mut c.year, mask::YEAR),
            Unit::Month if timed => (&mut c.minute, mask::MINUTE),
            Unit::Month => (&mut c.month, mask::MONTH),
            Unit::Day => (&mut c.day, mask::DAY),
            Unit::Hour => (&mut c.hour, mask::HOUR),
            Unit::Minute => (&mut c.minute, mask::MINUTE),
            Unit::Second if rest.is_empty() => (&mut c.second, mask::SECOND),
            Unit::Second => {
                c.micros = fraction_micros(rest)?;
                (&mut c.second, mask::SECONDS)
            }
            Unit::Julian => return self.labelled_julian(value, rest),
            Unit::Time => {
                let new = self.run_together(s, self.seen | mask::DATE)?;
                return if new == mask::TIME {
                    Ok(new)
                } else {
                    Err(Bad::Format)
                };
            }
            _ => return Err(Bad::Format),
        };
        *place = value;
        Ok(bits)
    }

    /// A Julian day, optionally with a fraction.
    fn labelled_julian(&mut self, day: i64, rest: &[u8]) -> Step {
        if day < 0 {
            return Err(Bad::FieldRange);
        }
        self.set_julian(day);
        if rest.is_empty() {
            return Ok(mask::DATE);
        }
        let micros = fraction(rest)? * USECS_PER_DAY as f64;
        self.civil.set_time(micros as i64);
        Ok(mask::DATE | mask::TIME)
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

    /// A date with delimiters, possibly with the name of a month.
    fn date(&mut self, s: &[u8]) -> Step {
        let parts = date_parts(s)?;
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

    /// Interprets a word; `None` if it has no meaning.
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
}
