//! Results that are stored without being told.

use super::{NONE, Registration, Sent, column, register, send};
use crate::common::{Backend, Builder, Running, state};
use contract::message::program::{CALL, CONSTANT, INPUT};
use contract::{Aggregate, Fid, Kind, Op, TypeCode::Int4, TypeCode::Int8};
use values::Value;

fn store(backend: &mut Backend, handle: u32, first: Fid) {
    let mut body = u64::from(handle).to_le_bytes().to_vec();
    body.extend_from_slice(&first.0.to_le_bytes());
    backend.send(Kind::AggregateStore, &body);
}

/// `sum(8 / a), sum(a)` over no rows, over some, and over one that fails: NULL, values, and an error
/// that stays with the slots; none is declassified. Groups by keys are refused, and so are slots of
/// another channel. With a bug NULL is a value, an error is lost, or the number of rows is told.
#[test]
fn untold() {
    let running = Running::start();
    let mut backend = running.session();
    let div = backend.number(Op::Div, &[Int4, Int4], Some(Int4)) as u16;
    let eight = backend.put(&Value::Int4(8));
    let quotient = Builder {
        inputs: vec![Int4],
        constants: vec![eight],
        code: vec![(CONSTANT, 0, 0), (INPUT, 0, 0), (CALL, div, 0)],
        ..Builder::default()
    };
    let quotient = backend.register(&quotient).unwrap();
    let sum = backend.aggregate_number(Aggregate::Sum, Int4);
    let mut r = Registration {
        columns: vec![Int4 as u8],
        expressions: vec![(quotient, vec![0]), (0, vec![0])],
        aggregates: vec![(sum, 0, NONE, 0), (sum, 1, NONE, 0)],
        ..Registration::default()
    };
    let values = [Some("2"), Some("4"), Some("0")];
    let columns = [Sent::Fids(column(&mut backend, 0, Int4, -1, &values))];
    let handle = register(&mut backend, &r).unwrap();
    let told = backend.stats()["session.declassified_rows_total"];
    for (rows, results) in [(0..0, [None, None]), (0..2, [Some("6"), Some("6")])] {
        backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
        send(&mut backend, handle, &columns, rows);
        let first = backend.slots(2);
        store(&mut backend, handle, first);
        for (n, result) in results.into_iter().enumerate() {
            let found = backend.get(Fid(first.0 + n as u64), Int8).unwrap();
            assert_eq!(found.as_deref(), result);
        }
    }
    assert_eq!(backend.stats()["session.declassified_rows_total"], told);
    backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
    send(&mut backend, handle, &columns, 0..3);
    let first = backend.slots(2);
    store(&mut backend, handle, first);
    for _ in 0..3 {
        assert_eq!(state(backend.get(first, Int8).map(|_| ())), "22012");
    }
    backend.send(Kind::AggregateReset, &u64::from(handle).to_le_bytes());
    let foreign = running.session().slots(2);
    store(&mut backend, handle, foreign);
    assert_eq!(backend.fence().map_err(|e| e.0), Err("42501".into()));
    r.keys = vec![1];
    let grouped = register(&mut backend, &r).unwrap();
    let first = backend.slots(2);
    store(&mut backend, grouped, first);
    assert!(backend.get(first, Int8).is_err());
    assert!(backend.get(first, Int8).is_err());
}
