//! What the fields of a date or time come to, once all have been read.

use super::Decoded;
use super::decoder::Decoder;
use crate::calendar::civil;
use crate::calendar::zone::Zone;
use crate::datetime::token::{Bad, Moment, mask};

impl Decoder<'_> {
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

    pub(super) fn finish(mut self) -> std::result::Result<Decoded, Bad> {
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

    pub(super) fn finish_time(mut self) -> std::result::Result<i64, Bad> {
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
