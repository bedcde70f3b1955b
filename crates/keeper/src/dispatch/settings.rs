//! `Settings` and `Clock`: what the text form of values depends on.

use super::Connection;
use crate::fail::{self, Failure};
use contract::body;
use contract::message::table::Setting;

/// Maximum number of settings in a message.
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

    /// The database's clock, for `now()`. A wrong time replaces a client's `'now'` by a constant of
    /// the database's choice, which is no more than `PutPlain` permits in that session.
    pub(super) fn clock(&mut self, body: body::Clock) -> Result<(), Failure> {
        self.env.set_now(body.now);
        self.forget_refused();
        Ok(())
    }
}
