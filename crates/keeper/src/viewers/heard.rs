//! What owners and administrators said, on its way into the WAL, and from it into another keeper of the same
//! store.
//!
//! Invariant: what was heard is on disk before it counts.

use super::Viewers;
use crate::fail;
use crate::rules::Rules;
use crate::said::{Mark, Part};
use std::sync::atomic::Ordering;
use values::Error;

impl Viewers {
    /// What holds, if something was said since a place.
    pub fn since(&self, since: Mark) -> Option<Part> {
        let rules = self.read_rules();
        if rules.number <= since.number {
            return None;
        }
        Some(Part {
            since,
            now: rules.mark(),
            pieces: vec![rules.text().into_bytes()],
        })
    }

    /// What another keeper of the same store was told, once it is noted. Gives whether anything has changed.
    ///
    /// # Errors
    /// If it does not follow what this keeper was told.
    pub fn hear(
        &self,
        part: &Part,
        note: impl FnOnce(u64) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut rules = self.write_rules();
        let own = rules.mark();
        own.reaches(&part.since)?;
        own.agrees(&part.now)?;
        if own.number >= part.now.number {
            return Ok(false);
        }
        let text = match part.pieces.as_slice() {
            [text] => std::str::from_utf8(text).ok(),
            _ => None,
        };
        let next = text.and_then(Rules::read);
        let next = next.filter(|next| next.mark() == part.now);
        let next = next.ok_or_else(|| fail::malformed("The record of owners is malformed."))?;
        self.save(&next)?;
        note(next.number)?;
        self.limited.store(next.has_budgets(), Ordering::Release);
        self.any.store(next.claimed() > 0, Ordering::Release);
        *rules = next;
        Ok(true)
    }
}
