//! `Settings` and `Clock`: what values in text depend on.

use super::Connection;
use crate::fail::{self, Failure};
use contract::body;
use contract::message::table::Setting;

/// Settings in one message.
const PAIRS_MAX: usize = 64;

impl Connection {
    pub(super) fn settings(&mut self, body: body::Settings<'_>) -> Result<(), Failure> {
        if body.settings.iter().count() > PAIRS_MAX {
            return Err(fail::malformed("There are too many settings.").into());
        }
        let set = self.session.change(|shared| {
            let mut settings = body.settings.iter();
            settings.try_for_each(|Setting { name, value }| shared.env.set(name, value))
        });
        Ok(set?)
    }

    /// The database's clock, as for `now()`. A wrong time makes a constant of the database's
    /// choice of a client's `'now'`: no more than `PutPlain` lets it bring into that session.
    pub(super) fn clock(&mut self, body: body::Clock) -> Result<(), Failure> {
        self.env.set_now(body.now);
        Ok(())
    }
}
