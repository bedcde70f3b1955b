//! Requests that do not fit together.

use super::*;

/// What does not fit together is refused, and nothing panics.
#[test]
fn hostile() {
    let running = Running::start();
    let mut backend = running.session();
    let sum = backend.aggregate_number(Aggregate::Sum, Int4);
    let good = || Registration {
        columns: vec![Int4 as u8, 0],
        expressions: vec![(0, vec![0]), (0, vec![1])],
        keys: vec![1],
        aggregates: vec![(sum, 0, NONE, 0)],
        ..Registration::default()
    };
    let bytes = good().bytes();
    // Less than the fixed part ends the channel.
    for length in 24..bytes.len() {
        let cut = backend.call(Kind::AggregateRegister, &bytes[..length]);
        assert_eq!(state(cut), "08P01", "{length}");
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 2, 255] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let _ = backend.call(Kind::AggregateRegister, &changed);
        }
    }
    type Change = fn(&mut Registration);
    let cases: [(Change, &str); 8] = [
        (|r| r.columns[0] = 99, "08P01"),
        (|r| r.keys[0] = 9, "42804"),
        (|r| r.filter = Some(0), "42804"),
        (|r| r.aggregates[0].1 = 1, "42804"),
        (|r| r.aggregates[0].1 = NONE, "42804"),
        (|r| r.aggregates[0].0 = 999, "42883"),
        (|r| r.expressions[0].0 = 70_000, "42883"),
        (|r| r.expressions[0].1 = vec![0, 1], "42804"),
    ];
    for (change, wanted) in cases {
        let mut r = good();
        change(&mut r);
        assert_eq!(state(register(&mut backend, &r)), wanted);
    }
    let handle = register(&mut backend, &good()).unwrap();
    backend.send(
        Kind::AggregateRows,
        &[&handle.to_le_bytes()[..], &[9, 0, 0, 0]].concat(),
    );
    assert_eq!(state(backend.fence()), "08P01");
    let columns = [
        Sent::Fids(vec![Fid::new(5, 5); 3]),
        Sent::Raw(vec![Some(1); 3]),
    ];
    send(&mut backend, handle, &columns, 0..3);
    assert_eq!(state(backend.fence()), "XX001");
    let mut outside = handle.to_le_bytes().to_vec();
    outside.extend_from_slice(&8u32.to_le_bytes());
    outside.extend_from_slice(&Fid::new(5, 5).0.to_le_bytes());
    assert_eq!(state(backend.call(Kind::AggregateFetch, &outside)), "42501");
    send(&mut backend, 4711, &columns, 0..0);
    assert_eq!(state(backend.fence()), "42883");
    let mut stranger = running.backend();
    assert_eq!(state(register(&mut stranger, &good())), "42501");
    assert_eq!(backend.stats()["panics_total"], 0);
}
