//! What owners of columns and definitions said, as redo records carry it to standbys' keepers and to
//! those that are restored (docs/durability.md).
//!
//! Owners' commands travel as all that holds after them, definitions one after the other. A record names
//! the change that the WAL had before it, and what follows goes on from there or is refused.
//!
//! Not here: what the words mean (`rules`, `grants`), and who says them.
//!
//! Bytes: for each of the two parts a byte that says whether it is there (1) or not (0), and if it is,
//! the marks before and after it (number `u64`, hash 16 bytes, each) and its pieces: how many `u32`, and
//! before each its length `u32`.
//!
//! Invariants: what decodes is what was encoded; the marks of two histories that have parted differ.

use crate::logs::End;
use crate::used::{Point as Uses, Used};
use std::sync::{Mutex, MutexGuard, PoisonError};
use values::Error;

const HASH_BYTES: usize = 16;
/// Records that were given out and not confirmed, of which some may be remembered.
const ISSUED_MAX: usize = 64;

/// A place in the history of what was said: the number of the last change, and a hash of what
/// was said up to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// Number of the change; 0: none.
    pub number: u64,
    /// Hash of what was said up to it.
    pub hash: [u8; HASH_BYTES],
}

impl Mark {
    /// The place after one more piece.
    pub fn after(self, piece: &[u8]) -> Mark {
        Mark {
            number: self.number.saturating_add(1),
            hash: hash(&[&self.hash, piece].concat()),
        }
    }

    /// The place of a state that is known as a whole.
    pub fn of(number: u64, state: &[u8]) -> Mark {
        Mark {
            number,
            hash: hash(state),
        }
    }

    /// The bytes.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.hash);
    }

    /// Takes a mark from the front.
    pub fn take(bytes: &mut &[u8]) -> Option<Mark> {
        let number = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        let hash = *bytes.split_off(..HASH_BYTES)?.first_chunk()?;
        Some(Mark { number, hash })
    }

    /// Whether what follows `since` follows this, as far as it can be told.
    ///
    /// # Errors
    /// If something between the two is missing, or the histories have parted.
    pub fn reaches(&self, since: &Mark) -> Result<(), Error> {
        if self.number < since.number {
            return Err(broken(format!(
                "This keeper has change {}, the record follows change {}.",
                self.number, since.number
            )));
        }
        self.agrees(since)
    }

    /// Whether two places with one number are the same.
    ///
    /// # Errors
    /// If the histories have parted.
    pub fn agrees(&self, other: &Mark) -> Result<(), Error> {
        let parted = self.number > 0 && self.number == other.number && self.hash != other.hash;
        match parted {
            false => Ok(()),
            true => Err(broken(format!(
                "Change {} of this keeper is not that of the record.",
                self.number
            ))),
        }
    }
}

fn hash(bytes: &[u8]) -> [u8; HASH_BYTES] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

fn broken(detail: String) -> Error {
    Error::new(
        b"XX001",
        "confide: redo records about owners, viewers or definitions were left out, or are of another history",
    )
    .detail(detail)
    .hint("Bring the missing WAL back, or begin again with a new backup of the primary and its keeper.")
}

/// What was said since a place, and the place after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What the WAL had before.
    pub since: Mark,
    /// What it has with this.
    pub now: Mark,
    /// What was said.
    pub pieces: Vec<Vec<u8>>,
}

/// What one record says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Said {
    /// Of owners, viewers and groups.
    pub rules: Option<Part>,
    /// Of definitions.
    pub standing: Option<Part>,
}

impl Said {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_none() && self.standing.is_none()
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in [&self.rules, &self.standing] {
            out.push(u8::from(part.is_some()));
            let Some(part) = part else {
                continue;
            };
            part.since.encode(&mut out);
            part.now.encode(&mut out);
            out.extend_from_slice(&(part.pieces.len() as u32).to_le_bytes());
            for piece in &part.pieces {
                out.extend_from_slice(&(piece.len() as u32).to_le_bytes());
                out.extend_from_slice(piece);
            }
        }
        out
    }

    /// The inverse.
    pub fn decode(mut bytes: &[u8]) -> Option<Said> {
        let said = Said {
            rules: part(&mut bytes)?,
            standing: part(&mut bytes)?,
        };
        bytes.is_empty().then_some(said)
    }
}

/// What a redo record says that is not the store's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Of owners and definitions.
    Said(Said),
    /// Of tickets and budgets.
    Used(Used),
    /// Entries of logs, and these ends if their transaction commits.
    Entries(Vec<End>),
    /// Nothing.
    Nothing,
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*bytes.split_off(..4)?.first_chunk()?);
    usize::try_from(length).ok()
}

fn part(bytes: &mut &[u8]) -> Option<Option<Part>> {
    match bytes.split_off_first()? {
        0 => return Some(None),
        1 => {}
        _ => return None,
    }
    let (since, now) = (Mark::take(bytes)?, Mark::take(bytes)?);
    let mut pieces = Vec::new();
    for _ in 0..length(bytes)? {
        let length = length(bytes)?;
        pieces.push(bytes.split_off(..length)?.to_vec());
    }
    Some(Some(Part { since, now, pieces }))
}

