//! Temporary values of one channel. The backend numbers the slots itself, in ascending order. Slots
//! below the window are gone for good.
//!
//! Invariants: a slot below the base never resolves again; entries are stored in `chunks`, the
//! first of which contains the base; hostile slot numbers cost at most two pointers per chunk
//! within [`GAP`].

use crate::budget::{Account, Budget};
use crate::error;
use crate::lock;
use contract::fid::SLOT_MAX;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use values::{AggregateState, Error, Value};

/// Slots per chunk.
const CHUNK: u64 = 1024;
const SLOTS: usize = CHUNK as usize;
/// How far a slot may be ahead of the highest one used so far.
const GAP: u64 = 1 << 20;

/// Contents of a slot.
pub enum Entry {
    /// Nothing was stored.
    Empty,
    /// NULL.
    Null,
    /// A value.
    Value(Value),
    /// The computation of the value failed.
    Poison(Arc<Error>),
    /// The transition state of an aggregate.
    State(Box<State>),
}

/// The state of an aggregate, and which aggregate it is.
#[derive(Clone)]
pub struct State {
    /// Number of the aggregate's signature.
    pub signature: u16,
    /// The accumulated state.
    pub state: AggregateState,
}

impl Entry {
    /// Approximate heap size beyond the entry's place in the chunk, in bytes; 0 only if there is none.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Entry::Empty | Entry::Null => 0,
            Entry::Value(value) => value.heap_bytes(),
            Entry::Poison(error) => size_of::<Error>() + error.message.len(),
            Entry::State(state) => size_of::<State>() + state.state.heap_bytes(),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Empty => "Empty",
            Entry::Null => "Null",
            Entry::Value(_) => "Value(..)",
            Entry::Poison(_) => "Poison(..)",
            Entry::State(_) => "State(..)",
        })
    }
}

/// A number chosen by the arena's user that tells what the value of a slot was computed from; 0:
/// none.
pub type Label = u16;

const CHUNK_BYTES: usize = SLOTS * size_of::<Entry>();
const LABELS_BYTES: usize = SLOTS * size_of::<Label>();

/// Consecutive slots.
struct Chunk {
    entries: Box<[Entry; SLOTS]>,
    /// `None` if no slot has one.
    labels: Option<Box<[Label; SLOTS]>>,
}

impl Chunk {
    #[inline]
    fn label(&self, slot: u64) -> Label {
        let labels = self.labels.as_deref();
        let label = labels.and_then(|labels| labels.get(place(slot)));
        label.copied().unwrap_or(0)
    }
}

/// A slot's place in its chunk.
#[inline]
fn place(slot: u64) -> usize {
    (slot % CHUNK) as usize
}

/// A chunk's labels, allocated on demand.
#[inline]
fn made<'a>(
    labels: &'a mut Option<Box<[Label; SLOTS]>>,
    account: &mut Account,
) -> Result<&'a mut [Label; SLOTS], Error> {
    if labels.is_none() {
        account.take(LABELS_BYTES)?;
    }
    Ok(labels.get_or_insert_with(|| Box::new([0; SLOTS])))
}

/// Replaces the contents of a slot; returns the number of bytes that this has freed.
#[inline]
fn replace(contents: &mut Entry, entry: Entry) -> usize {
    let before = std::mem::replace(contents, entry);
    let bytes = before.heap_bytes();
    if bytes == 0 {
        // There is nothing to free, which dropping it would find out once more.
        std::mem::forget(before);
    }
    bytes
}

/// Charges what an entry needs. Errors must be stored in any case, or exceeded limits could not be
/// reported.
#[inline]
fn charge(account: &mut Account, entry: &Entry) -> Result<(), Error> {
    match (entry, entry.heap_bytes()) {
        (_, 0) => Ok(()),
        (Entry::Poison(_), more) => {
            account.force(more);
            Ok(())
        }
        (_, more) => account.take(more),
    }
}

/// The temporary values of one channel and purpose.
pub struct Arena(RwLock<Window>);

impl Arena {
    /// An empty arena.
    pub fn new(budget: &Arc<Budget>) -> Arena {
        Arena(RwLock::new(Window {
            base: 0,
            top: 0,
            first: 0,
            chunks: VecDeque::new(),
            spare: None,
            account: Account::new(Arc::clone(budget)),
        }))
    }

    /// Locks the arena for reading. No other lock may be acquired meanwhile.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Window> {
        lock::read(&self.0)
    }

    /// Locks the arena for writing. No other lock may be acquired meanwhile.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, Window> {
        lock::write(&self.0)
    }
}

/// A slot that has a label keeps it.
#[inline]
fn keeps(known: Label, label: Label) -> Result<(), Error> {
    if known != 0 && known != label {
        return Err(error::slot_in_use());
    }
    Ok(())
}

