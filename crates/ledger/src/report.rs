//! What a walk over a ledger table found, signed by the keeper: so that the database, which
//! passes the answer on, cannot say that all is well.
//!
//! A signed note ([`crate::note`]); its text has a line `name value` for each field:
//!
//! ```text
//! confide report 1
//! log confide/3f2a…/public.account
//! size 1204
//! root 6sB1Yz…=
//! time 815000000000000          microseconds since 2000-01-01 UTC, by the keeper's clock
//! began 814000000000000         when the log began
//! before 0                      logs of tables of this name that there were before
//! nonce bXk=
//! principal app
//! versions 1190                 row versions that are as they were written
//! erased 2
//! restored 3                    of the versions: came from a dump, which says who wrote them and when
//! since 800                     of versions before this entry the columns were not compared
//! unconfirmed 17                a version whose transaction nobody saw end; not in the table
//! finding 5 altered             version and what is wrong with it; 0: the table
//! more 0                        findings beyond those listed
//! consistency 800 aGFzaA==…     from this size: hashes of the proof
//! ```
//!
//! Invariant: a text parses in one way only, the one in which it was written; its first line is
//! no origin, so that no checkpoint is a report.

use crate::proof::Consistency;
use crate::{Error, Hash, SigningKey, VerifyingKey, note};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

const FIRST: &str = "confide report 1";
/// Maximum number of findings that are listed.
pub const FINDINGS_MAX: usize = 10_000;

/// What is wrong with a row version, or with the table (number 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A value, time, principal, or column's name or type is not as it was written.
    Altered,
    /// The row was never written.
    Inserted,
    /// The version is neither in the table nor in its history.
    Removed,
    /// The version is in two rows.
    Twice,
    /// The version was ended, but is in the table.
    Revived,
    /// The version was not ended, but is in the history.
    Hidden,
    /// The history has a wrong end.
    AlteredEnd,
    /// The version's transaction was rolled back, but the version is there.
    RolledBack,
    /// The version was erased, but is there.
    Erased,
    /// The table's name is not the one in the log.
    Renamed,
}

/// Their words in a report.
const WORDS: [(What, &str); 10] = [
    (What::Altered, "altered"),
    (What::Inserted, "inserted"),
    (What::Removed, "removed"),
    (What::Twice, "twice"),
    (What::Revived, "revived"),
    (What::Hidden, "hidden"),
    (What::AlteredEnd, "altered-end"),
    (What::RolledBack, "rolled-back"),
    (What::Erased, "erased"),
    (What::Renamed, "renamed"),
];

impl What {
    /// Its word in a report.
    pub fn word(self) -> &'static str {
        let found = WORDS.iter().find(|(what, _)| *what == self);
        found.map_or("altered", |(_, word)| word)
    }
}

/// A finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The row version; 0 for the table or its log.
    pub sn: u64,
    /// What is wrong.
    pub what: What,
}

/// A report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The log: the origin of its checkpoints.
    pub log: String,
    /// Number of entries when the verification began.
    pub size: u64,
    /// Their root.
    pub root: Hash,
    /// When it was signed.
    pub time: i64,
    /// When the log began.
    pub began: i64,
    /// Number of earlier logs of tables with this name.
    pub before: u64,
    /// The client's nonce.
    pub nonce: Vec<u8>,
    /// The client's principal.
    pub principal: String,
    /// Number of row versions that are as they were written.
    pub versions: u64,
    /// Number of row versions that were erased.
    pub erased: u64,
    /// Number of these versions that were restored from a dump, which says when they were written
    /// and ended, and by whom.
    pub restored: u64,
    /// The columns of versions written before this entry were not compared; 0 if all were.
    pub since: u64,
    /// Missing row versions for which the outcome of their transaction was never reported.
    pub unconfirmed: Vec<u64>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed.
    pub more: u64,
    /// Proof that the log extends an older size, if this was requested and the log has that size.
    pub consistency: Option<Consistency>,
}

