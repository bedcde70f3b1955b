//! Leases, and values that a client has sealed: what is announced is there, at once and after a
//! restart, and nothing else is.

use super::{Place, SYSTEM, Worker, ints, promote};
use crate::common::{Backend, DATABASE, Running, state};
use crate::grants::{entry, give};
use contract::codec::Part;
use contract::message::table::Run;
use contract::{Fid, Kind, TypeCode, answer};
use envelope::{Envelope, Target};
use grant::origin;

const INT: TypeCode = TypeCode::Int4;

/// First 16 bytes of the hash of a column's names.
fn identity(name: &str) -> [u8; 16] {
    let text = format!("public\0emp\0{name}\0");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    digest.as_ref()[..16].try_into().unwrap()
}

fn open(backend: &mut Backend, attribute: u32, name: &str, log: &mut Vec<Vec<u8>>) -> u32 {
    open_named(backend, attribute, "emp", name, log)
}

/// Opens the partition of a table's column.
pub(super) fn open_named(
    backend: &mut Backend,
    attribute: u32,
    table: &str,
    name: &str,
    log: &mut Vec<Vec<u8>>,
) -> u32 {
    let mut body = Vec::new();
    for word in [DATABASE, 7, attribute, u32::MAX, INT as u32, 0] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    if !name.is_empty() {
        body.extend_from_slice(format!("public\0{table}\0{name}\0").as_bytes());
    }
    let answer = backend.call(Kind::PartitionOpen, &body).unwrap();
    let (head, record) = answer.split_at(8);
    if !record.is_empty() {
        log.push(record.to_vec());
    }
    u32::from_le_bytes(head[..4].try_into().unwrap())
}

/// Leases FIDs of columns.
pub(super) fn lease(
    backend: &mut Backend,
    count: u32,
    partitions: &[u32],
    log: &mut Vec<Vec<u8>>,
) -> Vec<Fid> {
    let words = [count, partitions.len() as u32];
    let words = words.iter().chain(partitions);
    let body: Vec<u8> = words.flat_map(|w| w.to_le_bytes()).collect();
    let answer = backend.call(Kind::Lease, &body).unwrap();
    let answer = answer::Lease::decode(&answer).unwrap();
    if !answer.record.is_empty() {
        log.push(answer.record.to_vec());
    }
    let fids = |run: Run| (0..u64::from(run.length)).map(move |n| Fid(run.first.0 + n));
    answer.runs.iter().flat_map(fids).collect()
}

/// The record of a value that the client has sealed for a column.
fn adopted(backend: &Backend, fid: Fid, column: &str, value: i32) -> Vec<u8> {
    let target = Target {
        column: identity(column),
        typmod: -1,
    };
    let mut sealed = Vec::new();
    let sealer = backend.storing.as_ref().unwrap();
    sealer
        .seal_fitted(INT as u8, 0, &target, &value.to_be_bytes(), &mut sealed)
        .unwrap();
    assert_eq!(Envelope::parse(&sealed).unwrap().target, Some(target));
    // As extension/src/value writes it: header 4, target 20, nonce 12, and the rest.
    let (header, rest) = sealed.split_at(4);
    let (nonce, cipher) = rest[20..].split_at(12);
    let mut record = vec![redo::VERSION, 8];
    record.extend_from_slice(&fid.0.to_le_bytes());
    record.extend_from_slice(&rest[16..20]);
    record.extend_from_slice(&nonce[4..10]);
    record.extend_from_slice(&header[2..4]);
    record.extend_from_slice(&(cipher.len() as u32).to_le_bytes());
    record.extend_from_slice(cipher);
    record
}

fn adopt(
    backend: &mut Backend,
    fid: Fid,
    column: &str,
    value: i32,
    log: &mut Vec<Vec<u8>>,
) -> Result<(), String> {
    let record = adopted(backend, fid, column, value);
    backend.send(Kind::Adopt, &record);
    log.push(record);
    backend.fence().map_err(|(state, _)| state)
}

pub(super) fn int(backend: &mut Backend, fid: Fid) -> Option<String> {
    backend.get(fid, INT).ok().flatten()
}

impl Place {
    pub(super) fn leasing(&self) -> Running {
        self.wait_until_free();
        Running::with(|config| {
            self.set(config);
            config.lease = true;
        })
    }

    pub(super) fn leasing_first(&self) -> (Running, Worker) {
        let running = self.leasing();
        let mut worker = Worker::connect(&running);
        worker.state(SYSTEM).unwrap();
        worker.checkpoint(100, SYSTEM).unwrap();
        worker.done(100).unwrap();
        (running, worker)
    }

    pub(super) fn leasing_again(&self, log: &[Vec<u8>]) -> (Running, Worker) {
        let running = self.leasing();
        let mut worker = Worker::connect(&running);
        let (_, position) = worker.state(SYSTEM).unwrap();
        worker.redo(log);
        worker.done(position + 1000).unwrap();
        (running, worker)
    }
}

