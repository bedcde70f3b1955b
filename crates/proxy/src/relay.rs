//! Moves bytes between the two sockets and the state machine of a connection.
//!
//! One task per connection; reading from one side stops while the other side
//! does not take what it is owed, so memory stays bounded.
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use client::Failure;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::session::{Core, Stop, shrink};
use crate::shared::{Shared, Stats};
use crate::wire::backend;

/// Reading stops when this much waits for the other side.
const HIGH_WATER: usize = 1 << 20;

/// Room for what one read may bring: by itself a buffer offers 64 bytes.
const READ_MAX: usize = 16 * 1024;

/// What a connection is made of.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Runs a connection to its end.
pub async fn run(
    shared: &Arc<Shared>,
    mut core: Core,
    client: Box<dyn Stream>,
    server: Box<dyn Stream>,
    mut from_client: BytesMut,
    mut stop: watch::Receiver<bool>,
) {
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut server_read, mut server_write) = tokio::io::split(server);
    let mut from_server = BytesMut::new();
    loop {
        let step = core
            .server_input(&mut from_server)
            .and_then(|()| core.client_input(&mut from_client));
        if let Err(stop) = step {
            finish(core, stop, &mut client_write, &mut server_write).await;
            return;
        }
        if *stop.borrow() && core.idle() {
            let failure = Failure::new("57P01", "confide: the proxy is shutting down");
            finish(
                core,
                Stop::Fatal(failure),
                &mut client_write,
                &mut server_write,
            )
            .await;
            return;
        }
        let read_client = core.to_server.len() < HIGH_WATER
            && !(core.blocked() && from_client.len() > HIGH_WATER);
        let read_server = core.to_client.len() < HIGH_WATER;
        from_client.reserve(READ_MAX);
        from_server.reserve(READ_MAX);
        tokio::select! {
            biased;
            n = client_write.write_buf(&mut core.to_client), if core.to_client.has_remaining() => {
                match n {
                    Ok(n) if n > 0 => Stats::add(&shared.stats.bytes_to_client, n as u64),
                    _ => return,
                }
                shrink(&mut core.to_client);
            }
            n = server_write.write_buf(&mut core.to_server), if core.to_server.has_remaining() => {
                match n {
                    Ok(n) if n > 0 => Stats::add(&shared.stats.bytes_to_server, n as u64),
                    // The server may have said why: read that first.
                    _ => core.to_server.clear(),
                }
                shrink(&mut core.to_server);
            }
            n = server_read.read_buf(&mut from_server), if read_server => {
                if !matches!(n, Ok(n) if n > 0) {
                    // The server has gone; what it said last is still owed.
                    let _ = client_write.write_all_buf(&mut core.to_client).await;
                    let _ = client_write.shutdown().await;
                    return;
                }
            }
            n = client_read.read_buf(&mut from_client), if read_client => {
                if !matches!(n, Ok(n) if n > 0) {
                    finish(core, Stop::Closed, &mut client_write, &mut server_write).await;
                    return;
                }
            }
            changed = stop.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
        shrink(&mut from_client);
        shrink(&mut from_server);
    }
}

/// Tells both sides the end.
async fn finish(
    mut core: Core,
    stop: Stop,
    client: &mut (impl AsyncWrite + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
) {
    if let Stop::Fatal(failure) = stop {
        tracing::warn!(sqlstate = %failure.sqlstate, message = %failure.message, "connection ended");
        backend::error(&mut core.to_client, "FATAL", &failure);
        // Not what is half done: the server rolls it back.
        core.to_server.clear();
    }
    let both = async {
        let _ = client.write_all_buf(&mut core.to_client).await;
        let _ = server.write_all_buf(&mut core.to_server).await;
        let _ = server.shutdown().await;
        let _ = client.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), both).await;
}
