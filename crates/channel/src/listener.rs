//! The keeper's listening Unix socket, the first exchange with a backend, and the backend's
//! credentials. The keeper decides whom to accept.
//!
//! Invariant: a socket on which somebody answers is never replaced.

use crate::device::Device;
use crate::keeper::KeeperEnd;
use crate::mapping::Mapping;
use crate::socket::{self, Line};
use contract::hello::{HELLO_BYTES, Hello, Status, Welcome};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A socket that backends connect to. Its file is removed on drop.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of our socket file.
    file: (u64, u64),
}

impl Listener {
    /// Listens at a path, with the permissions `mode`. A stale socket is replaced. A live socket,
    /// or any other kind of file, yields [`ErrorKind::AddrInUse`].
    ///
    /// The path exists only once the socket listens and has its permissions, so who finds it can
    /// connect: until then it has another name in the same folder.
    pub fn bind(path: &Path, mode: u32) -> io::Result<Listener> {
        remove_stale(path)?;
        let unfinished = path.with_file_name(format!(".{}", std::process::id()));
        remove_stale(&unfinished)?;
        let listener = UnixListener::from(socket::listen(&unfinished, mode)?);
        // Unlike a rename, a link does not replace the socket of somebody who was faster.
        let linked = std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(mode))
            .and_then(|()| std::fs::hard_link(&unfinished, path));
        std::fs::remove_file(&unfinished)?;
        linked.map_err(in_use)?;
        let file = identity(path)?;
        Ok(Listener {
            listener,
            path: path.to_owned(),
            file,
        })
    }

    /// Waits for a backend.
    pub fn accept(&self) -> io::Result<Pending> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    return Ok(Pending {
                        stream,
                        version: None,
                    });
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes [`Listener::accept`] fail from now on, including a call in progress.
    pub fn close(&self) {
        // A listening socket is shut down like a stream, for which std has no method.
        if let Ok(fd) = self.listener.as_fd().try_clone_to_owned() {
            let _ = UnixStream::from(fd).shutdown(std::net::Shutdown::Both);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listener {
    /// Removes the socket file, unless another one has taken its place.
    pub fn unlink(&self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.unlink();
    }
}

/// The error of a link that finds its name taken, as bind reports it.
fn in_use(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::AlreadyExists => io::Error::new(ErrorKind::AddrInUse, error),
        _ => error,
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let data = std::fs::symlink_metadata(path)?;
    Ok((data.dev(), data.ino()))
}

/// Removes a socket on which nobody answers.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(data) if data.file_type().is_socket() => {}
        Ok(_) => {
            let what = "another kind of file stands at the path of the socket";
            return Err(io::Error::new(ErrorKind::AddrInUse, what));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match socket::connect(path, Duration::from_secs(1)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => {
            let what = "somebody listens on the socket already";
            Err(io::Error::new(ErrorKind::AddrInUse, what))
        }
    }
}

/// The peer's credentials, from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerCred {
    /// Process that connected.
    pub pid: i32,
    /// Its effective user at that time.
    pub uid: u32,
    /// Its effective group at that time.
    pub gid: u32,
}

/// Why no [`Hello`] was received.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// The socket failed or was closed, or a timeout expired.
    #[error("no hello from the peer: {0}")]
    Io(#[from] io::Error),
    /// The bytes are not a hello.
    #[error("the peer does not speak Confide's contract")]
    Malformed,
}

/// A connection that has not been accepted yet.
#[derive(Debug)]
pub struct Pending {
    stream: UnixStream,
    version: Option<u32>,
}

impl Pending {
    /// Reads the backend's hello. If its version differs from ours, it must be refused;
    /// [`Pending::accept`] would refuse it as well.
    pub fn hello(&mut self, timeout: Duration) -> Result<(Hello, PeerCred), HelloError> {
        let credentials = socket::peer_credentials(&self.stream)?;
        let mut bytes = [0; HELLO_BYTES];
        socket::read_within(&self.stream, &mut bytes, Instant::now() + timeout)?;
        let hello = Hello::decode(&bytes).ok_or(HelloError::Malformed)?;
        self.version = Some(hello.version);
        let peer = PeerCred {
            pid: credentials.pid,
            uid: credentials.uid,
            gid: credentials.gid,
        };
        Ok((hello, peer))
    }

    /// Sends the reason for the refusal, and hangs up.
    pub fn refuse(self, status: Status) -> io::Result<()> {
        let welcome = Welcome {
            version: contract::VERSION,
            status,
            arena: 0,
            session: 0,
            range: 0,
            incarnation: 0,
        };
        socket::send_with(&self.stream, &welcome.encode(), None)
    }

    /// Creates the shared memory, on a device if one is given, and welcomes the backend.
    /// `welcome.version`, `welcome.status` and `welcome.range` are filled in. A backend whose hello
    /// has another version, or was not read, is refused with [`ErrorKind::Unsupported`], and one for
    /// which the device has no room with [`ErrorKind::QuotaExceeded`].
    pub fn accept(
        self,
        mut welcome: Welcome,
        device: Option<&Arc<Device>>,
    ) -> io::Result<KeeperEnd> {
        if self.version != Some(contract::VERSION) {
            self.refuse(Status::WrongVersion)?;
            let what = "the backend speaks another version of the contract";
            return Err(io::Error::new(ErrorKind::Unsupported, what));
        }
        welcome.version = contract::VERSION;
        welcome.status = Status::Accepted;
        welcome.range = 0;
        let (mapping, fd) = match device {
            None => {
                let (mapping, fd) = Mapping::create()?;
                (mapping, Some(fd))
            }
            Some(device) => match device.take() {
                Ok(range) => {
                    welcome.range = range.number();
                    (Mapping::create_in(range)?, None)
                }
                Err(error) => {
                    self.refuse(Status::TooManyChannels)?;
                    return Err(error);
                }
            },
        };
        socket::no_deadline(&self.stream)?;
        let fd = fd.as_ref().map(AsFd::as_fd);
        socket::send_with(&self.stream, &welcome.encode(), fd)?;
        Ok(KeeperEnd::new(Arc::new(mapping), Line::new(self.stream)))
    }
}
