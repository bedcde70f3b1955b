//! The thread that writes the recording that runs (`recorder`), and ends it in time.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts it.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    let signal = Arc::clone(keeper.recorder.signal());
    background::start("recorder", &signal, keeper, work)
}

fn work(keeper: &Keeper, _woken: bool) -> bool {
    if let Some(why) = keeper.recorder.write() {
        // What went wrong is in the log.
        let _ = keeper.recorder.stop(why);
        keeper.reconsider();
    }
    true
}
