//! One byte ring: which side may move which position when, and which side wakes the other.
//!
//! Generic over the shared memory ([`Memory`]) and the way to wake and wait ([`Bell`]), so that the
//! same code runs over a memfd and a socket and in the model checker (`tests/loom.rs`). Transports
//! bytes, not messages.
//!
//! A small message that somebody waits for is stored in the ring and also inline, next to the
//! writer's position (contract, `ring`), so that one cache line carries both.
//!
//! Invariants. A side never reads its own position back from shared memory. The peer's position is
//! checked each time it is loaded. A side sleeps only after it has (1) published everything it did,
//! (2) forgotten earlier wake-ups, (3) set its sleep flag, (4) executed a sequentially consistent
//! fence, and (5) looked at the peer's position once more. The peer moves its position, executes a
//! fence, and then looks at the flag. So at least one of the two sees what the other did. Inline
//! words are valid only if they carry the position's tag, and that tag was the same before and after
//! they were copied. The tag distinguishes them from words of the next message, whose position is not
//! stored yet, and the position distinguishes them from those of any later message.

use crate::{Error, Violation};
use contract::ring::{BESIDE_BYTES, BESIDE_WORDS, TAG_BYTES, TAG_SHIFT, tag};
use std::sync::atomic::Ordering;

/// The two positions of a ring, in bytes since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Bytes written, with a tag; stored by the writer.
    Written,
    /// Bytes read; stored by the reader.
    Read,
}

/// The two sides of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Sleeps until there is something to read.
    Reader,
    /// Sleeps until there is room.
    Writer,
}

/// Memory that two sides share: control words and bytes.
pub trait Memory {
    /// Size of the ring in bytes, a power of two; does not change.
    fn size(&self) -> u64;
    /// Loads a position.
    fn load(&self, position: Position, order: Ordering) -> u64;
    /// Stores a position.
    fn store(&self, position: Position, value: u64, order: Ordering);
    /// Whether the sleep flag of a side is set (relaxed).
    fn sleeps(&self, side: Side) -> bool;
    /// Sets or clears the sleep flag of a side (relaxed).
    fn set_sleeps(&self, side: Side, sleeps: bool);
    /// Loads a word of inline bytes (relaxed).
    fn load_beside(&self, word: usize) -> u64;
    /// Stores a word of inline bytes (relaxed).
    fn store_beside(&self, word: usize, value: u64);
    /// A sequentially consistent fence.
    fn fence(&self);
    /// A fence with the given ordering.
    fn order(&self, order: Ordering);
    /// Copies bytes, at most the ring's size, to a position.
    fn put(&self, at: u64, bytes: &[u8]);
    /// Copies the first `count` bytes of a small message to a position. There is room for all words
    /// of the message, so the rest may be copied as well.
    fn put_small(&self, at: u64, words: &Words, count: usize) {
        self.put(at, &bytes_of(words)[..count]);
    }
    /// Hint that bytes will soon be copied to a position.
    fn prepare(&self, _at: u64) {}
    /// Copies bytes, at most the ring's size, from a position.
    fn take(&self, at: u64, to: &mut [u8]);
    /// Appends `count` bytes, at most the ring's size, from a position.
    fn append(&self, at: u64, count: usize, to: &mut Vec<u8>);
}

/// The peer has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// How a side wakes its peer and waits for it.
pub trait Bell {
    /// Wakes the peer. Never blocks.
    fn ring(&self) -> Result<(), Gone>;
    /// Forgets that the peer has rung. To be called before a side says that it sleeps.
    fn clear(&mut self) -> Result<(), Gone>;
    /// Sleeps until the peer rings, has rung since that was forgotten, or has gone. May return
    /// spuriously.
    fn wait(&mut self) -> Result<(), Gone>;
    /// Polls `look` for a short time, as long as that pays off. Returns its last result.
    fn spin(
        &mut self,
        side: Side,
        look: impl FnMut() -> Result<bool, Error>,
    ) -> Result<bool, Error>;
    /// To be called after the sleep that followed the last spin.
    fn woken(&mut self, _side: Side) {}
}

/// A side publishes its position at least once per this fraction of the ring.
const PUBLISH_PART: u64 = 4;

/// Largest message that can be sent inline, in bytes.
pub const SMALL_BYTES: usize = 8 * BESIDE_WORDS;

/// A small message padded with zeros. It consists of words because a message that is built and
/// examined in registers arrives earlier: a word just stored in smaller pieces cannot be loaded
/// until those stores have completed.
pub type Words = [u64; BESIDE_WORDS];

