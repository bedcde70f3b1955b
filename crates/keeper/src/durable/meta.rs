//! What the vault keeps besides segments: which store it is and of which cluster, up
//! to where in that cluster's history it is complete, and which partitions there are.
//!
//! Bytes: version `u8`, zeros 1..4, next partition number `u32` 4..8, system
//! identifier `u64` 8..16, LSN `u64` 16..24, the store's number `u64` 24..32, timeline
//! `u32` 32..36, generation of the redo records `u32` 36..40; the audit log's last number
//! `u64` 40..48 and its hash 48..80 (versions 2 and 3 have neither); the last run 80..92 (zeros: none),
//! number of ranges `u32` 92..96, and for each range of records that this run was sent the run that sealed
//! them and two numbers `u64` (versions 2 to 4 have none of these); how far the WAL has what owners and
//! definitions said, as two marks (versions 2 to 5 have none); number of leases `u32`, and for each the
//! generation `u32` and number `u64` of its record, the session's storing key (32 bytes), number of runs `u32`, and for each
//! run two numbers `u64` (versions 2 to 6 have none of these); number of ends `u32`, and for each a log's partition
//! `u32` and the entry after it `u64` (versions 2 to 7 have none of these); then for each partition number,
//! database, relation,
//! attribute and code of the layout, `u32` each, and 16 bytes that say which column's values
//! it holds (zeros: not known; version 2 has none of these).

use super::lineage::Sent;
use crate::leases::Leased;
use crate::logs::End;
use crate::said::{Mark, Point};
use contract::fid::ARENA_BASE;
use ledger::Hash;
use ledger::audit::Head;
use redo::{Epoch, Order};
use std::collections::{BTreeMap, BTreeSet};
use store::{ColumnId, Layout, Listed, PartitionKey};
use zeroize::Zeroizing;

const VERSION: u8 = 8;
const WITHOUT_ENDS: u8 = 7;
const WITHOUT_LEASES: u8 = 6;
const WITHOUT_SAID: u8 = 5;
const WITHOUT_RUN: u8 = 4;
const WITHOUT_AUDIT: u8 = 3;
const WITHOUT_COLUMNS: u8 = 2;
const HEADER_BYTES: usize = 40;
const AUDIT_BYTES: usize = 40;
const RUN_BYTES: usize = size_of::<Epoch>();
const RANGE_BYTES: usize = RUN_BYTES + 16;
const PARTITION_BYTES: usize = 20;
/// Flag in the code of a layout: a client has built or searched an index on the column.
const INDEXED: u32 = 1 << 15;
const COLUMN_BYTES: usize = size_of::<ColumnId>();

/// The meta of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Meta {
    /// System identifier of the cluster; 0 before the first checkpoint.
    pub system: u64,
    /// WAL from here on is not in the store; 0 before the first checkpoint.
    pub position: u64,
    /// Random identifier of the store, shared by its copies; 0 before the first checkpoint.
    pub store: u64,
    /// Timeline of the position.
    pub timeline: u32,
    /// The store contains the redo records of earlier generations.
    pub generation: u32,
    /// The last run that served; `None` if the store is a copy.
    pub run: Option<Epoch>,
    /// The records that it was sent when it began.
    pub sent: Sent,
    /// End of the audit log.
    pub audit: Head,
    /// How far the WAL has what owners and definitions said.
    pub said: Point,
    /// Leased FIDs without values.
    pub leases: Vec<Leased>,
    /// Ends of transactions on ledger tables.
    pub ends: Vec<End>,
    /// Partition numbers from here on have never been used.
    pub next: u32,
    /// The partitions.
    pub partitions: Vec<Listed>,
    /// Partitions whose index a client has searched.
    pub indexed: BTreeSet<u32>,
    /// The columns of partitions, by number, as far as known.
    pub columns: BTreeMap<u32, ColumnId>,
}