/// Values of the log, of a checkpoint, and of leases that a checkpoint holds. What nobody used is
/// given to others. Bug: a row that was committed has an identifier without a value.
#[test]
fn values_survive() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, mut worker) = place.leasing_first();
    let mut backend = running.session();
    let pay = open(&mut backend, 1, "pay", &mut log);
    let bonus = open(&mut backend, 2, "bonus", &mut log);
    let fids = lease(&mut backend, 4, &[pay, bonus], &mut log);
    assert_eq!(fids.len(), 8);
    assert_eq!(fids[4].partition(), bonus);
    assert_eq!(adopt(&mut backend, fids[0], "pay", 10, &mut log), Ok(()));
    assert_eq!(adopt(&mut backend, fids[4], "bonus", 20, &mut log), Ok(()));
    assert_eq!(int(&mut backend, fids[0]).as_deref(), Some("10"));
    // Nobody else gets a leased identifier.
    let others = promote(&mut backend, pay, &ints(0, 3), &mut log);
    assert!(others.iter().all(|fid| !fids.contains(fid)));
    worker.checkpoint(200, SYSTEM).unwrap();
    let kept = log.len();
    assert_eq!(adopt(&mut backend, fids[5], "bonus", 21, &mut log), Ok(()));
    assert_eq!(adopt(&mut backend, fids[2], "pay", 12, &mut log), Ok(()));
    // What was filled before the checkpoint is not filled by what comes again.
    log.push(adopted(&backend, fids[0], "pay", 99));
    drop((backend, worker, running));

    let (running, _worker) = place.leasing_again(&log[kept..]);
    let mut backend = running.session();
    for (fid, value) in [(0, 10), (4, 20), (5, 21), (2, 12)] {
        let found = int(&mut backend, fids[fid]);
        assert_eq!(found, Some(value.to_string()), "{fid}");
    }
    assert_eq!(int(&mut backend, fids[1]), None);
    // They are free again.
    let free = promote(&mut backend, pay, &ints(0, 2), &mut log);
    assert_eq!(free, [fids[1], fids[3]]);
    drop((backend, running));

    // All of it, from the first checkpoint on, to a keeper that was not there.
    let (running, _worker) = place.copied().leasing_again(&log);
    let mut backend = running.session();
    assert_eq!(int(&mut backend, fids[5]).as_deref(), Some("21"));
}

/// What was sealed for another column, or under another session's key, or was altered, leaves zero, at once
/// and in recovery; what is not leased, or has a value, stays. Bug: the database puts values of one column
/// into another one, or of a client that may not write it.
#[test]
fn refused() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, worker) = place.leasing_first();
    let mut backend = running.session();
    let pay = open(&mut backend, 1, "pay", &mut log);
    let fids = lease(&mut backend, 4, &[pay], &mut log);
    assert_eq!(adopt(&mut backend, fids[0], "pay", 10, &mut log), Ok(()));
    let state = adopt(&mut backend, fids[0], "pay", 11, &mut log);
    assert!(state.is_err());
    assert!(adopt(&mut backend, fids[1], "bonus", 11, &mut log).is_err());
    let mut other = running.session();
    let foreign = adopted(&other, fids[2], "pay", 12);
    let mut altered = adopted(&backend, fids[3], "pay", 13);
    *altered.last_mut().unwrap() ^= 1;
    for record in [foreign, altered] {
        backend.send(Kind::Adopt, &record);
        log.push(record);
        assert!(backend.fence().is_err());
    }
    // The next one is leased to another channel.
    let beyond = lease(&mut other, 1, &[pay], &mut log)[0];
    assert_eq!(beyond.0, fids[3].0 + 1);
    assert!(adopt(&mut backend, beyond, "pay", 14, &mut log).is_err());
    let record = adopted(&other, fids[2], "pay", 15);
    other.send(Kind::Adopt, &record);
    assert!(other.fence().is_err());
    let found = |backend: &mut Backend| {
        let found = fids.iter().map(|fid| int(backend, *fid).unwrap());
        assert_eq!(found.collect::<Vec<_>>(), ["10", "0", "0", "0"]);
    };
    found(&mut backend);
    assert_eq!(int(&mut backend, beyond), None);
    drop((backend, other, worker, running));
    let (running, _worker) = place.leasing_again(&log);
    found(&mut running.session());
}

/// What was refused is told at each fence, and whenever entries are made, until another transaction begins, also if
/// the database has forgotten its errors meanwhile. Bug: after ROLLBACK TO a transaction commits a row with a zero in place of its value.
#[test]
fn refused_for_the_transaction() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, _worker) = place.leasing_first();
    let mut backend = running.session();
    let pay = open(&mut backend, 1, "pay", &mut log);
    let fids = lease(&mut backend, 2, &[pay], &mut log);
    assert!(adopt(&mut backend, fids[0], "bonus", 10, &mut log).is_err());
    backend.send(Kind::Forget, &[]);
    assert!(backend.fence().is_err());
    assert!(backend.fence().is_err());
    // Of no rows, of a transaction that has adopted values, without envelopes.
    let sealing = [&[0; 12], 1_u32.to_le_bytes().as_slice(), &[0; 8]].concat();
    assert!(backend.call(Kind::LedgerSeal, &sealing).is_err());
    backend.send(Kind::Clock, &0_i64.to_le_bytes());
    assert!(backend.fence().is_ok());
    assert!(backend.call(Kind::LedgerSeal, &sealing).is_ok());
    assert_eq!(adopt(&mut backend, fids[1], "pay", 11, &mut log), Ok(()));
}

