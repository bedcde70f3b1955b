//! Columns: promotion, and what becomes of partitions.

use crate::common::{Backend, DATABASE, Running, state};
use ::values::Value;
use TypeCode::{Int4, Int8, Text, Varchar};
use contract::codec::Part;
use contract::message::search::{
    ABOVE, BELOW, BESIDE, DESCENDING, MOVED, NO_PAGE, PAGES_MAX, UNKNOWN,
};
use contract::{Fid, Kind, Op, TypeCode, answer};

/// A column's partition is found again; another type is another one, another
/// length is not.
#[test]
fn partitions() {
    let running = Running::start();
    let mut backend = running.session();
    let a = backend.open(1, Varchar, 24);
    assert_eq!(backend.open(1, Varchar, 44), a);
    assert_eq!(backend.open(1, Text, -1), a);
    assert_ne!(backend.open(1, Int4, -1), a);
    assert_ne!(backend.open(2, Text, -1), a);
    let mut other = running.session();
    assert_eq!(other.open(1, Text, -1), a);
}

/// A FID of the column stays what it is, NULL stays NULL, the others get slots in
/// order; one of another type fails, and leaves nothing behind.
#[test]
fn promotion() {
    let running = Running::start();
    let mut backend = running.session();
    let (p, q) = (backend.open(1, Int4, -1), backend.open(2, Int4, -1));
    let (a, b) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int4(2)));
    let wide = backend.put(&Value::Int8(3));
    let first = backend
        .promote(&[(a, p), (Fid::INVALID, p), (b, p)])
        .unwrap();
    assert_eq!(first, [Fid::new(p, 0), Fid::INVALID, Fid::new(p, 1)]);
    let again = backend.promote(&[(first[0], p), (first[2], q)]).unwrap();
    assert_eq!(again, [first[0], Fid::new(q, 0)]);
    assert_eq!(backend.get(again[1], Int4).unwrap().as_deref(), Some("2"));
    assert_eq!(state(backend.promote(&[(a, p), (wide, p)])), "42804");
    // The slot of the failed batch is used again.
    assert_eq!(backend.promote(&[(b, p)]).unwrap(), [Fid::new(p, 2)]);
    assert_eq!(state(backend.promote(&[(a, 999)])), "XX001");
    assert_eq!(state(backend.promote(&[(a, 0)])), "XX001");
    let arena = backend.end.welcome().arena;
    assert_eq!(state(backend.promote(&[(a, arena)])), "08P01");
    assert_eq!(
        state(backend.call(Kind::Promote, &[9, 0, 0, 0, 0, 0, 0, 0])),
        "08P01"
    );
}

/// Values outlive their session, and end with their table.
#[test]
fn life() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int8, -1);
    let a = backend.put(&Value::Int8(77));
    let fid = backend.promote(&[(a, p)]).unwrap()[0];
    drop(backend);
    let mut backend = running.session();
    assert_eq!(backend.get(fid, Int8).unwrap().as_deref(), Some("77"));
    let used = backend.stats()["memory_bytes"];
    let drop_of = |relation: u32| [DATABASE.to_le_bytes(), relation.to_le_bytes()].concat();
    backend.send(Kind::PartitionDrop, &drop_of(2));
    assert!(backend.get(fid, Int8).is_ok());
    backend.send(Kind::PartitionDrop, &drop_of(1));
    assert_eq!(state(backend.get(fid, Int8)), "XX001");
    assert!(backend.stats()["memory_bytes"] < used);
    assert_ne!(backend.open(1, Int8, -1), p);
    backend.send(Kind::PartitionDrop, &drop_of(0));
    assert_eq!(state(backend.fence()), "08P01");
}

/// The limit on all memory is an error of the statement.
#[test]
fn memory_limit() {
    let running = Running::with(|config| config.memory_limit = keeper::Bytes(1 << 20));
    let mut backend = running.session();
    let p = backend.open(1, Text, -1);
    let a = backend.put(&Value::Text(vec![b'x'; 300_000].into()));
    assert!(backend.promote(&[(a, p), (a, p)]).is_ok());
    let used = backend.stats()["memory_bytes"];
    assert_eq!(state(backend.promote(&[(a, p), (a, p)])), "53200");
    assert_eq!(backend.stats()["memory_bytes"], used);
}

