//! Copies of the store for backups: how many there are at a time.

use super::*;
use crate::common::happens;

fn copy(backend: &mut Backend) -> Result<usize, String> {
    let answer = backend.call(Kind::StoreCopy, &[]);
    answer.map(|files| files.len()).map_err(|(state, _)| state)
}

/// A session has one copy, all sessions have two. Bug: a backend that begins copies and never ends them
/// fills the disk with old checkpoints, and the memory with what each copy holds.
#[test]
fn so_many() {
    let place = Place::new();
    drop(place.first());
    place.wait_until_free();
    let running = Running::with(|config| {
        place.set(config);
        config.store_copies = 2;
    });
    let mut worker = Worker::connect(&running);
    worker.state(SYSTEM).unwrap();
    worker.done(200).unwrap();
    let refused = Err("53400".to_owned());

    let mut leader = running.session();
    let mut parallel = leader.worker(&running);
    assert!(copy(&mut leader).is_ok());
    // Another one in its place.
    assert!(copy(&mut leader).is_ok());
    assert_eq!(copy(&mut parallel), refused);
    let (mut second, mut third) = (running.backend(), running.backend());
    assert!(copy(&mut second).is_ok());
    assert_eq!(copy(&mut third), refused);
    // It ends with its session.
    drop(second);
    let served = happens(|| copy(&mut third).is_ok());
    assert!(served);
}
