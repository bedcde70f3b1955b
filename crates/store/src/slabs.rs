//! Byte strings of any length: a locator per slot, and cells in slabs.
//!
//! A locator (64 bits) begins with a tag byte. `0x80 | n`: the n bytes (up to 7) are stored in the
//! locator itself. `1 + c`: 16 bits of length, 40 bits of index into the slab of size class c.
//! [`LARGE`]: index of a separate allocation. A free cell holds the index of the next free one,
//! plus one, in its first 8 bytes; the rest of it is zero.

use crate::budget::Account;
use crate::chunks::Chunks;
use values::Error;

/// Cell sizes, all multiples of 8.
const CLASSES: [usize; 16] = [
    8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
];
const INLINE_MAX: usize = 7;
const INLINE: u8 = 0x80;
const LARGE: u8 = 0x7f;
/// Approximate size of a slab's block in bytes.
const BLOCK_BYTES: usize = 16 * 1024;
const INDEX_BITS: u32 = 40;

#[derive(Default)]
pub(crate) struct Slabs {
    locators: Chunks<[u8; 8]>,
    classes: [Slab; CLASSES.len()],
    large: Large,
}

/// Cells of one size.
#[derive(Default)]
struct Slab {
    blocks: Vec<Box<[u8]>>,
    /// Number of cells handed out so far.
    used: u64,
    /// First free cell, plus one.
    free: u64,
}

/// Separate allocations.
#[derive(Default)]
struct Large {
    cells: Vec<Option<Box<[u8]>>>,
    free: Vec<usize>,
}

impl Slab {
    fn cells_per_block(size: usize) -> u64 {
        (BLOCK_BYTES / size).max(1) as u64
    }

    #[inline]
    fn cell(&self, size: usize, index: u64) -> Option<&[u8]> {
        let per = Slab::cells_per_block(size);
        let at = (index % per) as usize * size;
        self.blocks.get((index / per) as usize)?.get(at..at + size)
    }

    fn cell_mut(&mut self, size: usize, index: u64) -> Option<&mut [u8]> {
        let per = Slab::cells_per_block(size);
        let at = (index % per) as usize * size;
        self.blocks
            .get_mut((index / per) as usize)?
            .get_mut(at..at + size)
    }

    /// Allocates a cell, charging for a new block if one is needed.
    fn allocate(&mut self, size: usize, account: &mut Account) -> Result<u64, Error> {
        if let Some(index) = self.free.checked_sub(1) {
            let next = self
                .cell(size, index)
                .and_then(|c| c.first_chunk())
                .map_or(0, |b| u64::from_le_bytes(*b));
            self.free = next;
            return Ok(index);
        }
        let per = Slab::cells_per_block(size);
        if self.used >= self.blocks.len() as u64 * per {
            let bytes = per as usize * size;
            account.take(bytes)?;
            self.blocks.push(vec![0; bytes].into_boxed_slice());
        }
        self.used += 1;
        Ok(self.used - 1)
    }

    fn release(&mut self, size: usize, index: u64) {
        let next = self.free;
        if let Some(cell) = self.cell_mut(size, index) {
            cell.fill(0);
            if let Some(head) = cell.first_chunk_mut() {
                *head = next.to_le_bytes();
            }
            self.free = index + 1;
        }
    }
}

impl Slabs {
    fn class_of(length: usize) -> Option<usize> {
        CLASSES.iter().position(|size| length <= *size)
    }

    /// Makes room for a slot.
    pub(crate) fn reserve(&mut self, slot: u64, account: &mut Account) -> Result<(), Error> {
        let chunks = self.locators.missing(slot);
        account.take(chunks * Chunks::<[u8; 8]>::CHUNK_BYTES)?;
        self.locators.grow(chunks);
        Ok(())
    }

