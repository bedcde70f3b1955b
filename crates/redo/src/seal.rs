//! Sealing and opening.

use crate::{Error, Kind, Lease, Partition, Promoted, Promotion, Record, Runs, Sweep, VERSION};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac, rand};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const COUNTER_BYTES: usize = 6;
const EPOCH_BYTES: usize = 12;
const GENERATION_BYTES: usize = 4;
const HEADER_BYTES: usize = 2 + COUNTER_BYTES + EPOCH_BYTES + GENERATION_BYTES;
const TAG_BYTES: usize = 16;
const COUNTER_END: u64 = 1 << (8 * COUNTER_BYTES);

/// Identifies a run of a keeper: random.
pub type Epoch = [u8; EPOCH_BYTES];

/// What `Salt::extract` stands for, without a copy of the root key, which that keeps.
fn pseudorandom(root: &[u8; 32]) -> hkdf::Prk {
    let salt = hmac::Key::new(hmac::HMAC_SHA256, b"confide redo 1");
    hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, hmac::sign(&salt, root).as_ref())
}

fn key_of(root: &hkdf::Prk, epoch: &Epoch) -> Option<LessSafeKey> {
    let info = [b"confide redo 1".as_slice(), epoch];
    let okm = root.expand(&info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(okm)))
}

fn nonce(counter: &[u8]) -> Nonce {
    let mut bytes = [0; 12];
    for (to, from) in bytes.iter_mut().zip(counter) {
        *to = *from;
    }
    Nonce::assume_unique_for_key(bytes)
}

/// A record's place in the history of its store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Order {
    /// Counts runs of the keeper and checkpoints.
    pub generation: u32,
    /// Counts the records of a run.
    pub counter: u64,
}

/// What is authenticated beside a record's body.
fn associated(header: &[u8], store: u64) -> Vec<u8> {
    [header, &store.to_le_bytes()].concat()
}

/// Seals the records of one run of the keeper.
pub struct Sealer {
    store: u64,
    generation: AtomicU32,
    epoch: Epoch,
    key: LessSafeKey,
    counter: AtomicU64,
    compress: bool,
}

impl Sealer {
    /// Begins a run: chooses an epoch.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(root: &[u8; 32]) -> Result<Sealer, Error> {
        let mut epoch = Epoch::default();
        rand::fill(&mut epoch).map_err(|_| Error::Refused)?;
        Sealer::with_epoch(root, epoch)
    }

    fn with_epoch(root: &[u8; 32], epoch: Epoch) -> Result<Sealer, Error> {
        Ok(Sealer {
            store: 0,
            generation: AtomicU32::new(0),
            epoch,
            key: key_of(&pseudorandom(root), &epoch).ok_or(Error::Refused)?,
            counter: AtomicU64::new(0),
            compress: true,
        })
    }

    /// Binds the records to a store.
    pub fn bind(&mut self, store: u64) {
        self.store = store;
    }

    /// Begins a generation, which is not before the one now.
    pub fn begin(&self, generation: u32) {
        self.generation.fetch_max(generation, Ordering::AcqRel);
    }

    /// The run.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The generation.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether long promotions are compressed; they are, unless this says no.
    pub fn compress(&mut self, on: bool) {
        self.compress = on;
    }

    /// Seals a promotion.
    ///
    /// # Errors
    /// [`Error::Refused`] when the run has sealed 2^48 records.
    pub fn promotion(&self, promotion: Promotion) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Promotion, &pack::pack(&promotion.body, self.compress))
    }

    /// Seals a promotion by runs.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn runs(&self, runs: &Runs) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Runs, &pack::pack(&runs.body, self.compress))
    }

    /// Seals a partition.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn partition(&self, partition: &Partition) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Partition, &partition.encode())
    }

    /// Seals a sweep.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn sweep(&self, sweep: &Sweep) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Sweep, &sweep.encode())
    }

    /// Seals the drop of a partition.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn drop(&self, partition: u32) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Drop, &partition.to_le_bytes())
    }

    /// Seals a lease. Returns its place in the history, too.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn lease(&self, lease: &Lease) -> Result<(Order, Vec<u8>), Error> {
        let record = self.seal(Kind::Lease, &lease.encode())?;
        let (counter, rest) = record
            .get(2..)
            .and_then(|r| r.split_at_checked(COUNTER_BYTES))
            .ok_or(Error::Refused)?;
        let generation = rest.get(EPOCH_BYTES..).unwrap_or_default();
        let order = order(generation, counter).ok_or(Error::Refused)?;
        Ok((order, record))
    }

    /// Seals what owners and definitions said, compressed.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn policy(&self, body: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Policy, &pack::pack(body, true))
    }

    /// Seals what is used of tickets and budgets, compressed.
    ///
    /// # Errors
    /// As [`Sealer::promotion`].
    pub fn used(&self, body: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal(Kind::Used, &pack::pack(body, true))
    }

    fn seal(&self, kind: Kind, body: &[u8]) -> Result<Vec<u8>, Error> {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        if counter >= COUNTER_END {
            return Err(Error::Refused);
        }
        let counter = counter.to_le_bytes();
        let counter = counter.first_chunk::<COUNTER_BYTES>();
        let counter = counter.ok_or(Error::Refused)?;
        let mut out = Vec::with_capacity(HEADER_BYTES + body.len() + TAG_BYTES);
        out.extend_from_slice(&[VERSION, kind as u8]);
        out.extend_from_slice(counter);
        out.extend_from_slice(&self.epoch);
        out.extend_from_slice(&self.generation().to_le_bytes());
        let bound = associated(&out, self.store);
        out.extend_from_slice(body);
        let sealed = out.get_mut(HEADER_BYTES..).ok_or(Error::Refused)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce(counter), Aad::from(&bound), sealed)
            .map_err(|_| Error::Refused)?;
        out.extend_from_slice(tag.as_ref());
        Ok(out)
    }
}

