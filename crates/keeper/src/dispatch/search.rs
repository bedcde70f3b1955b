//! `Search`, `SearchMany`, and behind `PromoteSearch`: where values belong among the keys of an index's pages.
//!
//! The keys are in the index's order, column by column: what is sought in a column is sought
//! only among the keys that equal the values before it, as PostgreSQL would compare.
//!
//! Invariant: each comparison is one that the session may have declassified alone.

use super::Connection;
use crate::fail::{self, Failure};
use crate::program::load::Named;
use crate::told::Told;
use contract::codec::{Fixed, List};
use contract::message::search::{ABOVE, BELOW, BESIDE, DESCENDING, MOVED, UNKNOWN, VALUES_MAX};
use contract::message::table::{Among, Place, Sought};
use contract::message::{NOT_PROMOTED, ROWS_MAX};
use contract::{Fid, body};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use store::Label;
use values::Error;

/// The place of a value that cannot be told.
const NOWHERE: Place = Place {
    less: UNKNOWN,
    up_to: UNKNOWN,
};

impl Connection {
    pub(super) fn search(&mut self, body: body::Search<'_>) -> Result<(), Failure> {
        if body.sought.len() > VALUES_MAX || body.keys as usize > ROWS_MAX {
            return Err(fail::malformed("There are too many rows or columns.").into());
        }
        let mut keys = std::mem::take(&mut self.fids);
        keys.clear();
        keys.extend(body.columns);
        let done = self.places(body.sought, body.keys as usize, &keys);
        self.fids = keys;
        done?;
        self.session.counters.searches.fetch_add(1, Relaxed);
        Ok(())
    }

    pub(super) fn search_many(&mut self, body: body::SearchMany<'_>) -> Result<(), Failure> {
        let mut keys = std::mem::take(&mut self.fids);
        keys.clear();
        keys.extend(body.columns);
        let done = self.places_of_all(body.among, body.sought, &keys);
        self.fids = keys;
        done
    }

    /// Appends the places of values that were just promoted; nothing if they cannot be told.
    pub(super) fn search_promoted(&mut self, body: &body::PromoteSearch<'_>, made: &[Fid]) -> u32 {
        let begin = self.reply.len();
        let mut sought = Vec::with_capacity(body.sought.bytes().len());
        for mut value in body.sought {
            if value.flags & MOVED != 0 {
                let number = usize::try_from(value.fid.0).unwrap_or(usize::MAX);
                let fid = made.get(number).filter(|fid| fid.0 != NOT_PROMOTED);
                let Some(fid) = fid else { return 0 };
                value.fid = *fid;
            }
            value.put(&mut sought);
        }
        let mut keys = std::mem::take(&mut self.fids);
        keys.clear();
        keys.extend(body.columns);
        let done = self.places_of_all(body.among, List::new(&sought), &keys);
        self.fids = keys;
        match done {
            Ok(()) => (body.sought.len()) as u32,
            Err(_) => {
                self.reply.truncate(begin);
                0
            }
        }
    }

    /// Replies with the places of one search after the other.
    fn places_of_all(
        &mut self,
        among: List<'_, Among>,
        mut values: List<'_, Sought>,
        mut keys: &[Fid],
    ) -> Result<(), Failure> {
        for Among {
            values: count,
            keys: rows,
        } in among
        {
            let (count, rows) = (count as usize, rows as usize);
            if count > VALUES_MAX || rows > ROWS_MAX {
                return Err(fail::malformed("There are too many rows or columns.").into());
            }
            let (own, others) = values.split_at(count).ok_or_else(other_count)?;
            let columns = columns_of(own) * rows;
            let (these, rest) = keys.split_at_checked(columns).ok_or_else(other_count)?;
            self.places(own, rows, these)?;
            self.session.counters.searches.fetch_add(1, Relaxed);
            (values, keys) = (others, rest);
        }
        match values.is_empty() && keys.is_empty() {
            true => Ok(()),
            false => Err(other_count().into()),
        }
    }

    /// Replies with the place of each value; gives the last one's.
    pub(super) fn places(
        &mut self,
        values: List<'_, Sought>,
        count: usize,
        keys: &[Fid],
    ) -> Result<Place, Failure> {
        if columns_of(values) * count != keys.len() {
            return Err(other_count().into());
        }
        let begin = self.reply.len();
        let mut rest = keys;
        let mut column: &[Fid] = &[];
        let (mut within, mut found) = (0..count, 0..count);
        let mut last = NOWHERE;
        for (at, sought) in values.iter().enumerate() {
            if sought.flags & BESIDE == 0 {
                (column, rest) = rest.split_at_checked(count).unwrap_or_default();
                within = found;
            }
            match self.place_among(&sought, column, within.clone(), at + 1 < values.len()) {
                Ok(place) => found = place,
                // The keys were copied from a page; garbage may have been swept since.
                Err(_) if keys.iter().any(|fid| self.is_swept(*fid)) => {
                    self.reply.truncate(begin);
                    (0..values.len()).for_each(|_| NOWHERE.put(&mut self.reply));
                    return Ok(NOWHERE);
                }
                Err(failure) => return Err(failure),
            }
            last = Place {
                less: found.start as u32,
                up_to: found.end as u32,
            };
            last.put(&mut self.reply);
        }
        Ok(last)
    }

