//! The thread that writes down what was told (`told`). A keeper that is killed loses what was told
//! in the seconds before.

use crate::background::{self, Signal};
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts it.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    let signal = Arc::new(Signal::default());
    background::start("accounts", &signal, keeper, |keeper, _| write(keeper))
}

/// Writes what there is; whether that was possible.
pub fn write(keeper: &Keeper) -> bool {
    keeper.collect();
    keeper.accounts.save().is_ok()
}
