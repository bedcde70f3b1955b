//! How urgent a thread is for the system's scheduler. It is in this crate because it takes system
//! calls, and `unsafe` is allowed here only.
//!
//! Linux lets every thread become idle, but an idle one become ordinary only if it may have its nice
//! value (`RLIMIT_NICE` of 20 and more for 0). A thread that may not gets a nice value instead, which
//! leaves it a share of a busy processor.
//!
//! Not here: real-time classes, and other processes. Where the system refuses, as a container may,
//! the thread stays as urgent as it was.
//!
//! Invariant: no thread is idle that cannot step forward.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// The nice value of threads that step back and cannot become idle: a tenth of another thread's share.
pub const NICE: libc::c_int = 10;

static RETURNS: OnceLock<bool> = OnceLock::new();

/// A thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(libc::pid_t);

impl Thread {
    /// The one that calls.
    #[must_use]
    pub fn current() -> Thread {
        // SAFETY: takes nothing, and cannot fail.
        Thread(unsafe { libc::gettid() })
    }

    /// From now on it runs only while no other thread wants the processor, or, if it could not step
    /// forward again, gets a smaller share than others. Returns whether the system does that.
    pub fn step_back(self) -> bool {
        if Thread::may_return() {
            self.set(libc::SCHED_IDLE)
        } else {
            self.be_nice()
        }
    }

    /// Tried once, by a thread that ends.
    fn may_return() -> bool {
        let try_it = || {
            let me = Thread::current();
            me.set(libc::SCHED_IDLE) && me.set(libc::SCHED_OTHER)
        };
        *RETURNS.get_or_init(|| std::thread::spawn(try_it).join().unwrap_or(false))
    }

    /// A thread that is as nice already stays as it is. Without privileges none becomes less nice.
    fn be_nice(self) -> bool {
        self.nice().is_some_and(|nice| nice >= NICE) || self.set_nice(NICE)
    }

    /// Its nice value, unless it has ended.
    fn nice(self) -> Option<libc::c_int> {
        // SAFETY: takes no pointer.
        let found = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, self.0) };
        // The system call answers 20 less the nice value, so 1 to 40.
        let found = libc::c_int::try_from(found).ok()?;
        (found > 0).then_some(20 - found)
    }

    fn set_nice(self, nice: libc::c_int) -> bool {
        // SAFETY: takes no pointer.
        let done =
            unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, self.0, nice) };
        done == 0
    }

    /// From now on it is of the class of all others. A nice value stays. Returns whether the system
    /// does that.
    pub fn step_forward(self) -> bool {
        self.set(libc::SCHED_OTHER)
    }

    // The C library's function is a stub in some, so the system is called.
    fn set(self, policy: libc::c_int) -> bool {
        // The only member that all systems have: a priority within real-time classes.
        let none: libc::c_int = 0;
        // SAFETY: the pointer is to an integer that outlives the call, which only reads it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_setscheduler,
                self.0,
                policy,
                &raw const none,
            )
        };
        done == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(thread: Thread) -> libc::c_int {
        // SAFETY: takes no pointer.
        unsafe { libc::sched_getscheduler(thread.0) }
    }

    /// Bug: without privileges the thread stays idle for good, and starves beside others.
    #[test]
    fn back_and_forward() {
        let me = Thread::current();
        let before = me.nice().expect("a nice value");
        assert!(me.step_back());
        if Thread::may_return() {
            assert_eq!(policy(me), libc::SCHED_IDLE);
        } else {
            assert_eq!(policy(me), libc::SCHED_OTHER);
            assert_eq!(me.nice(), Some(before.max(NICE)));
        }
        // Another thread calls it to the front.
        let helped = std::thread::spawn(move || me.step_forward());
        assert!(helped.join().expect("a thread"));
        assert_eq!(policy(me), libc::SCHED_OTHER);
    }

    /// A process may have been started with a nice value. Bug: the thread becomes less nice, or, which
    /// takes privileges, it is said that the system refuses.
    #[test]
    fn nicer_than_asked() {
        let stays = || {
            let me = Thread::current();
            assert!(me.set_nice(NICE + 5));
            (me.be_nice(), me.nice())
        };
        let found = std::thread::spawn(stays).join().expect("a thread");
        assert_eq!(found, (true, Some(NICE + 5)));
    }
}