impl Meta {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.extend_from_slice(&self.next.to_le_bytes());
        out.extend_from_slice(&self.system.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        out.extend_from_slice(&self.timeline.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.audit.number.to_le_bytes());
        out.extend_from_slice(&self.audit.hash.0);
        out.extend_from_slice(&self.run.unwrap_or_default());
        let ranges = self.sent.ranges();
        out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
        for (run, from, to) in ranges {
            out.extend_from_slice(&run);
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&to.to_le_bytes());
        }
        self.said.rules.encode(&mut out);
        self.said.standing.encode(&mut out);
        put_leases(&self.leases, &mut out);
        put_ends(&self.ends, &mut out);
        for Listed { number, key } in &self.partitions {
            let attribute = key.attribute as u32;
            let words = [
                *number,
                key.database,
                key.relation,
                attribute,
                layout_code(key.layout, self.indexed.contains(number)),
            ];
            out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            let column = self.columns.get(number).copied();
            out.extend_from_slice(&column.unwrap_or_default());
        }
        out
    }

    /// Decodes the meta of a vault; an empty vault has the default.
    pub(super) fn decode(bytes: &[u8]) -> Option<Meta> {
        if bytes.is_empty() {
            return Some(Meta::default());
        }
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let (words, _) = header.as_chunks::<4>();
        let [first, next, s0, s1, p0, p1, i0, i1, timeline, generation] = words else {
            return None;
        };
        let [version, 0, 0, 0] = *first else {
            return None;
        };
        let (later, rest) = of_later_versions(version, rest)?;
        let width = match version {
            WITHOUT_COLUMNS => PARTITION_BYTES,
            _ => PARTITION_BYTES + COLUMN_BYTES,
        };
        if !rest.len().is_multiple_of(width) {
            return None;
        }
        let (mut partitions, mut columns) = (Vec::new(), BTreeMap::new());
        let mut searched = BTreeSet::new();
        for bytes in rest.chunks_exact(width) {
            let (key, column) = bytes.split_first_chunk()?;
            let (listed, indexed) = partition(key)?;
            if indexed {
                searched.insert(listed.number);
            }
            if let Ok(column) = column.try_into()
                && column != ColumnId::default()
            {
                columns.insert(listed.number, column);
            }
            partitions.push(listed);
        }
        Some(Meta {
            system: wide(s0, s1),
            position: wide(p0, p1),
            store: wide(i0, i1),
            timeline: u32::from_le_bytes(*timeline),
            generation: u32::from_le_bytes(*generation),
            next: u32::from_le_bytes(*next),
            indexed: searched,
            partitions,
            columns,
            ..later
        })
    }
}

/// What later versions have before the partitions, and the bytes after it.
fn of_later_versions(version: u8, rest: &[u8]) -> Option<(Meta, &[u8])> {
    let (audit, rest) = match version {
        WITHOUT_COLUMNS | WITHOUT_AUDIT => (Head::default(), rest),
        WITHOUT_RUN..=VERSION => audit_head(rest)?,
        _ => return None,
    };
    let (run, sent, rest) = match version {
        WITHOUT_SAID..=VERSION => runs(rest)?,
        _ => (None, Sent::default(), rest),
    };
    let (said, rest) = match version {
        WITHOUT_LEASES..=VERSION => point(rest)?,
        _ => (Point::default(), rest),
    };
    let (leases, rest) = match version {
        WITHOUT_ENDS..=VERSION => leased(rest)?,
        _ => (Vec::new(), rest),
    };
    let (ends, rest) = match version {
        VERSION => ended(rest)?,
        _ => (Vec::new(), rest),
    };
    let meta = Meta {
        audit,
        run,
        sent,
        said,
        leases,
        ends,
        ..Meta::default()
    };
    Some((meta, rest))
}

