//! What redo records do to a store, one by one.
//!
//! Not here: whether a record still counts (`history`).
//!
//! Invariant: what a record says is checked against the store's column before anything is changed.

use super::meta;
use crate::logs::End;
use crate::said::Heard;
use contract::Fid;
use std::ops::Range;
use store::{Listed, PartitionKey, Store};
use values::Error;

/// Makes a column's partition.
pub(super) fn partition(store: &Store, partition: &redo::Partition) -> Result<(), Error> {
    let (layout, indexed) = meta::layout_from(partition.layout).ok_or_else(store::bad_segment)?;
    let key = PartitionKey {
        database: partition.database,
        relation: partition.relation,
        attribute: partition.attribute,
        layout,
    };
    let number = partition.number;
    store.restore(Listed { number, key })?;
    if let Some(made) = store.get(number) {
        made.set_column(partition.column);
        if indexed {
            made.set_indexed();
        }
        made.set_logged();
    }
    Ok(())
}

/// The entries of logs among what was promoted: for each log, the one that follows them.
pub(super) fn entries(store: &Store, made: &redo::Promoted) -> Heard {
    let mut ends: Vec<End> = Vec::new();
    for run in made.runs() {
        let first = Fid(run.first);
        let (log, next) = (first.partition(), first.slot().saturating_add(run.count));
        match ends.last_mut().filter(|(of, _)| *of == log) {
            Some((_, end)) => *end = next,
            None if is_log(store, log) => ends.push((log, next)),
            None => {}
        }
    }
    match ends.is_empty() {
        true => Heard::Nothing,
        false => Heard::Entries(ends),
    }
}

fn is_log(store: &Store, partition: u32) -> bool {
    let key = store.get(partition).and_then(|p| p.key());
    key.is_some_and(|key| key.is_log())
}

/// Restores a part of a run. Returns how many of its values belong to a column that no longer
/// exists.
pub(super) fn values(store: &Store, run: &redo::Run<'_>, part: Range<u64>) -> Result<u64, Error> {
    let first = Fid(part.start);
    let (before, count) = (part.start - run.first, part.end - part.start);
    let column = store.get(first.partition());
    let Some((partition, t)) = column.and_then(|p| Some((p, p.read().stored_type()?))) else {
        return Ok(count);
    };
    if t as u8 != run.type_code {
        return Err(store::bad_segment());
    }
    let values = run
        .values()
        .skip(usize::try_from(before).unwrap_or(usize::MAX));
    let values = values.take(usize::try_from(count).unwrap_or(0));
    let values = values.map_while(|bytes| store::decode(t, bytes));
    match partition.restore(t, first.slot(), values)? {
        restored if restored == count => Ok(0),
        _ => Err(store::bad_segment()),
    }
}
