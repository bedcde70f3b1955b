//! Ends sessions whose client key was removed from the file of authorised clients (at once on
//! SIGHUP and at any handshake, otherwise within seconds), and sessions that their client has not
//! renewed in time (`term`).
//!
//! `dispatch::policy` defines what a session answers after its end.

use crate::background;
use crate::keeper::Keeper;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which leases are checked.
const LOOK: Duration = Duration::from_millis(250);

/// Starts the threads that watch the file and the leases.
pub fn keep(keeper: &Arc<Keeper>) -> Result<(), String> {
    background::start("clients", &keeper.withdrawn, keeper, look)?;
    if keeper.config.session_lease_seconds == 0 {
        return Ok(());
    }
    let owner = Arc::downgrade(keeper);
    let look = move || {
        while let Some(keeper) = owner.upgrade() {
            keeper.end_overdue(Instant::now());
            drop(keeper);
            std::thread::sleep(LOOK);
        }
    };
    let started = std::thread::Builder::new()
        .name("leases".into())
        .spawn(look);
    started.map(|_| ()).map_err(|e| e.to_string())
}

fn look(keeper: &Keeper, _woken: bool) -> bool {
    if keeper.clients.has_withdrawn() {
        keeper.end_unauthorised();
    }
    true
}