/// Where a value belongs among keys of a page; if one of them was swept meanwhile this is
/// not known, and no error: the backend looks at the page itself.
#[test]
fn search() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let items: Vec<_> = [10, 20, 30]
        .map(|v| (backend.put(&Value::Int4(v)), p))
        .to_vec();
    let mut keys = backend.promote(&items).unwrap();
    let wanted = backend.put(&Value::Int4(20));
    let stale = backend.put(&Value::Text(Box::from(*b"of another type")));
    let program = backend.number(Op::Cmp, &[Int4, Int4], None);
    let ask = |backend: &mut Backend, wanted: &[(u32, Fid)], keys: &[Fid]| {
        let columns = wanted.iter().filter(|(flags, _)| flags & BESIDE == 0);
        let count = (keys.len() / columns.count().max(1)) as u32;
        let mut body = (wanted.len() as u32).to_le_bytes().to_vec();
        body.extend_from_slice(&count.to_le_bytes());
        for (flags, fid) in wanted {
            body.extend_from_slice(&program.to_le_bytes());
            body.extend_from_slice(&flags.to_le_bytes());
            body.extend_from_slice(&fid.0.to_le_bytes());
        }
        body.extend(keys.iter().flat_map(|fid| fid.0.to_le_bytes()));
        let answer = backend
            .call(Kind::Search, &body)
            .map_err(|e| state(Err::<(), _>(e)))?;
        let (halves, _) = answer.as_chunks::<4>();
        Ok::<Vec<u32>, String>(halves.iter().map(|h| u32::from_le_bytes(*h)).collect())
    };
    assert_eq!(ask(&mut backend, &[(0, wanted)], &keys).unwrap(), [1, 2]);
    assert!(ask(&mut backend, &[(0, stale)], &keys).is_err());
    // The second column is looked at where the first is equal; there it descends.
    let [ten, twenty, thirty] = [keys[0], keys[1], keys[2]];
    let (first, second) = (
        [Fid(BELOW), twenty, twenty, twenty, twenty, thirty],
        [thirty, thirty, twenty, ten, Fid(ABOVE), thirty],
    );
    let pairs = [first, second].concat();
    let both = [(0, wanted), (DESCENDING, wanted)];
    assert_eq!(ask(&mut backend, &both, &pairs).unwrap(), [1, 5, 2, 3]);
    let high = backend.put(&Value::Int4(25));
    let bounds = [(0, wanted), (BESIDE, high)];
    assert_eq!(ask(&mut backend, &bounds, &keys).unwrap(), [1, 2, 2, 2]);
    let absent = [(0, high), (0, wanted)];
    assert_eq!(ask(&mut backend, &absent, &pairs).unwrap(), [5; 4]);
    assert!(ask(&mut backend, &[(0, wanted); 33], &[]).is_err());
    assert!(ask(&mut backend, &both, &keys[..1]).is_err());
    keys[1] = Fid::new(p, 99);
    assert_eq!(
        ask(&mut backend, &[(0, wanted)], &keys).unwrap(),
        [UNKNOWN; 2]
    );
}

/// Flags and sought values, rows, keys.
type Sought<'a> = (&'a [(u32, Fid)], u32, &'a [Fid]);

