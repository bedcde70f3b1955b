//! Generations of the keys of columns of the family `rnd_`: which key is used, and which others
//! still open cells.
//!
//! Not here: who may change it (`rotation`), where it is written down (`rules`).
//!
//! Invariant: a generation never returns after it was followed by another one.

use contract::cell::GENERATION_BYTES;

/// The largest one.
const LAST: u32 = (1 << (8 * GENERATION_BYTES)) - 1;

/// So many are passed over at most: what was seen are bytes in rows, which anybody may have written.
const JUMP_MAX: u32 = 1000;

/// The key of a column, as far as it was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Generation {
    /// Cells are sealed with this one.
    pub current: u32,
    /// Others are opened, too.
    pub turning: bool,
}

impl Generation {
    /// A column whose key was never changed as far as this keeper knows. Another one with the same
    /// root key may have changed it.
    pub const FIRST: Generation = Generation {
        current: 0,
        turning: true,
    };

    /// A new key. If the last change was not completed, it is continued.
    /// It comes after what somebody has seen, too: this keeper's files may have been lost, or older.
    pub fn begun(before: Option<Generation>, seen: u32) -> Option<Generation> {
        let last = match before {
            Some(before) if before.turning => return Some(before),
            before => before.map_or(0, |before| before.current),
        };
        let next = seen.clamp(last, last + JUMP_MAX) + 1;
        (next <= LAST).then_some(Generation {
            current: next,
            turning: true,
        })
    }

    /// Whether cells of a generation are opened. A later one is of another keeper with the same root
    /// key, whose place this one has taken.
    pub fn opens(self, generation: u32) -> bool {
        self.turning || generation >= self.current
    }

    /// As text.
    pub fn text(self) -> String {
        format!("{}\0{}", self.current, u8::from(self.turning))
    }

    /// What [`Generation::text`] has returned.
    pub fn read(current: &str, turning: &str) -> Option<Generation> {
        Some(Generation {
            current: current.parse().ok().filter(|c| *c <= LAST)?,
            turning: match turning {
                "0" => false,
                "1" => true,
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that was interrupted is continued, and no generation is used twice. The bug this
    /// guards against: cells that were sealed before become readable again.
    #[test]
    fn one_after_the_other() {
        let first = Generation::begun(None, 0);
        assert_eq!(first.and_then(|g| Generation::begun(Some(g), 7)), first);
        let ended = first.map(|g| Generation {
            turning: false,
            ..g
        });
        assert!(ended.is_some_and(|g| g.opens(1) && !g.opens(0) && g.opens(2)));
        let second = Generation::begun(ended, 0);
        assert!(second.is_some_and(|g| g.current == 2 && g.opens(1)));
        let last = Generation {
            current: LAST,
            turning: false,
        };
        assert_eq!(Generation::begun(Some(last), 0), None);
        assert!(Generation::begun(None, LAST).is_some_and(|g| g.current == JUMP_MAX + 1));
        assert!(Generation::begun(None, 4).is_some_and(|g| g.current == 5));
        assert_eq!(Generation::read("1", "0"), ended);
        assert_eq!(Generation::read("16777216", "0"), None);
    }
}