/// How far the WAL has what was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Point {
    /// Of owners, viewers and groups.
    pub rules: Mark,
    /// Of definitions.
    pub standing: Mark,
}

impl Point {
    /// The point after a record.
    pub fn after(self, said: &Said) -> Point {
        let later = |own: Mark, part: &Option<Part>| match part {
            Some(part) if part.now.number > own.number => part.now,
            _ => own,
        };
        Point {
            rules: later(self.rules, &said.rules),
            standing: later(self.standing, &said.standing),
        }
    }
}

/// Which records the WAL has, and which were given out.
pub struct Logged(Mutex<Inner>);

struct Inner {
    point: Point,
    /// Of uses of tickets, and of budgets, those up to this number.
    used: Uses,
    issued: Vec<(u64, Said, Uses)>,
    next: u64,
}

impl Logged {
    /// The WAL has everything up to this point.
    pub fn up_to(point: Point) -> Logged {
        Logged(Mutex::new(Inner {
            point,
            used: Uses::default(),
            issued: Vec::new(),
            next: 1,
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the WAL is known to have everything.
    pub fn point(&self) -> Point {
        self.inner().point
    }

    /// The uses that the WAL is known to have; none after a start.
    pub fn used(&self) -> Uses {
        self.inner().used
    }

    /// A record about uses up to a point is given out: its number.
    pub fn issue_used(&self, point: Uses) -> u64 {
        self.number(Said::default(), point)
    }

    /// A record is given out: its number. Only its places are remembered.
    pub fn issue(&self, said: &Said) -> u64 {
        let places = |part: &Option<Part>| {
            part.as_ref().map(|part| Part {
                pieces: Vec::new(),
                ..*part
            })
        };
        let places = Said {
            rules: places(&said.rules),
            standing: places(&said.standing),
        };
        self.number(places, Uses::default())
    }

    fn number(&self, said: Said, used: Uses) -> u64 {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        if inner.issued.len() >= ISSUED_MAX {
            inner.issued.remove(0);
        }
        inner.issued.push((number, said, used));
        number
    }

    /// The record with this number is in the WAL and on disk.
    pub fn confirm(&self, number: u64) {
        let mut inner = self.inner();
        let found = inner
            .issued
            .iter()
            .position(|(issued, ..)| *issued == number);
        if let Some(at) = found {
            let (_, said, used) = inner.issued.remove(at);
            inner.point = inner.point.after(&said);
            inner.used = inner.used.max(used);
        }
    }

    /// A record was found in the WAL.
    pub fn found(&self, said: &Said) {
        let mut inner = self.inner();
        inner.point = inner.point.after(said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from: u64, pieces: &[&str]) -> Part {
        let since = Mark::of(from, b"before");
        Part {
            since,
            now: pieces
                .iter()
                .fold(since, |mark, p| mark.after(p.as_bytes())),
            pieces: pieces.iter().map(|p| p.as_bytes().to_vec()).collect(),
        }
    }

    #[test]
    fn there_and_back() {
        let both = Said {
            rules: Some(part(7, &["all"])),
            standing: Some(part(0, &["a", "", "bc"])),
        };
        for said in [
            both.clone(),
            Said {
                rules: None,
                ..both.clone()
            },
            Said::default(),
        ] {
            let bytes = said.encode();
            assert_eq!(Said::decode(&bytes), Some(said));
            for length in 0..bytes.len() {
                assert_eq!(Said::decode(&bytes[..length]), None, "{length}");
            }
            assert_eq!(Said::decode(&[bytes.as_slice(), &[0]].concat()), None);
        }
    }

    /// Bug: what somebody left out, or a record of a keeper that went on elsewhere, is not noticed.
    #[test]
    fn places() {
        let (one, other) = (Mark::of(3, b"x"), Mark::of(3, b"y"));
        let is_broken = |result: Result<(), Error>| {
            result.is_err_and(|error| error.sqlstate == *b"XX001" && error.hint.is_some())
        };
        assert!(one.reaches(&one).is_ok() && one.reaches(&Mark::of(2, b"")).is_ok());
        assert!(is_broken(one.reaches(&Mark::of(4, b""))));
        assert!(is_broken(one.reaches(&other)) && is_broken(one.agrees(&other)));
        assert!(Mark::default().reaches(&Mark::default()).is_ok());
    }

    /// Only what is confirmed counts, in whatever order.
    #[test]
    fn confirmed() {
        let said = |pieces: &[&str]| Said {
            rules: None,
            standing: Some(part(0, pieces)),
        };
        let logged = Logged::up_to(Point::default());
        let one = logged.issue(&said(&["a"]));
        let two = logged.issue(&said(&["a", "b"]));
        assert_eq!(logged.point(), Point::default());
        logged.confirm(two);
        assert_eq!(logged.point().standing.number, 2);
        logged.confirm(one);
        logged.confirm(99);
        assert_eq!(logged.point().standing.number, 2);
    }
}
