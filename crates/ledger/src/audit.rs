//! The keeper's audit log: lines of text. Each has the hash of all lines up to it and the keeper's
//! signature, so each line is a signed head of the log.
//!
//! The fields of a line are number, seconds since 1970, kind, principal, text, hash and signature
//! (both in base64), separated by tabs. Tabs, line ends and backslashes in a field are escaped:
//! `\t`, `\n`, `\r`, `\\`.
//!
//! Where the log is stored, and what is logged, is decided elsewhere.
//!
//! Invariant: a line that verifies is as the keeper wrote it, and so are all lines before it. Only
//! a later head reveals that lines are missing at the end.

use crate::sign::SIGNATURE_BYTES;
use crate::{Error, Hash, SigningKey, VerifyingKey, base64};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// Prefix of what is hashed and signed.
const DOMAIN: &[u8] = b"confide audit 1\0";
const FORM: Error = Error::Malformed("a line of an audit log");

/// An event to be logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Time in seconds since 1970.
    pub time: u64,
    /// Kind of event: one word.
    pub kind: String,
    /// The principal, or `-`.
    pub by: String,
    /// Description.
    pub what: String,
}

/// The position of a line; represents all lines up to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Counted from 1; 0 for an empty log.
    pub number: u64,
    /// Hash over all lines up to it.
    pub hash: Hash,
}

impl Default for Head {
    fn default() -> Head {
        Head {
            number: 0,
            hash: Hash([0; 32]),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, base64(&self.hash.0))
    }
}

impl std::str::FromStr for Head {
    type Err = Error;

    fn from_str(text: &str) -> Result<Head, Error> {
        let (number, hash) = text.trim().split_once(' ').ok_or(FORM)?;
        let number = number.parse().map_err(|_| FORM)?;
        let hash = bytes(hash).map(Hash).ok_or(FORM)?;
        Ok(Head { number, hash })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    out
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next()? {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

impl Head {
    /// Appends an event and returns its line, with the line end.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn append(&mut self, event: &Event, key: &SigningKey) -> Result<String, Error> {
        let number = self.number.checked_add(1).ok_or(Error::Range)?;
        let [kind, by, what] = [&event.kind, &event.by, &event.what].map(|t| escaped(t));
        let content = format!("{number}\t{}\t{kind}\t{by}\t{what}", event.time);
        let next = self.behind(number, &content);
        let signature = key.sign(&next.signed())?;
        let [hash, signature] = [&next.hash.0[..], &signature].map(base64);
        *self = next;
        Ok(format!("{content}\t{hash}\t{signature}\n"))
    }

    fn behind(&self, number: u64, content: &str) -> Head {
        let all = [DOMAIN, &self.hash.0, content.as_bytes()].concat();
        Head {
            number,
            hash: Hash::leaf(&all),
        }
    }

    fn signed(&self) -> Vec<u8> {
        [DOMAIN, b"head\0", &self.number.to_le_bytes(), &self.hash.0].concat()
    }
}

/// A parsed line.
struct Line<'a> {
    content: &'a str,
    event: Event,
    head: Head,
    signature: [u8; SIGNATURE_BYTES],
}

fn read(line: &str) -> Option<Line<'_>> {
    let mut ends = line.rsplitn(3, '\t');
    let (signature, hash, content) = (ends.next()?, ends.next()?, ends.next()?);
    let fields: Vec<&str> = content.split('\t').collect();
    let [number, time, kind, by, what] = fields.as_slice() else {
        return None;
    };
    Some(Line {
        event: Event {
            time: time.parse().ok()?,
            kind: unescaped(kind)?,
            by: unescaped(by)?,
            what: unescaped(what)?,
        },
        head: Head {
            number: number.parse().ok()?,
            hash: Hash(bytes(hash)?),
        },
        signature: bytes(signature)?,
        content,
    })
}

/// A problem in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The line with this number in the file is not as the keeper wrote it.
    Altered(u64),
    /// The keeper wrote this record, but it belongs elsewhere: records are missing or reordered.
    Order {
        /// Number of the expected record.
        wanted: u64,
        /// Number of the record that is there.
        found: u64,
    },
    /// The log ends with this record although it was longer.
    Cut {
        /// Number of the last record.
        last: u64,
        /// Number of a record that was there.
        known: u64,
    },
    /// The record with this number is not the one that was there.
    Replaced(u64),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Altered(line) => write!(
                f,
                "line {line} was altered: it is not what this keeper signed"
            ),
            Trouble::Order { wanted, found } if found > wanted => {
                write!(f, "records {wanted} to {} are missing, or moved", found - 1)
            }
            Trouble::Order { wanted, found } => {
                write!(
                    f,
                    "record {found} stands where record {wanted} should: repeated, or moved"
                )
            }
            Trouble::Cut { last, known } => {
                write!(
                    f,
                    "the log was cut: it ends with record {last}, and had record {known}"
                )
            }
            Trouble::Replaced(number) => {
                write!(
                    f,
                    "record {number} is another than it was: the log went another way"
                )
            }
        }
    }
}

/// The records of a log, and their heads.
#[derive(Default)]
pub struct Log {
    /// All events, from the first.
    pub events: Vec<Event>,
    heads: Vec<Head>,
}

impl Log {
    /// The head of the whole log.
    #[must_use]
    pub fn head(&self) -> Head {
        self.heads.last().copied().unwrap_or_default()
    }

