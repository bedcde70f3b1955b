//! Sessions of clients end when their key is withdrawn from the file of authorised clients:
//! at once on SIGHUP and at any handshake, within seconds otherwise.
//!
//! Not here: what a session that has ended still answers (`dispatch::policy`).

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;

/// Starts the thread that looks after the file.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    background::start("clients", &keeper.withdrawn, keeper, look)
}

fn look(keeper: &Keeper, _woken: bool) -> bool {
    if keeper.clients.has_changed() {
        keeper.end_unauthorised();
    }
    true
}
