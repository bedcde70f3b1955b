//! Parts that workers have aggregated, merged.

use super::*;

fn number_of(backend: &mut Backend, handle: u32) -> Result<u64, (String, String)> {
    let answer = backend.call(Kind::AggregateHandOver, &u64::from(handle).to_le_bytes())?;
    Ok(u64::from_le_bytes(answer.try_into().unwrap()))
}

/// Aggregates a part and hands it over.
pub(super) fn hand_over(
    backend: &mut Backend,
    r: &Registration,
    columns: &[Sent],
    part: std::ops::Range<usize>,
) -> u64 {
    let handle = register(backend, r).unwrap();
    send(backend, handle, columns, part);
    number_of(backend, handle).unwrap()
}

pub(super) fn merge(backend: &mut Backend, handle: u32, number: u64) {
    let body = [u64::from(handle).to_le_bytes(), number.to_le_bytes()].concat();
    backend.send(Kind::AggregateMerge, &body);
}

/// More groups than workers and leader have room for: what a worker has no room for goes to the
/// leader as rows, and in passes every group is found once, with all that workers and rows know
/// of it; then nothing is left of it. With the bug a group comes twice, in parts.
#[test]
fn merged_in_passes() {
    let running = Running::start();
    let mut leader = running.session();
    let values: Vec<String> = (0..6000).map(|n| (n * 7 % 1500).to_string()).collect();
    let values: Vec<_> = values.iter().map(|v| Some(v.as_str())).collect();
    let columns = vec![
        Sent::Fids(column(&mut leader, 1, Int4, -1, &values)),
        Sent::Raw((0..6000).map(|n| (n % 9 != 0).then_some(n)).collect()),
    ];
    let mut r = Registration {
        columns: vec![Int4 as u8, 0],
        limit: 120_000,
        share: 2,
        ..Registration::default()
    };
    r.keys = vec![r.plain(0)];
    let raw = r.plain(1);
    let sum = leader.aggregate_number(Aggregate::Sum, Int4);
    r.aggregates = vec![(sum, 0, NONE, 0), (0, raw, NONE, 0)];
    leader.end_statement();
    let handle = register(&mut leader, &r).unwrap();
    let used = leader.stats().get("session.memory_bytes").copied();
    let mut left: Vec<(Vec<Sent>, usize)> = Vec::new();
    let mut workers = Vec::new();
    for part in 0..2 {
        let mut worker = leader.worker(&running);
        let own = register(&mut worker, &r).unwrap();
        for from in (part * 3000..part * 3000 + 3000).step_by(1000) {
            send(&mut worker, own, &columns, from..from + 1000);
        }
        assert_eq!(state(number_of(&mut worker, own)), "42804");
        left.push(take_back(&mut worker, own));
        let number = number_of(&mut worker, own).unwrap();
        assert_eq!(state(number_of(&mut worker, own)), "42883");
        merge(&mut leader, handle, number);
        workers.push(worker);
    }
    assert!(left.iter().any(|(_, rows)| *rows > 0));
    // What a worker has handed over outlives it.
    leader.fence().unwrap();
    drop(workers);
    let mut found: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    let mut passes = 0;
    loop {
        passes += 1;
        for (columns, rows) in &left {
            for from in (0..*rows).step_by(1000) {
                send(&mut leader, handle, columns, from..(*rows).min(from + 1000));
            }
        }
        let (mut returned, mut unmerged) = (false, false);
        loop {
            let some = fetch(&mut leader, handle, 300, &[false; 3]).unwrap();
            for group in 0..some.columns[0].len() {
                let key = text(&mut leader, some.columns[0][group].unwrap(), Int4).unwrap();
                let sum = text(&mut leader, some.columns[1][group].unwrap(), Int8).unwrap();
                let count = some.columns[2][group].unwrap();
                assert!(found.insert(key.parse().unwrap(), (sum, count)).is_none());
            }
            returned |= some.returned;
            unmerged |= some.unmerged;
            if !some.more {
                break;
            }
        }
        if !returned && !unmerged {
            break;
        }
        left = match returned {
            true => vec![take_back(&mut leader, handle)],
            false => Vec::new(),
        };
        leader.send(
            Kind::AggregateReset,
            &(u64::from(handle) | 1 << 32).to_le_bytes(),
        );
    }
    assert!(passes > 2 && passes < 40, "{passes}");
    assert_eq!(found.len(), 1500);
    for (key, (sum, count)) in found {
        assert_eq!(sum, (key * 4).to_string());
        let rows = (0..6000u64).filter(|n| n * 7 % 1500 == key);
        assert_eq!(count, rows.filter(|n| n % 9 != 0).count() as u64, "{key}");
    }
    leader.send(Kind::AggregateForget, &u64::from(handle).to_le_bytes());
    leader.end_statement();
    assert!(leader.stats().get("session.memory_bytes").copied() <= used);
}

