//! `Settings` and `Clock`: what values in text depend on.

use super::Connection;
use crate::body::Body;
use crate::fail::{self, Failure};

/// Settings in one message.
const PAIRS_MAX: usize = 64;

impl Connection {
    pub(super) fn settings(&mut self, body: &[u8]) -> Result<(), Failure> {
        let mut body = Body::new(body);
        let mut pairs = Vec::new();
        while !body.is_empty() {
            if pairs.len() >= PAIRS_MAX {
                return Err(fail::malformed("There are too many settings.").into());
            }
            pairs.push((body.string()?, body.string()?));
        }
        let set = self.space.session.change(|shared| {
            pairs
                .into_iter()
                .try_for_each(|(name, value)| shared.env.set(name, value))
        });
        Ok(set?)
    }

    /// The database's clock, as for `now()`. A wrong time makes a constant of the database's
    /// choice of a client's `'now'`: no more than `PutPlain` lets it bring into that session.
    pub(super) fn clock(&mut self, body: &[u8]) -> Result<(), Failure> {
        self.env.set_now(Body::new(body).u64()? as i64);
        Ok(())
    }
}
