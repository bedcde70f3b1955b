//! A receipt: what a transaction that committed has written into ledger tables, signed by the
//! keeper, with the proof that each entry is in its log. Who has it can show later that the
//! version was written, whatever the database says of the transaction.
//!
//! A signed note ([`crate::note`]); its text has a line for each field:
//!
//! ```text
//! confide receipt 1
//! time 815000000000000          microseconds since 2000-01-01 UTC, by the keeper's clock
//! nonce bXk=
//! principal app
//! log confide/3f2a…/public.account
//! size 1204                     of the log, and its root
//! root 6sB1Yz…=
//! entry 1203 AQEB…= aGFzaA==,…  number, bytes, hashes of the proof; for each entry of this log
//! ```
//!
//! Not here: which transaction is the one (the keeper's `dispatch::receipt`).
//!
//! Invariants: a text parses in one way only; what verifies has only entries that their logs have,
//! each of this principal's.

use crate::checkpoint::Checkpoint;
use crate::entry::{Entry, Kind};
use crate::proof::Inclusion;
use crate::{Error, Hash, SigningKey, VerifyingKey, base64, note};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

const FIRST: &str = "confide receipt 1";
/// The name with which receipts are signed.
const NAME: &str = "confide/receipt";
/// Maximum number of entries.
pub const ENTRIES_MAX: usize = 10_000;

/// An entry with its proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    /// Its number in the log.
    pub index: u64,
    /// Its bytes.
    pub entry: Vec<u8>,
    /// Sibling hashes on the path to the root.
    pub path: Vec<Hash>,
}

/// The entries written to one log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The log, at a size that includes all of them.
    pub log: Checkpoint,
    /// The entries.
    pub entries: Vec<Proven>,
}

/// A receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// When it was signed.
    pub time: i64,
    /// The client's nonce.
    pub nonce: Vec<u8>,
    /// The author.
    pub principal: String,
    /// The entries, by log.
    pub logs: Vec<Written>,
}

impl Receipt {
    /// Returns the signed note.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, Error> {
        note::sign(&self.text(), NAME, key)
    }

    /// Returns the receipt in a note if this key signed it, each entry is in its log, and the
    /// nonce, if one is given, is the receipt's.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::OtherKey`], [`Error::Signature`], [`Error::Nonce`],
    /// [`Error::Proof`].
    pub fn verify(note: &str, nonce: Option<&[u8]>, key: &VerifyingKey) -> Result<Receipt, Error> {
        let (text, lines) = note::split(note)?;
        let receipt = parse(text)?;
        note::verify(text, lines, NAME, key)?;
        if nonce.is_some_and(|nonce| nonce != receipt.nonce) {
            return Err(Error::Nonce);
        }
        for written in &receipt.logs {
            written.verify(&receipt.principal)?;
        }
        Ok(receipt)
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{FIRST}\ntime {}\nnonce {}\nprincipal {}\n",
            self.time,
            base64(&self.nonce),
            self.principal
        );
        for Written { log, entries } in &self.logs {
            let root = base64(&log.root.0);
            let _ = writeln!(text, "log {}\nsize {}\nroot {root}", log.origin, log.size);
            for proven in entries {
                let path: Vec<String> = proven.path.iter().map(|hash| base64(&hash.0)).collect();
                let (index, bytes) = (proven.index, base64(&proven.entry));
                let _ = writeln!(text, "entry {index} {bytes} {}", path.join(","));
            }
        }
        text
    }
}

impl Written {
    /// Decodes the entries.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Version`].
    pub fn decoded(&self) -> Result<Vec<Entry>, Error> {
        self.entries
            .iter()
            .map(|p| Entry::decode(&p.entry))
            .collect()
    }

    fn verify(&self, principal: &str) -> Result<(), Error> {
        for (proven, entry) in self.entries.iter().zip(self.decoded()?) {
            let kinds = [Kind::Write, Kind::End, Kind::Erase, Kind::Restore];
            if entry.principal != principal || !kinds.contains(&entry.kind) {
                return Err(Error::Malformed("an entry that is not the principal's"));
            }
            let proof = Inclusion {
                index: proven.index,
                size: self.log.size,
                path: proven.path.clone(),
            };
            proof.verify(&Entry::leaf(&proven.entry), &self.log.root)?;
        }
        Ok(())
    }
}

const FORM: Error = Error::Malformed("a receipt is not as it should be");

fn parse(text: &str) -> Result<Receipt, Error> {
    let mut lines = text.split('\n');
    if lines.next() != Some(FIRST) {
        return Err(FORM);
    }
    let mut field = |name: &str| {
        let value = lines.next().and_then(|line| line.strip_prefix(name));
        value.and_then(|v| v.strip_prefix(' ')).ok_or(FORM)
    };
    let mut receipt = Receipt {
        time: number(field("time")?)?,
        nonce: bytes(field("nonce")?)?,
        principal: field("principal")?.to_owned(),
        logs: Vec::new(),
    };
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let last = receipt.logs.last_mut();
        match (words.as_slice(), last) {
            (["log", origin], _) => receipt.logs.push(Written {
                log: Checkpoint {
                    origin: (*origin).to_owned(),
                    size: 0,
                    root: Hash([0; 32]),
                },
                entries: Vec::new(),
            }),
            (["size", size], Some(written)) => written.log.size = number(size)?,
            (["root", root], Some(written)) => written.log.root = hash(root)?,
            (["entry", index, entry, path], Some(written)) => {
                let hashes = path.split(',').filter(|text| !text.is_empty());
                written.entries.push(Proven {
                    index: number(index)?,
                    entry: bytes(entry)?,
                    path: hashes.map(hash).collect::<Result<_, _>>()?,
                });
            }
            ([""], _) => {}
            _ => return Err(FORM),
        }
    }
    // For example, fields in another order, `007`, or duplicate lines.
    if receipt.text() != text {
        return Err(FORM);
    }
    Ok(receipt)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| FORM)
}

fn bytes(text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| FORM)
}

fn hash(text: &str) -> Result<Hash, Error> {
    bytes(text)?.try_into().map(Hash).map_err(|_| FORM)
}