/// Numbers of another session, of nothing, of a statement that has ended, used twice, or of an
/// aggregation of another kind: each is an error at the latest when groups are asked for, and
/// again when they are asked for again; the keeper keeps nothing of them. With a bug one session
/// gets groups of another, or a result lacks a worker's rows.
#[test]
fn not_to_be_merged() {
    let running = Running::start();
    let (mut leader, mut other) = (running.session(), running.session());
    let number = Registration {
        columns: vec![Int4 as u8],
        expressions: vec![(0, vec![0])],
        aggregates: vec![(0, 0, NONE, 0)],
        ..Registration::default()
    };
    let mut once = Registration {
        columns: vec![Int4 as u8],
        expressions: vec![(0, vec![0])],
        aggregates: vec![(0, 0, NONE, DISTINCT)],
        ..Registration::default()
    };
    let fids =
        |backend: &mut Backend| [Sent::Fids(column(backend, 0, Int4, -1, &[Some("1"), None]))];
    let (own, foreign) = (fids(&mut leader), fids(&mut other));
    let used = leader.stats().get("session.memory_bytes").copied();
    let theirs = hand_over(&mut other, &number, &foreign, 0..2);
    let mine = hand_over(&mut leader, &number, &own, 0..2);
    let late = hand_over(&mut leader, &number, &own, 0..2);
    let distinct = hand_over(&mut leader, &once, &own, 0..2);
    let refused = |leader: &mut Backend, r: &Registration, numbers: &[u64], sqlstate: &str| {
        let handle = register(leader, r).unwrap();
        numbers.iter().for_each(|n| merge(leader, handle, *n));
        for _ in 0..2 {
            let told = fetch(leader, handle, 8, &[false]).map(|_| ());
            assert_eq!(state(told), sqlstate, "{numbers:?}");
        }
        leader.send(Kind::AggregateForget, &u64::from(handle).to_le_bytes());
    };
    refused(&mut leader, &number, &[theirs], "42883");
    refused(&mut leader, &number, &[0], "42883");
    refused(&mut leader, &number, &[mine, mine], "42883");
    refused(&mut leader, &once, &[distinct], "42804");
    once.columns[0] = Int8 as u8;
    let mut worker = leader.worker(&running);
    leader.end_statement();
    leader.fence().unwrap();
    refused(&mut leader, &number, &[late], "42883");
    // A worker that is slower than its leader.
    let handle = register(&mut worker, &number).unwrap();
    assert_eq!(state(number_of(&mut worker, handle)), "42804");
    // The other session has its own still.
    let handle = register(&mut other, &number).unwrap();
    merge(&mut other, handle, theirs);
    let found = fetch(&mut other, handle, 8, &[false]).unwrap();
    assert_eq!(found.columns, [vec![Some(1)]]);
    leader.slot();
    leader.end_statement();
    drop(worker);
    let arena = leader.stats().get("session.memory_bytes").copied();
    assert!(arena <= used, "{arena:?} {used:?}");
}