/// Opens records of any run.
pub struct Opener {
    /// On the heap, where the keeper's allocator decides in which memory.
    root: Box<hkdf::Prk>,
    store: u64,
    /// The key of the epoch met last: records of a run stand together.
    last: Option<(Epoch, LessSafeKey)>,
}

impl Opener {
    /// Opens records under this root key.
    pub fn new(root: &[u8; 32]) -> Opener {
        Opener {
            root: Box::new(pseudorandom(root)),
            store: 0,
            last: None,
        }
    }

    /// Opens records for this store only.
    pub fn bind(&mut self, store: u64) {
        self.store = store;
    }

    /// The run of the record that was opened last.
    pub fn epoch(&self) -> Option<Epoch> {
        self.last.as_ref().map(|(epoch, _)| *epoch)
    }

    fn key(&mut self, epoch: &Epoch) -> Result<&LessSafeKey, Error> {
        if self.last.as_ref().is_none_or(|(e, _)| e != epoch) {
            let key = key_of(&self.root, epoch).ok_or(Error::Refused)?;
            self.last = Some((*epoch, key));
        }
        let last = self.last.as_ref().ok_or(Error::Refused)?;
        Ok(&last.1)
    }

    /// Opens a record.
    ///
    /// # Errors
    /// When it is not what a [`Sealer`] under the same root key has sealed.
    pub fn open(&mut self, record: &[u8]) -> Result<(Order, Record), Error> {
        match record.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(Error::Version(other)),
            None => return Err(Error::Malformed),
        }
        let (header, sealed) = record
            .split_at_checked(HEADER_BYTES)
            .ok_or(Error::Malformed)?;
        let [_, kind, rest @ ..] = header else {
            return Err(Error::Malformed);
        };
        let (counter, epoch) = rest
            .split_at_checked(COUNTER_BYTES)
            .ok_or(Error::Malformed)?;
        let (epoch, generation) = epoch.split_first_chunk().ok_or(Error::Malformed)?;
        let order = order(generation, counter).ok_or(Error::Malformed)?;
        let bound = associated(header, self.store);
        let mut body = sealed.to_vec();
        let length = self
            .key(epoch)?
            .open_in_place(nonce(counter), Aad::from(&bound), &mut body)
            .map_err(|_| Error::Altered)?
            .len();
        body.truncate(length);
        let opened = match Kind::from_u8(*kind).ok_or(Error::Malformed)? {
            Kind::Promotion => Promoted::parse(&body, false).map(Record::Promotion),
            Kind::Runs => Promoted::parse(&body, true).map(Record::Promotion),
            Kind::Partition => Partition::parse(&body).map(Record::Partition),
            Kind::Sweep => Sweep::parse(&body).map(Record::Sweep),
            Kind::Lease => Lease::parse(&body).map(Record::Lease),
            Kind::Adopted => Err(Error::Malformed),
            Kind::Policy => {
                let unpacked = pack::unpack(&body).ok_or(Error::Malformed);
                unpacked.map(Record::Policy)
            }
            Kind::Used => {
                let unpacked = pack::unpack(&body).ok_or(Error::Malformed);
                unpacked.map(Record::Used)
            }
            Kind::Drop => match body.first_chunk() {
                Some(number) if body.len() == 4 => Ok(Record::Drop(u32::from_le_bytes(*number))),
                _ => Err(Error::Malformed),
            },
        };
        opened.map(|record| (order, record))
    }
}

