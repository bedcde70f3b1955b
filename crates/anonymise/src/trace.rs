//! The path of a call: a hash of the edges that it passed, in their order.
//!
//! A build whose operators are instrumented (`scripts/traced`) calls
//! `__sanitizer_cov_trace_pc_guard` at each edge of their code, with the address of the edge's own
//! guard. This module is what it calls; it is not instrumented itself. In any other build nothing
//! calls it, and [`instrumented`] says so.
//!
//! Invariant: the hash depends on the edges only, not on where the program was loaded.

// The two names are the compiler's; nothing here reads what the addresses point at.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Where the guards begin; 0 in a build without any.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// Edges after which a call is taken for one that does not end.
pub const EDGES_MAX: u64 = 20_000_000;

/// A path: the hash of its edges and how many there were.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Path {
    /// Of the edges, in their order.
    pub hash: u64,
    /// How many.
    pub edges: u64,
}

thread_local! {
    static PATH: Cell<Path> = const { Cell::new(Path { hash: 0, edges: 0 }) };
    static ENDLESS: Cell<Option<fn(Path) -> !>> = const { Cell::new(None) };
}

// SAFETY: the name is reserved for this purpose, and defined nowhere else in the program; the
// arguments are taken as numbers.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard_init(start: usize, _stop: usize) {
    GUARDS.store(start, Relaxed);
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc_guard(guard: usize) {
    let edge = guard.wrapping_sub(GUARDS.load(Relaxed)) as u64;
    let Path { hash, edges } = PATH.get();
    let mixed = (hash ^ edge).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let path = Path {
        hash: mixed.rotate_left(29),
        edges: edges + 1,
    };
    PATH.set(path);
    if path.edges == EDGES_MAX
        && let Some(give_up) = ENDLESS.get()
    {
        give_up(path);
    }
}

/// Whether the operators of this build are instrumented.
#[must_use]
pub fn instrumented() -> bool {
    GUARDS.load(Relaxed) != 0
}

/// Begins a path. `give_up` is called when it has [`EDGES_MAX`] edges.
pub fn begin(give_up: fn(Path) -> !) {
    ENDLESS.set(Some(give_up));
    PATH.set(Path::default());
}

/// The path since [`begin`].
#[must_use]
pub fn end() -> Path {
    ENDLESS.set(None);
    PATH.get()
}
