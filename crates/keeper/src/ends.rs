//! Channels that have made entries of a transaction, and whose backends have not said yet how it ended.
//!
//! A backend says that it has committed without waking the keeper: the channel finds it with the next
//! message, or when it looks by itself. So whoever has to know of all transactions that clients saw
//! commit waits until these channels have dealt with what they were sent before.
//!
//! Invariant: nobody waits forever, whatever a backend says that it has sent; if a channel does not get so far,
//! whoever waits gets an error, and does not take a transaction that has committed for one that runs.

use crate::background::happens;
use crate::leases::{self, Progress};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use values::Error;

/// How often such a channel looks for what it was sent without being woken.
pub const LOOK: Duration = Duration::from_millis(20);
/// How many times somebody who waits for channels looks whether they have come so far.
const LOOKS: u32 = 60_000;

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
    ///
    /// # Errors
    /// If one does not.
    pub fn catch_up(&self) -> Result<(), Error> {
        self.reached_within(LOOKS)
    }

    fn reached_within(&self, looks: u32) -> Result<(), Error> {
        let sent = |(channel, progress): (&u64, &Progress)| (*channel, progress.sent());
        let mut behind: Vec<(u64, u64)> = self.lock().iter().map(sent).collect();
        let all = happens(looks, || {
            let channels = self.lock();
            behind.retain(|(channel, sent)| {
                let progress = channels.get(channel);
                progress.is_some_and(|progress| !progress.reached(*sent))
            });
            behind.is_empty()
        });
        match all {
            true => Ok(()),
            false => Err(leases::is_behind("the ends of its transactions")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::{BackendEnd, Listener};
    use contract::Kind;
    use contract::hello::{Hello, Status, Welcome};

    const LIMIT: Duration = Duration::from_secs(600);

    /// A channel that does not get as far as its backend says is an error for whoever waits. Bug: after
    /// a while the transaction counts as running, so that what it wrote can be taken away unnoticed.
    #[test]
    fn behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = Listener::bind(&path, 0o600).expect("a listener");
        let version = contract::VERSION;
        let hello = Hello {
            version,
            pid: 1,
            database: 5,
            session: 0,
            pass: [0; 16],
            role: 10,
        };
        let backend = std::thread::spawn(move || {
            let mut backend = BackendEnd::connect(&path, hello, LIMIT)?;
            backend.call(Kind::LedgerEnd, &[&1_u64.to_le_bytes()])?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        });
        let mut pending = listener.accept().expect("a backend");
        pending.hello(LIMIT).expect("its hello");
        let welcome = Welcome {
            version,
            status: Status::Accepted,
            arena: 1,
            session: 1,
            range: 0,
            incarnation: 1,
        };
        let mut end = pending.accept(welcome, None).expect("a channel");
        let progress = Progress::new(end.backlog());
        let mut body = Vec::new();
        end.next(&mut body).expect("what it was told");
        let ends = Ends::default();
        ends.join(&(7, progress.clone()));
        let error = ends.reached_within(3).expect_err("it is behind");
        assert_eq!(&error.sqlstate, b"55000");
        progress.done(end.taken());
        assert!(ends.catch_up().is_ok());
        progress.done(0);
        ends.leave(7);
        assert!(ends.catch_up().is_ok());
        drop(end);
        let _ = backend.join();
    }
}
