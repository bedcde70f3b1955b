//! Copies for backups: each is of one checkpoint, whatever happens meanwhile, and is not accepted
//! as the latest before an operator says so.

use std::path::Path;
use tempfile::TempDir;
use vault::{Checkpoint, CounterFile, Directory, Error, SegmentId, Vault};

const KEY: [u8; 32] = [9; 32];

fn open(dir: &Path) -> Result<Vault, Error> {
    let files = Directory::open(dir.join("data")).unwrap();
    let counter = CounterFile::new(dir.join("counter"));
    Vault::open(Box::new(files), Box::new(counter), &KEY)
}

fn accept(dir: &Path) -> Result<(u64, u64), Error> {
    let files = Directory::open(dir.join("data")).unwrap();
    let counter = CounterFile::new(dir.join("counter"));
    Vault::accept(Box::new(files), Box::new(counter), &KEY)
}

fn id(number: u32) -> SegmentId {
    SegmentId {
        partition: 1,
        number,
    }
}

fn commit(vault: &mut Vault, numbers: std::ops::Range<u32>, content: u8) {
    let mut change = Checkpoint::new();
    for number in numbers {
        change.write(id(number), vec![content; 5000]);
    }
    vault.commit(change, vec![content]).unwrap();
}

/// Copies in parts to another place, like a backup; `between` runs after the copy has started.
fn copied(vault: &mut Vault, between: impl FnOnce(&mut Vault)) -> TempDir {
    let copy = vault.copy(&["beside", "nothing"]).unwrap();
    between(vault);
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("data")).unwrap();
    for (number, (name, length)) in copy.files().enumerate() {
        let mut bytes = Vec::new();
        loop {
            let part = vault
                .read_copy(&copy, number, bytes.len() as u64, 777)
                .unwrap();
            if part.is_empty() {
                break;
            }
            bytes.extend(part);
        }
        assert_eq!(bytes.len() as u64, length);
        std::fs::write(place.path().join("data").join(name), bytes).unwrap();
    }
    place
}

#[test]
fn a_copy_is_of_one_checkpoint() {
    let origin = tempfile::tempdir().unwrap();
    let mut vault = open(origin.path()).unwrap();
    commit(&mut vault, 0..4, 1);
    commit(&mut vault, 2..6, 2);
    let beside = origin.path().join("data").join("beside");
    std::fs::write(&beside, "as it was").unwrap();
    let place = copied(&mut vault, |vault| {
        commit(vault, 0..6, 3);
        commit(vault, 0..6, 4);
        std::fs::write(&beside, "later").unwrap();
    });
    let read = std::fs::read(place.path().join("data").join("beside"));
    assert_eq!(read.unwrap(), b"as it was");
    assert!(open(place.path()).is_err(), "it is not the newest");
    accept(place.path()).unwrap();
    let restored = open(place.path()).unwrap();
    assert_eq!(restored.meta(), [2]);
    for (number, content) in [(0, 1), (1, 1), (2, 2), (5, 2)] {
        let found = restored.read(id(number)).unwrap();
        assert_eq!(found, Some(vec![content; 5000]));
    }
    // Files that were held are removed at the next checkpoint.
    let files = || {
        std::fs::read_dir(origin.path().join("data"))
            .unwrap()
            .count()
    };
    let before = files();
    commit(&mut vault, 0..6, 5);
    assert!(files() < before);
}

/// An older copy while the counter is ahead: after the operator's word it is accepted, and the copy
/// that was the latest no longer is.
#[test]
fn an_operator_may_go_back() {
    let origin = tempfile::tempdir().unwrap();
    let mut vault = open(origin.path()).unwrap();
    commit(&mut vault, 0..4, 1);
    let older = copied(&mut vault, |_| ());
    commit(&mut vault, 0..4, 2);
    let newest = copied(&mut vault, |_| ());
    drop(vault);
    std::fs::copy(origin.path().join("counter"), older.path().join("counter")).unwrap();
    assert!(open(older.path()).is_err());
    accept(older.path()).unwrap();
    assert_eq!(open(older.path()).unwrap().meta(), [1]);
    std::fs::copy(older.path().join("counter"), newest.path().join("counter")).unwrap();
    assert!(open(newest.path()).is_err());
}

/// Bug: whoever can modify a backup makes the operator accept it.
#[test]
fn only_authentic_copies_are_accepted() {
    let origin = tempfile::tempdir().unwrap();
    let mut vault = open(origin.path()).unwrap();
    commit(&mut vault, 0..4, 1);
    let place = copied(&mut vault, |_| ());
    let data = place.path().join("data");
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        let last = bad.len() - 1;
        bad[last] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(accept(place.path()).is_err(), "{}", path.display());
        assert!(!place.path().join("counter").exists());
        std::fs::write(&path, good).unwrap();
    }
    accept(place.path()).unwrap();
}
