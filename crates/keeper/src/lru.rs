//! A bounded cache whose entries that were not used lately are dropped first. Opened cells and
//! answers about cells are in one each (docs/families.md, "Caches").
//!
//! It holds bytes, and knows nothing of permissions: who looks something up has checked before that
//! it may be used.
//!
//! Invariants: an entry is found only under exactly the bytes of its key; all entries together are
//! within the limit, and charged to the parent budget (`memory_limit`); what is dropped is
//! overwritten (by the allocator, as all that is freed).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::Budget;

/// Parts with a lock each, so that channels seldom wait for each other.
const SHARDS: usize = 16;
/// What an entry costs in addition to its bytes: its place in the map, and the allocator's own.
const ENTRY: usize = 64;
/// A cache takes this share of `memory_limit` at most.
pub const SHARE: usize = 8;
/// An entry takes this share of a shard at most.
const LARGEST: usize = 8;

/// The end of a key, by which entries are found. It is part of a tag or a digest: nobody can choose
/// it so that entries collide.
type Short = u64;

struct Entry {
    key: usize,
    /// The key and what is known about it.
    bytes: Box<[u8]>,
}

/// Entries that were used in the same time.
#[derive(Default)]
struct Half {
    entries: HashMap<Short, Entry>,
    size: usize,
}

/// Entries used lately and before. When the first half is full, the second one is dropped.
#[derive(Default)]
struct Shard {
    recent: Half,
    before: Half,
}

/// The cache.
pub struct Lru {
    shards: [Mutex<Shard>; SHARDS],
    half: usize,
    budget: Arc<Budget>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What a cache has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Bytes in it.
    pub bytes: u64,
    /// Times that something was found.
    pub hits: u64,
    /// Times that it was not.
    pub misses: u64,
}

impl Entry {
    fn size(&self) -> usize {
        self.bytes.len() + ENTRY
    }

    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let (own, value) = self.bytes.split_at_checked(self.key)?;
        (own == key).then_some(value)
    }
}

impl Half {
    fn insert(&mut self, short: Short, entry: Entry) -> usize {
        self.size += entry.size();
        let replaced = self.entries.insert(short, entry);
        let gone = replaced.map_or(0, |entry| entry.size());
        self.size -= gone;
        gone
    }
}

impl Shard {
    /// Inserts an entry that is charged already; returns what is to be given back.
    fn insert(&mut self, short: Short, entry: Entry, half: usize) -> usize {
        let mut gone = 0;
        if self.recent.size + entry.size() > half {
            let before = std::mem::replace(&mut self.before, std::mem::take(&mut self.recent));
            gone += before.size;
        }
        gone + self.recent.insert(short, entry)
    }

    /// Takes an entry out of the second half.
    fn take(&mut self, short: Short, key: &[u8]) -> Option<Entry> {
        self.before.entries.get(&short)?.value(key)?;
        let entry = self.before.entries.remove(&short)?;
        self.before.size -= entry.size();
        Some(entry)
    }
}

fn short(key: &[u8]) -> Option<Short> {
    key.last_chunk().map(|end| Short::from_le_bytes(*end))
}

