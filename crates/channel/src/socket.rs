//! System calls on the channel's Unix socket: passing descriptors, peer credentials, wake-up bytes,
//! waiting. The rings' messages do not pass here.
//!
//! Invariant: ringing never blocks and never raises a signal.
#![allow(unsafe_code)]

use crate::Error;
use crate::linger::{Linger, System, Waits};
use crate::ring::{Bell, Gone, Side};
use crate::spin::Spin;
use std::io::{self, ErrorKind, Read};
use std::mem::size_of;
use std::net::Shutdown as How;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn check_size(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call that was interrupted by a signal.
fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn address(path: &Path) -> io::Result<libc::sockaddr_un> {
    // SAFETY: all zeros are a valid value of this plain C struct.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        let what = "path of socket is empty or too long";
        return Err(io::Error::new(ErrorKind::InvalidInput, what));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(address)
}

fn stream_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: plain system call.
    let fd = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A listening socket bound to a path that does not exist yet. Its file has exactly these
/// permissions, and never wider ones.
pub(crate) fn listen(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let address = address(path)?;
    let fd = stream_socket()?;
    // bind gives the file the mode of the unbound socket, less the umask.
    // SAFETY: plain system call.
    check(unsafe { libc::fchmod(fd.as_raw_fd(), mode as libc::mode_t) })?;
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: pointer and size describe one valid address.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    // SAFETY: plain system call.
    check(unsafe { libc::listen(fd.as_raw_fd(), 128) })?;
    Ok(fd)
}

/// Connects within a timeout.
pub(crate) fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let address = address(path)?;
    let stream = UnixStream::from(stream_socket()?);
    stream.set_write_timeout(Some(timeout.max(Duration::from_millis(1))))?;
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    again(|| {
        // SAFETY: pointer and size describe one valid address.
        check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), size) })
    })?;
    Ok(stream)
}

/// Process, user and group of the peer.
pub(crate) fn peer_credentials(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: pointer and size describe one valid ucred.
    check(unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut size,
        )
    })?;
    Ok(credentials)
}

/// Fills `bytes` from the socket before the deadline.
pub(crate) fn read_within(
    stream: &UnixStream,
    bytes: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        set_deadline(stream, deadline)?;
        match (&*stream).read(&mut bytes[done..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn set_deadline(stream: &UnixStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))
}

/// Removes the timeouts again, since waits for wake-ups are unlimited.
pub(crate) fn no_deadline(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)
}

/// Space for the control message of two descriptors, suitably aligned.
const CONTROL_WORDS: usize = 3;
const CONTROL_BYTES: usize = CONTROL_WORDS * size_of::<u64>();

/// Sends bytes in one call, together with a descriptor if there is one. The first exchange is small
/// enough to fit into a new socket's buffer.
pub(crate) fn send_with(
    stream: &UnixStream,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all zeros are a valid value of this plain C struct.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    if let Some(fd) = fd {
        let payload = size_of::<RawFd>() as libc::c_uint;
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: arithmetic only.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(payload) } as usize;
        assert!(message.msg_controllen <= CONTROL_BYTES);
        // SAFETY: the buffer is aligned and long enough for one header and one
        // descriptor, as just checked, so the first header exists.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(payload) as usize;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            data.write_unaligned(fd.as_raw_fd());
        }
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the message points to buffers that live until the call returns.
    let sent = again(|| check_size(unsafe { libc::sendmsg(stream.as_raw_fd(), &message, flags) }))?;
    if sent != bytes.len() {
        return Err(ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// Fills `bytes` from the socket before the deadline. Returns the descriptor that came with the
/// first bytes, if any.
pub(crate) fn receive_with(
    stream: &UnixStream,
    bytes: &mut [u8],
    deadline: Instant,
) -> io::Result<Option<OwnedFd>> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut piece = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all zeros are a valid value of this plain C struct.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES;
    let got = again(|| {
        set_deadline(stream, deadline)?;
        let flags = libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the message points to buffers that live until the call returns.
        check_size(unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, flags) })
    });
    let got = match got {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
        result => result,
    }?;
    let mut fds = received_descriptors(&message).into_iter();
    if got == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    read_within(stream, &mut bytes[got..], deadline)?;
    Ok(fds.next())
}

/// Takes ownership of all descriptors of a received message, so that unwanted ones are closed.
fn received_descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled in the control buffer and its length; the
    // macros walk it within that length. Received descriptors are ours alone.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for n in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(n).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    fds
}

/// State shared by a channel's end and its shutdown handles.
#[derive(Debug)]
pub(crate) struct Line {
    stream: UnixStream,
    down: AtomicBool,
}

impl Line {
    pub(crate) fn new(stream: UnixStream) -> Arc<Line> {
        Arc::new(Line {
            stream,
            down: AtomicBool::new(false),
        })
    }

    #[inline]
    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Ends the channel for both sides and wakes sleepers.
    pub(crate) fn shut_down(&self) {
        self.down.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(How::Both);
    }
}

/// Number of keeper threads in this process that spin, or spun before what they do now. Other
/// processes may need the processors.
static SPINNING: AtomicUsize = AtomicUsize::new(0);

/// Of this process, whose threads thus know how many are at work.
static WAITS: Waits = Waits::new();

