//! Keeps the process's memory to itself: no core dumps, no debugger of another
//! user's, nothing swapped out.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// Of Linux, on all but PowerPC and SPARC; `nix` has no name for it.
const MCL_ONFAULT: i32 = 4;

/// Does what the system allows; what it refuses is logged. Not dumpable is a
/// must.
pub fn harden() -> Result<(), String> {
    prctl::set_dumpable(false).map_err(|e| format!("cannot forbid dumps: {e}"))?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|e| format!("cannot forbid dumps: {e}"))?;
    if let Err(what) = lock_memory() {
        tracing::warn!("memory is not locked and may be swapped out: {what}");
    }
    Ok(())
}

/// Locks memory as it is touched. Only without a limit: with one, allocations
/// beyond it would fail later.
fn lock_memory() -> Result<(), String> {
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
    match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((RLIM_INFINITY, _)) => {}
        _ => return Err("the limit on locked memory (ulimit -l) is not \"unlimited\"".into()),
    }
    let flags = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE;
    // As touched: threads' stacks are reserved far larger than they are.
    let on_fault = MlockAllFlags::from_bits_retain(MCL_ONFAULT);
    mlockall(flags | on_fault).map_err(|e| e.to_string())
}
