//! Standing grants on their way into the WAL, and from it into another keeper of the same store.
//!
//! Invariant: what another keeper's clients have authorised is taken in their order, or not at all.

use super::Standing;
use crate::said::{Mark, Part};
use grant::Grant;
use values::Error;

/// Bytes of definitions in one redo record, about.
const LOGGED_MAX: usize = 1024 * 1024;

impl Standing {
    /// What was added since a place, as much of it as goes into one record.
    pub fn since(&self, since: Mark) -> Option<Part> {
        let inner = self.read();
        let from = usize::try_from(since.number).ok()?;
        let (mut now, mut bytes) = (since, 0);
        let mut pieces = Vec::new();
        for grant in inner.grants.get(from..)? {
            let piece = grant.encode();
            bytes += piece.len();
            if bytes > LOGGED_MAX && !pieces.is_empty() {
                break;
            }
            now = now.after(&piece);
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some(Part { since, now, pieces })
    }

    /// What clients of another keeper of the same store added, once it is noted. Gives whether anything has
    /// changed.
    ///
    /// # Errors
    /// If it does not follow what this keeper has.
    pub fn hear(
        &self,
        part: &Part,
        note: impl Fn(&Grant) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut inner = self.write();
        let own = inner.mark;
        own.reaches(&part.since)?;
        let known = usize::try_from(own.number - part.since.number).unwrap_or(usize::MAX);
        let Some(new) = part.pieces.get(known..).filter(|new| !new.is_empty()) else {
            return own.agrees(&part.now).map(|()| false);
        };
        let there = new.iter().fold(own, |mark, piece| mark.after(piece));
        there.agrees(&part.now)?;
        let grants: Result<Vec<Grant>, _> = new.iter().map(|bytes| Grant::decode(bytes)).collect();
        let grants = grants
            .map_err(|_| crate::fail::malformed("The record of definitions is malformed."))?;
        grants.iter().try_for_each(note)?;
        self.save(inner.grants.iter().chain(&grants))?;
        grants.into_iter().for_each(|grant| inner.add(grant));
        Ok(true)
    }
}
