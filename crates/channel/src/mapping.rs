//! The shared memory of a channel: a sealed memfd with its mapping, or a range of a device, and a
//! ring in it as [`Memory`]. The contents of the memory are not validated here.
//!
//! Invariant: there are no references to shared bytes, only raw pointers and, for control words,
//! references to atomics; every access stays inside the mapping, whatever the peer does, and the
//! seals, or the device, preserve the size of the mapping.
#![allow(unsafe_code)]

use crate::device::{self, Range};
use crate::ring::{BELOW_TAG, Memory, Position, SMALL_BYTES, Side, Words, bytes_of};
use contract::ring::{
    ANSWER_CONTROL, ANSWER_DATA, ANSWER_RING_BYTES, BESIDE_WORDS, FAILED_OFFSET, MAGIC,
    MAGIC_OFFSET, MAPPING_BYTES, OWED_OFFSET, PERIOD_OFFSET, REQUEST_CONTROL, REQUEST_DATA,
    REQUEST_RING_BYTES, VERSION_OFFSET, WATCH_OFFSET, control,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// A mapping of [`MAPPING_BYTES`] bytes shared with the peer.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    /// The range of a device that it is. Others may have it once the memory is unmapped.
    _range: Option<Range>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and lives until
// drop; access to it goes through atomics and raw copies only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates, sizes, initialises and seals a memfd, and maps it.
    pub(crate) fn create() -> io::Result<(Mapping, OwnedFd)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string with a terminating zero.
        let fd = check(unsafe { libc::memfd_create(c"confide-channel".as_ptr(), flags) })?;
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain system calls on an open descriptor, here and below.
        check(unsafe { libc::ftruncate(fd.as_raw_fd(), MAPPING_BYTES as libc::off_t) })?;
        // SAFETY: as above.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        let mapping = Mapping::map(fd.as_fd(), 0)?;
        mapping.begin();
        Ok((mapping, fd))
    }

    /// Maps and initialises a range of a device.
    pub(crate) fn create_in(range: Range) -> io::Result<Mapping> {
        let mut mapping = Mapping::map(range.as_fd(), range.start())?;
        mapping._range = Some(range);
        // SAFETY: the whole mapping, to which there are no references.
        unsafe { mapping.base.as_ptr().write_bytes(0, MAPPING_BYTES) };
        mapping.begin();
        Ok(mapping)
    }

    fn begin(&self) {
        self.word32(MAGIC_OFFSET).store(MAGIC, Ordering::Relaxed);
        self.word32(VERSION_OFFSET)
            .store(contract::VERSION, Ordering::Release);
    }

    /// Maps a memfd created by the peer, after checking that it cannot shrink (an access would
    /// raise SIGBUS) and has the expected layout.
    pub(crate) fn open(fd: BorrowedFd<'_>) -> io::Result<Mapping> {
        let refuse = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        // SAFETY: plain system call; fails with EINVAL on other than memfds.
        let seals = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & SEALS != SEALS {
            return refuse("shared memory is not sealed");
        }
        // SAFETY: an all-zero stat is a valid value of a plain C struct.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid for one stat.
        check(unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) })?;
        if stat.st_size != MAPPING_BYTES as libc::off_t {
            return refuse("shared memory has the wrong size");
        }
        let mapping = Mapping::map(fd, 0)?;
        mapping.check()?;
        Ok(mapping)
    }

    /// Maps the range with this number of a device.
    pub(crate) fn open_in(device: &File, number: u32) -> io::Result<Mapping> {
        let start = device::start(number);
        if device.metadata()?.len() < start + MAPPING_BYTES as u64 {
            let what = "the device has no such range";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let mapping = Mapping::map(device.as_fd(), start)?;
        mapping.check()?;
        Ok(mapping)
    }

    fn check(&self) -> io::Result<()> {
        if self.word32(MAGIC_OFFSET).load(Ordering::Acquire) != MAGIC
            || self.word32(VERSION_OFFSET).load(Ordering::Acquire) != contract::VERSION
        {
            let what = "shared memory has the wrong magic number or version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }

    /// Publishes the current period to the backend ([`PERIOD_OFFSET`]).
    pub(crate) fn set_period(&self, period: u64) {
        self.word64(PERIOD_OFFSET).store(period, Ordering::SeqCst);
    }

    /// Bytes of requests that the backend has published, as it says.
    pub(crate) fn sent(&self) -> u64 {
        let word = self.word64(REQUEST_CONTROL + control::WRITTEN);
        word.load(Ordering::SeqCst) & BELOW_TAG
    }

    /// Publishes whether the channel is recorded ([`WATCH_OFFSET`]).
    pub(crate) fn set_watch(&self, word: u64) {
        self.word64(WATCH_OFFSET).store(word, Ordering::SeqCst);
    }

    /// Publishes whether the WAL lacks something ([`OWED_OFFSET`]).
    pub(crate) fn set_owed(&self, owed: bool) {
        self.word64(OWED_OFFSET)
            .store(u64::from(owed), Ordering::SeqCst);
    }

    /// Publishes whether an error is to be asked for ([`FAILED_OFFSET`]).
    pub(crate) fn set_failed(&self, failed: bool) {
        self.word64(FAILED_OFFSET)
            .store(u64::from(failed), Ordering::SeqCst);
    }

    /// The period that the keeper has published.
    pub(crate) fn period(&self) -> u64 {
        self.word64(PERIOD_OFFSET).load(Ordering::SeqCst)
    }

    fn map(fd: BorrowedFd<'_>, start: u64) -> io::Result<Mapping> {
        let start = libc::off_t::try_from(start).map_err(|_| io::ErrorKind::InvalidInput)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // Populate, since the ring will use all of its pages anyway.
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps
        // nothing; the size is not 0.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                MAPPING_BYTES,
                protection,
                flags,
                fd.as_raw_fd(),
                start,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Mapping { base, _range: None })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset <= MAPPING_BYTES && bytes <= MAPPING_BYTES - offset);
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset) }
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        let word = self.at(offset, 4).cast::<u32>();
        assert!(word.is_aligned());
        // SAFETY: inside the mapping, which outlives &self, and aligned. This
        // process accesses the word by atomics only; what the other process does
        // cannot be undefined behaviour of ours: the kernel maps plain memory and
        // an aligned load or store of it is one machine access.
        unsafe { AtomicU32::from_ptr(word) }
    }

    fn word64(&self, offset: usize) -> &AtomicU64 {
        let word = self.at(offset, 8).cast::<u64>();
        assert!(word.is_aligned());
        // SAFETY: as for `word32`.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size; nobody holds a pointer into it
        // any more (rings hold an Arc of this).
        unsafe { libc::munmap(self.base.as_ptr().cast(), MAPPING_BYTES) };
    }
}

