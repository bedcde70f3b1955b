//! The log of what was applied: lines of JSON, each with the hash of the one before it.
//!
//! A line that was changed, taken out, put in or moved breaks the chain behind it. That lines
//! are missing at the end shows only to who has kept a later line's hash.
//!
//! Invariant: an entry is in the log before its action is begun.

use crate::action::Action;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// From 1 on.
    pub number: u64,
    /// When, in seconds since 1970.
    pub time: u64,
    /// Who: the user of the operating system.
    pub user: String,
    /// The file.
    pub file: String,
    /// What.
    pub action: Action,
    /// `begun`, `done`, or `failed: …`.
    pub outcome: String,
    /// The hash of the line before, or zeros.
    pub previous: String,
}

/// The end of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Number of lines.
    pub count: u64,
    /// Hash of the last.
    pub hash: String,
}

impl Default for End {
    fn default() -> End {
        End {
            count: 0,
            hash: "0".repeat(64),
        }
    }
}

fn hash(line: &str) -> String {
    let digest = digest(&SHA256, line.as_bytes());
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

impl End {
    /// The next line, without its end; the log then ends with it.
    pub fn append(&mut self, entry: Entry) -> Result<String, String> {
        let entry = Entry {
            number: self.count + 1,
            previous: self.hash.clone(),
            ..entry
        };
        let line = serde_json::to_string(&entry).map_err(|e| e.to_string())?;
        self.count += 1;
        self.hash = hash(&line);
        Ok(line)
    }
}

/// Follows the chain of a log.
///
/// # Errors
/// Name the first line that does not follow.
pub fn verify(text: &str) -> Result<End, String> {
    let mut end = End::default();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line is not complete".into());
    }
    for line in text.lines() {
        let number = end.count + 1;
        let entry: Entry =
            serde_json::from_str(line).map_err(|e| format!("line {number} is no entry: {e}"))?;
        if entry.number != number || entry.previous != end.hash {
            return Err(format!(
                "line {number} does not follow the line before it: the log was altered"
            ));
        }
        end = End {
            count: number,
            hash: hash(line),
        };
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Vec<String> {
        let mut end = End::default();
        let outcomes = ["begun", "done", "begun", "failed: x"];
        let lines = outcomes.iter().map(|outcome| {
            let entry = Entry {
                number: 0,
                time: 5,
                user: "dba".into(),
                file: "f".into(),
                action: Action::RotateLog {},
                outcome: (*outcome).to_owned(),
                previous: String::new(),
            };
            end.append(entry).unwrap()
        });
        lines.collect()
    }

    fn text(lines: &[String]) -> String {
        lines.iter().map(|l| format!("{l}\n")).collect()
    }

    /// Mechanism: each line has the hash of the one before. Right answer: any change but a cut at
    /// the end is found, and that one by the hash of the end. Bug: a line that an administrator
    /// regrets is taken out and nobody sees it.
    #[test]
    fn altered() {
        let lines = log();
        let end = verify(&text(&lines)).unwrap();
        assert_eq!(end.count, 4);
        for at in 0..3 {
            let mut without = lines.clone();
            without.remove(at);
            assert!(verify(&text(&without)).is_err());
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            assert!(verify(&text(&swapped)).is_err());
            let mut changed = lines.clone();
            changed[at] = changed[at].replace("\"dba\"", "\"bob\"");
            assert!(verify(&text(&changed)).is_err());
        }
        assert_ne!(verify(&text(&lines[..3])).unwrap().hash, end.hash);
        assert!(verify(&text(&lines)[1..]).is_err());
        assert!(verify(text(&lines).trim_end()).is_err());
        assert_eq!(verify("").unwrap(), End::default());
    }
}