/// How many threads of this process may spin: half the number of processors in a keeper. The single
/// thread of a backend may, unless there is only one processor.
fn spinners_max(role: Role) -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let processors =
        *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    match role {
        Role::Keeper => processors / 2,
        Role::Backend => processors - 1,
    }
}

/// The kind of process that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// One of many threads in a process.
    Keeper,
    /// The only thread of its process (in tests, one of a few).
    Backend,
}

/// Wakes the peer by sending a byte on the socket, and waits for its bytes.
#[derive(Debug)]
pub(crate) struct SocketBell {
    line: Arc<Line>,
    reader: Spin,
    writer: Spin,
    linger: Linger,
    role: Role,
    /// For how many milliseconds it sleeps at a time; -1: until it is woken.
    patience: libc::c_int,
    /// The socket may have bytes that the peer woke us with.
    rung: bool,
    /// The last wait ended with a sleep.
    slept: bool,
    /// Whether this thread is counted in [`SPINNING`]. It stays counted between waits, because
    /// updating the counter would delay the work just received.
    counted: bool,
}

impl SocketBell {
    pub(crate) fn new(line: Arc<Line>, role: Role) -> SocketBell {
        SocketBell {
            line,
            reader: Spin::new(),
            writer: Spin::new(),
            linger: Linger::new(&WAITS, spinners_max(role)),
            role,
            patience: -1,
            rung: false,
            slept: false,
            counted: false,
        }
    }

    /// Counts this thread among those that spin, if the limit allows.
    fn may_spin(&mut self) -> bool {
        let most = spinners_max(self.role);
        if self.role == Role::Backend || self.counted {
            return most > 0;
        }
        self.counted = SPINNING.fetch_add(1, Ordering::Relaxed) < most;
        if !self.counted {
            SPINNING.fetch_sub(1, Ordering::Relaxed);
        }
        self.counted
    }

    /// Stops counting this thread: it sleeps, or has longer work to do.
    pub(crate) fn rest(&mut self) {
        if std::mem::take(&mut self.counted) {
            SPINNING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets the peer run if this thread has slept in its last wait. The kernel often has a thread
    /// run where the one runs that wakes it, so the peer's processor may be ours. Who has not slept
    /// has a processor of its own.
    pub(crate) fn give_way(&mut self) {
        if self.slept {
            std::thread::yield_now();
        }
    }

    /// A wait looks at the ring in such intervals even if nobody wakes it.
    pub(crate) fn look_every(&mut self, interval: Option<Duration>) {
        self.patience = interval.map_or(-1, |each| {
            libc::c_int::try_from(each.as_millis()).unwrap_or(libc::c_int::MAX)
        });
    }

    /// How long a wait may go on looking before it sleeps, if nobody else wants the processor.
    pub(crate) fn linger(&mut self, limit: Duration) {
        self.linger.limit(limit);
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    fn spin_of(&mut self, side: Side) -> &mut Spin {
        match side {
            Side::Reader => &mut self.reader,
            Side::Writer => &mut self.writer,
        }
    }
}

impl Bell for SocketBell {
    fn ring(&self) -> Result<(), Gone> {
        let byte = [1u8];
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let fd = self.line.stream.as_raw_fd();
        // SAFETY: pointer and length describe one byte.
        let sent = again(|| check_size(unsafe { libc::send(fd, byte.as_ptr().cast(), 1, flags) }));
        match sent {
            Ok(_) => Ok(()),
            // The buffer is full of bytes that the peer has not read, so it is not asleep.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    /// Takes the bytes no earlier than that: what woke us is dealt with first.
    fn clear(&mut self) -> Result<(), Gone> {
        if !std::mem::take(&mut self.rung) {
            return Ok(());
        }
        let mut bytes = [0u8; 64];
        let flags = libc::MSG_DONTWAIT;
        let fd = self.line.stream.as_raw_fd();
        let got = again(|| {
            // SAFETY: pointer and length describe one array.
            check_size(unsafe { libc::recv(fd, bytes.as_mut_ptr().cast(), bytes.len(), flags) })
        });
        match got {
            Ok(0) => Err(Gone),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    fn wait(&mut self) -> Result<(), Gone> {
        if self.line.is_down() {
            return Err(Gone);
        }
        // Polls rather than reads: whenever the peer takes a byte of ours from the socket, there is
        // space to write, and the kernel wakes blocked readers for that as well, but not pollers.
        let mut poll = libc::pollfd {
            fd: self.line.stream.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the pointer is to one valid pollfd.
        match unsafe { libc::poll(&raw mut poll, 1, self.patience) } {
            0 => Ok(()),
            n if n < 0 => match io::Error::last_os_error().kind() {
                ErrorKind::Interrupted => Ok(()),
                _ => Err(Gone),
            },
            _ => {
                self.rung = true;
                Ok(())
            }
        }
    }

    fn spin(
        &mut self,
        side: Side,
        mut look: impl FnMut() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.slept = false;
        self.linger.begin();
        if self.may_spin()
            && (self.spin_of(side).spin(&mut look)? || self.linger.linger(&System, look)?)
        {
            return Ok(true);
        }
        self.rest();
        Ok(false)
    }

    fn woken(&mut self, side: Side) {
        self.slept = true;
        self.spin_of(side).woken();
    }
}

impl Drop for SocketBell {
    fn drop(&mut self) {
        self.rest();
    }
}