/// Several searches in one message: each has its own values and keys, and a key that names nothing
/// makes only its own search unknown.
#[test]
fn search_many() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let items: Vec<_> = [10, 20, 30]
        .map(|v| (backend.put(&Value::Int4(v)), p))
        .to_vec();
    let keys = backend.promote(&items).unwrap();
    let wanted = backend.put(&Value::Int4(20));
    let high = backend.put(&Value::Int4(40));
    let program = backend.number(Op::Cmp, &[Int4, Int4], None);
    let swept = Fid::new(p, 99);
    let ask = |backend: &mut Backend, searches: &[Sought<'_>], extra: &[Fid]| {
        let values: usize = searches.iter().map(|(sought, ..)| sought.len()).sum();
        let mut body = (searches.len() as u32).to_le_bytes().to_vec();
        body.extend_from_slice(&(values as u32).to_le_bytes());
        for (sought, rows, _) in searches {
            body.extend_from_slice(&(sought.len() as u32).to_le_bytes());
            body.extend_from_slice(&rows.to_le_bytes());
        }
        for (flags, fid) in searches.iter().flat_map(|(sought, ..)| *sought) {
            body.extend_from_slice(&program.to_le_bytes());
            body.extend_from_slice(&flags.to_le_bytes());
            body.extend_from_slice(&fid.0.to_le_bytes());
        }
        let all = searches.iter().flat_map(|(_, _, keys)| *keys).chain(extra);
        body.extend(all.flat_map(|fid| fid.0.to_le_bytes()));
        let answer = backend
            .call(Kind::SearchMany, &body)
            .map_err(|e| state(Err::<(), _>(e)))?;
        let (halves, _) = answer.as_chunks::<4>();
        Ok::<Vec<u32>, String>(halves.iter().map(|h| u32::from_le_bytes(*h)).collect())
    };
    let one: &[(u32, Fid)] = &[(0, wanted)];
    let two: &[(u32, Fid)] = &[(0, wanted), (BESIDE, high)];
    let both: &[(u32, Fid)] = &[(0, wanted), (0, high)];
    let (few, stale) = ([keys[1]], [keys[0], swept, keys[2]]);
    let pairs = [keys[1], keys[1], keys[0], keys[2]];
    let found = ask(
        &mut backend,
        &[
            (two, 3, &keys),
            (one, 3, &stale),
            (one, 1, &few),
            (both, 2, &pairs),
            (one, 0, &[]),
        ],
        &[],
    );
    let unknown = [UNKNOWN; 2];
    let expected = [&[1, 2, 3, 3], &unknown[..], &[0, 1], &[0, 2, 2, 2], &[0, 0]].concat();
    assert_eq!(found.unwrap(), expected);
    assert!(ask(&mut backend, &[], &[]).unwrap().is_empty());
    // Keys that belong to no search, too few of them, and too many values.
    assert_eq!(
        ask(&mut backend, &[(one, 3, &keys)], &[swept]),
        Err("08P01".into())
    );
    assert_eq!(
        ask(&mut backend, &[(one, 4, &keys)], &[]),
        Err("08P01".into())
    );
    assert_eq!(
        ask(&mut backend, &[(&[(0, wanted); 33], 0, &[])], &[]),
        Err("08P01".into())
    );
}

/// A page of a descent: its number, the one above and which child of it, columns and keys; no columns: as it was sent.
type Page<'a> = (u32, (u32, u32), u32, &'a [Fid]);

/// How often all pages were forgotten, and pages with the places of the value.
type Found = Result<(u32, Vec<(u32, u32, u32)>), String>;

/// Asks about a page.
fn descend(
    backend: &mut Backend,
    program: u32,
    sought: &[(u32, Fid)],
    (page, (above, child), columns, keys): Page<'_>,
) -> Found {
    let rows = keys.len() as u32 / columns.max(1);
    let mut body = Vec::new();
    for word in [sought.len() as u32, page, columns, rows, above, child] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    for (flags, fid) in sought {
        body.extend_from_slice(&program.to_le_bytes());
        body.extend_from_slice(&flags.to_le_bytes());
        body.extend_from_slice(&fid.0.to_le_bytes());
    }
    body.extend(keys.iter().flat_map(|fid| fid.0.to_le_bytes()));
    let answer = backend
        .call(Kind::Descend, &body)
        .map_err(|e| state(Err::<(), _>(e)))?;
    let read = answer::Descend::decode(&answer).unwrap();
    let places = read.places.iter().map(|place| (place.less, place.up_to));
    let found = read.pages.iter().zip(places);
    Ok((read.forgotten, found.map(|(p, (l, u))| (p, l, u)).collect()))
}

