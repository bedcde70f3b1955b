//! A growable array in chunks: growing moves nothing, and an access takes two loads.

use crate::occupancy::{CHUNK, Occupancy};
use contract::Fid;

/// Shorter runs are read one element at a time.
const RUN_MIN: usize = 8;

pub(crate) struct Chunks<T>(Vec<Box<[T; CHUNK]>>);

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks(Vec::new())
    }
}

fn place(slot: u64) -> (usize, usize) {
    (
        (slot / CHUNK as u64) as usize,
        (slot % CHUNK as u64) as usize,
    )
}

impl<T: Copy + Default> Chunks<T> {
    /// Size of a chunk in bytes.
    pub(crate) const CHUNK_BYTES: usize = CHUNK * size_of::<T>();

    /// Number of chunks to be added before a slot exists.
    pub(crate) fn missing(&self, slot: u64) -> usize {
        (place(slot).0 + 1).saturating_sub(self.0.len())
    }

    /// Adds chunks.
    pub(crate) fn grow(&mut self, chunks: usize) {
        for _ in 0..chunks {
            // Zeros of the allocator's, which need not be written.
            self.0.extend(Box::try_from(vec![T::default(); CHUNK]));
        }
    }

    /// Stores an element whose chunk exists.
    pub(crate) fn set(&mut self, slot: u64, value: T) {
        let (chunk, at) = place(slot);
        if let Some(place) = self.0.get_mut(chunk).and_then(|c| c.get_mut(at)) {
            *place = value;
        }
    }

    /// A reference to the element in a slot.
    #[inline]
    pub(crate) fn at(&self, slot: u64) -> Option<&T> {
        let (chunk, at) = place(slot);
        self.0.get(chunk).and_then(|c| c.get(at))
    }

    /// The element in a slot; the default if there is no chunk.
    #[inline]
    pub(crate) fn get(&self, slot: u64) -> T {
        self.at(slot).copied().unwrap_or_default()
    }

    /// Appends the elements under the FIDs, converted. The FIDs belong to one segment, which begins
    /// at slot `base`. For a free slot, a default is appended and its index is recorded, counted
    /// from `start`.
    pub(crate) fn gather<U: Default>(
        &self,
        fids: &[Fid],
        (base, start): (u64, usize),
        taken: &Occupancy,
        convert: impl Fn(T) -> U,
        out: &mut Vec<U>,
        missing: &mut Vec<u32>,
    ) {
        let mut rest = fids;
        while let Some(first) = rest.first() {
            let (chunk, at) = place(first.slot() - base);
            let limit = rest.len().min(CHUNK - at);
            let run = run_length(rest, limit);
            let (now, later) = rest.split_at(run);
            rest = later;
            let slice = self.0.get(chunk).and_then(|c| c.get(at..at + run));
            if run >= RUN_MIN
                && let Some(slice) = slice
                && taken.has_all(first.slot(), run as u64)
            {
                out.extend(slice.iter().map(|v| convert(*v)));
                continue;
            }
            for fid in now {
                if taken.has(fid.slot()) {
                    out.push(convert(self.get(fid.slot() - base)));
                } else {
                    missing.push((out.len() - start) as u32);
                    out.push(U::default());
                }
            }
        }
    }
}

/// Length of the initial run of FIDs that count up by one.
#[inline]
fn run_length(fids: &[Fid], limit: usize) -> usize {
    let Some(first) = fids.first() else { return 0 };
    let mut length = 1;
    for (n, fid) in fids.iter().take(limit).enumerate().skip(1) {
        if fid.0 != first.0.wrapping_add(n as u64) {
            break;
        }
        length = n + 1;
    }
    length
}
