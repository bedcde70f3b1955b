//! What the tests of the channel share: a pair of ends, and a peer that can break
//! every rule (raw socket, raw shared memory). No tests.
#![allow(unsafe_code, dead_code, missing_docs)]

use channel::{BackendEnd, KeeperEnd, Listener};
use contract::hello::{HELLO_BYTES, Hello, Status, WELCOME_BYTES, Welcome};
use contract::ring::MAPPING_BYTES;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// Ends a test that hangs.
pub const SOON: Duration = Duration::from_secs(600);

pub fn hello() -> Hello {
    Hello {
        version: contract::VERSION,
        pid: std::process::id(),
        database: 5,
        session: 0,
        pass: [3; 16],
        role: 10,
    }
}

pub fn welcome() -> Welcome {
    Welcome {
        version: contract::VERSION,
        status: Status::Accepted,
        arena: 9,
        session: 77,
        range: 0,
        incarnation: 12345,
    }
}

/// Accepts one backend.
pub fn keeper(listener: &Listener) -> KeeperEnd {
    let mut pending = listener.accept().unwrap();
    pending.hello(SOON).unwrap();
    pending.accept(welcome(), None).unwrap()
}

/// Both ends of a new channel.
pub fn pair() -> (KeeperEnd, BackendEnd) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let backend = std::thread::spawn(move || BackendEnd::connect(&path, hello(), SOON).unwrap());
    let keeper = keeper(&listener);
    (keeper, backend.join().unwrap())
}

/// Keeps this thread on the first processor that it may have.
pub fn on_one_processor() {
    // SAFETY: all zeros are an empty set; the calls write and read one set of this size.
    unsafe {
        let mut had: libc::cpu_set_t = std::mem::zeroed();
        let size = std::mem::size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut had), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &had));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first.unwrap(), &mut one);
        assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0);
    }
}

/// How often this thread has gone to sleep.
pub fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// A backend that does what it likes.
pub struct Raw {
    pub stream: UnixStream,
    base: *mut u8,
}

// SAFETY: the mapping belongs to the process.
unsafe impl Send for Raw {}

impl Raw {
    /// Connects properly; what comes after is up to the test.
    pub fn connect(path: &Path) -> Raw {
        let mut stream = UnixStream::connect(path).unwrap();
        let bytes = hello().encode();
        assert_eq!(bytes.len(), HELLO_BYTES);
        stream.write_all(&bytes).unwrap();
        let mut bytes = [0; WELCOME_BYTES];
        let fd = receive_fd(&stream, &mut bytes);
        // SAFETY: a new mapping.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let fd = fd.as_raw_fd();
            libc::mmap(
                std::ptr::null_mut(),
                MAPPING_BYTES,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        Raw {
            stream,
            base: base.cast(),
        }
    }

    /// A raw backend and the keeper's end for it.
    pub fn pair() -> (KeeperEnd, Raw) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keeper");
        let listener = Listener::bind(&path, 0o600).unwrap();
        let raw = std::thread::spawn(move || Raw::connect(&path));
        let keeper = keeper(&listener);
        (keeper, raw.join().unwrap())
    }

    pub fn store(&self, offset: usize, value: u64) {
        assert!(offset + 8 <= MAPPING_BYTES);
        // SAFETY: inside the mapping and aligned by the contract's offsets.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
            .store(value, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    pub fn load(&self, offset: usize) -> u64 {
        assert!(offset + 8 <= MAPPING_BYTES);
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }.load(Ordering::Acquire)
    }

    pub fn put(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= MAPPING_BYTES);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(offset).copy_from(bytes.as_ptr(), bytes.len()) }
    }

    /// Wakes the keeper whether or not it sleeps.
    pub fn wake(&self) {
        (&self.stream).write_all(&[1]).unwrap();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: mapped by `connect`.
        unsafe { libc::munmap(self.base.cast(), MAPPING_BYTES) };
    }
}

#[repr(C, align(8))]
struct Control([u8; 24]);

/// Receives bytes and one descriptor.
pub fn receive_fd(stream: &UnixStream, bytes: &mut [u8]) -> OwnedFd {
    let mut control = Control([0; 24]);
    let mut piece = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: plain C calls on buffers of this function.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut piece;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = 24;
        let got = libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
        assert_eq!(got, bytes.len() as isize);
        let header = libc::CMSG_FIRSTHDR(&message);
        assert!(!header.is_null(), "no descriptor came");
        OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned())
    }
}

/// Sends bytes and one descriptor.
pub fn send_fd(stream: &UnixStream, bytes: &[u8], fd: &OwnedFd) {
    let mut control = Control([0; 24]);
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: plain C calls on buffers of this function.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut piece;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = 24;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header)
            .cast::<i32>()
            .write_unaligned(fd.as_raw_fd());
        let sent = libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
        assert_eq!(sent, bytes.len() as isize);
    }
}

/// A memfd of a size, with seals or without.
pub fn memfd(size: usize, seals: i32) -> OwnedFd {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: plain C calls on a descriptor of this function.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), flags);
        assert!(fd >= 0);
        let fd = OwnedFd::from_raw_fd(fd);
        assert_eq!(libc::ftruncate(fd.as_raw_fd(), size as i64), 0);
        if seals != 0 {
            assert_eq!(libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
        }
        fd
    }
}

/// Fills the first bytes of a memfd.
pub fn fill(fd: &OwnedFd, bytes: &[u8]) {
    // SAFETY: plain C call on a slice.
    let wrote = unsafe { libc::pwrite(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    assert_eq!(wrote, bytes.len() as isize);
}

pub fn read_hello(stream: &mut UnixStream) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Processor time of this thread.
pub fn thread_time() -> Duration {
    // SAFETY: plain C call with a valid pointer.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .sum()
}