    /// Stores bytes in a free slot for which there is room.
    pub(crate) fn set(
        &mut self,
        slot: u64,
        bytes: &[u8],
        account: &mut Account,
    ) -> Result<(), Error> {
        let locator = self.place(bytes, account)?;
        self.locators.set(slot, locator.to_le_bytes());
        Ok(())
    }

    fn place(&mut self, bytes: &[u8], account: &mut Account) -> Result<u64, Error> {
        if bytes.len() <= INLINE_MAX {
            let mut locator = [0; 8];
            locator[0] = INLINE | bytes.len() as u8;
            for (to, from) in locator.iter_mut().skip(1).zip(bytes) {
                *to = *from;
            }
            return Ok(u64::from_le_bytes(locator));
        }
        let class = Slabs::class_of(bytes.len());
        let found = class.and_then(|c| Some((c, *CLASSES.get(c)?, self.classes.get_mut(c)?)));
        let Some((class, size, slab)) = found else {
            return self.place_large(bytes, account);
        };
        let index = slab.allocate(size, account)?;
        if let Some(cell) = slab.cell_mut(size, index) {
            let (filled, rest) = cell.split_at_mut(bytes.len());
            filled.copy_from_slice(bytes);
            rest.fill(0);
        }
        Ok((1 + class as u64) | (bytes.len() as u64) << 8 | index << 24)
    }

    fn place_large(&mut self, bytes: &[u8], account: &mut Account) -> Result<u64, Error> {
        account.take(bytes.len() + size_of::<Option<Box<[u8]>>>())?;
        let cell = Some(Box::from(bytes));
        let index = match self.large.free.pop() {
            Some(index) => {
                if let Some(place) = self.large.cells.get_mut(index) {
                    *place = cell;
                }
                index
            }
            None => {
                self.large.cells.push(cell);
                self.large.cells.len() - 1
            }
        };
        Ok(u64::from(LARGE) | (index as u64) << 24)
    }

    /// The bytes in a slot; empty if there are none.
    #[inline]
    pub(crate) fn get(&self, slot: u64) -> &[u8] {
        let Some(locator) = self.locators.at(slot) else {
            return &[];
        };
        let [tag, body @ ..] = locator;
        if *tag & INLINE != 0 {
            return body.get(..usize::from(*tag & 7)).unwrap_or(&[]);
        }
        self.outside(u64::from_le_bytes(*locator))
    }

    /// The bytes of a locator that does not contain them itself.
    fn outside(&self, locator: u64) -> &[u8] {
        let tag = locator as u8;
        let index = locator >> 24 & ((1 << INDEX_BITS) - 1);
        if tag == LARGE {
            let cell = self.large.cells.get(index as usize);
            return cell.and_then(|c| c.as_deref()).unwrap_or(&[]);
        }
        let class = usize::from(tag).wrapping_sub(1);
        let (Some(size), Some(slab)) = (CLASSES.get(class), self.classes.get(class)) else {
            return &[];
        };
        let length = (locator >> 8 & 0xffff) as usize;
        slab.cell(*size, index)
            .and_then(|c| c.get(..length))
            .unwrap_or(&[])
    }

    /// Clears a slot.
    pub(crate) fn clear(&mut self, slot: u64, account: &mut Account) {
        let locator = u64::from_le_bytes(self.locators.get(slot));
        self.locators.set(slot, [0; 8]);
        let tag = locator as u8;
        if tag & INLINE != 0 {
            return;
        }
        let index = locator >> 24;
        if tag == LARGE {
            let index = index as usize;
            if let Some(mut bytes) = self.large.cells.get_mut(index).and_then(Option::take) {
                bytes.fill(0);
                account.give(bytes.len() + size_of::<Option<Box<[u8]>>>());
                self.large.free.push(index);
            }
            return;
        }
        let class = usize::from(tag).wrapping_sub(1);
        if let (Some(size), Some(slab)) = (CLASSES.get(class), self.classes.get_mut(class)) {
            slab.release(*size, index);
        }
    }
}
