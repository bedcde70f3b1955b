//! Background threads. Each sleeps until its signal rings, does its work, and ends together with
//! the object that it works for. Also waits for what other threads do.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often a thread checks whether that object still exists.
const LOOK: Duration = Duration::from_secs(5);
/// Pause after work that could not be completed.
const PAUSE: Duration = Duration::from_millis(200);
/// How often [`happens`] looks.
const STEP: Duration = Duration::from_millis(1);

/// Wakes a thread.
#[derive(Default)]
pub struct Signal {
    wanted: Mutex<bool>,
    bell: Condvar,
}

impl Signal {
    /// Announces work.
    pub fn ring(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if !*wanted {
            *wanted = true;
            self.bell.notify_one();
        }
    }

    /// Waits for the signal or a timeout. Returns whether it rang.
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

/// Looks once a millisecond, at most so many times, until something has happened. Returns whether it
/// has.
///
/// The limit is a number of looks and not a time: while the process stands still, or the processors
/// have other work, the threads that are waited for do not get on either.
pub fn happens(looks: u32, mut happened: impl FnMut() -> bool) -> bool {
    for _ in 0..looks {
        if happened() {
            return true;
        }
        std::thread::sleep(STEP);
    }
    happened()
}

/// Starts a thread. `work` is passed whether the thread was woken, and returns whether it could do
/// its work; if not, the thread pauses.
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