/// A channel that ends gives back what it did not use. A later value keeps the identifier, whatever the
/// database sends again. Bug: a client's row shows what an earlier session has sealed.
#[test]
fn given_back() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, worker) = place.leasing_first();
    let mut first = running.session();
    let pay = open(&mut first, 1, "pay", &mut log);
    let fids = lease(&mut first, 2, &[pay], &mut log);
    assert_eq!(adopt(&mut first, fids[0], "pay", 10, &mut log), Ok(()));
    let late = adopted(&first, fids[1], "pay", 11);
    drop(first);
    let mut second = running.session();
    let until = std::time::Instant::now() + crate::common::TIMEOUT;
    let free = loop {
        // The channel's thread may still be ending.
        let fid = promote(&mut second, pay, &ints(5, 1), &mut log)[0];
        if fid == fids[1] {
            break fid;
        }
        assert!(std::time::Instant::now() < until);
    };
    log.push(late);
    drop((second, worker, running));
    let (running, _worker) = place.leasing_again(&log);
    let mut backend = running.session();
    assert_eq!(int(&mut backend, fids[0]).as_deref(), Some("10"));
    assert_eq!(int(&mut backend, free).as_deref(), Some("5"));
}

/// A value is in the WAL before it is here: a checkpoint takes in what was sent before it. Bug: the value is in
/// neither.
#[test]
fn checkpoints_wait() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, mut worker) = place.leasing_first();
    let mut backend = running.session();
    let pay = open(&mut backend, 1, "pay", &mut log);
    let bonus = open(&mut backend, 2, "bonus", &mut log);
    let fids = lease(&mut backend, 1, &[pay, bonus], &mut log);
    let records = [
        adopted(&backend, fids[1], "bonus", 20),
        adopted(&backend, fids[0], "pay", 10),
    ];
    let keeper = running.server.keeper();
    // The channel stops at the first value, a checkpoint without waiting after the other's column.
    let held = keeper.store.get(bonus).map(|p| p.read());
    for record in &records {
        backend.send(Kind::Adopt, record);
    }
    let done = std::thread::spawn(move || worker.checkpoint(200, SYSTEM).map(|_| worker));
    let until = std::time::Instant::now() + crate::common::TIMEOUT;
    while keeper.leases.waiting() == 0 {
        assert!(
            std::time::Instant::now() < until,
            "the checkpoint does not wait"
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(held);
    let worker = done.join().unwrap().unwrap();
    drop((backend, worker, running));
    let (running, _worker) = place.leasing_again(&[]);
    let mut backend = running.session();
    assert_eq!(int(&mut backend, fids[0]).as_deref(), Some("10"));
    assert_eq!(int(&mut backend, fids[1]).as_deref(), Some("20"));
}

/// Only who may write a column gets identifiers of it, and only where all of it is known: its name, a store, the
/// setting. Bug: a client writes a column of others.
#[test]
fn who_may() {
    let place = Place::new();
    let running = Running::with(|config| {
        place.set(config);
        config.lease = true;
        config.require_grants = true;
    });
    let mut worker = Worker::connect(&running);
    worker.state(SYSTEM).unwrap();
    worker.checkpoint(100, SYSTEM).unwrap();
    worker.done(100).unwrap();
    let mut log = Vec::new();
    let mut backend = running.session();
    let pay = open(&mut backend, 1, "pay", &mut log);
    let nameless = open(&mut backend, 2, "", &mut log);
    assert!(lease(&mut backend, 4, &[pay], &mut log).is_empty());
    give(&mut backend, &[entry(origin::CLIENT, 0, &[], &["pay"])]);
    assert_eq!(lease(&mut backend, 4, &[pay], &mut log).len(), 4);
    assert!(lease(&mut backend, 4, &[pay, nameless], &mut log).is_empty());
    let mut bare = running.backend();
    assert!(lease(&mut bare, 4, &[pay], &mut log).is_empty());
    // What is used does not count as held.
    for _ in 0..300 {
        let fids = lease(&mut backend, 1024, &[pay], &mut log);
        assert_eq!(fids.len(), 1024);
        for fid in fids {
            let record = adopted(&backend, fid, "pay", 1);
            backend.send(Kind::Adopt, &record);
        }
    }
    let many = [2000_u32, 1, pay].map(u32::to_le_bytes).concat();
    let refused = backend.call(Kind::Lease, &many).map(drop);
    assert_eq!(state(refused), "08P01");
}