fn wide(low: &[u8; 4], high: &[u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << 32
}

/// The end of the audit log, and the bytes after it.
fn audit_head(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<AUDIT_BYTES>()?;
    let (number, hash) = head.split_first_chunk()?;
    let head = Head {
        number: u64::from_le_bytes(*number),
        hash: Hash(*hash.first_chunk()?),
    };
    Some((head, rest))
}

/// The last run, what it was sent, and the bytes after that.
fn runs(bytes: &[u8]) -> Option<(Option<Epoch>, Sent, &[u8])> {
    let (run, rest) = bytes.split_first_chunk::<RUN_BYTES>()?;
    let (count, rest) = rest.split_first_chunk()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let (ranges, rest) = rest.split_at_checked(count.checked_mul(RANGE_BYTES)?)?;
    let mut sent = Sent::default();
    for range in ranges.chunks_exact(RANGE_BYTES) {
        let (of, numbers) = range.split_first_chunk::<RUN_BYTES>()?;
        let (from, to) = numbers.split_first_chunk()?;
        let to = u64::from_le_bytes(*to.first_chunk()?);
        sent.add_range((*of, u64::from_le_bytes(*from), to));
    }
    let run = (*run != Epoch::default()).then_some(*run);
    Some((run, sent, rest))
}

/// Takes a number of bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn put_leases(leases: &[Leased], out: &mut Vec<u8>) {
    out.extend_from_slice(&(leases.len() as u32).to_le_bytes());
    for leased in leases {
        out.extend_from_slice(&leased.order.generation.to_le_bytes());
        out.extend_from_slice(&leased.order.counter.to_le_bytes());
        out.extend_from_slice(leased.key.as_slice());
        out.extend_from_slice(&(leased.runs.len() as u32).to_le_bytes());
        for (first, count) in &leased.runs {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&count.to_le_bytes());
        }
    }
}

/// The leases, and the bytes after them.
fn leased(mut rest: &[u8]) -> Option<(Vec<Leased>, &[u8])> {
    let mut leases = Vec::new();
    for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
        let order = Order {
            generation: u32::from_le_bytes(take(&mut rest)?),
            counter: u64::from_le_bytes(take(&mut rest)?),
        };
        let key = Zeroizing::new(take(&mut rest)?);
        let mut runs = Vec::new();
        for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
            let first = u64::from_le_bytes(take(&mut rest)?);
            runs.push((first, u64::from_le_bytes(take(&mut rest)?)));
        }
        leases.push(Leased { order, key, runs });
    }
    Some((leases, rest))
}

fn put_ends(ends: &[End], out: &mut Vec<u8>) {
    out.extend_from_slice(&(ends.len() as u32).to_le_bytes());
    for (log, next) in ends {
        out.extend_from_slice(&log.to_le_bytes());
        out.extend_from_slice(&next.to_le_bytes());
    }
}

/// The ends, and the bytes after them.
fn ended(mut rest: &[u8]) -> Option<(Vec<End>, &[u8])> {
    let mut ends = Vec::new();
    for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
        let log = u32::from_le_bytes(take(&mut rest)?);
        ends.push((log, u64::from_le_bytes(take(&mut rest)?)));
    }
    Some((ends, rest))
}

/// How far the WAL has what was said, and the bytes after that.
fn point(mut bytes: &[u8]) -> Option<(Point, &[u8])> {
    let point = Point {
        rules: Mark::take(&mut bytes)?,
        standing: Mark::take(&mut bytes)?,
    };
    Some((point, bytes))
}

/// Combines a layout and whether the column is indexed into one number.
pub(super) fn layout_code(layout: Layout, indexed: bool) -> u32 {
    layout.code() | if indexed { INDEXED } else { 0 }
}

/// The inverse of [`layout_code`].
pub(super) fn layout_from(code: u32) -> Option<(Layout, bool)> {
    Some((Layout::from_code(code & !INDEXED)?, code & INDEXED != 0))
}

