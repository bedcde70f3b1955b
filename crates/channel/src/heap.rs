//! The allocator's memory. It is in this crate because it takes a C call, and `unsafe` is allowed
//! here only.
#![allow(unsafe_code)]

/// Returns freed memory to the system, including free ranges between allocations. Has no effect on
/// locked memory.
pub fn give_back() {
    // SAFETY: takes no pointer, and the allocator does its own locking.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}
