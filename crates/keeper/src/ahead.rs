//! The thread that reads values into memory before they are needed, where a column is read in order
//! (`read_ahead`). The store decides which ones.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread, if values are stored on disk.
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
