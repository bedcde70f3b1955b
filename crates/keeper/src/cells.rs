//! Cells of the family `rnd_`: seals values into cells, opens them, and remembers on which columns
//! a client has an index (docs/families.md).
//!
//! Opening a cell requires only the root key: a keeper with the same root key can open cells sealed
//! by another one. Authorisation is in `dispatch::cells`.
//!
//! Invariants: no two cells are sealed with the same key and number: a key belongs to one run of
//! the keeper and one column, and a run numbers its cells; column, type, generation and token are
//! authenticated; no key is derived that the column's generations exclude, and a cell in the cache is
//! returned only where its key would have been.

use crate::fail;
use crate::generations::Generation;
use crate::lru::Lru;
use crate::random::random;
use crate::sealed_file::SealedFile;
use crate::transferred::{Transferred, Which as Column};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac;
use channel::hidden;
use channel::secret::Secret;
use contract::cell::{
    COLUMN_BYTES, EPOCH_BYTES, GENERATION_BYTES, HEADER_BYTES, LOOSE, NUMBER_BYTES, SEALED,
    TAG_BYTES, TOKEN_BYTES, TOKENED,
};
use contract::{Fid, TypeCode};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use store::ColumnId;
use values::{Error, Value};
use zeroize::Zeroizing;

/// File in the data directory: columns on which clients have an index.
pub const FILE: &str = "cell-indexes";
/// Number of cached keys; others are derived again.
const KEYS_MAX: usize = 1024;
/// Maximum number of columns remembered as indexed.
const INDEXED_MAX: usize = 65_536;

/// Number of cells that a run can seal.
const NUMBERS: u64 = 1 << (8 * NUMBER_BYTES);

/// Bytes of a nonce that are not zero: number and generation.
const NONCE_PART: usize = NUMBER_BYTES + GENERATION_BYTES;

type Epoch = [u8; EPOCH_BYTES];
/// What a key belongs to: column, generation, epoch.
type Which = (ColumnId, u32, Epoch);

/// Seals and opens cells.
pub struct Cells {
    root: Arc<Secret<32>>,
    epoch: Epoch,
    number: AtomicU64,
    tokens: Box<hmac::Key>,
    keys: RwLock<HashMap<Which, Arc<LessSafeKey>>>,
    generations: RwLock<HashMap<ColumnId, Generation>>,
    /// Changes with them.
    era: AtomicU64,
    /// Cells opened lately; none if there is no cache.
    pub cache: Option<Lru>,
    /// Answers about cells; none if there is no cache.
    pub answers: Option<Lru>,
    /// Keys of columns of the family `soft_`, whose cells are opened, too.
    pub transferred: Transferred,
    indexed: RwLock<BTreeSet<ColumnId>>,
    file: Mutex<SealedFile>,
}

/// Opens cells one after another; those of one column usually have the same key.
pub struct Opener<'a> {
    cells: &'a Cells,
    latest: Option<(Which, Arc<LessSafeKey>)>,
}

/// A value that was in a cell.
pub struct Opened {
    /// The column that it was sealed for.
    pub column: ColumnId,
    /// The value.
    pub value: Value,
}

/// The error for a cell that is invalid or was altered.
fn damaged() -> Error {
    Error::new(
        b"XX001",
        "confide: the cell of a protected value cannot be opened",
    )
    .detail("It is under another root key, or was altered.")
    .hint("Was it copied from a database of another keeper?")
}

/// The error for a cell under a key that was replaced.
fn outdated() -> Error {
    Error::new(
        b"55000",
        "confide: the cell of a protected value is under a key that is not used any more",
    )
    .detail("The key of its column was changed after the cell was sealed.")
    .hint(
        "For cells of a backup the column's owner can use \"confide rotate-column --accept-old\".",
    )
}

/// The parts of a sealed cell.
struct Parts<'a> {
    header: &'a [u8],
    t: TypeCode,
    column: ColumnId,
    epoch: Epoch,
    generation: u32,
    nonce: [u8; NONCE_PART],
    sealed: &'a [u8],
}

