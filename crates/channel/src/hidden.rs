//! The allocator's hidden memory: one range of `memfd_secret`, reserved before system calls are
//! restricted, from which allocations come while a thread makes keys ([`keys`]), or always. What the
//! library of cryptography allocates comes from there as well: it has the keys' schedules.
//!
//! It is in this crate because it takes pointers, system calls and functions of C, and `unsafe` is
//! allowed here only.
//!
//! Invariants: memory goes back to where it came from; it is overwritten first.
#![allow(unsafe_code)]

use crate::pool::Pool;
use crate::secret::{self, overwrite, wipe_stack};
use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is hidden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Keys.
    Keys,
    /// Whatever is allocated.
    Everything,
}

const NOTHING: u8 = 0;
const KEYS: u8 = 1;
const EVERYTHING: u8 = 2;

/// So deep do calls go that make keys.
const WIPED_KB: usize = 32;

static POOL: Pool = Pool::new();
static MODE: AtomicU8 = AtomicU8::new(NOTHING);
/// Once so little is left, no more keys are made: the library of cryptography cannot do without memory.
const KEPT: usize = 1 << 20;
/// Larger allocations hold no keys.
const KEYS_MAX: usize = 64 * 1024;

/// Hidden memory is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no hidden memory is left")]
pub struct Full;

thread_local! {
    /// How many calls of [`keys`] the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether there was no room for something meanwhile.
    static FULL: Cell<bool> = const { Cell::new(false) };
}

/// Reserves so many bytes, once, before other threads and keys are there.
///
/// # Errors
/// The kernel has no such memory, or does not give as much (`ulimit -l`).
pub fn reserve(bytes: usize, what: What) -> std::io::Result<()> {
    let start = secret::hidden(bytes)?;
    // SAFETY: a new mapping, which is never removed.
    if !unsafe { POOL.begin(start, bytes, what == What::Everything) } {
        return Err(std::io::Error::other("there is hidden memory already"));
    }
    // SAFETY: the functions are what the library asks for; it has allocated nothing yet, or it keeps it.
    unsafe { aws_lc_sys::CRYPTO_set_mem_functions(Some(take), Some(grow), Some(give)) };
    let mode = match what {
        What::Keys => KEYS,
        What::Everything => EVERYTHING,
    };
    MODE.store(mode, Relaxed);
    Ok(())
}

/// What is hidden, if anything.
pub fn what() -> Option<What> {
    match MODE.load(Relaxed) {
        KEYS => Some(What::Keys),
        EVERYTHING => Some(What::Everything),
        _ => None,
    }
}

/// Bytes of hidden memory that are free, and all of it.
pub fn room() -> (usize, usize) {
    POOL.room()
}

/// Makes keys: what the thread allocates meanwhile is hidden, and what it left on its stack is
/// overwritten. What keys are made of must be on the heap when `make` returns.
///
/// # Errors
/// Something had no room: what was made is gone.
#[inline(never)]
pub fn keys<T>(make: impl FnOnce() -> T) -> Result<T, Full> {
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            DEPTH.with(|depth| depth.set(depth.get() - 1));
        }
    }
    if DEPTH.with(|depth| depth.replace(depth.get() + 1)) == 0 {
        FULL.with(|full| full.set(false));
    }
    let scope = Scope;
    let made = make();
    drop(scope);
    wipe_stack::<WIPED_KB>();
    match FULL.with(Cell::get) {
        true => Err(Full),
        false => Ok(made),
    }
}

/// Whether an allocation is to be hidden.
#[inline]
pub(crate) fn wanted(layout: Layout) -> bool {
    match MODE.load(Relaxed) {
        NOTHING => false,
        EVERYTHING => true,
        _ => layout.size() <= KEYS_MAX && DEPTH.with(Cell::get) > 0,
    }
}

/// Hidden memory; `None` if there is none for a key, which then lives in ordinary memory until [`keys`]
/// ends.
pub(crate) fn alloc(layout: Layout) -> Option<*mut u8> {
    if MODE.load(Relaxed) == EVERYTHING {
        return Some(POOL.take(layout, 0));
    }
    let block = POOL.take(layout, KEPT);
    if block.is_null() {
        FULL.with(|full| full.set(true));
        return None;
    }
    Some(block)
}

/// Whether this memory is hidden.
#[inline]
pub(crate) fn has(block: *mut u8) -> bool {
    POOL.has(block)
}

/// Takes back memory, which was overwritten.
///
/// # Safety
/// It is hidden, of this layout, and nobody else's.
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    // SAFETY: as the caller promises.
    unsafe { POOL.give(block, layout) }
}

/// In front of what the library allocates: its size.
const BEFORE: usize = 16;

fn with_size(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(BEFORE)?, BEFORE).ok()
}

/// `malloc` of the library: it has errors for memory that there is not.
unsafe extern "C" fn take(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
    let Some(layout) = with_size(size) else {
        return null_mut();
    };
    // It may use what is kept: without memory for its random numbers it ends the process.
    let mut block = POOL.take(layout, KEPT);
    if block.is_null() {
        FULL.with(|full| full.set(true));
        block = POOL.take(layout, 0);
    }
    if block.is_null() {
        return null_mut();
    }
    // SAFETY: as long as the layout, which begins with the size.
    unsafe {
        block.cast::<usize>().write(size);
        block.add(BEFORE).cast()
    }
}

/// What `take` has given for a pointer of the library's.
///
/// # Safety
/// It is one that `take` has given.
unsafe fn taken(block: *mut c_void) -> Option<(*mut u8, Layout)> {
    let block = block.cast::<u8>();
    if !POOL.has(block) {
        // From before `reserve`: it stays.
        return None;
    }
    // SAFETY: as `take` made it.
    let (start, size) = unsafe {
        let start = block.sub(BEFORE);
        (start, start.cast::<usize>().read())
    };
    Some((start, with_size(size)?))
}

/// `free` of the library.
unsafe extern "C" fn give(block: *mut c_void, _: *const c_char, _: c_int) {
    // SAFETY: the library frees what it has allocated.
    unsafe {
        if let Some((start, layout)) = taken(block) {
            overwrite(start, layout.size());
            POOL.give(start, layout);
        }
    }
}

/// `realloc` of the library.
unsafe extern "C" fn grow(
    block: *mut c_void,
    size: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    // SAFETY: the library grows what it has allocated.
    unsafe {
        let Some((start, layout)) = taken(block) else {
            return null_mut();
        };
        let larger = take(size, file, line);
        if !larger.is_null() {
            let both = size.min(layout.size() - BEFORE);
            let from = start.add(BEFORE);
            larger.cast::<u8>().copy_from_nonoverlapping(from, both);
            give(block, file, line);
        }
        larger
    }
}
