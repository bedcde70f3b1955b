//! Time zones: by name, by POSIX rule, or a fixed offset.
//!
//! jiff knows years -9999 to 9999; rules repeat every 400 years, so later years
//! are looked up in an earlier cycle.

use super::civil::Civil;
use super::{UNIX_EPOCH, USECS_PER_SEC};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use std::sync::OnceLock;

/// Seconds in 400 years.
const CYCLE: i64 = 146_097 * 86_400;
/// Seconds from 1970 to 9600: later instants are moved back by cycles.
const LAST: i64 = 240_773_385_600;

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// Seconds east of UTC, and the name if it has one.
    Fixed(i32, Option<Box<str>>),
    /// From the time zone database, or a POSIX rule.
    Named(TimeZone),
}

/// A zone's offset and abbreviation at an instant.
pub(crate) struct Local {
    /// Seconds east of UTC.
    pub offset: i64,
    /// Abbreviation.
    pub name: String,
}

fn bundled() -> &'static TimeZoneDatabase {
    static BUNDLED: OnceLock<TimeZoneDatabase> = OnceLock::new();
    BUNDLED.get_or_init(TimeZoneDatabase::bundled)
}

fn instant(unix: i64) -> Timestamp {
    let unix = if unix > LAST {
        LAST - CYCLE + (unix - LAST).rem_euclid(CYCLE)
    } else {
        unix
    };
    Timestamp::from_second(unix).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Seconds since 1970 of a timestamp, rounded down.
pub(crate) fn unix_seconds(t: i64) -> i64 {
    t.div_euclid(USECS_PER_SEC) - UNIX_EPOCH / USECS_PER_SEC
}

impl Zone {
    /// Looks up a name as PostgreSQL does: any case, then as a POSIX rule.
    pub(crate) fn find(name: &str) -> Option<Zone> {
        // Zone names are short; anything else is not searched for.
        if name.is_empty() || name.len() > 255 {
            return None;
        }
        // A directory of zones without leap seconds; others are not supported.
        let name = match name.split_at_checked(6) {
            Some((dir, bare)) if dir.eq_ignore_ascii_case("posix/") => bare,
            _ => name,
        };
        if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("gmt") {
            return Some(Zone::Named(TimeZone::UTC));
        }
        if let Ok(zone) = jiff::tz::db().get(name).or_else(|_| bundled().get(name)) {
            return Some(Zone::Named(zone));
        }
        posix(&name.to_ascii_uppercase())
    }

    /// Offset and abbreviation at an instant.
    pub(crate) fn at(&self, unix: i64) -> Local {
        match self {
            Zone::Fixed(offset, name) => Local {
                offset: i64::from(*offset),
                name: name
                    .as_ref()
                    .map_or_else(|| fixed_name(*offset), |n| n.to_string()),
            },
            Zone::Named(zone) => {
                let info = zone.to_offset_info(instant(unix));
                Local {
                    offset: i64::from(info.offset().seconds()),
                    name: info.abbreviation().to_string(),
                }
            }
        }
    }

    /// Seconds east of UTC at an instant.
    pub(crate) fn offset_at(&self, unix: i64) -> i64 {
        match self {
            Zone::Fixed(offset, _) => i64::from(*offset),
            Zone::Named(zone) => i64::from(zone.to_offset(instant(unix)).seconds()),
        }
    }

    /// Seconds east of UTC at a local time. A time that does not exist has the offset before the
    /// change; one that exists twice has the offset after it.
    pub(crate) fn offset_of(&self, local: &Civil) -> i64 {
        let zone = match self {
            Zone::Fixed(offset, _) => return i64::from(*offset),
            Zone::Named(zone) => zone,
        };
        if !super::civil::valid_julian(local.year, local.month) {
            return 0;
        }
        let unix = local.unix_seconds();
        let unix = if unix > LAST {
            LAST - CYCLE + (unix - LAST).rem_euclid(CYCLE)
        } else {
            unix
        };
        let base = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        let Ok(civil) = base.checked_add(SignedDuration::from_secs(unix)) else {
            return 0;
        };
        let offset = match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        i64::from(offset.seconds())
    }

    /// The offset, if it never changes.
    pub(crate) fn constant_offset(&self) -> Option<i64> {
        match self {
            Zone::Fixed(offset, _) => Some(i64::from(*offset)),
            Zone::Named(zone) => {
                let first = zone.to_offset(Timestamp::MIN);
                let changes = zone.following(Timestamp::MIN).take(1000);
                let constant = changes.into_iter().all(|t| t.offset() == first);
                constant.then(|| i64::from(first.seconds()))
            }
        }
    }

    /// The offset of an abbreviation of this zone near a local time: at its last use before,
    /// otherwise at its first use after.
    pub(crate) fn abbreviated(&self, abbreviation: &str, local: &Civil) -> i64 {
        let fallback = self.offset_of(local);
        let Zone::Named(zone) = self else {
            return fallback;
        };
        let probe = instant(local.unix_seconds() - fallback);
        let now = zone.to_offset_info(probe);
        if now.abbreviation().eq_ignore_ascii_case(abbreviation) {
            return i64::from(now.offset().seconds());
        }
        zone.preceding(probe)
            .take(1000)
            .chain(zone.following(probe).take(1000))
            .find(|t| t.abbreviation().eq_ignore_ascii_case(abbreviation))
            .map_or(fallback, |t| i64::from(t.offset().seconds()))
    }
}

/// Splits a POSIX rule after its first zone name. PostgreSQL accepts names of any length.
fn posix_name(rule: &str) -> Option<(&str, &str)> {
    match rule.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>'),
        None => {
            let end = rule.find(|c: char| c.is_ascii_digit() || ",+-".contains(c));
            rule.split_at_checked(end.unwrap_or(rule.len()))
        }
    }
}