/// Pages that were sent are searched by their numbers, and from one down to the next; what was sent anew, swept, or is
/// of another shape is not taken for what was there before.
#[test]
fn descents() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let items: Vec<_> = [10, 20, 30, 40]
        .map(|v| (backend.put(&Value::Int4(v)), p))
        .to_vec();
    let keys = backend.promote(&items).unwrap();
    let program = backend.number(Op::Cmp, &[Int4, Int4], None);
    let sought = [15, 35, 20].map(|v| (0, backend.put(&Value::Int4(v))));
    let [low, high, equal] = sought.map(|value| [value]);
    let top = (NO_PAGE, 0);
    let mut ask = |sought: &[(u32, Fid)], page| descend(&mut backend, program, sought, page);
    // Nobody has sent it.
    assert_eq!(ask(&low, (7, top, 0, &[])), Ok((0, vec![])));
    assert_eq!(
        ask(&low, (7, top, 1, &keys[1..2])),
        Ok((0, vec![(7, 0, 0)]))
    );
    let left = Ok((0, vec![(8, 1, 1)]));
    assert_eq!(ask(&low, (8, (7, 0), 1, &keys[..2])), left);
    let both = Ok((0, vec![(7, 0, 0), (8, 1, 1)]));
    assert_eq!(ask(&low, (7, top, 0, &[])), both);
    // The other child is not known yet, and of what equals a bound nobody knows in which it is.
    assert_eq!(ask(&high, (7, top, 0, &[])), Ok((0, vec![(7, 1, 1)])));
    assert_eq!(ask(&equal, (7, top, 0, &[])), Ok((0, vec![(7, 0, 1)])));
    assert_eq!(
        ask(&high, (9, (7, 1), 1, &keys[1..])),
        Ok((0, vec![(9, 2, 2)]))
    );
    assert_eq!(
        ask(&high, (7, top, 0, &[])),
        Ok((0, vec![(7, 1, 1), (9, 2, 2)]))
    );
    // Another page under a child's number is not that child.
    assert_eq!(ask(&low, (8, top, 1, &keys[..3])), Ok((0, vec![(8, 1, 1)])));
    assert_eq!(ask(&low, (7, top, 0, &[])), Ok((0, vec![(7, 0, 0)])));
    // It is again once somebody says so; sent anew, the page above has no children.
    assert_eq!(ask(&low, (8, (7, 0), 0, &[])), Ok((0, vec![(8, 1, 1)])));
    assert_eq!(ask(&low, (7, top, 0, &[])), both);
    assert_eq!(
        ask(&low, (7, top, 1, &keys[1..2])),
        Ok((0, vec![(7, 0, 0)]))
    );
    // Fewer columns than are sought; keys that were swept, of a page asked about and of one below.
    let pair = [low[0], high[0]];
    assert_eq!(ask(&pair, (7, top, 0, &[])), Ok((0, vec![])));
    let swept = [Fid::new(p, 99)];
    let unknown = Ok((0, vec![(8, UNKNOWN, UNKNOWN)]));
    assert_eq!(ask(&low, (8, (7, 0), 1, &swept)), unknown);
    assert_eq!(ask(&low, (7, top, 0, &[])), Ok((0, vec![(7, 0, 0)])));
    // What is no page, or no search.
    for page in [
        (PAGES_MAX, top, 1, &keys[..1]),
        (1, top, 33, &keys[..1]),
        (1, top, 3, &keys[..2]),
    ] {
        assert_eq!(ask(&low, page), Err("08P01".into()));
    }
    let beside = [low[0], (BESIDE, high[0].1)];
    for sought in [&[] as &[(u32, Fid)], &[low[0]; 33], &beside] {
        assert_eq!(ask(sought, (7, top, 0, &[])), Err("08P01".into()));
    }
    // A circle of pages comes to an end.
    assert_eq!(
        ask(&low, (7, (7, 0), 0, &[])).map(|(_, found)| found.len()),
        Ok(8)
    );
}

