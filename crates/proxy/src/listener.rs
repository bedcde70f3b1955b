//! Accepts connections through TCP and a Unix socket until it is told to stop, then waits for the
//! connections to end.
use std::sync::Arc;
use std::time::Duration;

use client::Failure;
use tokio::sync::{Semaphore, watch};

use crate::shared::{Shared, Stats};
use crate::sockets::{Client, Listeners};
use crate::startup;
use crate::workers::Workers;

/// Serves until `stop` becomes true and the connections have ended or their time has run out.
pub async fn run(
    shared: Arc<Shared>,
    listeners: Listeners,
    workers: Workers,
    mut stop: watch::Receiver<bool>,
) {
    let limit = shared.config.max_clients;
    let slots = Arc::new(Semaphore::new(limit));
    loop {
        let accepted = tokio::select! {
            accepted = listeners.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let socket = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors: avoid a busy loop.
                tracing::warn!(kind = %error.kind(), "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        Stats::add(&shared.stats.connections, 1);
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            tokio::spawn(async move {
                let failure = Failure::new("53300", "confide: too many connections")
                    .hint("Raise max_clients.");
                match socket.open() {
                    Ok(Client::Tcp(stream, _)) => startup::fail(stream, &failure).await,
                    Ok(Client::Unix(stream)) => startup::fail(stream, &failure).await,
                    Err(_) => {}
                }
            });
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        // The worker's event loop takes over the socket.
        workers.spawn(async move {
            if let Ok(client) = socket.open() {
                startup::serve(shared, client, stop).await;
            }
            drop(slot);
        });
    }
    drop(listeners);
    let wait = Duration::from_secs(shared.config.shutdown_seconds);
    let all = u32::try_from(limit).unwrap_or(u32::MAX);
    if tokio::time::timeout(wait, slots.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("connections were cut at shutdown");
    }
}
