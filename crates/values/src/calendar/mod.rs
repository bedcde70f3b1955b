//! Days and time zones. Does not read or write text, except names of time zones.

pub(crate) mod civil;
pub(crate) mod zone;

pub(crate) const USECS_PER_SEC: i64 = 1_000_000;
pub(crate) const USECS_PER_MINUTE: i64 = 60 * USECS_PER_SEC;
pub(crate) const USECS_PER_HOUR: i64 = 60 * USECS_PER_MINUTE;
pub(crate) const USECS_PER_DAY: i64 = 24 * USECS_PER_HOUR;
/// 1970-01-01 in microseconds since 2000-01-01.
pub(crate) const UNIX_EPOCH: i64 = -946_684_800 * USECS_PER_SEC;
/// Julian day of 2000-01-01.
pub(crate) const EPOCH_JULIAN: i64 = 2_451_545;
/// The first timestamp (4714-11-24 BC) and the end of all timestamps.
pub(crate) const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
pub(crate) const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
/// The first date and the end of all dates, in days since 2000-01-01.
const MIN_DATE: i64 = -EPOCH_JULIAN;
const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN;

/// Whether a date is infinite.
pub(crate) fn date_infinite(d: i32) -> bool {
    d == i32::MIN || d == i32::MAX
}

/// Whether a timestamp is infinite.
pub(crate) fn infinite(t: i64) -> bool {
    t == i64::MIN || t == i64::MAX
}

/// The date, if it is in range.
pub(crate) fn valid_date(days: i64) -> Option<i32> {
    (MIN_DATE..END_DATE).contains(&days).then_some(days as i32)
}

/// The timestamp, if it is in range.
pub(crate) fn valid_timestamp(t: i128) -> Option<i64> {
    i64::try_from(t)
        .ok()
        .filter(|t| (MIN_TIMESTAMP..END_TIMESTAMP).contains(t))
}
