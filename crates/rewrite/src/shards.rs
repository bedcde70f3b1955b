//! A map of which copies are cheap: copies share their parts until one of them changes, and
//! a change makes a new one of a single part.
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

const PARTS: usize = 128;

type Part<K, V> = Arc<HashMap<K, V>>;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Shards<K, V>(Vec<Part<K, V>>);

impl<K, V> Default for Shards<K, V> {
    fn default() -> Shards<K, V> {
        Shards(vec![Arc::default(); PARTS])
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Shards<K, V> {
    fn at<Q: Hash + ?Sized>(key: &Q) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        (hash % PARTS as u64) as usize
    }

    fn part<Q: Hash + ?Sized>(&self, key: &Q) -> Option<&Part<K, V>> {
        self.0.get(Self::at(key))
    }

    fn part_mut<Q: Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut HashMap<K, V>> {
        self.0.get_mut(Self::at(key)).map(Arc::make_mut)
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.part(key)?.get(key)
    }

    /// What is under the key, after this function changed it; nothing to change: it is
    /// not called.
    pub fn change<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, change: impl FnOnce(&mut V))
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

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if self.get(key).is_some() {
            self.part_mut(key).and_then(|part| part.remove(key));
        }
    }

    /// Adds to a list.
    pub fn push<T>(&mut self, key: K, item: T)
    where
        V: Default + Extend<T>,
    {
        if let Some(part) = self.part_mut(&key) {
            part.entry(key).or_default().extend([item]);
        }
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().flat_map(|part| part.values())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().flat_map(|part| part.iter())
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
        let own = first
            .0
            .iter()
            .zip(&second.0)
            .filter(|(a, b)| !Arc::ptr_eq(a, b));
        assert_eq!(own.count(), 1);
        assert_eq!(first.get(&7), Some(&vec![7]));
        assert_eq!(second.get(&7), Some(&vec![7, 8]));
        assert_eq!(second.values().map(Vec::len).sum::<usize>(), 1001);
        second.remove(&7);
        assert_eq!((second.get(&7), second.iter().count()), (None, 999));
    }
}
