//! Layout of the shared memory between one backend and the keeper.
//!
//! One memfd holds a header page and two byte rings, one per direction. A ring
//! is a stream of [messages](crate::message): the writer copies bytes in and
//! advances `written`, the reader copies bytes out (into private memory, before
//! it looks at them) and advances `read`. Both positions count bytes since the
//! start and never wrap (64 bits); the place in the ring is the position modulo
//! its size, a power of two. A message may be longer than the ring: it streams.
//!
//! A small message for which somebody waits stands, besides, right beside the
//! writer's position in the same cache line, so that one line brings both: in
//! words of 7 bytes and a tag. The word at `WRITTEN` has a tag, too: how many bytes
//! stand beside (0: none), and a count, so that two such messages after one another
//! have different tags. The reader copies the words, then loads the word at
//! `WRITTEN` again: only if that is the same, and all tags are, has it the message;
//! else, and whenever it has not read all that comes before, it reads the ring.
//!
//! Each ring has two sleep flags. A side that is about to sleep sets its flag,
//! then looks at the ring once more, then waits for a byte on the Unix socket
//! of the channel; the other side, after it has moved its position, clears a
//! set flag and sends one byte. Sequentially consistent fences between the store and
//! the look make a lost wake-up impossible. A writer may put off the look, for messages that
//! nobody waits for, until its next message that somebody does wait for: a reader that is
//! awake has seen them by then, and one that sleeps is woken once for all. End of file on
//! the socket means that the peer is gone.

/// Size of the header page in bytes.
pub const HEADER_BYTES: usize = 4096;
/// Size of the ring from backend to keeper in bytes.
pub const REQUEST_RING_BYTES: usize = 256 * 1024;
/// Size of the ring from keeper to backend in bytes.
pub const ANSWER_RING_BYTES: usize = 256 * 1024;
/// Size of the whole mapping in bytes.
pub const MAPPING_BYTES: usize = HEADER_BYTES + REQUEST_RING_BYTES + ANSWER_RING_BYTES;

/// Offsets of one ring's control words from the start of its control block.
/// Each word has a cache line of its own.
pub mod control {
    /// `u64`: bytes written since the start, and a [`tag`](super::tag); only the
    /// writer stores it.
    pub const WRITTEN: usize = 0;
    /// [`BESIDE_WORDS`](super::BESIDE_WORDS) times `u64`: bytes and a tag; only the
    /// writer stores them.
    pub const BESIDE: usize = 8;
    /// `u32`: the reader sleeps until there is something to read.
    pub const READER_SLEEPS: usize = 64;
    /// `u64`: bytes read since the start; only the reader stores it.
    pub const READ: usize = 128;
    /// `u32`: the writer sleeps until there is room.
    pub const WRITER_SLEEPS: usize = 192;
    /// Size of one control block.
    pub const BYTES: usize = 256;
}

/// Words beside `WRITTEN`: the rest of its cache line.
pub const BESIDE_WORDS: usize = 7;
/// Bytes that may stand beside `WRITTEN`.
pub const BESIDE_BYTES: usize = 7 * BESIDE_WORDS;
/// Where the tag begins in a word; what is below is a position, or bytes.
pub const TAG_SHIFT: u32 = 56;
/// The part of a tag that is a number of bytes.
pub const TAG_BYTES: u64 = 63;

/// The tag of the `count`th message that stands beside its position.
#[inline]
pub const fn tag(bytes: usize, count: u64) -> u64 {
    bytes as u64 & TAG_BYTES | (count & 3) << 6
}

/// Offset of the `u32` magic number in the header page.
pub const MAGIC_OFFSET: usize = 0;
/// Offset of the `u32` contract version in the header page.
pub const VERSION_OFFSET: usize = 4;
/// Offset of the `u64` number of the period in the header page; only the keeper stores it. What
/// the keeper has said of delivery envelopes in a period holds as long as that lasts; 0: nothing
/// holds, and each value is asked for.
pub const PERIOD_OFFSET: usize = 64;
/// Offset of the `u64` in the header page by which the keeper says that it records the channel: 0: it
/// does not; another number for each file of a recording. Constants that were sent before are then sent
/// again when they are used, statements tell their snapshots, and with [`WATCH_STATEMENTS`] the keeper is
/// told of each statement. Only the keeper stores it.
pub const WATCH_OFFSET: usize = 72;
/// Bit of the word there: messages `Statement` are wanted.
pub const WATCH_STATEMENTS: u64 = 1;
/// Offset of the `u64` in the header page by which the keeper says that there is something that the WAL
/// does not have and that the backend has used: it asks for it at the end of its statement (`PolicyLog`).
/// Only the keeper stores it.
pub const OWED_OFFSET: usize = 80;
/// Offset of the `u64` in the header page by which the keeper says that a one-way request has failed and that no answer has
/// told its error, as those of batches do not: the backend asks for it at the end of its statement (`Fence`). Only the
/// keeper stores it.
pub const FAILED_OFFSET: usize = 88;
/// Magic number of the mapping: "CFDR", little-endian.
pub const MAGIC: u32 = u32::from_le_bytes(*b"CFDR");
/// Offset of the control block of the request ring.
pub const REQUEST_CONTROL: usize = 256;
/// Offset of the control block of the answer ring.
pub const ANSWER_CONTROL: usize = REQUEST_CONTROL + control::BYTES;
/// Offset of the bytes of the request ring.
pub const REQUEST_DATA: usize = HEADER_BYTES;
/// Offset of the bytes of the answer ring.
pub const ANSWER_DATA: usize = HEADER_BYTES + REQUEST_RING_BYTES;

const _: () = {
    assert!(control::BESIDE + 8 * BESIDE_WORDS == control::READER_SLEEPS);
    assert!(BESIDE_BYTES as u64 <= TAG_BYTES);
    assert!(PERIOD_OFFSET + 8 <= WATCH_OFFSET);
    assert!(WATCH_OFFSET + 8 <= OWED_OFFSET);
    assert!(OWED_OFFSET + 8 <= FAILED_OFFSET);
    assert!(FAILED_OFFSET + 8 <= REQUEST_CONTROL);
    assert!(REQUEST_RING_BYTES.is_power_of_two());
    assert!(ANSWER_RING_BYTES.is_power_of_two());
    assert!(ANSWER_CONTROL + control::BYTES <= HEADER_BYTES);
};
