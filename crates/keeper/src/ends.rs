//! Channels that have made entries of a transaction, and whose backends have not said yet how it ended.
//!
//! A backend says that it has committed without waking the keeper: the channel finds it with the next
//! message, or when it looks by itself. So whoever has to know of all transactions that clients saw
//! commit waits until these channels have dealt with what they were sent before.
//!
//! Invariant: nobody waits for long, whatever a backend says that it has sent; a transaction whose end
//! was not found counts as running.

use crate::leases::Progress;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often such a channel looks for what it was sent without being woken.
pub const LOOK: Duration = Duration::from_millis(20);
/// How often somebody who waits for channels looks whether they have come so far.
const STEP: Duration = Duration::from_millis(1);
/// How long anybody waits.
const LIMIT: Duration = Duration::from_secs(1);

/// See the module documentation.
#[derive(Default)]
pub struct Ends(Mutex<HashMap<u64, Progress>>);

impl Ends {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a channel's transaction is to be waited for.
    pub fn join(&self, (channel, progress): &(u64, Progress)) {
        self.lock().insert(*channel, progress.clone());
    }

    /// It was found, or will never come.
    pub fn leave(&self, channel: u64) {
        self.lock().remove(&channel);
    }

    /// Waits until all channels have dealt with what they have been sent.
    pub fn catch_up(&self) {
        let sent = |(channel, progress): (&u64, &Progress)| (*channel, progress.sent());
        let mut behind: Vec<(u64, u64)> = self.lock().iter().map(sent).collect();
        let last = Instant::now() + LIMIT;
        loop {
            let channels = self.lock();
            behind.retain(|(channel, sent)| {
                let progress = channels.get(channel);
                progress.is_some_and(|progress| !progress.reached(*sent))
            });
            drop(channels);
            if behind.is_empty() || Instant::now() >= last {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}