fn order(generation: &[u8], counter: &[u8]) -> Option<Order> {
    let mut wide = [0; 8];
    wide.get_mut(..COUNTER_BYTES)?.copy_from_slice(counter);
    Some(Order {
        generation: u32::from_le_bytes(*generation.first_chunk()?),
        counter: u64::from_le_bytes(wide),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The format is on disks for years; a change must be a new version.
    #[test]
    fn golden() {
        let sealer = Sealer::with_epoch(&[7; 32], *b"epoch-number").unwrap();
        let mut promotion = Promotion::new();
        promotion.push(1 << 44, 3, &[1, 2, 3, 4]);
        promotion.push((1 << 44) + 1, 3, &[5, 6, 7, 8]);
        promotion.push(1 << 45, 8, b"secret");
        let promotion = sealer.promotion(promotion).unwrap();
        let partition = sealer
            .partition(&Partition {
                number: 1,
                database: 5,
                relation: 16384,
                attribute: 2,
                layout: 0x103,
                column: [0; 16],
            })
            .unwrap();
        let mut sweep = Sweep::default();
        for fid in [1 << 44, (1 << 44) + 1, (1 << 44) + 9, 1 << 45] {
            sweep.push(fid);
        }
        let sweep = sealer.sweep(&sweep).unwrap();
        let dropped = sealer.drop(7).unwrap();
        let mut runs = Runs::new();
        let mut values = [1, 2, 3, 4, 5, 6, 7, 8, b's', b'e'].as_slice();
        runs.push(1 << 44, 3, &[4, 4], &mut values);
        runs.push(1 << 45, 8, &[2, 0], &mut values);
        let runs = sealer.runs(&runs).unwrap();
        let policy = sealer.policy(b"who sees what").unwrap();
        let records = [promotion, partition, sweep, dropped, runs, policy];
        let found: String = records.iter().map(|r| hex(r) + "\n").collect();
        assert_eq!(found, include_str!("../tests/golden.txt"));
    }

    /// What is swept is what was named, also across partitions; a body that asks
    /// for more than a batch is refused.
    #[test]
    fn sweeps() {
        let fids = [5, 6, 7, 9, 1 << 44, (1 << 44) + 1, 3];
        let mut sweep = Sweep::default();
        fids.iter().for_each(|fid| sweep.push(*fid));
        let again = Sweep::parse(&sweep.encode()).unwrap();
        assert_eq!(again.iter().collect::<Vec<_>>(), fids);
        assert_eq!(Sweep::parse(&[2, 0]), Err(Error::Malformed));
        assert_eq!(Sweep::parse(&[2]), Err(Error::Malformed));
        let huge = [2, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Sweep::parse(&huge), Err(Error::Malformed));
    }

    /// Two runs, or two records of one run, must not share key and nonce; with
    /// the bug the XOR of two ciphertexts is the XOR of the secrets.
    #[test]
    fn nonces_differ() {
        let sealer = Sealer::new(&[1; 32]).unwrap();
        let other = Sealer::new(&[1; 32]).unwrap();
        let record = || {
            let mut promotion = Promotion::new();
            promotion.push(9, 8, &[0; 32]);
            promotion
        };
        let all = [
            sealer.promotion(record()).unwrap(),
            sealer.promotion(record()).unwrap(),
            other.promotion(record()).unwrap(),
        ];
        let [a, b, c] = all.map(|r| r[HEADER_BYTES..].to_vec());
        assert!(a != b && a != c && b != c);
        sealer.counter.store(COUNTER_END, Ordering::Relaxed);
        assert_eq!(sealer.promotion(record()), Err(Error::Refused));
    }
}