/// A channel's pages are bounded: then all are forgotten, and it says so.
#[test]
fn descents_forgotten() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let value = backend.put(&Value::Int4(10));
    let keys = vec![backend.promote(&[(value, p)]).unwrap()[0]; 4096 * 32];
    let program = backend.number(Op::Cmp, &[Int4, Int4], None);
    let sought = [(0, value)];
    let top = (NO_PAGE, 0);
    let mut ask = |page| descend(&mut backend, program, &sought, page);
    for number in 0..4 {
        assert_eq!(
            ask((number, top, 32, &keys)),
            Ok((0, vec![(number, 0, 4096)]))
        );
    }
    assert_eq!(ask((1, top, 0, &[])), Ok((0, vec![(1, 0, 4096)])));
    // One that takes another's place needs no room.
    assert_eq!(ask((2, top, 32, &keys)), Ok((0, vec![(2, 0, 4096)])));
    assert_eq!(ask((5, top, 1, &keys[..1])), Ok((1, vec![(5, 0, 1)])));
    assert_eq!(ask((1, top, 0, &[])), Ok((1, vec![])));
    assert_eq!(ask((5, top, 0, &[])), Ok((1, vec![(5, 0, 1)])));
}

/// A row is promoted, and its new FIDs are placed; what cannot be placed is promoted all the same.
#[test]
fn promote_search() {
    let running = Running::start();
    let mut backend = running.session();
    let p = backend.open(1, Int4, -1);
    let items: Vec<_> = [10, 20, 30]
        .map(|v| (backend.put(&Value::Int4(v)), p))
        .to_vec();
    let keys = backend.promote(&items).unwrap();
    let program = backend.number(Op::Cmp, &[Int4, Int4], None);
    let ask = |backend: &mut Backend, value: i32, sought: &[(u32, u64)], keys: &[Fid]| {
        let source = backend.put(&Value::Int4(value));
        let mut body = Vec::new();
        for word in [1, 1, sought.len() as u32, 0] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(&source.0.to_le_bytes());
        body.extend_from_slice(&u64::from(p).to_le_bytes());
        body.extend_from_slice(&(sought.len() as u32).to_le_bytes());
        let rows = keys.len() / sought.len().max(1);
        body.extend_from_slice(&(rows as u32).to_le_bytes());
        for (flags, fid) in sought {
            body.extend_from_slice(&program.to_le_bytes());
            body.extend_from_slice(&flags.to_le_bytes());
            body.extend_from_slice(&fid.to_le_bytes());
        }
        body.extend(keys.iter().flat_map(|fid| fid.0.to_le_bytes()));
        let answer = backend.call(Kind::PromoteSearch, &body).unwrap();
        let told = answer::PromoteSearch::decode(&answer).unwrap();
        let fid = told.fids.iter().next().unwrap();
        assert_eq!((told.count, fid.partition()), (1, p));
        let places = told
            .places
            .iter()
            .flat_map(|place| [place.less, place.up_to]);
        let places: Vec<u32> = places.collect();
        (fid, places)
    };
    let (twenty, places) = ask(&mut backend, 20, &[(MOVED, 0)], &keys);
    assert_eq!(places, [1, 2]);
    assert!(!keys.contains(&twenty));
    // Beside one that is there already.
    let pairs = [keys.clone(), keys.clone()].concat();
    let both = [(0, keys[2].0), (MOVED, 0)];
    assert_eq!(ask(&mut backend, 20, &both, &pairs).1, [2, 3, 2, 2]);
    // A value that the message does not promote, keys that are gone or too many.
    assert!(ask(&mut backend, 5, &[(MOVED, 1)], &keys).1.is_empty());
    assert!(
        ask(&mut backend, 5, &[(MOVED, u64::MAX)], &keys)
            .1
            .is_empty()
    );
    assert_eq!(
        ask(&mut backend, 20, &[(MOVED, 0)], &[Fid::new(p, 999)]).1,
        [UNKNOWN; 2]
    );
    let text = backend.put(&Value::Text(Box::from(*b"of another type")));
    assert!(ask(&mut backend, 5, &[(0, text.0)], &keys).1.is_empty());
}
