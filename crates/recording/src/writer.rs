//! Writes a recording: frames into files, a new file now and then where only the last minutes are
//! kept, so that old files can go.
//!
//! Does not wait for anything but the disk, and is called by the recorder's thread only.

use crate::frame::{Chain, END, FRAME_BYTES, HEAD_BYTES, MAGIC, MESSAGES, Tag};
use crate::{Chunk, Error, Key};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a recording ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    /// It was stopped.
    Stopped = 1,
    /// Its time was over.
    Time = 2,
    /// It had as many bytes as it may.
    Size = 3,
    /// The keeper ended.
    Keeper = 4,
}

impl End {
    pub(crate) fn from_u8(code: u8) -> Option<End> {
        [End::Stopped, End::Time, End::Size, End::Keeper]
            .into_iter()
            .find(|end| *end as u8 == code)
    }
}

/// A file of a recording.
struct Part {
    path: PathBuf,
    /// Number of its first frame.
    first: u64,
    bytes: u64,
}

/// A recording that is being written.
pub struct Writer {
    directory: PathBuf,
    chain: Chain,
    name: [u8; 8],
    next: u64,
    last: Tag,
    file: File,
    parts: VecDeque<Part>,
    /// Memory for the next frame: its messages, and what is made of them.
    plain: Vec<u8>,
    sealed: Vec<u8>,
}

/// As much of that is kept from one frame to the next.
const KEPT_BYTES: usize = 4 << 20;

impl Writer {
    /// Begins one, in a directory of its own within this one.
    pub fn create(within: &Path, key: &Key) -> Result<Writer, Error> {
        let directory = within.join(key.name());
        fs::create_dir_all(within).map_err(|e| Error::at(within, e))?;
        // A key seals one recording: nonces count its frames.
        fs::create_dir(&directory).map_err(|e| Error::at(&directory, e))?;
        let chain = Chain::new(key).ok_or_else(|| Error::new("the key cannot be used"))?;
        let mut parts = VecDeque::new();
        let file = begin(&directory, &key.id(), 0, &mut parts)?;
        Ok(Writer {
            directory,
            chain,
            name: key.id(),
            next: 0,
            last: [0; 16],
            file,
            parts,
            plain: Vec::new(),
            sealed: Vec::new(),
        })
    }

    /// Writes what channels have sent; nothing if there is nothing.
    pub fn write(&mut self, chunks: &[Chunk]) -> Result<(), Error> {
        let mut plain = std::mem::take(&mut self.plain);
        let mut written = Ok(());
        for chunk in chunks {
            chunk.put(&mut plain);
            if plain.len() >= FRAME_BYTES {
                written = written.and_then(|()| self.frame(MESSAGES, &plain));
                plain.clear();
            }
        }
        if !plain.is_empty() {
            written = written.and_then(|()| self.frame(MESSAGES, &plain));
            plain.clear();
        }
        plain.shrink_to(KEPT_BYTES);
        self.sealed.shrink_to(KEPT_BYTES);
        self.plain = plain;
        written
    }

    fn frame(&mut self, what: u8, plain: &[u8]) -> Result<(), Error> {
        self.sealed.clear();
        self.sealed.extend([0; HEAD_BYTES]);
        self.sealed.push(what);
        pack::append(plain, &mut self.sealed);
        let sealed = self.chain.seal(self.next, &self.last, &mut self.sealed);
        let tag = sealed.ok_or_else(|| Error::new("a frame cannot be sealed"))?;
        let failed = |e| Error::at(&self.directory, e);
        self.file.write_all(&self.sealed).map_err(failed)?;
        if let Some(part) = self.parts.back_mut() {
            part.bytes += self.sealed.len() as u64;
        }
        self.next += 1;
        self.last = tag;
        Ok(())
    }

    /// Goes on in another file.
    pub fn turn(&mut self) -> Result<(), Error> {
        self.file = begin(&self.directory, &self.name, self.next, &mut self.parts)?;
        Ok(())
    }

    /// Takes away the oldest file, but never the one that is written.
    pub fn drop_oldest(&mut self) -> Result<(), Error> {
        if self.parts.len() < 2 {
            return Ok(());
        }
        match self.parts.pop_front() {
            Some(part) => fs::remove_file(&part.path).map_err(|e| Error::at(&part.path, e)),
            None => Ok(()),
        }
    }

    /// How many files there are.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of the one that is written.
    #[must_use]
    pub fn part_bytes(&self) -> u64 {
        self.parts.back().map_or(0, |part| part.bytes)
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// Writes the last frame. Without it the recording counts as cut.
    pub fn end(mut self, why: End) -> Result<(), Error> {
        let first = self.parts.front().map_or(0, |part| part.first);
        let mut plain = vec![why as u8];
        plain.extend(first.to_le_bytes());
        self.frame(END, &plain)?;
        self.file
            .sync_all()
            .map_err(|e| Error::at(&self.directory, e))
    }
}

fn begin(
    directory: &Path,
    name: &[u8; 8],
    first: u64,
    parts: &mut VecDeque<Part>,
) -> Result<File, Error> {
    let path = directory.join(format!("{first:012}.rec"));
    let failed = |e| Error::at(&path, e);
    let mut file = File::options()
        .create_new(true)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    file.write_all(&[MAGIC.as_slice(), name].concat())
        .map_err(failed)?;
    let bytes = (MAGIC.len() + name.len()) as u64;
    parts.push_back(Part { path, first, bytes });
    Ok(file)
}
