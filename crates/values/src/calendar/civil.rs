//! The proleptic Gregorian calendar. Year 0 is 1 BC.

use super::{EPOCH_JULIAN, USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC};

/// A date and time, broken down.
#[derive(Clone, Copy, Default)]
pub(crate) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub micros: i64,
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days in a month; 0 for an invalid month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Days since 2000-01-01 of any date whose year fits 32 bits.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    // Count from March: the leap day comes last.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    before + (m * 153 + 2).div_euclid(5) + day - 1 - 730_425
}

/// The date of a day since 2000-01-01: year, month, day.
pub(crate) fn date(days: i64) -> (i64, i64, i64) {
    let d = days + 730_425;
    let (era, in_era) = (d.div_euclid(146_097), d.rem_euclid(146_097));
    let y = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (y * 365 + y / 4 - y / 100);
    let m = (in_year * 5 + 2) / 153;
    let day = in_year - (m * 153 + 2) / 5 + 1;
    let year = era * 400 + y;
    if m < 10 {
        (year, m + 3, day)
    } else {
        (year + 1, m - 9, day)
    }
}

/// Whether PostgreSQL's Julian day routines accept this date.
pub(crate) fn valid_julian(year: i64, month: i64) -> bool {
    (year > -4713 || (year == -4713 && month >= 11))
        && (year < 5_874_898 || (year == 5_874_898 && month < 6))
}

/// Day of the week, Sunday 0.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// ISO year and week of a day.
pub(crate) fn iso_week(days_since_epoch: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let monday0 = (days_since_epoch + 5).rem_euclid(7);
    let thursday = days_since_epoch - monday0 + 3;
    let (year, _, _) = date(thursday);
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}

/// Julian day.
pub(crate) fn julian(days: i64) -> i64 {
    days + EPOCH_JULIAN
}

/// The timestamp, broken down, without time zone.
pub(crate) fn from_timestamp(t: i64) -> Civil {
    let (year, month, day) = date(t.div_euclid(USECS_PER_DAY));
    let mut civil = Civil {
        year,
        month,
        day,
        ..Civil::default()
    };
    civil.set_time(t.rem_euclid(USECS_PER_DAY));
    civil
}

impl Civil {
    /// Sets hour to microsecond from microseconds since midnight.
    pub(crate) fn set_time(&mut self, t: i64) {
        self.hour = t / USECS_PER_HOUR;
        self.minute = t % USECS_PER_HOUR / USECS_PER_MINUTE;
        self.second = t % USECS_PER_MINUTE / USECS_PER_SEC;
        self.micros = t % USECS_PER_SEC;
    }

    /// Microseconds since midnight.
    pub(crate) fn time(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * USECS_PER_SEC + self.micros
    }

    /// Days since 2000-01-01.
    pub(crate) fn days(&self) -> i64 {
        days(self.year, self.month, self.day)
    }

    /// The timestamp `offset` seconds east of UTC; `None` if it is out of range.
    pub(crate) fn timestamp(&self, offset: i64) -> Option<i64> {
        if !valid_julian(self.year, self.month) {
            return None;
        }
        // PostgreSQL forms the local timestamp in 64 bits first.
        let time = self.seconds() * USECS_PER_SEC + self.micros;
        let days = self.days();
        let local = i128::from(days) * i128::from(USECS_PER_DAY) + i128::from(time);
        i64::try_from(local).ok()?;
        if (local < 0 && days > 0) || (local > 0 && days < -1) {
            return None;
        }
        super::valid_timestamp(local - i128::from(offset) * i128::from(USECS_PER_SEC))
    }

    /// Seconds since midnight. PostgreSQL counts them in 32 bits, which only
    /// matters for hours far beyond a day (`h2451187`).
    fn seconds(&self) -> i64 {
        let minutes = (self.hour as i32)
            .wrapping_mul(60)
            .wrapping_add(self.minute as i32);
        i64::from(minutes.wrapping_mul(60).wrapping_add(self.second as i32))
    }

    /// Seconds since 1970-01-01 of the local time.
    pub(crate) fn unix_seconds(&self) -> i64 {
        (self.days() + 10_957) * 86_400 + self.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routines are inverse over four centuries and at the ends of the range.
    #[test]
    fn dates_round_trip() {
        for d in (-146_100..146_100)
            .chain(-2_451_600..-2_451_500)
            .chain(2_145_031_000..2_145_031_949)
        {
            let (y, m, day) = date(d);
            assert_eq!(days(y, m, day), d);
            assert!((1..=12).contains(&m) && day >= 1 && day <= days_in_month(y, m));
        }
        assert_eq!(date(0), (2000, 1, 1));
        assert_eq!(date(-EPOCH_JULIAN), (-4713, 11, 24));
        assert_eq!(weekday(0), 6);
        assert_eq!(iso_week(days(2005, 1, 1)), (2004, 53));
        assert_eq!(iso_week(days(2008, 12, 29)), (2009, 1));
    }
}
