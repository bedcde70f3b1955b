//! Connects a client to a server again whose server has ended the session, for example because it
//! was restarted.
//!
//! What a session needs to continue is in `session/revive.rs`. The connection is made as at the
//! start (`dial`), as often as necessary within `reconnect_seconds`.
//!
//! Invariant: a client continues only as the user that was authenticated. If the server asks for a
//! password that the proxy does not have, the session ends.
use std::time::{Duration, Instant};

use bytes::BytesMut;
use client::Failure;
use login::User;
use tokio::time::sleep;

use crate::authentication::entry;
use crate::dial::{Dialled, dial, passes};
use crate::shared::Shared;

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// How a client was connected.
pub struct Link {
    /// Its startup packet.
    pub raw: BytesMut,
    /// Its user.
    pub user: String,
    /// Whether the proxy has authenticated it; otherwise the server has.
    pub listed: bool,
}

impl Link {
    /// Connects again.
    pub async fn again(&self, shared: &Shared) -> Result<Dialled, Failure> {
        shared.gate.opened().await;
        let limit = Duration::from_secs(shared.config.reconnect_seconds);
        let start = Instant::now();
        loop {
            let user = match (entry(shared, &self.user)?, self.listed) {
                (Some(user), true) => user,
                // Nothing that the server could ask for is known: it must let the proxy in by
                // itself.
                (None, false) => User::default(),
                _ => return Err(Failure::new("28000", "confide: the user is not the same")),
            };
            match dial(shared, &self.raw, Some(&user)).await {
                Err(failure) if passes(&failure) && start.elapsed() < limit => sleep(PAUSE).await,
                done => return done,
            }
        }
    }
}
