//! The keeper's audit log (`ledger::audit`): permissions granted, requests refused, and values
//! exported and imported without a client. Contains names of principals and columns, but no values.
//!
//! Permanent permissions are on disk before they take effect. Refusals and exports are written
//! without waiting for the disk, and only a limited number per minute; the next line then tells how
//! many were omitted.
//!
//! Invariants: a keeper with a data directory continues after the log's last line; it does not
//! start if the log lacks what its last checkpoint knew of it, which the freshness counter
//! protects; nothing is ever removed from the log.

use contract::Kind;
use ledger::SigningKey;
use ledger::audit::{self, Event, Head};
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use values::Error;

/// File name in the data directory.
pub const FILE: &str = "audit";
/// Maximum number of lines per minute that are written without waiting.
const BOUND: u32 = 30;
const MINUTE: u64 = 60;

/// The audit log of a keeper.
pub struct Audit {
    key: Arc<SigningKey>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// `None` without a data directory: events then go to the ordinary log only.
    file: Option<File>,
    head: Head,
    minute: u64,
    count: u32,
    left_out: u64,
    keys: HashSet<String>,
    /// Uses of restore tickets found in the log at startup, by ticket number.
    tickets: HashMap<String, u32>,
    /// Number of the last policy change found in the log at startup.
    policies: u64,
    /// ... and of the last reservation within a budget.
    reservations: u64,
    broken: bool,
}

fn now() -> u64 {
    crate::tickets::now()
}

/// Precedes the number of a policy change at the end of its line.
const CHANGE: &str = " (change ";

fn change(what: &str) -> Option<u64> {
    let (_, number) = what.strip_suffix(')')?.rsplit_once(CHANGE)?;
    number.parse().ok()
}

/// The text with which an operator accepts that the log does not continue from a head.
fn waived(head: &Head) -> String {
    format!("goes on without record {head}")
}

impl Audit {
    /// Opens the log in a directory. It must continue from its known end.
    ///
    /// # Errors
    /// If it does not.
    pub fn open(directory: &Path, key: Arc<SigningKey>, known: Head) -> Result<Audit, String> {
        let opened = |inner| Audit {
            key,
            inner: Mutex::new(inner),
        };
        if directory.as_os_str().is_empty() {
            return Ok(opened(Inner::default()));
        }
        let path = directory.join(FILE);
        let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(at(&e)),
        };
        // The last line may be incomplete because of a crash.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let lines = text.get(..whole).unwrap_or_default();
        let log = audit::verify(lines, None).map_err(|e| at(&e))?;
        let accepted = |what| {
            log.events
                .iter()
                .any(|e| e.kind == "accepted" && e.what == what)
        };
        if let Err(trouble) = log.goes_on_from(&known)
            && !accepted(waived(&known))
        {
            return Err(at(&format!(
                "{trouble}. Put the newest copy of the file back, or say that it is lost: --accept-backup"
            )));
        }
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|e| at(&e))?;
        file.set_len(whole as u64).map_err(|e| at(&e))?;
        let mut tickets: HashMap<String, u32> = HashMap::new();
        for event in log.events.iter().filter(|event| event.kind == "ticket") {
            let number = event.what.split(' ').next().unwrap_or_default();
            *tickets.entry(number.to_owned()).or_default() += 1;
        }
        let (mut policies, mut reservations) = (0, 0);
        for event in &log.events {
            match event.kind.as_str() {
                // An operator has accepted that the log is complete as it is.
                "accepted" => (policies, reservations) = (0, 0),
                "budget" => reservations = change(&event.what).unwrap_or(reservations),
                "policy" => policies = change(&event.what).unwrap_or(policies),
                _ => {}
            }
        }
        Ok(opened(Inner {
            tickets,
            policies,
            reservations,
            head: log.head(),
            file: Some(file),
            ..Inner::default()
        }))
    }

    /// An operator accepts that the log is complete as it is.
    ///
    /// # Errors
    /// If the log cannot be read or written.
    pub fn accept(directory: &Path, key: Arc<SigningKey>, known: Head) -> Result<(), String> {
        let log = Audit::open(directory, key, Head::default())?;
        let lost = log.goes_on_from(directory, &known).is_err();
        let what = if lost {
            waived(&known)
        } else {
            "a backup".into()
        };
        log.note("accepted", "-", what)
            .map_err(|e| e.message.into_owned())
    }

    fn goes_on_from(&self, directory: &Path, known: &Head) -> Result<(), String> {
        let text = std::fs::read_to_string(directory.join(FILE)).map_err(|e| e.to_string())?;
        let log = audit::verify(&text, None).map_err(|e| e.to_string())?;
        log.goes_on_from(known).map_err(|e| e.to_string())
    }

    /// Number of the last policy change logged before the keeper started; 0: none.
    pub fn policies(&self) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.policies
    }

    /// Logs a policy change.
    ///
    /// # Errors
    /// As [`Audit::note`].
    pub fn policy(&self, by: &str, what: &dyn std::fmt::Display, number: u64) -> Result<(), Error> {
        self.note("policy", by, format!("{what}{CHANGE}{number})"))
    }

    /// Like [`Audit::policies`], for reservations within budgets.
    pub fn reservations(&self) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.reservations
    }

    /// Logs a reservation within a budget.
    ///
    /// # Errors
    /// As [`Audit::note`].
    pub fn budget(&self, by: &str, what: &str, number: u64) -> Result<(), Error> {
        self.note("budget", by, format!("{what}{CHANGE}{number})"))
    }

    /// How often each restore ticket had been used when the keeper started, by ticket number.
    pub fn used_tickets(&self) -> HashMap<String, u32> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut inner.tickets)
    }

    /// The end of the log, which is on disk.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn head(&self) -> Result<Head, Error> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.sync()?;
        Ok(inner.head)
    }

    /// Logs a permanent permission before it takes effect.
    ///
    /// # Errors
    /// If it could not be written; it must not take effect then.
    pub fn note(&self, kind: &str, by: &str, what: String) -> Result<(), Error> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.append(&self.key, kind, by, what)?;
        inner.sync()
    }

    /// Logs an event that can happen arbitrarily often.
    pub fn mention(&self, kind: &str, by: &str, what: String) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now() / MINUTE;
        if inner.minute != minute {
            inner.minute = minute;
            inner.count = 0;
        }
        if inner.count >= BOUND {
            inner.left_out += 1;
            return;
        }
        inner.count += 1;
        let left_out = std::mem::take(&mut inner.left_out);
        let what = match left_out {
            0 => what,
            n => format!("{what} ({n} more before it are not listed)"),
        };
        // Failures are reported in the ordinary log.
        let _ = inner.append(&self.key, kind, by, what);
    }

    /// Logs the first use of a client's key.
    pub fn key_used(&self, name: &str, key: &dyn std::fmt::Display) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let text = key.to_string();
        if inner.keys.insert(format!("{text} {name}")) {
            let _ = inner.append(&self.key, "key-used", name, text);
        }
    }

    /// Logs that a client's key was withdrawn. Its next use will be logged again.
    pub fn key_withdrawn(&self, name: &str, key: &dyn std::fmt::Display) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let text = key.to_string();
        if inner.keys.remove(&format!("{text} {name}")) {
            let _ = inner.append(&self.key, "key-withdrawn", name, text);
        }
    }

    /// Logs that a request was refused.
    #[cold]
    pub fn refused(&self, by: &str, session: u64, kind: Kind, error: &Error) {
        let detail = error.detail.as_deref().unwrap_or_default();
        let state = String::from_utf8_lossy(&error.sqlstate);
        let what = format!(
            "{state} {} {detail} ({kind:?}, session {session})",
            error.message
        );
        self.mention("refused", by, what);
    }
}

