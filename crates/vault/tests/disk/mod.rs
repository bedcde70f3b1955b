//! A simulated directory that loses what was not synced, and a plain map of what the vault must
//! contain.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use vault::{Checkpoint, Error, Files, Freshness, SegmentId, Vault};

pub type Names = BTreeMap<String, usize>;

/// What goes wrong in an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fault {
    /// This and all later operations fail: the machine is dying.
    #[default]
    Dead,
    /// This one fails and does nothing.
    Fails,
    /// Half of the write happens, then it fails.
    Short,
    /// The sync fails and what was written is lost, as can happen on Linux; a second sync of the
    /// same content reports success.
    Forgets,
    /// There is no space for this write and all later ones.
    Full,
}

/// What is lost of unsynced writes and names in a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Everything.
    All,
    /// The second half of each new file.
    Torn,
    /// An arbitrary choice by this seed, in any order.
    Reordered(u64),
}

/// A file's content in memory and on disk.
#[derive(Clone, Default)]
pub struct Inode {
    pub volatile: Vec<u8>,
    pub durable: Vec<u8>,
    forgotten: bool,
}

/// A change of names: a file was created, renamed or removed.
#[derive(Clone)]
enum Change {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Set(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Change::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        Change::Remove(name) => {
            names.remove(name);
        }
    }
}

/// Names and contents, each in a volatile and a durable form.
#[derive(Clone, Default)]
pub struct Disk {
    pub inodes: Vec<Inode>,
    pub names: Names,
    durable_names: Names,
    changes: Vec<Change>,
    pub counter: u64,
    pub operations: usize,
    pub fail_at: Option<usize>,
    pub fault: Fault,
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

impl Disk {
    /// What remains after the machine has lost power.
    pub fn crash(&mut self, loss: Loss) {
        let mut chance = Chance(match loss {
            Loss::Reordered(seed) => seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            _ => 1,
        });
        self.names = self.durable_names.clone();
        for change in std::mem::take(&mut self.changes) {
            if matches!(loss, Loss::Reordered(_)) && chance.below(2) == 0 {
                apply(&mut self.names, &change);
            }
        }
        self.durable_names = self.names.clone();
        for inode in &mut self.inodes {
            let keep = match loss {
                Loss::All => 0,
                Loss::Torn => inode.volatile.len() / 2,
                Loss::Reordered(_) => match chance.below(3) {
                    0 => 0,
                    1 => inode.volatile.len() / 2,
                    _ => inode.volatile.len(),
                },
            };
            if inode.durable.is_empty() && !inode.forgotten {
                inode.durable = inode.volatile[..keep].to_vec();
            }
            inode.volatile = inode.durable.clone();
        }
        self.fail_at = None;
    }

    /// Returns the operation's fault, if it has one; fails if the operation fails outright.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        self.operations += 1;
        match self.fail_at {
            Some(n) if self.operations > n => match self.fault {
                Fault::Dead => Err(io::Error::other("injected")),
                Fault::Full => Ok(Some(Fault::Full)),
                _ if self.operations > n + 1 => Ok(None),
                Fault::Fails => Err(io::Error::other("injected")),
                fault => Ok(Some(fault)),
            },
            _ => Ok(None),
        }
    }
}

#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Disk>>);

impl Shared {
    /// An independent copy.
    pub fn fork(&self) -> Shared {
        Shared(Arc::new(Mutex::new(self.with(|d| d.clone()))))
    }

    pub fn volatile(&self, name: &str) -> Vec<u8> {
        self.with(|d| d.inodes[d.names[name]].volatile.clone())
    }

