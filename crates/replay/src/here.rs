//! Where a message is handled: in which channel of which session.

use crate::facts::domain;
use crate::session::{Channel, World};
use crate::term::Term;
use contract::Fid;
use contract::message::program::FIRST_HANDLE;

/// Where something happens.
pub struct Here<'a> {
    /// Everything.
    pub world: &'a mut World,
    /// The channel.
    pub channel: &'a mut Channel,
    /// Number of its session.
    pub session: u64,
    /// Whether it is the recording: only from that is anything learned.
    pub learns: bool,
}

impl Here<'_> {
    /// What a value was made of.
    pub fn term(&self, fid: Fid) -> Term {
        self.world.term(self.session, fid)
    }
}

/// Whether a program is an operation of the catalog.
#[must_use]
pub fn is_operation(program: u32) -> bool {
    program < FIRST_HANDLE
}

/// The domain of a ranked column.
#[must_use]
pub fn column_domain(key: contract::message::table::RankColumn) -> Option<u32> {
    key.t.map(|t| domain(&[t, t]))
}