/// The live slots of an arena.
pub struct Window {
    /// Slots below this one are gone.
    base: u64,
    /// No slot from this one on was ever set.
    top: u64,
    /// Number of the first chunk.
    first: u64,
    chunks: VecDeque<Option<Chunk>>,
    /// The entries of an empty chunk to be used next.
    spare: Option<Box<[Entry; SLOTS]>>,
    account: Account,
}

impl Window {
    /// Contents of a slot.
    #[inline]
    pub fn get(&self, slot: u64) -> Result<&Entry, Error> {
        if slot < self.base {
            return Err(error::gone());
        }
        match self.chunk(slot).and_then(|c| c.entries.get(place(slot))) {
            None | Some(Entry::Empty) => Err(error::no_such_value()),
            Some(entry) => Ok(entry),
        }
    }

    /// The number of a slot's chunk in `chunks`.
    #[inline]
    fn number(&self, slot: u64) -> usize {
        (slot / CHUNK).wrapping_sub(self.first) as usize
    }

    #[inline]
    fn chunk(&self, slot: u64) -> Option<&Chunk> {
        self.chunks.get(self.number(slot))?.as_ref()
    }

    /// Stores an entry in a slot, replacing its contents.
    #[inline]
    pub fn set(&mut self, slot: u64, entry: Entry) -> Result<(), Error> {
        self.set_marked(slot, entry, 0)
    }

    /// Like [`Window::set`], and labels the slot like [`Window::mark`]; label 0 changes nothing.
    #[inline]
    pub fn set_marked(&mut self, slot: u64, entry: Entry, label: Label) -> Result<(), Error> {
        // An invalid slot is reported before an exceeded limit.
        let (chunk, account) = self.chunk_mut(slot)?;
        if label != 0 {
            let labels = made(&mut chunk.labels, account)?;
            let known = labels.get_mut(place(slot));
            let known = known.ok_or_else(error::no_such_value)?;
            keeps(*known, label)?;
            charge(account, &entry)?;
            *known = label;
        } else {
            charge(account, &entry)?;
        }
        let contents = chunk.entries.get_mut(place(slot));
        let contents = contents.ok_or_else(error::no_such_value)?;
        account.give(replace(contents, entry));
        Ok(())
    }

