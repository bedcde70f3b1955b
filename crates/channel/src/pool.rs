//! Divides a range of memory into allocations: hidden memory cannot be had from the system's
//! allocator.
//!
//! Units of 16 kB are kept in blocks of 2^n units (a buddy system). Allocations of at most half a unit
//! share units with others of their class; there are several lists for each class, so that threads
//! seldom wait for each other. A unit that was given to a class remains with it. No allocation has a
//! header: whoever frees one knows its size.
//!
//! Invariants: a free block is on exactly one list, the one of its size; what is outside of the range
//! is never touched.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The least that is taken from the range at a time.
pub(crate) const UNIT: usize = 16 * 1024;
/// Larger allocations have units of their own.
const SMALL_MAX: usize = UNIT / 2;
/// Eight classes of up to 128 bytes, then four between each power of two and the next.
const CLASSES: usize = 8 + 4 * 6;
/// Lists of each class.
const SHARES: usize = 8;
/// Sizes of blocks, the largest being a terabyte.
const ORDERS: usize = 27;

/// A free block of units, in its first bytes.
struct Block {
    previous: *mut Block,
    next: *mut Block,
}

/// The units of the range.
struct Units {
    base: usize,
    count: usize,
    free: usize,
    lists: [*mut Block; ORDERS],
    /// For each unit: the order of the free block that begins there, plus one; or 0.
    tags: *mut u8,
}

// SAFETY: the pointers are into the range, which is nobody else's; a lock guards the whole.
unsafe impl Send for Units {}

/// What is free of a class.
struct Class {
    /// A list through the first bytes of what is free.
    free: *mut Free,
    /// Of the unit that was taken last: what has never been used.
    fresh: usize,
    end: usize,
}

struct Free {
    next: *mut Free,
}

// SAFETY: as for `Units`.
unsafe impl Send for Class {}

/// An allocator of a range of memory.
pub(crate) struct Pool {
    units: Mutex<Units>,
    classes: [[Mutex<Class>; SHARES]; CLASSES],
    start: AtomicUsize,
    end: AtomicUsize,
    /// Where it is written to which list a unit of a class belongs.
    lists: AtomicUsize,
    /// How many lists of each class are used.
    shares: AtomicUsize,
}

/// Which of its classes' lists a thread uses.
fn share() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static SHARE: Cell<usize> = const { Cell::new(usize::MAX) } }
    SHARE.with(|share| {
        if share.get() == usize::MAX {
            share.set(NEXT.fetch_add(1, Relaxed) % SHARES);
        }
        share.get()
    })
}

/// The size that a layout is given, with which it is aligned as it asks.
fn size_of(layout: Layout) -> usize {
    let size = layout.size().max(1);
    match layout.align() <= 16 {
        true => size,
        false => size.max(layout.align()).next_power_of_two(),
    }
}

/// The class of a size of at most [`SMALL_MAX`], and the size of its allocations.
fn class_of(size: usize) -> (usize, usize) {
    if size <= 128 {
        let class = size.div_ceil(16).max(1);
        return (class - 1, class * 16);
    }
    let power = (size - 1).ilog2() as usize;
    let quarter = 1 << (power - 2);
    let number = ((size - 1) >> (power - 2)) & 3;
    let class = 8 + (power - 7) * 4 + number;
    (class, (1 << power) + (number + 1) * quarter)
}

