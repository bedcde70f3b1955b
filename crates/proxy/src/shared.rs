//! What the connections of a proxy share: keys, schemas (`databases`), counters.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use envelope::{PublicKey, SecretKey};
use rewrite::Pins;

use crate::attestation::Attestation;
use crate::config::{Config, Upstream};
use crate::databases::Databases;
use crate::tls::Tls;

/// Counters for the admin console.
#[derive(Default)]
pub struct Stats {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Queries and Executes.
    pub statements: AtomicU64,
    /// Statements refused.
    pub refused: AtomicU64,
    /// Literals and parameters sealed.
    pub sealed: AtomicU64,
    /// Fields of results opened.
    pub opened: AtomicU64,
    /// Handshakes with the keeper.
    pub handshakes: AtomicU64,
    /// Schemas that were read as a whole.
    pub schema_loads: AtomicU64,
    /// Questions of what has changed in a schema.
    pub schema_questions: AtomicU64,
    /// Bytes of the servers' reports of schemas.
    pub schema_bytes: AtomicU64,
    /// Bytes to servers.
    pub bytes_to_server: AtomicU64,
    /// Bytes to clients.
    pub bytes_to_client: AtomicU64,
}

impl Stats {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// A client for the admin console.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// Its address.
    pub address: String,
    /// Database.
    pub database: String,
    /// User.
    pub user: String,
    /// `application_name` of the startup packet.
    pub application: String,
    /// When it came.
    pub since: Instant,
}

/// See the module.
pub struct Shared {
    /// The configuration.
    pub config: Config,
    /// Where the server is.
    pub upstream: Upstream,
    /// The client's key.
    pub secret: SecretKey,
    /// Keys of users that are principals of their own.
    principals: HashMap<String, SecretKey>,
    /// TLS to clients.
    pub tls: Option<Tls>,
    /// Evidence of the keeper.
    pub attestation: Option<Attestation>,
    /// Columns that must be protected.
    pub pins: Pins,
    /// Counters.
    pub stats: Stats,
    /// Schemas.
    pub databases: Databases,
    keeper: Mutex<Option<PublicKey>>,
    pinned: bool,
    clients: Mutex<HashMap<u64, ClientInfo>>,
    next_client: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// State of a proxy that begins.
    pub fn new(
        config: Config,
        upstream: Upstream,
        secret: SecretKey,
        keeper: Option<PublicKey>,
        pins: Pins,
    ) -> Shared {
        Shared {
            config,
            upstream,
            secret,
            principals: HashMap::new(),
            tls: None,
            attestation: None,
            pins,
            stats: Stats::default(),
            pinned: keeper.is_some(),
            keeper: Mutex::new(keeper),
            databases: Databases::default(),
            clients: Mutex::default(),
            next_client: AtomicU64::new(1),
        }
    }

    /// With keys of users of their own.
    #[must_use]
    pub fn with_principals(self, principals: HashMap<String, SecretKey>) -> Shared {
        Shared { principals, ..self }
    }

    /// With TLS to clients.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Shared {
        Shared { tls, ..self }
    }

    /// With evidence asked for, or not.
    #[must_use]
    pub fn with_attestation(self, attestation: Attestation) -> Shared {
        Shared {
            attestation: Some(attestation),
            ..self
        }
    }

    /// The key of a user's sessions.
    pub fn secret_of(&self, user: &str) -> &SecretKey {
        self.principals.get(user).unwrap_or(&self.secret)
    }

    /// Whether the keeper with this key is the one we trust. Without a pinned
    /// key, the first one is.
    pub fn trusts(&self, key: &PublicKey) -> bool {
        let mut known = lock(&self.keeper);
        match *known {
            Some(known) => known == *key,
            None => {
                tracing::warn!(
                    keeper_key = %key,
                    "TRUSTING THE KEEPER ON FIRST USE: anybody who controls the database server \
                     could have shown this key. Compare it with the keeper's own \
                     (`confide pubkey FILE`) and set keeper_key in the configuration"
                );
                *known = Some(*key);
                true
            }
        }
    }

    /// Whether the keeper's key is configured.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Registers a client; gives its number.
    pub fn enter(&self, info: ClientInfo) -> u64 {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        lock(&self.clients).insert(id, info);
        id
    }

    /// A client has left.
    pub fn leave(&self, id: u64) {
        lock(&self.clients).remove(&id);
    }

    /// All clients, by number.
    pub fn clients(&self) -> Vec<(u64, ClientInfo)> {
        let mut all: Vec<_> = lock(&self.clients)
            .iter()
            .map(|(id, info)| (*id, info.clone()))
            .collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }
}
