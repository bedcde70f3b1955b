//! The thread that writes the current recording (`recorder`) and ends it in time.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    let signal = Arc::clone(keeper.recorder.signal());
    background::start("recorder", &signal, keeper, work)
}

fn work(keeper: &Keeper, _woken: bool) -> bool {
    if let Some(why) = keeper.recorder.write() {
        // Failures are logged.
        let _ = keeper.recorder.stop(why);
        keeper.reconsider();
    }
    true
}
