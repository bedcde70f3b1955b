//! Model-checks `channel::ring`, the same code that runs over memfd and socket:
//! all interleavings and all values the C11 memory model lets a load return (up
//! to a bound of preemptions), in rings of 2 and 4 bytes.
//!
//! Run: `cargo test -p channel --release --test loom` (a few seconds, part of the
//! normal tests; with `RUSTFLAGS="--cfg loom"` it runs the same).
//!
//! Right answer: every byte arrives, in order; nobody touches a byte while the
//! other side does (loom's cells tell); nobody sleeps for ever (loom reports a
//! deadlock: this covers a lost wake-up, and writer and reader asleep at once);
//! an end of the peer is noticed, after what it had written.
//!
//! That it can fail is tested, too: without the sequentially consistent fence,
//! without the second look, and without release or acquire,
//! loom must find the fault. (By hand, each of the four fences of `ring.rs` was
//! taken out alone: each time at least two of these tests fail.)
#![allow(unsafe_code, missing_docs)]
// Not loom's Arc: its drop fails when a model has found its fault. loom runs all on
// one thread.
#![allow(clippy::arc_with_non_send_sync)]

use channel::Error;
use channel::ring::{Bell, Gone, Memory, Position, Reader, Side, Writer};
use contract::ring::{BESIDE_WORDS, TAG_SHIFT};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::sync::Arc;

/// What to break.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NoFence,
    NoSecondLook,
    LateClear,
    RelaxedStores,
    RelaxedLoads,
    FewTags,
    NoThirdLook,
    NoTag,
}

struct Shared {
    positions: [AtomicU64; 2],
    flags: [AtomicU32; 2],
    beside: AtomicU64,
    bytes: Vec<UnsafeCell<u8>>,
}

impl Shared {
    fn new(size: usize) -> Arc<Shared> {
        Arc::new(Shared {
            positions: [AtomicU64::new(0), AtomicU64::new(0)],
            flags: [AtomicU32::new(0), AtomicU32::new(0)],
            beside: AtomicU64::new(0),
            bytes: (0..size).map(|_| UnsafeCell::new(0)).collect(),
        })
    }
}

const BELOW_TAG: u64 = (1 << TAG_SHIFT) - 1;

/// One side's view of the shared memory.
struct View {
    shared: Arc<Shared>,
    fault: Fault,
    fenced_to_sleep: Cell<bool>,
    flag_set: Cell<bool>,
    last: Cell<u64>,
    third: Cell<bool>,
}

impl View {
    fn new(shared: &Arc<Shared>, fault: Fault) -> View {
        View {
            shared: Arc::clone(shared),
            fault,
            fenced_to_sleep: Cell::new(false),
            flag_set: Cell::new(false),
            last: Cell::new(0),
            third: Cell::new(false),
        }
    }

    /// With two tags instead of four, three messages are enough to come round to
    /// the same tag.
    fn blurred(&self, word: u64) -> u64 {
        match self.fault {
            Fault::FewTags | Fault::NoThirdLook => word & !(1 << 63),
            _ => word,
        }
    }

    fn cell(&self, at: u64) -> &UnsafeCell<u8> {
        &self.shared.bytes[at as usize % self.shared.bytes.len()]
    }
}

impl Memory for View {
    fn size(&self) -> u64 {
        self.shared.bytes.len() as u64
    }

    fn load(&self, position: Position, order: Ordering) -> u64 {
        let second = self.fenced_to_sleep.take();
        if second && self.fault == Fault::NoSecondLook {
            return self.last.get();
        }
        if self.third.take() && self.fault == Fault::NoThirdLook {
            return self.last.get();
        }
        let order = match self.fault {
            Fault::RelaxedLoads => Ordering::Relaxed,
            _ => order,
        };
        let value = self.shared.positions[position as usize].load(order);
        self.last.set(value);
        value
    }

    fn store(&self, position: Position, value: u64, order: Ordering) {
        let order = match self.fault {
            Fault::RelaxedStores => Ordering::Relaxed,
            _ => order,
        };
        let value = self.blurred(value);
        self.shared.positions[position as usize].store(value, order);
    }

    /// Messages here are of one word; the others need no checking.
    fn load_beside(&self, n: usize) -> u64 {
        let tag = self.last.get() & !BELOW_TAG;
        if n > 0 {
            return tag;
        }
        let word = self.shared.beside.load(Ordering::Relaxed);
        match self.fault {
            Fault::NoTag => word & BELOW_TAG | tag,
            _ => word,
        }
    }

    fn store_beside(&self, n: usize, value: u64) {
        if n == 0 {
            let value = self.blurred(value);
            self.shared.beside.store(value, Ordering::Relaxed);
        }
    }

    fn order(&self, order: Ordering) {
        self.third.set(order == Ordering::Acquire);
        fence(order);
    }

    fn sleeps(&self, side: Side) -> bool {
        self.shared.flags[side as usize].load(Ordering::Relaxed) != 0
    }