fn parts(cell: &[u8]) -> Option<Parts<'_>> {
    let length = match *cell.first()? {
        SEALED => HEADER_BYTES,
        TOKENED => HEADER_BYTES + TOKEN_BYTES,
        _ => return None,
    };
    let (header, sealed) = cell.split_at_checked(length)?;
    let ([_, t], rest) = header.split_first_chunk::<2>()?;
    let (column, rest) = rest.split_first_chunk::<COLUMN_BYTES>()?;
    let (epoch, rest) = rest.split_first_chunk::<EPOCH_BYTES>()?;
    let nonce = rest.first_chunk::<NONCE_PART>()?;
    let generation = u64::from_le_bytes(*nonce) >> (8 * NUMBER_BYTES);
    Some(Parts {
        header,
        t: TypeCode::from_u8(*t)?,
        column: *column,
        epoch: *epoch,
        generation: u32::try_from(generation).ok()?,
        nonce: *nonce,
        sealed,
    })
}

/// Whether this is a sealed cell of the family, as far as its first byte says it.
pub fn is_sealed(cell: &[u8]) -> bool {
    matches!(cell.first(), Some(&(SEALED | TOKENED)))
}

/// Returns the FID in a loose cell.
pub fn loose(cell: &[u8]) -> Option<Fid> {
    let fid = match cell.split_first()? {
        (&LOOSE, fid) => fid,
        _ => return None,
    };
    Some(Fid(u64::from_le_bytes(fid.try_into().ok()?)))
}

fn nonce(part: [u8; NONCE_PART]) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..NONCE_PART].copy_from_slice(&part);
    Nonce::assume_unique_for_key(bytes)
}

/// The key of tokens.
fn token_key(root: &[u8; 32]) -> Result<Box<hmac::Key>, Unspecified> {
    let mut token = Zeroizing::new([0; 32]);
    Salt::new(HKDF_SHA256, b"confide")
        .extract(root)
        .expand(&[b"confide cell token 1"], HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut *token))?;
    Ok(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &*token)))
}

/// The key of a column's cells of a generation and a run.
fn column_key(
    root: &[u8; 32],
    (column, generation, epoch): Which,
) -> Result<LessSafeKey, Unspecified> {
    let mut bytes = Zeroizing::new([0; 32]);
    let after = generation.to_le_bytes();
    let info: [&[u8]; 4] = match generation {
        0 => [b"confide cell 1", &column, &epoch, &[]],
        _ => [b"confide cell 2", &column, &epoch, &after],
    };
    Salt::new(HKDF_SHA256, b"confide")
        .extract(root)
        .expand(&info, &AES_256_GCM)
        .and_then(|okm| okm.fill(&mut *bytes))?;
    UnboundKey::new(&AES_256_GCM, &*bytes).map(LessSafeKey::new)
}

impl Cells {
    /// For a keeper with this directory and root key. | | # Errors | No random bytes are available,
    /// or the file of indexed columns was altered.
    pub fn open(
        directory: &Path,
        root: &Arc<Secret<32>>,
        file_key: &Zeroizing<[u8; 32]>,
    ) -> Result<Cells, String> {
        let file = SealedFile::new(directory, FILE, file_key);
        let plain = file.read()?;
        let (columns, []) = plain.as_chunks::<COLUMN_BYTES>() else {
            return Err(file.altered());
        };
        let tokens = hidden::keys(|| token_key(root));
        let tokens = tokens.map_err(|full| full.to_string())?;
        Ok(Cells {
            tokens: tokens.map_err(|_| "cannot derive the key of tokens".to_owned())?,
            root: Arc::clone(root),
            epoch: random().map_err(|e| e.to_string())?,
            number: AtomicU64::new(0),
            keys: RwLock::default(),
            generations: RwLock::default(),
            era: AtomicU64::new(0),
            cache: None,
            answers: None,
            transferred: Transferred::default(),
            indexed: RwLock::new(columns.iter().copied().collect()),
            file: Mutex::new(file),
        })
    }

    /// The same with caches of opened cells and of answers about cells.
    pub fn remembering(self, cache: Option<Lru>, answers: Option<Lru>) -> Cells {
        Cells {
            cache,
            answers,
            ..self
        }
    }

