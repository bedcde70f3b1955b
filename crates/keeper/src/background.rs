//! Threads beside those of channels: each sleeps until its signal rings, works, and ends
//! with what it works for.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often a thread looks whether what it works for is still there.
const LOOK: Duration = Duration::from_secs(5);
/// What cannot be helped is not tried at once again.
const PAUSE: Duration = Duration::from_millis(200);

/// Wakes a thread.
#[derive(Default)]
pub struct Signal {
    wanted: Mutex<bool>,
    bell: Condvar,
}

impl Signal {
    /// There is work.
    pub fn ring(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if !*wanted {
            *wanted = true;
            self.bell.notify_one();
        }
    }

    /// Whether it rang, or some time has gone by.
    fn wait(&self) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .bell
            .wait_timeout_while(wanted, LOOK, |wanted| !*wanted)
            .unwrap_or_else(PoisonError::into_inner);
        let mut wanted = waited.0;
        std::mem::take(&mut *wanted)
    }
}

/// Starts a thread. `work` is told whether it was woken, and says whether it did what it could;
/// if not, it has a pause.
pub fn start<T: Send + Sync + 'static>(
    name: &str,
    signal: &Arc<Signal>,
    owner: &Arc<T>,
    work: fn(&T, bool) -> bool,
) -> Result<(), String> {
    let signal = Arc::clone(signal);
    let owner = Arc::downgrade(owner);
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || run(&signal, &owner, work))
        .map(|_| ())
        .map_err(|e| e.to_string())
}

fn run<T>(signal: &Signal, owner: &Weak<T>, work: fn(&T, bool) -> bool) {
    loop {
        let woken = signal.wait();
        let Some(owner) = owner.upgrade() else {
            return;
        };
        if !work(&owner, woken) {
            drop(owner);
            std::thread::sleep(PAUSE);
        }
    }
}