    /// Stores entries in consecutive slots.
    pub fn set_all(
        &mut self,
        first: u64,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), Error> {
        let mut slot = first;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let (chunk, account) = self.chunk_mut(slot)?;
            let from = slot;
            for contents in chunk.entries.iter_mut().skip(place(slot)) {
                let Some(entry) = entries.next() else { break };
                charge(account, &entry)?;
                account.give(replace(contents, entry));
                slot += 1;
            }
            if slot == from || slot > SLOT_MAX {
                return Err(error::too_far_ahead());
            }
            self.top = self.top.max(slot);
        }
        Ok(())
    }

    /// The label of a slot, or `None`.
    #[inline]
    pub fn label(&self, slot: u64) -> Option<Label> {
        match self.chunk(slot).map_or(0, |chunk| chunk.label(slot)) {
            0 => match self.get(slot) {
                Ok(Entry::Value(_) | Entry::State(_)) => None,
                _ => Some(0),
            },
            label => Some(label),
        }
    }

    /// Labels slots before they are filled. A slot keeps its label until it is released, so whoever
    /// has read the label knows what the slot holds from then on.
    pub fn mark(&mut self, first: u64, count: usize, label: Label) -> Result<(), Error> {
        let end = first.saturating_add(count as u64);
        let mut slot = first;
        while slot < end && label != 0 {
            let until = end.min((slot / CHUNK + 1) * CHUNK);
            let (from, length) = (place(slot), (until - slot) as usize);
            let (chunk, account) = self.chunk_mut(slot)?;
            let places = made(&mut chunk.labels, account)?.get_mut(from..from + length);
            let places = places.ok_or_else(error::no_such_value)?;
            // Without an early end, so that many are looked at at once.
            let odd = |odd: Label, known: &Label| match *known != 0 && *known != label {
                true => *known,
                false => odd,
            };
            keeps(places.iter().fold(0, odd), label)?;
            places.fill(label);
            self.top = self.top.max(until);
            slot = until;
        }
        Ok(())
    }

    /// Changes the label of an aggregate state when something is added to it.
    pub fn mark_state(&mut self, slot: u64, label: Label) -> Result<(), Error> {
        let (chunk, account) = self.chunk_mut(slot)?;
        if let Some(known) = made(&mut chunk.labels, account)?.get_mut(place(slot)) {
            *known = label;
        }
        Ok(())
    }

    /// Modifies the contents of a slot and accounts for the change in size.
    pub fn update<T>(
        &mut self,
        slot: u64,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Result<T, Error> {
        let (chunk, account) = self.chunk_mut(slot)?;
        let contents = chunk.entries.get_mut(place(slot));
        let contents = contents.ok_or_else(error::no_such_value)?;
        let before = contents.heap_bytes();
        let result = change(contents);
        let after = contents.heap_bytes();
        account.give(before);
        if let Err(error) = account.take(after) {
            let poison = Entry::Poison(Arc::new(error.clone()));
            account.force(poison.heap_bytes());
            *contents = poison;
            return Err(error);
        }
        Ok(result)
    }

    /// The chunk of a slot that is to be filled, allocated on demand, and what it is charged to.
    #[inline]
    fn chunk_mut(&mut self, slot: u64) -> Result<(&mut Chunk, &mut Account), Error> {
        if slot < self.base {
            return Err(error::gone());
        }
        if slot >= self.top {
            if slot - self.top >= GAP || slot > SLOT_MAX {
                return Err(error::too_far_ahead());
            }
            self.top = slot + 1;
        }
        let number = self.number(slot);
        if self.chunks.get(number).is_none_or(Option::is_none) {
            self.make(number)?;
        }
        let chunk = self.chunks.get_mut(number).and_then(Option::as_mut);
        Ok((chunk.ok_or_else(error::no_such_value)?, &mut self.account))
    }

    #[cold]
    fn make(&mut self, number: usize) -> Result<(), Error> {
        let entries = match self.spare.take() {
            Some(entries) => entries,
            None => {
                self.account.take(CHUNK_BYTES)?;
                let entries: Vec<_> = (0..SLOTS).map(|_| Entry::Empty).collect();
                Box::try_from(entries).map_err(|_| error::no_such_value())?
            }
        };
        while self.chunks.len() <= number {
            self.chunks.push_back(None);
        }
        if let Some(place) = self.chunks.get_mut(number) {
            *place = Some(Chunk {
                entries,
                labels: None,
            });
        }
        Ok(())
    }

    /// Frees all slots below a limit.
    pub fn release(&mut self, below: u64) {
        if below <= self.base {
            return;
        }
        let end = below.min(self.top);
        while self.base < end {
            let next = (self.base / CHUNK + 1) * CHUNK;
            let until = end.min(next);
            let whole = until == next;
            let (from, to) = (self.base, until);
            self.clear(from, to);
            self.base = until;
            if whole {
                let chunk = self.chunks.pop_front().flatten();
                self.first += 1;
                self.retire(chunk);
            }
        }
        if below > self.base {
            // Nothing is left: restart the window with an empty deque.
            while let Some(chunk) = self.chunks.pop_front() {
                self.retire(chunk);
            }
            self.base = below;
            self.first = below / CHUNK;
        }
        self.top = self.top.max(self.base);
    }

    fn clear(&mut self, from: u64, to: u64) {
        let Some(Some(chunk)) = self.chunks.front_mut() else {
            return;
        };
        let places = place(from)..place(from) + (to - from) as usize;
        if let Some(labels) = &mut chunk.labels {
            let labels = labels.get_mut(places.clone()).unwrap_or_default();
            labels.fill(0);
        }
        let mut bytes = 0;
        for entry in chunk.entries.get_mut(places).unwrap_or_default() {
            bytes += replace(entry, Entry::Empty);
        }
        self.account.give(bytes);
    }

    fn retire(&mut self, chunk: Option<Chunk>) {
        let Some(Chunk { entries, labels }) = chunk else {
            return;
        };
        self.account.give(labels.map_or(0, |_| LABELS_BYTES));
        match self.spare {
            None => self.spare = Some(entries),
            Some(_) => self.account.give(CHUNK_BYTES),
        }
    }

    /// Whether no slot of the window was ever set.
    pub fn is_empty(&self) -> bool {
        self.base >= self.top
    }

    /// Number of slots in the window.
    pub fn slots(&self) -> u64 {
        self.top - self.base
    }

    /// Bytes allocated.
    pub fn bytes(&self) -> usize {
        self.account.charged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn text(length: usize) -> Entry {
        Entry::Value(Value::Text(vec![b'x'; length].into()))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u64, usize),
        SetAll(u64, u64, usize),
        Release(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0u64..6000, 0usize..50).prop_map(|(s, l)| Step::Set(s, l)),
            1 => (0u64..6000, 0u64..2500, 0usize..50)
                .prop_map(|(s, n, l)| Step::SetAll(s, n, l)),
            1 => (0u64..7000).prop_map(Step::Release),
        ];
        proptest::collection::vec(step, 0..300)
    }

    proptest! {
        /// Against a map: what is set is there until released, what is below the
        /// base is gone, and all memory is accounted for.
        #[test]
        fn like_a_map(steps in steps()) {
            let budget = Budget::new(1 << 30, "x");
            let arena = Arena::new(&budget);
            let mut model: BTreeMap<u64, usize> = BTreeMap::new();
            let mut base = 0;
            for step in steps {
                match step {
                    Step::Set(slot, length) => {
                        let done = arena.write().set(slot, text(length));
                        prop_assert_eq!(done.is_ok(), slot >= base);
                        if slot >= base {
                            model.insert(slot, length);
                        }
                    }
                    Step::SetAll(slot, count, length) => {
                        let entries = (0..count).map(|_| text(length));
                        let done = arena.write().set_all(slot, entries);
                        prop_assert_eq!(done.is_ok(), slot >= base || count == 0);
                        if slot >= base {
                            model.extend((slot..slot + count).map(|s| (s, length)));
                        }
                    }
                    Step::Release(below) => {
                        arena.write().release(below);
                        base = base.max(below);
                        model = model.split_off(&base);
                    }
                }
            }
            let window = arena.read();
            for slot in 0..9000 {
                match (window.get(slot), model.get(&slot)) {
                    (Ok(entry), Some(length)) => prop_assert_eq!(entry.heap_bytes(), *length),
                    (Err(e), None) if slot < base => prop_assert_eq!(e.sqlstate, *b"55000"),
                    (Err(e), None) => prop_assert_eq!(e.sqlstate, *b"XX000"),
                    (found, wanted) => prop_assert!(false, "{slot}: {found:?} {wanted:?}"),
                }
            }
            let chunks: Vec<_> = window.chunks.iter().flatten().collect();
            let held = chunks.len() + usize::from(window.spare.is_some());
            let heap: usize = model.values().sum();
            prop_assert_eq!(budget.used(), held * CHUNK_BYTES + heap);
            drop(window);
            drop(arena);
            prop_assert_eq!(budget.used(), 0);
        }
    }

    /// A backend that numbers slots wildly must not make the keeper allocate;
    /// with the bug one message allocates gigabytes of empty chunks.
    #[test]
    fn gap_is_bounded() {
        let budget = Budget::new(1 << 30, "x");
        let arena = Arena::new(&budget);
        let mut window = arena.write();
        assert!(window.set(GAP, Entry::Null).is_err());
        assert!(window.set(SLOT_MAX, Entry::Null).is_err());
        assert!(window.set(u64::MAX, Entry::Null).is_err());
        assert!(window.set(GAP - 1, Entry::Null).is_ok());
        assert_eq!(window.bytes(), CHUNK_BYTES);
        window.release(SLOT_MAX);
        assert!(window.set(SLOT_MAX, Entry::Null).is_ok());
        window.release(u64::MAX);
        assert!(window.set(SLOT_MAX, Entry::Null).is_err());
        assert!(window.get(u64::MAX).is_err());
    }

    /// The limit refuses and leaves the rest usable.
    #[test]
    fn limit() {
        let budget = Budget::new(CHUNK_BYTES + 100, "x");
        let arena = Arena::new(&budget);
        let mut window = arena.write();
        assert!(window.set(0, text(60)).is_ok());
        assert_eq!(
            window.set(1, text(60)).map_err(|e| e.sqlstate),
            Err(*b"53200")
        );
        assert!(window.set(1, text(40)).is_ok());
        assert!(window.set(2000, Entry::Null).is_err());
        window.release(2);
        assert!(window.set(2, text(100)).is_ok());
    }

    /// A label stays with its slot until the slot is released, whatever is put there; with
    /// the bug a value of one column passes for one of another. Labels are accounted for.
    #[test]
    fn labels_stay() {
        let budget = Budget::new(1 << 20, "x");
        let arena = Arena::new(&budget);
        let mut window = arena.write();
        assert!(window.mark(1000, 100, 7).is_ok());
        assert!(window.set_all(1000, (0..100).map(|_| text(1))).is_ok());
        assert!(window.set(1100, text(1)).is_ok());
        assert_eq!(window.label(999), Some(0));
        assert_eq!((window.label(1000), window.label(1099)), (Some(7), Some(7)));
        assert_eq!(window.label(1100), None);
        assert_eq!(
            window.mark(1050, 1, 8).map_err(|e| e.sqlstate),
            Err(*b"55000")
        );
        assert!(window.mark(1050, 1, 7).is_ok());
        assert!(window.mark_state(1050, 8).is_ok());
        assert_eq!(window.label(1050), Some(8));
        window.release(1060);
        assert!(window.mark(1060, 1, 7).is_ok() && window.mark(1061, 1, 9).is_err());
        window.release(2048);
        assert!(window.mark(2048, 1, 9).is_ok());
        assert_eq!(window.label(2048), Some(9));
        drop(window);
        drop(arena);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn entry_is_small() {
        assert!(size_of::<Entry>() <= 32);
    }
}
