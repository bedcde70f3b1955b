//! Keeps column values in memory within `memory_budget`. Evicts values that were not used lately,
//! and writes changed ones to the vault first if that is not enough. Logs a warning before memory
//! reaches `memory_limit`. Returns freed memory to the system, for example after a collection.

use crate::background;
use crate::keeper::Keeper;
use crate::machine;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Growth of the allocator's unused memory that is tolerated, in bytes.
const SPARE: usize = 16 << 20;

/// Starts the thread.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    background::start("room", &keeper.room, keeper, make)
}

/// Returns false if there is still too little memory.
fn make(keeper: &Keeper, woken: bool) -> bool {
    warn(keeper);
    give_back(keeper);
    if !woken {
        // Values used every few seconds count as used repeatedly, even while nothing is read back.
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

/// If much more memory is resident than values occupy, the allocator holds freed memory.
fn give_back(keeper: &Keeper) {
    let used = keeper.store.budget().used();
    let spare = || machine::resident().saturating_sub(used / 4 * 5);
    let (now, before) = (spare(), keeper.spare.load(Relaxed));
    if now <= before.saturating_add(SPARE) {
        keeper.spare.fetch_min(now, Relaxed);
        return;
    }
    channel::heap::give_back();
    keeper.spare.store(spare(), Relaxed);
}

/// Warns once when the limit is near, and again after memory has been well below it.
fn warn(keeper: &Keeper) {
    let budget = keeper.store.budget();
    let (used, limit) = (budget.used(), budget.limit());
    if used > limit / 10 * 8 && !keeper.near_limit.swap(true, Relaxed) {
        tracing::warn!(
            used_mb = used >> 20,
            memory_limit_mb = limit >> 20,
            "values take nearly all of memory_limit; beyond it statements fail (53200). {}",
            advice(keeper)
        );
    }
    if used < limit / 10 * 7 {
        keeper.near_limit.store(false, Relaxed);
    }
}

fn advice(keeper: &Keeper) -> &'static str {
    if keeper.durable.is_none() {
        "Without data_dir no value can go out of memory: configure one, or raise memory_limit."
    } else if keeper.config.memory_budget.0 == 0 {
        "memory_budget = 0 keeps all values in memory: set it, or raise memory_limit."
    } else {
        "Temporary values of sessions do not go out of memory: lower session_memory_limit, or \
         raise memory_limit."
    }
}
