//! The floor of latency: the cost of a round trip through shared memory between two processes that
//! do nothing else. No channel can be faster. Benchmarks print it next to their own figures,
//! because it differs between machines.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Two words that two processes pass back and forth, each in its own pair of cache lines because of
/// the adjacent-line prefetcher.
#[repr(C)]
struct Words {
    there: AtomicU64,
    apart: [u64; 15],
    back: AtomicU64,
}

/// Measures `n` round trips between this process and a forked child. Each side spins on a word that
/// the other one stores. Fails if memory or a process cannot be had.
pub fn round_trip(n: u64) -> io::Result<Duration> {
    let size = std::mem::size_of::<Words>();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fresh zeroed memory, aligned to a page, long enough, unmapped below
    // after the last use; zeros are a valid `Words`; both processes use atomics.
    let words = unsafe { &*memory.cast::<Words>() };
    // SAFETY: the child uses atomics in memory mapped already and `_exit`, which
    // is allowed after a fork of a process with threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain system call; the child must not spin on without a parent.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        throw_back(words, n);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    let result = if child > 0 {
        let time = throw(words, n);
        // SAFETY: waits for our own child; no status wanted.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        Ok(time)
    } else {
        Err(io::Error::last_os_error())
    };
    // SAFETY: mapped above with this size; `words` is not used any more.
    unsafe { libc::munmap(memory, size) };
    result
}

fn wait_for(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
    }
}

fn throw_back(words: &Words, n: u64) {
    for value in 1..=n.saturating_add(1) {
        wait_for(&words.there, value);
        words.back.store(value, Ordering::Release);
    }
}

fn throw(words: &Words, n: u64) -> Duration {
    let _ = words.apart;
    // The first round trip includes the start of the child and is not counted.
    words.there.store(1, Ordering::Release);
    wait_for(&words.back, 1);
    let start = Instant::now();
    for value in 2..=n.saturating_add(1) {
        words.there.store(value, Ordering::Release);
        wait_for(&words.back, value);
    }
    start.elapsed()
}
