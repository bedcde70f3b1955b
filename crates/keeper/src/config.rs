//! Configuration: a TOML file, overridden by environment variables
//! `CONFIDE_KEEPER_` + the key in capitals. A key that does not exist is an
//! error in both.

use crate::machine;
use channel::secret::Wish;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Prefix of environment variables.
pub const ENV_PREFIX: &str = "CONFIDE_KEEPER_";
/// The file read by default, if it exists.
pub const DEFAULT_FILE: &str = "/etc/confide/keeper.toml";

/// All settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Unix socket that backends connect to.
    pub socket: PathBuf,
    /// Permissions of the socket, in octal.
    pub socket_mode: Mode,
    /// Users, by name or number, whose processes may connect, in addition to the keeper's own user.
    pub users: Vec<String>,
    /// Device that the backends' guest maps, too, and that channels have their memory on, where a
    /// backend cannot be passed a descriptor (docs/attestation.md); empty: each channel has its own.
    pub channel_memory: PathBuf,
    /// The keeper's static key; created if it does not exist.
    pub key_file: PathBuf,
    /// The wrapped root key; created if it does not exist and there is no store.
    pub root_key_file: PathBuf,
    /// What wraps it: `file:PATH` (development; without a path, beside the root
    /// key's file), `passphrase:file=PATH`, `passphrase:fd=N`,
    /// `passphrase:credential=NAME`, a PKCS#11 URI, or `broker://HOST:PORT?key=KEY&name=NAME`
    /// (docs/attestation.md).
    pub root_key_source: String,
    /// How clients are shown which zone the keeper runs in: `simulated` (proves nothing), `tsm`
    /// (Intel TDX, AMD SEV-SNP), or `tsm:` and a directory (docs/attestation.md).
    pub evidence: String,
    /// Directory where checkpoints of ledger tables are published for anybody to fetch and keep;
    /// empty: none (docs/ledger.md).
    pub ledger_publish_dir: PathBuf,
    /// Interval of publication in seconds; a log without new entries is skipped.
    pub ledger_publish_seconds: u64,
    /// Whether the root key is in memory that the kernel hides from all others, root included: `off`,
    /// `auto` (if the kernel has `memfd_secret`), `require` (docs/security.md).
    pub secret_memory: SecretMemory,
    /// How much of it is reserved for keys.
    pub secret_memory_size: Bytes,
    /// Whether values are in such memory, too (docs/security.md).
    pub secret_values: bool,
    /// Directory of checkpoints; empty: values are lost when the keeper exits.
    pub data_dir: PathBuf,
    /// Directory of recordings (docs/maintenance.md); empty: `recordings` within `data_dir`.
    pub record_dir: PathBuf,
    /// The last so many seconds are always recorded (docs/maintenance.md); 0: only when ordered.
    pub record_ring_seconds: u64,
    /// With as many bytes at most.
    pub record_ring_bytes: u64,
    /// Whether segments in `data_dir` and long redo records are compressed before they are sealed.
    /// Lengths then disclose how well values compress (docs/leakage.md).
    pub compress_at_rest: bool,
    /// Whether export envelopes are accepted without a restore ticket, into the column that they
    /// came from. Whoever holds one can put its value into any row of that column
    /// (docs/security.md).
    pub take_exports: bool,
    /// Whether sessions without a client may compare values only in columns on which a client has
    /// built or searched an index, or that a restore ticket covers (docs/security.md).
    pub index_order_only: bool,
    /// File of the counter that distinguishes old copies of `data_dir` from the newest one; empty:
    /// `data_dir` with the extension `freshness`.
    pub freshness_file: PathBuf,
    /// A TPM 2.0 (`/dev/tpmrm0`, or the socket of swtpm) whose NV counter is used
    /// instead of a file; empty: the file.
    pub freshness_tpm: PathBuf,
    /// The counter's NV index.
    pub freshness_tpm_index: u32,
    /// Public keys and names of the clients that may open a session.
    pub clients_file: PathBuf,
    /// File for the process ID, written when the keeper is ready; empty: none.
    pub pid_file: PathBuf,
    /// Hard limit on memory for values of columns and sessions together (53200); by default nine
    /// tenths of the memory of the machine or control group.
    pub memory_limit: Bytes,
    /// Memory for column values above which those not used lately are evicted to `data_dir`; by
    /// default half of the memory; 0: all values stay in memory.
    pub memory_budget: Bytes,
    /// Memory for opened cells of the family `rnd_`; 0: none are kept, since opening a short cell takes no
    /// longer than finding it (docs/families.md).
    pub cell_cache: Bytes,
    /// Memory for answers of programs about such cells; 0: none are kept. Whether a question was asked
    /// before can then be seen from the time that its answer takes (docs/leakage.md).
    pub answer_cache: Bytes,
    /// Whether values are read back from `data_dir` in advance where a column is read in order.
    pub read_ahead: bool,
    /// Whether clients are given the keys of columns that they may see, so that the database can
    /// reuse envelopes that were made for other clients (docs/decisions.md).
    pub deliver: bool,
    /// Whether identifiers are leased, so that values sealed by clients are stored without an answer
    /// (docs/decisions.md, "Client-sealed redo").
    pub lease: bool,
    /// Size of the random data that a probe sorts and searches, to tell how busy the keeper is
    /// (docs/families.md); 0: no probes.
    pub probe_bytes: Bytes,
    /// Least time between two probes, in milliseconds; requests in between get the last result.
    pub probe_interval_ms: u64,
    /// Memory for the temporary values of one session.
    pub session_memory_limit: Bytes,
    /// Maximum number of open channels.
    pub max_channels: u32,
    /// Maximum number of open channels per session: the backend's and those of its parallel
    /// workers.
    pub session_channels: u32,
    /// Maximum number of copies of the store that backups make at a time; each session makes one at
    /// most.
    pub store_copies: u32,
    /// For how many microseconds a thread that has nothing to do looks for its next request before it
    /// sleeps, while nobody else wants the processor (docs/operations.md); 0: it sleeps soon.
    pub linger_us: u64,
    /// Seconds after which a client's session ends unless the client renews it, which the proxy
    /// does; 0: when its channel is closed. A statement that takes longer fails.
    pub session_lease_seconds: u16,
    /// Whether a client's session may perform only operations that a grant of the client covers
    /// (docs/security.md).
    pub require_grants: bool,
    /// Whether the client that creates a table owns its protected columns. Columns declared SECRET
    /// are always owned (docs/security.md).
    pub creators_own: bool,
    /// Whether the keeper restricts its own process: access to other files, the network, most
    /// system calls (docs/security.md).
    pub sandbox: bool,
    /// Names of the clients that may assign the first owner of a column, reverse changes of owners,
    /// and record. Empty: each client may claim columns without an owner for itself, and nothing is
    /// reversed or recorded.
    pub administrators: Vec<String>,
    /// Number of administrators who together can assign another owner to a column; 0: not possible.
    pub recovery_quorum: u32,
    /// Log level: `error`, `warn`, `info`, `debug`.
    pub log: String,
}

