//! Faults of storage and attacks on files. A simulated directory loses what was not
//! synced when it "crashes"; a plain map decides what must be there.
//!
//! Right answer: after a crash at any operation the vault opens with the content
//! of the last finished checkpoint or of the one that was under way, whole; any
//! altered or older file is an error. A missing sync, a wrong order of steps or a
//! missing check in `Vault` makes one of these fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use vault::{Checkpoint, Error, Files, Freshness, SegmentId, Vault};

type Names = BTreeMap<String, usize>;

/// Contents by inode; names and contents exist in a volatile and a durable form.
#[derive(Clone, Default)]
struct Disk {
    inodes: Vec<(Vec<u8>, Vec<u8>)>,
    names: Names,
    durable_names: Names,
    counter: u64,
    operations: usize,
    fail_at: Option<usize>,
}

impl Disk {
    /// What is there after the machine has lost power. `torn` keeps the first
    /// half of what was written and not synced.
    fn crash(&mut self, torn: bool) {
        self.names = self.durable_names.clone();
        for (volatile, durable) in &mut self.inodes {
            if torn && durable.is_empty() {
                volatile.truncate(volatile.len() / 2);
                *durable = volatile.clone();
            }
            *volatile = durable.clone();
        }
        self.fail_at = None;
    }

    fn step(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.fail_at.is_some_and(|n| self.operations > n) {
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Disk>>);

impl Shared {
    fn with<T>(&self, f: impl FnOnce(&mut Disk) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

impl Files for Shared {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.with(|d| d.names.get(name).map(|&i| d.inodes[i].0.clone())))
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
            d.step()?;
            d.inodes.push((content.concat(), Vec::new()));
            d.names.insert(name.to_owned(), d.inodes.len() - 1);
            Ok(())
        })
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            let inode = *d.names.get(name).ok_or(io::ErrorKind::NotFound)?;
            d.inodes[inode].1 = d.inodes[inode].0.clone();
            Ok(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            let inode = d.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            d.names.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            d.names.remove(name);
            Ok(())
        })
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.with(|d| {
            d.step()?;
            d.durable_names = d.names.clone();
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

const KEY: [u8; 32] = [7; 32];

type Model = BTreeMap<SegmentId, Vec<u8>>;

fn open(disk: &Shared) -> Result<Vault, Error> {
    Vault::open(Box::new(disk.clone()), Box::new(disk.clone()), &KEY)
}

fn content(vault: &Vault) -> Result<Model, Error> {
    vault
        .segments()
        .map(|id| Ok((id, vault.read(id)?.unwrap_or_default())))
        .collect()
}

/// The n-th change of a run: rewrites some segments, removes one now and then.
fn change(n: u32, model: &mut Model) -> Checkpoint {
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

fn run(disk: &Shared, checkpoints: u32) -> Result<Vec<Model>, Error> {
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

#[test]
fn what_was_committed_is_there_after_opening_anew() {
    let disk = Shared::default();
    let states = run(&disk, 25).unwrap();
    let vault = open(&disk).unwrap();
    assert_eq!(&content(&vault).unwrap(), states.last().unwrap());
    assert_eq!(vault.meta(), 24u32.to_le_bytes());
    let total: usize = disk.with(|d| d.names.values().map(|&i| d.inodes[i].0.len()).sum());
    let live: usize = states.last().unwrap().values().map(Vec::len).sum();
    assert!(
        total < 4 * live + 4096,
        "outdated blocks pile up: {total} for {live}"
    );
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_or_the_new_state() {
    let whole = Shared::default();
    let states = run(&whole, 8).unwrap();
    let operations = whole.with(|d| d.operations);
    assert!(operations > 40);
    for torn in [false, true] {
        for fail_at in 0..operations {
            let disk = Shared::default();
            disk.with(|d| d.fail_at = Some(fail_at));
            assert!(run(&disk, 8).is_err());
            disk.with(|d| d.crash(torn));
            let vault = open(&disk).unwrap_or_else(|e| panic!("after {fail_at}: {e}"));
            let found = content(&vault).unwrap();
            let version = vault.version() as usize;
            assert_eq!(found, states[version], "after operation {fail_at}");
        }
    }
}

#[test]
fn a_failed_operation_is_final() {
    let disk = Shared::default();
    let mut vault = open(&disk).unwrap();
    disk.with(|d| d.fail_at = Some(d.operations + 1));
    let mut model = Model::new();
    assert!(matches!(
        vault.commit(change(0, &mut model), vec![]),
        Err(Error::Io { .. })
    ));
    disk.with(|d| d.fail_at = None);
    assert!(matches!(
        vault.commit(change(0, &mut model), vec![]),
        Err(Error::Failed)
    ));
}

#[test]
fn every_flipped_byte_is_noticed() {
    let disk = Shared::default();
    run(&disk, 3).unwrap();
    let names = disk.names().unwrap();
    for name in names.iter().filter(|n| *n != "manifest.next") {
        let inode = disk.with(|d| d.names[name]);
        let length = disk.with(|d| d.inodes[inode].0.len());
        for at in 0..length {
            disk.with(|d| d.inodes[inode].0[at] ^= 0x10);
            let noticed = open(&disk).and_then(|v| content(&v)).is_err();
            assert!(noticed, "{name} byte {at}");
            disk.with(|d| d.inodes[inode].0[at] ^= 0x10);
        }
    }
    assert!(open(&disk).and_then(|v| content(&v)).is_ok());
}

#[test]
fn missing_short_and_exchanged_files_are_noticed() {
    let disk = Shared::default();
    run(&disk, 3).unwrap();
    let data: Vec<String> = disk
        .names()
        .unwrap()
        .into_iter()
        .filter(|n| n.starts_with("data-"))
        .collect();
    assert!(data.len() >= 2);
    let broken = |change: &dyn Fn(&mut Disk)| {
        let copy = Shared(Arc::new(Mutex::new(disk.with(|d| d.clone()))));
        copy.with(change);
        open(&copy).and_then(|v| content(&v)).unwrap_err()
    };
    let missing = broken(&|d| assert!(d.names.remove(&data[0]).is_some()));
    assert!(missing.to_string().contains(&data[0]), "{missing}");
    broken(&|d| {
        let inode = d.names[&data[1]];
        d.inodes[inode].0.pop();
    });
    broken(&|d| {
        let (a, b) = (d.names[&data[0]], d.names[&data[1]]);
        d.names.insert(data[0].clone(), b);
        d.names.insert(data[1].clone(), a);
    });
    let gone = broken(&|d| assert!(d.names.remove("manifest").is_some()));
    assert!(matches!(gone, Error::Stale { .. }), "{gone}");
}

#[test]
fn an_older_copy_of_a_file_or_of_the_whole_is_noticed() {
    let disk = Shared::default();
    run(&disk, 2).unwrap();
    let older = disk.with(|d| d.clone());
    let mut vault = open(&disk).unwrap();
    let mut model = content(&vault).unwrap();
    vault.commit(change(9, &mut model), vec![]).unwrap();
    // The whole: everything but the freshness counter is put back.
    let counter = disk.with(|d| d.counter);
    let whole = Shared(Arc::new(Mutex::new(Disk {
        counter,
        ..older.clone()
    })));
    let error = open(&whole).and_then(|v| content(&v)).unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error}");
    // The manifest only.
    let inode = older.names["manifest"];
    let manifest = older.inodes[inode].0.clone();
    disk.with(|d| {
        let inode = d.names["manifest"];
        d.inodes[inode].0 = manifest;
    });
    let error = open(&disk).and_then(|v| content(&v)).unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error}");
}

#[test]
fn another_root_key_opens_nothing() {
    let disk = Shared::default();
    run(&disk, 1).unwrap();
    let other = Vault::open(Box::new(disk.clone()), Box::new(disk.clone()), &[8; 32]);
    assert!(matches!(other.err(), Some(Error::Altered { .. })));
}