/// How many units a size takes, as a power of two.
fn order_of(size: usize) -> usize {
    size.div_ceil(UNIT).next_power_of_two().ilog2() as usize
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Without memory.
    pub(crate) const fn new() -> Pool {
        Pool {
            units: Mutex::new(Units {
                base: 0,
                count: 0,
                free: 0,
                lists: [null_mut(); ORDERS],
                tags: null_mut(),
            }),
            classes: [const {
                [const {
                    Mutex::new(Class {
                        free: null_mut(),
                        fresh: 0,
                        end: 0,
                    })
                }; SHARES]
            }; CLASSES],
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            shares: AtomicUsize::new(1),
        }
    }

    /// Takes a range of memory, once. Says whether it did. If it is not to be shared by many threads, one list for
    /// each class does, which leaves less unused.
    ///
    /// # Safety
    /// The range is mapped, writable and zero, is nobody else's, and stays.
    pub(crate) unsafe fn begin(&self, start: NonNull<u8>, length: usize, shared: bool) -> bool {
        let mut units = lock(&self.units);
        let address = start.as_ptr() as usize;
        let base = address.next_multiple_of(UNIT);
        let count = (address + length).saturating_sub(base) / UNIT;
        // A byte for the order and one for the list of each unit.
        let taken = (2 * count).div_ceil(UNIT);
        if units.base != 0 || count <= taken {
            return false;
        }
        units.base = base;
        units.count = count;
        // SAFETY: the first units of the range.
        units.tags = unsafe { start.as_ptr().add(base - address) };
        let mut at = taken;
        while at < count {
            let fits = (count - at).ilog2().min(at.trailing_zeros());
            let order = (fits as usize).min(ORDERS - 1);
            units.push(at, order);
            at += 1 << order;
        }
        self.shares.store(if shared { SHARES } else { 1 }, Relaxed);
        self.lists.store(base + count, Relaxed);
        self.end.store(base + count * UNIT, Relaxed);
        self.start.store(base, Relaxed);
        true
    }

    /// Whether an allocation is one of this pool.
    #[inline]
    pub(crate) fn has(&self, block: *mut u8) -> bool {
        let address = block as usize;
        address >= self.start.load(Relaxed) && address < self.end.load(Relaxed)
    }

    /// Bytes in units that nobody has, and in all.
    pub(crate) fn room(&self) -> (usize, usize) {
        let units = lock(&self.units);
        (units.free * UNIT, units.count * UNIT)
    }

    /// Memory, or null if there is none, or if no more than `keep` bytes would be left.
    pub(crate) fn take(&self, layout: Layout, keep: usize) -> *mut u8 {
        let size = size_of(layout);
        if size > SMALL_MAX {
            if layout.align() > UNIT {
                return null_mut();
            }
            return lock(&self.units).take(order_of(size), keep);
        }
        let (number, size) = class_of(size);
        let share = share() % self.shares.load(Relaxed);
        let Some(place) = self.classes.get(number).and_then(|lists| lists.get(share)) else {
            return null_mut();
        };
        let mut class = lock(place);
        if let Some(free) = NonNull::new(class.free) {
            // SAFETY: what is on the list is free, and begins with the next one.
            class.free = unsafe { free.as_ref().next };
            return free.as_ptr().cast();
        }
        if class.fresh + size > class.end {
            let mut units = lock(&self.units);
            let unit = units.take(0, keep);
            drop(units);
            if unit.is_null() {
                drop(class);
                return self.others(number, share);
            }
            self.list_of(unit).store(share as u8, Relaxed);
            class.fresh = unit as usize;
            class.end = class.fresh + UNIT;
        }
        let fresh = class.fresh as *mut u8;
        class.fresh += size;
        fresh
    }

    /// Memory of a class from other lists than this.
    fn others(&self, class: usize, share: usize) -> *mut u8 {
        let lists = self.classes.get(class).into_iter().flatten().enumerate();
        for (_, list) in lists.filter(|(number, _)| *number != share) {
            let mut class = lock(list);
            if let Some(free) = NonNull::new(class.free) {
                // SAFETY: what is on the list is free, and begins with the next one.
                class.free = unsafe { free.as_ref().next };
                return free.as_ptr().cast();
            }
        }
        null_mut()
    }

    /// The list of the unit that a block of a class is in. It was written before anybody had the block.
    fn list_of(&self, block: *mut u8) -> &AtomicU8 {
        let unit = (block as usize - self.start.load(Relaxed)) / UNIT;
        let place = (self.lists.load(Relaxed) + unit) as *const AtomicU8;
        // SAFETY: there is a byte for each unit, which is used for nothing else.
        unsafe { &*place }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// [`Pool::take`] gave it for the same layout, and nobody uses it any more.
    pub(crate) unsafe fn give(&self, block: *mut u8, layout: Layout) {
        let size = size_of(layout);
        if size > SMALL_MAX {
            return lock(&self.units).give(block, order_of(size));
        }
        let (class, _) = class_of(size);
        let share = usize::from(self.list_of(block).load(Relaxed));
        let Some(place) = self.classes.get(class).and_then(|lists| lists.get(share)) else {
            return;
        };
        let mut class = lock(place);
        let free = block.cast::<Free>();
        // SAFETY: the block is free, aligned to 16 bytes and at least as long.
        unsafe { free.write(Free { next: class.free }) };
        class.free = free;
    }
}

impl Units {
    fn block(&self, unit: usize) -> *mut Block {
        (self.base + unit * UNIT) as *mut Block
    }

    fn unit(&self, block: *mut u8) -> usize {
        (block as usize - self.base) / UNIT
    }

    fn tag(&self, unit: usize) -> u8 {
        // SAFETY: there are `count` tags.
        unsafe { *self.tags.add(unit) }
    }

    fn set_tag(&mut self, unit: usize, tag: u8) {
        // SAFETY: as above.
        unsafe { *self.tags.add(unit) = tag };
    }

    /// A block of units is free.
    fn push(&mut self, unit: usize, order: usize) {
        let block = self.block(unit);
        let next = self.lists[order];
        // SAFETY: the block is free, and so is what is on the list.
        unsafe {
            block.write(Block {
                previous: null_mut(),
                next,
            });
            if let Some(next) = next.as_mut() {
                next.previous = block;
            }
        }
        self.lists[order] = block;
        self.set_tag(unit, order as u8 + 1);
        self.free += 1 << order;
    }

    /// Takes a free block off its list.
    fn pull(&mut self, unit: usize, order: usize) {
        // SAFETY: the block is on the list, as are its neighbours.
        unsafe {
            let Block { previous, next } = self.block(unit).read();
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => self.lists[order] = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            // Free memory is zero.
            self.block(unit).write(Block {
                previous: null_mut(),
                next: null_mut(),
            });
        }
        self.set_tag(unit, 0);
        self.free -= 1 << order;
    }

    fn take(&mut self, order: usize, keep: usize) -> *mut u8 {
        if self.free * UNIT < keep + (UNIT << order) {
            return null_mut();
        }
        let Some(found) = (order..ORDERS).find(|larger| !self.lists[*larger].is_null()) else {
            return null_mut();
        };
        let block = self.lists[found].cast();
        let unit = self.unit(block);
        self.pull(unit, found);
        for half in (order..found).rev() {
            self.push(unit + (1 << half), half);
        }
        block
    }

    fn give(&mut self, block: *mut u8, order: usize) {
        let (mut unit, mut order) = (self.unit(block), order);
        while order + 1 < ORDERS {
            let other = unit ^ (1 << order);
            if other + (1 << order) > self.count || self.tag(other) != order as u8 + 1 {
                break;
            }
            self.pull(other, order);
            unit = unit.min(other);
            order += 1;
        }
        self.push(unit, order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{GlobalAlloc, System};

    const LENGTH: usize = 8 << 20;

    fn pool() -> Pool {
        let pool = Pool::new();
        let layout = Layout::from_size_align(LENGTH, 4096).unwrap();
        // SAFETY: the memory is new, and stays until the process ends.
        unsafe {
            let memory = NonNull::new(System.alloc_zeroed(layout)).unwrap();
            assert!(pool.begin(memory, LENGTH, true));
            assert!(!pool.begin(memory, LENGTH, true));
        }
        pool
    }

    /// Every class is as large as what it is for, aligned, and hardly larger.
    #[test]
    fn classes() {
        let mut last = 0;
        for size in 1..=SMALL_MAX {
            let (class, room) = class_of(size);
            assert!(class < CLASSES && room >= size && room.is_multiple_of(16));
            assert!(room <= size + 16 || room <= size + size / 4);
            assert!(class == last || class == last + 1);
            last = class;
            let aligned = Layout::from_size_align(size, 64).unwrap();
            assert!(class_of(size_of(aligned)).1.is_multiple_of(64));
        }
        assert_eq!(last, CLASSES - 1);
    }

    /// Random allocations never overlap, keep their contents and alignment, and leave nothing behind
    /// but the units of the classes. Bugs: two of one, or memory that is lost.
    #[test]
    fn nothing_twice() {
        let pool = pool();
        let (before, _) = pool.room();
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((random >> 33) % below) as usize
        };
        let mut held: Vec<(*mut u8, Layout, u8)> = Vec::new();
        for round in 0..20_000 {
            let size = match next(10) {
                0 => 1 + next(200_000),
                1..4 => 1 + next(9000),
                _ => 1 + next(300),
            };
            let layout = Layout::from_size_align(size, 1 << next(8)).unwrap();
            let block = pool.take(layout, 0);
            if !block.is_null() {
                assert!(pool.has(block) && (block as usize).is_multiple_of(layout.align()));
                // SAFETY: it is as long as its layout.
                unsafe { block.write_bytes(round as u8, size) };
                held.push((block, layout, round as u8));
            }
            while held.len() > 200 || (block.is_null() && !held.is_empty()) {
                let (block, layout, byte) = held.swap_remove(next(held.len() as u64));
                // SAFETY: it was taken, and is given back once.
                unsafe {
                    let bytes = std::slice::from_raw_parts(block, layout.size());
                    assert!(bytes.iter().all(|b| *b == byte));
                    pool.give(block, layout);
                }
            }
        }
        for (block, layout, _) in held {
            // SAFETY: as above.
            unsafe { pool.give(block, layout) };
        }
        let classes = before - pool.room().0;
        assert!(classes < 3 << 20, "{classes} bytes in classes");
        let most = Layout::from_size_align(2 << 20, 16).unwrap();
        assert!(!pool.take(most, 0).is_null());
    }

    /// What one thread takes and another gives back is used again.
    #[test]
    fn across_threads() {
        let pool = pool();
        let layout = Layout::from_size_align(1000, 8).unwrap();
        for _ in 0..100 {
            let blocks: Vec<usize> = (0..1000).map(|_| pool.take(layout, 0) as usize).collect();
            assert!(!blocks.contains(&0), "memory is lost");
            std::thread::scope(|scope| {
                // SAFETY: each was taken, and is given back once.
                scope.spawn(|| {
                    blocks
                        .iter()
                        .for_each(|b| unsafe { pool.give(*b as *mut u8, layout) })
                });
            });
        }
    }

    /// A pool without memory, or without any left, gives none.
    #[test]
    fn none() {
        let layout = Layout::from_size_align(64, 8).unwrap();
        assert!(Pool::new().take(layout, 0).is_null());
        let pool = pool();
        assert!(
            pool.take(Layout::from_size_align(LENGTH, 8).unwrap(), 0)
                .is_null()
        );
        assert!(pool.take(layout, pool.room().0).is_null());
        assert!(!pool.take(layout, 0).is_null());
    }

    /// When all units are taken, a thread has what others have given back.
    #[test]
    fn others_lists() {
        let pool = pool();
        let layout = Layout::from_size_align(4096, 8).unwrap();
        let mut last = null_mut();
        while let block = pool.take(layout, 0)
            && !block.is_null()
        {
            last = block;
        }
        // SAFETY: it was taken, and is given back once.
        unsafe { pool.give(last, layout) };
        let last = last as usize;
        for _ in 0..SHARES {
            let own = || pool.take(layout, 0) as usize;
            assert_eq!(std::thread::scope(|s| s.spawn(own).join()).unwrap(), last);
            // SAFETY: as above.
            unsafe { pool.give(last as *mut u8, layout) };
        }
    }
}
