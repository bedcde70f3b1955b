//! Computes the moment from the fields of a template, for `to_date` and `to_timestamp`: see
//! from_format.rs.
//!
//! Invariant: the result is a valid date, unless the fields are not sufficient for one.

use super::from_format::wrong;
use crate::calendar::civil::{self, Civil};
use crate::{Error, Result};

/// The values of a template's fields; 0 if there was none.
#[derive(Default)]
pub(super) struct Fields {
    /// Whether dates are by ISO weeks, once it is known.
    pub iso: Option<bool>,
    pub hour: i64,
    /// Hours count to 12, and are in the afternoon.
    pub twelve: bool,
    pub afternoon: i64,
    pub minute: i64,
    pub second: i64,
    pub of_day: i64,
    pub weekday: i64,
    pub day: i64,
    pub day_of_year: i64,
    pub month: i64,
    pub millis: i64,
    pub micros: i64,
    pub year: i64,
    pub year_digits: usize,
    pub before_christ: i64,
    pub week: i64,
    pub week_of_month: i64,
    pub century: i64,
    pub julian: i64,
    pub zone_sign: i64,
    pub zone_hour: i64,
    pub zone_minute: i64,
    pub precision: i32,
}

fn beyond() -> Error {
    Error::new(b"22008", "date/time field value out of range")
}

/// The day before the first day of an ISO year's weeks.
fn iso_start(year: i64) -> i64 {
    let fourth = civil::days(year, 1, 4);
    fourth - (civil::weekday(fourth) + 6) % 7
}

/// Which fields are known.
#[derive(Default)]
struct Known {
    year: bool,
    month: bool,
    day: bool,
}

impl Known {
    fn all() -> Known {
        Known {
            year: true,
            month: true,
            day: true,
        }
    }
}

impl Fields {
    /// The date and time given by the fields; also checks the zone.
    pub fn civil(&self) -> Result<Civil> {
        let c = self.moment()?;
        self.offset()?;
        Ok(c)
    }

    fn clock(&self) -> Result<(i64, i64, i64)> {
        let x = self.of_day;
        let (mut hour, mut minute, mut second) = (x / 3600, x % 3600 / 60, x % 60);
        for (field, said) in [
            (&mut hour, self.hour),
            (&mut minute, self.minute),
            (&mut second, self.second),
        ] {
            if said != 0 {
                *field = said;
            }
        }
        if self.twelve {
            if !(1..=12).contains(&hour) {
                return Err(wrong("hour is invalid for the 12-hour clock")
                    .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.afternoon != 0 { 12 } else { 0 };
        }
        Ok((hour, minute, second))
    }

    fn whole_year(&self, known: &mut Known) -> i64 {
        let ancient = self.before_christ != 0;
        let century = if ancient { -self.century } else { self.century };
        known.year = self.year != 0 || self.century != 0;
        match (self.year, century) {
            (0, 0) => 0,
            // The first year of the century.
            (0, c) if c > 0 => (c - 1) * 100 + 1,
            (0, c) => c * 100 + 1,
            (year, c) if c != 0 && self.year_digits <= 2 => match (year % 100, c > 0) {
                (0, true) => c * 100,
                (0, false) => c * 100 + 1,
                (n, true) => n + (c - 1) * 100,
                (n, false) => (c + 1) * 100 - n + 1,
            },
            (year, _) => {
                let year = if ancient { -year } else { year };
                // 1 BC is the year 0.
                if year < 0 { year + 1 } else { year }
            }
        }
    }

    fn moment(&self) -> Result<Civil> {
        let (hour, minute, second) = self.clock()?;
        let mut known = Known::default();
        let mut date = (self.whole_year(&mut known), 1, 1);
        if self.julian != 0 {
            date = civil::date(self.julian - crate::calendar::EPOCH_JULIAN);
            known = Known::all();
        }
        let mut of_year = self.day_of_year;
        match (self.week, self.iso) {
            (0, _) => {}
            (week, Some(true)) => {
                let from_monday = match self.weekday {
                    0 => 0,
                    1 => 6,
                    n => n - 2,
                };
                date = civil::date(iso_start(date.0) + (week - 1) * 7 + from_monday);
                known = Known::all();
            }
            (week, _) => of_year = (week - 1) * 7 + 1,
        }
        let of_month = match self.week_of_month {
            0 => self.day,
            week => (week - 1) * 7 + 1,
        };
        if of_month != 0 {
            (date.2, known.day) = (of_month, true);
        }
        if self.month != 0 {
            (date.1, known.month) = (self.month, true);
        }
        if of_year != 0 && (date.1 <= 1 || date.2 <= 1) {
            self.set_day_of_year(of_year, &mut date, &mut known)?;
        }
        let (year, month, day) = date;
        let micros = self.millis * 1000 + self.micros;
        let c = Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            micros,
        };
        check(&c, &known)?;
        Ok(c)
    }

    /// Sets month and day from the day of the year, unless they were given.
    fn set_day_of_year(
        &self,
        of_year: i64,
        date: &mut (i64, i64, i64),
        known: &mut Known,
    ) -> Result<()> {
        if date.0 == 0 && self.before_christ == 0 {
            return Err(wrong(
                "cannot calculate day of year without year information",
            ));
        }
        if self.iso == Some(true) {
            *date = civil::date(iso_start(date.0) - 1 + of_year);
            known.year = true;
        } else {
            let (month, day) = within_year(date.0, of_year);
            if date.1 <= 1 {
                date.1 = month;
            }
            if date.2 <= 1 {
                date.2 = day;
            }
        }
        (known.month, known.day) = (true, true);
        Ok(())
    }

    /// Seconds east of UTC, if the text has them.
    pub fn offset(&self) -> Result<Option<i64>> {
        if self.zone_sign == 0 {
            return Ok(None);
        }
        if !(0..=15).contains(&self.zone_hour) || !(0..60).contains(&self.zone_minute) {
            return Err(Error::new(b"22009", "time zone displacement out of range"));
        }
        let seconds = (self.zone_hour * 60 + self.zone_minute) * 60;
        Ok(Some(self.zone_sign * seconds))
    }
}

/// Month and day of a day of the year; beyond December is month 13.
fn within_year(year: i64, mut day: i64) -> (i64, i64) {
    for month in 1..=12 {
        let length = civil::days_in_month(year, month);
        if day <= length {
            return (month, day);
        }
        day -= length;
    }
    (13, day)
}

fn check(c: &Civil, known: &Known) -> Result<()> {
    let whole = known.year && known.month && known.day;
    let date = (!known.month || (1..=12).contains(&c.month))
        && (!known.day || (1..=31).contains(&c.day))
        && (!whole || c.day <= civil::days_in_month(c.year, c.month));
    let time = (0..24).contains(&c.hour)
        && (0..60).contains(&c.minute)
        && (0..60).contains(&c.second)
        && (0..1_000_000).contains(&c.micros);
    if date && time { Ok(()) } else { Err(beyond()) }
}
