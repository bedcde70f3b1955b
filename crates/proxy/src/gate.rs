//! `PAUSE` and `RESUME` of the console: while the gate is closed, no client begins anything.
//!
//! A connection takes a turn before it processes what its client has sent, and gives it back when
//! nothing of it is in progress any more: no statement, no transaction, no pipeline.
//!
//! Invariant: from the moment when [`Gate::pause`] returns true until [`Gate::resume`] is called,
//! no connection has a turn.
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tokio::sync::{Notify, watch};

/// See the module documentation.
#[derive(Default)]
pub struct Gate {
    closed: AtomicBool,
    turns: AtomicU64,
    /// The last turn has been given back, or the gate was opened.
    over: Notify,
    /// The same as `closed`, for those who wait.
    paused: watch::Sender<bool>,
}

impl Gate {
    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Number of connections that have a turn.
    pub fn turns(&self) -> u64 {
        self.turns.load(SeqCst)
    }

    /// Closes the gate and waits until no connection has a turn. False: it was opened meanwhile.
    pub async fn pause(&self) -> bool {
        self.closed.store(true, SeqCst);
        self.paused.send_replace(true);
        loop {
            // Created before looking, so that no notification is missed.
            let over = self.over.notified();
            if !self.is_closed() {
                return false;
            }
            if self.turns() == 0 {
                return true;
            }
            over.await;
        }
    }

    /// Opens the gate.
    pub fn resume(&self) {
        self.closed.store(false, SeqCst);
        self.paused.send_replace(false);
        self.over.notify_waiters();
    }

    /// Waits until the gate is open.
    pub async fn opened(&self) {
        let mut paused = self.paused.subscribe();
        // The sender is here, so this does not fail.
        let _ = paused.wait_for(|paused| !*paused).await;
    }

    fn take(&self) -> bool {
        // A connection that sees an open gate here is seen by `pause`, which looks in the
        // opposite order.
        self.turns.fetch_add(1, SeqCst);
        if self.is_closed() {
            self.give_back();
            return false;
        }
        true
    }

    fn give_back(&self) {
        if self.turns.fetch_sub(1, SeqCst) == 1 && self.is_closed() {
            self.over.notify_waiters();
        }
    }
}

/// A connection's turn.
pub struct Turn<'g> {
    gate: &'g Gate,
    taken: bool,
}

impl<'g> Turn<'g> {
    /// A connection without a turn.
    pub fn new(gate: &'g Gate) -> Turn<'g> {
        Turn { gate, taken: false }
    }

    /// Takes a turn, unless the connection has one; returns whether it has one now.
    pub fn take(&mut self) -> bool {
        self.taken = self.taken || self.gate.take();
        self.taken
    }

    /// Gives the turn back, if the connection has one.
    pub fn give_back(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.gate.give_back();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// PAUSE waits for those who have begun, who may go on; nobody else begins until RESUME.
    #[test]
    fn pause_and_resume() {
        let gate = Gate::default();
        let (mut one, mut other) = (Turn::new(&gate), Turn::new(&gate));
        assert!(one.take());
        let mut paused = pin!(gate.pause());
        assert!(poll(paused.as_mut()).is_pending());
        assert!(one.take() && !other.take());
        assert!(poll(pin!(gate.opened())).is_pending());
        assert!(poll(paused.as_mut()).is_pending());
        one.give_back();
        assert_eq!(poll(paused.as_mut()), Poll::Ready(true));
        assert!(!one.take() && gate.turns() == 0);
        let mut opened = pin!(gate.opened());
        assert!(poll(opened.as_mut()).is_pending());
        gate.resume();
        assert!(poll(opened.as_mut()).is_ready());
        assert!(one.take() && other.take());
    }

    /// RESUME ends a PAUSE that waits; a connection that ends gives its turn back.
    #[test]
    fn ends() {
        let gate = Gate::default();
        let mut one = Turn::new(&gate);
        assert!(one.take());
        let mut paused = pin!(gate.pause());
        assert!(poll(paused.as_mut()).is_pending());
        gate.resume();
        assert_eq!(poll(paused.as_mut()), Poll::Ready(false));
        let mut paused = pin!(gate.pause());
        assert!(poll(paused.as_mut()).is_pending());
        drop(one);
        assert_eq!(poll(paused.as_mut()), Poll::Ready(true));
    }
}