    fn set_sleeps(&self, side: Side, sleeps: bool) {
        self.flag_set.set(sleeps);
        self.shared.flags[side as usize].store(u32::from(sleeps), Ordering::Relaxed);
    }

    fn fence(&self) {
        self.fenced_to_sleep.set(self.flag_set.take());
        if self.fault != Fault::NoFence {
            fence(Ordering::SeqCst);
        }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            // SAFETY: loom fails the test if the other side has access meanwhile.
            self.cell(at).with_mut(|cell| unsafe { *cell = *byte });
        }
    }

    fn take(&self, at: u64, to: &mut [u8]) {
        for (at, byte) in (at..).zip(to) {
            // SAFETY: as above.
            *byte = self.cell(at).with(|cell| unsafe { *cell });
        }
    }

    fn append(&self, at: u64, count: usize, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + count, 0);
        self.take(at, &mut to[start..]);
    }
}

/// One direction of the socket.
struct Wire {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Wire {
    fn new() -> Arc<Wire> {
        Arc::new(Wire {
            state: Mutex::new((false, false)),
            changed: Condvar::new(),
        })
    }

    fn close(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_one();
    }
}

/// One end of the socket. Looking again without sleeping is left out: it is a
/// prefix of what happens without it.
struct Socket {
    mine: Arc<Wire>,
    theirs: Arc<Wire>,
    /// Forgets wake-ups as it begins to wait.
    late: bool,
}

impl Socket {
    fn pair() -> (Socket, Socket) {
        let (a, b) = (Wire::new(), Wire::new());
        let left = Socket {
            mine: Arc::clone(&a),
            theirs: Arc::clone(&b),
            late: false,
        };
        let right = Socket {
            mine: b,
            theirs: a,
            late: false,
        };
        (left, right)
    }
}

impl Bell for Socket {
    fn ring(&self) -> Result<(), Gone> {
        self.theirs.state.lock().unwrap().0 = true;
        self.theirs.changed.notify_one();
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Gone> {
        let mut state = self.mine.state.lock().unwrap();
        match (std::mem::take(&mut state.0), state.1) {
            (false, true) => Err(Gone),
            _ => Ok(()),
        }
    }

    fn wait(&mut self) -> Result<(), Gone> {
        if self.late {
            self.clear()?;
        }
        let mut state = self.mine.state.lock().unwrap();
        while *state == (false, false) {
            state = self.mine.changed.wait(state).unwrap();
        }
        Ok(())
    }

    fn spin(
        &mut self,
        _side: Side,
        _look: impl FnMut() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        Ok(false)
    }
}

impl Socket {
    /// Ends the connection. Not a `Drop`: loom's objects fail outside of the model,
    /// and a model that finds a fault drops everything there.
    fn hang_up(self) {
        self.theirs.close();
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    // Unoptimised, the largest bound takes a minute.
    let most = if cfg!(debug_assertions) { 3 } else { 4 };
    let preemptions = preemptions.min(most);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The writer sends two messages through a ring, the reader takes them.
fn one_way(size: usize, lengths: [usize; 2], fault: Fault) -> impl Fn() + Sync + Send + 'static {
    move || {
        let shared = Shared::new(size);
        let (mut here, mut there) = Socket::pair();
        here.late = fault == Fault::LateClear;
        let mut writer = Writer::new(View::new(&shared, fault));
        let mut reader = Reader::new(View::new(&shared, fault));
        let thread = loom::thread::spawn(move || {
            let mut next = 1..;
            for length in lengths {
                let bytes: Vec<u8> = next.by_ref().take(length).collect();
                writer.write(&mut there, &bytes).unwrap();
                writer.publish(&mut there).unwrap();
            }
        });
        let mut bytes = Vec::new();
        let total: usize = lengths.iter().sum();
        reader.append(&mut here, total, &mut bytes).unwrap();
        let right: Vec<u8> = (1..).take(total).collect();
        assert_eq!(bytes, right);
        assert_eq!(reader.has_bytes(&mut here), Ok(false));
        thread.join().unwrap();
    }
}

/// A request through one ring, an answer through the other, each longer than its
/// ring, over one socket, once or twice.
fn calls(times: usize, length: usize) -> impl Fn() + Sync + Send + 'static {
    move || {
        let (requests, answers) = (Shared::new(2), Shared::new(2));
        let (mut here, mut there) = Socket::pair();
        let mut request_writer = Writer::new(View::new(&requests, Fault::None));
        let mut request_reader = Reader::new(View::new(&requests, Fault::None));
        let mut answer_writer = Writer::new(View::new(&answers, Fault::None));
        let mut answer_reader = Reader::new(View::new(&answers, Fault::None));
        let keeper = loom::thread::spawn(move || {
            for _ in 0..times {
                let mut bytes = Vec::new();
                request_reader
                    .append(&mut there, length, &mut bytes)
                    .unwrap();
                bytes.reverse();
                answer_writer.write(&mut there, &bytes).unwrap();
                answer_writer.publish(&mut there).unwrap();
            }
        });
        for time in 0..times {
            let mut right: Vec<u8> = (0..length).map(|n| (n + time) as u8).collect();
            request_writer.write(&mut here, &right).unwrap();
            request_writer.publish(&mut here).unwrap();
            let mut bytes = Vec::new();
            answer_reader.append(&mut here, length, &mut bytes).unwrap();
            right.reverse();
            assert_eq!(bytes, right);
        }
        keeper.join().unwrap();
    }
}

/// The writer sends messages that may travel beside its position, some of them
/// while the reader has not taken the last one.
fn beside(lengths: &'static [usize], fault: Fault) -> impl Fn() + Sync + Send + 'static {
    move || {
        let shared = Shared::new(4);
        let (mut here, mut there) = Socket::pair();
        let mut writer = Writer::new(View::new(&shared, fault));
        let mut reader = Reader::new(View::new(&shared, fault));
        let thread = loom::thread::spawn(move || {
            let mut next = 1..;
            for length in lengths {
                let mut eight = [0; 8];
                eight
                    .iter_mut()
                    .zip(next.by_ref().take(*length))
                    .for_each(|(to, byte)| *to = byte);
                let mut words = [0; BESIDE_WORDS];
                words[0] = u64::from_le_bytes(eight);
                writer.send(&mut there, &words, *length).unwrap();
            }
        });
        let mut bytes = Vec::new();
        for length in lengths {
            let wanted = |bytes: &[u8]| bytes.len() == *length;
            match reader.take_beside(&mut here, wanted).unwrap() {
                Some(count) => bytes.extend_from_slice(&reader.beside()[..count]),
                None => reader.append(&mut here, *length, &mut bytes).unwrap(),
            }
        }
        let right: Vec<u8> = (1..).take(lengths.iter().sum()).collect();
        assert_eq!(bytes, right);
        thread.join().unwrap();
    }
}

#[test]
fn bytes_beside_arrive() {
    check(4, beside(&[1, 1], Fault::None));
    check(3, beside(&[2, 1, 2], Fault::None));
    check(3, beside(&[1, 1, 1], Fault::FewTags));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_the_third_look_bytes_beside_are_another_messages() {
    check(3, beside(&[1, 1, 1], Fault::NoThirdLook));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_tags_bytes_beside_are_the_next_messages() {
    check(4, beside(&[1, 1], Fault::NoTag));
}

#[test]
fn every_byte_arrives() {
    check(4, one_way(4, [1, 2], Fault::None));
}

#[test]
fn streams_through_a_ring_of_two_bytes() {
    check(4, one_way(2, [3, 1], Fault::None));
}

#[test]
fn calls_are_answered() {
    check(4, calls(1, 1));
    check(2, calls(2, 1));
}

#[test]
fn long_calls_are_answered() {
    check(2, calls(1, 3));
}

/// The writer writes and is gone: the reader gets the bytes, then the end.
#[test]
fn end_comes_after_the_bytes() {
    check(3, || {
        let shared = Shared::new(4);
        let (mut here, mut there) = Socket::pair();
        let mut writer = Writer::new(View::new(&shared, Fault::None));
        let mut reader = Reader::new(View::new(&shared, Fault::None));
        let thread = loom::thread::spawn(move || {
            writer.write(&mut there, &[1, 2]).unwrap();
            writer.publish(&mut there).unwrap();
            there.hang_up();
        });
        let mut bytes = [0; 2];
        assert_eq!(reader.read(&mut here, &mut bytes), Ok(()));
        assert_eq!(bytes, [1, 2]);
        let end = reader.read(&mut here, &mut bytes[..1]);
        assert_eq!(end, Err(Error::Closed));
        thread.join().unwrap();
    });
}

/// The reader is gone: the writer, out of room, gets the end.
#[test]
fn writer_without_reader_ends() {
    check(3, || {
        let shared = Shared::new(2);
        let (here, mut there) = Socket::pair();
        let mut writer = Writer::new(View::new(&shared, Fault::None));
        let thread = loom::thread::spawn(move || {
            let result = writer.write(&mut there, &[1, 2, 3]);
            assert_eq!(result, Err(Error::Closed));
        });
        here.hang_up();
        thread.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_a_wake_up_gets_lost() {
    check(3, one_way(4, [1, 2], Fault::NoFence));
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_second_look_a_wake_up_gets_lost() {
    check(3, one_way(4, [1, 2], Fault::NoSecondLook));
}

#[test]
#[should_panic(expected = "deadlock")]
fn forgotten_late_a_wake_up_gets_lost() {
    check(3, one_way(4, [1, 2], Fault::LateClear));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_release_bytes_are_torn() {
    check(3, one_way(4, [1, 2], Fault::RelaxedStores));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_acquire_bytes_are_torn() {
    check(3, one_way(2, [3, 1], Fault::RelaxedLoads));
}
