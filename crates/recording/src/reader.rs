//! Reads a recording, all of it, and refuses one that is not as it was written.

use crate::frame::{self, Chain, END, MAGIC, MESSAGES, Tag};
use crate::order::take;
use crate::{Chunk, End, Error, Key};
use std::fs;
use std::path::{Path, PathBuf};

/// A recording that was read.
#[derive(Debug)]
pub struct Recorded {
    /// Chunks, in the order in which they were written.
    pub chunks: Vec<Chunk>,
    /// Why it ended; none if it did not, and that was accepted.
    pub end: Option<End>,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Recorded {
    /// Whether it is a log of calls.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        let events = self.chunks.iter().filter_map(Chunk::events);
        events.flatten().any(|event| event.kind == crate::CALL)
    }

    /// Messages that there was no room for.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.lost).sum()
    }
}

/// What is known of the frames read so far.
struct Progress {
    /// Number of the next frame and tag of the one before, once there was one.
    next: Option<(u64, Tag)>,
    first: u64,
    end: Option<End>,
    chunks: Vec<Chunk>,
}

/// Reads the recording in this directory. `unfinished`: it need not have an end, as when the
/// keeper was killed; then nobody can tell whether it was cut.
pub fn read(directory: &Path, key: &Key, unfinished: bool) -> Result<Recorded, Error> {
    let chain = Chain::new(key).ok_or_else(|| Error::new("the key cannot be used"))?;
    let mut progress = Progress {
        next: None,
        first: 0,
        end: None,
        chunks: Vec::new(),
    };
    let mut bytes = 0;
    for path in files(directory)? {
        let content = fs::read(&path).map_err(|e| Error::at(&path, e))?;
        bytes += content.len() as u64;
        let mut rest = content.as_slice();
        let (magic, id) = (take::<8>(&mut rest), take::<8>(&mut rest));
        if magic.as_ref() != Some(MAGIC) {
            return Err(Error::at(&path, "no file of a recording"));
        }
        if id != Some(key.id()) {
            return Err(Error::at(&path, "of another recording than the key"));
        }
        while !rest.is_empty() {
            match frame::next(&mut rest) {
                Some(frame) => progress.take(&chain, &frame, &path)?,
                // The keeper was killed while it wrote.
                None if unfinished => break,
                None => return Err(Error::at(&path, "the recording is cut")),
            }
        }
    }
    if progress.end.is_none() && !unfinished {
        let what = "the recording has no end: it was cut, or the keeper was killed";
        return Err(Error::at(directory, what));
    }
    Ok(Recorded {
        chunks: progress.chunks,
        end: progress.end,
        bytes,
    })
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| Error::at(directory, e);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|e| e == "rec") {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Error::at(directory, "there is no recording"));
    }
    // Names are numbers of equal width.
    found.sort();
    Ok(found)
}

impl Progress {
    fn take(&mut self, chain: &Chain, frame: &frame::Frame<'_>, path: &Path) -> Result<(), Error> {
        if self.end.is_some() {
            return Err(Error::at(path, "there are frames after the end"));
        }
        match self.next {
            None => self.first = frame.number,
            Some(next) if next == (frame.number, frame.before) => {}
            Some((number, _)) => {
                let what = format!("frame {number} is missing, or was moved");
                return Err(Error::at(path, what));
            }
        }
        let altered = || Error::at(path, format!("frame {} was altered", frame.number));
        let (content, tag) = chain.open(frame).ok_or_else(altered)?;
        self.next = Some((frame.number.wrapping_add(1), tag));
        let (what, packed) = content.split_first().ok_or_else(altered)?;
        let plain = pack::unpack(packed).ok_or_else(altered)?;
        let mut rest = plain.as_slice();
        match *what {
            MESSAGES => {
                while !rest.is_empty() {
                    let chunk = Chunk::take(&mut rest).ok_or_else(altered)?;
                    self.chunks.push(chunk);
                }
                Ok(())
            }
            END => {
                let [why] = take(&mut rest).ok_or_else(altered)?;
                let first = take(&mut rest).map(u64::from_le_bytes);
                if first != Some(self.first) {
                    return Err(Error::at(path, "the recording's begin is missing"));
                }
                self.end = Some(End::from_u8(why).ok_or_else(altered)?);
                Ok(())
            }
            _ => Err(altered()),
        }
    }
}
