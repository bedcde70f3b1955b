//! Reads values into memory before they are needed, where a column is read in order
//! (`read_ahead`; which ones, the store says).

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread, if there is somewhere to read from.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    if !keeper.config.read_ahead || keeper.durable.is_none() {
        return Ok(());
    }
    let signal = Arc::clone(&keeper.ahead);
    keeper.store.set_read_ahead(Box::new(move || signal.ring()));
    background::start("ahead", &keeper.ahead, keeper, |keeper, _| {
        while keeper.store.read_ahead() {}
        true
    })
}