/// `[±]hh[:mm[:ss]]` west of UTC, as seconds east of UTC, and the rest.
fn posix_offset(rule: &str) -> Option<(i32, &str)> {
    let (sign, mut rest) = match rule.as_bytes().first()? {
        b'-' => (1, rule.get(1..)?),
        b'+' => (-1, rule.get(1..)?),
        _ => (-1, rule),
    };
    let mut seconds = 0;
    for (unit, most) in [(3600, 167), (60, 59), (1, 60)] {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(digits)?;
        seconds += number.parse::<i32>().ok().filter(|n| *n <= most)? * unit;
        rest = after;
        match after.strip_prefix(':') {
            Some(next) if unit > 1 => rest = next,
            _ => break,
        }
    }
    Some((sign * seconds, rest))
}

/// Parses a POSIX rule in upper case. If it does not say when daylight-saving time applies, the
/// rules of the United States do.
fn posix(rule: &str) -> Option<Zone> {
    let (name, rest) = posix_name(rule)?;
    let (offset, rest) = posix_offset(rest)?;
    if rest.is_empty() {
        return Some(Zone::Fixed(offset, Some(name.into())));
    }
    let (dst_name, rest) = posix_name(rest).filter(|(name, _)| !name.is_empty())?;
    let (dst_offset, rest) = match rest.as_bytes().first() {
        None | Some(b',') => (offset + 3600, rest),
        Some(_) => posix_offset(rest)?,
    };
    let rules = if rest.is_empty() {
        ",M3.2.0,M11.1.0"
    } else {
        rest
    };
    // jiff requires names of at least three letters or digits.
    let proper = |name: &str| match name {
        _ if name.len() < 3 => "<XXX>".to_string(),
        _ if name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-".contains(&b)) =>
        {
            format!("<{name}>")
        }
        _ => "<XXX>".to_string(),
    };
    let west = |offset: i32| {
        let seconds = offset.unsigned_abs();
        let sign = if offset > 0 { "-" } else { "" };
        format!(
            "{sign}{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    };
    let full = [
        proper(name),
        west(offset),
        proper(dst_name),
        west(dst_offset),
        rules.into(),
    ];
    TimeZone::posix(&full.concat()).ok().map(Zone::Named)
}

/// Abbreviation of a fixed offset: `+05:30`.
fn fixed_name(offset: i32) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let seconds = offset.unsigned_abs();
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (m, s) {
        (0, 0) => format!("{sign}{h:02}"),
        (_, 0) => format!("{sign}{h:02}:{m:02}"),
        _ => format!("{sign}{h:02}:{m:02}:{s:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper in a confined environment may have no zone files.
    #[test]
    fn bundled_database_has_zones() {
        assert!(bundled().get("Europe/Berlin").is_ok());
    }

    #[test]
    fn names() {
        for name in [
            "europe/berlin",
            "EST5EDT",
            "UTC",
            "posix/Asia/Tokyo",
            "foo-3:30",
            "<+03>-3",
            "x5y",
        ] {
            assert!(Zone::find(name).is_some(), "{name}");
        }
        for name in [
            "",
            "Mars/Olympus",
            "foo",
            "foo200",
            "../../etc/passwd",
            "foo3bar,x",
        ] {
            assert!(Zone::find(name).is_none(), "{name}");
        }
        let zone = Zone::find("foo-3:30").unwrap();
        assert_eq!(
            (zone.offset_at(0), zone.at(0).name.as_str()),
            (12_600, "FOO")
        );
        assert_eq!(fixed_name(-12_600), "-03:30");
    }

    /// Rules also apply beyond the years that jiff supports.
    #[test]
    fn far_future() {
        let zone = Zone::find("America/New_York").unwrap();
        // 12021-07-01 and 12021-01-01, 12:00 UTC.
        assert_eq!(zone.offset_at(317_192_673_600 + 43_200), -14_400);
        assert_eq!(zone.offset_at(317_177_035_200 + 43_200), -18_000);
    }
}
