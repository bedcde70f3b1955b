//! Session settings that change what a value means in text: time zone, date
//! style, interval style, float digits, form of bytea, and the clock.

use crate::calendar::zone::Zone;
use crate::calendar::{UNIX_EPOCH, civil, zone};
use crate::{Error, Result, scan};
use std::time::{SystemTime, UNIX_EPOCH as SYSTEM_EPOCH};

/// How dates are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DateStyle {
    Iso,
    Sql,
    Postgres,
    German,
}

/// The order of day, month and year where it is ambiguous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

/// How intervals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IntervalStyle {
    Postgres,
    Verbose,
    SqlStandard,
    Iso8601,
}

/// Settings of a session, as far as values depend on them.
#[derive(Clone, Debug)]
pub struct Env {
    pub(crate) zone: Zone,
    pub(crate) date_style: DateStyle,
    pub(crate) date_order: DateOrder,
    pub(crate) interval_style: IntervalStyle,
    pub(crate) extra_float_digits: i32,
    pub(crate) bytea_escape: bool,
    now: i64,
}

impl Default for Env {
    /// UTC, ISO with MDY, postgres, 1, hex; the clock is the time of this call.
    fn default() -> Env {
        let since = SystemTime::now()
            .duration_since(SYSTEM_EPOCH)
            .unwrap_or_default();
        let now = i64::try_from(since.as_micros()).unwrap_or(0);
        Env {
            zone: Zone::Named(jiff::tz::TimeZone::UTC),
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            extra_float_digits: 1,
            bytea_escape: false,
            now: now.saturating_add(UNIX_EPOCH),
        }
    }
}

fn invalid(name: &str) -> Error {
    Error::new(b"22023", format!("invalid value for parameter \"{name}\""))
}

impl Env {
    /// Applies a setting: `TimeZone`, `DateStyle`, `IntervalStyle`,
    /// `extra_float_digits` or `bytea_output` (any case). Other names are an error.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "timezone" => self.zone = parse_zone(value).ok_or_else(|| invalid("TimeZone"))?,
            "datestyle" => self.set_date_style(value)?,
            "intervalstyle" => {
                self.interval_style = match value.to_ascii_lowercase().as_str() {
                    "postgres" => IntervalStyle::Postgres,
                    "postgres_verbose" => IntervalStyle::Verbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => return Err(invalid("IntervalStyle")),
                }
            }
            "extra_float_digits" => {
                let digits = value.trim().parse().ok().filter(|d| (-15..=3).contains(d));
                self.extra_float_digits = digits.ok_or_else(|| invalid("extra_float_digits"))?;
            }
            "bytea_output" => {
                self.bytea_escape = match value.to_ascii_lowercase().as_str() {
                    "hex" => false,
                    "escape" => true,
                    _ => return Err(invalid("bytea_output")),
                }
            }
            _ => return Err(Error::new(b"42704", "unrecognized configuration parameter")),
        }
        Ok(())
    }

    /// All settings but the clock, in some form: equal only for equal settings.
    pub fn without_clock(&self) -> String {
        format!(
            "{:?}",
            Env {
                now: 0,
                ..self.clone()
            }
        )
    }

    /// These settings, with dates as ISO writes them.
    pub(crate) fn iso(&self) -> Env {
        Env {
            date_style: DateStyle::Iso,
            ..self.clone()
        }
    }

    /// Fixes what `now` means: microseconds since 2000-01-01 UTC.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    /// What `now` means: microseconds since 2000-01-01 UTC.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// What `now` means in the session's time zone, and the offset.
    pub(crate) fn local_now(&self) -> (civil::Civil, i64) {
        let offset = self.zone.offset_at(zone::unix_seconds(self.now));
        let local = self.now.saturating_add(offset * 1_000_000);
        (civil::from_timestamp(local), offset)
    }

    fn set_date_style(&mut self, value: &str) -> Result<()> {
        let (mut style, mut order) = (None, None);
        let mut put_style = |s| style.replace(s).is_none_or(|old| old == s);
        let mut implied = None;
        for word in value.split(',') {
            let word = word.trim().trim_matches('"').to_ascii_lowercase();
            let mut put_order = |o| order.replace(o).is_none_or(|old| old == o);
            let consistent = match word.as_str() {
                "iso" => put_style(DateStyle::Iso),
                "sql" => put_style(DateStyle::Sql),
                "german" => {
                    implied = Some(DateOrder::Dmy);
                    put_style(DateStyle::German)
                }
                "ymd" => put_order(DateOrder::Ymd),
                "dmy" => put_order(DateOrder::Dmy),
                "mdy" | "us" => put_order(DateOrder::Mdy),
                w if w.starts_with("postgres") => put_style(DateStyle::Postgres),
                w if w.starts_with("euro") => put_order(DateOrder::Dmy),
                w if w.starts_with("noneuro") => put_order(DateOrder::Mdy),
                _ => false,
            };
            if !consistent {
                return Err(invalid("DateStyle"));
            }
        }
        self.date_style = style.unwrap_or(self.date_style);
        self.date_order = order.or(implied).unwrap_or(self.date_order);
        Ok(())
    }
}

/// A zone as `SET TimeZone` takes it: hours east of UTC, or a name.
fn parse_zone(value: &str) -> Option<Zone> {
    let bare = scan::trim_start(value.as_bytes());
    let numeric = bare
        .first()
        .is_some_and(|b| b.is_ascii_digit() || b"+-.".contains(b));
    if numeric && let Ok(hours) = crate::float::parse_f64(bare) {
        let seconds = hours * 3600.0;
        return (seconds.abs() < 168.0 * 3600.0).then_some(Zone::Fixed(seconds as i32, None));
    }
    Zone::find(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting that is not understood must not be taken silently.
    #[test]
    fn settings() {
        let mut env = Env::default();
        for (name, value) in [
            ("TimeZone", "America/New_York"),
            ("timezone", "europe/berlin"),
            ("TimeZone", "-5"),
            ("TimeZone", "EST5EDT"),
            ("DateStyle", "SQL, DMY"),
            ("datestyle", "ISO"),
            ("IntervalStyle", "iso_8601"),
            ("extra_float_digits", "-15"),
        ] {
            assert!(env.set(name, value).is_ok(), "{name} = {value}");
        }
        for (name, value) in [
            ("TimeZone", "Mars/Olympus"),
            ("DateStyle", "ISO, SQL"),
            ("IntervalStyle", "x"),
            ("extra_float_digits", "4"),
            ("work_mem", "1"),
        ] {
            assert!(env.set(name, value).is_err(), "{name} = {value}");
        }
        assert_eq!(env.date_order, DateOrder::Dmy);
    }
}
