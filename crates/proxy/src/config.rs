//! Configuration: a TOML file, overridden by `CONFIDE_PROXY_*` environment variables. An unknown
//! key or variable is an error.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// All settings, with their defaults.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `HOST:PORT` to listen on; `inherited`: the listening socket that the proxy gets as standard
    /// input.
    pub listen: String,
    /// The PostgreSQL server: `HOST:PORT`, or `DIRECTORY:PORT` for a Unix socket in that directory.
    /// Several are tried in their order: a list, or one string with commas.
    #[serde(deserialize_with = "places")]
    pub upstream: String,
    /// The servers that clients are connected to, like libpq's `target_session_attrs`.
    pub target_session_attrs: Target,
    /// The pooler between the proxy and the server: `none`, or `session` (each client has a process of the server
    /// until it leaves).
    pub upstream_pooling: Pooling,
    /// TLS for TCP connections to the server: `disable`, `prefer` (if the server supports it),
    /// `require` (accepting any certificate), `verify-full` (a certificate for that host, signed by
    /// an authority in `upstream_ca`).
    pub upstream_sslmode: SslMode,
    /// Certificate authorities for the server's certificate, for `verify-full`.
    pub upstream_ca: PathBuf,
    /// The proxy's client certificate for the server. Empty: none.
    pub upstream_cert: PathBuf,
    /// The key of that certificate.
    pub upstream_key: PathBuf,
    /// The client's key file (`confide keygen client`).
    pub client_key: PathBuf,
    /// The keeper's public key. If it is empty and `insecure` is set, the first key seen is trusted
    /// until the proxy stops.
    pub keeper_key: String,
    /// There is no keeper: only columns of the family `soft_` can be used.
    pub software: bool,
    /// The owner's master key, as 64 hexadecimal digits, used for encoding the family `soft_`.
    pub soft_key_file: PathBuf,
    /// Start without the keeper's public key, or without a pin.
    pub insecure: bool,
    /// Whether keepers must prove which zone they run in before a session begins: `off`,
    /// `simulated` (simulated evidence is also accepted, for tests), or `require`.
    pub attest: Attest,
    /// File with the policy that decides which evidence is accepted (docs/attestation.md). With
    /// `simulated` it may be empty: then simulated evidence of any keeper is accepted.
    pub attest_policy: PathBuf,
    /// The roles that clients may connect as, even if the database has others; `*` stands for any.
    /// The server authenticates them, unless they are in `users_file`.
    pub users: Vec<String>,
    /// The users that the proxy authenticates itself, whether or not they are in `users` (`confide
    /// user add`).
    pub users_file: PathBuf,
    /// Directory for a Unix socket to listen on as well: `.s.PGSQL.PORT`.
    pub unix_socket_dir: PathBuf,
    /// The proxy's certificate, followed by the intermediate certificates. Empty: no TLS.
    pub tls_cert: PathBuf,
    /// The certificate's key.
    pub tls_key: PathBuf,
    /// Authorities of clients' certificates. Empty: clients are not asked for certificates.
    pub tls_ca: PathBuf,
    /// Serve clients only through TLS or the Unix socket.
    pub tls_required: bool,
    /// Serve only databases that have Confide, so that a server that hides its protected types
    /// cannot make the proxy forward values in the clear.
    pub require_confide: bool,
    /// File listing the columns that must be protected (`confide pin`). Empty: those reported by
    /// the database.
    pub pin_file: PathBuf,
    /// Users for whom the catalogs show plain types instead of protected ones, so that tools
    /// understand them; `*` stands for any.
    pub plain_catalogs: Vec<String>,
    /// Maximum number of concurrent connections.
    pub max_clients: usize,
    /// Maximum length of a message in bytes.
    pub max_message_bytes: usize,
    /// Seconds within which a session that was idle when the server was restarted is continued on another
    /// connection. 0: it ends with its connection.
    pub reconnect_seconds: u64,
    /// Seconds to wait for the server when connecting.
    pub connect_timeout_seconds: u64,
    /// New sessions read the whole schema again if this much time has passed since it was last
    /// read. Changes that a superuser makes to the catalogs by hand are not reported.
    pub schema_max_age_seconds: u64,
    /// Whether values that are only assigned to a column are fitted to it and sealed for it, so that a keeper that
    /// leases identifiers stores them without an answer (docs/durability.md). On by default.
    pub fit_values: bool,
    /// Number of seconds that open connections are given to end at shutdown.
    pub shutdown_seconds: u64,
    /// `HOST:PORT` of the HTTP server for monitoring (`/metrics`, `/healthz`). Empty: none.
    pub metrics_listen: String,
    /// Database name of the admin console, for local clients. Empty: none.
    pub admin_database: String,
    /// `auto` (text on a terminal, JSON otherwise), `text` or `json`.
    pub log_format: String,
    /// `error`, `warn`, `info`, `debug`, or a filter of the crate `tracing`.
    pub log_level: String,
    /// Key files of users that are separate principals and do not use `client_key`.
    pub principals: BTreeMap<String, PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: "127.0.0.1:6432".into(),
            upstream: "127.0.0.1:5432".into(),
            target_session_attrs: Target::Any,
            upstream_pooling: Pooling::None,
            upstream_sslmode: SslMode::Disable,
            upstream_ca: PathBuf::new(),
            upstream_cert: PathBuf::new(),
            upstream_key: PathBuf::new(),
            client_key: PathBuf::new(),
            principals: BTreeMap::new(),
            keeper_key: String::new(),
            software: false,
            soft_key_file: PathBuf::new(),
            insecure: false,
            attest: Attest::Off,
            attest_policy: PathBuf::new(),
            users: Vec::new(),
            users_file: PathBuf::new(),
            unix_socket_dir: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            tls_ca: PathBuf::new(),
            tls_required: false,
            require_confide: false,
            pin_file: PathBuf::new(),
            plain_catalogs: Vec::new(),
            max_clients: 1000,
            max_message_bytes: 1 << 30,
            reconnect_seconds: 60,
            connect_timeout_seconds: 10,
            schema_max_age_seconds: 30,
            fit_values: true,
            shutdown_seconds: 10,
            metrics_listen: String::new(),
            admin_database: "confide".into(),
            log_format: "auto".into(),
            log_level: "info".into(),
        }
    }
}

