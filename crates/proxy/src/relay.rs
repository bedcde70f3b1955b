//! Moves bytes between the two sockets and the state machine of a connection.
//!
//! There is one task per connection. Reading from one side stops while the other side does not
//! accept its data, so memory is bounded.
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use client::Failure;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::watch;

use crate::gate::Turn;
use crate::reconnect::Link;
use crate::session::{Core, Stop, shrink};
use crate::shared::{Shared, Stats};
use crate::sockets::{Connection, Stream};

/// Reading stops when this much data waits for the other side.
const HIGH_WATER: usize = 1 << 20;

/// Maximum size of one read; by itself a buffer offers only 64 bytes.
const READ_MAX: usize = 16 * 1024;

/// The sockets of both sides, and the data read from them.
struct Ends {
    client_read: ReadHalf<Box<dyn Stream>>,
    client_write: WriteHalf<Box<dyn Stream>>,
    server_read: ReadHalf<Box<dyn Stream>>,
    server_write: WriteHalf<Box<dyn Stream>>,
    from_client: BytesMut,
    from_server: BytesMut,
    to_client: Way,
    to_server: Way,
    /// What the client has sent waits for the end of PAUSE.
    paused: bool,
}

/// Data written to an encrypted connection may be buffered until it is flushed.
struct Way {
    encrypted: bool,
    flushed: bool,
}

impl Way {
    fn new(encrypted: bool) -> Way {
        let flushed = true;
        Way { encrypted, flushed }
    }
}

/// The wait for the end of the proxy.
struct Stopping<'a, F> {
    /// It is over.
    seen: bool,
    /// False if nobody can end the proxy any more.
    wait: Pin<&'a mut F>,
}

/// Why a connection ends.
enum End {
    /// Somebody is told.
    Told(Stop),
    /// Nobody is.
    Silent,
    /// The server has closed its connection.
    Server,
}

/// Runs a connection until it ends.
pub async fn run(
    shared: &Arc<Shared>,
    mut core: Core,
    (client, encrypted): (Box<dyn Stream>, bool),
    (server, from_server): (Connection, BytesMut),
    link: Link,
    stop: watch::Receiver<bool>,
) {
    let mut ends = Ends::new(client, encrypted, server, from_server);
    let mut turn = Turn::new(&shared.gate);
    // Waits as long as the connection lives, so that what wakes it is registered once.
    let mut changes = stop.clone();
    let mut stopping = Stopping {
        seen: false,
        wait: pin!(async { changes.wait_for(|stop| *stop).await.is_ok() }),
    };
    let end = loop {
        let step = core.server_input(&mut ends.from_server).and_then(|()| {
            ends.paused = !ends.from_client.is_empty() && !turn.take();
            match ends.paused {
                true => Ok(()),
                false => core.client_input(&mut ends.from_client),
            }
        });
        if let Err(stop) = step {
            break End::Told(stop);
        }
        if core.idle() {
            turn.give_back();
        }
        if *stop.borrow() && core.idle() {
            let failure = Failure::new("57P01", "confide: the proxy is shutting down");
            break End::Told(Stop::Fatal(failure));
        }
        match ends.wait(shared, &mut core, &mut stopping).await {
            Ok(()) => {}
            Err(End::Server) if core.is_lost() => {
                let again = ends.again(shared, &mut core, &link, stop.clone());
                if !again.await {
                    break End::Server;
                }
            }
            Err(end) => break end,
        }
        shrink(&mut ends.from_client);
        shrink(&mut ends.from_server);
    };
    ends.end(core, end).await;
}

impl Ends {
    fn new(
        client: Box<dyn Stream>,
        encrypted: bool,
        server: Connection,
        from_server: BytesMut,
    ) -> Ends {
        let (client_read, client_write) = tokio::io::split(client);
        let (server_read, server_write) = tokio::io::split(server.stream);
        Ends {
            client_read,
            client_write,
            server_read,
            server_write,
            from_client: BytesMut::new(),
            from_server,
            to_client: Way::new(encrypted),
            to_server: Way::new(server.encrypted),
            paused: false,
        }
    }

    /// Tells both sides about the end.
    async fn end(&mut self, mut core: Core, end: End) {
        match end {
            // A session that could not be continued ends like any whose server has ended it.
            End::Told(stop) if !core.is_reviving() => {
                finish(core, stop, &mut self.client_write, &mut self.server_write).await;
            }
            End::Silent => {}
            End::Told(_) | End::Server => {
                // The server's last messages must still be delivered.
                core.give_up();
                let _ = self.client_write.write_all_buf(&mut core.to_client).await;
                let _ = self.client_write.shutdown().await;
            }
        }
    }

