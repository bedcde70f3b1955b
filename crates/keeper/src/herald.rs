//! The thread that publishes checkpoints of ledger tables (`published`).

use crate::background::{self, Signal};
use crate::keeper::Keeper;
use crate::published::Sources;
use std::sync::Arc;

/// Starts the thread, if checkpoints are to be published.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    match keeper.published.wanted() {
        true => background::start("checkpoints", &Arc::new(Signal::default()), keeper, work),
        false => Ok(()),
    }
}

fn work(keeper: &Keeper, _woken: bool) -> bool {
    let follows = keeper.durable.as_ref().is_some_and(|d| d.follows());
    if !keeper.is_recovering() && !follows {
        keeper.published.write(&Sources {
            logs: &keeper.logs,
            store: &keeper.store,
            id: keeper.durable.as_ref().map_or(0, |d| d.id()),
            keys: &keeper.keys,
        });
    }
    true
}