/// What a pooler before the server gives to a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// There is no pooler.
    None,
    /// A process of the server, until the client leaves.
    Session,
}

/// Whether evidence is requested, and which kind is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attest {
    /// Evidence is not requested.
    Off,
    /// Simulated evidence is also accepted.
    Simulated,
    /// Only hardware evidence is accepted.
    Require,
}

impl Attest {
    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Attest::Off => "off",
            Attest::Simulated => "simulated",
            Attest::Require => "require",
        }
    }
}

/// Whether the connection to the server is encrypted, like libpq's `sslmode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server supports TLS.
    Prefer,
    /// Always, whoever the server is.
    Require,
    /// Always, and only with that host.
    VerifyFull,
}

/// The kind of server that clients are connected to, like libpq's `target_session_attrs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The first one that can be reached.
    Any,
    /// Its sessions can write.
    ReadWrite,
    /// Its sessions cannot write.
    ReadOnly,
    /// It is no standby.
    Primary,
    /// It is a standby.
    Standby,
    /// A standby, otherwise any.
    PreferStandby,
}

impl Target {
    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Any => "any",
            Target::ReadWrite => "read-write",
            Target::ReadOnly => "read-only",
            Target::Primary => "primary",
            Target::Standby => "standby",
            Target::PreferStandby => "prefer-standby",
        }
    }
}

/// Reads one string or a list of strings.
fn places<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Places {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Places::deserialize(deserializer)? {
        Places::One(place) => place,
        Places::Several(places) => places.join(","),
    })
}

/// The server's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Upstream {
    /// Host and port.
    Tcp(String),
    /// Path of the socket.
    Unix(PathBuf),
}

const PREFIX: &str = "CONFIDE_PROXY_";

impl Config {
    /// Reads the file, if any, and the environment.
    pub fn load(
        path: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, String> {
        let mut table = match path {
            None => toml::Table::new(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|e| format!("{}: {e}", path.display()))?
                .parse::<toml::Table>()
                .map_err(|e| format!("{}: {e}", path.display()))?,
        };
        let defaults =
            toml::Table::try_from(Config::default()).map_err(|e| format!("defaults: {e}"))?;
        for (name, text) in environment {
            let Some(key) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let key = key.to_ascii_lowercase();
            // The type of the default determines how the variable is parsed.
            let value = match defaults.get(&key) {
                Some(toml::Value::Integer(_)) => text
                    .parse()
                    .map(toml::Value::Integer)
                    .map_err(|_| format!("{name}: not a number"))?,
                Some(toml::Value::Boolean(_)) => text
                    .parse()
                    .map(toml::Value::Boolean)
                    .map_err(|_| format!("{name}: expected true or false"))?,
                Some(toml::Value::Array(_)) => {
                    let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
                    toml::Value::Array(words.map(|w| toml::Value::String(w.into())).collect())
                }
                Some(_) => toml::Value::String(text),
                None => return Err(format!("{name}: no such setting")),
            };
            table.insert(key, value);
        }
        let config: Config = table
            .try_into()
            .map_err(|e| format!("configuration: {e}"))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if !["auto", "text", "json"].contains(&self.log_format.as_str()) {
            return Err("log_format: expected auto, text or json".into());
        }
        if self.max_message_bytes < 1024 || self.max_message_bytes > 1 << 30 {
            return Err("max_message_bytes: expected 1024 to 1073741824".into());
        }
        if self.tls_cert.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            return Err("tls_cert and tls_key: expected both or none".into());
        }
        if self.tls_cert.as_os_str().is_empty()
            && (self.tls_required || !self.tls_ca.as_os_str().is_empty())
        {
            return Err("tls_required and tls_ca: expected tls_cert and tls_key, too".into());
        }
        if self.upstream_cert.as_os_str().is_empty() != self.upstream_key.as_os_str().is_empty() {
            return Err("upstream_cert and upstream_key: expected both or none".into());
        }
        let verifies = self.upstream_sslmode == SslMode::VerifyFull;
        if verifies && self.upstream_ca.as_os_str().is_empty() {
            return Err("upstream_sslmode: \"verify-full\" needs upstream_ca".into());
        }
        self.socket()?;
        if self.attest == Attest::Require && self.attest_policy.as_os_str().is_empty() {
            return Err("attest: \"require\" needs a policy: set attest_policy".into());
        }
        self.upstreams().map(|_| ())
    }

