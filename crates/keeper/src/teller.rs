//! The thread that saves the accounts of disclosure (`told`). A keeper that is killed loses those
//! of the last few seconds.

use crate::background::{self, Signal};
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    let signal = Arc::new(Signal::default());
    background::start("accounts", &signal, keeper, |keeper, _| write(keeper))
}

/// Saves the accounts. Returns whether that succeeded.
pub fn write(keeper: &Keeper) -> bool {
    keeper.collect();
    keeper.accounts.save().is_ok()
}
