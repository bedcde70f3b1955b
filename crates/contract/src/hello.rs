//! The first messages on the Unix socket of a channel, before there is shared memory. The backend
//! sends a [`Hello`]. The keeper answers with a [`Welcome`] and, if it accepts, with the memfd as
//! ancillary data (`SCM_RIGHTS`), or with the range of a device that both map. All integers are little-endian. After that the socket carries
//! wake-up bytes only.

/// Magic number of both structs: "CFDH", little-endian.
pub const MAGIC: u32 = u32::from_le_bytes(*b"CFDH");

/// Size of a [`Hello`] on the socket in bytes.
pub const HELLO_BYTES: usize = 48;
/// Size of a [`Welcome`] on the socket in bytes.
pub const WELCOME_BYTES: usize = 64;

/// The keeper's response to a [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Status {
    /// Accepted; the memfd is attached, or the range has a number.
    Accepted = 0,
    /// The peer has another version of the contract.
    WrongVersion = 1,
    /// The keeper does not serve the peer's user.
    WrongUser = 2,
    /// The keeper has the maximum number of channels.
    TooManyChannels = 3,
    /// No session has announced a channel with this pass (parallel workers).
    NoSuchSession = 4,
    /// The keeper has started and is waiting for the WAL since its checkpoint; try again soon.
    Recovering = 5,
}

impl Status {
    /// The status with this code, if there is one.
    pub const fn from_u32(code: u32) -> Option<Status> {
        match code {
            0 => Some(Status::Accepted),
            1 => Some(Status::WrongVersion),
            2 => Some(Status::WrongUser),
            3 => Some(Status::TooManyChannels),
            4 => Some(Status::NoSuchSession),
            5 => Some(Status::Recovering),
            _ => None,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The first message of a backend.
///
/// Bytes: magic 0..4, version 4..8, process id 8..12, database OID 12..16, session to join 16..24
/// (0: a new one), the pass 24..40, role OID 40..44, zero 44..48.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// [`crate::VERSION`] of the sender.
    pub version: u32,
    /// Process id of the backend.
    pub pid: u32,
    /// OID of the backend's database; 0 for the recovery worker, which has none.
    pub database: u32,
    /// Session to join as a parallel worker, or 0 for a new session.
    pub session: u64,
    /// The pass that the session's leader has announced
    /// ([`crate::Kind::Announce`]), or zeros.
    pub pass: [u8; 16],
    /// OID of the role that the session belongs to, as the backend says; 0 if it has none. It
    /// selects what is recorded, and opens nothing.
    pub role: u32,
}

impl Hello {
    /// Encodes the message.
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut out = [0; HELLO_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.version.to_le_bytes());
        out[8..12].copy_from_slice(&self.pid.to_le_bytes());
        out[12..16].copy_from_slice(&self.database.to_le_bytes());
        out[16..24].copy_from_slice(&self.session.to_le_bytes());
        out[24..40].copy_from_slice(&self.pass);
        out[40..44].copy_from_slice(&self.role.to_le_bytes());
        out
    }

    /// Decodes the message; `None` without the magic number.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        if u32_at(bytes, 0) != MAGIC {
            return None;
        }
        let mut pass = [0; 16];
        pass.copy_from_slice(&bytes[24..40]);
        Some(Hello {
            version: u32_at(bytes, 4),
            pid: u32_at(bytes, 8),
            database: u32_at(bytes, 12),
            session: u64_at(bytes, 16),
            pass,
            role: u32_at(bytes, 40),
        })
    }
}

/// The keeper's answer.
///
/// Bytes: magic 0..4, version 4..8, status 8..12, first arena 12..16, session 16..24, range 24..28,
/// zero 28..40, incarnation 40..48, zero 48..64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// [`crate::VERSION`] of the keeper.
    pub version: u32,
    /// Whether the keeper accepts.
    pub status: Status,
    /// Partition of this channel's statement arena; the partition after it is
    /// its plan arena.
    pub arena: u32,
    /// Number of the session; parallel workers use it to join.
    pub session: u64,
    /// The channel's memory is the range with this number, from 1, of the device that both sides
    /// map; 0: it is the memfd.
    pub range: u32,
    /// Random number of this run of the keeper.
    pub incarnation: u64,
}

impl Welcome {
    /// Encodes the message.
    pub fn encode(&self) -> [u8; WELCOME_BYTES] {
        let mut out = [0; WELCOME_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.version.to_le_bytes());
        out[8..12].copy_from_slice(&(self.status as u32).to_le_bytes());
        out[12..16].copy_from_slice(&self.arena.to_le_bytes());
        out[16..24].copy_from_slice(&self.session.to_le_bytes());
        out[24..28].copy_from_slice(&self.range.to_le_bytes());
        out[40..48].copy_from_slice(&self.incarnation.to_le_bytes());
        out
    }

    /// Decodes the message; `None` if it is malformed.
    pub fn decode(bytes: &[u8; WELCOME_BYTES]) -> Option<Welcome> {
        if u32_at(bytes, 0) != MAGIC {
            return None;
        }
        Some(Welcome {
            version: u32_at(bytes, 4),
            status: Status::from_u32(u32_at(bytes, 8))?,
            arena: u32_at(bytes, 12),
            session: u64_at(bytes, 16),
            range: u32_at(bytes, 24),
            incarnation: u64_at(bytes, 40),
        })
    }
}
