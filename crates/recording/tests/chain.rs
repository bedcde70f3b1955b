//! Recordings that were written are read as they were; whatever is done to their bytes is found.
//! Right: an error that names the file. With a bug an administrator replays what never happened,
//! or believes that nothing more did.

use recording::{Chunk, End, Event, Key, Outcome, Writer, read};
use std::fs;
use std::path::{Path, PathBuf};

fn chunk(number: u32) -> Chunk {
    let mut events = Vec::new();
    for at in 0..20 {
        let event = Event {
            at,
            took: number,
            kind: 65,
            body: &[number as u8; 40],
            outcome: Outcome::Answer(&[1]),
        };
        event.put(&mut events);
    }
    Chunk {
        session: 7,
        channel: number,
        database: 5,
        lost: 0,
        events,
    }
}

/// A recording of five frames in three files, and the end.
fn written(within: &Path, key: &Key, ended: bool) -> PathBuf {
    let mut writer = Writer::create(within, key).expect("a directory");
    for number in 0..5 {
        if number == 2 || number == 4 {
            writer.turn().expect("another file");
        }
        writer.write(&[chunk(number)]).expect("a frame");
    }
    if ended {
        writer.end(End::Stopped).expect("an end");
    }
    within.join(key.name())
}

fn fresh() -> (tempfile::TempDir, Key) {
    let directory = tempfile::tempdir().expect("a directory");
    (directory, Key::generate().expect("a key"))
}

fn parts(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut found: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    found.sort();
    found
}

#[test]
fn there_and_back() {
    let (directory, key) = fresh();
    let at = written(directory.path(), &key, true);
    let recorded = read(&at, &key, false).expect("a recording");
    assert_eq!(recorded.chunks, (0..5).map(chunk).collect::<Vec<_>>());
    assert_eq!(recorded.end, Some(End::Stopped));
    let events = recorded.chunks[1].events().expect("events");
    assert_eq!(events.len(), 20);
    assert_eq!(events[3].outcome, Outcome::Answer(&[1]));
    assert!(
        Writer::create(directory.path(), &key).is_err(),
        "the same key again"
    );
}

#[test]
fn altered() {
    let (directory, key) = fresh();
    let at = written(directory.path(), &key, true);
    for path in parts(&at) {
        let content = fs::read(&path).expect("a file");
        for place in 0..content.len() {
            let mut changed = content.clone();
            changed[place] ^= 1;
            fs::write(&path, &changed).expect("a file");
            assert!(read(&at, &key, false).is_err(), "{path:?} {place}");
        }
        fs::write(&path, &content).expect("a file");
    }
    assert!(read(&at, &key, false).is_ok());
    let other = Key::generate().expect("a key");
    assert!(read(&at, &other, false).is_err(), "another key");
}

/// Each frame's bytes in a file, after what it begins with.
fn frames(content: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &content[16..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize + 28;
        found.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    found
}

#[test]
fn cut_and_reordered() {
    let (directory, key) = fresh();
    let at = written(directory.path(), &key, true);
    let paths = parts(&at);
    let refuse = |what: &str| assert!(read(&at, &key, false).is_err(), "{what}");
    for path in &paths {
        let content = fs::read(path).expect("a file");
        for end in 0..content.len() {
            fs::write(path, &content[..end]).expect("a file");
            refuse("cut");
        }
        let frames = frames(&content);
        for gone in 0..frames.len() {
            let mut left = frames.clone();
            left.remove(gone);
            fs::write(path, [content[..16].to_vec(), left.concat()].concat()).expect("a file");
            refuse("a frame less");
        }
        let mut turned = frames.clone();
        turned.reverse();
        if turned != frames {
            fs::write(path, [content[..16].to_vec(), turned.concat()].concat()).expect("a file");
            refuse("reversed");
        }
        let twice = [content.clone(), frames[0].clone()].concat();
        fs::write(path, twice).expect("a file");
        refuse("a frame twice");
        fs::remove_file(path).expect("a file");
        refuse("a file less");
        fs::write(path, &content).expect("a file");
    }
    let (first, second) = (fs::read(&paths[0]), fs::read(&paths[1]));
    fs::write(&paths[0], second.expect("a file")).expect("a file");
    fs::write(&paths[1], first.expect("a file")).expect("a file");
    refuse("files changed places");
}

/// A ring: old files go, and the end knows which is the first that was kept.
#[test]
fn ring() {
    let (directory, key) = fresh();
    let mut writer = Writer::create(directory.path(), &key).expect("a directory");
    for number in 0..6 {
        writer.write(&[chunk(number)]).expect("a frame");
        writer.turn().expect("another file");
        if writer.parts() > 3 {
            writer.drop_oldest().expect("a file less");
        }
    }
    writer.end(End::Time).expect("an end");
    let at = directory.path().join(key.name());
    let recorded = read(&at, &key, false).expect("a recording");
    assert_eq!(recorded.chunks, (4..6).map(chunk).collect::<Vec<_>>());
    fs::remove_file(&parts(&at)[0]).expect("a file");
    assert!(
        read(&at, &key, false).is_err(),
        "the oldest file is missing"
    );
}

/// The keeper was killed: only who asks for it reads that, and gets what is whole.
#[test]
fn unfinished() {
    let (directory, key) = fresh();
    let at = written(directory.path(), &key, false);
    assert!(read(&at, &key, false).is_err());
    let last = parts(&at).pop().expect("a file");
    let content = fs::read(&last).expect("a file");
    fs::write(&last, &content[..content.len() - 1]).expect("a file");
    let recorded = read(&at, &key, true).expect("what is whole");
    assert_eq!((recorded.chunks.len(), recorded.end), (4, None));
}