impl Lru {
    /// A cache of at most `limit` bytes, set by `setting`. None if it is 0.
    pub fn new(parent: &Arc<Budget>, limit: usize, setting: &'static str) -> Option<Lru> {
        let limit = limit.min(parent.limit() / SHARE);
        (limit > 0).then(|| Lru {
            shards: Default::default(),
            half: limit / SHARDS / 2,
            budget: Budget::within(parent, limit, setting),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    fn shard(&self, short: Short) -> Option<MutexGuard<'_, Shard>> {
        let shard = self.shards.get(short as usize % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Appends what is known under a key. Returns false if nothing is.
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> bool {
        let found = self.find(key, out).is_some();
        let counter = if found { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        found
    }

    fn find(&self, key: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let short = short(key)?;
        let mut shard = self.shard(short)?;
        if let Some(entry) = shard.recent.entries.get(&short) {
            out.extend_from_slice(entry.value(key)?);
            return Some(());
        }
        let entry = shard.take(short, key)?;
        out.extend_from_slice(entry.value(key)?);
        let gone = shard.insert(short, entry, self.half);
        self.budget.give(gone);
        Some(())
    }

    /// Adds an entry if there is room in memory.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        let entry = Entry {
            key: key.len(),
            bytes: [key, value].concat().into(),
        };
        let size = entry.size();
        let Some(short) = short(key).filter(|_| size <= self.half / LARGEST) else {
            return;
        };
        let Some(mut shard) = self.shard(short) else {
            return;
        };
        if self.budget.take(size).is_ok() {
            let gone = shard.insert(short, entry, self.half);
            self.budget.give(gone);
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        Counts {
            bytes: self.budget.used() as u64,
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
        }
    }
}

impl Drop for Lru {
    fn drop(&mut self) {
        self.budget.give(self.budget.used());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> [u8; 16] {
        let mut key = [0; 16];
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key[..8].copy_from_slice(&number.to_le_bytes());
        key[8..].copy_from_slice(&mixed.rotate_left(32).to_le_bytes());
        key
    }

    fn known(lru: &Lru, number: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        lru.get(&key(number), &mut out).then_some(out)
    }

    /// It stays within its limit and its parent's, what is used again and again stays in it, and all
    /// memory comes back. With the bug the keeper grows with the number of cells it has opened.
    #[test]
    fn bounded() {
        let parent = Budget::new(8 << 20, "memory_limit");
        let lru = Lru::new(&parent, 256 << 10, "cell_cache");
        let lru = lru.unwrap_or_else(|| unreachable!());
        for number in 0..100_000 {
            lru.put(&key(number), &number.to_be_bytes());
            assert!(number < 1000 || known(&lru, 7).is_some(), "{number}");
            let charged: usize = lru.shards.iter().map(held).sum();
            assert!(number % 1000 != 0 || charged == parent.used());
            assert!(parent.used() <= 256 << 10);
        }
        assert_eq!(known(&lru, 99_999), Some(99_999u64.to_be_bytes().to_vec()));
        assert_eq!(known(&lru, 1000), None);
        assert!(lru.counts().bytes > 100 << 10);
        drop(lru);
        assert_eq!(parent.used(), 0);
    }

    fn held(shard: &Mutex<Shard>) -> usize {
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let halves = [&shard.recent, &shard.before];
        let sizes = halves.map(|half| half.entries.values().map(Entry::size).sum::<usize>());
        assert_eq!(sizes, halves.map(|half| half.size));
        sizes.iter().sum()
    }

    /// Only the whole key finds an entry. The bug this guards against: a cell with another header,
    /// hence another column, is answered from the cache because its tag is the same.
    #[test]
    fn whole_keys() {
        let parent = Budget::new(8 << 20, "memory_limit");
        let lru = Lru::new(&parent, 1 << 20, "cell_cache");
        let lru = lru.unwrap_or_else(|| unreachable!());
        let (one, mut other) = (key(1), key(1));
        other[0] ^= 1;
        lru.put(&one, b"secret");
        assert!(!lru.get(&other, &mut Vec::new()));
        assert!(!lru.get(&one[8..], &mut Vec::new()));
        assert_eq!(known(&lru, 1), Some(b"secret".to_vec()));
        assert!(!lru.get(&one[..4], &mut Vec::new()));
        lru.put(&key(2), &vec![0; 1 << 20]);
        assert_eq!(known(&lru, 2), None);
    }

    /// Nothing is kept when there is no memory for it, or no cache is wanted.
    #[test]
    fn without_room() {
        let parent = Budget::new(1 << 20, "memory_limit");
        assert!(Lru::new(&parent, 0, "cell_cache").is_none());
        let lru = Lru::new(&parent, 1 << 30, "cell_cache");
        assert!(
            lru.as_ref()
                .is_some_and(|lru| lru.budget.limit() == 1 << 17)
        );
        assert!(parent.take((1 << 20) - 50).is_ok());
        lru.iter()
            .for_each(|lru| lru.put(&key(1), b"12345678901234567890"));
        assert!(lru.is_some_and(|lru| known(&lru, 1).is_none()));
    }
}
