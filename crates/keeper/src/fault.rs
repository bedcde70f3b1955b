//! Fault injection points for tests (tests/durability): the environment variable
//! `CONFIDE_FAULT_POINT` has the form "name", or "name/N" to die one time in N.
//!
//! Invariant: nothing happens without the variable.

use std::sync::LazyLock;

struct Point {
    name: String,
    one_in: u64,
}

static POINT: LazyLock<Option<Point>> = LazyLock::new(|| {
    let text = std::env::var("CONFIDE_FAULT_POINT").ok()?;
    let (name, one_in) = text.split_once('/').unwrap_or((&text, "1"));
    Some(Point {
        name: name.to_owned(),
        one_in: one_in.parse().unwrap_or(1).max(1),
    })
});

/// Dies here as if by SIGKILL, if the test says so.
pub fn at(name: &str) {
    let Some(point) = POINT.as_ref().filter(|p| p.name == name) else {
        return;
    };
    let chance = crate::random::random().map_or(0, u64::from_le_bytes);
    if chance % point.one_in == 0 {
        std::process::abort();
    }
}
