//! Session settings that change what a value means in text: time zone, date
//! style, interval style, float digits, and the clock.

use crate::{Error, Result};

/// Settings of a session, as far as values depend on them.
#[derive(Clone, Debug)]
pub struct Env {
    now: i64,
}

impl Default for Env {
    /// UTC, ISO with MDY, postgres, 1; the clock is the time of this call.
    fn default() -> Env {
        Env { now: 0 }
    }
}

impl Env {
    /// Applies a setting: `TimeZone`, `DateStyle`, `IntervalStyle` or
    /// `extra_float_digits` (any case). Other names are an error.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let _ = (name, value);
        Err(Error::new(b"0A000", "not implemented"))
    }

    /// Fixes what `now` means: microseconds since 2000-01-01 UTC.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    /// What `now` means: microseconds since 2000-01-01 UTC.
    pub fn now(&self) -> i64 {
        self.now
    }
}
