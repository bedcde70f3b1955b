//! Many rows at once: batches of values, promotion by runs.

use crate::common::{Backend, Refused, Running, state};
use ::values::Value;
use TypeCode::{Int4, Text};
use contract::codec::Part;
use contract::envelope::FLAG_TEXT;
use contract::fid::SLOT_MAX;
use contract::message::PROMOTE_RUNS_MAX;
use contract::{Fid, Kind, TypeCode, answer};

fn batch(backend: &Backend, code: TypeCode, count: u32, values: &[&[u8]]) -> Vec<u8> {
    let plain: Vec<u8> = values
        .iter()
        .flat_map(|v| [&[v.len() as u8], *v].concat())
        .collect();
    let mut sealed = Vec::new();
    let sealer = backend.sealer.as_ref().unwrap();
    sealer
        .seal_batch(code as u8, FLAG_TEXT, count, &plain, &mut sealed)
        .unwrap();
    sealed
}

fn put(backend: &mut Backend, first: Fid, code: TypeCode, envelope: &[u8]) {
    let typmod = (-1_i32).to_le_bytes();
    let head = [&first.0.to_le_bytes()[..], &typmod, &[code as u8, 0, 0, 0]].concat();
    backend.send(Kind::PutBatch, &[&head, envelope].concat());
}

/// First FIDs and lengths.
pub type Runs = Vec<(u64, u32)>;

/// The body of a `PromoteRuns`.
pub fn body(values: u32, columns: &[(u32, Runs)]) -> Vec<u8> {
    let mut body = [(columns.len() as u32).to_le_bytes(), values.to_le_bytes()].concat();
    for (partition, runs) in columns {
        body.extend_from_slice(&partition.to_le_bytes());
        body.extend_from_slice(&(runs.len() as u32).to_le_bytes());
        for (first, length) in runs {
            body.extend_from_slice(&first.to_le_bytes());
            body.extend_from_slice(&length.to_le_bytes());
            body.extend_from_slice(&[0; 4]);
        }
    }
    body
}

fn promote(backend: &mut Backend, columns: &[(u32, Runs)]) -> Result<Vec<u8>, Refused> {
    let values = columns.iter().flat_map(|(_, runs)| runs).map(|r| r.1).sum();
    backend.call(Kind::PromoteRuns, &body(values, columns))
}

/// Values come out as they went in, in order, from both columns.
#[test]
fn batches_and_runs() {
    let running = Running::start();
    let mut backend = running.session();
    let (p, q) = (backend.open(1, Int4, -1), backend.open(2, Text, -1));
    let arena = backend.end.welcome().arena;
    let numbers = batch(&backend, Int4, 3, &[b"1", b"-2", b"3"]);
    let texts = batch(&backend, Text, 2, &[b"a", b""]);
    put(&mut backend, Fid::new(arena, 10), Int4, &numbers);
    put(&mut backend, Fid::new(arena, 20), Text, &texts);
    let columns = [
        (
            p,
            vec![(Fid::new(arena, 12).0, 1), (Fid::new(arena, 10).0, 2)],
        ),
        (q, vec![(Fid::new(arena, 20).0, 2)]),
    ];
    let answer = promote(&mut backend, &columns).unwrap();
    let answer = answer::PromoteRuns::decode(&answer).unwrap();
    let runs = answer
        .runs
        .iter()
        .flat_map(|c| c.runs.into_iter().map(move |r| (c.partition, r)));
    let runs: Vec<_> = runs.map(|(p, run)| (p, run.first, run.length)).collect();
    assert_eq!((answer.promoted, answer.columns), (1, 2));
    assert_eq!(runs, [(p, Fid::new(p, 0), 3), (q, Fid::new(q, 0), 2)]);
    for (slot, text) in ["3", "1", "-2"].into_iter().enumerate() {
        let fid = Fid::new(p, slot as u64);
        assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some(text));
    }
    let empty = Fid::new(q, 1);
    assert_eq!(backend.get(empty, Text).unwrap().as_deref(), Some(""));
}

/// A value that cannot be read is an error of its own slot; a batch that is not what it
/// says is one of all its slots, and nothing else can be under them.
#[test]
fn wrong_batches() {
    let running = Running::start();
    let mut backend = running.session();
    let arena = backend.end.welcome().arena;
    let mut slot = 0;
    let mut refused = |backend: &mut Backend, code: TypeCode, envelope: &[u8]| {
        slot += 10;
        put(backend, Fid::new(arena, slot), code, envelope);
        (state(backend.fence()), Fid::new(arena, slot))
    };
    let one = batch(&backend, Int4, 3, &[b"1", b"x", b"3"]);
    let (told, first) = refused(&mut backend, Int4, &one);
    assert_eq!(told, "22P02");
    assert_eq!(backend.get(first, Int4).unwrap().as_deref(), Some("1"));
    assert!(backend.get(Fid(first.0 + 1), Int4).is_err());
    let third = backend.get(Fid(first.0 + 2), Int4).unwrap();
    assert_eq!(third.as_deref(), Some("3"));
    for count in [1, 3, 60_000] {
        let wrong = batch(&backend, Int4, count, &[b"1", b"2"]);
        let (told, first) = refused(&mut backend, Int4, &wrong);
        assert_eq!(told, "22P03", "{count}");
        assert!(backend.get(first, Int4).is_err());
    }
    let other = batch(&backend, Text, 1, &[b"1"]);
    assert_eq!(refused(&mut backend, Int4, &other).0, "42804");
    let mut altered = batch(&backend, Int4, 2, &[b"1", b"2"]);
    altered[4] = 1;
    assert_eq!(refused(&mut backend, Int4, &altered).0, "28000");
    for count in [0, 65_537] {
        let wrong = batch(&backend, Int4, count, &[b"1"]);
        put(&mut backend, Fid::new(arena, 900), Int4, &wrong);
        assert!(backend.fence().is_err(), "{count}");
    }
    // One value is no batch, and a batch is not one value.
    let good = batch(&backend, Int4, 1, &[b"1"]);
    let typmod = (-1_i32).to_le_bytes();
    let fid = Fid::new(arena, 950).0.to_le_bytes();
    let head = [&fid[..], &typmod, &[Int4 as u8, 0, 0, 0]].concat();
    backend.send(Kind::PutEnvelope, &[&head[..], &good].concat());
    assert_eq!(state(backend.fence()), "22P03");
}