    /// Checks that the log extends a head known from elsewhere.
    ///
    /// # Errors
    /// Name what is missing.
    pub fn goes_on_from(&self, known: &Head) -> Result<(), Trouble> {
        if known.number == 0 {
            return Ok(());
        }
        let at = usize::try_from(known.number - 1).ok();
        match at.and_then(|at| self.heads.get(at)) {
            Some(head) if head == known => Ok(()),
            Some(_) => Err(Trouble::Replaced(known.number)),
            None => Err(Trouble::Cut {
                last: self.head().number,
                known: known.number,
            }),
        }
    }
}

/// Reads a log of complete lines and verifies its chain. With a key every signature is verified;
/// without one the last head is trusted.
///
/// # Errors
/// Name the first line that does not follow.
pub fn verify(text: &str, key: Option<&VerifyingKey>) -> Result<Log, Trouble> {
    let mut log = Log::default();
    let signed = |line: &Line<'_>| {
        key.is_none_or(|key| key.verify(&line.head.signed(), &line.signature).is_ok())
    };
    for (at, text) in (1..).zip(text.split_terminator('\n')) {
        let line = read(text).ok_or(Trouble::Altered(at))?;
        let wanted = log.head().number + 1;
        let follows = log.head().behind(wanted, line.content) == line.head;
        if follows && signed(&line) {
            log.events.push(line.event);
            log.heads.push(line.head);
            continue;
        }
        let found = line.head.number;
        // The keeper signed this record, but elsewhere in the log.
        return match key.is_some() && signed(&line) && found != wanted {
            true => Err(Trouble::Order { wanted, found }),
            false => Err(Trouble::Altered(at)),
        };
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_seed(&[7; 32]).unwrap()
    }

    fn lines(count: u64) -> Vec<String> {
        let mut head = Head::default();
        let line = |n| {
            let event = Event {
                time: 1000 + n,
                kind: "refused".into(),
                by: "ann\tor\\n".into(),
                what: format!("a\nline {n}"),
            };
            head.append(&event, &key()).unwrap()
        };
        (1..=count).map(line).collect()
    }

    fn verified(lines: &[String]) -> Result<Log, Trouble> {
        verify(&lines.concat(), Some(&key().verifying_key().unwrap()))
    }

    /// Mechanism: a line's hash covers all lines before it. Right: a line of another history of the same
    /// keeper, with the same number, is reported. Bug: the logs of two histories can be mixed.
    #[test]
    fn a_line_of_another_history() {
        let mine = lines(3);
        let mut head = Head::default();
        let event = |what: &str| Event {
            time: 1,
            kind: "refused".into(),
            by: "ann".into(),
            what: what.into(),
        };
        let mut append = |what| head.append(&event(what), &key()).unwrap();
        let other = [append("another beginning"), append("line two")];
        let mixed = [mine[0].clone(), other[1].clone()];
        assert_eq!(verified(&mixed).err(), Some(Trouble::Altered(2)));
    }

    /// Mechanism: each line is hashed with all before it, and signed. Right: an altered, missing,
    /// moved, repeated or truncated line is reported. Bug: a log that an intruder has edited
    /// verifies.
    #[test]
    fn whatever_is_done_to_it() {
        let all = lines(5);
        let log = verified(&all).ok().unwrap();
        assert_eq!(log.events[2].what, "a\nline 3");
        assert_eq!(log.events[2].by, "ann\tor\\n");
        let head: Head = log.head().to_string().parse().unwrap();
        assert_eq!(head, log.head());
        for at in 0..4 {
            let number = at as u64 + 1;
            let mut changed = all.clone();
            changed[at] = changed[at].replace("refused", "granted");
            assert_eq!(verified(&changed).err(), Some(Trouble::Altered(number)));
            let mut without = all.clone();
            without.remove(at);
            let order = |wanted, found| Some(Trouble::Order { wanted, found });
            assert_eq!(verified(&without).err(), order(number, number + 1));
            let mut swapped = all.clone();
            swapped.swap(at, at + 1);
            assert_eq!(verified(&swapped).err(), order(number, number + 1));
            let mut twice = all.clone();
            twice.insert(at, all[at].clone());
            assert_eq!(verified(&twice).err(), order(number + 1, number));
        }
        let cut = verified(&all[..3]).ok().unwrap();
        let known = Trouble::Cut { last: 3, known: 5 };
        assert_eq!(cut.goes_on_from(&head), Err(known));
        assert_eq!(log.goes_on_from(&cut.head()), Ok(()));
    }

    /// An intruder who can write the file and compute hashes has no key.
    #[test]
    fn another_key() {
        let mut head = Head::default();
        let event = Event {
            time: 1,
            kind: "x".into(),
            by: "-".into(),
            what: String::new(),
        };
        let other = SigningKey::from_seed(&[8; 32]).unwrap();
        let line = head.append(&event, &other).unwrap();
        assert_eq!(verified(&[line]).err(), Some(Trouble::Altered(1)));
        // Another log of the same keeper.
        let other = verified(&lines(2)).ok().unwrap();
        let mut head = Head::default();
        let ours = [head.append(&event, &key()).unwrap()];
        let ours = verified(&ours).ok().unwrap();
        assert_eq!(
            ours.goes_on_from(&other.head()),
            Err(Trouble::Cut { last: 1, known: 2 })
        );
        let first = verified(&lines(1)).ok().unwrap();
        assert_eq!(ours.goes_on_from(&first.head()), Err(Trouble::Replaced(1)));
    }

    #[test]
    fn nonsense() {
        for text in ["\n", "x\n", "1\t2\n", "1\t1\tx\t-\t\\q\tAAAA\tAAAA\n"] {
            assert_eq!(
                verify(text, None).err(),
                Some(Trouble::Altered(1)),
                "{text:?}"
            );
        }
        assert!(verify("", None).is_ok());
    }
}
