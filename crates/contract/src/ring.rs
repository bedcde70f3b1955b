//! Layout of the shared memory between one backend and the keeper.
//!
//! One memfd holds a header page and two byte rings, one per direction. A ring
//! is a stream of [messages](crate::message): the writer copies bytes in and
//! advances `written`, the reader copies bytes out (into private memory, before
//! it looks at them) and advances `read`. Both positions count bytes since the
//! start and never wrap (64 bits); the place in the ring is the position modulo
//! its size, a power of two. A message may be longer than the ring: it streams.
//!
//! Each ring has two sleep flags. A side that is about to sleep sets its flag,
//! then looks at the ring once more, then waits for a byte on the Unix socket
//! of the channel; the other side, after it has moved its position, clears a
//! set flag and sends one byte. Sequentially consistent fences between the store and
//! the look make a lost wake-up impossible. End of file on the socket means
//! that the peer is gone.

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
    /// `u64`: bytes written since the start; only the writer stores it.
    pub const WRITTEN: usize = 0;
    /// `u32`: the reader sleeps until there is something to read.
    pub const READER_SLEEPS: usize = 64;
    /// `u64`: bytes read since the start; only the reader stores it.
    pub const READ: usize = 128;
    /// `u32`: the writer sleeps until there is room.
    pub const WRITER_SLEEPS: usize = 192;
    /// Size of one control block.
    pub const BYTES: usize = 256;
}

/// Offset of the `u32` magic number in the header page.
pub const MAGIC_OFFSET: usize = 0;
/// Offset of the `u32` contract version in the header page.
pub const VERSION_OFFSET: usize = 4;
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
    assert!(REQUEST_RING_BYTES.is_power_of_two());
    assert!(ANSWER_RING_BYTES.is_power_of_two());
    assert!(ANSWER_CONTROL + control::BYTES <= HEADER_BYTES);
};
