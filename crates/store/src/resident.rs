//! A segment's values in memory.

use crate::budget::Account;
use crate::data::Data;

/// Values in memory, and what was charged for them.
pub(crate) struct Resident {
    pub(crate) data: Data,
    pub(crate) account: Account,
}