    /// Another one whenever keys of columns may have changed.
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::Acquire)
    }

    /// Replaces what is known of columns' generations. Keys that they exclude are gone.
    pub fn set_generations(&self, all: Vec<(ColumnId, Generation)>) {
        let generations = self.generations.write();
        *generations.unwrap_or_else(PoisonError::into_inner) = all.into_iter().collect();
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.clear();
        self.era.fetch_add(1, Ordering::Release);
    }

    /// Which key a column's cells have.
    pub fn generation(&self, column: &ColumnId) -> Generation {
        let generations = self.generations.read();
        let generations = generations.unwrap_or_else(PoisonError::into_inner);
        let found = generations.get(column).copied();
        found.unwrap_or(Generation::FIRST)
    }

    fn key(&self, which: Which) -> Result<Arc<LessSafeKey>, Error> {
        let (column, generation, _) = which;
        if !self.generation(&column).opens(generation) {
            return Err(outdated());
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&which) {
            return Ok(Arc::clone(key));
        }
        drop(keys);
        let key = hidden::keys(|| column_key(&self.root, which));
        let key = key.map_err(|_| fail::no_hidden_memory())?;
        let key = key.map_err(|_| fail::internal("cannot derive the key of a column"))?;
        let key = Arc::new(key);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KEYS_MAX {
            keys.clear();
        }
        keys.insert(which, Arc::clone(&key));
        Ok(key)
    }

    /// Returns the token of a value: equal values have equal ones.
    pub fn token(&self, value: &Value) -> [u8; TOKEN_BYTES] {
        let mut form = Zeroizing::new(Vec::new());
        values::key(value, &mut form);
        let mac = hmac::sign(&self.tokens, &form);
        let cut = mac.as_ref().first_chunk().copied();
        cut.unwrap_or_default()
    }

    /// Appends a cell with a value for a column, perhaps with its token. | | # Errors | All numbers
    /// are used, or the library fails.
    pub fn seal(
        &self,
        column: ColumnId,
        value: &Value,
        token: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        if number >= NUMBERS {
            return Err(fail::program_limit(
                "All numbers of cells are used; restart the keeper.",
            ));
        }
        let generation = self.generation(&column).current;
        let key = self.key((column, generation, self.epoch))?;
        let numbered = (number | u64::from(generation) << (8 * NUMBER_BYTES)).to_le_bytes();
        let start = out.len();
        let kind = if token { TOKENED } else { SEALED };
        out.extend_from_slice(&[kind, value.type_code() as u8]);
        out.extend_from_slice(&column);
        out.extend_from_slice(&self.epoch);
        out.extend_from_slice(&numbered);
        if token {
            out.extend_from_slice(&self.token(value));
        }
        let mut plain = Zeroizing::new(values::encode_binary(value));
        let header = out.get(start..).unwrap_or_default();
        let tag = key
            .seal_in_place_separate_tag(nonce(numbered), Aad::from(header), &mut plain)
            .map_err(|_| fail::internal("sealing failed"))?;
        out.extend_from_slice(&plain);
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Returns the value in a sealed cell; `plain` is scratch space. | | # Errors | It is not a
    /// cell, has another type or another root key, or was altered.
    pub fn opened(
        &self,
        cell: &[u8],
        want: TypeCode,
        plain: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        self.opener().opened(cell, want, plain)
    }

    /// Returns the column of a cell, as far as its header says it; only opening the cell verifies it.
    pub fn column_of(&self, cell: &[u8]) -> Option<ColumnId> {
        match parts(cell) {
            Some(parts) => Some(parts.column),
            None => self.transferred.column_of(cell),
        }
    }

    /// Whether the owner of a column of the family `soft_` has given its key.
    pub fn has_transferred(&self, which: Column) -> bool {
        self.transferred.has(which)
    }

    /// Returns an opener for a sequence of cells.
    pub fn opener(&self) -> Opener<'_> {
        Opener {
            cells: self,
            latest: None,
        }
    }

    /// Records that a client has an index on a column.
    pub fn set_indexed(&self, column: ColumnId) {
        if self.is_indexed(&column) {
            return;
        }
        let mut indexed = self.indexed.write().unwrap_or_else(PoisonError::into_inner);
        if indexed.len() >= INDEXED_MAX || !indexed.insert(column) {
            return;
        }
        let plain: Vec<u8> = indexed.iter().flatten().copied().collect();
        drop(indexed);
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write(&plain) {
            tracing::warn!(%error, "which columns of cells have an index is not on disk");
        }
    }

    /// Whether a client has an index on a column.
    pub fn is_indexed(&self, column: &ColumnId) -> bool {
        let indexed = self.indexed.read().unwrap_or_else(PoisonError::into_inner);
        indexed.contains(column)
    }
}

