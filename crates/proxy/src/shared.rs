//! Data shared by the connections of a proxy: keys, schemas (`databases`), counters.
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use envelope::{PublicKey, SecretKey};
use rewrite::Pin;

use crate::attestation::Attestation;
use crate::config::Config;
use crate::databases::Databases;
use crate::gate::Gate;
use crate::keys::Keys;
use crate::live::{self, Live};
use crate::tls::Tls;
use crate::upstream::Servers;

/// Counters for the admin console.
#[derive(Default)]
pub struct Stats {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Queries and Executes.
    pub statements: AtomicU64,
    /// Texts analysed, and those of them whose analysis was known.
    pub analyses: AtomicU64,
    pub analyses_reused: AtomicU64,
    /// Statements refused.
    pub refused: AtomicU64,
    /// Literals and parameters sealed.
    pub sealed: AtomicU64,
    /// Fields of results opened.
    pub opened: AtomicU64,
    /// Handshakes with the keeper.
    pub handshakes: AtomicU64,
    /// Sessions continued on another connection to a server.
    pub reconnections: AtomicU64,
    /// Leases of sessions renewed.
    pub renewals: AtomicU64,
    /// Schemas read as a whole.
    pub schema_loads: AtomicU64,
    /// Requests for changes of a schema.
    pub schema_questions: AtomicU64,
    /// Bytes of the servers' schema reports.
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

/// A counter or a gauge.
pub struct Metric {
    /// Its name in Prometheus.
    pub name: String,
    /// A description for people.
    pub help: &'static str,
    /// Its value.
    pub value: u64,
}

impl Metric {
    fn new(name: &str, help: &'static str, value: u64) -> Metric {
        let name = format!("confide_proxy_{name}");
        Metric { name, help, value }
    }
}

/// A client, for the admin console.
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
    /// When it connected.
    pub since: Instant,
}

/// The shared data.
pub struct Shared {
    /// The configuration.
    pub config: Config,
    /// The servers.
    pub upstream: Servers,
    /// The client's key.
    pub secret: SecretKey,
    /// TLS to clients.
    pub tls: Option<Tls>,
    /// Evidence of the keeper.
    pub attestation: Option<Attestation>,
    /// Keys of the family `soft_`.
    pub soft: Option<Arc<client::soft::Keyring>>,
    /// The configuration file.
    source: Option<PathBuf>,
    live: RwLock<Arc<Live>>,
    /// Counters.
    pub stats: Stats,
    /// Schemas.
    pub databases: Databases,
    /// `PAUSE`.
    pub gate: Gate,
    /// Keys for cancel requests.
    pub keys: Keys,
    keeper: Mutex<Option<PublicKey>>,
    pinned: bool,
    clients: Mutex<HashMap<u64, ClientInfo>>,
    next_client: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The state of a newly started proxy.
    pub fn new(
        config: Config,
        upstream: Servers,
        secret: SecretKey,
        keeper: Option<PublicKey>,
    ) -> Shared {
        Shared {
            config,
            upstream,
            secret,
            tls: None,
            attestation: None,
            soft: None,
            source: None,
            live: RwLock::default(),
            stats: Stats::default(),
            pinned: keeper.is_some(),
            keeper: Mutex::new(keeper),
            databases: Databases::default(),
            gate: Gate::default(),
            keys: Keys::default(),
            clients: Mutex::default(),
            next_client: AtomicU64::new(1),
        }
    }

    /// Sets the configuration file, and the data that can be read again.
    #[must_use]
    pub fn with_live(self, source: Option<PathBuf>, live: Live) -> Shared {
        let live = RwLock::new(Arc::new(live));
        Shared {
            source,
            live,
            ..self
        }
    }

    /// Returns the current data from the configuration's files.
    pub fn live(&self) -> Arc<Live> {
        let live = self.live.read();
        live.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the configuration's files again; returns the settings that require a restart.
    pub fn reload(&self) -> Result<Vec<String>, String> {
        let (live, waiting) = live::again(self.source.as_deref(), &self.config)?;
        let now = self.live.write();
        *now.unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
        self.databases.doubt_all();
        Ok(waiting)
    }

    /// Sets TLS to clients.
    #[must_use]
    pub fn with_tls(self, tls: Option<Tls>) -> Shared {
        Shared { tls, ..self }
    }

    /// Sets the keys of the family `soft_`.
    #[must_use]
    pub fn with_soft(self, soft: Option<client::soft::Keyring>) -> Shared {
        Shared {
            soft: soft.map(Arc::new),
            ..self
        }
    }

    /// Sets whether evidence is requested.
    #[must_use]
    pub fn with_attestation(self, attestation: Attestation) -> Shared {
        Shared {
            attestation: Some(attestation),
            ..self
        }
    }

    /// The columns of a database that must be protected.
    pub fn pin_of(&self, database: &str) -> Option<Arc<Pin>> {
        self.live().pins.of(database)
    }

    /// Whether the keeper with this key is trusted. If no key is pinned, the first one is trusted.
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

    /// Registers a client; returns its number.
    pub fn enter(&self, info: ClientInfo) -> u64 {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        lock(&self.clients).insert(id, info);
        id
    }

    /// A client has disconnected.
    pub fn leave(&self, id: u64) {
        lock(&self.clients).remove(&id);
    }

    /// Number of clients.
    fn client_count(&self) -> u64 {
        lock(&self.clients).len() as u64
    }

    /// The counters, for people and for monitoring.
    pub fn metrics(&self) -> Vec<Metric> {
        let s = &self.stats;
        let counters: [(&str, &str, &AtomicU64); 15] = [
            ("connections_total", "Connections accepted.", &s.connections),
            ("statements_total", "Queries and Executes.", &s.statements),
            ("analyses_total", "Texts analysed.", &s.analyses),
            (
                "analyses_reused_total",
                "Texts whose analysis was known.",
                &s.analyses_reused,
            ),
            ("refused_total", "Statements refused.", &s.refused),
            ("sealed_total", "Literals and parameters sealed.", &s.sealed),
            ("opened_total", "Fields of results opened.", &s.opened),
            (
                "handshakes_total",
                "Handshakes with the keeper.",
                &s.handshakes,
            ),
            (
                "reconnections_total",
                "Sessions continued after a restart of the server.",
                &s.reconnections,
            ),
            (
                "renewals_total",
                "Leases of sessions with the keeper renewed.",
                &s.renewals,
            ),
            (
                "schema_loads_total",
                "Schemas read as a whole.",
                &s.schema_loads,
            ),
            (
                "schema_questions_total",
                "Questions of what has changed in a schema.",
                &s.schema_questions,
            ),
            (
                "schema_report_bytes_total",
                "Bytes of the servers' reports of schemas.",
                &s.schema_bytes,
            ),
            (
                "to_server_bytes_total",
                "Bytes to servers.",
                &s.bytes_to_server,
            ),
            (
                "to_client_bytes_total",
                "Bytes to clients.",
                &s.bytes_to_client,
            ),
        ];
        let counters = counters
            .map(|(name, help, counter)| Metric::new(name, help, counter.load(Ordering::Relaxed)));
        counters.into_iter().chain(self.gauges()).collect()
    }

    fn gauges(&self) -> [Metric; 3] {
        [
            Metric::new("clients", "Clients now.", self.client_count()),
            Metric::new(
                "active",
                "Clients with a statement or transaction in progress.",
                self.gate.turns(),
            ),
            Metric::new(
                "paused",
                "Whether PAUSE is in force.",
                u64::from(self.gate.is_closed()),
            ),
        ]
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