    /// Path of the Unix socket to listen on.
    pub fn socket(&self) -> Result<Option<PathBuf>, String> {
        if self.unix_socket_dir.as_os_str().is_empty() {
            return Ok(None);
        }
        let port = self.listen.rsplit_once(':').map(|(_, port)| port);
        let port: u16 = port
            .and_then(|port| port.parse().ok())
            .ok_or("listen: expected HOST:PORT")?;
        Ok(Some(self.unix_socket_dir.join(format!(".s.PGSQL.{port}"))))
    }

    /// Whether clients may connect as this role.
    pub fn serves(&self, user: &str) -> bool {
        self.users.iter().any(|u| u == "*" || u == user)
    }

    /// Whether the catalogs show plain types to this client. Dumps need the true types, because
    /// otherwise they would be restored in the clear; so does the command `confide`, which pins
    /// them.
    pub fn shows_plain(&self, user: &str, application: &str) -> bool {
        let named = self.plain_catalogs.iter().any(|u| u == "*" || u == user);
        named && !["pg_dump", "pg_dumpall", "confide"].contains(&application)
    }

    /// The servers' addresses.
    pub fn upstreams(&self) -> Result<Vec<Upstream>, String> {
        self.upstream.split(',').map(|p| place(p.trim())).collect()
    }

    /// The configuration as a file.
    pub fn print(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

fn place(text: &str) -> Result<Upstream, String> {
    let bad = || "upstream: expected HOST:PORT or DIRECTORY:PORT".to_owned();
    let (place, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port: u16 = port.parse().map_err(|_| bad())?;
    if place.starts_with('/') {
        let socket = Path::new(place).join(format!(".s.PGSQL.{port}"));
        Ok(Upstream::Unix(socket))
    } else if place.is_empty() {
        Err(bad())
    } else {
        Ok(Upstream::Tcp(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        pairs.into_iter()
    }

    #[test]
    fn environment_overrides_and_unknown_is_an_error() {
        let config = Config::load(
            None,
            env(&[
                ("CONFIDE_PROXY_UPSTREAM", "/tmp/pg:5499"),
                ("CONFIDE_PROXY_MAX_CLIENTS", "7"),
                ("CONFIDE_PROXY_REQUIRE_CONFIDE", "true"),
                ("CONFIDE_PROXY_USERS", "app, report"),
                ("PATH", "/"),
            ]),
        )
        .unwrap();
        assert_eq!(config.max_clients, 7);
        assert!(config.serves("report") && !config.serves("spy") && !config.serves("*"));
        assert!(config.require_confide);
        assert_eq!(
            config.upstreams().unwrap(),
            [Upstream::Unix("/tmp/pg/.s.PGSQL.5499".into())]
        );
        for bad in [
            ("CONFIDE_PROXY_UPSTRAEM", "x:1"),
            ("CONFIDE_PROXY_UPSTREAM", "x"),
            ("CONFIDE_PROXY_UPSTREAM", "x:1,"),
            ("CONFIDE_PROXY_TARGET_SESSION_ATTRS", "read_write"),
            ("CONFIDE_PROXY_MAX_CLIENTS", "many"),
            // Without a policy nothing specifies what is required; and "on" is ambiguous.
            ("CONFIDE_PROXY_ATTEST", "require"),
            ("CONFIDE_PROXY_ATTEST", "on"),
            // No authority would vouch for the server; and a misspelled mode must not be taken for
            // no mode.
            ("CONFIDE_PROXY_UPSTREAM_SSLMODE", "verify-full"),
            ("CONFIDE_PROXY_UPSTREAM_SSLMODE", "verify_ca"),
        ] {
            assert!(Config::load(None, env(&[bad])).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn several_servers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let list = "upstream = [\"a:1\", \"/b:2\"]\ntarget_session_attrs = \"read-write\"\n";
        std::fs::write(file.path(), list).unwrap();
        let config = Config::load(Some(file.path()), env(&[])).unwrap();
        let unix = Upstream::Unix("/b/.s.PGSQL.2".into());
        assert_eq!(
            config.upstreams().unwrap(),
            [Upstream::Tcp("a:1".into()), unix]
        );
        assert_eq!(config.target_session_attrs, Target::ReadWrite);
    }

    #[test]
    fn file_round_trip_and_unknown_key() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Config::default().print()).unwrap();
        let read = Config::load(Some(file.path()), env(&[])).unwrap();
        assert_eq!(read.print(), Config::default().print());
        std::fs::write(file.path(), "lisen = \"x\"\n").unwrap();
        assert!(Config::load(Some(file.path()), env(&[])).is_err());
    }
}