/// All or nothing, and every number in the message is checked.
#[test]
fn wrong_runs() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let (a, wide) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int8(2)));
    assert_eq!(
        state(promote(&mut backend, &[(p, vec![(a.0, 1), (wide.0, 1)])])),
        "42804"
    );
    assert_eq!(
        state(promote(
            &mut backend,
            &[(p, vec![(a.0, 1)]), (999, vec![(a.0, 1)])]
        )),
        "XX001"
    );
    assert!(backend.get(Fid::new(p, 0), Int4).is_err());
    let arena = backend.end.welcome().arena;
    assert_eq!(
        state(promote(&mut backend, &[(arena, vec![(a.0, 1)])])),
        "08P01"
    );
    assert!(promote(&mut backend, &[(p, vec![(a.0, 1 << 20)])]).is_err());
    for (values, runs) in [
        (2, vec![(a.0, 1)]),
        (0, vec![(a.0, 1)]),
        (1, vec![(a.0, 0)]),
        (
            PROMOTE_RUNS_MAX as u32 + 1,
            vec![(a.0, PROMOTE_RUNS_MAX as u32 + 1)],
        ),
        (1, vec![(a.0, u32::MAX), (a.0, 2)]),
    ] {
        let body = body(values, &[(p, runs)]);
        assert_eq!(state(backend.call(Kind::PromoteRuns, &body)), "08P01");
    }
    let body = body(1, &[(p, vec![(a.0, 1)])]);
    for end in 8..body.len() {
        assert_eq!(
            state(backend.call(Kind::PromoteRuns, &body[..end])),
            "08P01"
        );
    }
    // NULL is not for this message.
    let answer = promote(&mut backend, &[(p, vec![(0, 1)])]);
    assert!(answer.is_err() || answer.is_ok_and(|a| a[0] == 0));
    let answer = promote(&mut backend, &[(p, vec![(a.0, 1)])]).unwrap();
    assert_eq!(answer[0], 1);
    assert_eq!(
        backend.get(Fid::new(p, 0), Int4).unwrap().as_deref(),
        Some("1")
    );
}

/// Runs that begin with a value and end where there is none: beyond what is there, the last
/// slot, or in slots that were released. Bug: another partition's value, or an old one.
#[test]
fn runs_of_nothing() {
    let running = Running::start();
    let mut backend = running.session();
    let (p, q) = (backend.open(1, Int4, -1), backend.open(2, Int4, -1));
    let arena = backend.end.welcome().arena;
    let a = backend.put(&Value::Int4(1));
    let first = backend.promote(&[(a, p)]).unwrap()[0];
    let refused = |backend: &mut Backend, first: Fid, count: u32| {
        let refused = state(promote(backend, &[(q, vec![(first.0, count)])]));
        assert!(backend.get(Fid::new(q, 0), Int4).is_err());
        refused
    };
    assert_eq!(refused(&mut backend, a, 2), "XX000");
    assert_eq!(refused(&mut backend, first, 2), "XX001");
    for (partition, told) in [(p, "XX001"), (arena, "XX000"), (arena + 1, "XX000")] {
        let last = Fid::new(partition, SLOT_MAX);
        assert_eq!(refused(&mut backend, last, 2), told, "{partition}");
    }
    let others = running.session().end.welcome().arena;
    assert_eq!(refused(&mut backend, Fid::new(others, 0), 1), "42501");
    let b = backend.put(&Value::Int4(2));
    backend.release(b);
    assert_eq!(refused(&mut backend, a, 2), "55000");
    assert!(promote(&mut backend, &[(q, vec![(b.0, 1), (first.0, 1)])]).is_ok());
}

/// Batches that do not fit where they should go. Bug: values in a column without a redo
/// record, in another session, or in slots that are gone.
#[test]
fn batches_in_wrong_places() {
    let running = Running::start();
    let (mut backend, mut other) = (running.session(), running.session());
    let p = backend.open(1, Int4, -1);
    let arena = backend.end.welcome().arena;
    let others = other.end.welcome().arena;
    backend.release(Fid::new(arena, 5));
    for fid in [
        Fid::new(p, 7),
        Fid::new(others, 7),
        Fid::new(arena, 4),
        Fid::new(arena, SLOT_MAX),
        Fid(u64::MAX),
        Fid::INVALID,
    ] {
        let values = batch(&backend, Int4, 2, &[b"1", b"2"]);
        put(&mut backend, fid, Int4, &values);
        assert!(backend.fence().is_err(), "{fid:?}");
        assert!(backend.get(fid, Int4).is_err() || fid == Fid::INVALID);
    }
    assert!(backend.get(Fid::new(arena, 5), Int4).is_err());
    assert!(other.get(Fid::new(others, 7), Int4).is_err());
    let values = batch(&backend, Int4, 2, &[b"1", b"2"]);
    put(&mut backend, Fid::new(arena, 5), Int4, &values);
    let found = backend.get(Fid::new(arena, 6), Int4).unwrap();
    assert_eq!(found.as_deref(), Some("2"));
}
