//! The broker's log: one line of JSON for each request, with the hash of the line before it, on disk
//! before a key is given out.
//!
//! Invariant: each line has the hash of all that is before it; a line that was taken out or changed
//! breaks the chain ([`verify`]).

use aws_lc_rs::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is written of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// When, in seconds since 1970.
    pub time: u64,
    /// Who: the keeper's static key, if it came so far.
    pub keeper: &'a str,
    /// The key's name, if it came so far.
    pub name: &'a str,
    /// `released` or `refused`.
    pub outcome: &'a str,
    /// What the evidence says, or why not.
    pub detail: &'a str,
}

/// A log that is open.
pub struct Audit {
    path: PathBuf,
    file: File,
    last: String,
}

impl Audit {
    /// Opens a log, or makes one.
    ///
    /// # Errors
    /// The file cannot be used, or its chain is broken.
    pub fn open(path: &Path) -> Result<Audit, String> {
        let at = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true).mode(0o600);
        let mut file = options.open(path).map_err(at)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(at)?;
        let last = verify(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Audit {
            path: path.to_owned(),
            file,
            last,
        })
    }

    /// Writes an entry; when this returns it is on disk.
    ///
    /// # Errors
    /// The file cannot be written: then nothing may be given out.
    pub fn write(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let at = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let line = line(&self.last, entry);
        self.file.write_all(line.as_bytes()).map_err(at)?;
        self.file.sync_data().map_err(at)?;
        self.last = hash(line.trim_end());
        Ok(())
    }
}

#[cfg(test)]
impl Audit {
    /// A log that nothing can be written into.
    pub(crate) fn closed(path: &Path) -> std::io::Result<Audit> {
        std::fs::write(path, "")?;
        Ok(Audit {
            path: path.to_owned(),
            file: File::open(path)?,
            last: String::new(),
        })
    }
}

fn line(before: &str, entry: &Entry<'_>) -> String {
    let mut out = format!("{{\"before\":\"{before}\",\"time\":{}", entry.time);
    for (key, text) in [
        ("keeper", entry.keeper),
        ("name", entry.name),
        ("outcome", entry.outcome),
        ("detail", entry.detail),
    ] {
        let _ = write!(out, ",\"{key}\":\"");
        for c in text.chars().filter(|c| !c.is_control()).take(1000) {
            if c == '"' || c == '\\' {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
    }
    out.push_str("}\n");
    out
}

fn hash(line: &str) -> String {
    let hash = digest(&SHA256, line.as_bytes());
    hash.as_ref().iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The hash of the last line, if each line has that of the one before.
///
/// # Errors
/// The first line that does not.
pub fn verify(text: &str) -> Result<String, String> {
    let mut last = String::new();
    for (number, line) in text.lines().enumerate() {
        if !line.starts_with(&format!("{{\"before\":\"{last}\",")) {
            return Err(format!(
                "line {} does not go on from the one before",
                number + 1
            ));
        }
        last = hash(line);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(detail: &str) -> Entry<'_> {
        Entry {
            time: 7,
            keeper: "k",
            name: "n",
            outcome: "refused",
            detail,
        }
    }

    /// A line that was changed or taken out is noticed, also after the log was opened anew.
    #[test]
    fn a_chain() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("audit");
        for detail in ["one", "two \"quoted\"\nend", "three"] {
            Audit::open(&path)?.write(&entry(detail))?;
        }
        let text = std::fs::read_to_string(&path)?;
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("two \\\"quoted\\\"end"));
        std::fs::write(&path, text.replace("one", "eno"))?;
        assert!(Audit::open(&path).is_err());
        let without: Vec<&str> = text.lines().filter(|l| !l.contains("two")).collect();
        std::fs::write(&path, without.join("\n"))?;
        assert!(Audit::open(&path).is_err());
        Ok(())
    }
}