impl Inner {
    fn append(
        &mut self,
        key: &SigningKey,
        kind: &str,
        by: &str,
        what: String,
    ) -> Result<(), Error> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(());
        };
        if self.broken {
            return Err(failed(&"an earlier line could not be written"));
        }
        let event = Event {
            time: now(),
            kind: kind.into(),
            by: by.into(),
            what,
        };
        let mut next = self.head;
        let line = next.append(&event, key).map_err(|e| failed(&e))?;
        let before = file.metadata().map_err(|e| failed(&e))?.len();
        if let Err(error) = file.write_all(line.as_bytes()) {
            // A partial line would break the chain.
            self.broken = file.set_len(before).is_err();
            return Err(failed(&error));
        }
        self.head = next;
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        match &self.file {
            Some(file) => file.sync_data().map_err(|e| failed(&e)),
            None => Ok(()),
        }
    }
}

fn failed(what: &dyn std::fmt::Display) -> Error {
    tracing::error!("cannot write the audit log: {what}");
    Error::new(b"58030", "confide: the keeper cannot write its audit log")
        .hint("Make room in the keeper's data directory.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Result<Arc<SigningKey>, String> {
        let key = SigningKey::from_seed(&[3; 32]);
        key.map(Arc::new).map_err(|e| e.to_string())
    }

    /// The log goes on over restarts and torn lines; where it lacks what was known of it, the
    /// keeper does not start, until an operator says that it is lost.
    #[test]
    fn goes_on() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = dir.path().join(FILE);
        let open = |known| Audit::open(dir.path(), key()?, known);
        let note = |log: &Audit| {
            log.note("policy", "ann", "x".into())
                .map_err(|e| e.to_string())
        };
        let log = open(Head::default())?;
        note(&log)?;
        let first = log.head().map_err(|e| e.to_string())?;
        let old = std::fs::read(&path).map_err(|e| e.to_string())?;
        note(&log)?;
        let second = log.head().map_err(|e| e.to_string())?;
        drop(log);
        let mut file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|e| e.to_string())?;
        file.write_all(b"3\t1\tpol").map_err(|e| e.to_string())?;
        let log = open(second)?;
        note(&log)?;
        drop(log);
        open(first)?;
        std::fs::write(&path, &old).map_err(|e| e.to_string())?;
        assert!(open(second).is_err_and(|e| e.contains("was cut")));
        Audit::accept(dir.path(), key()?, second)?;
        note(&open(second)?)?;
        std::fs::remove_file(&path).map_err(|e| e.to_string())?;
        assert!(open(second).is_err());
        Audit::accept(dir.path(), key()?, second)?;
        open(second)?;
        Ok(())
    }

    /// Whoever is refused all the time does not fill the disk, nor hide how often it was.
    #[test]
    fn bounded() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let log = Audit::open(dir.path(), key()?, Head::default())?;
        for _ in 0..10 * BOUND {
            log.mention("refused", "eve", "x".into());
        }
        let head = log.head().map_err(|e| e.to_string())?;
        // The minute may have changed once.
        assert!(head.number <= u64::from(2 * BOUND));
        let mut inner = log.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.minute = 0;
        drop(inner);
        log.mention("refused", "eve", "x".into());
        let text = std::fs::read_to_string(dir.path().join(FILE)).map_err(|e| e.to_string())?;
        assert!(text.contains(" more before it are not listed"));
        Ok(())
    }
}
