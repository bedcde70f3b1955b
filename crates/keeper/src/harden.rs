//! Protects the process's memory: no core dumps, no debugging by other users, no swapping.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// Linux's value, on all architectures but PowerPC and SPARC; `nix` does not define it.
const MCL_ONFAULT: i32 = 4;

/// Does what the system permits and logs what it refuses. Being non-dumpable is mandatory.
pub fn harden() -> Result<(), String> {
    prctl::set_dumpable(false).map_err(|e| format!("cannot forbid dumps: {e}"))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|e| format!("cannot forbid dumps: {e}"))?;
    if let Err(what) = lock_memory() {
        tracing::warn!("memory is not locked and may be swapped out: {what}");
    }
    Ok(())
}

/// Locks memory as it is touched. Requires that there is no limit: with one, later allocations
/// would fail.
fn lock_memory() -> Result<(), String> {
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
    match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((RLIM_INFINITY, _)) => {}
        _ => return Err("the limit on locked memory (ulimit -l) is not \"unlimited\"".into()),
    }
    let flags = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE;
    // Only when touched, since threads reserve far larger stacks than they use.
    let on_fault = MlockAllFlags::from_bits_retain(MCL_ONFAULT);
    mlockall(flags | on_fault).map_err(|e| e.to_string())
}
