//! How urgent a thread is for the system's scheduler. It is in this crate because it takes system
//! calls, and `unsafe` is allowed here only.
//!
//! Not here: real-time classes, and other processes. Where the system refuses, as a container may,
//! the thread stays as urgent as it was.
#![allow(unsafe_code)]

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

    /// From now on it runs only while no other thread wants the processor. Returns whether the
    /// system does that.
    pub fn step_back(self) -> bool {
        self.set(libc::SCHED_IDLE)
    }

    /// From now on it runs as all others do.
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

    #[test]
    fn back_and_forward() {
        let me = Thread::current();
        if me.step_back() {
            assert_eq!(policy(me), libc::SCHED_IDLE);
            // Another thread calls it to the front.
            let helped = std::thread::spawn(move || me.step_forward());
            assert!(helped.join().expect("a thread"));
            assert_eq!(policy(me), libc::SCHED_OTHER);
        }
    }
}