    /// Stores bytes under a name, bypassing the vault.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.with(|d| {
            d.inodes.push(Inode {
                durable: bytes.clone(),
                volatile: bytes,
                forgotten: false,
            });
            d.names.insert(name.to_owned(), d.inodes.len() - 1);
        });
    }

    pub fn with<T>(&self, f: impl FnOnce(&mut Disk) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

impl Files for Shared {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.with(|d| d.names.get(name).map(|&i| d.inodes[i].volatile.clone())))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let content = Files::read(self, name)?.ok_or(io::ErrorKind::NotFound)?;
        let start = offset as usize;
        content
            .get(start..start + length)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn write(&mut self, name: &str, content: &[&[u8]]) -> io::Result<()> {
        self.with(|d| {
            let fault = d.step()?;
            let mut volatile = content.concat();
            let bad = match fault {
                Some(Fault::Short) => Some(io::ErrorKind::WriteZero),
                Some(Fault::Full) => Some(io::ErrorKind::StorageFull),
                _ => None,
            };
            if bad.is_some() {
                volatile.truncate(volatile.len() / 2);
            }
            d.inodes.push(Inode {
                volatile,
                ..Inode::default()
            });
            let change = Change::Set(name.to_owned(), d.inodes.len() - 1);
            apply(&mut d.names, &change);
            d.changes.push(change);
            bad.map_or(Ok(()), |kind| Err(kind.into()))
        })
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.with(|d| {
            let fault = d.step()?;
            let inode = *d.names.get(name).ok_or(io::ErrorKind::NotFound)?;
            let inode = &mut d.inodes[inode];
            if fault == Some(Fault::Forgets) {
                inode.forgotten = true;
                return Err(io::Error::other("injected"));
            }
            if !inode.forgotten {
                inode.durable = inode.volatile.clone();
            }
            Ok(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            if !d.names.contains_key(from) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let change = Change::Rename(from.to_owned(), to.to_owned());
            apply(&mut d.names, &change);
            d.changes.push(change);
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            let change = Change::Remove(name.to_owned());
            apply(&mut d.names, &change);
            d.changes.push(change);
            Ok(())
        })
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.with(|d| {
            if d.step()? == Some(Fault::Forgets) {
                return Err(io::Error::other("injected"));
            }
            d.durable_names = d.names.clone();
            d.changes.clear();
            Ok(())
        })
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.with(|d| d.names.keys().cloned().collect()))
    }
}

impl Freshness for Shared {
    fn read(&self) -> io::Result<u64> {
        Ok(self.with(|d| d.counter))
    }

    fn advance(&mut self, value: u64) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            d.counter = value;
            Ok(())
        })
    }
}

pub const KEY: [u8; 32] = [7; 32];

pub type Model = BTreeMap<SegmentId, Vec<u8>>;

pub fn open(disk: &Shared) -> Result<Vault, Error> {
    Vault::open(Box::new(disk.clone()), Box::new(disk.clone()), &KEY)
}

pub fn content(vault: &Vault) -> Result<Model, Error> {
    vault
        .segments()
        .map(|id| Ok((id, vault.read(id)?.unwrap_or_default())))
        .collect()
}

/// The n-th change of a run: rewrites some segments, and occasionally removes one.
pub fn change(n: u32, model: &mut Model) -> Checkpoint {
    let mut change = Checkpoint::new();
    for k in 0..3 {
        let id = SegmentId {
            partition: 1 + k,
            number: (n * (k + 1)) % 5,
        };
        let bytes = vec![n as u8 ^ k as u8; 10 + (n as usize * 37 + k as usize) % 400];
        change.write(id, bytes.clone());
        model.insert(id, bytes);
    }
    if n % 4 == 3 {
        let first = *model.keys().next().unwrap();
        model.remove(&first);
        change.remove(first);
    }
    change
}

pub fn run(disk: &Shared, checkpoints: u32) -> Result<Vec<Model>, Error> {
    let mut vault = open(disk)?;
    let mut states = vec![Model::new()];
    for n in 0..checkpoints {
        let mut model = states.last().unwrap().clone();
        let change = change(n, &mut model);
        vault.commit(change, n.to_le_bytes().to_vec())?;
        states.push(model);
    }
    Ok(states)
}

/// Which state of [`run`] a vault is in, according to its meta data.
pub fn state_of(vault: &Vault) -> usize {
    match vault.meta().first_chunk() {
        Some(n) => u32::from_le_bytes(*n) as usize + 1,
        None => 0,
    }
}
