//! Records that a run was not sent, spliced into its log later.

use super::*;

/// The database withholds a victim's records from the next run, which gives partition and FIDs to
/// a column of the attacker's, and brings single ones back afterwards. Right: each is refused, and his
/// own records alone still do. Bug: the victim's values show in the attacker's column.
#[test]
fn records_of_a_run_that_was_forgotten() {
    let place = Place::new();
    let (running, worker) = place.first();
    let mut victims = Vec::new();
    let mut backend = running.session();
    let partition = open(&mut backend, 7, TypeCode::Int4, &mut victims);
    let theirs = promote(&mut backend, partition, &ints(5200, 3), &mut victims);
    drop((backend, worker, running));

    let mut log = Vec::new();
    let (running, worker) = place.again(100, &[]);
    let mut backend = running.session();
    let partition = open(&mut backend, 8, TypeCode::Int4, &mut log);
    let own = promote(&mut backend, partition, &ints(100, 3), &mut log);
    assert_eq!(own, theirs);
    drop((backend, worker, running));
    let [(opened, promoted), (hidden, values)] = [(&log[0], &log[1]), (&victims[0], &victims[1])];
    for splice in [
        vec![opened, values],
        vec![opened, promoted, values],
        vec![values, opened, promoted],
        vec![opened, promoted, hidden],
        vec![hidden, values],
    ] {
        let splice: Vec<Vec<u8>> = splice.into_iter().cloned().collect();
        let running = place.start();
        let mut worker = Worker::connect(&running);
        worker.state(SYSTEM).unwrap();
        worker.redo(&splice);
        assert_eq!(state(worker.done(1100)), "XX001");
        assert_eq!(refused(&running), Some(Status::Recovering));
    }
    // What was sent once is known to all later runs.
    for _ in 0..3 {
        let (running, _worker) = place.again(100, &log);
        check(&mut running.session(), &own, 100);
    }
}

/// A copy of a store goes on with the records of its original's later runs, when an operator
/// has said that it is one; they are refused before.
#[test]
fn a_copy_takes_records_of_later_runs() {
    let (place, copy) = (Place::new(), Place::new());
    drop(place.first());
    damage::copy(place.dir.path(), copy.dir.path());
    let mut log = Vec::new();
    let (running, worker) = place.again(100, &[]);
    let mut backend = running.session();
    let partition = open(&mut backend, 7, TypeCode::Int4, &mut log);
    let fids = promote(&mut backend, partition, &ints(0, 3), &mut log);
    drop((backend, worker, running));

    let running = copy.start();
    let mut worker = Worker::connect(&running);
    worker.state(SYSTEM).unwrap();
    worker.redo(&log);
    assert_eq!(state(worker.follow(1100)), "XX001");
    drop((worker, running));
    let copy = copy.copied();
    let (running, _worker) = copy.again(100, &log);
    check(&mut running.session(), &fids, 0);
}
