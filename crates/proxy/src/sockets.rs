//! The sockets for clients (TCP and optionally a Unix socket), and the stream type of connections.
//!
//! Invariant: a Unix socket on which another process answers is not touched.
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The byte stream of a connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, and whether it is encrypted.
pub struct Connection {
    /// Its bytes.
    pub stream: Box<dyn Stream>,
    /// Written data may be buffered until it is flushed.
    pub encrypted: bool,
}

/// In place of an address: the socket is standard input.
const INHERITED: &str = "inherited";

/// The sockets on which clients connect.
pub struct Listeners {
    tcp: TcpListener,
    unix: Option<(UnixListener, PathBuf)>,
}

/// A client's socket that does not belong to an event loop yet.
pub enum Socket {
    /// TCP, with the client's address.
    Tcp(std::net::TcpStream, SocketAddr),
    /// The Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Listeners {
    /// Listens on an address or on [`INHERITED`], and optionally on a Unix socket.
    pub async fn bind(address: &str, socket: Option<PathBuf>) -> Result<Listeners, String> {
        let at = |place: &dyn std::fmt::Display, e: std::io::Error| {
            format!("cannot listen on {place}: {e}")
        };
        let tcp = match address {
            INHERITED => inherited(),
            _ => TcpListener::bind(address).await,
        };
        let tcp = tcp.map_err(|e| at(&address, e))?;
        // The port is ours, so a leftover socket with its number is stale.
        let unix = match socket {
            None => None,
            Some(path) => {
                let made = bind_unix(&path).map_err(|e| at(&path.display(), e))?;
                Some((made, path))
            }
        };
        Ok(Listeners { tcp, unix })
    }

    /// The TCP address that clients connect to.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The next client.
    pub async fn accept(&self) -> std::io::Result<Socket> {
        let unix = async {
            match &self.unix {
                Some((listener, _)) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.tcp.accept() => {
                let (stream, address) = accepted?;
                Ok(Socket::Tcp(stream.into_std()?, address))
            }
            accepted = unix => Ok(Socket::Unix(accepted?.0.into_std()?)),
        }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.unix {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The listening socket that standard input is. It belongs to whoever started the proxy, so clients
/// that connect while there is no proxy wait in its queue.
fn inherited() -> std::io::Result<TcpListener> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    let listener = std::net::TcpListener::from(socket);
    listener.local_addr()?;
    if std::net::TcpStream::from(listener.as_fd().try_clone_to_owned()?)
        .peer_addr()
        .is_ok()
    {
        let wrong = "standard input is a connection, not a listening socket";
        return Err(std::io::Error::other(wrong));
    }
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(std::io::ErrorKind::AddrInUse.into());
    }
    // Who finds the path can connect: until the socket has its permissions it has another name.
    let unfinished = path.with_file_name(format!(".{}", std::process::id()));
    let _ = std::fs::remove_file(&unfinished);
    let listener = UnixListener::bind(&unfinished)?;
    // Anybody may connect, as with PostgreSQL.
    std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o777))?;
    std::fs::rename(&unfinished, path)?;
    Ok(listener)
}

impl Socket {
    /// Attaches the socket to the event loop of this thread.
    pub fn open(self) -> std::io::Result<Client> {
        Ok(match self {
            Socket::Tcp(stream, address) => {
                stream.set_nodelay(true)?;
                Client::Tcp(TcpStream::from_std(stream)?, address)
            }
            Socket::Unix(stream) => Client::Unix(UnixStream::from_std(stream)?),
        })
    }
}

/// A client's socket.
pub enum Client {
    /// TCP, with the client's address.
    Tcp(TcpStream, SocketAddr),
    /// The Unix socket.
    Unix(UnixStream),
}