/// One ring in a mapping.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Keeps the pointers below valid.
    _mapping: Arc<Mapping>,
    words: NonNull<u8>,
    data: NonNull<u8>,
    size: usize,
}

// SAFETY: the pointers point into the mapping, which is Send and Sync and kept
// alive by the Arc.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring from backend to keeper.
    pub(crate) fn request(mapping: &Arc<Mapping>) -> Ring {
        Ring::new(mapping, REQUEST_CONTROL, REQUEST_DATA, REQUEST_RING_BYTES)
    }

    /// The ring from keeper to backend.
    pub(crate) fn answer(mapping: &Arc<Mapping>) -> Ring {
        Ring::new(mapping, ANSWER_CONTROL, ANSWER_DATA, ANSWER_RING_BYTES)
    }

    fn new(mapping: &Arc<Mapping>, words: usize, data: usize, size: usize) -> Ring {
        assert!(size.is_power_of_two());
        // Checks once that all control words are inside the mapping and aligned.
        for word in [control::WRITTEN, control::READ] {
            let _ = mapping.word64(words + word);
        }
        for word in [control::READER_SLEEPS, control::WRITER_SLEEPS] {
            let _ = mapping.word32(words + word);
        }
        let words = mapping.at(words, control::BYTES);
        let data = mapping.at(data, size);
        // SAFETY: `at` gives pointers into a mapping, which is not at address 0.
        let (words, data) =
            unsafe { (NonNull::new_unchecked(words), NonNull::new_unchecked(data)) };
        Ring {
            _mapping: Arc::clone(mapping),
            words,
            data,
            size,
        }
    }

    #[inline]
    fn position(&self, position: Position) -> &AtomicU64 {
        let offset = match position {
            Position::Written => control::WRITTEN,
            Position::Read => control::READ,
        };
        // SAFETY: checked in `new`; see `Mapping::word32` for the sharing.
        unsafe { AtomicU64::from_ptr(self.words.as_ptr().add(offset).cast()) }
    }

    #[inline]
    fn beside(&self, word: usize) -> &AtomicU64 {
        assert!(word < BESIDE_WORDS);
        let offset = control::BESIDE + 8 * word;
        // SAFETY: between the words checked in `new`; see `Mapping::word32`.
        unsafe { AtomicU64::from_ptr(self.words.as_ptr().add(offset).cast()) }
    }

    #[inline]
    fn flag(&self, side: Side) -> &AtomicU32 {
        let offset = match side {
            Side::Reader => control::READER_SLEEPS,
            Side::Writer => control::WRITER_SLEEPS,
        };
        // SAFETY: checked in `new`; see `Mapping::word32` for the sharing.
        unsafe { AtomicU32::from_ptr(self.words.as_ptr().add(offset).cast()) }
    }

    /// Offset of `count` bytes at a position, and how many of them precede the end of the ring; the
    /// rest is at its start.
    #[inline]
    fn place(&self, at: u64, count: usize) -> (usize, usize) {
        assert!(count <= self.size);
        let offset = (at as usize) & (self.size - 1);
        (offset, count.min(self.size - offset))
    }

    /// Copies `count` bytes at a position to private memory.
    ///
    /// # Safety
    /// `to` must be valid for writes of `count` bytes.
    #[inline]
    unsafe fn copy_out(&self, at: u64, to: *mut u8, count: usize) {
        let (offset, first) = self.place(at, count);
        let data = self.data.as_ptr();
        // SAFETY: the source is inside the ring by `place`, the destination is valid by the
        // caller's promise, and they do not overlap because one is shared memory and the other
        // private. The peer may write to the source meanwhile, in violation of the contract. In
        // terms of the language that is a race with another process, on which it makes no
        // statement. In practice the copy is a call of memcpy or plain moves, which yields
        // arbitrary bytes; any `u8` is valid, and we copy once and examine only the copy. Nothing
        // is read back from the source.
        unsafe {
            data.add(offset).copy_to_nonoverlapping(to, first);
            if first < count {
                data.copy_to_nonoverlapping(to.add(first), count - first);
            }
        }
    }
}

