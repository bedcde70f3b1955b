//! The thread that writes the current recording (`recorder`) and ends it in time.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    crate::ring::keep_on(keeper);
    let signal = Arc::clone(keeper.recorder.signal());
    background::start("recorder", &signal, keeper, work)
}

fn work(keeper: &Keeper, _woken: bool) -> bool {
    let written = keeper.recorder.write();
    if written.turned {
        // What was delivered before is not in this file.
        keeper.renew_delivery();
    }
    if let Some(why) = written.end {
        // Failures are logged.
        let _ = keeper.recorder.stop(why);
        keeper.reconsider();
    }
    crate::ring::keep_on(keeper)
}