    /// Returns when the client has closed its connection.
    async fn client_leaves(&mut self, core: &mut Core) {
        if self
            .client_write
            .write_all_buf(&mut core.to_client)
            .await
            .is_err()
        {
            return;
        }
        let _ = self.client_write.flush().await;
        while self.from_client.len() < HIGH_WATER {
            self.from_client.reserve(READ_MAX);
            match self.client_read.read_buf(&mut self.from_client).await {
                Ok(n) if n > 0 => {}
                _ => return,
            }
        }
        std::future::pending().await
    }

    /// Goes on with another connection to a server; false if there is none.
    async fn again(
        &mut self,
        shared: &Shared,
        core: &mut Core,
        link: &Link,
        mut stop: watch::Receiver<bool>,
    ) -> bool {
        let dialled = tokio::select! {
            dialled = link.again(shared) => dialled,
            () = self.client_leaves(core) => return false,
            _ = stop.wait_for(|stop| *stop) => return false,
        };
        let dialled = match dialled {
            Ok(dialled) => dialled,
            Err(failure) => {
                tracing::warn!(sqlstate = %failure.sqlstate, message = %failure.message, "a session is not continued");
                return false;
            }
        };
        core.revive(dialled.place);
        let (read, write) = tokio::io::split(dialled.server.stream);
        self.server_read = read;
        self.server_write = write;
        self.from_server = dialled.from_server;
        self.to_server = Way::new(dialled.server.encrypted);
        true
    }

    /// Transfers data, waiting until some transfer is possible. An error ends the connection; it
    /// contains the message for both sides, if any.
    async fn wait<F: Future<Output = bool>>(
        &mut self,
        shared: &Shared,
        core: &mut Core,
        stopping: &mut Stopping<'_, F>,
    ) -> Result<(), End> {
        let read_client = core.to_server.len() < HIGH_WATER
            && !((core.blocked() || self.paused) && self.from_client.len() > HIGH_WATER);
        let read_server = core.to_client.len() < HIGH_WATER;
        self.from_client.reserve(READ_MAX);
        self.from_server.reserve(READ_MAX);
        tokio::select! {
            biased;
            n = send(&mut self.client_write, &mut core.to_client, &mut self.to_client),
                if core.to_client.has_remaining() || !self.to_client.flushed =>
            {
                Stats::add(&shared.stats.bytes_to_client, n.map_err(|_| End::Silent)?);
                shrink(&mut core.to_client);
            }
            n = send(&mut self.server_write, &mut core.to_server, &mut self.to_server),
                if core.to_server.has_remaining() || !self.to_server.flushed =>
            {
                match n {
                    Ok(n) => Stats::add(&shared.stats.bytes_to_server, n),
                    // The server may have reported the reason: read that first.
                    Err(_) => {
                        core.to_server.clear();
                        self.to_server.flushed = true;
                    }
                }
                shrink(&mut core.to_server);
            }
            n = self.server_read.read_buf(&mut self.from_server), if read_server => {
                if !matches!(n, Ok(n) if n > 0) {
                    return Err(End::Server);
                }
            }
            n = self.client_read.read_buf(&mut self.from_client), if read_client => {
                if !matches!(n, Ok(n) if n > 0) {
                    core.leave();
                    return Err(End::Told(Stop::Closed));
                }
            }
            known = stopping.wait.as_mut(), if !stopping.seen => {
                stopping.seen = true;
                if !known {
                    return Err(End::Silent);
                }
            }
            () = shared.gate.opened(), if self.paused => {}
        }
        Ok(())
    }
}

/// Writes some of the buffered data, or flushes the written data; returns the number of bytes. If
/// it is cancelled while waiting, it has done nothing.
async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &mut BytesMut,
    way: &mut Way,
) -> std::io::Result<u64> {
    if !bytes.has_remaining() {
        stream.flush().await?;
        way.flushed = true;
        return Ok(0);
    }
    match stream.write(bytes).await? {
        0 => Err(std::io::ErrorKind::WriteZero.into()),
        n => {
            bytes.advance(n);
            way.flushed = !way.encrypted;
            Ok(n as u64)
        }
    }
}

/// Tells both sides about the end.
async fn finish(
    mut core: Core,
    stop: Stop,
    client: &mut (impl AsyncWrite + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
) {
    if let Stop::Fatal(failure) = stop {
        tracing::warn!(sqlstate = %failure.sqlstate, message = %failure.message, "connection ended");
        core.tell_end(&failure);
    }
    let both = async {
        let _ = client.write_all_buf(&mut core.to_client).await;
        let _ = server.write_all_buf(&mut core.to_server).await;
        let _ = server.flush().await;
        let _ = server.shutdown().await;
        let _ = client.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), both).await;
}
