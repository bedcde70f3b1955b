//! Reports of Intel TDX and AMD SEV-SNP by way of the kernel's configfs-tsm: a directory is made,
//! the data are written into its `inblob`, and `outblob` is the report.
//!
//! Invariant: a report is given out only if nobody else asked by the same directory meanwhile
//! (`generation`).

use crate::provider::{Error, Provider, Quote};
use crate::{DATA_BYTES, DOCUMENT_MAX, Kind};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the kernel has it.
pub(crate) const KERNEL: &str = "/sys/kernel/config/tsm/report";

/// Makes an entry: the kernel fills the directory.
type Make = fn(&Path) -> io::Result<()>;

/// The kernel's reports.
pub struct Tsm {
    directory: PathBuf,
    make: Make,
    entries: AtomicU64,
}

/// A directory that goes away in the end.
struct Entry(PathBuf);

impl Drop for Entry {
    fn drop(&mut self) {
        // The kernel lets a directory with its attributes go; nothing else is in it.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Tsm {
    /// Those of this directory, which must be there.
    ///
    /// # Errors
    /// [`Error::Provider`] if it is not.
    pub fn new(directory: &Path) -> Result<Tsm, Error> {
        Tsm::with(directory, |path| fs::create_dir(path))
    }

    /// Those of a directory whose entries are made in this way.
    ///
    /// # Errors
    /// As [`Tsm::new`].
    pub fn with(directory: &Path, make: Make) -> Result<Tsm, Error> {
        if !directory.is_dir() {
            return Err(Error::Provider(format!(
                "{}: missing; is this a confidential guest, is configfs mounted, and is the \
                 module tdx_guest or sev_guest loaded?",
                directory.display()
            )));
        }
        Ok(Tsm {
            directory: directory.to_owned(),
            make,
            entries: AtomicU64::new(0),
        })
    }

    fn entry(&self) -> Result<Entry, Error> {
        let number = self.entries.fetch_add(1, Ordering::Relaxed);
        let name = format!("confide-{}-{number}", std::process::id());
        let path = self.directory.join(name);
        (self.make)(&path).map_err(|e| Error::Io(path.display().to_string(), e))?;
        Ok(Entry(path))
    }
}

impl Provider for Tsm {
    fn quote(&self, data: &[u8; DATA_BYTES]) -> Result<Quote, Error> {
        let entry = self.entry()?;
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .open(entry.0.join("inblob"))?;
            // One write: each begins a new generation.
            file.write_all(data)
        };
        write().map_err(|e| Error::Io(entry.0.join("inblob").display().to_string(), e))?;
        let before = read(&entry, "generation")?;
        let report = read(&entry, "outblob")?;
        let certificates = match read(&entry, "auxblob") {
            Err(Error::Io(_, e)) if e.kind() == ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        let provider = read(&entry, "provider")?;
        if read(&entry, "generation")? != before {
            return Err(Error::Provider(
                "somebody else uses the keeper's report".into(),
            ));
        }
        let kind = match provider.trim_ascii() {
            b"tdx_guest" => Kind::Tdx,
            b"sev_guest" => Kind::Snp,
            other => {
                let name: String = String::from_utf8_lossy(other).chars().take(32).collect();
                return Err(Error::Provider(format!(
                    "reports of \"{name}\" are not known"
                )));
            }
        };
        Ok(Quote {
            kind,
            report,
            certificates,
        })
    }
}

fn read(entry: &Entry, name: &str) -> Result<Vec<u8>, Error> {
    let path = entry.0.join(name);
    let mut bytes = Vec::new();
    let most = DOCUMENT_MAX as u64 + 1;
    let done = File::open(&path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    done.map_err(|e| Error::Io(path.display().to_string(), e))?;
    match bytes.len() <= DOCUMENT_MAX {
        true => Ok(bytes),
        false => Err(Error::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Purpose, Subject, document, report_data};

    /// What the kernel does, but that the report is there before it is asked for.
    fn kernel(path: &Path, provider: &str) -> io::Result<()> {
        fs::create_dir(path)?;
        fs::write(path.join("inblob"), "")?;
        fs::write(path.join("generation"), "1\n")?;
        fs::write(path.join("provider"), provider)?;
        fs::write(path.join("outblob"), b"a report")
    }

    type Tested = Result<(), Box<dyn std::error::Error>>;

    /// The data that go to the kernel are those of keys and nonce, and what it gives is in the
    /// document.
    #[test]
    fn a_report() -> Tested {
        let directory = tempfile::tempdir()?;
        let tsm = Tsm::with(directory.path(), |path| {
            kernel(path, "tdx_guest\n")?;
            fs::write(path.join("auxblob"), b"certificates")
        })?;
        let subject = Subject {
            purpose: Purpose::Session,
            channel: &[1; 32],
            signing: &[2; 32],
            nonce: b"nonce",
        };
        let read = Document::decode(&document(&tsm, &subject)?).ok_or("no document")?;
        assert_eq!(read.kind, Kind::Tdx);
        assert_eq!(read.report, b"a report");
        assert_eq!(read.certificates, b"certificates");
        let entry = fs::read_dir(directory.path())?.next().ok_or("no entry")??;
        let written = fs::read(entry.path().join("inblob"))?;
        assert_eq!(written, report_data(&subject));
        Ok(())
    }

    /// Each call has an entry of its own, and certificates may be missing.
    #[test]
    fn reports_of_amd() -> Tested {
        let directory = tempfile::tempdir()?;
        let tsm = Tsm::with(directory.path(), |path| kernel(path, "sev_guest\n"))?;
        for _ in 0..2 {
            let quote = tsm.quote(&[7; DATA_BYTES])?;
            assert_eq!((quote.kind, quote.certificates.len()), (Kind::Snp, 0));
        }
        Ok(())
    }

    #[test]
    fn no_report() -> Tested {
        let directory = tempfile::tempdir()?;
        assert!(Tsm::new(&directory.path().join("none")).is_err());
        let other = Tsm::with(directory.path(), |path| kernel(path, "arm_cca_guest\n"))?;
        assert!(other.quote(&[0; DATA_BYTES]).is_err());
        // An ordinary directory: there is no `inblob`.
        let ordinary = Tsm::new(directory.path())?;
        assert!(ordinary.quote(&[0; DATA_BYTES]).is_err());
        Ok(())
    }

    /// Another purpose, key or nonce is another subject, also where bytes move from one part
    /// into the next.
    #[test]
    fn subjects_differ() {
        let (a, b) = ([1; 32], [2; 32]);
        let of = |purpose, channel, signing, nonce| {
            report_data(&Subject {
                purpose,
                channel,
                signing,
                nonce,
            })
        };
        let all = [
            of(Purpose::Session, &a, &b, b"n".as_slice()),
            of(Purpose::Broker, &a, &b, b"n"),
            of(Purpose::Signing, &a, &b, b"n"),
            of(Purpose::Session, &b, &a, b"n"),
            of(Purpose::Session, &a, &a, b"n"),
            of(Purpose::Session, &a, &b, b""),
            of(Purpose::Session, &a, &b, b"n\0"),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{i}");
        }
    }
}
