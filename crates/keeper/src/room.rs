//! Keeps the values in memory within `memory_budget`: a thread that sleeps until there
//! are more, takes those out of memory that were not used lately, and writes changed
//! ones into the vault first if that is not enough.

use crate::keeper::Keeper;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often the thread looks whether its keeper is still there.
const LOOK: Duration = Duration::from_secs(5);
/// After a failure, or when nothing can go: what cannot be helped is not tried at once again.
const PAUSE: Duration = Duration::from_millis(200);

/// Says that there is too little room.
#[derive(Default)]
pub struct Signal {
    wanted: Mutex<bool>,
    bell: Condvar,
}

impl Signal {
    /// Room is wanted.
    pub fn ring(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if !*wanted {
            *wanted = true;
            self.bell.notify_one();
        }
    }

    fn wait(&self) {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .bell
            .wait_timeout_while(wanted, LOOK, |wanted| !*wanted)
            .unwrap_or_else(PoisonError::into_inner);
        let mut wanted = waited.0;
        *wanted = false;
    }
}

/// Starts the thread, if there is a budget and somewhere to put values.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    if keeper.config.memory_budget.0 == 0 || keeper.durable.is_none() {
        return Ok(());
    }
    let signal = Arc::clone(&keeper.room);
    let keeper = Arc::downgrade(keeper);
    std::thread::Builder::new()
        .name("room".into())
        .spawn(move || run(&signal, &keeper))
        .map(|_| ())
        .map_err(|e| e.to_string())
}

fn run(signal: &Signal, keeper: &Weak<Keeper>) {
    loop {
        signal.wait();
        let Some(keeper) = keeper.upgrade() else {
            return;
        };
        if !make(&keeper) {
            drop(keeper);
            std::thread::sleep(PAUSE);
        }
    }
}

/// False when there is still too little.
fn make(keeper: &Keeper) -> bool {
    let left = keeper.store.make_room();
    let Some(durable) = keeper.durable.as_ref().filter(|_| left > 0) else {
        return true;
    };
    if let Err(error) = durable.spill(&keeper.store, left) {
        tracing::warn!(%error.message, detail = error.detail.as_deref(), "making room");
    }
    keeper.store.make_room() == 0
}
