//! Keeps the values in memory within `memory_budget`: when there are more, takes those out
//! of memory that were not used lately, and writes changed ones into the vault first if
//! that is not enough.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread, if there is a budget and somewhere to put values.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    if keeper.config.memory_budget.0 == 0 || keeper.durable.is_none() {
        return Ok(());
    }
    background::start("room", &keeper.room, keeper, make)
}

/// False when there is still too little.
fn make(keeper: &Keeper, woken: bool) -> bool {
    if !woken {
        // What is used every few seconds is used again, also while nothing is read back.
        keeper.store.tick();
        return true;
    }
    let left = keeper.store.make_room();
    let Some(durable) = keeper.durable.as_ref().filter(|_| left > 0) else {
        return true;
    };
    if let Err(error) = durable.spill(&keeper.store, left) {
        tracing::warn!(%error.message, detail = error.detail.as_deref(), "making room");
    }
    keeper.store.make_room() == 0
}
