//! Damaged data directories.

use super::*;

pub(super) fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &there),
            false => drop(std::fs::copy(entry.path(), there).unwrap()),
        }
    }
}

/// Damage to the data directory keeps the keeper from starting, and is named.
#[test]
fn damage_is_named() {
    let place = Place::new();
    let (running, mut worker) = place.first();
    let held = place.refusal();
    assert!(held.contains("another keeper"), "{held}");
    let mut backend = running.session();
    let mut log = Vec::new();
    let partition = open(&mut backend, 7, TypeCode::Int4, &mut log);
    promote(&mut backend, partition, &ints(0, 10), &mut log);
    copy(&place.path("data"), &place.path("older"));
    worker.checkpoint(200, SYSTEM).unwrap();
    drop((backend, worker, running));
    place.wait_until_free();
    copy(&place.path("data"), &place.path("good"));

    copy(&place.path("older"), &place.path("data"));
    let what = place.refusal();
    assert!(what.contains("manifest: an older copy"), "{what}");
    copy(&place.path("good"), &place.path("data"));
    let data = place.data_files().remove(0);
    let mut bytes = std::fs::read(&data).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let what = place.refusal();
    let name = data.file_name().unwrap().to_string_lossy().into_owned();
    assert!(what.contains(&name), "{what}");
    copy(&place.path("good"), &place.path("data"));
    drop(place.again(200, &[]));
}

/// A checkpoint that fails leaves the one before, and the next one is whole; with
/// the bug what had changed before the failure is never written.
#[test]
fn failed_checkpoint() {
    let place = Place::new();
    let (running, mut worker) = place.first();
    let mut backend = running.session();
    let mut log = Vec::new();
    let partition = open(&mut backend, 7, TypeCode::Int4, &mut log);
    let fids = promote(&mut backend, partition, &ints(0, 100), &mut log);
    std::fs::rename(place.path("data"), place.path("away")).unwrap();
    assert_eq!(state(worker.checkpoint(200, SYSTEM)), "58030");
    assert_eq!(worker.state(SYSTEM), Ok((1, 100)));
    let _ = std::fs::remove_dir_all(place.path("data"));
    std::fs::rename(place.path("away"), place.path("data")).unwrap();
    worker.checkpoint(300, SYSTEM).unwrap();
    assert_eq!(worker.state(SYSTEM), Ok((1, 300)));
    drop((backend, worker, running));
    let (running, _worker) = place.again(300, &[]);
    check(&mut running.session(), &fids, 0);
}
