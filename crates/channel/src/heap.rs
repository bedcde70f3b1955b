//! The allocator's memory: freed memory is overwritten, and given back to the system. It is in this
//! crate because it takes pointers and a C call, and `unsafe` is allowed here only.
//!
//! Invariant: no byte of an allocation is in memory that was freed, nor in what is returned to the
//! system.
#![allow(unsafe_code)]

use crate::hidden;
use crate::secret::overwrite;
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, but memory is overwritten before it is freed: a value that is released
/// is not in the process's memory any more. A block that grows is moved, since the system's own
/// `realloc` could leave a copy behind.
pub struct Wiping<A = System>(A);

impl Wiping {
    /// Over the system's allocator.
    #[must_use]
    pub const fn new() -> Wiping {
        Wiping(System)
    }
}

impl Default for Wiping {
    fn default() -> Wiping {
        Wiping::new()
    }
}

// SAFETY: memory comes from the allocator below, or from hidden memory, and goes back there with the same layout. `realloc`
// is the trait's own, which allocates, copies and frees.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Wiping<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if hidden::wanted(layout)
            && let Some(block) = hidden::alloc(layout)
        {
            return block;
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if hidden::wanted(layout)
            && let Some(block) = hidden::alloc(layout)
        {
            if !block.is_null() {
                // SAFETY: as long as its layout says.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            return block;
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is as long as its layout says, and nobody else's.
        unsafe { overwrite(block, layout.size()) };
        if hidden::has(block) {
            // SAFETY: as the caller promises.
            return unsafe { hidden::dealloc(block, layout) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(block, layout) }
    }
}

/// Returns freed memory to the system, including free ranges between allocations. Has no effect on
/// locked memory.
pub fn give_back() {
    // SAFETY: takes no pointer, and the allocator does its own locking.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Looks at what is freed.
    #[derive(Default)]
    struct Watching {
        freed: Cell<usize>,
        left: Cell<usize>,
    }

    // SAFETY: memory comes from the system's allocator and goes back to it with the same layout.
    unsafe impl GlobalAlloc for Watching {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as the caller promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the tests have written all of it.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            let left = bytes.iter().filter(|byte| **byte != 0).count();
            self.left.set(self.left.get() + left);
            self.freed.set(self.freed.get() + layout.size());
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// Bug: what is freed is still in memory, and in whatever is allocated there.
    #[test]
    fn freed_memory_is_overwritten() {
        let heap = Wiping(Watching::default());
        for size in [1, 4, 7, 8, 9, 13, 16, 17, 31, 32, 33, 64, 1000, 1 << 20] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the layout is not empty; the block is freed with the layout that it has.
            unsafe {
                let block = heap.alloc(layout);
                block.write_bytes(0xaa, size);
                let grown = heap.realloc(block, layout, size * 2);
                assert_eq!(*grown.add(size - 1), 0xaa);
                grown.write_bytes(0xbb, size * 2);
                let layout = Layout::from_size_align(size * 2, 8).unwrap();
                heap.dealloc(grown, layout);
            }
            assert_eq!(heap.0.freed.take(), size * 3);
            assert_eq!(heap.0.left.take(), 0);
        }
    }
}
