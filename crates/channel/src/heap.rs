//! The allocator's memory. Here because it takes a call of C, and `unsafe` is in this crate only.
#![allow(unsafe_code)]

/// Gives the system back what was freed and is not in use, also between pieces that are. Of
/// locked memory the system takes no part back.
pub fn give_back() {
    // SAFETY: it takes no pointer, and the allocator locks what it works on.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}