    fn is_swept(&self, fid: Fid) -> bool {
        ![BELOW, ABOVE].contains(&fid.0) && !fid.is_temporary() && !self.resolves(fid)
    }

    /// The keys that equal a value, where they are or would be. `many`: perhaps all do.
    fn place_among(
        &mut self,
        sought: &Sought,
        keys: &[Fid],
        within: Range<usize>,
        many: bool,
    ) -> Result<Range<usize>, Failure> {
        let real = keys.get(within.clone()).unwrap_or(&[]);
        let label = self.authorise_place(sought, real)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut orders = 0;
        let mut before = |at: usize, limit: Ordering| -> Result<bool, Failure> {
            let key = keys.get(at).copied().unwrap_or(Fid::INVALID);
            orders += 1;
            Ok(self.order_of(sought, key, &mut scratch)? < limit)
        };
        let done = find(within, many, &mut before);
        self.scratch = scratch;
        self.told_of(label, Told::Orders, real, orders)?;
        done
    }

    /// Whether a value may be compared with these keys; what both were made of.
    fn authorise_place(&self, sought: &Sought, keys: &[Fid]) -> Result<Label, Failure> {
        if !self.is_bound() {
            return Ok(0);
        }
        // What is below all values counts as NULL; what is above them stands last.
        let above = keys.iter().rev().take_while(|fid| fid.0 == ABOVE).count();
        let real = keys.get(..keys.len() - above).unwrap_or(&[]);
        let value = [sought.fid];
        let columns = [Named::new(real), Named::new(&value)];
        // Its own column's index may be kept in order by whoever writes a row.
        let operands = self.operands_of_columns(&columns)?;
        if !operands.one_column {
            self.authorise_order(operands)?;
        }
        Ok(operands.label)
    }

    /// One declassified comparison of a key with a value, in the index's order.
    fn order_of(
        &self,
        sought: &Sought,
        key: Fid,
        scratch: &mut Vec<u8>,
    ) -> Result<Ordering, Failure> {
        match key.0 {
            BELOW => return Ok(Ordering::Less),
            ABOVE => return Ok(Ordering::Greater),
            _ => {}
        }
        let order = self
            .reveal_order(sought.program, [key, sought.fid], scratch)?
            .ok_or_else(|| fail::malformed("NULL has no place among values."))?;
        Ok(if sought.flags & DESCENDING == 0 {
            order
        } else {
            order.reverse()
        })
    }
}

fn other_count() -> Error {
    fail::malformed("The message does not have as many values and keys as it says.")
}

/// Columns that values are sought in.
fn columns_of(values: List<'_, Sought>) -> usize {
    let columns = values.iter().filter(|value| value.flags & BESIDE == 0);
    columns.count()
}

/// The first place that is not less, and the first that is greater.
fn find(
    within: Range<usize>,
    many: bool,
    before: &mut impl FnMut(usize, Ordering) -> Result<bool, Failure>,
) -> Result<Range<usize>, Failure> {
    let Range { start, end } = within;
    if start >= end {
        return Ok(start..start);
    }
    // All keys of a page have the same first columns more often than not.
    let less = match many && !before(start, Ordering::Equal)? {
        true => start,
        false => partition_point(start, end, |at| before(at, Ordering::Equal))?,
    };
    if many && less < end && before(end - 1, Ordering::Greater)? {
        return Ok(less..end);
    }
    // Few are equal as a rule: look close by first.
    let (mut low, mut step) = (less, 1);
    while low + step <= end && before(low + step - 1, Ordering::Greater)? {
        low += step;
        step *= 2;
    }
    let high = end.min(low + step - 1);
    let up_to = partition_point(low, high, |at| before(at, Ordering::Greater))?;
    Ok(less..up_to)
}

/// The first place from `low` up to `high` where a test fails that fails from there on.
fn partition_point(
    mut low: usize,
    mut high: usize,
    mut holds: impl FnMut(usize) -> Result<bool, Failure>,
) -> Result<usize, Failure> {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