impl Default for Config {
    fn default() -> Config {
        let memory = machine::memory();
        Config {
            socket: "/run/confide/keeper.sock".into(),
            socket_mode: Mode(0o660),
            users: vec!["postgres".into()],
            channel_memory: PathBuf::new(),
            key_file: "/var/lib/confide/keeper.key".into(),
            root_key_file: "/var/lib/confide/root.key".into(),
            root_key_source: "file:".into(),
            evidence: "simulated".into(),
            secret_memory: SecretMemory::Auto,
            secret_memory_size: Bytes(6 << 20),
            secret_values: false,
            ledger_publish_dir: PathBuf::new(),
            ledger_publish_seconds: 60,
            data_dir: PathBuf::new(),
            record_dir: PathBuf::new(),
            record_ring_seconds: 0,
            record_ring_bytes: 256 << 20,
            compress_at_rest: true,
            take_exports: false,
            index_order_only: true,
            freshness_file: PathBuf::new(),
            freshness_tpm: PathBuf::new(),
            freshness_tpm_index: 0x0180_c0fd,
            clients_file: "/etc/confide/clients".into(),
            pid_file: PathBuf::new(),
            memory_limit: share(memory, 9),
            memory_budget: share(memory, 5),
            cell_cache: Bytes(0),
            answer_cache: Bytes(0),
            read_ahead: true,
            deliver: true,
            lease: true,
            probe_bytes: Bytes(64 << 10),
            probe_interval_ms: 100,
            session_memory_limit: Bytes(1 << 30),
            max_channels: 512,
            session_channels: 64,
            store_copies: 4,
            linger_us: 2000,
            session_lease_seconds: 8 * 60 * 60,
            require_grants: true,
            creators_own: false,
            sandbox: true,
            administrators: Vec::new(),
            recovery_quorum: 0,
            log: "info".into(),
        }
    }
}