impl Report {
    /// Returns the signed note.
    ///
    /// # Errors
    /// [`Error::Malformed`] if the log's name is invalid, [`Error::Library`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, Error> {
        note::sign(&self.text(), &self.log, key)
    }

    /// Returns the report in a note if this key signed it for this nonce.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::OtherKey`], [`Error::Signature`], [`Error::Nonce`].
    pub fn verify(note: &str, nonce: &[u8], key: &VerifyingKey) -> Result<Report, Error> {
        let (text, lines) = note::split(note)?;
        let report = parse(text)?;
        note::verify(text, lines, &report.log, key)?;
        if report.nonce != nonce {
            return Err(Error::Nonce);
        }
        Ok(report)
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{FIRST}\nlog {}\nsize {}\nroot {}\ntime {}\nbegan {}\nbefore {}\nnonce {}\nprincipal {}\nversions {}\nerased {}\n",
            self.log,
            self.size,
            STANDARD.encode(self.root.0),
            self.time,
            self.began,
            self.before,
            STANDARD.encode(&self.nonce),
            self.principal,
            self.versions,
            self.erased
        );
        if self.restored > 0 {
            let _ = writeln!(text, "restored {}", self.restored);
        }
        if self.since > 0 {
            let _ = writeln!(text, "since {}", self.since);
        }
        for sn in &self.unconfirmed {
            let _ = writeln!(text, "unconfirmed {sn}");
        }
        for Finding { sn, what } in &self.findings {
            let _ = writeln!(text, "finding {sn} {}", what.word());
        }
        let _ = writeln!(text, "more {}", self.more);
        if let Some(consistency) = &self.consistency {
            let hashes = consistency.path.iter().map(|hash| STANDARD.encode(hash.0));
            let hashes: Vec<String> = hashes.collect();
            let _ = writeln!(text, "consistency {} {}", consistency.old, hashes.join(","));
        }
        text
    }
}

const FORM: Error = Error::Malformed("a report is not as it should be");

fn parse(text: &str) -> Result<Report, Error> {
    let mut lines = text.split('\n').peekable();
    if lines.next() != Some(FIRST) {
        return Err(FORM);
    }
    let mut field = |name: &str| {
        let line = lines.next().ok_or(FORM)?;
        let value = line.strip_prefix(name).and_then(|v| v.strip_prefix(' '));
        value.map(str::to_owned).ok_or(FORM)
    };
    let log = field("log")?;
    let size = number(&field("size")?)?;
    let mut report = Report {
        log,
        size,
        root: hash(&field("root")?)?,
        time: number(&field("time")?)?,
        began: number(&field("began")?)?,
        before: number(&field("before")?)?,
        nonce: STANDARD.decode(field("nonce")?).map_err(|_| FORM)?,
        principal: field("principal")?,
        versions: number(&field("versions")?)?,
        erased: number(&field("erased")?)?,
        restored: 0,
        since: 0,
        unconfirmed: Vec::new(),
        findings: Vec::new(),
        more: 0,
        consistency: None,
    };
    for line in lines {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["restored", count] => report.restored = number(count)?,
            ["since", entry] => report.since = number(entry)?,
            ["unconfirmed", sn] => report.unconfirmed.push(number(sn)?),
            ["finding", sn, word] => report.findings.push(Finding {
                sn: number(sn)?,
                what: what(word)?,
            }),
            ["more", more] => report.more = number(more)?,
            ["consistency", old, hashes] => {
                let hashes = hashes.split(',').filter(|text| !text.is_empty());
                report.consistency = Some(Consistency {
                    old: number(old)?,
                    new: size,
                    path: hashes.map(hash).collect::<Result<_, _>>()?,
                });
            }
            [""] => {}
            _ => return Err(FORM),
        }
    }
    // For example, fields in another order, `007`, or duplicate lines.
    if report.text() != text {
        return Err(FORM);
    }
    Ok(report)
}

fn what(word: &str) -> Result<What, Error> {
    let found = WORDS.iter().find(|(_, known)| *known == word);
    found.map(|(what, _)| *what).ok_or(FORM)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| FORM)
}

fn hash(text: &str) -> Result<Hash, Error> {
    let bytes = STANDARD.decode(text).map_err(|_| FORM)?;
    bytes.try_into().map(Hash).map_err(|_| FORM)
}