impl Opener<'_> {
    /// Returns the value in a sealed cell; `plain` is scratch space. | | # Errors | The same as for
    /// [`Cells::opened`].
    pub fn opened(
        &mut self,
        cell: &[u8],
        want: TypeCode,
        plain: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        if cell.first() == Some(&contract::soft::VALUE) {
            let (column, value) = self.cells.transferred.opened(cell, want)?;
            return Ok(Opened { column, value });
        }
        let parts = parts(cell).filter(|p| p.sealed.len() >= TAG_BYTES);
        let parts = parts.ok_or_else(damaged)?;
        if parts.t.stored() != want.stored() {
            return Err(fail::wrong_type(parts.t, want));
        }
        // Also for what is in the cache: only who may have the key may have what it opens.
        let cells = self.cells;
        let key = self.key((parts.column, parts.generation, parts.epoch))?;
        plain.clear();
        let known = cells.cache.as_ref().is_some_and(|c| c.get(cell, plain));
        let opened = if known {
            plain.as_slice()
        } else {
            plain.extend_from_slice(parts.sealed);
            let opened = key
                .open_in_place(nonce(parts.nonce), Aad::from(parts.header), plain)
                .map_err(|_| damaged())?;
            if let Some(cache) = &cells.cache {
                cache.put(cell, opened);
            }
            opened
        };
        Ok(Opened {
            column: parts.column,
            value: values::decode_binary(parts.t, -1, opened)?,
        })
    }

    fn key(&mut self, which: Which) -> Result<&LessSafeKey, Error> {
        if !matches!(&self.latest, Some((latest, _)) if *latest == which) {
            self.latest = Some((which, self.cells.key(which)?));
        }
        let latest = self.latest.as_ref().map(|(_, key)| key.as_ref());
        latest.ok_or_else(|| fail::internal("no key of a column"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::secret::Wish;
    use contract::cell::GENERATION_AT;

    fn cells(root: u8) -> Result<Cells, String> {
        let secret = Secret::new(&[root; 32], Wish::Off).map_err(|e| e.to_string())?;
        let file_key = Zeroizing::new([root; 32]);
        Cells::open(Path::new(""), &Arc::new(secret), &file_key)
    }

    /// A keeper that knows only the root key can open cells sealed by another one, and equal values
    /// are sealed differently. The bugs this guards against: losing a keeper loses values, or cells
    /// reveal which values are equal.
    #[test]
    fn another_keeper_opens() -> Result<(), Box<dyn std::error::Error>> {
        let (first, second) = (cells(1)?, cells(1)?);
        let (mut a, mut b, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        let value = values::decode_binary(TypeCode::Int4, -1, &[0, 0, 1, 2])
            .map_err(|e| e.message.to_string())?;
        first
            .seal([7; 16], &value, false, &mut a)
            .map_err(|e| e.message.to_string())?;
        first
            .seal([7; 16], &value, false, &mut b)
            .map_err(|e| e.message.to_string())?;
        assert_ne!(a.get(HEADER_BYTES..), b.get(HEADER_BYTES..));
        for cell in [&a, &b] {
            let opened = second
                .opened(cell, TypeCode::Int4, &mut plain)
                .map_err(|e| e.message.to_string())?;
            assert_eq!(opened.column, [7; 16]);
            assert_eq!(values::encode_binary(&opened.value), [0, 0, 1, 2]);
        }
        assert!(cells(2)?.opened(&a, TypeCode::Int4, &mut plain).is_err());
        Ok(())
    }

    /// After a key was changed, only cells under the new one are opened, also by a keeper that reads
    /// its files again; while it is being changed, both. The bug this guards against: a cell that was
    /// read before the change is pasted and opened.
    #[test]
    fn generations() -> Result<(), Box<dyn std::error::Error>> {
        let (cells, mut plain) = (cells(1)?, Vec::new());
        let value = values::decode_binary(TypeCode::Int4, -1, &[0, 0, 0, 5])
            .map_err(|e| e.message.to_string())?;
        let seal = |into: &mut Vec<u8>| {
            let sealed = cells.seal([7; 16], &value, false, into);
            sealed.map_err(|e| e.message.to_string())
        };
        let (mut old, mut new) = (Vec::new(), Vec::new());
        seal(&mut old)?;
        for turning in [true, false] {
            let current = 1;
            cells.set_generations(vec![([7; 16], Generation { current, turning })]);
            new.clear();
            seal(&mut new)?;
            assert_eq!(new.get(GENERATION_AT..HEADER_BYTES), Some(&[1, 0, 0][..]));
            assert!(cells.opened(&new, TypeCode::Int4, &mut plain).is_ok());
            let opened = cells.opened(&old, TypeCode::Int4, &mut plain);
            assert_eq!(opened.is_ok(), turning);
        }
        cells.set_generations(Vec::new());
        assert!(cells.opened(&old, TypeCode::Int4, &mut plain).is_ok());
        Ok(())
    }

    /// A cell in the cache needs its key as others do, has its type, and is found by all of its bytes.
    /// The bug this guards against: what was opened once is opened for ever.
    #[test]
    fn from_the_cache() -> Result<(), Box<dyn std::error::Error>> {
        let budget = store::Budget::new(8 << 20, "memory_limit");
        let cells = cells(1)?.remembering(Lru::new(&budget, 1 << 20, "cell_cache"), None);
        let value = values::decode_binary(TypeCode::Int4, -1, &[0, 0, 0, 5])
            .map_err(|e| e.message.to_string())?;
        let (mut cell, mut plain) = (Vec::new(), Vec::new());
        let sealed = cells.seal([7; 16], &value, false, &mut cell);
        sealed.map_err(|e| e.message.to_string())?;
        for hits in 0..3 {
            let opened = cells.opened(&cell, TypeCode::Int4, &mut plain);
            assert!(opened.is_ok_and(|o| values::encode_binary(&o.value) == [0, 0, 0, 5]));
            let counts = cells.cache.as_ref().map(Lru::counts);
            assert_eq!(counts.map(|c| c.hits), Some(hits));
        }
        assert!(cells.opened(&cell, TypeCode::Int8, &mut plain).is_err());
        let mut moved = cell.clone();
        if let Some(byte) = moved.get_mut(2) {
            *byte ^= 1;
        }
        assert!(cells.opened(&moved, TypeCode::Int4, &mut plain).is_err());
        let (era, current) = (cells.era(), 1);
        let turning = false;
        cells.set_generations(vec![([7; 16], Generation { current, turning })]);
        assert!(cells.opened(&cell, TypeCode::Int4, &mut plain).is_err());
        assert_ne!(cells.era(), era);
        Ok(())
    }

    /// Every byte of a cell is authenticated, and truncated cells cause errors, not panics. The bug
    /// this guards against: a cell is accepted as one of another column or type.
    #[test]
    fn altered_cells() -> Result<(), Box<dyn std::error::Error>> {
        let (cells, mut plain) = (cells(3)?, Vec::new());
        let value =
            values::decode_binary(TypeCode::Text, -1, b"abc").map_err(|e| e.message.to_string())?;
        for token in [false, true] {
            let mut cell = Vec::new();
            cells
                .seal([9; 16], &value, token, &mut cell)
                .map_err(|e| e.message.to_string())?;
            assert!(cells.opened(&cell, TypeCode::Varchar, &mut plain).is_ok());
            for t in [TypeCode::Bytea, TypeCode::Int4] {
                assert!(cells.opened(&cell, t, &mut plain).is_err());
            }
            for at in 0..cell.len() {
                for bit in 0..8 {
                    let mut other = cell.clone();
                    if let Some(byte) = other.get_mut(at) {
                        *byte ^= 1 << bit;
                    }
                    for t in TypeCode::ALL {
                        assert!(cells.opened(&other, *t, &mut plain).is_err());
                    }
                }
                let cut = cell.get(..at).unwrap_or_default();
                assert!(cells.opened(cut, TypeCode::Text, &mut plain).is_err());
            }
        }
        Ok(())
    }

    /// Equal values have one token, in whichever form and under whichever keeper of the root key;
    /// other values, and other root keys, have others. The bugs this guards against: a join loses
    /// rows, or has too many.
    #[test]
    fn tokens() -> Result<(), Box<dyn std::error::Error>> {
        let (cells, again, other) = (cells(4)?, cells(4)?, cells(5)?);
        let value = |t, text: &str| {
            values::parse_text(t, -1, text.as_bytes(), &values::Env::default())
                .map_err(|e| e.message.to_string())
        };
        let one = value(TypeCode::Numeric, "1.0")?;
        let same = value(TypeCode::Numeric, "1.000")?;
        assert_eq!(cells.token(&one), again.token(&same));
        assert_ne!(cells.token(&one), other.token(&one));
        let two = value(TypeCode::Numeric, "2.0")?;
        assert_ne!(cells.token(&one), cells.token(&two));
        Ok(())
    }
}