/// Decodes a partition, and whether it is indexed.
fn partition(bytes: &[u8; PARTITION_BYTES]) -> Option<(Listed, bool)> {
    let (words, _) = bytes.as_chunks::<4>();
    let [number, database, relation, attribute, layout] = words else {
        return None;
    };
    let number = u32::from_le_bytes(*number);
    let (layout, indexed) = layout_from(u32::from_le_bytes(*layout))?;
    let key = PartitionKey {
        database: u32::from_le_bytes(*database),
        relation: u32::from_le_bytes(*relation),
        attribute: i32::from_le_bytes(*attribute),
        layout,
    };
    let listed = Listed { number, key };
    (number > 0 && number < ARENA_BASE).then_some((listed, indexed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::TypeCode;

    /// The format is on disks; a change must be a new version.
    #[test]
    fn there_and_back() {
        let listed = |number, t, typmod| Listed {
            number,
            key: PartitionKey {
                database: 5,
                relation: 16_384,
                attribute: -1,
                layout: Layout::of(t, typmod),
            },
        };
        let mut sent = Sent::default();
        sent.add([4; 12], 6);
        let meta = Meta {
            system: 0x1122_3344_5566_7788,
            position: 0x0102_0304_0506_0708,
            store: 0x2122_2324_2526_2728,
            timeline: 3,
            generation: 77,
            run: Some([5; 12]),
            sent,
            audit: Head {
                number: 12,
                hash: Hash([9; 32]),
            },
            said: Point {
                rules: Mark::of(4, b"rules"),
                standing: Mark::of(5, b"standing"),
            },
            leases: vec![Leased {
                order: Order {
                    generation: 76,
                    counter: 2,
                },
                key: Zeroizing::new([3; 32]),
                runs: vec![(1 << 44, 5)],
            }],
            ends: vec![(3, 17), (3, 12)],
            next: 9,
            partitions: vec![
                listed(1, TypeCode::Text, -1),
                listed(8, TypeCode::Numeric, (10 << 16) + 6),
            ],
            indexed: BTreeSet::from([8]),
            columns: BTreeMap::from([(8, [7; 16])]),
        };
        let bytes = meta.encode();
        assert_eq!(bytes.len(), 340);
        assert_eq!(Meta::decode(&bytes), Some(meta));
        assert_eq!(Meta::decode(&[]), Some(Meta::default()));
        for length in 1..268 {
            assert_eq!(Meta::decode(&bytes[..length]), None);
        }
        assert_eq!(Meta::decode(&bytes[..339]), None);
        let mut older = bytes.clone();
        older.drain(240..268);
        older[0] = 7;
        let ends = Meta::decode(&older).map(|m| (m.leases.len(), m.ends.len()));
        assert_eq!(ends, Some((1, 0)));
        older.drain(172..240);
        older[0] = 6;
        let leases = Meta::decode(&older).map(|m| (m.columns.len(), m.leases.len()));
        assert_eq!(leases, Some((1, 0)));
        older.drain(124..172);
        older[0] = 5;
        let said = Meta::decode(&older).map(|m| (m.columns.len(), m.run, m.said));
        assert_eq!(said, Some((1, Some([5; 12]), Point::default())));
        older.drain(80..124);
        older[0] = 4;
        let runs = Meta::decode(&older).map(|m| (m.columns.len(), m.audit.number, m.run));
        assert_eq!(runs, Some((1, 12, None)));
        older.drain(40..80);
        older[0] = 3;
        let audit = Meta::decode(&older).map(|m| (m.columns.len(), m.audit));
        assert_eq!(audit, Some((1, Head::default())));
        older.drain(96..112);
        older.drain(60..76);
        older[0] = 2;
        let columns = Meta::decode(&older).map(|m| (m.partitions.len(), m.columns.len()));
        assert_eq!(columns, Some((2, 0)));
        for at in [0, 1, 92, 268 + 16] {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            assert_eq!(Meta::decode(&changed), None, "{at}");
        }
    }
}