/// So many tenths of the memory, in whole megabytes.
fn share(memory: usize, tenths: usize) -> Bytes {
    Bytes(((memory / 10 * tenths) >> 20 << 20).max(1 << 20))
}

/// Whether hidden memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretMemory {
    /// No.
    Off,
    /// If the kernel has it.
    Auto,
    /// The keeper does not start without it.
    Require,
}

impl From<SecretMemory> for Wish {
    fn from(setting: SecretMemory) -> Wish {
        match setting {
            SecretMemory::Off => Wish::Off,
            SecretMemory::Auto => Wish::Auto,
            SecretMemory::Require => Wish::Require,
        }
    }
}

/// Permissions, written in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// A size, written as a number of bytes or as text with kB, MB, GB or TB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{:04o}", self.0))
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Mode, D::Error> {
        let text = String::deserialize(d)?;
        let bad = || de::Error::custom("expected permissions in octal, like \"0660\"");
        let mode = u32::from_str_radix(&text, 8).map_err(|_| bad())?;
        if mode > 0o777 {
            Err(bad())
        } else {
            Ok(Mode(mode))
        }
    }
}

const UNITS: [(&str, usize); 5] = [
    ("kB", 1 << 10),
    ("MB", 1 << 20),
    ("GB", 1 << 30),
    ("TB", 1 << 40),
    ("B", 1),
];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit: &&(&str, usize)| self.0 > 0 && self.0.is_multiple_of(unit.1);
        let (name, size) = UNITS.iter().take(4).rev().find(fits).unwrap_or(&("B", 1));
        write!(f, "{}{name}", self.0 / size)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        let bad = || de::Error::custom("expected a size, like \"512MB\"");
        let number = |n: i64| usize::try_from(n).map_err(|_| bad());
        match Value::deserialize(d)? {
            Value::Integer(n) => number(n).map(Bytes),
            Value::String(text) => {
                let text = text.trim();
                let unit = UNITS.iter().find(|(name, _)| text.ends_with(name));
                let (name, size) = unit.copied().unwrap_or(("", 1));
                let digits = text.strip_suffix(name).unwrap_or(text).trim();
                let n = number(digits.parse().map_err(|_| bad())?)?;
                n.checked_mul(size).map(Bytes).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

impl Config {
    /// The file of the freshness counter.
    pub fn freshness(&self) -> PathBuf {
        match self.freshness_file.as_os_str().is_empty() {
            true => self.data_dir.with_extension("freshness"),
            false => self.freshness_file.clone(),
        }
    }

    /// Where recordings go; empty: nowhere.
    pub fn recordings(&self) -> PathBuf {
        let named = !self.record_dir.as_os_str().is_empty();
        match named || self.data_dir.as_os_str().is_empty() {
            true => self.record_dir.clone(),
            false => self.data_dir.join("recordings"),
        }
    }

    /// Reads a file (the default one if there is one) and the environment.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, String> {
        let default = Path::new(DEFAULT_FILE);
        let file = file.or(default.exists().then_some(default));
        let text = match file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|e| format!("cannot read {}: {e}", path.display()))?,
            None => String::new(),
        };
        let place = file.map_or(String::new(), |p| format!("{}: ", p.display()));
        let table: Table = text.parse().map_err(|e| format!("{place}{e}"))?;
        // Check the file separately first, so that an error names the right place.
        Config::deserialize(table.clone()).map_err(|e| format!("{place}{e}"))?;
        let table = overlay(table, environment)?;
        Config::deserialize(table).map_err(|e| format!("environment: {e}"))
    }

    /// The settings as a configuration file.
    pub fn print(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

/// Applies environment variables to a table, each parsed according to its setting.
fn overlay(
    mut table: Table,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Table, String> {
    let defaults = Table::try_from(Config::default()).map_err(|e| e.to_string())?;
    for (name, text) in environment {
        let Some(key) = name.strip_prefix(ENV_PREFIX) else {
            continue;
        };
        let key = key.to_ascii_lowercase();
        let value = match defaults.get(&key) {
            None => return Err(format!("environment: {name} is not a setting")),
            Some(Value::Array(_)) => {
                let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
                Value::Array(words.map(|w| Value::String(w.into())).collect())
            }
            Some(Value::Integer(_)) => {
                let number = text.trim().parse();
                Value::Integer(number.map_err(|_| format!("environment: {name} is no number"))?)
            }
            Some(Value::Boolean(_)) => {
                let word = text.trim().parse();
                Value::Boolean(
                    word.map_err(|_| format!("environment: {name} is not true or false"))?,
                )
            }
            Some(_) => Value::String(text),
        };
        table.insert(key, value);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = dir.path().join("keeper.toml");
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        let environment = environment
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()));
        Config::load(Some(&path), environment)
    }

    #[test]
    fn file_and_environment() {
        let config = load(
            "socket = \"/tmp/a\"\nsocket_mode = \"0600\"\nmemory_limit = \"10MB\"\nusers = []",
            &[
                ("CONFIDE_KEEPER_SOCKET", "/tmp/b"),
                ("CONFIDE_KEEPER_USERS", "alice, 1000"),
                ("CONFIDE_KEEPER_MAX_CHANNELS", "7"),
                ("CONFIDE_KEEPER_COMPRESS_AT_REST", "false"),
                ("OTHER", "x"),
            ],
        );
        let wanted = Config {
            socket: "/tmp/b".into(),
            socket_mode: Mode(0o600),
            memory_limit: Bytes(10 << 20),
            users: vec!["alice".into(), "1000".into()],
            max_channels: 7,
            compress_at_rest: false,
            ..Config::default()
        };
        assert_eq!(config, Ok(wanted));
    }

    /// By default values go out of memory long before statements are refused.
    #[test]
    fn memory_of_the_machine() {
        let Config {
            memory_limit: limit,
            memory_budget: budget,
            ..
        } = Config::default();
        assert!(budget.0 > 0 && budget.0 * 3 / 2 < limit.0);
        assert!(limit.0 < crate::machine::memory());
        assert_eq!(share(10 << 30, 5), Bytes(5 << 30));
    }

    /// A misspelt setting must not be silently ignored.
    #[test]
    fn unknown_is_an_error() {
        assert!(load("sockett = \"/tmp/a\"", &[]).is_err());
        assert!(load("", &[("CONFIDE_KEEPER_SOCKETT", "/tmp/a")]).is_err());
        assert!(load("socket_mode = \"0990\"", &[]).is_err());
        assert!(load("memory_limit = \"1XB\"", &[]).is_err());
        assert!(load("memory_limit = -1", &[]).is_err());
        assert!(load("", &[("CONFIDE_KEEPER_COMPRESS_AT_REST", "yes")]).is_err());
    }

    /// What is printed reads back as the same.
    #[test]
    fn prints_itself() {
        assert_eq!(load(&Config::default().print(), &[]), Ok(Config::default()));
    }
}
