//! Used restore tickets: how often each was used, until it expires.
//!
//! Who may issue a ticket, and what it permits, is decided in `dispatch::belonging`.
//!
//! Invariants: a use is on disk before it counts, so that no restart makes a ticket unused; nor
//! does an older copy of the file, as far as the audit log knows of the use, which the freshness
//! counter protects up to the last checkpoint.

use crate::fail;
use crate::sealed_file::SealedFile;
use crate::used::OfTicket;
use grant::{NUMBER_BYTES, Ticket};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use values::Error;
use zeroize::Zeroizing;

/// File name in the data directory.
pub const FILE: &str = "used-tickets";
/// Maximum number of unexpired used tickets.
const USED_MAX: usize = 65_536;
/// Number, expiry, uses.
const ENTRY_BYTES: usize = NUMBER_BYTES + 8 + 4;

type Number = [u8; NUMBER_BYTES];

/// A ticket that a session has, and whose it is.
pub struct Admitted {
    /// What it lets in.
    pub ticket: Ticket,
    /// The client that issued it; none: an operator, with the root key.
    pub issuer: Option<String>,
}

impl std::ops::Deref for Admitted {
    type Target = Ticket;

    fn deref(&self) -> &Ticket {
        &self.ticket
    }
}

#[derive(Clone, Copy)]
struct Used {
    expires: u64,
    times: u32,
}

#[derive(Default)]
struct Uses {
    of: HashMap<Number, Used>,
    /// Number of the last one since the keeper started; the WAL has them up to some number.
    last: u64,
}

/// The used tickets of a keeper.
pub struct Tickets {
    file: SealedFile,
    used: Mutex<Uses>,
    /// Uses found in the audit log at startup, by ticket number.
    known: HashMap<String, u32>,
}

/// A ticket's number as written in the audit log.
pub fn hex(number: &Number) -> String {
    number.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 by the keeper's own clock.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(u64::MAX, |d| d.as_secs())
}

impl Tickets {
    /// The used tickets of a keeper with this directory.
    pub fn open(directory: &Path, root: &Zeroizing<[u8; 32]>) -> Result<Tickets, String> {
        let file = SealedFile::new(directory, FILE, root);
        let plain = file.read()?;
        let (entries, []) = plain.as_chunks::<ENTRY_BYTES>() else {
            return Err(file.altered());
        };
        let entry = |bytes: &[u8; ENTRY_BYTES]| {
            let (number, rest) = bytes.split_first_chunk()?;
            let (expires, rest) = rest.split_first_chunk()?;
            let used = Used {
                expires: u64::from_le_bytes(*expires),
                times: u32::from_le_bytes(*rest.first_chunk()?),
            };
            Some((*number, used))
        };
        let of: HashMap<_, _> = entries.iter().filter_map(entry).collect();
        let last = u64::from(!of.is_empty());
        Ok(Tickets {
            file,
            used: Mutex::new(Uses { of, last }),
            known: HashMap::new(),
        })
    }

    /// Adds uses known from the audit log: a ticket was used at least that often.
    pub fn know(&mut self, uses: HashMap<String, u32>) {
        self.known = uses;
    }

    /// Counts a use after `note` has logged it.
    ///
    /// # Errors
    /// If the ticket has expired or is used up.
    pub fn take(
        &self,
        ticket: &Ticket,
        now: u64,
        note: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if now >= ticket.expires {
            return Err(fail::bad_ticket("It has expired."));
        }
        if ticket.uses == 0 {
            return note();
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = used.of.clone();
        next.retain(|_, used| now < used.expires);
        let entry = next.entry(ticket.number).or_insert(Used {
            expires: ticket.expires,
            times: 0,
        });
        let known = self.known.get(&hex(&ticket.number)).copied();
        entry.times = entry.times.max(known.unwrap_or_default());
        if entry.times >= ticket.uses {
            return Err(fail::bad_ticket("It was used already."));
        }
        entry.times += 1;
        if next.len() > USED_MAX {
            return Err(fail::program_limit("Too many restore tickets were used."));
        }
        note()?;
        self.write(&next)?;
        used.of = next;
        used.last += 1;
        Ok(())
    }

    /// The number of the last use since the keeper started; 1 at least if there was one before.
    pub fn last(&self) -> u64 {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.last
    }

    /// How often each was used.
    pub fn used(&self) -> Vec<OfTicket> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let each = used.of.iter().map(|(number, used)| OfTicket {
            number: *number,
            expires: used.expires,
            times: used.times,
        });
        each.collect()
    }

    /// Takes in uses at the primary.
    pub fn hear(&self, heard: &[OfTicket]) -> Result<(), Error> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut next, mut changed) = (used.of.clone(), false);
        for one in heard {
            let entry = next.entry(one.number).or_insert(Used {
                expires: one.expires,
                times: 0,
            });
            changed |= one.times > entry.times;
            entry.times = entry.times.max(one.times);
        }
        if changed {
            self.write(&next)?;
            used.of = next;
            used.last += 1;
        }
        Ok(())
    }

    fn write(&self, next: &HashMap<Number, Used>) -> Result<(), Error> {
        let mut plain = Vec::with_capacity(next.len() * ENTRY_BYTES);
        for (number, used) in next {
            plain.extend_from_slice(number);
            plain.extend_from_slice(&used.expires.to_le_bytes());
            plain.extend_from_slice(&used.times.to_le_bytes());
        }
        self.file.write(&plain).map_err(|what| {
            tracing::error!("cannot write which tickets were used: {what}");
            Error::new(b"58030", "confide: the keeper cannot note a ticket's use")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(uses: u32, expires: u64) -> Ticket {
        Ticket {
            number: [7; NUMBER_BYTES],
            expires,
            uses,
            other_columns: false,
            database: "app".into(),
            places: Vec::new(),
        }
    }

    /// A ticket is taken as often as it says, also by a keeper that was started anew; with
    /// the bug one ticket is good for ever.
    #[test]
    fn counted() -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = Zeroizing::new([1; 32]);
        let tickets = Tickets::open(dir.path(), &root)?;
        assert!(tickets.take(&ticket(2, 100), 50, || Ok(())).is_ok());
        let again = Tickets::open(dir.path(), &root)?;
        assert!(again.take(&ticket(2, 100), 50, || Ok(())).is_ok());
        assert!(again.take(&ticket(2, 100), 50, || Ok(())).is_err());
        assert!(
            Tickets::open(dir.path(), &root)?
                .take(&ticket(2, 100), 50, || Ok(()))
                .is_err()
        );
        // An older copy of the file, or none.
        let other = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut older = Tickets::open(other.path(), &root)?;
        older.know(HashMap::from([(hex(&[7; NUMBER_BYTES]), 2)]));
        assert!(older.take(&ticket(2, 100), 50, || Ok(())).is_err());
        assert!(older.take(&ticket(3, 100), 50, || Ok(())).is_ok());
        assert!(again.take(&ticket(0, 100), 99, || Ok(())).is_ok());
        assert!(again.take(&ticket(0, 100), 100, || Ok(())).is_err());
        Ok(())
    }
}