/// The bytes of a small message.
#[inline]
pub(crate) fn bytes_of(words: &Words) -> [u8; SMALL_BYTES] {
    let mut bytes = [0; SMALL_BYTES];
    let (eights, _) = bytes.as_chunks_mut();
    for (to, word) in eights.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

/// Mask for the part of a word below its tag.
pub(crate) const BELOW_TAG: u64 = (1 << TAG_SHIFT) - 1;

/// Converts words of 8 bytes into words of 7.
#[inline]
fn spread(eights: &Words) -> Words {
    let mut before = 0;
    std::array::from_fn(|n| {
        let here = eights[n];
        let shift = 8 * n as u32;
        let low = if n == 0 { 0 } else { before >> (64 - shift) };
        before = here;
        (here << shift | low) & BELOW_TAG
    })
}

/// Converts words of 7 bytes into words of 8.
#[inline]
fn gather(sevens: &Words) -> Words {
    std::array::from_fn(|n| {
        let shift = 8 * n as u32;
        let next = sevens.get(n + 1).copied().unwrap_or(0);
        (sevens[n] & BELOW_TAG) >> shift | next << (TAG_SHIFT - shift)
    })
}

/// The writing side of a ring.
pub struct Writer<M> {
    memory: M,
    written: u64,
    published: u64,
    /// Number of messages sent inline.
    besides: u64,
    /// The reader's position as last loaded.
    read: u64,
}

impl<M: Memory> Writer<M> {
    /// The writer of a new ring.
    pub fn new(memory: M) -> Self {
        Writer {
            memory,
            written: 0,
            published: 0,
            besides: 0,
            read: 0,
        }
    }

    fn room(&self) -> u64 {
        self.memory.size() - (self.written - self.read)
    }

    /// Loads and checks the reader's position. Acquire: the reader's copies of the bytes before its
    /// position happen before we overwrite them.
    fn refresh(&mut self) -> Result<(), Error> {
        let read = self.memory.load(Position::Read, Ordering::Acquire);
        if read < self.read || read > self.written {
            return Err(Error::Violation(Violation::Position));
        }
        self.read = read;
        Ok(())
    }

    /// Writes bytes to the ring, waiting for room if necessary. The reader sees them after
    /// [`Writer::publish`] at the latest.
    #[inline]
    pub fn write(&mut self, bell: &mut impl Bell, bytes: &[u8]) -> Result<(), Error> {
        let length = bytes.len() as u64;
        if length <= self.room() && length <= self.memory.size() / PUBLISH_PART {
            self.memory.put(self.written, bytes);
            self.written += length;
            return Ok(());
        }
        self.stream(bell, bytes)
    }

    /// Like [`Writer::write`], for the first `count` bytes of a small message.
    #[inline]
    pub fn write_small(
        &mut self,
        bell: &mut impl Bell,
        words: &Words,
        count: usize,
    ) -> Result<(), Error> {
        if self.room() < SMALL_BYTES as u64 {
            return self.write(bell, &bytes_of(words)[..count]);
        }
        self.memory.put_small(self.written, words, count);
        self.written += count as u64;
        Ok(())
    }

    #[cold]
    fn stream(&mut self, bell: &mut impl Bell, mut bytes: &[u8]) -> Result<(), Error> {
        let part = (self.memory.size() / PUBLISH_PART).max(1);
        while !bytes.is_empty() {
            if self.room() < bytes.len() as u64 {
                self.refresh()?;
                if self.room() == 0 {
                    self.wait(bell)?;
                }
            }
            let count = self.room().min(part).min(bytes.len() as u64) as usize;
            let (now, later) = bytes.split_at(count);
            self.memory.put(self.written, now);
            self.written += count as u64;
            if self.written - self.published >= part {
                self.publish(bell)?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Makes everything written visible to the reader, and wakes it if it sleeps.
    #[inline]
    pub fn publish(&mut self, bell: &mut impl Bell) -> Result<(), Error> {
        if self.published == self.written {
            return Ok(());
        }
        self.publish_with(bell, 0)
    }

    /// Writes and publishes a small message of `count` bytes that the reader waits for. If it is
    /// short enough, it is also sent inline.
    #[inline]
    pub fn send(&mut self, bell: &mut impl Bell, words: &Words, count: usize) -> Result<(), Error> {
        self.write_small(bell, words, count)?;
        let alone = self.written - self.published == count as u64;
        if !alone || count == 0 || count > BESIDE_BYTES {
            return self.publish(bell);
        }
        self.besides += 1;
        let tag = tag(count, self.besides) << TAG_SHIFT;
        // A reader that sees one of these words also sees everything published before.
        self.memory.order(Ordering::Release);
        for (n, word) in spread(words).iter().enumerate() {
            self.memory.store_beside(n, word | tag);
        }
        self.publish_with(bell, tag)?;
        self.memory.prepare(self.written);
        Ok(())
    }

    #[inline]
    fn publish_with(&mut self, bell: &mut impl Bell, tag: u64) -> Result<(), Error> {
        self.published = self.written;
        let word = self.written & BELOW_TAG | tag;
        self.memory
            .store(Position::Written, word, Ordering::Release);
        self.memory.fence();
        if self.memory.sleeps(Side::Reader) {
            self.memory.set_sleeps(Side::Reader, false);
            bell.ring().map_err(|Gone| Error::Closed)?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<bool, Error> {
        self.refresh()?;
        Ok(self.room() > 0)
    }

    /// Sleeps once, unless there is room. Returns whether there is.
    fn sleep(&mut self, bell: &mut impl Bell) -> Result<bool, Error> {
        bell.clear().map_err(|Gone| Error::Closed)?;
        self.memory.set_sleeps(Side::Writer, true);
        self.memory.fence();
        if self.look()? {
            return Ok(true);
        }
        bell.wait().map_err(|Gone| Error::Closed)?;
        self.look()
    }

    /// Waits until there is room.
    fn wait(&mut self, bell: &mut impl Bell) -> Result<(), Error> {
        self.publish(bell)?;
        if bell.spin(Side::Writer, || self.look())? {
            return Ok(());
        }
        while !self.sleep(bell)? {}
        self.memory.set_sleeps(Side::Writer, false);
        bell.woken(Side::Writer);
        Ok(())
    }
}

/// The reading side of a ring.
pub struct Reader<M> {
    memory: M,
    read: u64,
    published: u64,
    /// The writer's position as last loaded, without and with its tag.
    written: u64,
    word: u64,
    /// Inline bytes, their number, and the position of the first.
    beside: [u8; SMALL_BYTES],
    beside_count: usize,
    beside_at: u64,
    /// The peer has gone; nothing more will be written.
    ended: bool,
}

impl<M: Memory> Reader<M> {
    /// The reader of a new ring.
    pub fn new(memory: M) -> Self {
        Reader {
            memory,
            read: 0,
            published: 0,
            written: 0,
            word: 0,
            beside: [0; SMALL_BYTES],
            beside_count: 0,
            beside_at: 0,
            ended: false,
        }
    }

    /// Number of bytes read.
    pub fn position(&self) -> u64 {
        self.read
    }

    fn available(&self) -> u64 {
        self.written - self.read
    }

    /// Loads and checks the writer's position. Acquire: the writer's copies of the bytes before its
    /// position happen before we read them.
    #[inline]
    fn refresh(&mut self) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        let word = self.memory.load(Position::Written, Ordering::Acquire);
        if word == self.word {
            return Ok(());
        }
        self.arrived(word)
    }

    /// Checks a new position.
    fn arrived(&mut self, word: u64) -> Result<(), Error> {
        let written = word & BELOW_TAG;
        let beside = (word >> TAG_SHIFT & TAG_BYTES) as usize;
        if written < self.written
            || written - self.read > self.memory.size()
            || beside > BESIDE_BYTES
        {
            return Err(Error::Violation(Violation::Position));
        }
        if beside > 0 && written > self.written && written - self.read == beside as u64 {
            self.copy_beside(word, beside);
        }
        self.word = word;
        self.written = written;
        Ok(())
    }

    /// Copies the inline bytes, unless the writer changes them meanwhile.
    #[inline]
    fn copy_beside(&mut self, word: u64, count: usize) {
        self.beside_count = 0;
        let sevens = std::array::from_fn(|n| self.memory.load_beside(n));
        let other = sevens.iter().fold(0, |other, seven| other | seven ^ word) & !BELOW_TAG;
        self.memory.order(Ordering::Acquire);
        if other == 0 && self.memory.load(Position::Written, Ordering::Relaxed) == word {
            self.beside = bytes_of(&gather(&sevens));
            self.beside_count = count;
            self.beside_at = self.read;
        }
    }

    /// Waits for bytes. If everything that has arrived is inline and `wanted` accepts it, consumes
    /// it and returns its length. The bytes are in [`Reader::beside`] until more is read.
    #[inline]
    pub fn take_beside(
        &mut self,
        bell: &mut impl Bell,
        wanted: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Option<usize>, Error> {
        if self.available() == 0 && !self.look()? {
            self.wait(bell)?;
        }
        let count = self.beside_count;
        let alone = self.beside_at == self.read && self.available() == count as u64;
        if !alone || count == 0 || !self.beside.get(..count).is_some_and(wanted) {
            return Ok(None);
        }
        self.advance(bell, count);
        Ok(Some(count))
    }

    /// The last inline bytes, padded with zeros.
    #[inline]
    pub fn beside(&self) -> &[u8; SMALL_BYTES] {
        &self.beside
    }

    /// The next bytes, if they are among the copied inline bytes.
    #[inline]
    fn here(&self, count: usize) -> Option<&[u8]> {
        let skip = usize::try_from(self.read - self.beside_at).ok()?;
        let here = self.beside.get(..self.beside_count)?;
        here.get(skip..skip.checked_add(count)?)
    }

    #[inline]
    fn look(&mut self) -> Result<bool, Error> {
        self.refresh()?;
        Ok(self.available() > 0)
    }

    /// Whether there is a byte to read. If not, everything read has been published.
    #[inline]
    pub fn has_bytes(&mut self, bell: &mut impl Bell) -> Result<bool, Error> {
        if self.available() > 0 || self.look()? {
            return Ok(true);
        }
        self.publish(bell);
        Ok(false)
    }

    /// Fills `to` from the ring, waiting for bytes if necessary.
    #[inline]
    pub fn read(&mut self, bell: &mut impl Bell, to: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let count = self.ready(bell, rest.len())?;
            match self.here(count) {
                Some(bytes) => rest[..count].copy_from_slice(bytes),
                None => self.memory.take(self.read, &mut rest[..count]),
            }
            self.advance(bell, count);
            done += count;
        }
        Ok(())
    }

    /// Appends `length` bytes from the ring, waiting for bytes if necessary. `to` grows with what
    /// arrives, not with the announced length.
    #[inline]
    pub fn append(
        &mut self,
        bell: &mut impl Bell,
        length: usize,
        to: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut missing = length;
        while missing > 0 {
            let count = self.ready(bell, missing)?;
            match self.here(count) {
                Some(bytes) => to.extend_from_slice(bytes),
                None => self.memory.append(self.read, count, to),
            }
            self.advance(bell, count);
            missing -= count;
        }
        Ok(())
    }

    /// How many of `wanted` (not 0) bytes can be copied now; waits for at least one.
    #[inline]
    fn ready(&mut self, bell: &mut impl Bell, wanted: usize) -> Result<usize, Error> {
        if self.available() == 0 && !self.look()? {
            self.wait(bell)?;
        }
        Ok(self.available().min(wanted as u64) as usize)
    }

    #[inline]
    fn advance(&mut self, bell: &mut impl Bell, count: usize) {
        self.read += count as u64;
        if self.read - self.published >= (self.memory.size() / PUBLISH_PART).max(1) {
            self.publish(bell);
        }
    }

    /// Makes the space of everything read available to the writer, and wakes it if it sleeps. A
    /// peer that has gone is noticed when there is nothing left to read.
    fn publish(&mut self, bell: &mut impl Bell) {
        if self.published == self.read {
            return;
        }
        self.published = self.read;
        self.memory
            .store(Position::Read, self.read, Ordering::Release);
        self.memory.fence();
        if self.memory.sleeps(Side::Writer) {
            self.memory.set_sleeps(Side::Writer, false);
            let _ = bell.ring();
        }
    }

    /// Sleeps once, unless there is something to read. Returns whether there is.
    fn sleep(&mut self, bell: &mut impl Bell) -> Result<bool, Error> {
        bell.clear().map_err(|Gone| Error::Closed)?;
        self.memory.set_sleeps(Side::Reader, true);
        self.memory.fence();
        if self.look()? {
            return Ok(true);
        }
        bell.wait().map_err(|Gone| Error::Closed)?;
        self.look()
    }

    /// Waits until there is something to read.
    fn wait(&mut self, bell: &mut impl Bell) -> Result<(), Error> {
        if self.ended {
            return Err(Error::Closed);
        }
        if bell.spin(Side::Reader, || self.look())? {
            return Ok(());
        }
        // No earlier: the writer has had three quarters of the ring.
        self.publish(bell);
        loop {
            match self.sleep(bell) {
                Ok(true) => break,
                Ok(false) => {}
                Err(Error::Closed) => {
                    self.refresh()?;
                    self.ended = true;
                    if self.available() == 0 {
                        return Err(Error::Closed);
                    }
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.memory.set_sleeps(Side::Reader, false);
        bell.woken(Side::Reader);
        Ok(())
    }
}
