//! Memory for keys that nobody but this process can read: `memfd_secret` takes the pages out of the
//! kernel's own mapping, so that neither `/proc/PID/mem`, nor a debugger, nor a core file, nor root
//! reads them. Where the kernel has no such memory: pages that are locked and in no core file.
//!
//! It is in this crate because it takes system calls, and `unsafe` is allowed here only.
//!
//! Invariant: the bytes are overwritten before their memory is given back, and are on no other page.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// Whether hidden memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// No.
    Off,
    /// If the kernel has it.
    Auto,
    /// It is an error if the kernel does not have it.
    Require,
}

/// `N` bytes in memory of their own, one page.
pub struct Secret<const N: usize> {
    bytes: NonNull<[u8; N]>,
    length: usize,
    hidden: bool,
}

// SAFETY: the memory belongs to this value alone, and is only read after it was made.
unsafe impl<const N: usize> Send for Secret<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Secret<N> {}

impl<const N: usize> Secret<N> {
    const FITS: () = assert!(N > 0 && N <= 4096, "a secret is on one page");

    /// A copy of these bytes; the caller's remain.
    ///
    /// # Errors
    /// If there is no memory, or none of the kind that is required.
    pub fn new(bytes: &[u8; N], wish: Wish) -> Result<Secret<N>> {
        let () = Self::FITS;
        let length = page();
        let hidden = match wish {
            Wish::Off => None,
            Wish::Auto => hidden(length).ok(),
            Wish::Require => Some(hidden(length)?),
        };
        let (start, hidden) = match hidden {
            Some(start) => (start, true),
            None => (locked(length)?, false),
        };
        // SAFETY: the mapping is new, writable and at least N bytes long; bytes need no alignment.
        unsafe { start.cast().write(*bytes) };
        Ok(Secret {
            bytes: start.cast(),
            length,
            hidden,
        })
    }

    /// Whether the kernel hides it.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }
}

impl<const N: usize> Deref for Secret<N> {
    type Target = [u8; N];

    fn deref(&self) -> &[u8; N] {
        // SAFETY: mapped and initialised until this value is dropped; nobody writes to it.
        unsafe { self.bytes.as_ref() }
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        for at in 0..N {
            // SAFETY: within the mapping, of which this is the only user. Volatile, so that it is done.
            unsafe { self.bytes.cast::<u8>().add(at).write_volatile(0) };
        }
        // SAFETY: the mapping that `new` made, which nothing refers to any more.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.length) };
    }
}

fn page() -> usize {
    // SAFETY: takes no pointer.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096).max(4096)
}

/// Pages of `memfd_secret`.
pub(crate) fn hidden(length: usize) -> Result<NonNull<u8>> {
    // SAFETY: takes no pointer.
    let made = unsafe { libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC) };
    let file = i32::try_from(made).unwrap_or(-1);
    if file < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let end = libc::off_t::try_from(length).map_err(Error::other)?;
    // SAFETY: takes no pointer.
    if unsafe { libc::ftruncate(file.as_raw_fd(), end) } != 0 {
        return Err(Error::last_os_error());
    }
    map(length, libc::MAP_SHARED, file.as_raw_fd())
}

/// A page that is not swapped and in no core file.
fn locked(length: usize) -> Result<NonNull<u8>> {
    let start = map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
    // SAFETY: the mapping that was just made. The rest is done as far as the system permits.
    unsafe {
        libc::mlock(start.as_ptr().cast(), length);
        libc::madvise(start.as_ptr().cast(), length, libc::MADV_DONTDUMP);
    }
    Ok(start)
}

fn map(length: usize, flags: libc::c_int, file: libc::c_int) -> Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let start = unsafe { libc::mmap(null_mut(), length, access, flags, file, 0) };
    match start == libc::MAP_FAILED {
        true => Err(Error::last_os_error()),
        false => NonNull::new(start.cast()).ok_or_else(Error::last_os_error),
    }
}

/// Writes zeros, which the compiler must not leave out although nobody reads what is freed.
///
/// # Safety
/// So many bytes belong to the caller.
#[inline]
pub(crate) unsafe fn overwrite(block: *mut u8, size: usize) {
    type Byte = MaybeUninit<u8>;
    type Word = MaybeUninit<u64>;
    fn zero<T>(place: &mut MaybeUninit<T>, value: T) {
        // SAFETY: a reference is valid and aligned.
        unsafe { std::ptr::write_volatile(place, MaybeUninit::new(value)) }
    }
    // SAFETY: as the caller promises; the bytes need not be initialised.
    let bytes = unsafe { std::slice::from_raw_parts_mut(block.cast::<Byte>(), size) };
    // SAFETY: any bytes are a word.
    let (before, words, after) = unsafe { bytes.align_to_mut::<Word>() };
    let mut lines = words.chunks_exact_mut(8);
    for line in &mut lines {
        line.iter_mut().for_each(|word| zero(word, 0));
    }
    lines
        .into_remainder()
        .iter_mut()
        .for_each(|word| zero(word, 0));
    before
        .iter_mut()
        .chain(after)
        .for_each(|byte| zero(byte, 0));
}

/// Overwrites what calls have left in so many kilobytes of the stack below the caller.
#[inline(never)]
pub fn wipe_stack<const KB: usize>() {
    let mut room = [[0u64; 128]; KB];
    for word in room.as_flattened_mut() {
        // SAFETY: a reference. Volatile, so that it is done.
        unsafe { std::ptr::write_volatile(word, 0) };
    }
    std::hint::black_box(&room);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// The bytes as whoever may read the process's memory sees them.
    fn seen(secret: &Secret<32>) -> Result<[u8; 32]> {
        let memory = std::fs::File::open("/proc/self/mem")?;
        let mut bytes = [0; 32];
        memory.read_exact_at(&mut bytes, secret.bytes.as_ptr() as u64)?;
        Ok(bytes)
    }

    #[test]
    fn locked_memory_is_seen() -> Result<()> {
        let secret = Secret::new(&[7; 32], Wish::Off)?;
        assert!(!secret.is_hidden() && *secret == [7; 32]);
        assert_eq!(seen(&secret)?, [7; 32]);
        Ok(())
    }

    /// Bug: the key is on an ordinary page.
    #[test]
    fn hidden_memory_is_not() -> Result<()> {
        let secret = Secret::new(&[7; 32], Wish::Auto)?;
        assert_eq!(*secret, [7; 32]);
        if secret.is_hidden() {
            assert!(seen(&secret).is_err());
            assert!(Secret::new(&[8], Wish::Require)?.is_hidden());
        } else {
            assert!(Secret::new(&[8], Wish::Require).is_err());
            println!("this kernel has no memfd_secret");
        }
        Ok(())
    }
}
