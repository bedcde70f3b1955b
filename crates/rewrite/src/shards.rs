//! A map with cheap copies: copies share their parts until one of them changes, and a change
//! replaces a single part.
//!
//! Parts are arranged in groups, so that a copy increments only as many reference counts as there
//! are groups. Once asked, a part caches which of its entries are marked ([`Mark`]), so that asking
//! after each change examines the entries of one part only.
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::{Arc, OnceLock};

const GROUPS: usize = 16;
/// Number of parts per group.
const PARTS: usize = 64;

/// A property by which entries are searched.
pub(crate) trait Mark {
    fn marked(&self) -> bool;
}

#[derive(Clone, Debug)]
struct Part<K, V> {
    map: BTreeMap<K, V>,
    /// Keys of the marked entries.
    marked: OnceLock<Vec<K>>,
}

impl<K, V> Default for Part<K, V> {
    fn default() -> Part<K, V> {
        Part {
            map: BTreeMap::new(),
            marked: OnceLock::new(),
        }
    }
}

type Group<K, V> = Arc<Vec<Arc<Part<K, V>>>>;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Shards<K, V>(Vec<Group<K, V>>);

impl<K, V> Default for Shards<K, V> {
    fn default() -> Shards<K, V> {
        // All parts share the same empty one until they change.
        let part = Arc::default();
        let group = Arc::new(vec![part; PARTS]);
        Shards(vec![group; GROUPS])
    }
}

impl<K: Hash + Ord + Clone, V: Clone> Shards<K, V> {
    fn at<Q: Hash + ?Sized>(key: &Q) -> (usize, usize) {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let at = (hash % (GROUPS * PARTS) as u64) as usize;
        (at / PARTS, at % PARTS)
    }

    fn part<Q: Hash + ?Sized>(&self, key: &Q) -> Option<&BTreeMap<K, V>> {
        let (group, at) = Self::at(key);
        Some(&self.0.get(group)?.get(at)?.map)
    }

    fn part_mut<Q: Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut BTreeMap<K, V>> {
        let (group, at) = Self::at(key);
        let part = Arc::make_mut(self.0.get_mut(group)?).get_mut(at)?;
        let part = Arc::make_mut(part);
        part.marked = OnceLock::new();
        Some(&mut part.map)
    }

    pub fn get<Q: Hash + Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.part(key)?.get(key)
    }

    /// Whether another map has the same value under a key.
    pub fn agrees<Q: Hash + Ord + ?Sized>(&self, other: &Shards<K, V>, key: &Q) -> bool
    where
        K: Borrow<Q>,
        V: PartialEq,
    {
        let (group, at) = Self::at(key);
        match (self.0.get(group), other.0.get(group)) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            (Some(a), Some(b)) => match (a.get(at), b.get(at)) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.map.get(key) == b.map.get(key),
                _ => false,
            },
            _ => false,
        }
    }

    /// Modifies the value under a key with this function, which is not called if there is none.
    pub fn change<Q: Hash + Ord + ?Sized>(&mut self, key: &Q, change: impl FnOnce(&mut V))
    where
        K: Borrow<Q>,
    {
        if self.get(key).is_some()
            && let Some(value) = self.part_mut(key).and_then(|part| part.get_mut(key))
        {
            change(value);
        }
    }

    pub fn insert(&mut self, key: K, value: V) {
        if let Some(part) = self.part_mut(&key) {
            part.insert(key, value);
        }
    }

    pub fn remove<Q: Hash + Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if self.get(key).is_some() {
            self.part_mut(key).and_then(|part| part.remove(key));
        }
    }

    /// Appends to a list.
    pub fn push<T>(&mut self, key: K, item: T)
    where
        V: Default + Extend<T>,
    {
        if let Some(part) = self.part_mut(&key) {
            part.entry(key).or_default().extend([item]);
        }
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.parts().flat_map(|part| part.map.values())
    }

    fn parts(&self) -> impl Iterator<Item = &Part<K, V>> {
        self.0
            .iter()
            .flat_map(|group| group.iter().map(Arc::as_ref))
    }
}

impl<K: Hash + Ord + Clone, V: Clone + Mark> Shards<K, V> {
    /// The marked entries.
    pub fn marked(&self) -> impl Iterator<Item = (&K, &V)> {
        self.parts().flat_map(|part| {
            let keys = part.marked.get_or_init(|| {
                let marked = part.map.iter().filter(|(_, value)| value.marked());
                marked.map(|(key, _)| key.clone()).collect()
            });
            keys.iter().filter_map(|key| part.map.get_key_value(key))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of a copy copies one part only, and the original stays as it is.
    #[test]
    fn copies_share() {
        let mut first = Shards::<u32, Vec<u32>>::default();
        (0..1000).for_each(|n| first.push(n, n));
        let mut second = first.clone();
        second.push(7, 8);
        second.remove(&2000);
        second.change(&3000, |_| unreachable!());
        let groups = first.0.iter().zip(&second.0);
        let own = groups.clone().filter(|(a, b)| !Arc::ptr_eq(a, b));
        assert_eq!(own.count(), 1);
        let parts = groups.flat_map(|(a, b)| a.iter().zip(b.iter()));
        assert_eq!(parts.filter(|(a, b)| !Arc::ptr_eq(a, b)).count(), 1);
        assert_eq!(first.get(&7), Some(&vec![7]));
        assert_eq!(second.get(&7), Some(&vec![7, 8]));
        assert_eq!(second.values().map(Vec::len).sum::<usize>(), 1001);
        second.remove(&7);
        assert_eq!((second.get(&7), second.values().count()), (None, 999));
    }

    impl Mark for Vec<u32> {
        fn marked(&self) -> bool {
            self.contains(&7)
        }
    }

    /// What is marked is what it would be if it were looked for anew, and after a change only the
    /// part that has changed is looked at: a copy that remembered it as it was gives the old.
    #[test]
    fn marks_follow_changes() {
        let mut first = Shards::<u32, Vec<u32>>::default();
        (0..1000).for_each(|n| first.push(n, n));
        let found = |of: &Shards<u32, Vec<u32>>| {
            let mut keys: Vec<u32> = of.marked().map(|(key, _)| *key).collect();
            keys.sort_unstable();
            keys
        };
        assert_eq!(found(&first), [7]);
        let mut second = first.clone();
        second.push(100, 7);
        second.push(2000, 7);
        second.change(&7, Vec::clear);
        assert_eq!((found(&first), found(&second)), (vec![7], vec![100, 2000]));
        let asked = |part: &&Part<u32, Vec<u32>>| part.marked.get().is_some();
        second.remove(&100);
        assert_eq!(second.parts().filter(asked).count(), GROUPS * PARTS - 1);
        assert_eq!(found(&second), [2000]);
        second.insert(2000, vec![1]);
        assert_eq!(found(&second), [] as [u32; 0]);
    }
}
