//! Accepts connections until it is told to stop, then lets them end.
use std::sync::Arc;
use std::time::Duration;

use client::Failure;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::shared::{Shared, Stats};
use crate::startup;
use crate::workers::Workers;

/// Serves until `stop` becomes true and connections have ended, or until their
/// time is up.
pub async fn run(
    shared: Arc<Shared>,
    listener: TcpListener,
    workers: Workers,
    mut stop: watch::Receiver<bool>,
) {
    let limit = shared.config.max_clients;
    let slots = Arc::new(Semaphore::new(limit));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (client, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors: do not spin.
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
                startup::fail(client, &failure).await;
            });
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        // The socket leaves this thread's event loop for the worker's.
        let client = client.into_std();
        workers.spawn(async move {
            if let Ok(client) = client.and_then(TcpStream::from_std) {
                startup::serve(shared, client, address, stop).await;
            }
            drop(slot);
        });
    }
    drop(listener);
    let wait = Duration::from_secs(shared.config.shutdown_seconds);
    let all = u32::try_from(limit).unwrap_or(u32::MAX);
    if tokio::time::timeout(wait, slots.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("connections were cut at shutdown");
    }
}
