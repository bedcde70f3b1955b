//! A Unix socket whose event loop wakes up only for what a task waits for.
//!
//! tokio's own stream is registered for reading and writing as long as it lives. Whenever the other
//! side of a Unix socket has read, the system reports that there is room to write: the proxy would wake up
//! for nothing in each statement, just when the server begins to work on it. Here the socket is
//! registered for reading, and for writing only while a write waits for room.
use std::io::{ErrorKind, Read, Result, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// Maximum size of one read.
const READ_MAX: usize = 16 * 1024;

/// See the module.
pub struct Quiet {
    socket: AsyncFd<UnixStream>,
    /// The same socket, while a write waits for room.
    room: Option<AsyncFd<UnixStream>>,
    read: Box<[u8]>,
}

impl Quiet {
    /// Takes over a socket, in the event loop of this thread.
    pub fn new(socket: tokio::net::UnixStream) -> Result<Quiet> {
        Ok(Quiet {
            socket: watch(socket.into_std()?, Interest::READABLE)?,
            room: None,
            read: vec![0; READ_MAX].into(),
        })
    }
}

/// Registers a socket. The function is deprecated since its argument could close its descriptor earlier; a
/// `UnixStream` cannot, and the replacement is `unsafe`.
#[expect(deprecated)]
fn watch(socket: UnixStream, interest: Interest) -> Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

impl AsyncRead for Quiet {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let Quiet { socket, read, .. } = self.get_mut();
        let most = buf.remaining().min(read.len());
        let read = read.get_mut(..most).unwrap_or_default();
        loop {
            let mut ready = ready!(socket.poll_read_ready(cx))?;
            match ready.get_inner().read(read) {
                Ok(count) => {
                    // Less than there was room for: nothing is left. The end stays readable.
                    if count > 0 && count < most {
                        ready.clear_ready();
                    }
                    buf.put_slice(read.get(..count).unwrap_or_default());
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Quiet {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let Quiet { socket, room, .. } = self.get_mut();
        loop {
            if let Some(waiting) = room {
                let _ = ready!(waiting.poll_write_ready(cx))?;
                *room = None;
            }
            match socket.get_ref().write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let same = socket.get_ref().try_clone()?;
                    *room = Some(watch(same, Interest::WRITABLE)?);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Bits of what is watched.
    const EPOLLIN: u32 = 1;
    const EPOLLOUT: u32 = 4;

    /// More than a socket holds.
    const MUCH: usize = 4 << 20;

    fn pair() -> (Quiet, UnixStream) {
        let (ours, other) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        (Quiet::new(ours).unwrap(), other)
    }

    /// Whether an event loop of this process watches this socket or a copy of it, for reading and for
    /// writing, according to the system.
    fn watched(socket: &impl AsRawFd) -> (bool, bool) {
        let place = |fd: &str| fs::read_link(format!("/proc/self/fd/{fd}")).ok();
        let ours = place(&socket.as_raw_fd().to_string());
        let mut all = 0;
        for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let is_loop = place(&name).is_some_and(|p| p.ends_with("anon_inode:[eventpoll]"));
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{name}")).unwrap_or_default();
            let sockets = info.lines().filter(|line| line.starts_with("tfd:"));
            for line in sockets.filter(|_| is_loop) {
                let words: Vec<&str> = line.split_whitespace().collect();
                if place(words[1]) == ours {
                    all |= u32::from_str_radix(words[3], 16).unwrap();
                }
            }
        }
        (all & EPOLLIN != 0, all & EPOLLOUT != 0)
    }

    /// Bug: the event loop watches whether there is room to write though nobody waits for it, and wakes up
    /// whenever the other side reads.
    #[tokio::test]
    async fn room_is_watched_while_a_write_waits() {
        let usual = tokio::net::UnixStream::pair().unwrap();
        assert_eq!(watched(&usual.0), (true, true));
        let (mut ours, mut other) = pair();
        let mut read = vec![0; 5];
        ours.write_all(b"short").await.unwrap();
        other.read_exact(&mut read).unwrap();
        assert_eq!(watched(ours.socket.get_ref()), (true, false));
        let much: Vec<u8> = (0..MUCH).map(|n| n as u8).collect();
        let mut written = 0;
        while let Poll::Ready(count) = now(ours.write(much.get(written..).unwrap())).await {
            written += count.unwrap();
        }
        assert_eq!(watched(ours.socket.get_ref()), (true, true));
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; MUCH];
            other.read_exact(&mut read).unwrap();
            (other, read)
        });
        ours.write_all(much.get(written..).unwrap()).await.unwrap();
        let (mut other, read) = reader.join().unwrap();
        assert!(read == much);
        assert_eq!(watched(ours.socket.get_ref()), (true, false));
        other.write_all(&much[..3 * READ_MAX]).unwrap();
        drop(other);
        let mut read = Vec::new();
        ours.read_to_end(&mut read).await.unwrap();
        assert!(read == much[..3 * READ_MAX]);
    }

    /// The result of a future that is asked once.
    async fn now<T>(future: impl Future<Output = T>) -> Poll<T> {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }
}