impl Memory for Ring {
    #[inline]
    fn size(&self) -> u64 {
        self.size as u64
    }

    #[inline]
    fn load(&self, position: Position, order: Ordering) -> u64 {
        self.position(position).load(order)
    }

    #[inline]
    fn store(&self, position: Position, value: u64, order: Ordering) {
        self.position(position).store(value, order);
    }

    #[inline]
    fn sleeps(&self, side: Side) -> bool {
        self.flag(side).load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn set_sleeps(&self, side: Side, sleeps: bool) {
        self.flag(side).store(u32::from(sleeps), Ordering::Relaxed);
    }

    #[inline]
    fn load_beside(&self, word: usize) -> u64 {
        self.beside(word).load(Ordering::Relaxed)
    }

    #[inline]
    fn store_beside(&self, word: usize, value: u64) {
        self.beside(word).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn order(&self, order: Ordering) {
        fence(order);
    }

    #[inline]
    fn fence(&self) {
        // `fence` compiles to an instruction that waits longer, for stores that do not matter here.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: changes nothing; a locked access orders all other accesses, for the compiler as
        // well (no `nomem`).
        unsafe {
            std::arch::asm!("lock or dword ptr [rsp], 0")
        }
        #[cfg(not(target_arch = "x86_64"))]
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn put(&self, at: u64, bytes: &[u8]) {
        let (offset, first) = self.place(at, bytes.len());
        let data = self.data.as_ptr();
        let from = bytes.as_ptr();
        // SAFETY: the destination is inside the ring by `place`, the source is a slice, and they do
        // not overlap because one is shared memory and the other private. If the peer accesses the
        // destination meanwhile, it sees or leaves other bytes there, which harms only the peer,
        // since we never read them back.
        unsafe {
            data.add(offset).copy_from_nonoverlapping(from, first);
            if first < bytes.len() {
                data.copy_from_nonoverlapping(from.add(first), bytes.len() - first);
            }
        }
    }

    #[inline]
    fn put_small(&self, at: u64, words: &Words, count: usize) {
        let (offset, first) = self.place(at, SMALL_BYTES);
        if first < SMALL_BYTES {
            return self.put(at, &bytes_of(words)[..count]);
        }
        // SAFETY: as for `put`. Copies whole words, because a copy of constant length is faster.
        let to = unsafe { self.data.as_ptr().add(offset) };
        for (n, word) in words.iter().enumerate() {
            // SAFETY: within the bytes that `place` has found room for.
            unsafe { to.cast::<u64>().add(n).write_unaligned(word.to_le()) };
        }
    }

    #[inline]
    fn prepare(&self, at: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            let (offset, _) = self.place(at, SMALL_BYTES);
            // SAFETY: inside the ring; a prefetch has no side effects.
            let at = unsafe { self.data.as_ptr().add(offset) };
            // SAFETY: a prefetch accepts any address.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
        }
    }

    #[inline]
    fn take(&self, at: u64, to: &mut [u8]) {
        // SAFETY: a slice is valid for writes of its length.
        unsafe { self.copy_out(at, to.as_mut_ptr(), to.len()) };
    }

    #[inline]
    fn append(&self, at: u64, count: usize, to: &mut Vec<u8>) {
        to.reserve(count);
        let length = to.len();
        // SAFETY: `reserve` made `count` bytes of capacity behind `length`; the
        // copy initialises them all before the length covers them.
        unsafe {
            self.copy_out(at, to.as_mut_ptr().add(length), count);
            to.set_len(length + count);
        }
    }
}
